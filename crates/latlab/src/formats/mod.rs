//! Formats of files that other tools read and write.

pub mod export;
pub mod import;
pub mod numbers;
