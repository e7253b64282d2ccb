use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::plan::{Protocol, TransportKind};

/// How long a run lasts.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "How long")]
pub struct StopArgs {
    /// Stop after N measured probes; alone it lifts -d [default: no limit]
    #[arg(short = 'n', long, value_name = "N", allow_hyphen_values = true)]
    pub count: Option<String>,
    /// Stop after a measuring time of T, such as 10s or 2m [default: 10s]
    ///
    /// With -n as well, whichever comes first. Several sizes or ports take that long each.
    #[arg(short = 'd', long, value_name = "T", allow_hyphen_values = true)]
    pub duration: Option<String>,
    /// Send for N probes or a time T before probes count [default: 1s, at most 1000 probes]
    ///
    /// Warm-up probes stay in the recording and out of every statistic. 0 leaves them out.
    #[arg(long, value_name = "N|T", allow_hyphen_values = true, hide_short_help = true)]
    pub warmup: Option<String>,
}

/// When probes leave.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "When probes leave")]
pub struct ScheduleArgs {
    /// Send one every T, such as 1ms, whatever comes back [default: closed loop]
    ///
    /// In a closed loop the next probe leaves when the last one was answered or timed out.
    #[arg(short, long, value_name = "T", allow_hyphen_values = true)]
    pub interval: Option<String>,
    /// Draw exponential gaps whose mean is -i
    #[arg(long, hide_short_help = true)]
    pub poisson: bool,
    /// Seed of the exponential gaps, to repeat a run [default: a new one, recorded]
    #[arg(long, value_name = "N", allow_hyphen_values = true, hide_short_help = true)]
    pub seed: Option<String>,
    /// Give up probes overdue by more than T: they become `not_sent` [default: 1s]
    #[arg(long, value_name = "T", allow_hyphen_values = true, hide_short_help = true)]
    pub max_backlog: Option<String>,
    /// Count answers that take longer than T as late, up to 60s [default: 1s]
    #[arg(long, value_name = "T", allow_hyphen_values = true, hide_short_help = true)]
    pub timeout: Option<String>,
}

/// What a probe is.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "What probes are")]
pub struct ProbeArgs {
    /// Payload in bytes, 24 to 65507; several make interleaved runs [default: 64]
    #[arg(short, long, value_name = "BYTES[,…]", value_delimiter = ',', allow_hyphen_values = true)]
    pub size: Vec<String>,
    /// What the payload says [default: native]
    ///
    /// native: latlab's own session, authenticated with a key.
    /// echo: a payload that any UDP echo returns; default port 7.
    #[arg(
        long, value_name = "WORD", value_parser = protocol_words(), hide_short_help = true,
        verbatim_doc_comment, hide_possible_values = true
    )]
    pub protocol: Option<Protocol>,
    /// How probes travel: udp or tcp [default: udp]
    ///
    /// tcp: one connection for each run, TCP_NODELAY at both ends; a running `latlab serve` needs --tcp.
    #[arg(
        long, value_name = "WORD", value_parser = transport_words(), hide_short_help = true,
        hide_possible_values = true
    )]
    pub transport: Option<String>,
}

fn protocol_words() -> impl TypedValueParser<Value = Protocol> {
    PossibleValuesParser::new(["native", "echo"]).map(|word| match word.as_str() {
        "echo" => Protocol::Echo,
        _ => Protocol::Native,
    })
}

/// The words of the contract; those of later versions are known, so that their refusal can say so.
pub(super) fn transport_words() -> impl TypedValueParser<Value = String> {
    let now = TransportKind::ALL.map(|transport| PossibleValue::new(transport.word()));
    let later = ["xdp", "dds"].map(|word| PossibleValue::new(word).hide(true));
    PossibleValuesParser::new(now.into_iter().chain(later))
}
