//! The runs of an experiment as plain data: what the journal, the manifests and the report say of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The position of a run in its experiment: all that a comparison needs apart from the run itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentFacts {
    /// Id of the experiment, 16 hexadecimal digits.
    pub experiment: String,
    /// Number of its condition, from 1, in the order of the experiment file.
    pub condition: u32,
    /// The factors that make the condition, as typed: option → value.
    pub factors: BTreeMap<String, String>,
    /// Number of its block, from 1; the runs of all conditions are interleaved within a block.
    pub block: u32,
    /// Number of its round in the block, from 1, in which each condition has one run; null if the order has no rounds.
    #[serde(default)]
    pub round: Option<u32>,
    /// Position in the order of its block, from 1, including warm-up runs.
    pub position: u32,
    /// Boot id of the kernel during the block; null if it could not be read.
    pub boot_id: Option<String>,
    /// Whether it is a warm-up run, which is recorded and not compared.
    pub warmup: bool,
}

/// The version of an experiment's directory: a reader refuses another major, and accepts a newer minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentFormat {
    /// Raised when an old reader would misread.
    pub major: u16,
    /// Raised when keys or events are added.
    pub minor: u16,
}

impl ExperimentFormat {
    /// The version that is written.
    pub const CURRENT: ExperimentFormat = ExperimentFormat { major: 1, minor: 6 };

    /// Whether a randomized order has rounds; before, the runs of a block were shuffled.
    pub fn has_rounds(self) -> bool {
        (self.major, self.minor) >= (1, 6)
    }

    /// Whether lines of this version have checksums.
    pub fn has_checksums(self) -> bool {
        (self.major, self.minor) >= (1, 3)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipeFacts {
    pub name: String,
    pub scale: String,
    pub target: String,
}

impl RecipeFacts {
    /// Whether its scale gives figures and no verdicts.
    pub fn is_rehearsal(&self) -> bool {
        self.scale == "quick"
    }
}

/// The identity of a run; does not depend on the order of the runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey {
    /// From 1.
    pub block: u32,
    pub factors: BTreeMap<String, String>,
    /// Number of the run among those of its condition in this block, from 1.
    pub repetition: u32,
    /// A warm-up run: recorded, not judged.
    pub warmup: bool,
}

/// The position of a run in the order of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPosition {
    /// In the order of its block, from 1.
    pub position: u32,
    /// The number of its condition, from 1.
    pub condition: u32,
}

/// How a run of an experiment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// By its own stop rule.
    Completed,
    /// By its own stop rule, with a fatal caveat.
    Untrusted,
    /// It broke off, or no probe was answered.
    Failed,
    /// A signal ended it early.
    Interrupted,
    Died,
    Refused,
}

impl RunOutcome {
    /// Whether the run is over for good; any other run is repeated.
    pub const fn is_final(self) -> bool {
        matches!(self, RunOutcome::Completed | RunOutcome::Untrusted | RunOutcome::Failed)
    }
}

impl RunKey {
    /// The place of the run as its manifest states it, in an order with or without rounds.
    pub fn facts(
        &self,
        position: RunPosition,
        experiment: &str,
        boot_id: Option<String>,
        has_rounds: bool,
    ) -> ExperimentFacts {
        ExperimentFacts {
            experiment: experiment.to_owned(),
            condition: position.condition,
            factors: self.factors.clone(),
            block: self.block,
            round: (has_rounds && !self.warmup).then_some(self.repetition),
            position: position.position,
            boot_id,
            warmup: self.warmup,
        }
    }
}

/// One run of an experiment, as its journal has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunState {
    #[serde(flatten)]
    pub key: RunKey,
    /// Its position among the others.
    #[serde(flatten)]
    pub position: RunPosition,
    /// How it ended; `None` while it has not, or if unknown.
    pub outcome: Option<RunOutcome>,
    /// The name of its recording in `runs/`.
    pub recording: Option<String>,
    /// Why it did not end by its own stop rule.
    pub reason: Option<String>,
    /// It was measured to its end, whether or not anything was answered.
    #[serde(skip)]
    pub complete: bool,
}

impl RunState {
    /// The name of the recording if a comparison uses the run. A run without an answer is used: loss is a result.
    pub fn judged(&self) -> Option<&str> {
        let is_final = self.outcome.is_some_and(RunOutcome::is_final);
        self.recording.as_deref().filter(|_| is_final && self.complete && !self.key.warmup)
    }

    /// Whether it was measured to its end without an answer.
    pub fn is_unanswered(&self) -> bool {
        self.outcome == Some(RunOutcome::Failed) && self.complete
    }
}

/// A condition that this host or its target cannot measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExcludedCondition {
    pub factors: BTreeMap<String, String>,
    pub reason: String,
}
