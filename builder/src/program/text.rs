//! The text of a program: its annotated modules, or the whole text as the content of one.

use ferrogrid_syntax::{Module, ModuleOptions, is_module_attribute};
use proc_macro2::{LineColumn, TokenStream, TokenTree};
use syn::Item;

use super::Program;
use crate::error::Error;

/// The text before and after a program without an annotated module. The end begins a new line, since the
/// program may end in a comment. The prelude comes last, since the program may begin with attributes and
/// documentation of the module.
const BEFORE: &str = "#[ferrogrid::module] pub mod program { ";
const AFTER: &str = "\n#[allow(unused_imports)] use ferrogrid::device::prelude::*; }\n";

/// A program's text as rustc compiles it.
pub(super) struct Text {
    /// The name of its file.
    pub(super) file: String,
    pub(super) whole: String,
    /// Its annotated modules, with their paths.
    pub(super) modules: Vec<(String, Module)>,
}

impl Text {
    /// # Errors
    /// [`Error::Syntax`], with all problems that the text alone shows; [`Error::UnsafeProgram`].
    pub(super) fn read(program: &Program) -> Result<Self, Error> {
        let wrong = |error: &syn::Error, shift: usize| Error::Syntax {
            name: program.name.clone(),
            problems: error.into_iter().map(|it| problem(&it, shift)).collect(),
        };
        let tokens: TokenStream = program.text.parse().map_err(|error: proc_macro2::LexError| {
            wrong(
                &syn::Error::new(error.span(), "the text is not Rust: a quote or bracket has no counterpart"),
                0,
            )
        })?;
        if !program.allows_unsafe
            && let Some(at) = unsafe_token(tokens)
        {
            let finding = format!("has `unsafe` code at {}:{}", at.line, at.column + 1);
            return Err(Error::UnsafeProgram { name: program.name.clone(), finding });
        }
        let file = syn::parse_file(&program.text).map_err(|error| wrong(&error, 0))?;
        let is_wrapped = !has_module(&file.items);
        let (whole, items, shift) = if is_wrapped {
            let whole = format!("{BEFORE}{}{AFTER}", program.text);
            let file = syn::parse_file(&whole).map_err(|error| wrong(&error, BEFORE.len()))?;
            (whole, file.items, BEFORE.len())
        } else {
            (program.text.clone(), file.items, 0)
        };
        let mut modules = Vec::new();
        collect(items, "", &mut modules).map_err(|error| wrong(&error, shift))?;
        Ok(Text { file: file_name(&program.name), whole, modules })
    }
}

/// Line, column and message of an error, counted from 1; `shift` is what the first line is longer than the
/// user's.
fn problem(error: &syn::Error, shift: usize) -> (usize, usize, String) {
    let LineColumn { line, column } = error.span().start();
    let column = if line == 1 { column.saturating_sub(shift) } else { column };
    (line, column + 1, error.to_string())
}

/// The place of the first `unsafe`, whatever it is part of: a macro may make code of any token.
fn unsafe_token(tokens: TokenStream) -> Option<LineColumn> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Ident(ident) if ident == "unsafe" => Some(ident.span().start()),
        TokenTree::Group(group) => unsafe_token(group.stream()),
        _ => None,
    })
}

fn is_annotated(item: &syn::ItemMod) -> bool {
    item.attrs.iter().any(is_module_attribute)
}

fn has_module(items: &[Item]) -> bool {
    items.iter().any(|item| match item {
        Item::Mod(item) => {
            is_annotated(item) || item.content.as_ref().is_some_and(|(_, items)| has_module(items))
        }
        _ => false,
    })
}

fn collect(items: Vec<Item>, path: &str, found: &mut Vec<(String, Module)>) -> syn::Result<()> {
    const FILES: &str = "a program is a single text: move the contents of other files into it";
    for item in items {
        let mut item = match item {
            Item::Mod(item) if item.content.is_none() => return Err(syn::Error::new_spanned(item, FILES)),
            Item::Mod(item) => item,
            Item::Macro(it) if it.mac.path.is_ident("include") => {
                return Err(syn::Error::new_spanned(it, FILES));
            }
            _ => continue,
        };
        let path = format!("{path}{}", item.ident);
        if let Some(at) = item.attrs.iter().position(is_module_attribute) {
            let options = ModuleOptions::from_attribute(&item.attrs.remove(at))?;
            if !options.host_only {
                let module = Module::parse(item)?;
                if let Some(file) = module.externs.iter().find_map(|it| it.files.first()) {
                    return Err(syn::Error::new_spanned(file, FILES));
                }
                found.push((path, module));
            }
        } else if let Some((_, items)) = item.content {
            collect(items, &format!("{path}::"), found)?;
        }
    }
    Ok(())
}

/// A file name that rustc accepts, and without its extension as the name of a crate.
fn file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = last.strip_suffix(".rs").unwrap_or(last);
    let mut stem: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(64).collect();
    if !stem.starts_with(|c: char| c.is_ascii_alphabetic()) {
        stem.insert_str(0, "program_");
    }
    format!("{stem}.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: &str =
        "#[kernel]\npub fn zero(t: Thread<1>, mut y: DisjointSlice<f32>) { let _ = (t, &mut y); }\n";

    fn read(text: &str) -> Result<Text, Error> {
        Text::read(&Program::new("zero.rs", text))
    }

    #[test]
    fn items_become_the_content_of_a_module_on_the_same_lines() {
        let text = read(&format!("//! Zeros.\n{ZERO}// the end")).unwrap();
        assert_eq!(text.whole.lines().nth(2), ZERO.lines().nth(1));
        let [(path, module)] = text.modules.as_slice() else { panic!() };
        assert_eq!((path.as_str(), module.kernels[0].bare_name()), ("program", "zero".to_owned()));
    }

    #[test]
    fn annotated_modules_stay_as_they_are() {
        let module = format!("mod outer {{ #[ferrogrid::module]\npub mod inner {{ {ZERO} }} }}\n");
        let text = read(&module).unwrap();
        assert_eq!((text.whole.as_str(), text.modules[0].0.as_str()), (module.as_str(), "outer::inner"));
        let host = module.replace("module]", "module(host_only)]");
        assert!(read(&host).unwrap().modules.is_empty());
    }

    #[test]
    fn errors_have_their_place_in_the_users_text() {
        let problems = |text: &str| -> Vec<(usize, usize)> {
            match read(text) {
                Err(Error::Syntax { problems, .. }) => problems.into_iter().map(|(l, c, _)| (l, c)).collect(),
                other => panic!("{:?}", other.err()),
            }
        };
        assert_eq!(problems("fn f() { 1 + }"), [(1, 14)]);
        assert_eq!(problems("fn f() {\n \"open }"), [(2, 2)]);
        let kernel = "#[kernel] fn a(x: &[f32]) {}\n#[kernel] fn b(t: Thread<1>) -> u32 { 1 }";
        assert_eq!(problems(kernel), [(1, 15), (2, 33)]);
        for other_file in ["mod other;", "#[path = \"/x.rs\"] mod other;", "include!(\"/x.rs\");"] {
            assert_eq!(problems(&format!("#[ferrogrid::module] mod m {{}}\n{other_file}")), [(2, 1)]);
        }
    }

    #[test]
    fn unsafe_code_is_found_at_any_depth() {
        for text in
            ["fn f() { unsafe { g() } }", "macro_rules! m { () => { unsafe { g() } } }", "unsafe fn f() {}"]
        {
            let error = read(text).err().unwrap().to_string();
            assert!(error.contains("has `unsafe` code at 1:"), "{text}: {error}");
            Text::read(&Program { allows_unsafe: true, ..Program::new("a.rs", text) }).unwrap();
        }
        read("fn f() -> &'static str { \"unsafe\" } // unsafe").unwrap();
    }

    #[test]
    fn any_name_gives_a_file_that_rustc_takes() {
        for (name, file) in
            [("a/b-c.rs", "b_c.rs"), ("saxpy", "saxpy.rs"), ("3.rs", "program_3.rs"), ("..", "program___.rs")]
        {
            assert_eq!(file_name(name), file);
        }
    }
}
