//! Text that kernels print on CPU devices: which sink gets it, on which thread, and that no sink causes a deadlock.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use ferrogrid::prelude::*;
use ferrogrid::{CpuOptions, Result};

#[ferrogrid::module(host_only)]
mod kernels {
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::println;

    /// Each thread says `count` lines.
    #[kernel]
    pub fn say(t: Thread<1>, count: u32) {
        for line in 0..count {
            println!("{}.{line}", t.thread_rank());
        }
    }

    /// Says what it writes.
    #[kernel]
    pub fn add(t: Thread<1>, mut y: DisjointSlice<u32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y += 1;
            println!("hello {}", *y);
        }
    }

    #[kernel]
    pub fn busy(t: Thread<1>, mut y: DisjointSlice<u32>) {
        if let Some(y) = y.get_mut(t.index()) {
            for k in 0..2000_u32 {
                *y = y.wrapping_mul(3).wrapping_add(k);
            }
        }
    }
}

/// What `work` gives, if it does so in time.
fn within<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(Duration::from_secs(60)).expect("it hangs, or has panicked")
}

fn device() -> Device {
    Device::cpu_with(CpuOptions::new().workers(2)).unwrap()
}

/// Has four threads print two lines each, and waits.
fn print(device: &Device) -> Result<()> {
    let stream = device.new_stream()?;
    kernels::say(&stream, Grid::new(1, 4), 2)?;
    stream.synchronize()
}

/// Collects what `device` prints.
fn collect(device: &Device) -> Arc<Mutex<String>> {
    let text = Arc::new(Mutex::new(String::new()));
    let kept = text.clone();
    device.set_output(move |line| kept.lock().unwrap().push_str(line));
    text
}

#[test]
fn each_device_has_its_own_sink() -> Result<()> {
    let (a, b) = (device(), device());
    let (of_a, of_b, of_process) = (collect(&a), collect(&b), collect(&Device::cpu()));
    let (sa, sb) = (a.new_stream()?, b.new_stream()?);
    kernels::say(&sa, Grid::new(1, 1), 1)?;
    kernels::say(&sb, Grid::new(1, 1), 2)?;
    sa.synchronize()?;
    sb.synchronize()?;
    assert_eq!(*of_a.lock().unwrap(), "0.0\n");
    assert_eq!(*of_b.lock().unwrap(), "0.0\n0.1\n");
    assert_eq!(*of_process.lock().unwrap(), "");
    Ok(())
}

#[test]
fn text_arrives_on_the_thread_that_waits_and_not_before() -> Result<()> {
    let device = device();
    let threads = Arc::new(Mutex::new(Vec::new()));
    let seen = threads.clone();
    device.set_output(move |_| seen.lock().unwrap().push(thread::current().id()));
    let stream = device.new_stream()?;
    let mut y = stream.zeros::<u32>(4)?;
    type Wait = fn(&Stream, &DeviceBuffer<u32>) -> Result<()>;
    let waits: [Wait; 8] = [
        |stream, _| stream.synchronize(),
        |stream, _| stream.device().synchronize(),
        |stream, _| stream.record()?.synchronize(),
        |stream, y| stream.download(y).map(drop),
        |stream, y| stream.download_async(y, stream.device().pinned_zeros(4)?)?.wait().map(drop),
        |stream, _| pollster::block_on(stream.completed()?),
        |stream, _| pollster::block_on(async { (&stream.record()?).await }),
        |stream, _| {
            while !stream.is_complete()? {
                thread::yield_now();
            }
            Ok(())
        },
    ];
    for wait in waits {
        kernels::add(&stream, Grid::cover(4), &mut y)?;
        thread::sleep(Duration::from_millis(20));
        assert!(threads.lock().unwrap().is_empty(), "before any wait");
        wait(&stream, &y)?;
        assert_eq!(std::mem::take(&mut *threads.lock().unwrap()), [thread::current().id(); 4]);
    }
    Ok(())
}

#[test]
fn a_thread_that_has_locked_standard_output_can_wait_for_a_kernel_that_prints() {
    within(|| {
        let stream = device().new_stream()?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "first line").unwrap();
        kernels::say(&stream, Grid::new(1, 2), 1)?;
        stream.synchronize()?;
        writeln!(out, "last line").unwrap();
        Result::<()>::Ok(())
    })
    .unwrap();
}

/// A logger whose thread is joined when it is dropped, after the device is done.
struct Logger {
    lines: Option<mpsc::Sender<String>>,
    thread: Option<thread::JoinHandle<usize>>,
    stream: Stream,
    count: Arc<AtomicUsize>,
}

impl Drop for Logger {
    fn drop(&mut self) {
        self.stream.synchronize().unwrap();
        self.lines.take();
        self.count.store(self.thread.take().unwrap().join().unwrap(), Ordering::Relaxed);
    }
}

#[test]
fn a_sink_may_wait_for_the_device_when_it_is_dropped() {
    within(|| {
        let device = device();
        let (lines, receiver) = mpsc::channel();
        let (stream, count) = (device.new_stream()?, Arc::new(AtomicUsize::new(0)));
        let thread = Some(thread::spawn(move || receiver.into_iter().count()));
        let logger = Logger { lines: Some(lines), thread, stream, count: count.clone() };
        device.set_output(move |text| logger.lines.as_ref().unwrap().send(text.to_owned()).unwrap());
        print(&device)?;
        device.set_output(|_| ());
        assert_eq!(count.load(Ordering::Relaxed), 8);
        Result::<()>::Ok(())
    })
    .unwrap();
}

#[test]
fn text_is_kept_in_4_kib_to_1_gib() {
    for (bytes, is_taken) in [(4095, false), (4096, true), (1 << 30, true), ((1 << 30) + 1, false)] {
        let found = device().set_output_capacity(bytes);
        let refused = ferrogrid::Error::OutputCapacity { bytes, least: 4096, most: 1 << 30 };
        assert_eq!(found, if is_taken { Ok(()) } else { Err(refused) });
    }
}

#[test]
fn a_sink_that_is_cleared_is_dropped_and_gets_no_more_text() -> Result<()> {
    let device = device();
    let text = collect(&device);
    print(&device)?;
    device.clear_output();
    assert_eq!(Arc::strong_count(&text), 1);
    let before = text.lock().unwrap().clone();
    assert_eq!(before.lines().count(), 8);
    print(&device)?;
    assert_eq!(*text.lock().unwrap(), before);
    Ok(())
}

#[test]
fn a_sink_that_is_replaced_may_clear_the_output_itself() {
    struct Clear(Device);
    impl Drop for Clear {
        fn drop(&mut self) {
            self.0.clear_output();
        }
    }
    within(|| {
        let device = device();
        let clear = Clear(device.clone());
        device.set_output(move |_| assert!(!clear.0.is_cuda()));
        device.set_output(|_| ());
    });
}

#[test]
fn a_sink_may_clear_itself_or_wait_for_its_own_stream_or_for_another() {
    within(|| {
        let device = device();
        let cleared = device.clone();
        device.set_output(move |_| cleared.clear_output());
        print(&device)?;

        let stream = Arc::new(device.new_stream()?);
        let (own, count) = (stream.clone(), Arc::new(AtomicUsize::new(0)));
        let counted = count.clone();
        device.set_output(move |_| {
            own.synchronize().unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        });
        kernels::say(&stream, Grid::new(1, 4), 2_500)?; // far more than waits within waits could nest
        stream.synchronize()?;
        assert_eq!(count.load(Ordering::Relaxed), 10_000);

        let other = device.new_stream()?;
        let data = Mutex::new(other.zeros::<u32>(1 << 10)?);
        device.set_output(move |_| {
            let data = &mut *data.lock().unwrap();
            kernels::busy(&other, Grid::cover(1 << 10), &mut *data).unwrap();
            other.synchronize().unwrap();
        });
        let mut y = stream.zeros::<u32>(1 << 8)?;
        kernels::add(&stream, Grid::cover(1 << 8).with_block(1), &mut y)?;
        stream.synchronize()?;
        device.clear_output();
        Result::<()>::Ok(())
    })
    .unwrap();
}

/// The panic is that of the thread that waits, which has called the sink; the stream and the rest of the text are as
/// they were.
#[test]
fn a_sink_that_panics_does_so_where_a_thread_waits() -> Result<()> {
    let device = device();
    device.set_output(|_| std::panic::resume_unwind(Box::new("sink")));
    let stream = device.new_stream()?;
    let mut y = stream.zeros::<u32>(2)?;
    kernels::add(&stream, Grid::cover(2), &mut y)?;
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stream.synchronize()));
    assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&"sink"));
    let text = collect(&device);
    assert_eq!(stream.download(&y)?, [1, 1]);
    assert_eq!(*text.lock().unwrap(), "hello 1\n");
    Ok(())
}

#[test]
fn text_without_room_is_counted() -> Result<()> {
    let device = device();
    device.set_output_capacity(1 << 12)?;
    let text = collect(&device);
    let stream = device.new_stream()?;
    for _ in 0..2 {
        kernels::say(&stream, Grid::new(1, 1), 10_000)?;
        stream.synchronize()?;
        let text = std::mem::take(&mut *text.lock().unwrap());
        let lines: Vec<&str> = text.lines().collect();
        let (last, whole) = lines.split_last().unwrap();
        let lost =
            format!("[{} printed texts were lost: the buffer of 4096 bytes was full]", 10_000 - whole.len());
        assert_eq!(*last, lost);
        assert!(whole.len() > 500 && whole.iter().all(|line| line.starts_with("0.")));
    }
    Ok(())
}
