//! The scopes of PTX as marker types: among which threads an operation is atomic.

/// The threads among which an operation is atomic and ordered: [`Block`], [`Device`] or [`System`].
///
/// Threads outside the scope may lose each other's updates, so use a narrow scope only for memory that no
/// thread outside it uses at the time. On the CPU device every scope is system-wide. [The
/// module](crate::atomic) has an example.
pub trait Scope: sealed::Scope + Send + Sync + 'static {
    /// The scope as a value.
    #[doc(hidden)]
    const REACH: Reach;
}

/// The threads of one block (CUDA's `cuda::thread_scope_block`, PTX `.cta`): see [`Scope`].
#[derive(Debug, Clone, Copy)]
pub struct Block;

/// All threads of the device (CUDA's `cuda::thread_scope_device`, PTX `.gpu`); the default.
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
