//! Memory pools that several processes share: a pool as a file descriptor, and its buffers as bytes.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use ferrogrid_device::DeviceCopy;

use crate::backend::cuda::{OpenedMemory, OwnPool};
use crate::backend::memory::shared_memory::IpcMemoryOrigin;
use crate::device::Device;
use crate::device::context::gpu;
use crate::error::Result;
use crate::error::ipc::IpcError;
use crate::memory::buffer::{DeviceBuffer, refuse_recording};
use crate::memory::ipc::IpcMemoryHandle;
use crate::memory::pool::{MemoryPool, Which};
use crate::stream::Stream;

/// The shareable pool of another process, from [`Device::open_memory_pool`]: buffers of it are opened here, not made.
/// Buffers keep it.
#[derive(Clone)]
pub struct SharedPool {
    device: Device,
    inner: Arc<OwnPool>,
}

impl MemoryPool {
    /// A file descriptor that names the pool to other processes (`cuMemPoolExportToShareableHandle`), once for all of its
    /// buffers. It travels as descriptors do: to a child as its standard input, or by a Unix socket.
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use std::process::{Command, Stdio};
    ///
    /// use ferrogrid::PoolOptions;
    ///
    /// let device = Device::cuda(0)?;
    /// let stream = device.new_stream()?;
    /// let pool = device.new_memory_pool(PoolOptions::new().shareable())?;
    /// let buffer = pool.fill(&stream, 1.0_f32, 1000)?;
    /// stream.synchronize()?; // before the other process may look
    /// let bytes = pool.ipc_handle(&buffer)?.to_bytes();
    /// let mut other = Command::new("other").stdin(Stdio::from(pool.share()?)).spawn().unwrap();
    /// // `bytes` go there, too, by a file for example.
    /// other.wait().unwrap(); // before `buffer` is dropped
    /// # drop(bytes);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`IpcError::OtherPool`] if it was not made with [`PoolOptions::shareable`](crate::PoolOptions::shareable); or a
    /// failure of the driver.
    pub fn share(&self) -> Result<OwnedFd> {
        self.shareable()?.share()
    }

    /// The handle of `buffer`, which is of this pool, for processes that have opened the pool (`cuMemPoolExportPointer`).
    ///
    /// # Errors
    /// [`IpcError::OtherPool`] if it is of another pool, or this is not shareable; [`IpcError::Empty`] for 0 bytes; or a
    /// failure of the driver.
    pub fn ipc_handle<T: DeviceCopy>(&self, buffer: &DeviceBuffer<T>) -> Result<IpcMemoryHandle> {
        let pool = self.shareable()?;
        if buffer.byte_len() == 0 {
            return Err(IpcError::Empty.into());
        }
        let own = buffer.memory().pool().and_then(MemoryPool::own);
        if !own.is_some_and(|own| Arc::ptr_eq(own, pool)) {
            return Err(IpcError::OtherPool.into());
        }
        let data = pool.export(buffer.memory().pointer())?;
        Ok(IpcMemoryHandle { origin: IpcMemoryOrigin::Pool(data), bytes: buffer.byte_len() })
    }

    fn shareable(&self) -> Result<&Arc<OwnPool>> {
        let own = self.own().filter(|_| self.shareable);
        own.ok_or_else(|| IpcError::OtherPool.into())
    }

    /// The driver's, of one that was made here on a GPU.
    fn own(&self) -> Option<&Arc<OwnPool>> {
        match &self.which {
            Which::Own(own) => own.as_ref(),
            Which::OfDevice | Which::Foreign(_) => None,
        }
    }
}

impl Device {
    /// Opens the pool that another process shares by [`MemoryPool::share`] (`cuMemPoolImportFromShareableHandle`).
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::IpcMemoryHandle;
    ///
    /// let device = Device::cuda(0)?;
    /// let stream = device.new_stream()?;
    /// let pool = device.open_memory_pool(std::io::stdin())?; // where the other process has put it
    /// let bytes = std::fs::read("buffer").unwrap();
    /// // SAFETY: the elements are `f32`, and the other process waits for this one.
    /// let buffer = unsafe { pool.open::<f32>(&stream, &IpcMemoryHandle::from_bytes(&bytes)?)? };
    /// println!("{:?}", stream.download(&buffer)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`](crate::Error::Unsupported) on the CPU device; or what the driver says, if it is no pool for example.
    pub fn open_memory_pool(&self, descriptor: impl AsFd) -> Result<SharedPool> {
        let device = gpu(self, "a pool of another process")?;
        let inner = Arc::new(OwnPool::open(device, descriptor.as_fd())?);
        Ok(SharedPool { device: self.clone(), inner })
    }
}

impl SharedPool {
    /// The device that the memory is of.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The buffer that [`MemoryPool::ipc_handle`] has named in the other process (`cuMemPoolImportPointer`). Dropping it
    /// closes it here, after all work that uses it.
    ///
    /// # Errors
    /// [`IpcError::OtherKind`] if it is of no pool; [`IpcError::Elements`] if its bytes are no whole number of elements;
    /// [`Error::DeviceMismatch`](crate::Error::DeviceMismatch) for a stream of another device; or a failure of the driver.
    ///
    /// # Safety
    /// - Its elements are of type `T`, and written: the work that wrote them has run.
    /// - The processes keep their uses of it apart, as [`Stream::ipc_open`] says.
    /// - The process that made it keeps it until this buffer is dropped and the work that uses it has run.
    pub unsafe fn open<T: DeviceCopy>(
        &self,
        stream: &Stream,
        handle: &IpcMemoryHandle,
    ) -> Result<DeviceBuffer<T>> {
        refuse_recording(stream)?;
        self.device.check_is(stream.device())?;
        let IpcMemoryOrigin::Pool(data) = &handle.origin else {
            let device = format!("a memory pool of {}", self.device).into();
            return Err(IpcError::OtherKind { made_on: "no memory pool", device }.into());
        };
        let len = handle.elements::<T>()?;
        let opened = OpenedMemory::open(&self.inner, data)?;
        // SAFETY: memory of the device, which stays until `opened` is dropped; the caller vouches for the rest.
        unsafe { DeviceBuffer::foreign(stream, opened.start().cast(), len, Box::new(opened)) }
    }
}

debug_by_methods!(SharedPool { device });
