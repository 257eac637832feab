//! What the macros do not see, the proof on the compiled code does: with the device toolchain of this machine.

mod single;

use ferrogrid_build::Build;

/// Each kernel is refused whose line says so, and no other. Each of those got past the macros once.
const PROGRAM: &str = r#"#[ferrogrid::module]
mod kernels {
    use core::sync::atomic::{AtomicU32, Ordering};
    use ferrogrid::device::prelude::*;

    static COUNT: AtomicU32 = AtomicU32::new(0);

    macro_rules! leave_if { ($c:expr) => { if $c { return } } }
    macro_rules! bind { ($n:ident, $e:expr) => { let $n = $e; } }
    macro_rules! some { ($e:expr) => { match $e { Some(v) => v, None => return } } }

    #[kernel]
    pub fn leaves_by_a_macro(t: Thread<1>) { // refused
        leave_if!(t.thread_rank() < 5);
        t.sync_threads();
    }

    #[kernel]
    pub fn leaves_together(t: Thread<1>, n: u32) {
        leave_if!(n < 5);
        t.sync_threads();
    }

    #[kernel]
    pub fn name_bound_by_a_macro(t: Thread<1>, n: u32) { // refused
        bind!(n, n + t.thread_rank());
        for _ in 0..n { t.sync_threads(); }
    }

    #[kernel]
    pub fn raw_identifier(t: Thread<1>) { // refused
        let r#n = t.thread_rank();
        if n < 5 { t.sync_threads(); }
    }

    trait Flip { fn abs(&mut self, v: bool); }
    impl Flip for bool { fn abs(&mut self, v: bool) { *self = v } }
    #[kernel]
    pub fn pure_name_that_writes(t: Thread<1>) { // refused
        let mut b = true;
        b.abs(t.thread_rank() < 3);
        if b { t.sync_threads(); }
    }

    trait Ticket { fn rev(self) -> u32; }
    impl Ticket for u32 { fn rev(self) -> u32 { COUNT.fetch_add(self, Ordering::Relaxed) } }
    #[kernel]
    pub fn atomic_in_a_pure_name(t: Thread<1>) { // refused
        if 1u32.rev() < 5 { t.sync_threads(); }
    }

    trait Depth { fn depth(&self, r: u32) -> u32; }
    impl Depth for [u32] { fn depth(&self, r: u32) -> u32 { r } }
    #[kernel]
    pub fn extents_of_a_users_trait(t: Thread<1>, x: &[u32]) { // refused
        if x.depth(t.thread_rank()) < 5 { t.sync_threads(); }
    }

    #[kernel]
    pub fn cfg_on_a_statement(t: Thread<1>) { // refused
        let n = t.thread_rank();
        #[cfg(any())]
        let n = 5;
        if n < 5 { t.sync_threads(); }
    }

    #[kernel]
    pub fn reduction_by_thread(t: Thread<1>, mut s: Shared<Scratch<u32>>) { // refused
        let rank = t.thread_rank();
        let n = t.block_reduce(&mut s, 1, |a, b| if rank % 2 == 0 { a } else { b + 1 });
        for _ in 0..n { t.sync_threads(); }
    }

    #[kernel]
    pub fn reduction(t: Thread<1>, mut s: Shared<Scratch<u32>>) {
        let n = t.block_reduce(&mut s, t.thread_rank(), |a, b| a + b);
        for _ in 0..n { t.sync_threads(); }
    }

    fn work(t: &Thread<1>, x: Option<u32>) { // refused
        let _v = some!(x);
        t.sync_threads();
    }
    #[kernel]
    pub fn return_in_a_function(t: Thread<1>, x: &[u32], mut y: DisjointSlice<u32>) { // refused
        let mine = y.get_mut(t.index()).map(|y| *y);
        work(&t, mine.filter(|it| x.len() as u32 > *it));
    }

    /// # Safety
    /// All blocks are of four threads.
    #[kernel]
    pub unsafe fn vouched_for(t: Thread<1>) {
        leave_if!(t.thread_rank() > 4);
        t.sync_threads();
    }
}

fn main() {}
"#;

/// The lines that a compiler's text points to.
fn lines(errors: &str) -> Vec<usize> {
    let places = errors.lines().filter_map(|line| line.trim_start().strip_prefix("--> src/main.rs:"));
    places.map(|place| place.split(':').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn barriers_that_some_threads_miss_are_refused_whatever_hides_it_and_no_others() {
    let Err(errors) = single::built(PROGRAM, "", Build::new()) else { panic!("nothing is refused") };
    let refused = lines(&errors);
    let mut functions: Vec<(usize, &str)> = PROGRAM
        .lines()
        .enumerate()
        .filter(|(_, line)| {
            line.trim_start().starts_with("pub ") && line.contains("fn ") || line.contains("    fn work")
        })
        .map(|(at, line)| (at + 1, line))
        .collect();
    functions.push((PROGRAM.lines().count(), ""));
    let mut missed = Vec::new();
    for pair in functions.windows(2) {
        let is_refused = refused.iter().any(|line| (pair[0].0..pair[1].0).contains(line));
        // `work`, and the kernel that calls it, part in a macro.
        let expected = pair[0].1.ends_with("// refused");
        if is_refused != expected
            && !pair[0].1.contains("fn work")
            && !pair[0].1.contains("return_in_a_function")
        {
            missed.push(pair[0]);
        }
    }
    assert!(missed.is_empty(), "{missed:#?}\nin\n{errors}");
    let macro_line = PROGRAM.lines().position(|line| line.contains("macro_rules! some")).unwrap() + 1;
    assert!(refused.contains(&macro_line), "what a macro leaves by has the macro's line: {errors}");
    assert!(errors.contains("which depends on the index of the thread (src/main.rs:"), "{errors}");
    assert!(errors.contains("which depends on the result of an atomic operation"), "{errors}");
}
