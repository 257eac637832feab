//! The choice of image for a program's kernels if the build made machine code in addition to PTX, with a
//! fake driver (`fake_driver/libcuda.rs`).

use std::ffi::c_void;
use std::io::Write;
use std::ptr::from_ref;

use crate::scenario::{Scenario, count, run, run_requested};
use ferrogrid_host::__private::device::native::Block;
use ferrogrid_host::__private::{EmbeddedImage, Kernel, KernelDescriptor, ModuleImage, launch_with};
use ferrogrid_host::{CodeType, Device, DeviceBuffer, Error, Grid, Result, Stream};

const SCENARIOS: &[Scenario] = &[("two_launches", two_launches), ("nothing_loads", nothing_loads)];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
}

/// The header of a cubin, and the architecture where the fake driver looks for it.
const fn cubin(arch: &[u8]) -> [u8; 80] {
    let mut bytes = [0; 80];
    [bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]] = *b"\x7fELF\x02\x01";
    bytes[18] = 190;
    let mut at = 0;
    while at < arch.len() {
        bytes[64 + at] = arch[at];
        at += 1;
    }
    bytes
}

const CODE_75: &[u8] = &cubin(b"sm_75");
const CODE_90: &[u8] = &cubin(b"sm_90");

static IMAGES: &[EmbeddedImage] = &[EmbeddedImage {
    id: 0xc0de,
    codes: &[
        ("sm_75", 6, 3, ".version 6.3\n.target sm_75\n", CODE_75),
        ("sm_80", 7, 0, ".version 7.0\n.target sm_80\n", &[]),
        ("sm_90", 7, 8, ".version 7.8\n.target sm_90\n", CODE_90),
    ],
    links: &[],
}];
const PARAMS: &[(usize, usize)] = &[(4, 4), (8, 8), (8, 8), (8, 8), (8, 8)];

static IMAGE: ModuleImage = ModuleImage::embedded(IMAGES, 0);

/// # Safety
/// None: it only panics. The type is that of entry points, which read parameters.
unsafe fn on_gpus_only(_: &Block, _: *const *const c_void) {
    unreachable!("this test has no CPU device");
}

static SAXPY: Kernel = Kernel::new(KernelDescriptor {
    name: "saxpy",
    entry: "saxpy_c0de",
    rank: 1,
    block: None,
    max_threads: None,
    cluster: None,
    cluster_at_launch: false,
    dependent_launch: false,
    in_order: false,
    shared_bytes: 0,
    uses_shared_memory: false,
    params: PARAMS,
    image: &IMAGE,
    constants: &[],
    cpu: on_gpus_only,
    file: file!(),
    line: line!(),
});

fn saxpy(stream: &Stream, x: &DeviceBuffer<f32>, y: &mut DeviceBuffer<f32>) -> Result<()> {
    let (a, x, y) = (2.0_f32, x.view(), y.view_mut());
    let ([x0, x1, ..], [y0, y1, ..]) = (x.params(), y.params());
    let params = [from_ref(&a).cast(), x0, x1, y0, y1];
    // SAFETY: these are the parameters of `PARAMS`, and the accesses of the views among them.
    unsafe { launch_with(&SAXPY, stream, &Grid::<1>::cover(4), 0, false, &params, &[x.access(), y.access()]) }
}

/// Writes a line to the log of the driver's calls.
fn note(line: &str) {
    let log = std::env::var_os("FAKE_CUDA_LOG").unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).open(log).unwrap();
    writeln!(file, "{line}").unwrap();
}

fn machine_code(calls: &[String]) -> Vec<&str> {
    calls.iter().filter_map(|line| line.strip_prefix("machine code for ")).collect()
}

#[test]
fn a_device_of_that_very_capability_loads_machine_code_once() {
    for (capability, arch) in [("90", "sm_90"), ("75", "sm_75")] {
        let calls = run("two_launches", &format!("capability={capability}"));
        assert_eq!(machine_code(&calls), [arch]);
        assert_eq!(count(&calls, "cuModuleLoadDataEx"), 1);
        assert!(calls.contains(&"the kernel has a cubin".to_owned()));
    }
}

#[test]
fn every_other_device_loads_the_best_ptx() {
    for capability in ["80", "86", "89", "100", "120"] {
        let calls = run("two_launches", &format!("capability={capability}"));
        assert!(machine_code(&calls).is_empty(), "{capability}: {:?}", machine_code(&calls));
        assert!(calls.contains(&"the kernel has PTX".to_owned()));
        assert_eq!(count(&calls, "cuModuleLoadDataEx"), 1);
    }
}

#[test]
fn a_driver_that_refuses_machine_code_compiles_the_ptx() {
    let calls = run("two_launches", "refuse=cubin");
    assert_eq!((machine_code(&calls), count(&calls, "cuModuleLoadDataEx")), (vec!["sm_90"], 2));
    assert!(calls.contains(&"the kernel has PTX".to_owned()));
}

fn two_launches() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, 4)?, stream.zeros::<f32>(4)?);
    saxpy(&stream, &x, &mut y)?;
    saxpy(&stream, &x, &mut y)?;
    assert_eq!(stream.download(&y)?, [4.0; 4]);
    note(match SAXPY.code_type(stream.device())? {
        Some(CodeType::Cubin) => "the kernel has a cubin",
        Some(CodeType::Ptx) => "the kernel has PTX",
        other => panic!("{other:?}"),
    });
    assert_eq!(SAXPY.code_type(&Device::cpu())?, None);
    Ok(())
}

#[test]
fn where_nothing_loads_the_error_has_all_that_was_tried() {
    run("nothing_loads", "refuse=cubin+sm_90+sm_80+sm_75");
}

fn nothing_loads() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (x, mut y) = (stream.fill(1.0_f32, 4)?, stream.zeros::<f32>(4)?);
    let Err(Error::ModuleLoad { log, .. }) = saxpy(&stream, &x, &mut y) else { panic!("it was loaded") };
    for part in ["sm_90 (machine code): cuModuleLoadDataEx failed", "sm_90 (PTX 7.8)", "sm_75 (PTX 6.3)"] {
        assert!(log.contains(part), "{part:?} is missing in {log}");
    }
    assert!(!log.contains("sm_75 (machine code)"), "it is for another capability: {log}");
    Ok(())
}

#[test]
fn a_kernel_shows_the_machine_code_that_it_has() {
    assert_eq!((SAXPY.cubin_for("sm_90"), SAXPY.cubin_for("sm_80")), (Some(CODE_90), None));
    assert!(SAXPY.ptx_for("sm_80").is_some());
}
