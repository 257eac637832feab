//! What reductions and scans have in common: what each element contributes, the identity, how two parts are combined, and what
//! becomes of the result.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, Generics, Item, ItemFn, Result, ReturnType, Type, TypeParamBound, parse_quote,
};

use super::options::Options;
use super::signature::{Argument, Role, Signature};

/// A function of one element, with the options that say how its results are combined.
pub(super) struct Accumulation {
    pub(super) signature: Signature,
    /// Its generic parameters, and what the types of accumulators and results need.
    pub(super) generics: Generics,
    /// The type of accumulators.
    pub(super) accumulator: Type,
    /// The type of the result, if there is a `finish`.
    pub(super) finished: Option<Type>,
    identity: Expr,
    combine: Expr,
    finish: Option<Expr>,
    /// Options without a value.
    pub(super) flags: Vec<Ident>,
    /// Options for `#[kernel(...)]`, each followed by a comma.
    pub(super) of_kernel: TokenStream,
}

impl Accumulation {
    /// Reads the function of a `template`, a word such as `scan`. `flags` are the names of its options without a value, and `bounds` what its
    /// kernels need of an accumulator.
    ///
    /// # Errors
    /// For missing options, and for parameters that do not fit, with the span of the part at fault.
    pub(super) fn parse(
        function: ItemFn,
        attribute: &Attribute,
        template: &str,
        flags: &[&str],
        bounds: &[TypeParamBound],
    ) -> Result<Self> {
        let signature = Signature::parse(function)?;
        let generics = &signature.function.sig.generics;
        let Options { own, flags, of_kernel } =
            Options::parse(attribute, ["identity", "combine", "finish"], flags, generics)?;
        let [Some(identity), Some(combine), finish] = own else {
            let missing = if own[0].is_none() { "identity" } else { "combine" };
            return Err(Error::new_spanned(
                attribute,
                format!(
                    "`{missing}` is missing: `#[{template}(identity = 0.0, combine = |a, b| a + b)]` adds up what the function returns"
                ),
            ));
        };
        let accumulator = accumulator(&signature, template)?;
        let finished = finish.as_ref().map(|finish| returned(finish).unwrap_or_else(|| accumulator.clone()));
        let generics = bounded(generics, [Some(&accumulator), finished.as_ref()], bounds);
        Ok(Accumulation {
            generics,
            accumulator,
            finished,
            identity,
            combine,
            finish,
            flags,
            of_kernel,
            signature,
        })
    }

    /// The type of the result.
    pub(super) fn result(&self) -> &Type {
        self.finished.as_ref().unwrap_or(&self.accumulator)
    }

    /// The elements of inputs.
    pub(super) fn inputs(&self) -> Vec<&Argument> {
        self.signature.arguments.iter().filter(|it| matches!(it.role, Role::Input(_))).collect()
    }

    /// The parameters of a kernel that has all of them.
    pub(super) fn parameters(&self) -> TokenStream {
        let parameters = self.signature.arguments.iter().filter_map(|argument| {
            let (name, ty) = (&argument.name, &argument.ty);
            match &argument.role {
                Role::Input(element) => Some(quote!(#name: &[#element],)),
                Role::Value | Role::Whole(_) => Some(quote!(#name: #ty,)),
                _ => None,
            }
        });
        quote!(#(#parameters)*)
    }

    /// The functions: of an element, for the identity, the combination, and the result. `of_finish` are parameters that the last one
    /// has besides the accumulator.
    pub(super) fn functions(&self, of_finish: &TokenStream) -> Vec<Item> {
        let Accumulation { accumulator, identity, combine, .. } = self;
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
        if let (Some(finish), Some(result)) = (&self.finish, &self.finished) {
            items.push(self.function(
                "finish",
                &quote!(#of_finish __total: #accumulator),
                result,
                &quote_spanned! {finish.span()=>
                    ::ferrogrid::device::fold::completion::<#accumulator, #result, _>(#finish)(__total)
                },
            ));
        }
        items
    }

    /// A private function for a part of the operation.
    fn function(&self, part: &str, parameters: &TokenStream, result: &Type, body: &TokenStream) -> Item {
        let (name, cfgs) = (self.signature.part(part), self.signature.cfgs());
        let Generics { params, where_clause, .. } = &self.generics;
        parse_quote! {
            #(#cfgs)*
            #[inline(always)]
            #[allow(unused_variables, clippy::redundant_closure_call, clippy::too_many_arguments)]
            fn #name<#params>(#parameters) -> #result #where_clause { #body }
        }
    }

    /// A part of the operation, with its generic arguments.
    pub(super) fn part(&self, part: &str) -> TokenStream {
        let (name, turbofish) = (self.signature.part(part), self.signature.turbofish());
        quote!(#name #turbofish)
    }
}

/// The type of accumulators, which the function returns.
fn accumulator(signature: &Signature, template: &str) -> Result<Type> {
    let all = signature.function.sig.paren_token.span.join();
    let Some(accumulator) = signature.result.clone() else {
        return Err(Error::new(
            all,
            format!("the function of a {template} returns what one element contributes: `-> f32`"),
        ));
    };
    if let Some(output) = signature.arguments.iter().find(|it| matches!(it.role, Role::Output(_))) {
        return Err(Error::new(
            output.ty.span(),
            format!("a {template} writes its result only: take `&T`, or write an `#[elementwise]` function"),
        ));
    }
    if !signature.arguments.iter().any(|it| matches!(it.role, Role::Input(_))) {
        return Err(Error::new(all, "no parameter is an element of an input: `x: &f32`"));
    }
    if let Some(taken) = signature.arguments.iter().find(|it| it.name == "out") {
        return Err(Error::new(
            taken.name.span(),
            format!("`out` is the name of the {template}'s output: give this parameter another"),
        ));
    }
    Ok(accumulator)
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
fn bounded(generics: &Generics, types: [Option<&Type>; 2], bounds: &[TypeParamBound]) -> Generics {
    let mut generics = generics.clone();
    if !generics.params.is_empty() {
        let predicates = &mut generics.make_where_clause().predicates;
        for ty in types.into_iter().flatten() {
            predicates.push(parse_quote!(#ty: #(#bounds)+*));
        }
    }
    generics
}
