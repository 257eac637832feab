//! The names that are visible at a place, and the constructs around it. It must not know what is said
//! of either: that is in the facts, by number.

use proc_macro2::Span;
use syn::{Ident, Lifetime, Type};

use super::facts::Raised;

/// What a name stands for.
#[derive(Clone)]
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) number: usize,
    pub(super) kind: BindingKind,
    pub(super) mutable: bool,
}

/// The kinds of variables.
#[derive(Clone)]
pub(super) enum BindingKind {
    /// The kernel's `Thread`.
    Thread,
    /// `&[T]`, read-only elements.
    Input,
    /// A slice whose extents are uniform and whose elements are not.
    Output,
    /// A parameter by value, of the written type.
    Parameter(Box<Type>),
    /// Any other variable.
    Local,
}

/// A construct around the place.
pub(super) enum Frame {
    /// What may or may not be executed, by a condition.
    Condition { number: usize, raised: Raised },
    /// A loop or a labelled block.
    Target { number: usize, label: Option<Lifetime>, is_loop: bool },
    /// The body of a closure or the like: may be called any number of times, from anywhere.
    Closure { at: Span },
    /// An `unsafe` block: barriers in it are the author's responsibility.
    Unsafe,
}

/// The variables in scope, innermost last.
#[derive(Default)]
pub(super) struct Scopes {
    bindings: Vec<Binding>,
}

impl Scopes {
    pub(super) fn bind(&mut self, binding: Binding) {
        self.bindings.push(binding);
    }

    pub(super) fn find(&self, name: &Ident) -> Option<&Binding> {
        self.bindings.iter().rev().find(|binding| name == &binding.name)
    }

    /// A mark to go back to at the end of a scope.
    pub(super) fn mark(&self) -> usize {
        self.bindings.len()
    }

    pub(super) fn leave(&mut self, mark: usize) {
        self.bindings.truncate(mark);
    }
}
