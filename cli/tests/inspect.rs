//! `cargo ferrogrid inspect` from outside, on a package with kernels: the code below the user's own lines,
//! and the shape of its JSON. Scripts stand in for NVIDIA's programs.

mod package;
mod shape;
#[path = "../../builder/tests/build/user_cargo.rs"]
mod user_cargo;

use std::fs;
use std::process::Output;

use serde_json::Value;

use package::Package;

const MAIN: &str = r#"fn main() {}

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    /// y <- a*x + y
    #[kernel]
    pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y += a * x[i.get()];
        }
    }

    #[kernel(block = 64, T = [f32, u64], N = [64])]
    pub fn reversed<T: SharedElement + Copy + Default, const N: usize>(
        t: Thread<1>, mut y: DisjointSlice<T>, mut tile: Shared<[T; N]>,
    ) {
        let i = t.index();
        tile.fill_with(&t, |_| T::default());
        let read = t.publish(tile);
        if let Some(y) = y.get_mut(i) {
            *y = read[N - 1 - t.thread_rank() as usize];
        }
    }
}
"#;

/// The kernels of two examples: one that the program also has, and one that both have.
const EXAMPLE: &str = r#"fn main() {}

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[kernel]
    pub fn saxpy(t: Thread<1>, mut y: DisjointSlice<f32>) {
        if let Some(y) = y.get_mut(t.index()) {
            *y = NUMBER;
        }
    }

    #[kernel(T = [f32, u32])]
    pub fn copied<T: DeviceCopy>(t: Thread<1>, x: &[T], mut y: DisjointSlice<T>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            *y = x[i.get()];
        }
    }
}
"#;

/// Stands in for ptxas, for the entry point given by `-e` or all of the text: 40 registers for sm_75, else 36.
const PTXAS: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in
        -e) entry=$2; shift ;;
        -o) out=$2; shift ;;
        -arch=*) arch=${1#-arch=} ;;
        *.ptx) file=$1 ;;
    esac
    shift
done
[ "$arch" = sm_120 ] && { echo "ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'" >&2; exit 1; }
[ "$arch" = sm_75 ] && registers=40 || registers=36
for name in ${entry:-$(sed -n 's/.*\.entry \([a-z0-9_]*\)(.*/\1/p' "$file")}; do
    echo "ptxas info    : Compiling entry function '$name' for '$arch'" >&2
    echo "ptxas info    : Function properties for $name" >&2
    echo "    0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads" >&2
    echo "ptxas info    : Used $registers registers, used 1 barriers" >&2
done
echo "${entry:-all}" > "$out"
"#;

/// Stands in for nvdisasm.
const NVDISASM: &str = r#"#!/bin/sh
for file; do :; done
entry=$(cat "$file")
echo ".text.$entry:"
echo '	//## File "src/main.rs", line 12'
echo '        /*0000*/                   FFMA R7, R2, R4, R7 ;'
"#;

/// The package that the tests share.
struct Inspected(Package);

impl Inspected {
    fn new() -> Self {
        let (one, two) = (EXAMPLE.replace("NUMBER", "1.0"), EXAMPLE.replace("NUMBER", "2.0"));
        let files = [
            ("src/main.rs", MAIN),
            ("examples/one.rs", &*one),
            ("examples/two.rs", &*two),
            ("tools/ptxas", PTXAS),
            ("tools/nvdisasm", NVDISASM),
        ];
        Inspected(Package::new("inspected", "app", "0.1.0", &files))
    }

    fn inspect(&self, tools: bool, arguments: &[&str]) -> Output {
        let mut command = user_cargo::command(env!("CARGO_BIN_EXE_cargo-ferrogrid"), &self.0.folder);
        command.arg("inspect").args(arguments).env_remove("FERROGRID_ARCH");
        for (variable, tool) in [("FERROGRID_PTXAS", "ptxas"), ("FERROGRID_NVDISASM", "nvdisasm")] {
            let folder = self.0.folder.join(if tools { "tools" } else { "nowhere" });
            command.env(variable, folder.join(tool));
        }
        command.output().unwrap()
    }

    fn text(&self, tools: bool, arguments: &[&str]) -> String {
        let output = self.inspect(tools, arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(true, arguments)).unwrap()
    }

    fn failure(&self, tools: bool, arguments: &[&str]) -> String {
        let output = self.inspect(tools, arguments);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }
}

/// The code below a line of the source, up to the next one.
fn below<'a>(text: &'a str, source: &str) -> Vec<&'a str> {
    let after = text.lines().skip_while(|line| !line.ends_with(source)).skip(1);
    after.take_while(|line| line.starts_with("        ")).map(str::trim).collect()
}

#[test]
fn ptx_stands_below_the_users_own_lines() {
    let package = Inspected::new();
    let text = package.text(true, &["saxpy"]);
    assert!(text.starts_with("kernels::saxpy, bin `app`, for sm_75\n"), "{text}");
    assert!(text.contains("\nsrc/main.rs\n"), "{text}");
    let code = below(&text, "   12 |             *y += a * x[i.get()];");
    for instruction in ["ld.global.nc.b32", "mul.rn.f32", "add.rn.f32", "st.global.b32"] {
        assert!(code.iter().any(|line| line.starts_with(instruction)), "{instruction} is not in {code:?}");
    }
    let signature = "    9 |     pub fn saxpy(t: Thread<1>, a: f32, x: &[f32], mut y: DisjointSlice<f32>) {";
    assert!(below(&text, signature)[0].starts_with("ld.param"), "{text}");
    assert!(text.contains("registers 40, stack 0 bytes, spills 4 + 8 bytes"), "{text}");
    // 40 registers: 48 warps of 32 threads on a multiprocessor with 65536; 1024 threads are 32 of 64.
    let row = text.lines().find(|line| line.starts_with("sm_90 ")).unwrap();
    let row: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(row, ["sm_90", "sm_75", "36", "0", "12", "50%", "75%", "75%", "75%", "75%", "50%"], "{text}");
    assert!(
        text.lines().any(|line| line.starts_with("sm_120") && line.contains("not defined for")),
        "{text}"
    );
}

#[test]
fn an_instance_of_a_generic_kernel_has_its_own_block_and_shared_memory() {
    let package = Inspected::new();
    let report = package.json(&["reversed::<u64, 64>", "--json"]);
    let kernel = &report["kernels"][0];
    assert_eq!((&kernel["shared_bytes"], &kernel["arguments"][0]), (&512.into(), &"u64".into()));
    assert_eq!(kernel["block"].to_string(), "[64,1,1]");
    let row = kernel["occupancy"].as_array().unwrap().iter().find(|row| row["arch"] == "sm_90").unwrap();
    assert_eq!(row["blocks"][0]["threads"], 64);
    let table = package.text(true, &["reversed"]);
    let shared: Vec<&str> = table
        .lines()
        .filter(|it| it.starts_with("kernels::"))
        .filter_map(|it| it.split(' ').next_back())
        .collect();
    assert_eq!(shared, ["256", "512"], "{table}");
    let message = package.failure(true, &["reversed", "--sass"]);
    let advice = "  cargo ferrogrid inspect 'kernels::reversed::<f32, 64>' --bin app --sass\n";
    assert!(message.contains(advice), "{message}");
}

#[test]
fn of_kernels_of_the_same_name_that_of_the_program_is_meant() {
    let package = Inspected::new();
    let output = package.inspect(true, &["saxpy"]);
    let (text, note) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("kernels::saxpy, bin `app`, for sm_75\n"), "{text}");
    assert!(note.contains("other targets have kernels of that name: --example one, --example two"), "{note}");
    let text = package.text(true, &["saxpy", "--example", "two"]);
    assert!(text.starts_with("kernels::saxpy, example `two`, for sm_75\n"), "{text}");
}

#[test]
fn a_package_of_examples_alone_has_kernels() {
    let package = Inspected::new();
    fs::remove_dir_all(package.0.folder.join("src")).unwrap();
    let text = package.text(true, &["saxpy", "--example", "one"]);
    assert!(text.starts_with("kernels::saxpy, example `one`, for sm_75\n"), "{text}");
}

#[test]
fn a_table_of_kernels_has_the_command_for_each() {
    let package = Inspected::new();
    let table = package.text(true, &["copied"]);
    let rows: Vec<&str> = table
        .lines()
        .filter(|it| it.starts_with("kernels::"))
        .map(|it| it.split("  sm_").next().unwrap().trim())
        .collect();
    let expected = ["one", "two"]
        .map(|name| ["f32", "u32"].map(|ty| format!("kernels::copied::<{ty}>  --example {name}")));
    assert_eq!(rows, expected.concat(), "{table}");
    let request = table.lines().last().unwrap().trim();
    assert_eq!(request, "cargo ferrogrid inspect 'kernels::copied::<f32>' --example one", "{table}");
    let text = package.text(true, &["kernels::copied::<f32>", "--example", "one"]);
    assert!(text.starts_with("kernels::copied::<f32>, example `one`, for sm_75\n"), "{text}");
    let message = package.failure(true, &["copied::<u32>", "--sass"]);
    let advice = "  cargo ferrogrid inspect 'kernels::copied::<u32>' --example two --sass\n";
    assert!(message.contains(advice), "{message}");
}

#[test]
fn another_architecture_is_compiled_for_this_and_the_build_stays_as_it_is() {
    let package = Inspected::new();
    let report = package.json(&["saxpy", "--arch", "sm_90", "--json"]);
    let kernel = &report["kernels"][0];
    assert_eq!(kernel["arch"], "sm_90");
    let ptx = fs::read_to_string(kernel["ptx_file"].as_str().unwrap()).unwrap();
    assert!(ptx.contains(".target sm_90"));
    assert_eq!(package.json(&["saxpy", "--json"])["kernels"][0]["arch"], "sm_75");
    assert!(package.failure(true, &["saxpy", "--arch", "sm_12"]).contains("sm_12"));
}

#[test]
fn machine_code_stands_below_the_users_own_lines() {
    let package = Inspected::new();
    let text = package.text(true, &["saxpy", "--sass"]);
    assert_eq!(
        below(&text, "   12 |             *y += a * x[i.get()];"),
        ["0000 FFMA R7, R2, R4, R7"],
        "{text}"
    );
}

#[test]
fn without_nvidias_programs_inspect_shows_ptx_and_advice() {
    let package = Inspected::new();
    let text = package.text(false, &["saxpy"]);
    assert!(text.contains("st.global.b32"), "{text}");
    let folder = user_cargo::target().join("cuda");
    let advice = format!("pip install --target {} nvidia-cuda-nvcc", folder.display());
    assert!(text.contains(&advice), "{text}");
    let message = package.failure(false, &["saxpy", "--sass"]);
    assert!(message.contains("machine code requires ptxas and nvdisasm"), "{message}");
    assert!(
        message.contains("nvidia-cuda-nvcc\n") && message.ends_with("nvidia-cuda-nvdisasm\n"),
        "{message}"
    );
}

#[test]
fn an_unknown_kernel_is_an_error_that_names_the_closest() {
    let package = Inspected::new();
    assert!(package.failure(true, &["saxpi"]).contains("no kernel `saxpi`; did you mean `saxpy`?"));
    let message = package.failure(true, &["--example", "x"]);
    assert!(message.contains("kernels of example `x` are in none of the packages app"), "{message}");
}

#[test]
fn the_report_has_the_shape_that_programs_rely_on() {
    let package = Inspected::new();
    let report = package.json(&["saxpy", "--json"]);
    assert_eq!((&report["schema"], &report["package"]), (&1.into(), &"app".into()));
    shape::assert_golden("inspect", &report);
    let kernels = package.json(&["--json"]);
    assert_eq!(kernels["kernels"].as_array().unwrap().len(), 9);
    shape::assert_golden("inspect-all", &kernels);
}
