//! Compiled device code as embedded in the program: PTX per architecture, and the build step's description of
//! each entry point.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use const_panic::concat_panic;
use ferrogrid_device::constant::LIMIT;

use crate::backend::ALIGNMENT;
use crate::kernel::Loaded;

/// The build step's description of a module's entry points: name, (size, alignment) of each parameter, and the numbers of
/// their layouts.
#[doc(hidden)]
pub type Entries = &'static [(&'static str, &'static [(usize, usize)], &'static [u64])];

/// The kernels of one or several modules, compiled: (architecture, PTX ISA major, minor, text, the machine code made of
/// it or nothing) for each architecture.
#[doc(hidden)]
#[derive(Debug)]
pub struct EmbeddedImage {
    /// Differs between images whose code differs.
    pub id: u128,
    /// The code.
    pub codes: &'static [(&'static str, u32, u32, &'static str, &'static [u8])],
    /// Files, by name, with functions that the code declares and calls.
    pub links: &'static [(&'static str, &'static [u8])],
}

/// The device code of one annotated module, if it has any.
#[doc(hidden)]
#[derive(Debug)]
pub struct ModuleImage {
    source: ImageSource,
}

#[derive(Debug)]
enum ImageSource {
    /// The image with this number.
    Embedded(&'static [EmbeddedImage], usize),
    /// None was wanted.
    HostOnly,
    /// None could be built, for this reason.
    Unbuilt(&'static str),
    /// Code of another compiler, of which a function was loaded.
    Foreign { function: AtomicPtr<c_void>, may_panic: bool },
}

/// One PTX text of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ptx {
    /// `sm_75`, `sm_90a` and so on.
    pub(crate) arch: &'static str,
    /// PTX ISA version (major, minor).
    pub(crate) version: (u32, u32),
    pub(crate) text: &'static str,
    /// The machine code that the build made from it; empty if none.
    pub(crate) cubin: &'static [u8],
}

impl Ptx {
    /// The machine code, if it is for a device of exactly that compute capability. It would run on some others, too,
    /// but for those the driver's compiler knows better.
    pub(crate) fn machine_code(&self, capability: (u32, u32)) -> Option<&'static [u8]> {
        let number = self.arch.strip_prefix("sm_")?.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let is_exact = number.parse() == Ok(capability.0 * 10 + capability.1);
        (is_exact && !self.cubin.is_empty()).then_some(self.cubin)
    }
}

impl ModuleImage {
    /// Image number `number` of a target.
    pub const fn embedded(images: &'static [EmbeddedImage], number: usize) -> Self {
        ModuleImage { source: ImageSource::Embedded(images, number) }
    }

    /// The image of a `host_only` module: none.
    pub const fn host_only() -> Self {
        ModuleImage { source: ImageSource::HostOnly }
    }

    /// None, since the build step could not compile for a device.
    pub const fn unbuilt(reason: &'static str) -> Self {
        ModuleImage { source: ImageSource::Unbuilt(reason) }
    }

    /// A function that was loaded elsewhere.
    pub(crate) fn foreign(Loaded { function, may_panic }: Loaded) -> Self {
        ModuleImage { source: ImageSource::Foreign { function: AtomicPtr::new(function), may_panic } }
    }

    /// The function, if it was loaded elsewhere.
    pub(crate) fn loaded(&self) -> Option<Loaded> {
        match &self.source {
            ImageSource::Foreign { function, may_panic } => {
                Some(Loaded { function: function.load(Ordering::Relaxed), may_panic: *may_panic })
            }
            _ => None,
        }
    }

    /// Why device code is missing although it was requested.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        match self.source {
            ImageSource::Unbuilt(reason) => Some(reason),
            _ => None,
        }
    }

    fn image(&self) -> Option<&'static EmbeddedImage> {
        match self.source {
            ImageSource::Embedded(images, number) => images.get(number),
            _ => None,
        }
    }

    /// The number that identifies equal images; `None` if there is no device code.
    pub(crate) fn id(&self) -> Option<u128> {
        self.image().map(|image| image.id)
    }

    /// The files that it is linked with, by name.
    pub(crate) fn links(&self) -> &'static [(&'static str, &'static [u8])] {
        self.image().map_or(&[], |image| image.links)
    }

    /// All PTX texts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = Ptx> {
        let codes = self.image().into_iter().flat_map(|image| image.codes);
        codes.map(|&(arch, major, minor, text, cubin)| Ptx { arch, version: (major, minor), text, cubin })
    }

    /// The texts that run on a device of `capability`, best first.
    pub(crate) fn candidates(&self, capability: (u32, u32)) -> Vec<Ptx> {
        let mut ranked: Vec<(u32, bool, Ptx)> =
            self.texts().filter_map(|ptx| rank(ptx, capability.0 * 10 + capability.1)).collect();
        ranked.sort_by_key(|&(number, specific, _)| std::cmp::Reverse((number, specific)));
        ranked.into_iter().map(|(_, _, ptx)| ptx).collect()
    }
}

/// `ptx` with its rank, if it runs on a device of compute capability `device` (90 for 9.0).
/// Architectures with a suffix (`sm_90a`, `sm_100f`) run on exactly that capability.
fn rank(ptx: Ptx, device: u32) -> Option<(u32, bool, Ptx)> {
    let number = ptx.arch.strip_prefix("sm_")?;
    let digits = number.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let specific = digits.len() < number.len();
    let number: u32 = digits.parse().ok()?;
    let runs = if specific { number == device } else { number <= device };
    runs.then_some((number, specific, ptx))
}

/// Compares a kernel's parameters on the host with those that the device compiler saw.
///
/// # Panics
/// At compile time, if they differ: the entry is missing, or the count, a size or an alignment.
#[doc(hidden)]
pub const fn check_params(entries: Entries, entry: &str, params: &[(usize, usize)]) {
    let device = entries[find(entries, entry)].1;
    if device.len() != params.len() {
        concat_panic!(
            "kernel entry `", display: entry, "` has ", params.len(),
            " parameters on the host, but ", device.len(),
            " on the device: check for a `cfg` that differs between the two"
        );
    }
    let mut index = 0;
    while index < params.len() {
        let (host, device) = (params[index], device[index]);
        if host.0 != device.0 || host.1 != device.1 {
            concat_panic!(
                "kernel entry `", display: entry, "`: parameter ", index + 1,
                " (after slices are split into pointer and length) has size ", host.0,
                " and alignment ", host.1, " on the host, but size ", device.0,
                " and alignment ", device.1,
                " on the device: is its type `#[repr(C)]`, with the same fields on both sides?"
            );
        }
        index += 1;
    }
}

/// Compares the layouts of the two halves: each number with its meaning.
///
/// # Panics
/// At compile time, if they differ.
#[doc(hidden)]
pub const fn check_layout(entries: Entries, entry: &str, host: &[(&str, u64, bool)]) {
    let device = entries[find(entries, entry)].2;
    if device.len() != host.len() {
        concat_panic!("kernel entry `", display: entry, "` has other parameters on the device");
    }
    let mut index = 0;
    while index < host.len() {
        let ((what, host, is_hash), device) = (host[index], device[index]);
        if host != device {
            let hint = ": does a `cfg` in its type hold on one side only, or do the two compilers lay out \
                        a tuple or an `Option` in it differently?";
            if is_hash {
                concat_panic!(
                    "kernel entry `", display: entry, "`: ", display: what,
                    " differs between host and device", display: hint
                );
            }
            concat_panic!(
                "kernel entry `", display: entry, "`: ", display: what,
                " is ", host, " on the host, but ", device, " on the device", display: hint
            );
        }
        index += 1;
    }
}

/// Compares whether `debug_assertions` holds in both halves.
///
/// # Panics
/// At compile time, if it does not.
#[doc(hidden)]
pub const fn check_debug_assertions(host: bool, device: bool) {
    assert!(
        host == device,
        "`debug_assertions` holds in one half of this module only: the build step goes by the profile that \
         ferrogrid-build is compiled with; say `debug-assertions = true` or `false` in \
         [package.metadata.ferrogrid], or `ferrogrid_build::Build::new().debug_assertions(..)` in build.rs"
    );
}

/// Compares what a library's host half was compiled with (all choices, a line each, if they are known; and options that
/// hold or not) with the choices that it was compiled with for kernels of another package.
///
/// # Panics
/// At compile time, with `message`, if they differ.
#[doc(hidden)]
pub const fn check_library(host: (Option<&str>, &[(&str, bool)]), device: &str, message: &str) {
    let mut is_same = match host.0 {
        Some(choices) => equal(choices, device),
        None => true,
    };
    let mut at = 0;
    while at < host.1.len() {
        let (option, holds) = host.1[at];
        is_same &= holds == has_line(device, option);
        at += 1;
    }
    if !is_same {
        panic!("{}", message);
    }
}

/// Whether one of the lines of a text is `line`.
const fn has_line(text: &str, line: &str) -> bool {
    let (mut rest, line) = (text.as_bytes(), line.as_bytes());
    let mut at = 0;
    while at < rest.len() {
        if rest[at] != b'\n' {
            at += 1;
            continue;
        }
        let (found, others) = rest.split_at(at);
        if equal_bytes(found, line) {
            return true;
        }
        rest = others.split_at(1).1;
        at = 0;
    }
    false
}

/// The number of an entry point.
const fn find(entries: Entries, entry: &str) -> usize {
    let mut at = 0;
    while at < entries.len() && !equal(entries[at].0, entry) {
        at += 1;
    }
    if at == entries.len() {
        concat_panic!(
            "the device image has no kernel entry `", display: entry,
            "`: does a `cfg` that holds on the host not hold on the device?"
        );
    }
    at
}

/// The bytes of constants up to the one called `name`, of that size and alignment, after `before` bytes.
///
/// # Panics
/// At compile time, if that exceeds constant memory, or the constant cannot be there.
#[doc(hidden)]
pub const fn add_constant(before: usize, name: &str, size: usize, align: usize) -> usize {
    if size == 0 || align > ALIGNMENT {
        concat_panic!(
            "constant `", display: name, "` has ", size, " bytes, aligned to ", align,
            ": constant memory holds values of at least 1 byte, aligned to at most ", ALIGNMENT
        );
    }
    let total = before.next_multiple_of(align).saturating_add(size);
    if total > LIMIT {
        concat_panic!(
            "the constants of this module take ", total, " bytes up to `", display: name,
            "`, which has ", size,
            ": constant memory has ", LIMIT
        );
    }
    total
}

const fn equal(a: &str, b: &str) -> bool {
    equal_bytes(a.as_bytes(), b.as_bytes())
}

const fn equal_bytes(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut index = 0;
    while index < a.len() {
        if a[index] != b[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    static IMAGES: &[EmbeddedImage] = &[EmbeddedImage {
        id: 7,
        codes: &[
            ("sm_75", 6, 3, "seventy-five", b"code"),
            ("sm_90", 7, 8, "ninety", b"code"),
            ("sm_90a", 8, 0, "ninety-a", b"code"),
            ("sm_100", 8, 6, "hundred", &[]),
        ],
        links: &[],
    }];

    const ENTRIES: Entries = &[("saxpy_0", &[(4, 4), (8, 8)], &[1024, 4, 0xabcd])];

    fn archs(capability: (u32, u32)) -> Vec<&'static str> {
        ModuleImage::embedded(IMAGES, 0).candidates(capability).iter().map(|ptx| ptx.arch).collect()
    }

    #[test]
    fn the_highest_architecture_that_runs_comes_first() {
        assert_eq!(archs((8, 6)), ["sm_75"]);
        assert_eq!(archs((9, 0)), ["sm_90a", "sm_90", "sm_75"]);
        assert_eq!(archs((10, 0)), ["sm_100", "sm_90", "sm_75"]);
        assert_eq!(archs((12, 0)), ["sm_100", "sm_90", "sm_75"]);
        assert!(archs((7, 0)).is_empty());
    }

    #[test]
    fn machine_code_is_for_its_own_capability_only() {
        let machine_code = |capability| {
            let image = ModuleImage::embedded(IMAGES, 0);
            let fit = |ptx: &Ptx| ptx.machine_code(capability).is_some();
            image.candidates(capability).iter().filter(|ptx| fit(ptx)).map(|ptx| ptx.arch).collect::<Vec<_>>()
        };
        assert_eq!(machine_code((7, 5)), ["sm_75"]);
        assert!(machine_code((8, 6)).is_empty(), "that of 7.5 would not run");
        assert_eq!(machine_code((9, 0)), ["sm_90a", "sm_90"]);
        assert!(machine_code((10, 0)).is_empty(), "there is none, and that of 9.0 would not run");
    }

    #[test]
    fn constants_fill_their_memory_to_the_last_byte_and_are_aligned_to_as_much_as_there_is() {
        let refused = |before, size, align| {
            std::panic::catch_unwind(|| add_constant(before, "C", size, align)).is_err()
        };
        assert_eq!((add_constant(0, "C", LIMIT, 4), add_constant(LIMIT - 8, "C", 8, 8)), (LIMIT, LIMIT));
        assert_eq!(add_constant(1, "C", 4, ALIGNMENT), ALIGNMENT + 4);
        assert!(refused(0, LIMIT + 1, 4) && refused(LIMIT - 7, 8, 8) && refused(0, 0, 4));
        assert!(refused(0, 4, 2 * ALIGNMENT));
    }

    #[test]
    fn a_host_only_module_has_no_texts() {
        assert_eq!(ModuleImage::host_only().id(), None);
        assert_eq!(ModuleImage::host_only().texts().count(), 0);
    }

    #[test]
    fn equal_parameters_pass_at_compile_time() {
        const { check_params(ENTRIES, "saxpy_0", &[(4, 4), (8, 8)]) };
    }

    fn refusal(entry: &str, params: &[(usize, usize)]) -> String {
        let hook = std::panic::catch_unwind(|| check_params(ENTRIES, entry, params));
        *hook.unwrap_err().downcast::<String>().unwrap()
    }

    #[test]
    fn a_difference_is_named() {
        assert!(refusal("gone_0", &[]).starts_with("the device image has no kernel entry `gone_0`"));
        assert!(refusal("saxpy_0", &[(4, 4)]).contains("has 1 parameters on the host, but 2 on the device"));
        let text = refusal("saxpy_0", &[(4, 4), (16, 8)]);
        assert!(text.contains("parameter 2"), "{text}");
        assert!(text.contains("size 16 and alignment 8 on the host, but size 8 and alignment 8"), "{text}");
    }

    #[test]
    fn a_library_is_compared_by_all_its_properties() {
        let device = "fast\nfeature=\"x\"\n";
        let is_same = |host: (Option<&str>, &[(&str, bool)])| {
            std::panic::catch_unwind(|| check_library(host, device, "differs")).is_ok()
        };
        assert!(
            is_same((Some(device), &[]))
                && is_same((None, &[("feature=\"x\"", true), ("feature=\"y\"", false)]))
        );
        assert!(!is_same((Some("fast\n"), &[])));
        assert!(
            !is_same((None, &[("feature=\"x\"", false)])) && !is_same((None, &[("feature=\"y\"", true)]))
        );
        assert!(!is_same((None, &[("feature=\"", true)])), "a part of a line is none");
    }

    #[test]
    fn layouts_that_differ_are_named_with_both_numbers() {
        const HOST: [(&str, u64, bool); 3] =
            [("the bytes", 1024, false), ("the size of `x`", 4, false), ("the layout of `x`", 0xabcd, true)];
        const { check_layout(ENTRIES, "saxpy_0", &HOST) };
        let refusal = |at: usize| {
            let mut host = HOST;
            host[at].1 = 8;
            let refused = std::panic::catch_unwind(|| check_layout(ENTRIES, "saxpy_0", &host));
            *refused.unwrap_err().downcast::<String>().unwrap()
        };
        assert!(
            refusal(1).contains("the size of `x` is 8 on the host, but 4 on the device"),
            "{}",
            refusal(1)
        );
        assert!(refusal(2).contains("the layout of `x` differs between host and device"), "{}", refusal(2));
    }

    #[test]
    fn an_unbuilt_image_has_a_reason() {
        let image = ModuleImage::unbuilt("no compiler");
        assert_eq!((image.reason(), image.id()), (Some("no compiler"), None));
        assert_eq!(ModuleImage::host_only().reason(), None);
    }
}
