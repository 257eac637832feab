//! Listings of the chapter "Errors and panics".

use ferrogrid::LaunchError;
use ferrogrid::prelude::*;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    // ANCHOR: panicking
    /// y[i] = x[i + offset]; a thread without such an element panics.
    #[kernel]
    pub fn shifted(t: Thread<1>, offset: usize, x: &[u32], mut y: DisjointSlice<u32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x[i.get() + offset];
        }
    }
    // ANCHOR_END: panicking

    // ANCHOR: printing
    /// Prints the odd elements.
    #[kernel]
    pub fn tell(t: Thread<1>, x: &[u32]) {
        use ferrogrid::device::println;
        let i = t.index().get();
        if let Some(x) = x.get(i).filter(|x| **x % 2 == 1) {
            println!("x[{i}] = {x}");
        }
    }
    // ANCHOR_END: printing

    /// x[i] <- x[i] + 1.
    #[kernel(max_threads = 512)]
    pub fn increment(t: Thread<1>, mut x: DisjointSlice<u32>) {
        if let Some(x) = x.get_mut(t.index()) {
            *x += 1;
        }
    }
}

#[test]
fn a_panic_is_an_error_and_the_device_stays_usable() -> ferrogrid::Result<()> {
    // The conformance suite tests this on GPUs.
    let stream = Device::cpu().new_stream()?;
    // ANCHOR: panic
    let x = stream.upload(&[1_u32, 2, 3, 4])?;
    let mut y = stream.zeros::<u32>(4)?;
    kernels::shifted(&stream, Grid::cover(4), 1, &x, &mut y)?; // enqueued: nothing has failed yet
    let error = stream.download(&y).unwrap_err();
    let Error::KernelPanic { message, .. } = &error else { panic!("{error}") };
    assert!(message.starts_with("index out of bounds"));
    println!("{error}"); // kernel, message, file, line, block and thread

    // The device, the stream and the buffers remain usable.
    kernels::shifted(&stream, Grid::cover(4), 0, &x, &mut y)?;
    assert_eq!(stream.download(&y)?, [1, 2, 3, 4]);
    // ANCHOR_END: panic
    let text = error.to_string();
    assert!(text.contains("shifted") && text.contains("errors.rs"), "{text}");
    Ok(())
}

#[test]
fn limits_are_checked_at_the_launch() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let mut x = stream.zeros::<u32>(1000)?;
    // ANCHOR: limits
    let error = kernels::increment(&stream, Grid::new(1, 1024), &mut x).unwrap_err();
    assert!(matches!(error, Error::Launch(LaunchError::TooManyThreads { threads: 1024, limit: 512, .. })));

    let error = stream.zeros::<u64>(1 << 46).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { .. })); // it has the requested and the free size

    let error = stream.upload_into(&[1, 2, 3], &mut x).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { source_length: 3, target_length: 1000, .. }));
    // ANCHOR_END: limits
    Ok(())
}

#[test]
fn kernels_print() -> ferrogrid::Result<()> {
    use std::sync::{Arc, Mutex};
    // ANCHOR: output
    let device = Device::cpu();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = lines.clone();
    device.set_output(move |text| kept.lock().unwrap().push(text.to_owned()));

    let stream = device.new_stream()?;
    let x = stream.upload(&[2_u32, 4, 7])?;
    kernels::tell(&stream, Grid::cover(3), &x)?;
    stream.synchronize()?; // a wait passes the text on
    device.clear_output();
    assert_eq!(*lines.lock().unwrap(), ["x[2] = 7\n"]);
    // ANCHOR_END: output
    Ok(())
}
