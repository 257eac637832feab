//! How much the value of an expression may differ between threads, and what that rests on. Whatever is
//! not known to be uniform is taken to vary. It must not know control flow.

use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{BinOp, Expr, ExprCall, ExprField, ExprIndex, ExprPath, Ident, UnOp, parse_quote_spanned};

use super::facts::Level;
use super::flow::Walk;
use super::pattern;
use super::refusal::{Cause, CauseKind};
use super::scope::{Binding, BindingKind};
use super::{collective, function};

/// What is known of the value of an expression.
#[derive(Default)]
pub(super) struct Value {
    pub(super) level: Level,
    pub(super) leaves: Vec<Leaf>,
}

/// A part of an expression that it rests on.
pub(super) struct Leaf {
    /// What is to be asserted to be a plain number.
    expression: Option<Expr>,
    /// The variable, if it is one.
    pub(super) declaration: Option<usize>,
    /// The variable that it is a part of, or tells of.
    pub(super) asked: Option<usize>,
}

impl Value {
    pub(super) fn varying() -> Self {
        Value { level: Level::Varying, leaves: Vec::new() }
    }

    fn of(level: Level) -> Self {
        Value { level, leaves: Vec::new() }
    }

    fn leaf(level: Level, expression: Expr, declaration: Option<usize>) -> Self {
        Value { level, leaves: vec![Leaf { expression: Some(expression), declaration, asked: None }] }
    }

    /// What is asked of variable `number`.
    fn asked(level: Level, expression: Option<Expr>, number: usize) -> Self {
        Value { level, leaves: vec![Leaf { expression, declaration: None, asked: Some(number) }] }
    }

    fn and(mut self, other: Value) -> Self {
        self.level = self.level.max(other.level);
        self.leaves.extend(other.leaves);
        self
    }

    /// `expression`, whose value this is, with an assertion for each thing that it rests on.
    pub(super) fn asserted(&self, expression: Expr) -> Expr {
        if self.level == Level::Varying {
            return expression;
        }
        self.leaves.iter().filter_map(|leaf| leaf.expression.as_ref()).fold(expression, |expression, leaf| {
            let span = leaf.span();
            let path = quote_spanned!(span=> ::ferrogrid::device::uniform::checked);
            parse_quote_spanned!(span=> #path(&#leaf, #expression))
        })
    }
}

/// Methods of numbers and ranges whose result follows from their arguments.
const PURE: &[&str] = &[
    "abs",
    "abs_diff",
    "clamp",
    "count_ones",
    "count_zeros",
    "div_ceil",
    "ilog",
    "ilog10",
    "ilog2",
    "is_multiple_of",
    "is_power_of_two",
    "leading_zeros",
    "max",
    "min",
    "next_multiple_of",
    "next_power_of_two",
    "pow",
    "rem_euclid",
    "rev",
    "saturating_add",
    "saturating_mul",
    "saturating_sub",
    "step_by",
    "trailing_zeros",
    "wrapping_add",
    "wrapping_mul",
    "wrapping_sub",
];

/// Methods of slices that tell their extents.
const EXTENTS: &[&str] = &["len", "is_empty", "width", "height", "depth", "shape"];

/// Methods of output slices that leave their extents as they are.
const LEAVE_EXTENTS: &[&str] = &["get_mut", "get", "row", "fill_with", "iter_mut"];

impl Walk<'_> {
    /// Walks over `expression` and tells what is known of its value.
    pub(super) fn value(&mut self, expression: &mut Expr) -> Value {
        match expression {
            Expr::Lit(_) => Value::of(Level::Grid),
            Expr::Path(path) => self.path(path),
            Expr::Paren(inner) => self.value(&mut inner.expr),
            Expr::Group(inner) => self.value(&mut inner.expr),
            Expr::Cast(cast) => self.value(&mut cast.expr),
            Expr::Unary(unary) if !matches!(unary.op, UnOp::Deref(_)) || self.is_item(&unary.expr) => {
                self.value(&mut unary.expr)
            }
            Expr::Binary(binary) if !is_assignment(&binary.op) => {
                let left = self.value(&mut binary.left);
                let lazy = matches!(binary.op, BinOp::And(_) | BinOp::Or(_));
                if !lazy {
                    return left.and(self.value(&mut binary.right));
                }
                let number = self.enter_condition(&left, binary.left.span(), CauseKind::Branch);
                let right = self.value(&mut binary.right);
                self.leave_frame();
                self.assert_if_condition_matters(number, &left, &mut binary.left);
                left.and(right)
            }
            Expr::Range(range) => {
                let ends = range.start.iter_mut().chain(range.end.iter_mut());
                ends.fold(Value::default(), |value, end| value.and(self.value(end)))
            }
            Expr::Tuple(tuple) => self.all(tuple.elems.iter_mut()),
            Expr::Array(array) => self.all(array.elems.iter_mut()),
            Expr::MethodCall(_) => self.method_call(expression),
            Expr::Call(_) => match self.function_call(expression) {
                Some(value) => value,
                None => {
                    syn::visit_mut::visit_expr_mut(self, expression);
                    Value::varying()
                }
            },
            Expr::Index(index) => self.index(index),
            Expr::Field(field) => self.field(field),
            Expr::Block(_)
            | Expr::If(_)
            | Expr::Match(_)
            | Expr::While(_)
            | Expr::ForLoop(_)
            | Expr::Loop(_)
            | Expr::Break(_)
            | Expr::Continue(_)
            | Expr::Return(_)
            | Expr::Closure(_)
            | Expr::Unsafe(_)
            | Expr::Async(_)
            | Expr::Const(_)
            | Expr::TryBlock(_)
            | Expr::Try(_)
            | Expr::Assign(_)
            | Expr::Binary(_)
            | Expr::Reference(_)
            | Expr::RawAddr(_)
            | Expr::Let(_)
            | Expr::Macro(_) => {
                self.control(expression);
                Value::varying()
            }
            _ => {
                syn::visit_mut::visit_expr_mut(self, expression);
                Value::varying()
            }
        }
    }

    fn all<'e>(&mut self, expressions: impl Iterator<Item = &'e mut Expr>) -> Value {
        expressions.fold(Value::default(), |value, expression| value.and(self.value(expression)))
    }

    /// Whether it names something outside of the kernel: if that is a reference, as the assertion demands, its target
    /// is the same for all threads.
    fn is_item(&self, expression: &Expr) -> bool {
        plain(expression).is_some_and(|name| self.scopes.find(name).is_none())
    }

    fn path(&mut self, path: &ExprPath) -> Value {
        let expression = Expr::Path(path.clone());
        let Some(binding) = path.path.get_ident().and_then(|name| self.scopes.find(name)).cloned() else {
            return Value::leaf(Level::Grid, expression, None);
        };
        match binding.kind {
            BindingKind::Thread | BindingKind::Input | BindingKind::Output => Value::varying(),
            BindingKind::Parameter(_) | BindingKind::Local => {
                let level = self.facts.declaration(binding.number).level;
                Value::leaf(level, expression, Some(binding.number))
            }
        }
    }

    fn method_call(&mut self, expression: &mut Expr) -> Value {
        let Expr::MethodCall(call) = expression else { return Value::varying() };
        let method = call.method.to_string();
        let receiver = plain(&call.receiver).and_then(|name| self.scopes.find(name)).cloned();
        if let Some(Binding { kind: BindingKind::Thread, .. }) = receiver {
            return self.thread_method(expression);
        }
        if let Some(Binding { kind: BindingKind::Input | BindingKind::Output, number, .. }) = receiver {
            if EXTENTS.contains(&method.as_str()) {
                let level = self.facts.declaration(number).level;
                return Value::asked(level, None, number);
            }
            if !LEAVE_EXTENTS.contains(&method.as_str()) {
                self.may_write(&call.receiver);
            }
        } else if !PURE.contains(&method.as_str()) {
            self.may_write(&call.receiver);
        }
        let value = self.value(&mut call.receiver);
        let value = call.args.iter_mut().fold(value, |value, argument| value.and(self.value(argument)));
        if PURE.contains(&method.as_str()) { value } else { Value::varying() }
    }

    fn thread_method(&mut self, expression: &mut Expr) -> Value {
        let Expr::MethodCall(call) = expression else { return Value::varying() };
        call.args.iter_mut().for_each(|argument| self.visit_expr_mut(argument));
        let method = call.method.to_string();
        match collective::find(&method) {
            None => Value::of(collective::place(&method)),
            Some(_) if self.in_unsafe() => Value::varying(),
            Some(collective) => self.collective(expression, collective),
        }
    }

    fn collective(&mut self, expression: &mut Expr, collective: collective::Collective) -> Value {
        let Expr::MethodCall(call) = expression else { return Value::varying() };
        self.meet(&call.method, collective.needs);
        self.demand_promise(&call.method, collective.needs);
        *expression = collective::verified(call);
        Value::of(collective.gives)
    }

    /// An element of `&[T]`, which no thread writes while the kernel runs, or of an array.
    fn index(&mut self, index: &mut ExprIndex) -> Value {
        let input = plain(&index.expr).and_then(|name| self.scopes.find(name)).cloned();
        let Some(Binding { kind: BindingKind::Input, number, .. }) = input else {
            let base = self.value(&mut index.expr);
            return base.and(self.value(&mut index.index));
        };
        let place = self.value(&mut index.index);
        let level = self.facts.declaration(number).level;
        place.and(Value::leaf(level, Expr::Index(index.clone()), Some(number)))
    }

    /// A field of a parameter.
    fn field(&mut self, field: &mut ExprField) -> Value {
        let mut members = vec![field.member.clone()];
        let mut base = &*field.base;
        while let Expr::Field(outer) = base {
            members.insert(0, outer.member.clone());
            base = &outer.base;
        }
        let binding = plain(base).and_then(|name| self.scopes.find(name)).cloned();
        let Some(Binding { kind: BindingKind::Parameter(ty), number, .. }) = binding else {
            self.visit_expr_mut(&mut field.base);
            return Value::varying();
        };
        let level = self.facts.declaration(number).level;
        let (span, whole) = (field.span(), field.clone());
        // That the field is the type's own, and not reached through code that dereferences.
        let own: Expr = parse_quote_spanned!(span=> ::core::mem::offset_of!(#ty, #(#members).*));
        // Its own type is asserted, not that of the whole parameter.
        let leaf = Value::asked(level, Some(Expr::Field(whole)), number);
        leaf.and(Value::leaf(level, own, None))
    }

    /// Notes that `place` may be written by code that this room cannot see.
    pub(super) fn may_write(&mut self, place: &Expr) {
        let Some(name) = pattern::base(place) else { return };
        let Some(binding) = self.scopes.find(name).cloned() else { return };
        if binding.mutable {
            self.facts.raise_declaration(binding.number, Level::Varying);
        }
    }

    /// A call of `function`, which all threads of a block make together, or `None` if `expression` is none.
    fn function_call(&mut self, expression: &mut Expr) -> Option<Value> {
        let Expr::Call(call) = expression else { return None };
        let name = called(call).filter(|name| self.scopes.find(name).is_none())?.clone();
        let promise = self.functions.find(&name)?.clone();
        let values: Vec<Value> = call.args.iter_mut().map(|argument| self.passed(argument)).collect();
        if self.in_unsafe() {
            return Some(Value::varying());
        }
        let needs = promise.strictest();
        self.meet(&name, needs);
        promise.needs.iter().for_each(|&needs| self.demand_promise(&name, needs));
        for ((argument, value), decides) in call.args.iter_mut().zip(&values).zip(&promise.decide) {
            if !decides {
                continue;
            }
            if value.level > needs {
                self.refuse_argument(argument.span(), &name, needs);
            } else {
                self.rest_on(value);
                *argument = value.asserted(argument.clone());
            }
        }
        *expression = function::verified(call, &name, promise.thread);
        Some(Value::varying())
    }

    /// An argument. A slice that a kernel takes is the same in all threads, whatever is asked of it.
    fn passed(&mut self, argument: &mut Expr) -> Value {
        let input = plain(argument).and_then(|name| self.scopes.find(name)).cloned();
        if let Some(Binding { kind: BindingKind::Input, number, .. }) = input {
            return Value::asked(self.facts.declaration(number).level, None, number);
        }
        self.value(argument)
    }

    /// The barrier `name` at the place reached, which those wait for that have `needs` in common.
    fn meet(&mut self, name: &Ident, needs: Level) {
        self.note_need(needs);
        let found = self.note_collective();
        let raised = if self.facts.exit().level > found.level { self.facts.exit() } else { found };
        if raised.level > needs {
            // Never without one; and never accepted.
            let cause = raised.by.unwrap_or(Cause { at: name.span(), kind: CauseKind::Branch });
            self.refuse(name, needs, cause);
        }
    }
}

/// The function that `call` names, by its name alone.
fn called(call: &ExprCall) -> Option<&Ident> {
    let Expr::Path(ExprPath { qself: None, path, .. }) = &*call.func else { return None };
    match (path.leading_colon, path.segments.len()) {
        (None, 1) => path.segments.first().map(|segment| &segment.ident),
        _ => None,
    }
}

/// The name, if the expression is one.
fn plain(expression: &Expr) -> Option<&syn::Ident> {
    match expression {
        Expr::Path(path) => path.path.get_ident(),
        Expr::Paren(inner) => plain(&inner.expr),
        Expr::Group(inner) => plain(&inner.expr),
        _ => None,
    }
}

/// Whether `operator` is `+=` or the like.
pub(super) fn is_assignment(operator: &BinOp) -> bool {
    !matches!(
        operator,
        BinOp::Add(_)
            | BinOp::Sub(_)
            | BinOp::Mul(_)
            | BinOp::Div(_)
            | BinOp::Rem(_)
            | BinOp::And(_)
            | BinOp::Or(_)
            | BinOp::BitXor(_)
            | BinOp::BitAnd(_)
            | BinOp::BitOr(_)
            | BinOp::Shl(_)
            | BinOp::Shr(_)
            | BinOp::Eq(_)
            | BinOp::Lt(_)
            | BinOp::Le(_)
            | BinOp::Ne(_)
            | BinOp::Ge(_)
            | BinOp::Gt(_)
    )
}
