//! The instances of a kernel on the host: the static that describes each, and how a launch with the
//! kernel's generic parameters finds its own. It must not know what a launch does with it.

use ferrogrid_syntax::{Argument, Instance, Kernel};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Ident;

use super::generic;

/// The name of the static that describes an instance.
pub(super) fn static_name(kernel: &Kernel, instance: &Instance) -> Ident {
    format_ident!("__FERROGRID_KERNEL_{}{}", kernel.bare_name(), instance.suffix())
}

/// `saxpy`, or `saxpy::<f32, 8>`.
pub(super) fn instance_name(kernel: &Kernel, instance: &Instance) -> String {
    if instance.arguments.is_empty() {
        return kernel.bare_name();
    }
    let values: Vec<String> = instance.arguments.iter().map(Argument::value).collect();
    format!("{}::<{}>", kernel.bare_name(), values.join(", "))
}

pub(super) fn instance_trait(kernel: &Kernel) -> Ident {
    format_ident!("__FerrogridInstance_{}", kernel.bare_name())
}

pub(super) fn instance_marker(kernel: &Kernel) -> Ident {
    format_ident!("__FerrogridKernel_{}", kernel.bare_name())
}

/// For a generic kernel: a trait that holds for its instances, and says which they are where it does
/// not hold.
pub(super) fn instances(kernel: &Kernel) -> TokenStream {
    if !kernel.is_generic() {
        return TokenStream::new();
    }
    let (visibility, cfgs) = (&kernel.function.vis, kernel.cfgs().collect::<Vec<_>>());
    let (instance_trait, marker) = (instance_trait(kernel), instance_marker(kernel));
    let parameters = generic::unbounded(kernel);
    let wanted: Vec<String> = generic::names(kernel).iter().map(|name| format!("{{{name}}}")).collect();
    let message = format!("kernel `{}` has no instance `<{}>`", kernel.bare_name(), wanted.join(", "));
    let listed: Vec<String> = kernel.instances.iter().map(|it| instance_name(kernel, it)).collect();
    let note = format!("its `#[kernel(...)]` lists: `{}`", listed.join("`, `"));
    let impls = kernel.instances.iter().map(|instance| {
        let static_name = static_name(kernel, instance);
        let arguments = instance.arguments.iter().map(|argument| match argument {
            Argument::Type { ty, .. } => quote!(#ty),
            Argument::Const { value, .. } => quote!({ #value }),
        });
        quote! {
            #(#cfgs)*
            impl #instance_trait<#(#arguments),*> for #marker {
                fn kernel() -> &'static ::ferrogrid::__private::Kernel {
                    &#static_name
                }
            }
        }
    });
    quote! {
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #visibility struct #marker;
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #[diagnostic::on_unimplemented(message = #message, label = "not a listed instance", note = #note)]
        #visibility trait #instance_trait<#parameters> {
            fn kernel() -> &'static ::ferrogrid::__private::Kernel;
        }
        #(#impls)*
    }
}

/// The instance that a launch with the kernel's generic parameters means.
pub(super) fn chosen(kernel: &Kernel) -> TokenStream {
    if !kernel.is_generic() {
        let static_name = static_name(kernel, &kernel.instances[0]);
        return quote!(&#static_name);
    }
    let (instance_trait, marker) = (instance_trait(kernel), instance_marker(kernel));
    let arguments = generic::passed(kernel);
    quote!(<#marker as #instance_trait<#arguments>>::kernel())
}

/// The kernel's own `where` predicates, and that it has the instance.
pub(super) fn launch_bounds(kernel: &Kernel) -> TokenStream {
    if !kernel.is_generic() {
        return TokenStream::new();
    }
    let predicates = kernel.function.sig.generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let (instance_trait, marker) = (instance_trait(kernel), instance_marker(kernel));
    let arguments = generic::passed(kernel);
    quote!(where #(#predicates,)* #marker: #instance_trait<#arguments>)
}
