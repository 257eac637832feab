//! The linking of kernels in Rust with the device code that has the functions which they declare, when a
//! module is loaded. `input` is that code, `linker` the public linker for other code.

pub(crate) mod input;
pub(crate) mod linker;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::image::Image;
use super::image::code_type::CodeType;
use super::jit::JitOptions;
use crate::backend::cuda::{CudaDevice, CudaLinker};
use crate::error::foreign::ForeignError;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::toolkit::NvJitLink;
use input::LinkInput;

/// What was given for an image.
#[derive(Default)]
struct Given {
    inputs: Vec<LinkInput>,
    /// Whether some device has loaded it.
    is_linked: bool,
}

/// By the image's number.
static GIVEN: Mutex<Option<HashMap<u128, Given>>> = Mutex::new(None);

fn with_given<T>(id: u128, change: impl FnOnce(&mut Given) -> T) -> T {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    change(given.get_or_insert_default().entry(id).or_default())
}

impl Kernel {
    /// Gives the code that has the functions which the kernel's module declares as `unsafe extern "C"`, for all devices
    /// and all kernels that were compiled together with this one. When they are first loaded on a GPU they are linked
    /// with it, and with the files that the module names (`#[link(file = "offset.ptx")]`): by the driver's linker
    /// (`cuLinkAddData`), or by nvJitLink if there is LTO IR among it. Adds to what was given before.
    ///
    /// ```
    /// use ferrogrid::prelude::*;
    /// use ferrogrid::LinkInput;
    ///
    /// #[ferrogrid::module(host_only)] // in a crate with a build.rs: #[ferrogrid::module]
    /// mod kernels {
    ///     use ferrogrid::device::prelude::*;
    ///
    ///     unsafe extern "C" {
    ///         /// `extern "C" __device__ unsigned offset(unsigned)`; the CPU device calls the function below.
    ///         #[native(native_offset)]
    ///         fn offset(index: u32) -> u32;
    ///     }
    ///
    ///     fn native_offset(index: u32) -> u32 {
    ///         100 * index + 1
    ///     }
    ///
    ///     #[kernel]
    ///     pub fn offsets(t: Thread<1>, mut y: DisjointSlice<u32>) {
    ///         let i = t.index();
    ///         if let Some(y) = y.get_mut(i) {
    ///             // SAFETY: it asks for nothing.
    ///             *y = unsafe { offset(i.get() as u32) };
    ///         }
    ///     }
    /// }
    ///
    /// # fn main() -> ferrogrid::Result<()> {
    /// # let device = Device::cpu();
    /// # #[cfg(any())]
    /// let device = Device::best()?;
    /// if device.is_cuda() {
    ///     kernels::offsets::kernel().link_with([LinkInput::from_file("offset.ptx")?])?;
    /// }
    /// let stream = device.new_stream()?;
    /// let mut y = stream.zeros(3)?;
    /// kernels::offsets(&stream, Grid::cover(3), &mut y)?;
    /// assert_eq!(stream.download(&y)?, [1, 101, 201]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ForeignError::AlreadyLinked`] after the first launch on a GPU; [`Error::NoDeviceCode`] if the kernel has no device
    /// code. What does not fit is an error of that launch: [`ForeignError::UnresolvedFunctions`], [`ForeignError::Link`].
    pub fn link_with(&'static self, inputs: impl IntoIterator<Item = LinkInput>) -> Result<()> {
        let image = self.descriptor().image;
        let id = image.id().ok_or(Error::NoDeviceCode { kernel: self.name(), reason: image.reason() })?;
        let inputs: Vec<LinkInput> = inputs.into_iter().collect();
        with_given(id, |given| {
            if given.is_linked {
                return Err(ForeignError::AlreadyLinked { kernel: self.name() }.into());
            }
            given.inputs.extend(inputs);
            Ok(())
        })
    }
}

/// Machine code of the text of the image `id`, linked with its `files` and what else was given; `None` if the text calls
/// nothing that it has not.
pub(crate) fn linked(
    device: &CudaDevice,
    id: u128,
    files: &[(&str, &[u8])],
    text: &str,
) -> Result<Option<Vec<u8>>> {
    let functions = unresolved(text);
    if functions.is_empty() {
        return Ok(None);
    }
    let mut inputs = Vec::new();
    for (name, bytes) in files {
        inputs.push(LinkInput::from_bytes(name, bytes)?);
    }
    inputs.extend(with_given(id, |given| given.inputs.clone()));
    if inputs.is_empty() {
        let functions = functions.into_iter().map(Into::into).collect();
        return Err(ForeignError::UnresolvedFunctions { functions }.into());
    }
    let cubin = match inputs.iter().any(is_lto_ir) {
        true => by_nvjitlink(device.capability(), text, &inputs)?,
        false => by_driver(device, text, &inputs)?,
    };
    with_given(id, |given| given.is_linked = true);
    Ok(Some(cubin))
}

fn is_lto_ir(input: &LinkInput) -> bool {
    input.code_type() == CodeType::LtoIr
}

/// What the text of kernels is called in messages.
const KERNELS: &str = "the kernels";

fn by_driver(device: &CudaDevice, text: &str, inputs: &[LinkInput]) -> Result<Vec<u8>> {
    let mut link = CudaLinker::new(device, &JitOptions::new())?;
    link.add(KERNELS, &Image::ptx(text)?)?;
    for input in inputs {
        link.add(input.name(), &input.image()?)?;
    }
    Ok(link.complete()?.0)
}

fn by_nvjitlink((major, minor): (u32, u32), text: &str, inputs: &[LinkInput]) -> Result<Vec<u8>> {
    let architecture = format!("-arch=sm_{major}{minor}");
    // Without any LTO IR the option is an error.
    let options = [&*architecture, "-lto"];
    let count = if inputs.iter().any(is_lto_ir) { 2 } else { 1 };
    let mut link = NvJitLink::new(&options[..count])?;
    link.add(CodeType::Ptx, KERNELS, text.as_bytes())?;
    for input in inputs {
        link.add(input.code_type(), input.name(), input.bytes())?;
    }
    Ok(link.complete()?.cubin)
}

/// What the driver has itself.
const RUN_TIME: [&str; 4] = ["vprintf", "malloc", "free", "__assertfail"];

/// The functions that the text declares as `.extern`, besides those of the driver.
pub(crate) fn unresolved(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for line in text.lines() {
        let Some(rest) = line.trim_start().strip_prefix(".extern .func") else { continue };
        let rest = rest.trim_start();
        let rest =
            if rest.starts_with('(') { rest.split_once(')').map_or("", |(_, rest)| rest) } else { rest };
        let name = rest.trim_start().split(['(', ';', ' ', '\t']).next().unwrap_or_default();
        if !name.is_empty() && !RUN_TIME.contains(&name) && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolkit::{CompileOptions, Nvrtc};

    const TEXT: &str = "\
.version 6.3
.target sm_75
.address_size 64
.extern .func  (.param .b32 func_retval0) vprintf
(
\t.param .b64 a
)
;
.extern .func  (.param .b32 func_retval0) offset
(
\t.param .b32 offset_param_0
)
;
.extern .func note(.param .b32 x);
.extern .func note(.param .b32 x);
.visible .entry run (.param .u64 x)
{
\t.reg .b64 %d<3>;
\t.reg .b32 %r<3>;
\tld.param.u64 %d1, [x];
\tmov.u32 %r1, %tid.x;
\t{
\t.param .b32 param0;
\t.param .b32 retval0;
\tst.param.b32 [param0], %r1;
\tcall.uni (retval0), offset, (param0);
\tld.param.b32 %r2, [retval0];
\t}
\tst.global.u32 [%d1], %r2;
\tret;
}
";

    #[test]
    fn functions_of_others_are_found_and_those_of_the_driver_not() {
        assert_eq!(unresolved(TEXT), ["offset", "note"]);
        assert!(unresolved(".visible .func f()\n{\n}\n").is_empty());
    }

    /// Where nvJitLink is installed; with LTO IR where NVRTC is, too.
    #[test]
    fn a_kernel_is_linked_with_ptx_and_lto_ir_by_nvjitlink() {
        const OFFSET: &str = ".version 6.3\n.target sm_75\n.address_size 64\n\
            .visible .func (.param .b32 r) offset(.param .b32 i)\n{\n.reg .b32 %r<3>;\nld.param.b32 %r1, [i];\n\
            mad.lo.s32 %r2, %r1, 100, 1;\nst.param.b32 [r], %r2;\nret;\n}\n.visible .func note(.param .b32 x)\n{\nret;\n}\n";
        let input = LinkInput::from_bytes("offset.ptx", OFFSET.as_bytes()).unwrap();
        match by_nvjitlink((9, 0), TEXT, &[input]) {
            Ok(cubin) => assert!(cubin.windows(9).any(|bytes| bytes == b".text.run")),
            Err(Error::Foreign(ForeignError::LibraryMissing { .. })) => return,
            Err(error) => panic!("{error}"),
        }
        let lacking = by_nvjitlink((9, 0), TEXT, &[]).unwrap_err().to_string();
        assert!(lacking.contains("offset"), "{lacking}");
        let Ok(nvrtc) = Nvrtc::load() else { return };
        let source = "extern \"C\" __device__ unsigned offset(unsigned i) { return 100 * i + 1; }
            extern \"C\" __device__ void note(unsigned) {}";
        let options = CompileOptions::new().with_architecture("compute_90").with_link_time_optimization(true);
        let program = nvrtc.compile(source, &options).unwrap();
        let cubin = by_nvjitlink((9, 0), TEXT, &[LinkInput::lto_ir("offset.cu", &program.lto_ir)]).unwrap();
        assert!(cubin.windows(9).any(|bytes| bytes == b".text.run"));
    }
}
