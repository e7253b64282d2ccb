//! A systemd service that continues an experiment at each boot until it is finished.

use std::path::Path;

/// What the service runs.
#[derive(Clone, Copy, Debug)]
pub struct SystemdUnit<'a> {
    /// The name of the experiment.
    pub name: &'a str,
    /// The working directory.
    pub here: &'a Path,
    /// The program.
    pub program: &'a Path,
    /// The directory of the experiment.
    pub directory: &'a Path,
    /// Whether it continues after failed runs.
    pub keep_going: bool,
}

/// The text of the unit file.
pub fn systemd_unit(unit: &SystemdUnit<'_>) -> String {
    format!(
        "[Unit]\n\
         Description=latlab experiment {name}\n\
         After=network-online.target time-sync.target\n\
         Wants=network-online.target\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         WorkingDirectory={here}\n\
         ExecStart={program} run {directory}{keep_going}\n\
         TimeoutStartSec=infinity\n\
         KillSignal=SIGINT\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        name = escaped(unit.name),
        // A path by itself is not split into words, and quotes would be part of it.
        here = escaped(&unit.here.display().to_string()),
        program = quoted(unit.program),
        directory = quoted(unit.directory),
        keep_going = if unit.keep_going { " --keep-going" } else { "" },
    )
}

/// One word of a command line (systemd.service(5)): quoted, with `\`, `"`, `$` and `%` taken literally.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('$', "$$");
    format!("\"{}\"", escaped(&text))
}

/// systemd.unit(5): `%` begins a specifier, and `%%` stands for `%`.
fn escaped(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_literally() {
        assert_eq!(quoted(Path::new("/a b/50%/$x\"y\\z")), r#""/a b/50%%/$$x\"y\\z""#);
    }
}
