//! Which calls in a kernel's body all threads of a block make together. A barrier that some threads
//! skip, or meet elsewhere, is undefined on a GPU; so `Thread`'s barriers are `unsafe`, and this room
//! makes them safe where the text shows that control flow cannot differ between threads. It must not
//! know what the calls do, beyond their names, nor how a kernel is compiled.
//!
//! A value is *uniform* if it is made from kernel parameters, constants, block indices and results of
//! barriers alone. A call is accepted if every condition and loop around it is uniform, and no thread
//! can leave early. The analysis repeats until nothing changes, since an assignment late in a loop
//! matters at its beginning. What it believes of types (that a value is a plain number, whose
//! operators cannot be anybody's code) the code that it emits asserts.

mod collective;
mod facts;
mod flow;
mod function;
mod pattern;
mod refusal;
mod scope;
mod value;

#[cfg(test)]
mod tests;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Error, Ident, ItemFn, Result};

use crate::bounds::LaunchBounds;
use crate::parameter::{Parameter, ParameterKind};
use facts::{Facts, Level};
use flow::Walk;

pub use function::FunctionForms;
pub(crate) use function::{Functions, passed};

/// `function`, a kernel, with every barrier that all threads reach together called as one that is shown to be safe.
///
/// # Errors
/// For a barrier that control flow may keep some threads from, with the spans of the barrier and of
/// what may differ between threads; and for a barrier of the grid, or of a cluster, in a kernel that does not
/// promise one.
pub(crate) fn check(
    function: &ItemFn,
    parameters: &[Parameter],
    bounds: LaunchBounds,
    functions: &Functions,
) -> Result<ItemFn> {
    if !has_collectives(function, functions) {
        return Ok(function.clone());
    }
    let (facts, bind) = (Facts::default(), |walk: &mut Walk| walk.parameters(parameters));
    let walked = walk(function, facts, functions, Some(bounds), bind);
    walked.errors.map_or(Ok(walked.function), Err)
}

/// What the last walk over a function gives, when nothing changes any more.
struct Walked {
    function: ItemFn,
    facts: Facts,
    /// What the barriers in it need, the strictest first.
    needs: Vec<Level>,
    errors: Option<Error>,
}

fn walk(
    function: &ItemFn,
    mut facts: Facts,
    functions: &Functions,
    bounds: Option<LaunchBounds>,
    mut bind: impl FnMut(&mut Walk),
) -> Walked {
    loop {
        let mut walked = function.clone();
        let mut walk = Walk::new(&mut facts, functions, bounds);
        bind(&mut walk);
        walk.function(&mut walked.block);
        let (changed, needs, errors) = walk.finish();
        if !changed {
            return Walked { function: walked, facts, needs, errors };
        }
    }
}

/// Whether the function's text has a call that all threads must make together.
pub(crate) fn has_collectives(function: &ItemFn, functions: &Functions) -> bool {
    let wanted =
        |ident: &Ident| collective::find(&ident.to_string()).is_some() || functions.find(ident).is_some();
    mentions(function.block.to_token_stream(), &wanted)
}

/// Whether a thread of the kernel might wait for others: it has shared memory, or its `Thread` is used
/// for anything but to ask where it is.
pub(crate) fn may_wait(function: &ItemFn, parameters: &[Parameter]) -> bool {
    if parameters.iter().any(|parameter| parameter.kind.is_shared()) {
        return true;
    }
    let thread = parameters.iter().find(|it| matches!(it.kind, ParameterKind::Thread { .. }));
    thread.is_some_and(|thread| used_otherwise(function.block.to_token_stream(), &thread.name))
}

/// Whether `thread` occurs in `tokens` other than as `thread.index()` and the like.
fn used_otherwise(tokens: TokenStream, thread: &Ident) -> bool {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    trees.iter().enumerate().any(|(at, tree)| match tree {
        TokenTree::Ident(ident) if ident == thread => !asks_where(&trees[at + 1..]),
        TokenTree::Group(group) => used_otherwise(group.stream(), thread),
        _ => false,
    })
}

/// Whether `.index` or the like comes next.
fn asks_where(next: &[TokenTree]) -> bool {
    match next {
        [TokenTree::Punct(dot), TokenTree::Ident(method), ..] if dot.as_char() == '.' => {
            collective::asks_where(&method.to_string())
        }
        _ => false,
    }
}

fn mentions(tokens: TokenStream, wanted: &impl Fn(&Ident) -> bool) -> bool {
    tokens.into_iter().any(|tree| match tree {
        TokenTree::Ident(ident) => wanted(&ident),
        TokenTree::Group(group) => mentions(group.stream(), wanted),
        _ => false,
    })
}
