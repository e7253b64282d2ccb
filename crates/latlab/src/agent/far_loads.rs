//! The loads that an agent makes on its host. They have a thread of their own: the search for a rate takes seconds,
//! and the loop of the agent must see meanwhile that its other end is gone.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::error::RequestFailure;
use crate::diagnostics::{Explain, Failure};
use crate::facts::LoadReport;
use crate::plan::{LoadSpec, PathSpec, Side, defaults};
use crate::session::{LoadedPath, Loads, LoadsError, PreSharedKey};
use crate::units::Nanos;

/// How long their thread may take to end: then the agent ends, and the kernel ends them with it.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// What is asked of the loads of an agent's host. No `Debug`: a key must not reach a log.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadsRequest {
    /// Start to make them. Their figures begin when a run is armed.
    Start {
        /// Those of them that are made at the peer.
        loads: Vec<LoadSpec>,
        /// The path of network loads; `None` without network loads.
        path: Option<NetLoadPath>,
    },
    /// Say how they are.
    Look,
    /// Begin to end them.
    End,
}

/// The path of network loads that an agent makes: to a reflector at the host that asks for them.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetLoadPath {
    /// Who counts.
    pub sink: SocketAddr,
    /// How packets leave the agent's host.
    pub path: PathSpec,
    /// The line of the key that both share.
    pub key: String,
    /// How long the loads may last; null if unknown.
    pub lasting_ns: Option<Nanos>,
}

/// How the loads of an agent's host are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadsStatus {
    /// There are none.
    None,
    /// Not all of them are there.
    Starting,
    /// All are there.
    Running,
    /// They end.
    Ending,
    /// They are gone.
    Ended {
        /// What each has reached, in the order asked for.
        reports: Vec<LoadReport>,
    },
}

enum Word {
    Begin,
    End,
}

/// The loads of an agent's host. Gone when this is dropped, or soon after.
#[derive(Debug)]
pub(super) struct AgentLoads {
    news: Arc<Mutex<Result<LoadsStatus, RequestFailure>>>,
    processes: Arc<Mutex<Vec<u32>>>,
    give_up: Arc<AtomicBool>,
    words: Option<Sender<Word>>,
    thread: Option<JoinHandle<()>>,
}

impl AgentLoads {
    /// Starts to make `loads`.
    pub(super) fn start(loads: Vec<LoadSpec>, path: Option<NetLoadPath>) -> Result<AgentLoads, RequestFailure> {
        if loads.len() > defaults::LOADS_MAX {
            let cause = format!("{} are more than the {} of one command", loads.len(), defaults::LOADS_MAX);
            return Err(RequestFailure::world("cannot make the loads", cause));
        }
        let key = |path: &NetLoadPath| PreSharedKey::from_reader("the agent's channel", path.key.as_bytes());
        let key = path.as_ref().map(key).transpose();
        let key = key.map_err(|error| RequestFailure::world("cannot make the loads", error.to_string()))?;
        let news = Arc::new(Mutex::new(Ok(LoadsStatus::Starting)));
        let (give_up, processes) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::default()));
        let (words, heard) = channel();
        let (board, ended, ours) = (Arc::clone(&news), Arc::clone(&give_up), Arc::clone(&processes));
        let work = move || {
            let tell = |state| *board.lock().unwrap_or_else(PoisonError::into_inner) = state;
            let way = path.as_ref().map(|path| path.as_loaded(key.as_ref()));
            make(&loads, way, &ended, &ours, &heard, &tell);
        };
        let thread = thread::Builder::new().name("agent-loads".into()).spawn(work);
        let thread = thread
            .map_err(|error| RequestFailure::world("cannot make the loads", latlab_sys::errno::explain(&error)))?;
        Ok(AgentLoads { news, processes, give_up, words: Some(words), thread: Some(thread) })
    }

    /// How they are; a load that could not be made is a refusal.
    pub(super) fn state(&self) -> Result<LoadsStatus, RequestFailure> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Their processes, once they are there: what those use of the CPUs is latlab's own.
    pub(super) fn own_processes(&self) -> Vec<u32> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on their figures count.
    pub(super) fn begin(&self) {
        self.say(Word::Begin);
    }

    /// They begin to end.
    pub(super) fn end(&self) {
        self.say(Word::End);
    }

    /// Nobody wants to know any more what they reach.
    pub(super) fn give_up(&mut self) {
        self.give_up.store(true, Ordering::Relaxed);
        self.words = None;
    }

    fn say(&self, word: Word) {
        // Loads that could not be made, or have ended, hear nothing.
        let _ = self.words.as_ref().map(|words| words.send(word));
    }
}

impl Drop for AgentLoads {
    fn drop(&mut self) {
        self.give_up();
        let Some(thread) = self.thread.take() else { return };
        let deadline = Instant::now() + ENDS_WITHIN;
        while !thread.is_finished() {
            if Instant::now() > deadline {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        // It never panics, and what it could say has been said.
        let _ = thread.join();
    }
}

impl NetLoadPath {
    fn as_loaded<'a>(&'a self, key: Option<&'a PreSharedKey>) -> LoadedPath<'a> {
        LoadedPath { peer: self.sink, path: &self.path, key, lasting: self.lasting_ns }
    }
}

/// Makes `loads` until the command to end them arrives.
fn make(
    loads: &[LoadSpec],
    path: Option<LoadedPath<'_>>,
    give_up: &AtomicBool,
    processes: &Mutex<Vec<u32>>,
    words: &Receiver<Word>,
    tell: &dyn Fn(Result<LoadsStatus, RequestFailure>),
) {
    let loads = match Loads::start(loads, Side::Peer, path, give_up, &mut || {}) {
        Ok(loads) => loads,
        Err(error) => return tell(Err(error.into())),
    };
    *processes.lock().unwrap_or_else(PoisonError::into_inner) = loads.own_processes();
    tell(Ok(LoadsStatus::Running));
    while let Ok(word) = words.recv() {
        match word {
            Word::Begin => loads.begin(),
            Word::End => {
                tell(Ok(LoadsStatus::Ending));
                return tell(Ok(LoadsStatus::Ended { reports: loads.finish() }));
            }
        }
    }
}

impl From<LoadsError> for RequestFailure {
    fn from(error: LoadsError) -> RequestFailure {
        let Failure { message, cause, hint, exit_code } = error.explain();
        RequestFailure { message, cause, hint, exit_code }
    }
}
