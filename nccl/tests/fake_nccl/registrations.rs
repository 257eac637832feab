//! Memory that is allocated here and registered: deregistered before it is freed, and before its communicator is destroyed.

use std::ffi::c_int;

use crate::driver::DRIVER;
use crate::state::state;
use crate::{INVALID_ARGUMENT, Pointer, SUCCESS};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclMemAlloc(place: *mut Pointer, bytes: usize) -> c_int {
    let mut start = 0;
    // SAFETY: the place is valid for the call.
    if unsafe { (DRIVER.allocate)(&mut start, bytes) } != SUCCESS {
        return INVALID_ARGUMENT;
    }
    state().allocated.insert(start as usize, bytes);
    // SAFETY: the caller passes a place for it.
    unsafe { *place = start as Pointer };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclMemFree(start: Pointer) -> c_int {
    let mut state = state();
    state.allocated.remove(&(start as usize)).expect("freed once");
    let is_registered = state.registered.get(&(start as usize)).is_some_and(|(comm, _)| {
        let family = state.comms[comm].family;
        !state.aborted.contains(&family)
    });
    assert!(!is_registered, "deregistered before");
    drop(state);
    // SAFETY: allocated above; the caller frees it after all work.
    unsafe { (DRIVER.free)(start as u64) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommRegister(comm: Pointer, start: Pointer, bytes: usize, handle: *mut Pointer) -> c_int {
    let mut state = state();
    assert!(state.comms.contains_key(&(comm as usize)), "a live communicator");
    assert_eq!(state.allocated.get(&(start as usize)), Some(&bytes), "memory that can be shared");
    assert!(state.registered.insert(start as usize, (comm as usize, bytes)).is_none(), "registered once");
    // SAFETY: the caller passes a place for it.
    unsafe { *handle = start };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommDeregister(comm: Pointer, handle: Pointer) -> c_int {
    let mut state = state();
    assert!(state.comms.contains_key(&(comm as usize)), "a live communicator");
    let (of, _) = state.registered.remove(&(handle as usize)).expect("deregistered once");
    assert_eq!(of, comm as usize);
    SUCCESS
}
