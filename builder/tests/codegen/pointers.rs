//! Code that kernels call through pointers: warp and block operations are refused there. It uses the device
//! toolchain of this machine.

use ferrogrid_build::Build;

use crate::single;

/// A kernel that calls `of` through a pointer, and in its place with the type known where that is `direct`.
fn program(direct: bool, body: &str) -> String {
    let op = if direct { "&Sum" } else { "if which == 0 { &Sum } else { &Max }" };
    let dynamic = if direct { "&Sum" } else { "&dyn Op" };
    format!(
        "#[ferrogrid::module]
mod kernels {{
    use ferrogrid::device::prelude::*;

    trait Op {{
        fn of(&self, t: &Thread<1>, x: u32) -> u32;
    }}
    struct Sum;
    struct Max;
    impl Op for Sum {{
        fn of(&self, t: &Thread<1>, x: u32) -> u32 {{
            let add = |a: u32, b: u32| a + b;
            {body}
        }}
    }}
    impl Op for Max {{
        fn of(&self, t: &Thread<1>, x: u32) -> u32 {{
            t.thread_rank().max(x)
        }}
    }}

    #[kernel]
    pub fn calls(t: Thread<1>, which: u32, x: &[u32], mut y: DisjointSlice<u32>) {{
        let op: {dynamic} = {op};
        let _ = which;
        let i = t.index();
        let value = op.of(&t, x[0]);
        if let Some(y) = y.get_mut(i) {{
            *y = value;
        }}
    }}
}}

fn main() {{}}
"
    )
}

fn built(program: &str) -> Result<String, String> {
    single::built(program, "", Build::new()).map(|built| built.ptx)
}

#[test]
fn operations_of_a_warp_behind_a_pointer_are_refused_at_their_line() {
    let source = program(false, "let value = t.warp().reduce(x / 7, add); value % 3");
    let error = built(&source).unwrap_err();
    let line = 1 + source.lines().position(|line| line.contains("x / 7")).unwrap();
    assert!(error.contains("threads work together here (`"), "{error}");
    assert!(
        error.contains("as app::kernels::Op>::of`") && error.contains("in place of `dyn` or `fn`"),
        "{error}"
    );
    assert!(error.contains(&format!("--> src/main.rs:{line}:")), "line {line} of\n{source}\n{error}");
}

#[test]
fn the_same_by_its_type_and_other_code_behind_pointers_are_compiled() {
    assert!(built(&program(true, "t.warp().reduce(x, add)")).unwrap().contains("shfl.sync."));
    assert!(built(&program(false, "add(t.thread_rank(), x)")).unwrap().contains(", prototype_0;"));
}
