//! Expansions of modules, on both sides. Texts are compared without spaces, with `p::` for the private path
//! of the host half, and `d::` for that of the device half.
//!
//! `modules` has modules as a whole, `kinds` each kind of parameter, `templates` `#[elementwise]` and the like, and
//! `book` the expansions that the book shows.

mod book;
mod kinds;
mod modules;
mod templates;

use super::*;

fn parsed(text: &str) -> Module {
    Module::parse(syn::parse_str(text).unwrap()).unwrap()
}

fn text(tokens: impl ToString) -> String {
    let text = tokens.to_string().replace(char::is_whitespace, "");
    text.replace("::ferrogrid::__private::", "p::").replace("::ferrogrid::device::", "d::")
}

/// The half for a host without device code.
fn on_host(module: &str) -> String {
    text(host::module(&parsed(module), &Code::HostOnly, None))
}

/// The half for a device, with entry points.
fn on_device(module: &str) -> String {
    text(device::module(&parsed(module), true))
}

/// The text between the first occurrences of two texts.
#[track_caller]
fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before:?} in {text}"));
    rest.split_once(after).unwrap_or_else(|| panic!("no {after:?} behind {before:?} in {text}")).0
}

#[track_caller]
fn has(text: &str, part: &str) {
    let part = part.replace(char::is_whitespace, "");
    assert!(text.contains(&part), "{part}\nis not in\n{text}");
}

#[track_caller]
fn has_not(text: &str, part: &str) {
    assert!(!text.contains(part), "{part}\nis in\n{text}");
}
