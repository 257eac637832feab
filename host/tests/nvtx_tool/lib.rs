//! A tool that NVTX loads: it writes the ranges that it gets to the file that `NVTX_TOOL_LOG` names.
//! `tests/nvtx.rs` compiles it.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::Write;

type GetExportTable = extern "C" fn(u32) -> *const c_void;

#[repr(C)]
struct Callbacks {
    struct_size: usize,
    get_module_function_table: extern "C" fn(c_uint, *mut *const *mut *const c_void, *mut c_uint) -> c_int,
}

#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjectionNvtx2(get_export_table: GetExportTable) -> c_int {
    if std::env::var_os("NVTX_TOOL_REFUSES").is_some() {
        return 0;
    }
    let callbacks = get_export_table(1).cast::<Callbacks>();
    let version = get_export_table(3).cast::<u32>();
    assert!(!version.is_null() && get_export_table(99).is_null());
    // SAFETY: table 1 is that of the callbacks, which NVTX keeps as long as the process runs; the size is compared below.
    let callbacks = unsafe { &*callbacks };
    assert_eq!(callbacks.struct_size, size_of::<Callbacks>());
    for (module, functions) in [(1, 16), (2, 9), (3, 15), (4, 7), (5, 16), (6, 7)] {
        let (mut table, mut size) = (std::ptr::null(), 0);
        assert_eq!((callbacks.get_module_function_table)(module, &mut table, &mut size), 1);
        assert_eq!(size, functions);
        for number in 1..size as usize {
            // As tools do it: all slots must be there.
            // SAFETY: the table has `size` entries.
            let slot = unsafe { *table.add(number) };
            let function: *const c_void = match (module, number) {
                (1, 9) => push as *const c_void,
                (1, 11) => pop as *const c_void,
                _ => std::ptr::null(),
            };
            // SAFETY: each entry points to a static slot for a function, which NVTX reads only after this returns.
            unsafe { *slot = function };
        }
    }
    assert_eq!((callbacks.get_module_function_table)(7, std::ptr::null_mut(), std::ptr::null_mut()), 0);
    1
}

extern "C" fn push(text: *const c_char) -> c_int {
    // SAFETY: NVTX passes on the text of `nvtxRangePushA`, which ends with a zero byte.
    let text = unsafe { CStr::from_ptr(text) };
    log(&format!("push {}", text.to_str().unwrap()));
    0
}

extern "C" fn pop() -> c_int {
    log("pop");
    0
}

fn log(line: &str) {
    let path = std::env::var_os("NVTX_TOOL_LOG").unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}
