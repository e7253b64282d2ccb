//! What happened, as lines of the journal. Bytes and meaning: docs/experiments.md.

use serde::{Deserialize, Serialize};

use crate::facts::ExperimentFacts;
use crate::plan::Factors;
use crate::recording::manifest::Software;

/// The version of an experiment's directory: a reader refuses another major, and accepts a newer minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentFormat {
    /// Raised when an old reader would misread.
    pub major: u16,
    /// Raised when keys or events are added.
    pub minor: u16,
}

impl ExperimentFormat {
    /// What this latlab writes.
    pub const CURRENT: ExperimentFormat = ExperimentFormat { major: 1, minor: 1 };
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalLine {
    /// What happened.
    #[serde(flatten)]
    pub event: JournalEntry,
    /// UTC, RFC 3339. Nothing is ordered by it: clocks are set back.
    pub at: String,
}

/// A recipe, and how it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecipeFacts {
    /// Its name.
    pub name: String,
    /// `quick`, `usual` or `full`.
    pub scale: String,
    /// The target, as typed.
    pub target: String,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum JournalEntry {
    /// The experiment began: always the first line.
    Begun {
        /// Of the directory.
        format: ExperimentFormat,
        /// Its id, 16 hexadecimal digits.
        experiment: String,
        /// The absolute path of its file, or `recipe:…`.
        source: String,
        /// The recipe that it is, if it is one.
        recipe: Option<RecipeFacts>,
        /// What began it.
        software: Software,
        /// Its place among the experiments of its store, from 1, whatever the clock says; none before format 1.1.
        #[serde(default)]
        number: Option<u64>,
        /// BLAKE3 of its file, hexadecimal; none before format 1.1.
        #[serde(default)]
        file_blake3: Option<String>,
    },
    /// A process took it on.
    Opened {
        /// That process.
        pid: u32,
        /// The boot that it runs in.
        boot_id: Option<String>,
    },
    /// `--force` goes on with another file.
    Changed {
        /// The name of the file so far, in the experiment's directory.
        kept_as: String,
        /// BLAKE3 of the other file, hexadecimal; none before format 1.1.
        #[serde(default)]
        file_blake3: Option<String>,
    },
    /// A block is about to begin.
    BlockBegan {
        /// From 1.
        block: u32,
        /// The boot that it begins in.
        boot_id: Option<String>,
    },
    /// A run is about to begin.
    RunBegan {
        /// Which.
        #[serde(flatten)]
        key: RunKey,
        /// Where among the others.
        #[serde(flatten)]
        place: RunPosition,
    },
    /// Its recording is finished, or will never be.
    RunEnded {
        /// Its block.
        block: u32,
        /// Its place in the order of the block.
        position: u32,
        /// How it ended.
        outcome: RunOutcome,
        /// The name of its recording in `runs/`; none where nothing was recorded.
        recording: Option<String>,
        /// Why it did not end by its own rule.
        reason: Option<String>,
    },
    /// A recipe's row that this host cannot do.
    ConditionDropped {
        /// Which.
        factors: Factors,
        /// Why not.
        reason: String,
    },
    /// All runs of a block have ended.
    BlockEnded {
        /// From 1.
        block: u32,
        /// The boot that it ended in.
        boot_id: Option<String>,
    },
    /// The stop rule held after a block.
    NarrowEnough {
        /// That block.
        block: u32,
    },
    /// Nothing is left to do.
    Finished,
    /// An event of a later version.
    #[serde(other)]
    Unknown,
}

/// What a run is known by, whatever its place in an order is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey {
    /// From 1.
    pub block: u32,
    /// Its condition.
    pub factors: Factors,
    /// Which of the condition's runs in this block, from 1.
    pub repetition: u32,
    /// It warms up.
    pub warmup: bool,
}

/// Where a run stands among the others.
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
    /// By its own rule.
    Completed,
    /// The same, and a fatal caveat says not to trust it.
    Untrusted,
    /// It broke off, or no probe was answered.
    Failed,
    /// A signal ended it early.
    Interrupted,
    /// Its process died.
    Died,
    /// It could not begin.
    Refused,
}

impl RunOutcome {
    /// Whether the run is over for good; if not, it is taken again.
    pub const fn is_final(self) -> bool {
        matches!(self, RunOutcome::Completed | RunOutcome::Untrusted | RunOutcome::Failed)
    }
}

impl RunKey {
    /// What its recording says about its place.
    pub fn facts(&self, place: RunPosition, experiment: &str, boot_id: Option<String>) -> ExperimentFacts {
        ExperimentFacts {
            experiment: experiment.to_owned(),
            condition: place.condition,
            factors: self.factors.clone(),
            block: self.block,
            position: place.position,
            boot_id,
            warmup: self.warmup,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_documented() {
        let factors = Factors::from([("load".to_owned(), "none".to_owned())]);
        let key = RunKey { block: 1, factors, repetition: 2, warmup: false };
        let event = JournalEntry::RunBegan { key, place: RunPosition { position: 3, condition: 1 } };
        let line = JournalLine { event, at: "2026-11-22T03:00:00.000Z".into() };
        let text = serde_json::to_string(&line).expect("plain");
        assert_eq!(
            text,
            "{\"event\":\"run_began\",\"block\":1,\"factors\":{\"load\":\"none\"},\"repetition\":2,\"warmup\":false,\
             \"position\":3,\"condition\":1,\"at\":\"2026-11-22T03:00:00.000Z\"}"
        );
        assert_eq!(serde_json::from_str::<JournalLine>(&text).expect("reads"), line);
    }

    #[test]
    fn what_a_later_version_adds_is_passed_over() {
        let later = r#"{"event":"moon_rose","phase":"full","at":"2030-01-01T00:00:00.000Z"}"#;
        assert_eq!(serde_json::from_str::<JournalLine>(later).expect("reads").event, JournalEntry::Unknown);
        let more = r#"{"event":"finished","party":true,"at":"2030-01-01T00:00:00.000Z"}"#;
        assert_eq!(serde_json::from_str::<JournalLine>(more).expect("reads").event, JournalEntry::Finished);
    }
}
