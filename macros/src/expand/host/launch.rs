//! The typed launch function of a kernel: its arguments, checked and staged, and the call of the runtime.

use ferrogrid_syntax::{Division, Elements, Kernel, Parameter, ParameterKind};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Ident, Lifetime};

use super::{all_have_bytes, all_shapes};
use crate::expand::generic;
use crate::expand::instances::{chosen, launch_bounds};

/// The typed launch function.
pub(super) fn function(kernel: &Kernel) -> TokenStream {
    let name = kernel.name();
    let (visibility, rank, chosen) = (&kernel.function.vis, kernel.rank, chosen(kernel));
    let (declared, bounds) = (generic::declared(kernel), launch_bounds(kernel));
    let unsafety = &kernel.function.sig.safety;
    let attributes =
        kernel.function.attrs.iter().filter(|a| a.path().is_ident("doc") || a.path().is_ident("cfg"));
    let stream = free_name(kernel, "stream");
    let grid = free_name(kernel, "grid");
    let numbered = || kernel.parameters.iter().enumerate();
    let lifetimes = numbered().filter_map(borrow);
    let parameters = numbered().filter_map(launch_parameter);
    let prepare = numbered().map(|it| prepare(it, &stream));
    let narrow = check_narrow(kernel);
    let claims = numbered().filter_map(|it| claim(it, &stream));
    let maps = numbered().filter_map(|it| map(kernel, it, &stream));
    let for_blocks = numbered().filter_map(|it| for_blocks(kernel, it, &stream));
    let same_shapes = kernel.shapes.groups.iter().map(|group| same_shape(kernel, group));
    let finish = numbered().filter_map(|it| finish(it, &stream));
    let cooperative = kernel.bounds.cooperative;
    let slices = kernel.parameters.iter().any(|it| matches!(it.kind, ParameterKind::SharedSlice { .. }));
    let layout =
        slices.then(|| quote!(let mut __shared = ::ferrogrid::__private::SharedLayout::of(#chosen);));
    let bytes = if slices {
        quote!(__shared.bytes())
    } else {
        quote!(::ferrogrid::__private::Kernel::shared_size_bytes(#chosen))
    };
    let (params, passed) = params(kernel);
    let accesses = numbered().filter_map(access);
    let with = if kernel.elements.is_some() {
        "for all elements".to_owned()
    } else {
        format!("with the threads of `{grid}`")
    };
    let summary = format!(
        "Launches the kernel `{}` on `{stream}`, {with}, and returns without waiting for it (except for host slices that it writes: `Out`, `InOut`).",
        kernel.bare_name()
    );
    let (grid_parameter, grid) = match &kernel.elements {
        None => (
            Some(quote!(#grid: impl ::ferrogrid::__private::IntoGrid<#rank>,)),
            quote!(::ferrogrid::__private::IntoGrid::into_grid(#grid)),
        ),
        Some(Elements { first, tile, .. }) => {
            let first = local(*first);
            let blocks = quote!(::ferrogrid::__private::longest(&#first).div_ceil(#tile));
            (None, quote!(::ferrogrid::__private::Grid::<#rank>::blocks(#blocks)))
        }
    };
    let safety = kernel.is_unsafe().then(|| {
        quote! {
            #[doc = "\n# Safety\nThe kernel's own requirements. Memory behind raw pointers must stay valid, and unused by other work, until the stream has run the kernel: launches do not order it."]
        }
    });
    quote! {
        #(#attributes)*
        #[doc = "\n"]
        #[doc = #summary]
        #[doc = "\n# Errors\nIf the grid exceeds the device's limits, a slice has more elements than the kernel supports (see `wide`), slices differ in shape where the kernel requires the same (`same_shape`), an output has no row or tile for each block, a buffer belongs to another device, or the device code cannot be loaded. The next synchronising call reports errors of the running kernel."]
        #safety
        // A bound of the user's and that of the instance may name the same parameter.
        #[allow(clippy::too_many_arguments, clippy::multiple_bound_locations)]
        #[track_caller]
        #visibility #unsafety fn #name<#(#lifetimes,)* #declared>(
            #stream: &::ferrogrid::__private::Stream,
            #grid_parameter
            #(#parameters,)*
        ) -> ::ferrogrid::__private::Result<()>
        #bounds
        {
            #layout
            #(#prepare)*
            #narrow
            #(#same_shapes)*
            #(#claims)*
            #(#maps)*
            let __grid = #grid;
            #(#for_blocks)*
            #params
            // SAFETY: one address for each flattened parameter that has bytes, in the order and of the types that
            // the descriptor names; they live until the call returns.
            unsafe {
                ::ferrogrid::__private::launch_with(
                    #chosen,
                    #stream,
                    &__grid,
                    #bytes,
                    #cooperative,
                    #passed,
                    &[#(#accesses),*],
                )?;
            }
            #(#finish)*
            ::core::result::Result::Ok(())
        }
    }
}

/// A statement that collects the addresses of the parameters, and the expression to pass.
fn params(kernel: &Kernel) -> (TokenStream, TokenStream) {
    let addresses = kernel.entry_parameters().flat_map(addresses);
    let all = quote!([#(#addresses),*]);
    if all_have_bytes(kernel) {
        return (quote!(let __params = #all;), quote!(&__params));
    }
    let shapes = all_shapes(kernel);
    (
        quote!(let __params = ::ferrogrid::__private::sized_addresses(#all, #shapes);),
        quote!(&__params.0[..__params.1]),
    )
}

/// `wanted`, or `wanted` with a suffix if a parameter of the kernel has that name.
fn free_name(kernel: &Kernel, wanted: &str) -> Ident {
    let taken = |name: &str| kernel.parameters.iter().any(|parameter| parameter.name == name);
    let mut name = wanted.to_owned();
    while taken(&name) {
        name.push('_');
    }
    Ident::new(&name, Span::call_site())
}

/// The lifetime of an argument that is borrowed.
fn borrow((number, parameter): (usize, &Parameter)) -> Option<Lifetime> {
    let is_borrowed = uses_memory(parameter);
    is_borrowed.then(|| Lifetime::new(&format!("'p{number}"), Span::call_site()))
}

/// Whether it refers to device memory that the launch orders.
fn uses_memory(parameter: &Parameter) -> bool {
    is_slice(parameter)
        || matches!(parameter.kind, ParameterKind::Texture { .. } | ParameterKind::Surface { .. })
}

/// Whether it refers to elements in memory, of the device or of the host.
fn is_slice(parameter: &Parameter) -> bool {
    matches!(parameter.kind, ParameterKind::Input { .. } | ParameterKind::Output { .. })
}

fn launch_parameter((number, parameter): (usize, &Parameter)) -> Option<TokenStream> {
    let name = &parameter.name;
    let lifetime = borrow((number, parameter));
    let ty = match &parameter.kind {
        ParameterKind::Thread { .. } | ParameterKind::Shared { .. } | ParameterKind::Order { .. } => {
            return None;
        }
        ParameterKind::SharedSlice { .. } => quote!(usize),
        ParameterKind::Scalar | ParameterKind::Tuple { .. } => {
            let ty = &parameter.ty;
            quote!(#ty)
        }
        ParameterKind::Input { element, .. } if parameter.kind.has_pitch() => {
            quote!(impl ::ferrogrid::__private::MapInput<#lifetime, #element>)
        }
        ParameterKind::Input { element, rank, .. } => {
            quote!(impl ::ferrogrid::__private::LaunchInput<#lifetime, #element, #rank>)
        }
        ParameterKind::Output { element, .. } if parameter.kind.has_pitch() => {
            quote!(impl ::ferrogrid::__private::MapOutput<#lifetime, #element>)
        }
        ParameterKind::Output { element, rank, .. } => {
            quote!(impl ::ferrogrid::__private::LaunchOutput<#lifetime, #element, #rank>)
        }
        ParameterKind::Texture { value, rank } => {
            quote!(::ferrogrid::__private::TextureView<#lifetime, #value, #rank>)
        }
        ParameterKind::Surface { element, rank } => {
            quote!(::ferrogrid::__private::SurfaceViewMut<#lifetime, #element, #rank>)
        }
        ParameterKind::Pointer { element, mutable: false } => {
            quote!(::ferrogrid::__private::DevicePtr<#element>)
        }
        ParameterKind::Pointer { element, mutable: true } => {
            quote!(::ferrogrid::__private::DevicePtrMut<#element>)
        }
    };
    Some(quote!(#name: #ty))
}

fn local(number: usize) -> Ident {
    format_ident!("__p{number}")
}

/// A member of a tuple.
fn member_local(number: usize, member: usize) -> Ident {
    format_ident!("__p{number}_{member}")
}

/// An argument in device memory, from before the launch until after it.
fn staged(number: usize) -> Ident {
    format_ident!("__staged{number}")
}

/// Whether its elements belong to the threads that claim them.
pub(super) fn is_claimed(parameter: &Parameter) -> bool {
    matches!(parameter.kind, ParameterKind::Output { division: Division::Claimed, .. })
}

/// Whether the launch makes a tensor map for it.
pub(super) fn is_mapped(parameter: &Parameter) -> bool {
    parameter.kind.is_mapped()
}

/// The tensor map of a `TensorMap` or a `TensorMapMut`.
fn tensor_map(number: usize) -> Ident {
    format_ident!("__map{number}")
}

/// The claims of a `ScatterSlice`.
pub(super) fn claims(number: usize) -> Ident {
    format_ident!("__claims{number}")
}

/// Converts an argument to the values whose addresses the launch takes.
fn prepare((number, parameter): (usize, &Parameter), stream: &Ident) -> TokenStream {
    let (local, name) = (local(number), &parameter.name);
    match &parameter.kind {
        // The state of a `BlockOrder` is made for the grid.
        ParameterKind::Thread { .. } | ParameterKind::Shared { .. } | ParameterKind::Order { .. } => {
            TokenStream::new()
        }
        ParameterKind::SharedSlice { element } => {
            quote!(let #local: [usize; 2] = __shared.slice::<#element>(#name);)
        }
        ParameterKind::Scalar | ParameterKind::Pointer { .. } => quote!(let #local = #name;),
        ParameterKind::Texture { .. } | ParameterKind::Surface { .. } => {
            quote!(let #local = #name.on(#stream)?;)
        }
        ParameterKind::Tuple { members } => {
            let places = members.tuple(|member, _| member_local(number, member).into_token_stream());
            quote!(let #places = #name;)
        }
        ParameterKind::Input { .. } if parameter.kind.has_pitch() => {
            let staged = staged(number);
            quote! {
                let #staged = ::ferrogrid::__private::MapInput::stage(#name, #stream)?;
                let #local = ::ferrogrid::__private::StagedMapInput::input(&#staged);
            }
        }
        ParameterKind::Input { .. } => {
            let staged = staged(number);
            quote! {
                let #staged = ::ferrogrid::__private::LaunchInput::stage(#name, #stream)?;
                let #local = ::ferrogrid::__private::StagedInput::input(&#staged);
            }
        }
        ParameterKind::Output { .. } if parameter.kind.has_pitch() => {
            let staged = staged(number);
            quote! {
                let mut #staged = ::ferrogrid::__private::MapOutput::stage(#name, #stream)?;
                let #local = ::ferrogrid::__private::StagedMapOutput::output(&mut #staged);
            }
        }
        ParameterKind::Output { .. } => {
            let staged = staged(number);
            quote! {
                let mut #staged = ::ferrogrid::__private::LaunchOutput::stage(#name, #stream)?;
                let #local = ::ferrogrid::__private::StagedOutput::output(&mut #staged);
            }
        }
    }
}

/// Refuses elements whose numbers have more than 32 bits, unless the kernel is `wide`.
fn check_narrow(kernel: &Kernel) -> Option<TokenStream> {
    let slices = kernel.parameters.iter().enumerate().filter(|(_, parameter)| is_slice(parameter));
    let (names, lengths): (Vec<_>, Vec<_>) = slices
        .map(|(number, parameter)| {
            let local = local(number);
            (parameter.name.to_string(), quote!(::ferrogrid::__private::longest(&#local)))
        })
        .unzip();
    let chosen = chosen(kernel);
    (!kernel.bounds.wide && !names.is_empty()).then(|| {
        quote! {
            ::ferrogrid::__private::check_narrow(#chosen, #(#lengths)|*, || [#((#names, #lengths)),*])?;
        }
    })
}

/// Makes the claims of a `ScatterSlice`.
fn claim((number, parameter): (usize, &Parameter), stream: &Ident) -> Option<TokenStream> {
    let (local, claims) = (local(number), claims(number));
    is_claimed(parameter)
        .then(|| quote!(let #claims = ::ferrogrid::__private::LaunchZeros::claim_bits(&#local, #stream)?;))
}

/// Makes the tensor map of a `TensorMap` or a `TensorMapMut`.
fn map(kernel: &Kernel, (number, parameter): (usize, &Parameter), stream: &Ident) -> Option<TokenStream> {
    let (chosen, local, map) = (chosen(kernel), local(number), tensor_map(number));
    let (name, ty) = (parameter.name.to_string(), &parameter.ty);
    is_mapped(parameter).then(
        || quote!(let #map = ::ferrogrid::__private::LaunchMap::new(#chosen, #stream, #name, &#local, <#ty>::FORM)?;),
    )
}

/// Refuses a grid in which a block has no row or tile of an output that belongs to blocks; makes the state
/// of a `BlockOrder`.
fn for_blocks(
    kernel: &Kernel,
    (number, parameter): (usize, &Parameter),
    stream: &Ident,
) -> Option<TokenStream> {
    if let ParameterKind::Order { element } = &parameter.kind {
        let (chosen, local) = (chosen(kernel), local(number));
        return Some(
            quote!(let #local = ::ferrogrid::__private::OrderMemory::new::<#element, 1>(#chosen, __grid, #stream)?;),
        );
    }
    let ParameterKind::Output { division, .. } = &parameter.kind else { return None };
    let (chosen, local, name) = (chosen(kernel), local(number), parameter.name.to_string());
    let ty = &parameter.ty;
    match division {
        Division::Elements | Division::Warps | Division::Claimed | Division::Mapped => None,
        Division::Rows => {
            Some(quote!(::ferrogrid::__private::rows_for_blocks(#chosen, #stream, __grid, #name, &#local)?;))
        }
        Division::Tiles | Division::Chunks => Some(
            quote!(::ferrogrid::__private::tiles_for_blocks(#chosen, #stream, __grid, #name, &#local, <#ty>::TILE)?;),
        ),
    }
}

/// Refuses arguments whose shape differs from the first of their group.
fn same_shape(kernel: &Kernel, (first, others): &(usize, Vec<usize>)) -> TokenStream {
    let named = |number: usize| {
        let (local, name) = (local(number), kernel.parameters[number].name.to_string());
        quote!((#name, &#local))
    };
    let (chosen, first) = (chosen(kernel), named(*first));
    let others = others.iter().map(|other| named(*other));
    quote!(#(::ferrogrid::__private::same_shape(#chosen, #first, #others)?;)*)
}

fn addresses((number, parameter): (usize, &Parameter)) -> Vec<TokenStream> {
    let local = local(number);
    match &parameter.kind {
        ParameterKind::Thread { .. } | ParameterKind::Shared { .. } => Vec::new(),
        ParameterKind::Order { .. } => vec![quote!(#local.param())],
        ParameterKind::SharedSlice { .. } => (0..2_usize)
            .map(|part| quote!(::core::ptr::from_ref(&#local[#part]).cast::<::core::ffi::c_void>()))
            .collect(),
        ParameterKind::Scalar | ParameterKind::Pointer { .. } => {
            vec![quote!(::core::ptr::from_ref(&#local).cast::<::core::ffi::c_void>())]
        }
        ParameterKind::Tuple { members } => {
            let places = (0..members.values().len()).map(|member| member_local(number, member));
            places.map(|local| quote!(::core::ptr::from_ref(&#local).cast::<::core::ffi::c_void>())).collect()
        }
        other => {
            let last = match (is_claimed(parameter), is_mapped(parameter)) {
                (true, _) => Some(claims(number)),
                (_, true) => Some(tensor_map(number)),
                _ => None,
            };
            let last = last.map(|last| quote!(#last.param()));
            let parts = other.flattened() - usize::from(last.is_some());
            (0..parts).map(|part| quote!(#local.params()[#part])).chain(last).collect()
        }
    }
}

fn access((number, parameter): (usize, &Parameter)) -> Option<TokenStream> {
    let (local, claims) = (local(number), claims(number));
    let claims = is_claimed(parameter).then(|| quote!(, #claims.access()));
    let has_memory = uses_memory(parameter) || matches!(parameter.kind, ParameterKind::Order { .. });
    has_memory.then(|| quote!(#local.access() #claims))
}

/// Copies the results to slices of the host.
fn finish((number, parameter): (usize, &Parameter), stream: &Ident) -> Option<TokenStream> {
    let staged = staged(number);
    is_slice(parameter).then(|| quote!(::ferrogrid::__private::Staged::finish(#staged, #stream)?;))
}
