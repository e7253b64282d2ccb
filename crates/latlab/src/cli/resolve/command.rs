//! Resolution of `latlab command`.

use std::collections::BTreeSet;

use super::measuring::{self, expect_settings_of_this_host};
use super::{Environment, MeasureJob};
use crate::cli::args::CommandArgs;
use crate::cli::options::KeySource;
use crate::cli::value::{Pin, split_command, unusable};
use crate::diagnostics::Failure;
use crate::plan::{CommandOutput, CommandSpec, EndSpec, Plan, RunSpec, Target, Work};

/// Resolves the arguments: the run of a command on this host.
pub fn command(typed: &CommandArgs, environment: &Environment) -> Result<MeasureJob, Failure> {
    let execution = &typed.execution;
    let by_shell = |line: String| vec!["sh".into(), "-c".into(), line];
    let prepare = execution.prepare.as_ref().map(|line| match execution.shell {
        true => Ok(by_shell(line.clone())),
        false => split_command(line)
            .map_err(|cause| unusable("--prepare", line, cause, "quote it as in a shell, or add `--shell`")),
    });
    let work = Work::Command(CommandSpec {
        words: if execution.shell { by_shell(typed.command.join(" ")) } else { typed.command.clone() },
        prepare: prepare.transpose()?,
        input: execution.input.clone(),
        output: execution.stdout.clone().unwrap_or(CommandOutput::Null),
        timeout_ns: execution.timeout,
        ignore_failure: execution.ignore_failure,
        printed: execution.metric.clone(),
    });
    if typed.command[0].is_empty() {
        return Err(unusable("COMMAND", "", "it has no name", "such as `-- sleep 0.1`"));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = execution.metric.iter().find(|it| !names.insert(it.name.to_ascii_lowercase())) {
        return Err(unusable("--metric", &twice.name, "it was given twice", "give each metric a name of its own"));
    }
    let here = EndSpec { cpu: typed.process.cpu.and_then(Pin::cpu), fifo: typed.process.fifo, ..EndSpec::SYSTEM };
    let (stop, warmup) = (typed.stop.stop(), typed.stop.warmup());
    let run = RunSpec { stop, warmup, here, ..measuring::run(&typed.measuring, work, Target::Local)? };
    expect_settings_of_this_host(&run)?;
    let plan = Plan { runs: vec![run], rounds: 1 };
    Ok(MeasureJob::of(plan, KeySource::None, 1, &typed.measuring, environment))
}
