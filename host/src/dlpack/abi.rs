//! The structures of DLPack 1.1, as in `dlpack.h`. It must not know what is done with them.

use std::ffi::c_void;

/// The version of DLPack that is written here: (major, minor). Tensors of another major version are
/// refused.
pub const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 1 };

/// `DLPACK_FLAG_BITMASK_READ_ONLY`: the memory must not be written.
pub const READ_ONLY: u64 = 1;

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
/// `kDLBool`, a byte that is 0 or 1.
pub const BOOL: u8 = 6;

/// The version of a tensor's structure.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DLPackVersion {
    /// Changes when the structure does.
    pub major: u32,
    /// Changes when something is added in place.
    pub minor: u32,
}

/// Where memory is.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DLDevice {
    /// [`CPU`], [`CUDA`] and so on.
    pub device_type: i32,
    /// The number of the device among those of its type.
    pub device_id: i32,
}

/// The type of an element.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DLDataType {
    /// [`INT`], [`UINT`], [`FLOAT`], [`BOOL`] and so on.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Lanes of a vector; 1 for a scalar.
    pub lanes: u16,
}

/// A tensor, without its ownership.
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

/// A tensor that is owned by whoever holds it, in the form before DLPack 1.0 (a capsule `dltensor`).
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

/// A tensor that is owned by whoever holds it (a capsule `dltensor_versioned`).
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version of all that follows.
    pub version: DLPackVersion,
    /// The maker's own.
    pub manager_ctx: *mut c_void,
    /// Frees this structure and all that belongs to it.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// [`READ_ONLY`] and others.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}
