//! `#[reduction]`: a kernel that leaves a value for each block, and one that combines these.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Generics, Ident, Item, ItemFn, Result, Type, Visibility, parse_quote};

use super::accumulation::Accumulation;
use super::signature::{Argument, Signature};
use super::{ITEMS, THREADS};

/// A `#[reduction]` function, for the functions that launch its kernels.
pub struct Reduction {
    /// Its documentation and `cfg`s.
    pub attributes: Vec<Attribute>,
    /// Its visibility.
    pub visibility: Visibility,
    /// Its name.
    pub name: Ident,
    /// Its generic parameters, and what the type of accumulators needs.
    pub generics: Generics,
    /// Its parameters.
    pub arguments: Vec<Argument>,
    /// The type of accumulators.
    pub accumulator: Type,
    /// The type of the result, if it differs in form from an accumulator: there is a `finish`.
    pub finished: Option<Type>,
}

impl Reduction {
    /// The kernel that leaves a value for each block.
    pub fn in_blocks(&self) -> Ident {
        step(&self.name, "in_blocks")
    }

    /// The kernel that combines the values of blocks.
    pub fn of_blocks(&self) -> Ident {
        step(&self.name, "of_blocks")
    }

    /// The type of the result.
    pub fn result(&self) -> &Type {
        self.finished.as_ref().unwrap_or(&self.accumulator)
    }

    pub(super) fn parse(function: ItemFn, attribute: &Attribute) -> Result<(Vec<Item>, Self)> {
        let bounds = [
            parse_quote!(::ferrogrid::device::DeviceCopy),
            parse_quote!(::ferrogrid::device::shared::AnyBits),
        ];
        let operation = Accumulation::parse(function, attribute, "reduction", &[], &bounds)?;
        let signature = &operation.signature;
        let reduction = Reduction {
            attributes: signature.public_attributes().into_iter().cloned().collect(),
            visibility: signature.function.vis.clone(),
            name: signature.name().clone(),
            generics: operation.generics.clone(),
            accumulator: operation.accumulator.clone(),
            finished: operation.finished.clone(),
            arguments: Vec::new(),
        };
        let items = Steps { operation: &operation, reduction: &reduction }.items();
        Ok((items, Reduction { arguments: operation.signature.arguments, ..reduction }))
    }
}

fn step(name: &Ident, step: &str) -> Ident {
    format_ident!("{}_{step}", name.to_string().trim_start_matches("r#"), span = name.span())
}

/// The kernels of both steps, and their functions.
struct Steps<'r> {
    operation: &'r Accumulation,
    reduction: &'r Reduction,
}

impl Steps<'_> {
    fn items(&self) -> Vec<Item> {
        let mut items = self.operation.functions(&quote!());
        items.push(self.in_blocks());
        items.push(self.of_blocks());
        items
    }

    fn in_blocks(&self) -> Item {
        let Accumulation { signature, .. } = self.operation;
        let inputs = self.operation.inputs();
        let names: Vec<&Ident> = inputs.iter().map(|it| &it.name).collect();
        let first = names[0];
        let parameters = self.operation.parameters();
        let [element, identity, combine] =
            ["element", "identity", "combine"].map(|part| self.operation.part(part));
        let others = names[1..].iter().map(|name| {
            let items = items_of(name);
            quote!(let #items = ::ferrogrid::device::fold::Items::of(#name, __first);)
        });
        let no_output = |_: &Ident| TokenStream::new();
        // A call for each, because LLVM may leave a loop over a long function as it is, and items in local memory.
        let of_tile = (0..ITEMS).map(|k| {
            let input = |name: &Ident| {
                let items = items_of(name);
                if name == first { quote!(&__items[#k]) } else { quote!(#items.get(#k)) }
            };
            let passed = signature.passed(input, no_output, &quote!(__first + #k * #THREADS));
            quote!(#element(#passed))
        });
        let of_one = signature.passed(
            |name| match name {
                name if name == first => quote!(&__item),
                name => quote!(&#name[__i]),
            },
            no_output,
            &quote!(__i),
        );
        let own = quote! {
            ::ferrogrid::device::fold::fold_tiles(
                &__t,
                #first,
                #identity(),
                |__first, __items| {
                    #(#others)*
                    ::ferrogrid::device::fold::by_pairs([#(#of_tile),*], #combine)
                },
                |__i, __item| #element(#of_one),
                #combine,
            )
        };
        let same_shape = Signature::same_shape(&names);
        let accumulator = &self.reduction.accumulator;
        self.kernel(
            &self.reduction.in_blocks(),
            &same_shape,
            &parameters,
            accumulator,
            &own,
            &quote!(__total),
        )
    }

    fn of_blocks(&self) -> Item {
        let accumulator = &self.reduction.accumulator;
        let (identity, combine) = (self.operation.part("identity"), self.operation.part("combine"));
        let own = quote! {
            ::ferrogrid::device::fold::fold(&__t, values, #identity(), |__value| __value, #combine)
        };
        let finish = self.operation.part("finish");
        let total =
            if self.operation.finished.is_some() { quote!(#finish(__total)) } else { quote!(__total) };
        let (name, parameters) = (self.reduction.of_blocks(), quote!(values: &[#accumulator],));
        self.kernel(&name, &quote!(), &parameters, self.reduction.result(), &own, &total)
    }

    /// A kernel whose threads each have a value `own`, which writes `total` for each block.
    fn kernel(
        &self,
        name: &Ident,
        same_shape: &TokenStream,
        parameters: &TokenStream,
        written: &Type,
        own: &TokenStream,
        total: &TokenStream,
    ) -> Item {
        let Accumulation { signature, of_kernel, .. } = self.operation;
        let (cfgs, (dependent_launch, launch_dependents)) = (signature.cfgs(), signature.dependent_launch());
        let Generics { params, where_clause, .. } = &self.reduction.generics;
        let (accumulator, combine) = (&self.reduction.accumulator, self.operation.part("combine"));
        let scratch = quote_spanned! {accumulator.span()=>
            ::ferrogrid::device::Shared<::ferrogrid::device::fold::FoldScratch<#accumulator>>
        };
        let mut kernel: ItemFn = parse_quote! {
            #(#cfgs)*
            #[kernel(block = #THREADS, wide, #dependent_launch #same_shape #of_kernel)]
            fn #name<#params>(
                __t: ::ferrogrid::device::Thread<1>,
                #parameters
                mut out: ::ferrogrid::device::DisjointChunks<#written, 1>,
                __scratch: #scratch,
            ) #where_clause {
                #launch_dependents
                let __own = #own;
                let __total = ::ferrogrid::device::fold::fold_block(&__t, __scratch, __own, #combine);
                out.fill_with(&__t, |_| #total);
            }
        };
        // Its place in the source.
        kernel.block.brace_token = signature.function.block.brace_token;
        Item::Fn(kernel)
    }
}

fn items_of(name: &Ident) -> Ident {
    format_ident!("__items_{}", name.to_string().trim_start_matches("r#"))
}
