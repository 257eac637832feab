//! Whether threads of a kernel may wait for others, judged by the text: all other kernels run as plain loops
//! on the CPU device.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Ident, ItemFn};

use super::parameter::{Parameter, ParameterKind};

/// Whether a thread of the kernel may wait for others: the kernel has shared memory or a `BlockOrder`, or
/// uses its `Thread` for more than its index and the like.
pub(crate) fn may_wait(function: &ItemFn, parameters: &[Parameter]) -> bool {
    if parameters.iter().any(|it| it.kind.is_shared() || matches!(it.kind, ParameterKind::Order { .. })) {
        return true;
    }
    let thread = parameters.iter().find(|it| matches!(it.kind, ParameterKind::Thread { .. }));
    thread.is_some_and(|thread| used_otherwise(function.block.to_token_stream(), &thread.name))
}

/// Whether `thread` occurs in `tokens` other than as `thread.index()` and the like.
fn used_otherwise(tokens: TokenStream, thread: &Ident) -> bool {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    trees.iter().enumerate().any(|(at, tree)| match tree {
        TokenTree::Ident(ident) if ident == thread => !is_index_method(&trees[at + 1..]),
        TokenTree::Group(group) => used_otherwise(group.stream(), thread),
        _ => false,
    })
}

/// Whether `.index` or the like comes next: a method that never waits.
fn is_index_method(next: &[TokenTree]) -> bool {
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
    match next {
        [TokenTree::Punct(dot), TokenTree::Ident(method), ..] if dot.as_char() == '.' => {
            NAMES.contains(&method.to_string().as_str())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::Kernel;

    #[test]
    fn a_kernel_may_wait_if_it_passes_its_thread_on() {
        let waits = |text: &str| {
            let function: syn::ItemFn = syn::parse_str(text).unwrap();
            Kernel::parse(&function).unwrap().unwrap().may_wait
        };
        assert!(!waits(
            "#[kernel] fn k(t: Thread<1>, x: &[u32]) { let i = t.index(); for i in t.grid_stride(5) {} for i in t.block_stride(5) {} }"
        ));
        assert!(waits("#[kernel] fn k(t: Thread<1>, x: &[u32]) { t.sync_threads(); }"));
        assert!(waits("#[kernel] fn k(t: Thread<1>, x: &[u32]) { f(&t); }"));
        assert!(waits("#[kernel] fn k(t: Thread<1>, x: &[u32]) { wait!(t); }"));
        assert!(
            waits("#[kernel] fn k(t: Thread<1>, x: &[u32]) { let index = 1; f(t, index); }"),
            "no method"
        );
        assert!(waits("#[kernel] fn k(t: Thread<1>, x: &[u32]) { let w = t.warp(); }"));
        assert!(waits("#[kernel] fn k(t: Thread<1>, s: Shared<[u32; 3]>) { }"));
        assert!(waits("#[kernel] fn k(t: Thread<1>, o: BlockOrder<u32>) { o.wait_for(t.block_idx()[0]); }"));
    }
}
