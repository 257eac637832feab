use quote::ToTokens;
use syn::parse_quote;

use super::Functions;
use crate::kernel::Kernel;
use crate::module::{Module, Part};

/// `function` in a module without others.
fn parse(function: &syn::ItemFn) -> syn::Result<Option<Kernel>> {
    Kernel::parse(function, &Functions::default())
}

/// The errors for a kernel of rank 1 with this body; `None` if it is accepted.
fn refused(body: &str) -> Option<String> {
    kernel(body).err().map(|error| error.into_iter().map(|it| it.to_string()).collect::<Vec<_>>().join("\n"))
}

fn kernel(body: &str) -> syn::Result<Kernel> {
    let text = format!(
        "#[kernel(cooperative)] fn k(t: Thread<1>, n: u32, mut m: u32, p: Params, x: &[u32], mut y: DisjointSlice<u32>, mut s: Shared<[u32; 64]>) {{ {body} }}"
    );
    let function = syn::parse_str(&text).expect("a function");
    parse(&function).map(|kernel| kernel.expect("a kernel"))
}

#[track_caller]
fn accept(body: &str) {
    assert_eq!(refused(body), None, "{body}");
}

#[track_caller]
fn refuse(body: &str) {
    let errors = refused(body).unwrap_or_else(|| panic!("accepted: {body}"));
    assert!(errors.contains("must reach `"), "{errors}");
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
fn each_place_where_threads_part_is_one_error_that_names_the_barriers_behind_it() {
    let refused = |body: &str| refused(body).unwrap_or_default();
    let early =
        refused("if t.index().get() >= x.len() { return; }\nt.sync_threads();\nlet s = t.publish(s);");
    assert!(early.starts_with("all threads of a block must reach `sync_threads` (line 2) and `publish` (line 3) together, but some of them may return here"), "{early}");
    assert_eq!(early.matches("must reach").count(), 1, "{early}");
    assert!(early.contains("= help: guard the work, not the barrier: instead of the `return`"), "{early}");
    let two =
        refused("if t.thread_rank() < 3 { t.sync_threads(); } if t.thread_rank() < 4 { t.sync_threads(); }");
    assert_eq!(two.matches("but this may keep some of them away").count(), 2, "{two}");
    let closure = refused("(0..n).for_each(|_| t.sync_threads());");
    assert!(closure.contains("not checked, and so are `unsafe` there"), "{closure}");
    let loops = refused("for i in 0..n { if x[t.index().get()] == i { break; } t.sync_threads(); }");
    assert!(loops.contains("may leave here") && loops.contains("t.sync_threads_and(done)"), "{loops}");
    let grid = refused("if t.block_idx()[0] == 0 { t.sync_grid(); }");
    assert!(grid.contains("does not follow from kernel parameters and constants alone"), "{grid}");
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
    let error = parse(&function).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("#[kernel(cooperative)]"), "{error}");
}

/// The errors for a kernel with clusters; empty if it is accepted.
fn errors_in_clusters(attribute: &str, body: &str) -> String {
    let text =
        format!("#[kernel{attribute}] fn k(t: Thread<1>, n: u32, mut s: Shared<[u32; 64]>) {{ {body} }}");
    let kernel = parse(&syn::parse_str(&text).expect("a function"));
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
        assert_eq!(errors_in_clusters("(cluster)", body), "", "{body}");
    }
    let refused = [
        "if t.cluster_rank() == 0 { t.sync_cluster(); }",
        "if t.cluster_block_idx()[0] == 0 { return; } t.sync_cluster();",
        "if t.block_idx()[0] == 0 { t.publish_cluster(s); }",
        "while t.sync_threads_or(n > 3) { t.sync_cluster(); }",
        "if t.thread_rank() == 0 { t.sync_cluster(); }",
    ];
    for body in refused {
        for attribute in ["(cluster = 2)", "(cluster)"] {
            let errors = errors_in_clusters(attribute, body);
            assert!(errors.contains("all threads of a cluster must reach `"), "{body}: {errors}");
        }
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
    assert!(
        asserted.contains(":: ferrogrid :: device :: uniform :: Together :: new (& t ,")
            && asserted.contains(". sync_threads ()"),
        "{asserted}"
    );
}

#[test]
fn a_barrier_in_an_unsafe_block_is_left_to_its_author() {
    accept("if t.thread_idx()[0] < 16 { unsafe { t.sync_threads(); } }");
}

#[test]
fn a_kernel_may_wait_if_its_thread_goes_elsewhere() {
    let waits = |text: &str| {
        let function: syn::ItemFn = syn::parse_str(text).unwrap();
        parse(&function).unwrap().unwrap().may_wait
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
    let text = parse(&function).unwrap().unwrap().function.to_token_stream().to_string();
    assert!(text.contains("a : Shared < [u32 ; 4] , 0usize >"), "{text}");
    assert!(text.contains("b : Shared < [u32 ; 4] , 1usize >"), "{text}");
}

/// The errors for a module with these items; empty if it is accepted.
fn errors_in_module(items: &str) -> String {
    let module = Module::parse(syn::parse_str(&format!("mod m {{ {items} }}")).expect("a module"));
    module.err().into_iter().flatten().map(|error| error.to_string()).collect::<Vec<_>>().join("\n")
}

/// As [`errors_in_module`], for a kernel with this body beside functions that wait.
fn errors_beside_functions(body: &str) -> String {
    const FUNCTIONS: &str = "
        fn wait(t: &Thread<1>) { t.sync_threads(); }
        fn rounds(t: &Thread<1>, n: u32, x: f32) { let m = n * 2; for _ in 0..m { wait(t); } }
        fn steps(t: &Thread<1>, p: Params, (a, b): (u32, u32), x: &[u32]) {
            if p.steps > 3 { t.sync_threads(); } for _ in 0..x.len() { t.sync_threads(); }
        }
        fn down<const R: usize>(n: u32, t: &Thread<R>) { t.sync_threads(); if n > 0 { down(n - 1, t) } }
        fn grid(t: &Thread<1>) { t.sync_grid(); }
        fn indirectly(t: &Thread<1>) { grid(t); wait(t); }
        fn other(t: &Thread<1>) -> u32 { t.thread_rank() }
        fn vouched(t: &Thread<1>) { unsafe { t.sync_threads(); } }
    ";
    errors_in_module(&format!(
        "{FUNCTIONS} #[kernel] fn k(t: Thread<1>, n: u32, p: Params, x: &[u32], mut y: DisjointSlice<u32>) {{ {body} }}"
    ))
}

#[test]
fn functions_with_barriers_are_called_where_a_barrier_could_stand() {
    let accepted = [
        "wait(&t); for i in 0..n { rounds(&t, i, x[t.index().get()] as f32); }",
        "let i = t.index().get(); if i < 7 { other(&t); vouched(&t); } wait(&t);",
        "steps(&t, p, (n, 3), x); down::<1>(n, &t);",
        "if i < 7 { unsafe { wait(&t); } }",
        "let wait = |n: u32| n; if t.thread_rank() < 3 { wait(4); }",
    ];
    for body in accepted {
        assert_eq!(errors_beside_functions(body), "", "{body}");
    }
    let refused = [
        "if t.thread_rank() < 7 { wait(&t); }",
        "if t.index().get() < 7 { return; } rounds(&t, n, 0.0);",
        "while x[t.index().get()] > 3 { indirectly(&t); }",
        "(0..n).for_each(|_| wait(&t));",
    ];
    for body in refused {
        let errors = errors_beside_functions(body);
        assert!(errors.contains("must reach `"), "{body}: {errors}");
    }
}

#[test]
fn arguments_on_which_barriers_depend_are_the_same_in_all_threads() {
    let refused = [
        ("rounds(&t, t.thread_rank(), 0.0);", "`rounds`"),
        ("let k = x[t.index().get()]; rounds(&t, k, 0.0);", "`rounds`"),
        ("down(t.thread_rank(), &t);", "`down`"),
        ("steps(&t, load(), (n, n), x);", "`steps`"),
        ("steps(&t, p, (n, n), &x[t.index().get()..]);", "`steps`"),
    ];
    for (body, function) in refused {
        let errors = errors_beside_functions(body);
        assert!(errors.contains("depends on this argument") && errors.contains(function), "{body}: {errors}");
    }
}

#[test]
fn functions_are_checked_as_kernels_are() {
    let refused = [
        "fn f(t: &Thread<1>) { if t.thread_rank() < 3 { t.sync_threads(); } }",
        "fn f(t: &Thread<1>, n: &u32) { if *n < 3 { t.sync_threads(); } }",
        "fn f(t: &Thread<1>, n: &mut u32) { if *n < 3 { t.sync_threads(); } }",
        "fn f(t: &Thread<1>, [n]: [u32; 1]) { if n < 3 { t.sync_threads(); } }",
        "fn f(t: &Thread<1>, y: DisjointSlice<u32>) { if y.len() < 3 { t.sync_threads(); } }",
        "fn f(t: &Thread<1>) { g(t); } fn g(t: &Thread<1>) { t.sync_threads(); (0..3).for_each(|_| f(t)); }",
    ];
    for items in refused {
        let errors = errors_in_module(items);
        assert!(errors.contains("must reach `"), "{items}: {errors}");
    }
    let accepted = [
        "fn f(t: &Thread<1>, mut n: u32) { while n > 3 { t.sync_threads(); n /= 2; } }",
        "fn f(t: &Thread<1>, n: [u32; 2]) { if n[1] > 3 { t.sync_threads(); } }",
        "unsafe fn f(t: &Thread<1>) { if t.thread_rank() < 3 { t.sync_threads(); } }",
        "impl S { fn f(t: &Thread<1>) { if t.thread_rank() < 3 { t.sync_threads(); } } }",
    ];
    for items in accepted {
        assert_eq!(errors_in_module(items), "", "{items}");
    }
}

#[test]
fn a_kernel_keeps_what_the_functions_that_it_calls_need() {
    assert!(errors_beside_functions("indirectly(&t);").contains("#[kernel(cooperative)]"));
    let block = "if t.block_idx()[0] < 3 { indirectly(&t); }";
    assert!(errors_beside_functions(block).contains("all threads of the grid must reach `indirectly`"));
}

#[test]
fn only_what_is_shown_calls_functions_with_barriers_without_unsafe() {
    let text = "mod m {
        /// Waits.
        pub fn wait<T: Copy, const N: usize>(t: &Thread<1>, (a, mut b): (T, T)) -> T { t.sync_threads(); a }
        fn shown(t: &Thread<1>) { wait::<u32, 4>(t, (1, 2)); }
        fn not_shown() { let f = wait::<u32, 4>; }
    }";
    let module = Module::parse(syn::parse_str(text).unwrap()).unwrap_or_else(|error| panic!("{error}"));
    let parts: Vec<Part> = module.parts().collect();
    let [Part::Together(wait), Part::Together(shown), Part::Other(other)] = &parts[..] else {
        panic!("the last is a function as any other")
    };
    let unchecked = wait.unchecked.to_token_stream().to_string();
    assert!(unchecked.contains("pub unsafe fn wait < T : Copy , const N : usize >"), "{unchecked}");
    assert!(unchecked.contains("self :: __ferrogrid_together_wait :: < T , N > ("), "{unchecked}");
    let checked = wait.checked.to_token_stream().to_string();
    assert!(checked.contains("fn __ferrogrid_together_wait <") && !checked.contains("pub"), "{checked}");
    assert!(checked.contains("uniform :: Together < & Thread < 1 > >"), "{checked}");
    let call = shown.checked.to_token_stream().to_string();
    assert!(call.contains("self :: __ferrogrid_together_wait :: < u32 , 4 > ("), "{call}");
    assert!(other.to_token_stream().to_string().contains("let f = wait ::"));
}
