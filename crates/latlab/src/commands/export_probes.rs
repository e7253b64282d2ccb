//! The formats of `latlab export` that have the probes of one run as other tools log them.

use serde_json::Value;

use super::exported_runs::{Export, ExportBreak};
use super::output_file::OutputTarget;
use crate::diagnostics::Failure;
use crate::formats::export::probes::{IrttRun, ProbeForm, ProbesWriter, SentProbe};
use crate::probe::{Fate, Phase};
use crate::recording::manifest::Manifest;
use crate::recording::{ProbeColumn, RecordedTable, Recording};
use crate::units::human::counted;

const COLUMNS: [ProbeColumn; 7] = [
    ProbeColumn::Seq,
    ProbeColumn::Phase,
    ProbeColumn::SentNs,
    ProbeColumn::ReceivedNs,
    ProbeColumn::ReflectorReceivedNs,
    ProbeColumn::ReflectorSentNs,
    ProbeColumn::Fate,
];

/// The measured probes of the only run that were sent.
pub(super) fn probes(export: &Export<'_>, form: ProbeForm, target: &mut OutputTarget<'_>) -> Result<(), ExportBreak> {
    export.expect_table(RecordedTable::Probes)?;
    let [run] = export.runs else {
        let runs = counted(export.runs.len(), "run");
        return Err(Failure::request(format!("cannot write {runs} in one file of this format"))
            .because("its numbers of probes begin again with each run")
            .hint("name one recording, or `--format csv`")
            .into());
    };
    let recording = Recording::open(&run.path)?;
    let mut writer = ProbesWriter::new(target, form, irtt_run(recording.manifest()))?;
    let (mut unanswered, mut without_stamps) = (0, 0);
    for batch in recording.probes(&COLUMNS)? {
        export.expect_no_signal()?;
        let batch = batch?;
        for row in (0..batch.rows).filter(|row| batch.phase.get(*row) == Phase::Measure) {
            let fate = batch.fate.get(row);
            let is_answered = fate == Fate::Answered;
            let (Some(sent_ns), Fate::Answered | Fate::Late | Fate::Lost) = (batch.sent_ns.get(row), fate) else {
                continue;
            };
            let probe = SentProbe {
                seq: batch.seq.values[row] as u64,
                sent_ns,
                received_ns: batch.received_ns.get(row).filter(|_| is_answered),
                reflector_received_ns: batch.reflector_received_ns.get(row),
                reflector_sent_ns: batch.reflector_sent_ns.get(row),
            };
            if !writer.append(&probe)? {
                *(if is_answered { &mut without_stamps } else { &mut unanswered }) += 1;
            }
        }
    }
    writer.finish()?;
    for (count, why) in
        [(unanswered, "which were lost or late"), (without_stamps, "without both stamps of the reflector")]
    {
        if count > 0 {
            export.console.note(&format!("left out: {}, {why}", counted(count, "probe")));
        }
    }
    Ok(())
}

fn irtt_run(manifest: &Manifest) -> IrttRun {
    let condition = manifest.spec.condition();
    let factor = |name: &str| condition.get(name).and_then(Value::as_i64);
    let clock = manifest.here.clock_start.as_ref();
    IrttRun {
        started_at: manifest.started_at.clone(),
        size_bytes: factor("size_bytes"),
        interval_ns: factor("interval_ns"),
        wall_less_clock_ns: clock.map(|clock| clock.realtime_ns - clock.monotonic_ns),
        is_one_clock: manifest.peer == manifest.here,
    }
}
