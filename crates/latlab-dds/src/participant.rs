//! Participants in a domain, and the configuration of the library.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::net::IpAddr;
use std::ptr;
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::error::{DdsError, c_string, checked};
use crate::ffi::{self, DdsEntity, LogData};

/// The name of the library and its version.
pub const IMPLEMENTATION: &str = "Eclipse Cyclone DDS 11.0.0";

/// An entity of the library, deleted with what belongs to it when this is dropped.
#[derive(Debug)]
pub(crate) struct Entity(pub(crate) DdsEntity);

impl Entity {
    pub(crate) fn new(action: &'static str, created: DdsEntity) -> Result<Entity, DdsError> {
        checked(action, created).map(Entity)
    }
}

impl Drop for Entity {
    fn drop(&mut self) {
        // SAFETY: the entity was created and is deleted once. An error means that its owner was deleted before.
        let _ = unsafe { ffi::dds_delete(self.0) };
    }
}

/// A participant in a domain. Its readers and writers keep it alive.
#[derive(Clone, Debug)]
pub struct Participant(Arc<Joined>);

#[derive(Debug)]
struct Joined {
    // Fields are dropped in this order.
    participant: Entity,
    _domain: Entity,
    configuration: Vec<String>,
    /// Those of the library in this domain.
    sockets: Vec<c_int>,
}

/// The participants of this process by domain, each with its configuration: the library permits one domain of a number.
static JOINED: Mutex<BTreeMap<u32, (String, Weak<Joined>)>> = Mutex::new(BTreeMap::new());

impl Participant {
    /// Joins `domain` with `configuration`, a list of XML fragments and addresses as in `CYCLONEDDS_URI`. With an `address`
    /// (and its scope) no datagram to another one is received, but multicasts if the configuration permits these. The
    /// threads of the library inherit CPUs and scheduling policy from the calling thread. A process that has joined the
    /// domain with the same configuration has this participant a second time.
    ///
    /// # Errors
    /// The domain is above 230, the configuration is invalid or another one than before, or no interface can be used.
    pub fn join(domain: u32, configuration: &str, address: Option<(IpAddr, u32)>) -> Result<Participant, DdsError> {
        let mut joined = JOINED.lock().unwrap_or_else(PoisonError::into_inner);
        let living = joined.get(&domain).and_then(|(as_before, weak)| Some((as_before, weak.upgrade()?)));
        match living {
            Some((as_before, living)) if as_before == configuration => return Ok(Participant(living)),
            Some(_) => {
                let cause = "this process has joined it with another configuration".into();
                return Err(DdsError { action: "join the domain", cause, is_timeout: false });
            }
            None => {}
        }
        let new = Arc::new(Joined::new(domain, configuration, address)?);
        joined.insert(domain, (configuration.to_owned(), Arc::downgrade(&new)));
        Ok(Participant(new))
    }

    /// The effective configuration that is not a default: one setting each, if the configuration traces `config`.
    pub fn configuration(&self) -> &[String] {
        &self.0.configuration
    }

    /// Datagrams that the kernel dropped at the sockets of the library because a buffer was full, since it joined; `None` if
    /// the kernel does not count them.
    pub fn socket_drops(&self) -> Option<u64> {
        let of = |socket: &c_int| {
            // SAFETY: takes a number, which is a socket of the library as long as the domain lives.
            u64::try_from(unsafe { ffi::latlab_drops(*socket) }).ok()
        };
        self.0.sockets.iter().map(of).sum::<Option<u64>>().filter(|_| !self.0.sockets.is_empty())
    }

    /// What the library has warned of in this process: the first 100 messages.
    pub fn warnings(&self) -> Vec<String> {
        Messages::lock().warnings.clone()
    }

    pub(crate) fn entity(&self) -> DdsEntity {
        self.0.participant.0
    }
}

impl Joined {
    fn new(domain: u32, configuration: &str, address: Option<(IpAddr, u32)>) -> Result<Joined, DdsError> {
        let text = c_string("configure the domain", configuration)?;
        let bound = BoundAddress::set(address);
        Messages::collect();
        // SAFETY: the string ends with a zero and is copied.
        let created = unsafe { ffi::dds_create_domain(domain, text.as_ptr()) };
        let owner = Messages::explain(Entity::new("configure the domain", created))?;
        // SAFETY: no policies and no listener.
        let created = unsafe { ffi::dds_create_participant(domain, ptr::null(), ptr::null()) };
        let participant = Messages::explain(Entity::new("join the domain", created))?;
        let configuration = std::mem::take(&mut Messages::lock().settings);
        Ok(Joined { participant, _domain: owner, configuration, sockets: bound.sockets() })
    }
}

/// The address of the sockets that this thread creates; unset when this is dropped.
struct BoundAddress;

impl BoundAddress {
    fn set(address: Option<(IpAddr, u32)>) -> BoundAddress {
        match address {
            None => set_address(&[], 0),
            Some((IpAddr::V4(address), _)) => set_address(&address.octets(), 0),
            Some((IpAddr::V6(address), scope)) => set_address(&address.octets(), scope),
        }
        let bound = BoundAddress;
        // Sockets of an earlier domain are not of this one.
        bound.sockets();
        bound
    }

    /// The sockets since the last call.
    fn sockets(&self) -> Vec<c_int> {
        let mut sockets = vec![0; 16];
        // SAFETY: the function writes at most that many numbers.
        let count = unsafe { ffi::latlab_take_sockets(sockets.as_mut_ptr(), sockets.len()) };
        sockets.truncate(count);
        sockets
    }
}

impl Drop for BoundAddress {
    fn drop(&mut self) {
        set_address(&[], 0);
    }
}

fn set_address(octets: &[u8], scope: u32) {
    // SAFETY: the function reads `octets`.
    unsafe { ffi::latlab_set_address(octets.as_ptr(), octets.len(), scope) }
}

/// What the library logged and traced since it was last asked. Its sinks are global.
static MESSAGES: Mutex<Messages> = Mutex::new(Messages { settings: Vec::new(), warnings: Vec::new() });
const MOST_WARNINGS: usize = 100;

struct Messages {
    settings: Vec<String>,
    warnings: Vec<String>,
}

impl Messages {
    fn lock() -> MutexGuard<'static, Messages> {
        MESSAGES.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Collects messages from now on; the library would print them.
    fn collect() {
        // SAFETY: the callbacks have the types that the library calls, and need no argument.
        unsafe {
            ffi::dds_set_log_sink(Some(on_warning), ptr::null_mut());
            ffi::dds_set_trace_sink(Some(on_trace), ptr::null_mut());
        }
    }

    /// The library's own words are a better cause than its return code.
    fn explain<T>(result: Result<T, DdsError>) -> Result<T, DdsError> {
        result.map_err(|error| match std::mem::take(&mut Messages::lock().warnings) {
            words if words.is_empty() => error,
            words => DdsError { cause: words.join("; "), ..error },
        })
    }
}

extern "C" fn on_warning(_: *mut c_void, data: *const LogData) {
    let (text, mut messages) = (text_of(data), Messages::lock());
    if !text.is_empty() && messages.warnings.len() < MOST_WARNINGS {
        messages.warnings.push(text);
    }
}

/// Keeps lines such as `config: Domain/General/AllowMulticast/#text: false {0}`, whose braces name a source; those of
/// defaults are empty.
extern "C" fn on_trace(_: *mut c_void, data: *const LogData) {
    let text = text_of(data);
    let setting = text.strip_prefix("config: ").and_then(|setting| setting.rsplit_once(" {"));
    if let Some((setting, source)) = setting
        && source != "}"
    {
        Messages::lock().settings.push(setting.to_owned());
    }
}

/// The text of a message, without the header of the library.
fn text_of(data: *const LogData) -> String {
    // SAFETY: `data` is valid during the call, and its message has `size` bytes after its header.
    let bytes = unsafe {
        let data = &*data;
        slice::from_raw_parts(data.message.cast::<u8>(), data.size)
    };
    String::from_utf8_lossy(bytes).trim().to_owned()
}
