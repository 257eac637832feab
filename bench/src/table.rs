//! The results of a device as a table of text.

use std::fmt::Write as _;

use crate::report::{CaseReport, DeviceReport, RunReport};

/// The table of a device, or the names of the cases if they were only tried.
pub(crate) fn of_device(device: &DeviceReport, quick: bool) -> String {
    if quick {
        let names: Vec<&str> = device.cases.iter().map(|case| case.name.as_str()).collect();
        return format!("device {}: tried once (measure with --bench): {}", device.name, names.join(", "));
    }
    let mut text = format!(
        "device {}\nmeasured roofs: {}B/s (copy), {}FLOP/s (f32 multiply-add)\n\n",
        device.name,
        with_prefix(device.roof.bytes_per_second),
        with_prefix(device.roof.flops_per_second)
    );
    let width = device.cases.iter().map(|case| case.name.len()).max().unwrap_or(0).max("case".len());
    let _ = writeln!(
        text,
        "{:<width$}  {:>7}  {:>9}  {:>9}  {:>9}  {:>9}  {:>7}",
        "case", "threads", "median", "min", "B/s", "FLOP/s", "of roof"
    );
    for case in &device.cases {
        for run in &case.runs {
            text += &row(device, case, run, width);
        }
    }
    text
}

fn row(device: &DeviceReport, case: &CaseReport, run: &RunReport, width: usize) -> String {
    let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), with_prefix);
    // Only a sweep has a fastest run.
    let is_best = case.runs.len() > 1 && case.fastest().is_some_and(|fastest| fastest.threads == run.threads);
    format!(
        "{:<width$}  {:>7}  {:>8}s  {:>8}s  {:>9}  {:>9}  {:>7}{}\n",
        case.name,
        run.threads.map_or_else(|| "usual".to_owned(), |threads| threads.to_string()),
        with_prefix(run.seconds()),
        with_prefix(run.sample.min),
        rate(case.bandwidth(run)),
        rate(case.flop_rate(run)),
        device.of_roof(case, run).map_or_else(|| "-".to_owned(), |part| format!("{:.0} %", 100.0 * part)),
        if is_best { "  fastest" } else { "" }
    )
}

/// Three or four digits and the prefix of the unit: `3.47 T`, `12.5 u`.
pub(crate) fn with_prefix(value: f64) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u")];
    let (unit, prefix) = prefixes.into_iter().find(|(unit, _)| value >= *unit).unwrap_or((1e-9, "n"));
    let scaled = value / unit;
    let digits = if scaled >= 100.0 {
        0
    } else if scaled >= 10.0 {
        1
    } else {
        2
    };
    format!("{scaled:.digits$} {prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::device;

    #[test]
    fn numbers_have_three_digits_and_a_prefix() {
        for (value, text) in
            [(3.4712e12, "3.47 T"), (999.0, "999 "), (0.0125, "12.5 m"), (4.2e-7, "420 n"), (1e-3, "1.00 m")]
        {
            assert_eq!(with_prefix(value), text);
        }
    }

    #[test]
    fn every_run_has_a_line_and_the_fastest_of_a_sweep_is_marked() {
        let text = of_device(&device(), false);
        let lines: Vec<Vec<&str>> =
            text.lines().skip(4).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["copy", "usual", "4.00", "s", "2.00", "s", "50.0", "100", "50", "%"], "{text}");
        assert_eq!(lines[2][..2], ["copy", "128"]);
        assert_eq!(lines[2].last(), Some(&"fastest"));
        assert_eq!(lines[4], ["other", "usual", "1.00", "s", "500", "ms", "-", "-", "-"], "{text}");
        assert_eq!(lines.len(), 5);
    }
}
