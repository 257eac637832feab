//! The text of a Python module of kernels: a typed function for each, with its documentation.

use std::fmt::Write;

use ferrogrid_build::inspect::{Argument, BlockOutput, CompiledKernel, Element, Passing, Signature};

use super::names;

/// A kernel under its name in Python.
pub(super) struct Exported {
    /// The name of its function.
    pub(super) function: String,
    pub(super) kernel: CompiledKernel,
    pub(super) signature: Signature,
}

/// What the folder of the package has for a module: the files with code by architecture.
pub(super) struct Images {
    /// Architecture and file name.
    pub(super) ptx: Vec<(String, String)>,
    pub(super) cubin: Vec<(String, String)>,
}

/// The first line of all files that are made here.
pub(super) const MADE: &str = "Made by `cargo ferrogrid export`; the next export replaces it.";

/// The text of the module `name` of the package `package`.
pub(super) fn module(name: &str, package: &str, images: &Images, kernels: &[Exported]) -> String {
    let mut text = format!(
        "\"\"\"The kernels of `{name}` in the Rust package `{package}`.\n\n{MADE}\n\"\"\"\n\n\
         from __future__ import annotations\n\nimport os\nfrom typing import Optional\n\n\
         from ._ferrogrid import Array, Dims, Image, In, Module, Out, Shared, Spec, Stream, Value, unavailable\n\n"
    );
    let names = kernels.iter().map(|it| format!("    {},\n", quoted(&it.function)));
    let _ = writeln!(text, "__all__ = [\n{}]\n", names.collect::<String>());
    let table = |files: &[(String, String)]| {
        let entries = files.iter().map(|(arch, file)| format!("{}: {}", quoted(arch), quoted(file)));
        format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
    };
    let _ = writeln!(
        text,
        "_module = Module(\n    Image(\n        os.path.dirname(os.path.abspath(__file__)),\n        ptx={},\n        cubin={},\n    )\n)",
        table(&images.ptx),
        table(&images.cubin)
    );
    for kernel in kernels {
        text += "\n\n";
        text += &function(kernel);
    }
    text
}

/// The function of a kernel.
fn function(exported: &Exported) -> String {
    let Exported { function, kernel, signature } = exported;
    let docs = docs(exported);
    if let Some(reason) = &signature.obstacle {
        let decorator = format!("@unavailable({}, {})", quoted(&kernel.path()), quoted(reason));
        return format!(
            "{decorator}\ndef {function}(*arguments: object, **options: object) -> None:\n{docs}"
        );
    }
    let mut parameters: Vec<String> = signature.arguments.iter().map(parameter).collect();
    parameters.push("*".to_owned());
    if signature.elements.is_none() {
        let dims = ["cover", "grid", "block"].map(|name| format!("{name}: Optional[Dims] = None"));
        parameters.extend(dims);
    }
    parameters.push("stream: Optional[Stream] = None".to_owned());
    let parameters = parameters.iter().map(|it| format!("    {it},\n")).collect::<String>();
    format!("{}\ndef {function}(\n{parameters}) -> None:\n{docs}", decorator(kernel, signature))
}

fn parameter(argument: &Argument) -> String {
    format!("{}: {}", names::identifier(&argument.name), annotation(&argument.passing))
}

/// The type of an argument in Python.
fn annotation(passing: &Passing) -> &'static str {
    match passing {
        Passing::Value(number) => match number.name {
            "bool" => "bool",
            name if name.contains('f') => "float",
            _ => "int",
        },
        Passing::SharedSlice { .. } => "int",
        Passing::Input { .. } | Passing::Output { .. } => "Array",
    }
}

/// The decorator that makes the function launch the kernel.
fn decorator(kernel: &CompiledKernel, signature: &Signature) -> String {
    let mut fields = vec![
        quoted(&kernel.path()),
        quoted(&kernel.entry),
        signature.rank.to_string(),
        format!("[{}]", signature.arguments.iter().map(described).collect::<Vec<_>>().join(", ")),
    ];
    let mut add =
        |name: &str, value: Option<String>| fields.extend(value.map(|value| format!("{name}={value}")));
    let python = |name: &str| quoted(&names::identifier(name));
    let group = |names: &Vec<String>| {
        format!("[{}]", names.iter().map(|it| python(it)).collect::<Vec<_>>().join(", "))
    };
    let groups = signature.same_shape.iter().map(group).collect::<Vec<_>>().join(", ");
    add("block", kernel.block.map(|[x, y, z]| format!("({x}, {y}, {z})")));
    add("max_threads", kernel.max_threads.map(|it| it.to_string()));
    add("shared", (signature.shared_bytes > 0).then(|| signature.shared_bytes.to_string()));
    add("cooperative", signature.is_cooperative.then(|| "True".to_owned()));
    add("wide", signature.is_wide.then(|| "True".to_owned()));
    add("elements", signature.elements.as_ref().map(|(first, tile)| format!("({}, {tile})", python(first))));
    add("same_shape", (!groups.is_empty()).then(|| format!("[{groups}]")));
    add("may_panic", signature.may_panic.then(|| "True".to_owned()));
    let file = quoted(&kernel.file.file_name().unwrap_or_default().to_string_lossy());
    add("lines", signature.may_panic.then(|| format!("({file}, {}, {})", kernel.lines.0, kernel.lines.1)));
    let fields = fields.iter().map(|it| format!("        {it},\n")).collect::<String>();
    format!("@_module.kernel(\n    Spec(\n{fields}    )\n)")
}

/// The description of an argument for the runtime.
fn described(argument: &Argument) -> String {
    let name = quoted(&names::identifier(&argument.name));
    let element = |element: &Element, rank: &usize| {
        let mut fields = vec![name.clone(), quoted(element.number.name)];
        fields.extend((*rank != 1).then(|| format!("rank={rank}")));
        fields.extend(element.array.map(|length| format!("array={length}")));
        fields.push(format!("align={}", element.align));
        fields.extend(element.is_atomic.then(|| "atomic=True".to_owned()));
        fields
    };
    match &argument.passing {
        Passing::Value(number) => format!("Value({name}, {})", quoted(number.name)),
        Passing::SharedSlice { size } => format!("Shared({name}, {size})"),
        Passing::Input { element: it, rank } => format!("In({})", element(it, rank).join(", ")),
        Passing::Output { element: it, rank, of_block } => {
            let mut fields = element(it, rank);
            fields.extend(of_block.as_ref().map(|it| match it {
                BlockOutput::Row => "tile=()".to_owned(),
                BlockOutput::Tile(sizes) => {
                    format!("tile=({},)", sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
                }
            }));
            format!("Out({})", fields.join(", "))
        }
    }
}

/// The docstring of a kernel, with the indentation of a function's body.
fn docs(exported: &Exported) -> String {
    let Exported { kernel, signature, .. } = exported;
    let mut text = match signature.docs.as_str() {
        "" => format!("Launches the kernel `{}`.", kernel.path()),
        docs => docs.to_owned(),
    };
    let file = kernel.file.file_name().unwrap_or_default().display();
    let _ = write!(text, "\n\nIn Rust, line {} of `{file}`::\n\n    {}", kernel.lines.0, signature.text);
    match &signature.obstacle {
        Some(reason) => {
            let _ = write!(text, "\n\nRaises:\n    NotImplementedError: Always, because {reason}.");
        }
        None => text += &arguments(kernel, signature),
    }
    let text = text.replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"");
    let lines =
        text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") });
    let lines = lines.collect::<String>();
    format!("    \"\"\"{}    \"\"\"\n", lines.trim_start())
}

/// The sections about arguments and exceptions.
fn arguments(kernel: &CompiledKernel, signature: &Signature) -> String {
    let mut text = "\n\nArgs:\n".to_owned();
    let mut add = |name: &str, what: &str| {
        let _ = writeln!(text, "    {name}: {what}");
    };
    for argument in &signature.arguments {
        add(&names::identifier(&argument.name), &meaning(&argument.passing));
    }
    if signature.elements.is_none() {
        let axes = ["a number", "(x, y)", "(x, y, z)"][signature.rank - 1];
        add(
            "cover",
            &format!("Elements along each axis, {axes}: the launch has at least a thread for each."),
        );
        add("grid", &format!("Blocks along each axis, {axes}, in place of `cover`."));
        let block = match kernel.block {
            Some(block) => {
                format!("Threads of a block; it is compiled for {block:?}, x first, and no others.")
            }
            None => format!(
                "Threads of a block along each axis, {axes}; by default {}.",
                usual_block(kernel, signature)
            ),
        };
        add("block", &block);
    }
    add(
        "stream",
        "The stream, or its handle; by default the current one of CuPy or PyTorch, whose arrays these are.",
    );
    text += "\nRaises:\n    TypeError, ValueError: An argument is not as above; nothing was launched.\n";
    text += "    CudaError: The driver refused the launch, or has reported an earlier failure.\n";
    if signature.may_panic {
        text += "    KernelPanic: An earlier kernel on the stream panicked. `synchronize` raises a panic of this one.\n";
    }
    if !signature.constants.is_empty() {
        let _ = writeln!(text, "\nAs declared in Rust: {}.", signature.constants.join(", "));
    }
    if signature.prints {
        text += "\nWhat kernels print is not shown.\n";
    }
    text
}

/// The threads of a block that neither the kernel nor the launch chooses, as the runtime has them.
fn usual_block(kernel: &CompiledKernel, signature: &Signature) -> String {
    let usual = ["256", "32 x 8", "8 x 8 x 8"][signature.rank - 1];
    match kernel.max_threads {
        Some(most) if most < 256 || signature.rank == 3 && most < 512 => {
            format!("{usual}, or fewer: at most {most}")
        }
        _ => usual.to_owned(),
    }
}

/// What an argument is, for its line in the docstring.
fn meaning(passing: &Passing) -> String {
    let array = |element: &Element, rank: usize| {
        let name = dtype(element.number.name);
        let mut axes: Vec<String> =
            ["depth", "height", "width"][3 - rank..].iter().map(|&it| it.to_owned()).collect();
        if rank == 1 {
            axes = vec!["n".to_owned()];
        }
        axes.extend(element.array.map(|length| length.to_string()));
        let comma = if axes.len() == 1 { "," } else { "" };
        format!("Array of {name}, shape ({}{comma}), contiguous", axes.join(", "))
    };
    match passing {
        Passing::Value(number) => format!("Number of type {}.", dtype(number.name)),
        Passing::SharedSlice { size } => {
            format!("Elements of {size} bytes in the shared memory of each block.")
        }
        Passing::Input { element, rank } if element.is_atomic => {
            format!("{}; changed by atomic operations.", array(element, *rank))
        }
        Passing::Input { element, rank } => format!("{}; read.", array(element, *rank)),
        Passing::Output { element, rank, of_block } => {
            let part = match of_block {
                None => String::new(),
                Some(BlockOutput::Row) => ", a row by each block".to_owned(),
                Some(BlockOutput::Tile(sizes)) => {
                    let sizes = sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
                    format!(", {sizes} elements by each block")
                }
            };
            format!("{}; written{part}. It overlaps no other argument.", array(element, *rank))
        }
    }
}

/// NumPy's name of a number.
fn dtype(name: &str) -> String {
    let (kind, bits) = match name {
        "usize" => ("uint", "64"),
        "isize" => ("int", "64"),
        "bool" => ("bool", ""),
        name => {
            let (kind, bits) = name.split_at(name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len()));
            (
                ["uint", "int", "float", "bfloat"]
                    [["u", "i", "f", "bf"].iter().position(|it| *it == kind).unwrap_or(0)],
                bits,
            )
        }
    };
    format!("{kind}{bits}")
}

/// A string literal of Python.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_names_of_numpy() {
        let expected =
            [("f32", "float32"), ("usize", "uint64"), ("bool", "bool"), ("bf16", "bfloat16"), ("i8", "int8")];
        for (rust, numpy) in expected {
            assert_eq!(dtype(rust), numpy);
        }
    }

    #[test]
    fn literals_are_those_of_python() {
        assert_eq!(quoted("a\"b\\c\n"), r#""a\"b\\c\n""#);
    }
}
