//! The functions of a reduction: one returns the value, the other leaves it on the device. Both launch its two kernels.

use ferrogrid_syntax::{Kernel, Module, Reduction, Role};
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Ident, Lifetime, Type};

use super::template::{is_passed, lifetime, parameter, stream};
use crate::expand::generic;
use crate::expand::instances::{holds, instance_trait};

/// Both functions.
pub(super) fn functions(module: &Module, reduction: &Reduction) -> TokenStream {
    let [in_blocks, of_blocks] = [reduction.in_blocks(), reduction.of_blocks()].map(|name| {
        module.kernels.iter().find(|it| *it.name() == name).expect("a reduction has both of its kernels")
    });
    let Reduction { attributes, visibility, name, generics, accumulator, .. } = reduction;
    let result = reduction.result();
    let into = format_ident!("{}_into", name.to_string().trim_start_matches("r#"), span = name.span());
    let declared = &generics.params;
    let bounds = bounds(reduction, [in_blocks, of_blocks]);
    let chosen = in_blocks.is_generic().then(|| {
        let passed = generic::passed(in_blocks);
        quote!(::<#passed>)
    });
    let lifetimes: Vec<Lifetime> = reduction.arguments.iter().enumerate().filter_map(lifetime).collect();
    let input = |lifetime: &Lifetime, element: &Type| quote!(impl ::ferrogrid::__private::DeviceInput<#lifetime, #element>);
    let parameters: Vec<TokenStream> =
        reduction.arguments.iter().enumerate().filter_map(|it| parameter(it, input)).collect();
    let passed: Vec<&Ident> =
        reduction.arguments.iter().filter(|it| is_passed(it)).map(|it| &it.name).collect();
    let inputs: Vec<&Ident> = reduction
        .arguments
        .iter()
        .filter(|it| matches!(it.role, Role::Input(_)))
        .map(|it| &it.name)
        .collect();
    let first = inputs[0];
    let steps = if reduction.finished.is_some() {
        quote!(in_two_steps::<#accumulator, #result>)
    } else {
        quote!(in_steps::<#accumulator>)
    };
    let (first_step, last_step) = (in_blocks.name(), of_blocks.name());
    let cfgs: Vec<_> = in_blocks.cfgs().collect();
    let stream = stream(&reduction.arguments);
    let into_text = format!(
        "[`{}`], written to the first element of `out` in stream order, without waiting for it.",
        name.to_string().trim_start_matches("r#")
    );
    quote! {
        #(#attributes)*
        #[doc = "\n"]
        #[doc = "Waits for the value and returns it. The order in which values are combined depends on the length alone.\n\n# Errors\nIf slices differ in length, a buffer belongs to another device, the device code cannot be loaded, or a kernel fails."]
        #[allow(dead_code, clippy::too_many_arguments, clippy::multiple_bound_locations)]
        #[track_caller]
        #visibility fn #name<#(#lifetimes,)* #declared>(
            #stream: &::ferrogrid::__private::Stream,
            #(#parameters,)*
        ) -> ::ferrogrid::__private::Result<#result>
        #bounds
        {
            ::ferrogrid::__private::value_of::<#result>(#stream, |__out| #into #chosen(#stream, #(#passed,)* __out))
        }

        #(#cfgs)*
        #[doc = #into_text]
        #[doc = "\n# Errors\nIf slices differ in length, a buffer belongs to another device, or the device code cannot be loaded. The next synchronising call reports errors of the running kernels."]
        #[allow(dead_code, clippy::too_many_arguments, clippy::multiple_bound_locations)]
        #[track_caller]
        #visibility fn #into<#(#lifetimes,)* 'out, #declared>(
            #stream: &::ferrogrid::__private::Stream,
            #(#parameters,)*
            out: impl ::ferrogrid::__private::DeviceOutput<'out, #result>,
        ) -> ::ferrogrid::__private::Result<()>
        #bounds
        {
            #(let #inputs = ::ferrogrid::__private::DeviceInput::into_input(#inputs);)*
            ::ferrogrid::__private::#steps(
                #stream,
                #first.len(),
                ::ferrogrid::__private::DeviceOutput::into_output(out),
                |__grid, __values| #first_step #chosen(#stream, __grid, #(#passed,)* __values),
                |__grid, __values, __out| #last_step #chosen(#stream, __grid, __values, __out),
            )
        }
    }
}

/// The function's own `where` predicates, and the bounds that both kernels' instances exist.
fn bounds(reduction: &Reduction, kernels: [&Kernel; 2]) -> TokenStream {
    if !kernels[0].is_generic() {
        return TokenStream::new();
    }
    let predicates = reduction.generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let instances = kernels.map(|kernel| holds(kernel, &instance_trait(kernel).into_token_stream()));
    quote!(where #(#predicates,)* #(#instances),*)
}
