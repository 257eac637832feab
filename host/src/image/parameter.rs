//! One parameter of a kernel, as described by its image.

/// A parameter of a foreign kernel: its size, and its name if the image has it.
///
/// ```no_run
/// use ferrogrid::{ForeignFunction, Parameter};
///
/// /// The bytes of all arguments of a launch.
/// fn argument_bytes(kernel: &ForeignFunction) -> Option<usize> {
///     let parameters: &[Parameter] = kernel.parameters()?;
///     Some(parameters.iter().map(|parameter| parameter.size).sum())
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name in the PTX; `None` in machine code.
    pub name: Option<Box<str>>,
    /// Its size in bytes.
    pub size: usize,
}
