//! `#[elementwise]`: a kernel that calls the function for each element.
//!
//! A thread has a group of neighbours, and moves it 16 bytes at a time if all slices are aligned for that. Else, and at the
//! end of the slices, it moves one element at a time.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, Error, Ident, Item, ItemFn, Result, Type, parse_quote};

use super::options::Options;
use super::signature::{Role, Signature};
use super::{Elements, THREADS, size};

/// The bytes that a thread moves at once.
const BYTES: usize = 16;

/// What an `#[elementwise]` function becomes.
pub(super) struct Elementwise {
    /// The function, and the kernel.
    pub(super) items: [Item; 2],
    pub(super) elements: Elements,
}

/// A slice that has one element for each: a parameter of the kernel.
struct Slice {
    name: Ident,
    element: Type,
    access: Access,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    ReadAndWrite,
    /// What the function returns.
    Write,
}

impl Elementwise {
    pub(super) fn parse(function: ItemFn, attribute: &Attribute) -> Result<Self> {
        let signature = Signature::parse(function)?;
        let options = Options::parse(attribute, [], &[], &signature.function.sig.generics)?;
        let slices = slices(&signature)?;
        let run = run(&slices);
        let element = signature.part("element");
        let kernel = kernel(&signature, &options, &slices, run, &element);
        let items = [signature.element(&element), kernel].map(Item::Fn);
        // The thread is parameter 0.
        let passed = signature.arguments.iter().filter(|it| !matches!(it.role, Role::Index));
        let first = 1 + passed.take_while(|it| it.name != slices[0].name).count();
        Ok(Elementwise { items, elements: Elements { first, tile: THREADS * run, waits: false } })
    }
}

/// The slices, in the order of the kernel's parameters.
fn slices(signature: &Signature) -> Result<Vec<Slice>> {
    let parameters = signature.arguments.iter().filter_map(|argument| {
        let (element, access) = match &argument.role {
            Role::Input(element) => (element, Access::Read),
            Role::Output(element) => (element, Access::ReadAndWrite),
            _ => return None,
        };
        Some(Slice { name: argument.name.clone(), element: element.clone(), access })
    });
    let mut slices: Vec<Slice> = parameters.collect();
    if let Some(element) = &signature.result {
        if let Some(taken) = signature.arguments.iter().find(|it| it.name == "out") {
            return Err(Error::new(
                taken.name.span(),
                "`out` is the name of the output for what the function returns: give this parameter another",
            ));
        }
        let name = Ident::new("out", signature.name().span());
        slices.push(Slice { name, element: element.clone(), access: Access::Write });
    }
    if slices.iter().all(|it| it.access == Access::Read) {
        return Err(Error::new(
            signature.name().span(),
            "this function has no effect: return an element, or take `&mut T`, the element of an output",
        ));
    }
    Ok(slices)
}

/// The elements of a thread: as many as 16 bytes hold of the largest ones.
fn run(slices: &[Slice]) -> usize {
    let largest = slices.iter().map(|it| size(&it.element).unwrap_or(BYTES)).max().unwrap_or(BYTES);
    (BYTES / largest.max(1)).max(1)
}

fn kernel(
    signature: &Signature,
    options: &Options<0>,
    slices: &[Slice],
    run: usize,
    element: &Ident,
) -> ItemFn {
    let (name, visibility) = (signature.name(), &signature.function.vis);
    let (generics, where_clause) =
        (&signature.function.sig.generics.params, &signature.function.sig.generics.where_clause);
    let attributes = signature.public_attributes();
    let of_kernel = &options.of_kernel;
    let same_shape = Signature::same_shape(&slices.iter().map(|it| &it.name).collect::<Vec<_>>());
    let (dependent_launch, launch_dependents) = signature.dependent_launch();
    let parameters = signature.arguments.iter().filter_map(|argument| {
        let (name, ty) = (&argument.name, &argument.ty);
        Some(match &argument.role {
            Role::Value | Role::Whole(_) => quote!(#name: #ty),
            Role::Input(element) => quote!(#name: &[#element]),
            Role::Output(element) => output(name, element, run),
            _ => return None,
        })
    });
    let returned =
        slices.iter().filter(|it| it.access == Access::Write).map(|it| output(&it.name, &it.element, run));
    let parameters: Vec<TokenStream> = parameters.chain(returned).collect();
    let turbofish = signature.turbofish();
    let call = quote!(#element #turbofish);
    // A group of one is moved as it is.
    let wide = (run > 1).then(|| by_groups(signature, slices, run, &call));
    let single = one_by_one(signature, slices, &call);
    let mut kernel: ItemFn = parse_quote! {
        #(#attributes)*
        #[kernel(block = #THREADS, wide, #dependent_launch #same_shape #of_kernel)]
        #visibility fn #name<#generics>(__t: ::ferrogrid::device::Thread<1>, #(#parameters),*) #where_clause {
            #launch_dependents
            #wide
            #single
        }
    };
    // Its place in the source.
    kernel.block.brace_token = signature.function.block.brace_token;
    kernel
}

fn output(name: &Ident, element: &Type, run: usize) -> TokenStream {
    quote!(mut #name: ::ferrogrid::device::DisjointWarps<#element, #run, 1>)
}

/// The whole group at once, by wide accesses; returns if that is done.
fn by_groups(signature: &Signature, slices: &[Slice], run: usize, call: &TokenStream) -> TokenStream {
    let names = |part: &str| -> Vec<Ident> { slices.iter().map(|it| part_of(&it.name, part)).collect() };
    let (groups, items) = (names("group"), names("items"));
    let found = slices.iter().map(|it| {
        let name = &it.name;
        match it.access {
            Access::Read => quote!(::ferrogrid::device::group::input::<_, #run>(#name, __first)),
            _ => quote!(::ferrogrid::device::group::output(#name.run_mut(&__t))),
        }
    });
    let loads = slices.iter().zip(groups.iter().zip(&items)).filter(|(it, _)| it.access != Access::Write);
    let loads = loads.map(|(it, (group, items))| {
        let mutable = (it.access == Access::ReadAndWrite).then(|| quote!(mut));
        quote!(let #mutable #items = #group.load();)
    });
    let calls: Vec<TokenStream> = (0..run)
        .map(|k| {
            let items = |name: &Ident| part_of(name, "items");
            let passed = signature.passed(
                |name| {
                    let items = items(name);
                    quote!(&#items[#k])
                },
                |name| {
                    let items = items(name);
                    quote!(&mut #items[#k])
                },
                &quote!(__first + #k),
            );
            quote!(#call(#passed))
        })
        .collect();
    let computed = match slices.iter().find(|it| it.access == Access::Write) {
        Some(slice) => {
            let items = part_of(&slice.name, "items");
            quote!(let #items = [#(#calls),*];)
        }
        None => quote!(#(#calls;)*),
    };
    let stores = slices.iter().zip(groups.iter().zip(&items)).filter(|(it, _)| it.access != Access::Read);
    let stores = stores.map(|(_, (group, items))| quote!(#group.store(#items);));
    let leader = slices.iter().find(|it| it.access != Access::Read).map(|it| &it.name);
    quote! {
        let __first = #leader.first(&__t);
        if let (#(::core::option::Option::Some(#groups),)*) = (#(#found,)*) {
            #(#loads)*
            #computed
            #(#stores)*
            return;
        }
    }
}

/// The thread's elements one after the other.
fn one_by_one(signature: &Signature, slices: &[Slice], call: &TokenStream) -> TokenStream {
    let mut outputs = slices.iter().filter(|it| it.access != Access::Read).map(|it| {
        let (name, element) = (&it.name, part_of(&it.name, "element"));
        (quote!(#name.iter_mut(&__t)), element)
    });
    let Some((mut all, first)) = outputs.next() else { return TokenStream::new() };
    let mut pattern = quote!((__i, #first));
    for (output, element) in outputs {
        all = quote!(#all.zip(#output));
        pattern = quote!((#pattern, (_, #element)));
    }
    let inputs: Vec<&Ident> =
        slices.iter().filter(|it| it.access == Access::Read).map(|it| &it.name).collect();
    let found: Vec<Ident> = inputs.iter().map(|name| part_of(name, "element")).collect();
    let place = |name: &Ident| part_of(name, "element").into_token_stream();
    let passed = signature.passed(place, place, &quote!(__i));
    let called = match slices.iter().find(|it| it.access == Access::Write) {
        Some(slice) => {
            let element = part_of(&slice.name, "element");
            quote!(*#element = #call(#passed))
        }
        None => quote!(#call(#passed)),
    };
    // All have the same length. Without a panic the kernel needs no record of one.
    quote! {
        for #pattern in #all {
            if let (#(::core::option::Option::Some(#found),)*) = (#(#inputs.get(__i),)*) {
                #called;
            }
        }
    }
}

fn part_of(name: &Ident, part: &str) -> Ident {
    let name = name.to_string();
    format_ident!("__{part}_{}", name.trim_start_matches("r#"))
}
