//! Methods of options that set fields.

/// Implements methods of options that are given by value, each of which sets these fields to these values.
macro_rules! setters {
    ($Options:ident:
        $( $(#[$doc:meta])* $method:ident($($argument:ident: $ty:ty),*): $($field:ident = $value:expr),+; )*) => {
        impl $Options {
            $(
                $(#[$doc])*
                #[must_use]
                pub const fn $method(mut self $(, $argument: $ty)*) -> Self {
                    $( self.$field = $value; )+
                    self
                }
            )*
        }
    };
}
