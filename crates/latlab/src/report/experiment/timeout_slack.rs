//! Whether the call that sleeps explains why longer sleeps wake later: a row for each interval, and what follows.

use serde_json::{Value, json};

use crate::analysis::comparison::Effect;
use crate::analysis::experiment::{ExplainedShare, SlackVerdict, SleepRow, TimeoutSlack};
use crate::report::paint::{Style, width, wrap};
use crate::units::Nanos;
use crate::units::human::{ABSENT, TimeUnit, percent, signed, significant, span};

/// What an experiment says of its question.
#[derive(Clone, Debug, PartialEq)]
pub enum SlackRowView {
    /// An answer.
    Told(TimeoutSlackView),
    /// Both calls were not measured after two intervals under one setting.
    Untold,
}

/// What was found, with what the kernel allows itself.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeoutSlackView {
    /// What was found.
    pub growth: TimeoutSlack,
    /// Under which setting, where there were several to choose from: `governor=as-found`.
    pub setting: Option<String>,
    /// The timer slack that was in force, as far as it was read.
    pub slack: Option<Nanos>,
    /// Whether the threads were nice: then the kernel stretches five times as much.
    pub nice: bool,
}

/// The share by which select stretches its time-out: select_estimate_accuracy in
/// [fs/select.c](https://github.com/torvalds/linux/blob/v6.18/fs/select.c).
const fn stretch(nice: bool) -> f64 {
    if nice { 0.005 } else { 0.001 }
}

/// Whether a difference is what the stretch predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prediction {
    /// Its interval holds the prediction, and tells it from its contrary.
    Held,
    /// Its interval does not.
    Missed,
    /// Its interval is too wide to tell.
    Open,
}

/// As text.
pub fn render(view: &SlackRowView, style: Style) -> String {
    let heading = style.strong("why longer sleeps wake later: medians of idle runs, by the call that sleeps");
    let lines = match view {
        SlackRowView::Told(view) => told(view, style),
        SlackRowView::Untold => {
            let needed = "Cannot be told: there are no two intervals after which both calls were measured under one and \
                          the same setting, idle.";
            wrap(needed, style.width)
        }
    };
    [vec![heading], lines].concat().join("\n") + "\n"
}

fn told(view: &TimeoutSlackView, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    let head = ["interval", "clock_nanosleep", "select", "select later by", "its stretch"].map(str::to_owned);
    let rows: Vec<[String; 5]> = view.growth.rows.iter().map(|row| cells(row, view)).collect();
    let widest = |column: usize| rows.iter().chain([&head]).map(|row| width(&row[column])).max().unwrap_or_default();
    let widths: [usize; 5] = std::array::from_fn(widest);
    let line = |row: &[String; 5]| {
        let cell = |column: usize| format!("{}{}", " ".repeat(2 + widths[column] - width(&row[column])), row[column]);
        (0..5).map(cell).collect::<String>()
    };
    lines.push(style.quiet(&line(&head)));
    lines.extend(rows.iter().map(line));
    lines.extend(wrap(&rests(view), style.width));
    lines.extend(wrap(&answer(view), style.width));
    lines
}

/// What the kernel may add to a time-out of that interval, ns.
fn stretched(row: &SleepRow, view: &TimeoutSlackView) -> f64 {
    row.interval.0 as f64 * stretch(view.nice)
}

/// What the kernel allows itself beyond the slack that the exact call has as well, ns; without slack it stretches nothing.
fn predicted(row: &SleepRow, view: &TimeoutSlackView) -> Option<Nanos> {
    let stretched = stretched(row, view) as i64;
    let beyond = |slack: Nanos| if slack.0 == 0 { Nanos::ZERO } else { Nanos(stretched - slack.0).max(Nanos::ZERO) };
    view.slack.map(beyond)
}

/// None where nothing is predicted. An interval tells of a stretch beyond the slack if it excludes that there is none; and
/// where the slack hides the stretch, or there is none, if it is narrow enough to show it: within ± the whole stretch.
fn prediction(row: &SleepRow, view: &TimeoutSlackView) -> Option<Prediction> {
    let predicted = predicted(row, view)?.0 as f64;
    let (Some(low), Some(high)) = (row.later.interval.low, row.later.interval.high) else {
        return Some(Prediction::Open);
    };
    let whole = stretched(row, view);
    let tells = if predicted > 0.0 { low > 0.0 } else { low > -whole && high < whole };
    Some(match (low..=high).contains(&predicted) {
        false => Prediction::Missed,
        true if tells => Prediction::Held,
        true => Prediction::Open,
    })
}

/// As a document has it.
fn as_predicted(row: &SleepRow, view: &TimeoutSlackView) -> Option<bool> {
    match prediction(row, view)? {
        Prediction::Held => Some(true),
        Prediction::Missed => Some(false),
        Prediction::Open => None,
    }
}

/// On what the table rests.
fn rests(view: &TimeoutSlackView) -> String {
    let runs = || view.growth.rows.iter().flat_map(|row| [row.runs.0, row.runs.1]);
    let (fewest, most) = (runs().min().unwrap_or_default(), runs().max().unwrap_or_default());
    let runs = if fewest == most { fewest.to_string() } else { format!("{fewest}–{most}") };
    let level = view.growth.rows.first().map_or(0.0, |row| row.later.interval.confidence);
    let setting = view.setting.as_ref().map(|setting| format!(" under `{setting}`")).unwrap_or_default();
    let (level, predictions) = (percent(level), predictions(view));
    format!("{runs} runs of each call and interval{setting}; brackets: {level} intervals.{predictions}")
}

/// After which intervals the difference is what the stretch predicts.
fn predictions(view: &TimeoutSlackView) -> String {
    let rows = || view.growth.rows.iter();
    let of = |wanted: Prediction| {
        let those = rows().filter(|row| prediction(row, view) == Some(wanted)).map(|row| span(row.interval));
        those.collect::<Vec<_>>().join(", ")
    };
    let told = [
        ("As its stretch predicts", of(Prediction::Held)),
        ("Not as predicted", of(Prediction::Missed)),
        ("Too wide to tell whether as predicted", of(Prediction::Open)),
    ];
    let told = told.iter().filter(|(_, those)| !those.is_empty());
    told.map(|(words, those)| format!(" {words}: after {those}.")).collect()
}

fn cells(row: &SleepRow, view: &TimeoutSlackView) -> [String; 5] {
    let time = |ns: f64| format!("{} µs", significant(ns / 1e3));
    let stretch = predicted(row, view).map_or_else(
        || ABSENT.into(),
        |beyond| format!("{} {}", TimeUnit::Micros.figure(beyond.0 as f64), TimeUnit::Micros.symbol()),
    );
    let difference = later(row.later);
    [span(row.interval), time(row.exact_ns), time(row.stretched_ns), difference, stretch]
}

fn answer(view: &TimeoutSlackView) -> String {
    let rows = &view.growth.rows;
    let [from, to] = [rows.first(), rows.last()].map(|row| row.map_or(Nanos::ZERO, |row| row.interval)).map(span);
    let share = view.growth.explained.map(share).unwrap_or_default();
    match view.growth.answer {
        SlackVerdict::IsTheCall => format!(
            "The call explains {share} of what select wakes later after {to} than after {from}: the kernel stretches its \
             time-out by {} where that is more than the timer slack (fs/select.c), and clock_nanosleep's not at all.",
            percent(stretch(view.nice))
        ),
        SlackVerdict::IsSomethingElse => format!(
            "The call explains only {share} of what select wakes later after {to} than after {from}: clock_nanosleep \
             grows with the interval as well. `latlab summary` shows idle states and frequencies, where the host tells."
        ),
        SlackVerdict::NoGrowth => format!("Here select wakes no later after {to} than after {from}."),
        SlackVerdict::Undecided if view.growth.explained.is_none() => format!(
            "Undecided: whether select wakes later after {to} than after {from} cannot be told{}. More runs would tell.",
            view.growth.grown.map(|grown| format!(", {}", later(grown))).unwrap_or_default()
        ),
        SlackVerdict::Undecided => format!(
            "Undecided: the call explains {share} of what select wakes later after {to} than after {from}, and the \
             interval is too wide to tell. More runs would: without `--quick`, or with `--full`, on a quieter host."
        ),
    }
}

/// As what `latlab.compare/1` has of it, in `experiment.via_growth`.
pub fn json(view: &SlackRowView) -> Value {
    let SlackRowView::Told(view) = view else { return Value::Null };
    let TimeoutSlack { rows, grown, explained, answer } = &view.growth;
    let row = |row: &SleepRow| {
        let later = row.later;
        json!({
            "interval_ns": row.interval,
            "clock_nanosleep_ns": row.exact_ns,
            "select_ns": row.stretched_ns,
            "difference_ns": effect(&later),
            "predicted_ns": predicted(row, view),
            "as_predicted": as_predicted(row, view),
            "runs": { "clock_nanosleep": row.runs.0, "select": row.runs.1 },
        })
    };
    json!({
        "statistic": "p50",
        "setting": view.setting,
        "timer_slack_ns": view.slack,
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "grown_ns": grown.as_ref().map(effect),
        "explained_ratio": explained.map(|ExplainedShare { share, low, high }| {
            json!({ "value": share, "low": low, "high": high, "confidence": ExplainedShare::CONFIDENCE })
        }),
        "answer": match answer {
            SlackVerdict::IsTheCall => "the-call",
            SlackVerdict::IsSomethingElse => "something-else",
            SlackVerdict::NoGrowth => "no-growth",
            SlackVerdict::Undecided => "undecided",
        },
    })
}

fn effect(effect: &Effect) -> Value {
    let Effect { value, interval } = effect;
    json!({ "value": value, "low": interval.low, "high": interval.high, "confidence": interval.confidence })
}

/// `+950 µs [+945, +955]`
fn later(effect: Effect) -> String {
    let end = |end: Option<f64>| end.map_or_else(|| ABSENT.into(), |ns| signed(ns / 1e3));
    let (low, high) = (end(effect.interval.low), end(effect.interval.high));
    format!("{} µs [{low}, {high}]", signed(effect.value / 1e3))
}

/// `96 % [91 %, 102 %]`
fn share(explained: ExplainedShare) -> String {
    let end = |end: Option<f64>| end.map_or_else(|| ABSENT.into(), percent);
    format!("{} [{}, {}]", percent(explained.share), end(explained.low), end(explained.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Interval;

    fn row(interval_ms: i64, exact_us: f64, later_us: f64) -> SleepRow {
        let interval =
            Interval { low: Some((later_us - 5.0) * 1e3), high: Some((later_us + 5.0) * 1e3), confidence: 0.95 };
        SleepRow {
            interval: Nanos::from_millis(interval_ms),
            exact_ns: exact_us * 1e3,
            stretched_ns: (exact_us + later_us) * 1e3,
            later: Effect { value: later_us * 1e3, interval },
            runs: (4, 4),
        }
    }

    fn grown(us: f64) -> Option<Effect> {
        let interval = Interval { low: Some((us - 1.0) * 1e3), high: Some((us + 1.0) * 1e3), confidence: 0.95 };
        Some(Effect { value: us * 1e3, interval })
    }

    #[test]
    fn a_row_for_each_interval_and_then_the_answer() {
        let rows = vec![row(10, 62.0, 1.0), row(100, 70.0, 51.0), row(1_000, 140.0, 950.0)];
        let growth = TimeoutSlack::of(rows, grown(1_027.0)).expect("three rows");
        let setting = Some("governor=as-found".into());
        let view = TimeoutSlackView { growth, setting, slack: Some(Nanos::from_micros(50)), nice: false };
        let render = |view: &TimeoutSlackView, style| super::render(&SlackRowView::Told(view.clone()), style);
        let expected = "\
why longer sleeps wake later: medians of idle runs, by the call that sleeps
  interval  clock_nanosleep    select          select later by  its stretch
     10 ms          62.0 µs   63.0 µs   +1.00 µs [−4.00, +6.00]         0 µs
    100 ms          70.0 µs    121 µs  +51.0 µs [+46.0, +56.0]      50.0 µs
       1 s           140 µs  1,090 µs       +950 µs [+945, +955]       950 µs
4 runs of each call and interval under `governor=as-found`; brackets: 95 % intervals.
As its stretch predicts: after 10 ms, 100 ms, 1 s.
";
        let text = render(&view, Style::PLAIN);
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeezed(&text).starts_with(&squeezed(expected)), "{text}");
        assert!(text.lines().all(|line| width(line) <= 80), "{text}");
        assert!(
            squeezed(&text).contains("The call explains 92.4 % [91.3 %, 93.5 %] of what select wakes later"),
            "{text}"
        );
        let nice = render(&TimeoutSlackView { nice: true, ..view }, Style::PLAIN);
        assert!(
            nice.contains("4,950 µs")
                && squeezed(&nice).contains("Not as predicted: after 100 ms, 1 s.")
                && squeezed(&nice).contains("time-out by 0.5 %"),
            "{nice}"
        );
        let alike = TimeoutSlack::of(vec![row(10, 62.0, 1.0), row(1_000, 900.0, 2.0)], grown(839.0)).expect("two rows");
        let told = render(&TimeoutSlackView { growth: alike, setting: None, slack: None, nice: false }, Style::PLAIN);
        assert!(squeezed(&told).contains("explains only"), "{told}");
        // Without slack the kernel stretches nothing: here half a millisecond would be.
        let exact = TimeoutSlack::of(vec![row(10, 62.0, 0.0), row(1_000, 62.0, 1.0)], grown(0.5)).expect("two rows");
        let view = TimeoutSlackView { growth: exact, setting: None, slack: Some(Nanos::ZERO), nice: false };
        let document = json(&SlackRowView::Told(view.clone()));
        assert_eq!((&document["rows"][1]["predicted_ns"], &document["setting"]), (&0.into(), &Value::Null));
        let told = render(&view, Style::PLAIN);
        assert!(squeezed(&told).contains("cannot be told, +0.500 µs [−0.500, +1.50]"), "{told}");
    }

    #[test]
    fn an_interval_tells_only_if_it_excludes_the_contrary() {
        let slack = Some(Nanos::from_micros(50));
        let told = |interval_ms: i64, (low, high): (Option<f64>, Option<f64>), slack, nice| {
            let mut row = row(interval_ms, 60.0, 0.0);
            row.later.interval =
                Interval { low: low.map(|us| us * 1e3), high: high.map(|us| us * 1e3), confidence: 0.95 };
            let growth =
                TimeoutSlack { rows: vec![row], grown: None, explained: None, answer: SlackVerdict::Undecided };
            let view = TimeoutSlackView { growth, setting: None, slack, nice };
            as_predicted(&view.growth.rows[0], &view)
        };
        for (interval_ms, low, high, expected) in [
            // 950 µs are predicted.
            (1_000, 900.0, 1_000.0, Some(true)),
            (1_000, -100.0, 2_000.0, None),
            (1_000, 0.0, 950.0, None),
            (1_000, -100.0, 900.0, Some(false)),
            // The slack hides a stretch of 10 µs: nothing is predicted, and what would show 10 µs has to be there.
            (10, -8.0, 9.0, Some(true)),
            (10, -8.0, 30.0, None),
            (10, -30.0, 9.0, None),
            (10, 1.0, 9.0, Some(false)),
        ] {
            let ends = (Some(low), Some(high));
            assert_eq!(told(interval_ms, ends, slack, false), expected, "{interval_ms} ms: {low} to {high}");
        }
        assert_eq!(told(1_000, (None, Some(1_000.0)), slack, false), None);
        assert_eq!(told(1_000, (Some(900.0), Some(1_000.0)), None, false), None);
        // Without slack there is no stretch at all, which would be 5 ms of a nice thread's.
        let none = Some(Nanos::ZERO);
        assert_eq!(told(1_000, (Some(-900.0), Some(1_000.0)), none, true), Some(true));
        assert_eq!(told(1_000, (Some(-900.0), Some(1_000.0)), none, false), None);
    }

    #[test]
    fn what_cannot_be_told_is_said_and_is_null() {
        assert!(render(&SlackRowView::Untold, Style::PLAIN).contains("\nCannot be told: there are no two intervals"));
        assert_eq!(json(&SlackRowView::Untold), Value::Null);
    }
}
