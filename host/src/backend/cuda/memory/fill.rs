//! Fills on CUDA streams, with values of any size.

use crate::backend::cuda::device::address;
use crate::backend::cuda::stream::CudaStream;
use crate::backend::operation::Fill;
use crate::backend::operation::fill::MANY_WORDS;
use crate::backend::stream::BackendStream;
use crate::error::Result;

impl CudaStream {
    /// # Safety
    /// As for `StreamMemory::fill`.
    pub(super) unsafe fn fill_by_words(&self, fill: &Fill<'_>) -> Result<()> {
        let mut words = fill.words();
        if words.len() == 1 {
            // SAFETY: passed on; the words are as long as they are aligned.
            return words.try_for_each(|word| unsafe { self.fill_words(&word, word.count) });
        }
        // SAFETY: passed on, for the first value.
        unsafe { self.write_once(fill)? };
        // SAFETY: the first value is there.
        unsafe { self.double(fill.target.0, fill.value.len(), fill.count) }
    }

    /// Writes the value once: word by word, or of many words by a copy.
    ///
    /// # Safety
    /// As for `StreamMemory::fill`.
    unsafe fn write_once(&self, fill: &Fill<'_>) -> Result<()> {
        let (mut words, value) = (fill.words(), &*fill.value);
        if words.len() <= MANY_WORDS {
            // SAFETY: passed on: the words lie in the first value, and are aligned.
            return words.try_for_each(|word| unsafe { self.fill_words(&word, 1) });
        }
        // SAFETY: passed on.
        unsafe { self.copy_bytes(fill.target.0, value.as_ptr(), value.len())? };
        // The driver stages pageable memory, or the GPU reads it in place after the call, so `value` is needed until then.
        self.drain()
    }

    /// Copies the first of `count` values of `bytes` bytes to the others, twice as many each time.
    ///
    /// # Safety
    /// `target` is memory of `count` values, ordered for this stream, and the first value is there.
    unsafe fn double(&self, target: *mut u8, bytes: usize, count: usize) -> Result<()> {
        let mut done = 1;
        while done < count {
            let next = done.min(count - done);
            // SAFETY: passed on: `next` values follow after the first `done`, which are no fewer.
            unsafe { self.copy_bytes(target.wrapping_add(done * bytes), target, next * bytes)? };
            done += next;
        }
        Ok(())
    }

    /// `count` times the word of `fill`, side by side.
    ///
    /// # Safety
    /// The target is memory of so many words, aligned to one, and ordered for this stream.
    unsafe fn fill_words(&self, fill: &Fill<'_>, count: usize) -> Result<()> {
        let (driver, start, word) = (self.driver(), address(fill.target.0), fill.word());
        let bytes = fill.value.len();
        self.enqueue(format_args!("{count} elements"), |stream| {
            // SAFETY: the caller vouches for the room, its alignment, and the order. The word has so many bytes.
            unsafe {
                match bytes {
                    1 => driver.fill_8(start, word as u8, count, stream),
                    2 => driver.fill_16(start, word as u16, count, stream),
                    _ => driver.fill_32(start, word, count, stream),
                }
            }
        })
    }
}
