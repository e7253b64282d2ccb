//! Recordings: the disk in the middle of the river. Format: docs/recording.md.

pub mod event;
pub mod manifest;
