//! Takes the source lines out of PTX. The compiler is not told to leave them away, because the crates that
//! kernels use have them in any case, and are shared with builds that want them. It must not know why they are
//! not wanted.

/// The text without `.loc` and `.file` directives.
pub(crate) fn strip(text: &str) -> String {
    let is_line_info = |line: &&str| {
        let line = line.trim_start();
        line.starts_with(".loc\t") || line.starts_with(".file\t")
    };
    text.split_inclusive('\n').filter(|line| !is_line_info(line)).collect()
}
