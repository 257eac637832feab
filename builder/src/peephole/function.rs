//! The body of a PTX function as lines, with the place where each register gets its value. It must not know
//! what is rewritten.

use std::collections::HashMap;

/// A body while it is rewritten.
pub(super) struct Function<'t> {
    pub(super) lines: Vec<Line<'t>>,
    definitions: HashMap<&'t str, Definition>,
    /// How many companions there are, of 32 and of 64 bits.
    companions: [usize; 2],
}

/// A line as it was, and as it is to be.
pub(super) struct Line<'t> {
    pub(super) text: &'t str,
    pub(super) changed: Option<String>,
    /// A register that gets its value just behind the line, and the instruction for that.
    companion: Option<(String, String)>,
    in_asm: bool,
}

/// Where a register gets its value.
#[derive(Clone, Copy)]
enum Definition {
    Once(usize),
    Often,
}

/// An instruction of LLVM's own, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instruction<'t> {
    pub(super) opcode: &'t str,
    /// In the order of the text; unused ones are empty.
    pub(super) operands: [&'t str; 4],
}

impl<'t> Function<'t> {
    pub(super) fn parse(lines: &[&'t str]) -> Self {
        let mut in_asm = false;
        let mut definitions = HashMap::new();
        let mut parsed = Vec::with_capacity(lines.len());
        for (at, text) in lines.iter().copied().enumerate() {
            in_asm = match text.trim() {
                "// begin inline asm" => true,
                "// end inline asm" => false,
                _ => in_asm,
            };
            for register in statements(text).flat_map(defined) {
                definitions
                    .entry(register)
                    .and_modify(|definition| *definition = Definition::Often)
                    .or_insert(Definition::Once(at));
            }
            parsed.push(Line { text, changed: None, companion: None, in_asm });
        }
        Function { lines: parsed, definitions, companions: [0; 2] }
    }

    /// Where `register` gets its only value.
    pub(super) fn line_of(&self, register: &str) -> Option<usize> {
        match self.definitions.get(register)? {
            Definition::Once(line) => Some(*line),
            Definition::Often => None,
        }
    }

    /// The instruction of LLVM's own that gives `register` its only value.
    pub(super) fn definition(&self, register: &str) -> Option<Instruction<'t>> {
        self.instruction(self.line_of(register)?)
    }

    /// The instruction of a line, if it is one of LLVM's own without a condition.
    pub(super) fn instruction(&self, line: usize) -> Option<Instruction<'t>> {
        let line = &self.lines[line];
        if line.in_asm {
            return None;
        }
        let mut all = statements(line.text);
        let only = all.next().filter(|only| !only.starts_with('@'))?;
        if all.next().is_some() {
            return None;
        }
        let (opcode, operands) = only.split_once(char::is_whitespace)?;
        let mut instruction = Instruction { opcode, operands: [""; 4] };
        // Further ones are parts of lists, which no instruction has that is rewritten by its operands.
        for (place, operand) in instruction.operands.iter_mut().zip(operands.split(',')) {
            *place = operand.trim();
        }
        Some(instruction)
    }

    /// Puts another instruction in the place of a line's.
    pub(super) fn replace(&mut self, line: usize, instruction: &str) {
        self.lines[line].changed = Some(format!("\t{instruction};\n"));
    }

    /// Puts an instruction in the place of a line's that takes the low half of `register`, as it is there.
    pub(super) fn replace_by_half(&mut self, line: usize, register: &str, by: impl FnOnce(&str) -> String) {
        let half = format!("%narrow{}", self.companions[0]);
        self.companions[0] += 1;
        let instruction = by(&half);
        self.lines[line].changed = Some(format!("\tcvt.u32.u64 \t{half}, {register};\n\t{instruction};\n"));
    }

    /// How often a label occurs.
    pub(super) fn mentions(&self, label: &str) -> usize {
        let follows =
            |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
        let occurrences = |text: &str| {
            text.match_indices(label).filter(|(at, _)| follows(&text[at + label.len()..])).count()
        };
        self.lines.iter().map(|line| occurrences(line.text)).sum()
    }

    /// A 32-bit register with the low half of `register`, which has a single definition: at every use of that one,
    /// this one has its low half.
    pub(super) fn low_half(&mut self, register: &str) -> Option<String> {
        self.companion(self.line_of(register)?, 0, "%narrow", &format!("cvt.u32.u64 \t{{}}, {register}"))
    }

    /// A 64-bit register with the value that `source` has where `register` is defined.
    pub(super) fn copy_at(&mut self, register: &str, source: &str) -> Option<String> {
        self.companion(self.line_of(register)?, 1, "%space", &format!("mov.b64 \t{{}}, {source}"))
    }

    fn companion(&mut self, line: usize, width: usize, prefix: &str, instruction: &str) -> Option<String> {
        if self.lines[line].in_asm {
            return None;
        }
        let known = &mut self.lines[line].companion;
        let (name, _) = known.get_or_insert_with(|| {
            let name = format!("{prefix}{}", self.companions[width]);
            self.companions[width] += 1;
            let instruction = instruction.replace("{}", &name);
            (name, instruction)
        });
        Some(name.clone())
    }

    pub(super) fn write(&self, out: &mut String) {
        for (count, declaration) in self.companions.iter().zip([".reg .b32 \t%narrow", ".reg .b64 \t%space"])
        {
            if *count > 0 {
                out.push_str(&format!("\t{declaration}<{count}>;\n"));
            }
        }
        for line in &self.lines {
            out.push_str(line.changed.as_deref().unwrap_or(line.text));
            if let Some((_, instruction)) = &line.companion {
                out.push_str(&format!("\t{instruction};\n"));
            }
        }
    }
}

/// The instructions of a line, each without its semicolon.
pub(super) fn statements(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or_default();
    // Braces are scopes at a line's ends, and lists of registers elsewhere.
    let code = code.trim();
    let code = code.strip_prefix('{').unwrap_or(code);
    code.split(';').map(str::trim).filter(|it| !it.is_empty() && !it.starts_with(['.', '$', '}']))
}

/// The registers that an instruction gives a value, and for some instructions others that it does not.
pub(super) fn defined(statement: &str) -> impl Iterator<Item = &str> {
    let statement = match statement.strip_prefix('@') {
        Some(conditional) => conditional.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim()),
        None => statement,
    };
    let operands = statement.split_once(char::is_whitespace).map_or("", |(_, operands)| operands.trim());
    let first = match operands.strip_prefix('{') {
        Some(list) => list.split('}').next(),
        None => operands.split(',').next(),
    };
    let names = first.unwrap_or_default().split([',', '|', '(', ')']).map(str::trim);
    names.filter(|name| name.starts_with('%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_found_in_lists_conditions_and_asm() {
        let lines = [
            "\tld.global.v2.b64 \t{%rd1, %rd2}, [%rd3];\n",
            "\t@%p1 mov.b64 \t%rd4, 0;\n",
            "\t// begin inline asm\n",
            "\t{ .reg .u64 %t; mov.u64 %t, x; cvta.shared.u64 %rd5, %t; }\n",
            "\t// end inline asm\n",
            "\tsetp.lt.u32 \t%p2|%p3, %r1, %r2;\n",
            "\tst.global.b64 \t[%rd6], %rd7;\n",
            "\tcvt.u64.u32 \t%rd5, %r3;\n",
        ];
        let function = Function::parse(&lines);
        for (register, line) in [("%rd1", 0), ("%rd2", 0), ("%rd4", 1), ("%p2", 5), ("%p3", 5)] {
            assert_eq!(function.line_of(register), Some(line), "{register}");
        }
        for register in ["%rd5", "%rd3", "%rd6", "%rd7", "%r1"] {
            assert_eq!(function.line_of(register), None, "{register}");
        }
        assert_eq!(function.instruction(1), None, "under a condition");
        assert_eq!(function.instruction(3), None, "asm");
        let store = Instruction { opcode: "st.global.b64", operands: ["[%rd6]", "%rd7", "", ""] };
        assert_eq!(function.instruction(6), Some(store));
    }
}
