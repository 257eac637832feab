//! The device half: the module as written, and for each kernel an `extern "ptx-kernel"` entry point with the
//! flattened parameters.

use ferrogrid_syntax::compiled::LAYOUT_PREFIX;
use ferrogrid_syntax::{Division, Instance, Kernel, Module, Parameter, ParameterKind, Part};
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Ident, Item};

use super::{block, box_extents, constants, extent_type, externs, generic, layout, shared};

/// The module with its entry points, or without them for a library's device crate.
pub(super) fn module(module: &Module, entries: bool) -> TokenStream {
    let written = &module.item;
    let (attributes, visibility, name) = (&written.attrs, &written.vis, &written.ident);
    let items = module.parts().map(|part| on_device(module, &part));
    let constants = module.constants.iter().map(|it| constants::on_device(module, it, entries));
    let kernels = module.kernels.iter().filter(|_| entries);
    let entries = kernels.flat_map(|kernel| {
        let block = block::constant(kernel, &quote!(::ferrogrid::device));
        let entries = kernel.instances.iter().map(move |instance| entry(module, kernel, instance));
        block.into_iter().chain(entries)
    });
    quote! {
        #(#attributes)*
        #visibility mod #name {
            #(#items)*
            #(#constants)*
            #(#entries)*
        }
    }
}

/// An item on the device: a kernel without its attribute, a constant not at all.
fn on_device(module: &Module, part: &Part) -> TokenStream {
    match part {
        Part::Kernel(kernel) => {
            let mut function = kernel.body(kernel.name());
            function.vis = kernel.function.vis.clone();
            constants::name_values(module, kernel.name(), &mut function.block);
            function.into_token_stream()
        }
        Part::Other(Item::Fn(function)) => constants::named_in(module, function).into_token_stream(),
        Part::Other(Item::Static(it))
            if module.constants.iter().any(|constant| constant.name == it.ident) =>
        {
            TokenStream::new()
        }
        Part::Other(Item::ForeignMod(block)) => externs::on_device(block),
        Part::Other(item) => quote!(#item),
    }
}

/// The entry point of one instance. The module gets names for the instance's arguments, and the
/// entry's signature uses them in place of the generic parameters.
fn entry(module: &Module, kernel: &Kernel, instance: &Instance) -> TokenStream {
    let name = kernel.name();
    let entry = format_ident!("{}", kernel.entry(instance, module.fingerprint), span = name.span());
    let alias = |parameter: &Ident| format_ident!("__{entry}_{parameter}", span = parameter.span());
    let generics = generic::names(kernel);
    let rename = |ident: &Ident| generics.contains(&ident).then(|| alias(ident));
    let aliases = generic::aliases(kernel, instance, alias);
    let chosen = generic::aliased(instance, alias);
    let cfgs: Vec<_> = kernel.cfgs_of(instance).collect();
    let parameters = kernel.entry_parameters().map(|(i, parameter)| entry_parameters(kernel, i, parameter));
    let arguments = kernel.parameters.iter().enumerate().map(|(i, parameter)| {
        let map = || generic::renamed(map_address(kernel, &entry, i), &rename);
        argument(kernel, i, parameter, map)
    });
    let thread = thread(kernel);
    // All threads of a cluster leave together: a block must not release its shared memory while others read
    // it.
    let leave = kernel.bounds.has_clusters().then(|| quote!(::ferrogrid::device::leave_cluster();));
    let end = generic::renamed(end(kernel), &rename);
    let [begin_regions, end_regions] = shared::begin_and_end(kernel);
    let regions =
        generic::renamed(shared::regions(kernel, &quote!(::ferrogrid::device), &quote!(current)), &rename);
    let orders = kernel.parameters.iter().enumerate().filter_map(|(position, parameter)| {
        let ParameterKind::Order { .. } = &parameter.kind else { return None };
        let (state, order) = (part(position, "order"), ordered(position));
        Some(quote!(let #order = ::ferrogrid::device::BlockOrder::from_raw(#state, &current);))
    });
    let parameters = generic::renamed(quote!(#(#parameters)*), &rename);
    let layout = layout(module, kernel, instance, &entry, &rename);
    // SAFETY of the `unsafe` block below: the launch passes what each `from_raw_parts` needs, on a
    // grid of the kernel's rank; and an unsafe kernel's own conditions, its launch function's caller
    // has vouched for.
    quote! {
        #aliases
        #layout
        #(#cfgs)*
        #[unsafe(no_mangle)]
        // The extents of the first of the slices with the same shape serve all.
        #[allow(unused_variables)]
        unsafe extern "ptx-kernel" fn #entry(#parameters) {
            unsafe {
                let current = #thread;
                #regions
                #begin_regions
                #(#orders)*
                self::#name::<#chosen>(#(#arguments),*);
                #end
                #end_regions
                #leave
            }
        }
    }
}

/// The variable with this half's layouts, which the builder removes from the PTX.
fn layout(
    module: &Module,
    kernel: &Kernel,
    instance: &Instance,
    entry: &Ident,
    rename: &impl Fn(&Ident) -> Option<Ident>,
) -> TokenStream {
    let name = format_ident!("{LAYOUT_PREFIX}{entry}");
    let numbers = generic::renamed(layout::numbers(module, kernel), rename);
    let cfgs = kernel.cfgs_of(instance);
    quote! {
        #(#cfgs)*
        #[unsafe(no_mangle)]
        static #name: [u64; [#numbers].len()] = [#numbers];
    }
}

/// The running thread, with the fixed shape of its block.
fn thread(kernel: &Kernel) -> TokenStream {
    let rank = kernel.rank;
    match block::of(kernel) {
        Some(block) => quote!(::ferrogrid::device::Thread::<#rank>::current_in(#block)),
        None => quote!(::ferrogrid::device::Thread::<#rank>::current()),
    }
}

/// Ends a block in a kernel with a `BlockOrder`: it publishes no further value.
fn end(kernel: &Kernel) -> TokenStream {
    let orders = kernel.parameters.iter().enumerate().filter_map(|(position, parameter)| {
        let ParameterKind::Order { element } = &parameter.kind else { return None };
        let (state, thread) = (part(position, "order"), thread(kernel));
        Some(quote!(::ferrogrid::device::order::end_block::<#element>(#state, &#thread);))
    });
    orders.collect()
}

/// The name of a parameter of the entry point; with a number it cannot clash.
fn part(position: usize, part: &str) -> Ident {
    format_ident!("p{position}_{part}")
}

/// A member of a tuple.
fn member(position: usize, number: usize) -> Ident {
    part(position, &format!("member{number}"))
}

/// The name of the `BlockOrder`, which is made before the kernel takes the thread.
fn ordered(position: usize) -> Ident {
    part(position, "ordered")
}

/// The names of the extents along each axis.
fn extents(position: usize, rank: usize) -> Vec<Ident> {
    (0..rank).map(|axis| part(position, &format!("extent{axis}"))).collect()
}

/// A texture or surface object as a pointer; it is not an address.
fn object(handle: &Ident) -> TokenStream {
    quote!(::core::ptr::without_provenance(#handle as usize))
}

/// The name of the parameter that says how the CPU device reads a texture.
fn reading(position: usize) -> Ident {
    part(position, "reading")
}

/// The name of the claims of a `ScatterSlice`.
fn claims(position: usize, division: Division) -> Option<Ident> {
    (division == Division::Claimed).then(|| part(position, "claims"))
}

/// The name of what is from the start of a row to that of the next.
fn pitch(position: usize) -> Ident {
    part(position, "pitch")
}

/// The name of a tensor map.
fn tensor_map(position: usize) -> Ident {
    part(position, "map")
}

/// The address of a tensor map, the last of the parameters that the entry point has for it.
fn map_address(kernel: &Kernel, entry: &Ident, position: usize) -> TokenStream {
    let before = kernel.entry_parameters().take_while(|(other, _)| *other != position);
    let numbers = before.map(|(_, parameter)| {
        let (all, values) = (parameter.kind.flattened(), parameter.values());
        let others = all - values.len();
        // Values without bytes are left out.
        quote!(+ #others #(+ (::core::mem::size_of::<#values>() != 0) as usize)*)
    });
    let (name, last) = (entry.to_string(), kernel.parameters[position].kind.flattened() - 1);
    quote!(::ferrogrid::device::__address_of_parameter!(#name, #last #(#numbers)*))
}

fn entry_parameters(kernel: &Kernel, position: usize, parameter: &Parameter) -> TokenStream {
    let start = part(position, "start");
    let extent = extent_type(kernel);
    let map = parameter.kind.is_mapped().then(|| {
        let (pitch, map) = (parameter.kind.has_pitch().then(|| pitch(position)), tensor_map(position));
        let pitch = pitch.map(|pitch| quote!(#pitch: #extent,));
        quote!(#pitch #map: ::ferrogrid::device::Encoded,)
    });
    match &parameter.kind {
        ParameterKind::Thread { .. } | ParameterKind::Shared { .. } => TokenStream::new(),
        ParameterKind::SharedSlice { .. } => {
            let (offset, length) = (shared::offset(position), shared::length(position));
            quote!(#offset: usize, #length: usize,)
        }
        ParameterKind::Scalar | ParameterKind::Pointer { .. } => {
            let (value, ty) = (part(position, "value"), &parameter.ty);
            quote!(#value: #ty,)
        }
        ParameterKind::Order { .. } => {
            let state = part(position, "order");
            quote!(#state: *const u64,)
        }
        ParameterKind::Tuple { members } => {
            let values = members.values().into_iter().enumerate().map(|(number, ty)| {
                let value = member(position, number);
                quote!(#value: #ty,)
            });
            values.collect()
        }
        ParameterKind::Texture { rank, .. } => {
            let (reading, extents) = (reading(position), extents(position, *rank));
            quote!(#start: u64, #reading: u32, #(#extents: u32,)*)
        }
        ParameterKind::Surface { rank, .. } => {
            let extents = extents(position, *rank);
            quote!(#start: u64, #(#extents: u32,)*)
        }
        // A shared reference is `noalias readonly` to LLVM, which makes the loads `ld.global.nc`; a
        // mutable one is `noalias` and never null, which spares checks and lets accesses be merged.
        // An array of no elements is what a pointer to an empty buffer may be borrowed as.
        ParameterKind::Input { element, rank, .. } => {
            let extents = extents(position, *rank);
            quote!(#start: &[#element; 0], #(#extents: #extent,)* #map)
        }
        ParameterKind::Output { element, rank, division } => {
            let (extents, claims) = (extents(position, *rank), claims(position, *division));
            let claims = claims.map(|claims| quote!(#claims: *const u32,));
            quote!(#start: &mut [#element; 0], #(#extents: #extent,)* #claims #map)
        }
    }
}

/// The argument of the kernel's call. The host passes what each `from_raw_parts` requires: that is the
/// contract of the launch.
fn argument(
    kernel: &Kernel,
    position: usize,
    parameter: &Parameter,
    map_address: impl FnOnce() -> TokenStream,
) -> TokenStream {
    // The launch of a kernel that is not `wide` refuses 2^32 elements. A row or a chunk is found by a single
    // product in either case, and an index of rank 1 by none.
    let one_product = matches!(
        parameter.kind,
        ParameterKind::Output {
            division: Division::Rows | Division::Chunks | Division::Warps | Division::Claimed,
            ..
        }
    );
    let narrow = (!kernel.bounds.wide && !one_product).then(|| quote!(.narrow()));
    let start = part(position, "start");
    let shape = |rank: usize| extents(kernel.shapes.leader(position), rank);
    match &parameter.kind {
        ParameterKind::Thread { .. } => quote!(current),
        ParameterKind::Shared { .. } | ParameterKind::SharedSlice { .. } => {
            let region = shared::region(position);
            quote!(#region)
        }
        ParameterKind::Scalar | ParameterKind::Pointer { .. } => {
            let value = part(position, "value");
            quote!(#value)
        }
        ParameterKind::Order { .. } => {
            let order = ordered(position);
            quote!(#order)
        }
        ParameterKind::Tuple { members } => {
            members.tuple(|number, _| member(position, number).into_token_stream())
        }
        ParameterKind::Texture { rank, .. } => {
            let (reading, extents) = (reading(position), extents(position, *rank));
            let handle = object(&start);
            quote!(::ferrogrid::device::Texture::from_raw_parts(#handle, #reading, [#(#extents),*]))
        }
        ParameterKind::Surface { rank, .. } => {
            let extents = extents(position, *rank);
            let handle = object(&start);
            quote!(::ferrogrid::device::Surface::from_raw_parts(#handle, [#(#extents),*]))
        }
        ParameterKind::Input { rank, is_mapped: true, .. } if *rank != 2 => {
            let (extents, address) = (box_extents(&shape(*rank)), map_address());
            quote!(::ferrogrid::device::BoxMap::from_raw_parts(#start.as_ptr(), #extents, #address))
        }
        ParameterKind::Input { rank: 1, .. } => {
            let length = shape(1);
            quote!(::core::slice::from_raw_parts(#start.as_ptr(), #(#length)* as usize))
        }
        ParameterKind::Input { rank, is_mapped: true, .. } => {
            let (extents, pitch, address) = (shape(*rank), pitch(position), map_address());
            let plane = quote!(::ferrogrid::device::Plane::pitched(#start.as_ptr(), [#(#extents as usize,)* #pitch as usize])#narrow);
            quote!(::ferrogrid::device::TensorMap::from_raw_parts(#plane, #address))
        }
        ParameterKind::Input { rank, .. } => {
            let extents = shape(*rank);
            let ty = format_ident!("{}", if *rank == 2 { "Plane" } else { "Volume" });
            quote!(::ferrogrid::device::#ty::from_raw_parts(#start.as_ptr(), [#(#extents as usize),*])#narrow)
        }
        ParameterKind::Output { rank, division: Division::Mapped, .. } if *rank != 2 => {
            let (extents, address) = (box_extents(&shape(*rank)), map_address());
            quote!(::ferrogrid::device::BoxMapMut::from_raw_parts(#start.as_mut_ptr(), #extents, #address))
        }
        ParameterKind::Output { rank, division: Division::Mapped, .. } => {
            let (extents, pitch, address) = (shape(*rank), pitch(position), map_address());
            let shape = quote!([#(#extents as usize,)* #pitch as usize]);
            quote!(::ferrogrid::device::TensorMapMut::from_raw_parts(#start.as_mut_ptr(), #shape, #address))
        }
        ParameterKind::Output { rank, division, .. } => {
            let ty = format_ident!("{}", division.type_name(*rank));
            let (extents, claims) = (shape(*rank), claims(position, *division).into_iter());
            quote!(::ferrogrid::device::#ty::from_raw_parts(#start.as_mut_ptr(), [#(#extents as usize),*] #(, #claims)*)#narrow)
        }
    }
}
