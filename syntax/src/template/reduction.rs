//! `#[reduction]`: a kernel that leaves a value for each block, and one that combines these.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, Generics, Ident, Item, ItemFn, Result, ReturnType, Type, Visibility, parse_quote,
};

use super::options::Options;
use super::signature::{Argument, Role, Signature};
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
        let signature = Signature::parse(function)?;
        let options =
            Options::parse(attribute, ["identity", "combine", "finish"], &signature.function.sig.generics)?;
        let [Some(identity), Some(combine), finish] = &options.own else {
            let missing = if options.own[0].is_none() { "identity" } else { "combine" };
            return Err(Error::new_spanned(
                attribute,
                format!(
                    "`{missing}` is missing: `#[reduction(identity = 0.0, combine = |a, b| a + b)]` adds up what the function returns"
                ),
            ));
        };
        let Some(accumulator) = signature.result.clone() else {
            return Err(Error::new(
                signature.function.sig.paren_token.span.join(),
                "the function of a reduction returns what one element contributes: `-> f32`",
            ));
        };
        if let Some(output) = signature.arguments.iter().find(|it| matches!(it.role, Role::Output(_))) {
            return Err(Error::new(
                output.ty.span(),
                "a reduction writes its result only: take `&T`, or write an `#[elementwise]` function",
            ));
        }
        if !signature.arguments.iter().any(|it| matches!(it.role, Role::Input(_))) {
            return Err(Error::new(
                signature.function.sig.paren_token.span.join(),
                "no parameter is an element of an input: `x: &f32`",
            ));
        }
        if let Some(taken) = signature.arguments.iter().find(|it| it.name == "out") {
            return Err(Error::new(
                taken.name.span(),
                "`out` is the name of the reduction's output: give this parameter another",
            ));
        }
        let finished = finish.as_ref().map(|finish| returned(finish).unwrap_or_else(|| accumulator.clone()));
        let reduction = Reduction {
            attributes: signature.public_attributes().into_iter().cloned().collect(),
            visibility: signature.function.vis.clone(),
            name: signature.name().clone(),
            generics: generics(&signature, &accumulator, finished.as_ref()),
            accumulator,
            finished,
            arguments: Vec::new(),
        };
        let items = Steps { signature: &signature, reduction: &reduction, of_kernel: &options.of_kernel }
            .items(identity, combine, finish.as_ref());
        Ok((items, Reduction { arguments: signature.arguments, ..reduction }))
    }
}

fn step(name: &Ident, step: &str) -> Ident {
    format_ident!("{}_{step}", name.to_string().trim_start_matches("r#"), span = name.span())
}

/// The type behind the arrow of a closure.
fn returned(expression: &Expr) -> Option<Type> {
    let Expr::Closure(closure) = expression else { return None };
    match &closure.output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => Some((**ty).clone()),
    }
}

/// The generic parameters, with what kernels need of types that depend on them.
fn generics(signature: &Signature, accumulator: &Type, finished: Option<&Type>) -> Generics {
    let mut generics = signature.function.sig.generics.clone();
    if !generics.params.is_empty() {
        let predicates = &mut generics.make_where_clause().predicates;
        for ty in [Some(accumulator), finished].into_iter().flatten() {
            predicates.push(
                parse_quote!(#ty: ::ferrogrid::device::DeviceCopy + ::ferrogrid::device::shared::AnyBits),
            );
        }
    }
    generics
}

/// The kernels of both steps, and their functions.
struct Steps<'r> {
    signature: &'r Signature,
    reduction: &'r Reduction,
    of_kernel: &'r TokenStream,
}

impl Steps<'_> {
    fn items(&self, identity: &Expr, combine: &Expr, finish: Option<&Expr>) -> Vec<Item> {
        let accumulator = &self.reduction.accumulator;
        let mut items = vec![
            Item::Fn(self.signature.element(&self.signature.part("element"))),
            self.function("identity", &quote!(), accumulator, &quote!(#identity)),
            self.function(
                "combine",
                &quote!(__a: #accumulator, __b: #accumulator),
                accumulator,
                &quote_spanned! {combine.span()=>
                    ::ferrogrid::device::fold::combination::<#accumulator, _>(#combine)(__a, __b)
                },
            ),
        ];
        if let (Some(finish), Some(result)) = (finish, &self.reduction.finished) {
            items.push(self.function(
                "finish",
                &quote!(__total: #accumulator),
                result,
                &quote_spanned! {finish.span()=>
                    ::ferrogrid::device::fold::completion::<#accumulator, #result, _>(#finish)(__total)
                },
            ));
        }
        items.push(self.in_blocks());
        items.push(self.of_blocks(finish.is_some()));
        items
    }

    /// A private function for a part of the operation.
    fn function(&self, part: &str, parameters: &TokenStream, result: &Type, body: &TokenStream) -> Item {
        let (name, cfgs) = (self.signature.part(part), self.signature.cfgs());
        let Generics { params, where_clause, .. } = &self.reduction.generics;
        parse_quote! {
            #(#cfgs)*
            #[inline(always)]
            #[allow(clippy::redundant_closure_call)]
            fn #name<#params>(#parameters) -> #result #where_clause { #body }
        }
    }

    /// A part of the operation, with its generic arguments.
    fn part(&self, part: &str) -> TokenStream {
        let (name, turbofish) = (self.signature.part(part), self.signature.turbofish());
        quote!(#name #turbofish)
    }

    fn in_blocks(&self) -> Item {
        let inputs: Vec<&Argument> =
            self.signature.arguments.iter().filter(|it| matches!(it.role, Role::Input(_))).collect();
        let names: Vec<&Ident> = inputs.iter().map(|it| &it.name).collect();
        let first = names[0];
        let parameters = self.signature.arguments.iter().filter_map(|argument| {
            let (name, ty) = (&argument.name, &argument.ty);
            match &argument.role {
                Role::Input(element) => Some(quote!(#name: &[#element],)),
                Role::Value | Role::Whole(_) => Some(quote!(#name: #ty,)),
                Role::Output(_) | Role::Index => None,
            }
        });
        let parameters = quote!(#(#parameters)*);
        let (element, identity, combine) =
            (self.part("element"), self.part("identity"), self.part("combine"));
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
            let passed = self.signature.passed(input, no_output, &quote!(__first + #k * #THREADS));
            quote!(#element(#passed))
        });
        let of_one = self.signature.passed(
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

    fn of_blocks(&self, is_finished: bool) -> Item {
        let accumulator = &self.reduction.accumulator;
        let (identity, combine) = (self.part("identity"), self.part("combine"));
        let own = quote! {
            ::ferrogrid::device::fold::fold(&__t, values, #identity(), |__value| __value, #combine)
        };
        let finish = is_finished.then(|| self.part("finish"));
        let total = finish.map_or_else(|| quote!(__total), |finish| quote!(#finish(__total)));
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
        let (cfgs, of_kernel) = (self.signature.cfgs(), self.of_kernel);
        let (dependent_launch, launch_dependents) = self.signature.dependent_launch();
        let Generics { params, where_clause, .. } = &self.reduction.generics;
        let (accumulator, combine) = (&self.reduction.accumulator, self.part("combine"));
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
        kernel.block.brace_token = self.signature.function.block.brace_token;
        Item::Fn(kernel)
    }
}

fn items_of(name: &Ident) -> Ident {
    format_ident!("__items_{}", name.to_string().trim_start_matches("r#"))
}
