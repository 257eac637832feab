//! The attribute macros. `#[module]` turns a module of kernels into launch functions (host half) or into PTX
//! entry points (device half); `FERROGRID_EXPAND` selects the half. The grammar is that of
//! `ferrogrid-syntax`.
//!
//! Compilers require the entry points of macros here. `expand` has the halves of a module, `derive` the derives, and
//! `crate_path` renamed dependencies. Documentation longer than a screen is in `docs`, with its tests.

#![deny(missing_docs)]

mod crate_path;
mod derive;
mod expand;

use proc_macro::TokenStream;
use syn::punctuated::Punctuated;
use syn::{DeriveInput, ItemMod, parse_macro_input};

#[doc = include_str!("docs/module.md")]
#[proc_macro_attribute]
pub fn module(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(options with Punctuated::parse_terminated);
    let item = parse_macro_input!(item as ItemMod);
    let root = crate_path::option(&options).or_else(crate_path::default);
    let expanded = expand::module(&options, item).unwrap_or_else(|error| error.to_compile_error());
    match root {
        Some(root) => crate_path::replace(expanded, &root).into(),
        None => expanded.into(),
    }
}

#[doc = include_str!("docs/kernel.md")]
#[proc_macro_attribute]
pub fn kernel(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("`#[kernel]` belongs on functions directly inside a module marked `#[ferrogrid::module]`", item)
}

#[doc = include_str!("docs/elementwise.md")]
#[proc_macro_attribute]
pub fn elementwise(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced(
        "`#[elementwise]` belongs on functions directly inside a module marked `#[ferrogrid::module]`",
        item,
    )
}

#[doc = include_str!("docs/reduction.md")]
#[proc_macro_attribute]
pub fn reduction(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced(
        "`#[reduction]` belongs on functions directly inside a module marked `#[ferrogrid::module]`",
        item,
    )
}

#[doc = include_str!("docs/scan.md")]
#[proc_macro_attribute]
pub fn scan(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("`#[scan]` belongs on functions directly inside a module marked `#[ferrogrid::module]`", item)
}

#[doc = include_str!("docs/comparison.md")]
#[proc_macro_attribute]
pub fn comparison(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced(
        "`#[comparison]` belongs on functions directly inside a module marked `#[ferrogrid::module]`",
        item,
    )
}

/// Declares a value in the constant memory of devices: a `static` of a `#[ferrogrid::module]` of type
/// `Constant<T>`, where `T` is `DeviceCopy`.
///
/// Kernels of the module and its private functions read it by its name. On the host the name is a
/// `DeviceConstant<T>`, which sets it and reads it back in stream order. The constants of a program have at
/// most 65536 bytes in total. It is CUDA's `__constant__`, and setting it `cudaMemcpyToSymbol()`.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// #[constant]
/// pub static SCALE: Constant<f32> = Constant::new(10.0);
///
/// #[kernel]
/// pub fn scale(t: Thread<1>, mut x: DisjointSlice<f32>) {
///     if let Some(x) = x.get_mut(t.index()) {
///         *x *= *SCALE;
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut x = stream.upload(&[1.0, 2.0])?;
/// kernels::scale(&stream, Grid::cover(2), &mut x)?;
/// kernels::SCALE.set(&stream, &0.5)?;
/// kernels::scale(&stream, Grid::cover(2), &mut x)?;
/// assert_eq!(stream.download(&x)?, [5.0, 10.0]);
/// # Ok(()) }
/// ```
#[proc_macro_attribute]
pub fn constant(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("`#[constant]` belongs on statics directly inside a module marked `#[ferrogrid::module]`", item)
}

/// Derives `DeviceCopy` for a `#[repr(C)]` or `#[repr(transparent)]` struct, or for an enum with an integer
/// `repr` or, if its variants have data, `#[repr(C)]`. All fields must be `DeviceCopy`.
///
/// ```
/// use ferrogrid::DeviceCopy;
/// # use ferrogrid::prelude::*;
///
/// #[derive(Debug, Clone, Copy, PartialEq, DeviceCopy)]
/// #[repr(C)]
/// struct Sphere {
///     centre: [f32; 3],
///     radius: f32,
/// }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let spheres = [Sphere { centre: [0.0, 1.0, 2.0], radius: 3.0 }];
/// assert_eq!(stream.download(&stream.upload(&spheres)?)?, spheres);
/// # Ok(()) }
/// ```
///
/// An enum whose variants have data, by value:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// #[derive(Clone, Copy, DeviceCopy)]
/// #[repr(C)]
/// pub enum Shape {
///     Circle { radius: f32 },
///     Rectangle([f32; 2]),
/// }
///
/// #[kernel]
/// pub fn areas(t: Thread<1>, shapes: &[Shape], mut areas: DisjointSlice<f32>) {
///     if let Some(area) = areas.get_mut(t.index()) {
///         *area = match shapes[t.index().get()] {
///             Shape::Circle { radius } => 3.0 * radius * radius, // about
///             Shape::Rectangle([width, height]) => width * height,
///         };
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use kernels::Shape;
///
/// let shapes = stream.upload(&[Shape::Circle { radius: 2.0 }, Shape::Rectangle([1.5, 4.0])])?;
/// let mut areas = stream.zeros(2)?;
/// kernels::areas(&stream, Grid::cover(2), &shapes, &mut areas)?;
/// assert_eq!(stream.download(&areas)?, [12.0, 6.0]);
/// # Ok(()) }
/// ```
///
/// A type whose layout is not defined, or that holds an address, is refused:
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, ferrogrid::DeviceCopy)]
/// #[repr(C)]
/// struct Name {
///     text: &'static str,
/// }
/// ```
///
/// It works in `no_std` crates that depend on `ferrogrid-device` alone. In packages without a build step a
/// renamed dependency needs `#[device_copy(crate = fg)]`.
#[proc_macro_derive(DeviceCopy, attributes(device_copy))]
pub fn device_copy(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive::device_copy(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Derives `SharedElement` for a struct that is not `Copy`, such as one of atomics: any bits must be valid
/// for each of its fields. For `Copy` structs `#[derive(DeviceCopy)]` implements it.
#[proc_macro_derive(SharedElement, attributes(device_copy))]
pub fn shared_element(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive::shared_element(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Derives `ferrogrid::device::atomic::AtomicForm` for a struct of atomics: a view of a buffer of plain
/// structs whose elements threads change concurrently. `#[atomic_form(Plain)]` names the plain struct; see
/// the trait for an example.
///
/// Both structs need `#[repr(C)]` and the same fields, with `DeviceAtomic<T>` (or core's `AtomicU32` and the
/// like) in place of `T`, and arrays of them. A field of another type is an error:
///
/// ```compile_fail,E0277
/// use ferrogrid::device::{AtomicForm, DeviceAtomic, DeviceCopy};
///
/// #[derive(Clone, Copy, DeviceCopy)]
/// #[repr(C)]
/// struct Bin {
///     count: u32,
/// }
///
/// #[derive(AtomicForm)]
/// #[atomic_form(Bin)]
/// #[repr(C)]
/// struct OpenBin {
///     count: DeviceAtomic<f32>,
/// }
/// ```
#[proc_macro_derive(AtomicForm, attributes(atomic_form, device_copy))]
pub fn atomic_form(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive::atomic_form(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Declares a variable in the global memory of devices, shared by all kernels of the module: a `static` of a
/// `#[ferrogrid::module]`, made of `DeviceAtomic`s.
///
/// Kernels of the module and its private functions use it by its name. On the host the name is a
/// `DeviceStatic`, which sets and reads it in stream order. It is CUDA's `__device__` variable, with
/// `cudaMemcpyToSymbol()` and `cudaMemcpyFromSymbol()`. (A `static` without the attribute exists separately
/// on each side, and the host cannot access a GPU's.)
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// How often each remainder occurred, in all launches.
/// #[device]
/// pub static COUNTS: [DeviceAtomic<u32>; 3] = [const { DeviceAtomic::new(0) }; 3];
///
/// #[kernel]
/// pub fn count(t: Thread<1>, x: &[u32]) {
///     if let Some(x) = x.get(t.index().get()) {
///         COUNTS[*x as usize % 3].fetch_add(1, atomic::Ordering::Relaxed);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[3, 4, 6, 8, 9])?;
/// kernels::count(&stream, Grid::cover(5), &x)?;
/// kernels::count(&stream, Grid::cover(2), x.slice(..2)?)?;
/// assert_eq!(kernels::COUNTS.get(&stream)?, [4, 2, 1]);
/// # Ok(()) }
/// ```
#[proc_macro_attribute]
pub fn device(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("`#[device]` belongs on statics directly inside a module marked `#[ferrogrid::module]`", item)
}

/// `item` with the error `message`: for an attribute outside of the module that would expand it.
fn misplaced(message: &str, item: TokenStream) -> TokenStream {
    let error = syn::Error::new(proc_macro2::Span::call_site(), message).to_compile_error();
    [error.into(), item].into_iter().collect()
}
