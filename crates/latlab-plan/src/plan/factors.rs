//! The factors of a run: what distinguishes the runs of two conditions, and how each is worded.
//!
//! [`Condition`] holds their levels, `FACTORS` their names and words. A new factor is a field of the one, filled in
//! [`Condition::of`], and a row of the other; grouping, headings and names of runs derive from that row.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::dds::{History, Reliability};
use super::defaults;
use super::path::Family;
use super::ping::Protocol;
use super::run::{RunSpec, WaitMode};
use super::stream::{Direction, Pace, SendMode, StreamRunSpec};
use super::wakeup::Via;
use crate::units::Nanos;
use crate::units::human::{bytes, span};

/// The levels of all factors of one run, flat, as the JSON document shows them. A factor that its kind of run does not
/// have is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// `local`, `lab`, `HOST:PORT`, `ssh:HOST` or `cmd:COMMAND`.
    pub target: String,
    /// `udp`, `tcp`, `dds` or `xdp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Past the network stack: what answers, `socket`, `xdp` or `xdp-tx`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reflect: Option<String>,
    /// Over DDS: RELIABILITY, `best_effort` or `reliable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability: Option<Reliability>,
    /// Over DDS: whether the type has a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyed: Option<bool>,
    /// Over DDS: HISTORY as typed, `keep-last:16` or `keep-all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u32>,
    /// How this end waits for datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitMode>,
    /// How threads ask to be woken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// Whether threads sleep for an interval, instead of until the next slot of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative: Option<bool>,
    /// SCHED_FIFO priority of the measuring threads; `None` under the default scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fifo: Option<u8>,
    /// The rate of a stream as typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// By which call the packets of a stream are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SendMode>,
    /// Packets in one call at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u16>,
    /// Whether packets have UDP checksums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<bool>,
    /// Whether the sockets of the sender are connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<bool>,
    /// Which way the packets of a stream go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Interval of the probes during a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_ns: Option<Nanos>,
    /// `closed`, `periodic` or `poisson`; of a stream `paced`, `max` or `search`; of an imported log `unknown`.
    pub schedule: String,
    /// The (mean) interval of a schedule.
    pub interval_ns: Option<Nanos>,
    /// Interval of the wake-ups during a run of probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_wakeup_ns: Option<Nanos>,
    /// The source port, if one was asked for.
    pub source_port: Option<u16>,
    /// Loads asked for, in the words of the command line.
    pub loads: Vec<String>,
    /// Settings made: `KNOB[:DEV][@WHERE]` → value.
    pub settings: BTreeMap<String, String>,
    /// Tags given by the user.
    pub tags: BTreeMap<String, String>,
}

impl Condition {
    /// The condition that `spec` asks for.
    pub fn of(spec: &RunSpec) -> Condition {
        let (ping, wakeup, stream) = (spec.ping(), spec.wakeup(), spec.stream());
        let dds = spec.path().and_then(|path| path.dds);
        Condition {
            target: spec.target.to_string(),
            transport: spec.transport().map(|transport| transport.word().into()),
            reflect: spec.path().and_then(|path| path.xdp).map(|xdp| xdp.reflect.word().into()),
            reliability: dds.map(|dds| dds.reliability),
            keyed: dds.map(|dds| dds.keyed),
            history: dds.map(|dds| dds.history.to_string()),
            protocol: ping.map(|ping| match ping.protocol {
                Protocol::Native => "native".into(),
                Protocol::Echo => "echo".into(),
            }),
            size_bytes: spec.size_bytes(),
            wait: spec.path().map(|_| spec.here.wait),
            via: wakeup.map(|wakeup| wakeup.via),
            relative: wakeup.map(|wakeup| wakeup.relative),
            fifo: spec.here.fifo,
            rate: stream.map(StreamRunSpec::rate_words),
            mode: stream.map(|stream| stream.sending.mode),
            batch: stream.map(|stream| stream.sending.batch),
            flows: stream.map(|stream| stream.flows),
            checksum: stream.map(|stream| stream.sending.checksum),
            connect: stream.map(|stream| stream.sending.connect),
            direction: stream.map(|stream| stream.direction),
            probe_ns: spec.concurrent_probes().and_then(|probes| probes.schedule.interval()),
            schedule: match stream {
                Some(StreamRunSpec { search: Some(_), .. }) => "search".into(),
                Some(stream) if stream.pace == Pace::Max => "max".into(),
                Some(_) => "paced".into(),
                None if spec.import().is_some() => UNKNOWN.into(),
                None => spec.schedule().word().into(),
            },
            interval_ns: spec.import().map_or_else(|| spec.schedule().interval(), |import| import.interval_ns),
            with_wakeup_ns: spec.concurrent_wakeups().map(|wakeups| wakeups.interval_ns),
            source_port: spec.path().and_then(|path| path.source_port),
            loads: spec.loads.iter().map(ToString::to_string).collect(),
            settings: spec.settings.iter().map(|set| (set.place(), set.setting.to_string())).collect(),
            tags: spec.tags.clone(),
        }
    }

    /// Factor → level, that of a factor which is absent, or which a log does not state, being `none`. The load of a log is
    /// `unknown`: `none` is that of an idle host. Settings and tags are factors of their own: `setting:mtu`, `tag:host`.
    pub fn levels(&self) -> BTreeMap<String, String> {
        let level = |factor: &Factor| {
            let level = (factor.level)(self).unwrap_or_else(|| "none".into());
            (factor.name.to_owned(), level)
        };
        let settings = self.settings.iter().map(|(knob, value)| (format!("setting:{knob}"), value.clone()));
        let tags = self.tags.iter().map(|(key, value)| (format!("tag:{key}"), value.clone()));
        factors().map(level).chain(settings).chain(tags).collect()
    }

    fn is_of_log(&self) -> bool {
        self.schedule == UNKNOWN
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
        let what = via(self).or_else(|| size(self));
        let when = self.rate.clone().or_else(|| schedule(self));
        let parts = [what, when, self.unusual(family), loads(self)];
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
    pub fn labels(runs: &[&Condition]) -> Vec<String> {
        let differs = |factor: &&Factor| runs.windows(2).any(|pair| factor.words(pair[0]) != factor.words(pair[1]));
        let factors: Vec<_> = factors().filter(differs).collect();
        // Once for all runs: there may be 10,000 of them.
        let shared = shared_notes(runs);
        let label = |run: &&Condition| {
            let notes = run.notes().into_iter().filter(|noted| !shared.contains(noted));
            factors.iter().filter_map(|factor| factor.words(run)).chain(notes).collect::<Vec<_>>().join(" · ")
        };
        runs.iter().map(label).collect()
    }

    /// Settings and tags as typed: `mtu=1500`, `build=4f2a`.
    fn notes(&self) -> Vec<String> {
        self.settings.iter().chain(&self.tags).map(|(key, value)| format!("{key}={value}")).collect()
    }
}

/// The notes that all of `runs` have.
fn shared_notes(runs: &[&Condition]) -> BTreeSet<String> {
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
    /// The level by which `compare --by` groups runs.
    level: Words,
    /// The words for a heading.
    heading: Words,
    /// The words where runs of one size and rate are listed; `None` for the default level.
    unusual: Words,
    /// The words that distinguish a run from others, if those for a heading do not.
    label: Words,
}

/// Words for the level of a condition; `None` if there is nothing to say.
type Words = fn(&Condition) -> Option<String>;

impl Factor {
    const fn new(name: &'static str) -> Factor {
        Factor { name, level: |_| None, heading: |_| None, unusual: |_| None, label: |_| None }
    }

    /// The words for the level of `run` among runs that differ in it.
    fn words(&self, run: &Condition) -> Option<String> {
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

/// The schedule of a log, which may state an interval, and its load.
const UNKNOWN: &str = "unknown";

/// The factor that is shown with the family of the path.
const TRANSPORT: &str = "transport";

/// Every factor, in the order of headings. Those of one row are one part of a heading.
static FACTORS: [&[Factor]; 12] = [
    &[Factor { level: |run| Some(run.target.clone()), label: |run| Some(run.target.clone()), ..Factor::new("target") }],
    &[
        Factor { level: via, heading: via, label: via, ..Factor::new("via") },
        Factor {
            level: |run| on_or_off(run.relative),
            heading: |run| (run.relative == Some(true)).then(|| "relative".into()),
            ..Factor::new("relative")
        },
        Factor {
            level: |run| number(run.fifo),
            heading: |run| run.fifo.map(|priority| format!("fifo {priority}")),
            ..Factor::new("fifo")
        },
    ],
    &[
        Factor {
            level: |run| run.transport.clone(),
            heading: |run| run.transport.clone(),
            unusual: |run| run.transport.clone().filter(|transport| transport != "udp"),
            ..Factor::new(TRANSPORT)
        },
        Factor { level: |run| run.reflect.clone(), heading: reflect, unusual: reflect, ..Factor::new("reflect") },
        Factor { level: reliability, heading: reliability, unusual: reliability, ..Factor::new("reliability") },
        Factor { level: |run| on_or_off(run.keyed), heading: keyed, unusual: keyed, ..Factor::new("keyed") },
        Factor { level: |run| run.history.clone(), heading: history, unusual: history, ..Factor::new("history") },
    ],
    &[Factor {
        level: |run| run.protocol.clone(),
        heading: |run| run.protocol.clone().filter(|protocol| protocol != "native"),
        ..Factor::new("protocol")
    }],
    &[Factor { level: |run| number(run.size_bytes), heading: size, label: size, ..Factor::new("size") }],
    &[Factor {
        level: |run| number(run.source_port),
        label: |run| run.source_port.map(|port| format!("port {port}")),
        ..Factor::new("source-port")
    }],
    &[
        Factor { level: |run| Some(run.schedule.clone()), ..Factor::new("schedule") },
        Factor {
            level: |run| run.interval_ns.map(span),
            heading: schedule,
            label: |run| run.via.and(run.interval_ns).map(span),
            ..Factor::new("interval")
        },
        Factor {
            level: |run| run.rate.clone(),
            heading: |run| run.rate.clone().map(|rate| if rate == "max" { "as fast as sends go".into() } else { rate }),
            label: |run| run.rate.clone(),
            ..Factor::new("rate")
        },
    ],
    &[
        Factor {
            level: mode,
            heading: mode,
            unusual: |run| mode(run).filter(|mode| mode != "send"),
            label: mode,
            ..Factor::new("mode")
        },
        Factor {
            level: |run| number(run.batch),
            unusual: |run| run.batch.filter(|most| *most != defaults::STREAM_BATCH).map(|most| format!("batch {most}")),
            ..Factor::new("batch")
        },
        Factor { level: |run| number(run.flows), heading: flows, unusual: flows, ..Factor::new("flows") },
        Factor {
            level: |run| on_or_off(run.checksum),
            heading: no_checksum,
            unusual: no_checksum,
            ..Factor::new("checksum")
        },
        Factor {
            level: |run| on_or_off(run.connect),
            // Over TCP every sender is connected.
            unusual: |run| {
                let is_udp = run.transport.as_ref().is_none_or(|transport| transport == "udp");
                (run.connect == Some(true) && is_udp).then(|| "connected".into())
            },
            ..Factor::new("connect")
        },
        Factor {
            level: |run| run.direction.map(|way| way.word().into()),
            heading: down,
            unusual: down,
            ..Factor::new("direction")
        },
    ],
    &[Factor {
        level: |run| run.with_wakeup_ns.map(span),
        heading: |run| Some(format!("wake-ups every {}", span(run.with_wakeup_ns?))),
        ..Factor::new("with-wakeup")
    }],
    &[Factor { level: |run| run.probe_ns.map(span), heading: probes, unusual: probes, ..Factor::new("probe") }],
    &[Factor {
        level: |run| run.wait.map(|wait| wait.word().into()),
        unusual: |run| run.wait.filter(|wait| *wait != WaitMode::Block).map(|wait| wait.word().into()),
        label: |run| run.wait.map(|wait| wait.word().into()),
        ..Factor::new("wait")
    }],
    &[Factor {
        level: |run| loads(run).or_else(|| run.is_of_log().then(|| UNKNOWN.into())),
        label: |run| loads(run).or_else(|| (!run.is_of_log()).then(|| "no load".into())),
        ..Factor::new("load")
    }],
];

fn loads(run: &Condition) -> Option<String> {
    (!run.loads.is_empty()).then(|| run.loads.join(" + "))
}

fn number<T: ToString>(value: Option<T>) -> Option<String> {
    value.map(|value| value.to_string())
}

fn on_or_off(on: Option<bool>) -> Option<String> {
    on.map(|on| if on { "on" } else { "off" }.into())
}

fn reflect(run: &Condition) -> Option<String> {
    run.reflect.as_ref().map(|word| format!("reflector {word}"))
}

fn reliability(run: &Condition) -> Option<String> {
    run.reliability.map(|reliability| reliability.word().into())
}

fn keyed(run: &Condition) -> Option<String> {
    (run.keyed == Some(true)).then(|| "keyed".into())
}

fn history(run: &Condition) -> Option<String> {
    run.history.clone().filter(|history| *history != History::default().to_string())
}

fn via(run: &Condition) -> Option<String> {
    run.via.map(|via| via.word().into())
}

fn size(run: &Condition) -> Option<String> {
    run.size_bytes.map(|size| bytes(size.into()))
}

fn schedule(run: &Condition) -> Option<String> {
    if run.rate.is_some() {
        return None;
    }
    Some(match (run.schedule.as_str(), run.interval_ns) {
        (UNKNOWN, None) => return None,
        (_, None) => "closed loop".into(),
        ("poisson", Some(mean)) => format!("poisson, {} on average", span(mean)),
        (_, Some(interval)) => format!("every {}", span(interval)),
    })
}

fn mode(run: &Condition) -> Option<String> {
    run.mode.map(|mode| mode.word().into())
}

fn flows(run: &Condition) -> Option<String> {
    run.flows.filter(|flows| *flows > 1).map(|flows| format!("{flows} flows"))
}

fn no_checksum(run: &Condition) -> Option<String> {
    (run.checksum == Some(false)).then(|| "no checksum".into())
}

fn down(run: &Condition) -> Option<String> {
    (run.direction == Some(Direction::Down)).then(|| Direction::Down.word().into())
}

fn probes(run: &Condition) -> Option<String> {
    run.probe_ns.map(|interval| format!("probes every {}", span(interval)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ImportSpec, Kind, PingSpec, Schedule, WakeupCpus, WakeupSpec, Work};

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
            assert_eq!(Condition::of(&run).levels()["fifo"], "none");
            run.here.fifo = Some(10);
            let condition = Condition::of(&run);
            assert_eq!(condition.levels()["fifo"], "10", "{condition:?}");
            let heading: Vec<String> = condition.heading(None).into_iter().flatten().collect();
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
        let [measured, log] = [idle, RunSpec::imported(import, "irtt", BTreeMap::new())].map(|run| Condition::of(&run));
        let levels = log.levels();
        let of_log = ["load", "wait", "transport", "size", "via"].map(|factor| levels[factor].as_str());
        assert_eq!(of_log, ["unknown", "none", "none", "none", "none"]);
        assert_eq!(measured.levels()["load"], "none");
        assert_eq!(
            Condition::labels(&[&measured, &log]),
            ["local · udp · 64 B · closed loop · block · no load", "log of irtt"]
        );
    }
}
