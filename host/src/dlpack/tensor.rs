//! A tensor that is owned, of this library or another: its place, type, shape and strides, and the raw structures that it is
//! read from and given away in.

use derive_where::derive_where;

use super::abi::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor, IS_COPIED, READ_ONLY, VERSION,
};
use super::export;
use super::layout::{check_span, is_row_major, product, row_major};
use super::ready::Ready;
use crate::error::dlpack::DlpackError;
use crate::error::{Error, Result};

/// A tensor that may be shared with other libraries; dropping it frees what it holds.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::dlpack::{DlpackElement, DlpackTensor, abi};
///
/// let buffer = stream.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let tensor = DlpackTensor::from_buffer(&stream, buffer)?.with_shape(&[2, 3])?;
/// assert_eq!((tensor.shape(), tensor.strides()), (&[2, 3][..], &[3, 1][..])); // row after row
/// assert_eq!((tensor.element_type(), tensor.device().device_type), (f32::TYPE, abi::CPU));
/// assert!(!tensor.is_read_only());
///
/// let raw = tensor.into_raw_unversioned()?; // for a library from before DLPack 1.0
/// // SAFETY: it is a live tensor with no other owner.
/// let tensor = unsafe { DlpackTensor::from_raw_unversioned(raw)? };
/// assert_eq!(stream.download(&tensor.into_buffer::<f32>(&stream)?)?[5], 6.0);
/// # Ok(()) }
/// ```
#[derive_where(Debug)]
pub struct DlpackTensor {
    pub(super) start: *mut u8,
    pub(super) device: DLDevice,
    pub(super) dtype: DLDataType,
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<i64>,
    /// `READ_ONLY` and `IS_COPIED`; other flags are ignored.
    pub(super) flags: u64,
    #[derive_where(skip)]
    pub(super) owner: Box<dyn Send>,
    /// `None` if all work on the memory has run.
    #[derive_where(skip)]
    pub(super) ready: Option<Ready>,
}

// SAFETY: a tensor owns its memory, which is only an address on the host side; the owner is `Send`.
unsafe impl Send for DlpackTensor {}

/// Calls the maker's deleter when dropped.
struct Managed<T>(*mut T, Option<unsafe extern "C" fn(*mut T)>);

// SAFETY: the contract of the take-over says that it may be deleted on any thread.
unsafe impl<T> Send for Managed<T> {}

impl<T> Drop for Managed<T> {
    fn drop(&mut self) {
        if let Some(deleter) = self.1 {
            // SAFETY: the tensor was taken over, is live, and is deleted once.
            unsafe { deleter(self.0) };
        }
    }
}

impl DlpackTensor {
    /// The same elements in another shape, row after row: `&[height, width]`.
    ///
    /// # Errors
    /// [`DlpackError::Shape`] if the shape has another number of elements, or a dimension over `i64::MAX`, which DLPack
    /// cannot say; [`DlpackError::NotContiguous`].
    pub fn with_shape(self, shape: &[usize]) -> Result<Self> {
        let length = self.contiguous_len()?;
        let is_sayable = shape.iter().all(|&length| i64::try_from(length).is_ok());
        if !is_sayable || product(shape) != Some(length) {
            return Err(DlpackError::Shape { shape: shape.to_vec(), length }.into());
        }
        Ok(DlpackTensor { strides: row_major(shape), shape: shape.to_vec(), ..self })
    }

    /// Elements of this tensor in any layout: element `[i, j]` is number `offset + i * strides[0] + j * strides[1]` of those
    /// that there are now, one after the other. So go transposed tensors, parts, every n-th element (a stride may be
    /// negative, or 0 to repeat).
    ///
    /// ```
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let stream = Device::cpu().new_stream()?;
    /// use ferrogrid::dlpack::DlpackTensor;
    ///
    /// let matrix = stream.upload(&[0_i32, 1, 2, 3, 4, 5])?; // 2 rows of 3
    /// let transposed = DlpackTensor::from_buffer(&stream, matrix)?.with_layout(&[3, 2], &[1, 3], 0)?;
    /// let copy = transposed.copy_to_buffer::<i32>(&stream)?; // as another library would see it
    /// assert_eq!(stream.download(&copy)?, [0, 3, 1, 4, 2, 5]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`DlpackError::Layout`] if an element would lie beyond the tensor's; [`DlpackError::Rank`];
    /// [`DlpackError::NotContiguous`]; [`DlpackError::Shape`] if a dimension is over `i64::MAX`.
    pub fn with_layout(self, shape: &[usize], strides: &[i64], offset: usize) -> Result<Self> {
        let length = self.contiguous_len()?;
        check_span(shape, strides, offset, length)?;
        let size = usize::from(self.dtype.bits) / 8 * usize::from(self.dtype.lanes);
        let skipped = offset.min(length).wrapping_mul(size);
        let start = self.start.wrapping_add(skipped);
        Ok(DlpackTensor { start, shape: shape.to_vec(), strides: strides.to_vec(), ..self })
    }

    /// The same tensor, which its consumer must not write (`DLPACK_FLAG_BITMASK_READ_ONLY`).
    #[must_use]
    pub fn with_read_only(self) -> Self {
        DlpackTensor { flags: self.flags | READ_ONLY, ..self }
    }

    /// The length of each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The step of each dimension in elements.
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// The type of the elements.
    pub fn element_type(&self) -> DLDataType {
        self.dtype
    }

    /// Where the memory is, in DLPack's numbers.
    pub fn device(&self) -> DLDevice {
        self.device
    }

    /// Whether the memory must not be written.
    pub fn is_read_only(&self) -> bool {
        self.flags & READ_ONLY != 0
    }

    /// Whether the memory is a copy made for the consumer (`DLPACK_FLAG_BITMASK_IS_COPIED`).
    pub fn is_copied(&self) -> bool {
        self.flags & IS_COPIED != 0
    }

    /// The number of elements, if they lie row after row.
    pub(super) fn contiguous_len(&self) -> Result<usize, DlpackError> {
        let length = self.len()?;
        if is_row_major(&self.shape, &self.strides) {
            return Ok(length);
        }
        let (shape, strides) = (self.shape.clone(), self.strides.clone());
        Err(DlpackError::NotContiguous { shape, strides })
    }

    /// The number of elements.
    pub(super) fn len(&self) -> Result<usize, DlpackError> {
        product(&self.shape).ok_or(DlpackError::Broken { reason: "its shape overflows" })
    }

    /// Transfers ownership of the tensor to the holder of the pointer, as the content of a Python capsule
    /// `dltensor_versioned`. It is freed by its deleter. A tensor of
    /// [`DlpackTensor::from_buffer_async`] is for use on that stream.
    #[must_use = "nothing else frees the tensor"]
    pub fn into_raw(self) -> *mut DLManagedTensorVersioned {
        export::versioned(self)
    }

    /// As [`DlpackTensor::into_raw`], in the form before DLPack 1.0: a capsule `dltensor`.
    ///
    /// # Errors
    /// [`DlpackError::UnversionedReadOnly`]: it cannot say that a tensor is read-only.
    #[must_use = "nothing else frees the tensor"]
    pub fn into_raw_unversioned(self) -> Result<*mut DLManagedTensor> {
        if self.is_read_only() {
            return Err(DlpackError::UnversionedReadOnly.into());
        }
        Ok(export::unversioned(self))
    }

    /// Takes a tensor over from another library. On an error it is deleted.
    ///
    /// # Errors
    /// [`DlpackError::Version`] and [`DlpackError::Broken`].
    ///
    /// # Safety
    /// - `raw` is a live tensor of DLPack, given to the caller, who does not use or delete it again (a
    ///   capsule is renamed to `used_dltensor_versioned`); it may be deleted on any thread.
    /// - Its memory is as described, with valid elements of its type; on a GPU it is of the primary context.
    /// - All work that writes it has run. Until this tensor, or the buffer that it becomes, is dropped,
    ///   nothing else writes to the memory, or reads from it what is written here.
    /// - Page-locked and managed memory ([`abi::CUDA_HOST`](super::abi::CUDA_HOST) and
    ///   [`CUDA_MANAGED`](super::abi::CUDA_MANAGED)) is such memory.
    pub unsafe fn from_raw(raw: *mut DLManagedTensorVersioned) -> Result<Self> {
        if raw.is_null() {
            return Err(DlpackError::Broken { reason: "it is null" }.into());
        }
        // SAFETY: version, context and deleter come first in every version; the caller vouches that it is
        // live.
        let (version, deleter) = unsafe { ((*raw).version, (*raw).deleter) };
        let owner = Box::new(Managed(raw, deleter));
        if version.major != VERSION.major {
            return Err(DlpackError::Version { version }.into());
        }
        // SAFETY: of this version, live, and the owner keeps it so.
        unsafe { Self::read(&(*raw).dl_tensor, (*raw).flags & (READ_ONLY | IS_COPIED), owner) }
    }

    /// As [`DlpackTensor::from_raw`], from the form before DLPack 1.0 (a capsule `dltensor`).
    ///
    /// # Errors
    /// [`DlpackError::Broken`].
    ///
    /// # Safety
    /// As [`DlpackTensor::from_raw`]; and the memory may be written, which this form cannot express.
    pub unsafe fn from_raw_unversioned(raw: *mut DLManagedTensor) -> Result<Self> {
        if raw.is_null() {
            return Err(DlpackError::Broken { reason: "it is null" }.into());
        }
        // SAFETY: the caller vouches that it is live; the owner keeps it so.
        unsafe {
            let owner = Box::new(Managed(raw, (*raw).deleter));
            Self::read(&(*raw).dl_tensor, 0, owner)
        }
    }

    /// # Safety
    /// The tensor is live and stays so until `owner` is dropped.
    unsafe fn read(tensor: &DLTensor, flags: u64, owner: Box<dyn Send>) -> Result<Self> {
        let broken = |reason| Error::from(DlpackError::Broken { reason });
        let rank = usize::try_from(tensor.ndim).map_err(|_| broken("its rank is negative"))?;
        if rank > 0 && tensor.shape.is_null() {
            return Err(broken("it has no shape"));
        }
        // SAFETY: a live tensor has as many lengths as dimensions.
        let lengths = unsafe { list(tensor.shape, rank) };
        let shape: Option<Vec<usize>> = lengths.iter().map(|&length| usize::try_from(length).ok()).collect();
        let shape = shape.ok_or_else(|| broken("a dimension has a negative length"))?;
        let length = product(&shape).ok_or_else(|| broken("its shape overflows"))?;
        if length > 0 && tensor.data.is_null() {
            return Err(broken("it has elements but no memory"));
        }
        let offset = usize::try_from(tensor.byte_offset).map_err(|_| broken("its offset overflows"))?;
        let strides = if tensor.strides.is_null() {
            row_major(&shape)
        } else {
            // SAFETY: a live tensor with strides has as many as dimensions.
            unsafe { list(tensor.strides, rank) }
        };
        Ok(DlpackTensor {
            start: tensor.data.cast::<u8>().wrapping_add(offset),
            device: tensor.device,
            dtype: tensor.dtype,
            shape,
            strides,
            flags,
            owner,
            ready: None,
        })
    }
}

/// # Safety
/// There are `len` numbers at `start`, if `len` is not 0.
unsafe fn list(start: *const i64, len: usize) -> Vec<i64> {
    // SAFETY: the caller vouches for it.
    if len == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(start, len) }.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::super::abi::DLPackVersion;
    use super::*;
    use crate::device::Device;

    /// The most dimensions of a tensor here; the lists are as long.
    const RANK: usize = 4;

    /// A tensor as another library may have made it, with any numbers, and addresses that are good or null.
    struct Other {
        shape: [i64; RANK],
        strides: [i64; RANK],
        raw: DLManagedTensorVersioned,
    }

    impl Other {
        fn new(bytes: &[u8]) -> Box<Self> {
            static DATA: [u64; 64] = [0; 64];
            let mut words = bytes.chunks(8).map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_le_bytes(word)
            });
            let mut next = || words.next().unwrap_or(0);
            let (presence, numbers) = (next(), [next(), next(), next()]);
            let lengths = std::array::from_fn(|_| next() as i64);
            let mut other = Box::new(Other {
                shape: lengths,
                strides: std::array::from_fn(|_| next() as i64),
                raw: DLManagedTensorVersioned {
                    version: DLPackVersion { major: numbers[0] as u32 & 0xff, minor: 0 },
                    manager_ctx: std::ptr::null_mut(),
                    deleter: None,
                    flags: numbers[1],
                    dl_tensor: DLTensor {
                        data: std::ptr::null_mut(),
                        device: DLDevice {
                            device_type: numbers[2] as i32,
                            device_id: (numbers[2] >> 32) as i32,
                        },
                        ndim: (presence >> 8 & 0xff) as i8 as i32,
                        dtype: DLDataType {
                            code: (presence >> 16) as u8,
                            bits: (presence >> 24) as u8,
                            lanes: (presence >> 32) as u16,
                        },
                        shape: std::ptr::null_mut(),
                        strides: std::ptr::null_mut(),
                        byte_offset: next(),
                    },
                },
            });
            let (shape, strides) = (other.shape.as_mut_ptr(), other.strides.as_mut_ptr());
            let tensor = &mut other.raw.dl_tensor;
            // Lists are as long as a live tensor says.
            tensor.ndim = tensor.ndim.min(RANK as i32);
            let given = |bit: u32| presence >> bit & 1 != 0;
            if given(0) {
                tensor.data = DATA.as_ptr().cast_mut().cast();
            }
            if given(1) {
                tensor.shape = shape;
            }
            if given(2) {
                tensor.strides = strides;
            }
            other
        }
    }

    /// The words of [`Other`]: what is given, rank and type; version, flags and device; lengths; steps; the offset.
    fn tensor(given: u64, lengths: [u64; RANK], steps: [u64; RANK]) -> Vec<u8> {
        let f32 = 2 << 16 | 32 << 24 | 1 << 32;
        let head = [given | 2 << 8 | f32, u64::from(VERSION.major), 0, 1];
        [&head[..], &lengths, &steps, &[0]].concat().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn fuzz_tensors() {
        let stream = Device::cpu().new_stream().unwrap();
        let seeds = [tensor(0b111, [2, 3, 1, 1], [3, 1, 1, 1]), tensor(0b011, [0, 5, 1, 1], [0; 4])];
        crate::fuzz::survive(&seeds, |bytes| {
            let mut other = Other::new(bytes);
            // SAFETY: live, with lists as long as declared; nothing reads the elements.
            let Ok(tensor) = (unsafe { DlpackTensor::from_raw(&raw mut other.raw) }) else { return };
            let (len, text) = (product(tensor.shape()), format!("{tensor:?}"));
            assert!(len.is_some() && tensor.strides().len() == tensor.shape().len() && text.len() < 1000);
            let shaped = tensor.with_shape(&[len.unwrap_or(0), 1]);
            let Ok(tensor) = shaped else { return };
            if let Ok(buffer) = tensor.into_buffer::<f32>(&stream) {
                assert_eq!(Some(buffer.len()), len);
            }
        });
    }
}
