//! The function of a product: it launches the kernel of the tiles that suit the shape.

use ferrogrid_syntax::{Matmul, Role, Several};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Ident, Lifetime, Type};

use super::template::{is_passed, lifetime, parameter, stream};

/// The function.
pub(super) fn function(matmul: &Matmul) -> TokenStream {
    let Matmul { attributes, visibility, name, arguments, factors, result, are_transposed, several } = matmul;
    let [large, small, narrow, of_parts, store_parts] =
        ["large", "small", "narrow", "of_parts", "store_parts"].map(|kernel| matmul.kernel(kernel));
    let lifetimes: Vec<Lifetime> = arguments.iter().enumerate().filter_map(lifetime).collect();
    let plane = |lifetime: &Lifetime, element: &Type| quote!(::ferrogrid::__private::DeviceView<#lifetime, #element, 2>);
    let parameters: Vec<TokenStream> =
        arguments.iter().enumerate().filter_map(|it| parameter(it, plane)).collect();
    let passed: Vec<&Ident> = arguments.iter().filter(|it| is_passed(it)).map(|it| &it.name).collect();
    let names = |has_role: fn(&Role) -> bool| -> Vec<&Ident> {
        arguments.iter().filter(|it| has_role(&it.role)).map(|it| &it.name).collect()
    };
    let planes = names(|role| matches!(role, Role::Input(_)));
    let of_rows = names(|role| matches!(role, Role::OfRow(_)));
    let of_columns = names(|role| matches!(role, Role::OfColumn(_)));
    let [turned_a, turned_b] = are_transposed;
    let stream = stream(arguments);
    // What the function and the kernels take, beside that: the parameter, with a lifetime, and how it is passed.
    let private = quote!(::ferrogrid::__private);
    let (lifetime_of_groups, parameter, several, of_kernel) = match several {
        Several::One => (quote!(), quote!(), quote!(Batches(1)), quote!()),
        Several::Batches => {
            (quote!(), quote!(batches: usize,), quote!(Batches(batches)), quote!(batches as u64,))
        }
        Several::Groups => {
            let parameter = quote!(groups: impl #private::DeviceInput<'groups, u32>,);
            (quote!('groups,), parameter, quote!(Groups(groups.len())), quote!(groups,))
        }
    };
    let groups = (!lifetime_of_groups.is_empty())
        .then(|| quote!(let groups = #private::DeviceInput::into_input(groups);));
    let by_parts = matmul.has_parts().then(|| {
        quote! {
            if let ::core::option::Option::Some(__parts) = __planned.parts {
                let mut __sums = __parts.sums(#stream)?;
                let __words = #private::DeviceViewMut::into_atomic(__sums.view_mut());
                #of_parts(#stream, __grid, a, b, #of_kernel __parts.depth, __words)?;
                let __sums = __sums.view().cast()?;
                #store_parts(#stream, __parts.grid, __parts.extents, __sums, #(#passed,)* __planned.out()?)?;
                return __planned.finish(#stream);
            }
        }
    });
    let about = match matmul.several {
        Several::One => "",
        Several::Batches => " Matrices of `batches` products are below each other in `a`, `b` and `out`.",
        Several::Groups => {
            " `groups` has the first row of each group of `a` and `out`, and the end of the last one; `b` has a matrix for each group, below each \
             other. Rows of no group stay as they are. If offsets do not ascend up to the rows, the kernel panics."
        }
    };
    let text = format!(
        "\nWrites what it returns for each sum of the product of `a`{} and `b`{} to `out`, by tensor cores where the device has them.{}\n\n\
         # Errors\n`Error::LengthMismatch` if the factors have not the same depth, or an input not an element for each row or column; `Error::ShapeMismatch` if `out` or an input has another \
         shape than the product, and those of a launch: rows of both factors begin at multiples of 16 bytes. The next synchronising call \
         reports errors of the running kernel.",
        if *turned_a { "'s transpose" } else { "" },
        if *turned_b { "'s transpose" } else { "" },
        about,
    );
    quote! {
        #(#attributes)*
        #[doc = #text]
        #[allow(dead_code, clippy::too_many_arguments)]
        #[track_caller]
        #visibility fn #name<'a, 'b, #lifetime_of_groups #(#lifetimes,)* 'out>(
            #stream: &::ferrogrid::__private::Stream,
            a: impl ::core::convert::Into<::ferrogrid::__private::PitchedView<'a, #factors>>,
            b: impl ::core::convert::Into<::ferrogrid::__private::PitchedView<'b, #factors>>,
            #parameter
            #(#parameters,)*
            out: impl ::core::convert::Into<::ferrogrid::__private::PitchedViewMut<'out, #result>>,
        ) -> ::ferrogrid::__private::Result<()> {
            let a: #private::PitchedView<'a, #factors> = ::core::convert::Into::into(a);
            let b: #private::PitchedView<'b, #factors> = ::core::convert::Into::into(b);
            #groups
            #(let #of_rows = ::ferrogrid::__private::DeviceInput::into_input(#of_rows);)*
            #(let #of_columns = ::ferrogrid::__private::DeviceInput::into_input(#of_columns);)*
            let __planned = #private::PlannedProduct::new(
                #stream,
                [a, b],
                [#turned_a, #turned_b],
                ::ferrogrid::__private::Several::#several,
                ::ferrogrid::__private::ProductInputs {
                    planes: &[#([#planes.width(), #planes.height()]),*],
                    of_rows: &[#(#of_rows.len()),*],
                    of_columns: &[#(#of_columns.len()),*],
                },
                ::core::convert::Into::into(out),
            )?;
            let ::core::option::Option::Some(mut __planned) = __planned else {
                return ::core::result::Result::Ok(());
            };
            let (__grid, __tile) = (__planned.grid, __planned.tile);
            #by_parts
            let __out = __planned.out()?;
            match __tile {
                #private::ProductTile::Large => #large(#stream, __grid, a, b, #of_kernel #(#passed,)* __out)?,
                #private::ProductTile::Small => #small(#stream, __grid, a, b, #of_kernel #(#passed,)* __out)?,
                #private::ProductTile::Narrow => #narrow(#stream, __grid, a, b, #of_kernel #(#passed,)* __out)?,
            }
            __planned.finish(#stream)
        }
    }
}
