//! The options in the parentheses of `#[kernel(...)]`: launch bounds, arithmetic, equal shapes, and the
//! instances of generic parameters.

use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, Generics, Ident, Meta, Path, Result, Token};

use super::arithmetic::{Arithmetic, ArithmeticOptions};
use super::bounds::LaunchBounds;
use super::instance::{Instance, Lists};
use super::same_shape::SameShape;

/// The options of a kernel.
pub(crate) struct KernelOptions {
    pub(crate) bounds: LaunchBounds,
    /// The shape of a block, if it is made of constants.
    pub(crate) block: Option<[Expr; 3]>,
    pub(crate) arithmetic: Arithmetic,
    pub(crate) instances: Vec<Instance>,
    pub(crate) same_shape: SameShape,
    /// `native = path`.
    pub(crate) native: Option<Path>,
}

impl KernelOptions {
    /// Reads the attribute of a kernel of rank `rank` with these generic parameters.
    ///
    /// # Errors
    /// For options that do not exist, appear twice, contradict each other or have impossible values,
    /// and for generic parameters without instances, with the span of the part at fault.
    pub(crate) fn parse(attribute: &Attribute, rank: usize, generics: &Generics) -> Result<Self> {
        let mut bounds = LaunchBounds::default();
        let mut block = None;
        let mut arithmetic = ArithmeticOptions::default();
        let mut lists = Lists::default();
        let mut same_shape = SameShape::default();
        let mut native = None;
        if !matches!(attribute.meta, Meta::Path(_)) {
            attribute.parse_args_with(|input: ParseStream<'_>| {
                while !input.is_empty() {
                    let name: Ident = input.parse()?;
                    if !bounds.take(&name, rank, input, &mut block)?
                        && !arithmetic.take(&name, input)?
                        && !same_shape.take(&name, input)?
                        && !take_native(&name, input, &mut native)?
                        && !lists.take(&name, generics, input)?
                    {
                        return Err(unknown(&name));
                    }
                    if !input.is_empty() {
                        input.parse::<Token![,]>()?;
                    }
                }
                Ok(())
            })?;
        }
        bounds.check(attribute.meta.span())?;
        let instances = lists.combine(generics)?;
        Ok(KernelOptions { bounds, block, arithmetic: arithmetic.finish(), instances, same_shape, native })
    }
}

/// Reads the option `name`, up to the comma, if it is `native`.
fn take_native(name: &Ident, input: ParseStream<'_>, native: &mut Option<Path>) -> Result<bool> {
    if name != "native" {
        return Ok(false);
    }
    input.parse::<Token![=]>()?;
    if native.replace(input.call(Path::parse_mod_style)?).is_some() {
        return Err(Error::new(name.span(), "`native` is given twice"));
    }
    Ok(true)
}

fn unknown(name: &Ident) -> Error {
    Error::new(
        name.span(),
        format!(
            "unknown option `{name}`; `#[kernel]` knows `block = [x, ...]`, `max_threads = n`, `min_blocks = n`, \
             `max_registers = n`, `cluster = [x, ...]`, `cluster`, `cooperative`, `dependent_launch`, `wide`, `same_shape(x, y)`, `native = path`, `fast_math`, `ftz`, `approx_div`, `approx_sqrt`, `contract`, and lists of instances for its generic parameters"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn parse(attribute: &Attribute, generics: &Generics) -> Result<KernelOptions> {
        KernelOptions::parse(attribute, 2, generics)
    }

    #[test]
    fn a_block_of_constants_is_for_the_compiler() {
        let attribute = parse_quote!(#[kernel(block = [TILE, 2 * super::HEIGHT], min_blocks = 2)]);
        let options = parse(&attribute, &Generics::default()).unwrap();
        assert!(options.bounds.block.is_none() && options.bounds.block_of_constants);
        let block: Vec<String> =
            options.block.unwrap().map(|size| quote::quote!(#size).to_string().replace(' ', "")).into();
        assert_eq!(block, ["TILE", "2*super::HEIGHT", "1"]);
        let refused = |attribute| parse(&attribute, &Generics::default()).err().unwrap().to_string();
        let of_rank_1 = refused(parse_quote!(#[kernel(block = TILE)]));
        assert_eq!(of_rank_1, "the kernel's grid has rank 2, but the block has 1 dimensions");
        assert_eq!(
            refused(parse_quote!(#[kernel(block = [A, B], block = [8, 8])])),
            "`block` is given twice"
        );
    }

    #[test]
    fn a_block_is_padded_to_three_dimensions() {
        let attribute = parse_quote!(#[kernel(block = [16, 8], min_blocks = 2)]);
        let bounds = parse(&attribute, &Generics::default()).unwrap().bounds;
        let expected =
            LaunchBounds { block: Some([16, 8, 1]), min_blocks: Some(2), ..LaunchBounds::default() };
        assert_eq!(bounds, expected);
        let line: Attribute = parse_quote!(#[kernel(block = 128)]);
        let bounds = KernelOptions::parse(&line, 1, &Generics::default()).unwrap().bounds;
        assert_eq!(bounds.block, Some([128, 1, 1]));
        let line: Attribute = parse_quote!(#[kernel(cluster = 4)]);
        let bounds = KernelOptions::parse(&line, 1, &Generics::default()).unwrap().bounds;
        assert_eq!((bounds.cluster, bounds.cluster_at_launch), (Some([4, 1, 1]), false));
        let at_launch: Attribute = parse_quote!(#[kernel(cluster, block = 64)]);
        let bounds = KernelOptions::parse(&at_launch, 1, &Generics::default()).unwrap().bounds;
        assert_eq!((bounds.cluster, bounds.has_clusters()), (None, true));
        let dependent: Attribute = parse_quote!(#[kernel(dependent_launch)]);
        assert!(KernelOptions::parse(&dependent, 1, &Generics::default()).unwrap().bounds.dependent_launch);
    }

    #[test]
    fn a_native_body_is_a_path() {
        let native = |attribute| parse(&attribute, &Generics::default()).map(|options| options.native);
        let path = native(parse_quote!(#[kernel(native = super::bodies::k, wide)])).unwrap();
        assert_eq!(path, Some(parse_quote!(super::bodies::k)));
        assert_eq!(native(parse_quote!(#[kernel])).unwrap(), None);
        let refused = |attribute| native(attribute).unwrap_err().to_string();
        assert_eq!(refused(parse_quote!(#[kernel(native = a, native = a)])), "`native` is given twice");
        assert!(refused(parse_quote!(#[kernel(native = |x| x)])).starts_with("expected identifier"));
    }

    #[test]
    fn instances_are_all_combinations() {
        let generics = parse_quote!(<T: Float, const N: usize>);
        let attribute = parse_quote!(#[kernel(N = [4, 8], T = [f32, [f64; 2]], max_threads = 64)]);
        let options = parse(&attribute, &generics).unwrap();
        let names: Vec<String> = options.instances.iter().map(Instance::suffix).collect();
        assert_eq!(names, ["_f32_4", "_f32_8", "__f64_2__4", "__f64_2__8"]);
        assert_eq!(options.bounds.max_threads, Some(64));
    }

    #[test]
    fn instances_have_the_conditions_of_their_arguments() {
        let generics = parse_quote!(<T: Float, const N: usize>);
        let attribute = parse_quote!(#[kernel(T = [f32, #[cfg(x)] f16], N = [4, #[cfg(y)] #[cfg(z)] 8])]);
        let options = parse(&attribute, &generics).unwrap();
        let conditions: Vec<String> =
            options.instances.iter().map(|it| it.cfgs.iter().map(text).collect()).collect();
        assert_eq!(conditions, ["", "#[cfg(y)]#[cfg(z)]", "#[cfg(x)]", "#[cfg(x)]#[cfg(y)]#[cfg(z)]"]);

        let attribute = parse_quote!(#[kernel(T = [#[inline] f32], N = [4])]);
        let error = parse(&attribute, &generics).map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, "only `#[cfg(...)]` can stand before a listed instance");
    }

    fn text(attribute: &Attribute) -> String {
        quote::quote!(#attribute).to_string().replace(' ', "")
    }

    #[test]
    fn a_kernel_without_generic_parameters_is_its_only_instance() {
        let options = parse(&parse_quote!(#[kernel]), &Generics::default()).unwrap();
        assert_eq!(options.instances.len(), 1);
        assert_eq!(options.instances[0].suffix(), "");
    }

    #[test]
    fn single_options_win_over_fast_math() {
        let attribute = parse_quote!(#[kernel(ftz = false, fast_math, max_registers = 64)]);
        let options = parse(&attribute, &Generics::default()).unwrap();
        assert_eq!(options.arithmetic, Arithmetic { ftz: Some(false), ..Arithmetic::fast_math(true) });
        assert_eq!(options.bounds.max_registers, Some(64));
        let silent = parse(&parse_quote!(#[kernel]), &Generics::default()).unwrap();
        assert_eq!(silent.arithmetic, Arithmetic::default());
    }

    #[test]
    fn lengths_are_wide_only_in_wide_kernels() {
        let wide = |attribute| parse(&attribute, &Generics::default()).map(|options| options.bounds.wide);
        assert!(!wide(parse_quote!(#[kernel(block = [8, 8])])).unwrap());
        assert!(wide(parse_quote!(#[kernel(wide, block = [8, 8])])).unwrap());
        let error = wide(parse_quote!(#[kernel(wide, wide)])).unwrap_err();
        assert_eq!(error.to_string(), "`wide` is given twice");
    }

    /// The first and the last number that each option takes, and those beside them.
    #[test]
    fn each_limit_is_the_last_number_that_is_taken() {
        let bounds = |option: &str, rank: usize| {
            let function: syn::ItemFn = syn::parse_str(&format!("#[kernel({option})] fn k() {{}}")).unwrap();
            KernelOptions::parse(&function.attrs[0], rank, &Generics::default())
        };
        for (option, rank) in [
            ("block = [1024, 1]", 2),
            ("block = [1, 1024]", 2),
            ("block = [4, 4, 64]", 3),
            ("block = [32, 32]", 2),
            ("max_threads = 1", 1),
            ("max_threads = 1024", 1),
            ("max_registers = 24", 1),
            ("max_registers = 255", 1),
            ("cluster = 16", 1),
            ("cluster = [4, 4]", 2),
            ("max_threads = 64, min_blocks = 64", 1),
        ] {
            assert!(bounds(option, rank).is_ok(), "{option}");
        }
        for (option, rank, problem) in [
            ("block = [1025, 1]", 2, "1025 is not between 1 and 1024"),
            ("block = [1, 1, 65]", 3, "65 is not between 1 and 64"),
            ("block = [25, 41]", 2, "a block of 1025 threads; the limit is 1024"),
            ("max_threads = 0", 1, "0 is not between"),
            ("max_threads = 1025", 1, "1025 is not between"),
            ("max_registers = 23", 1, "23 is not between 24 and 255"),
            ("max_registers = 256", 1, "256 is not between 24 and 255"),
            ("cluster = 17", 1, "17 is not between 1 and 16"),
            ("cluster = [17, 1]", 2, "17 is not between 1 and 16"),
            ("cluster = [3, 6]", 2, "a cluster of 18 blocks; the limit is 16"),
            ("max_threads = 64, min_blocks = 65", 1, "65 is not between"),
        ] {
            let error = bounds(option, rank).err().expect("refused").to_string();
            assert!(error.contains(problem), "{option}: {error}");
        }
    }

    #[test]
    fn impossible_options_are_refused() {
        let refused: [(Attribute, &str); 23] = [
            (parse_quote!(#[kernel(T = [f32], fast)]), "unknown option `fast`"),
            (parse_quote!(#[kernel(T = [f32], block = [16])]), "rank 2"),
            (parse_quote!(#[kernel(T = [f32], block = [64, 32])]), "2048 threads"),
            (parse_quote!(#[kernel(T = [f32], block = [0, 1])]), "0 is not between"),
            (parse_quote!(#[kernel(T = [f32], max_threads = 1025)]), "1025 is not between"),
            (parse_quote!(#[kernel(T = [f32], max_threads = N)]), "expected a number"),
            (parse_quote!(#[kernel(T = [f32], min_blocks = 2)]), "requires the size of a block"),
            (parse_quote!(#[kernel(T = [f32], max_threads = 64, max_threads = 64)]), "given twice"),
            (parse_quote!(#[kernel(T = [f32], max_registers = 23)]), "23 is not between 24 and 255"),
            (parse_quote!(#[kernel(T = [f32], max_registers = 256)]), "256 is not between 24 and 255"),
            (
                parse_quote!(#[kernel(T = [f32], max_threads = 64, min_blocks = 2, max_registers = 64)]),
                "leave one out",
            ),
            (parse_quote!(#[kernel(T = [f32], cluster = 2)]), "the cluster has 1 dimensions"),
            (parse_quote!(#[kernel(T = [f32], cluster = [17, 1])]), "17 is not between 1 and 16"),
            (parse_quote!(#[kernel(T = [f32], cluster = [8, 4])]), "a cluster of 32 blocks; the limit is 16"),
            (parse_quote!(#[kernel(T = [f32], cluster = [2, 1], cooperative)]), "not for both"),
            (parse_quote!(#[kernel(T = [f32], cluster, cooperative)]), "not for both"),
            (parse_quote!(#[kernel(T = [f32], dependent_launch, cooperative)]), "start together"),
            (parse_quote!(#[kernel(T = [f32], cluster = [2, 1], cluster)]), "`cluster` is given twice"),
            (parse_quote!(#[kernel(T = [f32], ftz, ftz = true)]), "`ftz` is given twice"),
            (parse_quote!(#[kernel(T = [f32], contract = 1)]), "expected boolean literal"),
            (parse_quote!(#[kernel]), "list them, `#[kernel(T = [...])]`"),
            (parse_quote!(#[kernel(T = [])]), "at least one instance"),
            (parse_quote!(#[kernel(T = [f32, f32])]), "the same name: `f32`"),
        ];
        for (attribute, reason) in refused {
            let error = parse(&attribute, &parse_quote!(<T>)).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(reason), "{error} / {reason}");
        }
    }
}
