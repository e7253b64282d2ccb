//! One declaration for each table.

/// Declares a table: the type of its batches, and of each column the name, the values in memory, and the type on disk, which is
/// `required`, `nullable`, or `measured` (see [`ColumnSpec::measured`]). If the reader may choose columns, each has a variant
/// of an enum too.
macro_rules! table {
    (
        $(#[$about:meta])* $vis:vis $batch:ident of $table:ident, chosen by $chosen:ident {
            $($(#[$doc:meta])* $variant:ident $field:ident: $values:ty = $null:ident $column_type:ident;)+
        }
    ) => {
        /// A column of the table, in the order of the file. Unless said otherwise instants are ns of the sender's clock.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $chosen {
            $($(#[$doc])* $variant,)+
        }

        impl $chosen {
            /// Every column, in the order of the file.
            pub const ALL: [$chosen; [$($chosen::$variant),+].len()] = [$($chosen::$variant),+];

            /// Its name in the file.
            pub const fn name(self) -> &'static str {
                [$(stringify!($field)),+][self as usize]
            }
        }

        table! { $(#[$about])* $vis $batch of $table { $($(#[$doc])* $field: $values = $null $column_type;)+ } }
    };
    (
        $(#[$about:meta])* $vis:vis $batch:ident of $table:ident {
            $($(#[$doc:meta])* $field:ident: $values:ty = $null:ident $column_type:ident;)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        $vis struct $batch {
            pub rows: usize,
            $($(#[$doc])* pub $field: $values,)+
        }

        impl $crate::tables::decode::Batch for $batch {
            const TABLE: $crate::tables::recorded::RecordedTable = $crate::tables::recorded::RecordedTable::$table;

            fn specs() -> Vec<$crate::tables::column::ColumnSpec> {
                use $crate::tables::column::{ColumnSpec, ColumnType};
                vec![$(ColumnSpec::$null(stringify!($field), ColumnType::$column_type)),+]
            }

            fn rows_mut(&mut self) -> &mut usize {
                &mut self.rows
            }

            fn fields(&mut self) -> Vec<&mut dyn $crate::tables::decode::Field> {
                vec![$(&mut self.$field),+]
            }
        }
    };
}
pub(super) use table;
