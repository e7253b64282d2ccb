//! A unit for systemd that goes on with an experiment at each boot until it is finished.

use std::path::Path;

use super::Asked;
use crate::cli::resolve::RunJob;
use crate::commands::Outcome;
use crate::console::Console;
use crate::diagnostics::{Failure, refused};

/// Prints the unit of the experiment that `asked` goes on with.
pub(in crate::commands) fn print(asked: &Asked, job: &RunJob, console: &Console) -> Result<Outcome, Failure> {
    let Some(directory) = &asked.directory else {
        return Err(Failure::request(format!("nothing of `{}` was begun yet", asked.file))
            .because("the unit goes on with one experiment, so that a boot never begins another")
            .hint("begin it with `latlab run`; where it asks for a reboot, print the unit"));
    };
    let absolute = |path: &Path| path.canonicalize().map_err(refused("find the experiment's directory"));
    let program = std::env::current_exe().map_err(refused("find this program"))?;
    let here = std::env::current_dir().map_err(refused("find the working directory"))?;
    let keep_going = if job.going_on.keep_going { " --keep-going" } else { "" };
    let text = format!(
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
        name = specifiers(&asked.job.experiment.name),
        // A path by itself is no word of a command line, and takes no quotes.
        here = specifiers(&here.display().to_string()),
        program = word(&program),
        directory = word(&absolute(directory)?),
    );
    console.data(&text)?;
    console.note(
        "as root: write it to `/etc/systemd/system/latlab-experiment.service`, then `systemctl enable latlab-experiment`; \
         add `User=` where the experiment needs no root",
    );
    Ok(Outcome::Done)
}

/// One word of a command line (systemd.service(5)): quoted, with `\`, `"`, `$` and `%` taken literally.
fn word(path: &Path) -> String {
    let text = path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('$', "$$");
    format!("\"{}\"", specifiers(&text))
}

/// systemd.unit(5): `%` begins a specifier, and `%%` is one of itself.
fn specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_literal_words() {
        assert_eq!(word(Path::new("/a b/50%/$x\"y\\z")), r#""/a b/50%%/$$x\"y\\z""#);
    }
}
