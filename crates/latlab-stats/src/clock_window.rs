//! Bounds of the offset between two clocks, from packets that were stamped by both. A packet cannot arrive before it was sent:
//! on the way there the offset θ = far − near is at most what its stamps differ by, on the way back at least.
//!
//! In a window of time all straight lines θ(t) = a + b·t between these limits are a convex polygon in the plane of a and b;
//! the bound at t has the lines of its vertices (after Moon, Skelly and Towsley 1999, who take one best line).

use std::ops::Range;

/// The stamps of a packet and its answer, in ns of the clock that took them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    pub sent: i64,
    pub far_received: i64,
    pub far_sent: i64,
    pub received: i64,
}

/// What the offset is at an instant: `middle_ns` ± `half_ns`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OffsetBound {
    pub middle_ns: i64,
    pub half_ns: f64,
}

/// A time in which the offset is a straight line, but for `slack_ns`.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockWindow {
    centre: i64,
    half_length: f64,
    offset: i64,
    polygon: Vec<Line>,
    /// The polygon's middle, with the slope of the least delays of both ways.
    drift: Line,
    slack_ns: f64,
}

/// An offset in the middle of a window, and its change in half of it, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    middle: f64,
    change: f64,
}

/// One packet: its line lies at most `limit` on `side` 1, at least on −1, at `x` of the window from −1 to 1.
#[derive(Clone, Copy)]
struct Limit {
    x: f64,
    limit: f64,
    side: f64,
}

const SHORTEST_NS: f64 = 1e10;
const LONGEST_NS: f64 = 3e11;
const PREFERRED_EXCHANGES: f64 = 1_000.0;
/// Clocks that are adjusted differ by 500 ppm of adjustment and as much of their own.
const MOST_DRIFT: f64 = 1e-3;
/// How much the frequency of each clock may change in a window.
const WANDER: f64 = 1e-7;
/// Parts of a window whose least delays are compared, and the fewest exchanges of each.
const PARTS: usize = 8;
const FEWEST_OF_PART: usize = 8;
/// The slack for a deviation of 1: with 1.5, a step near an end of a window was missed in 1.1 % of the simulated runs.
const BEND: f64 = 2.0;

/// Windows of `exchanges`, which ascend in time and have stamps with errors of `error_ns`. `None` where no straight line holds,
/// as after a step of a clock, or there are too few exchanges.
pub fn clock_windows(exchanges: &[Exchange], error_ns: f64) -> Vec<(Range<usize>, Option<ClockWindow>)> {
    let (Some(first), Some(last)) = (exchanges.first(), exchanges.last()) else { return Vec::new() };
    let duration = last.sent.saturating_sub(first.sent).max(0) as f64;
    let preferred = PREFERRED_EXCHANGES * duration / exchanges.len() as f64;
    let count = (duration / preferred.clamp(SHORTEST_NS, LONGEST_NS)).max((duration / LONGEST_NS).ceil());
    let count = (count as usize).clamp(1, exchanges.len());
    let (mut windows, mut begin) = (Vec::new(), 0);
    for number in 1..=count {
        let until = first.sent.saturating_add((duration * number as f64 / count as f64) as i64);
        let rest = &exchanges[begin..];
        let end = if number == count { exchanges.len() } else { begin + rest.partition_point(|one| one.sent < until) };
        divide(exchanges, begin..end, error_ns, &mut windows);
        begin = end;
    }
    windows
}

/// Adds the window of `range`, or those of its halves if it has none.
fn divide(
    exchanges: &[Exchange],
    range: Range<usize>,
    error_ns: f64,
    windows: &mut Vec<(Range<usize>, Option<ClockWindow>)>,
) {
    let window = ClockWindow::of(&exchanges[range.clone()], error_ns);
    if window.is_none() && range.len() >= 2 * PARTS * FEWEST_OF_PART {
        let middle = range.start + range.len() / 2;
        divide(exchanges, range.start..middle, error_ns, windows);
        divide(exchanges, middle..range.end, error_ns, windows);
    } else if !range.is_empty() {
        windows.push((range, window));
    }
}

impl ClockWindow {
    fn of(exchanges: &[Exchange], error_ns: f64) -> Option<ClockWindow> {
        let (first, last) = (exchanges.first()?, exchanges.last()?);
        if exchanges.len() < PARTS * FEWEST_OF_PART {
            return None;
        }
        let half_length = (last.received.saturating_sub(first.sent) as f64 / 2.0).max(1.0);
        let allowance = WANDER * half_length / 2.0 + error_ns;
        let window = ClockWindow {
            centre: first.sent.saturating_add(half_length as i64),
            half_length,
            offset: first.far_received.saturating_sub(first.sent),
            polygon: Vec::new(),
            drift: Line { middle: 0.0, change: 0.0 },
            slack_ns: allowance,
        };
        let window = window.with_lines(exchanges)?.with_drift();
        let (drift, bend) = window.bend(exchanges);
        let window = ClockWindow { slack_ns: allowance + BEND * bend, ..window }.with_lines(exchanges)?;
        Some(ClockWindow { drift, ..window })
    }

    /// The bound of the offset at the near instant `at`.
    pub fn offset_at(&self, at: i64) -> OffsetBound {
        let x = self.place(at);
        let (low, high) = self
            .polygon
            .iter()
            .map(|line| line.at(x))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), offset| (low.min(offset), high.max(offset)));
        let middle = ((low + high) / 2.0).round();
        OffsetBound {
            middle_ns: self.offset.saturating_add(middle as i64),
            half_ns: (high - low) / 2.0 + self.slack_ns,
        }
    }

    /// An offset at `at` that differs from the true one by an unknown constant: the drift of the clocks alone.
    pub fn drift_at(&self, at: i64) -> i64 {
        self.offset.saturating_add(self.drift.at(self.place(at)).round() as i64)
    }

    fn place(&self, at: i64) -> f64 {
        at.saturating_sub(self.centre) as f64 / self.half_length
    }

    /// The limits of an exchange: at the instants when it was sent and received, since neither clock runs backwards.
    fn limits(&self, exchange: &Exchange) -> [Limit; 2] {
        let Exchange { sent, far_received, far_sent, received } = *exchange;
        let less = |far: i64, near: i64| far.saturating_sub(near).saturating_sub(self.offset) as f64;
        [
            Limit { x: self.place(sent), limit: less(far_received, sent), side: 1.0 },
            Limit { x: self.place(received), limit: less(far_sent, received), side: -1.0 },
        ]
    }

    /// The same with the polygon of all lines within the limits and the slack; `None` if there are none.
    fn with_lines(self, exchanges: &[Exchange]) -> Option<ClockWindow> {
        let most = MOST_DRIFT * self.half_length;
        // At the first exchange every line is within its two limits, which are a round trip apart.
        let [upper, lower] = self.limits(&exchanges[0]).map(|limit| limit.limit);
        let (low, high) = (lower - 2.0 * most - self.slack_ns, upper + 2.0 * most + self.slack_ns);
        let corner = |middle, change| Line { middle, change };
        let mut polygon = vec![corner(low, -most), corner(high, -most), corner(high, most), corner(low, most)];
        for limit in exchanges.iter().flat_map(|exchange| self.limits(exchange)) {
            if polygon.iter().any(|line| limit.excess(*line) > self.slack_ns) {
                polygon = clipped(&polygon, limit, self.slack_ns);
            }
        }
        (!polygon.is_empty()).then_some(ClockWindow { polygon, ..self })
    }

    /// The same with the middle of the polygon as its drift.
    fn with_drift(self) -> ClockWindow {
        let count = self.polygon.len() as f64;
        let sum = |of: fn(&Line) -> f64| self.polygon.iter().map(of).sum::<f64>() / count;
        let drift = Line { middle: sum(|line| line.middle), change: sum(|line| line.change) };
        ClockWindow { drift, ..self }
    }

    /// The line through half of the difference of the least delays there and back in the parts of the window, and how much these
    /// deviate from it: the queues' noise, or a step of a clock, which moves both at once.
    fn bend(&self, exchanges: &[Exchange]) -> (Line, f64) {
        let points: [(f64, f64); PARTS] = std::array::from_fn(|part| {
            let ends = [part, part + 1].map(|number| number * exchanges.len() / PARTS);
            let part = &exchanges[ends[0]..ends[1]];
            let least = part.iter().map(|one| self.limits(one).map(|limit| -limit.excess(self.drift)));
            let [there, back] = least.fold([f64::INFINITY; 2], |[a, b], [c, d]| [a.min(c), b.min(d)]);
            ((self.place(part[0].sent) + self.place(part[part.len() - 1].sent)) / 2.0, (there - back) / 2.0)
        });
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / PARTS as f64;
        let (x0, y0) = (mean(&|point| point.0), mean(&|point| point.1));
        let spread = mean(&|(x, _)| (x - x0) * (x - x0));
        let change = if spread > 0.0 { mean(&|(x, y)| (x - x0) * (y - y0)) / spread } else { 0.0 };
        let left = points.map(|(x, y)| y - change * (x - x0));
        let bend = left.iter().fold(f64::NEG_INFINITY, |most, one| most.max(*one))
            - left.iter().fold(f64::INFINITY, |least, one| least.min(*one));
        (Line { middle: self.drift.middle, change: self.drift.change + change }, bend)
    }
}

impl Line {
    fn at(self, x: f64) -> f64 {
        self.middle + self.change * x
    }
}

impl Limit {
    /// By how much `line` is beyond the limit.
    fn excess(self, line: Line) -> f64 {
        self.side * (line.at(self.x) - self.limit)
    }
}

/// The part of the convex `polygon` that is at most `slack` beyond `limit` (Sutherland and Hodgman 1974).
fn clipped(polygon: &[Line], limit: Limit, slack: f64) -> Vec<Line> {
    let mut kept = Vec::with_capacity(polygon.len() + 1);
    for (number, line) in polygon.iter().enumerate() {
        let next = polygon[(number + 1) % polygon.len()];
        let (own, other) = (limit.excess(*line) - slack, limit.excess(next) - slack);
        if own <= 0.0 {
            kept.push(*line);
        }
        if (own <= 0.0) != (other <= 0.0) {
            let share = own / (own - other);
            let between = |from: f64, to: f64| from + share * (to - from);
            kept.push(Line { middle: between(line.middle, next.middle), change: between(line.change, next.change) });
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An exchange each 10 ms over `count`, 30 µs there and 70 µs back, `offset` at each instant.
    fn exchanges(count: i64, offset: impl Fn(i64) -> i64) -> Vec<Exchange> {
        let one = |number: i64| {
            let sent = number * 10_000_000;
            let [arrived, answered] = [sent + 30_000, sent + 35_000];
            let received = answered + 70_000;
            Exchange { sent, far_received: arrived + offset(arrived), far_sent: answered + offset(answered), received }
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn a_drift_is_followed_and_the_bound_is_half_of_the_round_trip() {
        let offset = |at: i64| 1_000_000_000_000_000 - at / 12_500;
        let exchanges = exchanges(3_500, offset);
        let windows = clock_windows(&exchanges, 0.0);
        assert_eq!(
            windows.iter().map(|(range, _)| range.clone()).collect::<Vec<_>>(),
            [0..1167, 1167..2333, 2333..3500]
        );
        for (range, window) in windows {
            let window = window.expect("a straight line");
            let drift: Vec<i64> =
                exchanges[range.clone()].iter().map(|one| window.drift_at(one.sent) - offset(one.sent)).collect();
            assert!(drift.iter().all(|one| (one - drift[0]).abs() < 20), "{} {}", drift[0], drift[drift.len() - 1]);
            for exchange in &exchanges[range] {
                let OffsetBound { middle_ns, half_ns } = window.offset_at(exchange.sent);
                assert!((50_000.0..52_500.0).contains(&half_ns), "{half_ns}");
                assert!((middle_ns - offset(exchange.sent)).abs() as f64 <= half_ns);
            }
        }
    }

    #[test]
    fn around_a_step_nothing_is_known() {
        let at = 4_321_000_000;
        let offset = |now: i64| if now < at { 0 } else { 150_000 };
        let exchanges = exchanges(1_000, offset);
        let windows = clock_windows(&exchanges, 0.0);
        let refused: Vec<_> = windows.iter().filter(|(_, window)| window.is_none()).collect();
        assert!(matches!(&refused[..], [(range, _)] if range.contains(&432) && range.len() < 128), "{refused:?}");
        for (range, window) in &windows {
            let Some(window) = window else { continue };
            for exchange in &exchanges[range.clone()] {
                let bound = window.offset_at(exchange.sent);
                assert!((bound.middle_ns - offset(exchange.sent)).abs() as f64 <= bound.half_ns);
            }
        }
    }

    #[test]
    fn damaged_stamps_and_few_exchanges_have_no_window() {
        assert_eq!(clock_windows(&[], 0.0), []);
        assert_eq!(clock_windows(&exchanges(63, |_| 5), 0.0), [(0..63, None)]);
        assert!(clock_windows(&exchanges(64, |_| 5), 0.0)[0].1.is_some());
        let stamps = [i64::MIN, -1, 0, i64::MAX];
        let damaged: Vec<Exchange> = (0..200)
            .map(|number| {
                let [sent, far_received, far_sent, received] = [3, 5, 7, 11].map(|prime| stamps[number / prime % 4]);
                Exchange { sent, far_received, far_sent, received }
            })
            .collect();
        assert!(clock_windows(&damaged, 0.0).iter().all(|(_, window)| window.is_none()));
    }
}
