//! Gives the atomic operations of `core::sync::atomic` the ordering that they promise. LLVM's NVPTX back end (22)
//! writes `atomicrmw` as a bare `atom.global.add`, relaxed, whatever was asked for; loads, stores, fences and
//! compare-and-exchange it writes with their ordering. What was asked for cannot be told from the PTX, so a bare
//! one gets the strongest: a `fence.sc` before, and `.acq_rel`, for the whole system. It must not know who uses
//! them; `DeviceAtomic` names the ordering itself and stays as it is.

/// What an instruction says if it says its ordering.
const ORDERINGS: [&str; 4] = [".relaxed", ".acquire", ".release", ".acq_rel"];

/// `text` with an ordering on every atomic operation.
pub(crate) fn order(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match bare(line) {
            None => out.push_str(line),
            Some(at) => {
                let indent = &line[..line.len() - line.trim_start().len()];
                out.push_str(&format!(
                    "{indent}fence.sc.sys;\n{}atom.acq_rel.sys{}",
                    &line[..at],
                    &line[at + 4..]
                ));
            }
        }
    }
    out
}

/// Where `atom` stands in the line, if it is one without an ordering.
fn bare(line: &str) -> Option<usize> {
    let instruction = line.trim_start();
    let instruction = match instruction.strip_prefix('@') {
        Some(predicated) => predicated.split_once(char::is_whitespace)?.1.trim_start(),
        None => instruction,
    };
    let rest = instruction.strip_prefix("atom")?;
    let is_bare = rest.starts_with('.') && !ORDERINGS.iter().any(|ordering| rest.starts_with(ordering));
    is_bare.then(|| line.len() - instruction.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_ordering_gets_the_strongest() {
        assert_eq!(
            order("\tatom.global.add.u32 \t%r1, [%rd1], 1;\n\tret;\n"),
            "\tfence.sc.sys;\n\tatom.acq_rel.sys.global.add.u32 \t%r1, [%rd1], 1;\n\tret;\n"
        );
        assert_eq!(
            order("\t@%p1 atom.shared.exch.b64 \t%rd1, [%rd2], 1;\n"),
            "\tfence.sc.sys;\n\t@%p1 atom.acq_rel.sys.shared.exch.b64 \t%rd1, [%rd2], 1;\n"
        );
    }

    #[test]
    fn every_ordering_of_ptx_is_one() {
        for ordering in ["relaxed", "acquire", "release", "acq_rel"] {
            let line = format!("\tatom.{ordering}.gpu.global.add.u32 %r1, [%rd1], 1;\n");
            assert_eq!(order(&line), line);
        }
    }

    #[test]
    fn what_has_one_stays() {
        for line in [
            "\tatom.relaxed.gpu.global.add.u32 %r1, [%rd1], 1;\n",
            "\tatom.acq_rel.sys.global.cas.b32 \t%r6, [%rd1+32], 1, 2;\n",
            "\tld.acquire.sys.global.b32 \t%r4, [%rd1+20];\n",
            "\tcall.uni atom_counter, (param0);\n",
            "atom",
        ] {
            assert_eq!(order(line), line);
        }
    }
}
