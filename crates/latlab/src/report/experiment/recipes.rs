//! The built-in experiments: a list of them, and one as a file that can be edited and run.

use super::published::{PublishedView, render as published_table};
use crate::report::paint::{Style, width, wrap};

/// One in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecipeLine<'a> {
    /// What `latlab run` calls it.
    pub name: &'a str,
    /// What it measures.
    pub title: &'a str,
}

/// One, in full.
#[derive(Clone, Debug, PartialEq)]
pub struct RecipeView<'a> {
    /// What it measures.
    pub title: &'a str,
    /// Who did it, and how.
    pub origin: &'a str,
    /// What to learn from it.
    pub lesson: &'a str,
    /// Its file.
    pub file: &'a str,
    /// Its published figures.
    pub published: Option<PublishedView>,
}

/// The list.
pub fn render_list(recipes: &[RecipeLine<'_>], style: Style) -> String {
    let widest = recipes.iter().map(|recipe| width(recipe.name)).max().unwrap_or_default();
    let line = |recipe: &RecipeLine<'_>| {
        let gap = " ".repeat(widest - width(recipe.name) + 2);
        format!("{}{gap}{}\n", style.strong(recipe.name), recipe.title)
    };
    recipes.iter().map(line).collect()
}

/// One, as a file of an experiment: what is not of the file stands in comments.
pub fn render(view: &RecipeView<'_>) -> String {
    let comment =
        |text: &str| wrap(text, Style::PLAIN.width - 2).into_iter().map(|line| format!("# {line}\n")).collect();
    let mut parts: Vec<String> = vec![comment(view.title), comment(view.origin)];
    if let Some(published) = &view.published {
        let table = published_table(published, Style::PLAIN);
        parts.push(table.lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect());
    }
    parts.push(comment(view.lesson));
    format!("{}\n{}", parts.join("#\n"), view.file)
}
