//! Works of a library in a row: which of them have an event behind them, and when they have ended.

use std::ffi::c_void;

use crate::calls::{after, mark};
use crate::kernels::silent_saxpy;
use crate::scenario::{Scenario, run, run_requested};
use ferrogrid_host::__private::{ExternalWork, PendingWork, WorkLine};
use ferrogrid_host::{Device, DeviceBuffer, DeviceView, DeviceViewMut, Grid, Result, Stream};

const SCENARIOS: &[Scenario] = &[
    ("events", events),
    ("ends", ends),
    ("handed_out", handed_out),
    ("captured", captured),
    ("failing_query", failing_query),
    ("next", next),
];

const FILL: &str = "cuMemsetD32Async";
const EVENT: &str = "cuEventRecord";
const LAUNCH: &str = "cuLaunchKernel";

/// The most works of a burst.
const MOST: usize = 32;

#[test]
#[ignore = "the other tests run it, in a process with a fake driver"]
fn scenario() {
    run_requested(SCENARIOS);
}

/// A library that fills a buffer.
struct Library {
    fill: unsafe extern "C" fn(u64, u32, usize, *mut c_void) -> u32,
    buffer: DeviceBuffer<u32>,
}

impl Library {
    fn new(stream: &Stream) -> Result<Self> {
        let buffer = stream.zeros(64)?;
        // SAFETY: the driver has been loaded before.
        let driver = unsafe { libloading::Library::new("libcuda.so.1") }.unwrap();
        // SAFETY: the function has that type; the driver stays loaded.
        let fill = unsafe { *driver.get(b"cuMemsetD32Async").unwrap() };
        Ok(Library { fill, buffer })
    }

    fn fill(&self, stream: *mut c_void) {
        let address = self.buffer.as_device_ptr().as_raw() as u64;
        // SAFETY: the memory is there, and nothing reads it.
        unsafe { (self.fill)(address, 1, 64, stream) };
    }

    fn work(&self, stream: &Stream, line: &mut WorkLine) -> Result<Option<PendingWork>> {
        let work = ExternalWork::begin(stream, [])?;
        self.fill(work.handle(line)?);
        work.watch(line)
    }
}

/// The calls that enqueue something.
fn enqueued<'a>(calls: &'a [String], what: &str) -> Vec<&'a str> {
    let is_of_interest = |call: &&str| [FILL, EVENT, LAUNCH].contains(call);
    after(calls, what).into_iter().filter(is_of_interest).collect()
}

#[test]
fn only_the_end_of_a_burst_has_an_event() {
    let calls = run("events", "");
    assert_eq!(after(&calls, "a burst"), [["cuCtxGetCurrent", FILL]; MOST].concat());
    assert_eq!(enqueued(&calls, "one more"), [EVENT, FILL]);
    assert_eq!(enqueued(&calls, "launches"), [EVENT, LAUNCH, LAUNCH]);
    assert_eq!(enqueued(&calls, "two lines"), [FILL, EVENT, FILL]);
    assert_eq!(enqueued(&calls, "an event of the user"), [EVENT, EVENT]);
}

fn events() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (library, mut line, mut other) = (Library::new(&stream)?, WorkLine::new(), WorkLine::new());
    let (x, mut y) = (stream.zeros::<f32>(8)?, stream.zeros::<f32>(8)?);
    silent_saxpy(&stream, Grid::cover(8), 1.0, &x, &mut y)?;
    mark("a burst");
    let works = (0..MOST).map(|_| library.work(&stream, &mut line)).collect::<Result<Vec<_>>>()?;
    mark("one more");
    let next = library.work(&stream, &mut line)?;
    mark("launches");
    (0..2).try_for_each(|_| silent_saxpy(&stream, Grid::cover(8), 1.0, &x, &mut y))?;
    mark("two lines");
    let two = [library.work(&stream, &mut line)?, library.work(&stream, &mut other)?];
    mark("an event of the user");
    stream.record()?;
    mark("end");
    assert!(works[0].is_some() && works[1..].iter().all(Option::is_none));
    assert!(next.is_some() && two.iter().all(Option::is_some));
    stream.synchronize()?;
    let all = works.into_iter().chain([next]).chain(two).flatten();
    all.for_each(|work| assert_eq!(work.is_complete(), Ok(true)));
    Ok(())
}

#[test]
fn a_burst_without_an_event_ends_with_its_stream() {
    let calls = run("ends", "");
    assert!(!after(&calls, "works that are waited for").contains(&EVENT));
    assert_eq!(enqueued(&calls, "a work that was asked for"), [FILL, EVENT, FILL]);
    run("ends", "alive=1");
}

fn ends() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (library, mut line) = (Library::new(&stream)?, WorkLine::new());
    mark("works that are waited for");
    for _ in 0..3 {
        let work = library.work(&stream, &mut line)?.expect("the one before has ended");
        stream.synchronize()?;
        assert_eq!(work.is_complete(), Ok(true));
    }
    mark("a work that was asked for");
    let (release, released) = std::sync::mpsc::channel::<()>();
    stream.launch_host_func(move || released.recv().unwrap())?;
    let first = library.work(&stream, &mut line)?.unwrap();
    assert_eq!(first.is_complete(), Ok(false));
    let second = library.work(&stream, &mut line)?.expect("the first one may be old");
    mark("end");
    assert_eq!((first.is_complete(), second.is_complete()), (Ok(false), Ok(false)));
    release.send(()).unwrap();
    stream.synchronize()?;
    assert_eq!((first.is_complete(), second.is_complete()), (Ok(true), Ok(true)));
    Ok(())
}

#[test]
fn a_burst_ends_before_what_others_enqueue_on_its_handle() {
    let calls = run("handed_out", "");
    assert_eq!(enqueued(&calls, "before"), [FILL, EVENT]);
    assert_eq!(enqueued(&calls, "later"), [FILL, FILL]);
    assert_eq!(enqueued(&calls, "asked"), [EVENT]);
}

fn handed_out() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (library, mut line) = (Library::new(&stream)?, WorkLine::new());
    mark("before");
    let first = library.work(&stream, &mut line)?.unwrap();
    let raw = stream.as_raw().unwrap();
    mark("waits");
    let (release, released) = std::sync::mpsc::channel::<()>();
    stream.launch_host_func(move || released.recv().unwrap())?;
    mark("later");
    let second = library.work(&stream, &mut line)?.unwrap();
    library.fill(raw);
    mark("asked");
    (0..3).for_each(|_| assert_eq!(second.is_complete(), Ok(false)));
    mark("end");
    release.send(()).unwrap();
    stream.synchronize()?;
    assert_eq!((first.is_complete(), second.is_complete()), (Ok(true), Ok(true)));
    Ok(())
}

#[test]
fn a_stream_that_is_captured_is_not_queried() {
    let calls = run("captured", "capturing=1");
    assert!(!after(&calls, "asked").contains(&"cuStreamQuery"));
}

fn captured() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let work = Library::new(&stream)?.work(&stream, &mut WorkLine::new())?.unwrap();
    mark("asked");
    assert_eq!(work.is_complete(), Ok(false));
    mark("end");
    stream.synchronize()
}

/// The one who asked has let go of it.
#[test]
fn a_burst_takes_no_more_work_after_a_query_that_failed() {
    run("failing_query", "fail=cuStreamQuery:1:1:1");
}

fn failing_query() -> Result<()> {
    let stream = Device::cuda(0)?.new_stream()?;
    let (library, mut line) = (Library::new(&stream)?, WorkLine::new());
    let first = library.work(&stream, &mut line)?.unwrap();
    first.is_complete().unwrap_err();
    assert!(library.work(&stream, &mut line)?.is_some());
    stream.synchronize()
}

/// The short way is for works that leave nothing to do but to count them.
#[test]
fn the_next_work_of_a_burst_takes_one_call_of_the_driver() {
    let calls = run("next", "");
    assert_eq!(after(&calls, "next works"), [["cuCtxGetCurrent", FILL]; MOST - 1].concat());
    assert_eq!(enqueued(&calls, "a burst that is closed"), [EVENT, EVENT, FILL]);
}

fn next() -> Result<()> {
    let device = Device::cuda(0)?;
    let (stream, other) = (device.new_stream()?, device.new_stream()?);
    let (library, mut line) = (Library::new(&stream)?, WorkLine::new());
    let (source, mut target) = (stream.zeros::<u32>(64)?, stream.zeros::<u32>(64)?);
    let first = |line: &mut WorkLine, source: &DeviceBuffer<u32>, target: &mut DeviceBuffer<u32>| {
        let accesses = [source.view().into_access(), target.view_mut().into_access()];
        let work = ExternalWork::begin(&stream, accesses)?;
        library.fill(work.handle(line)?);
        work.watch(line)
    };
    let handle =
        |line: &WorkLine, on: &Stream, source: DeviceView<'_, u32>, target: DeviceViewMut<'_, u32>| {
            line.next_handle(on, &[Some(source.into_access()), Some(target.into_access())])
        };
    assert!(handle(&line, &stream, source.view(), target.view_mut()).is_none(), "there is no burst");
    first(&mut line, &source, &mut target)?.unwrap();
    mark("next works");
    for _ in 1..MOST {
        library.fill(handle(&line, &stream, source.view(), target.view_mut()).unwrap());
        assert!(line.add());
    }
    mark("refused");
    assert!(handle(&line, &stream, source.view(), target.view_mut()).is_none(), "the burst is full");
    first(&mut line, &source, &mut target)?.unwrap();
    assert!(handle(&line, &stream, source.view(), target.view_mut()).is_some());
    assert!(handle(&line, &other, source.view(), target.view_mut()).is_none(), "another stream");
    let (part, _) = target.split_at_mut(32)?;
    assert!(handle(&line, &stream, source.view(), part).is_none(), "parts are entered");
    let mut fresh = stream.zeros::<u32>(64)?;
    first(&mut line, &source, &mut target)?.unwrap();
    assert!(handle(&line, &stream, source.view(), fresh.view_mut()).is_none(), "it does not name the burst");
    assert!(
        handle(&line, &stream, fresh.view(), target.view_mut()).is_some(),
        "what nothing wrote that may fail"
    );
    mark("a burst that is closed");
    let raw = handle(&line, &stream, source.view(), target.view_mut()).unwrap();
    stream.record()?; // as another thread may
    library.fill(raw);
    assert!(!line.add());
    let accesses = [Some(source.view().into_access()), Some(target.view_mut().into_access())];
    assert!(line.watch_next(&stream, &accesses)?.is_some());
    mark("end");
    other.copy(&source, &mut fresh)?;
    assert!(
        handle(&line, &stream, source.view(), target.view_mut()).is_none(),
        "the other stream uses it, too"
    );
    stream.synchronize()?;
    other.synchronize()
}
