//! The host half: for each kernel a typed launch function, a static that describes the kernel, the function
//! by which the CPU device runs a block of it, and a companion module. The two halves agree on entry names
//! and flattened parameters.
//!
//! | file | holds |
//! |---|---|
//! | `launch.rs` | the launch function |
//! | `cpu_entry.rs` | the function that runs a block on the CPU device |
//! | `native_entry.rs` | the function that runs the native body there, in place of all blocks |
//! | `companion.rs` | the companion module |
//! | `comparison.rs` | the functions of a comparison, which launch its kernels |
//! | `matmul.rs` | the function of a product, which launches one of its kernels |
//! | `reduction.rs` | the functions of a reduction, which launch its kernels |
//! | `template.rs` | the parameters of such functions |

mod companion;
mod comparison;
mod cpu_entry;
mod launch;
mod matmul;
mod native_entry;
mod reduction;
mod template;

use ferrogrid_syntax::{Instance, Kernel, Module, Parameter, ParameterKind};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Ident, Type};

use super::bodies;
use super::code::Code;
use super::instances::{instances, static_name};
use super::{abort, block, constants, generic, layout, libraries, shared};

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
    let reductions = module.reductions.iter().map(|it| reduction::functions(module, it));
    let comparisons = module.comparisons.iter().map(comparison::module);
    let matmuls = module.matmuls.iter().map(matmul::function);
    let libraries = libraries::of(module, code);
    quote! {
        #embedded
        #cfg
        // `Float` has methods with the names of unstable methods of std (`x.erf()`).
        #[allow(unstable_name_collisions)]
        // Parameters are written without lifetimes, `t: Thread<1>`; the expansion chooses them.
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
            #(#reductions)*
            #(#comparisons)*
            #(#matmuls)*
        }
    }
}

/// The images of the target, if they are embedded beside this module; other modules refer to them by path.
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
            // A static, because each reference to a constant would be a copy.
            pub static IMAGES: [::ferrogrid::__private::EmbeddedImage; #count] = [#(#images),*];
        }
    }
}

/// The compiled module: its image, and its entry points.
fn image(module: &Module, code: &Code) -> TokenStream {
    let image = match code {
        Code::Refused(_) => quote!(unbuilt("the device compiler rejected it")),
        Code::Unbuilt(reason) => quote!(unbuilt(#reason)),
        Code::HostOnly | Code::Unknown => quote!(host_only()),
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
    let (cpu_entry, native_entry) = (cpu_entry::function(kernel), native_entry::function(kernel));
    let launch = launch::function(kernel);
    let companion = companion::module(kernel);
    let block = block::constant(kernel, &quote!(::ferrogrid::__private::device));
    quote!(#block #(#descriptors)* #instances #cpu_entry #native_entry #launch #companion)
}

fn cpu_entry_name(kernel: &Kernel) -> Ident {
    format_ident!("__ferrogrid_cpu_{}", kernel.bare_name())
}

/// The static that describes an instance, and the checks at compile time.
fn descriptor(module: &Module, kernel: &Kernel, instance: &Instance, code: &Code) -> TokenStream {
    let (name, entry) = (kernel.path(instance), kernel.entry(instance, module.fingerprint));
    let (static_name, cpu, rank) = (static_name(kernel, instance), cpu_entry_name(kernel), kernel.rank);
    let (aliases, arguments) = (generic::aliases(kernel, instance, Ident::clone), generic::passed(kernel));
    let block = optional(block::of(kernel));
    let max_threads = optional(kernel.bounds.max_threads.map(|threads| quote!(#threads)));
    let cluster = optional(kernel.bounds.cluster.map(|[x, y, z]| quote!([#x, #y, #z])));
    let (cluster_at_launch, dependent_launch) =
        (kernel.bounds.cluster_at_launch, kernel.bounds.dependent_launch);
    let (in_order, constants) = (kernel.bounds.in_order, constants::of_kernel(module, kernel));
    let uses_shared_memory = kernel.parameters.iter().any(|parameter| parameter.kind.is_shared());
    let shared_bytes = shared::bytes(kernel, &quote!(::ferrogrid::__private::device));
    let cfgs: Vec<&Attribute> = kernel.cfgs_of(instance).collect();
    let shapes = shapes(kernel);
    let travels = kernel.parameters.iter().map(travels);
    let with_native = kernel.native.is_some().then(|| {
        let native = native_entry::name(kernel);
        quote!(.with_native(#native::<#arguments>))
    });
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
            #with_native
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

/// Whether the text shows that no value has size zero.
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
            let claims = launch::is_claimed(parameter).then(|| quote!((8, 8)));
            let map = launch::is_mapped(parameter)
                .then(|| size(&syn::parse_quote!(::ferrogrid::__private::device::Encoded)));
            let last: Vec<_> = claims.into_iter().chain(map).collect();
            let extents = std::iter::repeat_n(extent, parameter.kind.flattened() - 1 - last.len());
            std::iter::once(quote!((8, 8))).chain(extents).chain(last).collect()
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

/// Assertions, with the spans of the types, that they may be passed to a device.
fn travels(parameter: &Parameter) -> TokenStream {
    let (types, assertion) = match &parameter.kind {
        // Their own bounds restrict what shared memory may hold.
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
        ParameterKind::Order { element } => (vec![element], quote!(order::assert_published)),
    };
    let assertions = types.into_iter().map(|ty| {
        quote_spanned! {ty.span()=>
            const _: () = ::ferrogrid::__private::device::#assertion::<#ty>();
        }
    });
    assertions.collect()
}
