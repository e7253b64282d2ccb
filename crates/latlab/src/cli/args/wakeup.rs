//! Options of `latlab wakeup`.

use clap::Args;

use super::{MeasuringArgs, RemedyArgs, StopArgs, TraceArgs};
use crate::cli::value;
use crate::plan::{Via, WakeupCpus, defaults};
use crate::units::Nanos;

#[derive(Clone, Debug, Args)]
pub struct WakeupArgs {
    #[command(flatten)]
    pub stop: StopArgs,
    #[command(flatten)]
    pub sleep: SleepArgs,
    #[command(flatten)]
    pub threads: ThreadArgs,
    #[command(flatten)]
    pub trace: TraceArgs,
    #[command(flatten)]
    pub remedies: RemedyArgs,
    #[command(flatten)]
    pub measuring: MeasuringArgs,
}

/// Rewords the help of options that `latlab wakeup` shares with other commands; values that it refuses are left out.
pub fn in_its_words(command: clap::Command) -> clap::Command {
    let says = |help: &'static str, long: &'static str| {
        move |arg: clap::Arg| arg.help(help).long_help(format!("{help}\n\n{long}"))
    };
    command
        .mut_arg("count", |count| count.help("Stop after N measured wake-ups; replaces the default of -d [default: no limit]"))
        .mut_arg(
            "duration",
            says(
                "Stop after a measuring time of T, such as 10s or 2m [default: 10s]",
                "With -n as well, whichever comes first. Several intervals or ways of sleeping take that long each.",
            ),
        )
        .mut_arg(
            "warmup",
            says(
                "Warm up for N wake-ups or a time T [default: 1s, at most 1000 wake-ups]",
                "They are in the recording, but in no statistic. 0: no warm-up.",
            ),
        )
        .mut_arg(
            "load",
            says(
                "Load during the run, such as cpu=80%; repeatable [default: none]",
                "SPEC is KIND=VALUE[:key=value,…].\n\n\
                 cpu=80%: share of every CPU's time; :cpus=0-1, :period=10ms.\n\
                 heaters=30: 30 threads in an endless loop; :cpus=0-1.\n\
                 mem=2GB/s: bytes read and written; :cpus=, :period=, :buffer=.\n\
                 none: no load.",
            ),
        )
        .mut_arg(
            "set",
            says(
                "Change a setting of the host during the run and restore it afterwards; repeatable [default: none]",
                "KNOB=VALUE: governor=performance, cpu-dma-latency=0, idle-states=none (or max-us:N, off:NAME,…), timer-slack=1ns, \
                 irq-affinity=IRQ:CPUS, rt-runtime=-1. VALUE as-found leaves a knob as it is.",
            ),
        )
        .mut_arg("deadline", |deadline| {
            deadline.help("Add the share of wake-ups that were later than T, such as 500us [default: no deadline]")
        })
        .mut_arg("half", |half| half.hide(true))
}

/// How threads ask to be woken.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Timers")]
pub struct SleepArgs {
    /// Wake every T, such as 1ms; several make interleaved runs [default: 10ms]
    #[arg(short, long, value_name = "T[,…]", value_delimiter = ',', allow_hyphen_values = true, value_parser = value::span(defaults::INTERVAL_MAX))]
    pub interval: Vec<Nanos>,
    /// Sleep with this call; several make interleaved runs [default: clock_nanosleep]
    ///
    /// clock_nanosleep, timerfd, futex, signal: until an absolute time.
    /// nanosleep, select, poll, epoll: for a duration; poll and epoll round it up to whole milliseconds.
    /// spin: no sleep; shows what the clock and the loop cost.
    #[arg(long, value_name = "WORD[,…]", value_delimiter = ',', verbatim_doc_comment, value_parser = value::via)]
    pub via: Vec<Via>,
    /// Sleep for one interval from now each time, instead of until the next slot of the schedule
    #[arg(long)]
    pub relative: bool,
    /// Stop at the first wake-up later than T, such as 200us [default: never]
    #[arg(long = "break", value_name = "T", allow_hyphen_values = true, value_parser = value::span(defaults::INTERVAL_MAX))]
    pub break_after: Option<Nanos>,
}

/// How the threads that sleep run.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Threads")]
pub struct ThreadArgs {
    /// Pin to CPU N, or a thread to each of several: 0-3, or all [default: one thread, not pinned]
    #[arg(long, value_name = "N|LIST|all", allow_hyphen_values = true, value_parser = value::wakeup_cpus)]
    pub cpu: Option<WakeupCpus>,
    /// Run under SCHED_FIFO with priority PRIO, 1 to 99 [default: the system's scheduler]
    #[arg(long, value_name = "PRIO", allow_hyphen_values = true, value_parser = value::whole::<u8>(1..=defaults::FIFO_MAX))]
    pub fifo: Option<u8>,
    /// Lock all memory (mlockall)
    #[arg(long)]
    pub mlock: bool,
}
