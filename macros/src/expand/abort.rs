//! The warning in builds where panics abort: there a failing kernel ends the process on the CPU device.

use ferrogrid_syntax::Module;
use proc_macro2::TokenStream;
use quote::quote_spanned;

/// A warning at the module's name in builds with `panic = "abort"`. Only `cfg` reveals these, because a build
/// script does not get its profile. The only warnings that macros can emit are about uses of deprecated
/// items.
pub(super) fn warning(module: &Module) -> TokenStream {
    if module.kernels.is_empty() {
        return TokenStream::new();
    }
    quote_spanned! {module.item.ident.span()=>
        #[cfg(panic = "abort")]
        const _: () = {
            #[deprecated(note = "with `panic = \"abort\"` in the profile, a kernel that fails on the CPU device ends the \
                                 process: it is an `Err` only where panics unwind (`#[allow(deprecated)]` on the module \
                                 silences this)")]
            const fn failures_on_the_cpu_device_end_the_process() {}
            failures_on_the_cpu_device_end_the_process();
        };
    }
}
