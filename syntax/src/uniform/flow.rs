//! The walk over a kernel's body: scopes, branches, loops, early exits, assignments. It must not know
//! what makes a value uniform.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Error, Expr, ExprIf, ExprMatch, Ident, Item, Lifetime, Local, Macro, Pat, PatGuard, Stmt};

use super::facts::{Facts, Level, Raised};
use super::function::Functions;
use super::pattern;
use super::refusal::{Cause, CauseKind, Refusals, source, together};
use super::scope::{Binding, BindingKind, Frame, Scopes};
use super::value::{Value, is_assignment};
use crate::bounds::LaunchBounds;
use crate::parameter::{Parameter, ParameterKind};

/// One walk over a kernel's body, in the order of the text.
pub(super) struct Walk<'f> {
    pub(super) facts: &'f mut Facts,
    pub(super) scopes: Scopes,
    frames: Vec<Frame>,
    declarations: usize,
    conditions: usize,
    targets: usize,
    /// Of the kernel; `None` in other functions.
    bounds: Option<LaunchBounds>,
    /// The functions of the module that all threads call together.
    pub(super) functions: &'f Functions,
    /// What the barriers met so far need.
    needs: Vec<Level>,
    /// Those that some threads may not reach.
    refusals: Refusals,
    /// All else that is wrong.
    errors: Option<Error>,
}

impl<'f> Walk<'f> {
    pub(super) fn new(facts: &'f mut Facts, functions: &'f Functions, bounds: Option<LaunchBounds>) -> Self {
        Walk {
            facts,
            scopes: Scopes::default(),
            frames: Vec::new(),
            declarations: 0,
            conditions: 0,
            targets: 0,
            bounds,
            functions,
            needs: Vec::new(),
            refusals: Refusals::default(),
            errors: None,
        }
    }

    /// Binds the parameters of a kernel.
    pub(super) fn parameters(&mut self, parameters: &[Parameter]) {
        for parameter in parameters {
            let kind = match &parameter.kind {
                ParameterKind::Thread { .. } => BindingKind::Thread,
                ParameterKind::Input { rank: 1, .. } => BindingKind::Input,
                ParameterKind::Input { .. }
                | ParameterKind::Output { .. }
                | ParameterKind::SharedSlice { .. } => BindingKind::Output,
                _ => BindingKind::Parameter(Box::new(parameter.ty.clone())),
            };
            self.bind(&parameter.name, kind, parameter.mutable);
        }
    }

    /// Binds a parameter of another function: its number, if what barriers depend on may rest on it.
    pub(super) fn argument(&mut self, pattern: &Pat, kind: Option<BindingKind>) -> Option<usize> {
        match (pattern, kind) {
            (Pat::Ident(name), Some(kind)) => Some(self.bind(&name.ident, kind, name.mutability.is_some())),
            _ => {
                self.bind_pattern(pattern, Level::Varying, false);
                None
            }
        }
    }

    /// Whether the walk has learnt anything new, what the barriers that it met need, and what it refused.
    pub(super) fn finish(self) -> (bool, Vec<Level>, Option<Error>) {
        (self.facts.take_changed(), self.needs, self.refusals.into_error(self.errors))
    }

    /// A barrier is met that needs this.
    pub(super) fn note_need(&mut self, needs: Level) {
        if !self.needs.contains(&needs) {
            self.needs.push(needs);
            self.needs.sort_unstable();
        }
    }

    pub(super) fn function(&mut self, body: &mut Block) {
        self.block(body);
    }

    fn bind(&mut self, name: &Ident, kind: BindingKind, mutable: bool) -> usize {
        let number = self.declarations;
        self.declarations += 1;
        self.scopes.bind(Binding { name: name.to_string(), number, kind, mutable });
        number
    }

    /// Binds what `pattern` does, with values of `level`; their numbers.
    fn bind_pattern(&mut self, pattern: &Pat, level: Level, assigned_later: bool) -> Vec<usize> {
        let (names, _) = pattern::bound(pattern);
        let bind = |bound: pattern::Bound| {
            let number = self.bind(&bound.name, BindingKind::Local, bound.mutable || assigned_later);
            self.facts.raise_declaration(number, level);
            number
        };
        names.into_iter().map(bind).collect()
    }

    fn block(&mut self, block: &mut Block) {
        let mark = self.scopes.mark();
        for statement in &mut block.stmts {
            self.statement(statement);
        }
        self.scopes.leave(mark);
    }

    fn statement(&mut self, statement: &mut Stmt) {
        match statement {
            Stmt::Local(local) => self.local(local),
            Stmt::Expr(expression, _) => {
                self.value(expression);
            }
            Stmt::Macro(statement) => self.invocation(&mut statement.mac),
            Stmt::Item(Item::Macro(definition)) => self.error(
                definition.span(),
                "a kernel with barriers cannot define macros: they may hide control flow; define it outside",
            ),
            Stmt::Item(_) => {}
        }
    }

    fn local(&mut self, local: &mut Local) {
        let Some(init) = &mut local.init else {
            self.bind_pattern(&local.pat, Level::default(), true);
            return;
        };
        let value = self.value(&mut init.expr);
        if pattern::bound(&local.pat).1 {
            pattern::named(&init.expr).iter().for_each(|name| self.written(name));
        }
        if let Some((_, otherwise)) = &mut init.diverge {
            self.enter_condition(&value, local.pat.span(), CauseKind::Branch);
            self.value(otherwise);
            self.leave_frame();
        }
        let numbers = self.bind_pattern(&local.pat, value.level, false);
        if numbers.iter().any(|&number| self.facts.declaration(number).matters) {
            self.rest_on(&value);
            let init = &mut local.init.as_mut().expect("seen above").expr;
            **init = value.asserted((**init).clone());
        }
    }

    /// Expressions that are control flow, or write.
    pub(super) fn control(&mut self, expression: &mut Expr) {
        match expression {
            Expr::Block(block) => match &block.label {
                None => self.block(&mut block.block),
                Some(label) => {
                    self.enter_target(Some(label.name.clone()), false);
                    self.block(&mut block.block);
                    self.leave_frame();
                }
            },
            Expr::Unsafe(block) => {
                self.frames.push(Frame::Unsafe);
                self.block(&mut block.block);
                self.leave_frame();
            }
            Expr::If(branch) => self.branch(branch),
            Expr::Match(branch) => self.match_(branch),
            Expr::While(repeat) => {
                let mark = self.scopes.mark();
                self.enter_target(label(&repeat.label), true);
                let value = self.value(&mut repeat.cond);
                let number = self.enter_condition(&value, repeat.cond.span(), CauseKind::Loop);
                self.block(&mut repeat.body);
                self.leave_frame();
                self.assert_if_condition_matters(number, &value, &mut repeat.cond);
                self.leave_frame();
                self.scopes.leave(mark);
            }
            Expr::ForLoop(repeat) => {
                let value = self.value(&mut repeat.expr);
                let mark = self.scopes.mark();
                self.enter_target(label(&repeat.label), true);
                let number = self.enter_condition(&value, repeat.expr.span(), CauseKind::Loop);
                for variable in self.bind_pattern(&repeat.pat, value.level, false) {
                    if self.facts.declaration(variable).matters {
                        self.facts.mark_condition(number);
                    }
                }
                self.block(&mut repeat.body);
                self.leave_frame();
                self.leave_frame();
                self.scopes.leave(mark);
                self.assert_if_condition_matters(number, &value, &mut repeat.expr);
            }
            Expr::Loop(repeat) => {
                self.enter_target(label(&repeat.label), true);
                self.block(&mut repeat.body);
                self.leave_frame();
            }
            Expr::Break(exit) => {
                if let Some(value) = &mut exit.expr {
                    self.value(value);
                }
                self.jump(exit.label.as_ref(), Cause { at: exit.span(), kind: CauseKind::Break });
            }
            Expr::Continue(exit) => {
                self.jump(exit.label.as_ref(), Cause { at: exit.span(), kind: CauseKind::Continue });
            }
            Expr::Return(exit) => {
                if let Some(value) = &mut exit.expr {
                    self.value(value);
                }
                self.exit(exit.span());
            }
            Expr::Closure(closure) => {
                let mark = self.scopes.mark();
                self.frames.push(Frame::Closure { at: closure.span() });
                for pattern in &closure.inputs {
                    self.bind_pattern(pattern, Level::Varying, false);
                }
                self.value(&mut closure.body);
                self.leave_frame();
                self.scopes.leave(mark);
            }
            Expr::Async(_) | Expr::Const(_) | Expr::TryBlock(_) => {
                self.frames.push(Frame::Closure { at: expression.span() });
                visit_mut::visit_expr_mut(self, expression);
                self.leave_frame();
            }
            Expr::Try(exit) => {
                self.value(&mut exit.expr);
                self.exit(exit.span());
            }
            Expr::Assign(assignment) => {
                let value = self.value(&mut assignment.right);
                self.assign(&mut assignment.left, &value, &mut assignment.right);
            }
            Expr::Binary(binary) if is_assignment(&binary.op) => {
                let value = self.value(&mut binary.right);
                self.assign(&mut binary.left, &value, &mut binary.right);
            }
            Expr::Reference(reference) => {
                if reference.mutability.is_some() {
                    self.may_write(&reference.expr);
                }
                self.value(&mut reference.expr);
            }
            Expr::RawAddr(reference) => {
                self.may_write(&reference.expr);
                self.value(&mut reference.expr);
            }
            Expr::Let(test) => {
                self.value(&mut test.expr);
                if pattern::bound(&test.pat).1 {
                    pattern::named(&test.expr).iter().for_each(|name| self.written(name));
                }
                self.bind_pattern(&test.pat, Level::Varying, false);
            }
            Expr::Macro(invocation) => self.invocation(&mut invocation.mac),
            _ => visit_mut::visit_expr_mut(self, expression),
        }
    }

    fn branch(&mut self, branch: &mut ExprIf) {
        let mark = self.scopes.mark();
        let value = self.value(&mut branch.cond);
        let number = self.enter_condition(&value, branch.cond.span(), CauseKind::Branch);
        self.block(&mut branch.then_branch);
        self.scopes.leave(mark);
        if let Some((_, otherwise)) = &mut branch.else_branch {
            self.value(otherwise);
        }
        self.leave_frame();
        self.assert_if_condition_matters(number, &value, &mut branch.cond);
    }

    fn match_(&mut self, branch: &mut ExprMatch) {
        let value = self.value(&mut branch.expr);
        let number = self.enter_condition(&value, branch.expr.span(), CauseKind::Branch);
        let mut guards = 0;
        for arm in &mut branch.arms {
            let mark = self.scopes.mark();
            if pattern::bound(&arm.pat).1 {
                pattern::named(&branch.expr).iter().for_each(|name| self.written(name));
            }
            for variable in self.bind_pattern(&arm.pat, value.level, false) {
                if self.facts.declaration(variable).matters {
                    self.facts.mark_condition(number);
                }
            }
            if let Pat::Guard(PatGuard { guard, .. }) = &mut arm.pat {
                let guarded = self.value(guard);
                let at = guard.span();
                let number = self.enter_condition(&guarded, at, CauseKind::Branch);
                guards += 1;
                self.value(&mut arm.body);
                self.assert_if_condition_matters(number, &guarded, guard);
            } else {
                self.value(&mut arm.body);
            }
            self.scopes.leave(mark);
        }
        // A guard that fails leads to the later arms, so it stands around those, too.
        (0..=guards).for_each(|_| self.leave_frame());
        self.assert_if_condition_matters(number, &value, &mut branch.expr);
    }

    /// A macro is opaque: it may write what it names, and one that is not known may hide a jump.
    fn invocation(&mut self, invocation: &mut Macro) {
        let at = invocation.span();
        for name in identifiers(invocation.tokens.clone()) {
            if self.scopes.find(&name).is_some_and(|binding| binding.mutable) {
                self.written(&name);
            }
        }
        let jumps = identifiers(invocation.tokens.clone())
            .iter()
            .any(|name| ["break", "continue", "return"].iter().any(|jump| name == jump));
        if is_known(invocation) && !jumps {
            return;
        }
        let hidden = varying(Cause { at, kind: CauseKind::Macro });
        for frame in self.frames.iter().rev() {
            match frame {
                Frame::Closure { .. } => return,
                Frame::Target { number, .. } => self.facts.raise_target(*number, hidden),
                _ => {}
            }
        }
    }

    fn assign(&mut self, place: &mut Expr, value: &Value, right: &mut Expr) {
        let level = value.level.max(self.surroundings().level);
        let Expr::Path(path) = &*place else {
            for name in pattern::named(place) {
                self.written(&name);
            }
            self.value(place);
            return;
        };
        let Some(binding) = path.path.get_ident().and_then(|name| self.scopes.find(name)).cloned() else {
            return;
        };
        self.facts.raise_declaration(binding.number, level);
        if self.facts.declaration(binding.number).matters {
            self.rest_on(value);
            self.mark_conditions(0);
            *right = value.asserted(right.clone());
        }
    }

    /// Each thread may write something else to the variable.
    fn written(&mut self, name: &Ident) {
        if let Some(number) = self.scopes.find(name).map(|binding| binding.number) {
            self.facts.raise_declaration(number, Level::Varying);
        }
    }

    /// A `break` or `continue`.
    fn jump(&mut self, label: Option<&Lifetime>, cause: Cause) {
        let wanted = |frame: &Frame| match frame {
            Frame::Target { label: found, is_loop, .. } => match label {
                Some(label) => found.as_ref() == Some(label),
                None => *is_loop,
            },
            _ => false,
        };
        let Some(position) = self.frames.iter().rposition(wanted) else { return };
        let Frame::Target { number, .. } = self.frames[position] else { return };
        let level = self.surroundings_from(position + 1).level;
        self.facts.raise_target(number, Raised { level, by: Some(cause) });
        if self.facts.target(number).collective {
            self.mark_conditions(position + 1);
        }
    }

    /// A `return` or `?`.
    fn exit(&mut self, at: Span) {
        if self.frames.iter().any(|frame| matches!(frame, Frame::Closure { .. })) {
            return;
        }
        let (level, kind) = (self.surroundings().level, CauseKind::Return);
        self.facts.raise_exit(Raised { level, by: Some(Cause { at, kind }) });
        self.mark_conditions(0);
    }

    fn enter_target(&mut self, label: Option<Lifetime>, is_loop: bool) {
        self.frames.push(Frame::Target { number: self.targets, label, is_loop });
        self.targets += 1;
    }

    /// What follows is executed or not by `value`, at `at`; the condition's number.
    pub(super) fn enter_condition(&mut self, value: &Value, at: Span, kind: CauseKind) -> usize {
        let number = self.conditions;
        self.conditions += 1;
        if self.facts.condition_matters(number) {
            self.rest_on(value);
        }
        let raised = Raised { level: value.level, by: Some(Cause { at, kind }) };
        self.frames.push(Frame::Condition { number, raised });
        number
    }

    pub(super) fn leave_frame(&mut self) {
        self.frames.pop();
    }

    /// If a barrier depends on the condition: asserts what it rests on.
    pub(super) fn assert_if_condition_matters(&mut self, number: usize, value: &Value, condition: &mut Expr) {
        if self.facts.condition_matters(number) {
            *condition = value.asserted(condition.clone());
        }
    }

    /// The variables in `value` matter.
    pub(super) fn rest_on(&mut self, value: &Value) {
        for leaf in &value.leaves {
            if let Some(number) = leaf.declaration {
                self.facts.declaration_matters(number);
            }
            if let Some(number) = leaf.asked {
                self.facts.mark_asked(number);
            }
        }
    }

    pub(super) fn in_unsafe(&self) -> bool {
        self.frames.iter().any(|frame| matches!(frame, Frame::Unsafe))
    }

    /// A barrier is here: everything around it matters. What the place depends on.
    pub(super) fn note_collective(&mut self) -> Raised {
        for frame in &self.frames {
            if let Frame::Target { number, .. } = frame {
                self.facts.mark_target(*number);
            }
        }
        self.mark_conditions(0);
        self.surroundings()
    }

    fn mark_conditions(&mut self, from: usize) {
        for frame in &self.frames[from..] {
            if let Frame::Condition { number, .. } = frame {
                self.facts.mark_condition(*number);
            }
        }
    }

    fn surroundings(&mut self) -> Raised {
        self.surroundings_from(0)
    }

    /// The highest level among the frames from number `from` on.
    fn surroundings_from(&mut self, from: usize) -> Raised {
        let mut highest = Raised::default();
        for frame in &self.frames[from..] {
            let raised = match frame {
                Frame::Condition { raised, .. } => *raised,
                Frame::Target { number, .. } => self.facts.target(*number).raised,
                Frame::Closure { at } => varying(Cause { at: *at, kind: CauseKind::Closure }),
                Frame::Unsafe => Raised::default(),
            };
            if raised.level > highest.level {
                highest = raised;
            }
        }
        highest
    }

    /// A barrier of the grid needs a launch that has all blocks resident, one of a cluster needs clusters.
    pub(super) fn demand_promise(&mut self, name: &Ident, needs: Level) {
        let Some(bounds) = self.bounds else { return };
        let message = match needs {
            Level::Grid if !bounds.cooperative => format!(
                "`{name}` waits for all blocks, which needs them all on the device at the same time: write `#[kernel(cooperative)]`"
            ),
            Level::Cluster if !bounds.has_clusters() => format!(
                "`{name}` waits for all blocks of a cluster: say how many make one, `#[kernel(cluster = ...)]`, or that the launch says it, `#[kernel(cluster)]`"
            ),
            _ => return,
        };
        self.error(name.span(), &message);
    }

    /// An argument of a function, on which a barrier in it depends.
    pub(super) fn refuse_argument(&mut self, argument: Span, function: &Ident, needs: Level) {
        let (whole, source) = (together(needs), source(needs));
        self.error(
            argument,
            &format!(
                "a barrier in `{function}` depends on this argument, which may differ between the threads of {whole}: it does not follow from {source} alone"
            ),
        );
    }

    /// The barrier `name`, which threads part before.
    pub(super) fn refuse(&mut self, name: &Ident, needs: Level, cause: Cause) {
        self.refusals.add(name, needs, cause);
    }

    fn error(&mut self, span: Span, message: &str) {
        let error = Error::new(span, message);
        match &mut self.errors {
            Some(all) => all.combine(error),
            None => self.errors = Some(error),
        }
    }
}

impl VisitMut for Walk<'_> {
    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        self.value(expression);
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        self.block(block);
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}
}

fn varying(cause: Cause) -> Raised {
    Raised { level: Level::Varying, by: Some(cause) }
}

fn label(label: &Option<syn::Label>) -> Option<Lifetime> {
    label.as_ref().map(|label| label.name.clone())
}

fn identifiers(tokens: TokenStream) -> Vec<Ident> {
    let mut found = Vec::new();
    for tree in tokens {
        match tree {
            TokenTree::Ident(ident) => found.push(ident),
            TokenTree::Group(group) => found.extend(identifiers(group.stream())),
            _ => {}
        }
    }
    found
}

/// Macros of `core` that jump nowhere but into a panic; named by their full path from here on, so that
/// no other macro of that name is meant.
fn is_known(invocation: &mut Macro) -> bool {
    const KNOWN: [&str; 11] = [
        "assert",
        "assert_eq",
        "assert_ne",
        "debug_assert",
        "debug_assert_eq",
        "debug_assert_ne",
        "matches",
        "panic",
        "todo",
        "unimplemented",
        "unreachable",
    ];
    let Some(name) = invocation.path.get_ident().cloned() else { return false };
    let known = KNOWN.iter().any(|known| name == known);
    if known {
        invocation.path = syn::parse_quote_spanned!(name.span()=> ::core::#name);
    }
    known
}
