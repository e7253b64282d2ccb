//! `latlab run` with failed runs, a single condition, a journal cut as by a kill, edited files and several processes.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::experiment::{BOOT_ID, SMALL, begin, check, directory_with, events, journal, only, runs, until_ended};
use crate::fake_host::FakeHost;
use crate::harness::{Latlab, check_schema, contains};

#[test]
fn every_end_of_an_experiment_prints_one_json_document() {
    let directory = directory_with(&SMALL.replace("blocks = 2", "blocks = 2\nbetween-blocks = \"reboot\""));
    let host = FakeHost::with(&[(BOOT_ID, "first\n")]);
    let run = || Latlab::at(directory.path()).on(&host).line("run x.toml --json -q");
    let first = run().success().stdout;
    let again = run().failure(3).stdout;
    for text in [&first, &again] {
        let document: Value = serde_json::from_str(text).expect("one document");
        check_schema(&document, "compare/1");
        assert_eq!(
            (&document["experiment"]["finished"], &document["experiment"]["blocks"]),
            (&false.into(), &1.into())
        );
        assert_eq!(document["runs"].as_array().map(Vec::len), Some(6));
    }
    let refused = directory_with("kind = \"ping\"\ntarget = \"127.0.0.1:9\"\n[base]\ncount = 5\n[design]\nruns = 2\n");
    for (line, code) in [("run x.toml --json -q", 3), ("run x.toml --json -q --keep-going", 3)] {
        let printed = Latlab::at(refused.path()).line(line).failure(code).stdout;
        let document: Value = serde_json::from_str(&printed).expect("one document");
        check_schema(&document, "compare/1");
        assert_eq!(document["comparisons"], serde_json::json!([]));
        assert!(document["runs"][0]["reason"].is_string(), "{document:#}");
    }
}

/// An experiment of one run to a silent target.
fn silent(port: u16) -> String {
    format!(
        "kind = \"ping\"\ntarget = \"127.0.0.1:{port}\"\n[base]\nprotocol = \"echo\"\ncount = 20\nwarmup = \"0\"\n\
         timeout = \"10ms\"\n[design]\nruns = 1\n"
    )
}

/// Cuts the journal of `experiment` before the end of its last run, as a kill at that time would have left it.
fn forget_last_end(experiment: &Path) {
    let path = experiment.join("journal.jsonl");
    let text = fs::read_to_string(&path).expect("a journal");
    let at = text.rfind("{\"event\":\"run_ended\"").expect("a run ended");
    fs::write(path, &text[..at]).expect("written");
}

#[test]
fn a_failed_run_without_its_journal_line_stays_failed() {
    let deaf = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let directory = directory_with(&silent(deaf.local_addr().expect("bound").port()));
    Latlab::at(directory.path()).line("run x.toml").failure(3);
    let experiment = only(directory.path());
    forget_last_end(&experiment);
    Latlab::at(directory.path()).line("run x.toml").stderr(contains("was answered")).failure(3);
    let [(_, Some(ended))] = &runs(&journal(&experiment))[..] else { panic!("taken once") };
    assert_eq!(ended["outcome"], "failed");
    assert!(ended["reason"].as_str().is_some_and(|why| why.contains("no probe was answered")), "{ended}");
}

#[test]
fn an_edited_copy_of_the_file_is_refused_without_force() {
    let directory = directory_with(&SMALL.replace("name = \"small\"\n", ""));
    let running = begin(directory.path());
    until_ended(directory.path(), 1);
    running.signal(Signal::INT);
    running.exits(130);
    let experiment = only(directory.path());
    let copy = experiment.join("experiment.toml");
    let begun = fs::read_to_string(&copy).expect("a copy");
    fs::write(&copy, begun.replace("runs = 3", "runs = 4")).expect("edited");
    let shown = experiment.display().to_string();
    for what in [shown.as_str(), "x.toml"] {
        let printed = Latlab::at(directory.path()).args(["run", what]).failure(2).stderr;
        for words in ["the file of the experiment", "was edited", "`--force`"] {
            assert!(printed.contains(words), "{words} is not in\n{printed}");
        }
    }
    let printed = Latlab::at(directory.path()).args(["run", &shown, "--force"]).success().stderr;
    assert!(printed.contains("no longer one experiment") && printed.contains("x · ping local"), "{printed}");
    check(&experiment, 16);
    let changed = events(&journal(&experiment), "changed").next().cloned().expect("noted");
    assert_eq!(changed["file_blake3"].as_str().map(str::len), Some(64));
    // A finished experiment is reported as it is; another edit is noticed.
    let lab = || Latlab::at(directory.path());
    let document = lab().args(["run", &shown, "--json", "-q"]).success().json();
    assert_eq!((&document["experiment"]["name"], &document["experiment"]["changed"]), (&"x".into(), &1.into()));
    fs::write(&copy, format!("{begun}\n# a remark\n")).expect("edited");
    lab().args(["run", &shown]).stderr(contains("was edited")).failure(2);
}

/// Verdicts of an experiment that is continued after it was finished are looks, each of which is paid for.
#[test]
fn an_experiment_that_is_continued_after_its_end_pays_for_each_look() {
    let file = |runs: u32, looks: &str| {
        format!(
            "kind = \"ping\"\n[base]\ncount = 50\nwarmup = \"0\"\n[factors]\nsize = [64, 512]\n[design]\n\
             runs = {runs}\nsettle = \"0s\"\n{looks}[[compare]]\nstatistic = \"p50\"\n"
        )
    };
    for (looks, confidence, words) in [
        ("", 1.0 - 0.05 / 16.0, "this is look 2 at the experiment"),
        ("looks = 5\n", 1.0 - 0.0158, "this is look 2 of 5 planned ones"),
    ] {
        let directory = directory_with(&file(2, looks));
        let first = Latlab::at(directory.path()).line("run x.toml --json -q").success().json();
        assert_eq!(first["look"].is_null(), looks.is_empty(), "{first:#}");
        let shown = only(directory.path()).display().to_string();
        fs::write(Path::new(&shown).join("experiment.toml"), file(4, looks)).expect("written");
        let second = Latlab::at(directory.path()).args(["run", &shown, "--force", "--json", "-q"]).success().json();
        check_schema(&second, "compare/1");
        let at = second["look"]["confidence"].as_f64().expect("a look");
        assert!(second["look"]["number"] == 2 && (at - confidence).abs() < 1e-12, "{second:#}");
        let compared = Latlab::at(directory.path()).args(["compare", &shown, "--json", "-q"]).success().json();
        assert_eq!(compared["look"], second["look"]);
        let runs = format!("{shown}/runs");
        let by_store = ["compare", "--by", "size", "--statistic", "p50", "-v", &runs];
        let text = Latlab::at(directory.path()).args(by_store).stdout(contains(words)).success().stdout;
        let gone = fs::read_dir(&runs).expect("runs").next().expect("a run").expect("an entry");
        fs::remove_dir_all(gone.path()).expect("removed");
        let name = gone.file_name().to_string_lossy().into_owned();
        let gated = ["compare", &shown, "--statistic", "p50", "--gate", "p50 <= +900%"];
        Latlab::at(directory.path())
            .args(gated)
            .stdout(contains(&name))
            .stdout(contains("gone, damaged or edited"))
            .failure(1);
        assert!(text.contains(if looks.is_empty() { "99.6875 % intervals" } else { "98.42 % intervals" }), "{text}");
    }
    let directory = directory_with(&file(2, "looks = 11\n"));
    Latlab::at(directory.path()).line("run x.toml").stderr(contains("looks")).stderr(contains("11")).failure(2);
}

#[test]
fn markdown_json_and_the_page_say_why_runs_failed() {
    // Each start of `new` prints markup, a bar, an escape of a terminal, and a long line.
    let file = "kind = \"ping\"\n[base]\ncount = 20\nwarmup = \"0\"\n[factors]\nbuild = [\"old\", \"new\"]\n[design]\n\
                runs = 3\nsettle = \"0s\"\nseed = 3\n[hooks]\nbefore-run = \"sh start {build}\"\n";
    let directory = directory_with(file);
    let script = "[ $1 = old ] && exit 0\nprintf 'a ``` b` | <img src=x> \\033[31m\\n![a](http://b) %0600d\\n' 0\n\
                  echo no space\nexit 7\n";
    fs::write(directory.path().join("start"), script).expect("written");
    let ran = Latlab::at(directory.path()).line("run x.toml --keep-going --format markdown").failure(4);
    let warnings: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("> **warning:**")).collect();
    let [warning] = warnings[..] else { panic!("{}", ran.stdout) };
    let reason = "the first: the hook \\`before-run\\` failed: exit status 7: a ";
    assert!(warning.contains("3 runs failed, not judged (of \\`new\\`)") && warning.contains(reason), "{warning}");
    assert!(warning.contains("b\\` \\| &lt;img src=x> \\x1b[31m; ![a]\\(http://b)"), "{warning}");
    assert!(warning.ends_with("; no space") && warning.len() < 2_200, "{}: {warning}", warning.len());
    assert!(ran.stderr.contains("3 runs failed, not judged (of `new`); the first: the hook"), "{}", ran.stderr);
    assert!(ran.stdout.contains("one condition (`build=old`), compared with none"), "{}", ran.stdout);
    let experiment = only(directory.path());
    let text = Latlab::at(directory.path()).arg("run").arg(&experiment).failure(4);
    assert!(!text.stdout.contains("failed, not judged"), "on standard error only: {}", text.stdout);
    let document = Latlab::at(directory.path()).arg("run").arg(&experiment).args(["--json", "-q"]).failure(4).json();
    check_schema(&document, "compare/1");
    let failed: Vec<_> =
        document["runs"].as_array().expect("runs").iter().filter(|run| run["outcome"] == "failed").collect();
    let has_reason = |run: &&Value| {
        let reason = run["reason"].as_str().unwrap_or_default();
        run["factors"]["build"] == "new" && reason.contains("`before-run`") && reason.ends_with("no space")
    };
    assert!(failed.len() == 3 && failed.iter().all(has_reason), "{document:#}");
    let page = Latlab::at(directory.path()).arg("report").arg(&experiment).args(["-o", "page.html"]);
    page.start().exits_with_one_of(&[0, 4]);
    let page = fs::read_to_string(directory.path().join("page.html")).expect("written");
    assert!(page.contains("3 runs failed, not judged") && page.contains("exit status 7"), "{page}");
    assert!(page.contains("Over 3 runs of one condition (<code>build=old</code>):"), "{page}");
    assert!(page.contains("&lt;img src=x&gt;") && !page.contains("<img src=x>"), "{page}");
}
