//! `latlab recipes`: the built-in experiments.

use super::Outcome;
use super::experiment::beside;
use crate::cli::resolve::AskedRecipe;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::recipe::RECIPES;
use crate::report::Style;
use crate::report::experiment::recipes::{RecipeLine, RecipeView, render, render_list};

/// Shows one recipe, or lists all.
pub(super) fn run(asked: Option<AskedRecipe>, console: &Console) -> Result<Outcome, Failure> {
    let style = Style { colour: console.data_screen().colour, ..Style::PLAIN };
    let text = match asked {
        None => render_list(&RECIPES.map(|recipe| RecipeLine { name: recipe.name, title: recipe.title }), style),
        Some(asked) => {
            let (recipe, file) = (asked.recipe, asked.file());
            render(&RecipeView {
                title: recipe.title,
                origin: recipe.origin,
                lesson: recipe.lesson,
                file: &file,
                published: recipe.published.map(beside::published),
            })
        }
    };
    console.data(&text)?;
    Ok(Outcome::Done)
}
