//! The module tree of a cargo target: from its root file through every `mod x;` that exists on the device, to
//! the annotated modules.
//!
//! | file | holds |
//! |---|---|
//! | `paths.rs` | which file holds `mod x;` |
//! | `sources.rs` | source files, parsed once |
//! | `includes.rs` | the files that `include!` and the like name |
//! | `names.rs` | what the tokens of a module mention |
//! | `items.rs` | the items of annotated modules, and the names that they mention |
//! | `reach.rs` | which items of other modules a part needs |
//! | `place.rs` | where an annotated module is in its crate |

mod includes;
mod items;
mod names;
mod paths;
mod place;
mod reach;
mod sources;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ferrogrid_syntax::{
    Argument, Arithmetic, Fingerprint, LaunchBounds, Module, ModuleOptions, is_module_attribute,
};
use syn::spanned::Spanned;
use syn::{Attribute, Item, ItemMacro, ItemMod, Meta, Token, Visibility};

use crate::error::Error;
use crate::options::Arch;
use crate::source::cfg::{Cfgs, Presence};
use items::FoundItem;
use paths::Place;
pub(crate) use paths::normal;

use place::Segment;
pub(crate) use place::{ModulePlace, holders};
pub(crate) use sources::Sources;
use sources::{Parsed, Source};

/// The result of a walk.
#[derive(Debug, Default)]
pub(crate) struct ModuleTree {
    /// The files with kept parts; `root` is the first that was entered.
    pub(crate) files: Vec<SourceFile>,
    /// The index of the root file, if it has kept parts.
    pub(crate) root: Option<usize>,
    /// The annotated modules, in order of appearance.
    pub(crate) modules: Vec<FoundModule>,
    /// The items of each annotated module.
    items: Vec<Vec<FoundItem>>,
    /// Every file that was read, or looked for and not found.
    pub(crate) visited: BTreeSet<PathBuf>,
    /// Files that annotated modules include.
    pub(crate) included: Vec<Included>,
    /// Nightly features that the crate asks for in its root file.
    pub(crate) features: BTreeSet<String>,
    /// Files that could not be read, with the place that names them; the host's compiler reports them, too.
    pub(crate) unreadable: Vec<String>,
}

/// A file that a source file includes by a path relative to itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Included {
    pub(crate) from: PathBuf,
    pub(crate) path: String,
}

/// A source file, and the parts of it that stay in the device crate.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) source: Rc<Source>,
    /// Sorted, disjoint.
    pub(crate) parts: Vec<Part>,
}

/// A part of a file that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) range: Range<usize>,
    pub(crate) content: Content,
}

/// The replacement of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// The text itself.
    Same,
    /// The attribute of the annotated module with this number.
    Attribute(usize),
    /// A declaration (`pub mod x;`) of the module in another file.
    File { declaration: String, file: usize },
    /// The annotated module with this number.
    Module(usize),
    /// `include!` of another file.
    Include { file: usize },
}

/// An annotated module.
#[derive(Debug, Clone)]
pub(crate) struct FoundModule {
    pub(crate) name: String,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) file: PathBuf,
    /// The line of its name and its last line, counted from 1.
    pub(crate) line: usize,
    pub(crate) last_line: usize,
    /// The architectures that it names, if any.
    pub(crate) archs: Vec<Arch>,
    /// The kernels whose `cfg`s hold.
    pub(crate) kernels: Vec<FoundKernel>,
    /// Whether something inside depends on `cfg(test)`.
    pub(crate) depends_on_test: bool,
    /// The names at the start of paths in it, which may be crates.
    pub(crate) names: BTreeSet<String>,
    /// Whether it has statics that kernels of several modules could share.
    pub(crate) has_statics: bool,
    /// The functions of other device code that it declares, and the files that it names for them.
    pub(crate) externs: Vec<String>,
    pub(crate) links: Vec<PathBuf>,
    /// Where it is in the crate.
    pub(crate) place: ModulePlace,
}

impl ModuleTree {
    /// For each module, the places of the items that a part of the crate with `modules` does not need.
    pub(crate) fn unneeded(&self, modules: &[usize]) -> Vec<Vec<Range<usize>>> {
        reach::unneeded(&self.items, modules)
    }
}

/// An instance of a kernel that the PTX must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundKernel {
    /// Its name, `fill`.
    pub(crate) name: String,
    /// Its arguments as written, if it is generic: `f32, 8`.
    pub(crate) arguments: Vec<String>,
    /// The line of its name and the line on which it ends, counted from 1.
    pub(crate) lines: (usize, usize),
    pub(crate) entry: String,
    pub(crate) parameters: (usize, usize),
    /// The rank of its grid.
    pub(crate) rank: usize,
    /// Its launch bounds.
    pub(crate) bounds: LaunchBounds,
    /// Its arithmetic, where it chooses one.
    pub(crate) arithmetic: Arithmetic,
}

/// Walks the tree that begins in `root`.
///
/// # Errors
/// If a file that exists cannot be read. Missing files and syntax errors are left to the compiler
/// of the host half, which reports them better.
pub(crate) fn walk(root: &Path, cfgs: &Cfgs, sources: &mut Sources) -> Result<ModuleTree, Error> {
    let mut walker =
        Walker { cfgs, sources, tree: ModuleTree::default(), entered: Vec::new(), path: Vec::new() };
    walker.tree.root = walker.file(root, Place::of_root(root))?;
    Ok(walker.tree)
}

struct Walker<'a> {
    cfgs: &'a Cfgs,
    sources: &'a mut Sources,
    tree: ModuleTree,
    /// The files on the way here, against cycles.
    entered: Vec<PathBuf>,
    /// The modules on the way here.
    path: Vec<Segment>,
}

impl Walker<'_> {
    /// Walks one file; `None` if no part of it is kept.
    fn file(&mut self, path: &Path, place: Place) -> Result<Option<usize>, Error> {
        self.tree.visited.insert(path.to_owned());
        if self.entered.iter().any(|entered| entered == path) {
            return Ok(None);
        }
        let source = self.sources.get(path)?;
        let file = match &source.parsed {
            Parsed::File(file) => file,
            Parsed::NoModules => return Ok(None),
            Parsed::Unreadable(reason) => {
                self.tree.unreadable.push(reason.clone());
                return Ok(None);
            }
        };
        if self.entered.is_empty() {
            self.tree.features = features(&file.attrs, self.cfgs);
        }
        self.entered.push(path.to_owned());
        let mut parts = Vec::new();
        self.items(&file.items, path, &place, &mut parts)?;
        self.entered.pop();
        if parts.is_empty() {
            return Ok(None);
        }
        self.tree.files.push(SourceFile { path: path.to_owned(), source: Rc::clone(&source), parts });
        Ok(Some(self.tree.files.len() - 1))
    }

    /// The items of a file or of an inline module. Modules of the host come first: a device-only module gives
    /// way to one of the same name in which the host has kernels.
    fn items(
        &mut self,
        items: &[Item],
        path: &Path,
        place: &Place,
        parts: &mut Vec<Part>,
    ) -> Result<(), Error> {
        let presence = |item: &Item| match item {
            Item::Mod(module) => self.cfgs.presence(&module.attrs),
            Item::Macro(call) => self.cfgs.presence(&call.attrs),
            _ => None,
        };
        let present: Vec<Option<Presence>> = items.iter().map(presence).collect();
        let (first, mut of_host) = (parts.len(), Vec::new());
        for wanted in [Presence::Host, Presence::DeviceOnly] {
            for (item, _) in items.iter().zip(&present).filter(|(_, presence)| **presence == Some(wanted)) {
                let name = if let Item::Mod(module) = item { Some(&module.ident) } else { None };
                if wanted == Presence::DeviceOnly && name.is_some_and(|name| of_host.contains(&name)) {
                    continue;
                }
                let before = parts.len();
                self.item(item, path, place, parts)?;
                if wanted == Presence::Host && parts.len() > before {
                    of_host.extend(name);
                }
            }
        }
        parts[first..].sort_by_key(|part| part.range.start);
        Ok(())
    }

    fn item(&mut self, item: &Item, path: &Path, place: &Place, parts: &mut Vec<Part>) -> Result<(), Error> {
        match item {
            Item::Mod(module) => self.module(module, path, place, parts),
            Item::Macro(call) => self.include(call, path, parts),
            _ => Ok(()),
        }
    }

    /// `include!` of a file with items, which may have modules of kernels.
    fn include(&mut self, call: &ItemMacro, path: &Path, parts: &mut Vec<Part>) -> Result<(), Error> {
        let Some(file) = includes::file_of(&call.mac, path) else { return Ok(()) };
        if !file.is_file() {
            return Ok(());
        }
        if let Some(index) = self.file(&file, Place::of_root(&file))? {
            let range = call.mac.path.span().byte_range().start..end_of(call);
            parts.push(Part { range, content: Content::Include { file: index } });
        }
        Ok(())
    }

    fn module(
        &mut self,
        module: &ItemMod,
        path: &Path,
        place: &Place,
        parts: &mut Vec<Part>,
    ) -> Result<(), Error> {
        if let Some(attribute) = module.attrs.iter().find(|attribute| is_module_attribute(attribute)) {
            self.annotated(module, attribute, path, parts);
            return Ok(());
        }
        self.path.push(Segment::of(module));
        let walked = self.plain_module(module, path, place, parts);
        self.path.pop();
        walked
    }

    /// Walks a module that is not annotated itself.
    fn plain_module(
        &mut self,
        module: &ItemMod,
        path: &Path,
        place: &Place,
        parts: &mut Vec<Part>,
    ) -> Result<(), Error> {
        let redirect = path_attribute(&module.attrs, &self.cfgs.of_host());
        match &module.content {
            Some((brace, items)) => {
                let inner = place.inline(&module.ident, redirect.as_deref());
                let mut inside = Vec::new();
                self.items(items, path, &inner, &mut inside)?;
                if !inside.is_empty() {
                    let open = brace.span.open().byte_range();
                    parts.push(same(start(module)..open.end));
                    parts.append(&mut inside);
                    parts.push(same(brace.span.close().byte_range()));
                }
            }
            None => {
                let Some((file, inner)) = place.file(&module.ident, redirect.as_deref()) else {
                    self.tree.visited.insert(place.expected(&module.ident, redirect.as_deref()));
                    return Ok(());
                };
                if let Some(index) = self.file(&file, inner)? {
                    let end = module.semi.map_or(module.ident.span(), |semi| semi.span).byte_range().end;
                    let declaration = declaration(module);
                    let content = Content::File { declaration, file: index };
                    parts.push(Part { range: start(module)..end, content });
                }
            }
        }
        Ok(())
    }

    fn annotated(&mut self, item: &ItemMod, attribute: &Attribute, path: &Path, parts: &mut Vec<Part>) {
        // Errors of a module or its kernels are reported once, by the macro on the host.
        let Ok(options) = ModuleOptions::from_attribute(attribute) else { return };
        if options.host_only {
            return;
        }
        let mut bare = item.clone();
        bare.attrs.retain(|other| !is_module_attribute(other));
        let Ok(module) = Module::parse(bare) else { return };
        let Some((brace, _)) = &item.content else { return };
        let from = attribute.pound_token.span.byte_range().start;
        let to = attribute.bracket_token.span.close().byte_range().end;
        parts.push(Part { range: from..to, content: Content::Attribute(self.tree.modules.len()) });
        let range = start(item)..brace.span.close().byte_range().end;
        parts.push(Part { range, content: Content::Module(self.tree.modules.len()) });
        let cfgs = &self.cfgs;
        let kernels = module.kernels.iter().filter(|kernel| cfgs.hold(&kernel.function.attrs));
        let kernels = kernels.flat_map(|kernel| {
            let function = &kernel.function;
            let lines =
                (function.sig.ident.span().start().line, function.block.brace_token.span.close().end().line);
            let listed = kernel.instances.iter().filter(|instance| cfgs.hold(&instance.cfgs));
            listed.map(move |instance| FoundKernel {
                name: kernel.bare_name(),
                arguments: instance.arguments.iter().map(Argument::value).collect(),
                lines,
                entry: kernel.entry(instance, module.fingerprint),
                parameters: kernel.flattened(),
                rank: kernel.rank,
                bounds: kernel.bounds,
                arithmetic: kernel.arithmetic,
            })
        });
        let kernels = kernels.collect();
        let names = names::of(item);
        for included in names.tokens.iter().flat_map(includes::within) {
            let original = path.with_file_name(&included);
            if original.is_file() {
                self.tree.visited.insert(original);
                self.tree.included.push(Included { from: path.to_owned(), path: included });
            }
        }
        let externs = || module.externs.iter().filter(|it| self.cfgs.hold(&it.item.attrs));
        self.tree.modules.push(FoundModule {
            name: module.name.to_string(),
            fingerprint: module.fingerprint,
            file: path.to_owned(),
            line: item.ident.span().start().line,
            last_line: brace.span.close().end().line,
            // The options are those of known architectures only.
            archs: options.archs.iter().filter_map(|name| name.parse().ok()).collect(),
            kernels,
            depends_on_test: names.cfg_test,
            names: names.path_starts,
            has_statics: names.has_statics,
            externs: externs().flat_map(|it| it.functions.iter().map(|it| it.symbol.clone())).collect(),
            links: externs()
                .flat_map(|it| it.files.iter().map(|it| path.with_file_name(it.value())))
                .collect(),
            place: ModulePlace::new(&self.path, item),
        });
        self.tree.items.push(names.items);
    }
}

/// The end of a macro call, its semicolon included.
fn end_of(call: &ItemMacro) -> usize {
    let group = call.mac.delimiter.span().close();
    call.semi_token.map_or(group, |semi| semi.span).byte_range().end
}

fn same(range: Range<usize>) -> Part {
    Part { range, content: Content::Same }
}

/// The start of a module, after its attributes.
fn start(module: &ItemMod) -> usize {
    let first = match (&module.vis, &module.unsafety) {
        (Visibility::Inherited, Some(token)) => token.span,
        (Visibility::Inherited, None) => module.mod_token.span,
        (Visibility::Public(token), _) => token.span,
        (Visibility::Restricted(restricted), _) => restricted.pub_token.span,
    };
    first.byte_range().start
}

/// `pub(crate) mod x;`
fn declaration(module: &ItemMod) -> String {
    use quote::ToTokens;
    format!("{} mod {};", module.vis.to_token_stream(), module.ident).trim_start().to_owned()
}

/// The value of `#[path = "..."]`, also behind a `cfg_attr` that holds.
fn path_attribute(attributes: &[Attribute], cfgs: &Cfgs) -> Option<String> {
    attributes.iter().flat_map(|attribute| cfgs.expand(&attribute.meta)).find_map(|meta| {
        let Meta::NameValue(pair) = meta else { return None };
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(value), .. }) = &pair.value else {
            return None;
        };
        pair.path.is_ident("path").then(|| value.value())
    })
}

/// The names in `#![feature(a, b)]`.
fn features(attributes: &[Attribute], cfgs: &Cfgs) -> BTreeSet<String> {
    let metas = attributes.iter().flat_map(|attribute| cfgs.expand(&attribute.meta));
    let lists = metas.filter_map(|meta| match meta {
        Meta::List(list) if list.path.is_ident("feature") => {
            list.parse_args_with(syn::punctuated::Punctuated::<syn::Ident, Token![,]>::parse_terminated).ok()
        }
        _ => None,
    });
    lists.flatten().map(|name| name.to_string()).collect()
}
