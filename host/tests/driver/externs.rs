//! Linking of a program's kernels with the other device code that they call, with a fake driver
//! (`fake_driver/libcuda.rs`). What the linked code does on a GPU is for `tests/externs`.

use std::ffi::c_void;
use std::ptr::from_ref;

use crate::scenario::{Scenario, count, run, run_requested};
use ferrogrid_host::__private::device::native::Block;
use ferrogrid_host::__private::{EmbeddedImage, Kernel, KernelDescriptor, ModuleImage, launch_with};
use ferrogrid_host::{CodeType, Device, Error, ForeignError, Grid, LinkInput, Result, Stream};

const SCENARIOS: &[Scenario] =
    &[("named", named), ("given", given), ("refused", refused), ("without_nvjitlink", without_nvjitlink)];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
}

const OFFSET: &[u8] = b".version 6.3\n.target sm_75\n.address_size 64\n.visible .func offset()\n{\nret;\n}\n";

const TEXT: &str = ".version 6.3\n.target sm_75\n.extern .func offset\n(\n)\n;\n";

static NAMED: &[EmbeddedImage] =
    &[EmbeddedImage { id: 1, codes: &[("sm_75", 6, 3, TEXT, &[])], links: &[("offset.ptx", OFFSET)] }];
static ALONE: &[EmbeddedImage] = &[EmbeddedImage { id: 2, codes: &[("sm_75", 6, 3, TEXT, &[])], links: &[] }];
static NAMED_IMAGE: ModuleImage = ModuleImage::embedded(NAMED, 0);
static ALONE_IMAGE: ModuleImage = ModuleImage::embedded(ALONE, 0);

/// # Safety
/// None: it only panics. The type is that of entry points, which read parameters.
unsafe fn on_gpus_only(_: &Block, _: *const *const c_void) {
    unreachable!("this test has no CPU device");
}

const fn kernel(image: &'static ModuleImage) -> Kernel {
    Kernel::new(KernelDescriptor {
        name: "saxpy",
        entry: "saxpy_11",
        rank: 1,
        block: None,
        max_threads: None,
        cluster: None,
        cluster_at_launch: false,
        dependent_launch: false,
        in_order: false,
        shared_bytes: 0,
        uses_shared_memory: false,
        params: &[(4, 4), (8, 8), (8, 8), (8, 8), (8, 8)],
        image,
        constants: &[],
        cpu: on_gpus_only,
        file: file!(),
        line: line!(),
    })
}

static NAMED_KERNEL: Kernel = kernel(&NAMED_IMAGE);
static ALONE_KERNEL: Kernel = kernel(&ALONE_IMAGE);

/// y <- 2 x + y, for x = 1 and y = 3.
fn saxpy(kernel: &'static Kernel, stream: &Stream) -> Result<Vec<f32>> {
    let (x, mut y) = (stream.fill(1.0_f32, 4)?, stream.fill(3.0_f32, 4)?);
    {
        let (a, x, y) = (2.0_f32, x.view(), y.view_mut());
        let ([x0, x1, ..], [y0, y1, ..]) = (x.params(), y.params());
        let params = [from_ref(&a).cast(), x0, x1, y0, y1];
        // SAFETY: these are the kernel's parameters, and the accesses of the views among them.
        unsafe {
            launch_with(kernel, stream, &Grid::<1>::cover(4), 0, false, &params, &[x.access(), y.access()])?
        };
    }
    stream.download(&y)
}

fn links(calls: &[String]) -> Vec<&str> {
    calls.iter().filter_map(|line| line.strip_prefix("link ")).collect()
}

#[test]
fn the_files_that_a_module_names_are_linked_once() {
    let calls = run("named", "");
    assert_eq!(links(&calls), ["the kernels of kind 1", "offset.ptx of kind 1"]);
    assert_eq!((count(&calls, "cuLinkComplete"), count(&calls, "cuModuleLoadDataEx")), (1, 1));
}

fn named() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    assert_eq!(saxpy(&NAMED_KERNEL, &stream)?, [5.0; 4]);
    assert_eq!(saxpy(&NAMED_KERNEL, &stream)?, [5.0; 4]);
    assert_eq!(NAMED_KERNEL.code_type(&device)?, Some(CodeType::Cubin));
    Ok(())
}

#[test]
fn undefined_functions_are_an_error_until_linked() {
    let calls = run("given", "");
    assert_eq!(links(&calls), ["the kernels of kind 1", "mine.ptx of kind 1"]);
    assert_eq!(count(&calls, "cuModuleLoadDataEx"), 1);
}

fn given() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let error = saxpy(&ALONE_KERNEL, &stream).unwrap_err();
    let Error::Foreign(ForeignError::UnresolvedFunctions { functions }) = &error else { panic!("{error}") };
    assert_eq!(**functions, ["offset".into()]);
    assert!(error.to_string().starts_with("no linked code has `offset`, which kernels call"), "{error}");
    ALONE_KERNEL.link_with([LinkInput::from_bytes("mine.ptx", OFFSET)?])?;
    assert_eq!(saxpy(&ALONE_KERNEL, &stream)?, [5.0; 4]);
    let late = ALONE_KERNEL.link_with([LinkInput::from_bytes("late.ptx", OFFSET)?]).unwrap_err();
    assert!(matches!(late, Error::Foreign(ForeignError::AlreadyLinked { kernel: "saxpy" })), "{late}");
    Ok(())
}

#[test]
fn code_that_does_not_link_is_an_error_with_the_linkers_log() {
    let calls = run("refused", "");
    assert_eq!(count(&calls, "cuModuleLoadDataEx"), 0);
    assert_eq!(count(&calls, "cuLinkDestroy"), 1);
}

fn refused() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let undefined = [OFFSET, b"// undefined\n".as_slice()].concat();
    ALONE_KERNEL.link_with([LinkInput::from_bytes("other.ptx", &undefined)?])?;
    let error = saxpy(&ALONE_KERNEL, &stream).unwrap_err();
    assert!(matches!(error, Error::Foreign(ForeignError::Link { .. })), "{error}");
    assert!(error.to_string().contains("Undefined reference to 'helper'"), "{error}");
    Ok(())
}

#[test]
fn lto_ir_needs_nvjitlink() {
    run("without_nvjitlink", "");
}

fn without_nvjitlink() -> Result<()> {
    // SAFETY: this process has no other thread that reads variables now.
    unsafe { std::env::set_var("FERROGRID_NVJITLINK", "/no/such/libnvJitLink.so") };
    let stream = Device::cuda(0)?.new_stream()?;
    ALONE_KERNEL.link_with([LinkInput::lto_ir("offset.ltoir", b"IR")])?;
    let error = saxpy(&ALONE_KERNEL, &stream).unwrap_err();
    let missing = matches!(error, Error::Foreign(ForeignError::LibraryMissing { library: "nvJitLink", .. }));
    assert!(missing, "{error}");
    Ok(())
}
