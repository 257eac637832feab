//! Exported tensors in DLPack's structures, with deleters.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{from_mut, null_mut};

use super::abi::{DLManagedTensor, DLManagedTensorVersioned, DLTensor, VERSION};
use super::tensor::DlpackTensor;

/// An exported structure, with the data that it points to. The structure is the first field, so that the
/// address of one is that of the other.
#[repr(C)]
struct Exported<M> {
    managed: M,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _owner: Box<dyn Send>,
}

pub(super) fn versioned(tensor: DlpackTensor) -> *mut DLManagedTensorVersioned {
    let flags = tensor.flags;
    give_away(tensor, |dl_tensor| DLManagedTensorVersioned {
        version: VERSION,
        manager_ctx: null_mut(),
        deleter: Some(delete::<DLManagedTensorVersioned>),
        flags,
        dl_tensor,
    })
}

pub(super) fn unversioned(tensor: DlpackTensor) -> *mut DLManagedTensor {
    give_away(tensor, |dl_tensor| DLManagedTensor {
        dl_tensor,
        manager_ctx: null_mut(),
        deleter: Some(delete::<DLManagedTensor>),
    })
}

fn give_away<M>(tensor: DlpackTensor, managed: impl FnOnce(DLTensor) -> M) -> *mut M {
    let mut shape: Vec<i64> = tensor.shape.into_iter().map(|length| length as i64).collect();
    let mut strides = tensor.strides;
    // The contents of vectors stay where they are when the vectors move.
    let managed = managed(DLTensor {
        data: tensor.start.cast(),
        device: tensor.device,
        ndim: i32::try_from(shape.len()).unwrap_or(i32::MAX),
        dtype: tensor.dtype,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    });
    from_mut(Box::leak(Box::new(Exported { managed, shape, strides, _owner: tensor.owner }))).cast()
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
