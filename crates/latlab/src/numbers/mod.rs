//! Files of numbers: one observation on each line, in one of its columns. What stands in them is read as FreeBSD's
//! ministat reads it (docs/comparing.md), but what is no finite number is refused instead of counted.

mod column;
mod error;
mod parse;
mod read;

pub use column::TextColumn;
pub use error::NumbersError;
pub use read::{STDIN, read_file, read_numbers};
