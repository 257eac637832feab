//! The functions of CUDA's driver that operations call.

use std::ffi::{CStr, c_char, c_int};
use std::sync::LazyLock;

use crate::Pointer;

/// The functions of the driver.
pub(crate) struct Driver {
    pub(crate) context: unsafe extern "C" fn(*mut Pointer) -> c_int,
    pub(crate) set_context: unsafe extern "C" fn(Pointer) -> c_int,
    pub(crate) copy: unsafe extern "C" fn(u64, u64, usize, Pointer) -> c_int,
    pub(crate) callback:
        unsafe extern "C" fn(Pointer, unsafe extern "C" fn(Pointer, c_int, Pointer), Pointer, u32) -> c_int,
}

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
    // SAFETY: these are the signatures of CUDA's driver.
    unsafe {
        Driver {
            context: std::mem::transmute::<Pointer, unsafe extern "C" fn(*mut Pointer) -> c_int>(find(
                c"cuCtxGetCurrent",
            )),
            set_context: std::mem::transmute::<Pointer, unsafe extern "C" fn(Pointer) -> c_int>(find(
                c"cuCtxSetCurrent",
            )),
            copy: std::mem::transmute::<Pointer, unsafe extern "C" fn(u64, u64, usize, Pointer) -> c_int>(
                find(c"cuMemcpyAsync"),
            ),
            callback: std::mem::transmute::<
                Pointer,
                unsafe extern "C" fn(
                    Pointer,
                    unsafe extern "C" fn(Pointer, c_int, Pointer),
                    Pointer,
                    u32,
                ) -> c_int,
            >(find(c"cuStreamAddCallback")),
        }
    }
});
