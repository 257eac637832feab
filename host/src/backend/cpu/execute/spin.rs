//! Spins for a moment before sleeping, because waking a thread takes longer than a small kernel runs.

use std::hint::spin_loop;
use std::sync::OnceLock;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// How long to look before sleeping. A thread that waits longer uses no processor.
const MOMENT: Duration = Duration::from_micros(20);

/// What `look` finds within a moment. On a machine with one processor it looks once, since what it waits for
/// cannot happen meanwhile.
pub(crate) fn until<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    if let Some(found) = look() {
        return Some(found);
    }
    if !others_run() {
        return None;
    }
    let start = Instant::now();
    while start.elapsed() < MOMENT {
        if let Some(found) = look() {
            return Some(found);
        }
        spin_loop();
    }
    None
}

/// Between two looks at what another thread of the system is about to write, when it was looked at `turns` times. Often that is a
/// moment away; then processors are better used by others.
pub(crate) fn pause(turns: u32) {
    const BUSY: u32 = 128;
    const AWAKE: u32 = 1024;
    match turns {
        0..BUSY if others_run() => spin_loop(),
        0..AWAKE => std::thread::yield_now(),
        _ => std::thread::sleep(MOMENT),
    }
}

/// Whether another thread can run while this one looks.
fn others_run() -> bool {
    static OTHERS: OnceLock<bool> = OnceLock::new();
    *OTHERS.get_or_init(|| available_parallelism().is_ok_and(|processors| processors.get() > 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_value_is_found_at_the_first_look() {
        let mut looks = 0;
        let found = until(|| {
            looks += 1;
            Some(7)
        });
        assert_eq!((found, looks), (Some(7), 1));
    }

    #[test]
    fn a_value_that_never_comes_is_given_up() {
        assert_eq!(until(|| None::<()>), None);
    }
}
