//! Options of `latlab command`.

use clap::Args;

use super::{MeasuringArgs, StopArgs};
use crate::cli::value::{self, Pin};
use crate::plan::{CommandOutput, PrintedSpec, defaults};
use crate::units::Nanos;

/// The options and words of `latlab command`.
#[derive(Clone, Debug, Args)]
pub struct CommandArgs {
    /// The program and its arguments, behind --
    #[arg(last = true, required = true, value_name = "COMMAND", value_parser = value::without_null)]
    pub command: Vec<String>,
    #[command(flatten)]
    pub stop: StopArgs,
    #[command(flatten)]
    pub execution: ExecutionArgs,
    #[command(flatten)]
    pub process: ProcessArgs,
    #[command(flatten)]
    pub measuring: MeasuringArgs,
}

/// Rewords the help of options that `latlab command` shares with other commands; what it refuses is left out.
pub fn in_its_words(command: clap::Command) -> clap::Command {
    command
        .mut_arg("count", |count| {
            count.help("Stop after N measured executions; replaces the default of -d [default: no limit]")
        })
        .mut_arg("duration", |duration| {
            let help = "Stop after a measuring time of T, such as 10s or 2m; an execution is finished [default: 10s]";
            duration.help(help).long_help(format!("{help}\n\nWith -n as well, whichever comes first."))
        })
        .mut_arg("warmup", |warmup| {
            let help = "Warm up for N executions or a time T [default: 1s, at most 1000 executions]";
            let more = "They are in the recording, but in no statistic. 0: no warm-up.";
            warmup.help(help).long_help(format!("{help}\n\n{more}")).hide_short_help(false)
        })
        .mut_arg("deadline", |deadline| {
            deadline.help("Add the share of executions that took longer than T, such as 500us [default: no deadline]")
        })
        .mut_arg("half", |half| half.hide(true))
}

/// What is executed, and when it fails.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Command")]
pub struct ExecutionArgs {
    /// Execute COMMAND by `sh -c`; the time includes the start of the shell
    #[arg(long)]
    pub shell: bool,
    /// Execute this before each execution, not timed; split into words as by a shell [default: nothing]
    ///
    /// With --shell by `sh -c`. It must succeed.
    #[arg(long, value_name = "COMMAND", value_parser = value::without_null)]
    pub prepare: Option<String>,
    /// Standard input, from its beginning for each execution [default: empty]
    #[arg(long, value_name = "FILE")]
    pub input: Option<String>,
    /// Standard output: discarded (null), to that of latlab (inherit), or to FILE [default: null]
    ///
    /// FILE has the output of the last execution. With inherit standard error goes to that of latlab, too; otherwise its last
    /// lines are printed if an execution fails.
    #[arg(long, value_name = "null|inherit|FILE", value_parser = value::command_output)]
    pub stdout: Option<CommandOutput>,
    /// Record the numbers that COMMAND prints, as NAME=PATTERN[:UNIT][:higher]; repeatable
    ///
    /// PATTERN is a JSON pointer such as /latency/p99, a regular expression with one group, or * for each line that is a number.
    /// With the unit ns, us, ms or s they are times; other units are shown as typed. :higher says that larger is better. A
    /// pattern that ends in a colon and a word needs a group around it: '(?:a:b)'.
    #[arg(long, value_name = "NAME=PATTERN", value_parser = value::printed)]
    pub metric: Vec<PrintedSpec>,
    /// End an execution that takes longer than T; it has failed [default: never]
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = value::span(defaults::DURATION_MAX))]
    pub timeout: Option<Nanos>,
    /// Continue after failures; every exit code is a success [default: the first failure ends the run]
    ///
    /// An execution that a signal or --timeout ends has still failed, and counts as infinitely long.
    #[arg(long)]
    pub ignore_failure: bool,
}

/// The CPU and the scheduler of the process.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "CPU and scheduling")]
pub struct ProcessArgs {
    /// Pin the process to CPU N; any: not pinned [default: any]
    #[arg(long, value_name = "N|any", allow_hyphen_values = true, value_parser = value::pin)]
    pub cpu: Option<Pin>,
    /// SCHED_FIFO priority of the process, 1 to 99 [default: the system's scheduler]
    #[arg(long, value_name = "PRIO", allow_hyphen_values = true, hide_short_help = true, value_parser = value::whole::<u8>(1..=defaults::FIFO_MAX))]
    pub fifo: Option<u8>,
}
