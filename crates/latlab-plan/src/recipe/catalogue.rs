//! The list of built-in experiments, and the definition of one: the A/A test, which reproduces no publication.

use super::definition::{Recipe, no_words};
use super::{dds, loopback, raspberry_pi, wakeup};
use crate::units::human;

pub const RECIPES: [&Recipe; 6] =
    [&raspberry_pi::UDP_LOAD, &loopback::MATRIX, &raspberry_pi::ROUND_TRIP, &dds::PING_PONG, &wakeup::GOVERNOR, &AA];

/// The recipe of that name.
pub fn find(name: &str) -> Option<&'static Recipe> {
    RECIPES.into_iter().find(|recipe| recipe.name == name)
}

/// A question for the recipes that `name` may stand for: mistyped, or only the begin of the name.
pub fn meant(name: &str) -> Option<String> {
    human::meant(name, &RECIPES.map(|recipe| recipe.name))
}

/// The A/A test: one condition under two names.
const AA: Recipe = Recipe {
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
    words_of_target: no_words,
    published: None,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{Between, RecipeScale};

    #[test]
    fn every_word_of_a_template_has_a_text() {
        for recipe in RECIPES {
            for scale in [RecipeScale::Quick, RecipeScale::Usual, RecipeScale::Full] {
                let file = recipe.file("cmd:sh -c \"x\\y\"", scale, Between::Reboots);
                assert!(file.contains("\n[design]\n") && file.contains("\nbetween-blocks = \"reboot\"\n"), "{file}");
                let left = file.lines().find(|line| line.contains('@') && !line.contains("@both"));
                assert_eq!(left, None, "{} {scale:?}", recipe.name);
                let target = file.contains("target = \"cmd:sh -c \\\"x\\\\y\\\"\"\n");
                assert_eq!(target, recipe.has_target(), "{file}");
            }
        }
    }

    #[test]
    fn recipes_are_found_by_their_name() {
        assert!(RECIPES.iter().all(|recipe| find(recipe.name).is_some()));
        assert!(find("pi-udp").is_none());
        for (name, question) in [
            ("pi-udp-laod", Some("did you mean `pi-udp-load`?")),
            ("pi-udp", Some("did you mean `pi-udp-load`?")),
            ("pi-", Some("did you mean `pi-udp-load` or `pi-roundtrip`?")),
            ("x.toml", None),
        ] {
            assert_eq!(meant(name).as_deref(), question, "{name}");
        }
    }

    #[test]
    fn every_row_has_a_figure_for_each_column() {
        for published in RECIPES.iter().filter_map(|recipe| recipe.published) {
            for row in published.rows {
                let done = !row.published.is_empty();
                assert_eq!(row.published.len(), if done { published.columns.len() } else { 0 }, "{}", row.label);
                assert!(row.recomputed.is_empty() || row.recomputed.len() == published.columns.len(), "{}", row.label);
            }
        }
    }
}
