//! Modules: their items besides kernels, the location of their device code, and the launch bounds of kernels.

use std::path::PathBuf;

use ferrogrid_syntax::compiled::{
    ArchCode, CompiledEntry, CompiledImage, CompiledModule, Diagnostic, UsedLibrary,
};
use syn::Item;

use super::*;

#[test]
fn launch_bounds_are_in_the_descriptor() {
    let host = on_host(
        "mod m { #[kernel(block = [16, 4], min_blocks = 2)] pub fn a(t: Thread<2>) {} \
         #[kernel(max_threads = 96, cluster = 2)] pub fn b(t: Thread<1>) {} \
         #[kernel(cluster, dependent_launch)] pub fn c(t: Thread<3>) {} #[kernel(cooperative)] pub fn d(t: Thread<1>) {} }",
    );
    let of = |kernel: &str| between(&host, &format!("\"::\",\"{kernel}\"),"), "params:");
    has(
        of("a"),
        "rank:2usize,block:::core::option::Option::Some([16u32,4u32,1u32]),max_threads:::core::option::Option::None,",
    );
    has(
        of("a"),
        "cluster:::core::option::Option::None,cluster_at_launch:false,dependent_launch:false,in_order:false,",
    );
    has(
        of("b"),
        "max_threads:::core::option::Option::Some(96u32),cluster:::core::option::Option::Some([2u32,1u32,1u32]),",
    );
    has(of("c"), "rank:3usize,block:::core::option::Option::None,");
    has(of("c"), "cluster_at_launch:true,dependent_launch:true,");
    assert_eq!(host.matches(",true,&__params,").count(), 1, "one launch is cooperative: {host}");
    has(&host, "pubconstBLOCK:[u32;3]=[16u32,4u32,1u32];");
    has(&host, "__grid.with_block([[16u32,4u32,1u32][0usize],[16u32,4u32,1u32][1usize]])}");
    assert_eq!(host.matches(".with_block(").count(), 1, "{host}");
}

/// One for each kernel that has clusters: no block releases its shared memory before all have read it.
#[test]
fn blocks_of_a_cluster_leave_together() {
    let device = on_device(
        "mod m { #[kernel(cluster = 2)] pub fn a(t: Thread<1>) {} #[kernel] pub fn b(t: Thread<1>) {} }",
    );
    assert_eq!(device.matches("self::a::<>(current);d::leave_cluster();}").count(), 1, "{device}");
    has(&device, "self::b::<>(current);}");
}

#[test]
fn a_block_of_constants_is_computed_once_on_each_side() {
    let module = "mod m { #[cfg(x)] #[kernel(block = [A, 2 * B])] pub fn k(t: Thread<2>) {} }";
    let constant = |path: &str| {
        format!("const__FERROGRID_BLOCK_k:[u32;3]={path}__block([(A)asi128,(2*B)asi128,(1)asi128]);")
    };
    let (host, device) = (on_host(module), on_device(module));
    has(&host, &constant("p::device::"));
    has(&host, "pubconstBLOCK:[u32;3]=super::__FERROGRID_BLOCK_k;");
    has(&host, "block:::core::option::Option::Some(__FERROGRID_BLOCK_k),");
    has(&device, &constant("d::"));
    has(&device, "current_in(__FERROGRID_BLOCK_k);");
    // The build step reads the shape from the layouts.
    has(
        &device,
        "(0)asu64,__FERROGRID_BLOCK_k[0usize]asu64,__FERROGRID_BLOCK_k[1usize]asu64,__FERROGRID_BLOCK_k[2usize]asu64",
    );
    has_not(&on_device("mod m { #[kernel(block = 64)] pub fn k(t: Thread<1>) {} }"), "[0usize]asu64");
}

/// A disabled kernel leaves nothing in the expansion.
#[test]
fn conditions_hold_for_all_that_is_made_of_a_kernel() {
    let plain =
        "mod m { #[kernel(T = [f32], block = [A])] pub fn k<T: DeviceCopy>(t: Thread<1>, x: &[T]) {} }";
    let conditional = plain.replace("#[kernel", "#[cfg(x)] #[kernel");
    let items = |text: &str| {
        let file: syn::File = syn::parse_str(text).unwrap();
        let Some(Item::Mod(module)) = file.items.last() else { panic!("{text}") };
        let of_kernel = |item: &&Item| text_of(item).contains("_k") || text_of(item).contains("fnk<");
        module.content.as_ref().unwrap().1.iter().filter(of_kernel).map(text_of).collect::<Vec<_>>()
    };
    fn text_of(item: &Item) -> String {
        text(quote!(#item))
    }
    let half = |module: &str, on_host: bool| match on_host {
        true => host::module(&parsed(module), &compiled(), None).to_string(),
        false => device::module(&parsed(module), true).to_string(),
    };
    for on_host in [true, false] {
        let (without, with) = (items(&half(plain, on_host)), items(&half(conditional.as_str(), on_host)));
        assert_eq!(without.len(), with.len());
        for item in with {
            assert!(item.contains("#[cfg(x)]"), "{item}");
        }
        assert!(!without.iter().any(|item| item.contains("cfg(x)")), "{without:?}");
    }
}

/// A disabled instance leaves nothing in the expansion, and the others stay.
#[test]
fn conditions_of_an_argument_hold_for_its_instance_alone() {
    let module =
        "mod m { #[kernel(T = [f32, #[cfg(x)] f16])] pub fn k<T: DeviceCopy>(t: Thread<1>, x: &[T]) {} }";
    let (host, device) = (on_host(module), on_device(module));
    has(&host, "#[cfg(x)]#[doc(hidden)]#[allow(non_upper_case_globals)]static__FERROGRID_KERNEL_k_f16:");
    has(&host, "#[cfg(x)]unsafeimpl__FerrogridInstance_k<>forf16");
    has_not(&host, "#[cfg(x)]unsafeimpl__FerrogridInstance_k<>forf32");
    let name = between(&device, "\"ptx-kernel\"fnk_f16_", "(");
    has(&device, &format!("#[cfg(x)]#[allow(dead_code,non_camel_case_types)]type__k_f16_{name}_T=f16;"));
    has(&device, "#[cfg(x)]#[unsafe(no_mangle)]static");
    assert_eq!(
        (host.matches("cfg(x)").count(), device.matches("cfg(x)").count()),
        (3, 3),
        "{host}\n{device}"
    );
}

#[test]
fn each_instance_has_a_descriptor_and_an_entry_point_of_its_own() {
    let module = "mod m { #[kernel(T = [f32, u8], N = [4, 8])] pub fn k<T: DeviceCopy + Into<f64>, const N: usize>(\
                  t: Thread<1>, x: &[T], y: [T; N]) where T: Sum<U>, U: Other {} }";
    let (host, device) = (on_host(module), on_device(module));
    for (ty, number) in [("f32", 4), ("f32", 8), ("u8", 4), ("u8", 8)] {
        let descriptor =
            between(&host, &format!("static__FERROGRID_KERNEL_k_{ty}_{number}:p::Kernel={{"), "};#[");
        has(descriptor, &format!("typeT={ty};"));
        has(descriptor, &format!("constN:usize={number};"));
        has(descriptor, &format!("\"k::<{ty},{number}>\"),entry:\"k_{ty}_{number}_"));
        has(descriptor, "cpu:__ferrogrid_cpu_k::<T,N>,");
        has(
            &host,
            &format!(
                "unsafeimpl__FerrogridInstance_k<{{{number}}}>for{ty}{{fnkernel()->&'staticp::Kernel{{&__FERROGRID_KERNEL_k_{ty}_{number}}}}}"
            ),
        );
        let name = between(&device, &format!("\"ptx-kernel\"fnk_{ty}_{number}_"), "(");
        let alias = |parameter: &str| format!("__k_{ty}_{number}_{name}_{parameter}");
        has(&device, &format!("type{}={ty};", alias("T")));
        has(&device, &format!("const{}:usize={number};", alias("N")));
        has(
            &device,
            &format!(
                "fnk_{ty}_{number}_{name}(p1_start:&[{0};0],p1_extent0:u32,p2_value:[{0};{1}],)",
                alias("T"),
                alias("N")
            ),
        );
        has(&device, &format!("self::k::<{},{{{}}}>(current,", alias("T"), alias("N")));
        has(&device, &format!("size_of::<{}>()asu64", alias("T")));
    }
    has(
        &host,
        "pubunsafetrait__FerrogridInstance_k<constN:usize>:::core::marker::Sized+DeviceCopy+Into<f64>+Sum<U>{",
    );
    has(&host, "kernel `k` has no instance `<{Self}, {N}>`");
    has(
        &host,
        "lists: `k::<f32, 4>`, `k::<f32, 8>`, `k::<u8, 4>`, `k::<u8, 8>`; a generic function of the host has the bound `T: k::Instance<N>`",
    );
    has(&host, "pubfnk<'p1,T:DeviceCopy+Into<f64>,constN:usize>(");
    has(&host, "->p::Result<()>whereT:Sum<U>,U:Other,T:__FerrogridInstance_k<N>{");
    has(&host, "<Tas__FerrogridInstance_k<N>>::kernel(),stream,&__grid,");
    has(
        &host,
        "pubfnkernel<T,constN:usize>()->&'staticp::KernelwhereT:Instance<N>{<TasInstance<N>>::kernel()}",
    );
    has(&host, "pubusesuper::__FerrogridInstance_kasInstance;");
    has(&host, "unsafefn__ferrogrid_cpu_k<T:DeviceCopy+Into<f64>,constN:usize>(");
    has(&host, "whereT:Sum<U>,U:Other{unsafe{letmut__next");
    has(&host, "__ferrogrid_body_k::<T,N>(__thread,");
}

/// A trait does not imply the bounds of its other parameters.
#[test]
fn bounds_that_name_other_parameters_are_not_those_of_an_instance() {
    let module = "mod m { #[kernel(T = [f32], U = [u8])] pub fn k<U: Copy, T: Into<U> + Copy>(t: Thread<1>, x: &[T], y: &[U]) \
                  where U: Default, U: From<T> {} }";
    let host = on_host(module);
    has(&host, "pubunsafetrait__FerrogridInstance_k<T>:::core::marker::Sized+Copy+Default{");
    has(&host, "unsafeimpl__FerrogridInstance_k<f32>foru8{");
    has(&host, "no instance `<{Self}, {T}>`");
    has(&host, "bound `U: k::Instance<T>`");
}

#[test]
fn kernels_of_constants_alone_have_instances_of_unit() {
    let host = on_host(
        "mod m { #[kernel(N = [4])] pub fn k<const N: usize>(t: Thread<2>, y: DisjointTiles<f32, N, 8>) {} }",
    );
    has(&host, "unsafeimpl__FerrogridInstance_k<{4}>for(){");
    has(&host, "bound `(): k::Instance<N>`");
    has(&host, "where():__FerrogridInstance_k<N>{");
    has(&host, "no instance `<{N}>`");
    // The type of the tiles has the parameter, and so has the function of the grid.
    has(&host, "pubfn__ferrogrid_grid_k<constN:usize>(");
    has_not(&host, "Instance_k<>");
}

#[test]
fn kernels_without_parameters_of_types_have_no_trait() {
    let host = on_host("mod m { #[kernel] pub fn k(t: Thread<1>) {} }");
    has_not(&host, "Instance");
    has(&host, "pubfnkernel<>()->&'staticp::Kernel{&super::__FERROGRID_KERNEL_k}");
}

#[test]
fn names_of_parameters_do_not_clash_with_those_of_a_launch() {
    let host = on_host("mod m { #[kernel] pub fn k(t: Thread<1>, stream: u32, grid: u32, grid_: u32) {} }");
    has(&host, "(stream_:&p::Stream,grid__:implp::IntoGrid<1usize>,stream:u32,grid:u32,grid_:u32,)");
    has(&host, "let__grid=p::IntoGrid::into_grid(grid__);");
    has(&host, "Launches the kernel `k` on `stream_`, with the threads of `grid__`,");
}

#[test]
fn an_unsafe_kernel_has_an_unsafe_launch_that_documents_its_contract() {
    let [unsafe_one, safe] = ["unsafe ", ""].map(|unsafety| {
        on_host(&format!(
            "mod m {{ /// Twice.\n#[kernel] #[must_use] pub(crate) {unsafety}fn r#k(t: Thread<1>) {{}} }}"
        ))
    });
    has(&unsafe_one, "pub(crate)unsafefnr#k<>(");
    assert_eq!((unsafe_one.matches("#Safety").count(), safe.matches("#Safety").count()), (1, 0));
    has(&safe, "pub(crate)fnr#k<>(");
    has(&safe, "entry:\"k_");
    has(&safe, "pub(crate)modr#k{");
    let launch = between(&safe, "});}}", "pub(crate)fnr#k<>");
    has(launch, "Twice.");
    has_not(launch, "must_use");
}

/// On both sides, before the names of the parameters are taken: those of the same group must have one shape.
#[test]
fn slices_of_one_shape_are_compared_and_share_extents() {
    let module = "mod m { #[kernel(same_shape(x, y))] pub fn k(t: Thread<1>, x: &[f32], z: &[f32], y: DisjointSlice<f32>) {} }";
    has(&on_host(module), "p::same_shape(&__FERROGRID_KERNEL_k,(\"x\",&__p1),(\"y\",&__p3))?;let__grid");
    has(&on_device(module), "d::DisjointSlice::from_raw_parts(p3_start.as_mut_ptr(),[p1_extent0asusize])");
    has_not(&on_host(&module.replace("(same_shape(x, y))", "")), "same_shape(&");
}

/// `other::W`, `s.W` and `W` of a function that does not read it are other items.
#[test]
fn constants_are_read_by_reference_where_they_are_named() {
    let module = "mod m { #[constant] pub static W: Constant<[f32; 2]> = Constant::new([1.0, 2.0]); \
                  #[cfg(x)] #[device] static F: DeviceAtomic<u32> = DeviceAtomic::new(1); \
                  static PLAIN: u32 = 3; fn helper() -> f32 { W[0] + other::W + s.W + (0..W) } \
                  #[kernel] pub fn k(t: Thread<1>) { helper(); F.load(X); } #[kernel] fn none(t: Thread<1>) {} }";
    let (host, device) = (on_host(module), on_device(module));
    for half in [&host, &device] {
        has(half, "__value_W[0]+other::W+s.W+(0..__value_W)");
        has(half, "let__value_W=unsafe{self::__ferrogrid_read_W(&__reading_W)};__value_W[0]");
        has(half, "let__reading_F=d::constant::Reading;");
        has(half, "{self::__ferrogrid_read_F(&__reading_F)};helper();__value_F.load(X);");
        has(half, "(t:Thread<1>){}");
        has_not(half, "staticW:Constant<[f32;2]>");
        has(half, "staticPLAIN:u32=3;");
    }
    has(&host, "p::device::assert_device_copy::<[f32;2]>();");
    has(&host, "p::device::statics::assert_static::<DeviceAtomic<u32>>();");
    has(&host, "pubstaticW:p::DeviceConstant<[f32;2]>=p::DeviceConstant::new(");
    has(&host, "staticF:p::DeviceStatic<DeviceAtomic<u32>>=p::DeviceStatic::new(");
    has(&host, "{letinitial:Constant<[f32;2]>=Constant::new([1.0,2.0]);p::InitialValue::new(initial)};");
    has(&host, "p::InitialValue::new(p::device::Constant::<DeviceAtomic<u32>>::new(initial))};");
    has(&host, "p::device::constant::read(reading,self::W.here())");
    has(&host, "p::device::statics::read(reading,self::F.here())");
    // The limit counts constants only.
    has(
        &host,
        "lettotal=0;lettotal=p::add_constant(total,\"W\",::core::mem::size_of::<[f32;2]>(),::core::mem::align_of::<[f32;2]>(),);let_=total;",
    );
    has(&host, "=&[self::W.memory(),#[cfg(x)]self::F.memory()];CONSTANTS");
    has(&host, "=&[];CONSTANTS");
    assert_eq!(host.matches("add_constant").count(), 1, "{host}");
    let symbol = between(&host, "\"W\"),\"", "\"");
    has(&device, &format!("static{symbol}:Constant<[f32;2]>=Constant::new([1.0,2.0]);"));
    has(&device, &format!("mov.u64%t,{symbol};cvta.const.u64"));
    let symbol = between(&host, "\"F\"),\"", "\"");
    has(
        &device,
        &format!(
            "#[unsafe(no_mangle)]#[allow(non_upper_case_globals)]static{symbol}:DeviceAtomic<u32>=DeviceAtomic::new(1);"
        ),
    );
    has(&device, &format!("d::statics::read(reading,::core::ptr::addr_of!(self::{symbol}))"));
    // Both sides compare layouts.
    has(
        &device,
        "<[f32;2]asd::DeviceCopy>::LAYOUT,#[cfg(x)]::core::mem::size_of::<<DeviceAtomic<u32>asd::statics::StaticValue>::Value>()asu64",
    );
}

/// Only in the crate with kernels, so that each variable exists once.
#[test]
fn a_library_has_neither_entry_points_nor_variables() {
    let module = "mod m { #[constant] static W: Constant<f32> = Constant::new(1.0); \
                  #[device] static F: DeviceAtomic<u32> = DeviceAtomic::new(1); \
                  fn f() -> f32 { *W } #[kernel(block = [A])] pub fn k(t: Thread<1>) { F.load(X); } }";
    let library = text(device::module(&parsed(module), false));
    assert!(!library.contains("ptx-kernel") && !library.contains("no_mangle"), "{library}");
    has_not(&library, "__FERROGRID_BLOCK");
    has(&library, "unsafeextern\"C\"{#[allow(non_upper_case_globals)]static__ferrogrid_static_F_");
    has(&library, "unsafefn__ferrogrid_read_W(");
    has(&library, "pubfnk(t:Thread<1>){");
}

#[test]
fn kernels_call_each_others_bodies() {
    let host = on_host(
        "mod m { struct S; #[kernel] pub fn a(t: Thread<1>) { b(t) } #[kernel] pub fn b(t: Thread<1>) {} \
         fn c() { { a() } } fn d(a: fn()) { a() } fn e() {} impl S { const N: u32 = 1; fn f() { b() } } }",
    );
    let imported = |name: &str| format!("{{#[allow(unused_imports)]useself::__ferrogrid_bodies::{name};");
    has(&host, &format!("fn__ferrogrid_body_a(t:Thread<1>){}b(t)", imported("b")));
    has(&host, &format!("fnc(){}{{a()}}}}", imported("a")));
    has(&host, "fnd(a:fn()){a()}");
    has(&host, "fne(){}");
    has(&host, &format!("implS{{constN:u32=1;fnf(){}b()}}}}", imported("b")));
    has(&host, "pub(super)usesuper::__ferrogrid_body_aasa;");
}

#[test]
fn functions_of_other_device_code_call_their_native_counterpart_or_panic() {
    let module = "mod m { #[cfg(x)] #[link(file = \"f.ptx\")] unsafe extern \"C\" { #[native(cpu::f)] #[cfg(y)] pub safe fn f(a: f32, b: u32) -> f32; \
                  #[link_name = \"_Zg\"] fn g(p: *const u8); } extern \"C\" { #[link_name = \"llvm.x\"] fn h(); } }";
    let (host, device) = (on_host(module), on_device(module));
    has(&host, "pubfnf(__argument0:f32,__argument1:u32)->f32{unsafe{cpu::f(__argument0,__argument1)}}");
    has(&host, "unsafefng(__argument0:*constu8){{let_=__argument0;p::no_native_function(\"_Zg\")}}");
    assert_eq!((host.matches("#[cfg(x)]").count(), host.matches("#[cfg(y)]").count()), (2, 1), "{host}");
    has_not(&host, "link_name=\"_Zg\"");
    has(
        &device,
        "#[cfg(x)]unsafeextern\"C\"{#[cfg(y)]pubsafefnf(a:f32,b:u32)->f32;#[link_name=\"_Zg\"]fng(p:*constu8);}",
    );
    for half in [host, device] {
        has(&half, "extern\"C\"{#[link_name=\"llvm.x\"]fnh();}");
        assert!(!half.contains("native(") && !half.contains("link(file"), "{half}");
    }
}

fn code(arch: &str, cubin: Option<&str>) -> ArchCode {
    let version = (8, 1);
    ArchCode {
        arch: arch.into(),
        version,
        ptx: format!("/out/{arch}.ptx").into(),
        cubin: cubin.map(PathBuf::from),
    }
}

fn compiled() -> Code {
    let entries = vec![CompiledEntry { name: "k_1".into(), params: vec![(8, 4)], layout: vec![3, 5] }];
    let library = |choices: &str| UsedLibrary { module: "::other::kernels".into(), choices: choices.into() };
    Code::Compiled {
        module: CompiledModule {
            image: 2,
            holds_images: true,
            holder: "crate::a::IMAGES_HERE".into(),
            libraries: vec![library("text=1\nfeature=\"fast\""), library("text=1")],
            entries,
            ..CompiledModule::default()
        },
        images: vec![CompiledImage {
            id: 7,
            codes: vec![code("sm_75", None), code("sm_90", Some("/out/sm_90.cubin"))],
            links: vec!["/links/offset.ptx".into()],
        }],
        debug_assertions: true,
        choices: "feature=\"fast\"".into(),
    }
}

#[test]
fn device_code_is_embedded_once_and_compared_with_the_host() {
    let module = parsed(
        "#[cfg(x)] mod m { #[kernel] pub fn k(t: Thread<1>, a: u32) { if cfg!(feature = \"slow\") {} } }",
    );
    let host = text(host::module(&module, &compiled(), Some(&parse_quote!(#[cfg(test)]))));
    has(&host, "#[cfg(test)]#[cfg(x)]#[doc(hidden)]");
    has(
        &host,
        "pub(crate)modIMAGES_HERE{pubstaticIMAGES:[p::EmbeddedImage;1usize]=[p::EmbeddedImage{id:7u128,codes:&[",
    );
    has(&host, "(\"sm_75\",8u32,1u32,::core::include_str!(\"/out/sm_75.ptx\"),&[]),");
    has(
        &host,
        "(\"sm_90\",8u32,1u32,::core::include_str!(\"/out/sm_90.ptx\"),::core::include_bytes!(\"/out/sm_90.cubin\"))],",
    );
    has(&host, "links:&[(\"offset.ptx\",::core::include_bytes!(\"/links/offset.ptx\"))]}];}");
    has(&host, "p::ModuleImage::embedded(&crate::a::IMAGES_HERE::IMAGES,2usize);");
    has(&host, "const__FERROGRID_ENTRIES:p::Entries=&[(\"k_1\",&[(8usize,4usize)],&[3u64,5u64])];");
    has(&host, "p::check_debug_assertions(cfg!(debug_assertions),true);");
    has(&host, "p::check_params(__FERROGRID_ENTRIES,\"k_");
    has(&host, "p::check_layout(__FERROGRID_ENTRIES,\"k_");
    has(
        &host,
        "&[(\"the number of bytes of its shared memory\",(0)asu64,false),(\"the layout of the fields of `a`\",<u32asp::device::DeviceCopy>::LAYOUT,true)])",
    );
    has(
        &host,
        "(::core::option::Option::Some(\"feature=\\\"fast\\\"\"),&[(\"debug_assertions\",cfg!(debug_assertions)),",
    );
    has(&host, "(\"feature=\\\"slow\\\"\",cfg!(feature=\"slow\"))],);");
    has(
        &host,
        "p::check_library(::other::kernels::__FERROGRID_CHOICES,\"text=1\\nfeature=\\\"fast\\\"\",\"the library `other` is not the same",
    );
    has(&host, "whole workspace: feature=\\\"fast\\\". What");
    has(&host, "whole workspace: nothing set. What");

    let Code::Compiled { module: compiled, debug_assertions, .. } = compiled() else { unreachable!() };
    let elsewhere =
        Code::Compiled { module: compiled, images: Vec::new(), debug_assertions, choices: String::new() };
    let host = text(host::module(&module, &elsewhere, None));
    assert!(!host.contains("IMAGES:[") && host.contains("IMAGES_HERE::IMAGES,2usize"), "{host}");
    has(&host, "(::core::option::Option::None,&[");
}

#[test]
fn a_module_without_device_code_has_the_reason() {
    let kernel = parsed("mod m { #[kernel] pub fn k(t: Thread<1>) {} }");
    let constant = parsed("mod m { #[constant] static W: Constant<f32> = Constant::new(1.0); }");
    let of = |module: &Module, code: &Code| text(host::module(module, code, None));
    has(&of(&kernel, &Code::Unbuilt("no compiler".into())), "p::ModuleImage::unbuilt(\"no compiler\");");
    has(&of(&kernel, &Code::HostOnly), "p::ModuleImage::host_only();");
    for module in [&kernel, &constant] {
        let unknown = of(module, &Code::Unknown);
        has(&unknown, "::core::compile_error!{\"the kernels of module `m` were not compiled for the device:");
        has(&unknown, "p::ModuleImage::host_only();");
        has_not(&of(module, &Code::HostOnly), "compile_error");
        has_not(&unknown, "__FERROGRID_ENTRIES");
    }
    has_not(&of(&parsed("mod m { pub fn f() {} }"), &Code::Unknown), "compile_error");
}

#[test]
fn modules_with_kernels_warn_if_panics_abort() {
    let warns =
        |module: &str| on_host(module).contains("#[cfg(panic=\"abort\")]const_:()={#[deprecated(note=");
    assert!(warns("mod m { #[kernel] pub fn k(t: Thread<1>) {} }") && !warns("mod m { pub fn f() {} }"));
}

/// Errors of the device compiler appear at the user's tokens, and the host half omits functions with errors.
#[test]
fn a_refused_function_has_its_error_and_no_body() {
    let source = "#[cfg(x)] mod m {\n    fn f() { let a: u32 = 1; }\n    fn g() -> u32 { 2 }\n    fn h() -> impl Fn() { let a = 3; move || {} }\n\
                  \x20   impl S { fn i() { 4 } }\n    trait T { fn j() { 5 } fn k(); }\n    #[kernel] pub fn l(t: Thread<1>) {}\n}";
    let module = parsed(source);
    let at = |start, end, message: &str| Diagnostic { start, end, message: message.into() };
    let refused = |diagnostics: &[Diagnostic]| {
        let code = Code::Refused(diagnostics.to_vec());
        variant(&module, &code, Some(&parse_quote!(#[cfg(test)]))).unwrap()
    };
    let all = [
        at((2, 18), (2, 24), "wrong type"),
        at((4, 33), (4, 34), "opaque"),
        at((5, 23), (5, 24), "in a method"),
        at((6, 24), (6, 25), "in a trait"),
        at((3, 8), (3, 8), "empty"),
        at((99, 1), (99, 1), "nowhere"),
    ];
    let half = text(refused(&all));
    let empty = "{::core::unreachable!()}";
    has(&half, &format!("#[allow(unused)]fnf(){empty}"));
    has(&half, "fng()->u32{2}");
    has(&half, "->implFn(){leta=3;move||{}}");
    has(&half, &format!("fni(){empty}"));
    has(&half, &format!("fnj(){empty}fnk();"));
    has(&half, "p::ModuleImage::unbuilt(\"the device compiler rejected it\");");
    has(&half, "#[cfg(test)]#[cfg(x)]const_:()={");
    for Diagnostic { message, .. } in &all {
        has(&half, &format!("compile_error!{{\"{message}\"}}"));
    }
    let errors: Vec<_> = refused::errors(&module.item, &all).into_iter().collect();
    let places: Vec<_> = errors.iter().map(|tree| tree.span().start().line).collect();
    assert!([1, 2, 3, 4, 5, 6].iter().all(|line| places.contains(line)), "{places:?}");
    let first = errors.iter().find(|tree| tree.span().start().line == 2).unwrap().span();
    assert_eq!(
        (
            first.start().column,
            errors.iter().filter(|it| it.span().start().line == 2).map(|it| it.span().end().column).max()
        ),
        (17, Some(23))
    );
    // The bounds of a body: from its first brace up to its last.
    has(&text(refused(&[at((2, 12), (2, 13), "brace")])), &format!("fnf(){empty}"));
    has(&text(refused(&[at((2, 31), (2, 31), "behind")])), "fnf(){leta:u32=1;}");
}

#[test]
fn a_module_that_is_for_the_host_alone_asks_for_no_device_code() {
    let options = parse_quote!(host_only);
    let expanded = module(
        &options,
        parse_quote!(
            mod m {
                #[kernel]
                pub fn k(t: Thread<1>) {}
            }
        ),
    )
    .unwrap();
    has(&text(expanded), "p::ModuleImage::host_only();");
    let wrong = parse_quote!(other);
    assert!(
        module(
            &wrong,
            parse_quote!(
                mod m {}
            )
        )
        .is_err()
    );
}
