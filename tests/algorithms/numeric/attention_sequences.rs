//! Attention of several sequences at once, and its gradients, beside those of each sequence alone.

use ferrogrid::DeviceAttribute;
use ferrogrid::algorithms::{self, Attention};
use ferrogrid::device::half::f16;
use ferrogrid::prelude::*;

use super::attention_gradients::{Inputs, both_passes};
use super::attention_tensors::{Found, Layout, Shape};
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("sequences_attend_to_themselves_alone", sequences_attend_to_themselves_alone),
    ("offsets_of_sequences_that_do_not_fit_are_refused", offsets_of_sequences_that_do_not_fit_are_refused),
];

/// Heads of queries and of keys.
const HEADS: [usize; 2] = [2, 1];
/// Rows of queries and of keys in each head, and where sequences begin: the first one has no queries, and the third one no keys. Rows at the
/// ends belong to none.
const ROWS: [usize; 2] = [150, 170];
const OFFSETS: [[u32; 5]; 2] = [[2, 2, 40, 105, 148], [0, 5, 38, 38, 165]];

/// y, dq, dk, dv, and the bits of logarithms of sums.
type Results = ([Vec<f16>; 4], Vec<u32>);

fn computed(
    stream: &Stream,
    attention: Attention,
    shape: Shape,
    layout: Layout,
    inputs: &Inputs<f16>,
) -> Found<Results> {
    let (results, sums) = both_passes(stream, attention, shape, layout, inputs)?;
    Ok((results, sums.into_iter().map(f32::to_bits).collect()))
}

/// Where rows `rows` of each head are among those of all heads, which have `of_head` rows of `size` elements.
fn places(heads: usize, of_head: usize, rows: [u32; 2], size: usize) -> Vec<usize> {
    let rows = rows.map(|row| row as usize);
    let of_one = |head: usize| (head * of_head + rows[0]) * size..(head * of_head + rows[1]) * size;
    (0..heads).flat_map(of_one).collect()
}

fn sequences_attend_to_themselves_alone(device: &Device) -> Outcome {
    let (stream, mut random) = (device.new_stream()?, fastrand::Rng::with_seed(407));
    let memory = device.attribute(DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    let offsets = OFFSETS.map(|offsets| stream.upload(&offsets));
    let [of_queries, of_keys] = offsets;
    let (of_queries, of_keys) = (of_queries?, of_keys?);
    for (size, needed) in [(40, 0), (104, 87 << 10), (136, 132 << 10)] {
        // Without optimisations a CPU takes seconds for each.
        if memory < needed || size > 40 && !device.is_cuda() {
            continue;
        }
        let mut numbers =
            |len: usize| -> Vec<f16> { (0..len).map(|_| f16::from_f32(random.f32() * 2.0 - 1.0)).collect() };
        let [queries, keys] = [0, 1].map(|i| HEADS[i] * ROWS[i] * size);
        let inputs = [numbers(queries), numbers(keys), numbers(keys), numbers(queries)];
        for is_causal in [false, true] {
            let attention = Attention::new(HEADS[0], size).key_heads(HEADS[1]);
            let attention = if is_causal { attention.causal() } else { attention };
            let all = attention.sequences(of_queries.view(), of_keys.view());
            let shape = Shape { heads: HEADS, rows: ROWS, size };
            let found = computed(&stream, all, shape, Layout::Below, &inputs)?;
            // FlashAttention's layout of sequences.
            let beside = computed(&stream, all, shape, Layout::Beside { batches: 1, apart: 8 }, &inputs)?;

            let mut expected = (
                [0, 0, 1, 1].map(|i| vec![f16::NAN; [queries, keys][i]]),
                vec![f32::NAN.to_bits(); HEADS[0] * ROWS[0]],
            );
            for sequence in 0..4 {
                let rows = OFFSETS.map(|offsets| [offsets[sequence], offsets[sequence + 1]]);
                let of = [0, 1].map(|i| places(HEADS[i], ROWS[i], rows[i], size));
                let mut which = [0, 1, 1, 0].into_iter();
                let own = inputs.each_ref().map(|input| {
                    let places = &of[which.next().unwrap_or_default()];
                    places.iter().map(|place| input[*place]).collect::<Vec<_>>()
                });
                let rows_of_one = rows.map(|rows| (rows[1] - rows[0]) as usize);
                let shape = Shape { heads: HEADS, rows: rows_of_one, size };
                let (results, sums) = computed(&stream, attention, shape, Layout::Below, &own)?;
                for (i, (all, own)) in expected.0.iter_mut().zip(results).enumerate() {
                    of[i / 2].iter().zip(own).for_each(|(place, number)| all[*place] = number);
                }
                let of_sums = places(HEADS[0], ROWS[0], rows[0], 1);
                of_sums.into_iter().zip(sums).for_each(|(place, sum)| expected.1[place] = sum);
            }
            let bits =
                |results: &Results| results.0.each_ref().map(|it| it.iter().map(|it| it.to_bits()).collect());
            let [found_bits, beside_bits, expected_bits]: [[Vec<u16>; 4]; 3] =
                [bits(&found), bits(&beside), bits(&expected)];
            expect(
                &format!("beside each other, heads of {size}, causal {is_causal}"),
                beside_bits == expected_bits,
                true,
            )?;
            expect("logarithms of sums of heads beside each other", &beside.1, &expected.1)?;
            for (name, (found, expected)) in
                ["y", "dq", "dk", "dv"].into_iter().zip(found_bits.into_iter().zip(expected_bits))
            {
                expect(&format!("{name}, heads of {size}, causal {is_causal}"), found, expected)?;
            }
            expect("logarithms of sums", found.1, expected.1)?;
        }
    }
    Ok(())
}

fn offsets_of_sequences_that_do_not_fit_are_refused(device: &Device) -> Outcome {
    let attend = |of_queries: &[u32], of_keys: &[u32]| {
        let stream = device.new_stream()?;
        let (x, mut y) = (stream.zeros::<f16>(400 * 8)?, stream.fill(f16::ONE, 400 * 8)?);
        let (of_queries, of_keys) = (stream.upload(of_queries)?, stream.upload(of_keys)?);
        let attention = Attention::new(1, 8).sequences(of_queries.view(), of_keys.view());
        let x = x.view_2d(8, 400)?;
        algorithms::attention(&stream, x, x, x, y.view_2d_mut(8, 400)?, attention)?;
        stream.download(&y)
    };
    let is_length =
        |error: &Error| matches!(error, Error::LengthMismatch { source_length: 3, target_length: 2, .. });
    let words = ["offsets of queries and keys", "3", "2"];
    names(&expect_error("numbers of sequences", attend(&[0, 5, 9], &[0, 9]), is_length)?, &words)?;
    let is_argument = |error: &Error| matches!(error, Error::Argument { function: "attention", .. });
    names(
        &expect_error("no offsets", attend(&[], &[]), is_argument)?,
        &["the offsets of sequences", "none"],
    )?;
    expect("no sequences", attend(&[7], &[0])?, vec![f16::ONE; 400 * 8])?;
    let is_panic = |error: &Error| matches!(error, Error::KernelPanic { .. });
    // No block of 128 queries has the second one of three sequences, from 300 to 100.
    for offsets in [&[0, 401][..], &[50, 40], &[0, 300, 100, 400]] {
        let whole = &[0, 400, 400, 400][..offsets.len()];
        for [of_queries, of_keys] in [[offsets, whole], [whole, offsets]] {
            let refused = attend(of_queries, of_keys);
            names(&expect_error("offsets", refused, is_panic)?, &["ascend up to the rows of a head"])?;
        }
    }
    Ok(())
}
