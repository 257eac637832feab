//! One `#[kernel]` function: its signature, checked as far as its text allows.
//!
//! | file | holds |
//! |---|---|
//! | `parameter.rs`, `members.rs` | the parameters: how each reaches the device; the members of tuples |
//! | `options.rs` | the attribute `#[kernel(...)]`, whose options the next four read |
//! | `bounds.rs` | launch bounds: `block`, `max_threads`, `cluster` and the like |
//! | `arithmetic.rs` | `fast_math`, `ftz` and the like |
//! | `same_shape.rs` | `same_shape(x, y)` |
//! | `instance.rs` | the instances of a generic kernel |
//! | `waiting.rs` | whether a thread may wait for others |

mod arithmetic;
mod bounds;
mod instance;
mod members;
mod options;
mod parameter;
mod same_shape;
mod waiting;

use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{
    Attribute, Error, Expr, FnArg, Ident, ItemFn, Lifetime, Path, PathArguments, Result, ReturnType, Safety,
    Signature, Type, Visibility, parse_quote,
};

use crate::module::Fingerprint;
use crate::template::Elements;
use options::KernelOptions;
use waiting::may_wait;

pub use arithmetic::Arithmetic;
pub use bounds::LaunchBounds;
pub use instance::{Argument, Instance};
pub use members::Members;
pub(crate) use parameter::kind_of;
pub use parameter::{Division, Parameter, ParameterKind};
pub use same_shape::Shapes;

/// A kernel as written, with its parameters read.
pub struct Kernel {
    /// The function, without its `#[kernel]` attribute; its regions of shared memory have distinct types.
    pub function: ItemFn,
    /// The parameters in order.
    pub parameters: Vec<Parameter>,
    /// The rank of the grid: that of the `Thread` parameter.
    pub rank: usize,
    /// Its launch bounds.
    pub bounds: LaunchBounds,
    /// The shape of a block, x first, 1 above the rank, if its attribute makes it of constants.
    pub block: Option<[Expr; 3]>,
    /// Its choice of arithmetic.
    pub arithmetic: Arithmetic,
    /// The groups of slices with the same shape.
    pub shapes: Shapes,
    /// What the CPU device calls in place of the kernel.
    pub native: Option<Path>,
    /// The compiled instances: every listed combination of generic arguments, or a single instance without arguments.
    pub instances: Vec<Instance>,
    /// Whether a thread may wait for others, judged by the text.
    pub may_wait: bool,
    /// If it is that of an `#[elementwise]` or `#[scan]` function, the shape of its grid.
    pub elements: Option<Elements>,
}

impl Kernel {
    /// Takes `function` apart if it carries `#[kernel]`.
    ///
    /// # Errors
    /// For every signature that cannot be a kernel, with the span of the part at fault.
    pub(crate) fn parse(function: &ItemFn) -> Result<Option<Self>> {
        let Some(position) = function.attrs.iter().position(is_kernel_attribute) else {
            return Ok(None);
        };
        let mut function = function.clone();
        let attribute = function.attrs.remove(position);
        check_signature(&function)?;
        let is_unsafe = matches!(function.sig.safety, Safety::Unsafe(_));
        let mut parameters = Vec::new();
        for argument in &function.sig.inputs {
            parameters.push(Parameter::parse(argument, is_unsafe)?);
        }
        if let Some(lifetime) = named_lifetime(&function.sig) {
            return Err(Error::new(
                lifetime.span(),
                format!("a kernel's parameters are lent for one launch: leave `{lifetime}` out"),
            ));
        }
        let rank = rank_of(&function, &parameters)?;
        let KernelOptions { mut bounds, block, arithmetic, instances, same_shape, native } =
            KernelOptions::parse(&attribute, rank, &function.sig.generics)?;
        bounds.in_order = has_order(&parameters, rank, &bounds)?;
        if bounds.dependent_launch {
            refuse_textures(&parameters)?;
        }
        if native.is_some() {
            check_native(&parameters)?;
        }
        let shapes = same_shape.resolve(&parameters)?;
        let may_wait = may_wait(&function, &parameters);
        number_regions(&mut function, &parameters);
        Ok(Some(Kernel {
            function,
            parameters,
            rank,
            bounds,
            block,
            arithmetic,
            shapes,
            native,
            instances,
            may_wait,
            elements: None,
        }))
    }

    /// The same as the kernel of a template, if there are `elements`.
    pub(crate) fn on_elements(mut self, elements: Option<Elements>) -> Self {
        self.may_wait &= elements.as_ref().is_none_or(|it| it.waits);
        self.elements = elements;
        self
    }

    /// The kernel's name.
    pub fn name(&self) -> &Ident {
        &self.function.sig.ident
    }

    /// Its name without `r#`.
    pub fn bare_name(&self) -> String {
        self.name().to_string().trim_start_matches("r#").to_owned()
    }

    /// Its name with the arguments of an instance: `saxpy`, `fill::<f32, 8>`.
    pub fn path(&self, instance: &Instance) -> String {
        if instance.arguments.is_empty() {
            return self.bare_name();
        }
        let values: Vec<String> = instance.arguments.iter().map(Argument::value).collect();
        format!("{}::<{}>", self.bare_name(), values.join(", "))
    }

    /// The function that the entry points call, under the name `name`. It is `#[inline]`, or what its author wants: LLVM puts
    /// long kernels in line only if that is `always`.
    pub fn body(&self, name: &Ident) -> ItemFn {
        let mut function = self.function.clone();
        function.sig.ident = name.clone();
        function.vis = Visibility::Inherited;
        function.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
        if !function.attrs.iter().any(|attribute| attribute.path().is_ident("inline")) {
            function.attrs.push(parse_quote!(#[inline]));
        }
        function
    }

    /// The name of the entry point of one of its instances in the PTX.
    pub fn entry(&self, instance: &Instance, module: Fingerprint) -> String {
        format!("{}{}_{}", self.bare_name(), instance.suffix(), module.short())
    }

    /// Whether it has type or const parameters.
    pub fn is_generic(&self) -> bool {
        !self.function.sig.generics.params.is_empty()
    }

    /// The parameters in the order of the entry point, each with its place in the signature. The parameter
    /// for a `BlockOrder` comes first, where the build step expects it.
    pub fn entry_parameters(&self) -> impl Iterator<Item = (usize, &Parameter)> {
        let all = || self.parameters.iter().enumerate();
        let is_order = |it: &Parameter| matches!(it.kind, ParameterKind::Order { .. });
        all().filter(move |(_, it)| is_order(it)).chain(all().filter(move |(_, it)| !is_order(it)))
    }

    /// The minimum and maximum number of parameters of the entry point: zero-sized values are left out, and
    /// only the compiler knows these types.
    pub fn flattened(&self) -> (usize, usize) {
        let most = self.parameters.iter().map(|parameter| parameter.kind.flattened()).sum();
        let values: usize = self.parameters.iter().map(|parameter| parameter.values().len()).sum();
        (most - values, most)
    }

    /// Whether it is an `unsafe fn`, and so its launch.
    pub fn is_unsafe(&self) -> bool {
        matches!(self.function.sig.safety, Safety::Unsafe(_))
    }

    /// The `cfg` attributes on it, which apply to its whole expansion.
    pub fn cfgs(&self) -> impl Iterator<Item = &Attribute> {
        self.function.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"))
    }

    /// Those, and the ones of an instance, which apply to what belongs to it alone.
    pub fn cfgs_of<'a>(&'a self, instance: &'a Instance) -> impl Iterator<Item = &'a Attribute> {
        self.cfgs().chain(&instance.cfgs)
    }
}

/// Whether `attribute` is `#[kernel]` or a path that ends in it.
pub fn is_kernel_attribute(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "kernel")
}

fn check_signature(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if let Some(token) = &signature.asyncness {
        return Err(Error::new(
            token.span(),
            "a kernel cannot be `async`: a launch is already asynchronous in its stream",
        ));
    }
    if let Some(token) = &signature.constness {
        return Err(Error::new(token.span(), "a kernel cannot be `const`: it runs on a device"));
    }
    if let Some(abi) = &signature.abi {
        return Err(Error::new(
            abi.span(),
            "a kernel cannot choose its ABI: the macro gives its entry point `extern \"ptx-kernel\"`",
        ));
    }
    if let Some(variadic) = &signature.variadic {
        return Err(Error::new(variadic.span(), "a kernel cannot be variadic"));
    }
    if let Some(lifetime) = signature.generics.lifetimes().next() {
        return Err(Error::new(lifetime.span(), "a kernel needs no lifetimes: leave them out"));
    }
    if let ReturnType::Type(_, ty) = &signature.output {
        let unit = matches!(&**ty, syn::Type::Tuple(tuple) if tuple.elems.is_empty());
        if !unit {
            return Err(Error::new(
                ty.span(),
                "a kernel returns nothing: thousands of threads would each return a value; write results through a `DisjointSlice<T>`",
            ));
        }
    }
    if let Visibility::Restricted(restricted) = &function.vis
        && restricted.in_token.is_some()
    {
        return Err(Error::new(
            restricted.span(),
            "a kernel's visibility is `pub`, `pub(crate)`, `pub(super)` or private",
        ));
    }
    Ok(())
}

/// The first named lifetime among the parameters, such as `'static`.
fn named_lifetime(signature: &Signature) -> Option<Lifetime> {
    struct Named(Option<Lifetime>);
    impl<'ast> Visit<'ast> for Named {
        fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
            if lifetime.ident != "_" && self.0.is_none() {
                self.0 = Some(lifetime.clone());
            }
        }
    }
    let mut named = Named(None);
    signature.inputs.iter().for_each(|input| named.visit_fn_arg(input));
    named.0
}

/// Gives each region of shared memory a distinct type, `Shared<[T; N], 0>`, `Shared<[T; N], 1>`, so that they
/// cannot be exchanged.
fn number_regions(function: &mut ItemFn, parameters: &[Parameter]) {
    let regions = function.sig.inputs.iter_mut().zip(parameters).filter(|(_, it)| it.kind.is_shared());
    for (number, (argument, _)) in regions.enumerate() {
        let FnArg::Typed(typed) = argument else { continue };
        let Type::Path(path) = &mut *typed.ty else { continue };
        let last = path.path.segments.last_mut().map(|segment| &mut segment.arguments);
        if let Some(PathArguments::AngleBracketed(arguments)) = last {
            arguments.args.push(parse_quote!(#number));
        }
    }
}

/// Rejects textures in dependent launches: ptxas moves `tex` ahead of `griddepcontrol.wait`, and so ahead of
/// the end of the previous work.
fn refuse_textures(parameters: &[Parameter]) -> Result<()> {
    match parameters.iter().find(|it| matches!(it.kind, ParameterKind::Texture { .. })) {
        None => Ok(()),
        Some(texture) => Err(Error::new(
            texture.ty.span(),
            "a `dependent_launch` kernel cannot read a texture: the driver's compiler moves the read ahead of the wait for previous work; leave out `dependent_launch`, or take a `Plane`",
        )),
    }
}

/// Refuses parameters that a native body has no form for.
fn check_native(parameters: &[Parameter]) -> Result<()> {
    let has_form = |it: &&Parameter| match &it.kind {
        ParameterKind::Thread { .. }
        | ParameterKind::Scalar
        | ParameterKind::Tuple { .. }
        | ParameterKind::Order { .. }
        | ParameterKind::Shared { .. } => true,
        ParameterKind::Input { rank, .. } => *rank == 1,
        ParameterKind::Output { rank, division, .. } => *rank == 1 && *division != Division::Claimed,
        _ => false,
    };
    let other = parameters.iter().find(|it| !has_form(it));
    other.map_or(Ok(()), |other| {
        let message =
            "a native body takes values and slices of rank 1: leave out `native`, or this parameter";
        Err(Error::new(other.ty.span(), message))
    })
}

fn rank_of(function: &ItemFn, parameters: &[Parameter]) -> Result<usize> {
    let mut found = None;
    for parameter in parameters {
        let ParameterKind::Thread { rank } = parameter.kind else { continue };
        if found.is_some() {
            return Err(Error::new(parameter.ty.span(), "a kernel has one `Thread` parameter"));
        }
        found = Some(rank);
    }
    found.ok_or_else(|| {
        Error::new(
            function.sig.paren_token.span.join(),
            "a kernel needs a `Thread<R>` parameter (R = 1, 2 or 3), which gives it the rank of its grid: `t: Thread<1>`",
        )
    })
}

/// Whether blocks are numbered in the order in which they start, so that they may wait for earlier ones. Other waits between
/// blocks are refused, since two crossing waits would deadlock.
fn has_order(parameters: &[Parameter], rank: usize, bounds: &LaunchBounds) -> Result<bool> {
    let mut orders = parameters.iter().filter(|it| matches!(it.kind, ParameterKind::Order { .. }));
    let Some(order) = orders.next() else { return Ok(false) };
    let refused = |at: &Parameter, message: &str| Err(Error::new(at.ty.span(), message));
    if let Some(second) = orders.next() {
        let message =
            "a kernel has one `BlockOrder`: blocks that wait in two orders could deadlock; publish a tuple";
        return refused(second, message);
    }
    if rank != 1 {
        return refused(order, "blocks have an order in a grid of rank 1: `t: Thread<1>`");
    }
    if bounds.cooperative || bounds.has_clusters() {
        let message = "a kernel with a `BlockOrder` cannot wait for the grid or a cluster, because its blocks could deadlock: \
                       leave out `BlockOrder`, or `cooperative` and `cluster`";
        return refused(order, message);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use quote::{format_ident, quote};

    use super::*;

    fn kernel(text: &str) -> Kernel {
        Kernel::parse(&syn::parse_str(text).unwrap()).unwrap().unwrap()
    }

    #[test]
    fn an_unsafe_kernel_is_known() {
        assert!(kernel("#[kernel] pub unsafe fn k(t: Thread<1>, x: *mut f32) {}").is_unsafe());
        assert!(!kernel("#[kernel] pub fn k(t: Thread<1>, x: &[f32]) {}").is_unsafe());
    }

    #[test]
    fn each_parameter_is_as_many_of_the_entry_point() {
        for (parameter, count) in [
            ("x: &[f32]", 2),
            ("x: Plane<f32>", 3),
            ("x: DisjointSlice<f32>", 2),
            ("x: DisjointSlice<f32, 2>", 3),
            ("x: DisjointSlice<f32, 3>", 4),
            ("x: ScatterSlice<f32>", 3),
            ("x: SharedSlice<f32>", 2),
            ("x: Shared<[f32; 4]>", 0),
        ] {
            let kernel = kernel(&format!("#[kernel] pub fn k(t: Thread<1>, {parameter}) {{}}"));
            assert_eq!(kernel.flattened(), (count, count), "{parameter}");
        }
    }

    #[test]
    fn a_block_order_is_the_first_parameter_and_the_only_one() {
        let kernel = kernel("#[kernel] pub fn k(t: Thread<1>, x: &[u32], order: BlockOrder<u32>, a: u32) {}");
        assert!(kernel.bounds.in_order && kernel.may_wait);
        assert_eq!(kernel.flattened(), (3, 4));
        assert_eq!(kernel.entry_parameters().map(|(at, _)| at).collect::<Vec<_>>(), [2, 0, 1, 3]);
        let refused = |text: &str| Kernel::parse(&syn::parse_str(text).unwrap()).err().unwrap().to_string();
        let message = refused("#[kernel] fn k(t: Thread<1>, a: BlockOrder<u32>, b: BlockOrder<u32>) {}");
        assert!(message.starts_with("a kernel has one `BlockOrder`"), "{message}");
        assert!(refused("#[kernel] fn k(t: Thread<2>, a: BlockOrder<u32>) {}").contains("rank 1"));
        for option in ["cooperative", "cluster", "cluster = 2"] {
            let message =
                refused(&format!("#[kernel({option})] fn k(t: Thread<1>, a: BlockOrder<u32>) {{}}"));
            assert!(message.contains("deadlock"), "{option}: {message}");
        }
        assert!(refused("#[kernel] fn k(t: Thread<1>, a: BlockOrder) {}").contains("`BlockOrder<u32>`"));
    }

    #[test]
    fn a_native_body_takes_values_and_slices() {
        let native = |parameter: &str| {
            let text = format!("#[kernel(native = n)] pub fn k(t: Thread<1>, {parameter}) {{}}");
            Kernel::parse(&syn::parse_str(&text).unwrap()).map(|kernel| kernel.unwrap().native.is_some())
        };
        for taken in [
            "x: &[f32]",
            "x: f32",
            "x: (f32, u8)",
            "x: DisjointSlice<f32>",
            "x: DisjointWarps<f32, 32, 32>",
            "x: BlockOrder<u32>",
            "x: Shared<[f32; 4]>",
        ] {
            assert!(native(taken).unwrap(), "{taken}");
        }
        for other in ["x: Plane<f32>", "x: DisjointRows<f32>", "x: ScatterSlice<f32>", "x: SharedSlice<f32>"]
        {
            let message = native(other).unwrap_err().to_string();
            assert!(message.starts_with("a native body takes values and slices of rank 1"), "{other}");
        }
    }

    #[test]
    fn nested_tuples_are_passed_as_their_members() {
        let kernel = kernel("#[kernel] pub fn k(t: Thread<1>, a: (f32, (u8, u16), u64)) {}");
        let ParameterKind::Tuple { members } = &kernel.parameters[1].kind else { panic!("it is a tuple") };
        let named = members.tuple(|number, _| {
            let name = format_ident!("a{number}");
            quote!(#name)
        });
        assert_eq!(named.to_string(), quote!((a0, (a1, a2,), a3,)).to_string());
        assert_eq!((members.values().len(), kernel.flattened()), (4, (0, 4)));
    }
}
