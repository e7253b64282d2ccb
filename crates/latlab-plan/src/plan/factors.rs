//! The factors of a run: what distinguishes the runs of two conditions, and how each is worded.
//!
//! Everything is read from the [`RunSpec`]. A new factor is a row of `FACTORS`; levels, headings, names of runs and the member
//! of the JSON document derive from that row.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::dds::{DdsSpec, History};
use super::defaults;
use super::experiment::Factors;
use super::path::Family;
use super::ping::{Protocol, Schedule};
use super::run::{RunSpec, WaitMode};
use super::stream::{Direction, Pace, SendMode};
use super::transport::TransportKind;
use crate::units::Nanos;
use crate::units::human::{bytes, span};

/// What a run has of a factor: the text by which runs are grouped, and the value of the JSON document.
struct Level {
    text: String,
    value: Value,
}

impl Level {
    fn word(text: impl Into<String>) -> Level {
        let text = text.into();
        Level { value: json!(text), text }
    }

    fn number<T: ToString + Serialize>(number: T) -> Level {
        Level { text: number.to_string(), value: json!(number) }
    }

    fn switch(on: bool) -> Level {
        Level { text: if on { "on" } else { "off" }.into(), value: json!(on) }
    }

    fn span(length: Nanos) -> Level {
        Level { text: span(length), value: json!(length) }
    }
}

/// The condition of a run: the levels of its factors.
impl RunSpec {
    /// The levels as the member `condition` of a summary and of a manifest. What its kind of run does not have is left out,
    /// but for the interval and the source port, which are null.
    pub fn condition(&self) -> Map<String, Value> {
        let member = |factor: &Factor| {
            let is_stated = factor.name == "interval" || factor.name == "source-port";
            let value = (factor.level)(self).map(|level| level.value).or_else(|| is_stated.then_some(Value::Null));
            Some((factor.member.to_owned(), value?))
        };
        let mut members: Map<String, Value> = factors().filter(|it| !it.member.is_empty()).filter_map(member).collect();
        members.insert("loads".into(), self.loads.iter().map(ToString::to_string).collect());
        members.insert("settings".into(), json!(self.values_of_settings()));
        members.insert("tags".into(), json!(self.tags));
        members
    }

    /// Settings to be made: `KNOB[:DEV][@WHERE]` → value.
    pub fn values_of_settings(&self) -> BTreeMap<String, String> {
        self.settings.iter().map(|set| (set.place(), set.setting.to_string())).collect()
    }

    /// The loads, `cpu=80% + mem=max`; `None` without any.
    pub fn loads_words(&self) -> Option<String> {
        let loads: Vec<String> = self.loads.iter().map(ToString::to_string).collect();
        (!loads.is_empty()).then(|| loads.join(" + "))
    }

    /// Factor → level, that of a factor which is absent, or which a log does not state, being `none`. The load of a log is
    /// `unknown`: `none` is that of an idle host. Settings and tags are factors of their own: `setting:mtu`, `tag:host`.
    pub fn levels(&self) -> Factors {
        let level = |factor: &Factor| {
            let level = (factor.level)(self).map_or_else(|| "none".into(), |level| level.text);
            (factor.name.to_owned(), level)
        };
        let settings = self.values_of_settings().into_iter().map(|(knob, value)| (format!("setting:{knob}"), value));
        let tags = self.tags.iter().map(|(key, value)| (format!("tag:{key}"), value.clone()));
        factors().map(level).chain(settings).chain(tags).collect()
    }

    /// The parts of a heading, `None` where this run has nothing to say; `family` is that of its path.
    pub fn heading(&self, family: Option<Family>) -> Vec<Option<String>> {
        let words = |factor: &Factor| {
            let words = (factor.heading)(self)?;
            let family = family.filter(|_| factor.name == TRANSPORT);
            Some(family.map_or(words.clone(), |family| format!("{words} {}", family.word())))
        };
        let joined = |all: String, words: String| format!("{all}, {words}");
        FACTORS.iter().map(|part| part.iter().filter_map(words).reduce(joined)).collect()
    }

    /// The parts of a line that describes this run in a list: size or timer call, schedule, what is not the default, loads,
    /// settings, tags.
    pub fn listed(&self, family: Option<Family>) -> Vec<String> {
        let what = command(self).or_else(|| via(self)).or_else(|| size(self));
        let when = rate(self).or_else(|| schedule(self));
        let parts = [what, when, self.unusual(family), self.loads_words()];
        parts.into_iter().flatten().chain(self.notes()).collect()
    }

    /// How packets travel and leave, as far as that is not the default: what distinguishes runs of one size and rate.
    fn unusual(&self, family: Option<Family>) -> Option<String> {
        let mut all = Vec::new();
        for factor in factors() {
            all.extend((factor.unusual)(self));
            let ipv6 = family.filter(|family| factor.name == TRANSPORT && *family == Family::Ipv6);
            all.extend(ipv6.map(|family| family.word().to_owned()));
        }
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// For each of `runs` its levels of the factors in which they differ, as one text, which may be empty.
    pub fn labels(runs: &[&RunSpec]) -> Vec<String> {
        let differs = |factor: &&Factor| runs.windows(2).any(|pair| factor.words(pair[0]) != factor.words(pair[1]));
        let factors: Vec<_> = factors().filter(differs).collect();
        // Once for all runs: there may be 10,000 of them.
        let shared = shared_notes(runs);
        let label = |run: &&RunSpec| {
            let notes = run.notes().into_iter().filter(|noted| !shared.contains(noted));
            factors.iter().filter_map(|factor| factor.words(run)).chain(notes).collect::<Vec<_>>().join(" · ")
        };
        runs.iter().map(label).collect()
    }

    /// Settings and tags as typed: `mtu=1500`, `build=4f2a`.
    fn notes(&self) -> Vec<String> {
        let settings = self.values_of_settings();
        settings.iter().chain(&self.tags).map(|(key, value)| format!("{key}={value}")).collect()
    }

    /// The (mean) interval of its schedule; of a log, what it states.
    pub fn interval(&self) -> Option<Nanos> {
        self.import().map_or_else(|| self.schedule().interval(), |import| import.interval_ns)
    }

    fn dds(&self) -> Option<DdsSpec> {
        self.path().and_then(|path| path.dds)
    }
}

/// The notes that all of `runs` have.
fn shared_notes(runs: &[&RunSpec]) -> BTreeSet<String> {
    let mut shared = runs.first().map(|first| BTreeSet::from_iter(first.notes())).unwrap_or_default();
    for run in runs {
        let own = run.notes();
        shared.retain(|noted| own.contains(noted));
    }
    shared
}

/// A name for each of several runs: its label, with the short id of its recording if other runs have the same label, or the
/// name of its recording if the label is empty.
pub fn distinct_names(labels: Vec<String>, recordings: &[String]) -> Vec<String> {
    let short = |name: &String| name.rsplit('-').next().unwrap_or(name).to_owned();
    let ids: Vec<String> = recordings.iter().map(short).collect();
    let are_distinct = ids.iter().collect::<BTreeSet<_>>().len() == ids.len();
    let ids = if are_distinct { &ids } else { recordings };
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    labels.iter().for_each(|label| *counts.entry(label).or_default() += 1);
    let name = |(number, label): (usize, &String)| match label {
        label if label.is_empty() => recordings[number].clone(),
        label if counts[label] > 1 => format!("{label} · {}", ids[number]),
        label => label.clone(),
    };
    labels.iter().enumerate().map(name).collect()
}

/// A factor, and the words for its level.
struct Factor {
    /// The word of its option, without dashes.
    name: &'static str,
    /// Its member of the JSON document, with the unit; empty if it has none.
    member: &'static str,
    /// The level by which `compare --by` groups runs.
    level: fn(&RunSpec) -> Option<Level>,
    heading: Words,
    /// The words where runs of one size and rate are listed; `None` for the default level.
    unusual: Words,
    /// The words that distinguish a run from others, if those for a heading do not.
    label: Words,
}

/// Words for the level of a run; `None` if there is nothing to say.
type Words = fn(&RunSpec) -> Option<String>;

impl Factor {
    const fn new(name: &'static str) -> Factor {
        Factor { name, member: name, level: |_| None, heading: |_| None, unusual: |_| None, label: |_| None }
    }

    const fn member(member: &'static str, name: &'static str) -> Factor {
        Factor { member, ..Factor::new(name) }
    }

    /// The words for the level of `run` among runs that differ in it.
    fn words(&self, run: &RunSpec) -> Option<String> {
        (self.label)(run).or_else(|| (self.heading)(run)).or_else(|| (self.unusual)(run))
    }
}

fn factors() -> impl Iterator<Item = &'static Factor> {
    FACTORS.iter().copied().flatten()
}

/// The place of the factor `name` in headings; settings and tags come last.
pub fn heading_order(name: &str) -> usize {
    factors().position(|factor| factor.name == name).unwrap_or(usize::MAX)
}

/// The factor that is shown with the family of the path.
const TRANSPORT: &str = "transport";

/// Every factor, in the order of headings. Those of one row are one part of a heading.
static FACTORS: [&[Factor]; 15] = [
    &[Factor {
        level: |run| Some(Level::word(run.target.to_string())),
        label: |run| Some(run.target.to_string()),
        ..Factor::new("target")
    }],
    &[Factor {
        level: |run| command(run).map(Level::word),
        heading: command,
        label: command,
        ..Factor::new("command")
    }],
    &[
        Factor { level: |run| via(run).map(Level::word), heading: via, label: via, ..Factor::new("via") },
        Factor {
            level: |run| run.wakeup().map(|wakeup| Level::switch(wakeup.relative)),
            heading: |run| run.wakeup().filter(|wakeup| wakeup.relative).map(|_| "relative".into()),
            ..Factor::new("relative")
        },
        Factor {
            level: |run| run.here.fifo.map(Level::number),
            heading: |run| run.here.fifo.map(|priority| format!("fifo {priority}")),
            ..Factor::new("fifo")
        },
    ],
    &[
        Factor {
            level: |run| transport(run).map(Level::word),
            heading: transport,
            unusual: |run| transport(run).filter(|_| run.transport() != Some(TransportKind::Udp)),
            ..Factor::new(TRANSPORT)
        },
        Factor {
            level: |run| run.path()?.xdp.map(|xdp| Level::word(xdp.reflect.word())),
            heading: reflect,
            unusual: reflect,
            ..Factor::new("reflect")
        },
        Factor {
            level: |run| {
                let reliability = run.dds()?.reliability;
                Some(Level { text: reliability.word().into(), value: json!(reliability) })
            },
            heading: reliability,
            unusual: reliability,
            ..Factor::new("reliability")
        },
        Factor {
            level: |run| run.dds().map(|dds| Level::switch(dds.keyed)),
            heading: keyed,
            unusual: keyed,
            ..Factor::new("keyed")
        },
        Factor {
            level: |run| run.dds().map(|dds| Level::word(dds.history.to_string())),
            heading: history,
            unusual: history,
            ..Factor::new("history")
        },
        Factor {
            level: |run| run.dds()?.message_bytes.map(Level::number),
            heading: message_bytes,
            unusual: message_bytes,
            ..Factor::member("message_bytes", "dds-message-size")
        },
    ],
    &[Factor {
        level: |run| run.ping().map(|ping| Level::word(ping.protocol.word())),
        heading: |run| run.ping().map(|ping| ping.protocol).filter(is_echo).map(|echo| echo.word().into()),
        ..Factor::new("protocol")
    }],
    &[Factor {
        level: |run| run.size_bytes().map(Level::number),
        heading: size,
        label: size,
        ..Factor::member("size_bytes", "size")
    }],
    &[Factor {
        level: |run| run.path()?.source_port.map(Level::number),
        label: |run| run.path()?.source_port.map(|port| format!("port {port}")),
        ..Factor::member("source_port", "source-port")
    }],
    &[
        Factor { level: |run| Some(Level::word(when(run))), ..Factor::new("schedule") },
        Factor {
            level: |run| run.interval().map(Level::span),
            heading: schedule,
            label: |run| run.wakeup().and(run.interval()).map(span),
            ..Factor::member("interval_ns", "interval")
        },
        Factor {
            level: |run| rate(run).map(Level::word),
            heading: |run| rate(run).map(|rate| if rate == "max" { "as fast as sends go".into() } else { rate }),
            label: rate,
            ..Factor::new("rate")
        },
    ],
    &[
        Factor {
            level: |run| mode(run).map(Level::word),
            heading: mode,
            unusual: |run| mode(run).filter(|mode| mode != SendMode::Send.word()),
            label: mode,
            ..Factor::new("mode")
        },
        Factor {
            level: |run| run.stream().map(|stream| Level::number(stream.sending.batch)),
            unusual: |run| {
                let most = run.stream()?.sending.batch;
                (most != defaults::STREAM_BATCH).then(|| format!("batch {most}"))
            },
            ..Factor::new("batch")
        },
        Factor {
            level: |run| run.stream().map(|stream| Level::number(stream.flows)),
            heading: flows,
            unusual: flows,
            ..Factor::new("flows")
        },
        Factor {
            level: |run| run.stream().map(|stream| Level::switch(stream.sending.checksum)),
            heading: no_checksum,
            unusual: no_checksum,
            ..Factor::new("checksum")
        },
        Factor {
            level: |run| run.stream().map(|stream| Level::switch(stream.sending.connect)),
            // Over TCP every sender is connected.
            unusual: |run| {
                let stream = run.stream().filter(|stream| stream.transport == TransportKind::Udp)?;
                stream.sending.connect.then(|| "connected".into())
            },
            ..Factor::new("connect")
        },
        Factor {
            level: |run| run.stream().map(|stream| Level::word(stream.direction.word())),
            heading: down,
            unusual: down,
            ..Factor::new("direction")
        },
    ],
    &[Factor {
        level: |run| run.concurrent_wakeups().map(|wakeups| Level::span(wakeups.interval_ns)),
        heading: |run| Some(format!("wake-ups every {}", span(run.concurrent_wakeups()?.interval_ns))),
        ..Factor::member("with_wakeup_ns", "with-wakeup")
    }],
    &[Factor {
        level: |run| run.ping()?.stamps.map(|layer| Level::word(layer.word())),
        heading: |run| Some(format!("stamps of the {}", run.ping()?.stamps?.word())),
        ..Factor::member("stamps", "stamps")
    }],
    &[Factor {
        level: |run| run.trace.then(|| Level::switch(true)),
        heading: |run| run.trace.then(|| "traced".into()),
        ..Factor::member("trace", "trace")
    }],
    &[Factor {
        level: |run| run.concurrent_probes()?.schedule.interval().map(Level::span),
        heading: probes,
        unusual: probes,
        ..Factor::member("probe_ns", "probe")
    }],
    &[Factor {
        level: |run| wait(run).map(|wait| Level::word(wait.word())),
        unusual: |run| wait(run).filter(|wait| *wait != WaitMode::Block).map(|wait| wait.word().into()),
        label: |run| wait(run).map(|wait| wait.word().into()),
        ..Factor::new("wait")
    }],
    &[Factor {
        level: |run| run.loads_words().or_else(|| run.import().map(|_| UNKNOWN.into())).map(Level::word),
        label: |run| run.loads_words().or_else(|| run.import().is_none().then(|| "no load".into())),
        ..Factor::member("", "load")
    }],
];

/// The schedule of a log, which may state an interval, and its load.
const UNKNOWN: &str = "unknown";

/// `closed`, `periodic` or `poisson`; of a stream `paced`, `max` or `search`; of an imported log `unknown`.
fn when(run: &RunSpec) -> &'static str {
    match run.stream() {
        Some(stream) if stream.search.is_some() => "search",
        Some(stream) if stream.pace == Pace::Max => "max",
        Some(_) => "paced",
        None if run.import().is_some() => UNKNOWN,
        None => run.schedule().word(),
    }
}

fn schedule(run: &RunSpec) -> Option<String> {
    if run.stream().is_some() || run.command().is_some() {
        return None;
    }
    Some(match (run.schedule(), run.interval()) {
        (_, None) if run.import().is_some() => return None,
        (_, None) => "closed loop".into(),
        (Schedule::Poisson { .. }, Some(mean)) => format!("poisson, {} on average", span(mean)),
        (_, Some(interval)) => format!("every {}", span(interval)),
    })
}

/// The rate of a stream as typed.
fn rate(run: &RunSpec) -> Option<String> {
    Some(run.stream()?.rate_words())
}

/// How this end waits for datagrams.
fn wait(run: &RunSpec) -> Option<WaitMode> {
    run.path().map(|_| run.here.wait)
}

fn transport(run: &RunSpec) -> Option<String> {
    run.transport().map(|transport| transport.word().into())
}

fn is_echo(protocol: &Protocol) -> bool {
    *protocol == Protocol::Echo
}

fn reflect(run: &RunSpec) -> Option<String> {
    run.path()?.xdp.map(|xdp| format!("reflector {}", xdp.reflect.word()))
}

fn reliability(run: &RunSpec) -> Option<String> {
    Some(run.dds()?.reliability.word().into())
}

fn keyed(run: &RunSpec) -> Option<String> {
    run.dds()?.keyed.then(|| "keyed".into())
}

fn history(run: &RunSpec) -> Option<String> {
    run.dds().map(|dds| dds.history).filter(|history| *history != History::default()).map(|history| history.to_string())
}

fn message_bytes(run: &RunSpec) -> Option<String> {
    run.dds()?.message_bytes.map(|most| format!("messages of {}", bytes(most.into())))
}

fn command(run: &RunSpec) -> Option<String> {
    Some(run.command()?.in_shell())
}

fn via(run: &RunSpec) -> Option<String> {
    Some(run.wakeup()?.via.word().into())
}

fn size(run: &RunSpec) -> Option<String> {
    run.size_bytes().map(|size| bytes(size.into()))
}

fn mode(run: &RunSpec) -> Option<String> {
    Some(run.stream()?.sending.mode.word().into())
}

fn flows(run: &RunSpec) -> Option<String> {
    run.stream().filter(|stream| stream.flows > 1).map(|stream| format!("{} flows", stream.flows))
}

fn no_checksum(run: &RunSpec) -> Option<String> {
    run.stream().filter(|stream| !stream.sending.checksum).map(|_| "no checksum".into())
}

fn down(run: &RunSpec) -> Option<String> {
    run.stream().filter(|stream| stream.direction == Direction::Down).map(|stream| stream.direction.word().into())
}

fn probes(run: &RunSpec) -> Option<String> {
    let interval = run.concurrent_probes()?.schedule.interval()?;
    Some(format!("probes every {}", span(interval)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ImportSpec, Kind, PingSpec, StreamRunSpec, Via, WakeupCpus, WakeupSpec, Work};

    #[test]
    fn the_fifo_priority_is_a_factor_of_every_kind() {
        let wakeup = WakeupSpec {
            via: Via::Select,
            interval_ns: Nanos::from_millis(1),
            relative: false,
            cpus: WakeupCpus::Anywhere,
            break_ns: None,
        };
        for work in [
            Work::Ping(PingSpec::on(Schedule::Closed)),
            Work::Wakeup(wakeup),
            Work::Stream(StreamRunSpec::at(Pace::Max)),
        ] {
            let mut run = RunSpec::here(work);
            assert_eq!(run.levels()["fifo"], "none");
            run.here.fifo = Some(10);
            assert_eq!(run.levels()["fifo"], "10", "{run:?}");
            let heading: Vec<String> = run.heading(None).into_iter().flatten().collect();
            assert!(heading.iter().any(|part| part.ends_with("fifo 10")), "{heading:?}");
        }
    }

    #[test]
    fn the_load_of_a_log_is_unknown_and_not_that_of_an_idle_host() {
        let idle = RunSpec::here(Work::Ping(PingSpec::on(Schedule::Closed)));
        let import = ImportSpec {
            format: "irtt".into(),
            file: "irtt.json".into(),
            rows: Kind::Ping,
            metric: None,
            unit: None,
            column: None,
            direction: None,
            ordered: true,
            states_losses: true,
            unit_assumed: false,
            halves_doubled: false,
            size_bytes: None,
            interval_ns: None,
            resolution_ns: None,
        };
        let (measured, log) = (idle, RunSpec::imported(import, "irtt", BTreeMap::new()));
        let levels = log.levels();
        let of_log = ["load", "wait", "transport", "size", "via"].map(|factor| levels[factor].as_str());
        assert_eq!(of_log, ["unknown", "none", "none", "none", "none"]);
        assert_eq!(measured.levels()["load"], "none");
        assert_eq!(
            RunSpec::labels(&[&measured, &log]),
            ["local · udp · 64 B · closed loop · block · no load", "log of irtt"]
        );
    }
}
