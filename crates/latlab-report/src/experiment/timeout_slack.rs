//! Rendering of the timeout slack by which longer sleeps wake later: a row for each interval, and the conclusion.

use serde_json::{Value, json};

use crate::analysis::comparison::Effect;
use crate::analysis::experiment::{ExplainedShare, Prediction, SlackVerdict, SleepRow, TimeoutSlack};
use crate::report::text::{Style, width, wrap};
use crate::units::Nanos;
use crate::units::human::{ABSENT, TimeUnit, percent, signed, significant, span};

pub(super) fn text(slack: Option<&TimeoutSlack>, style: Style) -> String {
    let heading = wrap("why longer sleeps wake later: medians of idle runs, by the call that sleeps", style.width);
    let heading = heading.iter().map(|line| style.strong(line)).collect();
    let lines = match slack {
        Some(slack) => answered(slack, style),
        None => {
            let needed = "Not known: there are no two intervals after which both calls were measured idle and \
             with the same setting.";
            wrap(needed, style.width)
        }
    };
    [heading, lines].concat().join("\n") + "\n"
}

fn answered(slack: &TimeoutSlack, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    let head = ["interval", "clock_nanosleep", "select", "select later by", "its stretch"].map(str::to_owned);
    let rows: Vec<[String; 5]> = slack.rows.iter().map(cells).collect();
    let widest = |column: usize| rows.iter().chain([&head]).map(|row| width(&row[column])).max().unwrap_or_default();
    let widths: [usize; 5] = std::array::from_fn(widest);
    let line = |row: &[String; 5]| {
        let cell = |column: usize| format!("{}{}", " ".repeat(2 + widths[column] - width(&row[column])), row[column]);
        (0..5).map(cell).collect::<String>()
    };
    if 2 * widths.len() + widths.iter().sum::<usize>() <= style.width {
        lines.push(style.quiet(&line(&head)));
        lines.extend(rows.iter().map(line));
    } else {
        let parts = |row: &[String; 5]| (1..5).map(|column| format!("    {} {}", head[column], row[column])).collect();
        lines.extend(rows.iter().flat_map(|row| [vec![format!("  {}", row[0])], parts(row)].concat()));
    }
    lines.extend(wrap(&basis(slack), style.width));
    lines.extend(wrap(&answer(slack), style.width));
    lines
}

/// `4 runs of each call and interval under …; brackets: …`
fn basis(slack: &TimeoutSlack) -> String {
    let runs = || slack.rows.iter().flat_map(|row| [row.exact_runs, row.stretched_runs]);
    let (fewest, most) = (runs().min().unwrap_or_default(), runs().max().unwrap_or_default());
    let runs = if fewest == most { fewest.to_string() } else { format!("{fewest}–{most}") };
    let level = slack.rows.first().map_or(0.0, |row| row.later.interval.confidence);
    let setting = slack.facts.setting.as_ref().map(|setting| format!(" under `{setting}`")).unwrap_or_default();
    let (level, predictions) = (percent(level), predictions(slack));
    format!("{runs} runs of each call and interval{setting}; brackets: {level} intervals.{predictions}")
}

/// After which intervals the difference is as predicted.
fn predictions(slack: &TimeoutSlack) -> String {
    let of = |wanted: Prediction| {
        let rows = slack.rows.iter().filter(|row| row.prediction == Some(wanted));
        rows.map(|row| span(row.interval)).collect::<Vec<_>>().join(", ")
    };
    let sentences = [
        ("As its stretch predicts", of(Prediction::Held)),
        ("Not as predicted", of(Prediction::Missed)),
        ("Too wide to decide whether as predicted", of(Prediction::Open)),
    ];
    let sentences = sentences.iter().filter(|(_, intervals)| !intervals.is_empty());
    sentences.map(|(words, intervals)| format!(" {words}: after {intervals}.")).collect()
}

fn cells(row: &SleepRow) -> [String; 5] {
    let time = |ns: f64| format!("{} µs", significant(ns / 1e3));
    let stretch = row.predicted.map_or_else(
        || ABSENT.into(),
        |beyond| format!("{} {}", TimeUnit::Micros.figure(beyond.0 as f64), TimeUnit::Micros.symbol()),
    );
    let difference = later(row.later);
    [span(row.interval), time(row.exact_ns), time(row.stretched_ns), difference, stretch]
}

fn answer(slack: &TimeoutSlack) -> String {
    let rows = &slack.rows;
    let [from, to] = [rows.first(), rows.last()].map(|row| row.map_or(Nanos::ZERO, |row| row.interval)).map(span);
    let share = slack.explained.map(share).unwrap_or_default();
    match slack.verdict {
        SlackVerdict::IsTheCall => format!(
            "From {from} to {to} the lateness of select grows, and {share} of that comes from its time-out, which the kernel \
             lengthens by {} if that is more than the timer slack (fs/select.c). It does not lengthen that of clock_nanosleep.",
            percent(slack.facts.stretch())
        ),
        SlackVerdict::IsSomethingElse => format!(
            "From {from} to {to} the lateness of select grows, and only {share} of that comes from its time-out: the lateness of \
             clock_nanosleep grows as well. `latlab summary` shows idle states and clock rates, if the host reports them."
        ),
        SlackVerdict::NoGrowth => format!("From {from} to {to} the lateness of select does not grow on this host."),
        SlackVerdict::Undecided if slack.explained.is_none() => format!(
            "Undecided: whether the lateness of select grows from {from} to {to} is not known{}. More runs would decide.",
            slack.grown.map(|grown| format!(", {}", later(grown))).unwrap_or_default()
        ),
        SlackVerdict::Undecided => format!(
            "Undecided: from {from} to {to} the lateness of select grows, and {share} of that comes from its time-out, but the \
             interval is too wide. More runs would decide: without `--quick`, or with `--full`, on a quieter host."
        ),
    }
}

/// As the value of the key `experiment.via_growth` of `latlab.compare/1`.
pub(super) fn document(slack: Option<&TimeoutSlack>) -> Value {
    let Some(TimeoutSlack { rows, grown, explained, verdict, facts }) = slack else { return Value::Null };
    let row = |row: &SleepRow| {
        let later = row.later;
        json!({
            "interval_ns": row.interval,
            "clock_nanosleep_ns": row.exact_ns,
            "select_ns": row.stretched_ns,
            "difference_ns": effect(&later),
            "predicted_ns": row.predicted,
            "as_predicted": as_predicted(row),
            "runs": { "clock_nanosleep": row.exact_runs, "select": row.stretched_runs },
        })
    };
    json!({
        "statistic": "p50",
        "setting": facts.setting,
        "timer_slack_ns": facts.timer_slack,
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "grown_ns": grown.as_ref().map(effect),
        "explained_ratio": explained.map(|ExplainedShare { share, low, high }| {
            json!({ "value": share, "low": low, "high": high, "confidence": ExplainedShare::CONFIDENCE })
        }),
        "answer": match verdict {
            SlackVerdict::IsTheCall => "the-call",
            SlackVerdict::IsSomethingElse => "something-else",
            SlackVerdict::NoGrowth => "no-growth",
            SlackVerdict::Undecided => "undecided",
        },
    })
}

/// `null` if nothing is predicted, and if the interval is too wide for an answer.
fn as_predicted(row: &SleepRow) -> Option<bool> {
    match row.prediction? {
        Prediction::Held => Some(true),
        Prediction::Missed => Some(false),
        Prediction::Open => None,
    }
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
    use crate::analysis::experiment::SlackFacts;
    use crate::stats::Interval;

    fn effect(us: f64, about_us: f64) -> Effect {
        let interval =
            Interval { low: Some((us - about_us) * 1e3), high: Some((us + about_us) * 1e3), confidence: 0.95 };
        Effect { value: us * 1e3, interval }
    }

    fn row(interval_ms: i64, exact_us: f64, later_us: f64) -> SleepRow {
        SleepRow {
            interval: Nanos::from_millis(interval_ms),
            exact_ns: exact_us * 1e3,
            stretched_ns: (exact_us + later_us) * 1e3,
            later: effect(later_us, 5.0),
            exact_runs: 4,
            stretched_runs: 4,
            predicted: None,
            prediction: None,
        }
    }

    fn judge(rows: Vec<SleepRow>, grown_us: f64, facts: SlackFacts) -> TimeoutSlack {
        TimeoutSlack::of(rows, Some(effect(grown_us, 1.0)), facts).expect("two rows or more")
    }

    fn shown(slack: &TimeoutSlack) -> String {
        text(Some(slack), Style::PLAIN)
    }

    fn squeezed(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_row_for_each_interval_and_then_the_answer() {
        let rows = vec![row(10, 62.0, 1.0), row(100, 70.0, 51.0), row(1_000, 140.0, 950.0)];
        let setting = Some("governor=as-found".into());
        let facts = SlackFacts { setting, timer_slack: Some(Nanos::from_micros(50)), nice: false };
        let expected = "\
why longer sleeps wake later: medians of idle runs, by the call that sleeps
  interval  clock_nanosleep    select          select later by  its stretch
     10 ms          62.0 µs   63.0 µs   +1.00 µs [−4.00, +6.00]         0 µs
    100 ms          70.0 µs    121 µs  +51.0 µs [+46.0, +56.0]      50.0 µs
       1 s           140 µs  1,090 µs       +950 µs [+945, +955]       950 µs
4 runs of each call and interval under `governor=as-found`; brackets: 95 % intervals.
As its stretch predicts: after 10 ms, 100 ms, 1 s.
";
        let text = shown(&judge(rows.clone(), 1_027.0, facts.clone()));
        assert!(squeezed(&text).starts_with(&squeezed(expected)), "{text}");
        assert!(text.lines().all(|line| width(line) <= 80), "{text}");
        let answer = "and 92.4 % [91.3 %, 93.5 %] of that comes from its time-out";
        assert!(squeezed(&text).contains(answer), "{text}");
        let nice = shown(&judge(rows, 1_027.0, SlackFacts { nice: true, ..facts }));
        for words in ["4,950 µs", "Not as predicted: after 100 ms, 1 s.", "lengthens by 0.5 %"] {
            assert!(squeezed(&nice).contains(words), "{words}\n{nice}");
        }
    }

    #[test]
    fn an_answer_other_than_the_call_is_said() {
        let alike = judge(vec![row(10, 62.0, 1.0), row(1_000, 900.0, 2.0)], 839.0, SlackFacts::default());
        assert!(squeezed(&shown(&alike)).contains("and only "), "{}", shown(&alike));
        // Without slack the kernel stretches nothing.
        let facts = SlackFacts { timer_slack: Some(Nanos::ZERO), ..SlackFacts::default() };
        let exact = judge(vec![row(10, 62.0, 0.0), row(1_000, 62.0, 1.0)], 0.5, facts);
        let document = document(Some(&exact));
        assert_eq!((&document["rows"][1]["predicted_ns"], &document["setting"]), (&0.into(), &Value::Null));
        let text = squeezed(&shown(&exact));
        assert!(text.contains("is not known, +0.500 µs [−0.500, +1.50]"), "{text}");
    }

    #[test]
    fn runs_that_cannot_answer_are_named_and_null() {
        assert!(text(None, Style::PLAIN).contains("\nNot known: there are no two intervals"));
        assert_eq!(document(None), Value::Null);
    }
}
