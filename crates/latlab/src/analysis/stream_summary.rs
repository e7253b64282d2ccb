//! The summary of a run of a stream.

use std::collections::BTreeMap;

use super::caveats;
use super::host_course::HostAccumulator;
use super::ratios::ShareIntervals;
use super::source::ProbeSource;
use super::stages::StreamStages;
use super::streams::StreamAccumulator;
use super::summary::{Summary, SummaryFigures, SummaryOptions, assemble, describing};
use super::tally::RunCounts;
use crate::metric::Metric;
use crate::plan::SummaryDefaults;
use crate::stats::describe;

/// Summarises a recording of a stream, whose intervals are read once.
pub(super) fn summarise_stream<S: ProbeSource>(source: &S, wishes: &SummaryOptions) -> Result<Summary, S::Error> {
    let manifest = source.manifest();
    let describing = describing(manifest, wishes);
    let course = StreamAccumulator::of(source)?;
    let mut stream = course.figures(manifest);
    stream.beside = StreamStages::of(source, &describing)?;
    let described = |metric| (metric, describe(&course.sample(metric, manifest), &describing));
    let metrics = Metric::STREAM.into_iter().map(described).collect();
    let tally = RunCounts::of_counts(course.counts(), stream.total.sending);
    let mut hosts = BTreeMap::new();
    source.visit_hosts(&mut |side, sample| HostAccumulator::gather(&mut hosts, side, sample))?;
    let caveats = caveats::derive_of_stream(manifest, &stream, &metrics, &hosts);
    let figures = SummaryFigures {
        metrics,
        histogram: Vec::new(),
        windows: Vec::new(),
        wakeups: None,
        coincidence: None,
        stream: Some(stream),
        intervals: ShareIntervals::none(),
        caveats,
    };
    // What is about answers was refused when the run was asked for; whoever asks it of a recording gets none.
    let judging = SummaryDefaults { window_ns: None, deadline_ns: None, ..wishes.judging.clone() };
    Ok(assemble(source, &tally, &SummaryOptions { judging, ..wishes.clone() }, figures))
}
