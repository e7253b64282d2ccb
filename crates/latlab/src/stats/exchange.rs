//! Exchange tests: which shifts between two groups do their runs allow? Runs change their group's name inside of
//! their block only. Method and its limits: docs/statistics.md, "Comparing runs"; why it: decision 0011.

use rand::Rng;

use super::interval::Interval;

/// Up to so many exchanges all of them are taken.
const EXACT_MAX: u64 = 20_000;

/// Exchanges drawn where there are more: p is then known to ±0.004 around 0.05.
pub const DRAWS: u32 = 9_999;

/// So many places are drawn at most, about a second's work: of larger groups neighbours change places together, as many
/// as it takes, down to so many such bundles in a block. Bundles may be exchanged where their members may, so that the
/// level stays exact. A million numbers against a million took 19 s of CPU one by one.
const PLACES_MAX: u64 = 200_000_000;
const BUNDLES_MIN: usize = 50;

/// A difference closer to 0 than this share of the largest value is 0: rounding must not break a tie.
const ROUNDING: f64 = 1e-12;

/// α is seldom a binary fraction: a count that misses its share by less than this has reached it.
const COUNT_SLACK: f64 = 1e-9;

/// One block: a value for each run of either group, on the scale on which they are compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockRuns {
    /// Of the group that is compared with.
    pub baseline: Vec<f64>,
    /// Of the group that is compared.
    pub candidate: Vec<f64>,
}

impl BlockRuns {
    /// What the block weighs: n·m/(n+m), the inverse of the variance of its difference; 0 where a group is missing.
    pub(super) fn weight(&self) -> f64 {
        let (n, m) = (self.baseline.len() as f64, self.candidate.len() as f64);
        if n + m > 0.0 { n * m / (n + m) } else { 0.0 }
    }

    /// The candidate's mean less the baseline's; none where a group is missing.
    pub fn difference(&self) -> Option<f64> {
        (self.weight() > 0.0).then(|| mean(&self.candidate) - mean(&self.baseline))
    }

    /// In how many ways the names can be exchanged, as far as it can be counted.
    fn exchanges(&self) -> u64 {
        let runs = (self.baseline.len() + self.candidate.len()) as u64;
        let few = self.baseline.len().min(self.candidate.len()) as u64;
        (1..=few).try_fold(1_u64, |ways, step| Some(ways.checked_mul(runs - few + step)? / step)).unwrap_or(u64::MAX)
    }
}

/// The mean; 0 of nothing.
pub(super) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The candidate's difference from the baseline: mean over `blocks`, weighted; none where no block has both groups.
pub fn weighted_difference(blocks: &[BlockRuns]) -> Option<f64> {
    let weight: f64 = blocks.iter().map(BlockRuns::weight).sum();
    let sum: f64 = blocks.iter().filter_map(|block| Some(block.weight() * block.difference()?)).sum();
    (weight > 0.0).then(|| sum / weight)
}

/// The mean of the baseline, weighted as [`weighted_difference`] is; none where no block has both groups.
pub fn weighted_baseline(blocks: &[BlockRuns]) -> Option<f64> {
    let weight: f64 = blocks.iter().map(BlockRuns::weight).sum();
    let sum: f64 = blocks.iter().map(|block| block.weight() * mean(&block.baseline)).sum();
    (weight > 0.0).then(|| sum / weight)
}

/// Everything that the exchanges of a comparison say: p value, interval and one-sided tests are read from one list.
#[derive(Clone, Debug, PartialEq)]
pub struct PermutationTest {
    difference: f64,
    /// For each exchange the one shift up to which it is more extreme than what was seen, ascending.
    critical: Vec<f64>,
    /// Exchanges that leave every name where it was: no shift tells them from what was seen.
    idle: u64,
    exact: bool,
}

impl PermutationTest {
    /// Of the runs in `blocks`: all exchanges where there are few, else `draws` random ones and the one that was seen.
    /// Blocks without both groups say nothing; none where no block says anything.
    pub fn of(blocks: &[BlockRuns], draws: u32, random: &mut impl Rng) -> Option<PermutationTest> {
        PermutationTest::within(blocks, draws, PLACES_MAX, random)
    }

    /// The same with no more than `places_max` places drawn.
    pub(super) fn within(
        blocks: &[BlockRuns],
        draws: u32,
        places_max: u64,
        random: &mut impl Rng,
    ) -> Option<PermutationTest> {
        let difference = weighted_difference(blocks)?;
        let blocks: Vec<&BlockRuns> = blocks.iter().filter(|block| block.weight() > 0.0).collect();
        let exact = blocks.iter().fold(1_u64, |ways, block| ways.saturating_mul(block.exchanges())) <= EXACT_MAX;
        let places: u64 = blocks.iter().map(|block| block.baseline.len().min(block.candidate.len()) as u64).sum();
        let size = if exact { 1 } else { places.saturating_mul(draws.into()).div_ceil(places_max).max(1) as usize };
        let hats: Vec<Hat> = blocks.iter().map(|block| Hat::of(block, size)).collect();
        let moves = if exact { all(&hats) } else { drawn(hats, draws, random) };
        let values = blocks.iter().flat_map(|block| block.baseline.iter().chain(&block.candidate));
        let tie = ROUNDING * values.fold(0.0_f64, |largest, value| largest.max(value.abs()));
        let shift = |step: &Move| step.gain / f64::from(step.pairs);
        let snapped = |shift: f64| if shift.abs() <= tie { 0.0 } else { shift };
        let mut critical: Vec<f64> =
            moves.iter().filter(|step| step.pairs > 0).map(|step| snapped(shift(step))).collect();
        critical.sort_unstable_by(f64::total_cmp);
        let idle = (moves.len() - critical.len()) as u64;
        Some(PermutationTest { difference: snapped(difference), critical, idle, exact })
    }

    /// The same over boots (or whatever is larger than a block): each has one difference, and its sign is what is
    /// exchanged. That is the exchange of a single pair in a block of its own.
    pub fn of_differences(differences: &[f64], draws: u32, random: &mut impl Rng) -> Option<PermutationTest> {
        let pair = |difference: &f64| BlockRuns { baseline: vec![0.0], candidate: vec![*difference] };
        PermutationTest::of(&differences.iter().map(pair).collect::<Vec<_>>(), draws, random)
    }

    /// The candidate less the baseline.
    pub const fn difference(&self) -> f64 {
        self.difference
    }

    /// Whether all exchanges were taken, rather than some drawn.
    pub const fn is_exact(&self) -> bool {
        self.exact
    }

    /// How many exchanges it rests on, the one that was seen included.
    pub fn total(&self) -> u64 {
        self.critical.len() as u64 + self.idle
    }

    /// Chance of a difference as high as was seen or higher, if the candidate is the baseline moved by `shift`: small
    /// where the true shift is larger.
    pub fn chance_of_higher(&self, shift: f64) -> f64 {
        self.share(self.critical.partition_point(|critical| *critical <= shift))
    }

    /// The same of a difference as low or lower: small where the true shift is smaller.
    pub fn chance_of_lower(&self, shift: f64) -> f64 {
        self.share(self.critical.len() - self.critical.partition_point(|critical| *critical < shift))
    }

    /// Two-sided p value of `shift`: twice the smaller tail, at most 1.
    pub fn p_value(&self, shift: f64) -> f64 {
        (2.0 * self.chance_of_higher(shift).min(self.chance_of_lower(shift))).min(1.0)
    }

    /// All shifts whose p value is above 1 − `confidence`; an end is none where no shift is ever refused on that side.
    pub fn interval(&self, confidence: f64) -> Interval {
        let refused = ((1.0 - confidence) / 2.0 * self.total() as f64 + COUNT_SLACK).floor() as u64;
        // with so many critical values beyond it a shift is still refused, with one more it is not
        let place = refused.checked_sub(self.idle).map(|place| place as usize);
        let low = place.and_then(|place| self.critical.get(place)).copied();
        let high = place.and_then(|place| self.critical.get(self.critical.len().checked_sub(place + 1)?)).copied();
        Interval { low, high, confidence }
    }

    /// p value of equivalence, two one-sided tests: small where the shift is above `low` and below `high`.
    pub fn p_equivalent(&self, low: f64, high: f64) -> f64 {
        self.chance_of_higher(low).max(self.chance_of_lower(high))
    }

    fn share(&self, extreme: usize) -> f64 {
        (extreme as u64 + self.idle) as f64 / self.total() as f64
    }
}

/// Whether a `p` that is a share of counts refuses at `alpha`.
pub fn is_refused(p: f64, alpha: f64) -> bool {
    p <= alpha + COUNT_SLACK / 1e3
}

/// One exchange. With weights n·m/(n+m) the critical shift of an exchange is the mean of the candidates that leave
/// less the mean of the baseline's runs that take their places: c = (D − D_π)/(1 − f_π) with everything cancelled.
#[derive(Clone, Copy, Debug, Default)]
struct Move {
    /// Sum of what leaves the candidate less what comes in.
    gain: f64,
    /// How many pairs change places.
    pairs: u32,
}

/// The runs of a block in bundles of equal size, those of its smaller group first; what is left over stays where it is.
/// Columns, because drawing goes over them thousands of times.
struct Hat {
    /// The sum of each bundle's values, all less the block's mean.
    values: Vec<f64>,
    /// 1 where the bundle at that place belongs to the smaller group, else 0.
    own: Vec<u32>,
    /// Bundles of the smaller group.
    few: usize,
    /// Runs in a bundle.
    size: usize,
    /// Sum of the smaller group's values.
    own_sum: f64,
    /// 1 where the smaller group is the candidate, −1 where it is the baseline.
    sign: f64,
    /// For each place of the smaller group the one that it last changed with.
    picks: Vec<usize>,
}

impl Hat {
    fn of(block: &BlockRuns, size: usize) -> Hat {
        let (few, many, sign) = match block.candidate.len() <= block.baseline.len() {
            true => (&block.candidate, &block.baseline, 1.0),
            false => (&block.baseline, &block.candidate, -1.0),
        };
        let centre = (few.iter().sum::<f64>() + many.iter().sum::<f64>()) / (few.len() + many.len()) as f64;
        let size = size.min(few.len() / BUNDLES_MIN).max(1);
        let bundle = |values: &[f64]| values.iter().map(|value| value - centre).sum::<f64>();
        let values: Vec<f64> = few.chunks_exact(size).chain(many.chunks_exact(size)).map(bundle).collect();
        let few = few.len() / size;
        let own = (0..values.len()).map(|place| u32::from(place < few)).collect();
        let own_sum = values[..few].iter().sum();
        Hat { values, own, few, size, own_sum, sign, picks: vec![0; few] }
    }

    /// The exchange after which the smaller group holds bundles of this sum, `kept` of them its own.
    fn step(&self, sum: f64, kept: u32) -> Move {
        Move { gain: self.sign * (self.own_sum - sum), pairs: (self.few as u32 - kept) * self.size as u32 }
    }

    /// Every way to fill the smaller group.
    fn all(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        self.choose(0, self.few, (0.0, 0), &mut moves);
        moves
    }

    /// Fills `left` more places from the runs at `from` on.
    fn choose(&self, from: usize, left: usize, (sum, kept): (f64, u32), moves: &mut Vec<Move>) {
        if left == 0 {
            moves.push(self.step(sum, kept));
            return;
        }
        for next in from..=self.values.len() - left {
            self.choose(next + 1, left - 1, (sum + self.values[next], kept + self.own[next]), moves);
        }
    }

    /// A random way: the first places of a shuffle that stops there. Drawing, changing places and summing go one after
    /// the other: none has to wait for another's store.
    fn draw(&mut self, random: &mut impl Rng) -> Move {
        for (place, pick) in self.picks.iter_mut().enumerate() {
            let rest = (self.values.len() - place) as u64;
            // 2^32 is so far above the runs of a block that none is favoured
            *pick = place + ((u64::from(random.next_u32()) * rest) >> 32) as usize;
        }
        for (place, pick) in self.picks.iter().enumerate() {
            self.values.swap(place, *pick);
            self.own.swap(place, *pick);
        }
        let sum = self.values[..self.few].iter().fold(0.0, |sum, value| sum + value);
        self.step(sum, self.own[..self.few].iter().sum())
    }
}

/// Every exchange of every block with every other.
fn all(hats: &[Hat]) -> Vec<Move> {
    let join = |moves: Vec<Move>, hat: &Hat| {
        let own = hat.all();
        let sum = |one: &Move, other: &Move| Move { gain: one.gain + other.gain, pairs: one.pairs + other.pairs };
        moves.iter().flat_map(|one| own.iter().map(move |other| sum(one, other))).collect()
    };
    hats.iter().fold(vec![Move::default()], join)
}

/// `draws` exchanges by chance, and the one that was seen.
fn drawn(mut hats: Vec<Hat>, draws: u32, random: &mut impl Rng) -> Vec<Move> {
    let mut draw = || {
        hats.iter_mut().fold(Move::default(), |sum, hat| {
            let step = hat.draw(random);
            Move { gain: sum.gain + step.gain, pairs: sum.pairs + step.pairs }
        })
    };
    std::iter::once(Move::default()).chain((0..draws).map(|_| draw())).collect()
}
