//! `#[derive(DeviceCopy)]`: checks that a type's layout is defined and that its fields may be copied to a
//! device.
//!
//! | file | holds |
//! |---|---|
//! | `facts.rs` | further traits, implemented where all fields implement them |
//! | `form.rs` | `#[derive(AtomicForm)]` |

mod facts;
mod form;
#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Generics, Member, Result, Variant, parse_quote};

use crate::crate_path;

pub(crate) use form::atomic_form;

/// The impl, or the error.
pub(crate) fn device_copy(input: &DeriveInput) -> Result<TokenStream> {
    let representation = Representation::of(input)?;
    match &input.data {
        Data::Struct(_) => {
            if !representation.c_or_transparent {
                return Err(Error::new(
                    input.ident.span(),
                    "`DeviceCopy` needs a defined layout: add `#[repr(C)]` to the struct",
                ));
            }
        }
        Data::Enum(data) => {
            let has_data = data.variants.iter().any(|variant| !matches!(variant.fields, Fields::Unit));
            if !representation.integer && !(has_data && representation.c_or_transparent) {
                let advice = if has_data {
                    "add `#[repr(C)]` or an integer representation to the enum, such as `#[repr(u8)]`"
                } else {
                    "add an integer representation to the enum, such as `#[repr(u32)]`"
                };
                let message = format!("`DeviceCopy` needs a defined layout: {advice}");
                return Err(Error::new(input.ident.span(), message));
            }
        }
        Data::Union(data) => {
            return Err(Error::new(
                data.union_token.span,
                "`DeviceCopy` cannot be derived for a union: the device cannot know which field is valid",
            ));
        }
    }
    let Options { root, has_invariant } = Options::of(input)?;
    let implementation = implementation(input, &layout(input, &root), &root);
    if has_invariant {
        return Ok(implementation);
    }
    let facts = facts::of(input, &representation, &root);
    Ok(quote!(#implementation #facts))
}

/// `#[derive(SharedElement)]`, for structs that are not `Copy`.
pub(crate) fn shared_element(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        let message =
            "`SharedElement` can be derived for structs: not all bits are a value of an enum or a union";
        return Err(Error::new(input.ident.span(), message));
    };
    Ok(facts::shared(input, &data.fields, &Options::of(input)?.root, None))
}

/// The options of `#[device_copy(..)]`.
struct Options {
    /// The crate with the traits: that of `crate = path`, else the package's name for it.
    root: TokenStream,
    /// Whether the fields have an invariant, so that not all bits are a value.
    has_invariant: bool,
}

impl Options {
    fn of(input: &DeriveInput) -> Result<Self> {
        let (mut root, mut has_invariant) = (None, false);
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("device_copy")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("invariant") {
                    has_invariant = true;
                } else if meta.path.is_ident("crate") {
                    root = Some(crate_path::from_root(&meta.value()?.parse()?));
                } else {
                    let message = "unknown option; `#[device_copy(..)]` knows `invariant` and `crate = path`";
                    return Err(meta.error(message));
                }
                Ok(())
            })?;
        }
        Ok(Options { root: root.unwrap_or_else(crate_path::of_device_types), has_invariant })
    }
}

fn implementation(input: &DeriveInput, layout: &TokenStream, root: &TokenStream) -> TokenStream {
    let name = &input.ident;
    let generics = bounded(&input.generics, &quote!(#root::DeviceCopy));
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    quote! {
        // SAFETY: the layout is fixed by the `repr` that the derive requires, and every field is
        // `DeviceCopy`, since the layout's hash is computed from theirs.
        unsafe impl #impl_generics #root::DeviceCopy for #name #type_generics #where_clause {
            const LAYOUT: u64 = #layout;
        }
    }
}

/// The generics, with a bound for all types.
fn bounded(generics: &Generics, bound: &TokenStream) -> Generics {
    let mut generics = generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(#bound));
    }
    generics
}

/// The hash of the type's layout: of its fields in order, with the hashes of their types. Variants count as
/// fields.
fn layout(input: &DeriveInput, root: &TokenStream) -> TokenStream {
    let name = input.ident.to_string();
    let entries: Vec<TokenStream> = match &input.data {
        Data::Struct(data) => fields(&data.fields, root),
        Data::Enum(data) => {
            let variant = |variant: &Variant| {
                let name = variant.ident.to_string();
                std::iter::once(quote!((#name, 0))).chain(fields(&variant.fields, root)).collect::<Vec<_>>()
            };
            data.variants.iter().flat_map(variant).collect()
        }
        Data::Union(_) => Vec::new(),
    };
    quote!(#root::__derive::of_type(#name, &[#(#entries),*]))
}

fn fields(fields: &Fields, root: &TokenStream) -> Vec<TokenStream> {
    let entry = |(number, field): (usize, &Field)| {
        let ty = &field.ty;
        let name = field.ident.as_ref().map_or_else(|| number.to_string(), ToString::to_string);
        quote_spanned!(ty.span()=> (#name, <#ty as #root::DeviceCopy>::LAYOUT))
    };
    fields.iter().enumerate().map(entry).collect()
}

fn members(fields: &Fields) -> Vec<Member> {
    fields.members().collect()
}

#[derive(Default)]
struct Representation {
    c_or_transparent: bool,
    integer: bool,
    aligned: bool,
}

impl Representation {
    fn of(input: &DeriveInput) -> Result<Self> {
        let mut found = Representation::default();
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
            attribute.parse_nested_meta(|meta| {
                let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
                match name.as_str() {
                    "C" | "transparent" => found.c_or_transparent = true,
                    "packed" => {
                        return Err(meta.error(
                            "`DeviceCopy` cannot be packed: devices load only from aligned addresses",
                        ));
                    }
                    "align" => {
                        found.aligned = true;
                        meta.input.parse::<proc_macro2::TokenTree>()?;
                    }
                    other => found.integer = other.starts_with(['u', 'i']),
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}
