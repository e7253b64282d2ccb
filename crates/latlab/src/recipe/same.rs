//! The same condition under two names: whatever is found is false.

use super::{Recipe, alike};

pub(super) const RECIPE: Recipe = Recipe {
    name: "aa",
    title: "the same condition under two names: false positives and drift of this host",
    origin: "the A/A test of controlled experiments: two groups that differ in their name only",
    lesson: "A difference that is found here is none. How often the test of `latlab compare` finds one should be close to 5 %, or \
             below; Student's t and Mann-Whitney over single probes find one nearly always, since probes of one run resemble \
             each other more than those of two. The drift says how much an experiment that measures one condition after the \
             other would see that is not there.",
    template: include_str!("../../recipes/aa.toml"),
    words: [
        &[("DURATION", "500ms"), ("WARMUP", "100ms"), ("RUNS", "4"), ("BLOCKS", "3"), ("SETTLE", "0s")],
        &[("DURATION", "2s"), ("WARMUP", "200ms"), ("RUNS", "6"), ("BLOCKS", "10"), ("SETTLE", "0s")],
        &[("DURATION", "10s"), ("WARMUP", "1s"), ("RUNS", "10"), ("BLOCKS", "10"), ("SETTLE", "0s")],
    ],
    usual_target: "local",
    words_of_target: alike,
    published: None,
};
