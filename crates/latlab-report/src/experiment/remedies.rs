//! Rendering of what remedies change, as a comparison and as `latlab.remedies/1`. Schema: docs/schemas/remedies-1.json.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::analysis::comparison::{Comparison, Comparisons, Verdict};
use crate::comparison;
use crate::diagnostics::Caveat;
use crate::json::pretty;
use crate::text::{self, Style};
use crate::view::Part;

/// The comparison of remedies with the unchanged run, which is the first group.
#[derive(Clone, Debug)]
pub struct RemediesView<'a> {
    /// The unchanged run, in one line.
    pub heading: String,
    /// The factors of the unchanged run.
    pub condition: Map<String, Value>,
    /// Blocks in which the conditions were interleaved.
    pub blocks: u32,
    pub comparisons: &'a Comparisons,
    /// The remedies that were not tried.
    pub untried: &'a [UntriedRemedy],
    /// All recordings, in the order in which they were made.
    pub recordings: Vec<String>,
}

/// A remedy that is impossible here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntriedRemedy {
    pub remedy: String,
    /// Why it was not tried.
    pub reason: String,
}

/// A line for each reason, with the successive remedies that have it.
pub fn reasons(untried: &[UntriedRemedy]) -> impl Iterator<Item = String> {
    untried.chunk_by(|one, next| one.reason == next.reason).map(|same| {
        let remedies: Vec<String> = same.iter().map(|one| format!("`{}`", one.remedy)).collect();
        format!("{}: {}", remedies.join(", "), same[0].reason)
    })
}

pub fn text(view: &RemediesView<'_>, style: Style) -> String {
    let untried = reasons(view.untried).map(|line| format!("not tried: {line}"));
    let mut parts = vec![Part::Heading(format!("{} · {} blocks", view.heading, view.blocks))];
    parts.extend(comparison::parts(view.comparisons, &[], false));
    parts.push(Part::Notes(untried.collect()));
    text::render(&parts, style)
}

#[derive(Serialize)]
struct RemediesDocument<'a> {
    schema: &'static str,
    condition: &'a Map<String, Value>,
    runs: usize,
    blocks: u32,
    confidence: f64,
    remedies: Vec<Value>,
    recordings: &'a [String],
    caveats: &'a [Caveat],
}

pub fn json(view: &RemediesView<'_>) -> String {
    let Comparisons { rows, groups, caveats, .. } = view.comparisons;
    let tried = groups.groups.iter().enumerate().skip(1).map(|(place, group)| {
        let gains: Vec<Value> = rows.iter().filter(|row| row.candidate == place).map(gain).collect();
        json!({ "remedy": group.name, "tried": true, "reason": null, "gains": gains })
    });
    let untried = view.untried.iter().map(
        |UntriedRemedy { remedy, reason }| json!({ "remedy": remedy, "tried": false, "reason": reason, "gains": [] }),
    );
    pretty(&RemediesDocument {
        schema: "latlab.remedies/1",
        condition: &view.condition,
        runs: groups.groups.iter().map(|group| group.runs.len()).min().unwrap_or_default(),
        blocks: view.blocks,
        confidence: view.comparisons.options.confidence,
        remedies: tried.chain(untried).collect(),
        recordings: &view.recordings,
        caveats,
    })
}

/// The decrease of a figure: the difference with the sign reversed.
fn gain(row: &Comparison) -> Value {
    let less = |value: Option<f64>| value.map(|value| -value).filter(|value| value.is_finite());
    let interval = row.difference.map(|effect| effect.interval);
    json!({
        "metric": row.quantity.metric_name(),
        "statistic": row.quantity.statistic_name(),
        "unit": row.quantity.unit(),
        "as_asked": row.centres.map(|(asked, _)| asked),
        "with_remedy": row.centres.map(|(_, with)| with),
        "gain": less(row.difference.map(|effect| effect.value)),
        // The upper end of a difference is the lower one of the gain.
        "low": less(interval.and_then(|ends| ends.high)),
        "high": less(interval.and_then(|ends| ends.low)),
        "verdict": match row.verdict {
            Verdict::Lower => "helps",
            Verdict::Higher => "harms",
            Verdict::Equivalent | Verdict::None | Verdict::Undecided => "undecided",
        },
        "adjusted_p_value": row.adjusted_p_value,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::analysis::comparison::{
        ComparisonOptions, ComparisonRequest, ObservedRun, RunFigure, RunGroups, RunOrigin, compare, parse_estimand,
    };

    fn run(remedy: &str, condition: u32, block: u32, p50_us: f64) -> ObservedRun {
        let factors = BTreeMap::from([("remedy".to_owned(), remedy.to_owned())]);
        ObservedRun {
            origin: RunOrigin { block: Some(("x".into(), block)), ..RunOrigin::default() },
            levels: factors.clone(),
            factors: Some(factors),
            condition,
            figures: vec![RunFigure::Finite { value: p50_us * 1e3, supported: true }],
            ..ObservedRun::bare(format!("{remedy} {block}"), 0.0)
        }
    }

    #[test]
    fn a_decrease_is_a_gain_with_the_ends_of_its_interval_swapped() {
        let noise = [0.0, 0.3, -0.2];
        let of = |remedy, condition, p50: f64| {
            let runs = (0..9).map(move |n| run(remedy, condition, n / 3 + 1, p50 + noise[n as usize % 3]));
            runs.collect::<Vec<_>>()
        };
        let runs = [of("as asked", 1, 76.0), of("--fifo 80", 2, 26.0), of("--worse", 3, 90.0), of("--same", 4, 76.0)];
        let mut agenda = ComparisonRequest::default();
        agenda.ask(parse_estimand(Some("wakeup_latency"), "p50").expect("known"), None, None);
        let groups = RunGroups::by_condition(runs.concat()).expect("four groups");
        let compared = compare(groups, &agenda, &ComparisonOptions::at(0.95)).expect("a baseline");
        let gains: Vec<Value> = compared.rows.iter().map(gain).collect();
        let verdicts: Vec<&Value> = gains.iter().map(|gain| &gain["verdict"]).collect();
        assert_eq!(verdicts, ["helps", "harms", "undecided"]);
        let [low, value, high] = ["low", "gain", "high"].map(|key| gains[0][key].as_f64().expect(key));
        assert!(low < value && value < high && (value - 50e3).abs() < 100.0, "{low} {value} {high}");
    }
}
