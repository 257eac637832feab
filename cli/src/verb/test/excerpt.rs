//! The part of a failed test program's output that says which tests failed and why. It is repeated at the end, because a
//! log of many programs is long, and some services cut out its middle.

/// The number of lines for a program.
const LIMIT: usize = 40;

/// The sections `failures:` that libtest and libtest-mimic print, without backtraces. Where there are none, the last lines:
/// the program ended by itself, or by a signal.
pub(super) fn of_failures(printed: &str) -> Vec<&str> {
    let (mut found, mut in_section, mut in_backtrace) = (Vec::new(), false, false);
    for line in printed.lines() {
        match line {
            "failures:" => in_section = true,
            "stack backtrace:" => in_backtrace = true,
            _ if line.starts_with("test result: ") => in_section = false,
            _ => {}
        }
        // trybuild's line for a case; its section says no more than how many there are.
        let is_case = line.contains("test ") && line.ends_with("mismatch");
        if is_case || in_section && !in_backtrace {
            found.push(line);
        }
        if in_backtrace && (line.is_empty() || line.starts_with("note: ")) {
            in_backtrace = false;
        }
    }
    if found.is_empty() {
        let lines: Vec<&str> = printed.lines().collect();
        return lines[lines.len().saturating_sub(LIMIT)..].to_vec();
    }
    // The names of the failed tests are last.
    if found.len() > LIMIT {
        found.splice(LIMIT / 2..found.len() - LIMIT / 2, ["..."]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_and_messages_of_failed_tests_are_found() {
        let libtest = "running 2 tests\ntest good ... ok\ntest bad ... FAILED\n\nfailures:\n\n---- bad stdout ----\n\
            thread 'bad' panicked at src/lib.rs:3:5:\nis 3; expected 4\nstack backtrace:\n   0: begin_panic\n  at x.rs\n\
            note: Some details are omitted\n\n\nfailures:\n    bad\n\ntest result: FAILED. 1 passed; 1 failed\n";
        let expected = [
            "failures:",
            "",
            "---- bad stdout ----",
            "thread 'bad' panicked at src/lib.rs:3:5:",
            "is 3; expected 4",
            "",
            "",
            "failures:",
            "    bad",
            "",
        ];
        assert_eq!(of_failures(libtest), expected);
        let mimic = "test cpu::bad ... FAILED\n\nfailures:\n\n---- cpu::bad ----\nis 3\n\nfailures:\n    cpu::bad\n\n\
            test result: FAILED. 0 passed; 1 failed\nafterwards\n";
        let found = of_failures(mimic);
        assert_eq!(found[2..4], ["---- cpu::bad ----", "is 3"]);
        assert!(found.contains(&"    cpu::bad") && !found.contains(&"afterwards"), "{found:?}");
    }

    #[test]
    fn cases_of_trybuild_are_named() {
        let printed = "\x1b[0mtest \x1b[1mtests/ui/a.rs\x1b[0m ... \x1b[31mmismatch\n\x1b[0mEXPECTED:\nerror\n\n\
            failures:\n\n---- mistakes ----\n1 of 112 tests failed\n\ntest result: FAILED\n";
        let found = of_failures(printed);
        assert!(found[0].contains("tests/ui/a.rs") && found[1] == "failures:", "{found:?}");
    }

    #[test]
    fn documentation_has_a_section_for_each_crate() {
        let printed = "failures:\n    one\ntest result: FAILED\n   Doc-tests two\nfailures:\n    two\ntest result: FAILED\n";
        assert_eq!(of_failures(printed), ["failures:", "    one", "failures:", "    two"]);
    }

    #[test]
    fn a_program_without_sections_shows_its_last_lines() {
        let printed: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let found = of_failures(&printed);
        assert_eq!((found.len(), found[0], found[LIMIT - 1]), (LIMIT, "line 60", "line 99"));
        assert_eq!(of_failures("signal: 11\n"), ["signal: 11"]);
    }

    #[test]
    fn a_long_section_keeps_its_start_and_the_names() {
        let lines: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let printed = format!("failures:\n{lines}failures:\n    bad\ntest result: FAILED\n");
        let found = of_failures(&printed);
        assert_eq!((found.len(), found[1], found[LIMIT / 2]), (LIMIT + 1, "line 0", "..."));
        assert_eq!(found.last(), Some(&"    bad"));
    }
}
