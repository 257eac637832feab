//! Global and `__constant__` variables of a foreign module, by type.

use std::marker::PhantomData;

use bytemuck::Pod;
use derive_where::derive_where;

use super::module::ForeignModule;
use crate::copy::room_for;
use crate::error::Result;
use crate::error::foreign::ForeignError;
use crate::stream::Stream;
use crate::view::agree;

/// A `__device__` or `__constant__` variable of a [`ForeignModule`], as elements of type `T`.
///
/// Its elements are read and written in the order of one stream. Work of other streams that uses the
/// variable is not waited for: order it with events, or synchronise.
///
/// ```no_run
/// # fn main() -> ferrogrid_host::Result<()> {
/// let device = ferrogrid_host::Device::cuda(0)?;
/// let stream = device.new_stream()?;
/// let module = device.load_file("blur.ptx")?;
/// let weights = module.global::<f32>("weights")?; // __constant__ float weights[9];
/// weights.set(&stream, &[1.0 / 9.0; 9])?;
/// assert_eq!(weights.get(&stream)?, [1.0 / 9.0; 9]);
/// # Ok(()) }
/// ```
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// let device = Device::cuda(0)?;
/// let counts = device.load_file("events.ptx")?.global::<u64>("counts")?; // __device__ unsigned long long counts[4];
/// assert!(counts.len() == 4 && !counts.is_empty());
/// println!("{}: {:?}", counts.name(), counts.get(&device.new_stream()?)?);
/// # Ok(()) }
/// ```
#[derive_where(Debug)]
pub struct ForeignGlobal<T> {
    module: ForeignModule,
    name: Box<str>,
    start: *mut u8,
    len: usize,
    elements: PhantomData<T>,
}

// SAFETY: `start` is an address in device memory, used only in copies that the driver orders.
unsafe impl<T: Send> Send for ForeignGlobal<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for ForeignGlobal<T> {}

impl<T: Pod> ForeignGlobal<T> {
    /// `start` is where the driver has `bytes` of the variable.
    pub(super) fn new(module: ForeignModule, name: &str, start: *mut u8, bytes: usize) -> Result<Self> {
        let element_size = size_of::<T>();
        if element_size == 0 || !bytes.is_multiple_of(element_size) {
            return Err(ForeignError::GlobalSize { name: name.into(), bytes, element_size }.into());
        }
        let len = bytes / element_size;
        Ok(ForeignGlobal { module, name: name.into(), start, len, elements: PhantomData })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its name in the module.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The elements, once all work enqueued on `stream` so far has run (`cuMemcpyAsync`,
    /// `cuStreamSynchronize`).
    ///
    /// # Errors
    /// A failure of the work before, as [`Stream::synchronize`]; a stream of another device.
    pub fn get(&self, stream: &Stream) -> Result<Vec<T>> {
        self.module.device().check_is(stream.device())?;
        let mut values = room_for(self.len)?;
        values.resize(self.len, T::zeroed());
        let target: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
        if !target.is_empty() {
            // SAFETY: the variable has as many bytes, of this device, for as long as the module is loaded.
            unsafe { stream.inner().copy_to_host(target.as_mut_ptr(), self.start, target.len())? };
        }
        Ok(values)
    }

    /// Writes all elements, after all work enqueued on `stream` so far (`cuMemcpyAsync`). Returns when
    /// `values` can be changed again.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch); a failure of the work before; a stream of another device.
    pub fn set(&self, stream: &Stream, values: &[T]) -> Result<()> {
        self.module.device().check_is(stream.device())?;
        agree("ForeignGlobal::set", values.len(), self.len)?;
        let source: &[u8] = bytemuck::cast_slice(values);
        if source.is_empty() {
            return Ok(());
        }
        // SAFETY: the variable has as many bytes, of this device, for as long as the module is loaded. Any
        // bytes are a `T`; launches of the module's kernels vouch for their accesses to them.
        unsafe { stream.inner().copy_from_host(self.start, source.as_ptr(), source.len()) }
    }
}
