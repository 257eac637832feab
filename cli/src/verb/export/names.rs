//! Names in Python: of packages, modules, functions and parameters. A name that Python or a launch function has itself gets an
//! underscore behind it.

/// The keywords of Python, and the parameters that launch functions have.
const TAKEN: [&str; 40] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield", "cover",
    "grid", "block", "stream", "self",
];

/// What the modules of kernels define or import.
const OF_MODULE: [&str; 15] = [
    "annotations",
    "os",
    "Optional",
    "Array",
    "Dims",
    "Image",
    "In",
    "Module",
    "Out",
    "Shared",
    "Spec",
    "Stream",
    "Value",
    "_module",
    "unavailable",
];

/// A Python identifier for a name of Rust or cargo, for a parameter or a package.
pub(super) fn identifier(name: &str) -> String {
    let name = name.trim_start_matches("r#");
    let mut found: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    if found.starts_with(|c: char| c.is_ascii_digit()) || found.starts_with("__") {
        found.insert(0, 'k');
    }
    if TAKEN.contains(&found.as_str()) {
        found.push('_');
    }
    found
}

/// The same for a function in a module of kernels.
pub(super) fn function(name: &str) -> String {
    let mut found = identifier(name);
    if OF_MODULE.contains(&found.as_str()) {
        found.push('_');
    }
    found
}

/// What a package has beside its modules of kernels.
pub(super) const OF_PACKAGE: [&str; 4] = ["CudaError", "KernelPanic", "load", "synchronize"];

/// `wanted`, or the first of `wanted_2`, `wanted_3` that is not in `taken`.
pub(super) fn free(wanted: String, taken: &[String]) -> String {
    let numbered = (2..).map(|number| format!("{wanted}_{number}"));
    std::iter::once(wanted.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_python_get_an_underscore() {
        let expected =
            [("x", "x"), ("lambda", "lambda_"), ("r#in", "in_"), ("grid", "grid_"), ("my-app", "my_app")];
        for (name, python) in expected {
            assert_eq!(identifier(name), python);
        }
        assert_eq!((identifier("3d"), identifier("__x")), ("k3d".to_owned(), "k__x".to_owned()));
        assert_eq!((function("Spec"), function("saxpy")), ("Spec_".to_owned(), "saxpy".to_owned()));
    }

    #[test]
    fn a_taken_name_is_numbered() {
        let taken = ["a".to_owned(), "a_2".to_owned()];
        assert_eq!(
            (free("a".to_owned(), &taken), free("b".to_owned(), &taken)),
            ("a_3".to_owned(), "b".to_owned())
        );
    }
}
