//! Honest figures by each of the nine types of quantiles, and wrong ones: how often `check-published` accuses, and finds.
#![allow(clippy::print_stdout, reason = "the test prints the table of the documentation")]

use latlab_analysis::published::{CheckedClaim, ClaimVerdict, FigureCheck, PublishedData, check_figures, parse_claims};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Samples for each row: for the documentation, and in every build.
const REPLICATES: [u64; 2] = [2_000, 10];

fn replicates() -> u64 {
    REPLICATES[usize::from(std::env::var_os("LATLAB_SIMULATE").is_none())]
}

/// Lognormal delays of about 300 µs, in whole ns.
fn delays(random: &mut impl Rng) -> Vec<f64> {
    let n = random.random_range(1_000..6_000);
    let normal = |random: &mut dyn Rng| (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
    (0..n).map(|_| (3e5 * (0.4 * normal(random)).exp()).round()).collect()
}

/// Quantile `q` of the type `number` of Hyndman and Fan (1996): j = ⌊nq + m⌋, and the weight of the next order statistic.
fn of_type(sorted: &[f64], q: f64, number: usize) -> f64 {
    let m = [0.0, 0.0, -0.5, 0.0, 0.5, q, 1.0 - q, (q + 1.0) / 3.0, q / 4.0 + 0.375][number - 1];
    let at = sorted.len() as f64 * q + m;
    let at = if (at - at.round()).abs() < 1e-9 { at.round() } else { at };
    let (j, g) = (at.floor(), at.fract());
    let is_next = |is: bool| f64::from(u8::from(is));
    let weight = match number {
        1 => is_next(g > 0.0),
        2 => 0.5 + 0.5 * is_next(g > 0.0),
        3 => is_next(g > 0.0 || j % 2.0 != 0.0),
        _ => g,
    };
    let x = |rank: f64| sorted[(rank.max(1.0) as usize).min(sorted.len()) - 1];
    x(j) + weight * (x(j + 1.0) - x(j))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The check of `figures` in ns of `values`, published in µs with so many decimals.
fn checked(values: &[f64], figures: &[(&str, f64)], decimals: usize) -> FigureCheck {
    let claims: Vec<String> =
        figures.iter().map(|(name, figure)| format!("{name}={:.decimals$}us", figure / 1e3)).collect();
    let claims = parse_claims(&claims.join(" ")).expect("claims");
    check_figures(&PublishedData::of_values(values.iter().copied(), true), &claims, None).expect("units")
}

/// The share in % of samples for which `is` holds of the check of what is published of them in order.
fn share(
    published: impl Fn(&[f64]) -> Vec<(&'static str, f64)>,
    decimals: usize,
    is: impl Fn(&FigureCheck) -> bool,
) -> f64 {
    let one = |seed: u64| {
        let values = delays(&mut Pcg64Mcg::seed_from_u64(seed));
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        is(&checked(&values, &published(&sorted), decimals))
    };
    (0..replicates()).filter(|seed| one(*seed)).count() as f64 / replicates() as f64 * 100.0
}

fn is_accused(claim: &CheckedClaim) -> bool {
    matches!(claim.verdict, ClaimVerdict::Explained | ClaimVerdict::Contradicted)
}

#[test]
fn honest_quantiles_of_each_type_are_not_accused() {
    for number in 1..=9 {
        let honest = move |sorted: &[f64]| {
            let q = |q: f64| of_type(sorted, q, number);
            vec![("mean", mean(sorted)), ("p50", q(0.5)), ("p90", q(0.9)), ("p99", q(0.99))]
        };
        let [fine, coarse] =
            [4, 1].map(|decimals| share(honest, decimals, |check| check.claims.iter().any(is_accused)));
        println!("| type {number} | {fine:.1} | {coarse:.1} |");
        assert_eq!((fine, coarse), (0.0, 0.0), "type {number}");
    }
}

/// The mean without the largest `share`.
fn cut(sorted: &[f64], share: f64) -> f64 {
    mean(&sorted[..sorted.len() - (sorted.len() as f64 * share) as usize])
}

/// Computes published figures from sorted values.
type Publish = dyn Fn(&[f64]) -> Vec<(&'static str, f64)>;

#[test]
fn wrong_figures_are_found() {
    let rows: [(&str, &Publish); 6] = [
        ("slowest-0-1-left-out", &|sorted| vec![("mean", cut(sorted, 0.001)), ("p50", of_type(sorted, 0.5, 7))]),
        ("slowest-1-left-out", &|sorted| vec![("mean", cut(sorted, 0.01)), ("p50", of_type(sorted, 0.5, 7))]),
        ("p99-9-as-max", &|sorted| vec![("max", of_type(sorted, 0.999, 1)), ("mean", mean(sorted))]),
        ("cut-off-to-us", &|sorted| {
            vec![("mean", mean(&sorted.iter().map(|own| (own / 1e3).trunc() * 1e3).collect::<Vec<_>>()))]
        }),
        ("half-round-trip", &|sorted| vec![("mean", mean(sorted) / 2.0), ("p99", of_type(sorted, 0.99, 8) / 2.0)]),
        ("mean-median-exchanged", &|sorted| vec![("mean", of_type(sorted, 0.5, 7))]),
    ];
    for (code, published) in rows {
        let is_found = |check: &FigureCheck| {
            let is_named = check.groups.first().is_some_and(|group| group.mistakes.iter().any(|own| own.code == code));
            check.claims[0].verdict == ClaimVerdict::Explained && is_named
        };
        let found = share(published, 3, is_found);
        println!("| {code} | {found:.1} |");
        assert!(found >= 90.0, "{code}: {found}");
    }
}
