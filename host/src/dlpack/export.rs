//! Exported tensors in DLPack's structures, with deleters.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{from_mut, null_mut};

use super::abi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLTensor, VERSION};

/// The description of a tensor, without ownership.
pub(super) struct Parts {
    pub(super) start: *mut u8,
    pub(super) device: DLDevice,
    pub(super) dtype: DLDataType,
    pub(super) shape: Vec<i64>,
    pub(super) strides: Vec<i64>,
}

/// An exported structure, with the data that it points to. The structure is the first field, so that the
/// address of one is that of the other.
#[repr(C)]
struct Exported<M> {
    managed: M,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _owner: Box<dyn Send>,
}

pub(super) fn versioned(parts: Parts, flags: u64, owner: Box<dyn Send>) -> *mut DLManagedTensorVersioned {
    give_away(parts, owner, |dl_tensor| DLManagedTensorVersioned {
        version: VERSION,
        manager_ctx: null_mut(),
        deleter: Some(delete::<DLManagedTensorVersioned>),
        flags,
        dl_tensor,
    })
}

pub(super) fn unversioned(parts: Parts, owner: Box<dyn Send>) -> *mut DLManagedTensor {
    give_away(parts, owner, |dl_tensor| DLManagedTensor {
        dl_tensor,
        manager_ctx: null_mut(),
        deleter: Some(delete::<DLManagedTensor>),
    })
}

fn give_away<M>(mut parts: Parts, owner: Box<dyn Send>, managed: impl FnOnce(DLTensor) -> M) -> *mut M {
    // The contents of vectors stay where they are when the vectors move.
    let tensor = DLTensor {
        data: parts.start.cast(),
        device: parts.device,
        ndim: i32::try_from(parts.shape.len()).unwrap_or(i32::MAX),
        dtype: parts.dtype,
        shape: parts.shape.as_mut_ptr(),
        strides: parts.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let (shape, strides) = (parts.shape, parts.strides);
    let exported = Box::new(Exported { managed: managed(tensor), shape, strides, _owner: owner });
    from_mut(Box::leak(exported)).cast()
}

/// # Safety
/// `managed` is from `give_away` of that type, and deleted once.
unsafe extern "C" fn delete<M>(managed: *mut M) {
    if managed.is_null() {
        return;
    }
    // SAFETY: the structure is the first field of an `Exported` that was leaked from a box.
    let exported = unsafe { Box::from_raw(managed.cast::<Exported<M>>()) };
    // A panic must not reach the other library; nothing is left to be inconsistent.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(exported)));
}
