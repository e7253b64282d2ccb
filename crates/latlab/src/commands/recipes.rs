//! `latlab recipes`: the built-in experiments.

use super::Outcome;
use crate::cli::resolve::AskedRecipe;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::recipe::RECIPES;
use crate::report::Style;
use crate::report::experiment::{recipe, recipe_list};

/// Shows one recipe, or lists all.
pub(super) fn run(asked: Option<AskedRecipe>, console: &Console) -> Result<Outcome, Failure> {
    let style = Style { colour: console.data_screen().colour, ..Style::PLAIN };
    let text = match asked {
        None => recipe_list(&RECIPES, style),
        Some(asked) => recipe(asked.recipe, &asked.file()),
    };
    console.data(&text)?;
    Ok(Outcome::Done)
}
