//! The place of an annotated module in its crate, and which modules can name one another's parents: the
//! images of a target are embedded once, beside a module that the others can reach.

use syn::{Attribute, ItemMod, Visibility};

/// A module that contains an annotated one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    name: String,
    reach: Reach,
    conditional: bool,
    is_public: bool,
}

/// The modules that can name a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Crate,
    /// In the parent of the module that declares it.
    Grandparent,
    Parent,
}

/// The place of an annotated module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModulePlace {
    parents: Vec<Segment>,
    name: String,
    /// Whether other crates can name it.
    is_public: bool,
    /// Whether it depends on a `cfg`; others rely only on modules that always exist.
    conditional: bool,
}

impl Segment {
    pub(super) fn of(module: &ItemMod) -> Self {
        let reach = match &module.vis {
            Visibility::Public(_) => Reach::Crate,
            Visibility::Restricted(it) if it.path.is_ident("crate") => Reach::Crate,
            Visibility::Restricted(it) if it.path.is_ident("super") => Reach::Grandparent,
            _ => Reach::Parent,
        };
        let (conditional, is_public) = (is_conditional(&module.attrs), is_public(module));
        Segment { name: module.ident.to_string(), reach, conditional, is_public }
    }
}

fn is_public(module: &ItemMod) -> bool {
    matches!(module.vis, Visibility::Public(_))
}

fn is_conditional(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| it.path().is_ident("cfg") || it.path().is_ident("cfg_attr"))
}

impl ModulePlace {
    pub(super) fn new(parents: &[Segment], module: &ItemMod) -> Self {
        let conditional = is_conditional(&module.attrs) || parents.iter().any(|segment| segment.conditional);
        let is_public = is_public(module) && parents.iter().all(|segment| segment.is_public);
        ModulePlace { parents: parents.to_vec(), name: module.ident.to_string(), is_public, conditional }
    }

    /// The path of the module that it stands in.
    pub(crate) fn parent(&self) -> String {
        let names = self.parents.iter().map(|segment| segment.name.as_str());
        std::iter::once("crate").chain(names).collect::<Vec<_>>().join("::")
    }

    /// Its path in another crate that calls this one `called`; `None` if that crate cannot always name it.
    pub(crate) fn path_from(&self, called: &str) -> Option<String> {
        let names = self.parents.iter().map(|segment| &segment.name).chain([&self.name]);
        let path = names.fold(format!("::{called}"), |path, name| format!("{path}::{name}"));
        (self.is_public && !self.conditional).then_some(path)
    }

    /// Whether code beside `other` can name the module that this one stands in.
    fn is_reached_from(&self, other: &ModulePlace) -> bool {
        self.parents.iter().enumerate().all(|(depth, segment)| {
            let within = match segment.reach {
                Reach::Crate => 0,
                Reach::Grandparent => depth.saturating_sub(1),
                Reach::Parent => depth,
            };
            let names = |place: &ModulePlace| {
                place.parents.iter().take(within).map(|it| it.name.clone()).collect::<Vec<_>>()
            };
            names(self) == names(other)
        })
    }
}

/// For each of `places` the number of the place where its images are embedded: as few as possible.
pub(crate) fn holders(places: &[&ModulePlace]) -> Vec<usize> {
    let mut by_depth: Vec<usize> = (0..places.len()).collect();
    by_depth.sort_by_key(|&at| places[at].parents.len());
    let mut holders: Vec<usize> = Vec::new();
    let mut chosen = vec![0; places.len()];
    for at in by_depth {
        let known = holders.iter().find(|&&holder| places[holder].is_reached_from(places[at]));
        chosen[at] = known.copied().unwrap_or(at);
        if known.is_none() && !places[at].conditional {
            holders.push(at);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place of the annotated module `k` in a text like `pub mod a; mod b`, from the root inwards.
    fn place(modules: &str) -> ModulePlace {
        let parse = |text: &str| syn::parse_str::<ItemMod>(&format!("{} {{}}", text.trim())).unwrap();
        let parents: Vec<Segment> =
            modules.split(';').filter(|it| !it.trim().is_empty()).map(|it| Segment::of(&parse(it))).collect();
        ModulePlace::new(&parents, &parse("mod k"))
    }

    fn chosen(places: &[&str]) -> Vec<usize> {
        let places: Vec<ModulePlace> = places.iter().map(|it| place(it)).collect();
        holders(&places.iter().collect::<Vec<_>>())
    }

    #[test]
    fn modules_of_files_at_the_root_share_one_place() {
        assert_eq!(chosen(&["mod a", "mod b", ""]), [2, 2, 2]);
        assert_eq!(place("mod a; pub mod b").parent(), "crate::a::b");
    }

    #[test]
    fn other_crates_name_modules_that_are_public_throughout() {
        let at = |modules: &str, module: &str| {
            let parse = |text: &str| syn::parse_str::<ItemMod>(&format!("{} {{}}", text.trim())).unwrap();
            let parents: Vec<Segment> = modules.split(';').map(|it| Segment::of(&parse(it))).collect();
            ModulePlace::new(&parents, &parse(module)).path_from("fg")
        };
        assert_eq!(at("pub mod a; pub mod b", "pub mod k").as_deref(), Some("::fg::a::b::k"));
        for (parents, module) in [
            ("mod a", "pub mod k"),
            ("pub mod a", "mod k"),
            ("pub(crate) mod a", "pub mod k"),
            ("#[cfg(x)] pub mod a", "pub mod k"),
            ("pub mod a", "#[cfg(x)] pub mod k"),
        ] {
            assert_eq!(at(parents, module), None, "{parents}; {module}");
        }
    }

    #[test]
    fn a_private_module_within_another_is_reached_only_from_within() {
        assert_eq!(
            chosen(&["mod a; mod b", "mod c; mod d", "mod a; mod b; mod e", "mod a; mod f"]),
            [0, 1, 0, 0]
        );
        assert_eq!(chosen(&["mod a; pub(crate) mod b", "mod c; mod d"]), [0, 0]);
        assert_eq!(
            chosen(&["mod a; mod x; pub(super) mod b", "mod a; mod y; mod z", "mod c; mod q; mod r"]),
            [0, 0, 2]
        );
        assert_eq!(chosen(&["mod a; pub mod x; pub(super) mod b", "mod a; mod y; mod z"]), [0, 0]);
    }

    #[test]
    fn optional_modules_embed_their_own_images() {
        assert_eq!(chosen(&["#[cfg(test)] mod a", "mod b", "mod c"]), [0, 1, 1]);
    }
}
