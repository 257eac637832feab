//! Decides whether `#[cfg(...)]` holds on the device.

use std::collections::BTreeSet;

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Lit, LitBool, Meta, MetaList, Token};

/// The options that hold when device code is compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cfgs {
    /// `name` or `name="value"`, as `rustc --print cfg` writes them.
    set: BTreeSet<String>,
    /// The options of the host half, if they are known.
    host: Option<BTreeSet<String>>,
}

/// The half of a program in which an item exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// In the host half; kernels that exist there have a device half, whatever the device's options say.
    Host,
    /// In the device half only.
    DeviceOnly,
}

impl Cfgs {
    /// Reads what `rustc --print cfg` prints.
    pub(crate) fn from_rustc(text: &str) -> Self {
        let set = text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
        Cfgs { set, host: None }
    }

    /// The same with the options of the host, one a line; if there are none, they count as unknown.
    pub(crate) fn beside_host(self, text: &str) -> Self {
        let host = Cfgs::from_rustc(text).set;
        Cfgs { host: (!host.is_empty()).then_some(host), ..self }
    }

    /// The options of the half that decides which files there are.
    pub(crate) fn of_host(&self) -> Self {
        Cfgs { set: self.host.clone().unwrap_or_else(|| self.set.clone()), host: None }
    }

    /// The half for which a module with these attributes exists.
    pub(crate) fn presence(&self, attributes: &[Attribute]) -> Option<Presence> {
        if self.host.is_some() && self.of_host().hold(attributes) {
            return Some(Presence::Host);
        }
        self.hold(attributes).then_some(Presence::DeviceOnly)
    }

    /// The options of the device, whatever compiles for it: enough to tell whether a package has kernels
    /// where no rustc can be asked.
    pub(crate) fn nvptx64() -> Self {
        Cfgs::from_rustc(
            "panic=\"abort\"\ntarget_arch=\"nvptx64\"\ntarget_endian=\"little\"\ntarget_os=\"cuda\"\n\
             target_pointer_width=\"64\"\ntarget_vendor=\"nvidia\"",
        )
    }

    /// The same with further options, written in the same way.
    pub(crate) fn with<'a>(&self, options: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = self.clone();
        for option in options {
            all.set.insert(option.to_owned());
            all.host.iter_mut().for_each(|host| {
                host.insert(option.to_owned());
            });
        }
        all
    }

    /// Whether all `cfg` attributes hold, those inside `cfg_attr` included.
    pub(crate) fn hold(&self, attributes: &[Attribute]) -> bool {
        attributes.iter().flat_map(|attribute| self.expand(&attribute.meta)).all(|meta| match &meta {
            Meta::List(list) if list.path.is_ident("cfg") => {
                list.parse_args::<Term>().is_ok_and(|predicate| self.holds(&predicate))
            }
            _ => true,
        })
    }

    /// The attribute as it stands once `cfg_attr` is resolved: none, itself, or several.
    pub(crate) fn expand(&self, meta: &Meta) -> Vec<Meta> {
        let Meta::List(list) = meta else { return vec![meta.clone()] };
        if !list.path.is_ident("cfg_attr") {
            return vec![meta.clone()];
        }
        let mut terms = terms(list).into_iter();
        if !terms.next().is_some_and(|predicate| self.holds(&predicate)) {
            return Vec::new();
        }
        terms
            .flat_map(|term| if let Term::Meta(meta) = term { self.expand(&meta) } else { Vec::new() })
            .collect()
    }

    fn holds(&self, predicate: &Term) -> bool {
        let predicate = match predicate {
            Term::Literal(value) => return *value,
            Term::Meta(meta) => &**meta,
        };
        match predicate {
            Meta::Path(path) => path.get_ident().is_some_and(|name| self.set.contains(&name.to_string())),
            Meta::NameValue(pair) => {
                let (Some(name), Expr::Lit(ExprLit { lit: Lit::Str(value), .. })) =
                    (pair.path.get_ident(), &pair.value)
                else {
                    return false;
                };
                self.set.contains(&format!("{name}=\"{}\"", value.value()))
            }
            Meta::List(list) => {
                let terms = terms(list);
                let mut held = terms.iter().map(|term| self.holds(term));
                match list.path.get_ident().map(ToString::to_string).as_deref() {
                    Some("all") => held.all(|it| it),
                    Some("any") => held.any(|it| it),
                    Some("not") => held.next().is_some_and(|it| !it),
                    _ => false,
                }
            }
        }
    }
}

/// An argument of `cfg` or of its operators.
enum Term {
    /// `true` or `false`, which are not a [`Meta`].
    Literal(bool),
    Meta(Box<Meta>),
}

impl Parse for Term {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(LitBool) {
            return Ok(Term::Literal(input.parse::<LitBool>()?.value));
        }
        Ok(Term::Meta(Box::new(input.parse()?)))
    }
}

fn terms(list: &MetaList) -> Vec<Term> {
    let terms = list.parse_args_with(Punctuated::<Term, Token![,]>::parse_terminated);
    terms.map(|terms| terms.into_iter().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: &str =
        "panic=\"abort\"\ntarget_arch=\"nvptx64\"\ntarget_os=\"cuda\"\ntarget_pointer_width=\"64\"\n";

    fn hold(attributes: &str) -> bool {
        let item: syn::ItemFn = syn::parse_str(&format!("{attributes} fn f() {{}}")).unwrap();
        Cfgs::from_rustc(DEVICE).with(["feature=\"fast\"", "test"]).hold(&item.attrs)
    }

    #[test]
    fn cfgs_of_the_device_hold() {
        for attributes in [
            "",
            "#[cfg(target_arch = \"nvptx64\")]",
            "#[cfg(not(unix))]",
            "#[cfg(all())]",
            "#[cfg(any(windows, target_os = \"cuda\"))]",
            "#[cfg(all(test, feature = \"fast\", not(feature = \"slow\")))]",
            "#[cfg_attr(unix, cfg(windows))]",
            "#[cfg_attr(test, inline, cfg(feature = \"fast\"))]",
            "#[cfg(test)] #[cfg(panic = \"abort\")]",
            "#[cfg(any(false, true))]",
        ] {
            assert!(hold(attributes), "{attributes}");
        }
    }

    #[test]
    fn cfgs_that_the_device_lacks_do_not_hold() {
        for attributes in [
            "#[cfg(unix)]",
            "#[cfg(target_arch = \"x86_64\")]",
            "#[cfg(not(test))]",
            "#[cfg(any())]",
            "#[cfg(any(windows, unix))]",
            "#[cfg(all(test, feature = \"slow\"))]",
            "#[cfg_attr(test, cfg(windows))]",
            "#[cfg_attr(test, cfg_attr(not(unix), cfg(windows)))]",
            "#[cfg(test)] #[cfg(debug_assertions)]",
            "#[cfg(false)]",
        ] {
            assert!(!hold(attributes), "{attributes}");
        }
    }
}
