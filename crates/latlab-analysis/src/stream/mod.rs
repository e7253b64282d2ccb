//! Figures and caveats of a stream, its rate search and its stages.

mod caveats;
mod figures;
mod search_caveats;
mod series;
mod stages;

pub(super) use caveats::caveats;
pub use figures::{CpuCost, StreamFigures, StreamRates, StreamTotals};
pub(super) use figures::{StreamAccumulator, figures};
pub use series::LevelSpans;
pub use stages::{GoalEnd, GoalFigures, SearchFigures, StageFigures};
