//! rustc's errors about a device crate, in two forms: as text for tools, and by place in the user's source
//! for the macros.

use std::path::{Path, PathBuf};

use ferrogrid_syntax::compiled::Diagnostic;
use serde_json::Value;

/// rustc's errors.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// As rustc prints them.
    pub(crate) text: String,
    /// Those with a place, and the file.
    pub(crate) places: Vec<(PathBuf, Diagnostic)>,
}

/// Reads what rustc prints with `--error-format=json`. Relative paths are below `root`; `hint` gives advice
/// for the text of an error.
pub(crate) fn read(output: &str, root: &Path, hint: &impl Fn(&str) -> String) -> Found {
    let mut found = Found::default();
    for line in output.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            // Output of a rustc that fails before it can write JSON.
            found.text.push_str(line);
            found.text.push('\n');
            continue;
        };
        let rendered = message["rendered"].as_str().unwrap_or_default();
        if message["level"] != "error" || is_summary(&message) {
            continue;
        }
        found.text.push_str(rendered);
        if let Some(diagnostic) = diagnostic(&message, root, &hint(rendered)) {
            found.places.push(diagnostic);
        }
    }
    found.text.truncate(found.text.trim_end().len());
    found
}

/// "aborting due to 2 previous errors", which our own summary replaces.
fn is_summary(message: &Value) -> bool {
    message["spans"].as_array().is_some_and(Vec::is_empty)
        && message["message"].as_str().is_some_and(|text| text.starts_with("aborting due to"))
}

fn diagnostic(message: &Value, root: &Path, hint: &str) -> Option<(PathBuf, Diagnostic)> {
    let spans = message["spans"].as_array()?;
    let primary = users_place(spans.iter().find(|span| span["is_primary"] == true)?);
    let number = |field: &str| usize::try_from(primary[field].as_u64()?).ok();
    let mut text = message["message"].as_str()?.to_owned();
    for label in spans.iter().filter_map(|span| span["label"].as_str()).filter(|label| !label.is_empty()) {
        text.push_str(&format!("\n  {label}"));
    }
    for child in message["children"].as_array().into_iter().flatten() {
        if let (Some(level), Some(note)) = (child["level"].as_str(), child["message"].as_str()) {
            text.push_str(&format!("\n  {level}: {note}"));
        }
    }
    text.push_str(hint);
    let start = (number("line_start")?, number("column_start")?);
    let end = (number("line_end")?, number("column_end")?);
    Some((root.join(primary["file_name"].as_str()?), Diagnostic { start, end, message: text }))
}

/// The user's place of code that a macro made.
fn users_place(span: &Value) -> &Value {
    let mut place = span;
    while !place["expansion"].is_null() {
        place = &place["expansion"]["span"];
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISMATCH: &str = r#"{"$message_type":"diagnostic","message":"mismatched types","code":{"code":"E0308"},"level":"error","spans":[{"file_name":"src/main.rs","line_start":3,"line_end":3,"column_start":5,"column_end":9,"is_primary":true,"label":"expected `f32`","expansion":null}],"children":[{"message":"see here","level":"note"}],"rendered":"error[E0308]: mismatched types\n"}"#;

    #[test]
    fn errors_are_read_with_their_places_and_notes() {
        let summary = r#"{"message":"aborting due to 1 previous error","level":"error","spans":[],"children":[],"rendered":"error: aborting\n"}"#;
        let warning =
            r#"{"message":"unused","level":"warning","spans":[],"children":[],"rendered":"warning\n"}"#;
        let output = format!("{warning}\n{MISMATCH}\n{summary}\n");
        let found = read(&output, Path::new("/w"), &|_| "\n  advice".to_owned());
        assert_eq!(found.text, "error[E0308]: mismatched types");
        let [(file, only)] = found.places.as_slice() else { panic!("{found:?}") };
        assert_eq!((file.as_path(), only.start, only.end), (Path::new("/w/src/main.rs"), (3, 5), (3, 9)));
        assert_eq!(only.message, "mismatched types\n  expected `f32`\n  note: see here\n  advice");
    }

    #[test]
    fn errors_in_macros_are_shown_at_the_call() {
        let user = r#"{"file_name":"src/main.rs","line_start":7,"line_end":7,"column_start":1,"column_end":4,"is_primary":false,"label":null,"expansion":null}"#;
        let inner = format!(
            r#"{{"file_name":"/lib/macros.rs","line_start":1,"line_end":1,"column_start":1,"column_end":2,"is_primary":true,"label":null,"expansion":{{"span":{user}}}}}"#
        );
        let output =
            format!(r#"{{"message":"bad","level":"error","spans":[{inner}],"children":[],"rendered":"r"}}"#);
        assert_eq!(read(&output, Path::new("/w"), &|_| String::new()).places[0].1.start, (7, 1));
    }

    #[test]
    fn output_that_is_not_json_is_kept() {
        assert_eq!(
            read("thread 'rustc' panicked\n", Path::new("/"), &|_| String::new()).text,
            "thread 'rustc' panicked"
        );
    }
}
