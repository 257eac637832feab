//! Facts about textures and surfaces: one instruction for each access, and nothing beside it.

use crate::{code, count};

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::half::f16;
    use ferrogrid::device::prelude::*;
    use ferrogrid::device::surface::{Clamp, Trap, Zero};
    use ferrogrid::device::{Texel, TextureElement};

    #[kernel(V = [f32, u8, i32, [f32; 2], [u8; 4], [i16; 4]])]
    pub fn samples<V: Texel>(
        t: Thread<1>,
        line: Texture<V>,
        plane: Texture<V, 2>,
        volume: Texture<V, 3>,
        mut out: DisjointSlice<[V; 3]>,
    ) {
        let i = t.index();
        let x = i.get() as f32 * 0.5;
        if let Some(out) = out.get_mut(i) {
            *out = [line.sample(x), plane.sample(x, 2.0), volume.sample(x, 2.0, 3.0)];
        }
    }

    #[kernel(T = [u8, f16, f32, [i16; 2], [u32; 2], [f32; 4]])]
    pub fn surfaces<T: TextureElement>(
        t: Thread<2>,
        mut plane: Surface<T, 2>,
        line: Surface<T>,
        volume: Surface<T, 3>,
    ) {
        let i = t.index();
        let Some(value) = plane.get(i) else { return };
        plane.set(i, value);
        let x = i.x() as i32;
        // SAFETY: this never runs.
        unsafe {
            let (first, second) = (line.read::<Clamp>([x]), volume.read::<Trap>([x, 1, 2]));
            line.write::<Trap>([x + 1], second);
            volume.write::<Zero>([x + 1, 1, 2], first);
        }
    }
}

/// The count of each of these opcodes.
fn counts<const N: usize>(lines: &[&str], opcodes: [&str; N]) -> [usize; N] {
    opcodes.map(|opcode| count(lines, opcode))
}

#[test]
fn a_sample_is_one_instruction_of_the_type_of_its_values() {
    for (kernel, ty) in [
        (kernels::samples::kernel::<f32>(), "f32"),
        (kernels::samples::kernel::<u8>(), "u32"),
        (kernels::samples::kernel::<i32>(), "s32"),
        (kernels::samples::kernel::<[f32; 2]>(), "f32"),
        (kernels::samples::kernel::<[u8; 4]>(), "u32"),
        (kernels::samples::kernel::<[i16; 4]>(), "s32"),
    ] {
        for (architecture, lines) in code(kernel) {
            let found = ["1d", "2d", "3d"].map(|rank| count(&lines, &format!("tex.{rank}.v4.{ty}.f32")));
            assert_eq!((found, count(&lines, "tex.")), ([1, 1, 1], 3), "{architecture}: {lines:#?}");
            // That of the output's length is the only branch.
            assert_eq!(
                counts(&lines, ["bra", "ld.global", ".local"]),
                [1, 0, 0],
                "{architecture}: {lines:#?}"
            );
        }
    }
}

#[test]
fn an_element_of_a_surface_moves_at_once() {
    for (kernel, ty) in [
        (kernels::surfaces::kernel::<u8>(), "b8"),
        (kernels::surfaces::kernel::<ferrogrid::device::half::f16>(), "b16"),
        (kernels::surfaces::kernel::<f32>(), "b32"),
        (kernels::surfaces::kernel::<[i16; 2]>(), "b32"),
        (kernels::surfaces::kernel::<[u32; 2]>(), "v2.b32"),
        (kernels::surfaces::kernel::<[f32; 4]>(), "v4.b32"),
    ] {
        for (architecture, lines) in code(kernel) {
            let expected = [
                format!("suld.b.2d.{ty}.zero"),
                format!("sust.b.2d.{ty}.zero"),
                format!("suld.b.1d.{ty}.clamp"),
                format!("suld.b.3d.{ty}.trap"),
                format!("sust.b.1d.{ty}.trap"),
                format!("sust.b.3d.{ty}.zero"),
            ];
            let found = expected.each_ref().map(|opcode| count(&lines, opcode));
            assert_eq!(found, [1; 6], "{architecture}: {lines:#?}");
            assert_eq!(counts(&lines, ["suld", "sust", ".local"]), [3, 3, 0], "{architecture}: {lines:#?}");
        }
    }
}
