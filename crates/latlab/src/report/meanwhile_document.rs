//! What a CPU did while threads slept on it, as `wakeups.meanwhile` of a summary has it.

use serde::Serialize;

use crate::analysis::{CpuMeanwhile, RatesSeen, StateShare};

#[derive(Serialize)]
pub(super) struct MeanwhileDocument<'a> {
    cpu: u16,
    idle_ratio: Option<f64>,
    idle_states: Vec<IdleStateDocument<'a>>,
    frequency_khz: Option<FrequencyDocument>,
}

#[derive(Serialize)]
struct IdleStateDocument<'a> {
    name: &'a str,
    exit_latency_us: Option<u32>,
    ratio: f64,
}

#[derive(Serialize)]
struct FrequencyDocument {
    min: i64,
    mean: f64,
    max: i64,
}

impl<'a> MeanwhileDocument<'a> {
    /// The same as a document.
    pub(super) fn of(told: &'a CpuMeanwhile) -> MeanwhileDocument<'a> {
        let state = |state: &'a StateShare| {
            let StateShare { name, exit_latency_us, share } = state;
            IdleStateDocument { name, exit_latency_us: *exit_latency_us, ratio: *share }
        };
        let frequency =
            |seen: RatesSeen| FrequencyDocument { min: seen.min_khz, mean: seen.mean_khz, max: seen.max_khz };
        MeanwhileDocument {
            cpu: told.cpu,
            idle_ratio: told.idle,
            idle_states: told.states.iter().map(state).collect(),
            frequency_khz: told.rate.map(frequency),
        }
    }
}
