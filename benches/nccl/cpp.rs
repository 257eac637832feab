//! The C++ side, benches/cuda/nccl.cu, as functions.

use std::ffi::{c_int, c_void};
use std::path::Path;

use ferrogrid::Stream;
use libloading::Library;

use crate::{Collective, Outcome};

type Pointer = *mut c_void;

/// (communicator, id, rank, ranks, device)
type NewComm = unsafe extern "C" fn(*mut Pointer, *const CppId, c_int, c_int, c_int) -> f64;

/// (operation, source, target, count, communicator, stream, repeats, whether to wait)
type Collectives =
    unsafe extern "C" fn(c_int, *const f32, *mut f32, usize, Pointer, Pointer, u32, c_int) -> f64;

/// The functions of the library, as declared there.
pub struct Cpp {
    new_id: unsafe extern "C" fn(*mut CppId) -> f64,
    new_comm: NewComm,
    destroy_comm: unsafe extern "C" fn(Pointer) -> f64,
    collectives: Collectives,
    /// Keeps the functions loaded.
    _library: Library,
}

/// `ncclUniqueId`.
#[repr(C)]
pub struct CppId([u8; 128]);

/// One rank of a communicator that C++ has made, for the thread that made it.
pub struct CppComm<'c> {
    cpp: &'c Cpp,
    handle: Pointer,
}

/// What an operation reads and writes, with the count of NCCL's functions.
#[derive(Clone, Copy)]
pub struct Buffers {
    pub source: *const f32,
    pub target: *mut f32,
    pub count: usize,
}

impl Cpp {
    /// Loads the library; NCCL must have been opened.
    pub fn load(path: &Path) -> Outcome<Self> {
        // SAFETY: the library is that of benches/cuda/nccl.cu, and runs nothing when it is loaded except the CUDA runtime's own
        // initialisation; the types are those declared there.
        unsafe {
            let library = Library::new(path)?;
            Ok(Cpp {
                new_id: *library.get(b"new_id")?,
                new_comm: *library.get(b"new_comm")?,
                destroy_comm: *library.get(b"destroy_comm")?,
                collectives: *library.get(b"collectives")?,
                _library: library,
            })
        }
    }

    pub fn new_id(&self) -> Outcome<CppId> {
        let mut id = CppId([0; 128]);
        // SAFETY: `id` is valid for the call.
        seconds(unsafe { (self.new_id)(&mut id) })?;
        Ok(id)
    }

    /// Rank `rank` of `size`, on the GPU of that number. Waits until all ranks have called this.
    pub fn new_comm(&self, id: &CppId, rank: usize, size: usize) -> Outcome<CppComm<'_>> {
        let mut handle = std::ptr::null_mut();
        let (rank, size) = (rank as c_int, size as c_int);
        // SAFETY: both pointers are valid for the call.
        seconds(unsafe { (self.new_comm)(&mut handle, id, rank, size, rank) })?;
        Ok(CppComm { cpp: self, handle })
    }
}

impl CppComm<'_> {
    /// Seconds for `repeats` operations; without the wait for their end, those of enqueueing them.
    ///
    /// # Safety
    /// The buffers have as many elements as the operation uses on this rank, of the communicator's device, and no other work uses them.
    pub unsafe fn run(
        &self,
        collective: Collective,
        buffers: Buffers,
        stream: &Stream,
        repeats: u32,
        is_waited_for: bool,
    ) -> Outcome<f64> {
        let Buffers { source, target, count } = buffers;
        let (kind, stream) = (collective as c_int, stream.as_raw().ok_or("no GPU")?);
        // SAFETY: communicator and stream are live; the caller vouches for the buffers.
        seconds(unsafe {
            let (collectives, wait) = (self.cpp.collectives, c_int::from(is_waited_for));
            collectives(kind, source, target, count, self.handle, stream, repeats, wait)
        })
    }
}

impl Drop for CppComm<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is live and not used again; its work has been waited for.
        let _destroyed = unsafe { (self.cpp.destroy_comm)(self.handle) };
    }
}

/// What a function returned: seconds, or a code, negated.
fn seconds(result: f64) -> Outcome<f64> {
    match -result {
        code if code <= 0.0 => Ok(result),
        9999.0 => Err("C++ finds no NCCL that this process has opened as libnccl.so.2".into()),
        code if code > 1000.0 => Err(format!("C++ fails with CUDA's code {}", code - 1000.0).into()),
        code => Err(format!("C++ fails with NCCL's code {code}").into()),
    }
}
