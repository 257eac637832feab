//! Facts about compiled kernels, for each architecture: address spaces, read-only loads, no stack. They are
//! facts, not snapshots: a newer compiler may change everything else.

mod block;
mod boxes;
mod groups;
mod half;
mod lanes;
mod math;
mod memory;
mod merges;
mod operations;
mod orders;
mod products;
mod speed;
mod tiles;

use std::sync::LazyLock;

use ferrogrid::__private::Kernel;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += a * x[i.get()];
        }
    }

    #[kernel]
    pub fn fill_2d(t: Thread<2>, value: u64, mut output: DisjointSlice<u64, 2>) {
        if let Some(output) = output.get_mut(t.index()) {
            *output = value;
        }
    }

    /// Sixteen bytes that move as one.
    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C, align(16))]
    pub struct Four([f32; 4]);

    #[kernel]
    pub fn scale_fours(t: Thread<1>, a: f32, x: &[Four], mut y: DisjointSlice<Four>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = Four(x[i.get()].0.map(|value| a * value));
        }
    }

    /// # Safety
    /// Both are valid for every thread.
    #[kernel]
    pub unsafe fn raw(t: Thread<1>, x: *const f32, y: *mut f32) {
        let i = t.index().get();
        // SAFETY: the caller's.
        unsafe { *y.add(i) = *x.add(i) };
    }
}

#[ferrogrid::module]
mod bounds {
    use ferrogrid::device::prelude::*;

    #[kernel(block = [16, 4], min_blocks = 2)]
    pub fn fixed(_t: Thread<2>) {}

    #[kernel(max_threads = 96)]
    pub fn limited(_t: Thread<1>) {}

    #[kernel(max_registers = 32)]
    pub fn narrow(_t: Thread<1>) {}
}

#[test]
fn promises_about_launches_are_directives() {
    let expected = [
        (bounds::fixed::kernel(), [".reqntid 16, 4, 1", ".minnctapersm 2"].as_slice()),
        (bounds::limited::kernel(), [".maxntid 96, 1, 1"].as_slice()),
        (bounds::narrow::kernel(), [".maxnreg 32"].as_slice()),
        (kernels::raw::kernel(), [].as_slice()),
    ];
    for (kernel, directives) in expected {
        for (architecture, lines) in code(kernel) {
            let is_bound = |line: &&str| {
                [".reqntid", ".maxntid", ".minn", ".maxnreg"].iter().any(|name| line.starts_with(name))
            };
            let found: Vec<&str> = lines.into_iter().filter(is_bound).collect();
            assert_eq!(found, directives, "{architecture}, {}", kernel.name());
        }
    }
}

/// The kernels of `kernels`.
fn all() -> [&'static Kernel; 4] {
    [
        kernels::saxpy::kernel(),
        kernels::fill_2d::kernel(),
        kernels::scale_fours::kernel(),
        kernels::raw::kernel(),
    ]
}

/// The instructions of `kernel` for each architecture, without directives and comments.
fn code(kernel: &Kernel) -> Vec<(&'static str, Vec<&'static str>)> {
    let of = |(architecture, ptx): (_, &'static str)| {
        let start = ptx.find(&format!(".entry {}(", kernel.entry())).expect("the entry is in the PTX");
        let body = &ptx[start..];
        let end = body.find("\n}").expect("the entry ends");
        (architecture, body[..end].lines().map(str::trim).collect())
    };
    images(kernel).into_iter().map(of).collect()
}

/// Architecture and PTX of each image that a kernel is in: as embedded, or those of the folder that `FERROGRID_TEST_PTX` names, where
/// tests/mutants/gpu.py has other PTX of the same kernels.
fn images(kernel: &Kernel) -> Vec<(&'static str, &'static str)> {
    static OTHERS: LazyLock<Option<Vec<(&str, &str)>>> = LazyLock::new(|| {
        let files = std::fs::read_dir(std::env::var_os("FERROGRID_TEST_PTX")?).expect("a folder");
        let images = files.map(|file| file.expect("a file").path()).filter_map(|file| {
            let name = file.file_name()?.to_str()?;
            let architecture = name.strip_prefix("test-ptx.")?.strip_suffix(".ptx")?.to_owned();
            Some((&*architecture.leak(), &*std::fs::read_to_string(&file).expect("PTX").leak()))
        });
        Some(images.collect())
    });
    let embedded =
        |architecture| (architecture, kernel.ptx_for(architecture).expect("named architectures are there"));
    let images = match &*OTHERS {
        Some(images) => images.clone(),
        None => kernel.architectures().into_iter().map(embedded).collect(),
    };
    assert!(!images.is_empty());
    images
}

fn count(lines: &[&str], opcode: &str) -> usize {
    lines.iter().filter(|line| line.split_whitespace().any(|word| word.starts_with(opcode))).count()
}

#[test]
fn inputs_are_read_through_the_read_only_path() {
    for (architecture, lines) in code(kernels::saxpy::kernel()) {
        assert_eq!(
            count(&lines, "ld.global.nc.b32") + count(&lines, "ld.global.nc.f32"),
            1,
            "{architecture}: {lines:#?}"
        );
    }
}

#[test]
fn every_access_names_global_memory() {
    for kernel in all() {
        for (architecture, lines) in code(kernel) {
            let loads = count(&lines, "ld.") - count(&lines, "ld.param") - count(&lines, "ld.global");
            let stores = count(&lines, "st.") - count(&lines, "st.param") - count(&lines, "st.global");
            assert_eq!((loads, stores), (0, 0), "{architecture}, {}: {lines:#?}", kernel.name());
            assert!(count(&lines, "st.global") > 0, "{architecture}, {}", kernel.name());
        }
    }
}

#[test]
fn writable_memory_is_not_read_through_the_read_only_path() {
    for (architecture, lines) in code(kernels::raw::kernel()) {
        assert_eq!(count(&lines, "ld.global.nc"), 0, "{architecture}: {lines:#?}");
    }
}

#[test]
fn sixteen_bytes_move_at_once() {
    for (architecture, lines) in code(kernels::scale_fours::kernel()) {
        let wide = |opcode: &str| {
            lines.iter().any(|line| {
                line.contains(opcode)
                    && (line.contains(".v4.") || line.contains(".v2.b64") || line.contains(".b128"))
            })
        };
        assert!(wide("ld.global.nc") && wide("st.global"), "{architecture}: {lines:#?}");
    }
}

#[test]
fn no_kernel_here_needs_a_stack() {
    for kernel in all() {
        for (architecture, lines) in code(kernel) {
            assert!(!lines.iter().any(|line| line.contains(".local")), "{architecture}, {}", kernel.name());
        }
    }
}

#[test]
fn lines_of_the_source_are_in_the_code() {
    let (_, ptx) = images(kernels::saxpy::kernel())[0];
    assert!(ptx.lines().any(|line| line.trim().starts_with(".file") && line.contains("tests/ptx/main.rs")));
    assert!(ptx.contains(".loc"));
}
