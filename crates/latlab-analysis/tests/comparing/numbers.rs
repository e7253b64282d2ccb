//! Lines of files as runs: as recordings if they are independent, and with a caveat if they show that they are not.

use latlab_analysis::comparison::{
    ComparisonOptions, ComparisonRequest, Lines, NumberFiles, RunGroups, Verdict, compare,
};

use crate::simulated::{Random, in_parallel, is_long, rows};

/// For the documentation, and in every build.
const EXPERIMENTS: [u64; 2] = [2_000, 500];
const DRAWS: u32 = 499;
/// Standard deviation of a run, and the difference that is to be found.
const DEVIATION: f64 = 0.03;
const DIFFERENCE: f64 = 0.05;

/// Lines with this lag-1 autocorrelation.
fn lines(count: usize, correlation: f64, random: &mut Random) -> Vec<f64> {
    let innovation = (1.0 - correlation * correlation).sqrt();
    let mut state = random.normal();
    let mut next = || {
        state = correlation * state + innovation * random.normal();
        (DEVIATION * state).exp()
    };
    (0..count).map(|_| next()).collect()
}

/// Whether a difference is claimed, and whether dependence is.
fn judge(count: usize, correlation: f64, shift: f64, seed: u64) -> [bool; 2] {
    let mut random = Random::new(seed);
    let file = |name: &str, values| NumberFiles { name: name.into(), files: vec![(name.into(), values)] };
    let one = file("one", lines(count, correlation, &mut random));
    let moved = lines(count, correlation, &mut random).into_iter().map(|value| value * (1.0 + shift)).collect();
    let groups = RunGroups::of_numbers(vec![one, file("other", moved)], Some(Lines::Runs)).expect("two");
    let options = ComparisonOptions { draws: DRAWS, seed, ..ComparisonOptions::at(0.95) };
    let found = compare(groups, &ComparisonRequest::of_values(None), &options).expect("a row");
    let is_claimed = matches!(found.rows[0].verdict, Verdict::Higher | Verdict::Lower);
    [is_claimed, found.caveats.iter().any(|caveat| caveat.code == "dependent-lines")]
}

#[test]
fn lines_as_runs_have_the_power_of_recordings() {
    println!("| lag-1 autocorrelation | lines | false | 5 % found | caveat | false without it |");
    let experiments = EXPERIMENTS[usize::from(!is_long())];
    for correlation in rows([0.0, 0.5, 0.8, 0.95], &[0, 2]) {
        for count in rows([5, 9, 10, 30, 100, 1_000], &[2, 3]) {
            let same = in_parallel(experiments, |seed| judge(count, correlation, 0.0, seed));
            let moved = in_parallel(experiments, |seed| judge(count, correlation, DIFFERENCE, seed));
            let share = |is: &dyn Fn(&[bool; 2]) -> bool, of: &[[bool; 2]]| {
                100.0 * of.iter().filter(|one| is(one)).count() as f64 / experiments as f64
            };
            let (claimed, caveat) = (share(&|one| one[0], &same), share(&|one| one[1], &same));
            let (power, silent) = (share(&|one| one[0], &moved), share(&|one| one[0] && !one[1], &same));
            println!("| {correlation} | {count} | {claimed:.1} | {power:.0} | {caveat:.1} | {silent:.1} |");
            assert!(correlation > 0.0 || (claimed <= 8.0 && caveat <= 10.0), "{count}: {claimed} {caveat}");
            assert!(correlation > 0.0 || count < 10 || power >= 88.0, "{count}: {power}");
            assert!(correlation < 0.8 || count < 30 || caveat >= 60.0, "{count}: {caveat}");
        }
    }
}
