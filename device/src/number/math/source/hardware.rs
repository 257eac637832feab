//! Functions that are one or a few instructions of the device: LLVM's intrinsics.

macro_rules! intrinsics {
    ($module:ident, $ty:ident: $($name:ident($($argument:ident),*) = $intrinsic:literal;)*) => {
        pub(crate) mod $module {
            // SAFETY: each is LLVM's intrinsic for this type, with its signature; it reads nothing
            // but its arguments, takes all values of them, and becomes instructions, never a call.
            unsafe extern "C" {
                $(
                    #[link_name = $intrinsic]
                    pub(crate) safe fn $name($($argument: $ty),*) -> $ty;
                )*
            }
        }
    };
}

intrinsics! { single, f32:
    floor(x) = "llvm.floor.f32";
    ceil(x) = "llvm.ceil.f32";
    round(x) = "llvm.round.f32";
    round_ties_even(x) = "llvm.roundeven.f32";
    trunc(x) = "llvm.trunc.f32";
    mul_add(x, a, b) = "llvm.fma.f32";
    sqrt(x) = "llvm.sqrt.f32";
    minimum(x, y) = "llvm.minimum.f32";
    maximum(x, y) = "llvm.maximum.f32";
}

intrinsics! { double, f64:
    floor(x) = "llvm.floor.f64";
    ceil(x) = "llvm.ceil.f64";
    round(x) = "llvm.round.f64";
    round_ties_even(x) = "llvm.roundeven.f64";
    trunc(x) = "llvm.trunc.f64";
    mul_add(x, a, b) = "llvm.fma.f64";
    sqrt(x) = "llvm.sqrt.f64";
    minimum(x, y) = "llvm.minimum.f64";
    maximum(x, y) = "llvm.maximum.f64";
}
