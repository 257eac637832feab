//! Spans of the crate `tracing`, as received by a subscriber.

mod kernels;

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use ferrogrid_host::{Device, Grid, Result, profile};
use kernels::saxpy;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps the names and fields of spans, in the order in which they are entered and left.
#[derive(Clone, Default)]
struct Keep {
    spans: Arc<Mutex<Vec<String>>>,
    order: Arc<Mutex<Vec<String>>>,
    /// Whether to panic at the end of each span.
    panics: bool,
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

impl Subscriber for Keep {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "ferrogrid"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut text = span.metadata().name().to_owned();
        span.record(&mut Fields(&mut text));
        let mut spans = self.spans.lock().unwrap();
        spans.push(text);
        Id::from_u64(spans.len() as u64)
    }

    fn enter(&self, span: &Id) {
        let text = self.spans.lock().unwrap()[span.into_u64() as usize - 1].clone();
        self.order.lock().unwrap().push(text);
    }

    fn exit(&self, span: &Id) {
        let text = self.spans.lock().unwrap()[span.into_u64() as usize - 1].clone();
        let name = text.split(' ').next().unwrap();
        self.order.lock().unwrap().push(format!("/{name}"));
        assert!(!self.panics, "a subscriber that panics");
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
}

fn work() -> Result<()> {
    let stream = Device::cpu().new_stream()?;
    let x = stream.upload(&[1.0_f32; 100])?;
    let mut y = stream.fill(2.0_f32, 100)?;
    saxpy(&stream, Grid::cover(100), 3.0, &x, &mut y)?;
    stream.launch_host_func(|| {})?;
    stream.synchronize()?;
    assert_eq!(stream.download(&y)?, [5.0; 100]);
    Ok(())
}

#[test]
fn a_subscriber_sees_launches_copies_and_synchronisations() {
    let keep = Keep::default();
    tracing::subscriber::with_default(keep.clone(), || {
        let _range = profile::range("all of it");
        work().unwrap();
    });
    let expected = [
        "range name=\"all of it\"",
        "upload bytes=400",
        "/upload",
        "fill bytes=400",
        "/fill",
        "launch kernel=\"saxpy\" grid=[1, 1, 1] block=[256, 1, 1] shared_bytes=0",
        "/launch",
        "host_fn",
        "/host_fn",
        "synchronize",
        "/synchronize",
        "download bytes=400",
        "/download",
        "/range",
    ];
    assert_eq!(*keep.order.lock().unwrap(), expected);
}

#[test]
fn a_subscriber_that_panics_at_the_end_of_a_span_does_not_unwind_into_a_copy() {
    let keep = Keep { panics: true, ..Keep::default() };
    tracing::subscriber::with_default(keep.clone(), || work().unwrap());
    assert!(keep.order.lock().unwrap().contains(&"/download".to_owned()));
}

#[test]
fn without_a_subscriber_nothing_changes() {
    work().unwrap();
}
