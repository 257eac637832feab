//! Defines the variables through which the host reaches device code, which the code only declares: so
//! they are there where something uses them, and nowhere else. It must not know what they hold.

/// The variables, and the value of each before the host sets it; `None` is 1 or 0, by `describes`.
const VARIABLES: [(&str, Option<u64>); 2] =
    [("__ferrogrid_output", Some(0)), ("__ferrogrid_formatters", None)];

/// The text with those variables defined whose names it still uses, and without the rest.
pub(super) fn define(text: &str, describes: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let declared = VARIABLES.iter().find(|(name, _)| is_declaration(line, name));
        match declared {
            Some((name, value)) if text.matches(name).count() > 1 => {
                let value = value.unwrap_or(u64::from(describes));
                out.push_str(&format!(".visible .global .align 8 .u64 {name} = {value};\n"));
            }
            Some(_) => {}
            None => out.push_str(line),
        }
    }
    out
}

fn is_declaration(line: &str, name: &str) -> bool {
    line.starts_with(".extern .global ") && line.trim_end().ends_with(&format!(" {name};"))
}
