//! The pre-shared key, read from a file or an inherited descriptor, never from the command line or the environment
//! (rule R7). Random bytes for keys, nonces and seeds.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use latlab_sys::errno::explain;
use zeroize::Zeroizing;

use crate::diagnostics::{Explain, Failure};
use crate::plan::defaults::KEY_MIN_BYTES;
use crate::platform::input_file::{self, UnfitInput};
use crate::platform::ownership::{self, untrusted};
use crate::wire::SetupKey;

/// The length of a generated key: 256 bit.
const GENERATED_BYTES: usize = 32;
/// The longest key file; a key's line is far shorter.
const FILE_MAX_BYTES: u64 = 4_096;
/// The first word of a key file: format and version.
const FORMAT: &str = "latlab-psk-1";

/// A secret of at least 128 bit, shared by both ends. Overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct PreSharedKey {
    secret: Zeroizing<Vec<u8>>,
}

impl PreSharedKey {
    /// A new key of 256 bit from the kernel's generator.
    ///
    /// # Errors
    /// [`KeyError::NoRandomness`].
    pub fn generate() -> Result<PreSharedKey, KeyError> {
        Ok(PreSharedKey { secret: random_bytes::<GENERATED_BYTES>()?.to_vec().into() })
    }

    /// The key in the file at `path`, which only its owner may read, the user of this process or root; of root's, one group.
    ///
    /// # Errors
    /// [`KeyError`]: the file cannot be read, other users may read or exchange it, or it contains no key.
    pub fn read(path: &Path) -> Result<PreSharedKey, KeyError> {
        let unreadable = |source| KeyError::Unreadable { name: path.display().to_string(), source };
        let file = input_file::open(path).map_err(unreadable)?;
        // Of the open file, not of the path, which could name another file by now.
        let facts = file.metadata().map_err(unreadable)?;
        let mode = facts.permissions().mode() & 0o7777;
        // What root gave to one group, as Kubernetes and systemd do for a process that is not root, is as guarded.
        let forbidden = if facts.uid() == 0 { 0o037 } else { 0o077 };
        if mode & forbidden != 0 {
            return Err(KeyError::Exposed { path: path.to_owned(), mode });
        }
        ownership::expect_own(path, &file).map_err(unreadable)?;
        PreSharedKey::from_reader(&path.display().to_string(), file)
    }

    /// The key in `descriptor`, which this process inherited: a pipe or a file.
    ///
    /// # Errors
    /// [`KeyError`]: it is not open for reading, or contains no key.
    pub fn from_descriptor(descriptor: u32) -> Result<PreSharedKey, KeyError> {
        let name = format!("descriptor {descriptor}");
        let file = File::open(format!("/proc/self/fd/{descriptor}"))
            .map_err(|source| KeyError::Unreadable { name: name.clone(), source })?;
        PreSharedKey::from_reader(&name, file)
    }

    /// The key in `reader`, which is read to its end; `name`: its name in messages.
    ///
    /// # Errors
    /// [`KeyError`]: reading fails, or the content is not a key.
    pub fn from_reader(name: &str, reader: impl Read) -> Result<PreSharedKey, KeyError> {
        let unreadable = |source| KeyError::Unreadable { name: name.to_owned(), source };
        // Larger than any key, so that no part of one stays in a smaller allocation.
        let mut text = Zeroizing::new(Vec::with_capacity(FILE_MAX_BYTES as usize * 2));
        reader.take(FILE_MAX_BYTES + 1).read_to_end(&mut text).map_err(unreadable)?;
        if text.len() as u64 > FILE_MAX_BYTES {
            return Err(unreadable(UnfitInput::TooLong { max_bytes: FILE_MAX_BYTES }.into()));
        }
        let text = String::from_utf8_lossy(&text);
        PreSharedKey::parse(name, &text)
    }

    fn parse(name: &str, text: &str) -> Result<PreSharedKey, KeyError> {
        let foreign = |what: &str| KeyError::Foreign { name: name.to_owned(), what: what.to_owned() };
        let mut words = text.split_ascii_whitespace();
        match words.next() {
            None => return Err(foreign("it is empty")),
            Some(FORMAT) => {}
            Some(_) => return Err(foreign("its first word is not `latlab-psk-1`")),
        }
        let digits = words.next().ok_or_else(|| foreign("the key itself is missing"))?;
        if words.next().is_some() {
            return Err(foreign("something follows the key"));
        }
        let secret = from_hexadecimal(digits).ok_or_else(|| foreign("its second word is not a hexadecimal number"))?;
        if secret.len() < KEY_MIN_BYTES {
            return Err(KeyError::TooShort { name: name.to_owned(), bits: secret.len() * 8 });
        }
        Ok(PreSharedKey { secret })
    }

    /// Writes the key into a new file at `path` that only its owner may read.
    ///
    /// # Errors
    /// [`KeyError::Exists`]: an existing file is not changed; [`KeyError::Unwritable`].
    pub fn write_new(&self, path: &Path) -> Result<(), KeyError> {
        let unwritable = |source| KeyError::Unwritable { path: path.to_owned(), source };
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let mut file = opened.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => KeyError::Exists { path: path.to_owned() },
            _ => unwritable(source),
        })?;
        file.write_all(self.line().as_bytes()).and_then(|()| file.sync_all()).map_err(|source| {
            // An incomplete key file is useless; an error of removing it would add nothing to the message.
            let _ = std::fs::remove_file(path);
            unwritable(source)
        })
    }

    /// The key as a line of text, as it stands in a file and is passed to child processes through a pipe.
    pub fn line(&self) -> String {
        let digits: String = self.secret.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{FORMAT} {digits}\n")
    }

    /// The key of set-up messages.
    pub fn setup_key(&self) -> SetupKey {
        SetupKey::derive(&self.secret)
    }
}

impl fmt::Debug for PreSharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PreSharedKey({} bit)", self.secret.len() * 8)
    }
}

/// Random bytes from the kernel, for nonces, seeds and keys.
///
/// # Errors
/// [`KeyError::NoRandomness`].
pub fn random_bytes<const N: usize>() -> Result<[u8; N], KeyError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|source| KeyError::NoRandomness { cause: source.to_string() })?;
    Ok(bytes)
}

fn from_hexadecimal(digits: &str) -> Option<Zeroizing<Vec<u8>>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = Zeroizing::new(Vec::with_capacity(pairs.len()));
    for [high, low] in pairs {
        bytes.push((digit(*high)? << 4 | digit(*low)?) as u8);
    }
    rest.is_empty().then_some(bytes)
}

/// Why a key cannot be read, generated or written.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file or descriptor cannot be read.
    #[error("cannot read the key from `{name}`")]
    Unreadable { name: String, source: io::Error },
    /// The file's mode gives permissions to other users.
    #[error("the key file `{}` has mode `{mode:04o}`", path.display())]
    Exposed {
        path: PathBuf,
        /// Permission bits of the file.
        mode: u32,
    },
    /// The content is not a key.
    #[error("`{name}` contains no latlab key")]
    Foreign { name: String, what: String },
    /// Shorter than 128 bit.
    #[error("the key in `{name}` is too short: `{bits}` bit")]
    TooShort { name: String, bits: usize },
    /// A new key would overwrite a file.
    #[error("cannot write a key to `{}`", path.display())]
    Exists { path: PathBuf },
    /// A new key cannot be written.
    #[error("cannot write a key to `{}`", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    /// The kernel has no random bytes.
    #[error("cannot get random bytes from the kernel")]
    NoRandomness { cause: String },
}

impl Explain for KeyError {
    fn explain(&self) -> Failure {
        let (request, world) = (Failure::request(self), Failure::world(self));
        let make_one = "make one with `latlab keygen FILE` and copy it to both hosts";
        match self {
            KeyError::Unreadable { source, .. } => match (input_file::unfit(source), untrusted(source)) {
                (Some(UnfitInput::Type(found)), _) => request
                    .because(format!("it is {found}, not a regular file"))
                    .hint("a pipe with a key is given as an open descriptor: `--psk-fd N`"),
                (Some(unfit), _) => request.because(unfit.to_string()).hint(make_one),
                (None, Some(found)) => request.because(found.cause()).hint(found.remedy()),
                (None, None) => request.because(explain(source)).hint(make_one),
            },
            KeyError::Exposed { path, .. } => {
                request.because("other users may read it").hint(format!("chmod 600 {}", ownership::quoted(path)))
            }
            KeyError::Foreign { what, .. } => request.because(what.as_str()).hint(make_one),
            KeyError::TooShort { .. } => {
                request.because(format!("a key has at least {} bit", KEY_MIN_BYTES * 8)).hint(make_one)
            }
            KeyError::Exists { .. } => request
                .because("it exists, and a key is never overwritten")
                .hint("choose another name, or remove the old file first"),
            KeyError::Unwritable { source, .. } => {
                world.because(explain(source)).hint("name a file in a directory that is there and can be written to")
            }
            KeyError::NoRandomness { cause } => world.because(cause.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn of(text: &str) -> Result<PreSharedKey, KeyError> {
        PreSharedKey::from_reader("lab.key", text.as_bytes())
    }

    #[test]
    fn a_written_key_is_read_back_and_only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lab.key");
        let key = PreSharedKey::generate().expect("random bytes");
        key.write_new(&path).expect("written");
        assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(PreSharedKey::read(&path).expect("a key"), key);
        let file = File::open(&path).expect("a file");
        assert_eq!(PreSharedKey::from_descriptor(file.as_raw_fd() as u32).expect("a key"), key);
        assert_ne!(PreSharedKey::generate().expect("random bytes"), key);

        let failure = key.write_new(&path).expect_err("never overwritten").explain();
        assert_eq!(failure.exit_code, 2);
        assert!(failure.cause.is_some_and(|cause| cause.contains("never overwritten")));
        assert_eq!(PreSharedKey::read(&path).expect("still a key"), key);
    }

    #[test]
    fn debug_shows_no_key() {
        let key = of("latlab-psk-1 00112233445566778899aabbccddeeff").expect("a key");
        assert_eq!(format!("{key:?}"), "PreSharedKey(128 bit)");
    }
}
