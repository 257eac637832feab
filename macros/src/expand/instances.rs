//! The instances of a kernel on the host: the static that describes each, and the trait by which a launch with the
//! kernel's generic parameters finds its own, `kernels::scale::Instance`.

use ferrogrid_syntax::{Argument, Instance, Kernel, mention};
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{GenericParam, Ident, PredicateType, Type, WherePredicate};

use super::generic;

/// The name of the static that describes an instance.
pub(super) fn static_name(kernel: &Kernel, instance: &Instance) -> Ident {
    format_ident!("__FERROGRID_KERNEL_{}{}", kernel.bare_name(), instance.suffix())
}

/// The name of the trait in the module; the companion module of the kernel calls it `Instance`.
pub(super) fn instance_trait(kernel: &Kernel) -> Ident {
    format_ident!("__FerrogridInstance_{}", kernel.bare_name())
}

/// The name of the first type parameter, which implements the trait, and the other parameters. Without type parameters
/// `()` implements it.
fn implementor(kernel: &Kernel) -> (Option<&Ident>, Vec<&GenericParam>) {
    let parameters = &kernel.function.sig.generics.params;
    let first = parameters.iter().position(|parameter| matches!(parameter, GenericParam::Type(_)));
    let others = parameters.iter().enumerate().filter(|(at, _)| Some(*at) != first).map(|(_, other)| other);
    let first = parameters.iter().find_map(|parameter| match parameter {
        GenericParam::Type(parameter) => Some(&parameter.ident),
        _ => None,
    });
    (first, others.collect())
}

/// The bound `T: Instance<U, N>`, for the trait at `path`.
pub(super) fn holds(kernel: &Kernel, path: &TokenStream) -> TokenStream {
    let (implementor, arguments) = implementation(kernel, path);
    quote!(#implementor: #arguments)
}

/// `T: Instance<U, N>` as text; `path` comes before the trait.
fn bound_as_written(kernel: &Kernel, path: &str) -> String {
    let (first, _) = implementor(kernel);
    let others: Vec<String> =
        generic::names(kernel).iter().filter(|name| Some(**name) != first).map(ToString::to_string).collect();
    let arguments = if others.is_empty() { String::new() } else { format!("<{}>", others.join(", ")) };
    format!("{}: {path}Instance{arguments}", first.map_or_else(|| "()".to_owned(), ToString::to_string))
}

/// The type that implements the trait at `path`, and the trait with its arguments.
fn implementation(kernel: &Kernel, path: &TokenStream) -> (TokenStream, TokenStream) {
    let (first, others) = implementor(kernel);
    let implementor = first.map_or_else(|| quote!(()), |first| quote!(#first));
    let others = others.into_iter().map(|other| match other {
        GenericParam::Type(parameter) => parameter.ident.to_token_stream(),
        GenericParam::Const(parameter) => parameter.ident.to_token_stream(),
        GenericParam::Lifetime(parameter) => parameter.to_token_stream(),
    });
    (implementor, quote!(#path<#(#others),*>))
}

/// The instance with the parameters of the kernel, by the trait at `path`.
pub(super) fn instance(kernel: &Kernel, path: &TokenStream) -> TokenStream {
    let (implementor, named) = implementation(kernel, path);
    quote!(<#implementor as #named>::kernel())
}

/// For a generic kernel: the trait that its instances implement, and that lists them in errors.
pub(super) fn instances(kernel: &Kernel) -> TokenStream {
    if !kernel.is_generic() {
        return TokenStream::new();
    }
    let (cfgs, name) = (kernel.cfgs().collect::<Vec<_>>(), instance_trait(kernel));
    let (first, others) = implementor(kernel);
    // The bounds of the first type parameter are bounds of `Self`, so that they hold wherever an instance is there.
    let of_self = |tokens: TokenStream| {
        generic::renamed(tokens, &|ident| (Some(ident) == first).then(|| Ident::new("Self", ident.span())))
    };
    let bounds = of_self(bounds_of_first(kernel));
    let others = others.into_iter().map(|other| match other {
        GenericParam::Type(parameter) => parameter.ident.to_token_stream(),
        other => quote!(#other),
    });
    let wanted: Vec<String> = generic::names(kernel)
        .iter()
        .map(|name| if Some(*name) == first { "{Self}".to_owned() } else { format!("{{{name}}}") })
        .collect();
    let message = format!("kernel `{}` has no instance `<{}>`", kernel.bare_name(), wanted.join(", "));
    let listed: Vec<String> = kernel.instances.iter().map(|it| kernel.path(it)).collect();
    let note = format!(
        "its `#[kernel(...)]` lists: `{}`; a generic function of the host has the bound `{}`",
        listed.join("`, `"),
        bound_as_written(kernel, &format!("{}::", kernel.bare_name()))
    );
    let doc = format!(
        "The instances of the kernel `{}`: the bound of functions that launch it for any of them, `{}`.\n\n\
         # Safety\nImplemented for the instances that `#[kernel(...)]` lists, and for nothing else.",
        kernel.bare_name(),
        bound_as_written(kernel, ""),
    );
    let impls = kernel.instances.iter().map(|instance| {
        let cfgs = kernel.cfgs_of(instance);
        let static_name = static_name(kernel, instance);
        let argument = |argument: &Argument| match argument {
            Argument::Type { ty, .. } => quote!(#ty),
            Argument::Const { value, .. } => quote!({ #value }),
        };
        let is_first = |it: &&Argument| Some(it.parameter()) == first;
        let implementor = instance.arguments.iter().find(is_first).map_or_else(|| quote!(()), argument);
        let others = instance.arguments.iter().filter(|it| !is_first(it)).map(argument);
        quote! {
            #(#cfgs)*
            // SAFETY: the static describes the kernel with these arguments.
            unsafe impl #name<#(#others),*> for #implementor {
                fn kernel() -> &'static ::ferrogrid::__private::Kernel {
                    &#static_name
                }
            }
        }
    });
    quote! {
        #(#cfgs)*
        #[doc = #doc]
        // Clippy ignores documentation that a macro generates.
        #[allow(
            non_camel_case_types,
            private_bounds,
            private_interfaces,
            unreachable_pub,
            clippy::missing_safety_doc
        )]
        #[diagnostic::on_unimplemented(message = #message, label = "not a listed instance", note = #note)]
        pub unsafe trait #name<#(#others),*>: ::core::marker::Sized + #bounds {
            #[doc(hidden)]
            fn kernel() -> &'static ::ferrogrid::__private::Kernel;
        }
        #(#impls)*
    }
}

/// The bounds of the first type parameter, in its declaration and in the `where` clause: those that name no other
/// parameter, whose own bounds a trait does not imply.
fn bounds_of_first(kernel: &Kernel) -> TokenStream {
    let generics = &kernel.function.sig.generics;
    let (Some(first), _) = implementor(kernel) else { return TokenStream::new() };
    let declared = generics.type_params().find(|it| it.ident == *first).into_iter().flat_map(|it| &it.bounds);
    let predicates = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let required = predicates.filter_map(|predicate| match predicate {
        WherePredicate::Type(PredicateType {
            lifetimes: None, bounded_ty: Type::Path(ty), bounds, ..
        }) if ty.path.is_ident(first) => Some(bounds),
        _ => None,
    });
    let others = generic::names(kernel).into_iter().filter(|name| *name != first);
    let others: Vec<String> = others.map(ToString::to_string).collect();
    let bounds = declared
        .chain(required.flatten())
        .map(ToTokens::to_token_stream)
        .filter(|bound| others.iter().all(|name| mention(bound, name).is_none()));
    quote!(#(#bounds)+*)
}

/// The instance for the kernel's generic parameters.
pub(super) fn chosen(kernel: &Kernel) -> TokenStream {
    if !kernel.is_generic() {
        let static_name = static_name(kernel, &kernel.instances[0]);
        return quote!(&#static_name);
    }
    instance(kernel, &instance_trait(kernel).into_token_stream())
}

/// The kernel's own `where` predicates, and the bound that the instance exists.
pub(super) fn launch_bounds(kernel: &Kernel) -> TokenStream {
    if !kernel.is_generic() {
        return TokenStream::new();
    }
    let predicates = kernel.function.sig.generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let holds = holds(kernel, &instance_trait(kernel).into_token_stream());
    quote!(where #(#predicates,)* #holds)
}
