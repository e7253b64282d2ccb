//! Resolution of parsed arguments: fills in defaults, checks limits and refuses contradictions.
//!
//! Resolution depends on the request alone. It accesses no file, name server or CPU: errors of the system arise when
//! the plan is executed.

mod check_published;
mod compare;
mod dds;
mod doctor;
mod environment;
mod experiment;
mod export;
mod import;
mod list;
mod load;
mod path;
mod ping;
mod report;
mod run;
mod schedule;
mod serve;
mod setting;
mod stream;
mod summary;
mod target;
mod value;
mod wakeup;
mod xdp;

pub use check_published::{CheckPublishedJob, CheckedSubject, RawSample, check_published};
pub use compare::{CompareJob, Confidence, Grouping, MinistatJob, NamedGlob, Sources, VerdictJob, compare};
pub use dds::interface_needed;
pub use doctor::{DoctorSpec, doctor};
pub use environment::{Environment, KeySource, OutputSpec, store};
pub use experiment::{ConditionSelection, ExperimentJob, FileError, TypedExperiment, experiment, experiment_from};
pub use export::{ExportContent, ExportJob, RowFormat, export};
pub use import::{ImportJob, import};
pub use list::{ListFilter, ListSpec, Pruning, list};
pub use load::{LOAD_KINDS, LoadJob, hold};
pub use path::key_needed;
pub use ping::{PingJob, ping};
pub use report::{FigureRequest, ReportDestination, ReportJob, report};
pub use run::{AskedRecipe, RunJob, RunSource, recipes, run};
pub use schedule::expect_feasible_intervals;
pub use serve::{ServeSpec, agent, serve};
pub use stream::{StreamJob, stream};
pub use summary::{SummaryRequest, SummarySpec, summary};
pub(super) use target::with_port;
pub use value::RequestError;
pub use wakeup::{WakeupJob, wakeup};
