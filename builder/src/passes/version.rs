//! The version of PTX: rustc states the lowest one of the architecture, and products of 8-bit floats by inline assembly need a newer one.
//! Other modules keep theirs, which runs on older drivers.

use ferrogrid_ptx::{Edits, Item, Module};

/// The version that has `mma` of 8-bit floats, from CUDA 12.4 on.
const OF_PRODUCTS: (u32, u32) = (8, 4);

/// Raises the version of a module with products of 8-bit floats.
pub(super) fn raise<'t>(module: &Module<'t>, edits: &mut Edits<'t>) {
    let mut instructions = module.functions().flat_map(|function| function.instructions());
    if !instructions.any(|it| it.operation() == "mma" && (it.has("e4m3") || it.has("e5m2"))) {
        return;
    }
    for item in &module.items {
        if let Item::Version { text, version } = item
            && *version < OF_PRODUCTS
        {
            edits.replace(text, format!(".version {}.{}", OF_PRODUCTS.0, OF_PRODUCTS.1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::after;
    use super::*;

    #[test]
    fn only_products_of_8_bit_floats_raise_the_version() {
        let text = |version, elements| {
            format!(
                ".version {version}\n.target sm_90\n.visible .entry k()\n{{\n\tmma.sync.aligned.m16n8k32.row.col.f32.{elements}.{elements}.f32 \
                 {{%f1, %f2, %f3, %f4}}, {{%r1, %r2, %r3, %r4}}, {{%r5, %r6}}, {{%f1, %f2, %f3, %f4}};\n\tret;\n}}\n"
            )
        };
        for elements in ["e4m3", "e5m2"] {
            assert_eq!(after(&text("7.8", elements), raise), text("8.4", elements));
            assert_eq!(after(&text("8.7", elements), raise), text("8.7", elements));
        }
        assert_eq!(after(&text("7.8", "bf16"), raise), text("7.8", "bf16"));
    }
}
