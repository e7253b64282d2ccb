//! Selection of the tables, remarks and caveats in a report of runs.

use super::caveats::caveats;
use super::figures::{across, by_cpu, down, histogram, rows_of_runs, windows};
use super::heading::{Headline, heading, names};
use super::view::{ReportView, Showing};
use super::{netperf, remarks, stream_tables};
use crate::analysis::{CompatOutput, Kind, Summary};

/// Builds the view of the runs of one command.
pub fn report_view(summaries: &[Summary], showing: Showing) -> ReportView {
    let mut tables = match summaries {
        [] => Vec::new(),
        several if several.iter().all(|one| one.stream.is_some()) => stream_tables::tables(several),
        [one] if one.kind == Kind::Wakeup => across(one, showing),
        [one] if one.condition.interval_ns.is_some() || showing.every_metric => vec![down(one, showing)],
        [one] => across(one, showing),
        several => vec![rows_of_runs(several, showing)],
    };
    tables.extend(summaries.iter().zip(names(summaries)).filter_map(|(summary, name)| by_cpu(summary, &name)));
    tables.extend(summaries.iter().zip(names(summaries)).filter_map(|(summary, name)| windows(summary, &name)));
    ReportView {
        heading: heading(&summaries.iter().map(Headline::of).collect::<Vec<_>>()),
        tables,
        alike: match showing.like {
            Some(CompatOutput::NetperfUdpStream) => netperf::lines(summaries),
            None => Vec::new(),
        },
        histogram: if let [one] = summaries { histogram(&one.histogram) } else { None },
        remarks: remarks::remarks(summaries),
        caveats: caveats(summaries),
        recordings: match showing.kept {
            true => summaries.iter().map(|summary| summary.recording.clone()).collect(),
            false => vec!["not kept (`--no-record`)".into()],
        },
    }
}
