//! Built-in experiments: published ones, to be reproduced and compared with their figures, and the A/A test.

mod catalogue;
mod dds;
mod definition;
mod loopback;
mod raspberry_pi;
mod wakeup;

pub use catalogue::{RECIPES, find, meant};
pub use definition::{Between, Column, FiguresOf, Published, PublishedRow, Recipe, RecipeScale};
