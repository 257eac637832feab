//! The findings of `inspect` as text: the code under the lines of the source, and tables.

use std::fmt::Write as _;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use ferrogrid_build::cuda_toolkit::CudaTool;
use ferrogrid_build::inspect::{Line, Listing, Place, Resources, Sources};

use super::occupancy::{Needs, Row};
use super::{Inspection, option, request};

const TITLE: Style = Style::new().bold();
const SOURCE: Style = AnsiColor::Green.on_default();
const INLINED: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default();

pub(super) fn report(inspections: &[Inspection], sources: &Sources, target_folder: Option<&Path>) -> String {
    let has_resources = inspections.iter().any(|it| it.resources.is_some());
    let mut text = match inspections {
        [one] if one.listing.is_some() => detail(one, sources),
        several => table(several),
    };
    if !has_resources {
        let tool = CudaTool::Ptxas;
        let _ = write!(
            text,
            "\nregisters, spills and occupancy require {}, which is not installed on this machine; to get it:\n  {}\n",
            tool.name(),
            tool.advice(target_folder)
        );
    }
    text
}

fn detail(inspection: &Inspection, sources: &Sources) -> String {
    let kernel = &inspection.kernel;
    let mut text = format!(
        "{TITLE}{}::{}{TITLE:#}, {}, for {}\n",
        kernel.module,
        kernel.path(),
        kernel.target,
        inspection.image.arch
    );
    if let Some(listing) = &inspection.listing {
        text += &code(listing, sources);
    }
    text += "\n";
    if let Some(resources) = &inspection.resources {
        text += &needs(resources, inspection.shared_bytes);
    }
    text += &occupancy(&inspection.occupancy);
    text
}

/// The lines of the source, each with the instructions that come from it.
fn code(listing: &Listing, sources: &Sources) -> String {
    let mut text = String::new();
    let mut shown: Option<&Place> = None;
    for line in &listing.lines {
        if let Some(place) = &line.source
            && shown != Some(place)
        {
            if shown.is_none_or(|shown| shown.file != place.file) {
                let _ = writeln!(text, "\n{TITLE}{}{TITLE:#}", place.file);
            }
            let source = sources.line(place).unwrap_or_default();
            let _ = writeln!(text, "{SOURCE}{:5} | {source}{SOURCE:#}", place.line);
            shown = Some(place);
        }
        text += &instruction(line);
    }
    text
}

fn instruction(line: &Line) -> String {
    let indent = if line.text.ends_with(':') { "" } else { "    " };
    let code = format!("        {indent}{}", line.text.replace('\t', " ").replace("  ", " "));
    match &line.inlined {
        Some(Place { file, line }) if !indent.is_empty() => {
            let file = file.rsplit("../").next().unwrap_or(file).trim_start_matches("/rustc/library/");
            format!("{code:<60}  {INLINED}{file}:{line}{INLINED:#}\n")
        }
        _ => format!("{code}\n"),
    }
}

fn needs(resources: &Resources, shared_bytes: u64) -> String {
    let spills = resources.spill_stores + resources.spill_loads;
    let style = if spills > 0 { BAD } else { Style::new() };
    format!(
        "registers {}, stack {} bytes, {style}spills {} + {} bytes (stores + loads){style:#}, shared memory {} bytes, \
         barriers {}\n\n",
        resources.registers,
        resources.stack,
        resources.spill_stores,
        resources.spill_loads,
        shared_bytes + u64::from(resources.static_shared),
        resources.barriers
    )
}

/// The blocks per multiprocessor of each architecture; for several block sizes the occupancy only.
fn occupancy(rows: &[Row]) -> String {
    let sizes = rows.iter().find_map(|row| row.outcome.as_ref().ok()).map_or(&[][..], |needs| &needs.blocks);
    if sizes.is_empty() {
        return String::new();
    }
    let mut head = format!("{:<8} {:<8} {:>9} {:>6} {:>7}", "device", "PTX", "registers", "stack", "spills");
    match sizes {
        [(threads, _)] => head += &format!("  blocks of {threads} threads on a multiprocessor"),
        several => {
            head += "  occupancy with blocks of";
            let columns = several.iter().map(|(threads, _)| format!("{threads:>6}"));
            head += &columns.collect::<String>();
        }
    }
    let mut text = format!("{TITLE}{head}{TITLE:#}\n");
    for row in rows {
        let _ = write!(text, "{:<8} {:<8} ", row.arch.as_str(), row.ptx.as_str());
        match &row.outcome {
            Ok(needs) => text += &occupancy_row(needs),
            Err(error) => {
                let line = error.lines().find(|line| line.contains("fatal")).or(error.lines().next());
                text += line.unwrap_or_default();
            }
        }
        text += "\n";
    }
    text
}

fn occupancy_row(needs: &Needs) -> String {
    let Resources { registers, stack, spill_stores, spill_loads, .. } = needs.resources;
    let mut row = format!("{registers:9} {stack:6} {:7}", spill_stores + spill_loads);
    match needs.blocks.as_slice() {
        [(_, occupancy)] => row += &format!("  {occupancy}"),
        several => {
            row += "                          ";
            row.extend(several.iter().map(|(_, it)| format!("{:5.0}%", 100.0 * it.fraction())));
        }
    }
    row
}

fn table(inspections: &[Inspection]) -> String {
    let name = |it: &Inspection| format!("{}::{}", it.kernel.module, it.kernel.path());
    let width =
        |text: &dyn Fn(&Inspection) -> String| inspections.iter().map(|it| text(it).len()).max().unwrap_or(0);
    let names = width(&name).max("kernel".len());
    let targets = width(&|it| option(&it.kernel.target)).max("target".len());
    let mut text = format!(
        "{TITLE}{:<names$}  {:<targets$}  {:<7} {:>9} {:>6} {:>7} {:>7}{TITLE:#}\n",
        "kernel", "target", "code", "registers", "stack", "spills", "shared"
    );
    for inspection in inspections {
        let arch = inspection.image.arch.as_str();
        let target = option(&inspection.kernel.target);
        let _ = write!(text, "{:<names$}  {target:<targets$}  {arch:<7}", name(inspection));
        match inspection.resources {
            Some(resources) => {
                let spills = resources.spill_stores + resources.spill_loads;
                let style = if spills > 0 { BAD } else { Style::new() };
                let shared = inspection.shared_bytes + u64::from(resources.static_shared);
                let Resources { registers, stack, .. } = resources;
                let _ = writeln!(text, " {registers:9} {stack:6} {style}{spills:7}{style:#} {shared:7}");
            }
            None => {
                let _ = writeln!(text, " {:>9} {:>6} {:>7} {:7}", "-", "-", "-", inspection.shared_bytes);
            }
        }
    }
    let Some(first) = inspections.first() else { return text };
    let kernels = inspections.iter().map(|it| &it.kernel);
    text + &format!("\nTo see the code and the occupancy of one:\n  {}\n", request(&first.kernel, kernels))
}
