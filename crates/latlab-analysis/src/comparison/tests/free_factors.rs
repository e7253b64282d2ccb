//! Groups by the tag of a free factor: the same as those of the factor.

use super::*;

/// A run of the build `build` around `level_us`, in `block`; `old` is the first condition.
fn of_build(level_us: i64, build: &str, block: u32) -> InMemory {
    let mut source = of_experiment(level_us, "none", block, "one");
    source.manifest.spec.tags.insert("build".into(), build.into());
    let experiment = source.manifest.experiment.as_mut().expect("of an experiment");
    experiment.factors = BTreeMap::from([("build".into(), build.into()), ("size".into(), "64".into())]);
    experiment.condition = if build == "old" { 1 } else { 2 };
    source
}

/// Six runs of each build in two blocks; `new` takes three times as long.
fn two_builds() -> Vec<InMemory> {
    let of_block = |block: u32| {
        let run = move |run: i64| {
            let level = 300 + 40 * i64::from(block) + run;
            [of_build(3 * level, "new", block), of_build(level, "old", block)]
        };
        (0..6).flat_map(run)
    };
    (1..=2).flat_map(of_block).collect()
}

#[test]
fn the_tag_of_a_free_factor_is_the_factor() {
    let request = usual();
    let found = |factor: &str| {
        let groups = RunGroups::by(factor, observe(&two_builds(), &request)).expect("two builds");
        compare(groups, &request, &ComparisonOptions::at(0.95)).expect("a baseline")
    };
    let (by_tag, by_factor) = (found("tag:build"), found("build"));
    assert_eq!(by_tag, by_factor);
    let names: Vec<&str> = by_tag.groups.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!((names, by_tag.groups.factor.as_deref()), (vec!["old", "new"], Some("build")), "as the conditions");
    assert!(by_tag.is_interleaved());
    let row = &by_tag.rows[0];
    assert_eq!((row.verdict, row.evidence.runs, row.evidence.blocks), (Verdict::Higher, (12, 12), 2), "{row:?}");
    assert!(row.relative.is_some_and(|relative| (relative.value - 2.0).abs() < 0.05), "{row:?}");
    assert_eq!(gate_states(&by_tag, &["p50 <= +5%", "p50 <= +300%"]), [GateState::Broken, GateState::Kept]);
}

#[test]
fn a_condition_of_a_free_factor_that_never_ran_stays_the_baseline_by_its_tag() {
    let conditions =
        ["first", "old", "new"].map(|build| BTreeMap::from([("build".to_owned(), build.to_owned())])).to_vec();
    let groups = RunGroups::by("tag:build", observe(&two_builds(), &usual())).expect("two builds");
    let groups = groups.with_conditions(&conditions);
    assert_eq!(groups.groups.iter().map(|group| group.runs.len()).collect::<Vec<_>>(), [0, 12, 12]);
}

#[test]
fn a_tag_that_differs_from_the_factor_of_its_name_is_another_one() {
    let mut sources = two_builds();
    for (place, source) in sources.iter_mut().enumerate() {
        source.manifest.spec.tags.insert("build".into(), if place % 4 < 2 { "a" } else { "b" }.into());
    }
    let groups = RunGroups::by("tag:build", observe(&sources, &usual())).expect("two tags");
    assert_eq!(groups.factor.as_deref(), Some("tag:build"));
    assert_eq!(groups.strata, ["build", "size"]);
}

#[test]
fn runs_outside_of_the_experiment_have_the_level_of_their_tag() {
    let mut sources = two_builds();
    for level_us in [350, 351] {
        let mut source = recording(level_us, 0);
        source.manifest.spec.tags.insert("build".into(), "old".into());
        sources.push(source);
    }
    for factor in ["tag:build", "build"] {
        let groups = RunGroups::by(factor, observe(&sources, &usual())).expect("two builds");
        let sizes: Vec<_> = groups.groups.iter().map(|group| (group.name.as_str(), group.runs.len())).collect();
        assert_eq!(sizes, [("old", 14), ("new", 12)], "{factor}");
        let found = compare(groups, &usual(), &ComparisonOptions::at(0.95)).expect("a baseline");
        let confounded = found.caveats.iter().find(|caveat| caveat.code == "confounded");
        assert!(confounded.is_none_or(|caveat| !caveat.message.contains("build")), "{confounded:?}");
    }
}
