//! Printing of the types alone: the words of the text, spaced as LLVM does, without comments.

use std::fmt;

use crate::{
    Declaration, Declared, Function, Instruction, Item, Linkage, Module, Operand, Parameters, Predicate,
};
use crate::{Statement, StatementKind};

impl fmt::Display for Module<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for item in &self.items {
            match item {
                Item::Version { version: (major, minor), .. } => write!(f, ".version {major}.{minor}")?,
                Item::Target { names, .. } => write!(f, ".target {}", names.join(", "))?,
                Item::File(file) => f.write_str(file.text)?,
                Item::Variable(variable) => write!(f, "{variable};")?,
                Item::Function(function) => write!(f, "{function}")?,
                Item::Directive(text) => f.write_str(text)?,
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}

impl fmt::Display for Linkage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Linkage::Internal => "",
            Linkage::Visible => ".visible ",
            Linkage::Weak => ".weak ",
            Linkage::Extern => ".extern ",
            Linkage::Common => ".common ",
        })
    }
}

impl fmt::Display for Declaration<'_> {
    /// Without a semicolon.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} ", self.linkage, self.specification)?;
        for (at, declared) in self.names.iter().enumerate() {
            write!(f, "{}{declared}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Declared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if let Some(count) = self.registers {
            write!(f, "<{count}>")?;
        }
        for length in &self.lengths {
            match length {
                0 => f.write_str("[]")?,
                _ => write!(f, "[{length}]")?,
            }
        }
        self.initializer.map_or(Ok(()), |value| write!(f, " = {value}"))
    }
}

impl fmt::Display for Parameters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (at, parameter) in self.items.iter().enumerate() {
            write!(f, "{}{parameter}", if at == 0 { "" } else { ", " })?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Function<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} ", self.linkage, if self.is_entry { ".entry" } else { ".func" })?;
        if let Some(returned) = &self.returned {
            write!(f, "{returned} ")?;
        }
        f.write_str(self.name)?;
        if let Some(parameters) = &self.parameters {
            write!(f, "{parameters}")?;
        }
        for directive in &self.directives {
            write!(f, "\n{}", directive.text)?;
        }
        let Some(body) = &self.body else { return f.write_str("\n;\n") };
        f.write_str("\n{\n")?;
        for statement in &body.statements {
            writeln!(f, "{statement}")?;
        }
        f.write_str("}\n")
    }
}

impl fmt::Display for Statement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            StatementKind::Instruction(instruction) => write!(f, "\t{instruction}"),
            StatementKind::Label(name) => write!(f, "{name}:"),
            StatementKind::Declaration(declaration) => write!(f, "\t{declaration};"),
            StatementKind::Open => f.write_str("\t{"),
            StatementKind::Close => f.write_str("\t}"),
            StatementKind::Targets { name, targets } => {
                write!(f, "{name}: .branchtargets {};", targets.join(", "))
            }
            StatementKind::Location(_) | StatementKind::Prototype { .. } | StatementKind::Directive => {
                write!(f, "\t{}", self.text)
            }
        }
    }
}

impl fmt::Display for Instruction<'_> {
    /// LLVM's form, with its semicolon.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Predicate { register, is_negated }) = self.predicate {
            write!(f, "@{}{register} ", if is_negated { "!" } else { "" })?;
        }
        f.write_str(self.opcode)?;
        let first = if self.operation() == "call" { " " } else { " \t" };
        for (at, operand) in self.operands.iter().enumerate() {
            f.write_str(if at == 0 { first } else { ", " })?;
            write!(f, "{operand}")?;
        }
        f.write_str(";")
    }
}

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, open: &str, items: &[Operand<'_>], close: &str| {
            f.write_str(open)?;
            for (at, item) in items.iter().enumerate() {
                write!(f, "{}{item}", if at == 0 { "" } else { ", " })?;
            }
            f.write_str(close)
        };
        match self {
            Operand::Name(text) | Operand::Immediate(text) => f.write_str(text),
            Operand::Address(items) => list(f, "[", items, "]"),
            Operand::Vector(items) => list(f, "{", items, "}"),
            Operand::Arguments(items) => list(f, "(", items, ")"),
            Operand::Pair(two) => write!(f, "{}|{}", two[0], two[1]),
            Operand::Not(inner) => write!(f, "!{inner}"),
            Operand::Offset(two) => write!(f, "{}+{}", two[0], two[1]),
            Operand::Generic(inner) => write!(f, "generic({inner})"),
        }
    }
}
