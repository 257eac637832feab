//! `Debug` of types that do not show all that they hold, and `Display` of enums.

/// Implements `Debug` for a type as a struct with the values of these methods, and `..` for the rest.
macro_rules! debug_by_methods {
    ($([$($generics:tt)*])? $name:ident $(<$($argument:tt),+>)? { $($method:ident),* }) => {
        impl $(<$($generics)*>)? std::fmt::Debug for $name $(<$($argument),+>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut shown = f.debug_struct(stringify!($name));
                $( shown.field(stringify!($method), &self.$method()); )*
                shown.finish_non_exhaustive()
            }
        }
    };
}

/// Implements `Display` for an enum of which each variant is shown as these words.
macro_rules! display_words {
    ($Enum:ident { $($Variant:ident = $words:literal),* $(,)? }) => {
        impl std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $( $Enum::$Variant => $words, )*
                })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    struct Handle;

    impl Handle {
        fn name(&self) -> &'static str {
            "one"
        }

        fn number(&self) -> u32 {
            7
        }
    }

    debug_by_methods!(Handle { name, number });

    #[test]
    fn a_handle_shows_what_its_methods_return_and_that_there_is_more() {
        assert_eq!(format!("{Handle:?}"), r#"Handle { name: "one", number: 7, .. }"#);
    }
}
