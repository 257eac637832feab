//! Traits that hold for a type if they hold for all of its fields: `Zeroable`, `Pod`, `Exchange` and the
//! like. The bounds are part of the impls, so the compiler evaluates them.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Data, DataEnum, DeriveInput, Field, Fields, Generics, Type, parse_quote};

use super::{Representation, bounded, members};

/// The impls for a `DeviceCopy` type.
pub(super) fn of(input: &DeriveInput, representation: &Representation, root: &TokenStream) -> TokenStream {
    match &input.data {
        Data::Struct(data) => {
            let fields = &data.fields;
            let bound = quote!(#root::DeviceCopy);
            let seen = as_seen(input, fields, &bound);
            let zeroable = unsafe_impl(input, fields, root, &quote!(Zeroable), &bound);
            let (pod, shared) =
                (pod(input, representation, fields, root, &bound), shared(input, fields, root, Some(&bound)));
            let exchange = exchange(input, fields, root, &bound);
            quote!(#seen #zeroable #pod #shared #exchange)
        }
        Data::Enum(data) => enumeration(input, data, root),
        Data::Union(_) => TokenStream::new(),
    }
}

/// The impls for types of which all bits are a value: threads of a block may share such values. A `Copy` type
/// has no interior mutability, so threads of a cluster may share it, too.
pub(super) fn shared(
    input: &DeriveInput,
    fields: &Fields,
    root: &TokenStream,
    copy: Option<&TokenStream>,
) -> TokenStream {
    let any_bits = quote!(#root::__derive::AnyBits);
    let bound = copy.unwrap_or(&any_bits);
    let generics = where_all(bounded(&input.generics, bound), fields, &any_bits);
    let seen = copy.is_none().then(|| as_seen(input, fields, bound));
    let cluster = copy.map(|_| quote!(ClusterElement));
    let traits = [Some(quote!(AnyBits)), Some(quote!(SharedElement)), cluster];
    let impls = traits.into_iter().flatten().map(|name| implemented(input, &generics, root, &name));
    quote!(#seen #(#impls)*)
}

/// `unsafe impl Name for Type`, where all fields implement it.
fn unsafe_impl(
    input: &DeriveInput,
    fields: &Fields,
    root: &TokenStream,
    name: &TokenStream,
    bound: &TokenStream,
) -> TokenStream {
    let generics = where_all(bounded(&input.generics, bound), fields, &quote!(#root::__derive::#name));
    implemented(input, &generics, root, name)
}

fn implemented(
    input: &DeriveInput,
    generics: &Generics,
    root: &TokenStream,
    name: &TokenStream,
) -> TokenStream {
    let ty = &input.ident;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    quote! {
        // SAFETY: it holds for all fields, by the bounds, and the type has no others.
        #[automatically_derived]
        unsafe impl #impl_generics #root::__derive::#name for #ty #type_generics #where_clause {}
    }
}

/// The generics, with a bound for the type of each field. The lifetime makes the compiler accept a bound
/// that does not hold; then there is no such impl.
fn where_all(mut generics: Generics, fields: &Fields, bound: &TokenStream) -> Generics {
    let clause = generics.make_where_clause();
    for Field { ty, .. } in fields {
        clause.predicates.push(parse_quote!(for<'__field> #ty: #bound));
    }
    generics
}

/// A function that compiles only if the fields are those that the derive saw: an attribute below the derive
/// could change them.
fn as_seen(input: &DeriveInput, fields: &Fields, bound: &TokenStream) -> TokenStream {
    let types = fields.iter().map(|field| &field.ty);
    typed(input, fields, bound, types)
}

/// A function that compiles only if the fields have these types.
fn typed<'t>(
    input: &DeriveInput,
    fields: &Fields,
    bound: &TokenStream,
    types: impl Iterator<Item = &'t Type>,
) -> TokenStream {
    let (name, generics, members) = (&input.ident, bounded(&input.generics, bound), members(fields));
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    quote! {
        const _: () = {
            #[allow(dead_code)]
            fn fields #impl_generics(__it: &#name #type_generics) #where_clause {
                let #name { #(#members: _),* } = __it;
                #(let _: *const #types = &raw const __it.#members;)*
            }
        };
    }
}

/// `Pod`, where there is no padding. The sizes of a generic struct are not known here, so only one whose fields are of one
/// type, or arrays of it, is known to have none.
fn pod(
    input: &DeriveInput,
    representation: &Representation,
    fields: &Fields,
    root: &TokenStream,
    bound: &TokenStream,
) -> TokenStream {
    let pod = quote!(#root::__derive::Pod);
    let mut generics = where_all(bounded(&input.generics, bound), fields, &pod);
    if input.generics.params.is_empty() {
        let (name, types) = (&input.ident, fields.iter().map(|field| &field.ty));
        let padding = quote!(::core::mem::size_of::<#name>() #(- ::core::mem::size_of::<#types>())*);
        generics.make_where_clause().predicates.push(
            parse_quote!(for<'__field> #root::__derive::Padding<{ #padding }>: #root::__derive::NoPadding),
        );
        return implemented(input, &generics, root, &quote!(Pod));
    }
    let Some(first) = fields.iter().next().map(|field| innermost(&field.ty)) else {
        return TokenStream::new();
    };
    // A larger alignment would add padding.
    let text = |ty: &Type| ty.to_token_stream().to_string();
    if representation.aligned || fields.iter().any(|field| text(innermost(&field.ty)) != text(first)) {
        return TokenStream::new();
    }
    // Equal tokens of two macros may mean different types, so the compiler checks this.
    let types: Vec<Type> = fields.iter().map(|field| with_innermost(&field.ty, first)).collect();
    let (check, pod) =
        (typed(input, fields, bound, types.iter()), implemented(input, &generics, root, &quote!(Pod)));
    quote!(#check #pod)
}

/// `T` of `[[T; N]; M]`.
fn innermost(ty: &Type) -> &Type {
    if let Type::Array(array) = ty { innermost(&array.elem) } else { ty }
}

/// `ty` with another innermost element.
fn with_innermost(ty: &Type, element: &Type) -> Type {
    let Type::Array(array) = ty else { return element.clone() };
    let (inner, len) = (with_innermost(&array.elem, element), &array.len);
    parse_quote!([#inner; #len])
}

/// `Exchange`: field by field, without padding.
fn exchange(input: &DeriveInput, fields: &Fields, root: &TokenStream, bound: &TokenStream) -> TokenStream {
    let exchange = quote!(#root::__derive::Exchange);
    let generics = where_all(bounded(&input.generics, bound), fields, &exchange);
    let (name, members) = (&input.ident, members(fields));
    let types: Vec<&Type> = fields.iter().map(|field| &field.ty).collect();
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let parts = quote!(&[#(<#types as #exchange>::BYTES),*]);
    let packed = quote!(#root::__derive::Packed);
    let places: Vec<TokenStream> =
        (0..members.len()).map(|part| quote!(const { #packed::place(#parts, #part) })).collect();
    quote! {
        // SAFETY: the fields one after the other, up to `BYTES`; without padding on either side, plain ones are as in
        // memory.
        #[automatically_derived]
        unsafe impl #impl_generics #exchange for #name #type_generics #where_clause {
            const BYTES: usize = #packed::bytes_of(#parts);
            const PLAIN: bool =
                #packed::is_dense(#parts, ::core::mem::size_of::<Self>()) #(&& <#types as #exchange>::PLAIN)*;

            #[inline(always)]
            unsafe fn put(self, __to: *mut u8) {
                unsafe { #(<#types as #exchange>::put(self.#members, __to.add(#places));)* }
            }

            #[inline(always)]
            unsafe fn take(__from: *const u8) -> Self {
                unsafe { Self { #(#members: <#types as #exchange>::take(__from.add(#places))),* } }
            }
        }
    }
}

/// The impls for an enum without data: it has no uninitialised bytes, and may be 0 if a variant is.
fn enumeration(input: &DeriveInput, data: &DataEnum, root: &TokenStream) -> TokenStream {
    if !data.variants.iter().all(|variant| matches!(variant.fields, Fields::Unit)) {
        return TokenStream::new();
    }
    let (name, generics) = (&input.ident, &input.generics);
    let initialised = implemented(input, generics, root, &quote!(NoUninit));
    if !generics.params.is_empty() {
        return initialised;
    }
    let variants = data.variants.iter().map(|variant| &variant.ident);
    let nonzero = quote!(#(if #name::#variants as i128 == 0 { 0 } else)* { 1 });
    let mut with_zero = generics.clone();
    with_zero
        .make_where_clause()
        .predicates
        .push(parse_quote!(for<'__field> #root::__derive::Variants<{ #nonzero }>: #root::__derive::WithZero));
    let zeroable = implemented(input, &with_zero, root, &quote!(Zeroable));
    quote!(#initialised #zeroable)
}
