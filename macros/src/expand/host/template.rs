//! The parameters of a template's function, as the functions that launch its kernels take them.

use ferrogrid_syntax::{ParameterKind, Role, TemplateArgument};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Ident, Lifetime, Type};

/// Whether the functions take it.
pub(super) fn is_passed(argument: &TemplateArgument) -> bool {
    matches!(argument.role, Role::Value) || is_memory(argument)
}

fn is_memory(argument: &TemplateArgument) -> bool {
    matches!(argument.role, Role::Whole(_) | Role::Input(_) | Role::OfRow(_) | Role::OfColumn(_))
}

/// The lifetime of the memory that it stands for.
pub(super) fn lifetime((number, argument): (usize, &TemplateArgument)) -> Option<Lifetime> {
    is_memory(argument).then(|| Lifetime::new(&format!("'p{number}"), Span::call_site()))
}

/// It as a parameter; `input` is the type for an element of an input.
pub(super) fn parameter(
    (number, argument): (usize, &TemplateArgument),
    input: impl Fn(&Lifetime, &Type) -> TokenStream,
) -> Option<TokenStream> {
    let (name, lifetime) = (&argument.name, lifetime((number, argument)));
    Some(match (&argument.role, &lifetime) {
        (Role::Input(element), Some(lifetime)) => {
            let ty = input(lifetime, element);
            quote!(#name: #ty)
        }
        (Role::OfRow(element) | Role::OfColumn(element), _) => {
            quote!(#name: impl ::ferrogrid::__private::DeviceInput<#lifetime, #element>)
        }
        (Role::Whole(ParameterKind::Input { element, rank, .. }), _) => {
            quote!(#name: impl ::ferrogrid::__private::LaunchInput<#lifetime, #element, #rank>)
        }
        (Role::Whole(ParameterKind::Texture { value, rank }), _) => {
            quote!(#name: ::ferrogrid::__private::TextureView<#lifetime, #value, #rank>)
        }
        (Role::Value, _) => {
            let ty = &argument.ty;
            quote!(#name: #ty)
        }
        _ => return None,
    })
}

/// `stream`, or another name if a parameter has that.
pub(super) fn stream(arguments: &[TemplateArgument]) -> Ident {
    let is_taken = arguments.iter().any(|it| it.name == "stream");
    Ident::new(if is_taken { "stream_" } else { "stream" }, Span::call_site())
}
