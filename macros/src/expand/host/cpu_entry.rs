//! The function by which the CPU device runs one block of a kernel.

use ferrogrid_syntax::{Division, Kernel, ParameterKind};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Index;

use super::cpu_entry_name;
use super::launch::{claims, is_claimed};
use crate::expand::bodies::body_name;
use crate::expand::{box_extents, extent_type, generic, shared};

/// The function by which the CPU device runs one block.
pub(super) fn function(kernel: &Kernel) -> TokenStream {
    let (cpu, body, rank) = (cpu_entry_name(kernel), body_name(kernel), kernel.rank);
    let (declared, passed) = (generic::declared(kernel), generic::passed(kernel));
    let where_clause = &kernel.function.sig.generics.where_clause;
    let cfgs = kernel.cfgs();
    let regions = shared::regions(kernel, &quote!(::ferrogrid::__private::device), &quote!(__thread));
    let extent = extent_type(kernel);
    // A tensor map, which nothing reads here.
    let encoded = quote!(::ferrogrid::__private::device::Encoded);
    let mut reads = Vec::new();
    let mut orders = Vec::new();
    // In the order of the body, which may differ from that of the entry point.
    let mut arguments = vec![None; kernel.parameters.len()];
    for (number, parameter) in kernel.entry_parameters() {
        let local = format_ident!("__p{number}");
        let read = |ty: TokenStream| quote!(::ferrogrid::__private::read_param::<#ty>(__params, &mut __next));
        match &parameter.kind {
            ParameterKind::Thread { .. } => arguments[number] = Some(quote!(__thread)),
            ParameterKind::Shared { .. } => {
                let region = shared::region(number);
                arguments[number] = Some(borrowed(&quote!(#region)));
            }
            ParameterKind::SharedSlice { .. } => {
                let (offset, length, region) =
                    (shared::offset(number), shared::length(number), shared::region(number));
                let (start, count) = (read(quote!(usize)), read(quote!(usize)));
                reads.push(quote!(let (#offset, #length): (usize, usize) = (#start, #count);));
                arguments[number] = Some(borrowed(&quote!(#region)));
            }
            ParameterKind::Order { element } => {
                let (pointer, order) = (read(quote!(*const u64)), format_ident!("__ordered{number}"));
                reads.push(quote! {
                    let #local: *const u64 = #pointer;
                    let _end = ::ferrogrid::__private::device::order::EndOfBlock::<#element>::of(#local, __block);
                });
                orders.push(quote! {
                    let #order = ::ferrogrid::__private::device::BlockOrder::<#element>::from_raw(#local, &__thread);
                });
                arguments[number] = Some(borrowed(&quote!(#order)));
            }
            ParameterKind::Scalar | ParameterKind::Pointer { .. } => {
                let ty = &parameter.ty;
                let value = read(quote!(#ty));
                reads.push(quote!(let #local: #ty = #value;));
                // Not by move: a type that is not `Copy` is reported once, at its place.
                arguments[number] = Some(quote!(::core::ptr::from_ref(&#local).read()));
            }
            ParameterKind::Tuple { members } => {
                let (ty, value) = (&parameter.ty, members.tuple(|_, ty| read(quote!(#ty))));
                reads.push(quote!(let #local: #ty = #value;));
                arguments[number] = Some(quote!(::core::ptr::from_ref(&#local).read()));
            }
            ParameterKind::Texture { value, rank } => {
                let ty = quote!(::ferrogrid::__private::device::Texture);
                let (start, reading) = (read(quote!(*const ())), read(quote!(u32)));
                let extents = (0..*rank).map(|_| read(quote!(u32)));
                reads.push(quote! {
                    let #local: #ty<#value, #rank> = #ty::from_raw_parts(#start, #reading, [#(#extents),*]);
                });
                arguments[number] = Some(borrowed(&quote!(#local)));
            }
            ParameterKind::Surface { element, rank } => {
                let ty = quote!(::ferrogrid::__private::device::Surface::<#element, #rank>);
                let start = read(quote!(*const ()));
                let extents = (0..*rank).map(|_| read(quote!(u32)));
                reads.push(quote!(let #local: (*const (), [u32; #rank]) = (#start, [#(#extents),*]);));
                arguments[number] = Some(borrowed(&quote!(#ty::from_raw_parts(#local.0, #local.1))));
            }
            ParameterKind::Input { element, rank, is_mapped } => {
                let start = read(quote!(*const #element));
                let has_pitch = parameter.kind.has_pitch();
                let extents = (0..*rank + usize::from(has_pitch)).map(|_| read(extent.clone()));
                let is_box = *is_mapped && !has_pitch;
                reads.push(if is_box {
                    let extents = box_extents(&extents.collect::<Vec<_>>());
                    quote!(let #local: (*const #element, [usize; 5]) = (#start, #extents);)
                } else if *rank == 1 {
                    quote!(let #local: &[#element] = ::core::slice::from_raw_parts(#start, #(#extents)* as usize);)
                } else {
                    let ty = format_ident!("{}", if *rank == 2 { "Plane" } else { "Volume" });
                    let plane = quote!(::ferrogrid::__private::device::#ty);
                    let made = if *is_mapped { quote!(pitched) } else { quote!(from_raw_parts) };
                    quote!(let #local: #plane<#element> = #plane::#made(#start, [#(#extents as usize),*]);)
                });
                arguments[number] = Some(if *is_mapped {
                    let map = read(encoded.clone());
                    reads.push(quote!(let _: #encoded = #map;));
                    let made = if is_box {
                        quote!(BoxMap::from_raw_parts(#local.0, #local.1, ::core::ptr::null()))
                    } else {
                        quote!(TensorMap::from_raw_parts(#local, ::core::ptr::null()))
                    };
                    borrowed(&quote!(::ferrogrid::__private::device::#made))
                } else {
                    borrowed(&quote!(#local))
                });
            }
            ParameterKind::Output { element, rank, division } => {
                let ty = format_ident!("{}", division.type_name(*rank));
                let start = read(quote!(*mut #element));
                let is_mapped = parameter.kind.is_mapped();
                let has_pitch = parameter.kind.has_pitch();
                let extents: Vec<_> =
                    (0..*rank + usize::from(has_pitch)).map(|_| read(extent.clone())).collect();
                let (count, extents) = match is_mapped && !has_pitch {
                    true => (5, box_extents(&extents)),
                    false => (extents.len(), quote!([#(#extents as usize),*])),
                };
                reads.push(quote!(let #local: (*mut #element, [usize; #count]) = (#start, #extents);));
                let map = is_mapped.then(|| {
                    let map = read(encoded.clone());
                    reads.push(quote!(let _: #encoded = #map;));
                    quote!(, ::core::ptr::null())
                });
                let claims = is_claimed(parameter).then(|| claims(number));
                let claims = claims.iter();
                let pointer = read(quote!(*const u32));
                reads.extend(claims.clone().map(|claims| quote!(let #claims: *const u32 = #pointer;)));
                let output = quote!(::ferrogrid::__private::device::#ty::from_raw_parts(#local.0, #local.1 #(, #claims)* #map));
                arguments[number] = Some(borrowed(&output));
            }
        }
    }
    let (each, inside) = match inside(kernel) {
        _ if kernel.may_wait => (quote!(for_each_waiting_thread), None),
        None => (quote!(for_each_thread), None),
        Some(inside) => (quote!(for_each_thread_inside), Some(quote!(|__ends| #inside,))),
    };
    quote! {
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(unused_unsafe, unused_variables)]
        unsafe fn #cpu<#declared>(
            __block: &::ferrogrid::__private::device::native::Block,
            __params: *const *const ::core::ffi::c_void,
        ) #where_clause {
            // SAFETY: the launch passes one address for each flattened parameter with bytes, in this order
            // and of these types (of the others, which are `Copy`, the launch got a value), and memory as the
            // launch function's arguments guarantee.
            unsafe {
                let mut __next = 0_usize;
                #(#reads)*
                let __loan = &::ferrogrid::__private::device::native::Loan::begin();
                __block.#each::<#rank>(#inside |__thread| {
                    #regions
                    #(#orders)*
                    #body::<#passed>(#(#arguments),*)
                });
            }
        }
    }
}

/// An argument of the body, lent while the block runs.
fn borrowed(value: &TokenStream) -> TokenStream {
    quote!(__loan.lend(#value))
}

/// A condition: a block that ends at `__ends` lies within everything that its threads may index by their own
/// index, which are outputs with an element for each thread, and inputs of the grid's rank. `None` for
/// kernels that have neither.
fn inside(kernel: &Kernel) -> Option<TokenStream> {
    let conditions = kernel.parameters.iter().enumerate().flat_map(|(number, parameter)| {
        let local = format_ident!("__p{number}");
        match &parameter.kind {
            ParameterKind::Input { rank, .. } if *rank == kernel.rank => {
                let names = if *rank == 1 { &["len"][..] } else { &["width", "height", "depth"][..*rank] };
                let within = |(axis, name): (usize, &&str)| {
                    let (axis, extent) = (Index::from(axis), format_ident!("{name}"));
                    quote!(__ends[#axis] <= #local.#extent())
                };
                names.iter().enumerate().map(within).collect()
            }
            ParameterKind::Surface { rank, .. } if *rank == kernel.rank => {
                (0..*rank).map(|axis| quote!(__ends[#axis] <= #local.1[#axis] as usize)).collect()
            }
            ParameterKind::Output { rank, division: Division::Elements, .. } if *rank == kernel.rank => {
                (0..*rank).map(|axis| quote!(__ends[#axis] <= #local.1[#axis])).collect()
            }
            _ => Vec::new(),
        }
    });
    let conditions: Vec<_> = conditions.collect();
    (!conditions.is_empty()).then(|| quote!(#(#conditions)&&*))
}

#[cfg(test)]
mod tests {
    use ferrogrid_syntax::Module;

    use super::*;

    fn inside_of(parameters: TokenStream) -> Option<String> {
        let item = syn::parse_quote!(mod m { #[kernel] pub fn k(#parameters) {} });
        let module = Module::parse(item).unwrap();
        Some(inside(&module.kernels[0])?.to_string().replace(' ', ""))
    }

    #[test]
    fn a_block_is_inside_where_it_ends_within_each_extent() {
        let tall = inside_of(quote!(t: Thread<2>, x: Plane<f32>)).unwrap();
        assert_eq!(tall, "__ends[0]<=__p1.width()&&__ends[1]<=__p1.height()");
        let output = inside_of(quote!(t: Thread<2>, x: &[f32], y: DisjointSlice<f32, 2>)).unwrap();
        assert_eq!(output, "__ends[0usize]<=__p2.1[0usize]&&__ends[1usize]<=__p2.1[1usize]");
        assert_eq!(inside_of(quote!(t: Thread<1>, x: &[f32])).unwrap(), "__ends[0]<=__p1.len()");
        assert_eq!(inside_of(quote!(t: Thread<1>, x: Plane<f32>, s: f32)), None);
        assert_eq!(
            inside_of(quote!(t: Thread<2>, x: Surface<f32, 2>)).unwrap(),
            "__ends[0usize]<=__p1.1[0usize]asusize&&__ends[1usize]<=__p1.1[1usize]asusize"
        );
        let deep = inside_of(quote!(t: Thread<3>, x: Volume<f32>)).unwrap();
        assert_eq!(deep, "__ends[0]<=__p1.width()&&__ends[1]<=__p1.height()&&__ends[2]<=__p1.depth()");
        for other in [
            quote!(t: Thread<1>, x: Volume<f32>),
            quote!(t: Thread<3>, x: Plane<f32>),
            quote!(t: Thread<2>, x: &[f32]),
            quote!(t: Thread<1>, x: DisjointRows<f32>),
            quote!(t: Thread<1>, x: DisjointSlice<f32, 2>),
            quote!(t: Thread<1>, x: Surface<f32, 2>),
        ] {
            assert_eq!(inside_of(other), None);
        }
    }
}
