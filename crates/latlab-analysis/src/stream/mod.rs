//! Figures of a stream, its rate search and its stages.

mod figures;
mod series;
mod stages;

pub use figures::{CpuCost, StreamFigures, StreamRates, StreamTotals};
pub(super) use figures::{StreamAccumulator, figures};
pub use series::LevelSpans;
pub use stages::{GoalEnd, GoalFigures, SearchFigures, StageFigures};
