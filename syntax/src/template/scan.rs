//! `#[scan]`: a kernel that reads each element once and writes each result once, by decoupled look-back.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Generics, Item, ItemFn, Result, parse_quote};

use super::accumulation::Accumulation;
use super::signature::{Role, Signature};
use super::{Elements, THREADS, size};

/// The rows of a thread: those of `ferrogrid_device::scan`.
const ROWS: usize = 8;
/// The neighbours that a lane has in each row, of at most 4 bytes each.
const GROUP: usize = 4;
/// The same, of larger ones.
const WIDE_GROUP: usize = 2;

/// The functions of a scan, and its kernel, which is the last item.
pub(super) fn parse(function: ItemFn, attribute: &Attribute) -> Result<(Vec<Item>, Elements)> {
    let bounds = [
        parse_quote!(::ferrogrid::device::DeviceCopy),
        parse_quote!(::ferrogrid::device::warp::Exchange),
        parse_quote!(::ferrogrid::device::SharedElement),
    ];
    let scan = Accumulation::parse(function, attribute, "scan", &["exclusive"], &bounds)?;
    // `finish` sees the values and whole slices, by their names.
    let of_finish = scan.signature.arguments.iter().filter_map(|argument| {
        let (name, ty) = (&argument.name, &argument.ty);
        matches!(argument.role, Role::Value | Role::Whole(_)).then(|| quote!(#name: #ty,))
    });
    let of_finish = quote!(#(#of_finish)*);
    let mut items = scan.functions(&of_finish);
    if scan.finished.is_some()
        && let Some(Item::Fn(element)) = items.first_mut()
    {
        // A value may be there for `finish` alone.
        element.attrs.push(parse_quote!(#[allow(unused_variables)]));
    }
    let group = group(&scan);
    items.push(Item::Fn(kernel(&scan, group)));
    let first = scan.inputs()[0];
    // The thread is parameter 0.
    let passed = scan.signature.arguments.iter().filter(|it| !matches!(it.role, Role::Index));
    let first = 1 + passed.take_while(|it| it.name != first.name).count();
    Ok((items, Elements { first, tile: THREADS * ROWS * group, waits: true }))
}

/// The neighbours that a lane has in each row.
fn group(scan: &Accumulation) -> usize {
    let inputs = scan.inputs();
    let inputs = inputs.iter().filter_map(|it| match &it.role {
        Role::Input(element) => Some(element),
        _ => None,
    });
    let is_small = |ty| size(ty).is_some_and(|bytes| bytes <= 4);
    if inputs.chain([&scan.accumulator, scan.result()]).all(is_small) { GROUP } else { WIDE_GROUP }
}

fn kernel(scan: &Accumulation, group: usize) -> ItemFn {
    let signature = &scan.signature;
    let (name, visibility, attributes) =
        (signature.name(), &signature.function.vis, signature.public_attributes());
    let (accumulator, result, parameters, of_kernel) =
        (&scan.accumulator, scan.result(), scan.parameters(), &scan.of_kernel);
    let Generics { params, where_clause, .. } = &scan.generics;
    let (identity, combine) = (scan.part("identity"), scan.part("combine"));
    let inputs: Vec<&Ident> = scan.inputs().iter().map(|it| &it.name).collect();
    let out = format_ident!("out", span = name.span());
    let same_shape: Vec<&Ident> = inputs.iter().copied().chain([&out]).collect();
    let same_shape = Signature::same_shape(&same_shape);
    let run = 32 * ROWS * group;
    let items = inputs.iter().map(|name| items_of(name));
    let loads = inputs.iter().zip(items).map(
        |(name, items)| quote!(let #items = ::ferrogrid::device::scan::Items::<_, #group>::of::<#run>(&__t, #name, __first);),
    );
    let rows = rows(group, |row, k| contribution(scan, &inputs, group, (row, k)));
    let kind = if scan.flags.is_empty() { quote!(inclusive) } else { quote!(exclusive) };
    let finished = scan.finished.as_ref().map(|_| {
        let finish = scan.part("finish");
        let seen = signature.arguments.iter().filter(|it| matches!(it.role, Role::Value | Role::Whole(_)));
        let seen: Vec<&Ident> = seen.map(|it| &it.name).collect();
        let rows = self::rows(group, |row, k| quote!(#finish(#(#seen,)* __totals[#row][#k])));
        quote!(let __totals = #rows;)
    });
    let (order, scratch) = (
        quote_spanned!(accumulator.span()=> ::ferrogrid::device::BlockOrder<#accumulator>),
        quote_spanned!(accumulator.span()=> ::ferrogrid::device::Shared<::ferrogrid::device::Scratch<#accumulator>>),
    );
    let mut kernel: ItemFn = parse_quote! {
        #(#attributes)*
        #[kernel(block = #THREADS, wide, #same_shape #of_kernel)]
        #visibility fn #name<#params>(
            __t: ::ferrogrid::device::Thread<1>,
            #parameters
            mut out: ::ferrogrid::device::DisjointWarps<#result, #run, 32, #group>,
            __order: #order,
            __scratch: #scratch,
        ) #where_clause {
            let __first = out.first(&__t);
            let __own = __first + __t.thread_rank() as usize % 32 * #group;
            #(#loads)*
            let __rows = #rows;
            let __scanned =
                ::ferrogrid::device::scan::scan_rows(&__t.warp(), __rows, #identity(), #combine);
            let __before = __order.exclusive_of_warps(&__t, __scratch, __scanned.total, #combine);
            let __totals = __scanned.#kind(__before.unwrap_or_else(#identity), #combine);
            #finished
            out.fill_grouped(&__t, __totals);
        }
    };
    // Its place in the source.
    kernel.block.brace_token = signature.function.block.brace_token;
    kernel
}

/// An expression for each of a thread's elements: LLVM may leave a loop over a long function as it is, and items in local memory.
fn rows(group: usize, item: impl Fn(usize, usize) -> TokenStream) -> TokenStream {
    let rows = (0..ROWS).map(|row| {
        let items = (0..group).map(|k| item(row, k));
        quote!([#(#items),*])
    });
    quote!([#(#rows),*])
}

/// What an element contributes: the identity beyond the end.
fn contribution(
    scan: &Accumulation,
    inputs: &[&Ident],
    group: usize,
    (row, k): (usize, usize),
) -> TokenStream {
    let (element, identity) = (scan.part("element"), scan.part("identity"));
    let items: Vec<Ident> = inputs.iter().map(|name| items_of(name)).collect();
    let found: Vec<Ident> = inputs.iter().map(|name| format_ident!("__item_{}", bare(name))).collect();
    let passed = scan.signature.passed(
        |name| {
            let item = format_ident!("__item_{}", bare(name));
            quote!(#item)
        },
        |_| TokenStream::new(),
        &{
            let place = row * 32 * group + k;
            quote!(__own + #place)
        },
    );
    quote! {
        match (#(#items.get(#row, #k),)*) {
            (#(::core::option::Option::Some(#found),)*) => #element(#passed),
            _ => #identity(),
        }
    }
}

fn items_of(name: &Ident) -> Ident {
    format_ident!("__items_{}", bare(name))
}

fn bare(name: &Ident) -> String {
    name.to_string().trim_start_matches("r#").to_owned()
}
