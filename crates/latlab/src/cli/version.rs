//! What `latlab --version` prints.

use std::sync::LazyLock;

use crate::agent::frame;
use crate::facts::ExperimentFormat;
use crate::recording::manifest::FormatVersion;
use crate::wire;

/// The version, the commit where the build knew it, and the versions of what latlab writes and speaks.
pub(super) static LONG: LazyLock<String> = LazyLock::new(|| {
    let recording = FormatVersion::CURRENT;
    let experiment = ExperimentFormat::CURRENT;
    // Not asked of git: a build from an archive has none, and the same sources must give the same bytes.
    let commit = option_env!("LATLAB_COMMIT").filter(|commit| !commit.is_empty());
    let commit = commit.map(|commit| format!("\ncommit      {commit}")).unwrap_or_default();
    format!(
        "{version}{commit}\nrecording   {}.{}\nexperiment  {}.{}\nwire        {}\nagent       {}",
        recording.major,
        recording.minor,
        experiment.major,
        experiment.minor,
        wire::VERSION,
        frame::FORMAT,
        version = env!("CARGO_PKG_VERSION"),
    )
});
