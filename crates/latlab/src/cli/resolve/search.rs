//! `--search` and `--probe`: what a stream looks for.

use super::{RequestError, schedule, value};
use crate::cli::args::{SearchArgs, StopArgs, StreamStopArgs};
use crate::plan::Schedule;
use crate::plan::{Direction, PathSpec, PingSpec, RateSearchSpec, StopWhen, Warmup, defaults};
use crate::units::Nanos;
use crate::units::human::{parse_percent, typed_percent, typed_span};

/// The option without a rate to look for.
const OFF: &str = "off";

/// What a search is for and how long it may take; none where none was asked for.
pub(super) fn search(
    typed: &SearchArgs,
    lasting: &StreamStopArgs,
    (direction, sizes): (Direction, usize),
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
        let (typed, cause) = (typed.search.join(","), "each of them takes its share of the time");
        return Err(value::unusable("--search", typed, cause, format!("at most {most} loss ratios")));
    }
    let mut losses: Vec<f64> = Vec::new();
    for word in &typed.search {
        let loss = loss(word)?;
        if losses.contains(&loss) {
            return Err(value::unusable("--search", word, "it stands there twice", "each loss ratio once"));
        }
        losses.push(loss);
    }
    let within = within(lasting, sizes)?;
    Ok(Some(RateSearchSpec::within(&losses, within)))
}

/// How long it may take; each of several sizes has that time, and the sessions of the others rest meanwhile.
fn within(lasting: &StreamStopArgs, sizes: usize) -> Result<Nanos, RequestError> {
    let (least, most) = (defaults::SEARCH_MIN, Nanos(defaults::SEARCH_MAX.0 / sizes.max(1) as i64));
    let Some(typed) = lasting.duration.as_deref() else { return Ok(defaults::SEARCH.min(most)) };
    let within = value::span("--duration", typed, defaults::DURATION_MAX)?;
    let cause = match within {
        within if within < least => "it is too short for the trials of a search",
        within if within > most => "searches of one command take 10 minutes at most, all sizes together",
        within => return Ok(within),
    };
    let hint = format!("from {} up to {}", typed_span(least), typed_span(most));
    Err(value::unusable("--duration", typed, cause, hint))
}

/// A share of packets that may be lost: `0`, `0.5%`. A search for half of all packets finds what is no rate. A bare `0.5` is
/// as likely meant for half a per cent as for a half.
fn loss(typed: &str) -> Result<f64, RequestError> {
    let hint = "such as `--search 0,0.5%`; a TARGET stands before `--search`";
    match parse_percent(typed) {
        Ok(loss) if loss > 0.0 && !typed.contains('%') => {
            let hint = match loss {
                loss if loss > 0.5 => format!("`{typed}%`"),
                loss => format!("`{}` or `{typed}%`, whichever is meant", typed_percent(loss)),
            };
            Err(value::unusable("--search", typed, "without a `%` it may be a share or a percentage", hint))
        }
        Ok(loss) if (0.0..=0.5).contains(&loss) => Ok(loss),
        Ok(_) => Err(value::unusable("--search", typed, "more than half of the packets would be lost", "up to `50%`")),
        Err(_) => Err(value::unusable("--search", typed, "it is no share of packets", hint)),
    }
}

/// The probes beside a stream on `path`: every millisecond beside a search, else none unless asked for.
pub(super) fn probes(
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
                let cause = "so many probes are a load of their own";
                return Err(value::unusable("--probe", typed, cause, format!("{least} or longer, or `off`")));
            }
            interval
        }
    };
    // The stream's flows have the ports that were asked for.
    let path = PathSpec { source_port: None, ..path.clone() };
    let ping = PingSpec { path, ..PingSpec::on(Schedule::Periodic { interval_ns }) };
    Ok(Some(match search {
        Some(search) => PingSpec { timeout_ns: search.probe_timeout(), max_backlog_ns: search.probe_timeout(), ..ping },
        None => ping,
    }))
}

/// When a stream ends.
pub(super) fn stop(lasting: &StreamStopArgs, search: Option<&RateSearchSpec>) -> Result<StopWhen, RequestError> {
    match search {
        Some(search) => Ok(StopWhen { count: None, duration_ns: Some(search.within_ns) }),
        None => schedule::stop(&StopArgs { duration: lasting.duration.clone(), ..StopArgs::default() }),
    }
}

/// How long packets are sent before any count: a time, since how many packets leave in it is what is to be found out. The
/// first trial of a search is one.
pub(super) fn warmup(lasting: &StreamStopArgs, search: Option<&RateSearchSpec>) -> Result<Warmup, RequestError> {
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
