//! Tuned numbers: whichever they are, results have the same bits.

use ferrogrid::DeviceView;
use ferrogrid::algorithms::tuning::{Trial, Tuning};
use ferrogrid::algorithms::{self, Border, RadixSort};
use ferrogrid::prelude::*;

use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] =
    &[("results_do_not_depend_on_tuned_numbers", results_do_not_depend_on_tuned_numbers)];

/// What a number for `tuning` and values of so many bytes launches, as bits.
fn result(
    stream: &Stream,
    (tuning, value): (Tuning, usize),
    x: DeviceView<u32>,
) -> ferrogrid::Result<Vec<u32>> {
    let n = x.len();
    let (mut y, mut values) = (stream.zeros::<u32>(n)?, stream.zeros::<u32>(n)?);
    let sort = RadixSort::ascending().of_bits(4..16);
    match tuning {
        Tuning::FilterRows => {
            let x = x.cast::<f32>()?;
            let weights = x.slice(..9)?.into_2d(3, 3)?;
            let y = y.view_mut().cast::<f32>()?;
            algorithms::correlate(stream, x.into_2d(50, n / 50)?, weights, Border::Wrap, y)?;
        }
        Tuning::HistogramBlocks | Tuning::HistogramSamples => {
            algorithms::histogram_even(stream, x, .., y.slice_mut(..2000)?)?;
        }
        Tuning::TopKBlocks => {
            algorithms::top_k(stream, x, y.slice_mut(..70)?, values.slice_mut(..70)?)?;
        }
        _ if value > 0 => sort.pairs(stream, x, x, &mut y, &mut values)?,
        _ => sort.keys(stream, x, &mut y)?,
    }
    Ok([stream.download(&y)?, stream.download(&values)?].concat())
}

fn results_do_not_depend_on_tuned_numbers(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::with_seed(470);
    // Finite floats.
    let x: Vec<u32> = (0..4100).map(|_| random.f32().to_bits()).collect();
    let x = stream.upload(&x)?;
    for tuning in Tuning::ALL {
        // So few that one block sorts them, or more than a tile of each kernel.
        let x = x.slice(..if tuning == Tuning::SortAtOnce { 700 } else { 4100 })?;
        for sizes in tuning.sizes().filter(|sizes| matches!(sizes, [4, 0 | 4])) {
            let expected = result(&stream, (tuning, sizes[1]), x)?;
            for number in [*tuning.limits().start(), *tuning.limits().end()] {
                let _trial = Trial::new(tuning, sizes, number)?;
                let what = format!("{} of {sizes:?} with {number}", tuning.name());
                expect(&what, result(&stream, (tuning, sizes[1]), x)? == expected, true)?;
            }
        }
    }
    Ok(())
}
