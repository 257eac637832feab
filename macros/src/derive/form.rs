//! `#[derive(AtomicForm)]`: a struct of atomics with the fields of a plain struct, at the same offsets.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Result, Type};

use super::{Options, Representation, members};

/// The impls with their proofs, or the error.
pub(crate) fn atomic_form(input: &DeriveInput) -> Result<TokenStream> {
    let form = &input.ident;
    let refused = |message: &str| Err(Error::new(form.span(), message));
    let Data::Struct(data) = &input.data else {
        return refused("`AtomicForm` can be derived for structs");
    };
    if !Representation::of(input)?.c_or_transparent {
        return refused("`AtomicForm` needs a defined layout: add `#[repr(C)]` to the struct");
    }
    if !input.generics.params.is_empty() {
        return refused(
            "`AtomicForm` cannot be derived for a generic struct: write one for each plain struct",
        );
    }
    let Some(named) = input.attrs.iter().find(|attribute| attribute.path().is_ident("atomic_form")) else {
        return refused("name the struct that the buffer holds: `#[atomic_form(Plain)]`");
    };
    let (plain, root): (Type, _) = (named.parse_args()?, Options::of(input)?.root);
    let members = members(&data.fields);
    let of_plain: Vec<_> = (0..members.len()).map(|field| format_ident!("__plain{field}")).collect();
    let of_form: Vec<_> = (0..members.len()).map(|field| format_ident!("__form{field}")).collect();
    let same = data
        .fields
        .iter()
        .zip(of_plain.iter().zip(&of_form))
        .map(|(field, (plain, form))| quote_spanned!(field.ty.span()=> is(#plain, #form);));
    Ok(quote! {
        const _: () = {
            type __Plain = #plain;
            #[allow(dead_code)]
            fn fields(__plain: &__Plain, __form: &#form) {
                fn is<P, F: #root::__derive::AtomicField<P>>(_: &P, _: &F) {}
                let __Plain { #(#members: #of_plain),* } = __plain;
                let #form { #(#members: #of_form),* } = __form;
                #(#same)*
            }
            assert!(
                ::core::mem::size_of::<__Plain>() == ::core::mem::size_of::<#form>()
                    && ::core::mem::align_of::<__Plain>() == ::core::mem::align_of::<#form>()
                    #(&& ::core::mem::offset_of!(__Plain, #members) == ::core::mem::offset_of!(#form, #members))*,
                "the fields of an atomic form and of its plain struct have different offsets"
            );
        };
        // SAFETY: as for `AtomicForm`, below; what is shared is atomic or only read.
        #[automatically_derived]
        unsafe impl #root::__derive::SliceElement for #form {
            const LAYOUT: u64 = #root::__derive::of_atomic(<#plain as #root::DeviceCopy>::LAYOUT);
        }
        // SAFETY: size, alignment and offsets are equal, and each field matches the plain one; there are no
        // others, on either side.
        #[automatically_derived]
        unsafe impl #root::__derive::AtomicForm for #form {
            type Value = #plain;
        }
    })
}
