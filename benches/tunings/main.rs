//! Measures the numbers of `ferrogrid::algorithms`' table of tunings on the GPU, and writes the table with the best ones:
//! `tunings [FOLDER]` writes table.csv, to be copied to algorithms/src/tuning, and a record of all times.

mod calls;
#[path = "../timed.rs"]
mod timed;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ferrogrid::prelude::*;
use ferrogrid_algorithms::tuning::{Measured, Row, Table, Trial, Tuning, best};
use timed::time;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const ROUNDS: usize = 11;
/// What a round takes, at least.
const ROUND: Duration = Duration::from_millis(1);

/// The lengths at which the numbers for a tuning are compared, and these numbers.
fn range_of(tuning: Tuning) -> (Vec<usize>, Vec<usize>) {
    let powers = |logs: std::ops::RangeInclusive<u32>, step| logs.step_by(step).map(|log| 1 << log).collect();
    match tuning {
        Tuning::FilterRows => (powers(16..=24, 4), vec![4, 8, 16, 32, 64]),
        Tuning::HistogramBlocks => (powers(18..=26, 2), vec![132, 264, 396, 528, 792, 1056]),
        Tuning::HistogramSamples => (powers(16..=24, 2), vec![1, 2, 4, 8, 16]),
        Tuning::SortAtOnce => {
            let numbers = vec![256, 512, 1024, 1536, 2048, 2560, 3072];
            (numbers.clone(), numbers)
        }
        Tuning::SortCount => (powers(18..=26, 2), vec![264, 528, 1056, 2112]),
        Tuning::SortSmall => (powers(13..=22, 1), [vec![0], powers(13..=22, 1)].concat()),
        Tuning::TopKBlocks => (powers(18..=26, 2), vec![132, 264, 528, 1056, 2112]),
    }
}

/// What a number makes of a launch: numbers with which it is the same share one time.
fn launch_with(tuning: Tuning, length: usize, number: usize) -> usize {
    match tuning {
        Tuning::SortAtOnce | Tuning::SortSmall => usize::from(length <= number),
        _ => number,
    }
}

/// The median seconds of a call with each of these numbers, of rounds in turn.
fn medians(
    stream: &Stream,
    (tuning, sizes): (Tuning, [usize; 2]),
    numbers: &[usize],
    call: &mut calls::Call,
) -> Outcome<Vec<f64>> {
    time(stream, 1, &mut *call)?;
    let calls = (ROUND.as_secs_f64() / time(stream, 1, &mut *call)?).ceil().clamp(1.0, 500.0) as u32;
    let mut rounds = vec![Vec::new(); numbers.len()];
    for round in 0..ROUNDS {
        for place in 0..numbers.len() {
            // Each round begins with another number.
            let place = (place + round) % numbers.len();
            let _trial = Trial::new(tuning, sizes, numbers[place])?;
            rounds[place].push(time(stream, calls, &mut *call)?);
        }
    }
    let median = |mut seconds: Vec<f64>| {
        seconds.sort_by(f64::total_cmp);
        seconds[ROUNDS / 2]
    };
    Ok(rounds.into_iter().map(median).collect())
}

/// Times each number at each length.
fn measure(
    stream: &Stream,
    memory: &mut calls::Memory,
    of: (Tuning, [usize; 2]),
    lengths: &[usize],
    numbers: &[usize],
) -> Outcome<Vec<Measured>> {
    let mut measured: Vec<Measured> =
        numbers.iter().map(|&number| Measured { number, seconds: Vec::new() }).collect();
    for &length in lengths {
        let are_same = |a: usize, b: usize| launch_with(of.0, length, a) == launch_with(of.0, length, b);
        let mut tried: Vec<usize> = Vec::new();
        for &number in numbers {
            if !tried.iter().any(|it| are_same(*it, number)) {
                tried.push(number);
            }
        }
        let seconds = medians(stream, of, &tried, &mut memory.call(stream, of, length)?)?;
        for measured in &mut measured {
            let place = tried.iter().position(|it| are_same(*it, measured.number));
            measured.seconds.push(seconds[place.expect("one of the same launch was tried")]);
        }
    }
    Ok(measured)
}

/// What a program prints, or "unknown".
fn told_by(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok().filter(|it| it.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

fn main() -> Outcome<()> {
    let gpu = Device::cuda(0).inspect_err(|error| println!("no GPU to measure: {error}")).ok();
    let Some(device) = gpu else { return Ok(()) };
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let largest =
        std::env::var("FERROGRID_BENCH_LARGEST").map_or(Ok(usize::MAX), |largest| largest.parse())?;
    let architecture = device.compute_capability().ok_or("a GPU has a compute capability")?;
    let gpu = device.properties()?.name;
    let driver = told_by("nvidia-smi", &["--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]);
    let commit = std::env::var("FERROGRID_BENCH_COMMIT")
        .unwrap_or_else(|_| told_by("git", &["rev-parse", "--short", "HEAD"]));
    let date = told_by("date", &["+%F"]);
    let model = gpu.split_whitespace().nth(1).unwrap_or("gpu").to_lowercase();
    let source = format!("{date}-{model}-tunings");

    let start = Instant::now();
    let stream = device.new_stream()?;
    let mut memory = calls::Memory::new(&stream, largest)?;
    let (mut table, mut rows) = (Table::of_this_crate(), Vec::new());
    let mut record =
        "operation,element_size,value_size,elements,number,seconds,taken,gpu,driver,commit,date\n".to_owned();
    for tuning in Tuning::ALL {
        let (mut lengths, numbers) = range_of(tuning);
        lengths.retain(|length| *length <= largest);
        for sizes in tuning.sizes().filter(|sizes| calls::matters(tuning, *sizes)) {
            let today = table.number(architecture, tuning, sizes);
            let numbers =
                if numbers.contains(&today) { numbers.clone() } else { [&numbers[..], &[today]].concat() };
            let measured = measure(&stream, &mut memory, (tuning, sizes), &lengths, &numbers)?;
            let (number, gain) = best(today, &measured);
            let ([element, value], name) = (sizes, tuning.name());
            println!("{name:18} {element} {value}  {today:>7} -> {number:<7} {gain:.3}");
            for Measured { number: tried, seconds } in measured {
                for (length, seconds) in lengths.iter().zip(seconds) {
                    let taken = tried == number;
                    record += &format!(
                        "{name},{element},{value},{length},{tried},{seconds:.4e},{taken},{gpu},{driver},{commit},{date}\n"
                    );
                }
            }
            rows.push(Row { architecture, tuning, sizes, number, source: source.clone() });
        }
    }
    println!("{} s", start.elapsed().as_secs());
    table.set(rows);
    if let Some(folder) = folder {
        let folder = Path::new(&folder);
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("table.csv"), table.to_string())?;
        std::fs::write(folder.join(format!("{source}.csv")), record)?;
    }
    Ok(())
}
