//! The attribute macros. `#[module]` turns a module of kernels into launch functions (host half) or into PTX
//! entry points (device half); `FERROGRID_EXPAND` selects the half. The grammar is that of
//! `ferrogrid-syntax`.

#![deny(missing_docs)]

mod crate_path;
mod derive;
mod expand;

use proc_macro::TokenStream;
use syn::punctuated::Punctuated;
use syn::{DeriveInput, ItemMod, parse_macro_input};

/// Makes the kernels of an inline module launchable.
///
/// Every `#[kernel]` function in it becomes a typed launch function of the same name, which takes a stream
/// and a grid before the kernel's own arguments, and a companion module of the same name with the kernel's
/// descriptor, grid and block shape. `ferrogrid_build::compile()`, called from the crate's `build.rs`,
/// compiles the kernel itself for the device; the CPU device runs native code. All other items of the module
/// (functions, structs, constants, imports) exist on both sides.
///
/// `#[ferrogrid::module(host_only)]` builds no device code: such kernels run on CPU devices only,
/// and need no `build.rs`.
///
/// `#[ferrogrid::module(arch = ["sm_75"])]` compiles its kernels for these architectures only, whatever the
/// package lists for other modules. `FERROGRID_ARCH` selects from the list.
///
/// ```
/// use ferrogrid::prelude::*;
///
/// #[ferrogrid::module(host_only)] // in a crate with a build.rs: #[ferrogrid::module]
/// mod kernels {
///     use ferrogrid::device::prelude::*;
///
///     /// y <- x^2 + y
///     #[kernel]
///     pub fn add_squares(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
///         let i = t.index();
///         if let Some(y) = y.get_mut(i) {
///             *y += square(x[i.get()]);
///         }
///     }
///
///     fn square(x: f32) -> f32 {
///         x * x
///     }
/// }
///
/// fn main() -> ferrogrid::Result<()> {
/// #   let device = Device::cpu();
/// #   #[cfg(any())]
///     let device = Device::best()?;
///     let stream = device.new_stream()?;
///     let x = stream.upload(&[1.0, 2.0, 3.0])?;
///     let mut y = stream.upload(&[10.0, 20.0, 30.0])?;
///     kernels::add_squares(&stream, Grid::cover(3), &x, &mut y)?; // the launch function
///     assert_eq!(stream.download(&y)?, [11.0, 24.0, 39.0]);
///     assert_eq!(kernels::add_squares::kernel().rank(), 1); // the companion module
///     Ok(())
/// }
/// ```
///
/// A package that renames the dependency, `fg = { package = "ferrogrid", .. }`, needs nothing more if it has
/// a build step; without one write `#[fg::module(host_only, crate = fg)]`.
///
/// Functions of other device code, such as CUDA C++, are declared in an `unsafe extern "C"` block.
/// `#[link(file = "f.ptx")]` on the block names their code, relative to the source file, and
/// `#[native(path)]` on a function names its replacement on the CPU device. They are linked when the module
/// is loaded on a GPU; `ferrogrid::Kernel::link_with` adds code at run time.
///
/// # Errors
/// Mistakes in a kernel are compile errors at their place in the source. A module that the build step has not
/// compiled, or has compiled from other text, is a compile error that says what to do. The launch functions
/// return `ferrogrid::Error` for a grid, a block or arguments that the kernel or the device does not support.
/// The next synchronisation of the stream reports errors of the running kernel.
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

/// Marks a function of a `#[ferrogrid::module]` as a kernel.
///
/// A kernel takes a `Thread<R>` and parameters of these kinds, and returns nothing:
///
/// | in the kernel | at the launch |
/// |---|---|
/// | `Thread<R>`, `R` = 1, 2, 3 | a grid of rank `R` |
/// | a `DeviceCopy` value, or a tuple of such | the same, by value |
/// | `&[T]` | `&DeviceBuffer<T>` or a view of one |
/// | `&[DeviceAtomic<T>]`, `&[AtomicU32]` and core's other 32- and 64-bit atomics | an atomic view: `buffer.as_atomic()` |
/// | `Plane<T>` | a view of rank 2, `buffer.view_2d(width, height)?` |
/// | `DisjointSlice<T>` | `&mut DeviceBuffer<T>` or a mutable view |
/// | `DisjointSlice<T, 2>`, `DisjointSlice<T, 3>` | a mutable view of that rank |
/// | `DisjointTiles<T, W, H>`, `DisjointRows<T>` | a mutable view of rank 2 |
/// | `Shared<[T; N]>`, `Shared<[[T; W]; H]>`, `Shared<Padded<T, W, H>>` | nothing |
/// | `SharedSlice<T>` | its length |
/// | `*const T`, `*mut T` (`unsafe fn` only) | `DevicePtr<T>`, `DevicePtrMut<T>` |
///
/// The launch function has the kernel's name and takes the stream and the grid before them. In place of
/// buffers it also takes host slices, for one launch: `In(&x)`, `Out(&mut y)`, `InOut(&mut y)`.
///
/// Options are promises about every launch. The launch checks them, and the compiler uses them to allocate
/// registers:
///
/// | option | promise | PTX |
/// |---|---|---|
/// | `block = [x, y]` | blocks have exactly this shape (one number for each dimension of the grid, or a constant: `block = TILE`, `block = [config::WIDTH, 8]`) | `.reqntid` |
/// | `max_threads = n` | no block has more threads | `.maxntid` |
/// | `cluster = [x, y]` | clusters of this many blocks along each axis, at most 16 in all: `t.sync_cluster()` waits for them, and blocks read each other's shared memory (`t.publish_cluster(..)`); from `sm_90` on | `.reqnctapercluster` |
/// | `cluster` | the same, with a size per launch: `Grid::cover(n).with_cluster([x, y])`; by default each block is a cluster | |
/// | `same_shape(x, y)` | these slices have equal extents: one bounds check serves all | |
/// | `wide` | none: lengths are 64 bits wide, which is slower, so slices may have 2^32 elements or more along an axis; other kernels' launches reject them | |
/// | `cooperative` | all blocks are on the device at the same time: `t.sync_grid()` waits for all of them | |
/// | `dependent_launch` | a launch may begin before the previous one on its stream has ended (programmatic dependent launch), which hides launch latency; each thread first waits for that end, so results stay the same; no textures; from `sm_90` on | `griddepcontrol.wait` |
/// | `native = path` | none: the CPU device calls this function in place of the kernel, as [below](#native-bodies) | |
/// | `min_blocks = n` | none: the minimum number of resident blocks per multiprocessor to aim for | `.minnctapersm` |
/// | `max_registers = n` | no thread has more registers, 24 to 255 (not together with `min_blocks`) | `.maxnreg` |
///
/// The following options make arithmetic less exact on a GPU for this kernel. Functions that are not inlined
/// into it follow the build's options. Each may be `= false`, to be exact where the build is not:
///
/// | option | what may differ | nvcc |
/// |---|---|---|
/// | `ftz` | subnormal `f32`s count as zero | `-ftz=true` |
/// | `approx_div` | `/` of `f32` is at most 2 ulp off | `-prec-div=false` |
/// | `approx_sqrt` | `sqrt` of `f32` has a relative error of at most 2^-23 | `-prec-sqrt=false` |
/// | `contract` | `a * b + c` may round once | `-fmad=true` |
/// | `fast_math` | all of these | `-use_fast_math` |
///
/// A kernel may have type and const parameters. Its options list the arguments that it is compiled for, in
/// every combination: `#[kernel(T = [f32, f64], N = [4, 8])]`. The launch function has the same parameters,
/// inferred or named; an instance that is not listed is a compile error. `#[cfg(...)]` before an argument lists it only where
/// that holds: `T = [f32, #[cfg(feature = "half")] f16]`.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// y <- x^N, in blocks of 128 threads.
/// #[kernel(block = 128, T = [f32, f64], N = [2, 3], same_shape(x, y))]
/// pub fn powers<T: Float, const N: i32>(t: Thread<1>, x: &[T], mut y: DisjointSlice<T>) {
///     let i = t.index();
///     if let Some(y) = y.get_mut(i) {
///         *y = x[i.get()].powi(N);
///     }
/// }
///
/// /// The sum of each row, one block each.
/// #[kernel(max_threads = 256)]
/// pub fn sums(t: Thread<1>, x: Plane<f64>, mut sums: DisjointRows<f64>, mut scratch: Shared<Scratch<f64>>) {
///     let row = &x[t.block_idx()[0] as usize];
///     let mine = t.block_stride(row.len()).map(|i| row[i]).sum();
///     let sum = t.block_reduce(&mut scratch, mine, |a, b| a + b);
///     sums.fill_with(&t, |_| sum);
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&[1.0, 2.0, 3.0, 4.0])?;
/// let (mut y, mut sums) = (stream.zeros::<f64>(4)?, stream.zeros(2)?);
/// kernels::powers::<f64, 3>(&stream, Grid::cover(4), &x, &mut y)?;
/// kernels::sums(&stream, Grid::new(2, 64), y.view_2d(2, 2)?, sums.view_2d_mut(1, 2)?)?;
/// assert_eq!(stream.download(&sums)?, [9.0, 91.0]);
/// # Ok(()) }
/// ```
///
/// A host function that launches a generic kernel for any of its instances needs a bound from the kernel's
/// companion module, which implies the bounds of the kernel's first type parameter: `T:
/// kernels::scale::Instance`, with further parameters `T: kernels::powers::Instance<N>`, and without types
/// `(): kernels::add::Instance<N>`. The companion module also has `grid(n)`, the grid for `n` elements with
/// the kernel's block shape (for `DisjointRows`, of `n` blocks; for `DisjointTiles`, of a block for each
/// tile), and `BLOCK`, the fixed shape of a block.
///
/// ```
/// # use ferrogrid::prelude::*;
/// #[ferrogrid::module(host_only)] // in a crate with a build.rs: #[ferrogrid::module]
/// mod kernels {
///     use ferrogrid::device::prelude::*;
///
///     const TILE: usize = 128;
///
///     /// x <- factor * x
///     #[kernel(block = TILE, T = [f32, f64, u32])]
///     pub fn scale<T: DeviceCopy + core::ops::Mul<Output = T>>(t: Thread<1>, factor: T, mut x: DisjointSlice<T>) {
///         if let Some(x) = x.get_mut(t.index()) {
///             *x = *x * factor;
///         }
///     }
/// }
///
/// /// Scales twice, for any type of number.
/// fn scale_twice<T: kernels::scale::Instance>(stream: &Stream, factor: T, x: &mut DeviceBuffer<T>) -> ferrogrid::Result<()> {
///     let grid = kernels::scale::grid(x.len());
///     kernels::scale(stream, grid, factor, &mut *x)?;
///     kernels::scale(stream, grid, factor, x)
/// }
///
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let mut x = stream.upload(&[1.0_f64, 2.0])?;
/// scale_twice(&stream, 3.0, &mut x)?;
/// assert_eq!(stream.download(&x)?, [9.0, 18.0]);
/// assert_eq!(kernels::scale::BLOCK, [128, 1, 1]);
/// # Ok(()) }
/// ```
///
/// Slices of the host for one launch, a tuple, and an `unsafe fn`, which reads and writes through raw pointers:
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// y <- a*x + b
/// #[kernel]
/// pub fn line(t: Thread<1>, factors: (f32, f32), x: &[f32], mut y: DisjointSlice<f32>) {
///     let (a, b) = factors;
///     for i in t.grid_stride(y.len()) {
///         if let Some(y) = y.get_mut(i) {
///             *y = a * x[i.get()] + b;
///         }
///     }
/// }
///
/// /// Reverses `n` numbers in place.
/// ///
/// /// # Safety
/// /// `x` has `n` elements, which no other code accesses.
/// #[kernel]
/// pub unsafe fn reverse(t: Thread<1>, n: u32, x: *mut f32) {
///     let i = t.index().get();
///     if i < n as usize / 2 {
///         // SAFETY: both are below `n`, and only this thread reaches these two.
///         unsafe { x.add(i).swap(x.add(n as usize - 1 - i)) };
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{In, Out};
///
/// let (x, mut y) = ([1.0, 2.0, 3.0], [0.0; 3]);
/// kernels::line(&stream, Grid::cover(3), (2.0, 0.5), In(&x), Out(&mut y))?;
/// assert_eq!(y, [2.5, 4.5, 6.5]);
/// let mut y = stream.upload(&y)?;
/// // SAFETY: three elements, and nothing else uses the buffer before the stream has run the kernel.
/// unsafe { kernels::reverse(&stream, Grid::cover(3), 3, y.as_device_ptr_mut())? };
/// assert_eq!(stream.download(&y)?, [6.5, 4.5, 2.5]);
/// # Ok(()) }
/// ```
///
/// Barriers (`t.sync_threads()`, `t.publish(..)`, block-wide operations) are safe, in kernels and in
/// functions that they call. The build step proves on the compiled code that all threads that a barrier waits
/// for reach it, and rejects the program otherwise.
///
/// # Native bodies
/// On the CPU device threads that wait for each other take turns, which is slow. With `native = path` the device calls a function
/// of the host instead, once for the launch: in stream order, on its own threads, which are those of rayon in that function.
/// Its results are to be those of the kernel. It has the kernel's generic parameters, and of its parameters:
///
/// | parameter of the kernel | in the native body |
/// |---|---|
/// | `Thread<R>` | `[u32; R]`, the number of blocks along each axis |
/// | values and tuples, `&[T]` | the same |
/// | `DisjointSlice<T>`, `DisjointChunks<T, N>`, `DisjointWarps<T, RUN, N>` | `&mut [T]`, all of it |
/// | `Shared<A>`, `BlockOrder<T>` | nothing |
///
/// A kernel with other parameters has none. A panic is `Error::KernelPanic` with block 0 and thread 0. A device of
/// `CpuOptions::without_native_bodies` runs the kernel, to test or debug that.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// /// sums[b] <- the sum of the 256 elements of block `b`
/// #[kernel(block = 256, native = super::sums_of_blocks)]
/// pub fn sums(t: Thread<1>, x: &[u32], mut sums: DisjointChunks<u32, 1>, mut scratch: Shared<Scratch<u32>>) {
///     let own = x.get(t.index().get()).copied().unwrap_or(0);
///     let sum = t.block_reduce(&mut scratch, own, |a, b| a + b);
///     sums.fill_with(&t, |_| sum);
/// }
/// # }
/// /// The same, by rayon's `par_chunks` where there are many elements.
/// fn sums_of_blocks(_blocks: [u32; 1], x: &[u32], sums: &mut [u32]) {
///     x.chunks(256).zip(sums).for_each(|(x, sum)| *sum = x.iter().sum());
/// }
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::CpuOptions;
///
/// for device in [Device::cpu(), Device::cpu_with(CpuOptions::new().without_native_bodies())?] {
///     let stream = device.new_stream()?;
///     let (x, mut sums) = (stream.fill(2, 1000)?, stream.zeros(4)?);
///     kernels::sums(&stream, Grid::blocks(4), &x, &mut sums)?;
///     assert_eq!(stream.download(&sums)?, [512, 512, 512, 464]);
/// }
/// # Ok(()) }
/// ```
#[proc_macro_attribute]
pub fn kernel(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("`#[kernel]` belongs on functions directly inside a module marked `#[ferrogrid::module]`", item)
}

/// Makes a function that computes one element of a `#[ferrogrid::module]` a kernel over whole slices (CuPy's and PyCUDA's
/// `ElementwiseKernel`, Thrust's `transform`).
///
/// Each parameter says by its type what it stands for:
///
/// | in the function | for each element | at the launch |
/// |---|---|---|
/// | `&T` | its element of an input | `&DeviceBuffer<T>` or a view of one |
/// | `&mut T` | its element of an output, to read and write | `&mut DeviceBuffer<T>` or a mutable view |
/// | `-> T` | its element of an output | the same, as the last argument |
/// | a `DeviceCopy` value, or a tuple of such | the same value | the value |
/// | `&[T]`, `Plane<T>`, `Volume<T>`, `Texture<V, R>` | memory that all elements read | as for a `#[kernel]` |
/// | `#[index] i: usize` | its number | nothing |
///
/// The launch function has the function's name and takes the stream before its arguments, but no grid. The inputs and outputs
/// of elements have equal lengths, which it checks. They may have any length, 2^32 elements and more, and begin anywhere. A
/// thread computes the elements that have 16 bytes together, and moves those bytes at once if all slices are aligned to
/// 16 bytes.
///
/// The function may call others, read `#[constant]`s, and be generic: the attribute lists the instances,
/// `#[elementwise(T = [f32, f64])]`. It has also the options for arithmetic of `#[kernel]`, such as `fast_math`, and
/// `max_registers`.
///
/// ```
/// use ferrogrid::prelude::*;
///
/// #[ferrogrid::module(host_only)] // in a crate with a build.rs: #[ferrogrid::module]
/// mod kernels {
///     use ferrogrid::device::prelude::*;
///
///     /// y <- a*x + y
///     #[elementwise(T = [f32, f64])]
///     pub fn axpy<T: Float + DeviceCopy>(a: T, x: &T, y: &mut T) {
///         *y = a * *x + *y;
///     }
///
///     /// The names of the elements' classes, and how many elements stand before each.
///     #[elementwise]
///     pub fn classify(#[index] i: usize, class: &u8, names: &[u32], before: &mut u64) -> u32 {
///         *before = i as u64;
///         names[usize::from(*class)]
///     }
/// }
///
/// fn main() -> ferrogrid::Result<()> {
/// #   let device = Device::cpu();
/// #   #[cfg(any())]
///     let device = Device::best()?;
///     let stream = device.new_stream()?;
///     let (x, mut y) = (stream.upload(&[1.0, 2.0, 3.0])?, stream.fill(0.5, 3)?);
///     kernels::axpy(&stream, 10.0, &x, &mut y)?;
///     assert_eq!(stream.download(&y)?, [10.5, 20.5, 30.5]);
///
///     let (classes, names) = (stream.upload(&[1_u8, 0, 1])?, stream.upload(&[70_u32, 80])?);
///     let (mut before, mut found) = (stream.zeros(3)?, stream.zeros(3)?);
///     kernels::classify(&stream, &classes, &names, &mut before, &mut found)?;
///     assert_eq!(stream.download(&found)?, [80, 70, 80]);
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn elementwise(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced(
        "`#[elementwise]` belongs on functions directly inside a module marked `#[ferrogrid::module]`",
        item,
    )
}

/// Makes a function of one element of a `#[ferrogrid::module]` a reduction of whole slices (CuPy's and PyCUDA's
/// `ReductionKernel`, Thrust's `transform_reduce`).
///
/// The function returns what one element contributes, an accumulator, and these options say what becomes of it:
///
/// | option | meaning |
/// |---|---|
/// | `identity = 0.0` | the accumulator of no elements |
/// | `combine = \|a, b\| a + b` | the accumulator of two parts: a closure or the path of a function, associative and commutative |
/// | `finish = \|total: f32\| -> f32 { total.sqrt() }` | if there: the result from the last accumulator. A closure has its type behind the arrow; without one it is that of accumulators |
///
/// Parameters are those of [`#[elementwise]`](macro@elementwise) that are read. Accumulators are numbers, arrays and tuples of
/// them, or structs with `#[derive(DeviceCopy)]` that take any bits, of any size: so one pass finds mean and variance, or sum
/// and maximum. Nothing is stored for the elements.
///
/// `kernels::norm(&stream, &x)?` waits for the value and returns it. `kernels::norm_into(&stream, &x, &mut out)?` writes it to
/// the first element of `out` in stream order, without waiting, and can be recorded in a graph. Both launch the kernels
/// `norm_in_blocks` and, for more than 4096 elements or with `finish`, `norm_of_blocks`.
///
/// The order in which values are combined depends on the length alone. So floating-point results have the same bits in each
/// run, on each GPU and on the CPU device, as far as the function itself has.
///
/// ```
/// use ferrogrid::prelude::*;
///
/// #[ferrogrid::module(host_only)] // in a crate with a build.rs: #[ferrogrid::module]
/// mod kernels {
///     use ferrogrid::device::prelude::*;
///
///     /// The Euclidean distance of two vectors.
///     #[reduction(identity = 0.0, combine = |a, b| a + b, finish = |sum: f32| sum.sqrt())]
///     pub fn distance(x: &f32, y: &f32) -> f32 {
///         (x - y) * (x - y)
///     }
///
///     /// The sum of some elements, and the greatest of them.
///     #[derive(Clone, Copy, DeviceCopy)]
///     #[repr(C)]
///     pub struct Summary {
///         pub sum: f64,
///         pub greatest: f64,
///     }
///
///     const NOTHING: Summary = Summary { sum: 0.0, greatest: f64::NEG_INFINITY };
///
///     fn both(a: Summary, b: Summary) -> Summary {
///         Summary { sum: a.sum + b.sum, greatest: a.greatest.max(b.greatest) }
///     }
///
///     #[reduction(identity = NOTHING, combine = both)]
///     pub fn summary(x: &f64) -> Summary {
///         Summary { sum: *x, greatest: *x }
///     }
/// }
///
/// fn main() -> ferrogrid::Result<()> {
/// #   let device = Device::cpu();
/// #   #[cfg(any())]
///     let device = Device::best()?;
///     let stream = device.new_stream()?;
///     let (x, y) = (stream.upload(&[3.0, 0.0])?, stream.upload(&[0.0, 4.0])?);
///     assert_eq!(kernels::distance(&stream, &x, &y)?, 5.0);
///
///     let mut summary = stream.upload(&[kernels::Summary { sum: 0.0, greatest: 0.0 }])?;
///     kernels::summary_into(&stream, &stream.upload(&[1.0, 7.0, 2.0])?, &mut summary)?;
///     let kernels::Summary { sum, greatest } = stream.download(&summary)?[0];
///     assert_eq!((sum, greatest), (10.0, 7.0));
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn reduction(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced(
        "`#[reduction]` belongs on functions directly inside a module marked `#[ferrogrid::module]`",
        item,
    )
}

/// Makes a function of one element of a `#[ferrogrid::module]` a scan of whole slices: each element combined with all before it
/// (Thrust's `transform_inclusive_scan` and `transform_exclusive_scan`, PyCUDA's `GenericScanKernel`).
///
/// The function returns what one element contributes, an accumulator, and these options say what becomes of it:
///
/// | option | meaning |
/// |---|---|
/// | `identity = 0.0` | the accumulator of no elements |
/// | `combine = \|a, b\| a + b` | the accumulator of two neighbouring parts: a closure or the path of a function, associative |
/// | `exclusive` | if there: a result has what is before its element; else it has the element, too |
/// | `finish = \|total: f32\| -> f32 { start + total }` | if there: each result from its accumulator. It sees the values and whole slices among the parameters by their names. A closure has its type behind the arrow; without one it is that of accumulators |
///
/// Parameters are those of [`#[elementwise]`](macro@elementwise) that are read. The last argument of the launch,
/// `out`, is for the results: as many as there are elements. The launch function takes no grid, and can be recorded in a
/// graph.
///
/// Accumulators have at most 16 bytes: numbers, tuples of them, or structs with `#[derive(DeviceCopy)]`. `combine` need not be
/// commutative. A pair of a flag and a value, say, scans by key: it begins anew where the flag is set.
///
/// It reads each element once and writes each result once (decoupled look-back). Blocks are combined as they finish, so sums of
/// floats may differ in their last bits from run to run.
///
/// ```
/// use ferrogrid::prelude::*;
///
/// #[ferrogrid::module(host_only)] // in a crate with a build.rs: #[ferrogrid::module]
/// mod kernels {
///     use ferrogrid::device::prelude::*;
///
///     /// The balance after each day: what was there, and all differences.
///     #[scan(identity = 0, combine = |a, b| a + b, finish = |all| start + all)]
///     pub fn balance(start: i64, paid_in: &i32, paid_out: &i32) -> i64 {
///         i64::from(*paid_in) - i64::from(*paid_out)
///     }
///
///     /// Where each word begins, by its length.
///     #[scan(exclusive, identity = 0, combine = |a, b| a + b)]
///     pub fn starts(length: &u8) -> u32 {
///         u32::from(*length)
///     }
/// }
///
/// fn main() -> ferrogrid::Result<()> {
/// #   let device = Device::cpu();
/// #   #[cfg(any())]
///     let device = Device::best()?;
///     let stream = device.new_stream()?;
///     let (paid_in, paid_out) = (stream.upload(&[5, 0, 7])?, stream.upload(&[0, 20, 1])?);
///     let mut balances = stream.zeros(3)?;
///     kernels::balance(&stream, 100, &paid_in, &paid_out, &mut balances)?;
///     assert_eq!(stream.download(&balances)?, [105, 85, 91]);
///
///     let mut starts = stream.zeros(3)?;
///     kernels::starts(&stream, &stream.upload(&[3, 5, 2])?, &mut starts)?;
///     assert_eq!(stream.download(&starts)?, [0, 3, 8]);
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn scan(_options: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("`#[scan]` belongs on functions directly inside a module marked `#[ferrogrid::module]`", item)
}

/// Makes a comparison of two elements in a `#[ferrogrid::module]` a module of algorithms in that order: a stable merge sort, merges,
/// binary search and sets (CUB's `DeviceMergeSort`, Thrust's functions with a comparison).
///
/// The function says whether `a` is before `b`. It must be a strict weak order, as `<` of numbers without NaN is; else results have any
/// elements. Kernels of the module can call it, too. A module of its name has these functions, each for a stream:
///
/// | function | result |
/// |---|---|
/// | `merge_sort(&stream, &x, &mut y)` | the elements of `x`, sorted; equal ones stay in order |
/// | `merge(&stream, &a, &b, &mut y)` | those of two sorted slices, sorted; of equal ones those of `a` come first |
/// | `lower_bound(&stream, &sorted, &values, &mut found)`, `upper_bound` | for each value how many elements are before it, or not after it |
/// | `set_union(&stream, &a, &b, &mut y)`, `set_intersection`, `set_difference`, `set_symmetric_difference` | sets of two sorted slices, with equal elements as C++'s and Thrust's; they return how many there are |
/// | `set_union_into(&stream, &a, &b, &mut y, &mut count)` and so on | the same, with the number left on the device |
///
/// `#[comparison(merge_sort, lower_bound)]` has only those that it lists: the others' kernels need not be compiled. Options of kernels
/// such as `max_registers` come after them.
///
/// Elements are `DeviceCopy` and `SharedElement`, of at most 64 bytes for sorts and merges: a key with its value, say. Sort the indices of
/// larger ones. All but what waits for a number can be recorded in a graph.
///
/// ```
/// use ferrogrid::prelude::*;
///
/// #[ferrogrid::module(host_only)] // in a crate with a build.rs: #[ferrogrid::module]
/// mod kernels {
///     use ferrogrid::device::prelude::*;
///
///     #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
///     #[repr(C)]
///     pub struct Event {
///         pub day: u32,
///         pub person: u32,
///     }
///
///     #[comparison]
///     pub fn by_day(a: &Event, b: &Event) -> bool {
///         a.day < b.day
///     }
/// }
///
/// fn main() -> ferrogrid::Result<()> {
/// #   let device = Device::cpu();
/// #   #[cfg(any())]
///     let device = Device::best()?;
///     let stream = device.new_stream()?;
///     let event = |day, person| kernels::Event { day, person };
///     let events = stream.upload(&[event(7, 1), event(3, 2), event(7, 0)])?;
///     let mut sorted = stream.zeros(3)?;
///     kernels::by_day::merge_sort(&stream, &events, &mut sorted)?;
///     assert_eq!(stream.download(&sorted)?, [event(3, 2), event(7, 1), event(7, 0)]);
///
///     let (days, mut kept) = (stream.upload(&[event(4, 0), event(7, 0)])?, stream.zeros(3)?);
///     let count = kernels::by_day::set_difference(&stream, &sorted, &days, &mut kept)?;
///     assert_eq!(stream.download(&kept)?[..count], [event(3, 2), event(7, 0)]);
///     Ok(())
/// }
/// ```
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
