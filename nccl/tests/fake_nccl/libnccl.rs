//! An NCCL for tests, compiled by `tests/ranks/fake_gpus.rs` into a `libnccl.so.2`, beside the fake driver of the host
//! (`host/tests/fake_driver/libcuda.rs`). An operation is three pieces of work on the stream that it is given: a copy of its source, a
//! callback that waits for the other ranks, and a copy to its target. So the fake driver judges whether its memory is ordered.
//! The first group with a collective operation waits until all ranks have called one, as real ones are connected then.
//!
//! All its functions are `unsafe`: a caller must pass what the real library requires.
//!
//! | module | contents |
//! |---|---|
//! | `communicators` | the functions of communicators: init, split, destroy, abort, asynchronous errors |
//! | `driver` | the functions of CUDA's driver that operations call |
//! | `group` | groups, and the calls of operations |
//! | `reductions` | the operators of reductions, and the result of each rank |
//! | `registrations` | memory that is allocated and registered |
//! | `state` | the state behind the lock |
//! | `windows` | memory that all ranks register together |
//! | `work` | the work of a call on its stream |

mod communicators;
mod driver;
mod group;
mod reductions;
mod registrations;
mod state;
#[cfg(not(without_windows))]
mod windows;
mod work;

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null;

type Pointer = *mut c_void;

const SUCCESS: c_int = 0;
const INTERNAL_ERROR: c_int = 3;
const INVALID_ARGUMENT: c_int = 4;
const IN_PROGRESS: c_int = 7;

/// The version that it reports.
const VERSION: c_int = 21_903;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> c_int {
    // SAFETY: the caller passes a place for it.
    unsafe { *version = VERSION };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetErrorString(code: c_int) -> *const c_char {
    if code == INVALID_ARGUMENT { c"invalid argument".as_ptr() } else { c"another error".as_ptr() }
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetLastError(_comm: Pointer) -> *const c_char {
    null()
}
