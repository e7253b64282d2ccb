use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use super::{JsonArgs, StoreArgs};

/// `latlab keygen`.
#[derive(Clone, Debug, Args)]
pub struct KeygenArgs {
    /// File to make; one that exists is left alone
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// `latlab agent`.
#[derive(Clone, Copy, Debug, Args)]
pub struct AgentArgs {
    /// Speak on standard input and output: there is no other way yet
    #[arg(long, help_heading = "How it speaks")]
    pub stdio: bool,
}

/// `latlab list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Where.
    #[command(flatten)]
    pub store: StoreArgs,
    /// In which form.
    #[command(flatten)]
    pub json: JsonArgs,
}

/// `latlab completions`.
#[derive(Clone, Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// `latlab man`.
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// Write latlab.1 and a page for each command to DIR [default: print latlab.1]
    #[arg(long, value_name = "DIR", help_heading = "What is written")]
    pub output: Option<PathBuf>,
}
