//! `Latlab::new().args([…]).stdout(contains("…")).failure(2)` runs one latlab process in a temporary directory,
//! `Latlab::at(directory)` in a directory of the test; [`Latlab::start`] does not wait for its end.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::fake_host::FakeHost;
use crate::processes::is_alive;
use crate::scheduling::{errors, is_late, only_late};
use crate::store::recordings;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_latlab");

/// A process that takes longer hangs: the slowest takes 10 s, and may get a tenth of a CPU only.
const DEADLINE: Duration = Duration::from_secs(120);

/// An expectation of stdout or stderr.
pub(crate) enum Expectation {
    /// The stream contains this text.
    Contains(String),
    /// The stream does not contain this text.
    Lacks(String),
    Empty,
    WarningsAtMost,
}

pub(crate) fn contains(text: impl Into<String>) -> Expectation {
    Expectation::Contains(text.into())
}

/// The stream does not contain `text`.
pub(crate) fn lacks(text: impl Into<String>) -> Expectation {
    Expectation::Lacks(text.into())
}

pub(crate) fn empty() -> Expectation {
    Expectation::Empty
}

/// The stream has at most what a busy or virtual host may cause at any time: warnings, and that probes left late.
pub(crate) fn warnings_at_most() -> Expectation {
    Expectation::WarningsAtMost
}

impl Expectation {
    fn is_met_by(&self, stream: &str) -> bool {
        match self {
            Expectation::Contains(text) => stream.contains(text.as_str()),
            Expectation::Lacks(text) => !stream.contains(text.as_str()),
            Expectation::Empty => stream.is_empty(),
            Expectation::WarningsAtMost => stream.lines().all(|line| {
                ["warning: ", "  effect: ", "  hint: "].iter().any(|start| line.starts_with(start)) || is_late(line)
            }),
        }
    }

    fn description(&self) -> String {
        match self {
            Expectation::Contains(text) => format!("`{text}`"),
            Expectation::Lacks(text) => format!("no `{text}`"),
            Expectation::Empty => "nothing".into(),
            Expectation::WarningsAtMost => "nothing but warnings".into(),
        }
    }
}

/// A command of the binary that begins with the default actions of SIGHUP, SIGINT and SIGQUIT. A shell lets its processes in
/// the background ignore the last two, nohup(1) the first, and latlab keeps to that. A child inherits that a signal is
/// ignored, but no handler: these signals get one here that does nothing.
pub(crate) fn command() -> Command {
    static HANDLED: Once = Once::new();
    HANDLED.call_once(|| {
        for signal in [Signal::HUP, Signal::INT, Signal::QUIT].map(Signal::as_raw) {
            if latlab_sys::process::ignores(signal) {
                signal_hook::flag::register(signal, Arc::default()).expect("none of them is forbidden");
            }
        }
    });
    Command::new(BINARY)
}

/// A latlab process to be started, and the expectations of its output.
pub(crate) struct Latlab {
    directory: Directory,
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    stdin: Option<PathBuf>,
    stdout: Vec<Expectation>,
    stderr: Vec<Expectation>,
    deadline: Duration,
}

/// The working directory of a process.
enum Directory {
    /// A temporary one, removed with the value.
    Own(TempDir),
    Shared(PathBuf),
}

impl Directory {
    fn path(&self) -> &Path {
        match self {
            Directory::Own(directory) => directory.path(),
            Directory::Shared(path) => path,
        }
    }
}

impl Latlab {
    /// A process in a temporary directory, without arguments.
    pub(crate) fn new() -> Latlab {
        Latlab::within(Directory::Own(tempfile::tempdir().expect("a temporary directory")))
    }

    /// A process in `directory`, without arguments.
    pub(crate) fn at(directory: &Path) -> Latlab {
        Latlab::within(Directory::Shared(directory.to_owned()))
    }

    fn within(directory: Directory) -> Latlab {
        let (args, environment) = (Vec::new(), Vec::new());
        let (stdout, stderr) = (Vec::new(), Vec::new());
        Latlab { directory, args, environment, stdin: None, stdout, stderr, deadline: DEADLINE }
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Latlab {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub(crate) fn arg(self, arg: impl AsRef<OsStr>) -> Latlab {
        self.args([arg])
    }

    /// Appends the words of `line`, split at white space.
    pub(crate) fn line(self, line: &str) -> Latlab {
        self.args(line.split_whitespace())
    }

    pub(crate) fn environment(mut self, name: &str, value: impl AsRef<OsStr>) -> Latlab {
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Makes it a process of `host`: that is where it finds knobs, and its journal.
    pub(crate) fn on(self, host: &FakeHost) -> Latlab {
        let [(root, at), (state, journal)] = host.environment();
        self.environment(root, at).environment(state, journal)
    }

    /// Makes the file `name` of the directory its stdin, which is empty otherwise.
    pub(crate) fn stdin(mut self, name: &str) -> Latlab {
        self.stdin = Some(self.path(name));
        self
    }

    /// Writes a file into the directory.
    pub(crate) fn file(self, name: &str, text: impl AsRef<[u8]>) -> Latlab {
        std::fs::write(self.path(name), text).expect("the directory takes a file");
        self
    }

    /// The path of `name` in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Replaces the default deadline for its end.
    pub(crate) fn deadline(self, deadline: Duration) -> Latlab {
        Latlab { deadline, ..self }
    }

    /// Adds an expectation of stdout.
    pub(crate) fn stdout(mut self, expectation: Expectation) -> Latlab {
        self.stdout.push(expectation);
        self
    }

    /// Adds an expectation of stderr.
    pub(crate) fn stderr(mut self, expectation: Expectation) -> Latlab {
        self.stderr.push(expectation);
        self
    }

    /// Runs it and expects exit code 0.
    #[track_caller]
    pub(crate) fn success(self) -> Finished {
        self.failure(0)
    }

    /// Runs it and expects a measurement: exit code 0, or 4 if its only error is that the probes of a schedule left late, as
    /// they may on a busy host.
    #[track_caller]
    pub(crate) fn measured(self) -> Finished {
        self.start().finishes_measured()
    }

    /// Runs it and expects exit code `code`.
    #[track_caller]
    pub(crate) fn failure(self, code: i32) -> Finished {
        self.start().exits(code)
    }

    /// Starts it. Of the environment of the test it gets PATH only.
    pub(crate) fn start(self) -> Running {
        let open = |path: &PathBuf| std::fs::File::open(path).expect("the test has put it there").into();
        let child = command()
            .args(&self.args)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.directory.path())
            .stdin(self.stdin.as_ref().map_or_else(Stdio::null, open))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built by the test run");
        Running::new(child, self)
    }
}

/// A running process. It is killed when the value is dropped.
pub(crate) struct Running {
    child: Child,
    lab: Latlab,
    stdout: OutputReader,
    stderr: OutputReader,
}

impl Running {
    fn new(mut child: Child, lab: Latlab) -> Running {
        let stdout = OutputReader::listen(child.stdout.take().expect("piped"));
        let stderr = OutputReader::listen(child.stderr.take().expect("piped"));
        Running { child, lab, stdout, stderr }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("our own child");
    }

    /// Sends `signal` every 50 ms until the process has ended: signals within a short time count as one.
    #[track_caller]
    pub(crate) fn signal_until_it_ends(&self, signal: Signal) {
        wait_until("latlab ended", || {
            let _ = kill_process(self.pid(), signal);
            thread::sleep(Duration::from_millis(50));
            !is_alive(self.pid().as_raw_nonzero().get())
        });
    }

    /// Waits until stderr contains `text`.
    #[track_caller]
    pub(crate) fn wait_for_stderr(&self, text: &str) {
        wait_until(&format!("stderr contained `{text}`"), || self.stderr.text().contains(text));
    }

    /// Waits until `happened` returns true; fails if the process ends before.
    #[track_caller]
    pub(crate) fn wait_until(&mut self, what: &str, mut happened: impl FnMut() -> bool) {
        wait_until(what, || {
            let ended = self.child.try_wait().expect("our own child");
            let is_over = happened();
            assert!(is_over || ended.is_none(), "latlab ended before {what}: {ended:?}\n{}", self.stderr.text());
            is_over
        });
    }

    /// Waits for its end and expects exit code `code`.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Finished {
        self.finishes(|status| status.code() == Some(code), &format!("exit code {code}"))
    }

    /// Waits for its end and expects what [`Latlab::measured`] expects.
    #[track_caller]
    pub(crate) fn finishes_measured(self) -> Finished {
        let is_experiment = self.lab.args.first().is_some_and(|command| command == "run");
        let ran = self.exits_with_one_of(&[0, 4]);
        let is_measured = match (ran.code, is_experiment) {
            (0, _) => errors(&ran.stdout, &ran.stderr).is_empty(),
            (_, true) => ran.runs_are_late(),
            (_, false) => only_late(&ran.stdout, &ran.stderr),
        };
        assert!(is_measured, "exit code {}\n{}\n{}", ran.code, ran.stdout, ran.stderr);
        ran
    }

    /// Waits for its end and expects one of `codes`.
    #[track_caller]
    pub(crate) fn exits_with_one_of(self, codes: &[i32]) -> Finished {
        self.finishes(|status| status.code().is_some_and(|code| codes.contains(&code)), &format!("one of {codes:?}"))
    }

    /// Waits for its end and expects that `signal` caused it.
    #[track_caller]
    pub(crate) fn killed_by(self, signal: Signal) -> Finished {
        self.finishes(|status| status.signal() == Some(signal.as_raw()), &format!("{signal:?}"))
    }

    #[track_caller]
    fn finishes(mut self, wanted: impl Fn(ExitStatus) -> bool, expected: &str) -> Finished {
        let status = wait(&mut self.child, self.lab.deadline);
        let (stdout, stderr) = (self.stdout.whole(), self.stderr.whole());
        let typed: Vec<_> = self.lab.args.iter().map(|arg| arg.to_string_lossy()).collect();
        let transcript = format!("latlab {}\n{status}\n--- stdout\n{stdout}\n--- stderr\n{stderr}", typed.join(" "));
        assert!(wanted(status), "expected {expected} of {transcript}");
        for (name, expectations, stream) in
            [("stdout", &self.lab.stdout, &stdout), ("stderr", &self.lab.stderr, &stderr)]
        {
            for expectation in expectations {
                assert!(
                    expectation.is_met_by(stream),
                    "expected {} on {name} of {transcript}",
                    expectation.description()
                );
            }
        }
        for unwanted in ["panicked", "os error"] {
            assert!(!stderr.contains(unwanted), "`{unwanted}` on stderr of {transcript}");
        }
        let directory = std::mem::replace(&mut self.lab.directory, Directory::Shared(PathBuf::new()));
        Finished { code: status.code().unwrap_or(-1), stdout, stderr, directory }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A finished process. A temporary directory is removed with the value.
pub(crate) struct Finished {
    /// Its exit code; -1 if a signal ended it.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    directory: Directory,
}

impl Finished {
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Whether runs of its experiments have fatal caveats, each of which is that their probes left late, and all have answers.
    fn runs_are_late(&self) -> bool {
        let experiments = recordings(self.directory());
        let summary = |path| Latlab::at(self.directory()).line("summary --json -q").arg(path);
        let summaries: Vec<_> =
            experiments.iter().map(|path| summary(path).start().exits_with_one_of(&[0, 4])).collect();
        let is_answered = |run: &Value| run["answered"] != 0 || run["ending"] != "completed";
        let are_answered =
            |ran: &Finished| ran.json()["summaries"].as_array().is_some_and(|all| all.iter().all(is_answered));
        let mut untrusted = summaries.iter().filter(|ran| ran.code == 4).peekable();
        untrusted.peek().is_some()
            && untrusted.all(|ran| only_late(&ran.stdout, &ran.stderr))
            && summaries.iter().all(are_answered)
    }

    /// stdout parsed as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in\n{}", self.stdout))
    }
}

/// Reads a stream in a thread, so that the process never waits for the test.
struct OutputReader {
    text: Arc<Mutex<Vec<u8>>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl OutputReader {
    fn listen(mut stream: impl Read + Send + 'static) -> OutputReader {
        let text = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&text);
        let reader = thread::spawn(move || {
            let mut piece = [0; 4096];
            loop {
                let length = stream.read(&mut piece).expect("a pipe can be read");
                if length == 0 {
                    break;
                }
                written.lock().expect("no thread panics with it").extend_from_slice(&piece[..length]);
            }
        });
        OutputReader { text, reader: Some(reader) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().expect("no thread panics with it")).into_owned()
    }

    /// The whole text, after the process has ended.
    fn whole(&mut self) -> String {
        self.reader.take().expect("called once").join().expect("the reader ends with the pipe");
        String::from_utf8(self.text.lock().expect("the reader is gone").clone()).expect("latlab writes UTF-8")
    }
}

/// Waits until `happened` returns true; fails after [`DEADLINE`].
#[track_caller]
pub(crate) fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < DEADLINE, "timed out waiting until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[track_caller]
fn wait(child: &mut Child, deadline: Duration) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("our own child") {
            return status;
        }
        if start.elapsed() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!("latlab had not ended after {deadline:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn schema(name: &str) -> Value {
    let path = format!("{}/../../docs/schemas/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).expect("a schema is JSON")
}

/// Expects that `document` is valid under the published schema `name`, and names it.
#[track_caller]
pub(crate) fn check_schema(document: &Value, name: &str) {
    assert_eq!(document["schema"], format!("latlab.{name}"));
    let registry = jsonschema::Registry::new()
        .add("urn:latlab:summary:1", schema("summary-1"))
        .and_then(|registry| registry.prepare())
        .expect("a registry of one schema");
    let schema = schema(&name.replace('/', "-"));
    let validator = jsonschema::options().with_registry(&registry).build(&schema).expect("a valid schema");
    let errors: Vec<_> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
}
