//! Figures of GPUs, with a made-up NVML (`fake_driver/libnvidia_ml.rs`) beside the fake driver.
#![cfg(target_os = "linux")]

mod scenario;

use std::path::Path;
use std::process::Command;

use ferrogrid_host::nvml_wrapper::bitmasks::device::ThrottleReasons;
use ferrogrid_host::nvml_wrapper::enum_wrappers::device::TopologyLevel;
use ferrogrid_host::{Device, Error, NvmlDevice, NvmlProcessKind, Result};
use scenario::{Scenario, fake_driver, run_requested, run_with};

const SCENARIOS: &[Scenario] = &[("figures", figures), ("missing", missing)];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
}

#[test]
fn figures_are_those_of_the_library() {
    let folder = fake_driver(&[]);
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
    rustc.args(["--edition=2024", "--crate-type=cdylib", "-Anon_snake_case", "-o"]);
    rustc.arg(folder.join("libnvidia-ml.so.1"));
    rustc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_driver/libnvidia_ml.rs"));
    let output = rustc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for scenario in ["figures", "missing"] {
        run_with(scenario, "", &folder);
    }
}

fn figures() -> Result<()> {
    let gpu = Device::cuda(0)?.nvml()?;
    let uuid = Device::cuda(0)?.properties()?.uuid.unwrap().to_string();
    assert_eq!((gpu.index()?, gpu.name()?, gpu.uuid()?), (0, "Fake GPU 1".into(), uuid));
    assert_eq!(NvmlDevice::driver_version()?, "580.82.07");
    let all = NvmlDevice::all()?;
    let names: Vec<String> = all.iter().map(NvmlDevice::name).collect::<Result<_>>()?;
    assert_eq!(names, ["Fake GPU 1", "Fake GPU 2"]);
    assert_eq!(all[1].handle().name().unwrap(), "Fake GPU 2");

    let temperatures = all[1].temperatures()?;
    assert_eq!(
        (temperatures.gpu, temperatures.slowdown, temperatures.shutdown),
        (Some(42), Some(90), Some(95))
    );
    let power = gpu.power()?;
    assert_eq!((power.usage, power.enforced_limit), (Some(100_001), Some(600_001)));
    assert_eq!((power.limit, power.default_limit), (Some(650_001), Some(700_001)));
    assert_eq!((power.limit_range, power.total_energy), (Some((200_000, 700_000)), Some((1 << 40) + 1)));
    let clocks = gpu.clocks()?;
    assert_eq!((clocks.graphics.now, clocks.graphics.max), (Some(1000), Some(2000)));
    assert_eq!((clocks.sm.now, clocks.memory.max), (Some(1001), Some(2002)));
    assert_eq!((clocks.video.now, clocks.video.max), (None, Some(2003)), "not all is supported");
    let memory = gpu.memory()?;
    assert_eq!((memory.total, memory.used, memory.free), (1000, 300, 600));
    let load = gpu.utilization()?;
    assert_eq!((load.gpu, load.memory), (Some(70), Some(30)));
    let ecc = gpu.ecc()?;
    assert_eq!(ecc.enabled, Some(true));
    assert_eq!((ecc.corrected, ecc.uncorrected), (Some(0), Some(1)));
    assert_eq!((ecc.corrected_total, ecc.uncorrected_total), (Some(10), Some(11)));
    let pcie = gpu.pcie()?;
    assert_eq!((pcie.generation, pcie.max_generation), (Some(4), Some(5)));
    assert_eq!((pcie.width, pcie.max_width), (Some(8), Some(16)));
    assert_eq!((pcie.sent, pcie.received), (Some(5000), Some(5001)));
    assert_eq!((gpu.fans()?, all[1].fans()?), (vec![50, 51], vec![]));
    let processes: Vec<_> = gpu.processes()?.iter().map(|it| (it.pid, it.memory, it.kind)).collect();
    let compute = NvmlProcessKind::Compute;
    assert_eq!(processes, [(77, Some(4096), compute), (78, None, compute)]);
    assert_eq!(gpu.throttle_reasons()?, Some(ThrottleReasons::SW_POWER_CAP));
    let links: Vec<_> = gpu.nvlinks()?.iter().map(|link| (link.link, link.version)).collect();
    assert_eq!(links, [(0, Some(40)), (2, Some(42)), (3, Some(43))]);
    assert_eq!(gpu.topology(&all[1])?, Some(TopologyLevel::Multiple));
    let figures = Device::cuda(0)?.nvml_figures()?;
    assert_eq!(figures, gpu.figures()?);
    assert_eq!(
        (figures.temperature, figures.power_usage, figures.memory_used),
        (Some(41), Some(100_001), Some(300))
    );
    assert_eq!(
        (figures.sm_clock, figures.memory_clock, figures.power_limit),
        (Some(1001), Some(1002), Some(600_001))
    );
    Ok(())
}

/// Functions that the library lacks are figures that are not there; failures are errors.
fn missing() -> Result<()> {
    let gpu = Device::cuda(0)?.nvml()?;
    let load = gpu.utilization()?;
    assert_eq!((load.encoder, load.decoder, gpu.pcie()?.replays), (None, None, None));
    assert!(gpu.nvlinks()?.iter().all(|link| link.peer.is_none()));
    let fails = |result: Result<()>, text: &str| {
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::Nvml { reason } if reason.contains(text)), "{error}");
    };
    fails(gpu.pci().map(drop), "nvmlDeviceGetPciInfo");
    fails(NvmlDevice::by_index(1)?.processes().map(drop), "");
    fails(NvmlDevice::by_index(2).map(drop), "");
    fails(NvmlDevice::by_uuid("MIG-1").map(drop), "");
    Ok(())
}
