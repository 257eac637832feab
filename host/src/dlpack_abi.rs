//! The structures of DLPack 1.1, as in `dlpack.h`.

use std::ffi::c_void;

/// The version of DLPack that is written here: (major, minor). Tensors of another major version are
/// refused.
pub const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 1 };

/// `DLPACK_FLAG_BITMASK_READ_ONLY`: the memory must not be written.
pub const READ_ONLY: u64 = 1;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`: the memory is a copy made for the consumer of the tensor.
pub const IS_COPIED: u64 = 2;

/// `kDLCPU`.
pub const CPU: i32 = 1;
/// `kDLCUDA`.
pub const CUDA: i32 = 2;
/// `kDLCUDAHost`: page-locked memory of the host.
pub const CUDA_HOST: i32 = 3;
/// `kDLCUDAManaged`.
pub const CUDA_MANAGED: i32 = 13;

/// `kDLInt`.
pub const INT: u8 = 0;
/// `kDLUInt`.
pub const UINT: u8 = 1;
/// `kDLFloat`.
pub const FLOAT: u8 = 2;
/// `kDLBfloat`.
pub const BFLOAT: u8 = 4;
/// `kDLComplex`: the real part and the imaginary part, in bits together.
pub const COMPLEX: u8 = 5;
/// `kDLBool`, a byte that is 0 or 1.
pub const BOOL: u8 = 6;

/// The version of a tensor's structure.
///
/// ```
/// use ferrogrid::dlpack::abi::VERSION;
///
/// assert_eq!((VERSION.major, VERSION.minor), (1, 1)); // tensors of any 1.x are read
/// ```
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DLPackVersion {
    /// Changes when the structure does.
    pub major: u32,
    /// Changes when something is added in place.
    pub minor: u32,
}

/// Where memory is.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::dlpack::DlpackTensor;
/// use ferrogrid::dlpack::abi::{CPU, DLDevice};
///
/// let tensor = DlpackTensor::from_buffer(&stream, stream.zeros::<f32>(3)?)?;
/// // What `__dlpack_device__` of a Python object returns; of a GPU (CUDA, its number).
/// assert_eq!(tensor.device(), DLDevice { device_type: CPU, device_id: 0 });
/// # Ok(()) }
/// ```
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DLDevice {
    /// [`CPU`], [`CUDA`] and so on.
    pub device_type: i32,
    /// The number of the device among those of its type.
    pub device_id: i32,
}

/// The type of an element.
///
/// ```
/// use ferrogrid::dlpack::DlpackElement;
/// use ferrogrid::dlpack::abi::{DLDataType, FLOAT};
///
/// assert_eq!(f32::TYPE, DLDataType { code: FLOAT, bits: 32, lanes: 1 }); // `float32` of NumPy
/// ```
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DLDataType {
    /// [`INT`], [`UINT`], [`FLOAT`], [`BFLOAT`], [`COMPLEX`], [`BOOL`] and so on.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Lanes of a vector; 1 for a scalar.
    pub lanes: u16,
}

/// A tensor, without its ownership.
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::dlpack::DlpackTensor;
/// use ferrogrid::dlpack::abi::DLTensor;
///
/// /// The number of elements, as another library would count them.
/// ///
/// /// # Safety
/// /// `tensor` has as many lengths as dimensions.
/// unsafe fn count(tensor: &DLTensor) -> i64 {
///     // SAFETY: the caller vouches for it.
///     let shape = unsafe { std::slice::from_raw_parts(tensor.shape, tensor.ndim as usize) };
///     shape.iter().product()
/// }
/// let buffer = stream.zeros::<f32>(6)?;
/// let raw = DlpackTensor::from_buffer(&stream, buffer)?.with_shape(&[2, 3])?.into_raw();
/// // SAFETY: it is a live tensor with no other owner.
/// unsafe {
///     assert_eq!(count(&(*raw).dl_tensor), 6);
///     drop(DlpackTensor::from_raw(raw)?); // frees it
/// }
/// # Ok(()) }
/// ```
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DLTensor {
    /// Where its memory starts; may be null if there are no elements.
    pub data: *mut c_void,
    /// Where its memory is.
    pub device: DLDevice,
    /// The number of dimensions.
    pub ndim: i32,
    /// The type of its elements.
    pub dtype: DLDataType,
    /// The length of each dimension.
    pub shape: *mut i64,
    /// The step of each dimension in elements; null means row after row.
    pub strides: *mut i64,
    /// Where the first element is, in bytes after `data`.
    pub byte_offset: u64,
}

/// An owned tensor in the form before DLPack 1.0 (a capsule `dltensor`).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::dlpack::DlpackTensor;
///
/// let raw = DlpackTensor::from_buffer(&stream, stream.zeros::<f32>(6)?)?.into_raw_unversioned()?;
/// // What the other library does: it looks at the tensor, and deletes it once.
/// // SAFETY: it is live, with no other owner.
/// unsafe {
///     assert_eq!(((*raw).dl_tensor.ndim, (*raw).dl_tensor.dtype.bits), (1, 32));
///     (*raw).deleter.unwrap()(raw);
/// }
/// # Ok(()) }
/// ```
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// The maker's own.
    pub manager_ctx: *mut c_void,
    /// Frees this structure and all that belongs to it.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// An owned tensor (a capsule `dltensor_versioned`).
///
/// ```
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// # let stream = Device::cpu().new_stream()?;
/// use ferrogrid::dlpack::DlpackTensor;
/// use ferrogrid::dlpack::abi::{READ_ONLY, VERSION};
///
/// let raw = DlpackTensor::from_buffer(&stream, stream.zeros::<f32>(6)?)?.into_raw();
/// // What the other library does: it checks the version, looks at the tensor, and deletes it once.
/// // SAFETY: it is live, with no other owner.
/// unsafe {
///     assert_eq!(((*raw).version, (*raw).flags & READ_ONLY), (VERSION, 0));
///     (*raw).deleter.unwrap()(raw);
/// }
/// # Ok(()) }
/// ```
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version of all that follows.
    pub version: DLPackVersion,
    /// The maker's own.
    pub manager_ctx: *mut c_void,
    /// Frees this structure and all that belongs to it.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// [`READ_ONLY`], [`IS_COPIED`] and others.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}
