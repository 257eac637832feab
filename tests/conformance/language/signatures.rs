//! Parameters of all kinds: scalars, structs, ranks, slices, pointers and generics.

use ferrogrid::prelude::*;

use crate::language::kernels::parameters::{Colour, Marker, Metres, Mixed, Route, Span, Stop};
use crate::language::kernels::{elementwise, generic, language, parameters, ranks};
use crate::{Case, Outcome, expect};

pub(crate) const CASES: &[Case] = &[
    ("saxpy_agrees_with_double_precision", saxpy_agrees_with_double_precision),
    ("every_scalar_arrives_unchanged", every_scalar_arrives_unchanged),
    ("structs_arrive_unchanged", structs_arrive_unchanged),
    ("enums_arrive_unchanged", enums_arrive_unchanged),
    ("whatever_derives_device_copy_arrives_unchanged", whatever_derives_device_copy_arrives_unchanged),
    ("tuples_arrive_unchanged", tuples_arrive_unchanged),
    ("barriers_may_depend_on_members_of_tuples", barriers_may_depend_on_members_of_tuples),
    ("parameters_may_be_called_stream_and_grid", parameters_may_be_called_stream_and_grid),
    ("threads_of_rank_1_know_their_place", threads_of_rank_1_know_their_place),
    ("threads_of_rank_2_know_their_place", threads_of_rank_2_know_their_place),
    ("threads_of_rank_3_know_their_place", threads_of_rank_3_know_their_place),
    ("unsafe_kernels_take_pointers", unsafe_kernels_take_pointers),
    ("kernels_are_ordinary_rust", kernels_are_ordinary_rust),
    ("generic_kernels_run_for_each_listed_instance", generic_kernels_run_for_each_listed_instance),
    ("kernels_call_functions_of_other_modules", kernels_call_functions_of_other_modules),
];

fn saxpy_agrees_with_double_precision(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::new();
    for n in [1, 31, 32, 33, 1023, 65_537] {
        let a = random.f32() * 4.0 - 2.0;
        let x: Vec<f32> = (0..n).map(|_| random.f32() - 0.5).collect();
        let y: Vec<f32> = (0..n).map(|_| random.f32() - 0.5).collect();
        let device_x = stream.upload(&x)?;
        let mut device_y = stream.upload(&y)?;
        elementwise::saxpy(&stream, Grid::cover(n), a, &device_x, &mut device_y)?;
        for (i, got) in stream.download(&device_y)?.into_iter().enumerate() {
            let expected = f64::from(a) * f64::from(x[i]) + f64::from(y[i]);
            if (expected - f64::from(got)).abs() > f64::from(f32::EPSILON) {
                return Err(format!("element {i} of {n}: expected {expected}, found {got}").into());
            }
        }
    }
    Ok(())
}

fn every_scalar_arrives_unchanged(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut output = stream.upload(&[u64::MAX; 15])?;
    let big = 0x0123_4567_89ab_cdef_1122_3344_5566_7788_u128;
    parameters::scalars(
        &stream,
        Grid::cover(15),
        200,
        -100,
        60_000,
        -30_000,
        4_000_000_000,
        -2_000_000_000,
        u64::MAX - 1,
        i64::MIN + 1,
        -1.5,
        core::f64::consts::PI,
        true,
        'ß',
        usize::MAX - 2,
        big,
        &mut output,
    )?;
    let expected = [
        200,
        -100_i8 as u64,
        60_000,
        -30_000_i16 as u64,
        4_000_000_000,
        -2_000_000_000_i32 as u64,
        u64::MAX - 1,
        (i64::MIN + 1) as u64,
        u64::from((-1.5_f32).to_bits()),
        core::f64::consts::PI.to_bits(),
        1,
        'ß' as u64,
        u64::MAX - 2,
        big as u64,
        (big >> 64) as u64,
    ];
    expect("scalars", stream.download(&output)?, expected.to_vec())
}

fn structs_arrive_unchanged(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::new();
    let mut mixed = || Mixed {
        small: random.u8(..),
        large: f64::from(random.i32(..)),
        triple: [random.i16(..), random.i16(..), random.i16(..)],
        flag: random.bool(),
    };
    let by_value = mixed();
    let input: Vec<Mixed> = (0..100).map(|_| mixed()).collect();
    let device_input = stream.upload(&input)?;
    let mut output = stream.upload(&vec![by_value; 100])?;
    parameters::structs(&stream, Grid::cover(100), by_value, &device_input, &mut output)?;
    let expected = input
        .iter()
        .map(|element| Mixed {
            small: element.small ^ by_value.small,
            large: element.large + by_value.large,
            triple: core::array::from_fn(|k| element.triple[k].wrapping_sub(by_value.triple[2 - k])),
            flag: element.flag != by_value.flag,
        })
        .collect();
    expect("structs", stream.download(&output)?, expected)
}

fn enums_arrive_unchanged(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (colour, expected) in [(Colour::Red, 101), (Colour::Blue, 707)] {
        let mut output = stream.upload(&[0_u32])?;
        parameters::enums(&stream, Grid::cover(1), colour, &mut output)?;
        expect("enum", stream.download(&output)?, vec![expected])?;
    }
    Ok(())
}

fn whatever_derives_device_copy_arrives_unchanged(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut random = fastrand::Rng::new();
    let mut leg = || Span(random.u8(..), [random.u8(..), random.u8(..)]);
    let by = leg();
    let routes: Vec<Route> = (0..90_u8)
        .map(|i| Route {
            marker: Marker,
            legs: [leg(), leg(), leg()],
            length: Metres(f32::from(i) / 3.0),
            ends: Span(Metres(1.5), [Metres(-f32::from(i))]),
            last: match i % 3 {
                0 => Stop::None,
                1 => Stop::At(Span(u32::from(i), [u32::MAX - u32::from(i)])),
                _ => Stop::Between { from: i, to: f64::from(i) / 7.0 },
            },
        })
        .collect();
    let input = stream.upload(&routes)?;
    let mut output = stream.upload(&[routes[0]; 90])?;
    parameters::routes(&stream, Grid::cover(90), by, Marker, &input, &mut output)?;
    let expected = routes.into_iter().map(|route| parameters::turned(by, route)).collect();
    expect("routes", stream.download(&output)?, expected)
}

fn tuples_arrive_unchanged(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mixed = Mixed { small: 3, large: -0.25, triple: [1, 2, -300], flag: true };
    let mut output = stream.zeros::<[f64; 8]>(1)?;
    let byte = (-7, (200_u8, mixed, ()), [5, 6, 60_000], (true,));
    parameters::tuples(&stream, Grid::cover(1), (1.5, u32::MAX), byte, &mut output)?;
    let expected = [1.5, f64::from(u32::MAX), -8.0, 200.0, -0.25, -300.0, 60_005.0, 1.0];
    expect("with a byte", stream.download(&output)?, vec![expected])?;
    let float = (127, (core::f64::consts::E, mixed, ()), [5, 6, 7], (false,));
    parameters::tuples(&stream, Grid::cover(1), (-2.5, 9), float, &mut output)?;
    let expected = [-2.5, 9.0, 126.0, core::f64::consts::E, -0.25, -300.0, 12.0, 0.0];
    expect("with a float", stream.download(&output)?, vec![expected])
}

fn barriers_may_depend_on_members_of_tuples(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (rounds, passed) in [((5, (true, 2)), 4), ((5, (false, 2)), 5), ((0, (true, 0)), 0)] {
        let mut output = stream.zeros::<u32>(32)?;
        parameters::tuple_of_rounds(&stream, Grid::cover(32), rounds, &mut output)?;
        expect("rounds", stream.download(&output)?, (0..32).map(|i| (i + passed) % 32).collect())?;
    }
    Ok(())
}

fn parameters_may_be_called_stream_and_grid(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut output = stream.upload(&[0_u32])?;
    parameters::taken_names(&stream, Grid::cover(1), 9, 4, &mut output)?;
    expect("difference", stream.download(&output)?, vec![5])
}

fn threads_of_rank_1_know_their_place(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut output = stream.upload(&[[u32::MAX; 4]; 21])?;
    ranks::coordinates_1d(&stream, Grid::new(3, 7), &mut output)?;
    let expected = (0..21).map(|i| [i / 7, i % 7, 7, 3]).collect();
    expect("coordinates", stream.download(&output)?, expected)
}

fn threads_of_rank_2_know_their_place(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    for (width, height) in [(1, 1), (33, 5), (5, 33), (64, 64)] {
        let mut output = stream.upload(&vec![[u32::MAX; 4]; width * height + 1])?;
        let grid = Grid::cover([width, height]);
        ranks::coordinates_2d(&stream, grid, output.view_2d_mut(width, height)?)?;
        let mut expected: Vec<_> = (0..width * height)
            .map(|i| [i % width, i / width, width, height].map(|value| value as u32))
            .collect();
        expected.push([u32::MAX; 4]);
        expect("coordinates", stream.download(&output)?, expected)?;
    }
    Ok(())
}

fn threads_of_rank_3_know_their_place(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let shape = [5_usize, 9, 17];
    let count = shape.iter().product::<usize>();
    let mut output = stream.upload(&vec![0_u64; count])?;
    let pointer = output.as_device_ptr_mut();
    // SAFETY: `output` has one element for each place and is not used before the stream is read.
    unsafe {
        ranks::coordinates_3d(&stream, Grid::cover(shape), shape.map(|extent| extent as u32), pointer)?
    };
    expect("places", stream.download(&output)?, (1..=count as u64).collect())
}

fn unsafe_kernels_take_pointers(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let input: Vec<u16> = (0..1000).collect();
    let device_input = stream.upload(&input)?;
    let mut output = stream.upload(&vec![0_u16; 1000])?;
    let (from, to) = (device_input.as_device_ptr(), output.as_device_ptr_mut());
    // SAFETY: both have 1000 elements, are different buffers, and live until the download.
    unsafe { ranks::reverse(&stream, Grid::cover(1000), 1000, from, to)? };
    expect("reversed", stream.download(&output)?, input.into_iter().rev().collect())
}

fn kernels_are_ordinary_rust(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let input: Vec<u32> = (2..300).collect();
    let sum = input
        .iter()
        .zip(1_u32..)
        .fold(0_u32, |sum, (value, weight)| sum.wrapping_add(value.wrapping_mul(weight)));
    let divisor = |value: u32| (2..value).find(|divisor| value.is_multiple_of(*divisor)).unwrap_or(0);
    let expected: Vec<u32> =
        input.iter().map(|&value| (9 * divisor(value)).wrapping_add(sum).wrapping_add(1000)).collect();
    let device_input = stream.upload(&input)?;
    let mut output = stream.upload(&vec![0_u32; input.len()])?;
    language::ordinary_rust(&stream, Grid::cover(input.len()), &device_input, &mut output)?;
    expect("values", stream.download(&output)?, expected.clone())?;
    let mut output = stream.upload(&vec![0_u32; input.len()])?;
    language::calls_a_kernel(&stream, Grid::cover(input.len()), &device_input, &mut output)?;
    expect("values through another kernel", stream.download(&output)?, expected)
}

fn generic_kernels_run_for_each_listed_instance(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let x = [0_u32, 1, 2, 3, 10];
    let horner = |x: u32| 5 + x * (7 + x * (11 + x * 13));
    let integers = stream.upload(&x)?;
    let mut result = stream.zeros::<u32>(5)?;
    generic::polynomial(&stream, Grid::cover(5), [5, 7, 11, 13], &integers, &mut result)?;
    expect("integers", stream.download(&result)?, x.map(horner).to_vec())?;
    generic::polynomial::<u32, 1>(&stream, Grid::cover(5), [9], &integers, &mut result)?;
    expect("a constant", stream.download(&result)?, vec![9; 5])?;
    generic::square_plus_one(&stream, Grid::cover(5), &integers, &mut result)?;
    expect("through another kernel", stream.download(&result)?, x.map(|x| x * x + 1).to_vec())?;

    let singles = stream.upload(&x.map(|x| x as f32))?;
    let mut result = stream.zeros::<f32>(5)?;
    generic::polynomial(&stream, Grid::cover(5), [5.0, 7.0, 11.0, 13.0], &singles, &mut result)?;
    expect("f32", stream.download(&result)?, x.map(|x| horner(x) as f32).to_vec())?;

    let doubles = stream.upload(&x.map(f64::from))?;
    let mut result = stream.zeros::<f64>(5)?;
    generic::polynomial(&stream, Grid::cover(5), [5.0, 7.0, 11.0, 13.0], &doubles, &mut result)?;
    expect("f64", stream.download(&result)?, x.map(|x| f64::from(horner(x))).to_vec())?;
    let name = generic::polynomial::kernel::<f64, 4>().name();
    expect("the instance's name", name.ends_with("generic::polynomial::<f64, 4>"), true)
}

fn kernels_call_functions_of_other_modules(device: &Device) -> Outcome {
    let stream = device.new_stream()?;
    let mut output = stream.upload(&[0_u32; 100])?;
    language::calls_another_module(&stream, Grid::cover(100), &mut output)?;
    expect("squares", stream.download(&output)?, (0..100).map(|i| i * i).collect())
}
