//! Which pairs of groups have differences along the distribution.

use super::*;

/// Three runs in each of two blocks at each of two loads and two sizes.
fn loads_and_sizes() -> Vec<InMemory> {
    let mut sources = Vec::new();
    for block in 1..=2 {
        for run in 0..3 {
            for (condition, (load, size)) in
                [("none", "64"), ("none", "512"), ("cpu", "64"), ("cpu", "512")].into_iter().enumerate()
            {
                let mut source = of_experiment(100 + 20 * condition as i64 + run, load, block, "boot");
                let facts = source.manifest.experiment.as_mut().expect("of an experiment");
                facts.condition = condition as u32 + 1;
                facts.factors.insert("size".into(), size.into());
                sources.push(source);
            }
        }
    }
    sources
}

/// The pairs of the shifts of a request with a question for each of `baselines`: `load=none size=64 → load=cpu size=64`.
fn pairs_of_shifts(baselines: &[Option<(&str, &str)>]) -> Vec<String> {
    let mut request = ComparisonRequest::default();
    for (statistic, baseline) in ["mean", "p50", "p90"].into_iter().zip(baselines) {
        let levels = baseline.map(|(factor, level)| BTreeMap::from([(factor.into(), level.into())]));
        request.ask(parse_estimand(None, statistic).expect("known"), levels, None);
    }
    request.shift(Metric::RoundTripDelay);
    let groups = RunGroups::by_condition(observe(&loads_and_sizes(), &request)).expect("four conditions");
    let found = compare(groups, &request, &ComparisonOptions::at(0.95)).expect("baselines");
    let words = |index: usize| {
        let levels = &found.groups.groups[index].levels;
        format!("{} {}", levels["load"], levels["size"])
    };
    let mut pairs: Vec<_> =
        found.shifts.iter().map(|row| format!("{} → {}", words(row.baseline), words(row.candidate))).collect();
    let shifts = pairs.len();
    pairs.dedup();
    assert_eq!(shifts, pairs.len() * request.shifts().len(), "each pair is a block of its own: {pairs:?}");
    pairs.sort();
    pairs
}

#[test]
fn shifts_have_the_baselines_of_the_questions() {
    assert_eq!(pairs_of_shifts(&[Some(("load", "cpu"))]), ["cpu 512 → none 512", "cpu 64 → none 64"]);
    let both = pairs_of_shifts(&[Some(("load", "none")), Some(("size", "64"))]);
    assert_eq!(both, ["cpu 64 → cpu 512", "none 512 → cpu 512", "none 64 → cpu 64", "none 64 → none 512"]);
    let beside_first = pairs_of_shifts(&[None, Some(("size", "64"))]);
    assert_eq!(beside_first, ["cpu 64 → cpu 512", "none 64 → none 512"]);
}

#[test]
fn without_a_baseline_in_a_question_shifts_are_against_the_first_group() {
    assert_eq!(pairs_of_shifts(&[None, None]), ["none 64 → cpu 512", "none 64 → cpu 64", "none 64 → none 512"]);
}
