//! Among which threads an operation is atomic: the scopes of PTX as marker types. It must not know
//! the operations.

/// The threads among which an operation is atomic and ordered: [`Block`], [`Device`] or [`System`].
///
/// Threads beyond the scope may lose each other's updates; so a narrow scope is for memory that only
/// the threads within it use at the time. On the CPU device every scope is the whole system.
///
/// ```
/// use ferrogrid_device::atomic::{self, DeviceAtomic, Ordering, Scope};
///
/// /// Takes the next of the numbers from 0 on, each of which one thread of the scope gets.
/// fn ticket<S: Scope>(next: &DeviceAtomic<u32, S>) -> u32 {
///     next.fetch_add(1, Ordering::Relaxed)
/// }
/// let (of_block, of_all) = (DeviceAtomic::<u32, atomic::Block>::new(0), DeviceAtomic::<u32, atomic::System>::new(8));
/// assert_eq!((ticket(&of_block), ticket(&of_block), ticket(&of_all)), (0, 1, 8));
/// let of_device: DeviceAtomic<u32> = DeviceAtomic::<u32, atomic::Device>::new(4); // the scope unless told
/// assert_eq!(ticket(&of_device), 4);
/// ```
pub trait Scope: sealed::Scope + 'static {
    /// The scope as a value.
    #[doc(hidden)]
    const REACH: Reach;
}

/// The threads of one block (CUDA's `cuda::thread_scope_block`, PTX `.cta`): see [`Scope`].
#[derive(Debug, Clone, Copy)]
pub struct Block;

/// All threads on the device (CUDA's `cuda::thread_scope_device`, PTX `.gpu`): the scope unless another is named.
#[derive(Debug, Clone, Copy)]
pub struct Device;

/// All threads of the system: every device, and the host (CUDA's `cuda::thread_scope_system`, PTX `.sys`).
#[derive(Debug, Clone, Copy)]
pub struct System;

/// A scope as a value.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub enum Reach {
    /// `.cta`
    Block,
    /// `.gpu`
    Device,
    /// `.sys`
    System,
}

impl Scope for Block {
    const REACH: Reach = Reach::Block;
}

impl Scope for Device {
    const REACH: Reach = Reach::Device;
}

impl Scope for System {
    const REACH: Reach = Reach::System;
}

mod sealed {
    pub trait Scope {}
    impl Scope for super::Block {}
    impl Scope for super::Device {}
    impl Scope for super::System {}
}
