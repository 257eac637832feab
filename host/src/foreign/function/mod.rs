//! One kernel of a foreign module: its parameters, and a launch that is checked against them. `attributes`
//! launches with attributes, `questions` answers what [`Kernel`](crate::Kernel) answers.

pub(crate) mod attributes;
pub(crate) mod questions;

use std::ffi::c_void;
use std::fmt;

use ferrogrid_device::failure::RECORD_PARAMETER;

use super::argument::ForeignArguments;
use super::kernel::{ForeignKernel, ForeignParameters};
use crate::backend::LaunchAttributes;
use crate::backend::cuda::LoadedFunction;
use crate::device::Device;
use crate::device::context::{gpu, not_null};
use crate::error::foreign::ForeignError;
use crate::error::{Error, Result};
use crate::image::Parameter;
use crate::kernel::image::ModuleImage;
use crate::kernel::{Kernel, KernelDescriptor, Loaded, no_native_body};
use crate::launch::grid::{Grid, IntoGrid};
use crate::launch::parameter::list::{ALIGNMENT, Held, ParameterList};
use crate::launch::{check_devices, enqueue};
use crate::properties::attribute::DeviceAttribute;
use crate::stream::Stream;

/// A kernel of a [`ForeignModule`](super::ForeignModule) (`CUfunction`), from
/// [`ForeignModule::function`](super::ForeignModule::function). `Copy`; it lives as long as its module.
///
/// ```no_run
/// # use ferrogrid::prelude::*;
/// # fn main() -> ferrogrid::Result<()> {
/// let device = Device::cuda(0)?;
/// let stream = device.new_stream()?;
/// // extern "C" __global__ void histogram(const unsigned char* x, int n, unsigned* counts)
/// let histogram = device.load_file("histogram.ptx")?.function("histogram")?;
/// for parameter in histogram.parameters().unwrap_or_default() {
///     println!("{:?}: {} bytes", parameter.name, parameter.size);
/// }
/// println!("{}: {} registers", histogram.name(), histogram.attributes()?.num_regs);
///
/// let histogram = histogram.with_dynamic_shared_memory(256 * 4)?; // `extern __shared__ unsigned bins[]`
/// println!("{}", histogram.occupancy(256)?); // 8 blocks, 64 of 64 warps (100 %), limited by ...
/// let blocks = histogram.max_active_blocks_per_multiprocessor(256)? * device.properties()?.multiprocessor_count;
/// let x = stream.upload(&[7_u8; 1000])?;
/// let mut counts = stream.zeros::<u32>(256)?;
/// // SAFETY: these are its types, and it keeps to `n` elements and 256 counts.
/// unsafe { histogram.launch(&stream, Grid::new(blocks, 256), (&x, 1000_i32, &mut counts))? };
/// assert_eq!(stream.download(&counts)?[7], 1000);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy)]
pub struct ForeignFunction {
    entry: &'static Entry,
    dynamic_shared: u32,
    /// Blocks of a cluster; 1 each if the launch says so, or the code.
    cluster: [u32; 3],
    attributes: LaunchAttributes,
}

/// The properties of a function, kept like the function until the process ends.
struct Entry {
    device: Device,
    loaded: LoadedFunction,
    /// Its name and limits, in the form for grids and errors.
    kernel: Kernel,
    /// `None` if neither driver nor text has them.
    parameters: Option<Vec<Parameter>>,
    static_shared: u32,
    /// Of static and dynamic shared memory together.
    shared_limit: u32,
}

impl ForeignFunction {
    /// `declared` has its parameters as declared in the text, if there is a text.
    pub(super) fn new(
        device: &Device,
        name: &str,
        loaded: LoadedFunction,
        declared: Option<&[Parameter]>,
    ) -> Result<Self> {
        let attributes = loaded.attributes()?;
        let shared_limit = device.attribute(DeviceAttribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let sizes: Option<Vec<usize>> =
            declared.map(|declared| declared.iter().map(|parameter| parameter.size).collect());
        let mut parameters = merge(loaded.parameter_sizes(sizes.as_deref())?, declared);
        // A kernel in Rust that may panic takes the address of a record after its parameters.
        let may_panic = parameters.as_mut().is_some_and(take_record);
        let image = ModuleImage::foreign(Loaded { function: loaded.as_raw(), may_panic });
        let params = parameters.iter().flatten().map(|it| (it.size, ALIGNMENT)).collect::<Vec<_>>();
        let name: &'static str = String::from(name).leak();
        let kernel = Kernel::new(KernelDescriptor {
            name,
            entry: name,
            rank: 1,
            block: None,
            max_threads: Some(attributes.max_threads_per_block),
            cluster: None,
            // The driver knows better.
            cluster_at_launch: true,
            dependent_launch: false,
            in_order: false,
            shared_bytes: 0,
            uses_shared_memory: false,
            params: params.leak(),
            image: Box::leak(Box::new(image)),
            constants: &[],
            cpu: no_native_body,
            file: "",
            line: 0,
        });
        let entry = Entry {
            device: device.clone(),
            loaded,
            kernel,
            parameters,
            static_shared: attributes.shared_size_bytes,
            shared_limit: shared_limit.unsigned_abs(),
        };
        Ok(ForeignFunction {
            entry: Box::leak(Box::new(entry)),
            dynamic_shared: 0,
            cluster: [1; 3],
            attributes: LaunchAttributes::default(),
        })
    }

    /// A function that another library loaded on `device`: `raw` is its `CUfunction`. Its name and its parameters are
    /// those that the driver reports (`cuFuncGetName`, `cuFuncGetParamInfo`; from CUDA 12.3 and 12.4 on). They are kept until the
    /// process ends, once per call.
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::ForeignFunction;
    ///
    /// let device = Device::cuda(0)?;
    /// let theirs = device.load_file("saxpy.ptx")?.function("saxpy")?; // as if another library had loaded it
    /// // SAFETY: it is a function of this device, whose module stays loaded.
    /// let saxpy = unsafe { ForeignFunction::from_raw(&device, theirs.as_raw())? };
    /// assert_eq!(saxpy.name(), "saxpy");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] on the CPU device; [`Error::InvalidPointer`] if `raw` is null; or the driver's error.
    ///
    /// # Safety
    /// `raw` is a function of the primary context of `device`, and its module stays loaded as long as this handle, its
    /// copies and kernels made of them are used.
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Result<ForeignFunction> {
        let (cuda, raw) = (gpu(device, "ForeignFunction::from_raw")?, not_null(raw)?);
        // SAFETY: passed on.
        let loaded = unsafe { LoadedFunction::foreign(cuda, raw) };
        let name = loaded.name()?;
        ForeignFunction::new(device, name.as_deref().unwrap_or("a function of another library"), loaded, None)
    }

    /// The driver's handle (`CUfunction`), for other libraries. It is valid as long as its module is loaded.
    pub fn as_raw(&self) -> *mut c_void {
        self.entry.loaded.as_raw()
    }

    /// Its name in the module.
    pub fn name(&self) -> &'static str {
        self.entry.kernel.name()
    }

    /// Its parameters, in order (`cuFuncGetParamInfo`, or from the PTX); `None` for machine code under a driver before
    /// CUDA 12.4.
    pub fn parameters(&self) -> Option<&'static [Parameter]> {
        self.entry.parameters.as_deref()
    }

    /// The same kernel with `bytes` of dynamic shared memory in each block of its launches; above 48 KiB it
    /// is opted in to (`cuFuncSetAttribute`).
    ///
    /// # Errors
    /// [`ForeignError::SharedMemory`] if that is more than the device has for a block.
    pub fn with_dynamic_shared_memory(self, bytes: u32) -> Result<Self> {
        let Entry { static_shared, shared_limit, loaded, .. } = self.entry;
        if bytes > shared_limit.saturating_sub(*static_shared) {
            return Err(ForeignError::SharedMemory {
                kernel: self.name(),
                dynamic: bytes,
                fixed: *static_shared,
                limit: *shared_limit,
            }
            .into());
        }
        loaded.allow_dynamic_shared(bytes)?;
        Ok(ForeignFunction { dynamic_shared: bytes, ..self })
    }

    /// Enqueues the kernel on `stream` (`cuLaunchKernel`), with `arguments` in the kernel's order: values by
    /// value, device memory as the address of its first element. Their count and sizes are checked
    /// against the kernel's parameters. Work on the same buffers is kept in order, as by any launch.
    ///
    /// # Errors
    /// [`ForeignError::ParameterCount`] and [`ForeignError::ParameterSize`];
    /// [`ForeignError::UnknownParameters`]; a shape over the limits of the device or the kernel; memory of
    /// another device. Failures of the kernel itself come at the next synchronisation.
    ///
    /// # Safety
    /// - Each argument is of the type that the kernel takes there.
    /// - The kernel, with these arguments, this grid and the module's global variables as they are, reads
    ///   only memory that it is given here or may otherwise read, and writes only what is given as `&mut` or
    ///   atomic, or may otherwise be written, and leaves there values of the stated types.
    /// - What raw pointers lead to stays there until the kernel has run; recorded into a graph, as long as that can
    ///   be launched, and until its last launch has run.
    ///
    /// A safe function around it states the rest once:
    ///
    /// ```no_run
    /// use ferrogrid_host::{DeviceBuffer, ForeignFunction, Grid, Result, Stream};
    ///
    /// /// extern "C" __global__ void saxpy(int n, float a, const float* x, float* y)
    /// struct Saxpy(ForeignFunction);
    ///
    /// impl Saxpy {
    ///     fn launch(&self, stream: &Stream, a: f32, x: &DeviceBuffer<f32>, y: &mut DeviceBuffer<f32>) -> Result<()> {
    ///         let n = x.len().min(y.len());
    ///         let count = i32::try_from(n).unwrap_or(i32::MAX);
    ///         // SAFETY: the kernel's types; it reads and writes the first `count` elements.
    ///         unsafe { self.0.launch(stream, Grid::cover(n), (count, a, x, y)) }
    ///     }
    /// }
    /// ```
    #[track_caller]
    pub unsafe fn launch<const R: usize>(
        &self,
        stream: &Stream,
        grid: impl IntoGrid<R>,
        arguments: impl ForeignArguments,
    ) -> Result<()> {
        // SAFETY: passed on.
        unsafe { self.launch_held(stream, grid.into_grid(), arguments.hold_all(stream)?) }
    }

    /// The kernel with its types, which makes launches safe: see [`ForeignKernel`].
    ///
    /// ```no_run
    /// # use ferrogrid::prelude::*;
    /// # fn main() -> ferrogrid::Result<()> {
    /// use ferrogrid::{ForeignKernel, SliceMut};
    ///
    /// let device = Device::cuda(0)?;
    /// let stream = device.new_stream()?;
    /// // extern "C" __global__ void scale(float a, float* x, size_t n)
    /// let scale = device.load_file("scale.ptx")?.function("scale")?;
    /// // SAFETY: these are its types, and it keeps to the length that it is given.
    /// let scale: ForeignKernel<1, (f32, SliceMut<f32>)> = unsafe { scale.typed()? };
    /// let mut x = stream.fill(1.0_f32, 1000)?;
    /// scale.launch(&stream, Grid::cover(1000), (2.0, &mut x))?; // no `unsafe`, as often as wanted
    /// assert_eq!(stream.download(&x)?[999], 2.0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ForeignError::ParameterCount`] and [`ForeignError::ParameterSize`] if the types cannot be the
    /// kernel's; [`ForeignError::UnknownParameters`].
    ///
    /// # Safety
    /// `P` are the types of the kernel's parameters. For all arguments of those types, every grid of rank
    /// `R`, and whatever [`ForeignGlobal::set`](super::ForeignGlobal::set) may write to the module's
    /// variables, the kernel reads only elements that it is given, writes only those given mutably, and
    /// leaves values of their types there.
    pub unsafe fn typed<const R: usize, P: ForeignParameters>(self) -> Result<ForeignKernel<R, P>> {
        // SAFETY: passed on.
        unsafe { ForeignKernel::new(self) }
    }

    /// Checks that parameters of these sizes match the kernel's.
    pub(super) fn check(&self, sizes: &[usize]) -> Result<(), ForeignError> {
        let kernel = self.name();
        let Some(parameters) = self.parameters() else {
            return Err(ForeignError::UnknownParameters { kernel });
        };
        let (expected, found) = (parameters.len(), sizes.len());
        if expected != found {
            return Err(ForeignError::ParameterCount { kernel, expected, found });
        }
        for (index, (parameter, &found)) in parameters.iter().zip(sizes).enumerate() {
            if parameter.size != found {
                return Err(ForeignError::ParameterSize {
                    kernel,
                    number: index + 1,
                    name: parameter.name.clone(),
                    expected: parameter.size,
                    found,
                });
            }
        }
        Ok(())
    }

    /// # Safety
    /// `arguments` are of the types that the kernel takes; as for [`ForeignFunction::launch`].
    #[track_caller]
    pub(super) unsafe fn launch_held<const R: usize>(
        &self,
        stream: &Stream,
        grid: Grid<R>,
        arguments: impl Held,
    ) -> Result<()> {
        let list = ParameterList::of(&arguments);
        self.check(list.sizes())?;
        let Entry { device, kernel, .. } = self.entry;
        let (inner, accesses) = (stream.inner(), list.accesses());
        if inner.device() != device {
            return Err(self.other_device(stream));
        }
        let grid = grid.or_cluster(self.cluster);
        if let Some(mut config) = grid.resolve(kernel, device.limits())? {
            config.shared_bytes = self.dynamic_shared as usize;
            if config.attributes.is_some() || self.attributes != LaunchAttributes::default() {
                config.attributes = Some(self.attributes.with(config.attributes()));
            }
            // SAFETY: the function is of the stream's device; the sizes of the parameters agree, and the accesses are of all
            // memory among them; the caller vouches for the rest.
            unsafe { enqueue(kernel, inner, &config, list.addresses(), accesses)? };
        } else {
            check_devices(accesses, inner)?;
        }
        drop(list);
        arguments.finish(stream)
    }

    #[cold]
    fn other_device(&self, stream: &Stream) -> Error {
        let mut devices = [&self.entry.device, stream.device()].into_iter();
        if let Some(error) = devices.find_map(|device| device.backend().was_reset()) {
            return error;
        }
        ForeignError::OtherDevice {
            kernel: self.name(),
            loaded: self.entry.device.to_string().into(),
            stream: stream.device().to_string().into(),
        }
        .into()
    }
}

/// The driver's sizes with the names of the text; one without the other where the other is missing.
fn merge(sizes: Option<Vec<usize>>, declared: Option<&[Parameter]>) -> Option<Vec<Parameter>> {
    let Some(sizes) = sizes else { return declared.map(<[Parameter]>::to_vec) };
    let name = |index: usize| declared?.get(index)?.name.clone();
    let parameter = |(index, size)| Parameter { name: name(index), size };
    Some(sizes.into_iter().enumerate().map(parameter).collect())
}

/// Takes the record's address out of the parameters, which Ferrogrid gives itself; whether it is there.
fn take_record(parameters: &mut Vec<Parameter>) -> bool {
    parameters.pop_if(|last| last.name.as_deref() == Some(RECORD_PARAMETER)).is_some()
}

impl fmt::Debug for ForeignFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignFunction")
            .field("name", &self.name())
            .field("parameters", &self.entry.parameters)
            .field("dynamic_shared_memory", &self.dynamic_shared)
            .field("attributes", &self.attributes)
            .field("device", &self.entry.device)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, size: usize) -> Parameter {
        Parameter { name: Some(name.into()), size }
    }

    #[test]
    fn the_address_of_a_record_is_no_parameter_of_the_user() {
        let mut parameters = vec![named("a", 4), named("__ferrogrid_record", 8)];
        assert!(take_record(&mut parameters));
        assert_eq!(parameters, [named("a", 4)]);
        assert!(!take_record(&mut parameters) && !take_record(&mut Vec::new()));
    }

    #[test]
    fn the_driver_knows_sizes_and_the_text_knows_names() {
        let declared = [named("a", 4), named("b", 8)];
        assert_eq!(merge(Some(vec![4, 8]), Some(&declared)), Some(declared.to_vec()));
        assert_eq!(merge(None, Some(&declared)), Some(declared.to_vec()));
        assert_eq!(merge(Some(vec![16]), None), Some(vec![Parameter { name: None, size: 16 }]));
        assert_eq!(merge(None, None), None);
    }
}
