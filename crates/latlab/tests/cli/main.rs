//! The real binary from outside: what is typed, what comes back on each stream, and the exit code.

mod arguments;
mod harness;
mod help;
mod pages;
mod streams;
