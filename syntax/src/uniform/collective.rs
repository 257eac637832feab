//! The methods of `Thread` that matter here, by name: those that all threads call together, and those
//! that only ask where the thread is. It must not know where a call stands.

use proc_macro2::{Span, TokenStream};
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
    block("with_published", Level::Varying),
    block("block_reduce", Level::Block),
    block("block_inclusive_scan", Level::Varying),
    block("block_exclusive_scan", Level::Varying),
    block("block_blocked_to_striped", Level::Varying),
    block("block_striped_to_blocked", Level::Varying),
    block("block_scatter_to_blocked", Level::Varying),
    block("block_scatter_to_striped", Level::Varying),
    block("block_radix_sort", Level::Varying),
    block("block_radix_sort_to_striped", Level::Varying),
    block("block_radix_sort_pairs", Level::Varying),
    block("block_radix_sort_pairs_to_striped", Level::Varying),
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

/// `call`, as one whose safety has been shown: on a token for the thread, that only those come by who have shown it.
pub(super) fn verified(call: &ExprMethodCall) -> Expr {
    let (method, turbofish, arguments) = (&call.method, &call.turbofish, &call.args);
    let thread = token(&call.receiver);
    parse_quote_spanned!(call.span()=> #thread.#method #turbofish (#arguments))
}

/// The token for `thread`, a `Thread` or a reference to one.
pub(super) fn token(thread: &Expr) -> TokenStream {
    let span = Span::mixed_site().located_at(thread.span());
    let shown = quote_spanned!(span=> ::ferrogrid::device::uniform::Shown);
    // SAFETY of the `unsafe` block: this room has shown that all threads come here together.
    quote_spanned! {span=>
        ::ferrogrid::device::uniform::Together::new(&#thread, {
            const SHOWN: #shown = unsafe { #shown::new() };
            SHOWN
        })
    }
}
