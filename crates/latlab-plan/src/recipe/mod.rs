//! Built-in experiments: published ones, to be reproduced and compared with their figures, and the A/A test. Each has the file
//! of its experiment and a file about it in `recipes/`.

mod catalogue;
mod definition;

pub use catalogue::{RECIPES, find, meant};
pub use definition::{
    Answer, Asked, Between, Column, FiguresOf, Lesson, Pictures, Prediction, Published, PublishedRow, Recipe,
    RecipeScale,
};
