//! The host half: for each kernel a typed launch function, a static that describes the kernel, the
//! function by which the CPU device runs a block of it, and a companion module. It must not know
//! the device half, only what the two agree on: entry names and flattened parameters.

use ferrogrid_syntax::{Division, Instance, Kernel, Module, Parameter, ParameterKind};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Ident, Lifetime, Type};

use super::bodies::{self, body_name};
use super::code::Code;
use super::instances::{
    chosen, holds, instance, instance_name, instance_trait, instances, launch_bounds, static_name,
};
use super::{abort, constants, extent_type, generic, layout, libraries, shared};
use super::{block, grid};

/// The module with launch functions in place of its kernels, where `cfg` holds.
pub(super) fn module(module: &Module, code: &Code, cfg: Option<&Attribute>) -> TokenStream {
    let written = &module.item;
    let (attributes, visibility, name) = (&written.attrs, &written.vis, &written.ident);
    let items = bodies::items(module);
    let aliases = bodies::aliases(module);
    let (image, embedded) = (image(module, code), embedded(module, code, cfg));
    let constants = module.constants.iter().map(|it| constants::on_host(module, it));
    let limit = constants::limit(module);
    let warning = abort::warning(module);
    let kernels = module.kernels.iter().map(|kernel| host_kernel(module, kernel, code));
    let libraries = libraries::of(module, code);
    quote! {
        #embedded
        #cfg
        // `Float` has methods that std has under the same names but not yet on stable (`x.erf()`).
        #[allow(unstable_name_collisions)]
        // Parameters are written without lifetimes, `t: Thread<1>`: whose they are, the expansion decides.
        #[allow(elided_lifetimes_in_paths)]
        #(#attributes)*
        #visibility mod #name {
            #items
            #aliases
            #image
            #libraries
            #(#constants)*
            #limit
            #warning
            #(#kernels)*
        }
    }
}

/// The images of the target, if they are embedded beside this module; others name them by their path.
fn embedded(module: &Module, code: &Code, cfg: Option<&Attribute>) -> TokenStream {
    let Code::Compiled { module: compiled, images, .. } = code else { return TokenStream::new() };
    if images.is_empty() {
        return TokenStream::new();
    }
    let name = compiled.holder.rsplit("::").next().unwrap_or_default();
    let name = Ident::new(name, Span::call_site());
    let (conditions, count) = (super::conditions(module, cfg), images.len());
    let images = images.iter().map(|image| {
        let id = image.id;
        let codes = image.codes.iter().map(|code| {
            let ((major, minor), arch) = (code.version, &code.arch);
            let ptx = code.ptx.to_string_lossy();
            let cubin = code.cubin.as_ref().map(|file| file.to_string_lossy());
            let cubin = cubin.map_or_else(|| quote!(&[]), |file| quote!(::core::include_bytes!(#file)));
            quote!((#arch, #major, #minor, ::core::include_str!(#ptx), #cubin))
        });
        let links = image.links.iter().map(|file| {
            let (name, file) = (file.file_name().unwrap_or_default().to_string_lossy(), file.to_string_lossy());
            quote!((#name, ::core::include_bytes!(#file)))
        });
        quote!(::ferrogrid::__private::EmbeddedImage { id: #id, codes: &[#(#codes),*], links: &[#(#links),*] })
    });
    quote! {
        #(#conditions)*
        #[doc(hidden)]
        #[allow(dead_code, unreachable_pub)]
        pub(crate) mod #name {
            // Others take its address: a value would be there again for each of them.
            pub static IMAGES: [::ferrogrid::__private::EmbeddedImage; #count] = [#(#images),*];
        }
    }
}

/// The compiled module: where its image is, and what its entry points are.
fn image(module: &Module, code: &Code) -> TokenStream {
    let image = match code {
        Code::HostOnly => quote!(host_only()),
        Code::Refused(_) => quote!(unbuilt("the device compiler refused it")),
        Code::Unbuilt(reason) => quote!(unbuilt(#reason)),
        Code::Unknown => quote!(host_only()),
        Code::Compiled { module: compiled, debug_assertions, .. } => {
            let holder: syn::Path = syn::parse_str(&compiled.holder).expect("the builder writes a path");
            let image = compiled.image;
            let entries = compiled.entries.iter().map(|entry| {
                let (name, layout) = (&entry.name, &entry.layout);
                let params = entry.params.iter().map(|&(size, align)| {
                    let (size, align) = (size as usize, align as usize);
                    quote!((#size, #align))
                });
                quote!((#name, &[#(#params),*], &[#(#layout),*]))
            });
            return quote! {
                #[doc(hidden)]
                const __FERROGRID_ENTRIES: ::ferrogrid::__private::Entries = &[#(#entries),*];
                const _: () =
                    ::ferrogrid::__private::check_debug_assertions(cfg!(debug_assertions), #debug_assertions);
                #[doc(hidden)]
                static __FERROGRID_IMAGE: ::ferrogrid::__private::ModuleImage =
                    ::ferrogrid::__private::ModuleImage::embedded(&#holder::IMAGES, #image);
            };
        }
    };
    let has_kernels = !(module.kernels.is_empty() && module.constants.is_empty());
    let unknown = (*code == Code::Unknown && has_kernels)
        .then(|| syn::Error::new(Span::call_site(), unknown(module)).to_compile_error());
    quote! {
        #unknown
        #[doc(hidden)]
        static __FERROGRID_IMAGE: ::ferrogrid::__private::ModuleImage =
            ::ferrogrid::__private::ModuleImage::#image;
    }
}

fn unknown(module: &Module) -> String {
    format!(
        "the kernels of module `{}` were not compiled for the device: this package needs a `build.rs` with \
         `fn main() {{ ferrogrid_build::compile() }}` and `ferrogrid-build` in its [build-dependencies]; if it has \
         them, the build step did not see this module: it must stand in a file of the package, not in the output \
         of another macro or in a doctest, nor behind a `cfg` that the build script prints by itself, which \
         `ferrogrid_build::Build::new().cfg(..)` sets instead (`#[ferrogrid::module(host_only)]` needs no build step and runs on the \
         CPU device only)",
        module.name
    )
}

fn host_kernel(module: &Module, kernel: &Kernel, code: &Code) -> TokenStream {
    let descriptors = kernel.instances.iter().map(|instance| descriptor(module, kernel, instance, code));
    let instances = instances(kernel);
    let cpu_entry = cpu_entry(kernel);
    let launch = launch(kernel);
    let companion = companion(kernel);
    let block = block::constant(kernel, &quote!(::ferrogrid::__private::device));
    quote!(#block #(#descriptors)* #instances #cpu_entry #launch #companion)
}

fn cpu_entry_name(kernel: &Kernel) -> Ident {
    format_ident!("__ferrogrid_cpu_{}", kernel.bare_name())
}

/// The static that says all that is known of an instance, and the checks made at compile time.
fn descriptor(module: &Module, kernel: &Kernel, instance: &Instance, code: &Code) -> TokenStream {
    let (name, entry) = (instance_name(kernel, instance), kernel.entry(instance, module.fingerprint));
    let (static_name, cpu, rank) = (static_name(kernel, instance), cpu_entry_name(kernel), kernel.rank);
    let (aliases, arguments) = (generic::aliases(instance, Ident::clone), generic::passed(kernel));
    let block = optional(block::of(kernel));
    let max_threads = optional(kernel.bounds.max_threads.map(|threads| quote!(#threads)));
    let cluster = optional(kernel.bounds.cluster.map(|[x, y, z]| quote!([#x, #y, #z])));
    let (cluster_at_launch, dependent_launch) =
        (kernel.bounds.cluster_at_launch, kernel.bounds.dependent_launch);
    let (in_order, constants) = (kernel.bounds.in_order, constants::of_kernel(module, kernel));
    let uses_shared_memory = kernel.parameters.iter().any(|parameter| parameter.kind.is_shared());
    let shared_bytes = shared::bytes(kernel, &quote!(::ferrogrid::__private::device));
    let cfgs: Vec<&Attribute> = kernel.cfgs().collect();
    let shapes = shapes(kernel);
    let travels = kernel.parameters.iter().map(travels);
    let agree = matches!(code, Code::Compiled { .. }).then(|| {
        let layout = layout::named(module, kernel);
        quote! {
            #(#cfgs)*
            const _: () = {
                #aliases
                ::ferrogrid::__private::check_params(__FERROGRID_ENTRIES, #entry, #shapes);
                ::ferrogrid::__private::check_layout(__FERROGRID_ENTRIES, #entry, &#layout)
            };
        }
    });
    quote! {
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(non_upper_case_globals)]
        static #static_name: ::ferrogrid::__private::Kernel = {
            #aliases
            #(#travels)*
            ::ferrogrid::__private::Kernel::new(::ferrogrid::__private::KernelDescriptor {
                name: ::core::concat!(::core::module_path!(), "::", #name),
                entry: #entry,
                rank: #rank,
                block: #block,
                max_threads: #max_threads,
                cluster: #cluster,
                cluster_at_launch: #cluster_at_launch,
                dependent_launch: #dependent_launch,
                in_order: #in_order,
                shared_bytes: #shared_bytes,
                uses_shared_memory: #uses_shared_memory,
                params: #shapes,
                image: &__FERROGRID_IMAGE,
                constants: #constants,
                cpu: #cpu::<#arguments>,
                file: ::core::file!(),
                line: ::core::line!(),
            })
        };
        #agree
    }
}

fn optional(value: Option<TokenStream>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

/// Whether every value that it passes has bytes for all that its text tells.
fn all_have_bytes(kernel: &Kernel) -> bool {
    const NUMBERS: [&str; 16] = [
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64",
        "bool", "char",
    ];
    let is_number =
        |ty: &Type| NUMBERS.iter().any(|name| matches!(ty, Type::Path(it) if it.path.is_ident(name)));
    kernel.parameters.iter().flat_map(Parameter::values).all(is_number)
}

/// (size, align) of each parameter of the entry point, as a constant.
fn shapes(kernel: &Kernel) -> TokenStream {
    let all = all_shapes(kernel);
    if all_have_bytes(kernel) {
        return quote!(&#all);
    }
    quote! {{
        const SHAPES: &(&[(usize, usize)], usize) = {
            const KEPT: ([(usize, usize); #all.len()], usize) = ::ferrogrid::__private::sized_shapes(#all);
            &(&KEPT.0, KEPT.1)
        };
        SHAPES.0.split_at(SHAPES.1).0
    }}
}

/// (size, align) of each flattened parameter, those without bytes among them.
fn all_shapes(kernel: &Kernel) -> TokenStream {
    let sizes = kernel.entry_parameters().flat_map(|(_, it)| sizes(kernel, it));
    quote!([#(#sizes),*])
}

/// (size, align) of each flattened parameter of one.
fn sizes(kernel: &Kernel, parameter: &Parameter) -> Vec<TokenStream> {
    match &parameter.kind {
        ParameterKind::Scalar => vec![size(&parameter.ty)],
        ParameterKind::Tuple { members } => members.values().into_iter().map(size).collect(),
        ParameterKind::Input { .. } | ParameterKind::Output { .. } => {
            let extent = if kernel.bounds.wide { quote!((8, 8)) } else { quote!((4, 4)) };
            let claims = is_claimed(parameter).then(|| quote!((8, 8)));
            let extents =
                std::iter::repeat_n(extent, parameter.kind.flattened() - 1 - usize::from(claims.is_some()));
            std::iter::once(quote!((8, 8))).chain(extents).chain(claims).collect()
        }
        ParameterKind::Texture { .. } | ParameterKind::Surface { .. } => {
            let numbers = std::iter::repeat_n(quote!((4, 4)), parameter.kind.flattened() - 1);
            std::iter::once(quote!((8, 8))).chain(numbers).collect()
        }
        other => vec![quote!((8, 8)); other.flattened()],
    }
}

fn size(ty: &Type) -> TokenStream {
    quote!((::core::mem::size_of::<#ty>(), ::core::mem::align_of::<#ty>()))
}

/// Assertions, at the types, that they may travel to a device.
fn travels(parameter: &Parameter) -> TokenStream {
    let (types, assertion) = match &parameter.kind {
        // Their own bounds say what shared memory may hold.
        ParameterKind::Thread { .. } | ParameterKind::Shared { .. } | ParameterKind::SharedSlice { .. } => {
            return TokenStream::new();
        }
        ParameterKind::Texture { value, .. } => (vec![value], quote!(assert_texel)),
        ParameterKind::Surface { element, .. } => (vec![element], quote!(assert_texture_element)),
        ParameterKind::Scalar => (vec![&parameter.ty], quote!(assert_device_copy)),
        ParameterKind::Tuple { members } => (members.values(), quote!(assert_device_copy)),
        ParameterKind::Input { element, .. } => (vec![element], quote!(assert_slice_element)),
        ParameterKind::Output { element, .. } | ParameterKind::Pointer { element, .. } => {
            (vec![element], quote!(assert_device_copy))
        }
        ParameterKind::Order { element } => (vec![element], quote!(order::assert_exchange)),
    };
    let assertions = types.into_iter().map(|ty| {
        quote_spanned! {ty.span()=>
            const _: () = ::ferrogrid::__private::device::#assertion::<#ty>();
        }
    });
    assertions.collect()
}

/// The function by which the CPU device runs one block.
fn cpu_entry(kernel: &Kernel) -> TokenStream {
    let (cpu, body, rank) = (cpu_entry_name(kernel), body_name(kernel), kernel.rank);
    let (declared, passed) = (generic::declared(kernel), generic::passed(kernel));
    let where_clause = &kernel.function.sig.generics.where_clause;
    let cfgs = kernel.cfgs();
    let regions = shared::regions(kernel, &quote!(::ferrogrid::__private::device), &quote!(__thread));
    let extent = extent_type(kernel);
    let mut reads = Vec::new();
    let mut orders = Vec::new();
    // As the body takes them, which the entry point may have in another order.
    let mut arguments = vec![None; kernel.parameters.len()];
    for (number, parameter) in kernel.entry_parameters() {
        let local = format_ident!("__p{number}");
        let read = |ty: TokenStream| quote!(::ferrogrid::__private::read_param::<#ty>(__params, &mut __next));
        match &parameter.kind {
            ParameterKind::Thread { .. } => arguments[number] = Some(quote!(__thread)),
            ParameterKind::Shared { .. } => {
                let region = shared::region(number);
                arguments[number] = Some(lent(&quote!(#region)));
            }
            ParameterKind::SharedSlice { .. } => {
                let (offset, length, region) =
                    (shared::offset(number), shared::length(number), shared::region(number));
                let (start, count) = (read(quote!(usize)), read(quote!(usize)));
                reads.push(quote!(let (#offset, #length): (usize, usize) = (#start, #count);));
                arguments[number] = Some(lent(&quote!(#region)));
            }
            ParameterKind::Order { element } => {
                let (pointer, order) = (read(quote!(*const u64)), format_ident!("__ordered{number}"));
                reads.push(quote! {
                    let #local: *const u64 = #pointer;
                    let _end = ::ferrogrid::__private::device::order::EndOfBlock::<#element>::of(#local, __block);
                });
                orders.push(quote! {
                    let #order = ::ferrogrid::__private::device::BlockOrder::<#element>::from_raw(#local, &__thread);
                });
                arguments[number] = Some(lent(&quote!(#order)));
            }
            ParameterKind::Scalar | ParameterKind::Pointer { .. } => {
                let ty = &parameter.ty;
                let value = read(quote!(#ty));
                reads.push(quote!(let #local: #ty = #value;));
                // Not by move: a type that is not `Copy` is reported once, where it stands.
                arguments[number] = Some(quote!(::core::ptr::from_ref(&#local).read()));
            }
            ParameterKind::Tuple { members } => {
                let (ty, value) = (&parameter.ty, members.tuple(|_, ty| read(quote!(#ty))));
                reads.push(quote!(let #local: #ty = #value;));
                arguments[number] = Some(quote!(::core::ptr::from_ref(&#local).read()));
            }
            ParameterKind::Texture { value, rank } => {
                let ty = quote!(::ferrogrid::__private::device::Texture);
                let (start, reading) = (read(quote!(*const ())), read(quote!(u32)));
                let extents = (0..*rank).map(|_| read(quote!(u32)));
                reads.push(quote! {
                    let #local: #ty<#value, #rank> = #ty::from_raw_parts(#start, #reading, [#(#extents),*]);
                });
                arguments[number] = Some(lent(&quote!(#local)));
            }
            ParameterKind::Surface { element, rank } => {
                let ty = quote!(::ferrogrid::__private::device::Surface::<#element, #rank>);
                let start = read(quote!(*const ()));
                let extents = (0..*rank).map(|_| read(quote!(u32)));
                reads.push(quote!(let #local: (*const (), [u32; #rank]) = (#start, [#(#extents),*]);));
                arguments[number] = Some(lent(&quote!(#ty::from_raw_parts(#local.0, #local.1))));
            }
            ParameterKind::Input { element, rank } => {
                let start = read(quote!(*const #element));
                let extents = (0..*rank).map(|_| read(extent.clone()));
                reads.push(if *rank == 1 {
                    quote!(let #local: &[#element] = ::core::slice::from_raw_parts(#start, #(#extents)* as usize);)
                } else {
                    let ty = format_ident!("{}", if *rank == 2 { "Plane" } else { "Volume" });
                    let plane = quote!(::ferrogrid::__private::device::#ty);
                    quote!(let #local: #plane<#element> = #plane::from_raw_parts(#start, [#(#extents as usize),*]);)
                });
                arguments[number] = Some(lent(&quote!(#local)));
            }
            ParameterKind::Output { element, rank, division } => {
                let ty = format_ident!("{}", division.type_name());
                let start = read(quote!(*mut #element));
                let extents = (0..*rank).map(|_| read(extent.clone()));
                reads.push(
                    quote!(let #local: (*mut #element, [usize; #rank]) = (#start, [#(#extents as usize),*]);),
                );
                let claims = is_claimed(parameter).then(|| claims(number));
                let claims = claims.iter();
                let pointer = read(quote!(*const u32));
                reads.extend(claims.clone().map(|claims| quote!(let #claims: *const u32 = #pointer;)));
                let output = quote!(::ferrogrid::__private::device::#ty::from_raw_parts(#local.0, #local.1 #(, #claims)*));
                arguments[number] = Some(lent(&output));
            }
        }
    }
    let (each, inside) = match inside(kernel) {
        _ if kernel.may_wait => (quote!(for_each_waiting_thread), None),
        None => (quote!(for_each_thread), None),
        Some(inside) => (quote!(for_each_thread_inside), Some(quote!(|__ends| #inside,))),
    };
    quote! {
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(unused_unsafe, unused_variables)]
        unsafe fn #cpu<#declared>(
            __block: &::ferrogrid::__private::device::native::Block,
            __params: *const *const ::core::ffi::c_void,
        ) #where_clause {
            // SAFETY: the launch passes one address for each flattened parameter that has bytes, in this order
            // and of these types (of the others, which are `Copy`, the launch was given a value), and
            // memory as the launch function's arguments promise.
            unsafe {
                let mut __next = 0_usize;
                #(#reads)*
                let __loan = &::ferrogrid::__private::device::native::Loan::begin();
                __block.#each::<#rank>(#inside |__thread| {
                    #regions
                    #(#orders)*
                    #body::<#passed>(#(#arguments),*)
                });
            }
        }
    }
}

/// `value`, an argument of the body, lent while the block runs.
fn lent(value: &TokenStream) -> TokenStream {
    quote!(__loan.lend(#value))
}

/// Whether a block that ends at `__ends` lies inside of all that its threads may index by their own place: outputs
/// with an element for each thread, and inputs of the grid's rank. `None` for kernels that have neither.
fn inside(kernel: &Kernel) -> Option<TokenStream> {
    let conditions = kernel.parameters.iter().enumerate().flat_map(|(number, parameter)| {
        let local = format_ident!("__p{number}");
        match &parameter.kind {
            ParameterKind::Input { rank: 1, .. } if kernel.rank == 1 => {
                vec![quote!(__ends[0] <= #local.len())]
            }
            ParameterKind::Input { rank: 2, .. } if kernel.rank == 2 => {
                vec![quote!(__ends[0] <= #local.width()), quote!(__ends[1] <= #local.height())]
            }
            ParameterKind::Input { rank: 3, .. } if kernel.rank == 3 => ["width", "height", "depth"]
                .iter()
                .enumerate()
                .map(|(axis, extent)| {
                    let extent = format_ident!("{extent}");
                    quote!(__ends[#axis] <= #local.#extent())
                })
                .collect(),
            ParameterKind::Surface { rank, .. } if *rank == kernel.rank => {
                (0..*rank).map(|axis| quote!(__ends[#axis] <= #local.1[#axis] as usize)).collect()
            }
            ParameterKind::Output { rank, division: Division::Elements, .. } if *rank == kernel.rank => {
                (0..*rank).map(|axis| quote!(__ends[#axis] <= #local.1[#axis])).collect()
            }
            _ => Vec::new(),
        }
    });
    let conditions: Vec<_> = conditions.collect();
    (!conditions.is_empty()).then(|| quote!(#(#conditions)&&*))
}

/// The typed launch function.
fn launch(kernel: &Kernel) -> TokenStream {
    let name = kernel.name();
    let (visibility, rank, chosen) = (&kernel.function.vis, kernel.rank, chosen(kernel));
    let (declared, bounds) = (generic::declared(kernel), launch_bounds(kernel));
    let unsafety = &kernel.function.sig.safety;
    let attributes =
        kernel.function.attrs.iter().filter(|a| a.path().is_ident("doc") || a.path().is_ident("cfg"));
    let stream = free_name(kernel, "stream");
    let grid = free_name(kernel, "grid");
    let lifetimes = kernel.parameters.iter().enumerate().filter_map(borrow);
    let parameters = kernel.parameters.iter().enumerate().filter_map(launch_parameter);
    let prepare = kernel
        .parameters
        .iter()
        .enumerate()
        .map(|(number, parameter)| prepare(kernel, number, parameter, &stream));
    let for_blocks: Vec<TokenStream> =
        kernel.parameters.iter().enumerate().filter_map(|it| for_blocks(kernel, it, &stream)).collect();
    let same_shapes = kernel.shapes.groups.iter().map(|group| same_shape(kernel, group));
    let finish = kernel.parameters.iter().enumerate().filter_map(|it| finish(it, &stream));
    let cooperative = kernel.bounds.cooperative;
    let slices = kernel.parameters.iter().any(|it| matches!(it.kind, ParameterKind::SharedSlice { .. }));
    let layout =
        slices.then(|| quote!(let mut __shared = ::ferrogrid::__private::SharedLayout::of(#chosen);));
    let bytes = if slices {
        quote!(__shared.bytes())
    } else {
        quote!(::ferrogrid::__private::Kernel::shared_size_bytes(#chosen))
    };
    let (params, passed) = params(kernel);
    let accesses = kernel.parameters.iter().enumerate().filter_map(access);
    let summary = format!(
        "Launches the kernel `{}` on `{stream}`, one thread for each place of `{grid}`, and returns without waiting for it (unless slices of the host are written: `Out`, `InOut`).",
        kernel.bare_name()
    );
    let safety = kernel.is_unsafe().then(|| {
        quote! {
            #[doc = "\n# Safety\nWhat the kernel itself asks for. Memory behind raw pointers must stay valid, and unused by others, until the stream has run the kernel: no order is kept for it."]
        }
    });
    quote! {
        #(#attributes)*
        #[doc = "\n"]
        #[doc = #summary]
        #[doc = "\n# Errors\nIf the grid exceeds the device's limits, a slice has more elements than the kernel takes (see `wide`), slices have not the same shape where the kernel needs it (`same_shape`), an output has no row or tile for each block, a buffer belongs to another device, or the device code cannot be loaded. What goes wrong while the kernel runs is reported by the next synchronising call."]
        #safety
        // A bound of the user's and that of the instance are about one parameter.
        #[allow(clippy::too_many_arguments, clippy::multiple_bound_locations)]
        #[track_caller]
        #visibility #unsafety fn #name<#(#lifetimes,)* #declared>(
            #stream: &::ferrogrid::__private::Stream,
            #grid: impl ::ferrogrid::__private::IntoGrid<#rank>,
            #(#parameters,)*
        ) -> ::ferrogrid::__private::Result<()>
        #bounds
        {
            #layout
            #(#prepare)*
            #(#same_shapes)*
            let __grid = ::ferrogrid::__private::IntoGrid::into_grid(#grid);
            #(#for_blocks)*
            #params
            // SAFETY: one address for each flattened parameter that has bytes, in the order and of the types that
            // the descriptor names; they live until the call returns.
            unsafe {
                ::ferrogrid::__private::launch_with(
                    ::ferrogrid::__private::Resources { shared_bytes: #bytes, cooperative: #cooperative },
                    #chosen,
                    #stream,
                    __grid,
                    #passed,
                    &[#(#accesses),*],
                )?;
            }
            #(#finish)*
            ::core::result::Result::Ok(())
        }
    }
}

/// A statement that collects the addresses of the parameters, and what is passed of it.
fn params(kernel: &Kernel) -> (TokenStream, TokenStream) {
    let addresses = kernel.entry_parameters().flat_map(addresses);
    let all = quote!([#(#addresses),*]);
    if all_have_bytes(kernel) {
        return (quote!(let __params = #all;), quote!(&__params));
    }
    let shapes = all_shapes(kernel);
    (
        quote!(let __params = ::ferrogrid::__private::sized_addresses(#all, #shapes);),
        quote!(&__params.0[..__params.1]),
    )
}

/// `wanted`, or `wanted` with a suffix if a parameter of the kernel has that name.
fn free_name(kernel: &Kernel, wanted: &str) -> Ident {
    let taken = |name: &str| kernel.parameters.iter().any(|parameter| parameter.name == name);
    let mut name = wanted.to_owned();
    while taken(&name) {
        name.push('_');
    }
    Ident::new(&name, Span::call_site())
}

/// The lifetime of an argument that is borrowed.
fn borrow((number, parameter): (usize, &Parameter)) -> Option<Lifetime> {
    let is_borrowed = uses_memory(parameter);
    is_borrowed.then(|| Lifetime::new(&format!("'p{number}"), Span::call_site()))
}

/// Whether it stands for memory of the device that the launch orders.
fn uses_memory(parameter: &Parameter) -> bool {
    is_slice(parameter)
        || matches!(parameter.kind, ParameterKind::Texture { .. } | ParameterKind::Surface { .. })
}

/// Whether it stands for elements in memory, of the device or of the host.
fn is_slice(parameter: &Parameter) -> bool {
    matches!(parameter.kind, ParameterKind::Input { .. } | ParameterKind::Output { .. })
}

fn launch_parameter((number, parameter): (usize, &Parameter)) -> Option<TokenStream> {
    let name = &parameter.name;
    let lifetime = borrow((number, parameter));
    let ty = match &parameter.kind {
        ParameterKind::Thread { .. } | ParameterKind::Shared { .. } | ParameterKind::Order { .. } => {
            return None;
        }
        ParameterKind::SharedSlice { .. } => quote!(usize),
        ParameterKind::Scalar | ParameterKind::Tuple { .. } => {
            let ty = &parameter.ty;
            quote!(#ty)
        }
        ParameterKind::Input { element, rank } => {
            quote!(impl ::ferrogrid::__private::LaunchInput<#lifetime, #element, #rank>)
        }
        ParameterKind::Output { element, rank, .. } => {
            quote!(impl ::ferrogrid::__private::LaunchOutput<#lifetime, #element, #rank>)
        }
        ParameterKind::Texture { value, rank } => {
            quote!(::ferrogrid::__private::TextureView<#lifetime, #value, #rank>)
        }
        ParameterKind::Surface { element, rank } => {
            quote!(::ferrogrid::__private::SurfaceViewMut<#lifetime, #element, #rank>)
        }
        ParameterKind::Pointer { element, mutable: false } => {
            quote!(::ferrogrid::__private::DevicePtr<#element>)
        }
        ParameterKind::Pointer { element, mutable: true } => {
            quote!(::ferrogrid::__private::DevicePtrMut<#element>)
        }
    };
    Some(quote!(#name: #ty))
}

fn local(number: usize) -> Ident {
    format_ident!("__p{number}")
}

/// A member of a tuple.
fn member_local(number: usize, member: usize) -> Ident {
    format_ident!("__p{number}_{member}")
}

/// An argument in the memory of the device, from before the launch until after it.
fn staged(number: usize) -> Ident {
    format_ident!("__staged{number}")
}

/// Whether its elements belong to the threads that claim them.
fn is_claimed(parameter: &Parameter) -> bool {
    matches!(parameter.kind, ParameterKind::Output { division: Division::Claimed, .. })
}

/// The claims of a `ScatterSlice`.
fn claims(number: usize) -> Ident {
    format_ident!("__claims{number}")
}

/// Turns an argument into what the launch takes the addresses of.
fn prepare(kernel: &Kernel, number: usize, parameter: &Parameter, stream: &Ident) -> TokenStream {
    let (local, name) = (local(number), &parameter.name);
    let checked = |view: TokenStream| {
        if kernel.bounds.wide {
            return quote!(let #local = #view;);
        }
        let (chosen, argument) = (chosen(kernel), parameter.name.to_string());
        quote!(let #local = ::ferrogrid::__private::narrow(#view, #chosen, #argument)?;)
    };
    match &parameter.kind {
        // That of the blocks' order is made for the grid.
        ParameterKind::Thread { .. } | ParameterKind::Shared { .. } | ParameterKind::Order { .. } => {
            TokenStream::new()
        }
        ParameterKind::SharedSlice { element } => {
            quote!(let #local: [usize; 2] = __shared.slice::<#element>(#name);)
        }
        ParameterKind::Scalar | ParameterKind::Pointer { .. } => quote!(let #local = #name;),
        ParameterKind::Texture { .. } | ParameterKind::Surface { .. } => {
            quote!(let #local = #name.on(#stream)?;)
        }
        ParameterKind::Tuple { members } => {
            let places = members.tuple(|member, _| member_local(number, member).into_token_stream());
            quote!(let #places = #name;)
        }
        ParameterKind::Input { .. } => {
            let staged = staged(number);
            let local = checked(quote!(::ferrogrid::__private::StagedInput::input(&#staged)));
            quote! {
                let #staged = ::ferrogrid::__private::LaunchInput::stage(#name, #stream)?;
                #local
            }
        }
        ParameterKind::Output { .. } => {
            let (staged, claims) = (staged(number), claims(number));
            let claims = is_claimed(parameter)
                .then(|| quote!(let #claims = ::ferrogrid::__private::ClaimBits::new(&#local, #stream)?;));
            let view = checked(quote!(::ferrogrid::__private::StagedOutput::output(&mut #staged)));
            quote! {
                let mut #staged = ::ferrogrid::__private::LaunchOutput::stage(#name, #stream)?;
                #view
                #claims
            }
        }
    }
}

/// Refuses a grid with blocks that have no row or tile of an output that belongs to blocks; makes what is there for each block.
fn for_blocks(
    kernel: &Kernel,
    (number, parameter): (usize, &Parameter),
    stream: &Ident,
) -> Option<TokenStream> {
    if let ParameterKind::Order { element } = &parameter.kind {
        let (chosen, local) = (chosen(kernel), local(number));
        return Some(
            quote!(let #local = ::ferrogrid::__private::OrderState::new::<#element, 1>(#chosen, __grid, #stream)?;),
        );
    }
    let ParameterKind::Output { division, .. } = &parameter.kind else { return None };
    let (chosen, local, name) = (chosen(kernel), local(number), parameter.name.to_string());
    let ty = &parameter.ty;
    match division {
        Division::Elements | Division::Warps | Division::Claimed => None,
        Division::Rows => {
            Some(quote!(::ferrogrid::__private::rows_for_blocks(#chosen, #stream, __grid, #name, &#local)?;))
        }
        Division::Tiles | Division::Chunks => Some(
            quote!(::ferrogrid::__private::tiles_for_blocks(#chosen, #stream, __grid, #name, &#local, <#ty>::TILE)?;),
        ),
    }
}

/// Refuses arguments that have not the shape of the first of their group.
fn same_shape(kernel: &Kernel, (first, others): &(usize, Vec<usize>)) -> TokenStream {
    let named = |number: usize| {
        let (local, name) = (local(number), kernel.parameters[number].name.to_string());
        quote!((#name, &#local))
    };
    let (chosen, first) = (chosen(kernel), named(*first));
    let others = others.iter().map(|other| named(*other));
    quote!(#(::ferrogrid::__private::same_shape(#chosen, #first, #others)?;)*)
}

fn addresses((number, parameter): (usize, &Parameter)) -> Vec<TokenStream> {
    let local = local(number);
    match &parameter.kind {
        ParameterKind::Thread { .. } | ParameterKind::Shared { .. } => Vec::new(),
        ParameterKind::Order { .. } => vec![quote!(#local.param())],
        ParameterKind::SharedSlice { .. } => (0..2_usize)
            .map(|part| quote!(::core::ptr::from_ref(&#local[#part]).cast::<::core::ffi::c_void>()))
            .collect(),
        ParameterKind::Scalar | ParameterKind::Pointer { .. } => {
            vec![quote!(::core::ptr::from_ref(&#local).cast::<::core::ffi::c_void>())]
        }
        ParameterKind::Tuple { members } => {
            let places = (0..members.values().len()).map(|member| member_local(number, member));
            places.map(|local| quote!(::core::ptr::from_ref(&#local).cast::<::core::ffi::c_void>())).collect()
        }
        other => {
            let claims = is_claimed(parameter).then(|| claims(number)).map(|claims| quote!(#claims.param()));
            let parts = other.flattened() - usize::from(claims.is_some());
            (0..parts).map(|part| quote!(#local.params()[#part])).chain(claims).collect()
        }
    }
}

fn access((number, parameter): (usize, &Parameter)) -> Option<TokenStream> {
    let (local, claims) = (local(number), claims(number));
    let claims = is_claimed(parameter).then(|| quote!(, #claims.access()));
    let has_memory = uses_memory(parameter) || matches!(parameter.kind, ParameterKind::Order { .. });
    has_memory.then(|| quote!(#local.access() #claims))
}

/// Lets slices of the host see what the kernel did to them.
fn finish((number, parameter): (usize, &Parameter), stream: &Ident) -> Option<TokenStream> {
    let staged = staged(number);
    is_slice(parameter).then(|| quote!(::ferrogrid::__private::Staged::finish(#staged, #stream)?;))
}

/// What is known of the kernel, in a module of its name (modules and functions do not clash).
fn companion(kernel: &Kernel) -> TokenStream {
    let (name, visibility) = (kernel.name(), &kernel.function.vis);
    let cfgs: Vec<&Attribute> = kernel.cfgs().collect();
    let summary = format!("What is known of the kernel `{}`.", kernel.bare_name());
    let declared = generic::declared(kernel);
    let (trait_name, grid_name) = (instance_trait(kernel), grid::name(kernel));
    let (chosen, bounds, reexport) = if kernel.is_generic() {
        let path = quote!(super::#trait_name);
        let (instance, holds) = (instance(kernel, &quote!(Instance)), holds(kernel, &quote!(Instance)));
        (
            instance,
            quote!(where #holds),
            quote!(#[doc(inline)] #[allow(unused_imports)] pub use #path as Instance;),
        )
    } else {
        let static_name = static_name(kernel, &kernel.instances[0]);
        (quote!(&super::#static_name), quote!(), quote!())
    };
    let parameters = generic::unbounded(kernel);
    let grid = grid::function(kernel, &declared);
    let block = block::within(kernel, &quote!(super::)).map(|block| {
        quote! {
            /// The shape of its blocks, x first, 1 above the rank of the kernel.
            #[allow(dead_code)]
            pub const BLOCK: [u32; 3] = #block;
        }
    });
    quote! {
        #grid
        #(#cfgs)*
        #[doc = #summary]
        #visibility mod #name {
            #reexport
            #block
            #[doc(inline)]
            #[allow(unused_imports)]
            pub use super::#grid_name as grid;

            /// The kernel: its name, its PTX.
            #[allow(dead_code)]
            pub fn kernel<#parameters>() -> &'static ::ferrogrid::__private::Kernel #bounds {
                #chosen
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside_of(parameters: TokenStream) -> Option<String> {
        let item = syn::parse_quote!(mod m { #[kernel] pub fn k(#parameters) {} });
        let module = Module::parse(item).unwrap();
        Some(inside(&module.kernels[0])?.to_string().replace(' ', ""))
    }

    #[test]
    fn a_block_is_inside_where_it_ends_within_each_extent() {
        let tall = inside_of(quote!(t: Thread<2>, x: Plane<f32>)).unwrap();
        assert_eq!(tall, "__ends[0]<=__p1.width()&&__ends[1]<=__p1.height()");
        let output = inside_of(quote!(t: Thread<2>, x: &[f32], y: DisjointSlice<f32, 2>)).unwrap();
        assert_eq!(output, "__ends[0usize]<=__p2.1[0usize]&&__ends[1usize]<=__p2.1[1usize]");
        assert_eq!(inside_of(quote!(t: Thread<1>, x: &[f32])).unwrap(), "__ends[0]<=__p1.len()");
        assert_eq!(inside_of(quote!(t: Thread<1>, x: Plane<f32>, s: f32)), None);
    }
}
