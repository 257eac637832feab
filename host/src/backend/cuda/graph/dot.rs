//! The driver's DOT output of a graph, which it only writes to files.

use std::env::temp_dir;
use std::ffi::{CString, c_uint};
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Template;
use super::memory::MemoryNodes;
use crate::backend::cuda::device::CudaDevice;
use crate::backend::cuda::feedback::Lent;
use crate::backend::operation::{Address, Node};
use crate::error::graph::GraphError;
use crate::error::{Error, Result};

/// The driver's text for a graph of `nodes`; `kept` is as in `CudaGraph::new`.
pub(crate) fn graph_to_dot(
    device: &'static CudaDevice,
    nodes: &[Node],
    kept: Address,
    flags: c_uint,
) -> Result<String> {
    // It is never launched, so the record may go back at once.
    let memory = MemoryNodes::copy_of(device, nodes)?;
    let template = Template::new(memory, nodes, kept, &Lent::new(device)?)?;
    let file = OwnFile::create()?;
    let path = file.name()?;
    // SAFETY: the graph is live, and the path a string for the call.
    let code = unsafe { device.driver().graph_print(template.raw(), path.as_ptr(), flags) };
    device.check(code, &format_args!("{} nodes", nodes.len()))?;
    fs::read_to_string(&file.0).map_err(|error| file.failed(&error))
}

/// A file that is gone in the end.
struct OwnFile(PathBuf);

impl OwnFile {
    /// An empty one. Made here, because the driver would follow a link that another process has put in its place.
    fn create() -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = temp_dir().join(format!("ferrogrid-{}-{number}.dot", process::id()));
        match File::create_new(&path) {
            Ok(_) => Ok(OwnFile(path)),
            Err(error) => Err(failed(&path, &error)),
        }
    }

    fn name(&self) -> Result<CString> {
        let bytes = self.0.as_os_str().as_encoded_bytes();
        CString::new(bytes).map_err(|error| self.failed(&error.into()))
    }

    fn failed(&self, error: &io::Error) -> Error {
        failed(&self.0, error)
    }
}

fn failed(path: &std::path::Path, error: &io::Error) -> Error {
    let (path, reason) = (path.display().to_string().into(), error.to_string().into());
    GraphError::Picture { path, reason }.into()
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = fs::remove_file(&self.0);
    }
}
