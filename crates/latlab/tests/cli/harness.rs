//! `Lab::new().args([…]).stdout(contains("…")).failure(2)`: one latlab process in a directory of its own.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A process that has not ended by then never will: three times what the slowest test may need.
const DEADLINE: Duration = Duration::from_secs(120);

/// What a stream must look like.
pub(crate) enum Expectation {
    /// It has this text somewhere.
    Contains(String),
    /// It does not have this text.
    Lacks(String),
    /// There is nothing on it.
    Empty,
}

/// The text stands somewhere on the stream.
pub(crate) fn contains(text: impl Into<String>) -> Expectation {
    Expectation::Contains(text.into())
}

/// The text stands nowhere on the stream.
pub(crate) fn lacks(text: impl Into<String>) -> Expectation {
    Expectation::Lacks(text.into())
}

/// Nothing stands on the stream.
pub(crate) fn empty() -> Expectation {
    Expectation::Empty
}

impl Expectation {
    fn is_met_by(&self, stream: &str) -> bool {
        match self {
            Expectation::Contains(text) => stream.contains(text.as_str()),
            Expectation::Lacks(text) => !stream.contains(text.as_str()),
            Expectation::Empty => stream.is_empty(),
        }
    }

    fn wish(&self) -> String {
        match self {
            Expectation::Contains(text) => format!("`{text}`"),
            Expectation::Lacks(text) => format!("no `{text}`"),
            Expectation::Empty => "nothing".into(),
        }
    }
}

/// A latlab to be run in a fresh directory, with what is expected of it.
pub(crate) struct Lab {
    directory: TempDir,
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    input: Vec<u8>,
    stdout: Vec<Expectation>,
    stderr: Vec<Expectation>,
}

impl Lab {
    /// In a fresh directory, with no arguments yet.
    pub(crate) fn new() -> Lab {
        Lab {
            directory: tempfile::tempdir().expect("a temporary directory"),
            args: Vec::new(),
            environment: Vec::new(),
            input: Vec::new(),
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }

    /// Types `args` after those typed before.
    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Lab {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Types a line, split at white space.
    pub(crate) fn line(self, line: &str) -> Lab {
        self.args(line.split_whitespace())
    }

    /// Sets a variable of the environment.
    pub(crate) fn environment(mut self, name: &str, value: impl AsRef<OsStr>) -> Lab {
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Gives `text` on stdin.
    #[allow(dead_code, reason = "for the commands that read stdin")]
    pub(crate) fn input(mut self, text: &str) -> Lab {
        self.input.extend(text.bytes());
        self
    }

    /// Puts a file into the directory.
    pub(crate) fn file(self, name: &str, text: impl AsRef<[u8]>) -> Lab {
        std::fs::write(self.path(name), text).expect("the directory takes a file");
        self
    }

    /// Where `name` is, or would be, in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Expects `expectation` of stdout.
    pub(crate) fn stdout(mut self, expectation: Expectation) -> Lab {
        self.stdout.push(expectation);
        self
    }

    /// Expects `expectation` of stderr.
    pub(crate) fn stderr(mut self, expectation: Expectation) -> Lab {
        self.stderr.push(expectation);
        self
    }

    /// Runs it and expects exit code 0.
    #[track_caller]
    pub(crate) fn success(self) -> Ran {
        self.failure(0)
    }

    /// Runs it and expects exit code `code`.
    #[track_caller]
    pub(crate) fn failure(self, code: i32) -> Ran {
        let mut child = self.start();
        let ran = Ran::gather(&mut child, self.input, self.directory);
        let typed: Vec<_> = self.args.iter().map(|arg| arg.to_string_lossy()).collect();
        let story = format!(
            "latlab {}\n{}\n--- stdout\n{}\n--- stderr\n{}",
            typed.join(" "),
            ran.status,
            ran.stdout,
            ran.stderr
        );
        assert_eq!(ran.status.code(), Some(code), "exit code of {story}");
        for (name, expectations, stream) in
            [("stdout", &self.stdout, &ran.stdout), ("stderr", &self.stderr, &ran.stderr)]
        {
            for expectation in expectations {
                assert!(expectation.is_met_by(stream), "expected {} on {name} of {story}", expectation.wish());
            }
        }
        ran
    }

    /// Nothing of the surroundings of the test leaks in but the path to other programs.
    fn start(&self) -> Child {
        Command::new(env!("CARGO_BIN_EXE_latlab"))
            .args(&self.args)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built by the test run")
    }
}

/// A latlab that has ended; its directory lives as long as this value.
pub(crate) struct Ran {
    /// How it ended.
    pub(crate) status: ExitStatus,
    /// All of stdout.
    pub(crate) stdout: String,
    /// All of stderr.
    pub(crate) stderr: String,
    directory: TempDir,
}

impl Ran {
    /// The directory in which it ran.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    #[track_caller]
    fn gather(child: &mut Child, input: Vec<u8>, directory: TempDir) -> Ran {
        let mut stdin = child.stdin.take().expect("piped");
        let writer = thread::spawn(move || {
            // a process that does not read its stdin closes it: no matter
            let _ = stdin.write_all(&input);
        });
        let stdout = drain(child.stdout.take().expect("piped"));
        let stderr = drain(child.stderr.take().expect("piped"));
        let status = wait(child);
        writer.join().expect("the writer ends with the pipe");
        let text = |reader: thread::JoinHandle<Vec<u8>>| {
            String::from_utf8(reader.join().expect("the reader ends with the pipe")).expect("latlab writes UTF-8")
        };
        Ran { status, stdout: text(stdout), stderr: text(stderr), directory }
    }
}

fn drain(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("a pipe can be read");
        all
    })
}

#[track_caller]
fn wait(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("our own child") {
            return status;
        }
        if start.elapsed() > DEADLINE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("latlab had not ended after {DEADLINE:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}
