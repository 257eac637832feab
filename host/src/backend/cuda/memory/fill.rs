//! Fills on CUDA streams, with values of any size.

use crate::backend::cuda::device::address;
use crate::backend::cuda::driver::Code;
use crate::backend::cuda::stream::CudaStream;
use crate::error::Result;

/// Values of up to so many words are written by fills of one word each, larger ones copied.
const MANY_WORDS: usize = 16;

impl CudaStream {
    /// # Safety
    /// As for `StreamInner::fill`.
    pub(crate) unsafe fn fill(&self, target: *mut u8, pattern: &[u8], count: usize) -> Result<()> {
        self.bind()?;
        if let [first, rest @ ..] = pattern
            && rest.iter().all(|byte| byte == first)
        {
            // SAFETY: passed on.
            return unsafe { self.fill_words(target, &[*first], pattern.len() * count) };
        }
        let word = word_of(target, pattern);
        if word == pattern.len() {
            // SAFETY: passed on; the words are as long as they are aligned.
            return unsafe { self.fill_words(target, pattern, count) };
        }
        // SAFETY: passed on, for the first value.
        unsafe { self.write_once(target, pattern, word)? };
        // SAFETY: the first value is there.
        unsafe { self.double(target, pattern.len(), count) }
    }

    /// Writes `pattern` once.
    unsafe fn write_once(&self, target: *mut u8, pattern: &[u8], word: usize) -> Result<()> {
        if pattern.len() / word > MANY_WORDS {
            // SAFETY: passed on; `pattern` is there until this returns.
            return unsafe { self.copy_from_host(target, pattern.as_ptr(), pattern.len()) };
        }
        for (index, bytes) in pattern.chunks_exact(word).enumerate() {
            // SAFETY: passed on: the words lie in the first value, and are aligned.
            unsafe { self.fill_words(target.wrapping_add(index * word), bytes, 1)? };
        }
        Ok(())
    }

    /// Copies the first of `count` values of `bytes` bytes to the others, twice as many each time.
    unsafe fn double(&self, target: *mut u8, bytes: usize, count: usize) -> Result<()> {
        let mut done = 1;
        while done < count {
            let next = done.min(count - done);
            // SAFETY: passed on: `next` values follow after the first `done`, which are no fewer.
            unsafe { self.copy(target.wrapping_add(done * bytes), target, next * bytes)? };
            done += next;
        }
        Ok(())
    }

    /// `count` words of 1, 2 or 4 bytes.
    unsafe fn fill_words(&self, target: *mut u8, word: &[u8], count: usize) -> Result<()> {
        let entered = self.enter()?;
        let (driver, start, stream) = (self.driver(), address(target), entered.raw);
        // SAFETY: the caller vouches for the room, its alignment, and the order.
        let (code, operation): (Code, _) = unsafe {
            match *word {
                [a, b] => {
                    (driver.fill_16(start, u16::from_ne_bytes([a, b]), count, stream), "cuMemsetD16Async")
                }
                [a, b, c, d] => {
                    let value = u32::from_ne_bytes([a, b, c, d]);
                    (driver.fill_32(start, value, count, stream), "cuMemsetD32Async")
                }
                _ => (driver.fill_8(start, word[0], count, stream), "cuMemsetD8Async"),
            }
        };
        self.device().check(code, operation, &format!("{count} elements"))
    }
}

/// The size of the largest words that `pattern`, from `target` on, consists of.
fn word_of(target: *const u8, pattern: &[u8]) -> usize {
    let fits = |word: usize| pattern.len().is_multiple_of(word) && target.addr().is_multiple_of(word);
    [4, 2].into_iter().find(|word| fits(*word)).unwrap_or(1)
}
