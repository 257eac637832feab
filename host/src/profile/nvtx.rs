//! NVTX ranges for a tool that watches the process: the part of the header-only NVTX 3 that pushes and pops
//! ranges.
//!
//! A tool such as Nsight Systems names a library in `NVTX_INJECTION64_PATH`. It is loaded at the first range,
//! and its `InitializeInjectionNvtx2` is given a function that leads to tables of slots; into these it
//! writes its own functions (nvtx3/nvtxDetail/nvtxInit.h and nvtxTypes.h of NVIDIA's NVTX, whose names stand
//! here). The crate `nvtx` does the same, but needs a C compiler and libclang to build.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::mem::transmute;
use std::ptr::null;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use libloading::Library;

const VARIABLE: &str = "NVTX_INJECTION64_PATH";
/// `NVTX_VERSION`.
const VERSION: u32 = 3;
/// `NVTX_CB_MODULE_CORE`, and the numbers of functions in it.
const CORE: usize = 1;
const RANGE_PUSH_A: usize = 9;
const RANGE_POP: usize = 11;
/// `NVTX_CB_MODULE_*_SIZE`, by the module's number: a tool may fill all slots that exist.
const SIZES: [usize; 7] = [0, 16, 9, 15, 7, 16, 7];
const MOST: usize = 16;

/// A place for a function of the tool; null until the tool fills it.
type Slot = AtomicPtr<c_void>;
/// `nvtxRangePushA_impl_fntype`, `nvtxRangePop_impl_fntype`.
type RangePush = unsafe extern "C" fn(*const c_char) -> c_int;
type RangePop = unsafe extern "C" fn() -> c_int;
/// `NvtxGetExportTableFunc_t`, `NvtxInitializeInjectionNvtxFunc_t`.
type GetExportTable = extern "C" fn(u32) -> *const c_void;
type Initialize = unsafe extern "C" fn(GetExportTable) -> c_int;

static SLOTS: [[Slot; MOST]; SIZES.len()] =
    [const { [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST] }; SIZES.len()];

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    struct_size: usize,
    get_module_function_table: extern "C" fn(c_uint, *mut *const *const Slot, *mut c_uint) -> c_int,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
struct VersionInfo {
    struct_size: usize,
    version: u32,
    reserved: u32,
    set_injection_version: extern "C" fn(u32),
}

static CALLBACKS: Callbacks =
    Callbacks { struct_size: size_of::<Callbacks>(), get_module_function_table: module_table };
static VERSION_INFO: VersionInfo = VersionInfo {
    struct_size: size_of::<VersionInfo>(),
    version: VERSION,
    reserved: 0,
    set_injection_version: ignore_version,
};

/// Tables of the addresses of slots, with null where there is none.
struct Tables([[*const Slot; MOST + 1]; SIZES.len()]);

// SAFETY: the addresses are of statics, which are atomic.
unsafe impl Send for Tables {}
// SAFETY: as above.
unsafe impl Sync for Tables {}

/// The tool's functions.
#[derive(Clone, Copy)]
struct Tool {
    push: RangePush,
    pop: RangePop,
}

/// A range that ends when this is dropped, on the thread that began it.
pub(super) struct Pushed {
    tool: Option<Tool>,
    thread: PhantomData<*const ()>,
}

/// Begins a range, if a tool asks for ranges (`nvtxRangePushA`).
#[inline]
pub(super) fn push(name: &str) -> Pushed {
    let tool = tool();
    if let Some(tool) = tool {
        tell(tool, name);
    }
    Pushed { tool, thread: PhantomData }
}

#[cold]
fn tell(tool: Tool, name: &str) {
    // A NUL cannot be told; what is before it can.
    let text = CString::new(name.split('\0').next().unwrap_or_default()).unwrap_or_default();
    // SAFETY: the tool gave the function for this signature; the text is valid for the call, and tools copy it.
    unsafe { (tool.push)(text.as_ptr()) };
}

impl Drop for Pushed {
    #[inline]
    fn drop(&mut self) {
        if let Some(tool) = self.tool {
            // SAFETY: the tool gave the function for this signature.
            unsafe { (tool.pop)() };
        }
    }
}

#[inline]
fn tool() -> Option<Tool> {
    static TOOL: OnceLock<Option<Tool>> = OnceLock::new();
    *TOOL.get_or_init(load)
}

/// The tool that the environment names, if it comes up and wants ranges.
#[cold]
fn load() -> Option<Tool> {
    let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?;
    // SAFETY: the user who set the variable requests this library in the process, as all users of NVTX do.
    let library = unsafe { Library::new(path) }.ok()?;
    // SAFETY: the symbol has this signature by NVTX's definition.
    let initialize = *unsafe { library.get::<Initialize>(b"InitializeInjectionNvtx2\0") }.ok()?;
    // SAFETY: as above; what it is given answers as NVTX does.
    let accepted = unsafe { initialize(export_table) } != 0;
    // Its functions are used until the process ends; and one that failed may have left threads.
    std::mem::forget(library);
    if !accepted {
        return None;
    }
    let (push, pop) = (function(RANGE_PUSH_A)?, function(RANGE_POP)?);
    // SAFETY: the tool has written functions of these signatures into these slots.
    unsafe {
        Some(Tool {
            push: transmute::<*mut c_void, RangePush>(push),
            pop: transmute::<*mut c_void, RangePop>(pop),
        })
    }
}

/// What the tool has written into a slot of the core module.
fn function(number: usize) -> Option<*mut c_void> {
    let function = SLOTS[CORE][number].load(Ordering::Acquire);
    (!function.is_null()).then_some(function)
}

/// `nvtxGetExportTable`.
extern "C" fn export_table(id: u32) -> *const c_void {
    match id {
        1 => (&raw const CALLBACKS).cast(),
        3 => (&raw const VERSION_INFO).cast(),
        _ => null(),
    }
}

/// `GetModuleFunctionTable`: 1 if the module exists.
extern "C" fn module_table(module: c_uint, table: *mut *const *const Slot, size: *mut c_uint) -> c_int {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    let tables = TABLES.get_or_init(|| {
        // Function 0 does not exist, nor do those at the end of a smaller module.
        let address = |module: usize, slot: usize| {
            if slot == 0 || slot >= SIZES[module] { null() } else { &raw const SLOTS[module][slot] }
        };
        Tables(std::array::from_fn(|module| std::array::from_fn(|slot| address(module, slot))))
    });
    let module = module as usize;
    if module == 0 || module >= SIZES.len() {
        return 0;
    }
    if !table.is_null() {
        // SAFETY: the tool gives the address of a place for the table.
        unsafe { *table = tables.0[module].as_ptr() };
    }
    if !size.is_null() {
        // SAFETY: the tool gives the address of a place for the size.
        unsafe { *size = SIZES[module] as c_uint };
    }
    1
}

/// `SetInjectionNvtxVersion`: of no interest, as NVTX has it.
extern "C" fn ignore_version(_version: u32) {}
