//! Input files: regular ones only, and at most so long. Opening a FIFO waits for a writer, and a device may have no end.
//!
//! Every file that a user names, or that a recording, an experiment or the state directory holds, is opened here.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fcntl_setfl, fstat, openat, statat};

use super::ownership::{expect_own, untrusted};
use crate::diagnostics::{Failure, in_words};

/// An input that is not a regular file, or is too long: a wrong request and not an error of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnfitInput {
    /// A file of another type, in words: `a FIFO`.
    Type(&'static str),
    /// A link where none is followed.
    Link,
    /// More bytes than the limit.
    TooLong { max_bytes: u64 },
}

impl fmt::Display for UnfitInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnfitInput::Type(found) => write!(f, "it is {found}, not a regular file"),
            UnfitInput::Link => f.write_str("it is a symbolic link, which is not followed here"),
            UnfitInput::TooLong { max_bytes } => write!(f, "it has more than {max_bytes} bytes"),
        }
    }
}

impl std::error::Error for UnfitInput {}

impl From<UnfitInput> for io::Error {
    fn from(unfit: UnfitInput) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidInput, unfit)
    }
}

/// The [`UnfitInput`] in `error`, if it is one.
pub fn unfit(error: &io::Error) -> Option<&UnfitInput> {
    error.get_ref()?.downcast_ref()
}

/// The failure `message` of an input whose reading ended with `error`: exit code 2 for an unfit one, and 3 for an error of
/// the system or too little memory.
pub fn failure(message: impl fmt::Display, error: &io::Error) -> Failure {
    let (request, world) = (Failure::request(&message), Failure::world(&message));
    if let Some(found) = untrusted(error) {
        return request.because(found.cause()).hint(found.remedy());
    }
    match (unfit(error), error.kind()) {
        (Some(found @ UnfitInput::Type(_)), _) => request.because(found.to_string()).hint("name a regular file"),
        (Some(found @ UnfitInput::Link), _) => {
            request.because(found.to_string()).hint("give the file that it points to")
        }
        (Some(found @ UnfitInput::TooLong { .. }), _) => {
            request.because(found.to_string()).hint("that is the limit of such a file: check the path")
        }
        (None, io::ErrorKind::InvalidData) => request.because(error.to_string()),
        (None, io::ErrorKind::OutOfMemory) => {
            world.because("too little memory").hint("free some, or raise the limit of this process: `ulimit -v`")
        }
        _ => world.because(in_words(error)),
    }
}

/// Opens the regular file at `path` for reading; links are followed.
///
/// # Errors
/// That of the system, or [`UnfitInput`].
pub fn open(path: &Path) -> io::Result<File> {
    open_at(rustix::fs::CWD, path, OFlags::RDONLY)
}

/// Opens the regular file at `path` for reading, if only root and the user of this process can write or exchange it.
///
/// # Errors
/// That of the system, [`UnfitInput`], or [`Untrusted`](super::ownership::Untrusted).
pub fn open_own(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    expect_own(path, &file)?;
    Ok(file)
}

/// Opens the regular file, FIFO or pipe at `path` for reading; a FIFO waits for its writer.
///
/// # Errors
/// That of the system, or [`UnfitInput`].
pub fn open_stream(path: &Path) -> io::Result<File> {
    match expect_regular(statat(rustix::fs::CWD, path, AtFlags::empty())?.st_mode) {
        Err(error) if unfit(&error) == Some(&UnfitInput::Type(FIFO)) => File::open(path),
        Err(error) => Err(error),
        Ok(()) => open(path),
    }
}

/// Opens the regular file at `path` for reading and appending; links are followed.
///
/// # Errors
/// That of the system, or [`UnfitInput`].
pub fn open_to_append(path: &Path) -> io::Result<File> {
    open_at(rustix::fs::CWD, path, OFlags::RDWR | OFlags::APPEND)
}

/// Opens the directory at `path`.
///
/// # Errors
/// That of the system.
pub fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(File::from(openat(rustix::fs::CWD, path, flags, Mode::empty())?))
}

/// Opens the regular file `name` in `directory` for reading. A link is not followed.
///
/// # Errors
/// That of the system, or [`UnfitInput`].
pub fn open_in(directory: impl AsFd, name: impl AsRef<Path>) -> io::Result<File> {
    let directory = directory.as_fd();
    open_at(directory, name.as_ref(), OFlags::RDONLY | OFlags::NOFOLLOW).map_err(|error| match error.raw_os_error() {
        Some(errno) if errno == rustix::io::Errno::LOOP.raw_os_error() => UnfitInput::Link.into(),
        _ => error,
    })
}

fn open_at(directory: impl AsFd, path: &Path, flags: OFlags) -> io::Result<File> {
    // Opening a device may have an effect: it is refused before. What took its place since is refused after.
    let before = if flags.contains(OFlags::NOFOLLOW) { AtFlags::SYMLINK_NOFOLLOW } else { AtFlags::empty() };
    expect_regular(statat(&directory, path, before)?.st_mode)?;
    let at_opening = OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = openat(&directory, path, flags | at_opening, Mode::empty())?;
    expect_regular(fstat(&file)?.st_mode)?;
    fcntl_setfl(&file, flags & OFlags::APPEND)?;
    Ok(File::from(file))
}

const FIFO: &str = "a FIFO";

fn expect_regular(mode: u32) -> io::Result<()> {
    let found = match FileType::from_raw_mode(mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a directory",
        FileType::Fifo => FIFO,
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Socket => "a socket",
        FileType::Symlink => return Err(UnfitInput::Link.into()),
        FileType::Unknown => "of an unknown type",
    };
    Err(UnfitInput::Type(found).into())
}

/// The bytes of the regular file at `path`, at most `max_bytes`.
///
/// # Errors
/// That of the system, or [`UnfitInput`].
pub fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    read_open(open(path)?, max_bytes)
}

/// The text of the regular file at `path`, at most `max_bytes`.
///
/// # Errors
/// That of the system, [`UnfitInput`], or `InvalidData` if it is not UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    text_of(open(path)?, max_bytes)
}

/// The text of the open `file`, at most `max_bytes`.
///
/// # Errors
/// As [`read_text`].
pub fn text_of(file: File, max_bytes: u64) -> io::Result<String> {
    String::from_utf8(read_open(file, max_bytes)?).map_err(|error| {
        let cause = format!("it is not UTF-8 text: {}", error.utf8_error());
        io::Error::new(io::ErrorKind::InvalidData, cause)
    })
}

/// The bytes of `file` from its position on, at most `max_bytes`.
///
/// # Errors
/// That of the system, `OutOfMemory`, or [`UnfitInput`].
pub fn read_open(file: File, max_bytes: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= max_bytes {
        bytes.try_reserve_exact(length as usize + 1).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // The file may grow while it is read.
        file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    }
    if length.max(bytes.len() as u64) > max_bytes { Err(UnfitInput::TooLong { max_bytes }.into()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mkfifoat};
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_are_opened_and_nothing_waits() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("file"), "text").expect("written");
        mkfifoat(CWD, path("fifo"), Mode::from_raw_mode(0o600)).expect("made");
        for (link, to) in [("to-file", "file"), ("to-fifo", "fifo"), ("to-zero", "/dev/zero")] {
            symlink(to, path(link)).expect("linked");
        }
        let opened = |name: &str| open(&path(name)).map(drop).map_err(|error| unfit(&error).cloned());
        assert_eq!((opened("file"), opened("to-file")), (Ok(()), Ok(())));
        for (name, found) in [("fifo", "a FIFO"), ("to-fifo", "a FIFO"), ("to-zero", "a device"), (".", "a directory")]
        {
            assert_eq!(opened(name), Err(Some(UnfitInput::Type(found))), "{name}");
        }
        assert_eq!(opened("missing"), Err(None));
        let held = File::open(directory.path()).expect("opens");
        let opened = |name| open_in(&held, name).map(drop).map_err(|error| unfit(&error).cloned());
        assert_eq!(opened("file"), Ok(()));
        assert_eq!(opened("fifo"), Err(Some(UnfitInput::Type("a FIFO"))));
        assert_eq!(opened("to-file"), Err(Some(UnfitInput::Link)));
    }

    #[test]
    fn a_file_longer_than_the_limit_is_not_read() {
        let file = tempfile::NamedTempFile::new().expect("temporary file");
        std::fs::write(file.path(), [7; 100]).expect("written");
        assert_eq!(read(file.path(), 100).expect("read").len(), 100);
        let error = read(file.path(), 99).expect_err("too long");
        assert_eq!(unfit(&error), Some(&UnfitInput::TooLong { max_bytes: 99 }));
        // A file of the kernel has the length 0 and still has content.
        let error = read(Path::new("/proc/self/status"), 10).expect_err("too long");
        assert_eq!(error.to_string(), "it has more than 10 bytes");
    }
}
