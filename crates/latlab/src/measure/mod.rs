//! The hot loops, one file each.

pub mod bare;
