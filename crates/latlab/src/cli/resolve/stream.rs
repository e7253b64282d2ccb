//! Resolution of `latlab stream`: rate, packets and rate search.

use super::environment::verbosity;
use super::{
    Environment, KeySource, OutputSpec, RequestError, dds, environment, load, path, ping, schedule, setting, summary,
    target, value, xdp,
};
use crate::cli::args::{GateArgs, JudgingArgs, PacketArgs, SearchArgs, StopArgs, StreamArgs, StreamStopArgs};
use crate::console::Verbosity;
use crate::plan::{
    Direction, Pace, PaceError, PacketSize, PathSpec, PingSpec, Plan, Protocol, RateSearchSpec, Reflect, RunSpec,
    Schedule, SendMode, SenderSocketOptions, StopWhen, StreamRunSpec, SummaryDefaults, Target, TransportKind, Warmup,
    Work, defaults,
};
use crate::units::Nanos;
use crate::units::human::{self, NetworkRate, parse_percent, typed_percent, typed_span};

const DOWN: &str = "--direction down";

#[derive(Clone, Debug, PartialEq)]
pub struct StreamJob {
    /// One run for each size.
    pub plan: Plan,
    /// Source of the pre-shared key.
    pub key: KeySource,
    /// What must hold; the analysis parses it.
    pub gates: GateArgs,
    pub output: OutputSpec,
    /// True for one JSON document instead of text.
    pub json: bool,
    /// True for the full-screen view meanwhile.
    pub live: bool,
    pub verbosity: Verbosity,
}

/// Resolves the arguments and checks them against each other.
pub fn stream(typed: &StreamArgs, environment: &Environment) -> Result<StreamJob, RequestError> {
    nothing_of_answers(&typed.judging)?;
    let target = target::target(typed.target.as_deref(), Protocol::Native)?;
    let way = path::path(&typed.way, &target)?;
    path::address_needed(&way, &target)?;
    let transport = ping::transport(typed.packets.transport.as_deref())?;
    ping::fits_a_connection(transport, Protocol::Native, &way)?;
    fits_a_connection(transport, typed)?;
    fits_sockets(transport, typed)?;
    let direction = direction(&typed.packets)?;
    let key = key(typed, &target, direction)?;
    let here = path::local_end(&typed.ends)?;
    let flows = flows(&typed.packets)?;
    dds::no_ports(transport, typed.source_port.is_some())?;
    let way = dds::path(&typed.dds, transport, way, here, &target)?;
    xdp::not_in_driver(&typed.xdp)?;
    let way = xdp::path(&typed.xdp, transport, way, &target)?;
    let path = PathSpec { source_port: first_port(typed.source_port.as_deref(), flows)?, ..way };
    let sizes = sizes(&typed.packets)?;
    let search = search(&typed.search, &typed.lasting, direction, sizes.len())?;
    let stop = stream_stop(&typed.lasting, search.as_ref())?;
    let (pace, wire) = rate(typed.packets.rate.as_deref())?;
    let base = StreamRunSpec {
        probes: search_probes(&typed.search, &path, search.as_ref())?,
        transport,
        path,
        pace,
        wire,
        flows,
        sending: sending(&typed.packets, transport)?,
        direction,
        search: search.clone(),
        ..StreamRunSpec::at(pace)
    };
    let run = RunSpec {
        stop,
        warmup: stream_warmup(&typed.lasting, search.as_ref())?,
        here,
        peer: path::peer_end_of(&target, &typed.peer, here)?,
        loads: load::loads(&typed.loads, &target)?,
        settings: setting::settings(&typed.settings.set, &target)?,
        authenticated: key != KeySource::None,
        tags: environment::tags(&typed.output.tag)?,
        judging: SummaryDefaults { like: typed.like.like, ..judging(&typed.judging)? },
        target,
        ..RunSpec::here(Work::Stream(base.clone()))
    };
    let streams: Vec<StreamRunSpec> = sizes.into_iter().map(|size| StreamRunSpec { size, ..base.clone() }).collect();
    streams.iter().try_for_each(can_be_offered)?;
    let runs: Vec<RunSpec> =
        streams.into_iter().map(|stream| RunSpec { work: Work::Stream(stream), ..run.clone() }).collect();
    let sessions = runs.iter().map(|run| usize::from(run.sessions())).sum();
    // An agent's reflector holds one session for each run of a command.
    let most = if run.target.has_agent() { defaults::RUNS_MAX } else { usize::from(defaults::SERVE_SESSIONS_MAX) };
    if runs.len() > defaults::RUNS_MAX || sessions > most {
        return Err(too_many(runs.len(), sessions, most));
    }
    let output = environment::output_spec(&typed.output, runs.len(), environment);
    // A search is not cut into slices.
    let rounds = if search.is_some() { 1 } else { ping::rounds(&runs) };
    Ok(StreamJob {
        plan: Plan { runs, rounds },
        key,
        gates: typed.gates.clone(),
        output,
        json: typed.json.json,
        live: typed.live.live,
        verbosity: verbosity(&typed.verbosity),
    })
}

/// Each flow of each run is one session at the peer.
const fn too_many(runs: usize, sessions: usize, most: usize) -> RequestError {
    let cause = "every size makes a run, and every flow of a run a session";
    let hint = "give fewer sizes, or fewer flows";
    match runs > defaults::RUNS_MAX {
        true => RequestError::TooMany { count: runs, noun: "runs", limit: defaults::RUNS_MAX, cause, hint },
        false => RequestError::TooMany { count: sessions, noun: "sessions", limit: most, cause, hint },
    }
}

/// Refuses options on answers: packets of a stream are counted, not answered.
fn nothing_of_answers(typed: &JudgingArgs) -> Result<(), RequestError> {
    let given =
        [("--window", typed.window.is_some()), ("--deadline", typed.deadline.is_some()), ("--half", typed.half)];
    match given.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(RequestError::OutOfPlace {
            option,
            with: "stream".into(),
            cause: "it applies to answers, and the packets of a stream are not answered",
            hint: "leave it out; each 100 ms is an interval of the recording",
        }),
        None => Ok(()),
    }
}

fn judging(typed: &JudgingArgs) -> Result<SummaryDefaults, RequestError> {
    let judging = summary::judging(typed)?;
    match typed.quantiles.as_slice() {
        [] => Ok(SummaryDefaults { quantiles: defaults::STREAM_QUANTILES.to_vec(), ..judging }),
        _ => Ok(judging),
    }
}

fn sizes(typed: &PacketArgs) -> Result<Vec<PacketSize>, RequestError> {
    match typed.size.as_slice() {
        [] => Ok(vec![PacketSize::OnePacket]),
        sizes => sizes.iter().map(|size| value::size("--size", size).map(PacketSize::Bytes)).collect(),
    }
}

fn flows(typed: &PacketArgs) -> Result<u16, RequestError> {
    let most = u64::from(defaults::STREAM_FLOWS_MAX);
    let flows = typed.flows.as_deref().map(|flows| value::whole("--flows", flows, 1..=most)).transpose()?;
    Ok(flows.map_or(defaults::STREAM_FLOWS, |flows| flows as u16))
}

fn first_port(typed: Option<&str>, flows: u16) -> Result<Option<u16>, RequestError> {
    let Some(typed) = typed else { return Ok(None) };
    let port = value::port("--source-port", typed)?;
    match port.checked_add(flows - 1) {
        Some(_) => Ok(Some(port)),
        None => {
            let cause = format!("{flows} flows need as many ports from there on");
            Err(value::unusable("--source-port", typed, cause, format!("up to {}", u16::MAX - (flows - 1))))
        }
    }
}

/// Refuses options on sockets of the kernel, where packets leave otherwise, and batches where they are calls of the kernel.
fn fits_sockets(transport: TransportKind, typed: &StreamArgs) -> Result<(), RequestError> {
    let packets = &typed.packets;
    let options = [
        ("--mode sendmmsg", packets.mode == Some(SendMode::Sendmmsg)),
        ("--mode gso", packets.mode == Some(SendMode::Gso)),
        ("--checksum off", packets.checksum == Some(false)),
        ("--connect", packets.connect),
        ("--like netperf-udp-stream", typed.like.like.is_some()),
    ];
    let batches = packets.mode == Some(SendMode::Batch);
    match options.into_iter().find(|(_, given)| *given) {
        Some((option, _)) if transport == TransportKind::Dds => Err(dds::own_sockets(option)),
        Some((option, _)) if transport == TransportKind::Xdp => Err(xdp::no_kernel_socket(option)),
        _ if transport == TransportKind::Xdp && flows(packets)? > 1 => Err(xdp::one_flow()),
        Some((option @ "--mode gso", _)) if typed.xdp.reflect == Some(Reflect::Xdp) => {
            Err(xdp::no_merged_packets(option))
        }
        _ if batches && !transport.properties().sends_batches => Err(RequestError::OutOfPlace {
            option: "--mode batch",
            with: format!("--transport {}", transport.word()),
            cause: "it applies to DDS writers and AF_XDP sockets only",
            hint: "`--mode sendmmsg` or `gso` over UDP, or `--transport dds` or `xdp`",
        }),
        _ => Ok(()),
    }
}

/// Refuses options that do not apply to a connection.
fn fits_a_connection(transport: TransportKind, typed: &StreamArgs) -> Result<(), RequestError> {
    let packets = &typed.packets;
    let by_kernel = "leave it out: over TCP the kernel forms the segments itself";
    let no_goal = "leave it out: `--rate max` shows what the path carries";
    let udp_only = "leave it out, or measure over UDP";
    let options = [
        ("--mode sendmmsg", packets.mode == Some(SendMode::Sendmmsg), "it sends datagrams", by_kernel),
        ("--mode gso", packets.mode == Some(SendMode::Gso), "it cuts datagrams", by_kernel),
        ("--checksum off", packets.checksum == Some(false), "TCP has no segment without a checksum", udp_only),
        (DOWN, packets.direction == Some(Direction::Down), "a reflector sends streams over UDP only", udp_only),
        ("--search", !typed.search.search.is_empty(), "over TCP packets are not lost: it slows down instead", no_goal),
        ("--like netperf-udp-stream", typed.like.like.is_some(), "these lines describe UDP", udp_only),
    ];
    match options.into_iter().find(|(_, given, ..)| *given) {
        Some((option, _, cause, hint)) if transport.is_connection_oriented() => {
            let with = format!("--transport {}", transport.word());
            Err(RequestError::OutOfPlace { option, with, cause, hint })
        }
        _ => Ok(()),
    }
}

fn sending(typed: &PacketArgs, transport: TransportKind) -> Result<SenderSocketOptions, RequestError> {
    let most = u64::from(defaults::STREAM_BATCH_MAX);
    let batch = typed.batch.as_deref().map(|batch| value::whole("--batch", batch, 1..=most)).transpose()?;
    let sending = SenderSocketOptions {
        mode: typed.mode.unwrap_or(SendMode::Send),
        batch: batch.map_or(defaults::STREAM_BATCH, |batch| batch as u16),
        checksum: typed.checksum.unwrap_or(true),
        connect: typed.connect || transport.is_connection_oriented(),
    };
    match sending {
        SenderSocketOptions { mode: SendMode::Gso, checksum: false, .. } => Err(RequestError::OutOfPlace {
            option: "--mode gso",
            with: "--checksum off".into(),
            cause: "the kernel must compute the checksum of every packet that it cuts (EINVAL)",
            hint: "leave out `--checksum off`, or use `--mode sendmmsg`",
        }),
        sending => Ok(sending),
    }
}

/// Resolves the direction. Down-streams have one flow without batching, over a session with a key.
fn direction(typed: &PacketArgs) -> Result<Direction, RequestError> {
    let Some(Direction::Down) = typed.direction else { return Ok(Direction::Up) };
    let options = [
        ("--flows", typed.flows.as_deref().is_some_and(|flows| flows != "1"), "a reflector sends one stream at a time"),
        ("--mode", typed.mode.is_some_and(|mode| mode != SendMode::Send), "a reflector sends packet by packet"),
        ("--batch", typed.batch.is_some(), "a reflector sends packet by packet"),
        ("--checksum off", typed.checksum == Some(false), "a reflector sends with checksums"),
        ("--connect", typed.connect, "it applies to the sender's sockets, and the other end sends"),
    ];
    if let Some((option, _, cause)) = options.into_iter().find(|(_, given, _)| *given) {
        return Err(RequestError::OutOfPlace { option, with: DOWN.into(), cause, hint: "leave one of them out" });
    }
    if typed.size.len() > 1 {
        let cause = "with `--direction down` they would alternate, but a reflector has one down-stream at a time";
        let hint = "one size for each command, or `size` as a factor of an experiment";
        return Err(value::unusable("--size", typed.size.join(","), cause, hint));
    }
    Ok(Direction::Down)
}

/// Resolves the source of the key. A down-stream requires a key even on loopback.
fn key(typed: &StreamArgs, target: &Target, direction: Direction) -> Result<KeySource, RequestError> {
    let key = path::key(&typed.way.key, target, Protocol::Native)?;
    match (direction, target, &key) {
        (Direction::Down, Target::Local, KeySource::None) => Ok(KeySource::Fresh),
        (Direction::Down, _, KeySource::None) => Err(RequestError::Alone {
            option: DOWN,
            needed: "--psk-file",
            cause: "a reflector sends streams only to hosts with its key",
            hint: "`--psk-file FILE` here, and `latlab serve --allow-down RATE --psk-file FILE` there",
        }),
        _ => Ok(key),
    }
}

/// Parses `max`, `1Gbit/s` or `500kpps`; the flag is true for bits counted on the wire.
pub(super) fn rate(typed: Option<&str>) -> Result<(Pace, bool), RequestError> {
    let Some(typed) = typed.filter(|typed| *typed != "max") else { return Ok((Pace::Max, false)) };
    let refuse = |cause: &str, hint: &str| Err(value::unusable("--rate", typed, cause, hint));
    if typed.ends_with('%') {
        return refuse("a share needs a rate", "such as `1Gbit/s`, `500kpps` or `max`");
    }
    let (number, wire) = typed.strip_suffix(":wire").map_or((typed, false), |number| (number, true));
    if number == "max" {
        return refuse("`max` has no rate that could be counted on the wire", "leave out `:wire`");
    }
    match human::parse_network_rate(number).map_err(|source| value::unreadable("--rate", source))? {
        NetworkRate::Bits(bps) => Ok((Pace::Rate { bps }, wire)),
        NetworkRate::Packets(_) if wire => refuse("packets per second are the same on the wire", "leave out `:wire`"),
        NetworkRate::Packets(pps) => Ok((Pace::Packets { pps }, false)),
    }
}

/// Refuses rates outside the supported range.
pub(super) fn can_be_offered(stream: &StreamRunSpec) -> Result<(), RequestError> {
    let refuse = |cause: &str, hint: String| Err(value::unusable("--rate", stream.rate_words(), cause, hint));
    match stream.check() {
        Ok(()) => Ok(()),
        Err(PaceError::TooSlow(least)) => {
            refuse("each flow is to have a packet in each interval of 100 ms", format!("the least is `{least}`"))
        }
        Err(PaceError::TooFast(most)) => refuse("it is more than any path carries", format!("the most is `{most}`")),
    }
}

/// Value that disables an option.
const OFF: &str = "off";

/// Resolves the rate search over `sizes` packet sizes; `None` if no search was requested.
pub(super) fn search(
    typed: &SearchArgs,
    lasting: &StreamStopArgs,
    direction: Direction,
    sizes: usize,
) -> Result<Option<RateSearchSpec>, RequestError> {
    if typed.search.is_empty() {
        return Ok(None);
    }
    if direction == Direction::Down {
        return Err(RequestError::OutOfPlace {
            option: "--search",
            with: "--direction down".into(),
            cause: "the session of a down-stream has one pace",
            hint: "start the search at the other end, or measure down at rates of your choice",
        });
    }
    if typed.search.len() > defaults::SEARCH_GOALS_MAX {
        let most = defaults::SEARCH_GOALS_MAX;
        let (typed, cause) = (typed.search.join(","), "each takes its share of the time");
        return Err(value::unusable("--search", typed, cause, format!("at most {most} loss ratios")));
    }
    let mut losses: Vec<f64> = Vec::new();
    for word in &typed.search {
        let loss = loss_ratio(word)?;
        if losses.contains(&loss) {
            return Err(value::unusable("--search", word, "it is given twice", "each loss ratio once"));
        }
        losses.push(loss);
    }
    let within = search_duration(lasting, sizes)?;
    Ok(Some(RateSearchSpec::within(&losses, within)))
}

/// Resolves the duration of a search. Each of several sizes has this duration; the sessions of the others are idle.
fn search_duration(lasting: &StreamStopArgs, sizes: usize) -> Result<Nanos, RequestError> {
    let (least, most) = (defaults::SEARCH_MIN, Nanos(defaults::SEARCH_MAX.0 / sizes.max(1) as i64));
    let Some(typed) = lasting.duration.as_deref() else { return Ok(defaults::SEARCH.min(most)) };
    let within = value::span("--duration", typed, defaults::DURATION_MAX)?;
    let cause = match within {
        within if within < least => "it is too short for the trials of a search",
        within if within > most => "all searches of one command together take 10 minutes at most",
        within => return Ok(within),
    };
    let hint = format!("from {} up to {}", typed_span(least), typed_span(most));
    Err(value::unusable("--duration", typed, cause, hint))
}

/// Parses a loss ratio such as `0` or `0.5%`. A bare `0.5` is refused because it may mean 0.5 % or 50 %, and a loss of
/// 50 % defines no usable rate.
fn loss_ratio(typed: &str) -> Result<f64, RequestError> {
    let hint = "such as `--search 0,0.5%`; a TARGET stands before `--search`";
    match parse_percent(typed) {
        Ok(loss) if loss > 0.0 && !typed.contains('%') => {
            let hint = match loss {
                loss if loss > 0.5 => format!("`{typed}%`"),
                loss => format!("write `{}` or `{typed}%`", typed_percent(loss)),
            };
            Err(value::unusable("--search", typed, "without a `%` it is ambiguous", hint))
        }
        Ok(loss) if (0.0..=0.5).contains(&loss) => Ok(loss),
        Ok(_) => Err(value::unusable("--search", typed, "more than half of the packets would be lost", "up to `50%`")),
        Err(_) => Err(value::unusable("--search", typed, "it is not a share of packets", hint)),
    }
}

/// Resolves the probes concurrent with a stream on `path`: every millisecond by default in a search, else none.
pub(super) fn search_probes(
    typed: &SearchArgs,
    path: &PathSpec,
    search: Option<&RateSearchSpec>,
) -> Result<Option<PingSpec>, RequestError> {
    let interval_ns = match typed.probe.as_deref() {
        Some(OFF) => return Ok(None),
        None if search.is_none() => return Ok(None),
        None => defaults::STREAM_PROBE_INTERVAL,
        Some(typed) => {
            let interval = value::span("--probe", typed, defaults::WARMUP)?;
            if interval < defaults::STREAM_PROBE_INTERVAL_MIN {
                let least = typed_span(defaults::STREAM_PROBE_INTERVAL_MIN);
                let cause = "so many probes would load the path";
                return Err(value::unusable("--probe", typed, cause, format!("{least} or longer, or `off`")));
            }
            interval
        }
    };
    // The requested source ports belong to the stream's flows.
    let path = PathSpec { source_port: None, ..path.clone() };
    let ping = PingSpec { path, ..PingSpec::on(Schedule::Periodic { interval_ns }) };
    Ok(Some(match search {
        Some(search) => PingSpec { timeout_ns: search.probe_timeout(), max_backlog_ns: search.probe_timeout(), ..ping },
        None => ping,
    }))
}

pub(super) fn stream_stop(lasting: &StreamStopArgs, search: Option<&RateSearchSpec>) -> Result<StopWhen, RequestError> {
    match search {
        Some(search) => Ok(StopWhen { count: None, duration_ns: Some(search.within_ns) }),
        None => schedule::stop(&StopArgs { duration: lasting.duration.clone(), ..StopArgs::default() }),
    }
}

/// Resolves the warm-up of a stream: a duration, since the packet rate is unknown beforehand. The first trial of a
/// search is a warm-up.
pub(super) fn stream_warmup(lasting: &StreamStopArgs, search: Option<&RateSearchSpec>) -> Result<Warmup, RequestError> {
    let Some(typed) = lasting.warmup.as_deref() else {
        let duration_ns = search.is_none().then_some(defaults::WARMUP);
        return Ok(Warmup { count: None, duration_ns });
    };
    let read = schedule::warmup(&StopArgs { warmup: Some(typed.into()), ..StopArgs::default() })?;
    match read.count {
        Some(_) => Err(value::unusable("--warmup", typed, "a stream is limited by time", "such as `1s`, or `0`")),
        None => Ok(read),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Command;
    use crate::diagnostics::Explain;
    use crate::plan::{EndSpec, WaitMode};

    fn resolve(line: &str) -> Result<StreamJob, RequestError> {
        let typed = ["latlab", "stream"].into_iter().chain(line.split_whitespace()).map(Into::into);
        match crate::cli::parse(typed).expect(line).command {
            Command::Stream(args) => stream(&args, &Environment::default()),
            other => panic!("{other:?}"),
        }
    }

    fn only(line: &str) -> RunSpec {
        resolve(line).expect(line).plan.runs.remove(0)
    }

    #[test]
    fn the_default_is_ten_seconds_of_one_unpaced_flow() {
        let job = resolve("").expect("defaults hold together");
        let run = &job.plan.runs[0];
        assert_eq!((job.plan.runs.len(), job.plan.rounds, &run.target), (1, 1, &Target::Local));
        assert_eq!(run.stop, StopWhen { count: None, duration_ns: Some(Nanos::from_secs(10)) });
        assert_eq!(run.warmup, Warmup { count: None, duration_ns: Some(Nanos::from_secs(1)) });
        assert_eq!((run.here, run.peer), (EndSpec::SYSTEM, Some(EndSpec::SYSTEM)));
        assert_eq!(run.stream(), Some(&StreamRunSpec::at(Pace::Max)));
        let sending = SenderSocketOptions { mode: SendMode::Send, batch: 64, checksum: true, connect: false };
        assert_eq!(run.stream().map(|stream| stream.sending), Some(sending));
    }

    #[test]
    fn rates_have_units() {
        let rate = |line: &str| only(line).stream().map(|stream| (stream.pace, stream.wire));
        for (line, expected) in [
            ("--rate max", (Pace::Max, false)),
            ("--rate 1Gbit/s", (Pace::Rate { bps: 1_000_000_000 }, false)),
            ("--rate 1Gbit/s:wire", (Pace::Rate { bps: 1_000_000_000 }, true)),
            ("--rate 500kpps", (Pace::Packets { pps: 500_000 }, false)),
        ] {
            assert_eq!(rate(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn a_search_has_goals_a_duration_and_probes() {
        let run = only("--search");
        let stream = run.stream().expect("a stream");
        let search = stream.search.as_ref().expect("asked for");
        assert_eq!((search.words().as_str(), search.within_ns), ("0,0.5%", Nanos::from_secs(60)));
        assert_eq!(run.stop, StopWhen { count: None, duration_ns: Some(Nanos::from_secs(60)) });
        assert_eq!((run.warmup.duration_ns, stream.pace), (None, Pace::Max));
        assert_eq!(run.concurrent_probes().and_then(|probes| probes.schedule.interval()), Some(Nanos::from_millis(1)));
        let run = only("lab --search 1%,0 -d 12s --rate 1Gbit/s --probe off --source-port 7000");
        let stream = run.stream().expect("a stream");
        assert_eq!(stream.rate_words(), "search 1%,0 up to 1Gbit/s");
        assert_eq!((&stream.probes, run.duration()), (&None, Some(Nanos::from_secs(12))));
        let run = only("--rate 1Mbit/s --probe 250us --source-port 7000");
        let probes = run.concurrent_probes().expect("asked for");
        assert_eq!((probes.path.source_port, probes.timeout_ns), (None, defaults::TIMEOUT));
        let sizes = resolve("--search -s 64,1472").expect("well typed").plan;
        assert_eq!((sizes.runs.len(), sizes.rounds), (2, 1));
    }

    #[test]
    fn packets_over_tcp_are_messages_of_connections() {
        let run = only("--transport tcp --checksum on --mode send --flows 2");
        assert_eq!((run.transport(), run.sessions()), (Some(TransportKind::Tcp), 2));
        assert!(run.stream().is_some_and(|stream| stream.sending.connect));
        assert_eq!(only("").transport(), Some(TransportKind::Udp));
    }

    #[test]
    fn sizes_are_interleaved_and_ends_are_set() {
        let job = resolve("lab -s 64,1472 --flows 3 --wait spin --cpu 0 --peer-cpu 1 --connect").expect("well typed");
        assert_eq!((job.plan.runs.len(), job.plan.rounds, &job.key), (2, defaults::ROUNDS, &KeySource::Fresh));
        let run = &job.plan.runs[1];
        assert_eq!(run.stream().map(|stream| (stream.size, stream.flows)), Some((PacketSize::Bytes(1_472), 3)));
        assert_eq!((run.sessions(), run.here.wait, run.here.cpu), (3, WaitMode::Spin, Some(0)));
        assert_eq!(run.peer.and_then(|peer| peer.cpu), Some(1));
        assert!(run.stream().is_some_and(|stream| stream.sending.connect));
    }

    #[test]
    fn impossible_values_are_refused_with_a_hint() {
        for (line, value, hint) in [
            ("--rate 1G", "`1G`", "Mbit/s"),
            ("--rate 90%", "`90%`", "max"),
            ("--rate fast", "`fast`", "Mbit/s"),
            ("--rate max:wire", "`max:wire`", "leave out `:wire`"),
            ("--rate 5kpps:wire", "`5kpps:wire`", ":wire"),
            ("--rate 1kbit/s", "`1kbit/s`", "117760bit/s"),
            ("--rate 5120bit/s", "`5120bit/s`", "117760bit/s"),
            ("--flows 64 --rate 320pps", "`320pps`", "640pps"),
            ("--rate 1kbit/s -s 64", "`1kbit/s`", "5120bit/s"),
            ("--rate 100Tbit/s", "`100Tbit/s`", "10Tbit/s"),
            ("--rate 9pps", "`9pps`", "10pps"),
            ("--size 23", "`23`", "24"),
            ("--size 70000", "`70000`", "65507"),
            ("--flows 0", "`0`", "64"),
            ("--flows 65", "`65`", "64"),
            ("--batch 0", "`0`", "1024"),
            ("--batch 1025", "`1025`", "1024"),
            ("--mode gso --checksum off", "`--mode gso`", "sendmmsg"),
            ("--transport tcp --mode gso", "`--mode gso`", "leave it out"),
            ("--transport tcp --mode sendmmsg", "`--mode sendmmsg`", "leave it out"),
            ("--transport tcp --checksum off", "`--checksum off`", "over UDP"),
            ("--transport tcp --direction down", "`--direction down`", "over UDP"),
            ("--transport tcp --search", "`--search`", "--rate max"),
            ("--transport tcp --like netperf-udp-stream", "`--transport tcp`", "over UDP"),
            ("--transport tcp --df", "`--df`", "leave it out"),
            ("--mode batch", "`--mode batch`", "--transport dds"),
            ("--transport tcp --mode batch", "`--mode batch`", "--transport dds"),
            ("--transport dds --mode gso", "`--mode gso`", "leave it out"),
            ("--transport dds --checksum off", "`--checksum off`", "leave it out"),
            ("--transport xdp --mode gso", "`--mode gso`", "leave it out"),
            ("--direction down --flows 2", "`--flows`", "leave one"),
            ("--direction down --mode gso", "`--mode`", "leave one"),
            ("--direction down --batch 8", "`--batch`", "leave one"),
            ("--direction down -s 200,700", "`200,700`", "one size"),
            ("127.0.0.1 --direction down", "--direction down", "--allow-down"),
            ("ssh:pi3 --flows 64 --size 64,100", "128 sessions", "fewer flows"),
            ("--warmup 500", "`500`", "1s"),
            ("--window 1s", "`--window`", "leave it out"),
            ("--half", "`--half`", "leave it out"),
            ("--search lab", "`lab`", "TARGET"),
            ("--search 60%", "`60%`", "50%"),
            ("--search 0,1%,0", "`0`", "once"),
            ("--search 0,1%,2%,3%,4%", "`0,1%,2%,3%,4%`", "at most 4"),
            ("--search -d 9s", "`9s`", "from 10s"),
            ("--search -d 11m", "`11m`", "up to 10m"),
            ("--search -d 6m -s 64,1472", "`6m`", "5m"),
            ("--search --direction down", "`--search`", "other end"),
            ("--probe 10us", "`10us`", "100us"),
            ("--probe often", "`often`", "`250us`"),
            ("--probe 2s", "`2s`", "up to 1s"),
            ("--source-port 65535 --flows 2", "`65535`", "65534"),
            ("192.0.2.9", "`192.0.2.9:9862`", "keygen"),
            ("127.0.0.1 --peer-cpu 1", "`127.0.0.1:9862`", "serve --cpu"),
            ("cmd:latlab", "`cmd:`", "--peer-addr"),
        ] {
            let error = resolve(line).expect_err(line);
            assert!(error.to_string().contains(value), "{line}: {error}");
            assert!(
                error.explain().hint.is_some_and(|found| found.contains(hint)),
                "{line}: {:?}",
                error.explain().hint
            );
            assert_eq!(error.explain().exit_code, 2);
        }
    }
}
