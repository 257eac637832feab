//! Plots of a report, as SVG: a roofline for each device, and a curve for each sweep over block sizes.

use std::fs;
use std::path::{Path, PathBuf};

use plotters::prelude::*;

use crate::Outcome;
use crate::report::{CaseReport, DeviceReport, Report};
use crate::table::with_prefix;

const SIZE: (u32, u32) = (900, 540);

/// Writes all plots of `report` into `folder`, and returns the files.
pub(crate) fn all(report: &Report, folder: &Path) -> Outcome<Vec<PathBuf>> {
    fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let mut files = Vec::new();
    for device in &report.devices {
        let name = device.ordinal.map_or_else(|| "cpu".to_owned(), |ordinal| format!("cuda{ordinal}"));
        if device.cases.iter().any(|case| case.intensity().is_some()) {
            let file = folder.join(format!("{name}-roofline.svg"));
            roofline(device, &file)?;
            files.push(file);
        }
        for case in device.cases.iter().filter(|case| case.runs.len() > 2) {
            let file = folder.join(format!("{name}-{}-blocks.svg", plain(&case.name)));
            sweep(device, case, &file)?;
            files.push(file);
        }
    }
    Ok(files)
}

/// The name as a part of a file's name.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '_' }).collect()
}

/// Operations per second over operations per byte, on logarithmic axes: each case under the roofs.
fn roofline(device: &DeviceReport, file: &Path) -> Outcome {
    let points: Vec<(f64, f64, &str)> = device
        .cases
        .iter()
        .filter_map(|case| Some((case.intensity()?, case.flop_rate(case.fastest()?)?, case.name.as_str())))
        .collect();
    let roof = device.roof;
    let ridge = roof.flops_per_second / roof.bytes_per_second;
    let bounds = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::MAX, 0.0_f64), |(least, most), it| (least.min(it), most.max(it)))
    };
    let (left, right) = bounds(&mut points.iter().map(|it| it.0).chain([ridge]));
    let (left, right) = (left / 4.0, right * 4.0);
    let attainable = |intensity: f64| (intensity * roof.bytes_per_second).min(roof.flops_per_second);
    let (low, high) =
        bounds(&mut points.iter().map(|it| it.1).chain([attainable(left), roof.flops_per_second]));
    let area = SVGBackend::new(file, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(roofline_title(device), ("sans-serif", 20))
        .margin(24)
        .x_label_area_size(44)
        .y_label_area_size(96)
        .build_cartesian_2d((left..right).log_scale(), (low / 2.0..2.0 * high).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("operations per byte")
        .y_desc("operations per second")
        .x_label_formatter(&|it| ((it * 1e6).round() / 1e6).to_string())
        .y_label_formatter(&|it| format!("{}FLOP/s", with_prefix(*it)))
        .draw()?;
    let roof_line = [left, ridge.clamp(left, right), right].map(|it| (it, attainable(it)));
    chart.draw_series(LineSeries::new(roof_line, BLACK.stroke_width(2)))?;
    chart.draw_series(points.iter().map(|&(x, y, _)| Circle::new((x, y), 5, BLUE.filled())))?;
    chart.draw_series(points.iter().map(|&(x, y, name)| {
        let label = Text::new(name.to_owned(), (8, -6), ("sans-serif", 14));
        EmptyElement::at((x, y)) + label
    }))?;
    area.present()?;
    Ok(())
}

fn roofline_title(device: &DeviceReport) -> String {
    let (bytes, flops) = (device.roof.bytes_per_second, device.roof.flops_per_second);
    format!("Roofline, {}: {}B/s, {}FLOP/s", device.name, with_prefix(bytes), with_prefix(flops))
}

/// The time of a launch over the block size.
fn sweep(device: &DeviceReport, case: &CaseReport, file: &Path) -> Outcome {
    let mut points: Vec<(f64, f64)> =
        case.runs.iter().filter_map(|run| Some((f64::from(run.threads?), run.seconds()))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Ok(()) };
    let highest = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let area = SVGBackend::new(file, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("{}, {}", case.name, device.name), ("sans-serif", 20))
        .margin(24)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d((first.0..last.0 * 1.001).log_scale().base(2.0), 0.0..1.1 * highest)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("threads of a block")
        .x_label_formatter(&|it| format!("{it:.0}"))
        .y_desc("a launch")
        .y_label_formatter(&|it| if *it > 0.0 { format!("{}s", with_prefix(*it)) } else { "0".to_owned() })
        .draw()?;
    chart.draw_series(LineSeries::new(points.iter().copied(), BLUE.stroke_width(2)))?;
    chart.draw_series(points.iter().map(|&point| Circle::new(point, 4, BLUE.filled())))?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::device;

    #[test]
    fn a_roofline_for_the_device_and_a_curve_for_the_sweep() {
        let folder = tempfile::tempdir().unwrap();
        let report = Report { bench: "b".to_owned(), quick: false, devices: vec![device()] };
        let files = all(&report, &folder.path().join("new")).unwrap();
        let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["cuda0-roofline.svg", "cuda0-copy-blocks.svg"]);
        let roofline = fs::read_to_string(&files[0]).unwrap();
        for text in ["Roofline, A GPU: ", "operations per byte", "FLOP/s", "pull", "copy"] {
            assert!(roofline.contains(text), "{text}");
        }
        assert!(!roofline.contains("other"), "it has neither bytes nor operations");
        let sweep = fs::read_to_string(&files[1]).unwrap();
        assert_eq!(sweep.matches("<circle").count(), 2, "{sweep}");
    }
}
