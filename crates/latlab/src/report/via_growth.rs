//! Whether the call that sleeps explains why longer sleeps wake later: a row for each interval, and what follows.

use serde_json::{Value, json};

use super::paint::{Style, width, wrap};
use crate::analysis::{Explained, GrowthAnswer, SleepRow, ViaGrowth};
use crate::units::Nanos;
use crate::units::human::{ABSENT, TimeUnit, percent, signed, significant, span};

/// What was found, with what the kernel allows itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ViaGrowthView {
    /// What was found.
    pub growth: ViaGrowth,
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

/// As text.
pub fn render(view: &ViaGrowthView, style: Style) -> String {
    let mut lines = vec![style.strong("why longer sleeps wake later: medians of idle runs, by the call that sleeps")];
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
    lines.extend(wrap(&answer(view), style.width));
    lines.join("\n") + "\n"
}

fn cells(row: &SleepRow, view: &ViaGrowthView) -> [String; 5] {
    let time = |ns: f64| format!("{} µs", significant(ns / 1e3));
    let end = |end: Option<f64>| end.map_or_else(|| ABSENT.into(), |ns| signed(ns / 1e3));
    let later = row.later;
    let (low, high) = (end(later.interval.low), end(later.interval.high));
    // What the kernel allows itself beyond the slack that the exact call has as well.
    let stretched = (row.interval.0 as f64 * stretch(view.nice)) as i64;
    let beyond = view.slack.map(|slack| Nanos(stretched - slack.0).max(Nanos::ZERO));
    let stretch = beyond.map_or_else(
        || ABSENT.into(),
        |beyond| format!("{} {}", TimeUnit::Micros.figure(beyond.0 as f64), TimeUnit::Micros.symbol()),
    );
    let difference = format!("{} µs [{low}, {high}]", signed(later.value / 1e3));
    [span(row.interval), time(row.exact_ns), time(row.stretched_ns), difference, stretch]
}

fn answer(view: &ViaGrowthView) -> String {
    let rows = &view.growth.rows;
    let [from, to] = [rows.first(), rows.last()].map(|row| row.map_or(Nanos::ZERO, |row| row.interval)).map(span);
    let share = view.growth.explained.map(share).unwrap_or_default();
    match view.growth.answer {
        GrowthAnswer::IsTheCall => format!(
            "The call explains {share} of what select wakes later after {to} than after {from}: the kernel stretches its \
             time-out by {} where that is more than the timer slack (fs/select.c), and clock_nanosleep's not at all.",
            percent(stretch(view.nice))
        ),
        GrowthAnswer::IsSomethingElse => format!(
            "The call explains only {share} of what select wakes later after {to} than after {from}: clock_nanosleep \
             grows with the interval as well. `latlab summary` shows idle states and frequencies, where the host tells."
        ),
        GrowthAnswer::NoGrowth => format!("Here select wakes no later after {to} than after {from}."),
        GrowthAnswer::Undecided => format!(
            "Undecided: the call explains {share} of what select wakes later after {to} than after {from}, and the \
             interval is too wide to tell. More runs would: without `--quick`, or with `--full`, on a quieter host."
        ),
    }
}

/// As what `latlab.compare/1` has of it, in `experiment.via_growth`.
pub fn json(view: &ViaGrowthView) -> Value {
    let ViaGrowth { rows, explained, answer } = &view.growth;
    let row = |row: &SleepRow| {
        let later = row.later;
        json!({
            "interval_ns": row.interval,
            "clock_nanosleep_ns": row.exact_ns,
            "select_ns": row.stretched_ns,
            "difference_ns": { "value": later.value, "low": later.interval.low, "high": later.interval.high },
        })
    };
    json!({
        "statistic": "p50",
        "timer_slack_ns": view.slack,
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "explained_ratio": explained.map(|Explained { share, low, high }| json!({ "value": share, "low": low, "high": high })),
        "answer": match answer {
            GrowthAnswer::IsTheCall => "the-call",
            GrowthAnswer::IsSomethingElse => "something-else",
            GrowthAnswer::NoGrowth => "no-growth",
            GrowthAnswer::Undecided => "undecided",
        },
    })
}

/// `96 % [91 %, 102 %]`
fn share(explained: Explained) -> String {
    let end = |end: Option<f64>| end.map_or_else(|| ABSENT.into(), percent);
    format!("{} [{}, {}]", percent(explained.share), end(explained.low), end(explained.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::comparison::Effect;
    use crate::stats::Interval;

    fn row(interval_ms: i64, exact_us: f64, later_us: f64) -> SleepRow {
        let interval =
            Interval { low: Some((later_us - 5.0) * 1e3), high: Some((later_us + 5.0) * 1e3), confidence: 0.95 };
        SleepRow {
            interval: Nanos::from_millis(interval_ms),
            exact_ns: exact_us * 1e3,
            stretched_ns: (exact_us + later_us) * 1e3,
            later: Effect { value: later_us * 1e3, interval },
        }
    }

    #[test]
    fn a_row_for_each_interval_and_then_the_answer() {
        let rows = vec![row(10, 62.0, 1.0), row(100, 70.0, 51.0), row(1_000, 140.0, 950.0)];
        let growth = ViaGrowth::of(rows).expect("three rows");
        let view = ViaGrowthView { growth, slack: Some(Nanos::from_micros(50)), nice: false };
        let expected = "\
why longer sleeps wake later: medians of idle runs, by the call that sleeps
  interval  clock_nanosleep    select          select later by  its stretch
     10 ms          62.0 µs   63.0 µs   +1.00 µs [−4.00, +6.00]         0 µs
    100 ms          70.0 µs    121 µs  +51.0 µs [+46.0, +56.0]      50.0 µs
       1 s           140 µs  1,090 µs       +950 µs [+945, +955]       950 µs
";
        let text = render(&view, Style::PLAIN);
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeezed(&text).starts_with(&squeezed(expected)), "{text}");
        assert!(text.lines().all(|line| width(line) <= 80), "{text}");
        assert!(
            squeezed(&text).contains("The call explains 92.4 % [91.4 %, 93.4 %] of what select wakes later"),
            "{text}"
        );
        let nice = render(&ViaGrowthView { nice: true, ..view }, Style::PLAIN);
        assert!(nice.contains("4,950 µs") && squeezed(&nice).contains("time-out by 0.5 %"), "{nice}");
        let alike = ViaGrowth::of(vec![row(10, 62.0, 1.0), row(1_000, 900.0, 2.0)]).expect("two rows");
        let told = render(&ViaGrowthView { growth: alike, slack: None, nice: false }, Style::PLAIN);
        assert!(squeezed(&told).contains("explains only"), "{told}");
    }
}
