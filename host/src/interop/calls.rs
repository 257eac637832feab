//! How failures of earlier work reach what a library writes. This crate does not see which call of the library uses which views, so
//! views of one stream that exist at the same time count as those of one call.

use std::sync::Mutex;

use crate::backend::writers::{Sources, Writers, sources_of};
use crate::error::Result;
use crate::memory::access::Access;
use crate::order::Use;
use crate::stream::Stream;
use crate::sync::lock;

/// The views of one stream that exist.
#[derive(Default)]
pub(super) struct Calls(Mutex<Present>);

#[derive(Default)]
struct Present {
    views: usize,
    /// What the memory of these views rests on, and of those that have ended since there was none.
    sources: Writers,
}

/// One view in calls of a library.
pub(super) struct Call<'a> {
    calls: &'a Calls,
    access: Access<'a>,
}

impl Calls {
    /// Orders the memory of `access` on `stream`, for as long as it is borrowed.
    ///
    /// # Errors
    /// If the memory is another device's, or the device fails.
    pub(super) fn begin<'a>(&'a self, stream: &Stream, access: Access<'a>) -> Result<Call<'a>> {
        access.begin(stream.inner())?;
        let mut present = lock(&self.0);
        present.views += 1;
        present.sources.receive(sources_of([access.effect()].into_iter()), false);
        let sources = present.sources.sources();
        stream.inner().backend().rest_external(&sources);
        let call = Call { calls: self, access };
        call.name(sources, access.is_whole());
        Ok(call)
    }
}

impl Call<'_> {
    /// Enters `sources` into the memory, if the library writes it: into the `whole`, or a part.
    fn name(&self, sources: Sources, whole: bool) {
        if self.access.usage() != Use::Read {
            self.access.memory().writers().receive(sources, whole);
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut present = lock(&self.calls.0);
        self.name(present.sources.sources(), false);
        present.views -= 1;
        if present.views == 0 {
            present.sources = Writers::default();
        }
    }
}
