//! Rust has the same meaning in a kernel: a kernel and the host compute each part of the language, and some
//! results are known by hand.

use ferrogrid::prelude::*;

use crate::language::rust_semantics_kernels::ordinary::{self, Pair, Step, Tagged};
use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    ("closures_mean_the_same_in_kernels", |device| same(device, "closures", &[10])),
    ("iterators_mean_the_same_in_kernels", |device| same(device, "iterators", &[0, 1, 2, 3, 4, 5, 6, 7])),
    ("question_marks_mean_the_same_in_kernels", |device| same(device, "?", &[8, 9])),
    ("match_means_the_same_in_kernels", |device| same(device, "match", &[11])),
    ("slices_of_slices_mean_the_same_in_kernels", |device| same(device, "slices", &[12])),
    ("const_fns_mean_the_same_in_kernels", |device| same(device, "const fns", &[13])),
    ("trait_generics_mean_the_same_in_kernels", |device| same(device, "traits", &[14])),
    ("arrays_mean_the_same_in_kernels", |device| same(device, "arrays", &[15])),
    ("recursion_means_the_same_in_kernels", |device| same(device, "recursion", &[16])),
    ("enums_with_data_are_passed_and_stored", enums_with_data_are_passed_and_stored),
    ("core_atomics_work_in_kernels", core_atomics_work_in_kernels),
];

/// Compares the columns of `ordinary::everything` with the host's.
fn same(device: &Device, what: &str, columns: &[usize]) -> Outcome {
    let stream = device.new_stream()?;
    let x: Vec<u32> = (0..40).map(|i| i * 7 % 31).collect();
    let device_x = stream.upload(&x)?;
    let mut out = stream.zeros::<[u32; 18]>(100)?;
    ordinary::everything(&stream, Grid::cover(100), &device_x, &mut out)?;
    for (i, got) in stream.download(&out)?.into_iter().enumerate() {
        let expected = ordinary::all(&x, i);
        for &column in columns {
            expect(&format!("{what} {column} at {i}"), got[column], expected[column])?;
        }
    }
    // By hand.
    expect(
        "match",
        [0, 2, 4, 5, 7, 25, 26].map(ordinary::matches),
        [1000, 2002, 3004, 5005, 4000, 5025, 26],
    )?;
    expect("fibonacci", ordinary::fibonacci(11), 89)?;
    expect("powers", (ordinary::POWERS[7], ordinary::POWERS_OF_5[3]), (2187, 125))
}

fn enums_with_data_are_passed_and_stored(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let steps = [Step::Stay, Step::Add(9), Step::Scale { factor: 0.5, shift: -3 }].repeat(20);
    let pair = Pair { first: Tagged::Some(-40), rest: [Tagged::None, Tagged::Some(5)] };
    let last = Step::Scale { factor: 2.0, shift: 1 };
    let device_steps = stream.upload(&steps)?;
    let mut x = stream.upload(&vec![8.0_f64; 60])?;
    let mut next = stream.upload(&[Step::Stay; 60])?;
    ordinary::take_steps(&stream, Grid::cover(60), last, pair, &device_steps, &mut x, &mut next)?;
    let (x, next) = (stream.download(&x)?, stream.download(&next)?);
    for (i, &step) in steps.iter().enumerate() {
        let expected = match step {
            Step::Stay => (17.0, Step::Add(i as u32)),
            Step::Add(_) => (35.0, Step::Scale { factor: 9.0, shift: if i % 2 == 0 { -40 } else { -35 } }),
            Step::Scale { .. } => (3.0, Step::Stay),
        };
        expect(&format!("step {i}"), (x[i], next[i]), expected)?;
    }
    Ok(())
}

fn core_atomics_work_in_kernels(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let threads = 64 * 50_u64;
    let (mut totals, mut wide) = (stream.zeros::<u32>(4)?, stream.zeros::<u64>(3)?);
    ordinary::core_atomics(&stream, Grid::new(50, 64), totals.as_atomic(), wide.as_atomic())?;
    let total = |bin: u64| (0..threads).filter(|i| i % 4 == bin).sum::<u64>() as u32;
    expect("bins", stream.download(&totals)?, (0..4).map(total).collect())?;
    // Each bit is flipped by 50 threads.
    expect("words", stream.download(&wide)?, vec![(threads - 1) * 10, 0, 3 * threads])
}
