//! Options that several measuring commands share.

use std::path::PathBuf;

use clap::Args;

use crate::cli::options::AddressArgs;
use crate::cli::value::{self, Pin, Tag, TypedTarget};
use crate::console::Verbosity;
use crate::plan::{LoadSpec, Protocol, SettingSpec, StampLayer, TransportKind, WaitMode, Warmup, defaults};
use crate::units::Nanos;

/// What all commands that measure have in common.
#[derive(Clone, Debug, Args)]
pub struct MeasuringArgs {
    #[command(flatten)]
    pub loads: LoadArgs,
    #[command(flatten)]
    pub settings: SettingArgs,
    #[command(flatten)]
    pub judging: JudgingArgs,
    #[command(flatten)]
    pub gates: GateArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub live: LiveArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// How long a run lasts.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Duration")]
pub struct StopArgs {
    /// Stop after N measured probes; replaces the default of -d [default: no limit]
    #[arg(short = 'n', long, value_name = "N", allow_hyphen_values = true, value_parser = value::whole::<u64>(1..=u64::MAX))]
    pub count: Option<u64>,
    /// Stop after a measuring time of T, such as 10s or 2m [default: 10s]
    ///
    /// With -n as well, whichever comes first. Several sizes or ports take that long each.
    #[arg(short = 'd', long, value_name = "T", allow_hyphen_values = true, value_parser = value::span(defaults::DURATION_MAX))]
    pub duration: Option<Nanos>,
    /// Warm up for N probes or a time T [default: 1s, at most 1000 probes]
    ///
    /// Warm-up probes are in the recording, but in no statistic. 0: no warm-up.
    #[arg(long, value_name = "N|T", allow_hyphen_values = true, hide_short_help = true, value_parser = value::warmup)]
    pub warmup: Option<Warmup>,
}

/// When probes leave.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Schedule")]
pub struct ScheduleArgs {
    /// Send a probe every T, such as 1ms, without waiting for answers [default: closed loop]
    ///
    /// In a closed loop the next probe is sent when the last one was answered or timed out.
    #[arg(short, long, value_name = "T", allow_hyphen_values = true, value_parser = value::span(defaults::INTERVAL_MAX))]
    pub interval: Option<Nanos>,
    /// Send at random intervals, exponential with mean -i (a Poisson process)
    #[arg(long, hide_short_help = true)]
    pub poisson: bool,
    /// Seed of the random intervals, to repeat a run [default: a new one, recorded]
    #[arg(long, value_name = "N", allow_hyphen_values = true, hide_short_help = true, value_parser = value::whole::<u64>(0..=u64::MAX))]
    pub seed: Option<u64>,
    /// Do not send probes overdue by more than T; they count as `not_sent` [default: 1s]
    #[arg(long, value_name = "T", allow_hyphen_values = true, hide_short_help = true, value_parser = value::span(defaults::DURATION_MAX))]
    pub max_backlog: Option<Nanos>,
    /// Time-out: answers that take longer than T count as late; at most 60s [default: 1s]
    #[arg(long, value_name = "T", allow_hyphen_values = true, hide_short_help = true, value_parser = value::span(defaults::TIMEOUT_MAX))]
    pub timeout: Option<Nanos>,
}

/// What a probe is.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Probes")]
pub struct ProbeArgs {
    /// Payload in bytes, 24 to 65507; several make interleaved runs [default: 64]
    #[arg(short, long, value_name = "BYTES[,…]", value_delimiter = ',', allow_hyphen_values = true, value_parser = value::size)]
    pub size: Vec<u32>,
    /// Protocol of the probes: native or echo [default: native]
    ///
    /// native: latlab's own session, authenticated with a key.
    /// echo: a payload that any UDP echo returns; default port 7.
    #[arg(
        long, value_name = "WORD", value_parser = value::one_of(&Protocol::ALL, Protocol::word), hide_short_help = true,
        verbatim_doc_comment, hide_possible_values = true
    )]
    pub protocol: Option<Protocol>,
    /// Transport of the probes: udp, tcp, dds or xdp [default: udp]
    ///
    /// tcp: one connection for each run, TCP_NODELAY at both ends; a running `latlab serve` needs --tcp.
    /// dds: samples of DDS topics; a running `latlab serve` needs --transport dds.
    /// xdp: UDP over an AF_XDP socket, without the network stack of this host; needs root or CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF.
    #[arg(
        long, value_name = "WORD", value_parser = value::transport(), hide_short_help = true,
        verbatim_doc_comment, hide_possible_values = true
    )]
    pub transport: Option<TransportKind>,
    /// Stamps of both kernels on the way of each probe: kernel (UDP only) [default: none]
    ///
    /// Before the queueing discipline, in the driver, and in the stack on receipt: `latlab explain` says where the time
    /// went. Those of the reflector need 48 bytes. Costs 0.2 to 3 us of each round trip, which the summary states.
    #[arg(
        long, value_name = "WORD", value_parser = value::one_of(&StampLayer::ALL, StampLayer::word), hide_short_help = true,
        hide_possible_values = true
    )]
    pub stamps: Option<StampLayer>,
}

/// How the process of an end runs.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "CPU and scheduling")]
pub struct EndArgs {
    /// How to wait for datagrams: block, spin or busy-poll [default: block]
    ///
    /// block: sleep in the kernel.
    /// spin: poll the socket in a loop; uses one core completely.
    /// busy-poll: the kernel polls the network driver before it sleeps (SO_BUSY_POLL).
    /// It applies to both ends if latlab starts both (local, lab, ssh:, cmd:).
    #[arg(
        long, value_name = "WORD", value_parser = value::one_of(&WaitMode::ALL, WaitMode::word), verbatim_doc_comment,
        hide_possible_values = true
    )]
    pub wait: Option<WaitMode>,
    /// Pin the measuring thread to CPU N; any: not pinned [default: two cores for the ends of local and lab, else any]
    #[arg(long, value_name = "N|any", allow_hyphen_values = true, value_parser = value::pin)]
    pub cpu: Option<Pin>,
    /// Run under SCHED_FIFO with priority PRIO, 1 to 99 [default: the system's scheduler]
    #[arg(long, value_name = "PRIO", allow_hyphen_values = true, hide_short_help = true, value_parser = value::whole::<u8>(1..=defaults::FIFO_MAX))]
    pub fifo: Option<u8>,
    /// Lock all memory (mlockall)
    #[arg(long, hide_short_help = true)]
    pub mlock: bool,
}

/// The end that latlab starts for itself.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "CPU and scheduling")]
pub struct PeerArgs {
    /// Pin the other end to CPU N, if latlab starts it; any: not pinned [default: as --cpu]
    #[arg(long, value_name = "N|any", allow_hyphen_values = true, value_parser = value::pin)]
    pub peer_cpu: Option<Pin>,
}

/// Whether known remedies are measured against the options as typed.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Remedies")]
pub struct RemedyArgs {
    /// Try options that may reduce the latency, in turns with the given ones, and compare them
    ///
    /// Tried are --fifo 80, --set governor=performance, --set cpu-dma-latency=0 and others, if this host allows them: each
    /// alone, and all together. A ping tries those that correct a finding of `latlab doctor`. `-d` and `-n` apply to each,
    /// divided into 9 runs in 3 blocks. Settings are restored after each run.
    #[arg(long, conflicts_with_all = ["gate", "trace"])]
    pub try_remedies: bool,
}

/// Whether the scheduler is traced.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Trace")]
pub struct TraceArgs {
    /// Keep what the CPUs ran around the slowest 20, for `latlab explain` (root)
    ///
    /// Switches, wake-ups and interrupts of this host and of an agent's, as the kernel's text in the recording. It costs about
    /// 1 us of each wake-up, which the summary states.
    #[arg(long, hide_short_help = true)]
    pub trace: bool,
}

/// What the summary says.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Statistics")]
pub struct JudgingArgs {
    /// Quantiles, as 0.99 or p99 [default: 0.5,0.9,0.99,0.999,0.9999]
    ///
    /// `latlab summary` takes the run's own choice as its default, for --window and --deadline too.
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true, hide_short_help = true, value_parser = value::quantile)]
    pub quantiles: Vec<f64>,
    /// Add a row for every T, such as 1s [default: no rows]
    #[arg(long, value_name = "T", allow_hyphen_values = true, hide_short_help = true, value_parser = value::span(defaults::DURATION_MAX))]
    pub window: Option<Nanos>,
    /// Add the share of probes that took longer than T, such as 500us [default: no deadline]
    #[arg(long, value_name = "T", allow_hyphen_values = true, hide_short_help = true, value_parser = value::span(defaults::DURATION_MAX))]
    pub deadline: Option<Nanos>,
    /// Add columns headed `round trip / 2`, to compare with tools that print half round trips
    #[arg(long, hide_short_help = true)]
    pub half: bool,
}

/// What must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Gates")]
pub struct GateArgs {
    /// Exit with 1 unless '[METRIC] STATISTIC OP VALUE' holds; repeatable [default: none]
    ///
    /// Such as 'p99 <= 200us', 'loss_ratio <= 0.1%' or 'delivered_rate mean >= 1Gbit/s'; of a change 'p99 <= +5%'. OP is
    /// one of <=, <, >= and >. The default metric is the main one of the runs. A quantile that the data do not support is
    /// judged by its bounds, and several runs of a condition by the interval of their mean; 'every: p99 <= 200us' by each.
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true, hide_short_help = true)]
    pub gate: Vec<String>,
    /// Exit with 1 also if a gate cannot be decided
    #[arg(long, requires = "gate", hide_short_help = true)]
    pub gate_strict: bool,
}

/// Where the recording goes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Write the recording to this new directory instead [default: a new one in the store]
    ///
    /// Several runs make one recording each inside it. A directory that exists is refused.
    #[arg(short, long, value_name = "DIR", conflicts_with_all = ["store", "no_record"], hide_short_help = true)]
    pub output: Option<PathBuf>,
    /// Write no recording
    #[arg(long, conflicts_with = "store", hide_short_help = true)]
    pub no_record: bool,
    /// Add the tag KEY=VALUE to the recording; repeatable [default: none]
    #[arg(long, value_name = "KEY=VALUE", hide_short_help = true, value_parser = value::tag)]
    pub tag: Vec<Tag>,
}

/// Where recordings are.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct StoreArgs {
    /// Directory of all recordings [default: ./latlab-runs, or $LATLAB_STORE]
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
}

/// What is set on the hosts for the time of the run.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Host settings")]
pub struct SettingArgs {
    /// Change a setting of the host during the run and restore it afterwards; repeatable [default: none]
    ///
    /// KNOB[:DEV][@WHERE]=VALUE: governor=performance, cpu-dma-latency=0, timer-slack=1ns, idle-states=none (or max-us:N, off:NAME,…),
    /// irq-affinity=IRQ:CPUS, rt-runtime=-1, busy-poll=50us, coalesce=rx-usecs:0,…, offload=tx-checksum:off,…,
    /// mtu=BYTES, socket-buffer=BYTES. VALUE as-found leaves a knob as it is.
    ///
    /// WHERE is local, peer or both. coalesce, offload and mtu act on the interface of the measured path, or on DEV.
    #[arg(long, value_name = "KNOB=VALUE", hide_short_help = true, value_parser = value::setting)]
    pub set: Vec<Option<SettingSpec>>,
}

/// In which form results are printed.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Display")]
pub struct JsonArgs {
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// The view while a run goes on.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Display")]
pub struct LiveArgs {
    /// Full-screen view during the run: histogram, last minute, rates, loads, busy CPUs [default: one line]
    #[arg(long, conflicts_with = "quiet", hide_short_help = true)]
    pub live: bool,
}

/// How much is said on stderr.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Display")]
pub struct VerbosityArgs {
    /// Print results, warnings and errors only: no progress, no notes
    #[arg(short, long, conflicts_with = "verbose", hide_short_help = true)]
    pub quiet: bool,
    /// Print all caveats and metrics, and more notes on stderr: addresses, CPUs, paths of files
    #[arg(short, long, hide_short_help = true)]
    pub verbose: bool,
}

impl VerbosityArgs {
    pub const fn level(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Usual,
        }
    }
}

/// What the run is loaded with.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Load during the run, such as cpu=80%; repeatable [default: none]
    ///
    /// SPEC is KIND=VALUE, then @local, @peer or @both, then :key=value,… as needed.
    /// On local and lab all three places mean this one host.
    ///
    /// cpu=80%: share of every CPU's time; :cpus=0-1, :period=10ms.
    /// heaters=30: 30 threads in an endless loop; :cpus=0-1.
    /// mem=2GB/s: bytes read and written; :cpus=, :period=, :buffer=.
    /// net=10Mbit/s: UDP on the measured path; :size=, :wire, :cpu=, :spin.
    /// net=90%, net=max: share of the path's rate without loss, or as much as can be sent.
    /// none: no load.
    #[arg(long, value_name = "SPEC", verbatim_doc_comment, allow_hyphen_values = true, hide_short_help = true, value_parser = value::load)]
    pub load: Vec<Option<LoadSpec>>,
}

#[derive(Clone, Debug, Args)]
pub struct HoldArgs {
    /// The other end of a network load; other loads need none [default: local]
    #[arg(value_name = "TARGET", value_parser = value::target)]
    pub target: Option<TypedTarget>,
    #[command(flatten)]
    pub loads: LoadArgs,
    /// Keep the loads for a time T, such as 10s or 2m [default: 10s]
    #[arg(short = 'd', long, value_name = "T", allow_hyphen_values = true, help_heading = "Duration", value_parser = value::span(defaults::DURATION_MAX))]
    pub duration: Option<Nanos>,
    #[command(flatten)]
    pub way: AddressArgs,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}
