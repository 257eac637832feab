//! The alignment of tensor maps among the parameters of entry points: the hardware reads them at multiples of 64 bytes, and
//! rustc passes nothing that is aligned to more than 16.

use ferrogrid_ptx::{Edits, Module};

/// The declaration of a tensor map but for its name. Other values may look the same; they do not mind.
const DECLARED: &str = ".param .align 16 .b8 ";
const ALIGNED: &str = ".param .align 64 .b8 ";
const BYTES: &str = "[128]";

/// Aligns each parameter of 128 bytes that is aligned to 16.
pub(super) fn align<'t>(module: &Module<'t>, edits: &mut Edits<'t>) {
    let entries = module.functions().filter(|function| function.is_entry && function.body.is_some());
    for parameter in
        entries.filter_map(|entry| entry.parameters.as_ref()).flat_map(|parameters| &parameters.items)
    {
        if let Some(name) = parameter.text.strip_prefix(DECLARED)
            && name.ends_with(BYTES)
        {
            edits.replace(parameter.text, format!("{ALIGNED}{name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::after;
    use super::*;

    #[test]
    fn parameters_of_128_bytes_are_aligned_for_the_hardware() {
        let text = ".visible .entry k(\n\t.param .align 16 .b8 k_param_0[128],\n\t.param .align 8 .b8 k_param_1[128],\n\t.param .align 16 .b8 k_param_2[64]\n)\n{\n\tret;\n}\n";
        assert_eq!(after(text, align), text.replacen("16", "64", 1));
    }
}
