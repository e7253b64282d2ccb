//! Delays rarer than a run shows well: the generalised Pareto distribution of peaks over a threshold, one of each cluster of
//! slow singletons. It speaks where several thresholds agree. Method, simulation and limits: docs/statistics.md, "How bad
//! can it get".

use std::cmp::Reverse;

use super::describe::Description;
use super::order::Order;
use crate::sample::Sample;
use crate::units::Nanos;

/// The lowest threshold has at most so many peaks, and so many singletons above it at least.
const PEAKS: usize = 1600;
/// Fewer of them give no levels.
const PEAKS_MIN: usize = 600;
/// At most one of so many singletons lies above it.
const SHARE: usize = 125;
/// The highest of the peaks: the first of these tails gives the point, all of them the bound.
const TAILS: [usize; 3] = [200, 100, 50];
/// Peaks at the lowest threshold for each of the tail that gives the point.
const BELOW: usize = 5;
/// Shapes that are tried: from an exponential tail, as no latency is known to have an end, to an infinite variance.
const SHAPES: usize = 21;
const SHAPE_MAX: f64 = 0.5;
/// No scale that is so many times the most likely one is likely.
const SCALES: f64 = 8.0;
/// Likelihoods within this of the largest are those of 95 % of samples on one side: half of the quantile 0.9 of χ² (Wilks).
const LIKELY: f64 = 1.353;
/// Standard errors of a number of clusters that are as likely.
const LIKELY_RATE: f64 = 1.645;
/// One run in so many has a larger maximum by chance.
const RUNS_TO_MAXIMUM: f64 = 20.0;
/// Parts of a run that are compared.
const PARTS: usize = 20;
/// The quantile 0.99 of χ² with one degree of freedom less than there are parts.
const UNEVEN: f64 = 36.19;
/// Fewer different peaks among [`PEAKS_MIN`] show the resolution of the clock and not the tail.
const DIFFERENT_MIN: usize = 50;

/// How rare a level is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rarity {
    /// The quantile of the singletons, in (0, 1).
    Quantile(f64),
    /// One cluster in this `period`, which has so many `singletons`, lies above it.
    OnceIn { period: Nanos, singletons: f64 },
}

/// A level with its bound, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    pub rarity: Rarity,
    pub value: f64,
    /// One-sided upper bound, which holds in 95 % of runs.
    pub upper_bound: f64,
}

/// What the peaks over a threshold say.
#[derive(Clone, Debug, PartialEq)]
pub struct Extremes {
    /// In ns; the highest 200 peaks lie above it, or fewer of a short run.
    pub threshold: f64,
    /// How many clusters have a singleton above it.
    pub clusters: usize,
    /// Of the generalised Pareto distribution; 0 of an exponential tail.
    pub shape: f64,
    pub levels: Vec<Level>,
}

/// Why nothing is said about rare delays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoExtremes {
    /// The singletons have no order, which clusters need.
    Unordered,
    /// So many singletons are lost, which are infinite delays.
    Lost(u64),
    /// The level changes over large parts of the run.
    SlowChanges,
    /// Too few clusters of slow singletons; about so many singletons are needed.
    FewClusters { needed: f64 },
    /// So few different values among the peaks.
    Coarse(usize),
    /// More slow clusters in some parts of the run than chance has it.
    Uneven,
    /// A shape with an infinite variance is likely.
    HeavyTail,
    /// The highest peaks are higher than the others let expect: they have another cause, or it is too rare to be known.
    Disagreeing,
}

/// The levels of `rarities` as far as they lie above the threshold and occur in a run of this length. `described` is the
/// sample.
///
/// # Errors
/// The sample does not carry an answer.
pub fn extremes(sample: &Sample, described: &Description, rarities: &[Rarity]) -> Result<Extremes, NoExtremes> {
    if !sample.ordered {
        return Err(NoExtremes::Unordered);
    }
    if described.lost > 0 {
        return Err(NoExtremes::Lost(described.lost));
    }
    if described.slow_changes.is_some() {
        return Err(NoExtremes::SlowChanges);
    }
    let peaks = Peaks::of(&sample.singletons)?;
    let most = peaks.highest.len() / BELOW;
    let tails: Vec<Tail> = TAILS.into_iter().filter(|k| *k <= most).map(|k| Tail::of(&peaks, k)).collect();
    let main = &tails[0];
    if peaks.are_uneven(peaks.highest.len()) || peaks.are_uneven(main.excesses.len()) {
        return Err(NoExtremes::Uneven);
    }
    if main.likely.iter().any(|(shape, _)| *shape >= SHAPE_MAX) {
        return Err(NoExtremes::HeavyTail);
    }
    if peaks.disagree(&tails) {
        return Err(NoExtremes::Disagreeing);
    }
    let n = sample.singletons.len() as f64;
    let occurs = |rarity: &Rarity| match *rarity {
        Rarity::Quantile(q) => (1.0 - q) * n > 1.0 - 1e-6,
        Rarity::OnceIn { singletons, .. } => singletons <= n,
    };
    let is_known = |rarity: &Rarity| occurs(rarity) && main.times(*rarity) > 1.0;
    let level = |rarity: Rarity| Level {
        rarity,
        value: main.value(main.times(rarity)),
        upper_bound: tails.iter().map(|tail| tail.upper_bound(tail.times(rarity))).fold(0.0, f64::max),
    };
    let levels = rarities.iter().copied().filter(is_known).map(level).collect();
    Ok(Extremes { threshold: main.threshold, clusters: main.excesses.len(), shape: main.best.0, levels })
}

/// The largest singleton of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Peak {
    value: i64,
    place: usize,
    /// Slow singletons in the cluster.
    size: usize,
}

/// The peaks of a run.
struct Peaks {
    n: usize,
    /// The highest first.
    highest: Vec<Peak>,
    /// The singletons of the clusters, the highest first.
    singletons: Vec<i64>,
}

impl Peaks {
    fn of(singletons: &[i64]) -> Result<Peaks, NoExtremes> {
        let (n, most) = (singletons.len(), singletons.len() / SHARE);
        let floor = Order::new(singletons).at(&[(n - most) as u64])[0];
        let mut highest: Vec<(i64, usize)> = singletons.iter().copied().zip(0..).filter(|one| one.0 >= floor).collect();
        highest.sort_unstable_by_key(|one| Reverse(*one));
        highest.truncate(most);
        let mut count = PEAKS.min(most);
        let mut peaks = peaks_of(&highest[..count]);
        while peaks.len() < PEAKS && count < most {
            count = (2 * count).min(most);
            peaks = peaks_of(&highest[..count]);
        }
        if peaks.len() < PEAKS_MIN || most < PEAKS {
            let each = n as f64 / peaks.len().max(1) as f64;
            let needed = (each * PEAKS_MIN as f64).max((PEAKS * SHARE) as f64);
            return Err(NoExtremes::FewClusters { needed });
        }
        peaks.sort_unstable_by_key(|one| Reverse(*one));
        peaks.truncate(PEAKS);
        let different = 1 + peaks.windows(2).filter(|pair| pair[0].value != pair[1].value).count();
        if different < DIFFERENT_MIN {
            return Err(NoExtremes::Coarse(different));
        }
        Ok(Peaks { n, highest: peaks, singletons: highest.into_iter().map(|one| one.0).collect() })
    }

    /// Whether the parts of the run have numbers of slow singletons, in the clusters of the `k` highest peaks, that differ by
    /// more than chance has it: clusters come independently of each other, their singletons do not.
    fn are_uneven(&self, k: usize) -> bool {
        let (mut counts, mut squares) = ([0.0; PARTS], 0.0);
        for peak in &self.highest[..k] {
            counts[peak.place * PARTS / self.n] += peak.size as f64;
            squares += (peak.size * peak.size) as f64;
        }
        let mean = counts.iter().sum::<f64>() / PARTS as f64;
        let variance = squares / PARTS as f64;
        counts.iter().map(|count| (count - mean) * (count - mean) / variance).sum::<f64>() > UNEVEN
    }

    /// Whether a higher one of the `tails` has a level, the one that is exceeded once in the run, above the bound of a lower
    /// one or of all peaks, or the maximum is higher than all peaks let expect.
    fn disagree(&self, tails: &[Tail]) -> bool {
        let lowest = Tail::of(self, self.highest.len() - 1);
        let falling: Vec<&Tail> = [&lowest].into_iter().chain(tails).collect();
        let is_lower = |(place, low): (usize, &&Tail)| {
            let bound = low.upper_bound(low.excesses.len() as f64);
            falling[place + 1..].iter().any(|high| high.value(high.excesses.len() as f64) > bound)
        };
        let expected = lowest.value(RUNS_TO_MAXIMUM * lowest.excesses.len() as f64);
        self.highest[0].value as f64 > expected || falling.iter().enumerate().any(is_lower)
    }
}

/// The largest singleton of each cluster of slow ones (Ferro and Segers 2003): their extremal index, from the gaps between
/// them, says how many of the gaps lie between clusters, which are the longest.
fn peaks_of(slow: &[(i64, usize)]) -> Vec<Peak> {
    let mut slow = slow.to_vec();
    slow.sort_unstable_by_key(|one| one.1);
    let mut gaps: Vec<usize> = slow.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    let less = if gaps.iter().any(|gap| *gap > 2) { 1.0 } else { 0.0 };
    let sum: f64 = gaps.iter().map(|gap| *gap as f64 - less).sum();
    let squares: f64 = gaps.iter().map(|gap| (*gap as f64 - less) * (*gap as f64 - 2.0 * less)).sum();
    let index = (2.0 * sum * sum / (gaps.len() as f64 * squares)).min(1.0);
    let clusters = (index * slow.len() as f64) as usize;
    gaps.sort_unstable_by_key(|gap| Reverse(*gap));
    // Gaps as long as the next one do not separate.
    let within = gaps.get(clusters.saturating_sub(1)).copied().unwrap_or(0);
    let mut peaks: Vec<Peak> = Vec::new();
    let mut last = 0;
    for (value, place) in slow {
        match peaks.last_mut().filter(|_| place - last <= within) {
            Some(peak) => {
                let highest = (*peak).max(Peak { value, place, size: 0 });
                *peak = Peak { size: peak.size + 1, ..highest };
            }
            None => peaks.push(Peak { value, place, size: 1 }),
        }
        last = place;
    }
    peaks
}

/// The generalised Pareto distribution of the excesses of the highest peaks.
struct Tail {
    threshold: f64,
    excesses: Vec<f64>,
    /// Singletons for each peak.
    each: f64,
    /// The share of singletons above the threshold.
    share: f64,
    /// Shape and scale of the largest likelihood.
    best: (f64, f64),
    /// Shapes with the largest scale that is likely.
    likely: Vec<(f64, f64)>,
}

impl Tail {
    fn of(peaks: &Peaks, k: usize) -> Tail {
        let threshold = peaks.highest[k].value;
        let excesses: Vec<f64> = peaks.highest[..k].iter().map(|peak| (peak.value - threshold) as f64).collect();
        let above = peaks.singletons.partition_point(|value| *value > threshold);
        let shapes = (0..SHAPES).map(|step| SHAPE_MAX * step as f64 / (SHAPES - 1) as f64);
        let scaled = shapes.map(|shape| (shape, scale_of(&excesses, shape)));
        let fits: Vec<(f64, (f64, f64))> = scaled.map(|fit| (log_likelihood(&excesses, fit), fit)).collect();
        let (most, best) =
            fits.iter().copied().fold((f64::MIN, (0.0, 0.0)), |best, fit| if fit.0 > best.0 { fit } else { best });
        let is_likely = |fit: (f64, f64)| log_likelihood(&excesses, fit) >= most - LIKELY;
        let largest = |(shape, scale): (f64, f64)| {
            (shape, scale * last_where(1.0, SCALES, |times| is_likely((shape, scale * times))))
        };
        let likely = fits.iter().map(|fit| fit.1).filter(|fit| is_likely(*fit)).map(largest).collect();
        Tail {
            threshold: threshold as f64,
            each: peaks.n as f64 / k as f64,
            share: above as f64 / peaks.n as f64,
            best,
            likely,
            excesses,
        }
    }

    /// How many times as rare as the threshold.
    fn times(&self, rarity: Rarity) -> f64 {
        match rarity {
            Rarity::Quantile(q) => self.share / (1.0 - q),
            Rarity::OnceIn { singletons, .. } => singletons / self.each,
        }
    }

    /// The level that is so many `times` as rare as the threshold.
    fn value(&self, times: f64) -> f64 {
        self.threshold + excess(self.best, times)
    }

    /// Its upper bound: of all likely shapes and scales, and a number of clusters that is as likely.
    fn upper_bound(&self, times: f64) -> f64 {
        let times = times * (1.0 + LIKELY_RATE / (self.excesses.len() as f64).sqrt());
        self.threshold + self.likely.iter().map(|fit| excess(*fit, times)).fold(0.0, f64::max)
    }
}

/// The excess that is so many `times` as rare as the threshold.
fn excess((shape, scale): (f64, f64), times: f64) -> f64 {
    if shape == 0.0 { scale * times.ln() } else { scale * (times.powf(shape) - 1.0) / shape }
}

/// The logarithm of the likelihood of the generalised Pareto distribution.
fn log_likelihood(excesses: &[f64], (shape, scale): (f64, f64)) -> f64 {
    let sum: f64 = if shape == 0.0 {
        excesses.iter().sum::<f64>() / scale
    } else {
        (1.0 + 1.0 / shape) * excesses.iter().map(|excess| (shape * excess / scale).ln_1p()).sum::<f64>()
    };
    -(excesses.len() as f64) * scale.ln() - sum
}

/// The most likely scale for this `shape`.
fn scale_of(excesses: &[f64], shape: f64) -> f64 {
    let k = excesses.len() as f64;
    let mean = excesses.iter().sum::<f64>() / k;
    let falls =
        |scale: f64| (1.0 + shape) * excesses.iter().map(|excess| excess / (scale + shape * excess)).sum::<f64>() > k;
    mean * last_where(1e-3, 2.0, |times| falls(mean * times))
}

/// The largest value between `low` and `high` for which `holds`, as it does for the lower ones.
fn last_where(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    while high > low * (1.0 + 1e-4) {
        let middle = (low * high).sqrt();
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}
