//! Shared memory in both halves: regions of static size one after the other from the start, then slices at
//! the offsets of the launch.

use ferrogrid_syntax::{Kernel, ParameterKind};
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Type};

/// The local that holds the region of parameter number `position`.
pub(super) fn region(position: usize) -> Ident {
    format_ident!("__region{position}")
}

/// The local with what precedes and follows the kernel's function for the region of parameter number `position`.
fn around(position: usize) -> Ident {
    format_ident!("__around{position}")
}

/// What precedes the kernel's function for its regions, and what follows it. It comes after all regions, whose addresses would
/// otherwise be computed in branches, which no proof follows.
pub(super) fn begin_and_end(kernel: &Kernel) -> [TokenStream; 2] {
    let all = kernel.parameters.iter().enumerate();
    let arrays = all.filter(|(_, it)| matches!(it.kind, ParameterKind::Shared { .. }));
    let locals: Vec<_> = arrays.map(|(position, _)| around(position)).collect();
    [quote!(#(#locals.begin();)*), quote!(#(#locals.end();)*)]
}

/// The local with the offset in bytes of the slice of parameter number `position`.
pub(super) fn offset(position: usize) -> Ident {
    format_ident!("__offset{position}")
}

/// The local with the number of elements of the slice of parameter number `position`.
pub(super) fn length(position: usize) -> Ident {
    format_ident!("__length{position}")
}

/// Statements that make the regions of `thread`'s block; `device` is the path of the device crate.
///
/// SAFETY of what they call: the launch gives each block as much shared memory as `bytes` says, and the
/// slices behind it; regions do not overlap, and each thread makes each once.
pub(super) fn regions(kernel: &Kernel, device: &TokenStream, thread: &TokenStream) -> TokenStream {
    let mut before = quote!(0);
    let mut statements = TokenStream::new();
    // Regions and slices themselves require nothing, so that what cannot be shared memory is one error.
    let assertion = |name: &str, ty: &Type| {
        let (name, device) = (format_ident!("{name}", span = ty.span()), spanned(device, ty.span()));
        quote_spanned!(ty.span()=> #device::shared::#name::<#ty>();)
    };
    for (position, parameter) in kernel.parameters.iter().enumerate() {
        let region = region(position);
        match &parameter.kind {
            ParameterKind::Shared { array } => {
                let (around, device) = (around(position), spanned(device, array.span()));
                let made = quote_spanned! {
                    array.span()=> #device::shared::array_region::<#array, _, _>(&#thread, const { #before })
                };
                statements.extend(quote!(let (#region, #around) = #made;));
                before = quote!(#device::shared::offset_after(#before, ::core::mem::size_of::<#array>()));
            }
            ParameterKind::SharedSlice { element } => {
                let (offset, length) = (offset(position), length(position));
                statements.extend(assertion("assert_shared_element", element));
                statements.extend(quote! {
                    let #region = #device::SharedSlice::from_raw(
                        #device::shared::region::<#element, _>(&#thread, #offset),
                        #length,
                    );
                });
            }
            _ => {}
        }
    }
    statements
}

/// A path at another place.
fn spanned(path: &TokenStream, span: Span) -> TokenStream {
    let at = |mut token: TokenTree| {
        token.set_span(span);
        token
    };
    path.clone().into_iter().map(at).collect()
}

/// The total size of the regions of static size in bytes.
pub(super) fn bytes(kernel: &Kernel, device: &TokenStream) -> TokenStream {
    kernel.parameters.iter().fold(quote!(0), |before, parameter| match &parameter.kind {
        ParameterKind::Shared { array } => {
            quote!(#device::shared::offset_after(#before, ::core::mem::size_of::<#array>()))
        }
        _ => before,
    })
}
