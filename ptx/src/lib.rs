//! PTX, parsed into types: a module's functions, instructions, registers and line table, with definitions and
//! uses, control flow with dominators, and calls.
//!
//! A [`Module`] borrows the text that it was parsed from, and all of its parts are slices of that text.
//! [`Edits`] replace such parts and keep the rest unchanged, comments included.
//!
//! ```
//! use ferrogrid_ptx::{Edits, Module};
//!
//! let text = ".version 6.3\n.target sm_75\n.visible .entry k(\n\t.param .f32 x\n)\n{\n\tret;\n}\n";
//! let module = Module::parse(text)?;
//! assert_eq!((module.version(), module.target()), (Some((6, 3)), Some("sm_75")));
//! let kernel = module.entry("k").expect("it is there");
//! assert_eq!(kernel.parameters()[0].size(), Some(4));
//!
//! let mut edits = Edits::new(text);
//! edits.insert_before(kernel.body.as_ref().expect("it is defined").text, ".maxntid 128, 1, 1\n");
//! assert!(edits.apply().contains(")\n.maxntid 128, 1, 1\n{"));
//! # Ok::<(), ferrogrid_ptx::ParseError>(())
//! ```

mod calls;
mod control_flow;
mod declaration;
mod edit;
mod function;
mod instruction;
mod module;
mod names;
mod print;
mod registers;
mod scanner;
pub mod uniformity;

pub use calls::Calls;
pub use control_flow::{Block, ControlFlow};
pub use declaration::{Declaration, Declared, Linkage};
pub use edit::Edits;
pub use function::{Body, Directive, Function, Location, Parameters, Statement, StatementKind};
pub use instruction::{Instruction, Operand, Predicate};
pub use module::{File, Item, Module, ParseError};
pub use registers::{Register, Registers};
