//! Text that is kept until a thread waits. Depends on nothing but its locks: `host/tests/loom/reports.rs`
//! includes it by path and explores all interleavings.

use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

pub(super) struct Kept {
    texts: Mutex<Texts>,
    /// The number of kept texts, readable without the lock.
    count: AtomicUsize,
}

struct Texts {
    all: VecDeque<String>,
    bytes: usize,
    capacity: usize,
    /// Texts for which there was no room.
    lost: usize,
}

impl Kept {
    pub(super) fn new(capacity: usize) -> Self {
        let texts = Texts { all: VecDeque::new(), bytes: 0, capacity, lost: 0 };
        Kept { texts: Mutex::new(texts), count: AtomicUsize::new(0) }
    }

    /// Sets how many bytes are kept.
    pub(super) fn set_capacity(&self, bytes: usize) {
        self.lock().capacity = bytes;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Keeps `text`, if there is room.
    pub(super) fn keep(&self, text: String) {
        let mut texts = self.lock();
        if texts.capacity - texts.bytes.min(texts.capacity) < text.len() {
            texts.lost += 1;
        } else {
            texts.bytes += text.len();
            texts.all.push_back(text);
        }
        self.update_count(&texts);
    }

    /// Takes the kept texts out, without holding the lock meanwhile.
    pub(super) fn deliver(&self, mut to: impl FnMut(&str)) {
        let mut rest = self.count.load(Ordering::Relaxed);
        while rest > 0
            && let Some(text) = self.next()
        {
            to(&text);
            rest -= 1;
        }
    }

    fn next(&self) -> Option<String> {
        let mut texts = self.lock();
        let text = match texts.all.pop_front() {
            Some(text) => {
                texts.bytes -= text.len();
                text
            }
            None if texts.lost > 0 => {
                let (lost, capacity) = (std::mem::take(&mut texts.lost), texts.capacity);
                format!("[{lost} printed texts were lost: the buffer of {capacity} bytes was full]\n")
            }
            None => return None,
        };
        self.update_count(&texts);
        Some(text)
    }

    fn update_count(&self, texts: &Texts) {
        self.count.store(texts.all.len() + usize::from(texts.lost > 0), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
