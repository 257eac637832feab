//! Random numbers are equal on every device: words and uniform numbers bit for bit, normal ones up to the
//! rounding of logarithm, sine and cosine.

use ferrogrid::device::random::Philox4x32;
use ferrogrid::prelude::*;

use crate::number::random_kernels::philox;
use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    (
        "the_generator_gives_the_known_answers_of_random123",
        the_generator_gives_the_known_answers_of_random123,
    ),
    ("random_words_and_uniform_numbers_are_the_hosts", random_words_and_uniform_numbers_are_the_hosts),
    ("normal_numbers_are_the_hosts_but_for_rounding", normal_numbers_are_the_hosts_but_for_rounding),
];

/// Seeds and offsets: usual ones, and those at which a half of the counter overflows.
const STARTS: [(u64, u64); 4] = [(0, 0), (2024, 7), (u64::MAX, u64::MAX), (1 << 63 | 5, u32::MAX as u64)];

const THREADS: usize = 1000;

fn streams(seed: u64, offset: u64) -> impl Iterator<Item = Philox4x32> {
    (0..THREADS as u64).map(move |thread| Philox4x32::new(seed, thread, offset))
}

/// `philox4x32 10` of the file `kat_vectors` that Random123 is published with: counter and key 0.
fn the_generator_gives_the_known_answers_of_random123(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut out = stream.zeros::<[u32; 8]>(1)?;
    philox::words(&stream, Grid::cover(1), 0, 0, &mut out)?;
    let expected = [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
    expect("words", &stream.download(&out)?[0][..4], &expected[..])
}

fn random_words_and_uniform_numbers_are_the_hosts(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (seed, offset) in STARTS {
        let mut words = stream.zeros::<[u32; 8]>(THREADS)?;
        philox::words(&stream, Grid::cover(THREADS), seed, offset, &mut words)?;
        let expected: Vec<[[u32; 4]; 2]> =
            streams(seed, offset).map(|mut random| [random.next_u32x4(), random.next_u32x4()]).collect();
        expect("words", stream.download(&words)?.as_flattened(), expected.as_flattened().as_flattened())?;

        let (mut single, mut double) = (stream.zeros(THREADS)?, stream.zeros(THREADS)?);
        philox::uniform(&stream, Grid::cover(THREADS), seed, offset, &mut single, &mut double)?;
        let expected: (Vec<_>, Vec<_>) = streams(seed, offset)
            .map(|mut random| (random.next_uniform_f32x4(), random.next_uniform_f64x2()))
            .unzip();
        expect("uniform numbers", (stream.download(&single)?, stream.download(&double)?), expected)?;
    }
    Ok(())
}

/// The radius is at most 6.7 (8.7), and wrong by few units in its last place, as are sine and cosine.
fn normal_numbers_are_the_hosts_but_for_rounding(device: &Device) -> Outcome {
    const SINGLE: f64 = 8.0 * f32::EPSILON as f64 * 6.7;
    const DOUBLE: f64 = 8.0 * f64::EPSILON * 8.7;
    let stream = device.new_stream()?;
    for (seed, offset) in STARTS {
        let (mut single, mut double) = (stream.zeros(THREADS)?, stream.zeros(THREADS)?);
        philox::normal(&stream, Grid::cover(THREADS), seed, offset, &mut single, &mut double)?;
        let (single, double): (Vec<[f32; 4]>, Vec<[f64; 2]>) =
            (stream.download(&single)?, stream.download(&double)?);
        for ((mut random, single), double) in streams(seed, offset).zip(single).zip(double) {
            let pairs = random.next_normal_f32x4().into_iter().zip(single);
            let wide = random.next_normal_f64x2().into_iter().zip(double);
            let near = pairs.filter(|(a, b)| f64::from(a - b).abs() <= SINGLE).count()
                + wide.filter(|(a, b)| (a - b).abs() <= DOUBLE).count();
            expect("numbers that are the host's", near, 6)?;
        }
    }
    Ok(())
}
