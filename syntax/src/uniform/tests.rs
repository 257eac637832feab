use quote::ToTokens;
use syn::parse_quote;

use crate::kernel::Kernel;

/// The errors for a kernel of rank 1 with this body; `None` if it is accepted.
fn refused(body: &str) -> Option<String> {
    kernel(body).err().map(|error| error.into_iter().map(|it| it.to_string()).collect::<Vec<_>>().join("\n"))
}

fn kernel(body: &str) -> syn::Result<Kernel> {
    let text = format!(
        "#[kernel(cooperative)] fn k(t: Thread<1>, n: u32, mut m: u32, p: Params, x: &[u32], mut y: DisjointSlice<u32>, mut s: Shared<[u32; 64]>) {{ {body} }}"
    );
    let function = syn::parse_str(&text).expect("a function");
    Kernel::parse(&function).map(|kernel| kernel.expect("a kernel"))
}

#[track_caller]
fn accept(body: &str) {
    assert_eq!(refused(body), None, "{body}");
}

#[track_caller]
fn refuse(body: &str) {
    let errors = refused(body).unwrap_or_else(|| panic!("accepted: {body}"));
    assert!(errors.contains("must reach `") && errors.contains("may differ"), "{errors}");
}

#[test]
fn barriers_at_the_top_and_in_uniform_control_flow_are_accepted() {
    accept("t.sync_threads();");
    accept("for i in 0..n { t.sync_threads(); }");
    accept("for i in (0..n / 16).rev().step_by(2) { let k = i * 2; if k < n { t.sync_threads(); } }");
    accept("if n > 4 && t.block_idx()[0] == 0 { t.sync_threads(); } else { t.sync_threads(); }");
    accept("if x.len() > y.len() { t.sync_threads(); }");
    accept("if x[t.block_idx()[0] as usize] > 3 { t.sync_threads(); }");
    accept("let mut stride = 128; while stride > 0 { t.sync_threads(); stride /= 2; }");
    accept("let [b] = t.block_idx(); match b % 2 { 0 => t.sync_threads(), _ => {} }");
    accept("loop { if !t.sync_threads_or(x[t.index().get()] > 3) { break; } }");
    accept("for i in 0..p.steps { t.sync_threads(); }");
    accept("for _ in 0..STEPS { t.sync_threads(); }");
    accept("'a: for i in 0..n { for j in 0..n { t.sync_threads(); if j == 3 { continue 'a; } } }");
    accept("m = n * 2; for i in 0..m { t.sync_threads(); }");
}

#[test]
fn control_flow_that_differs_between_threads_around_a_barrier_is_refused() {
    refuse("if t.thread_idx()[0] < 16 { t.sync_threads(); }");
    refuse("if let Some(y) = y.get_mut(t.index()) { t.sync_threads(); }");
    refuse("for i in 0..t.index().get() { t.sync_threads(); }");
    refuse("let i = t.index().get(); while i < 10 { t.sync_threads(); }");
    refuse("match x[t.index().get()] { 0 => t.sync_threads(), _ => {} }");
    refuse("let lane = t.thread_idx()[0]; let low = lane < 4; low && { t.sync_threads(); true };");
    refuse("(0..n).for_each(|_| t.sync_threads());");
    refuse("if load() { t.sync_threads(); }");
    refuse("if COUNTER.load(Relaxed) > 2 { t.sync_threads(); }");
}

#[test]
fn threads_that_leave_early_are_refused() {
    refuse("if t.index().get() > 5 { return; } t.sync_threads();");
    refuse("for i in 0..n { if t.index().get() == 3 { break; } t.sync_threads(); }");
    refuse("for i in 0..n { t.sync_threads(); if t.index().get() == 3 { continue; } }");
    refuse("'a: { if t.index().get() == 3 { break 'a; } t.sync_threads(); }");
    refuse("'a: for i in 0..n { loop { if t.index().get() == 3 { break 'a; } break; } t.sync_threads(); }");
    refuse("for i in 0..n { maybe_skip!(); t.sync_threads(); }");
    refuse("for i in 0..n { assert!({ if t.index().get() == 1 { break } true }); t.sync_threads(); }");
    accept("for i in 0..t.index().get() { if i == 3 { break; } } t.sync_threads();");
    accept("if n > 5 { return; } t.sync_threads();");
    accept("for i in 0..n { assert!(i < 3); t.sync_threads(); }");
}

#[test]
fn a_variable_that_threads_change_differently_is_not_uniform() {
    refuse("let mut k = 0; if t.index().get() > 3 { k = 1; } if k == 0 { t.sync_threads(); }");
    refuse("let mut k = 4; while k > 0 { t.sync_threads(); k -= x[t.index().get()]; }");
    refuse("let mut k = 4; for _ in 0..n { if k > 3 { t.sync_threads(); } k = t.thread_idx()[0]; }");
    refuse("let mut k = 4; change(&mut k); if k > 3 { t.sync_threads(); }");
    refuse("let mut k = 4; let mut f = || k = t.thread_idx()[0]; f(); if k > 3 { t.sync_threads(); }");
    refuse("let mut k = 4; change!(k); if k > 3 { t.sync_threads(); }");
    refuse("let mut k = 4; k.change(); if k > 3 { t.sync_threads(); }");
    refuse(
        "let mut k = 0; loop { if t.index().get() < k { break; } k += 1; } if k > 3 { t.sync_threads(); }",
    );
    refuse("m = t.thread_idx()[0]; if m > 3 { t.sync_threads(); }");
    refuse("let k; if t.index().get() > 3 { k = 1; } else { k = 2; } if k == 1 { t.sync_threads(); }");
    refuse("let (mut a, mut b) = (n, t.thread_idx()[0]); (a, b) = (b, a); if a > 3 { t.sync_threads(); }");
    refuse("let n = t.thread_idx()[0]; if n > 3 { t.sync_threads(); }");
    refuse("let mut k = 4; match k { ref mut r => *r = t.thread_idx()[0] } if k > 3 { t.sync_threads(); }");
    accept("{ let n = t.thread_idx()[0]; } if n > 3 { t.sync_threads(); }");
}

#[test]
fn a_grid_barrier_needs_the_whole_grid() {
    accept("for i in 0..n { t.sync_grid(); }");
    refuse("if t.block_idx()[0] == 0 { t.sync_grid(); }");
    refuse("if t.sync_threads_count(true) == 0 { t.sync_grid(); }");
}

#[test]
fn a_grid_barrier_needs_a_cooperative_kernel() {
    let function: syn::ItemFn = parse_quote!(
        #[kernel]
        fn k(t: Thread<1>) {
            t.sync_grid();
        }
    );
    let error = Kernel::parse(&function).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("#[kernel(cooperative)]"), "{error}");
}

/// The errors for a kernel with clusters; empty if it is accepted.
fn errors_in_clusters(attribute: &str, body: &str) -> String {
    let text =
        format!("#[kernel{attribute}] fn k(t: Thread<1>, n: u32, mut s: Shared<[u32; 64]>) {{ {body} }}");
    let kernel = Kernel::parse(&syn::parse_str(&text).expect("a function"));
    kernel.err().into_iter().flatten().map(|error| error.to_string()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_cluster_barrier_needs_the_whole_cluster() {
    let accepted = [
        "t.sync_cluster();",
        "for i in 0..n { let s = t.publish_cluster(s); t.reclaim_cluster(s); }",
        "if t.cluster_idx()[0] < n { t.sync_cluster(); }",
        "if t.cluster_dim()[0] == t.cluster_blocks() { t.sync_cluster(); }",
        "if t.cluster_rank() == 0 { t.sync_threads(); } t.sync_cluster();",
    ];
    for body in accepted {
        assert_eq!(errors_in_clusters("(cluster = 2)", body), "", "{body}");
    }
    let refused = [
        "if t.cluster_rank() == 0 { t.sync_cluster(); }",
        "if t.cluster_block_idx()[0] == 0 { return; } t.sync_cluster();",
        "if t.block_idx()[0] == 0 { t.publish_cluster(s); }",
        "while t.sync_threads_or(n > 3) { t.sync_cluster(); }",
        "if t.thread_rank() == 0 { t.sync_cluster(); }",
    ];
    for body in refused {
        let errors = errors_in_clusters("(cluster = 2)", body);
        assert!(errors.contains("all threads of a cluster must reach `"), "{body}: {errors}");
    }
}

#[test]
fn a_cluster_barrier_needs_a_kernel_with_clusters() {
    let errors = errors_in_clusters("", "t.sync_cluster();");
    assert!(errors.contains("`sync_cluster` waits for all blocks of a cluster"), "{errors}");
    assert!(errors.contains("#[kernel(cluster = ...)]"), "{errors}");
}

#[test]
fn what_a_barrier_rests_on_is_asserted_to_be_plain_numbers() {
    let text = |body: &str| {
        kernel(body).unwrap_or_else(|error| panic!("{error}")).function.block.to_token_stream().to_string()
    };
    let asserted = text("let k = n + 1; let other = n; if k > p.limit { t.sync_threads(); }");
    assert!(
        asserted.contains("let k = :: ferrogrid :: device :: uniform :: checked (& n , n + 1)"),
        "{asserted}"
    );
    assert!(asserted.contains("let other = n ;"), "{asserted}");
    assert!(asserted.contains("checked (& p . limit"), "{asserted}");
    assert!(asserted.contains(":: core :: mem :: offset_of ! (Params , limit)"), "{asserted}");
    assert!(asserted.contains(":: ferrogrid :: device :: Thread :: sync_threads (& t ,)"), "{asserted}");
}

#[test]
fn a_barrier_in_an_unsafe_block_is_left_to_its_author() {
    accept("if t.thread_idx()[0] < 16 { unsafe { t.sync_threads(); } }");
}

#[test]
fn a_kernel_may_wait_if_its_thread_goes_elsewhere() {
    let waits = |text: &str| {
        let function: syn::ItemFn = syn::parse_str(text).unwrap();
        Kernel::parse(&function).unwrap().unwrap().may_wait
    };
    assert!(!waits(
        "#[kernel] fn k(t: Thread<1>, x: &[u32]) { let i = t.index(); for i in t.grid_stride(5) {} for i in t.block_stride(5) {} }"
    ));
    assert!(waits("#[kernel] fn k(t: Thread<1>, x: &[u32]) { t.sync_threads(); }"));
    assert!(waits("#[kernel] fn k(t: Thread<1>, x: &[u32]) { f(&t); }"));
    assert!(waits("#[kernel] fn k(t: Thread<1>, x: &[u32]) { let w = t.warp(); }"));
    assert!(waits("#[kernel] fn k(t: Thread<1>, s: Shared<[u32; 3]>) { }"));
}

#[test]
fn each_region_has_a_type_of_its_own() {
    let function: syn::ItemFn = parse_quote!(
        #[kernel]
        fn k(t: Thread<1>, a: Shared<[u32; 4]>, n: u32, b: Shared<[u32; 4]>) {}
    );
    let text = Kernel::parse(&function).unwrap().unwrap().function.to_token_stream().to_string();
    assert!(text.contains("a : Shared < [u32 ; 4] , 0usize >"), "{text}");
    assert!(text.contains("b : Shared < [u32 ; 4] , 1usize >"), "{text}");
}
