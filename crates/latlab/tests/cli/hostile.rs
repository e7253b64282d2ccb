//! Files that are not what they should be: of another type, too long, too many values, owned or writable by others.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Signal, geteuid};

use crate::fake_host::FakeHost;
use crate::harness::{BINARY, Finished, Latlab, contains, empty};
use crate::settings::three_knobs;
use crate::skip::skip;

/// A process that waits for a writer of a FIFO would take longer.
const AT_ONCE: Duration = Duration::from_secs(30);
const KEY: &str = "latlab-psk-1 00112233445566778899aabbccddeeff\n";

pub(crate) fn testdata(place: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(place)
}

/// Copies the directory `from` to `to`, whose mode and whose files' modes are those of new ones.
pub(crate) fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("created");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let copy = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy_directory(&entry.path(), &copy)
        } else {
            fs::write(&copy, fs::read(entry.path()).expect("a file")).expect("written")
        }
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own file");
}

/// Makes `path` a FIFO, a link to one, and a link to a device that has no end, one after the other, with their names.
pub(crate) fn in_place_of(path: &Path, mut tried: impl FnMut(&str)) {
    let fifo = path.with_extension("pipe");
    mkfifoat(CWD, &fifo, Mode::from_raw_mode(0o600)).expect("made");
    let _ = fs::remove_file(path);
    mkfifoat(CWD, path, Mode::from_raw_mode(0o600)).expect("made");
    tried("a FIFO");
    for (to, found) in [(fifo.as_path(), "a FIFO"), (Path::new("/dev/zero"), "a device")] {
        fs::remove_file(path).expect("ours");
        symlink(to, path).expect("linked");
        tried(found);
    }
}

#[track_caller]
fn refused(directory: &Path, line: &str, cause: &str, hint: &str) -> Finished {
    let lab = Latlab::at(directory).line(line).deadline(AT_ONCE).stdout(empty());
    lab.stderr(contains(cause)).stderr(contains(hint)).failure(2)
}

#[test]
fn inputs_that_are_no_regular_files_are_refused_at_once() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| home.path().join(name);
    fs::write(at("numbers"), "1\n2\n3\n").expect("written");
    for name in ["E", "F"] {
        copy_directory(&testdata("experiments/finished/factors"), &at(name));
    }
    for (input, line, hint) in [
        ("input", "compare numbers input", "`latlab compare - < PATH`"),
        ("input", "run input", "hint: name a regular file"),
        ("input.key", "ping 192.0.2.1 -n 1 --psk-file input.key", "`--psk-fd N`"),
        ("input.key", "serve --bind 127.0.0.1:9 --psk-file input.key", "`--psk-fd N`"),
        ("E/experiment.toml", "run E", "hint: restore it"),
        ("F/journal.jsonl", "run F", "hint: restore the journal"),
    ] {
        in_place_of(&at(input), |found| {
            drop(refused(home.path(), line, &format!("it is {found}, not a regular file"), hint));
        });
        let _ = fs::remove_file(at(input));
        let _ = fs::remove_file(at(input).with_extension("pipe"));
    }
    let ran = Latlab::at(home.path()).line("compare numbers -").stdin("numbers").deadline(AT_ONCE).success();
    assert!(ran.stdout.contains("<stdin>"), "standard input may be anything: {}", ran.stdout);
}

#[test]
fn a_state_directory_with_other_files_stops_no_command() {
    let host = three_knobs();
    fs::create_dir_all(host.journal()).expect("created");
    in_place_of(&host.journal().join("1-1.json"), |_| {
        let ran = host
            .latlab("list")
            .deadline(AT_ONCE)
            .stderr(contains("cannot read the settings of a killed latlab"))
            .success();
        assert!(ran.stderr.contains("not a regular file") || ran.stderr.contains("symbolic link"), "{}", ran.stderr);
    });
    fs::remove_dir_all(host.journal()).expect("ours");
    mkfifoat(CWD, host.journal(), Mode::from_raw_mode(0o600)).expect("made");
    host.latlab("list").deadline(AT_ONCE).stderr(contains("ENOTDIR")).success();
    let lab = host.latlab("ping").line("-n 5 --set rt-runtime=-1").deadline(AT_ONCE);
    lab.stderr(contains("cannot journal")).failure(3);
    assert_eq!(host.values()[2], "950000");
}

#[test]
fn files_beyond_their_limit_are_refused() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| home.path().join(name);
    copy_directory(&testdata("experiments/finished/factors"), &at("E"));
    // Sparse: they take no space.
    let long = |name: &str, bytes: u64| {
        let file = fs::OpenOptions::new().create(true).append(true).open(at(name)).expect("opened");
        file.set_len(bytes).expect("extended");
    };
    fs::write(at("long.key"), KEY).expect("written");
    set_mode(&at("long.key"), 0o600);
    long("long.key", 4_097);
    long("long.toml", (1 << 20) + 1);
    long("E/journal.jsonl", (256 << 20) + 1);
    for (line, limit) in [
        ("ping 192.0.2.1 -n 1 --psk-file long.key", "more than 4096 bytes"),
        ("run long.toml", "more than 1048576 bytes"),
        ("run E", "more than 268435456 bytes"),
    ] {
        refused(home.path(), line, limit, "hint: ");
    }
}

#[test]
fn too_many_values_are_refused_and_not_computed() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let recording = home.path().join("R");
    copy_directory(&testdata("recordings/good/closed"), &recording);
    copy_directory(&testdata("recordings/good/closed"), &home.path().join("S"));
    let quantiles: Vec<String> = (1..=10_000).map(|n| format!("0.{n:06}")).collect();
    let quantiles = quantiles.join(",");
    refused(home.path(), &format!("summary R --quantiles {quantiles}"), "10000 quantiles are too many", "hint: ");
    refused(home.path(), &format!("summary R{}", " --gate p50<=1s".repeat(101)), "the limit is 100", "hint: ");
    refused(home.path(), &format!("compare R S{}", " --gate p50<=+1%".repeat(101)), "the limit is 100", "hint: ");
    let base = |options: &str| format!("kind = \"ping\"\n[base]\n{options}\n[factors]\nsize = [24, 64]\n");
    let many = (0..1_000_000).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let tags = (0..3_000).map(|n| format!("\"key{n}=a value of some length\"")).collect::<Vec<_>>().join(",");
    for (text, cause) in [
        (base("count = 1") + &"[[compare]]\nstatistic = \"p50\"\n".repeat(101), "101 comparisons are more than 100"),
        (base(&format!("tag = [{tags}]")), "the options of a condition have"),
        (format!("kind = \"ping\"\n[factors]\nsize = [{}]\n", &many[..1_000_000]), "the limit is 1000"),
        (base(&format!("quantiles = [{}]", quantiles)), "the options of a condition have"),
    ] {
        fs::write(home.path().join("x.toml"), text).expect("written");
        refused(home.path(), "run x.toml --dry-run", cause, "hint: ");
    }
    let manifest = recording.join("manifest.json");
    let mut document: serde_json::Value =
        serde_json::from_slice(&fs::read(&manifest).expect("a manifest")).expect("JSON");
    document["spec"]["judging"]["quantiles"] = (1..=100_000).map(|n| f64::from(n) / 1e6).collect::<Vec<_>>().into();
    fs::write(&manifest, document.to_string()).expect("written");
    refused(home.path(), "summary R", "100,000 are more than 1,000", "`--quantiles`");
    Latlab::at(home.path()).line("summary R --quantiles 0.5").success();
}

#[test]
fn too_little_memory_for_numbers_is_exit_code_3() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for (name, last) in [("a", "3"), ("b", "4")] {
        fs::write(home.path().join(name), format!("1\n2\n{last}\n").repeat(1_000_000)).expect("written");
    }
    let run = |kilobytes: u32| {
        let script = format!("ulimit -v {kilobytes}; exec {BINARY} compare a b -q");
        Command::new("sh").args(["-c", &script]).current_dir(home.path()).output().expect("sh(1) is everywhere")
    };
    let mut codes = Vec::new();
    for kilobytes in [60_000, 120_000, 4_000_000] {
        let output = run(kilobytes);
        let printed = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(3) => assert!(printed.contains("too little memory") && printed.contains("hint: "), "{printed}"),
            code => assert_eq!(code, Some(0), "{kilobytes} kB: {printed}"),
        }
        codes.extend(output.status.code());
    }
    assert!(codes.contains(&3) && codes.last() == Some(&0), "{codes:?}");
    // The control group of a container has as little.
    let group = |bytes: &str| FakeHost::with(&[("proc/self/cgroup", "0::/x\n"), ("sys/fs/cgroup/x/memory.max", bytes)]);
    let compare = |host: &FakeHost| Latlab::at(home.path()).on(host).line("compare a b -q");
    compare(&group("67108864\n")).stderr(contains("too little memory")).failure(3);
    compare(&group("max\n")).success();
}

/// Whether this process may give files away; otherwise the rest of the test is skipped.
fn is_root() -> bool {
    if !geteuid().is_root() {
        skip("only root can give files away");
    }
    geteuid().is_root()
}

#[test]
fn keys_of_others_and_in_directories_of_others_are_refused() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (directory, key) = (home.path().join("d"), home.path().join("d/lab.key"));
    fs::create_dir(&directory).expect("created");
    fs::write(&key, KEY).expect("written");
    set_mode(&key, 0o600);
    let ping = "ping 192.0.2.1 -n 1 --timeout 1ms --psk-file d/lab.key";
    set_mode(&directory, 0o777);
    refused(home.path(), ping, "others than its owner may write `d`", "hint: chmod go-w d");
    let keygen = |name: &str| Latlab::at(home.path()).args(["keygen", name]);
    keygen("d/new.key").stderr(contains("a key is not read from there")).stderr(contains("`chmod go-w d`")).success();
    set_mode(&directory, 0o1777);
    Latlab::at(home.path()).line(ping).failure(3);
    set_mode(&directory, 0o755);
    assert!(!keygen("d/newer.key").success().stderr.contains("not read"));
    if !is_root() {
        return;
    }
    chown(&key, Some(1_234), None).expect("root");
    Latlab::at(home.path()).line(ping).environment("SUDO_UID", "1234").failure(3);
    chown(&key, Some(0), None).expect("root");
    for (given, remedy) in [(&directory, "hint: chown root d"), (&key, "hint: chown root d/lab.key")] {
        chown(given, Some(1_234), None).expect("root");
        refused(home.path(), ping, "belongs to the user 1234", remedy);
        chown(given, Some(0), None).expect("root");
    }
    Latlab::at(home.path()).line(ping).failure(3);
}

#[test]
fn experiments_that_others_can_write_or_own_do_not_go_on() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let experiment = home.path().join("E x");
    copy_directory(&testdata("experiments/finished/factors"), &experiment);
    let run = || Latlab::at(home.path()).args(["run", "E x"]).deadline(AT_ONCE);
    run().start().exits_with_one_of(&[0, 4]);
    for name in ["journal.jsonl", "experiment.toml", "."] {
        let path = experiment.join(name);
        let old = fs::metadata(&path).expect("there").permissions();
        set_mode(&path, if name == "." { 0o775 } else { 0o664 });
        let mended = if name == "." { "'E x'".to_owned() } else { format!("'E x/{name}'") };
        let lab = run().stdout(empty()).stderr(contains("cannot go on with `E x`"));
        lab.stderr(contains(format!("hint: chmod go-w {mended}"))).failure(2);
        fs::set_permissions(&path, old).expect("ours");
    }
    run().start().exits_with_one_of(&[0, 4]);
    if !is_root() {
        return;
    }
    for name in ["journal.jsonl", "experiment.toml", ""] {
        let path = experiment.join(name);
        chown(&path, Some(1_234), None).expect("root");
        run()
            .stdout(empty())
            .stderr(contains("belongs to the user 1234"))
            .stderr(contains("chown root 'E x"))
            .failure(2);
        // Reading them runs nothing.
        Latlab::at(home.path()).args(["compare", "E x"]).start().exits_with_one_of(&[0, 4]);
        chown(&path, Some(0), None).expect("root");
    }
}

#[test]
fn a_command_in_a_file_that_others_can_write_is_run_only_with_trust_file() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = home.path().join("x.toml");
    let text = format!(
        "kind = \"ping\"\ntarget = \"cmd:sh -c 'touch ran; exec {BINARY} agent --stdio'\"\n[base]\ncount = 5\nwarmup = \"0\"\n\
         peer-addr = \"127.0.0.1\"\n[factors]\nsize = [24, 64]\n[design]\nruns = 1\nsettle = \"0s\"\n"
    );
    fs::write(&file, text).expect("written");
    set_mode(&file, 0o666);
    let ran = home.path().join("ran");
    let lab = Latlab::at(home.path()).line("run x.toml").stdout(empty()).stderr(contains("cannot run the command"));
    lab.stderr(contains("hint: chmod go-w x.toml; or `--trust-file`")).failure(2);
    // What it would do can be read.
    Latlab::at(home.path()).line("run x.toml --dry-run").success();
    assert!(!ran.exists());
    Latlab::at(home.path()).line("run x.toml --trust-file -q").measured();
    assert!(ran.exists());
    set_mode(&file, 0o644);
    Latlab::at(home.path()).line("run x.toml --new -q").measured();
    // Without a command the file only measures.
    fs::write(&file, "kind = \"ping\"\n[base]\ncount = 5\nwarmup = \"0\"\n[factors]\nsize = [24, 64]\n[design]\nruns = 1\nsettle = \"0s\"\n")
        .expect("written");
    set_mode(&file, 0o666);
    Latlab::at(home.path()).line("run x.toml --new -q").measured();
}

#[test]
fn a_knob_journal_that_others_can_write_or_own_is_not_used() {
    let host = three_knobs();
    let set = || host.latlab("ping").line("-n 5 --warmup 0 --set rt-runtime=-1").deadline(AT_ONCE);
    set().measured();
    let journal = host.journal();
    let state = journal.parent().expect("the state directory").to_owned();
    for path in [&journal, &state] {
        set_mode(path, 0o777);
        let remedy = format!("chmod go-w {}", path.display());
        set().stdout(empty()).stderr(contains("cannot journal")).stderr(contains(&remedy)).failure(3);
        host.latlab("list").stderr(contains(&remedy)).success();
        assert_eq!(host.values()[2], "950000");
        set_mode(path, 0o700);
    }
    set().measured();
    // The page of a dead process, left by another user.
    let mut running = host.latlab("ping").line("-d 50s --warmup 0 --set rt-runtime=-1").start();
    running.wait_until("it is set", || host.values()[2] == "-1");
    running.signal(Signal::KILL);
    running.killed_by(Signal::KILL);
    let page = fs::read_dir(&journal).expect("a journal").next().expect("a page").expect("an entry").path();
    set_mode(&page, 0o622);
    let remedy = format!("chmod go-w {}", page.display());
    host.latlab("doctor").line("--restore").stdout(contains(&remedy)).failure(1);
    assert_eq!(host.values()[2], "-1", "it was not restored from what others may have written");
    set_mode(&page, 0o600);
    host.latlab("doctor").line("--restore").success();
    assert_eq!(host.values()[2], "950000");
}
