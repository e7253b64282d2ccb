//! The system calls latlab needs, one safe function each, with the man page or kernel source above it.
//!
//! This crate and the test allocator are the only places with `unsafe` (docs/ARCHITECTURE.md, invariant 8).
//! On systems other than Linux the same names exist and answer `Unsupported`.

pub mod clock;
