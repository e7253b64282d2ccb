//! The built-in experiments: a list, and one as a file to edit and run.

use super::published::publication;
use crate::recipe::Recipe;
use crate::report::paint::{Style, width, wrap};

/// A list of `recipes`.
pub fn recipe_list(recipes: &[&Recipe], style: Style) -> String {
    let widest = recipes.iter().map(|recipe| width(recipe.name)).max().unwrap_or_default();
    let line = |recipe: &&Recipe| {
        let gap = " ".repeat(widest - width(recipe.name) + 2);
        format!("{}{gap}{}\n", style.strong(recipe.name), recipe.title)
    };
    recipes.iter().map(line).collect()
}

/// `recipe` as the `file` of an experiment; all but the file is in comments.
pub fn recipe(recipe: &Recipe, file: &str) -> String {
    let comment =
        |text: &str| wrap(text, Style::PLAIN.width - 2).into_iter().map(|line| format!("# {line}\n")).collect();
    let mut parts: Vec<String> = vec![comment(recipe.title), comment(recipe.origin)];
    if let Some(published) = &recipe.published {
        let table = publication(published, Style::PLAIN);
        parts.push(table.lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect());
    }
    parts.push(comment(recipe.lesson));
    format!("{}\n{file}", parts.join("#\n"))
}
