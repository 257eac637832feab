//! The sources of mathematical functions, by facts of the PTX. The tests that need libdevice look for it as
//! builds do, and are skipped if it is not installed.

use std::path::Path;

use ferrogrid_build::{Build, Math, libdevice};

use crate::single::{built, built_with, entry};

const KERNELS: &str = "\
#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    fn everything<T: Float>(x: T, y: T) -> T {
        let (sine, cosine) = x.sin_cos();
        let (ln_gamma, sign) = x.ln_gamma();
        [
            x.exp(), x.exp2(), x.exp_m1(), x.ln(), x.log2(), x.log10(), x.ln_1p(), x.cbrt(), x.sin(), x.cos(),
            x.tan(), x.asin(), x.acos(), x.atan(), x.sinh(), x.cosh(), x.tanh(), x.asinh(), x.acosh(),
            x.atanh(), x.erf(), x.erfc(), x.gamma(), x.powf(y), x.hypot(y), x.atan2(y), x.fmod(y), sine,
            cosine, ln_gamma, if sign < 0 { x } else { y },
        ].into_iter().sum()
    }

    #[kernel(T = [f32, f64])]
    pub fn all<T: Float>(t: Thread<1>, x: &[T], mut y: DisjointSlice<T>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = everything(x[i.get()], *y);
        }
    }

    #[kernel]
    pub fn wave(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x[i.get()].exp() + x[i.get()].ln() + x[i.get()].erf();
        }
    }
}

fn main() {}
";

#[test]
fn libm_needs_no_installation_and_is_named_in_the_ptx() {
    let made = built(KERNELS, "[package.metadata.ferrogrid]\nmath = \"libm\"", Build::new()).unwrap();
    assert!(made.ptx.starts_with("// Mathematics: libm\n"), "{}", &made.ptx[..200]);
    assert!(!made.ptx.contains("__nv"));
}

#[test]
fn missing_libdevice_is_an_error_with_advice() {
    let nowhere = Path::new("/nowhere/libdevice.10.bc");
    let error = built_with(KERNELS, "", Build::new(), Some(nowhere)).map(|_| ()).unwrap_err();
    assert!(error.contains("/nowhere/libdevice.10.bc is not a file of LLVM bitcode"), "{error}");
    if libdevice::find().unwrap().is_none() {
        let error = built(KERNELS, "", Build::new().math(Math::Libdevice)).map(|_| ()).unwrap_err();
        assert!(
            error.contains("pip install nvidia-nvvm") && error.contains("FERROGRID_LIBDEVICE"),
            "{error}"
        );
    }
}

#[test]
fn libdevice_is_inlined_and_leaves_no_question_open() {
    let Some(file) = libdevice::find().unwrap() else {
        println!("skipped: no libdevice on this machine");
        return;
    };
    for build in [Build::new(), Build::new().math(Math::Libdevice).fast_math(true)] {
        let made = built_with(KERNELS, "", build, Some(&file)).unwrap();
        assert!(made.ptx.starts_with("// Mathematics: libdevice\n"), "{}", &made.ptx[..200]);
        assert!(!made.ptx.contains("__nvvm_reflect") && !made.ptx.contains("__CUDA"), "{}", made.ptx);
        assert!(!made.ptx.contains("libm-"), "nothing of libm is left");
        let wave = entry(&made.ptx, "wave");
        assert!(!wave.contains("call") || !wave.contains("__nv_"), "{wave}");
        assert!(!wave.contains(".local"), "{wave}");
        assert!(entry(&made.ptx, "all_f32").len() > 1000 && entry(&made.ptx, "all_f64").len() > 1000);
    }
}
