//! The function by which the CPU device runs a launch as the kernel's native body.

use ferrogrid_syntax::{Kernel, ParameterKind};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::expand::{extent_type, generic};

/// The name of the function.
pub(super) fn name(kernel: &Kernel) -> Ident {
    format_ident!("__ferrogrid_native_{}", kernel.bare_name())
}

/// The function, if the kernel has a native body: it calls that with slices and values.
pub(super) fn function(kernel: &Kernel) -> TokenStream {
    let Some(body) = &kernel.native else { return TokenStream::new() };
    let (name, rank, cfgs) = (name(kernel), kernel.rank, kernel.cfgs());
    let (declared, passed) = (generic::declared(kernel), generic::passed(kernel));
    let where_clause = &kernel.function.sig.generics.where_clause;
    let extent = extent_type(kernel);
    let mut reads = Vec::new();
    let mut arguments = vec![None; kernel.parameters.len()];
    for (number, parameter) in kernel.entry_parameters() {
        // An error about the argument is one about the parameter.
        let place = Span::call_site().located_at(parameter.ty.span());
        let local = format_ident!("__p{number}", span = place);
        let read = |ty: TokenStream| quote!(::ferrogrid::__private::read_param::<#ty>(__params, &mut __next));
        let (value, argument) = match &parameter.kind {
            ParameterKind::Thread { .. } => {
                arguments[number] = Some(quote!(*__blocks.first_chunk::<#rank>().unwrap()));
                continue;
            }
            ParameterKind::Order { .. } => (read(quote!(*const u64)), None),
            ParameterKind::Scalar => {
                let ty = &parameter.ty;
                // Not by move: a type that is not `Copy` is reported once, at its place.
                (read(quote!(#ty)), Some(quote_spanned!(place=> ::core::ptr::from_ref(&#local).read())))
            }
            ParameterKind::Tuple { members } => (
                members.tuple(|_, ty| read(quote!(#ty))),
                Some(quote_spanned!(place=> ::core::ptr::from_ref(&#local).read())),
            ),
            ParameterKind::Input { element, .. } => {
                let (start, len) = (read(quote!(*const #element)), read(extent.clone()));
                let slice = quote!(::core::slice::from_raw_parts::<#element>(#start, #len as usize));
                (quote!(__loan.lend(#slice)), Some(quote_spanned!(place=> #local)))
            }
            ParameterKind::Output { element, .. } => {
                let (start, len) = (read(quote!(*mut #element)), read(extent.clone()));
                let slice = quote!(::core::slice::from_raw_parts_mut::<#element>(#start, #len as usize));
                (quote!(__loan.lend(#slice)), Some(quote_spanned!(place=> #local)))
            }
            // Shared memory; `Kernel::parse` has refused the others.
            _ => continue,
        };
        reads.push(quote!(let #local = #value;));
        arguments[number] = argument;
    }
    let arguments = arguments.into_iter().flatten();
    quote! {
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(unused_unsafe, unused_variables)]
        unsafe fn #name<#declared>(
            __blocks: [u32; 3],
            __params: *const *const ::core::ffi::c_void,
        ) #where_clause {
            // SAFETY: the launch passes one address for each flattened parameter with bytes, in this order and of these types,
            // and memory as the launch function's arguments guarantee: while it runs, nothing else writes its inputs, unless
            // they are atomic, or reaches its outputs. The native body is all that runs of the launch.
            unsafe {
                let mut __next = 0_usize;
                let __loan = &::ferrogrid::__private::device::native::Loan::begin();
                #(#reads)*
                #body::<#passed>(#(#arguments),*)
            }
        }
    }
}
