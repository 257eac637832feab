//! The annotated module of a compiled kernel, parsed again from its file, and texts in it.

use ferrogrid_syntax::{Instance, Kernel, Module, is_module_attribute};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprLit, Item, ItemMod, Lit, Meta};

use super::{CompiledKernel, instance_of};

/// A kernel in its module.
pub(super) struct Found {
    pub(super) module: Module,
    pub(super) kernel: Kernel,
    pub(super) instance: Instance,
}

/// The kernel in the text of its file; `None` if the text is another than the compiled one.
pub(super) fn find(text: &str, kernel: &CompiledKernel) -> Option<Found> {
    let file = syn::parse_file(text).ok()?;
    let mut open: Vec<&[Item]> = vec![&file.items];
    while let Some(items) = open.pop() {
        for item in items {
            let Item::Mod(module) = item else { continue };
            if module.attrs.iter().any(is_module_attribute) {
                if let Some(found) = in_module(module, kernel) {
                    return Some(found);
                }
            } else if let Some((_, inner)) = &module.content {
                open.push(inner);
            }
        }
    }
    None
}

fn in_module(item: &ItemMod, wanted: &CompiledKernel) -> Option<Found> {
    if item.ident != wanted.module {
        return None;
    }
    let mut bare = item.clone();
    bare.attrs.retain(|other| !is_module_attribute(other));
    let mut module = Module::parse(bare).ok()?;
    let place = |it: &Kernel| instance_of(&module, it, &wanted.entry).cloned();
    let (at, instance) =
        module.kernels.iter().enumerate().find_map(|(at, kernel)| Some((at, place(kernel)?)))?;
    let kernel = module.kernels.swap_remove(at);
    Some(Found { module, kernel, instance })
}

/// The documentation in attributes: each line without the space that follows the slashes.
pub(super) fn docs(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<String> =
        lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned()).collect();
    lines.join("\n").trim().to_owned()
}

/// The signature as it is written in `text`, without its line breaks; that of a template is what the macros make of it.
pub(super) fn signature(text: &str, kernel: &Kernel) -> String {
    let function = &kernel.function;
    let start = match function.vis.span().byte_range() {
        range if range.is_empty() => function.sig.span().byte_range().start,
        range => range.start,
    };
    let end = function.block.brace_token.span.open().byte_range().start;
    match text.get(start..end) {
        Some(written) if kernel.elements.is_none() => joined(written),
        _ => function.sig.to_token_stream().to_string(),
    }
}

/// The lines of a signature as one; comments are left out.
fn joined(written: &str) -> String {
    let lines = written.lines().map(|line| line.split("//").next().unwrap_or_default().trim());
    let line = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    line.replace("( ", "(").replace(", )", ")")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_one_line() {
        let written = "pub fn f(\n    t: Thread<1>,\n    // A row for each block.\n    x: &[f32], // read\n)";
        assert_eq!(joined(written), "pub fn f(t: Thread<1>, x: &[f32])");
    }

    #[test]
    fn documentation_has_its_lines_without_slashes() {
        let item: syn::ItemFn = syn::parse_str("/// One.\n///\n///   two\n#[inline]\nfn f() {}").unwrap();
        assert_eq!(docs(&item.attrs), "One.\n\n  two");
    }
}
