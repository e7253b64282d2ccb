//! Requests to an agent: one method carries out each, and all changes to its host can be undone.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::message::{LoadsRequest, LoadsStatus, NetLoadPath, Reply, Request, SettingsRequest};
use super::sampling::{self, Sampling};
use super::tracing::Tracing;
use super::watchdog::Watchdog;
use crate::clock;
use crate::diagnostics::{Explain, Failure, refused};
use crate::facts::{Restoration, SettingFacts};
use crate::host::{HostGuard, HostRoot, KnobJournal, PathInterfaces};
use crate::plan::{LoadSpec, SettingSpec, Side, defaults};
use crate::session::{LoadedPath, Loads, PreSharedKey, ReflectorProcess, ReflectorProcessError, ReflectorRequest};

/// Maximum number of reflectors of one agent. A command starts at most three: for the measurement, for network loads,
/// and for probes during a stream.
const REFLECTORS_MAX: usize = 4;
/// Maximum wait for the thread of the loads to end. After it the agent exits, and the kernel ends the loads.
const LOADS_END_TIMEOUT: Duration = Duration::from_secs(1);

/// Carries out requests and keeps the changes to the agent's host, which `RequestHandler::undo` undoes. If the agent
/// is killed, the kernel ends its processes, and its watchdog restores the settings, which are journalled before they
/// are changed.
#[derive(Debug, Default)]
pub struct RequestHandler {
    settings: AgentSettings,
    reflectors: Vec<ReflectorProcess>,
    loads: Option<AgentLoads>,
    sampling: Sampling,
    tracing: Tracing,
    // Dropped last: it ends after everything was undone.
    watchdog: Option<Watchdog>,
}

impl RequestHandler {
    /// Carries out `request`. The timer of an armed run belongs to the agent's loop.
    pub(super) fn answer(&mut self, request: Request) -> Result<Reply, Failure> {
        match request {
            Request::StartReflector { bind, end, key, sessions, down_bps, transport, dds, queue, in_driver } => {
                let request = ReflectorRequest::new(bind, end, None, sessions);
                let (dds, queue) = (dds.unwrap_or_default(), queue.unwrap_or_default());
                let request = ReflectorRequest { down_bps, transport, dds, queue, in_driver, ..request };
                self.start_reflector(request, key.as_deref())
            }
            Request::Disarm => {
                Ok(Reply::Disarmed { reflector_died: self.reflectors.iter_mut().find_map(ReflectorProcess::death) })
            }
            Request::Settings(request) => {
                let is_due = matches!(request, SettingsRequest::Turn) && self.settings.outlive_process();
                if is_due && self.watchdog.is_none() {
                    self.watchdog = Some(Watchdog::start().map_err(refused("start the watchdog of the agent"))?);
                }
                self.settings.answer(request).map(Reply::Settings)
            }
            Request::Loads(request) => self.loads(request).map(Reply::Loads),
            Request::ReadFacts { address } => Ok(Reply::Facts(Box::new(sampling::facts(address)))),
            Request::ReadClocks => Ok(Reply::Clocks(clock::anchor())),
            Request::StartSampling { avoid_cpus } => {
                let own_processes = self.own_processes();
                self.sampling.start(avoid_cpus, own_processes).map(|()| Reply::Done)
            }
            Request::CollectSamples => Ok(Reply::Samples(self.sampling.next_page())),
            Request::StartTracing => self.tracing.start().map(|cost_ns| Reply::Tracing { cost_ns }),
            Request::ReadTrace { from_ns, to_ns } => Ok(Reply::Trace { text: self.tracing.text(from_ns, to_ns)? }),
            Request::StopAll => self.undo().map(|()| Reply::Done),
            Request::Arm { .. } => {
                // No request follows until the run has ended: the figures of its loads begin here.
                self.loads.iter().for_each(AgentLoads::begin);
                Ok(Reply::Done)
            }
            Request::Heartbeat => Ok(Reply::Done),
        }
    }

    fn start_reflector(&mut self, request: ReflectorRequest, key: Option<&str>) -> Result<Reply, Failure> {
        let (bind, sessions) = (request.bind.ip(), request.sessions);
        let failure = Failure::world(format!("cannot start a reflector on `{bind}`"));
        if bind.is_unspecified() {
            return Err(failure.because("a reflector answers on the measured path alone"));
        }
        if self.reflectors.len() >= REFLECTORS_MAX {
            return Err(failure.because(format!("this agent has `{REFLECTORS_MAX}` of them already")));
        }
        if !(1..=defaults::RUNS_MAX).contains(&usize::from(sessions)) {
            let max = defaults::RUNS_MAX;
            return Err(failure.because(format!("a command has 1 to {max} sessions, not `{sessions}`")));
        }
        let Some(key) = key else {
            return Err(failure.because("without a key it would answer any host"));
        };
        let key = read_key(key).map_err(|cause| failure.because(cause))?;
        let reflector = ReflectorProcess::start(&ReflectorRequest { key: Some(key.line()), ..request });
        let reflector = reflector.map_err(|error| match error {
            ReflectorProcessError::Refused(Failure { ref message, .. }) => {
                Failure { message: message.clone(), ..error.explain() }
            }
            ReflectorProcessError::Start(_) => error.explain(),
        })?;
        let (address, xdp) = (reflector.address(), reflector.xdp().cloned());
        self.reflectors.push(reflector);
        Ok(Reply::Reflector { address, xdp })
    }

    fn loads(&mut self, request: LoadsRequest) -> Result<LoadsStatus, Failure> {
        match request {
            LoadsRequest::Start { .. } if self.loads.is_some() => {
                return Err(Failure::world("cannot make the loads").because("this agent makes others"));
            }
            LoadsRequest::Start { loads, path } => {
                self.loads = Some(AgentLoads::start(loads, path)?);
            }
            LoadsRequest::Look => {}
            LoadsRequest::End => self.loads.iter().for_each(AgentLoads::end),
        }
        self.loads.as_ref().map_or(Ok(LoadsStatus::None), AgentLoads::status)
    }

    /// Process ids whose CPU time is latlab's own.
    fn own_processes(&self) -> Vec<u32> {
        let loads = self.loads.iter().flat_map(AgentLoads::own_processes);
        self.reflectors.iter().map(ReflectorProcess::pid).chain(loads).collect()
    }

    /// Undoes every change that can be undone; a failure does not prevent the others.
    ///
    /// # Errors
    /// The first change that could not be undone.
    pub(crate) fn undo(&mut self) -> Result<(), Failure> {
        self.sampling = Sampling::default();
        // Loads and reflectors may take a second to end, so the settings of the host are restored first.
        self.loads.iter_mut().for_each(AgentLoads::give_up);
        let restored = self.settings.undo();
        self.tracing = Tracing::default();
        while let Some(reflector) = self.reflectors.pop() {
            drop(reflector);
        }
        self.loads = None;
        self.watchdog = None;
        restored
    }
}

impl Drop for RequestHandler {
    fn drop(&mut self) {
        // `StopAll` reports a failure; after the loss of the connection none can be reported.
        let _ = self.undo();
    }
}

fn read_key(line: &str) -> Result<PreSharedKey, String> {
    PreSharedKey::from_reader("the agent's channel", line.as_bytes()).map_err(|error| error.to_string())
}

/// The settings of the agent's host: none, found, or changed. Restored when dropped.
#[derive(Debug, Default)]
struct AgentSettings {
    guard: Option<HostGuard>,
}

impl AgentSettings {
    fn answer(&mut self, request: SettingsRequest) -> Result<Vec<SettingFacts>, Failure> {
        match request {
            SettingsRequest::Find { settings, towards } => self.find(&settings, towards),
            SettingsRequest::Turn => {
                let nothing = || Failure::world("cannot set").because("nothing was found");
                let mut guard = self.guard.take().ok_or_else(nothing)?;
                // After an error the guard is dropped, which restores what it had set.
                guard.apply(KnobJournal::for_user().as_ref())?;
                Ok(self.guard.insert(guard).facts())
            }
            SettingsRequest::Restore => Ok(self.restore()),
        }
    }

    /// Whether one of them would outlive the agent.
    fn outlive_process(&self) -> bool {
        self.guard.as_ref().is_some_and(HostGuard::outlives_process)
    }

    fn find(&mut self, settings: &[SettingSpec], towards: IpAddr) -> Result<Vec<SettingFacts>, Failure> {
        if self.guard.is_some() {
            return Err(Failure::world("cannot find settings").because("this agent has other settings"));
        }
        let guard = HostGuard::find(settings, &PathInterfaces::towards(towards, None), HostRoot::for_knobs())?;
        Ok(self.guard.insert(guard).facts())
    }

    fn restore(&mut self) -> Vec<SettingFacts> {
        self.guard.take().map(|mut guard| guard.restore()).unwrap_or_default()
    }

    /// Restores every setting. One that cannot be restored stays in the journal of this host.
    fn undo(&mut self) -> Result<(), Failure> {
        for SettingFacts { setting, before, place, ended, .. } in self.restore() {
            if let Some(Restoration::Failed { reason }) = ended {
                return Err(Failure::world(format!("cannot restore `{setting}` to `{before}` at `{place}`"))
                    .because(reason)
                    .hint("`latlab doctor --restore` on that host tries again"));
            }
        }
        Ok(())
    }
}

/// The loads of the agent's host, which end when this is dropped, at the latest with the agent's process. A separate
/// thread starts them: the search for a rate takes seconds, in which the agent's loop must still notice the loss of its
/// controller.
#[derive(Debug)]
struct AgentLoads {
    shared: Arc<SharedLoads>,
    commands: Option<Sender<LoadsCommand>>,
    thread: Option<JoinHandle<()>>,
}

/// The state that the thread of the loads shares with the agent's loop.
#[derive(Debug)]
struct SharedLoads {
    status: Mutex<Result<LoadsStatus, Failure>>,
    processes: Mutex<Vec<u32>>,
    give_up: AtomicBool,
}

enum LoadsCommand {
    Begin,
    End,
}

impl AgentLoads {
    /// Starts the thread that starts `loads`; [`AgentLoads::status`] shows when they run.
    fn start(loads: Vec<LoadSpec>, path: Option<NetLoadPath>) -> Result<AgentLoads, Failure> {
        let failure = Failure::world("cannot make the loads");
        if loads.len() > defaults::LOADS_MAX {
            let cause = format!("{} exceed the limit of {} for one command", loads.len(), defaults::LOADS_MAX);
            return Err(failure.because(cause));
        }
        if let Some((cause, hint)) = loads.iter().find_map(|load| load.kind.exceeded()) {
            return Err(failure.because(cause).hint(hint));
        }
        let key = match path.as_ref().map(|path| read_key(&path.key)).transpose() {
            Ok(key) => key,
            Err(cause) => return Err(failure.because(cause)),
        };
        let shared = Arc::new(SharedLoads {
            status: Mutex::new(Ok(LoadsStatus::Starting)),
            processes: Mutex::default(),
            give_up: AtomicBool::new(false),
        });
        let (commands, received) = channel();
        let of_thread = Arc::clone(&shared);
        let run = move || {
            let path = path.as_ref().map(|path| path.as_loaded(key.as_ref()));
            of_thread.run(&loads, path, &received);
        };
        match thread::Builder::new().name("agent-loads".into()).spawn(run) {
            Ok(thread) => Ok(AgentLoads { shared, commands: Some(commands), thread: Some(thread) }),
            Err(error) => Err(failure.because(latlab_sys::errno::explain(&error))),
        }
    }

    /// # Errors
    /// A load could not be started.
    fn status(&self) -> Result<LoadsStatus, Failure> {
        self.shared.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn own_processes(&self) -> Vec<u32> {
        self.shared.processes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins the interval that the reports of the loads cover.
    fn begin(&self) {
        self.send(LoadsCommand::Begin);
    }

    /// Ends the loads, and the interval that their reports cover.
    fn end(&self) {
        self.send(LoadsCommand::End);
    }

    /// Ends the loads without a report.
    fn give_up(&mut self) {
        self.shared.give_up.store(true, Ordering::Relaxed);
        self.commands = None;
    }

    fn send(&self, command: LoadsCommand) {
        // Fails if the loads have ended, or could not be started.
        let _ = self.commands.as_ref().map(|commands| commands.send(command));
    }
}

impl Drop for AgentLoads {
    fn drop(&mut self) {
        self.give_up();
        let Some(thread) = self.thread.take() else { return };
        let deadline = Instant::now() + LOADS_END_TIMEOUT;
        while !thread.is_finished() {
            if Instant::now() > deadline {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        let _ = thread.join();
    }
}

impl SharedLoads {
    /// Keeps `loads` running until the command to end them arrives, or the sender of commands is dropped.
    fn run(&self, loads: &[LoadSpec], path: Option<LoadedPath<'_>>, commands: &Receiver<LoadsCommand>) {
        let loads = match Loads::start(loads, Side::Peer, path, &self.give_up, &mut || {}) {
            Ok(loads) => loads,
            Err(error) => return self.set(Err(error.explain())),
        };
        *self.processes.lock().unwrap_or_else(PoisonError::into_inner) = loads.own_processes();
        self.set(Ok(LoadsStatus::Running));
        while let Ok(command) = commands.recv() {
            match command {
                LoadsCommand::Begin => loads.begin(),
                LoadsCommand::End => {
                    self.set(Ok(LoadsStatus::Ending));
                    return self.set(Ok(LoadsStatus::Ended { reports: loads.finish() }));
                }
            }
        }
    }

    fn set(&self, status: Result<LoadsStatus, Failure>) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }
}

impl NetLoadPath {
    fn as_loaded<'a>(&'a self, key: Option<&'a PreSharedKey>) -> LoadedPath<'a> {
        LoadedPath { peer: self.sink, path: &self.path, key, lasting: self.lasting_ns }
    }
}
