//! What the parsers of formats are written with.

pub(super) use memchr::memmem;

pub(super) use super::check::{LogTotals, StatedTimes, StatedValue, note};
pub(super) use super::fault::LogFault;
pub(super) use super::field::{LogField, TOTAL_MAX, bounded, cells, unit_of, whole, words};
pub(super) use super::form::captured;
pub(super) use super::json::Documents;
pub(super) use super::log::{
    LineParser, LineUse, LogFacts, LogHead, LogOptions, LogRows, OpenedLog, ReadLog, TableKind, are_rows,
};
pub(super) use crate::facts::{LoggedProbe, LoggedValue, RowNumbers};
pub(super) use crate::metric::Metric;
pub(super) use crate::units::Nanos;
pub(super) use crate::units::human::{TimeUnit, counted};
