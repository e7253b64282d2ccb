//! The full-screen view of a run that goes on (`--live`) as lines of text. It reads live rates only: no recording, no clock,
//! no terminal. Reasons: docs/design/0026-live-view.md.

use std::time::Duration;

use crate::host::sampler::CpuBusy;
use crate::measure::LiveCounts;
use crate::recording::{LiveDelays, LiveSecond, ProbeCounts, SECONDS_KEPT};
use crate::report::Style;
use crate::report::figure::axis::AxisUnit;
use crate::report::text::wrap;
use crate::report::text_plots::{CountedValue, HistogramRow, Histograms, histograms, in_ascii};
use crate::stats::LogHistogram;
use crate::units::human::{TimeUnit, bit_rate, grouped, percent, significant, span};
use crate::units::{Nanos, SenderClock, Stamp};

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenSize {
    pub rows: usize,
    pub columns: usize,
}

/// What a run does in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LiveRates {
    pub measured_per_s: f64,
    /// Payload of a stream that the kernel took.
    pub sent_bps: f64,
    /// Payload of a stream that arrived.
    pub delivered_bps: f64,
}

impl LiveRates {
    /// The rates between two counts, `elapsed` apart.
    pub fn between(from: &LiveCounts, to: &LiveCounts, elapsed: Duration) -> LiveRates {
        let rate = |count: fn(&LiveCounts) -> u64| {
            count(to).saturating_sub(count(from)) as f64 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
        };
        LiveRates {
            measured_per_s: rate(|counts| counts.measured),
            sent_bps: rate(|counts| counts.sent_bits),
            delivered_bps: rate(|counts| counts.delivered_bits),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct LiveState<'a> {
    pub heading: &'a str,
    /// The name of its delays: `round trip delay`; `None` of a stream, which has none.
    pub delay: Option<&'a str>,
    /// The word for its probes or wake-ups, in the plural.
    pub rows: &'a str,
    /// What it does: `warm-up`, `measuring for 7.1 s`.
    pub phase: &'a str,
    pub counts: LiveCounts,
    /// Its rates in about the last second.
    pub rates: LiveRates,
    pub delays: &'a LiveDelays,
    pub now: Stamp<SenderClock>,
    /// The offered loads as typed; empty without a load.
    pub loads: &'a str,
    /// CPU time that the processes of these loads used of all CPUs in about the last second, from 0 to 1; `None` if unknown.
    pub loads_share: Option<f64>,
    /// How busy each CPU was in about the last second.
    pub cpus: &'a [CpuBusy],
    /// CPU time of a redraw on average.
    pub redraw: Nanos,
    /// Share of one CPU that the redraws take.
    pub redraw_share: f64,
}

/// Delays of a second are shown as those of the last one until it is so old.
const LAST_SECOND_AGE: Nanos = Nanos::from_secs(3);
/// Columns of a label, with the blank behind it.
const LABEL: usize = 9;
/// The fewest lines that a histogram with its axis takes.
const HISTOGRAM_ROWS: usize = 13;

/// The lines of the view, at most as many and as wide as fit `size`. What matters most comes first; the cost of the view is
/// in the last line.
pub fn lines(state: &LiveState<'_>, size: ScreenSize, ascii: bool) -> Vec<String> {
    // In its last column some terminals begin a new line.
    let columns = size.columns.saturating_sub(1);
    let style = Style { width: columns.max(1), ..Style::PLAIN };
    let labelled = |label: &str, text: &str| {
        let lines = wrap(text, style.width.saturating_sub(LABEL)).into_iter().enumerate();
        let line = |(number, line)| format!("{:<LABEL$}{line}", if number == 0 { label } else { "" });
        lines.map(line).collect::<Vec<_>>()
    };
    let mut all = wrap(state.heading, style.width);
    all.push(state.phase.to_owned());
    all.extend(wrap(&counts(state), style.width));
    all.push(String::new());
    if let Some(delay) = state.delay {
        all.push(format!("{delay}, the last minute, a column for each second"));
        all.extend(sparklines(&state.delays.seconds, state.now, columns));
        all.push(String::new());
    }
    if !state.loads.is_empty() {
        all.extend(labelled("loads", &loads(state)));
    }
    if !state.cpus.is_empty() {
        all.extend(labelled("CPU busy", &cpus(state.cpus)));
    }
    let mut closing = wrap(&cost(state), style.width);
    closing.truncate(size.rows);
    let rest = size.rows - closing.len();
    if let Some(delay) = state.delay.filter(|_| rest > all.len() + HISTOGRAM_ROWS) {
        all.push(String::new());
        let rows = if state.counts.probes.sent > 0 { "answered probes" } else { state.rows };
        let title = format!("{delay} of {} {rows}, up to the last whole second", grouped(state.delays.whole.n()));
        all.extend(histogram(title, &state.delays.whole, style).lines().map(str::to_owned));
    }
    all.truncate(rest);
    all.resize(rest, String::new());
    all.extend(closing);
    let whole = |line: String| cut(&if ascii { in_ascii(&line) } else { line }, columns);
    all.into_iter().map(whole).collect()
}

/// `line` without the characters that do not fit.
fn cut(line: &str, columns: usize) -> String {
    let mut left = columns;
    let fits = |char: &char| {
        let width = crate::units::human::columns(char.encode_utf8(&mut [0; 4]));
        left.checked_sub(width).inspect(|rest| left = *rest).is_some()
    };
    line.chars().take_while(fits).collect()
}

/// Counts and rates, and the delays of the last second.
fn counts(state: &LiveState<'_>) -> String {
    let LiveCounts { measured, probes: ProbeCounts { sent, answered, lost }, .. } = state.counts;
    let LiveRates { measured_per_s, sent_bps, delivered_bps } = state.rates;
    let rate = format!("{} a second", significant(measured_per_s));
    let counts = match state.delay {
        None => format!("sent {} · delivered {}", bit_rate(sent_bps), bit_rate(delivered_bps)),
        Some(_) if sent > 0 => {
            format!("sent {} · lost {} · answered {} · {rate}", grouped(sent), grouped(lost), grouped(answered))
        }
        Some(_) => format!("{} {} · {rate}", grouped(measured), state.rows),
    };
    let last = state.delays.seconds.last().filter(|second| state.now - second.end < LAST_SECOND_AGE);
    last.map_or(counts.clone(), |second| format!("{counts} · {}", delays(second)))
}

/// The delays of `second` in one unit: `p50 48.7 p99 61.9 max 1,210 µs (1 s)`.
pub fn delays(second: &LiveSecond) -> String {
    let unit = TimeUnit::suiting(second.p50.0 as f64);
    let [p50, p99, max] = [second.p50, second.p99, second.max].map(|delay| unit.figure(delay.0 as f64));
    format!("p50 {p50} p99 {p99} max {max} {} (1 s)", unit.symbol())
}

fn loads(state: &LiveState<'_>) -> String {
    let used =
        state.loads_share.map(|share| format!(" · their processes on this host use {} of its CPUs", percent(share)));
    format!("{}{}", state.loads, used.unwrap_or_default())
}

/// `0 ▇ 87 %  1 ▁ 3 %`
fn cpus(cpus: &[CpuBusy]) -> String {
    let one = |busy: &CpuBusy| {
        let bar = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(busy.share * 7.0).round() as usize];
        format!("{} {bar} {:.0} %", busy.cpu, busy.share * 100.0)
    };
    cpus.iter().map(one).collect::<Vec<_>>().join(" · ")
}

fn cost(state: &LiveState<'_>) -> String {
    format!(
        "this view: {} of CPU time a redraw, {} of one CPU · Ctrl-C ends the run early",
        span(state.redraw),
        percent(state.redraw_share)
    )
}

fn histogram(title: String, whole: &LogHistogram, style: Style) -> String {
    let middle = |low: i64, high: i64| (low as f64 + (high - 1) as f64) / 2.0;
    let value = whole
        .buckets()
        .map(|bucket| CountedValue { value: middle(bucket.low_ns, bucket.high_ns), count: bucket.count });
    let row = HistogramRow { values: value.collect(), ..HistogramRow::default() };
    histograms(&Histograms { title, unit: AxisUnit::Time, rows: vec![row] }, style)
}

/// Bars from the smallest to the largest value.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns of the name in front of the bars, and of the last value behind them.
const AROUND: usize = 16;

/// A line of the sparklines.
struct ShownQuantile {
    name: &'static str,
    of: fn(&LiveSecond) -> Nanos,
}

/// Lines of maxima, 99th percentiles and medians, all on one logarithmic scale, so that they can be compared; the last
/// second that is over at `now` is at the right. A second without a delay has no bar.
fn sparklines(seconds: &[LiveSecond], now: Stamp<SenderClock>, columns: usize) -> Vec<String> {
    let count = columns.saturating_sub(AROUND).min(SECONDS_KEPT);
    let quantiles = [
        ShownQuantile { name: "max", of: |second| second.max },
        ShownQuantile { name: "p99", of: |second| second.p99 },
        ShownQuantile { name: "p50", of: |second| second.p50 },
    ];
    let age = |second: &LiveSecond| usize::try_from((now - second.end).0 / 1_000_000_000).ok();
    let shown: Vec<(usize, &LiveSecond)> =
        seconds.iter().filter_map(|second| Some((age(second).filter(|age| *age < count)?, second))).collect();
    let ln = |delay: Nanos| (delay.0.max(1) as f64).ln();
    let low = shown.iter().map(|(_, second)| ln(second.p50)).reduce(f64::min).unwrap_or_default();
    let high = shown.iter().map(|(_, second)| ln(second.max)).reduce(f64::max).unwrap_or_default();
    let bar = |delay: Nanos| {
        let share = (ln(delay) - low) / (high - low);
        BARS[if share.is_finite() { (share.clamp(0.0, 1.0) * (BARS.len() - 1) as f64).round() as usize } else { 0 }]
    };
    let line = |ShownQuantile { name, of: quantile }: ShownQuantile| {
        let mut bars = vec![' '; count];
        for (age, second) in &shown {
            bars[count - 1 - age] = bar(quantile(second));
        }
        let last = shown.last().map(|(_, second)| span(quantile(second))).unwrap_or_default();
        format!("{name} {} {last}", bars.into_iter().collect::<String>())
    };
    quantiles.map(line).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::human::columns as width;

    fn second(end_s: i64, p50: i64) -> LiveSecond {
        let [p50, p99, max] = [p50, 61_900, 1_210_345].map(Nanos);
        LiveSecond { end: Stamp::from_nanos(end_s * 1_000_000_000), n: 3, p50, p99, max }
    }

    fn shown(seconds: &[LiveSecond], delay: Option<&str>, size: ScreenSize, ascii: bool) -> Vec<String> {
        let probes = ProbeCounts { sent: 203_118, answered: 203_100, lost: 18 };
        let state = LiveState {
            heading: "ping local · udp ipv4 · 64 B · closed loop · 10 s",
            delay,
            rows: "probes",
            phase: "measuring for 7.1 s",
            counts: LiveCounts { probes, measured: 203_118, ..LiveCounts::default() },
            rates: LiveRates { measured_per_s: 20_311.0, sent_bps: 1e9, delivered_bps: 0.9e9 },
            delays: &LiveDelays {
                seconds: seconds.to_vec(),
                whole: LogHistogram::of(seconds.iter().flat_map(|_| [48_000, 50_000, 1_210_000])),
            },
            now: Stamp::from_nanos(62_000_000_000),
            loads: "cpu=80%",
            loads_share: Some(0.79),
            cpus: &[CpuBusy { cpu: 0, share: 0.87 }, CpuBusy { cpu: 1, share: 0.03 }],
            redraw: Nanos(41_000),
            redraw_share: 0.000_082,
        };
        lines(&state, size, ascii)
    }

    #[test]
    fn the_view_fills_every_screen_and_exceeds_none() {
        let seconds: Vec<LiveSecond> = (1..=62).map(|end| second(end, 48_710)).collect();
        for (rows, columns) in [(24, 80), (50, 200), (10, 40), (3, 20), (1, 1)] {
            for (delay, ascii) in [(Some("round trip delay"), false), (Some("wake-up latency"), true), (None, false)] {
                let lines = shown(&seconds, delay, ScreenSize { rows, columns }, ascii);
                assert_eq!(lines.len(), rows, "{lines:#?}");
                assert!(lines.iter().all(|line| width(line) < columns.max(2)), "{lines:#?}");
                assert!(!ascii || lines.iter().all(|line| line.is_ascii()), "{lines:#?}");
            }
        }
    }

    #[test]
    fn seconds_have_their_place_and_gaps_stay_empty() {
        let second = |end_s: i64, p50| LiveSecond {
            end: Stamp::from_nanos(end_s * 1_000_000_000),
            n: 1,
            p50: Nanos(p50),
            p99: Nanos(10 * p50),
            max: Nanos(100 * p50),
        };
        let now = Stamp::from_nanos(20_500_000_000);
        let lines = sparklines(&[second(1, 1), second(16, 1_000), second(20, 1_000)], now, 24);
        assert_eq!(lines, ["max    █   █ 100 µs", "p99    ▅   ▅ 10 µs", "p50    ▁   ▁ 1 µs"]);
        assert_eq!(sparklines(&[], now, 24)[0], "max          ");
        assert_eq!(sparklines(&[second(20, 5)], now, 3).len(), 3);
    }
}
