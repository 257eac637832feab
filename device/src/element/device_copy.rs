//! [`DeviceCopy`]: the types whose values may be copied between host and device.

use core::marker::PhantomData;
use core::mem::{MaybeUninit, offset_of};
use core::num::{NonZero, Wrapping};

use crate::element::layout;

/// A type whose values mean the same on the host and on every device, bit for bit.
///
/// Scalars passed to kernels and elements of device buffers are `DeviceCopy`. Derive it for your own structs:
/// `#[derive(Clone, Copy, DeviceCopy)] #[repr(C)]`; every field must be `DeviceCopy` too. Enums need
/// `#[repr(u8)]` or the like; enums with data may have `#[repr(C)]`. References and pointers are not
/// `DeviceCopy`: a host address means nothing on a device. Nor are types that are not `Send + Sync`: the CPU
/// device runs kernels on its own threads, and any thread may download a buffer.
///
/// # What the derive implements
/// Each of these where it holds for all fields:
///
/// | trait | for | it needs |
/// |---|---|---|
/// | [`bytemuck::Zeroable`] | `stream.zeros()` | fields of which all bits may be 0; of an enum without data, a variant that is 0 |
/// | [`bytemuck::Pod`] | casts of views, kernels from text | fields of which any bits are a value, and no padding (a generic struct: fields of one type) |
/// | [`bytemuck::NoUninit`] | casts of views to bytes | an enum without data (of structs, `Pod` has it) |
/// | [`SharedElement`](crate::SharedElement), [`ClusterElement`](crate::ClusterElement) | shared memory | fields of which any bits are a value |
/// | [`Exchange`](crate::warp::Exchange) | shuffles, reductions, scans | fields that are `Exchange` |
///
/// So safe code may turn any bits into a value of the type. If `unsafe` code relies on an invariant of the
/// fields, or if the type implements these traits itself, write `#[device_copy(invariant)]`. The derive then
/// implements `DeviceCopy` alone.
///
/// Padding bytes are uninitialised, so a struct with padding cannot be cast to bytes. Make the padding a
/// field:
///
/// ```
/// # use ferrogrid::prelude::*;
/// #[derive(Clone, Copy, DeviceCopy)]
/// #[repr(C)]
/// struct Tagged {
///     value: f32,
///     tag: u8,
///     padding: [u8; 3],
/// }
/// # fn main() -> ferrogrid::Result<()> {
/// let stream = Device::cpu().new_stream()?;
/// let tagged = stream.zeros::<Tagged>(2)?; // any field 0
/// let bytes = stream.download(tagged.view().cast::<u8>()?)?;
/// assert_eq!(ferrogrid::bytemuck::cast_slice::<u8, Tagged>(&bytes)[1].tag, 0);
/// # Ok(()) }
/// ```
///
/// # Tuples and options
/// The compiler chooses the layout of a tuple, and host and device have different compilers. A tuple of
/// `DeviceCopy` types is `DeviceCopy` nevertheless: the build compares the offsets of its members on both
/// sides, and fails where they differ. For bytes, and for other languages, use a struct: a tuple is not
/// `Pod`.
///
/// The same holds for an `Option` of `bool`, and of types that take any bits: numbers, arrays and tuples of
/// them, and structs that derive `DeviceCopy` with such fields. The build also compares how they represent
/// `None`. std promises that 0 is `None` for `Option<NonZero<u32>>` and the like, so these may be zeroed; for
/// other options `stream.upload(&vec![None; len])` makes a buffer. An `Option` of any other type represents
/// `None` by bits within the value, which differ between compilers (as for `char` between rustc 1.96 and
/// 1.97). Write `#[repr(C)] enum Maybe { Nothing, Just(char) }` instead.
///
/// # Example
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// #[derive(Clone, Copy, DeviceCopy)]
/// #[repr(C)]
/// pub struct Particle {
///     pub place: [f32; 2],
///     pub speed: [f32; 2],
/// }
///
/// #[derive(Clone, Copy, DeviceCopy)]
/// #[repr(u32)]
/// pub enum Walls {
///     Open,
///     Closed,
/// }
///
/// #[kernel]
/// pub fn advance(t: Thread<1>, walls: Walls, mut particles: DisjointSlice<Particle>) {
///     let Some(particle) = particles.get_mut(t.index()) else { return };
///     for axis in 0..2 {
///         particle.place[axis] += particle.speed[axis];
///         if matches!(walls, Walls::Closed) {
///             particle.place[axis] = particle.place[axis].clamp(0.0, 1.0);
///         }
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let particle = kernels::Particle { place: [0.5, 0.5], speed: [0.25, 0.75] };
/// let mut particles = stream.upload(&[particle])?;
/// kernels::advance(&stream, Grid::cover(1), kernels::Walls::Closed, &mut particles)?;
/// assert_eq!(stream.download(&particles)?[0].place, [0.75, 1.0]);
/// # Ok(()) }
/// ```
///
/// # Safety
/// The layout must be equal on the host and on `nvptx64-nvidia-cuda`: either defined (`repr(C)`,
/// `repr(transparent)`, or a primitive), or hashed in `LAYOUT`, which the build compares. The value must
/// contain no address and own nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be copied to a device",
    label = "not `DeviceCopy`",
    note = "kernel parameters and buffer elements are numbers, arrays and tuples of them, or structs with `#[derive(Clone, Copy, DeviceCopy)] #[repr(C)]`, and `Option`s of what may have any bits, `bool` and `NonZero`; of others write `#[derive(Clone, Copy, DeviceCopy)] #[repr(C)] enum Maybe {{ Nothing, Just(Walls) }}`; host references, pointers, `Vec`, `String` and the like stay on the host"
)]
pub unsafe trait DeviceCopy: Copy + Send + Sync + 'static {
    /// A hash of names, order and types of the fields, as far as they are known. The build compares it
    /// between host and device.
    #[doc(hidden)]
    const LAYOUT: u64 = 0;
}

macro_rules! device_copy {
    ($($ty:ty),* $(,)?) => { $(
        // SAFETY: a primitive whose size, alignment and encoding are the same on every 64-bit host
        // and on nvptx64 (sizes and alignments of kernel parameters are checked again at build).
        unsafe impl DeviceCopy for $ty {
            const LAYOUT: u64 = layout::of_type(stringify!($ty), &[]);
        }
    )* };
}

device_copy!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64, bool, char, ());

// SAFETY: an array is its elements, one after the other, on both sides.
unsafe impl<T: DeviceCopy, const N: usize> DeviceCopy for [T; N] {
    const LAYOUT: u64 = layout::of_array(N as u64, T::LAYOUT);
}
// SAFETY: transparent over `T`.
unsafe impl<T: DeviceCopy> DeviceCopy for MaybeUninit<T> {
    const LAYOUT: u64 = T::LAYOUT;
}
// SAFETY: transparent over `T`.
unsafe impl<T: DeviceCopy> DeviceCopy for Wrapping<T> {
    const LAYOUT: u64 = T::LAYOUT;
}
// SAFETY: has no bytes; the bounds keep its type's `Send` and `Sync`.
unsafe impl<T: Send + Sync + 'static> DeviceCopy for PhantomData<T> {}

macro_rules! non_zero {
    ($($ty:ty),*) => { $(
        // SAFETY: has the layout of its number.
        unsafe impl DeviceCopy for NonZero<$ty> {
            const LAYOUT: u64 = layout::of_type("NonZero", &[("", <$ty as DeviceCopy>::LAYOUT)]);
        }
        // SAFETY: has the layout of its number, and 0 is `None`, as std promises for these.
        unsafe impl DeviceCopy for Option<NonZero<$ty>> {
            const LAYOUT: u64 = layout::of_type("Option", &[("", <$ty as DeviceCopy>::LAYOUT)]);
        }
    )* };
}

non_zero!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

macro_rules! tuple {
    ($($member:ident $place:tt)*) => {
        // SAFETY: the places of the members, the size and the alignment are in `LAYOUT`.
        unsafe impl<$($member: DeviceCopy),*> DeviceCopy for ($($member,)*) {
            const LAYOUT: u64 = layout::of_type("tuple", &[
                ("", size_of::<Self>() as u64),
                ("", align_of::<Self>() as u64),
                $(("", offset_of!(Self, $place) as u64), ("", $member::LAYOUT)),*
            ]);
        }
    };
}

tuple!(A 0);
tuple!(A 0 B 1);
tuple!(A 0 B 1 C 2);
tuple!(A 0 B 1 C 2 D 3);
tuple!(A 0 B 1 C 2 D 3 E 4);
tuple!(A 0 B 1 C 2 D 3 E 4 F 5);
tuple!(A 0 B 1 C 2 D 3 E 4 F 5 G 6);
tuple!(A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7);

const _: () = assert!(size_of::<usize>() == 8, "Ferrogrid needs a 64-bit host: devices are 64-bit");

/// A type that may be the element of a kernel's `&[T]`: everything that is [`DeviceCopy`], and types that
/// threads change in place: [`DeviceAtomic`](crate::atomic::DeviceAtomic), or core's `AtomicU32`,
/// `AtomicI32`, `AtomicU64` and `AtomicI64`.
///
/// Core's atomics are correct on a GPU, but slower than `DeviceAtomic`: any operation except load, store and
/// compare-and-exchange is `SeqCst` and system-wide there, whatever ordering the program asks for.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # #[ferrogrid::module(host_only)]
/// # mod kernels {
/// # use ferrogrid::device::prelude::*;
/// use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// use ferrogrid::device::SliceElement;
///
/// /// The element that `each` consecutive threads share, of any slice of a kernel.
/// fn of_group<'x, T: SliceElement>(t: &Thread<1>, x: &'x [T], each: usize) -> &'x T {
///     &x[t.index().get() / each]
/// }
///
/// /// Counts, for each 4 elements, those that are above the group's limit.
/// #[kernel]
/// pub fn above(t: Thread<1>, x: &[f32], limits: &[f32], counts: &[AtomicU32]) {
///     if x[t.index().get()] > *of_group(&t, limits, 4) {
///         of_group(&t, counts, 4).fetch_add(1, Relaxed);
///     }
/// }
/// # }
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// let x = stream.upload(&(0..8).map(|x| x as f32).collect::<Vec<_>>())?;
/// let (limits, mut counts) = (stream.upload(&[2.5_f32, 4.5])?, stream.zeros(2)?);
/// kernels::above(&stream, Grid::new(1, 8), &x, &limits, counts.as_atomic())?;
/// assert_eq!(stream.download(&counts)?, [1, 3]);
/// # Ok(()) }
/// ```
///
/// # Safety
/// The layout must be defined and equal on the host and on `nvptx64-nvidia-cuda`, and sharing a value
/// among all threads of a launch must be sound.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element on a device",
    label = "neither `DeviceCopy` nor atomic",
    note = "elements of `&[T]` are numbers, arrays of them, tuples, structs with `#[derive(Clone, Copy, DeviceCopy)] #[repr(C)]`, `DeviceAtomic` numbers, `AtomicU32` and the like, structs of atomics with `#[derive(AtomicForm)]`, or `Option`s of what may have any bits; host references, pointers, `Vec`, `String` and the like stay on the host"
)]
pub unsafe trait SliceElement: Send + Sync + 'static {
    /// As [`DeviceCopy::LAYOUT`].
    #[doc(hidden)]
    const LAYOUT: u64 = 0;
}

// SAFETY: `DeviceCopy` asks for the layout, and for `Sync`; what is `Copy` has no interior mutability, so threads that
// share a value only read it.
unsafe impl<T: DeviceCopy> SliceElement for T {
    const LAYOUT: u64 = T::LAYOUT;
}

/// Compiles if `T` may be copied to a device; generated code uses it to report errors at the type.
#[doc(hidden)]
pub const fn assert_device_copy<T: DeviceCopy>() {}

/// Compiles if `T` may be an element of `&[T]`; generated code uses it to report errors at the type.
#[doc(hidden)]
pub const fn assert_slice_element<T: SliceElement>() {}
