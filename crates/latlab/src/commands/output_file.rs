//! Where documents for other programs go: a file that appears as a whole, or standard output.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Component, Path, PathBuf};

use rustix::process::geteuid;
use tempfile::{Builder, TempPath};

use crate::console::Console;
use crate::diagnostics::{Failure, in_words};
use crate::platform::input_file::{self, UnfitInput};
use crate::platform::ownership::quoted;

/// A file that replaces the one at its path, or a link there, when it is complete: other processes see either of them as a
/// whole, also after a power failure. Without [`OutputFile::commit`] nothing is left.
pub(super) struct OutputFile {
    file: BufWriter<File>,
    /// The name while it is written.
    next: TempPath,
    path: PathBuf,
}

impl OutputFile {
    /// Begins the file at `path`. A file that replaces another one gets its mode, and its owner if this process is root's.
    fn create(path: &Path) -> io::Result<OutputFile> {
        let replaced = fs::symlink_metadata(path).ok().filter(Metadata::is_file);
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        // Narrower than the mode of a file to replace, until it has that mode.
        let mode = if replaced.is_some() { 0o600 } else { 0o666 };
        let new = Builder::new().make_in(directory.unwrap_or(Path::new(".")), |path| {
            OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
        })?;
        replaced.map_or(Ok(()), |replaced| keep_access(new.as_file(), &replaced))?;
        let (file, next) = new.into_parts();
        Ok(OutputFile { file: BufWriter::new(file), next, path: path.to_owned() })
    }

    fn commit(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_data()?;
        Ok(self.next.persist(&self.path)?)
    }
}

/// Gives `file` the owner and the mode of the file that it replaces.
fn keep_access(file: &File, replaced: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if geteuid().is_root() && [own.uid(), own.gid()] != [replaced.uid(), replaced.gid()] {
        // A file system that knows no owners, or maps root to another user, refuses it: the file then has another owner.
        let _ = fchown(file, Some(replaced.uid()), Some(replaced.gid()));
    }
    file.set_permissions(Permissions::from_mode(0o777 & replaced.mode()))
}

/// Links to what may be a file.
const STANDARD_OUTPUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Where a stream of bytes goes.
pub(super) enum OutputTarget<'a> {
    File(OutputFile),
    /// A pipe, a device, or standard output.
    Stream(BufWriter<File>, Option<PathBuf>),
    Terminal(TerminalLines<'a>),
}

impl<'a> OutputTarget<'a> {
    /// Whether `path` would be a file that appears as a whole, not a pipe or a device.
    pub(super) fn is_whole(path: &Path) -> bool {
        fs::metadata(path).map_or(true, |found| found.is_file())
    }

    /// The file at `path`, or standard output. Of links only those of root or of this user are followed, and only to a pipe or
    /// a device, as `/dev/stdout` is one. A file that exists is replaced with `force`, or if `is_own` says that latlab
    /// wrote it; one that cannot be read shows nothing of the kind.
    ///
    /// # Errors
    /// If the path is a directory, or a file that may not be replaced, or cannot be written.
    pub(super) fn open(
        path: Option<&Path>,
        force: bool,
        is_own: impl FnOnce(&Path) -> io::Result<bool>,
        console: &'a Console,
    ) -> Result<OutputTarget<'a>, Failure> {
        let Some(path) = path.filter(|path| !STANDARD_OUTPUT.iter().any(|name| path.as_os_str() == *name)) else {
            if console.data_screen().terminal {
                return Ok(OutputTarget::Terminal(TerminalLines { console, waiting: Vec::new() }));
            }
            let stdout = console.bytes().map_err(|error| refused(None, &error))?;
            return Ok(OutputTarget::Stream(buffered(stdout.into()), None));
        };
        let failed = |error: io::Error| refused(Some(path), &error);
        let link = fs::symlink_metadata(path).ok().filter(Metadata::is_symlink);
        let is_trusted = |link: &Metadata| [0, geteuid().as_raw()].contains(&link.uid());
        if link.is_some_and(|link| OutputTarget::is_whole(path) || !is_trusted(&link)) {
            return Err(input_file::failure(format!("cannot write `{}`", path.display()), &UnfitInput::Link.into()));
        }
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(Failure::request(format!("cannot write `{}`", path.display()))
                .because("it is a directory")
                .hint(format!("name a file in it: `-o {}`", quoted(&path.join("FILE"))))),
            Ok(found) if !found.is_file() => {
                let device = OpenOptions::new().write(true).open(path).map_err(failed)?;
                Ok(OutputTarget::Stream(buffered(device), Some(path.to_owned())))
            }
            Ok(_) if !force && !is_own(path).unwrap_or(false) => Err(Failure::request(format!(
                "`{}` exists, and nothing in it shows that latlab wrote it in this form",
                path.display()
            ))
            .hint("`--force` replaces it; `-o FILE` names another file")),
            _ => Ok(OutputTarget::File(OutputFile::create(path).map_err(failed)?)),
        }
    }

    /// Completes it after all was written.
    ///
    /// # Errors
    /// If it cannot be written. A pipe whose reader has gone is not an error.
    pub(super) fn conclude(mut self) -> Result<(), Failure> {
        let path = self.path().map(Path::to_owned);
        let written = match self {
            OutputTarget::File(file) => file.commit(),
            OutputTarget::Stream(ref mut stream, _) => stream.flush(),
            OutputTarget::Terminal(ref mut lines) => lines.flush(),
        };
        OutputTarget::judged(written, path.as_deref())
    }

    pub(super) fn judge(&self, written: io::Result<()>) -> Result<(), Failure> {
        OutputTarget::judged(written, self.path())
    }

    fn path(&self) -> Option<&Path> {
        match self {
            OutputTarget::File(file) => Some(&file.path),
            OutputTarget::Stream(_, path) => path.as_deref(),
            OutputTarget::Terminal(_) => None,
        }
    }

    fn judged(written: io::Result<()>, path: Option<&Path>) -> Result<(), Failure> {
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(refused(path, &error)),
            _ => Ok(()),
        }
    }
}

impl OutputTarget<'_> {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            OutputTarget::File(file) => &mut file.file,
            OutputTarget::Stream(stream, _) => stream,
            OutputTarget::Terminal(lines) => lines,
        }
    }
}

impl Write for OutputTarget<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

/// Text for a terminal, handed to the console line by line, which escapes what the terminal would obey.
pub(super) struct TerminalLines<'a> {
    console: &'a Console,
    waiting: Vec<u8>,
}

impl Write for TerminalLines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if let Some(end) = self.waiting.iter().rposition(|byte| *byte == b'\n') {
            let lines: Vec<u8> = self.waiting.drain(..=end).collect();
            self.console.values(&String::from_utf8_lossy(&lines)).map_err(as_io)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.waiting);
        if rest.is_empty() {
            return Ok(());
        }
        self.console.values(&String::from_utf8_lossy(&rest)).map_err(as_io)
    }
}

fn as_io(failure: Failure) -> io::Error {
    io::Error::other(failure.cause.unwrap_or(failure.message))
}

fn buffered(file: File) -> BufWriter<File> {
    BufWriter::with_capacity(1 << 16, file)
}

fn refused(path: Option<&Path>, error: &io::Error) -> Failure {
    let hint = "write to another file system: `-o FILE`";
    match path {
        Some(path) => without_directory(path, error).unwrap_or_else(|| {
            Failure::world(format!("cannot write `{}`", path.display())).because(in_words(error)).hint(hint)
        }),
        None => Failure::world("cannot write the results to stdout")
            .because(in_words(error))
            .hint("redirect stdout to another file system"),
    }
}

/// The failure that the directory of `path` is missing, if `error` is due to that.
fn without_directory(path: &Path, error: &io::Error) -> Option<Failure> {
    let is_possible = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    let directory = path.parent().filter(|_| is_possible)?;
    let missing = first_missing(directory)?;
    // Behind `..` lies another directory than the one that would be made.
    let leads_back =
        directory.strip_prefix(missing).is_ok_and(|rest| rest.components().any(|part| part == Component::ParentDir));
    let hint = match error.kind() {
        io::ErrorKind::NotFound => {
            format!("create it first: `mkdir -p {}`", quoted(if leads_back { missing } else { directory }))
        }
        _ => "name a file in a directory: `-o FILE`".to_owned(),
    };
    Some(
        Failure::request(format!("cannot write `{}`", path.display()))
            .because(format!("`{}` is not a directory", missing.display()))
            .hint(hint),
    )
}

/// The shortest part of `path` that is not a directory; `None` if all of it is one.
fn first_missing(path: &Path) -> Option<&Path> {
    let parts = path.ancestors().take_while(|part| !part.as_os_str().is_empty());
    parts.filter(|part| !part.is_dir()).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_when_it_is_complete_and_nothing_is_left_of_another() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x.csv");
        let names = || fs::read_dir(directory.path()).expect("readable").count();
        let mut broken = OutputFile::create(&path).expect("created");
        broken.file.write_all(b"half").expect("written");
        assert!(!path.exists() && names() == 1);
        drop(broken);
        assert_eq!(names(), 0);
        fs::write(&path, "old").expect("written");
        let mut whole = OutputFile::create(&path).expect("created");
        whole.file.write_all(b"new").expect("written");
        whole.commit().expect("renamed");
        assert_eq!((fs::read_to_string(&path).expect("readable").as_str(), names()), ("new", 1));
    }

    fn write(path: &Path, text: &str) -> io::Result<()> {
        let mut file = OutputFile::create(path)?;
        file.file.write_all(text.as_bytes())?;
        file.commit()
    }

    #[test]
    fn a_file_has_the_mode_of_the_one_that_it_replaces() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x.csv");
        for mode in [0o600, 0o640, 0o444, 0o666] {
            fs::write(&path, "old").expect("written");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("own");
            write(&path, "new").expect("replaced");
            assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, mode);
            assert_eq!(fs::read_to_string(&path).expect("readable"), "new");
            fs::remove_file(&path).expect("own");
        }
    }
}
