//! `#[scan]` functions.

use ferrogrid::LaunchError;
use ferrogrid::prelude::*;

use super::kernels::templates::{self, Affine};
use crate::{Case, Outcome, expect, expect_error};

pub(crate) const CASES: &[Case] = &[
    ("scans_of_functions_have_any_length_and_alignment", scans_of_functions_have_any_length_and_alignment),
    ("exclusive_scans_have_what_is_before", exclusive_scans_have_what_is_before),
    ("scans_of_functions_keep_the_order_of_elements", scans_of_functions_keep_the_order_of_elements),
    ("scans_of_functions_are_generic", scans_of_functions_are_generic),
    ("scans_of_functions_take_equal_lengths", scans_of_functions_take_equal_lengths),
    ("scans_of_functions_are_recorded_in_graphs", scans_of_functions_are_recorded_in_graphs),
];

/// Lengths around a group, a row of a warp, its run and a block, for elements of up to 4 bytes and larger ones; and many blocks.
const LENGTHS: &[usize] = &[0, 1, 3, 63, 65, 511, 513, 1024, 1025, 4095, 4096, 4097, 8191, 8193, 100_003];

fn scans_of_functions_have_any_length_and_alignment(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for &n in LENGTHS {
        // Both inputs and the output begin at a multiple of 16 bytes, one of them, or none.
        for (from_x, from_y, from_out) in [(0, 0, 0), (1, 0, 0), (4, 16, 1), (3, 5, 0)] {
            let x: Vec<i32> = (0..n + from_x).map(|i| (i as i32 * 7919) % 1000 - 500).collect();
            let y: Vec<u8> = (0..n + from_y).map(|i| (i % 251) as u8).collect();
            let mut out = stream.fill(9_i64, from_out + n + 1)?;
            templates::balances(
                &stream,
                -7,
                stream.upload(&x)?.slice(from_x..)?,
                stream.upload(&y)?.slice(from_y..)?,
                out.slice_mut(from_out..from_out + n)?,
            )?;
            let mut expected = vec![9; from_out + n + 1];
            let mut total = -7;
            for i in 0..n {
                total += i64::from(x[from_x + i]) * i64::from(y[from_y + i]);
                expected[from_out + i] = total;
            }
            expect(&format!("{n}, {from_x}, {from_y}, {from_out}"), stream.download(&out)?, expected)?;
        }
    }
    Ok(())
}

fn exclusive_scans_have_what_is_before(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let found = stream.upload(b"aeiou")?;
    for &n in LENGTHS {
        for first in [0, 3] {
            let x: Vec<u8> = (0..n + first).map(|i| b'a' + (i * i % 26) as u8).collect();
            let mut out = stream.fill(9_u32, n + 1)?;
            templates::places(&stream, &found, stream.upload(&x)?.slice(first..)?, out.slice_mut(..n)?)?;
            let mut count = 0;
            let mut expected: Vec<u32> = Vec::new();
            for x in &x[first..] {
                expected.push(count);
                count += u32::from(b"aeiou".contains(x));
            }
            expected.push(9);
            expect(&format!("{n}, {first}"), stream.download(&out)?, expected)?;
        }
    }
    Ok(())
}

fn scans_of_functions_keep_the_order_of_elements(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for &n in LENGTHS {
        let x: Vec<Affine> = (0..n as u64).map(|i| Affine { factor: 2 * i + 3, step: i % 11 }).collect();
        let mut out = stream.zeros(n)?;
        templates::chained(&stream, &stream.upload(&x)?, &mut out)?;
        let chain = x.iter().zip(0..).scan(0_u64, |value, (x, i)| {
            *value = x.factor.wrapping_mul(*value).wrapping_add(x.step + i);
            Some(*value)
        });
        expect(&n.to_string(), stream.download(&out)?, chain.collect())?;
    }
    Ok(())
}

fn scans_of_functions_are_generic(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (mut out, mut wide) = (stream.zeros(5)?, stream.zeros(4)?);
    templates::greatest::<u8>(&stream, &stream.upload(&[2, 7, 3, 255, 0])?, &mut out)?;
    expect("u8", stream.download(&out)?, vec![2, 7, 7, 255, 255])?;
    let x = stream.upload(&[-1.5, 0.25, f64::NAN, f64::INFINITY])?;
    templates::greatest(&stream, &x, &mut wide)?;
    expect("f64", stream.download(&wide)?, vec![0.0, 0.25, 0.25, f64::INFINITY])
}

fn scans_of_functions_take_equal_lengths(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (x, y) = (stream.zeros(5)?, stream.zeros(5)?);
    for (lengths, named) in [((5, 4), "`out`"), ((4, 5), "`y`")] {
        let mut out = stream.zeros(lengths.1)?;
        let result = templates::balances(&stream, 0, &x, y.slice(..lengths.0)?, &mut out);
        let text = expect_error(named, result, |error| {
            matches!(error, Error::Launch(LaunchError::ShapesDiffer { .. }))
        })?;
        expect(&text, text.contains("`x`") && text.contains(named), true)?;
    }
    Ok(())
}

fn scans_of_functions_are_recorded_in_graphs(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let (found, x, out) = (stream.fill(1_u8, 1)?, stream.fill(1_u8, 9000)?, stream.zeros::<u32>(9000)?);
    let (graph, (found, out)) = stream.capture(|capture| {
        let (found, x, mut out) = (capture.keep(found)?, capture.keep(x)?, capture.keep(out)?);
        templates::places(capture, &found, &x, &mut out)?;
        Ok((found.key(), out.key()))
    })?;
    let mut graph = graph.instantiate()?;
    for value in [1_u8, 0, 1] {
        stream.fill_into(value, graph.view_mut(found)?)?;
        graph.launch(&stream)?;
        let expected = (0..9000).map(|i| i * u32::from(value)).collect();
        expect(&value.to_string(), stream.download(graph.view(out)?)?, expected)?;
    }
    Ok(())
}
