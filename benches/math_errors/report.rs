//! The results, as CSV and as a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use ferrogrid::prelude::*;

use crate::Outcome;
use crate::kernels::functions;

/// The largest error of one function.
#[derive(Debug, Clone)]
pub struct Line {
    device: String,
    library: String,
    ty: String,
    function: String,
    count: u64,
    error: f64,
    unit: String,
    place: String,
}

impl Line {
    #[expect(clippy::too_many_arguments, reason = "the columns of the file, in their order")]
    pub fn new(
        device: &Device,
        library: &str,
        ty: &str,
        function: &str,
        count: u64,
        error: f64,
        unit: &str,
        place: String,
    ) -> Self {
        let line = Line {
            device: device.name().replace(',', " "),
            library: library.to_owned(),
            ty: ty.to_owned(),
            function: function.to_owned(),
            count,
            error,
            unit: unit.to_owned(),
            place,
        };
        println!("{}", line.csv());
        line
    }

    /// Whether an approximation exceeds its documented bound.
    pub fn is_beyond(&self) -> bool {
        self.unit == "of its bound" && (self.error.is_nan() || self.error > 1.0)
    }

    pub fn csv(&self) -> String {
        let Line { device, library, ty, function, count, error, unit, place } = self;
        format!("{device},{library},{ty},{function},{count},{error:.4},{unit},{place}")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.splitn(8, ',').map(str::to_owned);
        let mut next = || fields.next();
        Some(Line {
            device: next()?,
            library: next()?,
            ty: next()?,
            function: next()?,
            count: next()?.parse().ok()?,
            error: next()?.parse().ok()?,
            unit: next()?,
            place: next()?,
        })
    }
}

/// The library of the kernels' functions on a device.
pub fn library(device: &Device) -> String {
    if !device.is_cuda() {
        return "std".to_owned();
    }
    let library = functions::errors_of_two::kernel::<0>().math_library();
    library.map_or_else(|| "none".to_owned(), |library| library.to_string())
}

/// The lines for the own function and for `libm`'s; one if both are the same.
pub fn pair(device: &Device, ty: &str, function: &str, count: u64, found: [(f64, String); 2]) -> Vec<Line> {
    let library = library(device);
    let [own, libm] = found;
    let line = |library: &str, (error, place): (f64, String)| {
        Line::new(device, library, ty, function, count, error, "ulp", place)
    };
    let mut lines = Vec::new();
    if library != "libm" {
        lines.push(line(&library, own));
    }
    lines.push(line("libm", libm));
    lines
}

const HEADER: &str = "device,library,type,function,numbers tried,largest error,unit,where";

/// A file of all lines.
pub fn csv(lines: &[Line]) -> String {
    let mut text = format!("{HEADER}\n");
    lines.iter().for_each(|line| text.push_str(&format!("{}\n", line.csv())));
    text
}

/// Parses such files.
pub fn read(files: &[PathBuf]) -> Outcome<Vec<Line>> {
    let mut lines = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file)?;
        for line in text.lines().filter(|line| !line.starts_with('#') && *line != HEADER) {
            lines.push(
                Line::parse(line).ok_or_else(|| format!("{}: no line of errors: {line}", file.display()))?,
            );
        }
    }
    Ok(lines)
}

/// Two tables in Markdown: a row for each function, a column for each library, device and type; and a row for
/// each approximation.
pub fn table(lines: &[Line]) -> String {
    let (bounded, measured): (Vec<&Line>, Vec<&Line>) =
        lines.iter().partition(|line| line.unit == "of its bound");
    let mut columns = Vec::new();
    let mut rows: Vec<&str> = Vec::new();
    let mut errors = BTreeMap::new();
    for line in measured {
        let column = (line.ty.clone(), line.library.clone(), line.device.clone());
        if !columns.contains(&column) {
            columns.push(column.clone());
        }
        if !rows.contains(&line.function.as_str()) {
            rows.push(&line.function);
        }
        errors.insert((line.function.as_str(), column), line.error);
    }
    columns.sort();
    let mut text = String::from("| function |");
    for (ty, library, device) in &columns {
        let _ = write!(text, " `{ty}`, {library}, {device} |");
    }
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(columns.len()));
    for row in rows {
        let _ = write!(text, "| `{row}` |");
        for column in &columns {
            let error = errors.get(&(row, column.clone()));
            let _ = write!(text, " {} |", error.map_or_else(String::new, |error| rounded_up(*error)));
        }
        text.push('\n');
    }
    if !bounded.is_empty() {
        text.push_str("\n| approximation | largest error, as a part of its bound | at |\n|---|---|---|\n");
        for line in bounded {
            let _ = writeln!(text, "| `{}` | {} | {} |", line.function, rounded_up(line.error), line.place);
        }
    }
    text
}

/// With two digits after the point, rounded up.
fn rounded_up(error: f64) -> String {
    if error == error.trunc() { error.to_string() } else { format!("{:.2}", (error * 100.0).ceil() / 100.0) }
}
