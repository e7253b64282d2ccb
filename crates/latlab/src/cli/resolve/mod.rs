//! What was typed, settled: defaults filled in, limits checked, contradictions refused.
//!
//! Everything here is a question of the request alone. Nothing looks at a file, a name server or a CPU;
//! what the world has to say comes when the plan is carried out.

mod agent;
mod bare;
mod bare_stream;
mod bare_wakeup;
mod beside;
mod compare;
mod doctor;
mod ends;
mod experiment;
mod hold;
mod judging;
mod keeping;
mod load;
mod net_load;
mod path;
mod ping;
mod rate;
mod remedies;
mod request_error;
mod run;
mod schedule;
mod search;
mod serve;
mod setting;
mod sources;
mod stream;
mod summary;
mod target;
mod value;
mod wakeup;

use std::path::PathBuf;

use crate::console::Verbosity;

pub use agent::agent;
pub use bare::{BareSpec, bare};
pub use bare_stream::{BareStreamSpec, bare_stream};
pub use bare_wakeup::bare_wakeup;
pub use compare::{CompareJob, Confidence, MinistatJob, VerdictJob, compare};
pub use doctor::{DoctorSpec, doctor};
pub use experiment::{ConditionSelection, ExperimentJob, FileError, Impossible, experiment, experiment_from};
pub use hold::{LoadJob, hold};
pub use keeping::{OutputSpec, store};
pub use path::key_needed;
use ping::rounds;
pub use ping::{PingJob, ping};
pub use request_error::RequestError;
pub use run::{AskedRecipe, RunJob, RunSource, recipes, run};
pub use serve::{ServeSpec, serve};
pub use sources::{Grouping, NamedGlob, Sources};
pub use stream::{StreamJob, stream};
pub use summary::{SummarySpec, summary};
pub use wakeup::{WakeupJob, wakeup};

use super::args::VerbosityArgs;

/// What the process was given beside its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `LATLAB_STORE`, unless empty.
    pub store: Option<PathBuf>,
    /// A fresh seed for whatever needs chance and was given no seed.
    pub seed: u64,
}

/// Where the pre-shared key comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// Nowhere: no tags.
    None,
    /// latlab makes one for both ends, which it starts itself.
    Fresh,
    /// A file.
    File(PathBuf),
    /// An open descriptor.
    Descriptor(i32),
}

/// How much to say.
pub const fn talk(typed: &VerbosityArgs) -> Verbosity {
    match (typed.quiet, typed.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Usual,
    }
}
