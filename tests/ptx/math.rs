//! The instructions of mathematical functions and integer operations, and which of them need a stack.

use ferrogrid::MathLibrary;

use super::{code, count, images};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::integer::*;
    use ferrogrid::device::prelude::*;

    fn hardware<T: Float>(x: T, y: T) -> [T; 6] {
        [x.floor(), x.ceil(), x.trunc(), x.round_ties_even(), x.sqrt(), x.mul_add(y, x)]
    }

    #[kernel]
    pub fn hardware_single(t: Thread<1>, x: &[f32], mut out: DisjointSlice<[f32; 6]>) {
        let i = t.index();
        if let Some(out) = out.get_mut(i) {
            *out = hardware(x[i.get()], x[0]);
        }
    }

    #[kernel]
    pub fn hardware_double(t: Thread<1>, x: &[f64], mut out: DisjointSlice<[f64; 6]>) {
        let i = t.index();
        if let Some(out) = out.get_mut(i) {
            *out = hardware(x[i.get()], x[0]);
        }
    }

    #[kernel]
    pub fn separate(t: Thread<1>, x: &[f32], mut out: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(out) = out.get_mut(i) {
            *out += x[i.get()] * x[0];
        }
    }

    #[kernel]
    pub fn fast(t: Thread<1>, x: &[f32], mut out: DisjointSlice<[f32; 10]>) {
        let i = t.index();
        let Some(out) = out.get_mut(i) else { return };
        let x = x[i.get()];
        *out = [
            x.fast_sin(),
            x.fast_cos(),
            x.fast_exp2(),
            x.fast_exp2_ftz(),
            x.fast_log2(),
            x.fast_recip(),
            x.fast_div(3.0),
            x.fast_sqrt(),
            x.fast_rsqrt(),
            x.fast_exp(),
        ];
    }

    #[kernel]
    pub fn fast_tanh(t: Thread<1>, x: &[f32], mut out: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(out) = out.get_mut(i) {
            *out = x[i.get()].fast_tanh();
        }
    }

    #[kernel]
    pub fn without_stack(t: Thread<1>, x: &[f32], mut out: DisjointSlice<[f32; 10]>) {
        let i = t.index();
        let Some(out) = out.get_mut(i) else { return };
        let x = x[i.get()];
        *out = [
            x.ln(),
            x.log2(),
            x.log10(),
            x.asin(),
            x.acos(),
            x.powf(x),
            x.hypot(x),
            x.fmod(x),
            x.rem_euclid(x),
            x.powi(5),
        ];
    }

    #[kernel]
    pub fn with_stack(t: Thread<1>, x: &[f32], mut out: DisjointSlice<[f32; 8]>) {
        let i = t.index();
        let Some(out) = out.get_mut(i) else { return };
        let x = x[i.get()];
        *out = [x.sin(), x.exp(), x.exp2(), x.tanh(), x.cbrt(), x.atan2(x), x.erf(), x.gamma()];
    }

    #[kernel]
    pub fn with_stack_double(t: Thread<1>, x: &[f64], mut out: DisjointSlice<[f64; 8]>) {
        let i = t.index();
        let Some(out) = out.get_mut(i) else { return };
        let x = x[i.get()];
        *out = [x.sin(), x.exp(), x.exp2(), x.tanh(), x.cbrt(), x.atan2(x), x.erf(), x.gamma()];
    }

    #[kernel]
    pub fn integers(t: Thread<1>, x: &[[u32; 3]], mut out: DisjointSlice<[u32; 9]>) {
        let i = t.index();
        let Some(out) = out.get_mut(i) else { return };
        let [a, b, c] = x[i.get()];
        *out = [
            a.mul_hi(b),
            (a as i32).mul_hi(b as i32) as u32,
            byte_permute(a, b, c),
            funnel_shift_left(a, b, c),
            funnel_shift_right(a, b, c),
            sum_of_abs_diff(a as i32, b as i32, c),
            sum_of_abs_diff_unsigned(a, b, c),
            dp4a(a, b, c as i32) as u32,
            dp4a_unsigned(a, b, c),
        ];
    }

    #[kernel]
    pub fn wide_integers(t: Thread<1>, x: &[[u64; 2]], mut out: DisjointSlice<[u64; 2]>) {
        let i = t.index();
        let Some(out) = out.get_mut(i) else { return };
        let [a, b] = x[i.get()];
        *out = [a.mul_hi(b), (a as i64).mul_hi(b as i64) as u64];
    }
}

/// Requires each of `opcodes` exactly once, in the code for each architecture.
fn demand_once(kernel: &ferrogrid::__private::Kernel, opcodes: &[&str]) {
    for (architecture, lines) in code(kernel) {
        for opcode in opcodes {
            assert_eq!(count(&lines, opcode), 1, "{opcode} for {architecture}: {lines:#?}");
        }
    }
}

#[test]
fn exact_functions_of_the_hardware_are_one_instruction() {
    for (kernel, ty) in
        [(kernels::hardware_single::kernel(), "f32"), (kernels::hardware_double::kernel(), "f64")]
    {
        let opcodes = [
            format!("cvt.rmi.{ty}.{ty}"),
            format!("cvt.rpi.{ty}.{ty}"),
            format!("cvt.rzi.{ty}.{ty}"),
            format!("cvt.rni.{ty}.{ty}"),
            format!("sqrt.rn.{ty}"),
            format!("fma.rn.{ty}"),
        ];
        demand_once(kernel, &opcodes.each_ref().map(String::as_str));
    }
}

#[test]
fn nothing_is_contracted_that_was_not_asked_for() {
    for (architecture, lines) in code(kernels::separate::kernel()) {
        let (fused, product, sum) =
            (count(&lines, "fma"), count(&lines, "mul.rn.f32"), count(&lines, "add.rn.f32"));
        assert_eq!((fused, product, sum), (0, 1, 1), "{architecture}: {lines:#?}");
    }
}

#[test]
fn fast_functions_are_the_approximations_of_the_hardware() {
    let once = ["sin", "cos", "lg2", "rcp", "div", "sqrt", "rsqrt"].map(|name| format!("{name}.approx.f32"));
    demand_once(kernels::fast::kernel(), &once.each_ref().map(String::as_str));
    demand_once(kernels::fast::kernel(), &["ex2.approx.ftz.f32"]);
    for (architecture, lines) in code(kernels::fast::kernel()) {
        assert_eq!(count(&lines, "ex2.approx.f32"), 2, "{architecture}: {lines:#?}");
    }
}

#[test]
fn fast_tanh_is_an_instruction_where_ptx_has_it() {
    for (architecture, lines) in code(kernels::fast_tanh::kernel()) {
        let (own, by_exponential) = (count(&lines, "tanh.approx.f32"), count(&lines, "ex2.approx.f32"));
        assert_eq!(own + by_exponential, 1, "{architecture}: {lines:#?}");
        if architecture != "sm_75" {
            assert_eq!(own, 1, "{architecture}: {lines:#?}");
        }
    }
}

#[test]
fn integer_operations_are_one_instruction() {
    let opcodes = [
        "mul.hi.u32",
        "mul.hi.s32",
        "prmt.b32",
        "shf.l.wrap.b32",
        "shf.r.wrap.b32",
        "sad.s32",
        "sad.u32",
        "dp4a.s32.s32",
        "dp4a.u32.u32",
    ];
    demand_once(kernels::integers::kernel(), &opcodes);
    demand_once(kernels::wide_integers::kernel(), &["mul.hi.u64", "mul.hi.s64"]);
}

/// Others do, in `libm`: 8 to 48 bytes to raise floating-point flags, and about 600 for huge angles.
#[test]
fn functions_that_need_no_stack_have_none() {
    let all = [
        kernels::hardware_single::kernel(),
        kernels::hardware_double::kernel(),
        kernels::fast::kernel(),
        kernels::fast_tanh::kernel(),
        kernels::without_stack::kernel(),
        kernels::integers::kernel(),
        kernels::wide_integers::kernel(),
    ];
    for kernel in all {
        for (architecture, lines) in code(kernel) {
            assert!(!lines.iter().any(|line| line.contains(".local")), "{architecture}, {}", kernel.name());
        }
    }
}

#[test]
fn no_function_is_left_to_be_linked() {
    for kernel in [
        kernels::without_stack::kernel(),
        kernels::with_stack::kernel(),
        kernels::with_stack_double::kernel(),
    ] {
        for (architecture, ptx) in images(kernel) {
            assert!(!ptx.contains(".extern .func"), "{architecture}");
        }
    }
}

/// Code of the crate `libm` has its source lines; libdevice has none.
#[test]
fn a_kernel_reports_its_math_library() {
    let kernel = kernels::with_stack::kernel();
    let (_, ptx) = images(kernel)[0];
    let has_lines_of_libm = ptx.lines().any(|line| line.contains(".file") && line.contains("libm-"));
    match kernel.math_library() {
        Some(MathLibrary::Libm) => assert!(has_lines_of_libm, "no line of libm"),
        Some(MathLibrary::Libdevice) => assert!(!has_lines_of_libm, "lines of libm"),
        other => panic!("{other:?} for PTX that begins {:?}", ptx.lines().next()),
    }
}
