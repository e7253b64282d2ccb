//! The commands that an experiment runs around its runs.

use std::fmt;

use crate::units::Nanos;
use crate::units::human::{shell_word, typed_span};

/// The key of [`Hooks::before_block`] in an experiment file.
pub const BEFORE_BLOCK: &str = "before-block";
/// The key of [`Hooks::before_run`].
pub const BEFORE_RUN: &str = "before-run";
/// The key of [`Hooks::service`].
pub const SERVICE: &str = "service";
/// The key of [`Hooks::ready`].
pub const READY: &str = "ready";
/// The key of [`Hooks::after_run`].
pub const AFTER_RUN: &str = "after-run";

/// Whether `key` names a hook that each run has, and that can therefore be a factor.
pub fn is_of_a_run(key: &str) -> bool {
    [BEFORE_RUN, SERVICE, READY, AFTER_RUN].contains(&key)
}

/// The commands around the runs of one condition, placeholders filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Before the first run of a block; the same for all conditions.
    pub before_block: Option<HookCommand>,
    pub before_run: Option<HookCommand>,
    /// Runs while each run is measured.
    pub service: Option<HookCommand>,
    /// What a run waits for.
    pub ready: Option<ReadyWhen>,
    /// After each run, however it ended.
    pub after_run: Option<HookCommand>,
    /// The time that each of them may take; unused without hooks.
    pub timeout: Nanos,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCommand(pub Vec<String>);

/// The condition that a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadyWhen {
    /// A socket receives at this address.
    Udp(HookAddress),
    /// A connection to this address succeeds.
    Tcp(HookAddress),
    /// A TCP or UDP socket of this host receives at this port.
    Listen(u16),
    /// GET of this path succeeds.
    Http(HookAddress, String),
    /// The service wrote a line that this regular expression matches.
    Line(String),
    /// So much time has passed.
    Time(Nanos),
    /// The command ends with exit status 0; it is repeated until then.
    Command(HookCommand),
}

/// Host and port of a socket, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookAddress {
    /// Name or address, without brackets.
    pub host: String,
    pub port: u16,
}

impl Hooks {
    /// Whether a run has any.
    pub fn is_empty(&self) -> bool {
        self.in_order().next().is_none()
    }

    /// Each with its key, in the order in which they begin; commands as they can be pasted.
    pub fn in_order(&self) -> impl Iterator<Item = (&'static str, String)> {
        let command = |hook: &Option<HookCommand>| hook.as_ref().map(ToString::to_string);
        let all = [
            (BEFORE_BLOCK, command(&self.before_block)),
            (BEFORE_RUN, command(&self.before_run)),
            (SERVICE, command(&self.service)),
            (READY, self.ready.as_ref().map(ToString::to_string)),
            (AFTER_RUN, command(&self.after_run)),
        ];
        all.into_iter().filter_map(|(key, words)| Some((key, words?)))
    }

    /// The commands that it runs, as they can be pasted.
    pub fn commands(&self) -> impl Iterator<Item = String> {
        let is_command = matches!(self.ready, Some(ReadyWhen::Command(_)));
        self.in_order().filter(move |(key, _)| *key != READY || is_command).map(|(_, command)| command)
    }
}

impl fmt::Display for HookCommand {
    /// As it can be pasted into a shell.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.0.iter().map(|word| shell_word(word)).collect();
        to.write_str(&words.join(" "))
    }
}

impl fmt::Display for ReadyWhen {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadyWhen::Udp(address) => write!(to, "udp:{address}"),
            ReadyWhen::Tcp(address) => write!(to, "tcp:{address}"),
            ReadyWhen::Listen(port) => write!(to, "listen:{port}"),
            ReadyWhen::Http(address, path) => write!(to, "http:{address}{path}"),
            ReadyWhen::Line(pattern) => write!(to, "line:{pattern}"),
            ReadyWhen::Time(span) => write!(to, "time:{}", typed_span(*span)),
            ReadyWhen::Command(command) => command.fmt(to),
        }
    }
}

impl fmt::Display for HookAddress {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HookAddress { host, port } = self;
        if host.contains(':') { write!(to, "[{host}]:{port}") } else { write!(to, "{host}:{port}") }
    }
}
