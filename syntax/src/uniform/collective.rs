//! The methods of `Thread` that matter here, by name: those that all threads call together, and those
//! that only ask where the thread is. It must not know where a call stands.

use proc_macro2::Span;
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{Expr, ExprMethodCall, parse_quote_spanned};

use super::facts::Level;

/// A method that all threads of a block, of a cluster, or of the grid, call together.
#[derive(Clone, Copy)]
pub(super) struct Collective {
    name: &'static str,
    /// How far control flow around it may depend on the place of the thread: those that it waits for have
    /// this in common.
    pub(super) needs: Level,
    /// Of its result.
    pub(super) gives: Level,
}

const COLLECTIVES: &[Collective] = &[
    block("sync_threads", Level::Varying),
    block("sync_threads_count", Level::Block),
    block("sync_threads_and", Level::Block),
    block("sync_threads_or", Level::Block),
    block("publish", Level::Varying),
    block("reclaim", Level::Varying),
    block("publish_and_reclaim", Level::Varying),
    block("block_reduce", Level::Block),
    block("block_inclusive_scan", Level::Varying),
    block("block_exclusive_scan", Level::Varying),
    cluster("sync_cluster"),
    cluster("publish_cluster"),
    cluster("reclaim_cluster"),
    Collective { name: "sync_grid", needs: Level::Grid, gives: Level::Varying },
];

const fn block(name: &'static str, gives: Level) -> Collective {
    Collective { name, needs: Level::Block, gives }
}

const fn cluster(name: &'static str) -> Collective {
    Collective { name, needs: Level::Cluster, gives: Level::Varying }
}

/// The collective method called `name`.
pub(super) fn find(name: &str) -> Option<Collective> {
    COLLECTIVES.iter().find(|collective| collective.name == name).copied()
}

/// Whether the method called `name` only asks where the thread is, and so never waits.
pub(super) fn asks_where(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "index",
        "thread_idx",
        "block_idx",
        "block_dim",
        "grid_dim",
        "grid_stride",
        "block_stride",
        "thread_rank",
        "block_threads",
        "cluster_idx",
        "cluster_dim",
        "cluster_block_idx",
        "cluster_rank",
        "cluster_blocks",
    ];
    NAMES.contains(&name)
}

/// How far the result of the `Thread` method called `name` depends on the place of the thread.
pub(super) fn place(name: &str) -> Level {
    match name {
        "block_dim" | "block_threads" | "grid_dim" | "cluster_dim" | "cluster_blocks" => Level::Grid,
        "cluster_idx" => Level::Cluster,
        "block_idx" | "cluster_block_idx" | "cluster_rank" => Level::Block,
        _ => Level::Varying,
    }
}

/// What the collective may not depend on, in words.
pub(super) fn together(collective: Collective) -> &'static str {
    match collective.needs {
        Level::Grid => "the grid",
        Level::Cluster => "a cluster",
        _ => "a block",
    }
}

/// `call`, by its full path and as a call whose safety has been shown.
pub(super) fn verified(call: &ExprMethodCall) -> Expr {
    let (span, thread, method, turbofish) =
        (call.method.span(), &call.receiver, &call.method, &call.turbofish);
    let values: Vec<&Expr> = call.args.iter().collect();
    let names: Vec<syn::Ident> =
        (0..values.len()).map(|it| syn::Ident::new(&format!("__argument{it}"), Span::mixed_site())).collect();
    let path = quote_spanned!(span=> ::ferrogrid::device::Thread::#method #turbofish);
    // SAFETY of the `unsafe` block: this room has shown that all threads come here together. The
    // arguments are evaluated outside of it.
    parse_quote_spanned! {call.span()=>
        match (#(#values,)*) {
            #[allow(unsafe_code)]
            (#(#names,)*) => unsafe { #path(&#thread, #(#names),*) },
        }
    }
}
