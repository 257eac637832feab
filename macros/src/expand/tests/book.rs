//! The expansions that `docs/src/internals/macros.md` shows are current. `FERROGRID_RENEW_EXPANSIONS=1` rewrites
//! them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proc_macro2::TokenStream;
use syn::{Item, ItemMod};

use super::*;

fn chapter() -> PathBuf {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.map(|it| it.join("docs/src/internals/macros.md")).find(|it| it.exists()).expect("the chapter")
}

/// The block of code below the comment with this name.
fn block<'t>(text: &'t str, name: &str) -> &'t str {
    between(text, &format!("<!-- expansion: {name} -->\n```text,form\n"), "\n```")
}

/// The function that the expansion adds for kernel `k`, the last of such a name, without its attributes.
fn added(module: TokenStream) -> TokenStream {
    let module: ItemMod = syn::parse2(module).expect("a module");
    let items = module.content.expect("a module with content").1;
    let mut functions = items.into_iter().filter_map(|item| match item {
        Item::Fn(function) if function.sig.ident.to_string().starts_with('k') => Some(function),
        _ => None,
    });
    let mut function = functions.next_back().expect("a function");
    function.attrs.clear();
    quote!(#function)
}

fn formatted(code: &TokenStream) -> String {
    let mut rustfmt = Command::new("rustfmt");
    let rustfmt = rustfmt.args(["--edition", "2024"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = rustfmt.spawn().expect("rustfmt");
    running.stdin.take().unwrap().write_all(code.to_string().as_bytes()).unwrap();
    String::from_utf8(running.wait_with_output().unwrap().stdout).unwrap().trim_end().to_owned()
}

/// Without spaces, and without the commas and empty lists that rustfmt adds or removes.
fn unformatted(code: &str) -> String {
    let code = code.replace(char::is_whitespace, "").replace("::<>", "");
    [")", ">", "}", "]"].iter().fold(code, |code, end| code.replace(&format!(",{end}"), end))
}

#[test]
fn the_expansions_in_the_book_are_current() {
    let mut text = std::fs::read_to_string(chapter()).unwrap();
    let module = parsed(block(&text, "module"));
    let expansions =
        [("host", host::module(&module, &Code::HostOnly, None)), ("device", device::module(&module, true))];
    for (name, expansion) in expansions {
        let expansion = added(expansion);
        if std::env::var_os("FERROGRID_RENEW_EXPANSIONS").is_some() {
            text = text.replace(block(&text, name), &formatted(&expansion));
        }
        let hint = "FERROGRID_RENEW_EXPANSIONS=1 makes this test rewrite it";
        let (shown, current) = (unformatted(block(&text, name)), unformatted(&expansion.to_string()));
        assert_eq!(shown, current, "the {name} half has changed: {hint}");
    }
    std::fs::write(chapter(), text).unwrap();
}
