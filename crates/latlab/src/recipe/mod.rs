//! Built-in experiments: published ones, to be done again with their figures beside, and the host against itself.

mod pi_roundtrip;
mod pi_udp_load;
mod published;
mod same;
mod udp_loopback_matrix;
mod wakeup_governor;

pub use published::{Column, FiguresOf, Published, PublishedRow};

use crate::units::human::nearest;

/// A built-in experiment.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// What `latlab run` calls it.
    pub name: &'static str,
    /// What it measures, in one line.
    pub title: &'static str,
    /// Who did it, and how.
    pub origin: &'static str,
    /// What to learn from it.
    pub lesson: &'static str,
    /// Its file, with words such as `@RUNS@` for what depends on target and scale.
    template: &'static str,
    /// What stands for these words: quick, usual, full.
    words: [RecipeText; 3],
    /// What it is measured against where nothing is typed.
    pub usual_target: &'static str,
    /// What stands for words that depend on the target.
    words_of_target: fn(&str) -> RecipeText,
    /// The published figures, where there are some.
    pub published: Option<&'static Published>,
}

/// Words of a template, each with what stands for it.
type RecipeText = &'static [(&'static str, &'static str)];

/// Of a recipe whose file is the same for all targets.
const fn alike(_target: &str) -> RecipeText {
    &[]
}

/// What lies between the blocks of a recipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Between {
    /// What its file says: nothing.
    #[default]
    AsItsFileSays,
    /// A reboot.
    Reboots,
}

/// How much of a recipe is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecipeScale {
    /// Within a minute: to see how it looks.
    Quick,
    /// Within half an hour.
    #[default]
    Usual,
    /// What the publication did, or more.
    Full,
}

impl RecipeScale {
    /// The word in journals.
    pub const fn word(self) -> &'static str {
        match self {
            RecipeScale::Quick => "quick",
            RecipeScale::Usual => "usual",
            RecipeScale::Full => "full",
        }
    }
}

/// Every recipe.
pub const RECIPES: [&Recipe; 5] = [
    &pi_udp_load::RECIPE,
    &udp_loopback_matrix::RECIPE,
    &pi_roundtrip::RECIPE,
    &wakeup_governor::RECIPE,
    &same::RECIPE,
];

/// The recipe of that name.
pub fn find(name: &str) -> Option<&'static Recipe> {
    RECIPES.into_iter().find(|recipe| recipe.name == name)
}

/// The recipe that was probably meant.
pub fn meant(name: &str) -> Option<&'static str> {
    nearest(name, &RECIPES.map(|recipe| recipe.name))
}

impl Recipe {
    /// Whether it measures towards something; one that does not is about this host.
    pub fn has_target(&self) -> bool {
        self.template.contains("@TARGET@")
    }

    /// Its file, for a target and a scale.
    pub fn file(&self, target: &str, scale: RecipeScale, between: Between) -> String {
        let quoted = format!("\"{}\"", target.replace('\\', "\\\\").replace('"', "\\\""));
        let words = self.words[match scale {
            RecipeScale::Quick => 0,
            RecipeScale::Usual => 1,
            RecipeScale::Full => 2,
        }];
        let with = |file: String, (word, text): &(&str, &str)| file.replace(&format!("@{word}@"), text);
        let words = words.iter().chain((self.words_of_target)(target));
        let file = words.fold(self.template.replace("@TARGET@", &quoted), with);
        match between {
            Between::AsItsFileSays => file,
            Between::Reboots => file.replacen("\nblocks = ", "\nbetween-blocks = \"reboot\"\nblocks = ", 1),
        }
    }

    /// What the journal calls its source: another target, scale or kind of block is another experiment.
    pub fn source(&self, target: &str, scale: RecipeScale, between: Between) -> String {
        let reboots = if between == Between::Reboots { " reboots" } else { "" };
        format!("recipe:{} {}{reboots} {target}", self.name, scale.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_file_is_filled_in() {
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
        assert_eq!(meant("pi-udp-laod"), Some("pi-udp-load"));
    }

    #[test]
    fn every_figure_has_its_column() {
        for published in RECIPES.iter().filter_map(|recipe| recipe.published) {
            for row in published.rows {
                let done = !row.published.is_empty();
                assert_eq!(row.published.len(), if done { published.columns.len() } else { 0 }, "{}", row.label);
                assert!(row.recomputed.is_empty() || row.recomputed.len() == published.columns.len(), "{}", row.label);
            }
        }
    }
}
