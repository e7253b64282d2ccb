//! The pre-shared key: read from a file or an inherited descriptor, never from the command line or the environment
//! (rule R7).

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use latlab_sys::errno::explain;

use crate::plan::defaults::KEY_MIN_BYTES;
use crate::wire::SetupKey;

/// A fresh key: 256 bit.
const FRESH_BYTES: usize = 32;
/// The longest key file that is read at all; a key line is far shorter.
const FILE_MAX_BYTES: u64 = 4_096;
/// The first word of a key file: form and version.
const WORD: &str = "latlab-psk-1";

/// A secret that both ends hold, of at least 128 bit.
#[derive(Clone, PartialEq, Eq)]
pub struct PreSharedKey {
    secret: Vec<u8>,
}

impl PreSharedKey {
    /// A fresh key of 256 bit from the kernel's generator.
    ///
    /// # Errors
    /// [`KeyError::NoChance`] where the kernel gives none.
    pub fn fresh() -> Result<PreSharedKey, KeyError> {
        Ok(PreSharedKey { secret: random_bytes::<FRESH_BYTES>()?.to_vec() })
    }

    /// The key in the file at `path`, which nobody but its owner may read.
    ///
    /// # Errors
    /// [`KeyError`] where it cannot be read, others may read it, or it holds no key.
    pub fn read(path: &Path) -> Result<PreSharedKey, KeyError> {
        let unreadable = |source| KeyError::Unreadable { name: path.display().to_string(), source };
        let file = File::open(path).map_err(unreadable)?;
        // The open file is asked, not the path: nobody can put another file there in between.
        let facts = file.metadata().map_err(unreadable)?;
        let mode = facts.permissions().mode() & 0o7777;
        if facts.is_file() && mode & 0o077 != 0 {
            return Err(KeyError::Exposed { path: path.to_owned(), mode });
        }
        PreSharedKey::from_reader(&path.display().to_string(), file)
    }

    /// The key behind `descriptor`, which this process inherited: a pipe or a file.
    ///
    /// # Errors
    /// [`KeyError`] where it is not open for reading, or gives no key.
    pub fn from_descriptor(descriptor: u32) -> Result<PreSharedKey, KeyError> {
        let name = format!("descriptor {descriptor}");
        let file = File::open(format!("/proc/self/fd/{descriptor}"))
            .map_err(|source| KeyError::Unreadable { name: name.clone(), source })?;
        PreSharedKey::from_reader(&name, file)
    }

    /// The key that `reader`, called `name` in messages, gives up to its end.
    ///
    /// # Errors
    /// [`KeyError`] where reading fails, or what comes is no key.
    pub fn from_reader(name: &str, reader: impl Read) -> Result<PreSharedKey, KeyError> {
        let mut text = Vec::new();
        reader
            .take(FILE_MAX_BYTES)
            .read_to_end(&mut text)
            .map_err(|source| KeyError::Unreadable { name: name.to_owned(), source })?;
        let text = String::from_utf8_lossy(&text);
        PreSharedKey::parse(name, &text)
    }

    fn parse(name: &str, text: &str) -> Result<PreSharedKey, KeyError> {
        let foreign = |what: &str| KeyError::Foreign { name: name.to_owned(), what: what.to_owned() };
        let mut words = text.split_ascii_whitespace();
        match words.next() {
            None => return Err(foreign("it is empty")),
            Some(WORD) => {}
            Some(_) => return Err(foreign("its first word is not `latlab-psk-1`")),
        }
        let digits = words.next().ok_or_else(|| foreign("the key itself is missing"))?;
        if words.next().is_some() {
            return Err(foreign("something follows the key"));
        }
        let secret = from_hexadecimal(digits).ok_or_else(|| foreign("its second word is no hexadecimal number"))?;
        if secret.len() < KEY_MIN_BYTES {
            return Err(KeyError::TooShort { name: name.to_owned(), bits: secret.len() * 8 });
        }
        Ok(PreSharedKey { secret })
    }

    /// Writes the key into a new file at `path` that only its owner may read.
    ///
    /// # Errors
    /// [`KeyError::Exists`] where something is there already: it is left alone; [`KeyError::Unwritable`].
    pub fn write_new(&self, path: &Path) -> Result<(), KeyError> {
        let unwritable = |source| KeyError::Unwritable { path: path.to_owned(), source };
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let mut file = opened.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => KeyError::Exists { path: path.to_owned() },
            _ => unwritable(source),
        })?;
        self.write_line(&mut file).and_then(|()| file.sync_all()).map_err(|source| {
            // Half a key is of no use; that it could not be removed either adds nothing to the message.
            let _ = std::fs::remove_file(path);
            unwritable(source)
        })
    }

    /// Writes the key as its line of text: into a file, or a pipe to a process of our own.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_line(&self, to: &mut impl Write) -> io::Result<()> {
        let digits: String = self.secret.iter().map(|byte| format!("{byte:02x}")).collect();
        to.write_all(format!("{WORD} {digits}\n").as_bytes())
    }

    /// The key as its line of text, for a pipe to a process of our own.
    pub fn line(&self) -> String {
        let mut line = Vec::new();
        // Writing to memory cannot fail, and a key's line is plain ASCII.
        let _ = self.write_line(&mut line);
        String::from_utf8_lossy(&line).into_owned()
    }

    /// The key of the set-up.
    pub fn setup_key(&self) -> SetupKey {
        SetupKey::derive(&self.secret)
    }
}

impl fmt::Debug for PreSharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PreSharedKey({} bit)", self.secret.len() * 8)
    }
}

/// Chance from the kernel: nonces, seeds, keys.
///
/// # Errors
/// [`KeyError::NoChance`] where the kernel gives none.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], KeyError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|source| KeyError::NoChance { cause: source.to_string() })?;
    Ok(bytes)
}

fn from_hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8; 2]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file or descriptor cannot be read.
    #[error("cannot read the key from `{name}`")]
    Unreadable {
        /// File or descriptor.
        name: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// Others may read the file.
    #[error("the key file `{}` has mode `{mode:04o}`", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It holds something else.
    #[error("`{name}` holds no latlab key")]
    Foreign {
        /// File or descriptor.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// Shorter than 128 bit.
    #[error("the key in `{name}` is too short: `{bits}` bit")]
    TooShort {
        /// File or descriptor.
        name: String,
        /// How long it is.
        bits: usize,
    },
    /// A new key would overwrite something.
    #[error("cannot write a key to `{}`", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A new key cannot be written.
    #[error("cannot write a key to `{}`", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The kernel gives no random bytes.
    #[error("cannot get random bytes from the kernel")]
    NoChance {
        /// Its reason.
        cause: String,
    },
}

impl KeyError {
    /// Why, for the `cause:` line.
    pub fn cause(&self) -> Option<String> {
        Some(match self {
            KeyError::Unreadable { source, .. } | KeyError::Unwritable { source, .. } => explain(source),
            KeyError::Exposed { .. } => "others than its owner may read it, so it is no secret".into(),
            KeyError::Foreign { what, .. } => what.clone(),
            KeyError::TooShort { .. } => format!("a key has at least {} bit", KEY_MIN_BYTES * 8),
            KeyError::Exists { .. } => "it exists, and a key is never overwritten".into(),
            KeyError::NoChance { cause } => cause.clone(),
        })
    }

    /// What to do, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            KeyError::Unreadable { .. } | KeyError::Foreign { .. } | KeyError::TooShort { .. } => {
                "make one with `latlab keygen FILE` and copy it to both hosts".into()
            }
            KeyError::Exposed { path, .. } => format!("chmod 600 {}", path.display()),
            KeyError::Exists { .. } => "choose another name, or remove the old file first".into(),
            KeyError::Unwritable { .. } => "name a file in a directory that is there and can be written to".into(),
            KeyError::NoChance { .. } => return None,
        })
    }

    /// The exit code: 2 where the request was wrong, 3 where the world refused.
    pub fn exit_code(&self) -> u8 {
        match self {
            KeyError::Unwritable { .. } | KeyError::NoChance { .. } => 3,
            _ => 2,
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
    fn a_key_survives_its_file_which_only_the_owner_may_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lab.key");
        let key = PreSharedKey::fresh().expect("chance");
        key.write_new(&path).expect("written");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(PreSharedKey::read(&path).expect("a key"), key);
        let file = File::open(&path).expect("there");
        assert_eq!(PreSharedKey::from_descriptor(file.as_raw_fd() as u32).expect("a key"), key);
        assert_ne!(PreSharedKey::fresh().expect("chance"), key);

        let error = key.write_new(&path).expect_err("never overwritten");
        assert_eq!(error.exit_code(), 2);
        assert!(error.cause().is_some_and(|cause| cause.contains("never overwritten")));
        assert_eq!(PreSharedKey::read(&path).expect("still a key"), key);
    }

    #[test]
    fn a_file_that_others_may_read_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lab.key");
        PreSharedKey::fresh().expect("chance").write_new(&path).expect("written");
        for mode in [0o640, 0o604, 0o620, 0o644] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("ours");
            let error = PreSharedKey::read(&path).expect_err("exposed");
            assert!(error.to_string().ends_with(&format!("has mode `{mode:04o}`")), "{error}");
            assert!(error.hint().is_some_and(|hint| hint.starts_with("chmod 600 ")));
            assert_eq!(error.exit_code(), 2);
        }
    }

    #[test]
    fn what_is_no_key_says_why() {
        for (text, cause) in [
            ("", "it is empty"),
            (" \n", "it is empty"),
            ("ssh-ed25519 AAAA", "its first word is not `latlab-psk-1`"),
            ("latlab-psk-1", "the key itself is missing"),
            ("latlab-psk-1 00112233445566778899aabbccddeef", "its second word is no hexadecimal number"),
            ("latlab-psk-1 00112233445566778899aabbccddeexx", "its second word is no hexadecimal number"),
            ("latlab-psk-1 00112233445566778899aabbccddeeff me", "something follows the key"),
            ("latlab-psk-1 00112233445566778899aabbccddee", "a key has at least 128 bit"),
        ] {
            let error = of(text).expect_err(text);
            assert_eq!(error.cause().as_deref(), Some(cause), "{text}");
            assert_eq!(error.exit_code(), 2);
        }
        assert!(of("latlab-psk-1 00112233445566778899AABBccddeeff\n").is_ok());
        assert!(matches!(PreSharedKey::read(Path::new("/nonexistent/lab.key")), Err(KeyError::Unreadable { .. })));
        assert!(matches!(PreSharedKey::read(Path::new("/")), Err(KeyError::Unreadable { .. })));
    }

    #[test]
    fn debug_shows_no_key() {
        let key = of("latlab-psk-1 00112233445566778899aabbccddeeff").expect("a key");
        assert_eq!(format!("{key:?}"), "PreSharedKey(128 bit)");
    }
}
