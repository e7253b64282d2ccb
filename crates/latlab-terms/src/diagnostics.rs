//! Diagnostics that reach the user: caveats of a result, failures with cause, hint and exit code, and outcomes of a
//! command. Every other module may import this one, so that each can explain its own errors.

use std::cmp::Reverse;
use std::error::Error;
use std::{fmt, io};

use serde::{Deserialize, Serialize};

/// How much a caveat spoils a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Note,
    Warning,
    /// The figures must not be trusted: exit code 4.
    Fatal,
}

/// The most characters of a hint that stands behind its message.
const SHORT_HINT: usize = 48;

/// One thing to know about a run before believing it. Travels to every renderer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caveat {
    /// Stable kebab-case name, listed in docs/metrics.md.
    pub code: String,
    pub severity: Severity,
    pub message: String,
    pub effect: String,
    pub hint: String,
}

impl Caveat {
    /// A caveat of `severity` named `code`.
    pub fn new(
        severity: Severity,
        code: &str,
        message: impl Into<String>,
        effect: impl Into<String>,
        hint: impl Into<String>,
    ) -> Caveat {
        Caveat { code: code.into(), severity, message: message.into(), effect: effect.into(), hint: hint.into() }
    }

    /// One line: the message, and the hint if it says in a few words what to type.
    pub fn line(message: &str, hint: &str) -> String {
        let is_short = hint.chars().count() <= SHORT_HINT && hint.contains('`');
        if is_short { format!("{message}; hint: {hint}") } else { message.to_owned() }
    }

    /// The key by which caveats are sorted: those of one severity stay in their order.
    pub fn worst_first(&self) -> Reverse<Severity> {
        Reverse(self.severity)
    }
}

/// A failure as the user meets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The attempted action, with its object in backticks.
    pub message: String,
    pub cause: Option<String>,
    pub hint: Option<String>,
    pub exit_code: u8,
    /// Whether it is that of a silent target: something was sent, and nothing was answered, not even by a refusal. Gates
    /// do not hold then.
    #[serde(skip)]
    pub is_silence: bool,
}

impl Failure {
    /// A wrong request, or an input that is missing or damaged: exit code 2.
    pub fn request(message: impl fmt::Display) -> Failure {
        Failure { message: message.to_string(), cause: None, hint: None, exit_code: 2, is_silence: false }
    }

    /// An environment in which the request fails, such as a missing right or a silent peer: exit code 3.
    pub fn world(message: impl fmt::Display) -> Failure {
        Failure { exit_code: 3, ..Failure::request(message) }
    }

    /// The same, which is that of a silent target if `is_silence`.
    #[must_use]
    pub fn of_silence(self, is_silence: bool) -> Failure {
        Failure { is_silence, ..self }
    }

    /// The same with texts of at most so many characters each: that of another host may have any length.
    #[must_use]
    pub fn shortened(self, max_chars: usize) -> Failure {
        let shorten = |text: String| match text.char_indices().nth(max_chars) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        };
        let Failure { message, cause, hint, .. } = self;
        Failure { message: shorten(message), cause: cause.map(shorten), hint: hint.map(shorten), ..self }
    }

    pub fn because(mut self, cause: impl Into<String>) -> Failure {
        self.cause = Some(cause.into());
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }
}

/// Whether `cause`, an error of a system call in words, is a full disk or an exhausted quota.
pub fn names_full_disk(cause: &str) -> bool {
    ["(ENOSPC)", "(EDQUOT)"].iter().any(|name| cause.contains(name))
}

/// The message alone; the console prints all of it.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// An error that knows its cause, its remedy and the exit code of the process.
pub trait Explain: Error {
    /// The failure whose message is the `Display` of this error: `Failure::world(self).because(…).hint(…)`.
    fn explain(&self) -> Failure;
}

impl<E: Explain> From<E> for Failure {
    fn from(error: E) -> Failure {
        error.explain()
    }
}

/// Turns the error of a system call into the failure to do `what`.
pub fn refused(what: &'static str) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure::world(format!("cannot {what}")).because(in_words(&error))
}

/// The error of a system call in words, with its name: `operation not permitted (EPERM)`.
pub fn in_words(error: &io::Error) -> String {
    latlab_sys::errno::explain(error)
}

/// Whether text for a terminal is coloured.
///
/// Colours have a mark, a random number of this process, which the console removes when it prints them. It escapes every
/// other control sequence, so that text from files and other hosts cannot colour anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Colour {
    mark: Option<u64>,
}

impl Colour {
    pub const OFF: Colour = Colour { mark: None };

    pub const fn marked(mark: u64) -> Colour {
        Colour { mark: Some(mark) }
    }

    pub const fn is_on(self) -> bool {
        self.mark.is_some()
    }

    /// `text` in the rendition `code`: the parameters of SGR (ECMA-48, 8.3.117).
    pub fn paint(self, code: &str, text: &str) -> String {
        match self.mark {
            Some(mark) if !text.is_empty() => format!("\x1b[{code};{mark}m{text}\x1b[0;{mark}m"),
            _ => text.to_owned(),
        }
    }

    /// `text`, which has nothing from outside of this program, with the mark in each of its colours.
    pub fn adopt(self, text: &str) -> String {
        let mut parts = text.split("\x1b[");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| match (self.mark, part.split_once('m')) {
            (Some(mark), Some((code, rest))) => format!("{text}\x1b[{code};{mark}m{rest}"),
            _ => text + part,
        })
    }

    /// The parameters of the marked colour at the beginning of `text`, and the text behind it.
    pub fn split(self, text: &str) -> Option<(&str, &str)> {
        let (parameters, rest) = text.strip_prefix("\x1b[")?.split_once('m')?;
        let (code, mark) = parameters.rsplit_once(';')?;
        (mark == self.mark?.to_string()).then_some((code, rest))
    }
}

/// How a command ended that did not fail; its exit code is part of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The command did what was asked.
    Done,
    /// The negative answer: a gate does not hold, `doctor` found a blocker, or a child process refused.
    AnswerIsNo,
    /// A fatal caveat: the recording is kept and marked.
    NotTrusted,
    /// SIGINT ended the command early; what was measured is kept and was summarised.
    Interrupted,
    Terminated,
    /// SIGHUP ended the command: its terminal was closed.
    HungUp,
    Quit,
}

impl Outcome {
    /// The exit code: 128 and the signal's number where a signal ended the command.
    pub const fn exit_code(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::AnswerIsNo => 1,
            Outcome::NotTrusted => 4,
            Outcome::HungUp => 129,
            Outcome::Interrupted => 130,
            Outcome::Quit => 131,
            Outcome::Terminated => 143,
        }
    }
}
