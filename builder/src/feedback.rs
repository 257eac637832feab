//! Edits the PTX so that what kernels tell the host (panics, printed text) costs them next to nothing:
//! the host formats. It must not know what rustc was told, nor what the host makes of it.
//!
//! `core::fmt` calls through pointers, and ptxas gives a kernel that may reach such a call the registers
//! and the stack of every function behind a pointer: 255 registers as soon as floating-point numbers are
//! formatted anywhere in the module. So calls of core's panicking functions are led to those of
//! `ferrogrid-device`, which send a message's template and the bytes of its arguments to the host; and
//! where an argument carries the address of a formatting function, it gets that of a description of the
//! type instead.

mod calls;
mod formatters;
mod functions;
mod parameter;
mod symbols;

use functions::Functions;
pub(crate) use parameter::RECORD;

/// The text with those edits. In a program whose kernels themselves call through pointers, formatting
/// functions stay, and messages come without their arguments.
pub(crate) fn adapt(text: &str) -> String {
    let text = calls::redirect(text);
    let functions = Functions::parse(&text);
    let formatters = formatters::find(&functions);
    let direct = functions.reachable(&formatters);
    let describes = !direct.iter().any(|&at| functions.has_indirect_call(at));
    let text = if describes {
        let kept = functions.without(|at| !direct.contains(&at));
        formatters::describe(&kept, &formatters)
    } else {
        let reachable = functions.reachable(&Default::default());
        functions.without(|at| !reachable.contains(&at))
    };
    parameter::hand_on(&symbols::define(&text, describes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
.version 6.3
.target sm_75
.address_size 64

.func _RNvNtCsitLHWDqi81h_4core9panicking9panic_fmt
(
\t.param .b64 a,
\t.param .b64 b,
\t.param .b64 c
)
;
.extern .global .align 8 .u64 __ferrogrid_formatters;
.global .align 8 .u64 vtable[4] = {0, 8, 8, _RNvXs1g_NtCsitLHWDqi81h_4core3fmtRmNtB6_5Debug3fmtCshu1xtC76I2d_3lab};
.global .align 8 .u64 forgotten[1] = {_RNvCsfgHYwM92fyn_7___rustc17rust_begin_unwind};
.visible .entry k(
\t.param .u64 k_param_0
)
{
\t.reg .b64 \t%rd<9>;
\tmov.b64 \t%rd11, vtable;
\tmov.b64 \t%rd12, _RNvXs8_NtNtNtCsitLHWDqi81h_4core3fmt3num3impmNtB9_7Display3fmt;
\t{ // callseq 1, 0
\t.param .b64 \tparam0;
\t.param .b64 \tparam1;
\t.param .b64 \tparam2;
\tst.param.b64 \t[param1], %rd7;
\tcall.uni _RNvNtCsitLHWDqi81h_4core9panicking9panic_fmt, (param0, param1, param2);
\t} // callseq 1
\ttrap; exit;
}
.func _RNvNtCsitLHWDqi81h_4core9panicking9panic_fmt(
\t.param .b64 a,
\t.param .b64 b,
\t.param .b64 c
)
{
\tcall.uni _RNvCsfgHYwM92fyn_7___rustc17rust_begin_unwind, (param0, param1);
}
.func _RNvCsfgHYwM92fyn_7___rustc17rust_begin_unwind(
\t.param .b64 a
)
{
\tcall (retval0), %rd1, (param0, param1), prototype_3;
}
.func  (.param .b32 func_retval0) _RNvXs8_NtNtNtCsitLHWDqi81h_4core3fmt3num3impmNtB9_7Display3fmt(
\t.param .b64 a,
\t.param .b64 b
)
{
\tret;
}
.func  (.param .b32 func_retval0) _RNvXs1g_NtCsitLHWDqi81h_4core3fmtRmNtB6_5Debug3fmtCshu1xtC76I2d_3lab(
\t.param .b64 a,
\t.param .b64 b
)
{
\tret;
}
\t// .globl\t__ferrogrid_panic_fmt
.visible .func __ferrogrid_panic_fmt(
\t.param .b64 a,
\t.param .b64 b,
\t.param .b64 c
)
{
\tld.param.b64 \t%rd1, [__ferrogrid_record];
\tld.global.b64 \t%rd2, [__ferrogrid_formatters];
\texit;
}
\t.file\t1 \"src/main.rs\"
";

    #[test]
    fn a_formatted_panic_reaches_no_formatting_function() {
        let text = adapt(TEXT);
        assert!(
            text.contains("call.uni __ferrogrid_panic_fmt, (param0, param1, param2, ferrogrid_record_0);"),
            "{text}"
        );
        assert!(text.contains("mov.b64 \t%rd12, __ferrogrid_format_1;"), "{text}");
        assert!(text.contains("{0, 8, 8, generic(__ferrogrid_format_0)};"), "{text}");
        for gone in ["rust_begin_unwind", "forgotten", "9panic_fmt", "Display3fmt(", "_RNv"] {
            assert!(!text.contains(gone), "{gone} is still in\n{text}");
        }
        assert!(text.ends_with("\t.file\t1 \"src/main.rs\"\n"));
    }

    #[test]
    fn what_the_host_sets_is_defined() {
        let text = adapt(TEXT);
        assert!(text.contains(".visible .global .align 8 .u64 __ferrogrid_formatters = 1;\n"), "{text}");
    }

    #[test]
    fn a_kernel_that_calls_through_pointers_keeps_all_functions_behind_them() {
        let calling = TEXT.replace("\ttrap; exit;\n", "\tcall (retval0), %rd1, (param0), prototype_1;\n");
        let text = adapt(&calling);
        assert!(
            text.contains(
                "mov.b64 \t%rd12, _RNvXs8_NtNtNtCsitLHWDqi81h_4core3fmt3num3impmNtB9_7Display3fmt;"
            )
        );
        assert!(text.contains("__ferrogrid_formatters = 0;"), "{text}");
    }

    #[test]
    fn text_without_panics_stays_as_it_is() {
        let plain = ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n";
        assert_eq!(adapt(plain), plain);
    }
}
