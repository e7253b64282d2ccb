//! The declarations of Cyclone DDS 11.0 that the safe interface uses
//! (<https://cyclonedds.io/docs/cyclonedds/latest/api/>). `shim.c` checks layouts and values when it is compiled. Every
//! function may be called from any thread.

use std::ffi::{c_char, c_int, c_void};

/// A participant, topic, reader, writer or domain; an error if it is negative.
pub(crate) type DdsEntity = i32;
/// A return code; an error if it is negative.
pub(crate) type DdsReturn = i32;

pub(crate) const TIMEOUT: DdsReturn = -10;
pub(crate) const BEST_EFFORT: c_int = 0;
pub(crate) const RELIABLE: c_int = 1;
pub(crate) const KEEP_LAST: c_int = 0;
pub(crate) const KEEP_ALL: c_int = 1;
pub(crate) const XCDR1: i16 = 0;

#[repr(C)]
pub(crate) struct Octets {
    pub(crate) maximum: u32,
    pub(crate) length: u32,
    pub(crate) buffer: *mut u8,
    /// Whether the library frees `buffer`.
    pub(crate) release: bool,
}

/// `dds_topic_descriptor_t`: the type of a topic, as `shim.c` describes it.
#[repr(C)]
pub(crate) struct TopicDescriptor {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Default)]
pub(crate) struct SampleInfo {
    pub(crate) sample_state: c_int,
    pub(crate) view_state: c_int,
    pub(crate) instance_state: c_int,
    pub(crate) valid_data: bool,
    pub(crate) source_timestamp: i64,
    pub(crate) instance_handle: u64,
    pub(crate) publication_handle: u64,
    pub(crate) disposed_generation_count: u32,
    pub(crate) no_writers_generation_count: u32,
    pub(crate) sample_rank: u32,
    pub(crate) generation_rank: u32,
    pub(crate) absolute_generation_rank: u32,
}

#[repr(C)]
#[derive(Default)]
pub(crate) struct Matched {
    pub(crate) total_count: u32,
    pub(crate) total_count_change: i32,
    pub(crate) current_count: u32,
    pub(crate) current_count_change: i32,
    pub(crate) last_handle: u64,
}

#[repr(C)]
#[derive(Default)]
pub(crate) struct Incompatible {
    pub(crate) total_count: u32,
    pub(crate) total_count_change: i32,
    pub(crate) last_policy_id: u32,
}

#[repr(C)]
#[derive(Default)]
pub(crate) struct SampleLost {
    pub(crate) total_count: u32,
    pub(crate) total_count_change: i32,
}

#[repr(C)]
pub(crate) struct BuiltinEndpoint {
    pub(crate) key: [u8; 16],
    pub(crate) participant_key: [u8; 16],
    pub(crate) participant_instance_handle: u64,
    pub(crate) topic_name: *mut c_char,
    pub(crate) type_name: *mut c_char,
    pub(crate) qos: *mut Qos,
}

#[repr(C)]
pub(crate) struct LogData {
    pub(crate) priority: u32,
    pub(crate) domain: u32,
    pub(crate) file: *const c_char,
    pub(crate) line: u32,
    pub(crate) function: *const c_char,
    pub(crate) message: *const c_char,
    pub(crate) size: usize,
    pub(crate) header_size: usize,
}

#[repr(C)]
pub(crate) struct Qos {
    _opaque: [u8; 0],
}

#[repr(C)]
pub(crate) struct Listener {
    _opaque: [u8; 0],
}

pub(crate) type OnDataAvailable = extern "C" fn(DdsEntity, *mut c_void);
pub(crate) type OnSubscriptionMatched = extern "C" fn(DdsEntity, Matched, *mut c_void);
pub(crate) type OnLog = extern "C" fn(*mut c_void, *const LogData);

unsafe extern "C" {
    pub(crate) static latlab_message: TopicDescriptor;
    pub(crate) static latlab_keyed_message: TopicDescriptor;

    pub(crate) fn latlab_set_address(bytes: *const u8, count: usize, scope: u32);
    pub(crate) fn latlab_take_sockets(place: *mut c_int, capacity: usize) -> usize;
    pub(crate) fn latlab_drops(socket: c_int) -> i64;
    pub(crate) fn dds_create_domain(domain: u32, configuration: *const c_char) -> DdsEntity;
    pub(crate) fn dds_create_participant(domain: u32, qos: *const Qos, listener: *const Listener) -> DdsEntity;
    pub(crate) fn dds_create_topic(
        participant: DdsEntity,
        descriptor: *const TopicDescriptor,
        name: *const c_char,
        qos: *const Qos,
        listener: *const Listener,
    ) -> DdsEntity;
    pub(crate) fn dds_create_reader(
        participant: DdsEntity,
        topic: DdsEntity,
        qos: *const Qos,
        listener: *const Listener,
    ) -> DdsEntity;
    pub(crate) fn dds_create_writer(
        participant: DdsEntity,
        topic: DdsEntity,
        qos: *const Qos,
        listener: *const Listener,
    ) -> DdsEntity;
    pub(crate) fn dds_delete(entity: DdsEntity) -> DdsReturn;
    pub(crate) fn dds_write(writer: DdsEntity, sample: *const c_void) -> DdsReturn;
    pub(crate) fn dds_write_flush(writer: DdsEntity) -> DdsReturn;
    pub(crate) fn dds_take(
        reader: DdsEntity,
        samples: *mut *mut c_void,
        infos: *mut SampleInfo,
        capacity: usize,
        most: u32,
    ) -> DdsReturn;
    pub(crate) fn dds_get_publication_matched_status(writer: DdsEntity, status: *mut Matched) -> DdsReturn;
    pub(crate) fn dds_get_subscription_matched_status(reader: DdsEntity, status: *mut Matched) -> DdsReturn;
    pub(crate) fn dds_get_offered_incompatible_qos_status(writer: DdsEntity, status: *mut Incompatible) -> DdsReturn;
    pub(crate) fn dds_get_requested_incompatible_qos_status(reader: DdsEntity, status: *mut Incompatible) -> DdsReturn;
    pub(crate) fn dds_get_sample_lost_status(reader: DdsEntity, status: *mut SampleLost) -> DdsReturn;
    pub(crate) fn dds_get_matched_publications(reader: DdsEntity, handles: *mut u64, capacity: usize) -> DdsReturn;
    pub(crate) fn dds_get_matched_publication_data(reader: DdsEntity, handle: u64) -> *mut BuiltinEndpoint;
    pub(crate) fn dds_builtintopic_free_endpoint(endpoint: *mut BuiltinEndpoint);
    pub(crate) fn dds_strretcode(code: DdsReturn) -> *const c_char;
    pub(crate) fn dds_set_log_sink(callback: Option<OnLog>, argument: *mut c_void);
    pub(crate) fn dds_set_trace_sink(callback: Option<OnLog>, argument: *mut c_void);
    pub(crate) fn dds_create_listener(argument: *mut c_void) -> *mut Listener;
    pub(crate) fn dds_delete_listener(listener: *mut Listener);
    pub(crate) fn dds_lset_data_available(listener: *mut Listener, callback: OnDataAvailable);
    pub(crate) fn dds_lset_subscription_matched(listener: *mut Listener, callback: OnSubscriptionMatched);
    pub(crate) fn dds_create_qos() -> *mut Qos;
    pub(crate) fn dds_delete_qos(qos: *mut Qos);
    pub(crate) fn dds_qset_reliability(qos: *mut Qos, kind: c_int, max_blocking_time: i64);
    pub(crate) fn dds_qset_history(qos: *mut Qos, kind: c_int, depth: i32);
    pub(crate) fn dds_qset_resource_limits(qos: *mut Qos, samples: i32, instances: i32, per_instance: i32);
    pub(crate) fn dds_qset_writer_data_lifecycle(qos: *mut Qos, dispose: bool);
    pub(crate) fn dds_qset_writer_batching(qos: *mut Qos, batches: bool);
    pub(crate) fn dds_qset_data_representation(qos: *mut Qos, count: u32, values: *const i16);
    pub(crate) fn dds_qset_partition1(qos: *mut Qos, name: *const c_char);
    pub(crate) fn dds_qget_partition(qos: *const Qos, count: *mut u32, names: *mut *mut *mut c_char) -> bool;
    pub(crate) fn dds_free(memory: *mut c_void);
}
