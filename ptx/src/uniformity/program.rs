//! The functions of a program together: what arguments and results of calls make of each other.

use std::collections::{HashMap, HashSet};

use super::function::{Analysis, Summary, needed};
use super::{Divergence, Level};
use crate::{Body, Function, Item, Module};

/// The places of a program that threads must come to together, and may not.
pub fn divergences(module: &Module<'_>) -> Vec<Divergence> {
    let functions: Vec<(usize, &Function<'_>, &Body<'_>)> =
        module.items.iter().enumerate().filter_map(defined).collect();
    let mut summaries: HashMap<&str, Summary> = HashMap::new();
    for (_, function, _) in &functions {
        let summary = Summary {
            parameters: vec![Level::Grid; function.parameters().len()],
            result: Level::Grid,
            needs: None,
            never_returns: function.directive(".noreturn").is_some(),
        };
        summaries.insert(function.name, summary);
    }
    close_needs(&functions, &mut summaries);
    if summaries.values().all(|summary| summary.needs.is_none()) {
        return Vec::new();
    }
    let functions = concerned(functions, &summaries);
    let mut done: HashMap<usize, Done<'_>> = HashMap::new();
    loop {
        let mut next = summaries.clone();
        for &(item, function, body) in &functions {
            let relies_on = relied_on(function, &summaries);
            if done.get(&item).is_none_or(|done| done.relied_on != relies_on) {
                let mut analysis = Analysis::of(function, body, &summaries);
                analysis.run();
                let (arguments, result) = (analysis.arguments(), analysis.result());
                let divergences = analysis.divergences().into_iter();
                let divergences = divergences.map(|(barrier, needs, branch, because)| Divergence {
                    item,
                    barrier,
                    needs,
                    branch,
                    because,
                });
                let divergences = divergences.collect();
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

/// What an analysis has found, and the summaries that it rests on.
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

/// Those functions of which anything must be known: those that wait for others, and what these call for its results.
fn concerned<'m, 't>(
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

/// Lets functions need what those need that they call.
fn close_needs<'t>(
    functions: &[(usize, &Function<'t>, &Body<'t>)],
    summaries: &mut HashMap<&'t str, Summary>,
) {
    loop {
        let mut has_changed = false;
        for (_, function, _) in functions {
            let needs =
                function.statements().iter().filter_map(|statement| needed(statement, summaries)).min();
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
