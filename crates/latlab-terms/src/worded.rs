//! Enums whose variants have words.

/// Declares an enum, the word of each variant, and all of them in their order: a word stands once, beside its variant. A number
/// in brackets is the discriminant.
#[macro_export]
macro_rules! worded {
    (
        $(#[$about:meta])* $vis:vis enum $name:ident: $word:ident {
            $($(#[$doc:meta])* $variant:ident $([$number:literal])? = $text:literal,)+
        }
    ) => {
        $(#[$about])*
        $vis enum $name {
            $($(#[$doc])* $variant $(= $number)?,)+
        }

        impl $name {
            /// Every variant, in the order of their declaration.
            pub const ALL: [$name; [$($name::$variant),+].len()] = [$($name::$variant),+];

            pub const fn $word(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }
        }
    };
}
