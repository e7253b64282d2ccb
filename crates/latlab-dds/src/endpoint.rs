//! Writers and readers of a topic.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use crate::error::{DdsError, c_string, checked};
use crate::ffi::{self, DdsReturn, Incompatible, Matched, Octets, SampleInfo, SampleLost, TopicDescriptor};
use crate::participant::{Entity, Participant};
use crate::qos::{Qos, QosSet};
use crate::receiving::{ReaderListener, Receiving};

/// The type of a topic (`idl/latlab.idl`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicType {
    Message,
    KeyedMessage,
}

impl Participant {
    /// A writer of the topic `name` in `partition`; an empty one is the default partition.
    ///
    /// # Errors
    /// The participant has the topic with another type, or memory is short.
    pub fn writer(&self, name: &str, kind: TopicType, qos: Qos, partition: &str) -> Result<Writer, DdsError> {
        let (topic, qos) = (self.topic(name, kind)?, QosSet::new(qos, partition)?);
        // SAFETY: participant, topic and policies live.
        let created = unsafe { ffi::dds_create_writer(self.entity(), topic.0, qos.as_ptr(), ptr::null()) };
        let writer = Entity::new("create a writer", created)?;
        Ok(Writer::new(writer, topic, kind, self.clone()))
    }

    /// A reader of the topic `name` in `partition`, which may be a pattern with `*`. `receiving` may be that of several
    /// readers.
    ///
    /// # Errors
    /// As [`Participant::writer`].
    pub fn reader(
        &self,
        name: &str,
        kind: TopicType,
        qos: Qos,
        partition: &str,
        receiving: &Receiving,
    ) -> Result<Reader, DdsError> {
        let (topic, qos) = (self.topic(name, kind)?, QosSet::new(qos, partition)?);
        let listener = ReaderListener::new(receiving);
        let (topic_handle, policies) = (topic.0, qos.as_ptr());
        // SAFETY: participant, topic, policies and listener live; the reader keeps what the listener notifies.
        let created = unsafe { ffi::dds_create_reader(self.entity(), topic_handle, policies, listener.as_ptr()) };
        let reader = Entity::new("create a reader", created)?;
        Ok(Reader::new(reader, topic, kind, receiving.clone(), self.clone()))
    }

    fn topic(&self, name: &str, kind: TopicType) -> Result<Entity, DdsError> {
        let name = c_string("create a topic", name)?;
        // SAFETY: the descriptors are constants of `shim.c`; the name is copied.
        let created = unsafe {
            let descriptor: *const TopicDescriptor = match kind {
                TopicType::Message => &raw const ffi::latlab_message,
                TopicType::KeyedMessage => &raw const ffi::latlab_keyed_message,
            };
            ffi::dds_create_topic(self.entity(), descriptor, name.as_ptr(), ptr::null(), ptr::null())
        };
        Entity::new("create a topic", created)
    }
}

/// Writes messages to a topic.
#[derive(Debug)]
pub struct Writer {
    // Fields are dropped in this order.
    writer: Entity,
    _topic: Entity,
    kind: TopicType,
    _participant: Participant,
}

impl Writer {
    pub(crate) fn new(writer: Entity, topic: Entity, kind: TopicType, participant: Participant) -> Writer {
        Writer { writer, _topic: topic, kind, _participant: participant }
    }

    /// Writes `message` as one sample, of the instance `key` if the type has keys.
    ///
    /// # Errors
    /// A reliable writer that keeps all found no space in time, or memory is short.
    pub fn write(&mut self, message: &[u8], key: u32) -> Result<(), DdsError> {
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        // The library only reads the buffer.
        let bytes = Octets { maximum: length, length, buffer: message.as_ptr().cast_mut(), release: false };
        let written = match self.kind {
            TopicType::Message => self.write_sample(&bytes),
            TopicType::KeyedMessage => self.write_sample(&KeyedSample { key, bytes }),
        };
        checked("write a sample", written).map(drop)
    }

    /// Sends what a writer that batches has collected.
    ///
    /// # Errors
    /// The library's.
    pub fn flush(&mut self) -> Result<(), DdsError> {
        // SAFETY: the writer lives.
        checked("send a batch", unsafe { ffi::dds_write_flush(self.writer.0) }).map(drop)
    }

    fn write_sample<T>(&self, sample: &T) -> DdsReturn {
        // SAFETY: the sample has the layout of the writer's type, and is copied before the call returns.
        unsafe { ffi::dds_write(self.writer.0, ptr::from_ref(sample).cast()) }
    }

    /// The number of readers that get its samples.
    ///
    /// # Errors
    /// The library's.
    pub fn readers(&self) -> Result<u32, DdsError> {
        let mut status = Matched::default();
        // SAFETY: the writer lives, and the status has the layout that the library fills.
        let code = unsafe { ffi::dds_get_publication_matched_status(self.writer.0, &raw mut status) };
        checked("count readers", code).map(|_| status.current_count)
    }

    /// The id of the policy for which a reader was refused last; `None` if none was.
    ///
    /// # Errors
    /// The library's.
    pub fn refused_policy(&self) -> Result<Option<u32>, DdsError> {
        let mut status = Incompatible::default();
        // SAFETY: as above.
        let code = unsafe { ffi::dds_get_offered_incompatible_qos_status(self.writer.0, &raw mut status) };
        checked("compare policies", code).map(|_| (status.total_count > 0).then_some(status.last_policy_id))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its length in bytes.
    pub bytes: usize,
    /// Its key; 0 if the type has none.
    pub key: u32,
    /// A number of its writer in this process, as in [`Reader::writers`].
    pub writer: u64,
}

/// A writer whose samples a reader gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedWriter {
    /// The GUID of its participant (RTPS 2.5, section 9.3.1).
    pub participant: [u8; 16],
    pub partitions: Vec<String>,
}

#[derive(Debug)]
pub struct Reader {
    // Fields are dropped in this order.
    reader: Entity,
    _topic: Entity,
    kind: TopicType,
    _receiving: Receiving,
    _participant: Participant,
}

impl Reader {
    pub(crate) fn new(
        reader: Entity,
        topic: Entity,
        kind: TopicType,
        receiving: Receiving,
        participant: Participant,
    ) -> Reader {
        Reader { reader, _topic: topic, kind, _receiving: receiving, _participant: participant }
    }

    /// Takes the oldest sample into `buffer`; `None` without one. A longer one than `buffer` fills it: its end is lost.
    ///
    /// # Errors
    /// The library's.
    pub fn take(&mut self, buffer: &mut [u8]) -> Result<Option<Sample>, DdsError> {
        // The library would replace an empty buffer.
        let mut one = [0];
        let place = if buffer.is_empty() { &mut one[..] } else { &mut *buffer };
        let (maximum, start) = (u32::try_from(place.len()).unwrap_or(u32::MAX), place.as_mut_ptr());
        loop {
            let bytes = Octets { maximum, length: 0, buffer: start, release: false };
            let mut sample = KeyedSample { key: 0, bytes };
            let mut info = SampleInfo::default();
            let place: *mut c_void = match self.kind {
                TopicType::Message => (&raw mut sample.bytes).cast(),
                TopicType::KeyedMessage => (&raw mut sample).cast(),
            };
            let mut places = [place];
            // SAFETY: there is one place, whose layout is that of the reader's type. The library writes at most `maximum`
            // bytes to the buffer, which is not empty, and does not free it.
            let taken = unsafe { ffi::dds_take(self.reader.0, places.as_mut_ptr(), &raw mut info, 1, 1) };
            match checked("take a sample", taken)? {
                0 => return Ok(None),
                // The end of a writer, without data.
                _ if !info.valid_data => {}
                _ => {
                    let bytes = (sample.bytes.length as usize).min(buffer.len());
                    return Ok(Some(Sample { bytes, key: sample.key, writer: info.publication_handle }));
                }
            }
        }
    }

    /// The writers whose samples it gets, the first `most` of them.
    ///
    /// # Errors
    /// The library's.
    pub fn writers(&self, most: usize) -> Result<Vec<u64>, DdsError> {
        let mut handles = vec![0; most];
        // SAFETY: the reader lives, and the library fills `most` places at most.
        let count = unsafe { ffi::dds_get_matched_publications(self.reader.0, handles.as_mut_ptr(), most) };
        let count = checked("list writers", count)?;
        handles.truncate(usize::try_from(count).unwrap_or(0));
        Ok(handles)
    }

    /// The writer with the number `writer`; `None` if it is gone.
    pub fn writer(&self, writer: u64) -> Option<MatchedWriter> {
        // SAFETY: the reader lives. What is returned is freed below.
        let found = unsafe { ffi::dds_get_matched_publication_data(self.reader.0, writer) };
        if found.is_null() {
            return None;
        }
        // SAFETY: it is not null, and was filled by the library.
        let matched =
            unsafe { MatchedWriter { participant: (*found).participant_key, partitions: partitions_of((*found).qos) } };
        // SAFETY: it was allocated by the library and is not used any more.
        unsafe { ffi::dds_builtintopic_free_endpoint(found) };
        Some(matched)
    }

    /// The number of writers whose samples it gets.
    ///
    /// # Errors
    /// The library's.
    pub fn writer_count(&self) -> Result<u32, DdsError> {
        let mut status = Matched::default();
        // SAFETY: the reader lives, and the status has the layout that the library fills.
        let code = unsafe { ffi::dds_get_subscription_matched_status(self.reader.0, &raw mut status) };
        checked("count writers", code).map(|_| status.current_count)
    }

    /// The id of the policy for which a writer was refused last; `None` if none was.
    ///
    /// # Errors
    /// The library's.
    pub fn refused_policy(&self) -> Result<Option<u32>, DdsError> {
        let mut status = Incompatible::default();
        // SAFETY: as above.
        let code = unsafe { ffi::dds_get_requested_incompatible_qos_status(self.reader.0, &raw mut status) };
        checked("compare policies", code).map(|_| (status.total_count > 0).then_some(status.last_policy_id))
    }

    /// Samples that the library knows to be lost (SAMPLE_LOST).
    ///
    /// # Errors
    /// The library's.
    pub fn lost(&self) -> Result<u32, DdsError> {
        let mut status = SampleLost::default();
        // SAFETY: as above.
        let code = unsafe { ffi::dds_get_sample_lost_status(self.reader.0, &raw mut status) };
        checked("count lost samples", code).map(|_| status.total_count)
    }
}

/// Whether `writer` has a reader, and `reader` a writer.
///
/// # Errors
/// The library's.
pub fn are_matched(writer: &Writer, reader: &Reader) -> Result<bool, DdsError> {
    Ok(writer.readers()? > 0 && reader.writer_count()? > 0)
}

/// The partitions in `qos`.
///
/// # Safety
/// `qos` is a set of the library, or null.
unsafe fn partitions_of(qos: *const ffi::Qos) -> Vec<String> {
    let (mut count, mut names) = (0, ptr::null_mut::<*mut c_char>());
    // SAFETY: the caller's; the library allocates the names.
    if qos.is_null() || !unsafe { ffi::dds_qget_partition(qos, &raw mut count, &raw mut names) } {
        return Vec::new();
    }
    let texts = (0..count as usize).map(|index| {
        // SAFETY: there are `count` names, each a string that ends with a zero and is freed once.
        unsafe {
            let name = *names.add(index);
            let text = CStr::from_ptr(name).to_string_lossy().into_owned();
            ffi::dds_free(name.cast());
            text
        }
    });
    let texts = texts.collect();
    // SAFETY: the list was allocated by the library.
    unsafe { ffi::dds_free(names.cast()) };
    texts
}

/// A sample of `latlab::KeyedMessage`; one of `latlab::Message` is its second field.
#[repr(C)]
struct KeyedSample {
    key: u32,
    bytes: Octets,
}
