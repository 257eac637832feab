//! Facts about checks of warp operations that some lanes may not reach, and about panic reports: each value
//! is in its place in the record.

use std::collections::BTreeSet;
use std::mem::offset_of;

use ferrogrid::device::failure::{self, FailureRecord};

use super::{code, count, images};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// The line of the first check in `apart`.
    pub const FIRST: u32 = line!() + 7;

    /// Every operation, reached by some lanes only.
    #[kernel]
    pub fn apart(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let (warp, own) = (t.warp(), x.get(t.index().get()).copied().unwrap_or(0));
        if own > 99 {
            warp.sync();
            let found = match own {
                100 => {
                    warp.sync();
                    0
                }
                101 => warp.ballot(x.len() > 7),
                102 => warp.all(x.len() > 8).into(),
                103 => warp.any(x.len() > 9).into(),
                104 => warp.match_any(own),
                105 => warp.shuffle(own, 3),
                106 => warp.reduce_or(own),
                107 => warp.coalesced().shuffle(own, 0),
                _ => 0,
            };
            y[0].store(found, atomic::Ordering::Relaxed);
        }
    }

    /// Of which line the reduction in `some` is.
    pub const REDUCTION: u32 = line!() + 8;

    /// A reduction in blocks of any size: it asks first which lanes there are.
    #[kernel]
    pub fn some(t: Thread<1>, x: &[u32], y: &[DeviceAtomic<u32>]) {
        let (warp, own) = (t.warp(), x.get(t.index().get()).copied().unwrap_or(0));
        warp.sync();
        if own > 99 {
            y[0].fetch_xor(warp.reduce(own, |a, b| a ^ b), atomic::Ordering::Relaxed);
        }
    }

    #[kernel]
    pub fn panics(t: Thread<1>, x: &[u32]) {
        let i = t.index().get();
        assert!(x[i] > 3, "too small");
        x.get(i + 1).expect("another");
        ferrogrid::device::println!("{}", x[i + 2]);
    }
}

/// The lines that checks name, each once.
fn checked(lines: &[&str]) -> BTreeSet<u32> {
    let number =
        |line: &&str| line.strip_prefix("st.param.b32 \t[param4], ")?.trim_end_matches(';').parse().ok();
    lines.iter().filter_map(number).collect()
}

/// One check for each operation, with the line of the call.
#[test]
fn a_check_names_the_operation_with_missing_lanes() {
    for (architecture, lines) in code(kernels::apart::kernel()) {
        let expected = [0, 3, 6, 7, 8, 9, 10, 11, 12].map(|line| kernels::FIRST + line);
        assert_eq!(checked(&lines), expected.into(), "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "ferrogrid.together"), 0, "{architecture}: {lines:#?}");
    }
}

#[test]
fn a_check_before_the_count_of_lanes_names_the_operation_that_counts_them() {
    for (architecture, lines) in code(kernels::some::kernel()) {
        assert_eq!(checked(&lines), [kernels::REDUCTION].into(), "{architecture}: {lines:#?}");
        assert!(count(&lines, "vote.sync.ballot.b32") > 0, "{architecture}: {lines:#?}");
    }
}

/// The function with this name, line by line, for each architecture.
fn functions(name: &str) -> Vec<(&'static str, Vec<&'static str>)> {
    let start = format!(".func {name}(");
    let of = |(architecture, ptx): (_, &'static str)| {
        let bodies = ptx.split(".visible ").filter(|part| part.starts_with(&start));
        let body = bodies.filter_map(|part| part.split_once("\n{")).next().expect("it is defined").1;
        (architecture, body[..body.find("\n}").expect("it ends")].lines().map(str::trim).collect())
    };
    images(kernels::panics::kernel()).into_iter().map(of).collect()
}

/// The source of a value, through moves and conversions: a parameter, memory, a special register or a number.
fn origin(lines: &[&str], operand: &str) -> String {
    for line in lines {
        let Some((opcode, operands)) = line.trim_end_matches(';').split_once(char::is_whitespace) else {
            continue;
        };
        let operands = operands.trim_start();
        if let Some((pair, source)) = operands.trim_start_matches('{').split_once("}, ")
            && let Some(at) = pair.split(", ").position(|it| it == operand)
            && let Some((base, place)) = source.trim_end_matches(']').split_once('+')
        {
            let place: usize = place.parse().expect("a number of bytes");
            return format!("{base}+{}]", place + 4 * at);
        }
        let passes_on = ["ld.", "mov.", "cvt.", "shr."].iter().any(|it| opcode.starts_with(it));
        match operands.split_once(", ").filter(|(result, _)| passes_on && *result == operand) {
            Some((_, source)) if source.starts_with('%') && !source.contains(['.', ',']) => {
                return origin(lines, source);
            }
            Some((_, source)) => return source.to_owned(),
            None => {}
        }
    }
    operand.to_owned()
}

/// The value stored at an offset of the record.
fn stored(lines: &[&str], place: usize) -> String {
    let at = format!("+{place}], ");
    let store = lines.iter().find(|line| line.starts_with("st.volatile") && line.contains(&at));
    let (_, operand) =
        store.unwrap_or_else(|| panic!("nothing is stored at {place}: {lines:#?}")).split_once(&at).unwrap();
    origin(lines, operand.trim_end_matches(';'))
}

#[test]
fn reports_of_missing_lanes_have_mask_lanes_and_place() {
    for (architecture, lines) in functions("__ferrogrid_panic_lanes") {
        let fields = [
            offset_of!(FailureRecord, first),
            offset_of!(FailureRecord, second),
            offset_of!(FailureRecord, file),
            offset_of!(FailureRecord, file_length),
            offset_of!(FailureRecord, line),
            offset_of!(FailureRecord, column),
        ];
        for (parameter, place) in fields.into_iter().enumerate() {
            let expected = format!("[__ferrogrid_panic_lanes_param_{parameter}]");
            assert_eq!(stored(&lines, place), expected, "{architecture}: {lines:#?}");
        }
        assert_eq!(
            stored(&lines, offset_of!(FailureRecord, kind)),
            failure::LANES.to_string(),
            "{architecture}"
        );
        // Another panic has a better report, so the check waits for it.
        assert!(count(&lines, "nanosleep.u32") > 0, "{architecture}: {lines:#?}");
        assert!(
            lines.iter().filter(|line| line.contains("nanosleep")).all(|line| line.ends_with(" 1000;")),
            "{architecture}"
        );
    }
}

#[test]
fn a_panic_report_has_values_location_and_thread() {
    let parameter = |name: &str, number: usize| format!("[{name}_param_{number}]");
    let kinds = [
        ("__ferrogrid_panic_bounds_check", failure::BOUNDS, ["_param_0]", "_param_1]"], 2),
        ("__ferrogrid_panic_text", failure::CONSTANT, ["_param_0]", "_param_1]"], 2),
    ];
    for (name, kind, values, location) in kinds {
        for (architecture, lines) in functions(name) {
            let of = |place: usize| stored(&lines, place);
            assert_eq!(
                of(offset_of!(FailureRecord, kind)),
                kind.to_string(),
                "{architecture}, {name}: {lines:#?}"
            );
            for (place, value) in
                [offset_of!(FailureRecord, first), offset_of!(FailureRecord, second)].into_iter().zip(values)
            {
                assert_eq!(of(place), format!("[{name}{value}"), "{architecture}: {lines:#?}");
            }
            // rustc's layout of a location: name, length, line, column.
            let located =
                lines.iter().find(|line| line.contains(&parameter(name, location))).expect("it is read");
            let register = located.split_whitespace().nth(1).expect("a register").trim_end_matches(',');
            let fields = [
                (offset_of!(FailureRecord, file), format!("[{register}]")),
                (offset_of!(FailureRecord, file_length), format!("[{register}+8]")),
                (offset_of!(FailureRecord, line), format!("[{register}+16]")),
                (offset_of!(FailureRecord, column), format!("[{register}+20]")),
            ];
            for (place, expected) in fields {
                assert_eq!(of(place), expected, "{architecture}, {name}: {lines:#?}");
            }
            for (axis, letter) in ["x", "y", "z"].into_iter().enumerate() {
                assert_eq!(
                    of(offset_of!(FailureRecord, block) + 4 * axis),
                    format!("%ctaid.{letter}"),
                    "{architecture}"
                );
                assert_eq!(
                    of(offset_of!(FailureRecord, thread) + 4 * axis),
                    format!("%tid.{letter}"),
                    "{architecture}"
                );
            }
        }
    }
    for (architecture, lines) in functions("__ferrogrid_panic_constant") {
        let length = stored(&lines, offset_of!(FailureRecord, second));
        assert!(length.ends_with(", 1"), "{architecture}: half of what is given is the length: {length}");
    }
}
