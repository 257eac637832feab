//! Managed memory: one address that the host and devices use in turn.

use bytemuck::Zeroable;
use derive_where::derive_where;
use ferrogrid_device::DeviceCopy;

use crate::backend::Contents;
use crate::error::Result;
use crate::memory::Memory;
use crate::memory::access::enqueue;
use crate::memory::buffer::DeviceBuffer;
use crate::memory::kind::over_device_buffer;
use crate::order::Use;
use crate::profile::{self, Work};
use crate::stream::Stream;

/// `len` elements of type `T` in managed memory (`cuMemAllocManaged`): a device buffer that the host can
/// use in place. Pages migrate to the processor that touches them. Pools have such memory, too, and page-locked memory that is used in the
/// same way: [`MemoryPool::managed_zeros`](crate::MemoryPool::managed_zeros).
///
/// [`ManagedBuffer::read`] and [`ManagedBuffer::write`] give the host a slice, once the work on streams that
/// they must come after has run; as long as that slice is borrowed, no work that would conflict with it
/// can be enqueued. To drop it waits for the work that uses it (`cuMemFree`). On the CPU device it is
/// ordinary memory.
///
/// ```
/// # fn main() -> ferrogrid_host::Result<()> {
/// let stream = ferrogrid_host::Device::cpu().new_stream()?;
/// let mut data = stream.managed_zeros::<u32>(3)?;
/// data.write()?[1] = 5; // the host writes ...
/// stream.fill_into(7, data.slice_mut(2..)?)?; // ... and the device
/// assert_eq!(data.read()?, [0, 5, 7]);
/// # Ok(()) }
/// ```
///
/// The device cannot write while the host reads:
///
/// ```compile_fail,E0502
/// # fn main() -> ferrogrid_host::Result<()> {
/// let stream = ferrogrid_host::Device::cpu().new_stream()?;
/// let mut data = stream.managed_zeros::<u32>(3)?;
/// let values = data.read()?;
/// stream.fill_into(7, &mut data)?;
/// assert_eq!(values[0], 0);
/// # Ok(()) }
/// ```
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{Advice, Location};
///
/// let mut table = stream.managed_copy(&[1_u32, 2, 3])?;
/// table.advise(Advice::ReadMostly(true))?; // a copy on each side, until the next write
/// table.advise(Advice::AccessedBy(Location::Device, true))?;
/// stream.fill_into(0, table.view_mut())?;
/// stream.prefetch(&table, Location::Host)?; // before the host reads it
/// assert_eq!(table.read()?, [0, 0, 0]);
/// # Ok(()) }
/// ```
#[derive_where(Debug)]
pub struct ManagedBuffer<T: DeviceCopy> {
    /// Of managed memory. Never given away, nor borrowed mutably, so that it stays so.
    buffer: DeviceBuffer<T>,
}

over_device_buffer!(ManagedBuffer);

/// Where managed memory is to be.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::Location;
///
/// let numbers = stream.managed_copy(&[1_u32, 2, 3])?;
/// stream.prefetch(&numbers, Location::Device)?; // kernels will use it
/// let doubled = stream.duplicate(&numbers)?;
/// stream.prefetch(&numbers, Location::Host)?; // and then the host
/// assert_eq!((numbers.read()?, stream.download(&doubled)?), (&[1, 2, 3][..], vec![1, 2, 3]));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Location {
    /// In the memory of the host (`CU_DEVICE_CPU`).
    Host,
    /// In the memory of the device at hand.
    Device,
}

/// Advice about how managed memory will be used (`CUmem_advise`). Results do not depend on
/// it.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::{Advice, Location};
///
/// let results = stream.managed_zeros::<f32>(1000)?;
/// // They stay on the device, and the host reads them there, over the bus.
/// results.advise(Advice::PreferredLocation(Some(Location::Device)))?;
/// results.advise(Advice::AccessedBy(Location::Host, true))?;
/// assert_eq!(results.read()?[999], 0.0);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Advice {
    /// It is mostly read, so that each side may have a copy; or no longer.
    ReadMostly(bool),
    /// It is best kept there; or anywhere.
    PreferredLocation(Option<Location>),
    /// That side will use it, so that it is to be mapped there; or no longer.
    AccessedBy(Location, bool),
}

impl Advice {
    /// The driver's `CUmem_advise`, and the location.
    fn parts(self) -> (u32, Location) {
        match self {
            Advice::ReadMostly(true) => (1, Location::Device),
            Advice::ReadMostly(false) => (2, Location::Device),
            Advice::PreferredLocation(Some(location)) => (3, location),
            Advice::PreferredLocation(None) => (4, Location::Device),
            Advice::AccessedBy(location, true) => (5, location),
            Advice::AccessedBy(location, false) => (6, location),
        }
    }
}

impl Stream {
    /// New managed memory for `len` elements whose bytes are all 0 (`cuMemAllocManaged`).
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let mut numbers = stream.managed_zeros::<u32>(3)?;
    /// numbers.write()?[1] = 7;
    /// assert_eq!(numbers.read()?, [0, 7, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::SizeOverflow`](crate::Error::SizeOverflow), [`Error::OutOfMemory`](crate::Error::OutOfMemory);
    /// [`Error::Unsupported`](crate::Error::Unsupported) if the host may not use managed memory while the
    /// device works (`CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS`; so on Windows); or a failure of the
    /// device.
    pub fn managed_zeros<T: DeviceCopy + Zeroable>(&self, len: usize) -> Result<ManagedBuffer<T>> {
        ManagedBuffer::allocate(self, len, Contents::Zeroed)
    }

    /// New managed memory with a copy of `data` (`cuMemAllocManaged`).
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let numbers = stream.managed_copy(&[1.0_f32, 2.0])?;
    /// assert_eq!(numbers.read()?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Stream::managed_zeros`].
    pub fn managed_copy<T: DeviceCopy>(&self, data: &[T]) -> Result<ManagedBuffer<T>> {
        let mut buffer = ManagedBuffer::allocate(self, data.len(), Contents::Uninitialised)?;
        self.upload_into(data, &mut buffer)?;
        Ok(buffer)
    }

    /// Moves managed memory ahead of its use, in the order of this stream (`cuMemPrefetchAsync`). Nothing to
    /// do on the CPU device.
    ///
    /// ```
    /// # fn main() -> ferrogrid_host::Result<()> {
    /// use ferrogrid_host::Location;
    ///
    /// let stream = ferrogrid_host::Device::cpu().new_stream()?;
    /// let numbers = stream.managed_copy(&[1_u32, 2])?;
    /// stream.prefetch(&numbers, Location::Device)?; // before kernels use it
    /// stream.prefetch(&numbers, Location::Host)?; // before the host does
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::DeviceMismatch`](crate::Error::DeviceMismatch), or a failure of the device.
    pub fn prefetch<T: DeviceCopy>(&self, data: &ManagedBuffer<T>, to: Location) -> Result<()> {
        let (bytes, start, backend) = (data.byte_len(), data.memory().pointer(), self.inner().backend());
        enqueue(self.inner(), Some(data.view().access()), None, bytes, || {
            if !backend.has_prefetches()? {
                return Ok(());
            }
            // SAFETY: live managed memory, which is freed after this.
            let prefetch = || unsafe { backend.prefetch(start, bytes, to == Location::Host) };
            profile::observe(self.inner(), Work::Prefetch { bytes }, prefetch)
        })
    }
}

impl<T: DeviceCopy> ManagedBuffer<T> {
    fn allocate(stream: &Stream, len: usize, contents: Contents) -> Result<Self> {
        let managed = |bytes| Memory::managed(stream.inner(), bytes, contents);
        Ok(ManagedBuffer { buffer: DeviceBuffer::in_memory(len, managed)? })
    }

    /// `buffer`, whose memory the host can use while the device works.
    pub(crate) fn of(buffer: DeviceBuffer<T>) -> Self {
        ManagedBuffer { buffer }
    }

    /// The elements for the host to read, once all work that writes them has run.
    ///
    /// # Errors
    /// The failure of a kernel that was to write the memory, until it is written again on a stream; or a failure of the
    /// device.
    pub fn read(&self) -> Result<&[T]> {
        self.memory().begin_on_host(Use::Read)?;
        let view = self.view();
        // SAFETY: the host can read managed memory; every element is initialised, as in any buffer; work
        // that writes has run, and more needs a mutable borrow.
        Ok(unsafe { std::slice::from_raw_parts(view.start(), view.len()) })
    }

    /// The elements for the host to read and write, once all work that uses them has run.
    ///
    /// # Errors
    /// As [`ManagedBuffer::read`].
    pub fn write(&mut self) -> Result<&mut [T]> {
        self.memory().begin_on_host(Use::Write)?;
        let view = self.buffer.view_mut();
        // SAFETY: the host can write managed memory; every element is initialised, as in any buffer; work
        // that uses it has run, and more needs a borrow.
        Ok(unsafe { std::slice::from_raw_parts_mut(view.start(), view.len()) })
    }

    /// Advises the driver of the use of the memory (`cuMemAdvise`). Does nothing on the CPU device.
    ///
    /// # Errors
    /// If the device fails.
    pub fn advise(&self, advice: Advice) -> Result<()> {
        if self.byte_len() == 0 {
            return Ok(());
        }
        let ((advice, location), start) = (advice.parts(), self.memory().pointer());
        let is_host = location == Location::Host;
        // SAFETY: live managed memory.
        unsafe { self.device().backend().advise(start, self.byte_len(), advice, is_host) }
    }
}
