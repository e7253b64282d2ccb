//! The commands of the binary.

/// The commands that `--help` lists.
pub(crate) const LISTED: [&str; 22] = [
    "ping",
    "stream",
    "command",
    "wakeup",
    "serve",
    "keygen",
    "summary",
    "explain",
    "compare",
    "report",
    "import",
    "export",
    "check-published",
    "load",
    "run",
    "recipes",
    "list",
    "doctor",
    "agent",
    "completions",
    "man",
    "help",
];
