//! The shape of a JSON text: its fields and their types, without values.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// A line for each field at whatever depth: its path, and the types that it has anywhere. Fields below
/// `elements[]` are those of any element.
pub fn shape(value: &Value) -> String {
    let mut types = BTreeMap::new();
    visit(value, String::new(), &mut types);
    types.into_iter().map(|(path, types)| format!("{path}: {}\n", types.join(" or "))).collect()
}

fn visit(value: &Value, path: String, types: &mut BTreeMap<String, Vec<&'static str>>) {
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    let known = types.entry(if path.is_empty() { ".".to_owned() } else { path.clone() }).or_default();
    if !known.contains(&name) {
        known.push(name);
        known.sort_unstable();
    }
    match value {
        Value::Array(elements) => elements.iter().for_each(|it| visit(it, format!("{path}[]"), types)),
        Value::Object(fields) => {
            fields.iter().for_each(|(field, it)| visit(it, format!("{path}.{field}"), types));
        }
        _ => {}
    }
}

/// Asserts that `value` has the shape in `tests/golden/NAME.txt`. Programs that read this output see a change
/// of that file, so it requires another `schema`, unless it only adds fields. `FERROGRID_RENEW_GOLDEN=1`
/// rewrites it.
pub fn assert_golden(name: &str, value: &Value) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    let found = shape(value);
    if std::env::var_os("FERROGRID_RENEW_GOLDEN").is_some() {
        std::fs::write(&file, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap();
    assert_eq!(found, expected, "{} is not the shape of\n{value:#}", file.display());
}
