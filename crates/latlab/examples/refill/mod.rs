//! Replaces the rows of the recordings of an experiment by a few synthetic ones, which are the same on each host, and
//! removes the facts about the host that made them. The spec of each run and its place in the experiment stay.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use latlab::facts::{IntervalCounts, StreamInterval};
use latlab::plan::{Via, Work};
use latlab::probe::{Phase, Seq};
use latlab::recording::SpoolEvent;
use latlab::recording::manifest::{Manifest, RunEnding};
use latlab::recording::{EventLog, RecordingWriter, Store};
use latlab::units::{Nanos, Stamp};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::Value;

use super::{runs, tail};

/// Measured probes or wake-ups of a run.
const ROWS: u64 = 60;

/// Replaces the rows of each recording in `directory`.
pub(crate) fn all(directory: &Path) {
    let entries =
        fs::read_dir(directory).expect("the runs of an experiment").map(|entry| entry.expect("an entry").path());
    let mut recordings: Vec<_> = entries.filter(|path| path.join("manifest.json").exists()).collect();
    recordings.sort();
    recordings.iter().for_each(|recording| one(recording));
}

fn one(recording: &Path) {
    let text = fs::read_to_string(recording.join("manifest.json")).expect("text");
    let manifest = without_host(serde_json::from_str(&text).expect("JSON"));
    let (ending, reason) = (manifest.ending, manifest.reason.clone());
    fs::remove_dir_all(recording).expect("removed");
    let store = Store::open(recording.parent().expect("a store")).expect("a store");
    let fill = Fill::of(&manifest);
    let started = Manifest { ending: RunEnding::Measuring, reason: None, ..manifest };
    let mut writer = RecordingWriter::create(&store, Some(recording), started).expect("created");
    let mut log = writer.start(Arc::new(AtomicBool::new(false))).expect("started");
    fill.push(&mut log, &writer.manifest_mut().spec.work.clone());
    writer.finish(log, ending, reason).expect("finished");
    let path = recording.join("manifest.json");
    let written: Value = serde_json::from_str(&fs::read_to_string(&path).expect("text")).expect("JSON");
    fs::write(path, written.to_string()).expect("written");
}

/// The manifest as it was when its run began, on no host in particular.
fn without_host(mut manifest: Value) -> Manifest {
    for end in ["here", "peer"] {
        for facts in ["before", "after"] {
            manifest[end][facts] = Value::Null;
        }
    }
    for rows in ["rows", "wakeup_rows", "interval_rows", "probe_rows", "host_rows"] {
        manifest[rows] = Value::Null;
    }
    manifest["run"]["listened_until_ns"] = Value::Null;
    manifest["experiment"]["boot_id"] = "00000000-0000-4000-8000-000000000001".into();
    manifest["instrument"]["clock_read_ns"] = 23.5.into();
    serde_json::from_value(manifest).expect("a manifest")
}

/// How the rows of a run differ from those of another.
struct Fill {
    /// Factor of each delay and rate: the product of one for the condition, one for the block and one for the run.
    level: f64,
    /// Every 40th probe is lost.
    is_lossy: bool,
    rng: Pcg64Mcg,
}

impl Fill {
    fn of(manifest: &Manifest) -> Fill {
        let facts = manifest.experiment.as_ref().expect("a run of an experiment");
        let mut rng = Pcg64Mcg::seed_from_u64(u64::from_str_radix(&manifest.run_id, 16).expect("hexadecimal"));
        // A condition that differs by its name alone is as fast as the others.
        let named_alone = facts.factors.keys().all(|factor| factor == "tag");
        let condition = if named_alone { 1.0 } else { 1.0 + 0.15 * f64::from(facts.condition - 1) };
        let own = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let level = condition * (1.0 + 0.02 * f64::from(facts.block)) * (1.0 + 0.04 * own);
        Fill { level, is_lossy: !named_alone && facts.condition.is_multiple_of(3), rng }
    }

    fn push(mut self, log: &mut EventLog, work: &Work) {
        match work {
            Work::Ping(ping) => self.probes(log, ping.schedule.interval().is_some()),
            Work::Wakeup(wakeup) => self.wakeups(log, wakeup.via, wakeup.interval_ns),
            Work::Stream(stream) => {
                self.intervals(log, stream.flows);
                if stream.probes.is_some() {
                    self.probes(log, true);
                }
            }
            Work::Command(_) | Work::Import(_) => {}
        }
    }

    fn delay(&mut self, least_ns: f64, mean_ns: f64) -> i64 {
        ((least_ns + tail(&mut self.rng, mean_ns) as f64) * self.level) as i64
    }

    fn probes(&mut self, log: &mut EventLog, is_scheduled: bool) {
        for seq in 0..ROWS + runs::WARMUP {
            let phase = if seq < runs::WARMUP { Phase::Warmup } else { Phase::Measure };
            let due = Stamp::from_nanos(runs::due(seq));
            let sent = due + Nanos(900);
            log.push(SpoolEvent::Sent { seq: Seq(seq), phase, due: is_scheduled.then_some(due), sent, cpu: Some(0) });
            if !self.is_lossy || seq % 40 != 39 {
                log.push(runs::answer(seq, 900 + self.delay(40_000.0, 4_000.0)));
            }
        }
    }

    /// Calls other than `clock_nanosleep` add the part of a thousandth of the interval above the timer slack of 50 µs.
    fn wakeups(&mut self, log: &mut EventLog, via: Via, interval: Nanos) {
        let stretched = if via == Via::ClockNanosleep { 0 } else { (interval.0 / 1_000 - 50_000).max(0) };
        self.level = 1.0 + (self.level - 1.0) / 10.0;
        for seq in 0..ROWS {
            let due = Stamp::from_nanos(1_000_000_000 + seq as i64 * interval.0);
            let late = Nanos(stretched + self.delay(52_000.0, 2_000.0));
            log.push(SpoolEvent::Woke {
                seq: Seq(seq),
                phase: Phase::Measure,
                due,
                woke: due + late,
                cpu: Some(0),
                via,
            });
        }
    }

    fn intervals(&mut self, log: &mut EventLog, flows: u16) {
        for (interval, flow) in (0..6).flat_map(|interval| (0..flows).map(move |flow| (interval, flow))) {
            let phase = if interval < 1 { Phase::Warmup } else { Phase::Measure };
            let (start_ns, cpu) = (1_000_000_000 + interval * 100_000_000, Some(Nanos(3_000_000)));
            let packets = self.delay(1_000.0, 30.0) as u64;
            let sent = IntervalCounts::Offered { packets, refused: 0, skipped: 0 };
            let counted = IntervalCounts::Counted {
                polled: packets,
                delivered: packets - packets / 100 - interval as u64,
                reordered: 0,
                duplicates: 0,
                outside_window: 0,
                socket_drops: Some(0),
            };
            for seen in [sent, counted] {
                let end_ns = start_ns + 100_000_000;
                log.push(SpoolEvent::Interval(StreamInterval { flow, phase, start_ns, end_ns, cpu, seen }));
            }
        }
    }
}
