//! The variables that a pattern brings in, and those that an expression names as places to write. It
//! must not know levels.

use syn::visit::{self, Visit};
use syn::{Expr, ExprPath, Ident, Pat, PatIdent};

/// A variable of a pattern.
pub(super) struct Bound {
    pub(super) name: Ident,
    pub(super) mutable: bool,
}

/// What `pattern` binds, and whether it takes a mutable reference to a part of what it matches.
pub(super) fn bound(pattern: &Pat) -> (Vec<Bound>, bool) {
    struct Names {
        found: Vec<Bound>,
        borrows: bool,
    }
    impl Visit<'_> for Names {
        fn visit_pat_ident(&mut self, pattern: &PatIdent) {
            let mutable = pattern.mutability.is_some();
            self.borrows |= mutable && pattern.by_ref.is_some();
            self.found.push(Bound { name: pattern.ident.clone(), mutable });
            visit::visit_pat_ident(self, pattern);
        }
        fn visit_expr(&mut self, _: &Expr) {}
    }
    let mut names = Names { found: Vec::new(), borrows: false };
    names.visit_pat(pattern);
    (names.found, names.borrows)
}

/// Every variable that `expression` names.
pub(super) fn named(expression: &Expr) -> Vec<Ident> {
    struct Named(Vec<Ident>);
    impl Visit<'_> for Named {
        fn visit_expr_path(&mut self, path: &ExprPath) {
            self.0.extend(path.path.get_ident().cloned());
        }
    }
    let mut named = Named(Vec::new());
    named.visit_expr(expression);
    named.0
}

/// The variable that the place `expression` is, or is a part of.
pub(super) fn base(expression: &Expr) -> Option<&Ident> {
    match expression {
        Expr::Path(path) => path.path.get_ident(),
        Expr::Field(field) => base(&field.base),
        Expr::Index(index) => base(&index.expr),
        Expr::Paren(inner) => base(&inner.expr),
        Expr::Group(inner) => base(&inner.expr),
        _ => None,
    }
}
