//! SwiGLU, `silu(gate) * up`, as an operation of candle: one kernel forward, and one for both gradients.

use std::sync::Arc;

use candle_core::backend::BackendStorage as _;
use candle_core::{
    CpuStorage, CustomOp2, CustomOp3, DType, Device, Error, Layout, Result, Shape, Tensor, WithDType, bail,
};
#[cfg(feature = "cuda")]
use candle_core::{CudaDevice, CudaStorage};
use ferrogrid::device::half::bf16;
#[cfg(feature = "cuda")]
use ferrogrid::interop::SharedStream;
use ferrogrid::{In, Out, Stream};

#[cfg(feature = "cuda")]
mod gpu;

#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::half::{HalfFloat, bf16};
    use ferrogrid::device::prelude::*;

    /// The elements of a tensor, and the numbers in which they are computed.
    pub trait Element: DeviceCopy {
        /// `f32` for elements of 16 bits.
        type Number: Float;
        /// The same number.
        fn widen(self) -> Self::Number;
        /// The nearest element.
        fn nearest(number: Self::Number) -> Self;
    }

    impl Element for f32 {
        type Number = f32;
        fn widen(self) -> f32 {
            self
        }
        fn nearest(number: f32) -> f32 {
            number
        }
    }

    impl Element for f64 {
        type Number = f64;
        fn widen(self) -> f64 {
            self
        }
        fn nearest(number: f64) -> f64 {
            number
        }
    }

    impl Element for bf16 {
        type Number = f32;
        fn widen(self) -> f32 {
            self.into()
        }
        fn nearest(number: f32) -> bf16 {
            bf16::from_f32(number)
        }
    }

    fn sigmoid<T: Float>(x: T) -> T {
        (T::ONE + (-x).exp()).recip()
    }

    // ANCHOR: kernels
    /// silu(gate) * up
    #[elementwise(T = [f32, f64, bf16])]
    pub fn swiglu<T: Element>(gate: &T, up: &T) -> T {
        let (gate, up) = (gate.widen(), up.widen());
        T::nearest(gate * sigmoid(gate) * up)
    }

    /// The gradients of both inputs from that of the output.
    #[elementwise(T = [f32, f64, bf16])]
    pub fn gradients<T: Element>(gate: &T, up: &T, dy: &T, dgate: &mut T, dup: &mut T) {
        let (gate, up, dy) = (gate.widen(), up.widen(), dy.widen());
        let s = sigmoid(gate);
        *dgate = T::nearest(dy * up * s * (T::Number::ONE + gate * (T::Number::ONE - s)));
        *dup = T::nearest(dy * gate * s);
    }
    // ANCHOR_END: kernels
}

/// The operation, for tensors of `f32`, `f64` or `bf16` on one device of candle.
#[derive(Clone)]
pub struct SwiGlu(Arc<Place>);

/// Where the kernels run.
enum Place {
    Cpu(Stream),
    #[cfg(feature = "cuda")]
    Gpu(SharedStream),
}

/// Evaluates `$body` with `$T` as the type of a tensor's elements.
macro_rules! by_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::BF16 => {
                type $T = bf16;
                $body
            }
            other => bail!("swiglu has kernels for f32, f64 and bf16, not for {other:?}"),
        }
    };
}

impl SwiGlu {
    /// On a GPU `device` must have a stream of its own (`Device::new_cuda_with_stream`): the default stream of a thread, which
    /// `Device::new_cuda` has, cannot be shared.
    pub fn new(device: &Device) -> Result<SwiGlu> {
        let place = match device {
            Device::Cpu => Place::Cpu(ferrogrid::Device::cpu().new_stream().map_err(Error::wrap)?),
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => {
                // SAFETY: nothing in this program captures the stream into a graph.
                let stream = unsafe { SharedStream::from_cudarc(device.cuda_stream()) };
                Place::Gpu(stream.map_err(Error::wrap)?)
            }
            other => bail!("swiglu has no kernels for {other:?}"),
        };
        Ok(SwiGlu(Arc::new(place)))
    }

    /// `silu(gate) * up`, element by element.
    pub fn apply(&self, gate: &Tensor, up: &Tensor) -> Result<Tensor> {
        if gate.shape() != up.shape() {
            bail!("swiglu: gate is {:?}, and up {:?}", gate.shape(), up.shape());
        }
        gate.contiguous()?.apply_op2(&up.contiguous()?, self.clone())
    }

    /// The stream for candle's tensors in memory of the host.
    fn cpu(&self) -> Result<&Stream> {
        match &*self.0 {
            Place::Cpu(stream) => Ok(stream),
            #[cfg(feature = "cuda")]
            Place::Gpu(_) => bail!("swiglu was made for a GPU, but the tensor is on the CPU"),
        }
    }

    /// The stream for tensors of `device`: candle's own, so that nothing waits.
    #[cfg(feature = "cuda")]
    fn gpu(&self, device: &CudaDevice) -> Result<&SharedStream> {
        match &*self.0 {
            Place::Gpu(stream) if *stream.cudarc() == device.cuda_stream() => Ok(stream),
            _ => bail!("swiglu was made for another device than that of the tensor"),
        }
    }
}

impl CustomOp2 for SwiGlu {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn cpu_fwd(
        &self,
        gate: &CpuStorage,
        l1: &Layout,
        up: &CpuStorage,
        l2: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let y = by_type!(gate.dtype(), T => {
            let mut y = vec![T::default(); l1.shape().elem_count()];
            let (gate, up) = (In(elements::<T>(gate, l1)?), In(elements::<T>(up, l2)?));
            kernels::swiglu(self.cpu()?, gate, up, Out(&mut y)).map_err(Error::wrap)?;
            T::to_cpu_storage_owned(y)
        });
        Ok((y, l1.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        gate: &CudaStorage,
        l1: &Layout,
        up: &CudaStorage,
        l2: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let (device, len) = (&gate.device, l1.shape().elem_count());
        let stream = self.gpu(device)?;
        // ANCHOR: forward
        let y = by_type!(gate.dtype(), T => {
            let (gate, up) = (gpu::input::<T>(stream, gate, l1)?, gpu::input::<T>(stream, up, l2)?);
            gpu::output::<T>(stream, device, len, |y| kernels::swiglu(stream, &*gate, &*up, y))?
        });
        Ok((y, l1.shape().clone()))
        // ANCHOR_END: forward
    }

    fn bwd(
        &self,
        gate: &Tensor,
        up: &Tensor,
        _y: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        // ANCHOR: backward
        let both = gate.apply_op3_no_bwd(up, &dy.contiguous()?, &Gradients(self.clone()))?;
        Ok((Some(both.get(0)?), Some(both.get(1)?)))
        // ANCHOR_END: backward
    }
}

/// The gradients of `gate` and `up`, one after the other, because an operation of candle has one result.
struct Gradients(SwiGlu);

impl Gradients {
    fn shape(input: &Layout) -> Shape {
        Shape::from([&[2], input.dims()].concat())
    }
}

impl CustomOp3 for Gradients {
    fn name(&self) -> &'static str {
        "swiglu's gradients"
    }

    fn cpu_fwd(
        &self,
        gate: &CpuStorage,
        l1: &Layout,
        up: &CpuStorage,
        l2: &Layout,
        dy: &CpuStorage,
        l3: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let len = l1.shape().elem_count();
        let both = by_type!(gate.dtype(), T => {
            let mut both = vec![T::default(); 2 * len];
            let (dgate, dup) = both.split_at_mut(len);
            let (gate, up, dy) = (elements::<T>(gate, l1)?, elements::<T>(up, l2)?, elements::<T>(dy, l3)?);
            kernels::gradients(self.0.cpu()?, In(gate), In(up), In(dy), Out(dgate), Out(dup)).map_err(Error::wrap)?;
            T::to_cpu_storage_owned(both)
        });
        Ok((both, Gradients::shape(l1)))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        gate: &CudaStorage,
        l1: &Layout,
        up: &CudaStorage,
        l2: &Layout,
        dy: &CudaStorage,
        l3: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let (device, len) = (&gate.device, l1.shape().elem_count());
        let stream = self.0.gpu(device)?;
        let both = by_type!(gate.dtype(), T => {
            let (gate, up) = (gpu::input::<T>(stream, gate, l1)?, gpu::input::<T>(stream, up, l2)?);
            let dy = gpu::input::<T>(stream, dy, l3)?;
            gpu::output::<T>(stream, device, 2 * len, |both| {
                let (dgate, dup) = both.split_at(len)?;
                kernels::gradients(stream, &*gate, &*up, &*dy, dgate, dup)
            })?
        });
        Ok((both, Gradients::shape(l1)))
    }
}

fn elements<'a, T: WithDType>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [T]> {
    let (start, end) = range(layout)?;
    Ok(&storage.as_slice()?[start..end])
}

/// Where the elements of a tensor are in its memory; `apply` has made it contiguous.
fn range(layout: &Layout) -> Result<(usize, usize)> {
    match layout.contiguous_offsets() {
        Some(range) => Ok(range),
        None => bail!("swiglu: a tensor is not contiguous"),
    }
}
