//! The description of an example, from the first line of its source, `//! 1.2 name: what it shows`, and the
//! learning order of examples.

use std::fs;
use std::path::Path;

use crate::Failure;
use crate::cargo::Package;

/// An example of a package.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Example {
    /// The target's name.
    pub(crate) name: String,
    /// Its package.
    pub(crate) package: String,
    /// Its place in the learning order, `1.2`; empty if it has none.
    pub(crate) number: String,
    /// The rest of the first line of its documentation; empty if there is none.
    pub(crate) summary: String,
}

impl Example {
    /// The examples of `packages` in learning order; those without a number follow, by name.
    ///
    /// # Errors
    /// For a source that cannot be read.
    pub(crate) fn all(packages: &[Package]) -> Result<Vec<Example>, Failure> {
        let mut examples = Vec::new();
        for package in packages {
            for (name, source) in package.sources("example") {
                examples.push(Self::read(package.name(), name, &source)?);
            }
        }
        examples.sort_by_cached_key(Example::place);
        Ok(examples)
    }

    fn read(package: &str, name: String, source: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(source).map_err(|error| format!("{}: {error}", source.display()))?;
        Ok(Self::parse(package, name, &text))
    }

    fn parse(package: &str, name: String, text: &str) -> Self {
        let header = text.lines().find_map(|line| line.strip_prefix("//!")).unwrap_or_default().trim();
        let (first, rest) = header.split_once(' ').unwrap_or((header, ""));
        let is_number = first.split('.').all(|part| part.parse::<u32>().is_ok());
        let (number, title) = if is_number { (first, rest.trim_start()) } else { ("", header) };
        let of_itself = title.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix(':'));
        let summary = of_itself.unwrap_or(title).trim_start().to_owned();
        Example { number: number.to_owned(), summary, package: package.to_owned(), name }
    }

    /// The key of the order: 1.9 comes before 1.10, and a number before none.
    fn place(&self) -> (bool, Vec<u32>, String) {
        let parts = self.number.split('.').filter_map(|part| part.parse().ok()).collect();
        (self.number.is_empty(), parts, self.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str, text: &str) -> (String, String) {
        let example = Example::parse("p", name.to_owned(), text);
        (example.number, example.summary)
    }

    #[test]
    fn the_first_line_of_the_documentation_has_number_and_summary() {
        let text = "// A licence.\n//! 2.10 blur: soft pictures.\n//!\n//! 3.1 not this\n";
        assert_eq!(parsed("blur", text), ("2.10".to_owned(), "soft pictures.".to_owned()));
    }

    #[test]
    fn missing_parts_of_a_header_are_empty() {
        assert_eq!(parsed("blur", "fn main() {}"), (String::new(), String::new()));
        assert_eq!(parsed("blur", "//! Blurs: all."), (String::new(), "Blurs: all.".to_owned()));
        assert_eq!(parsed("blur", "//! 3"), ("3".to_owned(), String::new()));
        assert_eq!(parsed("blur", "//! 3x3 means"), (String::new(), "3x3 means".to_owned()));
    }

    #[test]
    fn examples_are_ordered_by_number_then_by_name() {
        let mut examples = [("d", ""), ("b", "1.10"), ("c", "2.1"), ("a", "1.9"), ("e", "1"), ("a2", "")]
            .map(|(name, number)| Example {
                name: name.to_owned(),
                package: String::new(),
                number: number.to_owned(),
                summary: String::new(),
            });
        examples.sort_by_cached_key(Example::place);
        assert_eq!(examples.map(|example| example.name), ["e", "a", "b", "c", "a2", "d"]);
    }
}
