//! What types of several modules implement alike.

/// Implements methods of options that are given by value, each of which sets these fields to these values.
macro_rules! setters {
    ($Options:ident:
        $( $(#[$doc:meta])* pub const fn $method:ident($($argument:ident: $ty:ty),*): $($field:ident = $value:expr),+; )*) => {
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

/// Implements `Deref` for a type as what is in a field.
macro_rules! deref_to_field {
    ([$($generics:tt)*] $Type:ty => $field:ident: $Target:ty) => {
        impl<$($generics)*> std::ops::Deref for $Type {
            type Target = $Target;

            fn deref(&self) -> &Self::Target {
                &self.$field
            }
        }
    };
}
