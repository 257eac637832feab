//! The functions of CUDA's driver that operations call.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::null_mut;
use std::sync::LazyLock;

use crate::Pointer;

/// The functions of the driver.
pub(crate) struct Driver {
    pub(crate) context: unsafe extern "C" fn(*mut Pointer) -> c_int,
    pub(crate) set_context: unsafe extern "C" fn(Pointer) -> c_int,
    pub(crate) copy: unsafe extern "C" fn(u64, u64, usize, Pointer) -> c_int,
    pub(crate) callback: unsafe extern "C" fn(Pointer, Callback, Pointer, u32) -> c_int,
    /// Stream, status, id, graph, and two that are not wanted.
    pub(crate) capture_info:
        unsafe extern "C" fn(Pointer, *mut u32, *mut u64, *mut Pointer, Pointer, Pointer) -> c_int,
    /// As `callback`, on a stream that is captured: the first function gives each launch its data. Only the fake driver has it.
    pub(crate) captured_call: unsafe extern "C" fn(Pointer, Prepare, Callback, Pointer) -> c_int,
    pub(crate) allocate: unsafe extern "C" fn(*mut u64, usize) -> c_int,
    pub(crate) free: unsafe extern "C" fn(u64) -> c_int,
    pub(crate) create_object:
        unsafe extern "C" fn(*mut Pointer, Pointer, unsafe extern "C" fn(Pointer), u32, u32) -> c_int,
    pub(crate) retain_object: unsafe extern "C" fn(Pointer, Pointer, u32, u32) -> c_int,
}

pub(crate) type Callback = unsafe extern "C" fn(Pointer, c_int, Pointer);
pub(crate) type Prepare = unsafe extern "C" fn(Pointer) -> Pointer;

// SAFETY: the declarations are those of POSIX.
unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> Pointer;
    fn dlsym(library: Pointer, name: *const c_char) -> Pointer;
}

pub(crate) static DRIVER: LazyLock<Driver> = LazyLock::new(|| {
    // SAFETY: the program under test has loaded it; 2 is `RTLD_NOW`.
    let library = unsafe { dlopen(c"libcuda.so.1".as_ptr(), 2) };
    assert!(!library.is_null(), "there is a driver");
    let find = |name: &CStr| {
        // SAFETY: the library is open, and stays so.
        let found = unsafe { dlsym(library, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?}");
        found
    };
    macro_rules! function {
        ($name:literal) => {
            // SAFETY: the type is the signature in CUDA's driver.
            unsafe { std::mem::transmute::<Pointer, _>(find($name)) }
        };
    }
    Driver {
        context: function!(c"cuCtxGetCurrent"),
        set_context: function!(c"cuCtxSetCurrent"),
        copy: function!(c"cuMemcpyAsync"),
        callback: function!(c"cuStreamAddCallback"),
        capture_info: function!(c"cuStreamGetCaptureInfo_v2"),
        captured_call: function!(c"fakeCaptureCall"),
        allocate: function!(c"cuMemAlloc_v2"),
        free: function!(c"cuMemFree_v2"),
        create_object: function!(c"cuUserObjectCreate"),
        retain_object: function!(c"cuGraphRetainUserObject"),
    }
});

/// The graph that a stream is captured for; null if it is not.
pub(crate) fn graph_of(stream: usize) -> Pointer {
    let (mut status, mut id, mut graph) = (0, 0, null_mut());
    // SAFETY: the places are valid for the call, and the stream is live.
    let code = unsafe {
        (DRIVER.capture_info)(stream as Pointer, &mut status, &mut id, &mut graph, null_mut(), null_mut())
    };
    assert_eq!(code, 0);
    graph
}
