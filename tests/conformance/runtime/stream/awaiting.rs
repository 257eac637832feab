//! Streams, events and copies as futures.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use ferrogrid::{Device, Error, EventOptions};
use pollster::block_on;

use crate::runtime::{Case, Gate, Outcome, PATIENCE};

pub(crate) const CASES: &[Case] = &[
    ("a_stream_is_awaited", a_stream_is_awaited),
    ("an_event_is_awaited", an_event_is_awaited),
    ("a_copy_is_awaited", a_copy_is_awaited),
    ("many_futures_are_awaited_in_any_order", many_futures_are_awaited_in_any_order),
    ("a_future_may_be_dropped_before_it_is_ready", a_future_may_be_dropped_before_it_is_ready),
    ("only_the_last_waker_is_woken", only_the_last_waker_is_woken),
    ("a_future_returns_the_failure", a_future_returns_the_failure),
];

fn a_stream_is_awaited(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    block_on(stream.completed()?)?;
    let (source, mut target) = (stream.fill(8_u32, 1000)?, stream.zeros::<u32>(1000)?);
    let gate = Gate::close(&stream)?;
    stream.copy(&source, &mut target)?;
    let done = stream.completed()?;
    gate.open_soon();
    block_on(done)?;
    assert!(stream.is_complete()?);
    assert_eq!(stream.download(&target)?, [8; 1000]);
    Ok(())
}

fn an_event_is_awaited(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let event = device.new_event(EventOptions::new())?;
    block_on(event.into_future())?;
    let gate = Gate::close(&stream)?;
    stream.record_into(&event)?;
    gate.open_soon();
    block_on(async { (&event).await })?;
    assert!(event.is_complete()?);
    Ok(())
}

fn a_copy_is_awaited(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (source, target) = (device.pinned_copy(&[1_u64, 2])?, device.pinned_zeros(2)?);
    let mut buffer = stream.zeros::<u64>(2)?;
    let gate = Gate::close(&stream)?;
    let upload = stream.upload_async(source, &mut buffer)?;
    let download = stream.download_async(&buffer, target)?;
    gate.open_soon();
    // On another thread: futures are `Send`.
    let task =
        std::thread::spawn(move || block_on(async { Ok::<_, Error>((upload.await?, download.await?)) }));
    let (source, target) = task.join().expect("the thread does not panic")?;
    assert_eq!((source.to_vec(), target.to_vec()), (vec![1, 2], vec![1, 2]));
    Ok(())
}

fn many_futures_are_awaited_in_any_order(device: &Device) -> Outcome {
    let streams = (0..4).map(|_| device.new_stream()).collect::<Result<Vec<_>, _>>()?;
    for round in 0..5 {
        let mut futures = Vec::new();
        for stream in &streams {
            Gate::close(stream)?.open_soon();
            futures.push(stream.completed()?);
        }
        let order = futures.len();
        for step in 0..order {
            let future = futures.swap_remove((round + step) % futures.len());
            block_on(future)?;
        }
        for stream in &streams {
            assert!(stream.is_complete()?);
        }
    }
    Ok(())
}

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    fn reaches_one(&self) -> bool {
        let start = Instant::now();
        while self.0.load(Ordering::SeqCst) == 0 && start.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        self.0.load(Ordering::SeqCst) == 1
    }
}

fn a_future_may_be_dropped_before_it_is_ready(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for _ in 0..20 {
        let gate = Gate::close(&stream)?;
        let count = Arc::new(Count::default());
        {
            let mut future = pin!(stream.completed()?);
            let waker = Waker::from(count.clone());
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        drop(stream.completed()?);
        gate.open();
        stream.synchronize()?;
        assert!(count.reaches_one(), "the waker of a dropped future is woken for nothing, once");
    }
    Ok(())
}

fn only_the_last_waker_is_woken(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let gate = Gate::close(&stream)?;
    let (first, second) = (Arc::new(Count::default()), Arc::new(Count::default()));
    let mut future = pin!(stream.completed()?);
    for count in [&first, &second] {
        let waker = Waker::from(count.clone());
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    gate.open();
    assert!(second.reaches_one());
    assert_eq!(first.0.load(Ordering::SeqCst), 0);
    let ready = future.poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(ready, Poll::Ready(Ok(())));
    Ok(())
}

fn a_future_returns_the_failure(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let gate = Gate::close(&stream)?;
    stream.launch_host_func(|| std::panic::resume_unwind(Box::new("lost")))?;
    let done = stream.completed()?;
    gate.open_soon();
    assert_eq!(block_on(done), Err(Error::HostFnPanic { message: "lost".into() }));
    Ok(stream.synchronize()?)
}
