//! The functions of a comparison, in a module of its name: each launches some of its kernels.

use ferrogrid_syntax::Comparison;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Ident;

/// The module, and a name for the type of the elements there.
pub(super) fn module(comparison: &Comparison) -> TokenStream {
    let Comparison { cfgs, visibility, name, element, .. } = comparison;
    let alias = alias(comparison);
    let functions = [
        comparison.has("merge_sort").then(|| merge_sort(comparison)),
        comparison.has("merge").then(|| merge(comparison)),
        comparison.has("lower_bound").then(|| bound(comparison, false)),
        comparison.has("upper_bound").then(|| bound(comparison, true)),
    ];
    let functions =
        functions.into_iter().flatten().chain(comparison.sets().map(|set| of_set(comparison, set)));
    let summary = format!("Algorithms in the order of `{name}`.");
    quote! {
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code)]
        type #alias = #element;

        #(#cfgs)*
        #[doc = #summary]
        #[allow(dead_code, private_interfaces)]
        #visibility mod #name {
            use ::ferrogrid::__private::{self as __private, DeviceInput, DeviceOutput, Result, Stream};

            use super::#alias as __Element;

            #(#functions)*
        }
    }
}

fn alias(comparison: &Comparison) -> Ident {
    format_ident!("__FerrogridElement_{}", comparison.kernel("").to_string().trim_end_matches('_'))
}

fn merge_sort(comparison: &Comparison) -> TokenStream {
    let [sort_tiles, splits, merge_tiles] =
        ["sort_tiles", "splits", "merge_tiles"].map(|part| comparison.kernel(part));
    quote! {
        /// Writes the elements of `x` to `y`, sorted; equal ones stay in order (CUB's `DeviceMergeSort::StableSortKeysCopy`, Thrust's
        /// `stable_sort`).
        ///
        /// # Errors
        /// `Error::LengthMismatch` if `x` and `y` differ in length, and those of a launch.
        #[track_caller]
        pub fn merge_sort<'x, 'y>(
            stream: &Stream,
            x: impl DeviceInput<'x, __Element>,
            y: impl DeviceOutput<'y, __Element>,
        ) -> Result<()> {
            __private::merge_sort(
                stream,
                x.into_input(),
                y.into_output(),
                |grid, x, y| super::#sort_tiles(stream, grid, x, y),
                |grid, a, b, run, splits| super::#splits(stream, grid, a, b, run, splits),
                |grid, x, run, splits, y| super::#merge_tiles(stream, grid, x, x, run, splits, y),
            )
        }
    }
}

fn merge(comparison: &Comparison) -> TokenStream {
    let [splits, merge_tiles] = ["splits", "merge_tiles"].map(|part| comparison.kernel(part));
    quote! {
        /// Writes the elements of `a` and `b`, both sorted, to `y`, sorted; of equal ones those of `a` come first (CUB's
        /// `DeviceMerge::MergeKeys`, Thrust's `merge`).
        ///
        /// # Errors
        /// `Error::LengthMismatch` if `y` has not the length of both, and those of a launch.
        #[track_caller]
        pub fn merge<'a, 'b, 'y>(
            stream: &Stream,
            a: impl DeviceInput<'a, __Element>,
            b: impl DeviceInput<'b, __Element>,
            y: impl DeviceOutput<'y, __Element>,
        ) -> Result<()> {
            let (a, b) = (a.into_input(), b.into_input());
            __private::merge(
                stream,
                (a, b),
                y.into_output(),
                |grid, splits| super::#splits(stream, grid, a, b, 0, splits),
                |grid, splits, y| super::#merge_tiles(stream, grid, a, b, 0, splits, y),
            )
        }
    }
}

fn bound(comparison: &Comparison, is_upper: bool) -> TokenStream {
    let kernel = comparison.kernel("bounds");
    let (name, text, flag) = if is_upper {
        (
            "upper_bound",
            "Writes to `found[i]` how many elements of `sorted` are not after `values[i]` (Thrust's `upper_bound`).",
            1_u32,
        )
    } else {
        (
            "lower_bound",
            "Writes to `found[i]` how many elements of `sorted` are before `values[i]` (Thrust's `lower_bound`).",
            0,
        )
    };
    let name = format_ident!("{name}");
    quote! {
        #[doc = #text]
        ///
        /// # Errors
        /// Those of a launch: `values` and `found` have the same length.
        #[track_caller]
        pub fn #name<'s, 'v, 'f>(
            stream: &Stream,
            sorted: impl DeviceInput<'s, __Element>,
            values: impl DeviceInput<'v, __Element>,
            found: impl DeviceOutput<'f, u64>,
        ) -> Result<()> {
            let (sorted, values, found) = (sorted.into_input(), values.into_input(), found.into_output());
            __private::search(values.len(), found.len(), |grid| {
                super::#kernel(stream, grid, #flag, sorted, values, found)
            })
        }
    }
}

/// Both functions of a set: one returns how many elements there are, the other leaves it on the device.
fn of_set(comparison: &Comparison, set: &str) -> TokenStream {
    let (name, into) = (format_ident!("{set}"), format_ident!("{set}_into"));
    let [ends, take] = ["set_ends", "set_take"].map(|part| comparison.kernel(part));
    let (kept, text) = match set {
        "set_union" => (
            quote!(COMMON | __private::device::ordered::kept::OF_A | __private::device::ordered::kept::OF_B),
            "the elements of `a`, and those of `b` that `a` has not; of `m` and `n` equal ones the `m` of `a`, and the last of `b` beyond `m`",
        ),
        "set_intersection" => (
            quote!(COMMON),
            "the elements of `a` that `b` has, too; of `m` and `n` equal ones the first of `a`, as many as both have",
        ),
        "set_difference" => (
            quote!(OF_A),
            "the elements of `a` that `b` has not; of `m` and `n` equal ones the last of `a` beyond `n`",
        ),
        _ => (
            quote!(OF_A | __private::device::ordered::kept::OF_B),
            "the elements that only one of `a` and `b` has; of `m` and `n` equal ones the last of the longer run that the other one lacks",
        ),
    };
    let text = format!(
        "Writes to the beginning of `y`, sorted, {text}. Both are sorted. Returns how many they are (Thrust's `{set}`)."
    );
    let into_text = format!(
        "[`{set}`], with the number of elements in `count[0]`, in stream order, without waiting for it."
    );
    quote! {
        #[doc = #text]
        ///
        /// # Errors
        /// `Error::OutOfRange` if `y` has less room; what fits has been written. Those of a launch.
        #[track_caller]
        pub fn #name<'a, 'b, 'y>(
            stream: &Stream,
            a: impl DeviceInput<'a, __Element>,
            b: impl DeviceInput<'b, __Element>,
            y: impl DeviceOutput<'y, __Element>,
        ) -> Result<usize> {
            let (a, b, mut y) = (a.into_input(), b.into_input(), y.into_output());
            __private::count_within(stream, y.len(), |count| #into(stream, a, b, y.reborrow(), count))
        }

        #[doc = #into_text]
        ///
        /// # Errors
        /// Those of a launch. If `y` has less room, what fits is written.
        #[track_caller]
        pub fn #into<'a, 'b, 'y, 'c>(
            stream: &Stream,
            a: impl DeviceInput<'a, __Element>,
            b: impl DeviceInput<'b, __Element>,
            y: impl DeviceOutput<'y, __Element>,
            count: impl DeviceOutput<'c, u64>,
        ) -> Result<()> {
            let (a, b) = (a.into_input(), b.into_input());
            __private::set(
                stream,
                (a.len(), b.len()),
                y.into_output(),
                count.into_output(),
                |grid, ends| {
                    let kept = __private::device::ordered::kept::#kept;
                    super::#ends(stream, grid, kept, a, b, ends)
                },
                |grid, ends, y, count| super::#take(stream, grid, a, b, ends, y, count),
            )
        }
    }
}
