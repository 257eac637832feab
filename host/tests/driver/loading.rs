//! Properties of devices and kernels, and loading of foreign code, with a fake CUDA driver
//! (`fake_driver/loading.rs`). Results on a real one are for the conformance suite.

use crate::kernels::{IMAGE, SAXPY_KERNEL, mix, saxpy, silent_saxpy};
use crate::scenario::{Scenario, count, run};
use ferrogrid_host::__private::device::Constant;
use ferrogrid_host::__private::{DeviceConstant, InitialValue};
use ferrogrid_host::dlpack::abi;
use ferrogrid_host::dlpack::{DlpackError, DlpackTensor};
use ferrogrid_host::{
    CacheConfig, CodeType, Device, DeviceAttribute, Error, ForeignError, Grid, JitCacheMode, JitOptions,
    LaunchError, Linker, OccupancyLimiter, Result,
};

const SCENARIOS: &[Scenario] = &[
    ("properties", properties),
    ("attributes", attributes),
    ("occupancy", occupancy),
    ("clusters", clusters),
    ("no_clusters", no_clusters),
    ("asked_itself", asked_itself),
    ("unloading", unloading),
    ("refused_images", refused_images),
    ("globals", globals),
    ("names", names),
    ("libraries", libraries),
    ("linking", linking),
    ("options", options),
    ("tensors", tensors),
];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    crate::scenario::run_requested(SCENARIOS);
}

const PTX: &str = include_str!("../kernels/saxpy_cu.ptx");

#[test]
fn a_device_reports_its_properties() {
    run("properties", "devices=2");
}

fn properties() -> Result<()> {
    let device = Device::cuda(1)?;
    let properties = device.properties()?;
    assert_eq!((&*properties.name, properties.multiprocessor_count), ("Fake GPU", 132));
    assert_eq!(properties.uuid.unwrap().to_string(), "GPU-acacacac-acac-acac-acac-acacacacacac");
    assert_eq!(properties.pci.unwrap().to_string(), "0000:3b:00.0");
    assert_eq!(properties.peak_memory_bandwidth(), Some(4_916_736_000_000));
    assert!(properties.cooperative_launch && properties.cluster_launch && !properties.integrated);
    assert_eq!(device.attribute(DeviceAttribute::L2_CACHE_SIZE)?, 62_914_560);
    assert_eq!(Device::driver_version()?, (12, 4));
    let unknown = device.attribute(DeviceAttribute::from_number(9999)).unwrap_err();
    assert!(unknown.to_string().contains("device attribute 9999"), "{unknown}");
    Ok(())
}

#[test]
fn a_kernel_reports_its_resources() {
    let calls = run("attributes", "");
    assert_eq!(count(&calls, "cuFuncSetCacheConfig"), 1);
    assert_eq!(count(&calls, "cuModuleLoadDataEx"), 1, "asking loads the kernel once");
}

fn attributes() -> Result<()> {
    let device = Device::cuda(0)?;
    let attributes = device.attributes(&SAXPY_KERNEL)?;
    assert_eq!(
        (attributes.num_regs, attributes.shared_size_bytes, attributes.local_size_bytes),
        (40, 1024, 16)
    );
    assert_eq!((attributes.ptx_version, attributes.binary_version), (Some((7, 5)), Some((9, 0))));
    assert_eq!((attributes.max_threads_per_block, attributes.preferred_shared_memory_carveout), (128, None));
    device.set_cache_config(&SAXPY_KERNEL, CacheConfig::L1)?;
    device.set_preferred_shared_memory_carveout(&SAXPY_KERNEL, Some(50))?;
    device.set_max_dynamic_shared_size_bytes(&SAXPY_KERNEL, 100_000)?;
    let attributes = device.attributes(&SAXPY_KERNEL)?;
    assert_eq!(attributes.preferred_shared_memory_carveout, Some(50));
    assert_eq!(attributes.max_dynamic_shared_size_bytes, 100_000);
    let refused = device.set_max_dynamic_shared_size_bytes(&SAXPY_KERNEL, 232_448).unwrap_err();
    assert!(matches!(refused, Error::Driver { operation: "cuFuncSetAttribute", code: 1, .. }), "{refused}");
    Ok(())
}

#[test]
fn occupancy_is_that_of_a_launch_that_opts_in_to_shared_memory() {
    run("occupancy", "");
}

fn occupancy() -> Result<()> {
    let device = Device::cuda(0)?;
    assert_eq!(device.max_active_blocks_per_multiprocessor(&SAXPY_KERNEL, 128, 0)?, 16);
    assert_eq!(device.max_active_blocks_per_multiprocessor(&SAXPY_KERNEL, 128, 100_000)?, 2);
    assert_eq!(device.max_active_blocks_per_multiprocessor(&SAXPY_KERNEL, 128, 1 << 20)?, 0);
    assert_eq!(device.max_active_blocks_per_multiprocessor(&SAXPY_KERNEL, 128, usize::MAX)?, 0);
    assert_eq!(device.max_active_blocks_per_multiprocessor(&SAXPY_KERNEL, 0, 0)?, 0);
    assert_eq!(device.available_dynamic_shared_memory_per_block(&SAXPY_KERNEL, 2, 128)?, 114_688);

    let occupancy = device.occupancy(&SAXPY_KERNEL, 128, 0)?;
    assert_eq!((occupancy.active_blocks, occupancy.active_warps, occupancy.max_warps), (12, 48, 64));
    assert_eq!(occupancy.limited_by(), [OccupancyLimiter::Registers]);
    assert_eq!(device.occupancy(&SAXPY_KERNEL, 256, 0)?.limited_by(), [OccupancyLimiter::Warps]);

    let best = device.max_potential_block_size(&SAXPY_KERNEL, |_| 0, None)?;
    assert_eq!((best.block_size, best.min_grid_size), (128, 16 * 132));
    let best =
        device.max_potential_block_size(&SAXPY_KERNEL, |threads| 2048 * threads as usize, Some(100))?;
    assert_eq!((best.block_size, best.min_grid_size), (100, 132));
    let none = device.max_potential_block_size(&SAXPY_KERNEL, |_| 1 << 20, None).unwrap_err();
    assert!(matches!(none, Error::Launch(LaunchError::NoBlockFits { kernel: "saxpy", .. })), "{none}");
    Ok(())
}

#[test]
fn clusters_are_queried_by_their_shape() {
    run("clusters", "");
    run("no_clusters", "capability=86");
}

fn clusters() -> Result<()> {
    let device = Device::cuda(0)?;
    assert_eq!(device.max_active_clusters(&SAXPY_KERNEL, 4, 128, 2000)?, 33);
    assert_eq!(device.max_potential_cluster_size(&SAXPY_KERNEL, 128, 2000)?, 8);
    Ok(())
}

fn no_clusters() -> Result<()> {
    let error = Device::cuda(0)?.max_active_clusters(&SAXPY_KERNEL, 4, 128, 0).unwrap_err();
    assert!(error.to_string().contains("need compute capability 9.0"), "{error}");
    Ok(())
}

#[test]
fn a_kernel_answers_queries_as_its_device_does() {
    assert_eq!(count(&run("asked_itself", ""), "cuFuncSetCacheConfig"), 1);
}

fn asked_itself() -> Result<()> {
    let (device, kernel) = (Device::cuda(0)?, &SAXPY_KERNEL);
    assert_eq!(kernel.attributes(&device)?, device.attributes(kernel)?);
    assert_eq!(kernel.max_active_blocks_per_multiprocessor(&device, 128, 0)?, 16);
    assert_eq!(kernel.occupancy(&device, 128, 0)?, device.occupancy(kernel, 128, 0)?);
    let best = kernel.max_potential_block_size(&device, |threads| 2048 * threads as usize, Some(100))?;
    assert_eq!((best.block_size, best.min_grid_size), (100, 132));
    assert_eq!(kernel.available_dynamic_shared_memory_per_block(&device, 2, 128)?, 114_688);
    assert_eq!(kernel.max_active_clusters(&device, 4, 128, 2000)?, 33);
    assert_eq!(kernel.max_potential_cluster_size(&device, 128, 2000)?, 8);
    kernel.set_cache_config(&device, CacheConfig::Equal)?;
    kernel.set_preferred_shared_memory_carveout(&device, Some(25))?;
    kernel.set_max_dynamic_shared_size_bytes(&device, 99_000)?;
    let attributes = device.attributes(kernel)?;
    assert_eq!(attributes.preferred_shared_memory_carveout, Some(25));
    assert_eq!(attributes.max_dynamic_shared_size_bytes, 99_000);
    Ok(())
}

/// In the fake driver's variable of that name; of the module that `saxpy` and `mix` are of.
static WEIGHTS: DeviceConstant<[u64; 5]> = DeviceConstant::new("WEIGHTS", "weights", &IMAGE, {
    static AT_FIRST: InitialValue<[u64; 5]> = InitialValue::new(Constant::new([0; 5]));
    &AT_FIRST
});

#[test]
fn a_module_is_unloaded_after_its_work_and_loaded_again() {
    let calls = run("unloading", "");
    let unloaded = calls.iter().position(|call| call == "cuModuleUnload").unwrap();
    let (before, after) = calls.split_at(unloaded);
    let found = |calls: &[String]| {
        ["cuModuleLoadDataEx", "cuModuleGetFunction", "weights"].map(|name| count(calls, name))
    };
    assert_eq!((found(before), found(after)), ([2, 3, 1], [1, 2, 1]), "one of two modules");
    let waited = before.iter().rposition(|call| call == "cuCtxSynchronize");
    let last_work = before.iter().rposition(|call| call == "cuLaunchKernel");
    assert!(waited > last_work, "kernels have run");
    assert_eq!(count(after, "cuModuleUnload"), 1, "what is not loaded is not unloaded");
}

fn unloading() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let x = stream.upload(&[1.0_f32, 2.0])?;
    let mut y = stream.zeros::<f32>(2)?;
    let (source, mut target) = (stream.upload(&[1_u32])?, stream.zeros::<u32>(1)?);
    let mut launch = || {
        silent_saxpy(&stream, Grid::cover(2), 1.0, &x, &mut y)?;
        saxpy(&stream, Grid::cover(2), 2.0, &x, &mut y)?;
        mix(&stream, Grid::cover(1), 3, &source, &mut target)?;
        WEIGHTS.get(&stream).map(drop)
    };
    launch()?;
    // SAFETY: no other thread is there, and no graph.
    unsafe {
        SAXPY_KERNEL.unload(&device)?;
        SAXPY_KERNEL.unload(&device)?;
    }
    launch()?;
    assert_eq!(stream.download(&y)?, [6.0, 12.0]);
    Ok(())
}

#[test]
fn images_that_do_not_load_report_the_reason() {
    run("refused_images", "refuse=sm_90");
}

fn refused_images() -> Result<()> {
    let device = Device::cuda(0)?;
    let options = JitOptions::new().with_max_registers(32).with_verbose(true);
    for error in [device.load_ptx(PTX).unwrap_err(), device.load_image(PTX.as_bytes(), &options).unwrap_err()]
    {
        let Error::Foreign(ForeignError::Load { kind: "PTX", log, .. }) = &error else { panic!("{error}") };
        assert!(log.contains("UNSUPPORTED_PTX_VERSION") && log.contains("this driver is too old"), "{log}");
    }
    let error = device.load_cubin(b"\x7fELF").unwrap_err();
    assert!(matches!(error, Error::Foreign(ForeignError::InvalidImage { kind: "cubin", .. })), "{error}");
    let error = device.load_file("/no/such/file.ptx").unwrap_err();
    assert!(error.to_string().starts_with("cannot read `/no/such/file.ptx`"), "{error}");
    Ok(())
}

#[test]
fn variables_of_a_module_are_typed() {
    run("globals", "");
}

fn globals() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let module = device.load_ptx(PTX)?;
    let weights = module.global::<f32>("weights")?;
    assert_eq!((weights.len(), weights.get(&stream)?), (10, vec![0.0; 10]));
    let values: [f32; 10] = std::array::from_fn(|index| index as f32);
    weights.set(&stream, &values)?;
    assert_eq!(weights.get(&stream)?, values);
    assert_eq!(module.global::<[f32; 5]>("weights")?.get(&stream)?[1], [5.0, 6.0, 7.0, 8.0, 9.0]);
    let short = weights.set(&stream, &[1.0]).unwrap_err();
    assert!(matches!(short, Error::LengthMismatch { source_length: 1, target_length: 10, .. }), "{short}");
    let odd = module.global::<u32>("odd").unwrap_err();
    assert!(odd.to_string().contains("`odd` has 7 bytes"), "{odd}");
    assert!(matches!(module.global::<()>("odd"), Err(Error::Foreign(ForeignError::GlobalSize { .. }))));
    let none = module.global::<u8>("nothing").unwrap_err();
    assert_eq!(none, Error::Foreign(ForeignError::NoGlobal { module: "".into(), name: "nothing".into() }));
    Ok(())
}

#[test]
fn modules_have_names_and_know_expressions() {
    run("names", "");
}

fn names() -> Result<()> {
    let device = Device::cuda(0)?;
    let file = std::env::temp_dir().join(format!("ferrogrid-names-{}.ptx", std::process::id()));
    std::fs::write(&file, PTX).unwrap();
    let module = device.load_file(&file)?;
    std::fs::remove_file(&file).unwrap();
    assert_eq!(
        (module.name(), module.code_type()),
        (file.file_name().unwrap().to_str().unwrap(), Some(CodeType::Ptx))
    );

    let unnamed = device.load_ptx(PTX)?;
    let missing = unnamed.function("scale").unwrap_err();
    assert!(missing.to_string().starts_with("the module has no kernel `scale`"), "{missing}");
    let module = unnamed.clone().with_name("maths");
    let module = module.with_symbol_mapping([
        ("saxpy<float>", "saxpy_cu"),
        ("&coefficients", "weights"),
        ("gone", "gone_cu"),
    ]);
    assert_eq!((module.name(), unnamed.name(), module.as_raw()), ("maths", "", unnamed.as_raw()));
    assert_eq!(module.function("saxpy<float>")?.name(), "saxpy_cu");
    assert_eq!(module.function("saxpy_cu")?.as_raw(), module.function("saxpy<float>")?.as_raw());
    assert_eq!(module.global::<u64>("&coefficients")?.len(), 5);
    let missing = module.function("gone").unwrap_err().to_string();
    for part in ["the module `maths` has no kernel `gone`", "`gone`, `saxpy<float>`, `saxpy_cu`"] {
        assert!(missing.contains(part), "{part:?} is missing in {missing}");
    }
    let missing = module.global::<u64>("nothing").unwrap_err().to_string();
    assert_eq!(missing, "the module `maths` has no global variable `nothing`");
    // SAFETY: nothing of it runs.
    unsafe { module.unload() }
}

/// A library as `ar` writes it.
fn library(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, contents) in members {
        bytes.extend(format!("{name:<48}{:<10}`\n", contents.len()).bytes());
        bytes.extend(*contents);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    bytes
}

#[test]
fn a_library_is_loaded_with_all_its_members() {
    let calls = run("libraries", "");
    let linked: Vec<&str> = calls.iter().filter_map(|call| call.strip_prefix("link ")).collect();
    // What the machine code is made of; then objects, and machine code.
    assert_eq!(linked, ["main.ptx of kind 1", "one.o of kind 3", "two.o of kind 3", "three.cubin of kind 0"]);
    assert_eq!(count(&calls, "cuModuleLoadDataEx"), 1);
}

fn libraries() -> Result<()> {
    let device = Device::cuda(0)?;
    let cubin = linked(&device)?;
    let bytes = library(&[("one.o/", b"host object"), ("two.o/", b"another"), ("three.cubin/", &cubin)]);
    let module = device.load_library(&bytes)?;
    assert_eq!(module.code_type(), Some(CodeType::Library));
    // By the driver, for machine code; and so an error knows what there is.
    assert_eq!(module.kernel_names(), Some(vec!["saxpy_cu"]));
    let missing = module.function("sakspy").unwrap_err().to_string();
    assert!(missing.contains("saxpy_cu"), "{missing}");
    assert_eq!(module.function("saxpy_cu")?.name(), "saxpy_cu");
    let damaged = device.load_library(&bytes[..bytes.len() - 1]).unwrap_err();
    assert!(damaged.to_string().starts_with("invalid library: its member at byte"), "{damaged}");
    let fatbin = [&[0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0][..], &8_u64.to_le_bytes(), &[7; 8]].concat();
    assert!(matches!(device.load_library(&fatbin), Err(Error::Foreign(ForeignError::InvalidImage { .. }))));
    assert!(matches!(Device::cpu().load_library(&bytes), Err(Error::Unsupported { .. })));
    Ok(())
}

#[test]
fn the_driver_links_and_explains() {
    let calls = run("linking", "");
    assert_eq!(count(&calls, "cuLinkCreate_v2"), count(&calls, "cuLinkDestroy"));
}

pub(crate) fn linked(device: &Device) -> Result<Vec<u8>> {
    let mut linker = Linker::new(device, &JitOptions::new())?;
    linker.add_ptx("main.ptx", ".entry main")?;
    Ok(linker.complete()?.cubin)
}

fn linking() -> Result<()> {
    let device = Device::cuda(0)?;
    let cubin = linked(&device)?;
    assert!(device.load_cubin(&cubin)?.function("saxpy_cu").is_ok());

    let mut linker = Linker::new(&device, &JitOptions::new())?;
    linker.add_cubin("main.cubin", &cubin)?;
    linker.add_ptx("use.ptx", "undefined")?;
    let error = linker.complete().unwrap_err();
    assert!(error.to_string().contains("cannot link the program"), "{error}");
    assert!(error.to_string().contains("Undefined reference to 'helper'"), "{error}");

    let mut linker = Linker::new(&device, &JitOptions::new())?;
    let error = linker.add_ptx("broken.ptx", "nonsense").unwrap_err();
    assert!(error.to_string().contains("cannot link `broken.ptx`"), "{error}");
    assert!(error.to_string().contains("Parsing error"), "{error}");
    assert!(linker.add_cubin("half.cubin", &cubin[..70]).is_err());
    drop(linker);

    let unsupported = Linker::new(&Device::cpu(), &JitOptions::new()).unwrap_err();
    assert!(matches!(unsupported, Error::Unsupported { operation: "cuLinkCreate", .. }), "{unsupported}");
    Ok(())
}

#[test]
fn options_reach_the_drivers_compiler() {
    run("options", "");
}

fn options() -> Result<()> {
    let device = Device::cuda(0)?;
    let load = |options: JitOptions| device.load_image(PTX.as_bytes(), &options);
    assert_eq!(load(JitOptions::new())?.log(), "");
    let all = JitOptions::new()
        .with_max_registers(32)
        .with_threads_per_block(256)
        .with_optimization_level(3)
        .with_debug_info(true)
        .with_line_info(true)
        .with_verbose(true)
        .with_cache_mode(JitCacheMode::All);
    assert_eq!(load(all)?.log(), "0=32 1=256 7=3 11=1 13=1 12=1 14=2");
    Ok(())
}

#[test]
fn tensors_of_a_gpu_are_shared_after_their_work_and_freed_after_that_of_others() {
    let calls = run("tensors", "devices=2,pools=0");
    assert!(count(&calls, "cuCtxSynchronize") >= 1, "the tensor's consumer may have used it on any stream");
    assert_eq!(count(&calls, "cuMemAlloc_v2"), count(&calls, "cuMemFree_v2"));
}

fn tensors() -> Result<()> {
    let device = Device::cuda(1)?;
    let (a, b) = (device.new_stream()?, device.new_stream()?);
    let x = a.upload(&[1.0_f32, 2.0])?;
    let mut y = a.upload(&[10.0_f32; 2])?;
    silent_saxpy(&a, Grid::cover(2), 1.0, &x, &mut y)?;
    let raw = DlpackTensor::from_buffer(&b, y)?.into_raw();
    // SAFETY: live; the fake driver's memory is the host's.
    let (place, elements) = unsafe {
        let tensor = &(*raw).dl_tensor;
        (tensor.device, std::slice::from_raw_parts(tensor.data.cast::<f32>(), 2))
    };
    assert_eq!((place.device_type, place.device_id), (abi::CUDA, 1));
    assert_eq!(elements, [11.0, 12.0], "what was enqueued has run");

    // SAFETY: from `into_raw`, and not used otherwise.
    let tensor = unsafe { DlpackTensor::from_raw(raw)? };
    let mut y = tensor.into_buffer::<f32>(&b)?;
    silent_saxpy(&a, Grid::cover(2), 1.0, &x, &mut y)?;
    assert_eq!(b.download(&y)?, [12.0, 14.0]);
    silent_saxpy(&a, Grid::cover(2), 1.0, &x, &mut y)?;
    drop(y);

    // SAFETY: as above.
    let tensor = unsafe { DlpackTensor::from_raw(DlpackTensor::from_buffer(&a, x)?.into_raw())? };
    let elsewhere = tensor.into_buffer::<f32>(&Device::cuda(0)?.new_stream()?).unwrap_err();
    assert!(matches!(elsewhere, Error::Dlpack(DlpackError::OtherDevice { .. })), "{elsewhere}");
    Ok(())
}
