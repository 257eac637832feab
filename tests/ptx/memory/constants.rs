//! Facts about constant memory: declared once, with its initial bytes, and read from there.

use crate::{code, count, images};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[constant]
    pub static WEIGHTS: Constant<[f32; 5]> = Constant::new([1.0, 2.0, 4.0, 8.0, 16.0]);

    #[constant]
    static SCALE: Constant<f64> = Constant::new(0.5);

    #[constant]
    static NOTHING_YET: Constant<[u32; 100]> = Constant::new([0; 100]);

    #[device]
    pub static FOUND: [DeviceAtomic<u32>; 3] =
        [DeviceAtomic::new(1), DeviceAtomic::new(2), DeviceAtomic::new(3)];

    fn weight(i: usize) -> f32 {
        WEIGHTS[i]
    }

    #[kernel]
    pub fn filter(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index().get();
        let sum = (0..5).map(|k| WEIGHTS[k] * x.get(i + k).copied().unwrap_or(0.0)).sum();
        if let Some(y) = y.get_mut(t.index()) {
            *y = sum;
        }
    }

    #[kernel]
    pub fn found(t: Thread<1>, x: &[u32]) {
        if let Some(&x) = x.get(t.index().get()) {
            FOUND[x as usize & 1].fetch_add(1, Ordering::Relaxed);
        }
    }

    #[kernel]
    pub fn pick(t: Thread<1>, k: u32, mut y: DisjointSlice<f64>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = f64::from(weight(k as usize)) * *SCALE + f64::from(NOTHING_YET[k as usize]);
        }
    }
}

/// A static that kernels change is a variable in global memory with its initial bytes, referred to where it is changed.
#[test]
fn a_static_of_the_device_is_changed_in_global_memory() {
    let kernel = kernels::found::kernel();
    for (architecture, lines) in code(kernel) {
        assert_eq!(count(&lines, "atom.relaxed.gpu.global.add.u32"), 1, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "atom."), 1, "{architecture}: {lines:#?}");
        let (_, ptx) = images(kernel).into_iter().find(|image| image.0 == architecture).unwrap();
        let variable = ptx.lines().find(|line| line.contains("__ferrogrid_static_FOUND_")).unwrap();
        assert!(variable.starts_with(".visible .global .align 4 "), "{architecture}: {variable}");
        assert!(variable.ends_with("{1, 0, 0, 0, 2, 0, 0, 0, 3};"), "{architecture}: {variable}");
    }
}

#[test]
fn constants_are_read_from_constant_memory() {
    for (architecture, lines) in code(kernels::filter::kernel()) {
        assert_eq!(loads(&lines, "ld.const"), 5, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "ld.global."), 5, "only the input: {architecture}: {lines:#?}");
    }
    for (architecture, lines) in code(kernels::pick::kernel()) {
        assert_eq!(loads(&lines, "ld.const"), 3, "{architecture}: {lines:#?}");
        assert_eq!(count(&lines, "ld.global"), 0, "{architecture}: {lines:#?}");
        for line in lines.iter().filter(|line| line.starts_with("ld.")) {
            assert!(line.starts_with("ld.param") || line.starts_with("ld.const"), "{architecture}: {line}");
        }
    }
}

/// Values that are loaded: a vector counts as often as it has elements.
fn loads(lines: &[&str], opcode: &str) -> usize {
    let width =
        |line: &&&str| [(".v4.", 4), (".v2.", 2)].iter().find(|(v, _)| line.contains(v)).map_or(1, |it| it.1);
    lines.iter().filter(|line| line.starts_with(opcode)).map(|line| width(&line)).sum()
}

#[test]
fn constants_are_declared_once_with_their_first_bytes() {
    let kernel = kernels::filter::kernel();
    for (architecture, ptx) in images(kernel) {
        let declaration = |name: &str| {
            let mut lines = ptx.lines().filter(|line| {
                line.contains(&format!("__ferrogrid_constant_{name}_"))
                    && line.trim_start().starts_with(".visible")
            });
            let line = lines.next().expect("it is declared");
            assert_eq!(lines.next(), None, "{architecture}");
            assert!(line.starts_with(".visible .const .align "), "{architecture}: {line}");
            line
        };
        let weights = declaration("WEIGHTS");
        let bytes = "{0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 128, 64, 0, 0, 0, 65, 0, 0, 128, 65}";
        assert!(weights.contains("[20]") && weights.contains(bytes), "{architecture}: {weights}");
        let scale = declaration("SCALE");
        assert!(
            scale.contains("0d3FE0000000000000") || scale.contains("{0, 0, 0, 0, 0, 0, 224, 63}"),
            "{scale}"
        );
        assert!(declaration("NOTHING_YET").contains("[400]"), "{architecture}");
    }
}
