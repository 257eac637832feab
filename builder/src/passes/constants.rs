//! Constant memory: rustc puts variables into global memory. Those that are constants of a module are
//! declared in constant memory here, with the bytes that rustc gave them.

use ferrogrid_ptx::{Declaration, Edits, Linkage, Module};
use ferrogrid_syntax::CONSTANT_PREFIX;

/// The maximum total size of a program's constants in bytes (CUDA: 64 KiB).
pub(crate) const LIMIT: usize = 65536;

/// Moves the constants to constant memory.
pub(super) fn place<'t>(module: &Module<'t>, edits: &mut Edits<'t>) {
    for variable in constants(module).filter(|variable| variable.space == ".global") {
        edits.replace(variable.space, ".const");
    }
}

fn constants<'m, 't>(module: &'m Module<'t>) -> impl Iterator<Item = &'m Declaration<'t>> {
    module.variables().filter(|variable| {
        variable.linkage == Linkage::Visible && variable.name().starts_with(CONSTANT_PREFIX)
    })
}

/// Checks that the constants of a program fit.
///
/// # Errors
/// Names their bytes, and those of the largest.
pub(crate) fn check(module: &Module<'_>) -> Result<(), String> {
    let placed = constants(module).filter(|variable| variable.space == ".const");
    let sizes: Vec<(&str, usize, usize)> =
        placed.filter_map(|it| Some((it.name(), it.size()?, it.alignment()?))).collect();
    let total = sizes.iter().fold(0, |total: usize, (_, size, align)| total.next_multiple_of(*align) + size);
    let Some((largest, bytes, _)) = sizes.iter().max_by_key(|(_, size, _)| size).filter(|_| total > LIMIT)
    else {
        return Ok(());
    };
    let name = largest.trim_start_matches(CONSTANT_PREFIX);
    let name = name.rsplit_once('_').map_or(name, |(name, _)| name);
    Err(format!(
        "its {} constants take {total} bytes of constant memory, which has {LIMIT} for all modules of a program \
         together; the largest is `{name}` with {bytes}: pass it as a slice",
        sizes.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::super::tests::after;
    use super::*;

    const TEXT: &str = "\t// .globl\t__ferrogrid_constant_A_0123\n\
        .visible .global .align 4 .b8 __ferrogrid_constant_A_0123[8] = {0, 0, 128, 63};\n\
        .visible .global .align 8 .b64 __ferrogrid_constant_B_0123 = 7;\n\
        .visible .global .align 4 .b8 other[8];\n\
        .visible .global .align 8 .u64 p = __ferrogrid_constant_C;\n";

    #[test]
    fn constants_are_moved_with_their_bytes_and_nothing_else_is() {
        let text = after(TEXT, place);
        assert!(
            text.contains(".visible .const .align 4 .b8 __ferrogrid_constant_A_0123[8] = {0, 0, 128, 63};\n")
        );
        assert!(text.contains(".visible .const .align 8 .b64 __ferrogrid_constant_B_0123 = 7;\n"));
        assert_eq!(text.matches(".global ").count(), 2, "{text}");
        assert_eq!(check(&Module::parse(&text).unwrap()), Ok(()));
    }

    #[test]
    fn constants_that_do_not_fit_are_named_with_their_sizes() {
        let line = |name: &str, bytes: usize| {
            format!(".visible .const .align 4 .b8 {CONSTANT_PREFIX}{name}_0123[{bytes}];\n")
        };
        let checked = |text: &str| check(&Module::parse(text).unwrap());
        assert_eq!(checked(&(line("HALF", 32768) + &line("OTHER", 32768))), Ok(()));
        // The last byte that fits, and one more; padding counts.
        assert_eq!(checked(&line("ALL", LIMIT)), Ok(()));
        let error = checked(&line("ALL", LIMIT + 1)).unwrap_err();
        assert!(error.contains("take 65537 bytes"), "{error}");
        assert_eq!(checked(&(line("ODD", 1) + &line("REST", LIMIT - 4))), Ok(()));
        let error = checked(&(line("ODD", 1) + &line("REST", LIMIT - 3))).unwrap_err();
        assert!(error.contains("take 65537 bytes"), "{error}");
        let error = checked(&(line("SMALL", 4) + &line("MY_TABLE", 65536))).unwrap_err();
        assert!(error.contains("2 constants take 65540 bytes"), "{error}");
        assert!(error.contains("`MY_TABLE` with 65536"), "{error}");
    }
}
