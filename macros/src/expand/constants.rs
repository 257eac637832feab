//! Constants in both halves: variables on a device, which the builder moves to constant memory; on the host
//! values that it can set. A function that reads one gets a reference that ends with the function.

use ferrogrid_syntax::{Constant, Kernel, Module};
use proc_macro2::{Group, Literal, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Block, Ident, ItemFn, Stmt, parse_quote};

/// The name of the function that returns the reference.
fn reader(constant: &Constant) -> Ident {
    format_ident!("__ferrogrid_read_{}", constant.bare_name())
}

/// Makes the names of constants in `block`, of the function `name`, refer to their values.
pub(super) fn name_values(module: &Module, name: &Ident, block: &mut Block) {
    let mut statements: Vec<Stmt> = Vec::new();
    let mut text = block.to_token_stream();
    for constant in module.constants_read_by(name) {
        let local = format_ident!("__value_{}", constant.bare_name());
        let mut mentioned = false;
        text = renamed(text, &constant.name, &local, &mut mentioned);
        if !mentioned {
            continue;
        }
        let (reader, cfgs) = (reader(constant), constant.cfgs().collect::<Vec<_>>());
        let reading = format_ident!("__reading_{}", constant.bare_name());
        statements.push(parse_quote!(#(#cfgs)* #[allow(non_snake_case)] let #reading = ::ferrogrid::device::constant::Reading;));
        // SAFETY: only kernels of the module, and functions that only they call, call it.
        statements.push(parse_quote! {
            #(#cfgs)* #[allow(non_snake_case, unused_variables)] let #local = unsafe { self::#reader(&#reading) };
        });
    }
    if !statements.is_empty() {
        *block = syn::parse2(text).expect("an identifier in place of another");
        block.stmts.splice(0..0, statements);
    }
}

/// As [`name_values`], for a function that is not a kernel.
pub(super) fn named_in(module: &Module, function: &ItemFn) -> ItemFn {
    let mut function = function.clone();
    name_values(module, &function.sig.ident, &mut function.block);
    function
}

/// `tokens` with `local` in place of `name` where that is no part of a path or field access. No local can
/// have the name of a static.
fn renamed(tokens: TokenStream, name: &Ident, local: &Ident, mentioned: &mut bool) -> TokenStream {
    let mut before = [' '; 2];
    let mut tree = |tree: TokenTree| {
        // `other::NAME` and `other.NAME` are different items; `0..NAME` and `field: NAME` are not.
        let is_part = before == [':', ':'] || (before[1] == '.' && before[0] != '.');
        before = [before[1], if let TokenTree::Punct(punct) = &tree { punct.as_char() } else { ' ' }];
        match tree {
            TokenTree::Ident(ident) if ident == *name && !is_part => {
                *mentioned = true;
                let mut local = local.clone();
                local.set_span(ident.span());
                TokenTree::Ident(local)
            }
            TokenTree::Group(group) => {
                let stream = renamed(group.stream(), name, local, mentioned);
                let mut inner = Group::new(group.delimiter(), stream);
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            other => other,
        }
    };
    tokens.into_iter().map(&mut tree).collect()
}

/// The variable, which the builder moves to constant memory, and the function that reads it. That takes the
/// address by inline assembly, since LLVM assumes that the variable never changes. A library that others
/// link has no variable: only its own entry points read it.
pub(super) fn on_device(module: &Module, constant: &Constant, entries: bool) -> TokenStream {
    let symbol = constant.symbol(module.fingerprint);
    let name = Ident::new(&symbol, constant.name.span());
    let (reader, ty, value, initial) = (reader(constant), &constant.ty, &constant.value, &constant.initial);
    let cfgs: Vec<_> = constant.cfgs().collect();
    let code =
        Literal::string(&format!("{{{{ .reg .u64 %t; mov.u64 %t, {symbol}; cvta.const.u64 {{0}}, %t; }}}}"));
    if constant.is_variable {
        return variable_on_device(module, constant, entries);
    }
    // SAFETY of the `unsafe` blocks below: the assembly computes an address and accesses no memory; the
    // address is that of the constant.
    let variable = entries.then(|| {
        quote! {
            #(#cfgs)*
            #[unsafe(no_mangle)]
            #[allow(non_upper_case_globals)]
            static #name: #ty = #initial;
        }
    });
    quote! {
        #variable
        #(#cfgs)*
        #[allow(non_snake_case)]
        #[inline(always)]
        unsafe fn #reader(reading: &::ferrogrid::device::constant::Reading) -> &#value {
            let start: *const ::ferrogrid::device::Constant<#value>;
            unsafe {
                ::core::arch::asm!(#code, out(reg64) start, options(pure, nomem, nostack));
                ::ferrogrid::device::constant::read(reading, start)
            }
        }
    }
}

/// The variable, and the function that returns it. A library that others link has no variable: only its own
/// entry points use it.
fn variable_on_device(module: &Module, constant: &Constant, entries: bool) -> TokenStream {
    let name = Ident::new(&constant.symbol(module.fingerprint), constant.name.span());
    let (reader, ty, initial) = (reader(constant), &constant.ty, &constant.initial);
    let cfgs: Vec<_> = constant.cfgs().collect();
    let variable = if entries {
        quote!(#[unsafe(no_mangle)] #[allow(non_upper_case_globals)] static #name: #ty = #initial;)
    } else {
        quote!(unsafe extern "C" { #[allow(non_upper_case_globals)] static #name: #ty; })
    };
    // SAFETY of the `unsafe` block below: the static is the module's own, and only its kernels run here.
    quote! {
        #(#cfgs)*
        #variable
        #(#cfgs)*
        #[allow(non_snake_case, unused_unsafe)]
        #[inline(always)]
        unsafe fn #reader(reading: &::ferrogrid::device::constant::Reading) -> &#ty {
            unsafe { ::ferrogrid::device::statics::read(reading, ::core::ptr::addr_of!(self::#name)) }
        }
    }
}

/// The type of the value on the host; `device` is the path of the device crate.
pub(super) fn value(constant: &Constant, device: &TokenStream) -> syn::Type {
    let ty = &constant.value;
    if constant.is_variable {
        parse_quote!(<#ty as #device::statics::StaticValue>::Value)
    } else {
        ty.clone()
    }
}

/// The value that the host can set, and the function that reads it on the CPU device.
pub(super) fn on_host(module: &Module, constant: &Constant) -> TokenStream {
    let (name, visibility, attributes) = (&constant.name, &constant.visibility, &constant.attributes);
    let (bare, symbol, reader) =
        (constant.bare_name(), constant.symbol(module.fingerprint), reader(constant));
    let (ty, value, initial) = (&constant.ty, &constant.value, &constant.initial);
    let at_first = format_ident!("__FERROGRID_INITIAL_{}", bare);
    let cfgs: Vec<_> = constant.cfgs().collect();
    let private = quote!(::ferrogrid::__private);
    let (assertion, host_type, first, module_of) = if constant.is_variable {
        let first = quote!(#private::device::Constant::<#value>::new(initial));
        (quote!(statics::assert_static), quote!(DeviceStatic), first, quote!(statics))
    } else {
        (quote!(assert_device_copy), quote!(DeviceConstant), quote!(initial), quote!(constant))
    };
    let travels = quote_spanned! {value.span()=>
        const _: () = ::ferrogrid::__private::device::#assertion::<#value>();
    };
    quote! {
        #(#cfgs)*
        #travels
        #(#cfgs)*
        #[doc(hidden)]
        static #at_first: ::ferrogrid::__private::InitialValue<#value> = {
            let initial: #ty = #initial;
            #private::InitialValue::new(#first)
        };
        #(#attributes)*
        #visibility static #name: #private::#host_type<#value> =
            #private::#host_type::new(
                ::core::concat!(::core::module_path!(), "::", #bare), #symbol, &__FERROGRID_IMAGE, &#at_first,
            );
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(non_snake_case)]
        #[inline]
        unsafe fn #reader(
            reading: &::ferrogrid::__private::device::constant::Reading,
        ) -> &#value {
            // SAFETY: the launch of the running kernel keeps the memory unchanged until it has ended.
            unsafe { #private::device::#module_of::read(reading, self::#name.here()) }
        }
    }
}

/// A check that all constants of the module fit.
pub(super) fn limit(module: &Module) -> TokenStream {
    let constants: Vec<_> = module.constants.iter().filter(|it| !it.is_variable).collect();
    if constants.is_empty() {
        return TokenStream::new();
    }
    let lines = constants.iter().map(|constant| {
        let (cfgs, value) = (constant.cfgs(), &constant.value);
        let bare = constant.bare_name();
        quote! {
            #(#cfgs)*
            let total = ::ferrogrid::__private::add_constant(
                total, #bare, ::core::mem::size_of::<#value>(), ::core::mem::align_of::<#value>(),
            );
        }
    });
    quote! {
        const _: () = {
            let total = 0;
            #(#lines)*
            let _ = total;
        };
    }
}

/// The constants that a launch of `kernel` may read, as the descriptor lists them.
pub(super) fn of_kernel(module: &Module, kernel: &Kernel) -> TokenStream {
    let constants = module.constants_of(kernel).map(|constant| {
        let (cfgs, name) = (constant.cfgs(), &constant.name);
        quote!(#(#cfgs)* self::#name.memory())
    });
    quote! {{
        static CONSTANTS: &[&::ferrogrid::__private::ConstantMemory] = &[#(#constants),*];
        CONSTANTS
    }}
}
