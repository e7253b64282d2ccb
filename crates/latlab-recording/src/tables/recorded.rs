//! The tables that a recording can have: their names, and which runs have them.

use crate::plan::{Kind, RunSpec};

/// Maximum number of rows of a row group, near DuckDB's unit of parallel work.
pub(crate) const GROUP_ROWS: usize = 1 << 17;

crate::worded! {
    /// A table of a recording, with the name of its file without the end.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RecordedTable: word {
        Probes = "probes",
        Wakeups = "wakeups",
        Executions = "executions",
        Printed = "printed",
        Intervals = "intervals",
        Values = "values",
        Host = "host",
    }
}

impl RecordedTable {
    /// The table that every finished recording of `kind` has.
    pub const fn of(kind: Kind) -> RecordedTable {
        match kind {
            Kind::Ping => RecordedTable::Probes,
            Kind::Wakeup => RecordedTable::Wakeups,
            Kind::Command => RecordedTable::Executions,
            Kind::Stream => RecordedTable::Intervals,
            Kind::Values => RecordedTable::Values,
        }
    }

    /// The name of its file.
    pub(crate) const fn file(self) -> &'static str {
        match self {
            RecordedTable::Probes => "probes.parquet",
            RecordedTable::Wakeups => "wakeups.parquet",
            RecordedTable::Executions => "executions.parquet",
            RecordedTable::Printed => "printed.parquet",
            RecordedTable::Intervals => "intervals.parquet",
            RecordedTable::Values => "values.parquet",
            RecordedTable::Host => "host.parquet",
        }
    }

    /// What a row is called in the schema.
    pub(super) const fn row(self) -> &'static str {
        match self {
            RecordedTable::Probes => "probe",
            RecordedTable::Wakeups => "wakeup",
            RecordedTable::Executions => "execution",
            RecordedTable::Printed => "printed",
            RecordedTable::Intervals => "interval",
            RecordedTable::Values => "value",
            RecordedTable::Host => "host_sample",
        }
    }

    /// Whether runs of `spec` have rows in it. Host samples are never certain.
    pub(crate) fn is_of(self, spec: &RunSpec) -> bool {
        match self {
            RecordedTable::Probes => spec.kind() == Kind::Ping || spec.concurrent_probes().is_some(),
            RecordedTable::Wakeups => spec.wakeup().is_some() || spec.concurrent_wakeups().is_some(),
            RecordedTable::Executions | RecordedTable::Intervals | RecordedTable::Values => {
                RecordedTable::of(spec.kind()) == self
            }
            RecordedTable::Printed => spec.command().is_some_and(|command| !command.printed.is_empty()),
            RecordedTable::Host => spec.import().is_none(),
        }
    }
}
