//! The findings of `inspect` as JSON. Fields keep their meaning while `schema` is 1.

use ferrogrid_build::inspect::{Line, Place, Resources, Sources};
use ferrogrid_host::Occupancy;
use serde_json::{Value, json};

use super::Inspection;
use super::occupancy::Row;

pub(super) fn report(package: &str, inspections: &[Inspection], sass: bool, sources: &Sources) -> Value {
    let kernels: Vec<Value> = inspections.iter().map(|it| kernel(it, sass, sources)).collect();
    json!({ "schema": 1, "package": package, "kernels": kernels })
}

fn kernel(inspection: &Inspection, sass: bool, sources: &Sources) -> Value {
    let kernel = &inspection.kernel;
    json!({
        "kernel": kernel.name,
        "arguments": kernel.arguments,
        "module": kernel.module,
        "entry": kernel.entry,
        "target": kernel.target,
        "file": kernel.file,
        "first_line": kernel.lines.0,
        "last_line": kernel.lines.1,
        "block": kernel.block,
        "max_threads": kernel.max_threads,
        "shared_bytes": inspection.shared_bytes,
        "arch": inspection.image.arch.as_str(),
        "ptx_file": inspection.image.file,
        "resources": inspection.resources.as_ref().map(resources),
        "occupancy": inspection.occupancy.iter().map(row).collect::<Vec<_>>(),
        "listing": inspection.listing.as_ref().map(|listing| {
            let lines = listing.lines.iter().map(|it| line(it, sources)).collect::<Vec<_>>();
            json!({ "kind": if sass { "sass" } else { "ptx" }, "lines": lines })
        }),
    })
}

fn resources(resources: &Resources) -> Value {
    json!({
        "registers": resources.registers,
        "stack_bytes": resources.stack,
        "spill_store_bytes": resources.spill_stores,
        "spill_load_bytes": resources.spill_loads,
        "static_shared_bytes": resources.static_shared,
        "barriers": resources.barriers,
    })
}

fn row(row: &Row) -> Value {
    let (needs, error) = match &row.outcome {
        Ok(needs) => (Some(needs), None),
        Err(error) => (None, Some(error)),
    };
    let blocks =
        needs.map(|needs| needs.blocks.iter().map(|(threads, it)| block(*threads, it)).collect::<Vec<_>>());
    json!({
        "arch": row.arch.as_str(),
        "ptx": row.ptx.as_str(),
        "resources": needs.map(|needs| resources(&needs.resources)),
        "blocks": blocks.unwrap_or_default(),
        "error": error,
    })
}

fn block(threads: u32, occupancy: &Occupancy) -> Value {
    let limiters: Vec<String> = occupancy.limited_by().iter().map(ToString::to_string).collect();
    json!({
        "threads": threads,
        "active_blocks": occupancy.active_blocks,
        "active_warps": occupancy.active_warps,
        "max_warps": occupancy.max_warps,
        "occupancy": occupancy.fraction(),
        "limited_by": limiters,
    })
}

fn line(line: &Line, sources: &Sources) -> Value {
    let place = |place: &Place| json!({ "file": place.file, "line": place.line });
    json!({
        "text": line.text,
        "source": line.source.as_ref().map(place),
        "source_text": line.source.as_ref().and_then(|it| sources.line(it)),
        "inlined": line.inlined.as_ref().map(place),
    })
}
