//! Links kernels in Rust with the device code that defines their declared functions, when a module is loaded.

use std::collections::HashMap;
use std::sync::Mutex;

use super::link::CudaLinker;
use crate::backend::cuda::CudaDevice;
use crate::error::Result;
use crate::error::foreign::ForeignError;
use crate::image::ptx::unresolved;
use crate::image::{CodeType, Image, JitOptions, LinkInput};
use crate::sync::lock;
use crate::toolkit::NvJitLink;

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
    let mut given = lock(&GIVEN);
    change(given.get_or_insert_default().entry(id).or_default())
}

/// Keeps code for the kernels of the image `id`; `false` if they have been linked before.
pub(crate) fn link_later(id: u128, inputs: Vec<LinkInput>) -> bool {
    with_given(id, |given| {
        if !given.is_linked {
            given.inputs.extend(inputs);
        }
        !given.is_linked
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
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
