//! Showing: from summaries to text and JSON. Pure: everything returns a string. A renderer sees only
//! [`view`], in which all is rounded and worded already.

mod caveats;
mod coincidence;
pub mod comparison;
pub mod doctor;
pub mod experiment;
mod figures;
mod heading;
mod histogram;
pub mod json;
pub mod list;
pub mod loads;
mod meanwhile;
mod meanwhile_document;
pub mod ministat;
mod netperf;
mod paint;
mod remarks;
#[cfg(test)]
mod schemas;
mod stages;
mod streams;
mod table;
pub mod text;
pub mod view;

pub use heading::{Headline, family_of, heading};
pub use paint::Style;

#[cfg(test)]
mod tests;
