//! The grid function of a kernel: `kernels::scale::grid(n)`.

use ferrogrid_syntax::{Division, Kernel, ParameterKind};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, Type};

use super::block;

/// The name of the function in the module; the companion module of the kernel calls it `grid`.
pub(super) fn name(kernel: &Kernel) -> Ident {
    format_ident!("__ferrogrid_grid_{}", kernel.bare_name())
}

/// The function. If the kernel has tiles, whose type may depend on its generic parameters, it has the
/// parameters `declared`.
pub(super) fn function(kernel: &Kernel, declared: &TokenStream) -> TokenStream {
    let (name, rank) = (name(kernel), kernel.rank);
    let cfgs = kernel.cfgs();
    let block = block::of(kernel).map(|block| {
        let sizes = 0..rank;
        quote!(.with_block([#(#block[#sizes]),*]))
    });
    let (what, parameters, grid) = match divided(kernel) {
        Some((Division::Tiles | Division::Chunks, ty)) => (
            "A block for each tile, or chunk, of an output with these extents",
            quote!(<#declared>),
            quote! {
                let (__extent, __tile) =
                    (::ferrogrid::__private::Extent::<#rank>::extent(__extent), <#ty>::TILE);
                ::ferrogrid::__private::Grid::blocks(::core::array::from_fn::<usize, #rank, _>(|axis| {
                    __extent[axis].div_ceil(__tile[axis])
                }))
            },
        ),
        Some((Division::Rows, _)) => (
            "The given number of blocks, one for each row",
            quote!(),
            quote!(::ferrogrid::__private::Grid::blocks(::ferrogrid::__private::Extent::<#rank>::extent(__extent))),
        ),
        _ => (
            "A thread for each of the given number of elements",
            quote!(),
            quote!(::ferrogrid::__private::Grid::cover(__extent)),
        ),
    };
    let doc = format!(
        "{what}, x first, in blocks of the shape that the kernel `{}` fixes, else of the default shape.",
        kernel.bare_name()
    );
    quote! {
        #(#cfgs)*
        #[doc = #doc]
        #[must_use]
        #[allow(dead_code, non_snake_case, unreachable_pub, elided_lifetimes_in_paths)]
        pub fn #name #parameters(
            __extent: impl ::ferrogrid::__private::Extent<#rank>,
        ) -> ::ferrogrid::__private::Grid<#rank> {
            let __grid: ::ferrogrid::__private::Grid<#rank> = { #grid };
            __grid #block
        }
    }
}

/// The first output that belongs to blocks.
fn divided(kernel: &Kernel) -> Option<(Division, &Type)> {
    kernel.parameters.iter().find_map(|parameter| match &parameter.kind {
        ParameterKind::Output {
            division: Division::Elements | Division::Warps | Division::Claimed | Division::Mapped,
            ..
        } => None,
        ParameterKind::Output { division, .. } => Some((*division, &parameter.ty)),
        _ => None,
    })
}
