//! Texture arrays on a fake driver (`fake_driver/arrays.rs`): which objects are created, how long they live, and
//! what comes of errors. The fake driver ends the process where an array is destroyed while it is used, or
//! used without order.

use crate::kernels::{saxpy, saxpy_of_texture, saxpy_to_surface};
use crate::scenario::{Scenario, count, run, run_requested};
use ferrogrid_host::{Device, Error, Grid, Result, Sampler, TextureArray};

use ferrogrid_host::__private::device::{AddressMode, FilterMode};

const SCENARIOS: &[Scenario] = &[
    ("objects", objects),
    ("copies", copies),
    ("order", order),
    ("dropped", dropped),
    ("graphs", graphs),
    ("no_memory", no_memory),
    ("no_texture", no_texture),
    ("other_device", other_device),
    ("reset", reset),
    ("limits", limits),
    ("foreign", foreign),
];

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
}

#[test]
fn a_texture_object_is_created_once_per_sampler() {
    let calls = run("objects", "");
    let made = |what: &str| -> Vec<&str> {
        calls.iter().map(String::as_str).filter(|call| call.starts_with(what)).collect()
    };
    assert_eq!(
        made("array "),
        [
            "array 4 3 0 format=1 channels=2 flags=2",
            "array 5 0 0 format=32 channels=1 flags=2",
            "array 2 2 2 format=9 channels=4 flags=2"
        ]
    );
    // Modes: wrap 0, clamp 1, mirror 2, border 3. Flags: 1 for integers, 2 for normalized coordinates.
    assert_eq!(
        made("texture "),
        [
            "texture addresses=[1, 1, 1] filter=0 flags=1",
            "texture addresses=[1, 1, 1] filter=0 flags=0",
            "texture addresses=[0, 2, 1] filter=1 flags=2",
            "texture addresses=[3, 1, 1] filter=1 flags=0",
            "texture addresses=[3, 3, 3] filter=0 flags=1",
        ]
    );
    assert_eq!(count(&calls, "cuSurfObjectCreate"), 1);
    let destroyed =
        ["cuArrayDestroy", "cuTexObjectDestroy", "cuSurfObjectDestroy"].map(|it| count(&calls, it));
    assert_eq!(destroyed, [3, 5, 1]);
}

fn objects() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let mut plane = stream.upload_array(&[[1_u8, 2]; 12], [4, 3])?;
    for _ in 0..3 {
        plane.texture::<[u8; 2]>(&Sampler::new())?;
        plane.texture::<[f32; 2]>(&Sampler::new())?;
        let repeated = [AddressMode::Wrap, AddressMode::Mirror, AddressMode::Border];
        plane
            .texture::<[f32; 2]>(&Sampler::new().linear().normalized_coordinates().address_modes(repeated))?;
        plane.surface()?;
    }
    let line = stream.upload_array(&[1.0_f32; 5], [5])?;
    for above in [AddressMode::Clamp, AddressMode::Border, AddressMode::Wrap] {
        // What is above the rank does not count.
        let sampler = Sampler::new().address_modes([AddressMode::Border, above, above]);
        line.texture::<f32>(&sampler.filter_mode(FilterMode::Linear))?;
    }
    let volume = stream.upload_array(&[[1_i16; 4]; 8], [2, 2, 2])?;
    volume.texture::<[i16; 4]>(&Sampler::new().address_mode(AddressMode::Border))?;
    drop((plane, line, volume));
    stream.synchronize()
}

#[test]
fn arrays_are_copied_by_one_call() {
    let calls = run("copies", "");
    assert_eq!(count(&calls, "cuMemcpy3DAsync_v2"), 7);
}

fn copies() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let numbers: Vec<u16> = (0..30).collect();
    let mut volume = stream.upload_array(&numbers, [5, 3, 2])?;
    assert_eq!(stream.download_array(&volume)?, numbers);
    let mut buffer = stream.zeros::<u16>(40)?;
    stream.copy_from_array(&volume, buffer.slice_mut(10..)?)?;
    assert_eq!(stream.download(buffer.slice(10..)?)?, numbers);
    stream.copy_to_array(buffer.slice(5..35)?, &mut volume)?;
    let expected: Vec<u16> = [0; 5].into_iter().chain(0..25).collect();
    assert_eq!(stream.download_array(&volume)?, expected);
    let zeros = stream.zeros_array::<[f32; 2], 1>([3])?;
    assert_eq!(stream.download_array(&zeros)?, [[0.0; 2]; 3]);
    Ok(())
}

#[test]
fn streams_take_turns_with_an_array() {
    run("order", "");
    run("order", "alive=1");
}

fn order() -> Result<()> {
    let device = Device::cuda(0)?;
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    let mut line = first.zeros_array::<f32, 1>([8])?;
    let (ones, mut sum) = (first.upload(&[1.0_f32; 8])?, second.zeros::<f32>(8)?);
    for round in 0..20 {
        let [writer, reader] = if round % 3 == 0 { [&first, &second] } else { [&second, &first] };
        saxpy_to_surface(writer, Grid::cover(8), 1.0, &ones, line.surface()?)?;
        saxpy_of_texture(reader, Grid::cover(8), 1.0, line.texture(&Sampler::new())?, &mut sum)?;
        second.copy_from_array(&line, &mut sum)?;
    }
    assert_eq!(first.download_array(&line)?, [20.0; 8]);
    assert_eq!(first.download(&sum)?, [20.0; 8]);
    Ok(())
}

#[test]
fn an_array_is_kept_until_the_work_that_uses_it_has_run() {
    for settings in ["", "alive=1"] {
        let calls = run("dropped", settings);
        let ended =
            ["cuArrayDestroy", "cuTexObjectDestroy", "cuSurfObjectDestroy"].map(|it| count(&calls, it));
        assert_eq!(ended, [12, 11, 10]);
    }
}

fn dropped() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let (x, mut y) = (stream.upload(&[1.0_f32; 8])?, stream.zeros::<f32>(8)?);
    for round in 0..10 {
        let mut line = stream.upload_array(&[round as f32; 8], [8])?;
        saxpy_to_surface(&stream, Grid::cover(8), 1.0, &x, line.surface()?)?;
        saxpy_of_texture(&stream, Grid::cover(8), 1.0, line.texture(&Sampler::new())?, &mut y)?;
        match round % 2 {
            0 => drop(line),
            // By a thread without a context, after the stream that it was made on is gone.
            _ => std::thread::spawn(move || drop(line)).join().unwrap(),
        }
    }
    assert_eq!(stream.download(&y)?, [55.0; 8]);
    // Used on a stream that is gone before its work has run.
    let last = stream.upload_array(&[1.0_f32; 8], [8])?;
    let other = device.new_stream()?;
    saxpy_of_texture(&other, Grid::cover(8), 1.0, last.texture(&Sampler::new())?, &mut y)?;
    drop(other);
    drop(last);
    device.synchronize()?;
    assert_eq!(stream.download(&y)?, [56.0; 8]);
    // What has been retired goes with the next.
    drop(stream.upload_array(&[0_u8], [1]));
    stream.synchronize()
}

#[test]
fn graphs_read_and_write_arrays() {
    for settings in ["", "alive=1"] {
        let calls = run("graphs", settings);
        assert_eq!(count(&calls, "cuGraphAddKernelNode_v2"), 3);
        let ended =
            ["cuArrayDestroy", "cuTexObjectDestroy", "cuSurfObjectDestroy"].map(|it| count(&calls, it));
        assert_eq!(ended, [2, 2, 1]);
    }
}

fn graphs() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let given = stream.upload_array(&[0.5_f32; 8], [8])?;
    let mut line = stream.zeros_array::<f32, 1>([8])?;
    let (ones, sum) = (stream.upload(&[1.0_f32; 8])?, stream.zeros::<f32>(8)?);
    let (graph, sum) = stream.capture(|capture| {
        let (given, mut line) = (capture.read_array(&given)?, capture.write_array(&mut line)?);
        let (ones, mut sum) = (capture.keep(ones)?, capture.keep(sum)?);
        saxpy_to_surface(capture, Grid::cover(8), 1.0, &ones, line.surface()?)?;
        saxpy_of_texture(capture, Grid::cover(8), 1.0, line.texture(&Sampler::new())?, &mut sum)?;
        saxpy_of_texture(capture, Grid::cover(8), 2.0, given.texture(&Sampler::new())?, &mut sum)?;
        Ok(sum.key())
    })?;
    let mut graph = graph.instantiate()?;
    for _ in 0..2 {
        graph.launch(&stream)?;
        graph.launch(&other)?;
    }
    assert_eq!(other.download(graph.view(sum)?)?, [14.0; 8]); // 1 + 2 + 3 + 4, and 1 each time
    assert_eq!(other.download_array(&given)?, [0.5; 8]);
    drop(graph);
    // The order of the graph's launches is that of the array.
    assert_eq!(other.download_array(&line)?, [4.0; 8]);
    drop((given, line));
    device.synchronize()?;
    drop(stream.upload(&[0_u8])?);
    Ok(())
}

#[test]
fn exhausted_memory_is_an_error() {
    let calls = run("no_memory", "memory=4096");
    assert_eq!(count(&calls, "cuArrayDestroy"), 0);
}

fn no_memory() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let error = stream.upload_array(&vec![0_u8; 5000], [5000]).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { requested: 5000, total: Some(4096), .. }), "{error}");
    Ok(())
}

#[test]
fn a_texture_object_that_cannot_be_created_is_an_error() {
    let calls = run("no_texture", "fail=cuTexObjectCreate:1");
    assert_eq!((count(&calls, "cuTexObjectDestroy"), count(&calls, "cuArrayDestroy")), (0, 1));
}

fn no_texture() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let array = stream.upload_array(&[1.0_f32, 2.0], [2])?;
    let error = array.texture::<f32>(&Sampler::new()).unwrap_err();
    assert!(matches!(error, Error::Driver { operation: "cuTexObjectCreate", code: 1, .. }), "{error}");
    assert_eq!(stream.download_array(&array)?, [1.0, 2.0]);
    drop(array);
    stream.synchronize()
}

#[test]
fn an_array_is_used_on_its_own_device_only() {
    let calls = run("other_device", "devices=2");
    assert_eq!(count(&calls, "cuLaunchKernel"), 0);
}

fn other_device() -> Result<()> {
    let (device, peer) = (Device::cuda(0)?, Device::cuda(1)?);
    peer.enable_peer_access(&device)?;
    let (ours, theirs) = (device.new_stream()?, peer.new_stream()?);
    let mut line = ours.upload_array(&[1.0_f32; 8], [8])?;
    let mut y = theirs.zeros::<f32>(8)?;
    let refused = saxpy_of_texture(&theirs, Grid::cover(8), 1.0, line.texture(&Sampler::new())?, &mut y);
    assert!(matches!(refused, Err(Error::DeviceMismatch { .. })), "{refused:?}");
    let refused = saxpy_to_surface(&theirs, Grid::cover(8), 1.0, &y, line.surface()?);
    assert!(matches!(refused, Err(Error::DeviceMismatch { .. })), "{refused:?}");
    let refused = theirs.copy_from_array(&line, &mut y);
    assert!(matches!(refused, Err(Error::DeviceMismatch { .. })), "{refused:?}");
    let refused = theirs.upload_into_array(&[0.0; 8], &mut line);
    assert!(matches!(refused, Err(Error::DeviceMismatch { .. })), "{refused:?}");
    assert_eq!(ours.download_array(&line)?, [1.0; 8]);
    Ok(())
}

#[test]
fn a_reset_takes_arrays_with_it() {
    let calls = run("reset", "fail=cuStreamSynchronize:719:2");
    assert_eq!((count(&calls, "cuArrayDestroy"), count(&calls, "cuTexObjectDestroy")), (0, 0));
}

fn reset() -> Result<()> {
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let line = stream.upload_array(&[1.0_f32; 8], [8])?;
    let mut y = stream.zeros::<f32>(8)?;
    saxpy_of_texture(&stream, Grid::cover(8), 1.0, line.texture(&Sampler::new())?, &mut y)?;
    assert!(stream.synchronize().is_err());
    // SAFETY: objects of other code on the device are not in use.
    unsafe { device.reset()? };
    let refused = line.texture::<f32>(&Sampler::new().linear());
    assert!(matches!(refused, Err(Error::DeviceReset { .. })), "{refused:?}");
    let device = Device::cuda(0)?;
    let fresh = device.new_stream()?;
    let x = fresh.upload(&[1.0_f32; 8])?;
    let mut y = fresh.zeros::<f32>(8)?;
    saxpy(&fresh, Grid::cover(8), 1.0, &x, &mut y)?;
    // The old array goes while the new context, which has the old one's handle, is in use.
    drop(line);
    assert_eq!(fresh.download(&y)?, [1.0; 8]);
    Ok(())
}

#[test]
fn requests_beyond_the_device_limit_are_not_made() {
    let calls = run("limits", "texture_width=100");
    assert_eq!(count(&calls, "cuArray3DCreate_v2"), 1);
}

fn limits() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let made: Result<TextureArray<u8, 1>> = stream.zeros_array([101]);
    let text = made.unwrap_err().to_string();
    assert!(
        text.contains("1 to 100 elements along x (CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH), not 101"),
        "{text}"
    );
    assert_eq!(stream.zeros_array::<u8, 1>([100])?.len(), 100);
    Ok(())
}

#[test]
fn foreign_kernels_take_the_objects() {
    let calls = run("foreign", "devices=2");
    assert_eq!(count(&calls, "cuLaunchKernel"), 3);
}

fn foreign() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let function = device.load_ptx(include_str!("../kernels/saxpy_cu.ptx"))?.function("saxpy_cu")?;
    let mut line = stream.upload_array(&[1.0_f32; 8], [8])?;
    let mut y = stream.zeros::<f32>(8)?;
    let texture = line.texture::<f32>(&Sampler::new())?;
    // SAFETY: the fake driver's kernel takes these, and keeps to the lengths.
    unsafe { function.launch(&stream, Grid::cover(8), (2.0_f32, texture, 8_usize, &mut y, 8_usize))? };
    // Its order is kept on another stream.
    // SAFETY: as above.
    unsafe { function.launch(&other, Grid::cover(8), (3.0_f32, &y, 8_usize, line.surface()?, 8_usize))? };
    let (texture, mut z) = (line.texture::<f32>(&Sampler::new())?, stream.zeros::<f32>(8)?);
    // SAFETY: as above.
    unsafe { function.launch(&stream, Grid::cover(8), (1.0_f32, texture, 8_usize, &mut z, 8_usize))? };
    assert_eq!((stream.download(&y)?, stream.download(&z)?), (vec![2.0; 8], vec![7.0; 8]));
    assert_eq!(stream.download_array(&line)?, [7.0; 8]);
    let peer = Device::cuda(1)?;
    device.enable_peer_access(&peer)?;
    let mut theirs = peer.new_stream()?.zeros_array::<f32, 1>([8])?;
    // SAFETY: as above.
    let refused = unsafe {
        function.launch(&stream, Grid::cover(8), (1.0_f32, &y, 8_usize, theirs.surface()?, 8_usize))
    };
    assert!(matches!(refused, Err(Error::DeviceMismatch { .. })), "{refused:?}");
    Ok(())
}
