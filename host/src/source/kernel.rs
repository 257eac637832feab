//! One kernel from text, and its launch with run-time checks.

use ferrogrid_build::{ProgramKernel, Travels};

use super::argument::SourceArguments;
use super::module::no_native_code;
use super::slot::Slots;
use crate::error::Result;
use crate::error::source::SourceError;
use crate::kernel::Kernel;
use crate::launch::extent::same_shape;
use crate::launch::grid::{Grid, IntoGrid};
use crate::launch::launch_with;
use crate::launch::parameter::block_output::rows_for_blocks;
use crate::launch::parameter::list::{Held, ParameterList};
use crate::stream::Stream;

/// A kernel of a [`SourceModule`](super::SourceModule). `Copy`; it lives as long as the process.
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// use ferrogrid::SourceModule;
///
/// let device = Device::cuda(0)?;
/// let text = "#[kernel(max_threads = 256)] pub fn scale(t: Thread<1>, a: f32, mut x: DisjointSlice<f32>) {
///     if let Some(x) = x.get_mut(t.index()) { *x *= a; }
/// }";
/// let scale = SourceModule::new(&device, text)?.kernel("scale")?;
/// assert_eq!((scale.name(), scale.kernel().max_threads()), ("program::scale", Some(256)));
/// println!("{}", scale.signature()); // program::scale(t: Thread < 1 >, a: f32, x: DisjointSlice < f32 >)
/// println!("{} registers", device.attributes(scale.kernel())?.num_regs);
///
/// let stream = device.new_stream()?;
/// let mut x = stream.fill(1.0_f32, 1000)?;
/// scale.launch(&stream, Grid::cover(1000), (2.0_f32, &mut x))?;
/// let refused = scale.launch(&stream, Grid::cover(1000), (2.0_f64, &mut x)).unwrap_err();
/// println!("{refused}"); // kernel `program::scale`: `a: f32` cannot be `f64`, passed by value
/// # Ok(()) }
/// ```
#[derive(Clone, Copy)]
pub struct SourceKernel {
    entry: &'static SourceEntry,
}

/// The properties of a kernel, kept until the process ends.
pub(super) struct SourceEntry {
    pub(super) kernel: Kernel,
    pub(super) described: ProgramKernel,
    /// Name and type of each parameter.
    pub(super) names: Vec<(&'static str, &'static str)>,
}

impl SourceKernel {
    pub(super) fn new(entry: &'static SourceEntry) -> Self {
        SourceKernel { entry }
    }

    /// Its path in the text.
    pub fn name(&self) -> &'static str {
        self.entry.kernel.name()
    }

    /// Its name and parameters as written.
    pub fn signature(&self) -> String {
        let parameters: Vec<String> =
            self.entry.names.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
        format!("{}({})", self.name(), parameters.join(", "))
    }

    /// The kernel as the runtime knows it: for [`Device::attributes`](crate::Device::attributes),
    /// [`Device::occupancy`](crate::Device::occupancy) and the like.
    pub fn kernel(&self) -> &'static Kernel {
        &self.entry.kernel
    }

    /// Enqueues the kernel on `stream`, as the launch function of a kernel of this program does: in order with other work on
    /// the same buffers, with all checks of the grid. The arguments are checked against what the device compiler says of
    /// the kernel's types; see [`SourceArgument`](super::SourceArgument).
    ///
    /// # Errors
    /// [`SourceError::Rank`], [`SourceError::ArgumentCount`], [`SourceError::ArgumentType`]; [`SourceError::Unchecked`] for
    /// `unsafe` kernels and those that take tuples, tiles or pointers; [`Error::Unsupported`](crate::Error::Unsupported)
    /// on a stream of the CPU device; else as launch functions.
    #[track_caller]
    pub fn launch<'a, const R: usize, A: SourceArguments<'a>>(
        &self,
        stream: &Stream,
        grid: impl IntoGrid<R>,
        arguments: A,
    ) -> Result<()> {
        self.check(stream, R, A::COUNT)?;
        let entry = self.entry;
        let mut slots = Slots::of(entry);
        let held = arguments.hold_all(stream, &mut slots)?;
        let list = ParameterList::of(&held);
        let grid = grid.into_grid();
        self.check_together(stream, grid, &slots, &list)?;
        let (shared_bytes, cooperative) = (slots.shared.bytes(), entry.described.cooperative);
        let (params, accesses) = (list.addresses(), list.accesses());
        // SAFETY: the rank is the kernel's; each argument is of the type that the device compiler names for its parameter,
        // and there is one for each, of its size, at an address in `held`; the accesses are of all memory among them, which
        // `held` borrows. The text has no unsafe code, or its user vouched for it.
        unsafe { launch_with(&entry.kernel, stream, &grid, shared_bytes, cooperative, params, accesses)? };
        drop(list);
        held.finish(stream)
    }

    /// The checks before any argument is copied to the device.
    fn check(&self, stream: &Stream, rank: usize, count: usize) -> Result<()> {
        let (kernel, described) = (self.name(), &self.entry.described);
        if !stream.device().is_cuda() {
            return Err(no_native_code(stream.device()));
        }
        let unchecked = |reason: String| SourceError::Unchecked { kernel, reason: reason.into() };
        if described.is_unsafe {
            return Err(unchecked("is an `unsafe fn`".to_owned()).into());
        }
        let parameters = described.parameters.iter().zip(&self.entry.names);
        if let Some((_, (name, ty))) = parameters.clone().find(|(it, _)| it.travels == Travels::Otherwise) {
            return Err(
                unchecked(format!("takes `{name}: {ty}`, which only a launch function can pass")).into()
            );
        }
        if rank != described.rank {
            return Err(SourceError::Rank { kernel, expected: described.rank, found: rank }.into());
        }
        let expected = parameters.filter(|(it, _)| it.travels != Travels::Nowhere).count();
        if count != expected {
            return Err(SourceError::ArgumentCount { kernel, expected, found: count }.into());
        }
        Ok(())
    }

    /// The checks that arguments, grid and kernel match.
    fn check_together<const R: usize>(
        &self,
        stream: &Stream,
        grid: Grid<R>,
        slots: &Slots,
        list: &ParameterList<'_>,
    ) -> Result<()> {
        let SourceEntry { kernel, described, names } = self.entry;
        let lengths = |number: usize| slots.lengths.iter().find(|(it, _)| *it == number).map(|(_, it)| *it);
        for (first, others) in &described.same_shape {
            for other in others {
                if let (Some(one), Some(two)) = (lengths(*first), lengths(*other)) {
                    same_shape(kernel, (names[*first].0, &one), (names[*other].0, &two))?;
                }
            }
        }
        for (number, lengths) in &slots.lengths {
            if matches!(described.parameters[*number].travels, Travels::Output { rows: true, .. }) {
                rows_for_blocks(kernel, stream, grid, names[*number].0, lengths)?;
            }
        }
        // A length is passed by its low half where it has 32 bits.
        let fits = |(&found, &(size, _)): (&usize, &(usize, usize))| found == size || (found, size) == (8, 4);
        let is_whole = list.sizes().len() == described.sizes.len();
        if is_whole && list.sizes().iter().zip(&described.sizes).all(fits) {
            return Ok(());
        }
        let reason = "has parameters that are not those of its signature".into();
        Err(SourceError::Unchecked { kernel: self.name(), reason }.into())
    }
}

debug_by_methods!(SourceKernel { signature });
