//! NCCL's functions, found at run time. The signatures are those of `nccl.h`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::sync::OnceLock;

use ferrogrid_host::{Error, NcclError, Result, ToolkitLibrary};
use libloading::Library;

use crate::unique_id::BYTES;

/// The oldest version that works: it can split communicators that do not block.
const NEEDED: (u32, u32) = (2, 19);

/// `ncclComm_t`.
pub(super) type Comm = *mut c_void;

/// `ncclUniqueId`, which is passed by value.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct RawId(pub(super) [u8; BYTES]);

/// `ncclConfig_t` as of NCCL 2.18. Later versions have more fields, to which NCCL gives their defaults, as it finds the size and
/// the version here; the first of them is in what was padding.
#[repr(C)]
pub(super) struct Config {
    size: usize,
    magic: u32,
    version: u32,
    blocking: c_int,
    cga_cluster_size: c_int,
    min_ctas: c_int,
    max_ctas: c_int,
    net_name: *const c_char,
    split_share: c_int,
    traffic_class: c_int,
}

/// `NCCL_CONFIG_UNDEF_INT`.
const UNDEFINED: c_int = c_int::MIN;

impl Config {
    /// Calls do not block, and what is split from it shares its resources.
    pub(super) fn parent() -> Self {
        Config { split_share: 1, ..Config::new() }
    }

    /// Calls block.
    pub(super) fn blocking() -> Self {
        Config { blocking: 1, ..Config::new() }
    }

    /// All defaults, except that no call blocks.
    pub(super) fn new() -> Self {
        Config {
            size: size_of::<Config>(),
            magic: 0xcafe_beef,
            version: NEEDED.0 * 10_000 + NEEDED.1 * 100,
            blocking: 0,
            cga_cluster_size: UNDEFINED,
            min_ctas: UNDEFINED,
            max_ctas: UNDEFINED,
            net_name: std::ptr::null(),
            split_share: 0,
            traffic_class: UNDEFINED,
        }
    }
}

/// `ncclResult_t`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Code(pub(super) c_int);

impl Code {
    pub(super) const SUCCESS: Code = Code(0);
    pub(super) const IN_PROGRESS: Code = Code(7);

    /// Whether the call has been taken, and may go on in the background.
    pub(super) fn is_taken(self) -> bool {
        self == Code::SUCCESS || self == Code::IN_PROGRESS
    }
}

macro_rules! functions {
    ($( $(#[$attribute:meta])* $name:ident = $symbol:literal ( $($ty:ty),* ) -> $result:ty; )*) => {
        /// The functions of NCCL.
        pub(super) struct Nccl {
            $( $(#[$attribute])* pub(super) $name: unsafe extern "C" fn($($ty),*) -> $result, )*
        }

        impl Nccl {
            /// Finds the functions in a library that stays open.
            fn find(library: &'static Library, path: &Path) -> Result<Self, NcclError> {
                Ok(Nccl { $(
                    $name: {
                        // SAFETY: the signature is that of NVIDIA's header.
                        let found = unsafe {
                            library.get::<unsafe extern "C" fn($($ty),*) -> $result>($symbol.as_bytes())
                        };
                        *found.map_err(|_| missing(path, $symbol))?
                    },
                )* })
            }
        }
    };
}

functions! {
    get_unique_id = "ncclGetUniqueId"(*mut RawId) -> Code;
    /// Communicator, ranks, id, rank, configuration.
    comm_init_rank_config = "ncclCommInitRankConfig"(*mut Comm, c_int, RawId, c_int, *mut Config) -> Code;
    /// Communicator, color, key, new communicator, configuration or null.
    comm_split = "ncclCommSplit"(Comm, c_int, c_int, *mut Comm, *mut Config) -> Code;
    comm_user_rank = "ncclCommUserRank"(Comm, *mut c_int) -> Code;
    comm_count = "ncclCommCount"(Comm, *mut c_int) -> Code;
    comm_destroy = "ncclCommDestroy"(Comm) -> Code;
    comm_abort = "ncclCommAbort"(Comm) -> Code;
    comm_get_async_error = "ncclCommGetAsyncError"(Comm, *mut Code) -> Code;
    /// Where the memory is, and bytes.
    mem_alloc = "ncclMemAlloc"(*mut *mut c_void, usize) -> Code;
    mem_free = "ncclMemFree"(*mut c_void) -> Code;
    /// Communicator, memory, bytes, handle; null if registration is turned off.
    comm_register = "ncclCommRegister"(Comm, *mut c_void, usize, *mut *mut c_void) -> Code;
    comm_deregister = "ncclCommDeregister"(Comm, *mut c_void) -> Code;
    get_error_string = "ncclGetErrorString"(Code) -> *const c_char;
    get_last_error = "ncclGetLastError"(Comm) -> *const c_char;
    group_start = "ncclGroupStart"() -> Code;
    group_end = "ncclGroupEnd"() -> Code;
    /// Operation, factor, element, where the factor is, communicator.
    red_op_create_pre_mul_sum = "ncclRedOpCreatePreMulSum"(*mut c_int, *mut c_void, c_int, c_int, Comm) -> Code;
    red_op_destroy = "ncclRedOpDestroy"(c_int, Comm) -> Code;
    /// Source, target, count, element, operation, communicator, stream; so are the following.
    all_reduce = "ncclAllReduce"(*const c_void, *mut c_void, usize, c_int, c_int, Comm, *mut c_void) -> Code;
    reduce = "ncclReduce"(*const c_void, *mut c_void, usize, c_int, c_int, c_int, Comm, *mut c_void) -> Code;
    broadcast = "ncclBroadcast"(*const c_void, *mut c_void, usize, c_int, c_int, Comm, *mut c_void) -> Code;
    all_gather = "ncclAllGather"(*const c_void, *mut c_void, usize, c_int, Comm, *mut c_void) -> Code;
    reduce_scatter = "ncclReduceScatter"(*const c_void, *mut c_void, usize, c_int, c_int, Comm, *mut c_void) -> Code;
    send = "ncclSend"(*const c_void, usize, c_int, c_int, Comm, *mut c_void) -> Code;
    recv = "ncclRecv"(*mut c_void, usize, c_int, c_int, Comm, *mut c_void) -> Code;
}

impl Nccl {
    /// NCCL, opened at the first call; the answer is kept.
    pub(super) fn load() -> Result<&'static Nccl> {
        Ok(&loaded()?.functions)
    }

    /// NCCL's text for an error, and its last message.
    pub(super) fn text(&self, code: Code) -> String {
        // SAFETY: both functions take any code, and null for the whole process; the texts are NCCL's, and end with 0.
        let (name, message) = unsafe {
            (text((self.get_error_string)(code)), text((self.get_last_error)(std::ptr::null_mut())))
        };
        if message.is_empty() { name } else { format!("{name} ({message})") }
    }

    /// The error of a call of `rank` that NCCL refused with `code`.
    pub(super) fn error(&self, function: &'static str, rank: usize, code: Code) -> Error {
        NcclError::Call { function, rank, reason: self.text(code).trim().into() }.into()
    }

    /// That `code`, of a call of `rank`, is no failure.
    pub(super) fn check(&self, function: &'static str, rank: usize, code: Code) -> Result<()> {
        if code.is_taken() { Ok(()) } else { Err(self.error(function, rank, code)) }
    }
}

/// The functions for windows, which NCCL has from 2.27 on.
pub(super) struct Windows {
    /// Communicator, memory, bytes, window (null if the GPUs allow none), flags. All ranks call it.
    pub(super) register: unsafe extern "C" fn(Comm, *mut c_void, usize, *mut *mut c_void, c_int) -> Code,
    /// Communicator, window.
    pub(super) deregister: unsafe extern "C" fn(Comm, *mut c_void) -> Code,
}

impl Windows {
    /// Those of the library that is open; `None` if it is older.
    pub(super) fn get() -> Option<&'static Windows> {
        loaded().ok()?.windows.as_ref()
    }

    fn find(library: &'static Library) -> Option<Self> {
        // SAFETY: the signatures are those of NVIDIA's header.
        let (register, deregister) = unsafe {
            (library.get(b"ncclCommWindowRegister").ok()?, library.get(b"ncclCommWindowDeregister").ok()?)
        };
        Some(Windows { register: *register, deregister: *deregister })
    }
}

struct Loaded {
    functions: Nccl,
    windows: Option<Windows>,
    version: (u32, u32, u32),
}

fn loaded() -> Result<&'static Loaded> {
    static LOADED: OnceLock<Result<Loaded>> = OnceLock::new();
    LOADED.get_or_init(|| open(&ToolkitLibrary::Nccl.find()?)).as_ref().map_err(Error::clone)
}

/// The version of NCCL (`ncclGetVersion`): major, minor, patch.
///
/// ```
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::{Error, ForeignError};
///
/// match ferrogrid::nccl::version() {
///     Ok((major, minor, patch)) => println!("NCCL {major}.{minor}.{patch}"),
///     Err(Error::Foreign(ForeignError::LibraryMissing { package, .. })) => println!("pip install {package}"),
///     Err(error) => return Err(error),
/// }
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`ForeignError::LibraryMissing`](ferrogrid_host::ForeignError::LibraryMissing), with all places that were tried: what the variable `FERROGRID_NCCL` names, a file or a
/// folder; else what the system's loader finds, and the active environment of Python or conda. [`NcclError::TooOld`] for
/// versions before 2.19.
pub fn version() -> Result<(u32, u32, u32)> {
    Ok(loaded()?.version)
}

/// Opens the library, for the rest of the process.
fn open(path: &Path) -> Result<Loaded> {
    // SAFETY: NCCL's initialisers have no preconditions; it has been opened by this name before.
    let library = unsafe { Library::new(path) }.map_err(|_| missing(path, "ncclGetVersion"))?;
    let library: &'static Library = Box::leak(Box::new(library));
    let version = version_of(library, path)?;
    if (version.0, version.1) < NEEDED {
        let path = path.display().to_string().into();
        return Err(NcclError::TooOld { path, found: version, needed: NEEDED }.into());
    }
    Ok(Loaded { functions: Nccl::find(library, path)?, windows: Windows::find(library), version })
}

fn version_of(library: &Library, path: &Path) -> Result<(u32, u32, u32), NcclError> {
    const SYMBOL: &str = "ncclGetVersion";
    // SAFETY: the signature is that of NVIDIA's header.
    let found = unsafe { library.get::<unsafe extern "C" fn(*mut c_int) -> Code>(SYMBOL.as_bytes()) };
    let get_version = found.map_err(|_| missing(path, SYMBOL))?;
    let mut code = 0;
    // SAFETY: `code` is valid for the call, which fails only for a null pointer.
    let _success = unsafe { get_version(&mut code) };
    Ok(decode(code.unsigned_abs()))
}

/// The parts of `NCCL_VERSION_CODE`; from 2.9 on the minor version has two digits more.
fn decode(code: u32) -> (u32, u32, u32) {
    let thousand = if code < 10_000 { 1_000 } else { 10_000 };
    (code / thousand, code % thousand / 100, code % 100)
}

fn missing(path: &Path, symbol: &'static str) -> NcclError {
    NcclError::MissingSymbol { path: path.display().to_string().into(), symbol }
}

/// # Safety
/// `text` is null, or a text that ends with 0 and stays.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: passed on.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_parts_that_nvidia_documents() {
        let decoded = [2804, 20_900, 21_805, 22_203, 22_809].map(decode);
        assert_eq!(decoded, [(2, 8, 4), (2, 9, 0), (2, 18, 5), (2, 22, 3), (2, 28, 9)]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_library_that_is_too_old_or_none_at_all_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let build = |name: &str, source: &str| {
            let (from, to) = (folder.path().join(format!("{name}.rs")), folder.path().join(name));
            std::fs::write(&from, source).unwrap();
            let built = std::process::Command::new("rustc")
                .args(["--edition=2024", "--crate-name=fake", "--crate-type=cdylib", "-o"])
                .args([&to, &from])
                .status();
            assert!(built.unwrap().success());
            to
        };
        let of_version = |code: u32| {
            format!(
                "#[unsafe(no_mangle)] pub unsafe extern \"C\" fn ncclGetVersion(code: *mut i32) -> i32 {{ unsafe {{ *code = {code} }}; 0 }}"
            )
        };
        let old = build("libold.so", &of_version(21_805));
        let error = open(&old).err().unwrap().to_string();
        let file = old.display();
        assert!(
            error.starts_with(&format!(
                "NCCL 2.18.5 in `{file}` is too old: this crate requires 2.19 or newer"
            )),
            "{error}"
        );

        let partial = build("libpartial.so", &of_version(21_903));
        let error = open(&partial).err().unwrap().to_string();
        assert!(error.contains("libpartial.so` has no function `ncclGetUniqueId`"), "{error}");

        let other = build("libother.so", "");
        let error = open(&other).err().unwrap().to_string();
        assert!(error.contains("libother.so` has no function `ncclGetVersion`"), "{error}");
    }
}
