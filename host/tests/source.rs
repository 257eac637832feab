//! Kernels from text, compiled for real by the device toolchain: their properties, and checked launches with a fake
//! CUDA driver (`fake_driver/libcuda.rs`), which runs any kernel that is called `saxpy`.
#![cfg(target_os = "linux")]

mod scenario;

use ferrogrid_host::__private::device::DeviceCopy;
use ferrogrid_host::{
    CompiledSource, Device, DeviceBuffer, DeviceInput, DeviceOutput, Error, Grid, GrowableBuffer, In, InOut,
    IpcBuffer, KernelSource, LaunchArgument, LaunchError, LaunchInput, LaunchOutput, ManagedBuffer, Out,
    PinnedBuffer, PinnedSlice, Result, SourceArgument, SourceError, SourceKernel, SourceModule,
};
use scenario::{Scenario, count, run, run_requested};

const SCENARIOS: &[Scenario] = &[
    ("launches", launches),
    ("panics", panics),
    ("refused_types", refused_types),
    ("refused_shapes", refused_shapes),
    ("names", names),
    ("loaded_once", loaded_once),
    ("too_old", too_old),
];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
}

/// The types alone: the test is that this compiles.
#[test]
fn kernels_of_all_sources_take_the_same_kinds_of_memory() {
    fn read<'a, A: LaunchInput<'a, f32> + DeviceInput<'a, f32> + LaunchArgument + SourceArgument<'a>>() {}
    fn written<'a, A: LaunchOutput<'a, f32> + DeviceOutput<'a, f32> + LaunchArgument + SourceArgument<'a>>() {
    }
    read::<&DeviceBuffer<f32>>();
    written::<&mut DeviceBuffer<f32>>();
    read::<&ManagedBuffer<f32>>();
    written::<&mut ManagedBuffer<f32>>();
    read::<&IpcBuffer<f32>>();
    written::<&mut IpcBuffer<f32>>();
    read::<&GrowableBuffer<f32>>();
    written::<&mut GrowableBuffer<f32>>();
    read::<&PinnedBuffer<f32>>();
    written::<&mut PinnedBuffer<f32>>();
    read::<&PinnedSlice<'_, f32>>();
    written::<&mut PinnedSlice<'_, f32>>();
}

/// `wide`, since the fake driver's `saxpy` takes lengths of 64 bits.
const TEXT: &str = "\
#[kernel(wide)]
pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
    let i = t.index();
    if let Some(y) = y.get_mut(i) {
        *y += a * x[i.get()];
    }
}

#[derive(Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct Pair {
    left: f32,
    right: u32,
}

#[kernel(same_shape(x, y))]
pub fn saxpy_of_pairs(t: Thread<1>, pair: Pair, x: &[Pair], mut y: DisjointSlice<Pair>) {
    if let Some(y) = y.get_mut(t.index()) {
        *y = if x.is_empty() { pair } else { x[0] };
    }
}

#[kernel]
pub fn saxpy_counts(t: Thread<1>, x: &[u8], counts: &[DeviceAtomic<u32>], s: SharedSlice<f32>) {
    let _ = (t, s);
    counts[x[0] as usize].fetch_add(1, atomic::Ordering::Relaxed);
}

#[kernel(cooperative)]
pub fn saxpy_rows(t: Thread<2>, x: Plane<f32>, mut y: DisjointRows<f32>, z: DisjointSlice<f32, 2>) {
    let _ = (t, x, &mut y, z);
}

#[kernel]
pub fn saxpy_tuple(t: Thread<1>, pair: (u32, f32)) {
    let _ = (t, pair);
}
";

/// As in the text.
#[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
#[repr(C)]
struct Pair {
    left: f32,
    right: u32,
}

mod other {
    use super::*;

    /// Under the same name with another field.
    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Pair {
        pub left: f32,
        pub right: i32,
    }
}

fn compiled() -> Result<CompiledSource> {
    KernelSource::new(TEXT).with_name("kernels/saxpy.rs").compile_for("sm_75")
}

fn kernel(name: &str) -> Result<(Device, SourceKernel)> {
    let device = Device::cuda(0)?;
    let kernel = compiled()?.load(&device)?.kernel(name)?;
    Ok((device, kernel))
}

#[track_caller]
fn refusal(result: Result<()>) -> SourceError {
    match result {
        Err(Error::Source(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn text_becomes_ptx_with_the_options_that_it_is_given() {
    let text = "#[kernel] pub fn third(t: Thread<1>, mut y: DisjointSlice<f32>) {
        if let Some(y) = y.get_mut(t.index()) { *y = *y / 3.1 + if cfg!(large) { 1e9 } else { 0.0 }; }
    }";
    let source = KernelSource::new(text);
    let exact = source.compile_for("sm_75").unwrap();
    assert_eq!((exact.architecture(), exact.kernel_names()), ("sm_75", vec!["program::third"]));
    assert!(exact.ptx().contains("div.rn.f32") && exact.ptx().contains(".loc"), "{}", exact.ptx());
    let fast = source.with_fast_math(true).with_cfg("large").with_max_registers(40).with_line_info(false);
    let fast = fast.compile_for("sm_75").unwrap();
    assert!(!fast.ptx().contains("div.rn.f32") && !fast.ptx().contains(".loc"), "{}", fast.ptx());
    assert!(fast.ptx().contains(".maxnreg 40") && fast.ptx().contains("0f4E6E6B28"), "{}", fast.ptx());
}

#[test]
fn errors_have_source_lines_and_advice() {
    let fails = |source: KernelSource| match source.compile_for("sm_75") {
        Err(Error::Source(error)) => error,
        other => panic!("{other:?}"),
    };
    let wrong = "#[kernel]\npub fn f(t: Thread<1>) {\n    let x: u32 = 1.5;\n}";
    let error = fails(KernelSource::new(wrong).with_name("wrong.rs"));
    let SourceError::Compile { diagnostics, .. } = &error else { panic!("{error}") };
    assert!(diagnostics.contains("error[E0308]") && diagnostics.contains("wrong.rs:3:18"), "{diagnostics}");
    let error = fails(KernelSource::new("#[kernel]\npub fn f(x: &[f32]) {}")).to_string();
    assert!(
        error.contains("a kernel needs a `Thread<R>` parameter") && error.contains("program.rs:2:"),
        "{error}"
    );

    let text = "#[kernel] pub fn f(t: Thread<1>) { let _ = t; unsafe {} }";
    let error = fails(KernelSource::new(text));
    assert!(
        matches!(error, SourceError::Unsafe { .. }) && error.to_string().contains("allow_unsafe"),
        "{error}"
    );
    // SAFETY: the block is empty.
    unsafe { KernelSource::new(text).allow_unsafe() }.compile_for("sm_75").unwrap();

    let error = fails(KernelSource::new("fn f() {}"));
    assert!(
        matches!(&error, SourceError::Build { .. }) && error.to_string().contains("has no kernel"),
        "{error}"
    );
    let missing = KernelSource::from_file("no/such/file.rs").unwrap_err();
    assert!(missing.to_string().contains("cannot read `no/such/file.rs`"), "{missing}");
}

#[test]
fn without_a_toolchain_the_error_has_advice() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "without_toolchain", "--ignored", "--nocapture"])
        .env("FERROGRID_DEVICE_RUSTC", "/no/such/rustc")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "the test above runs it, in a process without a toolchain"]
fn without_toolchain() {
    let error = compiled().unwrap_err();
    assert!(matches!(error, Error::Source(SourceError::NoToolchain { .. })), "{error}");
    assert!(error.to_string().contains("cargo ferrogrid setup"), "{error}");
}

#[test]
fn the_cpu_device_reports_that_it_compiles_no_code() {
    let refused = SourceModule::new(&Device::cpu(), TEXT).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    assert!(refused.to_string().contains("none is made at run time"), "{refused}");
}

#[test]
fn launches_compute_with_buffers_views_and_slices_of_the_host() {
    let calls = run("launches", "");
    assert_eq!(count(&calls, "cuModuleLoadDataEx"), 1);
}

fn launches() -> Result<()> {
    let (device, saxpy) = kernel("saxpy")?;
    let stream = device.new_stream()?;
    let x = stream.upload(&[1.0_f32, 2.0, 3.0])?;
    let mut y = stream.upload(&[10.0_f32, 20.0, 30.0])?;
    saxpy.launch(&stream, Grid::cover(3), (2.5_f32, &x, &mut y))?;
    assert_eq!(stream.download(&y)?, [12.5, 25.0, 37.5]);
    saxpy.launch(&stream, Grid::cover(1), (1.0_f32, x.slice(2..)?, y.slice_mut(..1)?))?;
    assert_eq!(stream.download(&y)?, [15.5, 25.0, 37.5]);
    let mut host = [1.0_f32; 3];
    saxpy.launch(&stream, Grid::cover(3), (1.0_f32, In(&[1.0_f32, 2.0, 3.0]), InOut(&mut host)))?;
    assert_eq!(host, [2.0, 3.0, 4.0]);
    saxpy.launch(&stream, Grid::cover(3), (2.0_f32, &x, Out(&mut host)))?;
    assert_eq!(host, [2.0, 4.0, 6.0]);
    let other = device.new_stream()?;
    saxpy.launch(&other, Grid::cover(3), (1.0_f32, &x, &mut y))?;
    assert_eq!(stream.download(&y)?, [16.5, 27.0, 40.5], "streams are kept in order");
    assert_eq!(device.attributes(saxpy.kernel())?.num_regs, 40);
    Ok(())
}

#[test]
fn a_panic_is_an_error_with_the_place_of_the_launch() {
    run("panics", "panic=2");
}

fn panics() -> Result<()> {
    let (device, saxpy) = kernel("saxpy")?;
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.zeros::<f32>(3)?, stream.zeros::<f32>(3)?);
    let line = line!() + 1;
    saxpy.launch(&stream, Grid::cover(3), (2.0_f32, &x, &mut y))?;
    let error = stream.synchronize().unwrap_err();
    let Error::KernelPanic { launched, .. } = &error else { panic!("{error}") };
    assert!(launched.to_string().contains(&format!("source.rs:{line}:")), "{launched}");
    Ok(())
}

#[test]
fn arguments_of_other_types_are_refused() {
    let calls = run("refused_types", "");
    assert_eq!(count(&calls, "cuLaunchKernel"), 1, "that of a pair which is one");
}

fn refused_types() -> Result<()> {
    let (device, saxpy) = kernel("saxpy")?;
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.zeros::<f32>(3)?, stream.zeros::<f32>(3)?);
    let mut numbers = stream.zeros::<u32>(3)?;
    let grid = Grid::cover(3);
    let refused = |result| match refusal(result) {
        SourceError::ArgumentType { parameter, .. } => parameter,
        other => panic!("{other}"),
    };
    assert_eq!(refused(saxpy.launch(&stream, grid, (2.0_f64, &x, &mut y))), "a");
    assert_eq!(refused(saxpy.launch(&stream, grid, (2_u32, &x, &mut y))), "a");
    assert_eq!(refused(saxpy.launch(&stream, grid, (&x, &x, &mut y))), "a");
    assert_eq!(refused(saxpy.launch(&stream, grid, (2.0_f32, &numbers, &mut y))), "x");
    assert_eq!(refused(saxpy.launch(&stream, grid, (2.0_f32, 7_u64, &mut y))), "x");
    assert_eq!(refused(saxpy.launch(&stream, grid, (2.0_f32, &x, &mut numbers))), "y");
    assert_eq!(
        refused(saxpy.launch(&stream, grid, (2.0_f32, &x, &x))),
        "y",
        "shared buffers cannot be written"
    );
    assert_eq!(refused(saxpy.launch(&stream, grid, (2.0_f32, &x, y.view_2d_mut(3, 1)?))), "y");
    assert_eq!(refused(saxpy.launch(&stream, grid, (2.0_f32, numbers.as_atomic(), &mut y))), "x");
    let text = saxpy.launch(&stream, grid, (2.0_f64, &x, &mut y)).unwrap_err().to_string();
    assert_eq!(text, "kernel `program::saxpy`: `a: f32` cannot be `f64`, passed by value");

    let pairs = compiled()?.load(&device)?.kernel("saxpy_of_pairs")?;
    let pair = Pair { left: 1.0, right: 2 };
    let (xs, mut ys) = (stream.fill(pair, 2)?, stream.fill(pair, 2)?);
    let not_one = other::Pair { left: 1.0, right: 2 };
    assert_eq!(refused(pairs.launch(&stream, grid, (not_one, &xs, &mut ys))), "pair");
    let others = stream.fill(not_one, 2)?;
    assert_eq!(refused(pairs.launch(&stream, grid, (pair, &others, &mut ys))), "x");
    let grid = Grid::cover(2);
    pairs.launch(&stream, grid, (pair, &xs, &mut ys))?;

    let counts = compiled()?.load(&device)?.kernel("saxpy_counts")?;
    let (bytes, mut wide) = (stream.zeros::<u8>(1)?, stream.zeros::<u64>(3)?);
    assert_eq!(refused(counts.launch(&stream, grid, (&bytes, &numbers, 4_usize))), "counts", "not atomic");
    assert_eq!(refused(counts.launch(&stream, grid, (&bytes, wide.as_atomic(), 4_usize))), "counts");
    assert_eq!(refused(counts.launch(&stream, grid, (&bytes, numbers.as_atomic(), 4_u32))), "s");
    let much = counts.launch(&stream, grid, (&bytes, numbers.as_atomic(), usize::MAX / 2)).unwrap_err();
    assert!(matches!(much, Error::Launch(LaunchError::SharedMemoryTooLarge { .. })), "{much}");
    Ok(())
}

#[test]
fn counts_ranks_and_shapes_that_do_not_fit_are_refused() {
    let calls = run("refused_shapes", "");
    assert_eq!(count(&calls, "cuLaunchKernel"), 0);
}

fn refused_shapes() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, module) = (device.new_stream()?, compiled()?.load(&device)?);
    let kernel = |name: &str| module.kernel(name).unwrap();
    let (x, mut y, mut z) = (stream.zeros::<f32>(6)?, stream.zeros::<f32>(6)?, stream.zeros::<f32>(6)?);
    let saxpy = kernel("program::saxpy");
    assert_eq!(
        refusal(saxpy.launch(&stream, Grid::cover(6), (1.0_f32, &x))),
        SourceError::ArgumentCount { kernel: "program::saxpy", expected: 3, found: 2 }
    );
    assert_eq!(
        refusal(saxpy.launch(&stream, Grid::cover([3, 2]), (1.0_f32, &x, &mut y))),
        SourceError::Rank { kernel: "program::saxpy", expected: 1, found: 2 }
    );
    let pair = Pair { left: 1.0, right: 2 };
    let (xs, mut ys) = (stream.fill(pair, 2)?, stream.fill(pair, 3)?);
    let shapes = kernel("saxpy_of_pairs").launch(&stream, Grid::cover(2), (pair, &xs, &mut ys)).unwrap_err();
    assert!(
        matches!(shapes, Error::Launch(LaunchError::ShapesDiffer { arguments: ["x", "y"], .. })),
        "{shapes}"
    );
    let plane = x.view_2d(3, 2)?;
    let rows = (plane, y.view_2d_mut(3, 2)?, z.view_2d_mut(3, 2)?);
    let few = kernel("saxpy_rows").launch(&stream, Grid::new([5, 1], [32, 1]), rows).unwrap_err();
    assert!(
        matches!(
            few,
            Error::Launch(LaunchError::MoreBlocksThanRows { argument: "y", blocks: 5, rows: 2, .. })
        ),
        "{few}"
    );
    let tuple = refusal(kernel("saxpy_tuple").launch(&stream, Grid::cover(1), (1_u32, 2.0_f32)));
    assert!(
        matches!(tuple, SourceError::Unchecked { .. }) && tuple.to_string().contains("`pair: "),
        "{tuple}"
    );
    let cpu = Device::cpu().new_stream()?;
    let (x, mut y) = (cpu.zeros::<f32>(3)?, cpu.zeros::<f32>(3)?);
    let refused = saxpy.launch(&cpu, Grid::cover(3), (1.0_f32, &x, &mut y)).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    Ok(())
}

#[test]
fn kernels_are_found_by_the_ends_of_their_paths() {
    run("names", "");
}

fn names() -> Result<()> {
    let text = "mod a { #[ferrogrid::module] pub mod inner { use ferrogrid::device::prelude::*;
        #[kernel(T = [u8, i8])] pub fn saxpy<T: DeviceCopy>(_t: Thread<1>, _x: T) {}
        #[kernel] pub fn saxpy_one(_t: Thread<1>) {} } }
        #[ferrogrid::module] mod b { use ferrogrid::device::prelude::*;
        #[kernel] pub fn saxpy_one(_t: Thread<1>) {} }";
    let device = Device::cuda(0)?;
    let module = KernelSource::new(text).compile_for("sm_75")?.load(&device)?;
    let name = |asked: &str| module.kernel(asked).map(|kernel| kernel.name());
    assert_eq!(name("saxpy::<i8>")?, "a::inner::saxpy::<i8>");
    assert_eq!((name("b::saxpy_one")?, name("inner::saxpy_one")?), ("b::saxpy_one", "a::inner::saxpy_one"));
    for asked in ["saxpy_one", "saxpy", "one", "xpy::<i8>"] {
        let error = name(asked).unwrap_err();
        assert!(
            matches!(&error, Error::Source(SourceError::NoKernel { known, .. }) if known.len() == 4),
            "{error}"
        );
    }
    let signature = module.kernel("saxpy::<u8>")?.signature();
    assert_eq!(signature, "a::inner::saxpy::<u8>(_t: Thread < 1 >, _x: T)");
    Ok(())
}

#[test]
fn modules_are_loaded_once() {
    let calls = run("loaded_once", "");
    assert_eq!(count(&calls, "cuModuleLoadDataEx"), 1);
}

fn loaded_once() -> Result<()> {
    let (device, first) = kernel("saxpy")?;
    let again = compiled()?.load(&device)?.kernel("saxpy")?;
    assert!(std::ptr::eq(first.kernel(), again.kernel()));
    Ok(())
}

#[test]
fn a_device_older_than_the_architecture_is_an_error() {
    run("too_old", "capability=70");
}

fn too_old() -> Result<()> {
    let error = compiled()?.load(&Device::cuda(0)?).unwrap_err();
    assert!(matches!(error, Error::Launch(LaunchError::NoImageForDevice { .. })), "{error}");
    Ok(())
}
