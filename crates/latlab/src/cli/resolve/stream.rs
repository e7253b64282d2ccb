//! Resolution of `latlab stream`: rate, packets and rate search.

use super::measuring::{self, rounds};
use super::{Environment, MeasureJob};
use crate::cli::args::{SearchArgs, StreamArgs, StreamStopArgs};
use crate::cli::options::{KeySource, path};
use crate::cli::value::{NO_PROBES, StreamRate, alone, too_many, unusable};
use crate::diagnostics::Failure;
use crate::plan::{
    Direction, Pace, PaceError, PacketSize, PathSpec, PingSpec, Plan, Protocol, RateSearchSpec, RunSpec, Schedule,
    SendMode, SenderSocketOptions, StopWhen, StreamRunSpec, SummaryDefaults, Target, Warmup, Work, defaults,
};
use crate::units::Nanos;
use crate::units::human::{typed_percent, typed_span};

/// Resolves the arguments and checks them against each other.
pub fn stream(typed: &StreamArgs, environment: &Environment) -> Result<MeasureJob, Failure> {
    let target = path::target(typed.target.as_ref(), Protocol::Native);
    let key = match path::key(&typed.way.key, &target, Protocol::Native)? {
        // A reflector sends streams only to hosts with its key, on loopback too.
        KeySource::None if target == Target::Local && typed.packets.direction == Some(Direction::Down) => {
            KeySource::Fresh
        }
        key => key,
    };
    // Flows would share one CPU.
    let cores = environment.cores.filter(|_| typed.packets.flows.is_none_or(|flows| flows == 1));
    let (here, peer) = typed.ends.ends(typed.peer.peer_cpu, &target, cores);
    let streams = streams(typed, &target)?;
    let search = streams.first().and_then(|stream| stream.search.as_ref());
    if typed.trace.trace && streams[0].probes.is_none() {
        let cause = "it is kept around the slowest latency probes during the stream";
        return Err(alone("--trace", "--probe", cause, "`--probe 1ms` sends one every millisecond"));
    }
    let base = measuring::run(&typed.measuring, Work::Stream(streams[0].clone()), target)?;
    let base = RunSpec {
        stop: stop(&typed.lasting, search),
        warmup: warmup(&typed.lasting, search),
        here,
        peer,
        trace: typed.trace.trace,
        authenticated: key != KeySource::None,
        judging: judging(typed, base.judging.clone()),
        ..base
    };
    // A search is not cut into slices.
    let is_search = search.is_some();
    let runs: Vec<RunSpec> =
        streams.into_iter().map(|stream| RunSpec { work: Work::Stream(stream), ..base.clone() }).collect();
    expect_few(&runs)?;
    let rounds = if is_search { 1 } else { rounds(&runs) };
    Ok(MeasureJob::of(Plan { runs, rounds }, key, 1, &typed.measuring, environment))
}

fn streams(typed: &StreamArgs, target: &Target) -> Result<Vec<StreamRunSpec>, Failure> {
    let packets = &typed.packets;
    let transport = packets.transport.unwrap_or_default();
    let direction = packets.direction.unwrap_or(Direction::Up);
    let flows = packets.flows.unwrap_or(defaults::STREAM_FLOWS);
    let sizes = match packets.size.as_slice() {
        [] => vec![PacketSize::OnePacket],
        sizes => sizes.iter().copied().map(PacketSize::Bytes).collect(),
    };
    if direction == Direction::Down && sizes.len() > 1 {
        let cause = "with `--direction down` they would alternate, but a reflector has one down-stream at a time";
        let hint = "one size for each command, or `size` as a factor of an experiment";
        let sizes: Vec<String> = packets.size.iter().map(u32::to_string).collect();
        return Err(unusable("--size", sizes.join(","), cause, hint));
    }
    let way = path::path(&typed.way, &typed.dds, &typed.xdp, transport, target)?;
    let path = PathSpec { source_port: first_port(typed.source_port, flows)?, ..way };
    let search = search(&typed.search, &typed.lasting, sizes.len())?;
    let StreamRate { pace, wire } = packets.rate.unwrap_or(StreamRate { pace: Pace::Max, wire: false });
    let base = StreamRunSpec {
        probes: probes(&typed.search, &path, search.as_ref()),
        transport,
        path,
        wire,
        flows,
        sending: SenderSocketOptions {
            mode: packets.mode.unwrap_or(SendMode::Send),
            batch: packets.batch.unwrap_or(defaults::STREAM_BATCH),
            checksum: packets.checksum.unwrap_or(true),
            connect: packets.connect || transport.is_connection_oriented(),
        },
        direction,
        search,
        ..StreamRunSpec::at(pace)
    };
    let streams: Vec<_> = sizes.into_iter().map(|size| StreamRunSpec { size, ..base.clone() }).collect();
    streams.iter().try_for_each(expect_possible_rate)?;
    Ok(streams)
}

/// Refuses too many runs, and too many sessions: each flow of each run is one at the peer.
fn expect_few(runs: &[RunSpec]) -> Result<(), Failure> {
    let sessions: usize = runs.iter().map(|run| usize::from(run.sessions())).sum();
    // An agent's reflector holds one session for each run of a command.
    let has_agent = runs.iter().any(|run| run.target.has_agent());
    let most = if has_agent { defaults::RUNS_MAX } else { usize::from(defaults::SERVE_SESSIONS_MAX) };
    let refuse = |count, noun, limit| {
        let cause = "every size makes a run, and every flow of a run a session";
        Err(too_many(count, noun, limit, cause, "give fewer sizes, or fewer flows"))
    };
    match runs.len() {
        count if count > defaults::RUNS_MAX => refuse(count, "runs", defaults::RUNS_MAX),
        _ if sessions > most => refuse(sessions, "sessions", most),
        _ => Ok(()),
    }
}

fn judging(typed: &StreamArgs, usual: SummaryDefaults) -> SummaryDefaults {
    match typed.measuring.judging.quantiles.as_slice() {
        [] => SummaryDefaults { quantiles: defaults::STREAM_QUANTILES.to_vec(), ..usual },
        _ => usual,
    }
}

fn first_port(typed: Option<u16>, flows: u16) -> Result<Option<u16>, Failure> {
    match typed {
        Some(port) if port.checked_add(flows - 1).is_none() => {
            let cause = format!("{flows} flows need as many ports from there on");
            Err(unusable("--source-port", port, cause, format!("up to {}", u16::MAX - (flows - 1))))
        }
        port => Ok(port),
    }
}

/// Refuses rates outside the supported range.
fn expect_possible_rate(stream: &StreamRunSpec) -> Result<(), Failure> {
    let refuse = |cause: &str, hint: String| Err(unusable("--rate", stream.rate_words(), cause, hint));
    match stream.check() {
        Ok(()) => Ok(()),
        Err(PaceError::TooSlow(least)) => {
            refuse("each flow is to have a packet in each interval of 100 ms", format!("the minimum is `{least}`"))
        }
        Err(PaceError::TooFast(most)) => refuse("it is more than any path carries", format!("the maximum is `{most}`")),
    }
}

/// Resolves the rate search over `sizes` packet sizes; `None` if no search was requested.
fn search(typed: &SearchArgs, lasting: &StreamStopArgs, sizes: usize) -> Result<Option<RateSearchSpec>, Failure> {
    let losses = typed.search.as_slice();
    if losses.is_empty() {
        return Ok(None);
    }
    let words: Vec<String> = losses.iter().map(|loss| typed_percent(*loss)).collect();
    if losses.len() > defaults::SEARCH_GOALS_MAX {
        let hint = format!("at most {} loss ratios", defaults::SEARCH_GOALS_MAX);
        return Err(unusable("--search", words.join(","), "each takes its share of the time", hint));
    }
    if let Some(twice) = (1..losses.len()).find(|place| losses[..*place].contains(&losses[*place])) {
        return Err(unusable("--search", &words[twice], "it is given twice", "each loss ratio once"));
    }
    Ok(Some(RateSearchSpec::within(losses, search_duration(lasting, sizes)?)))
}

/// The duration of a search. Each of several sizes has this duration; the sessions of the others are idle.
fn search_duration(lasting: &StreamStopArgs, sizes: usize) -> Result<Nanos, Failure> {
    let (least, most) = (defaults::SEARCH_MIN, Nanos(defaults::SEARCH_MAX.0 / sizes.max(1) as i64));
    let Some(within) = lasting.duration else { return Ok(defaults::SEARCH.min(most)) };
    let cause = match within {
        within if within < least => "it is too short for the trials of a search",
        within if within > most => "all searches of one command together take 10 minutes at most",
        within => return Ok(within),
    };
    let hint = format!("from {} up to {}", typed_span(least), typed_span(most));
    Err(unusable("--duration", typed_span(within), cause, hint))
}

/// The probes beside a stream on `path`: by default those of a search.
fn probes(typed: &SearchArgs, path: &PathSpec, search: Option<&RateSearchSpec>) -> Option<PingSpec> {
    let usual = search.map(|_| defaults::STREAM_PROBE_INTERVAL);
    let interval_ns = typed.probe.or(usual).filter(|interval| *interval != NO_PROBES)?;
    // The requested source ports belong to the stream's flows.
    let path = PathSpec { source_port: None, ..path.clone() };
    let ping = PingSpec { path, ..PingSpec::on(Schedule::Periodic { interval_ns }) };
    Some(match search {
        Some(search) => PingSpec { timeout_ns: search.probe_timeout(), max_backlog_ns: search.probe_timeout(), ..ping },
        None => ping,
    })
}

fn stop(lasting: &StreamStopArgs, search: Option<&RateSearchSpec>) -> StopWhen {
    let asked = lasting.duration.unwrap_or(defaults::DURATION);
    StopWhen { count: None, duration_ns: Some(search.map_or(asked, |search| search.within_ns)) }
}

/// The first trial of a search is a warm-up.
fn warmup(lasting: &StreamStopArgs, search: Option<&RateSearchSpec>) -> Warmup {
    let duration_ns = search.is_none().then_some(defaults::WARMUP);
    lasting.warmup.unwrap_or(Warmup { count: None, duration_ns })
}
