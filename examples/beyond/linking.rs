//! 5.1 linking: PTX from two compilers, linked and loaded at run time, with a kernel's types asserted once.
//!
//! Shows: the driver's linker, a module that Rust did not compile, a typed launch of its kernel, and one of
//! its variables. Look at: one `unsafe` line asserts the kernel's types; rustc checks every launch after it.
//! The linker's log is in its error: the first link lacks a function.
//!
//! PTX runs on GPUs only; on the CPU device the program says so, and ends.
//!
//! `cargo ferrogrid run linking`

use ferrogrid::prelude::*;
use ferrogrid::{ForeignKernel, JitOptions, Linker, SliceMut};

/// As nvcc compiles `extern __device__ int offset(int i);` and a kernel that calls it, with `-dc`.
const CALLER: &str = "
.version 6.3
.target sm_75
.address_size 64
.extern .func (.param .b32 result) offset(.param .b32 index);
.visible .global .align 4 .u32 scale = 1;
.visible .entry add_offset(.param .u64 x, .param .u64 n)
{
    .reg .pred %p;
    .reg .b32 %r<10>;
    .reg .b64 %d<6>;
    ld.param.u64 %d1, [x];
    ld.param.u64 %d2, [n];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    cvt.u64.u32 %d3, %r4;
    setp.ge.u64 %p, %d3, %d2;
    @%p bra DONE;
    {
        .param .b32 index;
        .param .b32 result;
        st.param.b32 [index], %r4;
        call.uni (result), offset, (index);
        ld.param.b32 %r5, [result];
    }
    ld.global.u32 %r6, [scale];
    mul.lo.u32 %r7, %r5, %r6;
    cvta.to.global.u64 %d1, %d1;
    shl.b64 %d4, %d3, 2;
    add.u64 %d4, %d1, %d4;
    ld.global.u32 %r8, [%d4];
    add.u32 %r9, %r8, %r7;
    st.global.u32 [%d4], %r9;
DONE:
    ret;
}
";

/// `__device__ int offset(int i) { return 100 * i + 1; }`.
const OFFSET: &str = "
.version 6.3
.target sm_75
.address_size 64
.visible .func (.param .b32 result) offset(.param .b32 index)
{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [index];
    mad.lo.s32 %r2, %r1, 100, 1;
    st.param.b32 [result], %r2;
    ret;
}
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best()?;
    println!("device  {}", device.name());
    let options = JitOptions::new();
    let mut alone = match Linker::new(&device, &options) {
        Err(error @ Error::Unsupported { .. }) => {
            println!("SKIPPED: {error}");
            return Ok(());
        }
        linker => linker?,
    };
    alone.add_ptx("caller.ptx", CALLER)?;
    match alone.complete() {
        Err(error) if error.to_string().contains("offset") => println!("alone:  {error}"),
        other => return Err(format!("a program that lacks a function was linked: {other:?}").into()),
    }

    let mut linker = Linker::new(&device, &options)?;
    linker.add_ptx("caller.ptx", CALLER)?;
    linker.add_ptx("offset.ptx", OFFSET)?;
    let module = device.load_cubin(&linker.complete()?.cubin)?;
    // SAFETY: it takes a pointer and a length, and keeps to it.
    let add_offset: ForeignKernel<1, (SliceMut<u32>,)> = unsafe { module.function("add_offset")?.typed()? };

    let stream = device.new_stream()?;
    module.global::<u32>("scale")?.set(&stream, &[2])?;
    let mut x = stream.upload(&[5_u32; 4])?;
    add_offset.launch(&stream, Grid::cover(x.len()), (&mut x,))?;
    let found = stream.download(&x)?;
    if found != [7, 207, 407, 607] {
        return Err(format!("found {found:?}").into());
    }
    println!("linked: {found:?}");
    println!("PASS");
    Ok(())
}
