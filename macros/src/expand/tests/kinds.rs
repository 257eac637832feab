//! Each kind of parameter: the argument of the launch function, the parameters of the entry point, and the
//! kernel's argument on both sides.

use super::{between, has, has_not, on_device, on_host};

/// A parameter `a` of a kernel, and its expansion.
struct Kind {
    rank: usize,
    declared: &'static str,
    /// Of the launch function.
    launch: &'static str,
    /// Of the entry point.
    entry: &'static str,
    /// The kernel's argument on a device.
    on_device: &'static str,
    /// The kernel's argument on the CPU device.
    on_cpu: &'static str,
    /// (size, align) of each parameter of the entry point.
    shapes: &'static str,
    /// The assertions about its types at compile time.
    travels: &'static str,
    /// Whether the launch orders the use of memory.
    accesses: &'static str,
}

const SLICE: &str = "(8,8),(4,4)";
const PLANE: &str = "(8,8),(4,4),(4,4)";
const VOLUME: &str = "(8,8),(4,4),(4,4),(4,4)";
const ONE: &str = "p1_start:&mut[f32;0],p1_extent0:u32,";
const TWO: &str = "p1_start:&mut[f32;0],p1_extent0:u32,p1_extent1:u32,";

const KINDS: [Kind; 18] = [
    Kind {
        rank: 1,
        declared: "a: f32",
        launch: "a:f32,",
        entry: "p1_value:f32,",
        on_device: "p1_value",
        on_cpu: "::core::ptr::from_ref(&__p1).read()",
        shapes: "(::core::mem::size_of::<f32>(),::core::mem::align_of::<f32>())",
        travels: "assert_device_copy::<f32>()",
        accesses: "",
    },
    Kind {
        rank: 1,
        declared: "a: (f32, (u8, char))",
        launch: "a:(f32,(u8,char)),",
        entry: "p1_member0:f32,p1_member1:u8,p1_member2:char,",
        on_device: "(p1_member0,(p1_member1,p1_member2,),)",
        on_cpu: "::core::ptr::from_ref(&__p1).read()",
        shapes: "(::core::mem::size_of::<f32>(),::core::mem::align_of::<f32>()),\
                 (::core::mem::size_of::<u8>(),::core::mem::align_of::<u8>()),\
                 (::core::mem::size_of::<char>(),::core::mem::align_of::<char>())",
        travels: "assert_device_copy::<char>()",
        accesses: "",
    },
    Kind {
        rank: 1,
        declared: "a: &[u8]",
        launch: "a:implp::LaunchInput<'p1,u8,1usize>,",
        entry: "p1_start:&[u8;0],p1_extent0:u32,",
        on_device: "::core::slice::from_raw_parts(p1_start.as_ptr(),p1_extent0asusize)",
        on_cpu: "__loan.lend(__p1)",
        shapes: SLICE,
        travels: "assert_slice_element::<u8>()",
        accesses: "__p1.access()",
    },
    Kind {
        rank: 2,
        declared: "a: Plane<f32>",
        launch: "a:implp::LaunchInput<'p1,f32,2usize>,",
        entry: "p1_start:&[f32;0],p1_extent0:u32,p1_extent1:u32,",
        on_device: "d::Plane::from_raw_parts(p1_start.as_ptr(),[p1_extent0asusize,p1_extent1asusize]).narrow()",
        on_cpu: "__loan.lend(__p1)",
        shapes: PLANE,
        travels: "assert_slice_element::<f32>()",
        accesses: "__p1.access()",
    },
    Kind {
        rank: 3,
        declared: "a: Volume<f32>",
        launch: "a:implp::LaunchInput<'p1,f32,3usize>,",
        entry: "p1_start:&[f32;0],p1_extent0:u32,p1_extent1:u32,p1_extent2:u32,",
        on_device: "d::Volume::from_raw_parts(p1_start.as_ptr(),\
                    [p1_extent0asusize,p1_extent1asusize,p1_extent2asusize]).narrow()",
        on_cpu: "__loan.lend(__p1)",
        shapes: VOLUME,
        travels: "assert_slice_element::<f32>()",
        accesses: "__p1.access()",
    },
    Kind {
        rank: 1,
        declared: "a: DisjointSlice<f32>",
        launch: "a:implp::LaunchOutput<'p1,f32,1usize>,",
        entry: ONE,
        on_device: "d::DisjointSlice::from_raw_parts(p1_start.as_mut_ptr(),[p1_extent0asusize]).narrow()",
        on_cpu: "__loan.lend(p::device::DisjointSlice::from_raw_parts(__p1.0,__p1.1))",
        shapes: SLICE,
        travels: "assert_device_copy::<f32>()",
        accesses: "__p1.access()",
    },
    Kind {
        rank: 2,
        declared: "a: DisjointSlice<f32, 2>",
        launch: "a:implp::LaunchOutput<'p1,f32,2usize>,",
        entry: TWO,
        on_device: "d::DisjointSlice::from_raw_parts(p1_start.as_mut_ptr(),[p1_extent0asusize,p1_extent1asusize]).narrow()",
        on_cpu: "__loan.lend(p::device::DisjointSlice::from_raw_parts(__p1.0,__p1.1))",
        shapes: PLANE,
        travels: "assert_device_copy::<f32>()",
        accesses: "__p1.access()",
    },
    Kind {
        rank: 1,
        declared: "a: DisjointRows<f32>",
        launch: "a:implp::LaunchOutput<'p1,f32,2usize>,",
        entry: TWO,
        on_device: "d::DisjointRows::from_raw_parts(p1_start.as_mut_ptr(),[p1_extent0asusize,p1_extent1asusize])",
        on_cpu: "__loan.lend(p::device::DisjointRows::from_raw_parts(__p1.0,__p1.1))",
        shapes: PLANE,
        travels: "assert_device_copy::<f32>()",
        accesses: "__p1.access()",
    },
    Kind {
        rank: 2,
        declared: "a: DisjointTiles<f32, 8, 4>",
        launch: "a:implp::LaunchOutput<'p1,f32,2usize>,",
        entry: TWO,
        on_device: "d::DisjointTiles::from_raw_parts(p1_start.as_mut_ptr(),[p1_extent0asusize,p1_extent1asusize]).narrow()",
        on_cpu: "__loan.lend(p::device::DisjointTiles::from_raw_parts(__p1.0,__p1.1))",
        shapes: PLANE,
        travels: "assert_device_copy::<f32>()",
        accesses: "__p1.access()",
    },
    Kind {
        rank: 1,
        declared: "a: DisjointChunks<f32, 256>",
        launch: "a:implp::LaunchOutput<'p1,f32,1usize>,",
        entry: ONE,
        on_device: "d::DisjointChunks::from_raw_parts(p1_start.as_mut_ptr(),[p1_extent0asusize])",
        on_cpu: "__loan.lend(p::device::DisjointChunks::from_raw_parts(__p1.0,__p1.1))",
        shapes: SLICE,
        travels: "assert_device_copy::<f32>()",
        accesses: "__p1.access()",
    },
    Kind {
        rank: 1,
        declared: "a: DisjointWarps<f32>",
        launch: "a:implp::LaunchOutput<'p1,f32,1usize>,",
        entry: ONE,
        on_device: "d::DisjointWarps::from_raw_parts(p1_start.as_mut_ptr(),[p1_extent0asusize])",
        on_cpu: "__loan.lend(p::device::DisjointWarps::from_raw_parts(__p1.0,__p1.1))",
        shapes: SLICE,
        travels: "assert_device_copy::<f32>()",
        accesses: "__p1.access()",
    },
    Kind {
        rank: 1,
        declared: "a: ScatterSlice<f32>",
        launch: "a:implp::LaunchOutput<'p1,f32,1usize>,",
        entry: "p1_start:&mut[f32;0],p1_extent0:u32,p1_claims:*constu32,",
        on_device: "d::ScatterSlice::from_raw_parts(p1_start.as_mut_ptr(),[p1_extent0asusize],p1_claims)",
        on_cpu: "__loan.lend(p::device::ScatterSlice::from_raw_parts(__p1.0,__p1.1,__claims1))",
        shapes: "(8,8),(4,4),(8,8)",
        travels: "assert_device_copy::<f32>()",
        accesses: "__p1.access(),__claims1.access()",
    },
    Kind {
        rank: 1,
        declared: "a: Texture<f32>",
        launch: "a:p::TextureView<'p1,f32,1usize>,",
        entry: "p1_start:u64,p1_reading:u32,p1_extent0:u32,",
        on_device: "d::Texture::from_raw_parts(::core::ptr::without_provenance(p1_startasusize),p1_reading,[p1_extent0])",
        on_cpu: "__loan.lend(__p1)",
        shapes: PLANE,
        travels: "assert_texel::<f32>()",
        accesses: "__p1.access()",
    },
    Kind {
        rank: 2,
        declared: "a: Surface<f32, 2>",
        launch: "a:p::SurfaceViewMut<'p1,f32,2usize>,",
        entry: "p1_start:u64,p1_extent0:u32,p1_extent1:u32,",
        on_device: "d::Surface::from_raw_parts(::core::ptr::without_provenance(p1_startasusize),[p1_extent0,p1_extent1])",
        on_cpu: "__loan.lend(p::device::Surface::<f32,2usize>::from_raw_parts(__p1.0,__p1.1))",
        shapes: PLANE,
        travels: "assert_texture_element::<f32>()",
        accesses: "__p1.access()",
    },
    Kind {
        rank: 1,
        declared: "a: BlockOrder<u32>",
        launch: "",
        entry: "p1_order:*constu64,",
        on_device: "p1_ordered",
        on_cpu: "__loan.lend(__ordered1)",
        shapes: "(8,8)",
        travels: "order::assert_published::<u32>()",
        accesses: "__p1.access()",
    },
    Kind {
        rank: 1,
        declared: "a: Shared<[f32; 8]>",
        launch: "",
        entry: "",
        on_device: "__region1",
        on_cpu: "__loan.lend(__region1)",
        shapes: "",
        travels: "",
        accesses: "",
    },
    Kind {
        rank: 1,
        declared: "a: SharedSlice<f32>",
        launch: "a:usize,",
        entry: "__offset1:usize,__length1:usize,",
        on_device: "__region1",
        on_cpu: "__loan.lend(__region1)",
        shapes: "(8,8),(8,8)",
        travels: "",
        accesses: "",
    },
    Kind {
        rank: 1,
        declared: "a: *mut f32",
        launch: "a:p::DevicePtrMut<f32>,",
        entry: "p1_value:*mutf32,",
        on_device: "p1_value",
        on_cpu: "::core::ptr::from_ref(&__p1).read()",
        shapes: "(8,8)",
        travels: "assert_device_copy::<f32>()",
        accesses: "",
    },
];

impl Kind {
    /// A module with a kernel that has this parameter.
    fn module(&self) -> String {
        let unsafety = if self.declared.contains('*') { "unsafe" } else { "" };
        format!("mod m {{ #[kernel] pub {unsafety} fn k(t: Thread<{}>, {}) {{}} }}", self.rank, self.declared)
    }

    /// The number of its parameters in the entry point.
    fn flattened(&self) -> usize {
        self.entry.matches(':').count()
    }
}

#[test]
fn a_launch_function_has_the_parameters_of_the_kernel() {
    for kind in &KINDS {
        let host = on_host(&kind.module());
        let (rank, launch) = (kind.rank, kind.launch);
        has(&host, &format!("grid:implp::IntoGrid<{rank}usize>,{launch})->p::Result<()>"));
        has(&host, &format!(",&[{}],)?;", kind.accesses));
        let assertion = format!("const_:()=p::device::{};", kind.travels);
        assert_eq!(host.contains(&assertion), !kind.travels.is_empty(), "{assertion}: {host}");
        assert_eq!(host.contains("const_:()=p::device::"), !kind.travels.is_empty(), "{host}");
    }
}

#[test]
fn an_entry_point_takes_the_parts_and_calls_the_kernel_with_the_whole() {
    for kind in &KINDS {
        let device = on_device(&kind.module());
        has(
            &device,
            &format!("({}){{unsafe{{letcurrent=d::Thread::<{}usize>::current();", kind.entry, kind.rank),
        );
        has(&device, &format!("self::k::<>(current,{});", kind.on_device));
    }
}

#[test]
fn the_cpu_device_calls_the_body_with_the_whole() {
    for kind in &KINDS {
        has(&on_host(&kind.module()), &format!("__ferrogrid_body_k::<>(__thread,{})}});", kind.on_cpu));
    }
}

/// The descriptor, the addresses that a launch passes, the CPU device's arguments, and the entry point's parameters.
#[test]
fn all_agree_on_the_number_of_parts() {
    for kind in &KINDS {
        let (host, flattened) = (on_host(&kind.module()), kind.flattened());
        has(&host, &format!("[{}]", kind.shapes));
        assert_eq!(
            kind.shapes.matches("),(").count() + usize::from(flattened > 0),
            flattened,
            "{}",
            kind.declared
        );
        let passed = between(&host, "let__params=", "unsafe{p::launch_with");
        let addresses = ["from_ref(", ".params()[", ".param()"].map(|it| passed.matches(it).count());
        assert_eq!(addresses.iter().sum::<usize>(), flattened, "{}: {passed}", kind.declared);
        let run = between(&host, "unsafefn__ferrogrid_cpu_k", "})");
        assert_eq!(run.matches("p::read_param::<").count(), flattened, "{}: {run}", kind.declared);
    }
}

/// Each part has its own address, and each extent its own place.
#[test]
fn parts_keep_their_order() {
    for kind in KINDS.iter().filter(|kind| kind.accesses.starts_with("__p1") && kind.flattened() > 1) {
        let host = on_host(&kind.module());
        let views = kind.flattened() - usize::from(kind.accesses.contains("claims"));
        let views: Vec<String> = (0..views).map(|part| format!("__p1.params()[{part}usize]")).collect();
        let claims = if kind.accesses.contains("claims") { ",__claims1.param()" } else { "" };
        has(&host, &format!("let__params=[{}{claims}];", views.join(",")));
    }
    let host = on_host("mod m { #[kernel] pub fn k(t: Thread<1>, a: SharedSlice<f32>, b: (f32, u8)) {} }");
    let address = |of: &str| format!("::core::ptr::from_ref(&{of}).cast::<::core::ffi::c_void>()");
    let addresses = ["__p1[0usize]", "__p1[1usize]", "__p2_0", "__p2_1"].map(address).join(",");
    has(&host, &format!("let__params=[{addresses}];"));
}

#[test]
fn wide_kernels_have_extents_of_sixty_four_bits_and_no_limit() {
    for kind in KINDS.iter().filter(|kind| kind.entry.contains("extent0") && !kind.entry.contains(":u64")) {
        let module = kind.module().replace("#[kernel]", "#[kernel(wide)]");
        let (host, device) = (on_host(&module), on_device(&module));
        has(&device, &format!("({}){{", kind.entry.replace(":u32", ":usize")));
        has(&host, &format!("[{}]", kind.shapes.replace("(4,4)", "(8,8)")));
        assert!(!device.contains(".narrow()") && !host.contains("p::check_narrow("), "{}", kind.declared);
        has(
            &on_host(&kind.module()),
            "p::check_narrow(&__FERROGRID_KERNEL_k,p::longest(&__p1),||[(\"a\",p::longest(&__p1))])?;",
        );
        has(&host, "p::read_param::<usize>(__params,&mut__next)asusize");
    }
}

#[test]
fn slices_are_staged_before_the_launch_and_finished_after_it() {
    for kind in &KINDS {
        let host = on_host(&kind.module());
        let is_slice = kind.launch.contains("LaunchInput") || kind.launch.contains("LaunchOutput");
        let [staged, finished] =
            ["::stage(a,stream)?;", "}p::Staged::finish(__staged1,stream)?;::core"].map(|it| host.find(it));
        assert_eq!((staged.is_some(), finished.is_some()), (is_slice, is_slice), "{host}");
        assert!(staged <= finished, "{host}");
        let on_stream = kind.launch.contains("View");
        assert_eq!(host.contains("let__p1=a.on(stream)?;"), on_stream, "{host}");
    }
}

#[test]
fn outputs_of_blocks_are_checked_against_the_grid() {
    let rows = on_host("mod m { #[kernel] pub fn k(t: Thread<1>, a: DisjointRows<f32>) {} }");
    has(&rows, "p::rows_for_blocks(&__FERROGRID_KERNEL_k,stream,__grid,\"a\",&__p1)?;");
    has(&rows, "{p::Grid::blocks(p::Extent::<1usize>::extent(__extent))};");
    let divided = [("DisjointTiles<f32, 8, 4>", 2), ("DisjointChunks<f32, 256>", 1)];
    for (ty, rank) in divided {
        let host =
            on_host(&format!("mod m {{ #[kernel] pub fn k(t: Thread<{rank}>, x: &[f32], a: {ty}) {{}} }}"));
        has(
            &host,
            &format!("p::tiles_for_blocks(&__FERROGRID_KERNEL_k,stream,__grid,\"a\",&__p2,<{ty}>::TILE)?;"),
        );
        has(&host, &format!("(p::Extent::<{rank}usize>::extent(__extent),<{ty}>::TILE);"));
        has(&host, "|axis|{__extent[axis].div_ceil(__tile[axis])}");
    }
    for ty in ["DisjointSlice<f32>", "DisjointWarps<f32>", "ScatterSlice<f32>"] {
        let host = on_host(&format!("mod m {{ #[kernel] pub fn k(t: Thread<1>, a: {ty}) {{}} }}"));
        assert!(!host.contains("_for_blocks"), "{host}");
    }
    let order = on_host("mod m { #[kernel] pub fn k(t: Thread<1>, a: BlockOrder<u64>) {} }");
    has(&order, "let__p1=p::OrderMemory::new::<u64,1>(&__FERROGRID_KERNEL_k,__grid,stream)?;let__params");
}

/// The launch makes the map; on the device its address is that of the last of its parameters, behind those before it that have bytes.
#[test]
fn a_tensor_map_is_made_by_the_launch_and_found_by_its_number() {
    let module = "mod m { #[kernel] pub fn k(t: Thread<1>, x: &[f32], unit: Unit, a: TensorMap<u16, 64, 32>, order: BlockOrder<u32>) {} }";
    let host = on_host(module);
    has(&host, "a:implp::MapInput<'p3,u16>,");
    has(
        &host,
        "let__map3=p::LaunchMap::new(&__FERROGRID_KERNEL_k,stream,\"a\",&__p3,<TensorMap<u16,64,32>>::FORM)?;",
    );
    has(
        &host,
        "__p3.params()[0usize],__p3.params()[1usize],__p3.params()[2usize],__p3.params()[3usize],__map3.param()",
    );
    has(
        &host,
        "(8,8),(4,4),(4,4),(4,4),(::core::mem::size_of::<p::device::Encoded>(),::core::mem::align_of::<p::device::Encoded>())",
    );
    has(&host, "__loan.lend(p::device::TensorMap::from_raw_parts(__p3,::core::ptr::null()))");
    let device = on_device(module);
    has(&device, "p3_start:&[u16;0],p3_extent0:u32,p3_extent1:u32,p3_pitch:u32,p3_map:d::Encoded,");
    has(&device, "4usize+1usize+0usize+2usize+0usize+(::core::mem::size_of::<Unit>()!=0)asusize)");
}

/// As of a `TensorMap`, for a plane that is written.
#[test]
fn an_output_has_a_tensor_map_as_an_input_has() {
    let module = "mod m { #[kernel] pub fn k(t: Thread<1>, y: TensorMapMut<f32, 32, 8>) {} }";
    let host = on_host(module);
    has(&host, "y:implp::MapOutput<'p1,f32>,");
    has(
        &host,
        "letmut__staged1=p::MapOutput::stage(y,stream)?;let__p1=p::StagedMapOutput::output(&mut__staged1);",
    );
    has(&host, "\"y\",&__p1,<TensorMapMut<f32,32,8>>::FORM)?;");
    has(&host, "let__p1:(*mutf32,[usize;3usize])=");
    has(&host, "__loan.lend(p::device::TensorMapMut::from_raw_parts(__p1.0,__p1.1,::core::ptr::null()))");
    let device = on_device(module);
    has(&device, "p1_start:&mut[f32;0],p1_extent0:u32,p1_extent1:u32,p1_pitch:u32,p1_map:d::Encoded,");
    has(
        &device,
        "d::TensorMapMut::from_raw_parts(p1_start.as_mut_ptr(),[p1_extent0asusize,p1_extent1asusize,p1_pitchasusize],",
    );
}

/// In other ranks there is no pitch; the axes of the array are those of the view.
#[test]
fn boxes_have_tensor_maps_of_their_rank() {
    let module = "mod m { #[kernel] pub fn k(t: Thread<1>, x: BoxMap<[[[f32; 8]; 4]; 2]>, y: BoxMapMut<[u32; 8]>) {} }";
    let host = on_host(module);
    has(&host, "x:implp::LaunchInput<'p1,f32,3usize>,y:implp::LaunchOutput<'p2,u32,1usize>");
    has(&host, "\"x\",&__p1,<BoxMap<[[[f32;8];4];2]>>::FORM)?;");
    has(
        &host,
        "__p1.params()[3usize],__map1.param(),__p2.params()[0usize],__p2.params()[1usize],__map2.param()",
    );
    has(&host, "__loan.lend(p::device::BoxMap::from_raw_parts(__p1.0,__p1.1,::core::ptr::null()))");
    has(&host, "__loan.lend(p::device::BoxMapMut::from_raw_parts(__p2.0,__p2.1,::core::ptr::null()))");
    let device = on_device(module);
    has(
        &device,
        "p1_start:&[f32;0],p1_extent0:u32,p1_extent1:u32,p1_extent2:u32,p1_map:d::Encoded,p2_start:&mut[u32;0],p2_extent0:u32,p2_map:d::Encoded,",
    );
    has(
        &device,
        "d::BoxMap::from_raw_parts(p1_start.as_ptr(),[p1_extent0asusize,p1_extent1asusize,p1_extent2asusize,1,1],",
    );
    has(&device, "d::BoxMapMut::from_raw_parts(p2_start.as_mut_ptr(),[p2_extent0asusize,1,1,1,1],");
}

/// Regions follow one another; slices begin at offsets that the launch gives.
#[test]
fn regions_of_shared_memory_do_not_overlap() {
    let module = "mod m { #[kernel] pub fn k(t: Thread<1>, a: Shared<[f32; 8]>, n: u32, b: SharedSlice<u8>, c: Shared<[u64; 3]>) {} }";
    let after = |path: &str, before: &str, ty: &str| {
        format!("{path}shared::offset_after({before},::core::mem::size_of::<{ty}>())")
    };
    for (half, path, thread) in
        [(on_host(module), "p::device::", "__thread"), (on_device(module), "d::", "current")]
    {
        let (first, ty) = (after(path, "0", "[f32;8]"), ["[f32;8]", "[u64;3]"]);
        for (region, at, ty) in [(1, "const{0}", ty[0]), (4, &format!("const{{{first}}}")[..], ty[1])] {
            has(
                &half,
                &format!(
                    "let(__region{region},__around{region})={path}shared::array_region::<{ty},_,_>(&{thread},{at});"
                ),
            );
        }
        has(
            &half,
            &format!(
                "{path}shared::assert_shared_element::<u8>();let__region3={path}SharedSlice::from_raw({path}shared::region::<u8,_>(&{thread},__offset3),__length3,);"
            ),
        );
        has(&half, &after(path, &first, "[u64;3]"));
    }
    has(&on_device(module), "__around1.begin();__around4.begin();self::k");
    has(&on_device(module), "__region4);__around1.end();__around4.end();");
    let host = on_host(module);
    has(&host, "let__p3:[usize;2]=__shared.slice::<u8>(b);");
    has(&host, "&__grid,__shared.bytes(),false,");
    has(
        &host,
        &format!(
            "shared_bytes:{},uses_shared_memory:true,",
            after("p::device::", &after("p::device::", "0", "[f32;8]"), "[u64;3]")
        ),
    );
    let without = on_host("mod m { #[kernel] pub fn k(t: Thread<1>) {} }");
    has(&without, "shared_bytes:0,uses_shared_memory:false,");
    has(&without, "&__grid,p::Kernel::shared_size_bytes(&__FERROGRID_KERNEL_k),false,");
}

#[test]
fn blocks_in_order_mark_their_end() {
    let module = "mod m { #[kernel(block = 64)] pub fn k(t: Thread<1>, a: BlockOrder<u32>, x: &[u32]) {} }";
    let device = on_device(module);
    has(&device, "letp1_ordered=d::BlockOrder::from_raw(p1_order,&current);self::k::<>(current,p1_ordered,");
    has(
        &device,
        "d::order::end_block::<u32>(p1_order,&d::Thread::<1usize>::current_in([64u32,1u32,1u32]));}",
    );
    let host = on_host(module);
    has(&host, "let_end=p::device::order::EndOfBlock::<u32>::of(__p1,__block);");
    has(&host, "let__ordered1=p::device::BlockOrder::<u32>::from_raw(__p1,&__thread);");
    has(&host, "in_order:true,");
}

/// Threads that may wait for each other run side by side, others one after the other.
#[test]
fn the_cpu_device_runs_threads_as_they_wait() {
    let of = |kernel: &str| on_host(&format!("mod m {{ #[kernel] pub fn k(t: Thread<2>, {kernel} }}"));
    has(&of("x: u32) {}"), "__block.for_each_thread::<2usize>(|__thread|");
    has(&of("x: Plane<f32>) {}"), "__block.for_each_thread_inside::<2usize>(|__ends|");
    has(&of("x: Shared<[u32; 4]>) {}"), "__block.for_each_waiting_thread::<2usize>(|__thread|");
    has(&of("x: Plane<f32>) { t.sync_threads() }"), "__block.for_each_waiting_thread::<2usize>(|__thread|");
}

#[test]
fn a_native_body_gets_slices_that_are_lent() {
    let host = on_host(
        "mod m { #[kernel(native = super::n, T = [f32], wide)]
         pub fn k<T: A>(t: Thread<1>, o: BlockOrder<u32>, f: T, x: &[T], y: DisjointSlice<T>, s: Shared<[T; 4]>) {} }",
    );
    has(&host, ".with_native(__ferrogrid_native_k::<T>)");
    // The memory of the order is the first parameter of the entry point.
    has(&host, "let__p1=p::read_param::<*constu64>(__params,&mut__next);let__p2=p::read_param::<T>(");
    has(&host, "let__p4=__loan.lend(::core::slice::from_raw_parts_mut::<T>(p::read_param::<*mutT>(");
    has(
        &host,
        "super::n::<T>(*__blocks.first_chunk::<1usize>().unwrap(),::core::ptr::from_ref(&__p2).read(),\
         __p3,__p4)",
    );
    has_not(&on_host("mod m { #[kernel] pub fn k(t: Thread<1>) {} }"), "with_native");
}

#[test]
fn inputs_have_kinds() {
    let of = |rank: usize, ty: &str| {
        on_host(&format!("mod m {{ #[kernel] pub fn k(t: Thread<{rank}>, a: {ty}) {{}} }}"))
    };
    has(&of(1, "&[u8]"), "let__p1:&[u8]=::core::slice::from_raw_parts(p::read_param::<*constu8>(");
    for (rank, ty) in [(2, "Plane"), (3, "Volume")] {
        let path = format!("p::device::{ty}");
        has(
            &of(rank, &format!("{ty}<f32>")),
            &format!("let__p1:{path}<f32>={path}::from_raw_parts(p::read_param::<*constf32>("),
        );
    }
}
