//! Fuzzing of parsers of foreign data: a deterministic mutator, and limits on the time and memory that a parser takes.
//!
//! Each parser has a test `fuzz_*` beside it. They take 20 000 inputs each; with `FERROGRID_FUZZ=ci` a million, or as many
//! as fit into 20 seconds; with `FERROGRID_FUZZ=full` a million. An input that a parser does not survive is printed with its
//! number; the same number is the same input in every run.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use fastrand::Rng;

/// The numbers of inputs in quick and in long runs.
const FEW: u64 = 20_000;
const MANY: u64 = 1_000_000;

/// What a run in CI may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What one input may take, on a machine that does other things, too.
const LONGEST: Duration = Duration::from_secs(5);

/// The most bytes that a parser may allocate at once.
const LARGEST: usize = 16 << 20;

/// Calls `parse` with `seeds`, and with inputs made of them by damage.
///
/// # Panics
/// If `parse` does, takes too long, or allocates too much.
#[track_caller]
pub(crate) fn survive(seeds: &[Vec<u8>], mut parse: impl FnMut(&[u8])) {
    let mode = std::env::var("FERROGRID_FUZZ").unwrap_or_default();
    let count = if mode.is_empty() { FEW } else { MANY };
    let start = Instant::now();
    for number in 0..count {
        if mode != "full" && start.elapsed() > PATIENCE {
            println!("{number} inputs in {PATIENCE:?}");
            break;
        }
        let input = input(seeds, number);
        WATCHED.set(0);
        let began = Instant::now();
        let survived = catch_unwind(AssertUnwindSafe(|| parse(&input))).is_ok();
        let (took, most) = (began.elapsed(), WATCHED.get());
        let is_well = survived && took < LONGEST && most < LARGEST;
        assert!(is_well, "input {number} ({took:?}, {most} bytes at once): {}", input.escape_ascii());
    }
}

/// Input `number`: the first are the seeds themselves.
fn input(seeds: &[Vec<u8>], number: u64) -> Vec<u8> {
    if let Some(seed) = seeds.get(number as usize) {
        return seed.clone();
    }
    let mut random = Rng::with_seed(number);
    let mut bytes = seeds[random.usize(..seeds.len())].clone();
    for _ in 0..random.usize(1..8) {
        damage(&mut bytes, seeds, &mut random);
    }
    bytes
}

/// Numbers at which sums, products and lengths go wrong.
const ODD: [u64; 12] = [
    0,
    1,
    7,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX as u64,
    i64::MAX as u64 + 1,
    u64::MAX,
];

fn damage(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Rng) {
    let at = random.usize(..=bytes.len());
    let some = random.usize(..=(bytes.len() - at).min(64));
    match random.u32(..9) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..at + some)),
        2 => {
            let copy = bytes[at..at + some].to_vec();
            bytes.splice(at..at, copy);
        }
        3 => {
            let other = &seeds[random.usize(..seeds.len())];
            let from = random.usize(..=other.len());
            bytes.truncate(at);
            bytes.extend(&other[from..]);
        }
        4 => bytes.insert(at, random.u8(..)),
        5 | 6 => {
            // A number of 1, 2, 4 or 8 bytes, where such fields lie.
            let size = 1 << random.u32(..4);
            let value = ODD[random.usize(..ODD.len())].wrapping_add(random.u64(..3));
            let at = at - at % size;
            if let Some(field) = bytes.get_mut(at..at + size) {
                field.copy_from_slice(&value.to_le_bytes()[..size]);
            }
        }
        7 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.u32(..8);
            }
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.u8(..);
            }
        }
    }
}

thread_local! {
    /// The largest allocation of this thread since it was set to 0.
    static WATCHED: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, watched.
struct Watching;

#[global_allocator]
static ALLOCATOR: Watching = Watching;

fn note(bytes: usize) {
    // A thread that ends has no such value any more.
    let _ended = WATCHED.try_with(|watched| watched.set(watched.get().max(bytes)));
}

// SAFETY: the system's allocator does all; what is noted needs no memory.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        note(bytes);
        // SAFETY: passed on.
        unsafe { System.realloc(pointer, layout, bytes) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[test]
fn inputs_that_crash_a_parser_are_found() {
    let seeds = [vec![4, 0, 0, 0, 1, 2, 3, 4]];
    let is_found = |parse: fn(&[u8])| catch_unwind(|| survive(&seeds, parse)).is_err();
    assert!(!is_found(|_| {}));
    assert!(is_found(|bytes| assert!(bytes.len() < 9 || bytes[8] != 0x7f)));
    assert!(is_found(|bytes| {
        // As a parser that believes a length.
        let length = bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) & 0x1ff_ffff);
        drop(std::hint::black_box(vec![1_u8; length as usize]));
    }));
    assert!(is_found(|bytes| {
        let [first, second, ..] = bytes else { return };
        std::hint::black_box(usize::from(*first) / usize::from(first.abs_diff(*second)));
    }));
}
