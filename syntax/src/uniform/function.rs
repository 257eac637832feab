//! Functions of the module that contain barriers, and so are called by all threads of a block together: those that
//! take a `&Thread`, and are not `unsafe`. They are checked as kernels are, as if all that they are given were the
//! same in all threads; a call, in a kernel or in another of them, must stand where a barrier could, with arguments
//! that are the same in all threads where a barrier depends on them. It must not know how they are compiled.

use proc_macro2::Span;
use quote::{format_ident, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Error, Expr, ExprCall, FnArg, GenericParam, Ident, Item, ItemFn, Pat, Result, Safety, Signature, Token,
    Type, Visibility, parse_quote, parse_quote_spanned,
};

use super::collective::token;
use super::facts::{Facts, Level};
use super::scope::BindingKind;
use super::{Walked, has_collectives, walk};
use crate::kernel::is_kernel_attribute;

/// What calls of such a function must keep.
#[derive(Clone, PartialEq)]
pub(super) struct Promise {
    name: Ident,
    /// What the barriers in it need, the strictest first.
    pub(super) needs: Vec<Level>,
    /// For each parameter, whether a barrier depends on it.
    pub(super) decide: Vec<bool>,
    /// Which parameter the thread is.
    pub(super) thread: usize,
}

impl Promise {
    /// What the strictest barrier in it needs.
    pub(super) fn strictest(&self) -> Level {
        self.needs.first().copied().unwrap_or_default()
    }
}

/// A function as it is compiled.
pub struct FunctionForms {
    /// The function, whose calls are shown to be safe: it takes a token in place of the thread.
    pub checked: ItemFn,
    /// The function under its own name, `unsafe`, for calls of which nothing is shown.
    pub unchecked: ItemFn,
}

/// The functions of a module that all threads of a block call together.
#[derive(Default)]
pub(crate) struct Functions {
    promises: Vec<Promise>,
}

impl Functions {
    /// Finds them among `items`: for each item the forms of its function, if it is one of them.
    ///
    /// # Errors
    /// For barriers in them that some threads may not reach.
    pub(crate) fn find_in(items: &[Item]) -> Result<(Self, Vec<Option<FunctionForms>>)> {
        let mut functions = Functions::default();
        let candidates: Vec<Option<Candidate>> = items.iter().map(Candidate::of).collect();
        loop {
            let walks: Vec<Option<Walked>> = candidates
                .iter()
                .map(|candidate| candidate.as_ref().and_then(|candidate| candidate.walk(&functions)))
                .collect();
            let promises = promises(&candidates, &walks);
            if promises == functions.promises {
                return functions.forms(&candidates, walks);
            }
            functions.promises = promises;
        }
    }

    pub(super) fn find(&self, name: &Ident) -> Option<&Promise> {
        self.promises.iter().find(|promise| promise.name == *name)
    }

    fn forms(
        self,
        candidates: &[Option<Candidate>],
        walks: Vec<Option<Walked>>,
    ) -> Result<(Self, Vec<Option<FunctionForms>>)> {
        let mut errors: Option<Error> = None;
        let mut forms = Vec::new();
        for (candidate, walked) in candidates.iter().zip(walks) {
            let found = candidate.as_ref().and_then(|it| Some((it, self.find(&it.function.sig.ident)?)));
            let (Some((candidate, _)), Some(walked)) = (found, walked) else {
                forms.push(None);
                continue;
            };
            match (walked.errors, &mut errors) {
                (Some(error), Some(all)) => all.combine(error),
                (Some(error), none) => *none = Some(error),
                (None, _) => {}
            }
            forms.push(Some(candidate.forms(walked.function)));
        }
        errors.map_or(Ok((self, forms)), Err)
    }
}

/// A function that may be one of them.
struct Candidate<'i> {
    function: &'i ItemFn,
    /// Which parameter the thread is.
    thread: usize,
}

impl<'i> Candidate<'i> {
    fn of(item: &'i Item) -> Option<Self> {
        let Item::Fn(function) = item else { return None };
        let signature = &function.sig;
        let is_other = matches!(signature.safety, Safety::Unsafe(_))
            || signature.constness.is_some()
            || signature.asyncness.is_some();
        if is_other || function.attrs.iter().any(is_kernel_attribute) {
            return None;
        }
        let mut threads = signature.inputs.iter().enumerate().filter(|(_, input)| is_thread(input));
        let (thread, _) = threads.next()?;
        threads.next().is_none().then_some(Candidate { function, thread })
    }

    /// Walks over it as if all that it is given were the same in all threads; `None` if it mentions no barrier.
    fn walk(&self, functions: &Functions) -> Option<Walked> {
        if !has_collectives(self.function, functions) && functions.find(&self.function.sig.ident).is_none() {
            return None;
        }
        let walked = walk(self.function, Facts::default(), functions, None, |walk| {
            for input in &self.function.sig.inputs {
                let FnArg::Typed(input) = input else { continue };
                walk.argument(&input.pat, kind(&input.ty));
            }
        });
        Some(walked)
    }

    /// What calls must keep after `walked`; `None` if no barrier was met.
    fn promise(&self, walked: &Walked) -> Option<Promise> {
        if walked.needs.is_empty() {
            return None;
        }
        let mut decide = Vec::new();
        let mut number = 0;
        for input in &self.function.sig.inputs {
            let FnArg::Typed(input) = input else { continue };
            let tracked = matches!(&*input.pat, Pat::Ident(_)) && kind(&input.ty).is_some();
            decide.push(tracked && walked.facts.decides(number));
            number += super::pattern::bound(&input.pat).0.len();
        }
        Some(Promise {
            name: self.function.sig.ident.clone(),
            needs: walked.needs.clone(),
            decide,
            thread: self.thread,
        })
    }

    fn forms(&self, walked: ItemFn) -> FunctionForms {
        FunctionForms { checked: self.checked(walked), unchecked: self.unchecked() }
    }

    fn checked(&self, mut function: ItemFn) -> ItemFn {
        function.sig.ident = checked_name(&function.sig.ident);
        function.vis = Visibility::Inherited;
        function.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
        function.attrs.push(parse_quote!(#[doc(hidden)]));
        if let Some(FnArg::Typed(thread)) = function.sig.inputs.iter_mut().nth(self.thread) {
            let (name, ty) = (thread.pat.clone(), &thread.ty);
            thread.ty = parse_quote!(::ferrogrid::device::uniform::Together<#ty>);
            thread.pat = parse_quote!(__together);
            let unwrap =
                parse_quote!(let #name = ::ferrogrid::device::uniform::Together::thread(__together););
            function.block.stmts.insert(0, unwrap);
        }
        function
    }

    fn unchecked(&self) -> ItemFn {
        let mut function = self.function.clone();
        let (span, checked) = (function.sig.ident.span(), checked_name(&function.sig.ident));
        let mut arguments: Punctuated<Expr, Token![,]> = Punctuated::new();
        for (number, input) in function.sig.inputs.iter_mut().enumerate() {
            let FnArg::Typed(input) = input else { continue };
            let name = format_ident!("__argument{number}", span = Span::mixed_site());
            input.pat = parse_quote!(#name);
            // SAFETY of the `unsafe` block: the caller of the function vouches for it.
            let shown = quote_spanned!(span=> ::ferrogrid::device::uniform::Shown);
            arguments.push(if number == self.thread {
                parse_quote!(::ferrogrid::device::uniform::Together::new(#name, unsafe { #shown::new() }))
            } else {
                parse_quote!(#name)
            });
        }
        let generics = passed(&self.function.sig);
        function.sig.safety = Safety::Unsafe(Default::default());
        function.attrs.push(parse_quote!(#[doc = "\n# Safety\nAll threads of a block make this call together. In kernels of its module, and in functions like this one, `ferrogrid::module` shows that: no `unsafe` is needed there."]));
        function.attrs.push(parse_quote!(#[allow(dead_code, clippy::too_many_arguments)]));
        function.block = parse_quote!({ self::#checked::<#(#generics),*>(#arguments) });
        function
    }
}

/// The promises of functions that have any; functions of the same name, of which `cfg`s choose one, have one together.
fn promises(candidates: &[Option<Candidate>], walks: &[Option<Walked>]) -> Vec<Promise> {
    let mut promises: Vec<Promise> = Vec::new();
    for (candidate, walked) in candidates.iter().zip(walks) {
        let (Some(candidate), Some(walked)) = (candidate, walked) else { continue };
        let Some(found) = candidate.promise(walked) else { continue };
        let Some(known) = promises.iter_mut().find(|promise| promise.name == found.name) else {
            promises.push(found);
            continue;
        };
        known.needs.extend(found.needs);
        known.needs.sort_unstable();
        known.needs.dedup();
        known.decide.resize(known.decide.len().max(found.decide.len()), false);
        known.decide.iter_mut().zip(found.decide).for_each(|(known, found)| *known |= found);
    }
    promises
}

/// The type and const parameters, as arguments.
pub(crate) fn passed(signature: &Signature) -> Vec<&Ident> {
    let parameters = signature.generics.params.iter().filter_map(|parameter| match parameter {
        GenericParam::Type(parameter) => Some(&parameter.ident),
        GenericParam::Const(parameter) => Some(&parameter.ident),
        GenericParam::Lifetime(_) => None,
    });
    parameters.collect()
}

fn checked_name(name: &Ident) -> Ident {
    let bare = name.to_string();
    format_ident!("__ferrogrid_together_{}", bare.trim_start_matches("r#"), span = name.span())
}

/// `t: &Thread<R>`.
fn is_thread(input: &FnArg) -> bool {
    let FnArg::Typed(input) = input else { return false };
    matches!((&*input.pat, kind(&input.ty)), (Pat::Ident(_), Some(BindingKind::Thread)))
}

/// What a parameter of this type is, if barriers may depend on it. References other than slices are not: what is
/// behind them may change.
fn kind(ty: &Type) -> Option<BindingKind> {
    match ty {
        Type::Reference(reference) => match &*reference.elem {
            _ if reference.mutability.is_some() => None,
            Type::Slice(_) => Some(BindingKind::Input),
            Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Thread") => {
                Some(BindingKind::Thread)
            }
            _ => None,
        },
        Type::Path(_) | Type::Tuple(_) | Type::Array(_) => Some(BindingKind::Parameter(Box::new(ty.clone()))),
        _ => None,
    }
}

/// `call` of the function `name`, as one whose safety has been shown.
pub(super) fn verified(call: &ExprCall, name: &Ident, thread: usize) -> Expr {
    let mut arguments = call.args.clone();
    if let Some(thread) = arguments.iter_mut().nth(thread) {
        let token = token(thread);
        *thread = parse_quote_spanned!(thread.span()=> #token);
    }
    let mut path = call.func.clone();
    if let Expr::Path(path) = &mut *path
        && let Some(last) = path.path.segments.last_mut()
    {
        last.ident = checked_name(name);
        last.ident.set_span(name.span());
        path.path.segments.insert(0, parse_quote!(self));
    }
    parse_quote_spanned!(call.span()=> #path(#arguments))
}
