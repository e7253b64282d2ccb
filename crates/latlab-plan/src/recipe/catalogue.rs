//! The list of built-in experiments.

use std::sync::LazyLock;

use super::definition::Recipe;
use crate::units::human;

macro_rules! recipe {
    ($name:literal) => {
        (
            include_str!(concat!("../../recipes/", $name, ".toml")),
            include_str!(concat!("../../recipes/", $name, ".about.toml")),
        )
    };
}

pub static RECIPES: LazyLock<Vec<Recipe>> = LazyLock::new(|| {
    let files = [
        recipe!("pi-udp-load"),
        recipe!("udp-loopback-matrix"),
        recipe!("pi-roundtrip"),
        recipe!("dds-pingpong"),
        recipe!("wakeup-governor"),
        recipe!("aa"),
    ];
    files.into_iter().map(|(template, about)| Recipe::of(template, about)).collect()
});

pub fn find(name: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|recipe| recipe.name == name)
}

/// A question for the recipes that `name` may stand for: mistyped, or only the begin of the name.
pub fn meant(name: &str) -> Option<String> {
    let names: Vec<&str> = RECIPES.iter().map(|recipe| recipe.name.as_str()).collect();
    human::meant(name, &names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::{Between, RecipeScale};

    #[test]
    fn every_word_of_a_template_has_a_text() {
        for recipe in RECIPES.iter() {
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

    /// Those of FreeBSD's experiment are settings of the target, and stand in its file as the rows name them.
    #[test]
    fn the_sizes_of_packets_and_the_settings_suit_the_target() {
        let matrix = find("udp-loopback-matrix").expect("there is one");
        for (target, size) in [("lab", "9216"), ("local", "9216"), ("ssh:pi3", "1452")] {
            let file = matrix.file(target, RecipeScale::Usual, Between::AsItsFileSays);
            assert!(file.contains(&format!("\nsize = {size} ")), "{file}");
            for row in &matrix.published.as_ref().expect("published").rows {
                assert_eq!(file.matches(&format!("{}\"", row.factors["set"])).count(), 1, "{file}");
            }
            // An interface of the host keeps its MTU.
            assert_eq!(file.contains("mtu="), target == "lab", "{file}");
        }
    }

    #[test]
    fn every_row_has_a_figure_for_each_column() {
        for published in RECIPES.iter().filter_map(|recipe| recipe.published.as_ref()) {
            for row in &published.rows {
                let done = !row.published.is_empty();
                assert_eq!(row.published.len(), if done { published.columns.len() } else { 0 }, "{}", row.label);
                assert!(published.headings.is_empty() || published.headings.len() == published.columns.len());
                assert!(row.recomputed.is_empty() || row.recomputed.len() == published.columns.len(), "{}", row.label);
            }
        }
    }
}
