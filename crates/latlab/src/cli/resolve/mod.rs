//! Resolution of parsed arguments: fills in defaults, checks limits and refuses contradictions between values.
//!
//! Resolution depends on the request alone. It accesses no file, name server or CPU: errors of the system arise when
//! the plan is executed.

mod command;
mod compare;
mod environment;
mod experiment;
mod export;
mod import;
mod list;
mod load;
mod measuring;
mod ping;
mod report;
mod run;
mod serve;
mod setting;
mod stream;
mod summary;
mod wakeup;

pub use command::command;
pub use compare::{Grouping, Sources, expect_ministat, sources, text_column};
pub use environment::{Environment, OutputSpec, store};
pub use experiment::{ConditionSelection, ExperimentJob, FileError, TypedExperiment, experiment, experiment_from};
pub use export::{ExportContent, ExportJob, RowFormat, export};
pub use import::{ImportJob, import};
pub use load::{LoadJob, hold};
pub use measuring::{MeasureJob, expect_a_free_cpu};
pub use ping::{expect_feasible_intervals, ping};
pub use report::{FigureRequest, ReportDestination, ReportJob, report};
pub use run::{AskedRecipe, RunJob, RunSource, recipes, run};
pub use serve::{ServeJob, serve};
pub use stream::stream;
pub use wakeup::wakeup;
