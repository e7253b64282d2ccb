//! The program of a command, its files, and the terminal that it may inherit.

use std::env;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, OFlags, access, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use super::error::CommandError;
use crate::plan::{CommandOutput, CommandSpec};

/// The last bytes of the standard error that are kept.
const KEPT_BYTES: usize = 4 << 10;

/// The bytes of standard output in which numbers are looked for.
const OUTPUT_MAX: usize = 16 << 20;

/// Read at once; a program that never stops writing must not keep latlab from its clock.
const READ_BYTES: usize = 16 << 10;
const DRAINED_AT_ONCE: usize = 16;

/// The file of the program `name`, which is searched for in PATH unless it is a path.
pub(super) fn find(name: &str) -> Result<PathBuf, CommandError> {
    let is_path = name.contains('/');
    let found: Vec<PathBuf> = match is_path {
        true => vec![name.into()],
        false => env::split_paths(&env::var_os("PATH").unwrap_or_default()).map(|folder| folder.join(name)).collect(),
    };
    let is_usable = |path: &&PathBuf| path.is_file() && access(path.as_path(), Access::EXEC_OK).is_ok();
    if let Some(path) = found.iter().find(is_usable) {
        return Ok(path.clone());
    }
    let (cause, hint) = if found.iter().any(|path| path.is_file()) {
        ("it may not be executed", "`chmod +x`, or name the program that reads it")
    } else if is_path && Path::new(name).is_dir() {
        ("it is a directory", "name a program in it")
    } else if is_path {
        ("the file does not exist", "check the path")
    } else {
        ("no directory of PATH has such a program", "check the name, or give a path; `--shell` knows built-in commands")
    };
    Err(CommandError::Unusable { program: name.into(), cause, hint })
}

/// The standard files of a command as latlab has them, and those that the command gets.
pub(super) struct Files {
    input: Option<File>,
    output: Option<File>,
    /// The pipe from its standard error; `None` if it inherits latlab's.
    pub(super) errors: Option<File>,
    /// The last bytes of its standard error.
    tail: Vec<u8>,
    /// The pipe from its standard output, if numbers are looked for.
    pub(super) captured: Option<File>,
    /// The first bytes of the output of this execution.
    pub(super) kept: Vec<u8>,
    /// All bytes of its output.
    pub(super) written: u64,
    terminal: Option<Termios>,
}

impl Files {
    pub(super) fn open(spec: &CommandSpec) -> Result<(Files, [Option<OwnedFd>; 3]), CommandError> {
        let null = || File::options().read(true).write(true).open("/dev/null");
        let path = spec.input.as_deref().unwrap_or("/dev/null");
        let input = File::open(path).map_err(failed("--input", path))?;
        let (path, output) = match &spec.output {
            CommandOutput::Null => ("/dev/null", Some(null())),
            CommandOutput::File(path) => (path.as_str(), Some(File::options().append(true).create(true).open(path))),
            CommandOutput::Inherit => ("", None),
        };
        let output = output.transpose().map_err(failed("--stdout", path))?;
        let pipe = output.is_some().then(pipe).transpose().map_err(failed("--stdout", "a pipe"))?;
        let (errors, theirs) = pipe.map_or((None, None), |(ours, theirs)| (Some(ours), Some(theirs)));
        let copied =
            |file: &Option<File>| file.as_ref().map(File::try_clone).transpose().map(|it| it.map(OwnedFd::from));
        let (captured, given) = match spec.printed.is_empty() {
            true => (None, copied(&output).map_err(failed("--stdout", path))?),
            false => {
                let (ours, theirs) = self::pipe().map_err(failed("--metric", "a pipe"))?;
                (Some(ours), Some(theirs))
            }
        };
        let is_file = matches!(spec.output, CommandOutput::File(_));
        let files = Files {
            input: Some(input.try_clone().map_err(failed("--input", "/dev/null"))?).filter(|_| spec.input.is_some()),
            output: output.filter(|_| is_file),
            errors,
            tail: Vec::with_capacity(2 * KEPT_BYTES),
            kept: Vec::new(),
            written: 0,
            captured,
            terminal: tcgetattr(io::stderr()).ok(),
        };
        Ok((files, [Some(input.into()), given, theirs]))
    }

    /// Makes the next execution read its input from the begin, and write to an empty file.
    pub(super) fn rewind(&mut self) {
        // A pipe has no begin.
        self.input.iter_mut().for_each(|input| _ = input.rewind());
        self.output.iter().for_each(|output| _ = output.set_len(0));
        self.drain();
        self.tail.clear();
        self.kept.clear();
        self.written = 0;
    }

    /// Reads what the pipes have, up to a few times their size.
    pub(super) fn drain(&mut self) {
        let (kept, tail) = (&mut self.kept, &mut self.tail);
        read_available(&mut self.captured, |bytes| {
            kept.extend_from_slice(&bytes[..bytes.len().min(OUTPUT_MAX - kept.len())]);
            self.written += bytes.len() as u64;
        });
        read_available(&mut self.errors, |bytes| {
            let bytes = &bytes[bytes.len().saturating_sub(KEPT_BYTES)..];
            let excess = (tail.len() + bytes.len()).saturating_sub(KEPT_BYTES).min(tail.len());
            tail.drain(..excess);
            tail.extend_from_slice(bytes);
        });
    }

    /// The last lines that the execution wrote to its standard error.
    pub(super) fn last_lines(&mut self) -> String {
        self.drain();
        last_lines(&self.tail)
    }
}

fn read_available(pipe: &mut Option<File>, mut keep: impl FnMut(&[u8])) {
    let Some(pipe) = pipe else { return };
    let mut bytes = [0; READ_BYTES];
    for _ in 0..DRAINED_AT_ONCE {
        let Ok(read @ 1..) = pipe.read(&mut bytes) else { break };
        keep(&bytes[..read]);
    }
}

pub(super) fn last_lines(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(KEPT_BYTES)..]);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

fn failed(option: &'static str, path: &str) -> impl FnOnce(io::Error) -> CommandError {
    let path = path.to_owned();
    move |source| CommandError::File { option, path, source }
}

/// A program may leave a terminal that it inherits without echo.
impl Drop for Files {
    fn drop(&mut self) {
        if let (Some(modes), None) = (&self.terminal, &self.errors) {
            let _ = tcsetattr(io::stderr(), OptionalActions::Now, modes);
        }
    }
}

/// A pipe that can be read without waiting.
fn pipe() -> io::Result<(File, OwnedFd)> {
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfl(ours.as_fd(), OFlags::NONBLOCK)?;
    Ok((ours.into(), theirs))
}
