//! Runs the steps of `action.yml` that measure and judge, as they stand there, in the shell that GitHub takes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::scheduling::precedence;

/// The script of the step whose `name` is this.
fn step(action: &str, name: &str) -> String {
    let lines = action.lines().skip_while(|line| line.trim_start_matches(['-', ' ']) != format!("name: {name}"));
    let mut script = lines.skip_while(|line| !line.trim().starts_with("run: "));
    let first = script.next().and_then(|line| line.trim().strip_prefix("run: ")).unwrap_or_default();
    if first != "|" {
        return first.to_owned();
    }
    script.map_while(|line| line.strip_prefix("        ")).fold(String::new(), |script, line| script + line + "\n")
}

#[test]
fn the_action_for_pull_requests_passes_and_fails_by_its_gates() {
    let _precedence = precedence();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let action = fs::read_to_string(root.join("action.yml")).expect("the action");
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(home.path().join("latlab")).expect("an empty directory");
    symlink(env!("CARGO_BIN_EXE_latlab"), home.path().join("latlab/latlab")).expect("a link");
    let run = |name: &str, variables: &[(&str, &str)]| {
        let mut bash = Command::new("bash");
        bash.args(["-e", "-o", "pipefail", "-c", &step(&action, name)])
            .current_dir(&home)
            .env("RUNNER_TEMP", home.path());
        bash.envs([("GITHUB_STEP_SUMMARY", "summary.md"), ("GITHUB_OUTPUT", "output"), ("BUDGET", "5m")]);
        bash.envs([("A", "sleep 0.01"), ("B", "sleep '0.1'"), ("NAMES", "old,new"), ("OPTIONS", "--runs 5")]);
        bash.env("MEASURE", "command -n 2 --warmup 0").envs(variables.iter().copied());
        bash.env_remove("LATLAB_STORE").output().expect("bash is installed")
    };
    for (gates, status, word) in
        [("mean <= +100000%\np50 >= -5%\n", "0", "**passed**"), ("mean <= +5%", "1", "**failed**")]
    {
        let ran = run("Measure", &[("GATES", gates)]);
        assert!(ran.status.success(), "{ran:?}");
        let text = |name: &str| fs::read_to_string(home.path().join(name)).expect("the step wrote it");
        assert!(text("output").ends_with(&format!("status={status}\n")), "{}", text("output"));
        assert!(
            text("summary.md").contains(word) && text("summary.md").contains("old → new"),
            "{}",
            text("summary.md")
        );
        assert_eq!(run("Judge", &[("STATUS", status)]).status.success(), status == "0");
    }
    assert!(!run("Measure", &[("OPTIONS", "--runs 5 --ready 'line:it's up'")]).status.success(), "a quote is missing");
}
