//! Listings of the chapter "Foreign kernels".

use ferrogrid::prelude::*;

// ANCHOR: ptx
/// As nvcc compiles `extern "C" __global__ void add(unsigned* x, size_t n, unsigned value)`.
const PTX: &str = "
.version 6.3
.target sm_75
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 n, .param .u32 value)
{
    .reg .pred %p;
    .reg .b32 %r<7>;
    .reg .b64 %d<6>;
    ld.param.u64 %d1, [x];
    ld.param.u64 %d2, [n];
    ld.param.u32 %r5, [value];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    cvt.u64.u32 %d3, %r4;
    setp.ge.u64 %p, %d3, %d2;
    @%p bra DONE;
    cvta.to.global.u64 %d1, %d1;
    shl.b64 %d4, %d3, 2;
    add.u64 %d4, %d1, %d4;
    ld.global.u32 %r6, [%d4];
    add.u32 %r6, %r6, %r5;
    st.global.u32 [%d4], %r6;
DONE:
    ret;
}
";
// ANCHOR_END: ptx

// ANCHOR: typed
use ferrogrid::{ForeignKernel, SliceMut};

/// x[i] <- x[i] + value, by code that Rust did not compile.
fn add(stream: &Stream, value: u32, x: &mut DeviceBuffer<u32>) -> ferrogrid::Result<()> {
    let module = stream.device().load_ptx(PTX)?;
    // SAFETY: these are the kernel's types: a pointer and a length, a number; it keeps to them.
    let add: ForeignKernel<1, (SliceMut<u32>, u32)> = unsafe { module.function("add")?.typed()? };
    add.launch(stream, Grid::cover(x.len()), (x, value))
}
// ANCHOR_END: typed

#[test]
fn foreign_code_runs_on_gpus_only() -> ferrogrid::Result<()> {
    let device = Device::best()?;
    let stream = device.new_stream()?;
    let mut x = stream.upload(&[1_u32, 2, 3])?;
    match add(&stream, 10, &mut x) {
        Ok(()) => assert_eq!(stream.download(&x)?, [11, 12, 13]),
        Err(error) => assert!(matches!(error, Error::Unsupported { .. }) && !device.is_cuda(), "{error}"),
    }
    Ok(())
}

#[test]
fn cuda_c_is_compiled_at_run_time_where_nvrtc_is() -> ferrogrid::Result<()> {
    // ANCHOR: nvrtc
    use ferrogrid::{CompileOptions, Nvrtc};

    let source = "extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }";
    match Nvrtc::load() {
        Ok(nvrtc) => {
            let program = nvrtc.compile(source, &CompileOptions::new().with_name("twice.cu"))?;
            assert!(program.ptx.contains(".entry twice")); // for `device.load_program(&program)?`
        }
        Err(error) => println!("{error}"), // lists where it was searched
    }
    // ANCHOR_END: nvrtc
    Ok(())
}

// ANCHOR: externs
#[ferrogrid::module]
mod kernels {
    use ferrogrid::device::prelude::*;

    #[link(file = "offset.ptx")]
    unsafe extern "C" {
        /// 100 times the index, and 1: in PTX for GPUs, in Rust for the CPU device.
        #[native(native_offset)]
        fn offset(index: u32) -> u32;
    }

    fn native_offset(index: u32) -> u32 {
        100 * index + 1
    }

    #[kernel]
    pub fn offsets(t: Thread<1>, mut y: DisjointSlice<u32>) {
        let i = t.index();
        if let Some(y) = y.get_mut(i) {
            // SAFETY: it takes any index.
            *y = unsafe { offset(i.get() as u32) };
        }
    }
}
// ANCHOR_END: externs

#[test]
fn a_kernel_calls_a_function_of_other_device_code() -> ferrogrid::Result<()> {
    let stream = Device::best()?.new_stream()?;
    let mut y = stream.zeros(3)?;
    kernels::offsets(&stream, Grid::cover(3), &mut y)?;
    assert_eq!(stream.download(&y)?, [1, 101, 201]);
    Ok(())
}

#[cfg(feature = "jit")]
#[test]
fn kernels_in_rust_are_compiled_at_run_time_where_a_toolchain_is() -> ferrogrid::Result<()> {
    use ferrogrid::SourceError;

    match doubled(&Device::best()?, "2.0 * x") {
        Ok(found) => assert_eq!(found, [2.0, 4.0, 6.0]),
        Err(Error::Unsupported { .. } | Error::Source(SourceError::NoToolchain { .. })) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

#[cfg(feature = "jit")]
// ANCHOR: source
/// Applies a formula of `x`, known only at run time, to three numbers.
fn doubled(device: &Device, formula: &str) -> ferrogrid::Result<Vec<f32>> {
    use ferrogrid::SourceModule;

    let text = format!(
        "#[kernel]
        pub fn apply(t: Thread<1>, x: &[f32], mut y: DisjointSlice<f32>) {{
            let i = t.index();
            if let Some(y) = y.get_mut(i) {{
                let x = x[i.get()];
                *y = {formula};
            }}
        }}"
    );
    let apply = SourceModule::new(device, text)?.kernel("apply")?;
    let stream = device.new_stream()?;
    let x = stream.upload(&[1.0_f32, 2.0, 3.0])?;
    let mut y = stream.zeros::<f32>(3)?;
    apply.launch(&stream, Grid::cover(3), (&x, &mut y))?; // checked: `&y` or `f64`s would be an error
    stream.download(&y)
}
// ANCHOR_END: source
