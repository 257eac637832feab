//! The layouts that both halves share, as a list of numbers in the same order. The device half has them in a
//! variable of each entry point, which the build step reads; the host half compares them with its own.

use ferrogrid_syntax::{Kernel, Module, Parameter, ParameterKind};
use proc_macro2::TokenStream;
use quote::quote;
use syn::Type;

use super::{block, constants, shared};

/// A number that both halves compute, with its meaning for the user.
struct Fact {
    /// Its `cfg`s.
    cfgs: TokenStream,
    what: String,
    value: TokenStream,
    /// Whether it is a hash, and so not shown.
    is_hash: bool,
}

impl Fact {
    fn number(what: String, value: TokenStream) -> Self {
        Fact { cfgs: TokenStream::new(), what, value, is_hash: false }
    }
}

/// All facts of a kernel; `device` is the path of the device crate.
fn facts(module: &Module, kernel: &Kernel, device: &TokenStream) -> Vec<Fact> {
    let shared = shared::bytes(kernel, device);
    let total = Fact::number("the number of bytes of its shared memory".to_owned(), quote!((#shared) as u64));
    let parameters = kernel.parameters.iter().flat_map(|it| of_parameter(it, device));
    let constants = module.constants_of(kernel).flat_map(|constant| {
        let kind = if constant.is_variable { "static" } else { "constant" };
        let (what, cfgs) = (format!("the {kind} `{}`", constant.bare_name()), constant.cfgs());
        let cfgs = quote!(#(#cfgs)*);
        let ty = constants::value(constant, device);
        let facts = value(&ty, &what, &quote!(#device::DeviceCopy));
        facts.into_iter().map(move |fact| Fact { cfgs: cfgs.clone(), ..fact })
    });
    // The build step reads the shape here.
    let block = block::of(kernel).filter(|_| kernel.block.is_some()).into_iter().flat_map(|block| {
        let along = |(axis, name)| {
            Fact::number(format!("the threads of a block along {name}"), quote!(#block[#axis] as u64))
        };
        (0..3_usize).zip(["x", "y", "z"]).map(along).collect::<Vec<_>>()
    });
    std::iter::once(total).chain(block).chain(parameters).chain(constants).collect()
}

fn of_parameter(parameter: &Parameter, device: &TokenStream) -> Vec<Fact> {
    let name = &parameter.name;
    let copy = quote!(#device::DeviceCopy);
    match &parameter.kind {
        ParameterKind::Thread { .. } => Vec::new(),
        // Their sizes are those of the entry point's parameters.
        ParameterKind::Scalar => vec![fields(&parameter.ty, &format!("`{name}`"), &copy)],
        ParameterKind::Tuple { members } => {
            members.values().into_iter().map(|ty| fields(ty, &format!("`{name}`"), &copy)).collect()
        }
        ParameterKind::Input { element, .. } => {
            value(element, &format!("an element of `{name}`"), &quote!(#device::SliceElement))
        }
        ParameterKind::Output { element, .. } | ParameterKind::Pointer { element, .. } => {
            value(element, &format!("an element of `{name}`"), &copy)
        }
        ParameterKind::Texture { value: element, .. } | ParameterKind::Surface { element, .. } => {
            size(element, &format!("an element of `{name}`"))
        }
        ParameterKind::Order { element } => {
            let words = quote!(<#element as #device::order::OrderValue>::STRIDE as u64);
            vec![Fact::number(format!("the number of words of a block in `{name}`"), words)]
        }
        ParameterKind::Shared { array } => size(array, &format!("the shared memory `{name}`")),
        ParameterKind::SharedSlice { element } => {
            size(element, &format!("an element of the shared memory `{name}`"))
        }
    }
}

/// The layout of a type whose values both sides share.
fn value(ty: &Type, what: &str, bound: &TokenStream) -> Vec<Fact> {
    let mut facts = size(ty, what);
    facts.push(fields(ty, what, bound));
    facts
}

fn size(ty: &Type, what: &str) -> Vec<Fact> {
    vec![
        Fact::number(format!("the size of {what}"), quote!(::core::mem::size_of::<#ty>() as u64)),
        Fact::number(format!("the alignment of {what}"), quote!(::core::mem::align_of::<#ty>() as u64)),
    ]
}

fn fields(ty: &Type, what: &str, bound: &TokenStream) -> Fact {
    let value = quote!(<#ty as #bound>::LAYOUT);
    Fact { is_hash: true, ..Fact::number(format!("the layout of the fields of {what}"), value) }
}

/// The numbers, as the elements of an array of `u64`.
pub(super) fn numbers(module: &Module, kernel: &Kernel) -> TokenStream {
    let facts = facts(module, kernel, &quote!(::ferrogrid::device));
    let values = facts.iter().map(|Fact { cfgs, value, .. }| quote!(#cfgs #value));
    quote!(#(#values),*)
}

/// The numbers with their meanings.
pub(super) fn named(module: &Module, kernel: &Kernel) -> TokenStream {
    let facts = facts(module, kernel, &quote!(::ferrogrid::__private::device));
    let facts =
        facts.iter().map(|Fact { cfgs, what, value, is_hash }| quote!(#cfgs (#what, #value, #is_hash)));
    quote!([#(#facts),*])
}
