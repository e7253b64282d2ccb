//! The thin binary: one sentence in, one exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(latlab::commands::run(std::env::args_os()))
}
