//! The policies of readers and writers.

use std::ffi::c_int;
use std::time::Duration;

use crate::error::{DdsError, c_string};
use crate::ffi;

/// RELIABILITY: whether samples that were lost are sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    BestEffort,
    /// They are, as long as the writer keeps them.
    Reliable {
        /// The longest wait of a write for the acknowledgements of earlier samples, if the writer keeps all.
        max_blocking: Duration,
    },
}

/// HISTORY: the samples of each key that a writer keeps for its readers, and a reader until they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// The last ones, so many.
    KeepLast(u32),
    KeepAll,
}

/// RESOURCE_LIMITS of a reader that keeps all: it refuses more samples. A reliable one is offered them again, every 10 ms, by the
/// receiving thread of the library, until samples were taken; its writer then waits.
const MOST_SAMPLES: i32 = 1_024;
/// RESOURCE_LIMITS of a reader with best effort: it refuses samples of further keys, which foreign writers choose. A reliable
/// reader has no such limit: the receiving thread of the library would offer it the sample again and again.
const MOST_INSTANCES: i32 = 1_024;
const UNLIMITED: i32 = -1;

/// The policies of a reader or writer. Other policies have the defaults of the DDS specification, but for these: the
/// representation is XCDR1, and a writer does not dispose of its instances when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qos {
    pub reliability: Reliability,
    pub history: History,
    /// Of a writer, an extension of the library: samples are collected until [`Writer::flush`](crate::Writer::flush), or
    /// until a message is full.
    pub batches: bool,
}

/// A set of policies of the library, freed when this is dropped.
pub(crate) struct QosSet(*mut ffi::Qos);

impl QosSet {
    /// `partition`: the PARTITION of the publisher or subscriber; empty: the default one.
    pub(crate) fn new(qos: Qos, partition: &str) -> Result<QosSet, DdsError> {
        let partition = c_string("name a partition", partition)?;
        let (reliability, blocking) = match qos.reliability {
            Reliability::BestEffort => (ffi::BEST_EFFORT, 0),
            Reliability::Reliable { max_blocking } => (ffi::RELIABLE, nanos(max_blocking)),
        };
        let (history, depth): (c_int, i32) = match qos.history {
            History::KeepLast(depth) => (ffi::KEEP_LAST, i32::try_from(depth).unwrap_or(i32::MAX)),
            History::KeepAll => (ffi::KEEP_ALL, 0),
        };
        // SAFETY: the set was just created, and the calls copy their arguments.
        unsafe {
            let set = ffi::dds_create_qos();
            ffi::dds_qset_reliability(set, reliability, blocking);
            ffi::dds_qset_history(set, history, depth);
            let samples = if qos.history == History::KeepAll { MOST_SAMPLES } else { UNLIMITED };
            let instances = if qos.reliability == Reliability::BestEffort { MOST_INSTANCES } else { UNLIMITED };
            ffi::dds_qset_resource_limits(set, samples, instances, samples);
            ffi::dds_qset_writer_data_lifecycle(set, false);
            ffi::dds_qset_writer_batching(set, qos.batches);
            ffi::dds_qset_data_representation(set, 1, &ffi::XCDR1);
            if !partition.is_empty() {
                ffi::dds_qset_partition1(set, partition.as_ptr());
            }
            Ok(QosSet(set))
        }
    }

    pub(crate) fn as_ptr(&self) -> *const ffi::Qos {
        self.0
    }
}

impl Drop for QosSet {
    fn drop(&mut self) {
        // SAFETY: it was created and is freed once.
        unsafe { ffi::dds_delete_qos(self.0) };
    }
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// The name of the policy with `id` (DDS 1.4, section 2.2.3); `None` if it is another one.
pub fn policy_name(id: u32) -> Option<&'static str> {
    Some(match id {
        2 => "DURABILITY",
        3 => "PRESENTATION",
        4 => "DEADLINE",
        5 => "LATENCY_BUDGET",
        6 => "OWNERSHIP",
        8 => "LIVELINESS",
        10 => "PARTITION",
        11 => "RELIABILITY",
        12 => "DESTINATION_ORDER",
        23 => "DATA_REPRESENTATION",
        _ => return None,
    })
}
