//! Numbers that streams write and wait for, by the driver.

use cudarc::driver::sys::CUstreamWriteValue_flags;

use super::CudaStream;
use crate::backend::cuda::device::address;
use crate::backend::cuda::driver::Code;
use crate::copy::value::ValueCondition;
use crate::error::{Error, Result};

/// `CUDA_ERROR_INVALID_VALUE`, `CUDA_ERROR_NOT_SUPPORTED`.
const INVALID_VALUE: Code = Code(1);
const NOT_SUPPORTED: Code = Code(801);

/// After a memory barrier.
const AFTER_BARRIER: u32 = CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT as u32;

impl CudaStream {
    /// # Safety
    /// As for `Stream::write_value`.
    pub(crate) unsafe fn write_value(&self, target: *mut u8, value: u64, is_wide: bool) -> Result<()> {
        self.bind()?;
        let entered = self.enter()?;
        let (driver, target, stream) = (self.driver(), address(target), entered.raw);
        // SAFETY: the caller vouches for the memory; the handle is live.
        let code = unsafe {
            match is_wide {
                true => driver.write_value_64(stream, target, value, AFTER_BARRIER),
                // It was made of so many bits.
                false => driver.write_value_32(stream, target, value as u32, AFTER_BARRIER),
            }
        };
        self.check_value(code, "cuStreamWriteValue", value)
    }

    /// # Safety
    /// As for `Stream::wait_value`.
    pub(crate) unsafe fn wait_value(&self, source: *const u8, condition: ValueCondition) -> Result<()> {
        self.bind()?;
        let ValueCondition { kind, value, is_wide } = condition;
        let entered = self.enter()?;
        let (driver, source, stream) = (self.driver(), address(source), entered.raw);
        // SAFETY: the caller vouches for the memory; the handle is live.
        let code = unsafe {
            match is_wide {
                true => driver.wait_value_64(stream, source, value, kind),
                false => driver.wait_value_32(stream, source, value as u32, kind),
            }
        };
        if code == NOT_SUPPORTED {
            return Err(Error::Unsupported {
                operation: "a stream's wait for a value",
                device: self.device().to_string().into(),
                reason: "the GPU cannot wait for this condition",
            });
        }
        self.check_value(code, "cuStreamWaitValue", value)
    }

    /// An H200's driver 580 takes numbers in page-locked memory and in that of `cuMemAlloc`, and says of all others that
    /// the value is invalid.
    fn check_value(&self, code: Code, operation: &'static str, value: u64) -> Result<()> {
        if code == INVALID_VALUE {
            return Err(Error::Unsupported {
                operation: "a number that a stream writes or waits for in this memory",
                device: self.device().to_string().into(),
                reason: "the driver takes none in memory of pools, where buffers are; put it in page-locked memory \
                         (`Device::pinned_zeros`, `PinnedBuffer::view_mut`)",
            });
        }
        self.device().check(code, operation, &format!("value {value}"))
    }
}
