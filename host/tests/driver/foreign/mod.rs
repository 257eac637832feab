//! Foreign kernels on a fake driver (`fake_driver/loading.rs`): queries, checks of arguments, and the
//! order of their launches.
//!
//! `nodes` launches them as nodes of graphs.

mod nodes;

use crate::kernels::saxpy;
use crate::loading::linked;
use crate::scenario::{Scenario, count, fake_driver, run, run_requested, run_with};
use ferrogrid_host::{
    Array, ArrayMut, CacheConfig, Device, Error, ForeignError, ForeignKernel, Grid, JitOptions, LaunchError,
    Result, Slice, SliceMut,
};

const PTX: &str = include_str!("../../kernels/saxpy_cu.ptx");

const SCENARIOS: &[Scenario] = &[
    ("foreign_questions", foreign_questions),
    ("dynamic_launch", dynamic_launch),
    ("wrong_arguments", wrong_arguments),
    ("parameters_of_text", parameters_of_text),
    ("names_from_the_text", names_from_the_text),
    ("machine_code_on_an_old_driver", machine_code_on_an_old_driver),
    ("typed_launch", typed_launch),
    ("order_of_foreign_launches", order_of_foreign_launches),
    ("other_devices", other_devices),
];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
}

#[test]
fn a_foreign_kernel_has_the_same_questions() {
    assert_eq!(count(&run("foreign_questions", ""), "cuFuncSetCacheConfig"), 1);
}

fn foreign_questions() -> Result<()> {
    let function = Device::cuda(0)?.load_ptx(PTX)?.function("saxpy_cu")?;
    function.set_cache_config(CacheConfig::Equal)?;
    function.set_preferred_shared_memory_carveout(Some(25))?;
    function.set_max_dynamic_shared_size_bytes(99_000)?;
    let attributes = function.attributes()?;
    assert_eq!((attributes.num_regs, attributes.preferred_shared_memory_carveout), (40, Some(25)));
    assert_eq!(attributes.max_dynamic_shared_size_bytes, 99_000);
    assert_eq!(function.available_dynamic_shared_memory_per_block(2, 128)?, 114_688);
    let best = function.max_potential_block_size(|threads| 2048 * threads as usize, Some(100))?;
    assert_eq!((best.block_size, best.min_grid_size), (100, 132));
    let none = function.max_potential_block_size(|_| 1 << 20, None).unwrap_err();
    assert!(matches!(none, Error::Launch(LaunchError::NoBlockFits { kernel: "saxpy_cu", .. })), "{none}");
    // The fake driver expects clusters with 2000 bytes in each block.
    let function = function.with_dynamic_shared_memory(2000)?;
    assert_eq!((function.max_active_clusters(4, 128)?, function.max_potential_cluster_size(128)?), (33, 8));
    Ok(())
}

#[test]
fn a_foreign_kernel_runs_with_checked_arguments() {
    let calls = run("dynamic_launch", "");
    assert_eq!(count(&calls, "cuModuleGetFunction"), 1, "a function is looked up once");
    assert_eq!(count(&calls, "cuModuleUnload"), 1, "by hand, and not when a handle is dropped");
}

fn dynamic_launch() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let x = stream.upload(&[1.0_f32, 2.0, 3.0])?;
    let mut y = stream.upload(&[1.0_f32; 3])?;
    let module = device.load_ptx(PTX)?;
    let function = module.function("saxpy_cu")?;
    assert_eq!((function.name(), function.attributes()?.num_regs), ("saxpy_cu", 40));
    assert_eq!(
        (function.max_active_blocks_per_multiprocessor(128)?, function.occupancy(128)?.active_blocks),
        (16, 12)
    );
    drop(module);
    // SAFETY: the kernel takes these types, and keeps to the lengths.
    unsafe { function.launch(&stream, Grid::cover(3), (2.0_f32, &x, 3_usize, &mut y, 3_usize))? };
    assert_eq!(stream.download(&y)?, [3.0, 5.0, 7.0]);
    // SAFETY: as above; the pointer is that of a live buffer.
    unsafe {
        let (x, len) = (x.as_device_ptr(), x.len());
        function.launch(&stream, Grid::cover(3), (1.0_f32, x, len, y.view_mut(), 2_usize))?;
    }
    assert_eq!(stream.download(&y)?, [4.0, 7.0, 7.0]);
    // SAFETY: nothing is launched.
    unsafe { function.launch(&stream, Grid::cover(0), (1.0_f32, &x, 3_usize, &mut y, 3_usize))? };
    assert_eq!(stream.download(&y)?, [4.0, 7.0, 7.0]);
    // SAFETY: nothing of it is in use, and this handle is the last.
    unsafe { device.load_ptx(PTX)?.unload() }
}

#[test]
fn arguments_that_do_not_fit_are_refused_by_name() {
    let calls = run("wrong_arguments", "");
    assert_eq!(count(&calls, "cuLaunchKernel"), 0);
}

fn wrong_arguments() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let x = stream.upload(&[1.0_f32])?;
    let module = device.load_ptx(PTX)?;
    let function = module.function("saxpy_cu")?;
    // SAFETY: refused, as are the next.
    let error = unsafe { function.launch(&stream, Grid::cover(1), (2.0_f32, &x)) }.unwrap_err();
    let count = ForeignError::ParameterCount { kernel: "saxpy_cu", expected: 5, found: 2 };
    assert_eq!(error, Error::Foreign(count));
    // SAFETY: as above.
    let error =
        unsafe { function.launch(&stream, Grid::cover(1), (2.0_f64, &x, 1_u64, &x, 1_u64)) }.unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `saxpy_cu`: parameter 1 (`saxpy_cu_param_0`) has 4 bytes, but the argument has 8"
    );
    // SAFETY: as above.
    let error = unsafe { function.launch(&stream, Grid::new(1, 129), (2.0_f32, &x, 1_u64, &x, 1_u64)) };
    let too_many = Error::Launch(LaunchError::TooManyThreads {
        kernel: "saxpy_cu",
        block: [129, 1, 1],
        threads: 129,
        limit: 128,
    });
    assert_eq!(error, Err(too_many));
    let error = function.with_dynamic_shared_memory(232_000).unwrap_err();
    assert!(matches!(error, Error::Foreign(ForeignError::SharedMemory { fixed: 1024, limit: 232_448, .. })));
    assert_eq!(function.with_dynamic_shared_memory(100_000)?.max_active_blocks_per_multiprocessor(64)?, 2);
    let error = module.function("other").unwrap_err();
    assert!(error.to_string().ends_with("declared `extern \"C\"`; it has `saxpy_cu`"), "{error}");
    assert!(matches!(module.function("a\0b"), Err(Error::Foreign(ForeignError::NoFunction { .. }))));
    Ok(())
}

#[test]
fn an_old_driver_leaves_the_parameters_to_the_text() {
    run_with("names_from_the_text", "version=12000", &fake_driver(&["param_info"]));
    run_with("machine_code_on_an_old_driver", "version=12000", &fake_driver(&["param_info"]));
}

/// To ask for one more, to see whether there is one, is an error of the driver that tools report.
#[test]
fn the_driver_is_queried_only_for_parameters_in_the_text() {
    assert_eq!(count(&run("parameters_of_text", ""), "cuFuncGetParamInfo"), 5);
}

fn parameters_of_text() -> Result<()> {
    let function = Device::cuda(0)?.load_image(PTX.as_bytes(), &JitOptions::new())?.function("saxpy_cu")?;
    assert_eq!(function.parameters().map(<[_]>::len), Some(5));
    Ok(())
}

fn names_from_the_text() -> Result<()> {
    dynamic_launch()?;
    wrong_arguments()
}

fn machine_code_on_an_old_driver() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let module = device.load_cubin(&linked(&device)?)?;
    assert_eq!(module.kernel_names(), None);
    let function = module.function("saxpy_cu")?;
    assert_eq!(function.parameters(), None);
    // SAFETY: refused.
    let error = unsafe { function.launch(&stream, Grid::cover(1), (1.0_f32,)) }.unwrap_err();
    assert_eq!(error, Error::Foreign(ForeignError::UnknownParameters { kernel: "saxpy_cu" }));
    Ok(())
}

#[test]
fn a_typed_foreign_kernel_is_safe_to_launch() {
    run("typed_launch", "");
}

type Saxpy = ForeignKernel<1, (f32, Slice<f32>, SliceMut<f32>)>;
type SaxpyOf4 = ForeignKernel<1, (f32, Array<f32, 4>, u64, ArrayMut<f32, 4>, u64)>;

fn typed_launch() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let function = device.load_ptx(PTX)?.function("saxpy_cu")?;
    // SAFETY: the kernel's types; it keeps to the lengths.
    let saxpy: Saxpy = unsafe { function.typed()? };
    let x = stream.upload(&[1.0_f32, 2.0, 3.0, 4.0])?;
    let mut y = stream.zeros::<f32>(4)?;
    saxpy.launch(&stream, Grid::cover(4), (2.0, &x, &mut y))?;
    saxpy.launch(&stream, Grid::cover(4), (1.0, x.slice(2..)?, y.slice_mut(..2)?))?;
    assert_eq!(stream.download(&y)?, [5.0, 8.0, 6.0, 8.0]);

    // SAFETY: as above, with lengths that the test gives.
    let of_4: SaxpyOf4 = unsafe { function.typed()? };
    of_4.launch(&stream, Grid::cover(4), (1.0, &x, 4, &mut y, 4))?;
    assert_eq!(stream.download(&y)?, [6.0, 10.0, 9.0, 12.0]);
    let short = of_4.launch(&stream, Grid::cover(4), (1.0, x.slice(1..)?, 4, &mut y, 4));
    assert_eq!(short, Err(Error::OutOfRange { start: 0, end: 4, length: 3 }));

    // SAFETY: refused.
    let wrong = unsafe { function.typed::<1, (f32, Slice<f32>)>() }.unwrap_err();
    let count = ForeignError::ParameterCount { kernel: "saxpy_cu", expected: 5, found: 3 };
    assert_eq!(wrong, Error::Foreign(count));
    Ok(())
}

#[test]
fn foreign_launches_are_ordered_with_all_other_work() {
    run("order_of_foreign_launches", "pools=1");
    run("order_of_foreign_launches", "pools=0");
}

fn order_of_foreign_launches() -> Result<()> {
    let device = Device::cuda(0)?;
    let (a, b) = (device.new_stream()?, device.new_stream()?);
    let function = device.load_ptx(PTX)?.function("saxpy_cu")?;
    // SAFETY: the kernel's types; it keeps to the lengths.
    let foreign: Saxpy = unsafe { function.typed()? };
    let x = a.upload(&[1.0_f32; 8])?;
    let mut y = b.zeros::<f32>(8)?;
    for _ in 0..3 {
        foreign.launch(&a, Grid::cover(8), (1.0, &x, &mut y))?;
        saxpy(&b, Grid::cover(8), 1.0, &x, &mut y)?;
        // SAFETY: as above.
        unsafe { function.launch(&a, Grid::cover(8), (1.0_f32, &x, 8_u64, &mut y, 8_u64))? };
    }
    drop(x);
    assert_eq!(b.download(&y)?, [9.0; 8]);
    Ok(())
}

#[test]
fn foreign_code_stays_on_its_device() {
    run("other_devices", "devices=2,pools=0");
}

fn other_devices() -> Result<()> {
    let (first, second) = (Device::cuda(0)?, Device::cuda(1)?);
    let function = first.load_ptx(PTX)?.function("saxpy_cu")?;
    for device in [second, Device::cpu()] {
        let stream = device.new_stream()?;
        let x = stream.upload(&[1.0_f32])?;
        // SAFETY: refused.
        let error = unsafe { function.launch(&stream, Grid::cover(1), (1.0_f32, &x, 1_u64, &x, 1_u64)) };
        let error = error.unwrap_err();
        assert!(
            matches!(error, Error::Foreign(ForeignError::OtherDevice { kernel: "saxpy_cu", .. })),
            "{error}"
        );
        let stream = first.new_stream()?;
        // SAFETY: refused.
        let error = unsafe { function.launch(&stream, Grid::cover(1), (1.0_f32, &x, 1_u64, &x, 1_u64)) };
        assert!(matches!(error, Err(Error::DeviceMismatch { .. })), "{error:?}");
    }
    let weights = first.load_ptx(PTX)?.global::<u64>("weights")?;
    assert!(matches!(weights.get(&Device::cpu().new_stream()?), Err(Error::DeviceMismatch { .. })));
    Ok(())
}
