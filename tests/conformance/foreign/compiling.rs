//! Programs linked or compiled at run time: by the driver's linker, NVRTC, libNVVM and nvcc.

use ferrogrid::prelude::*;
use ferrogrid::{
    CodeType, CompileOptions, ForeignError, ForeignKernel, ForeignModule, JitOptions, Linker, Nvrtc, Nvvm,
    SliceMut,
};

use crate::foreign::loading::takes_foreign_code;
use crate::table::not_for_this_device;
use crate::{Case, Outcome, expect, expect_error, names};

pub(crate) const CASES: &[Case] = &[
    ("linked_programs_run", linked_programs_run),
    ("cuda_cpp_compiles_and_runs", cuda_cpp_compiles_and_runs),
    ("cuda_cpp_templates_are_found_by_their_expressions", cuda_cpp_templates_are_found_by_their_expressions),
    ("files_of_nvcc_load_directly", files_of_nvcc_load_directly),
    ("nvvm_ir_compiles_and_runs", nvvm_ir_compiles_and_runs),
];

fn linked_programs_run(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let mut linker = Linker::new(device, &JitOptions::new())?;
    linker.add_ptx("caller.ptx", include_str!("caller.ptx"))?;
    // Some drivers report this only when the code is loaded.
    let half = linker.complete().and_then(|linked| device.load_cubin(&linked.cubin)?.function("add_offset"));
    expect_error("half a program", half, |error| matches!(error, Error::Foreign(_)))?;
    let mut linker = Linker::new(device, &JitOptions::new())?;
    linker.add_ptx("caller.ptx", include_str!("caller.ptx"))?;
    linker.add_ptx("offset.ptx", include_str!("offset.ptx"))?;
    let cubin = linker.complete()?.cubin;
    // SAFETY: its types; it stays within the length.
    let function = device.load_cubin(&cubin)?.function("add_offset")?;
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[5_u32; 4])?;
    if function.parameters().is_none() {
        return not_for_this_device("a driver before CUDA 12.4 does not tell what machine code takes");
    }
    // SAFETY: as above.
    let add: ForeignKernel<1, (SliceMut<u32>,)> = unsafe { function.typed()? };
    add.launch(&stream, Grid::cover(4), (&mut data,))?;
    expect("elements", stream.download(&data)?, vec![6, 106, 206, 306])?;
    let half = device.load_cubin(&cubin[..cubin.len() / 2]);
    expect_error("half a cubin", half, |error| {
        matches!(error, Error::Foreign(ForeignError::InvalidImage { kind: "cubin", .. }))
    })?;
    Ok(())
}

/// NVRTC, if it is installed.
fn nvrtc() -> ferrogrid::Result<Option<Nvrtc>> {
    match Nvrtc::load() {
        Err(Error::Foreign(ForeignError::LibraryMissing { .. })) => Ok(None),
        nvrtc => nvrtc.map(Some),
    }
}

fn cuda_cpp_compiles_and_runs(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let Some(nvrtc) = nvrtc()? else { return not_for_this_device("NVRTC is not installed") };
    let source = "extern \"C\" __global__ void square(int n, float* x) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] *= x[i];
    }";
    let program = nvrtc.compile(source, &CompileOptions::for_device(device))?;
    let square = device.load_ptx(&program.ptx)?.function("square")?;
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[1.0_f32, 2.0, 3.0])?;
    // SAFETY: its types; there are 3 elements.
    unsafe { square.launch(&stream, Grid::cover(3), (3_i32, &mut data))? };
    expect("squares", stream.download(&data)?, vec![1.0, 4.0, 9.0])
}

/// A program is loaded as PTX, as machine code, and as LTO IR if nvJitLink is installed.
fn cuda_cpp_templates_are_found_by_their_expressions(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let Some(nvrtc) = nvrtc()? else { return not_for_this_device("NVRTC is not installed") };
    let source = "__constant__ int offset = 3;
    template <class T, int N> __global__ void add(size_t n, T* x) {
        size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
        if (i < n) x[i] += T(N + offset);
    }";
    let architecture = device.arch().ok_or("no architecture")?;
    let options = CompileOptions::for_device(device).with_name("add.cu");
    let options = options.with_name_expression("add<float, 7>").with_name_expression("&offset");
    for (options, kind) in [
        (options.clone(), CodeType::Ptx),
        (options.clone().with_architecture(architecture), CodeType::Cubin),
        (options.with_option("-dlto").with_option("-rdc=true"), CodeType::LtoIr),
    ] {
        let module = match device.load_program(&nvrtc.compile(source, &options)?) {
            Err(Error::Foreign(ForeignError::LibraryMissing { library: "nvJitLink", .. })) => continue,
            module => module?,
        };
        expect("the kind of code", (module.name(), module.code_type()), ("add.cu", Some(kind)))?;
        let add = module.function("add<float, 7>")?;
        if add.parameters().is_none() {
            continue; // a driver before CUDA 12.4 does not tell what machine code takes
        }
        let stream = device.new_stream()?;
        module.global::<i32>("&offset")?.set(&stream, &[10])?;
        let mut data = stream.upload(&[1.0_f32, 2.0, 3.0])?;
        // SAFETY: its types; there are 3 elements.
        unsafe { add.launch(&stream, Grid::cover(3), (3_u64, &mut data))? };
        expect("elements", stream.download(&data)?, vec![18.0, 19.0, 20.0])?;
        let missing = module.function("add<double, 7>");
        let text = expect_error("another instance", missing, |error| matches!(error, Error::Foreign(_)))?;
        names(&text, &["the module `add.cu`", "`add<float, 7>`"])?;
    }
    Ok(())
}

/// In the folder that FERROGRID_TEST_NVCC_FILES names, made of the two files of `foreign/pair` for this GPU:
/// `nvcc -fatbin -arch=sm_90 -o helper.fatbin helper.cu`, `nvcc -lib -rdc=true -arch=sm_90 -o libpair.a kernel.cu helper.cu`,
/// `nvcc -dlto -ltoir -rdc=true -arch=sm_90 -o helper.ltoir helper.cu`.
fn files_of_nvcc_load_directly(device: &Device) -> Outcome {
    let Some(folder) = std::env::var_os("FERROGRID_TEST_NVCC_FILES").map(std::path::PathBuf::from) else {
        return not_for_this_device("FERROGRID_TEST_NVCC_FILES names no files of nvcc");
    };
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let stream = device.new_stream()?;
    let run = |module: &ForeignModule, name: &str| -> Outcome {
        let mut data = stream.upload(&[1_u32, 2, 3])?;
        // SAFETY: its types; there are 3 elements.
        unsafe { module.function(name)?.launch(&stream, Grid::cover(3), (&mut data, 3_u64))? };
        expect(name, stream.download(&data)?, vec![4, 7, 10])
    };
    let fatbin = device.load_fatbin(&std::fs::read(folder.join("helper.fatbin"))?)?;
    expect("a fatbin", fatbin.code_type(), Some(CodeType::Fatbin))?;
    run(&fatbin, "alone")?;
    let library = device.load_file(folder.join("libpair.a"))?;
    expect("a library", (library.name(), library.code_type()), ("libpair.a", Some(CodeType::Library)))?;
    run(&library, "apply")?;
    run(&library, "alone")?;
    match device.load_lto_ir(&std::fs::read(folder.join("helper.ltoir"))?) {
        Err(Error::Foreign(ForeignError::LibraryMissing { .. })) => Ok(()),
        module => run(&module?, "alone"),
    }
}

fn nvvm_ir_compiles_and_runs(device: &Device) -> Outcome {
    if !takes_foreign_code(device)? {
        return not_for_this_device("it takes no code for GPUs");
    }
    let nvvm = match Nvvm::load() {
        Err(Error::Foreign(ForeignError::LibraryMissing { .. })) => {
            return not_for_this_device("libNVVM is not installed");
        }
        nvvm => nvvm?,
    };
    let (major, minor) = device.compute_capability().ok_or("no capability")?;
    let options = format!("-arch=compute_{major}{minor}");
    let program = nvvm.compile(&[("twice.ll", include_bytes!("twice.ll"))], &[&options])?;
    let twice = device.load_program(&program)?.function("twice")?;
    let stream = device.new_stream()?;
    let mut data = stream.upload(&[21.0_f32, 1.0])?;
    // SAFETY: its type; it keeps to the first element.
    unsafe { twice.launch(&stream, Grid::new(1, 1), (&mut data,))? };
    expect("elements", stream.download(&data)?, vec![42.0, 1.0])
}
