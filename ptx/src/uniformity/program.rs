//! The analysis of a program: the summaries of its functions, for arguments and results of calls.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::function::{Analysis, Facts, Needs, Summary, needed};
use super::{Divergence, Level, Shape, needs, waits_for_lanes};
use crate::{Body, Calls, Function, Item, Module, Registers, Statement};

/// A program to analyse. What the questions about its functions have in common is read once.
pub struct Program<'m, 't> {
    module: &'m Module<'t>,
    /// Those of each item that was analysed.
    facts: Vec<OnceCell<Facts<'t>>>,
}

impl<'m, 't> Program<'m, 't> {
    /// The program that `module` is.
    pub fn of(module: &'m Module<'t>) -> Self {
        Program { module, facts: module.items.iter().map(|_| OnceCell::new()).collect() }
    }

    /// Its text, parsed.
    pub fn module(&self) -> &'m Module<'t> {
        self.module
    }

    /// The registers of a function: the number of its item, and its body.
    pub fn registers(&self, item: usize, body: &Body<'t>) -> &Registers<'t> {
        &self.facts(item, body).registers
    }

    fn facts(&self, item: usize, body: &Body<'t>) -> &Facts<'t> {
        self.facts[item].get_or_init(|| Facts::of(body))
    }

    /// The barriers that threads may not reach together.
    pub fn divergences(&self) -> Vec<Divergence> {
        analysed(self, needs, None::<fn(&str) -> Shape>)
    }

    /// The warp operations that some lanes of a warp may not reach together with the others, or with another
    /// mask: function, as an item of the module, and statement; and whether the mask may differ. `shape` gives
    /// the block shape of an entry point.
    pub fn unproven_lanes(&self, shape: impl Fn(&str) -> Shape) -> BTreeMap<(usize, usize), bool> {
        let waits = |statement: &Statement<'_>| waits_for_lanes(statement).then_some(Level::Warp);
        let (module, places) = (self.module, analysed(self, waits, Some(shape)));
        let (mut found, mut called) = (BTreeMap::new(), Vec::new());
        for Divergence { item, barrier, differs, .. } in places {
            let Item::Function(function) = &module.items[item] else { continue };
            let callee = function.statements()[barrier].instruction().and_then(|it| it.callee());
            match callee {
                Some(callee) => called.push(callee),
                None => {
                    found.insert((item, barrier), differs);
                }
            }
        }
        if called.is_empty() {
            return found;
        }
        // A function called by some lanes only has no operation that all lanes reach.
        let calls = Calls::of(module);
        let called = called.into_iter().filter_map(|callee| calls.definition(callee));
        for item in calls.reachable(called, |_| false) {
            let Item::Function(function) = &module.items[item] else { continue };
            let statements = function.statements().iter().enumerate();
            for (at, _) in statements.filter(|it| waits_for_lanes(it.1)) {
                found.entry((item, at)).or_insert(false);
            }
        }
        found
    }
}

/// The divergences of a program at the level that `needs` gives for each statement. With a `shape`, the bits
/// of lanes are tracked, too.
fn analysed(
    program: &Program<'_, '_>,
    needs: Needs,
    shape: Option<impl Fn(&str) -> Shape>,
) -> Vec<Divergence> {
    let module = program.module;
    let follows_lanes = shape.is_some();
    let shape = |entry: &str| shape.as_ref().map_or([None; 3], |shape| shape(entry));
    let functions: Vec<(usize, &Function<'_>, &Body<'_>)> =
        module.items.iter().enumerate().filter_map(defined).collect();
    let mut summaries: HashMap<&str, Summary> = HashMap::new();
    let shapes: Vec<Shape> = module.entries().map(|entry| shape(entry.name)).collect();
    // Any of the entry points may call the other functions.
    let of_all = shapes
        .iter()
        .copied()
        .reduce(|a, b| std::array::from_fn(|axis| a[axis].filter(|_| a[axis] == b[axis])));
    for (_, function, _) in &functions {
        let summary = Summary {
            parameters: vec![Level::Grid; function.parameters().len()],
            result: Level::Grid,
            needs: None,
            never_returns: function.directive(".noreturn").is_some(),
            shape: if function.is_entry { shape(function.name) } else { of_all.unwrap_or_default() },
        };
        summaries.insert(function.name, summary);
    }
    propagate_needs(&functions, needs, &mut summaries);
    if summaries.values().all(|summary| summary.needs.is_none()) {
        return Vec::new();
    }
    let functions = needing_summaries(functions, &summaries);
    let mut done: HashMap<usize, Done<'_>> = HashMap::new();
    loop {
        let mut next = summaries.clone();
        for &(item, function, body) in &functions {
            let relies_on = relied_on(function, &summaries);
            if done.get(&item).is_none_or(|done| done.relied_on != relies_on) {
                let facts = program.facts(item, body);
                let mut analysis = Analysis::of(function, body, facts, &summaries, needs, follows_lanes);
                analysis.run();
                let (arguments, result) = (analysis.arguments(), analysis.result());
                let divergences = analysis.divergences(item);
                done.insert(item, Done { relied_on: relies_on, arguments, result, divergences });
            }
            let Done { arguments, result, .. } = &done[&item];
            for (callee, number, level) in arguments {
                let parameters = next.get_mut(callee).map(|summary| &mut summary.parameters);
                if let Some(parameter) = parameters.and_then(|parameters| parameters.get_mut(*number)) {
                    *parameter = (*level).max(*parameter);
                }
            }
            if let Some(summary) = next.get_mut(function.name) {
                summary.result = summary.result.max(*result);
            }
        }
        if next == summaries {
            return functions
                .iter()
                .flat_map(|(item, ..)| done.remove(item).map_or_else(Vec::new, |it| it.divergences))
                .collect();
        }
        summaries = next;
    }
}

/// The results of an analysis, and the summaries that they depend on.
struct Done<'t> {
    relied_on: Vec<Summary>,
    arguments: Vec<(&'t str, usize, Level)>,
    result: Level,
    divergences: Vec<Divergence>,
}

/// The summaries of a function and of those that it calls.
fn relied_on(function: &Function<'_>, summaries: &HashMap<&str, Summary>) -> Vec<Summary> {
    let callees = function.instructions().filter_map(|instruction| instruction.callee());
    [function.name].into_iter().chain(callees).filter_map(|name| summaries.get(name).cloned()).collect()
}

fn defined<'m, 't>((at, item): (usize, &'m Item<'t>)) -> Option<(usize, &'m Function<'t>, &'m Body<'t>)> {
    let Item::Function(function) = item else { return None };
    Some((at, function, function.body.as_ref()?))
}

/// The functions that need a summary: those with barriers, and those whose results they use.
fn needing_summaries<'m, 't>(
    functions: Vec<(usize, &'m Function<'t>, &'m Body<'t>)>,
    summaries: &HashMap<&str, Summary>,
) -> Vec<(usize, &'m Function<'t>, &'m Body<'t>)> {
    let by_name: HashMap<&str, &Function<'_>> = functions.iter().map(|it| (it.1.name, it.1)).collect();
    let waits = |name: &&str| summaries.get(name).is_some_and(|summary| summary.needs.is_some());
    let mut open: Vec<&str> = by_name.keys().copied().filter(waits).collect();
    let mut names: HashSet<&str> = HashSet::new();
    while let Some(name) = open.pop() {
        let Some(function) = by_name.get(name).filter(|_| names.insert(name)) else { continue };
        let callees = function.instructions().filter_map(|instruction| instruction.callee());
        open.extend(callees.filter(|callee| by_name.get(callee).is_some_and(|it| it.returned.is_some())));
    }
    functions.into_iter().filter(|it| names.contains(it.1.name)).collect()
}

/// Propagates requirements from callees to callers.
fn propagate_needs<'t>(
    functions: &[(usize, &Function<'t>, &Body<'t>)],
    needs: Needs,
    summaries: &mut HashMap<&'t str, Summary>,
) {
    loop {
        let mut has_changed = false;
        for (_, function, _) in functions {
            let needs = function
                .statements()
                .iter()
                .filter_map(|statement| needed(statement, needs, summaries))
                .min();
            let Some(summary) = summaries.get_mut(function.name) else { continue };
            let strictest = [summary.needs, needs].into_iter().flatten().min();
            has_changed |= strictest != summary.needs;
            summary.needs = strictest;
        }
        if !has_changed {
            return;
        }
    }
}
