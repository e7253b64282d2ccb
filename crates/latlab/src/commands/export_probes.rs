//! The formats of `latlab export` that have the probes of one run as other tools log them.

use std::io::Write;

use super::export_figures::warn_left_out;
use super::exported_runs::{Export, ExportBreak};
use super::output_file::OutputTarget;
use crate::diagnostics::Failure;
use crate::formats::export::probes::{ExportedProbe, ProbeForm};
use crate::probe::{Fate, Phase};
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

/// The measured probes of the only run.
pub(super) fn probes(export: &Export<'_>, form: ProbeForm, target: &mut OutputTarget<'_>) -> Result<(), ExportBreak> {
    export.expect_table(RecordedTable::Probes)?;
    let [run] = export.runs else {
        let runs = counted(export.runs.len(), "run");
        return Err(Failure::request(format!("cannot write {runs} in one file of this format"))
            .because("its numbers of probes begin again with each run")
            .hint("name one recording, or `--format csv`")
            .into());
    };
    target.write_all(form.heading().as_bytes())?;
    let (mut unanswered, mut without_stamps) = (0, 0);
    for batch in Recording::open(&run.path)?.probes(&COLUMNS)? {
        export.expect_no_signal()?;
        let batch = batch?;
        for row in (0..batch.rows).filter(|row| batch.phase.get(*row) == Phase::Measure) {
            let (fate, Some(left)) = (batch.fate.get(row), batch.sent_ns.get(row)) else { continue };
            let received = match fate {
                Fate::Answered => batch.received_ns.get(row),
                Fate::Late | Fate::Lost => None,
                _ => continue,
            };
            let at_reflector = [batch.reflector_received_ns.get(row), batch.reflector_sent_ns.get(row)];
            let probe = ExportedProbe { id: batch.seq.values[row] as u64, sent: left, at_reflector, received };
            let is_shown = form.write(target, probe)?;
            unanswered += usize::from(received.is_none());
            without_stamps += usize::from(!is_shown && received.is_some());
        }
    }
    target.flush()?;
    warn_left_out(export, unanswered, "probe", ", which were lost or late");
    warn_left_out(export, without_stamps, "probe", ", without both stamps of the reflector");
    Ok(())
}
