//! Advice for errors that come from the structure of device crates, and from habits of other languages.

/// The advice that fits the diagnostics: a line each, or nothing.
pub(super) fn hint(diagnostics: &str) -> String {
    HINTS
        .iter()
        .filter(|(signs, _)| signs.iter().any(|sign| diagnostics.contains(sign)))
        .map(|(_, advice)| format!("\n  {advice}"))
        .collect()
}

/// What a diagnostic contains, and the advice for it.
const HINTS: &[(&[&str], &str)] = &[
    (
        &[
            "the `half` feature",
            "the type `f16` is unstable",
            "cannot find type `bf16`",
            "a crate named `half`",
        ],
        "half precision is a feature of `ferrogrid` in Cargo.toml, `features = [\"half\"]`; then, in the module: `use \
         ferrogrid::device::half::{f16, bf16};`",
    ),
    (
        &["not defined at compile time"],
        "kernels see the variables that cargo sets for every crate of the package; a variable of the build script is set by \
         `ferrogrid_build::Build::new().env(\"NAME\", value).run()`, for both sides",
    ),
    (
        &["behind a `&` reference"],
        "a kernel only reads a `&[T]`: an output is a `DisjointSlice<T>`, and elements that threads change together are \
         a `&[DeviceAtomic<T>]`",
    ),
    (
        &["E0412", "E0425", "E0432", "E0433", "cannot find macro"],
        "kernels see annotated modules and no_std crates, not the rest of this crate: what they call must \
         move into the module",
    ),
    (
        &["`Vec`", "`String`", "`Box`", "macro `vec`", "macro `format`", "`std`"],
        "there is no std on the device, and nothing allocates: use an array for values of a thread, `Shared<[T; N]>` for \
         those of a block, a `DisjointSlice<T>` for results; `core` has the rest of std",
    ),
    (
        &["macro `println`", "macro `print`"],
        "kernels print by Ferrogrid's `println!`: `use ferrogrid::device::println;` in the module",
    ),
    (
        &["::Index<'_, "],
        "`i.get()` is the index `i` of a thread as a number: `x[i.get()]` reads, `y.get_mut(i)` writes",
    ),
    (
        &["expected `Index<'_, "],
        "an `Index` comes from a thread: `t.index()`, `t.grid_stride(n)`; results of a whole block go to a `DisjointRows` \
         or `DisjointTiles`, which gives each block a row or tile",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_items_and_wrong_indices_have_advice() {
        assert!(hint("error[E0425]: cannot find function `f`").contains("move into the module"));
        let allocates = hint("error[E0433]: failed to resolve: use of undeclared type `Vec`");
        assert!(
            allocates.contains("annotated modules") && allocates.contains("nothing allocates"),
            "{allocates}"
        );
        let prints = hint("error: cannot find macro `println` in this scope");
        assert!(prints.contains("`use ferrogrid::device::println;`"), "{prints}");
        let indexed = "the type `[f32]` cannot be indexed by `ferrogrid::device::Index<'_, 1>`";
        assert!(hint(indexed).contains("`x[i.get()]` reads"));
        let made_up = "expected `Index<'_, 1>`, found `[u32; 1]`";
        assert!(hint(made_up).contains("`DisjointRows`"));
        let half = hint("error[E0658]: the type `f16` is unstable");
        assert!(half.contains("`features = [\"half\"]`") && !half.contains("annotated"), "{half}");
        let written = "error[E0594]: cannot assign to `x[_]`, which is behind a `&` reference";
        assert!(hint(written).contains("`DisjointSlice<T>`"));
        assert_eq!(hint("error[E0308]: mismatched types"), "");
    }
}
