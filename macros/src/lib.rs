//! The attribute macros. `#[module]` turns a module of kernels into launch functions (host half) or
//! into PTX entry points (device half); the grammar is `ferrogrid-syntax`'s. This crate must not
//! know paths or toolchains: which half to make, it is told by `FERROGRID_EXPAND`.

#![deny(missing_docs)]

mod derive;
mod expand;

use proc_macro::TokenStream;
use syn::punctuated::Punctuated;
use syn::{DeriveInput, ItemMod, parse_macro_input};

/// Makes the kernels of an inline module launchable.
///
/// Every `#[kernel]` function in it becomes a typed launch function of the same name, which takes a
/// stream and a grid before the kernel's own arguments, and a companion module of the same name
/// with what is known of the kernel. The kernel itself is compiled for the device by
/// `ferrogrid_build::compile()`, called from the crate's `build.rs`, and natively for the CPU
/// device. Everything else in the module (functions, structs, constants, imports) is there on
/// both sides.
///
/// `#[ferrogrid::module(host_only)]` builds no device code: such kernels run on CPU devices only,
/// and need no `build.rs`.
#[proc_macro_attribute]
pub fn module(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(options with Punctuated::parse_terminated);
    let item = parse_macro_input!(item as ItemMod);
    expand::module(&options, item).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Marks a function of a `#[ferrogrid::module]` as a kernel.
///
/// A kernel takes a `Thread<R>`, returns nothing, and has parameters of these kinds:
///
/// | in the kernel | at the launch |
/// |---|---|
/// | `Thread<R>`, `R` = 1, 2, 3 | a grid of rank `R` |
/// | a `DeviceCopy` value | the same, by value |
/// | `&[T]` | `&DeviceBuffer<T>` or a view of one |
/// | `&[DeviceAtomic<T>]` | an atomic view: `buffer.as_atomic()` |
/// | `Plane<T>` | a view of rank 2, `buffer.view_2d(width, height)?` |
/// | `DisjointSlice<T>` | `&mut DeviceBuffer<T>` or a mutable view |
/// | `DisjointSlice<T, 2>`, `DisjointSlice<T, 3>` | a mutable view of that rank |
/// | `DisjointTiles<T, W, H>`, `DisjointRows<T>` | a mutable view of rank 2 |
/// | `Shared<[T; N]>`, `Shared<[[T; W]; H]>`, `Shared<Padded<T, W, H>>` | nothing |
/// | `SharedSlice<T>` | its length |
/// | `*const T`, `*mut T` (`unsafe fn` only) | `DevicePtr<T>`, `DevicePtrMut<T>` |
///
/// Options promise something of every launch, which the launch checks and the compiler uses to
/// choose registers:
///
/// | option | promise | PTX |
/// |---|---|---|
/// | `block = [x, y]` | blocks have exactly this shape (one number for each dimension of the grid) | `.reqntid` |
/// | `max_threads = n` | no block has more threads | `.maxntid` |
/// | `cluster = [x, y]` | so many blocks along each axis make a cluster, at most 16 in all: `t.sync_cluster()` waits for them, and they read each other's shared memory (`t.publish_cluster(..)`); from `sm_90` on | `.reqnctapercluster` |
/// | `wide` | nothing: slices may have 2^32 elements or more along an axis, which a launch refuses else, and lengths are 64 bits wide, which is slower | |
/// | `cooperative` | all blocks are on the device at the same time: `t.sync_grid()` waits for all of them | |
/// | `min_blocks = n` | wanted: so many blocks at once on a multiprocessor | `.minnctapersm` |
/// | `max_registers = n` | no thread has more registers, 24 to 255 (not together with `min_blocks`) | `.maxnreg` |
///
/// Others let a GPU be less exact for this kernel; a function that it calls, and that the compiler does not put
/// into it, follows the build. Each may be `= false`, to be exact where the build is not:
///
/// | option | what may differ | nvcc |
/// |---|---|---|
/// | `ftz` | subnormal `f32`s count as zero | `-ftz=true` |
/// | `approx_div` | `/` of `f32` is at most 2 ulp off | `-prec-div=false` |
/// | `approx_sqrt` | `sqrt` of `f32` has a relative error of at most 2^-23 | `-prec-sqrt=false` |
/// | `contract` | `a * b + c` may round once | `-fmad=true` |
/// | `fast_math` | all of these | `-use_fast_math` |
///
/// A kernel may have type and const parameters; its options list what it is compiled for, and every
/// combination is: `#[kernel(T = [f32, f64], N = [4, 8])]`. The launch function has the same
/// parameters, inferred or named; an instance that is not listed is a compile error.
#[proc_macro_attribute]
pub fn kernel(_options: TokenStream, item: TokenStream) -> TokenStream {
    let message = "`#[kernel]` stands on functions directly inside a module marked `#[ferrogrid::module]`";
    let error = syn::Error::new(proc_macro2::Span::call_site(), message).to_compile_error();
    let mut output = TokenStream::from(error);
    output.extend(item);
    output
}

/// Puts a value into the constant memory of devices: a `static` of a `#[ferrogrid::module]`, declared as
/// `Constant<T>`, where `T` is `DeviceCopy`.
///
/// Kernels of the module and its private functions read it under its name; on the host the name is a
/// `DeviceConstant<T>`, which sets it and reads it back in the order of streams. The constants of a program have
/// at most 65536 bytes together.
#[proc_macro_attribute]
pub fn constant(_options: TokenStream, item: TokenStream) -> TokenStream {
    let message = "`#[constant]` stands on statics directly inside a module marked `#[ferrogrid::module]`";
    let error = syn::Error::new(proc_macro2::Span::call_site(), message).to_compile_error();
    let mut output = TokenStream::from(error);
    output.extend(item);
    output
}

/// Derives `DeviceCopy` for a `#[repr(C)]` or `#[repr(transparent)]` struct whose fields are all
/// `DeviceCopy`, or for an enum with an integer `repr` or, if its variants have data, `#[repr(C)]`, whose fields
/// all are.
#[proc_macro_derive(DeviceCopy)]
pub fn device_copy(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    derive::device_copy(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
