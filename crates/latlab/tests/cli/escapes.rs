//! Text from files and other hosts on stdout and stderr: no character that a terminal obeys gets there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use latlab::recording::manifest::Manifest;
use serde_json::Value;

use crate::harness::{BINARY, Finished, Latlab};
use crate::hostile::{copy_directory, testdata};
use crate::skip::program;

/// Sets the title, clears the screen, overwrites a line, and reverses the direction of what follows.
const HOSTILE: &str = "\x1b]0;x\x07\x1b[2J\r\x08\x7f\u{9b}31m\u{202e}\u{2066}\u{200f}\u{2028}";

/// Whether a terminal obeys `char`. Not the list of the program: all control, bidirectional and separating characters.
fn is_obeyed(char: char) -> bool {
    (char.is_control() && !"\n\t".contains(char))
        || "\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}".contains(char)
        || ('\u{202a}'..='\u{202e}').contains(&char)
        || ('\u{2066}'..='\u{2069}').contains(&char)
}

#[track_caller]
fn expect_plain(ran: &Finished, what: &str) {
    for text in [&ran.stdout, &ran.stderr] {
        let found: Vec<char> = text.chars().filter(|char| is_obeyed(*char)).collect();
        assert!(found.is_empty(), "{what}: {found:?} in {text:?}");
    }
}

/// Runs `line` and expects plain output, whatever the exit code.
#[track_caller]
fn run(directory: &Path, line: &str) -> Finished {
    let ran = Latlab::at(directory).line(line).start().exits_with_one_of(&[0, 1, 2, 3, 4]);
    expect_plain(&ran, line);
    ran
}

/// The JSON pointers of all strings below `value`, which is at `pointer`.
fn strings(value: &Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(pointer.to_owned()),
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(number, value)| strings(value, &format!("{pointer}/{number}"), found));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            strings(value, &format!("{pointer}/{name}"), found);
        }),
        _ => {}
    }
}

/// Appends [`HOSTILE`] to every string of `document` that may have any text, as `is_accepted` says; returns how many.
fn spoil(document: &mut Value, is_accepted: impl Fn(&Value) -> bool) -> usize {
    let mut pointers = Vec::new();
    strings(document, "", &mut pointers);
    let mut spoilt = 0;
    for pointer in pointers {
        let Some(Value::String(text)) = document.pointer(&pointer).cloned() else { unreachable!("it was a string") };
        *document.pointer_mut(&pointer).expect("there") = format!("{text}{HOSTILE}").into();
        if is_accepted(document) {
            spoilt += 1;
        } else {
            *document.pointer_mut(&pointer).expect("there") = text.into();
        }
    }
    spoilt
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

fn all_recordings() -> Vec<PathBuf> {
    let entries = |folder: &str| fs::read_dir(testdata(folder)).expect("test data");
    let paths =
        entries("recordings/good").chain(entries("recordings/forms")).map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.join("manifest.json").is_file()).collect()
}

#[test]
fn every_text_of_a_manifest_is_printed_without_escapes() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let store = home.path().join("latlab-runs");
    // Not every summary shows a text of its manifest.
    let mut shown = 0;
    for (number, recording) in all_recordings().into_iter().enumerate() {
        let copy = store.join(format!("R{number}"));
        copy_directory(&recording, &copy);
        let mut manifest = read_json(&copy.join("manifest.json"));
        manifest["spec"]["tags"] = serde_json::json!({ format!("key{HOSTILE}"): HOSTILE, "build": HOSTILE });
        let parses = |document: &Value| serde_json::from_value::<Manifest>(document.clone()).is_ok();
        assert!(spoil(&mut manifest, parses) > 5, "{}", recording.display());
        fs::write(copy.join("manifest.json"), manifest.to_string()).expect("written");
        let summary = run(home.path(), &format!("summary latlab-runs/R{number} -v"));
        assert!([0, 4].contains(&summary.code), "{}: {}", recording.display(), summary.stderr);
        shown += usize::from(summary.stdout.contains(r"\x1b"));
        let json = run(home.path(), &format!("summary latlab-runs/R{number} --json"));
        assert!(json.json().to_string().contains("\u{202e}"), "the text itself is unchanged: {}", json.stdout);
        let twice = format!("latlab-runs/R{number} latlab-runs/R{number}");
        for line in [format!("summary {twice}"), format!("summary latlab-runs/R{number} --gate p50<=1ns")] {
            run(home.path(), &line);
        }
        // CSV has no escapes: to a pipe it goes as it is.
        for format in ["jsonl", "hlog"] {
            run(home.path(), &format!("export latlab-runs/R{number} --format {format}"));
        }
    }
    assert!(shown >= 5, "{shown}");
    for line in ["list", "list --json", "compare latlab-runs --by tag:build", "compare latlab-runs/R0 latlab-runs/R1"] {
        run(home.path(), line);
    }
    for form in ["--json", "--format markdown", "--ministat", "--explain"] {
        run(home.path(), &format!("compare latlab-runs/R0 latlab-runs/R1 {form}"));
    }
}

/// An agent whose replies and stderr pass through `change`, Python of a function body that gets `reply`, a JSON value.
pub(crate) fn altered_agent(directory: &Path, change: &str) -> Option<String> {
    let python = program("python3")?;
    let script = directory.join("relay.py");
    let indented: String = change.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!(
        "import json, struct, subprocess, sys\n\
         def alter(reply):\n{indented}    return reply\n\
         agent = subprocess.Popen(['{BINARY}', 'agent', '--stdio'], stdin=sys.stdin.fileno(), stdout=subprocess.PIPE)\n\
         def send(data):\n    sys.stdout.buffer.write(data)\n    sys.stdout.buffer.flush()\n\
         send(agent.stdout.read(12))\n\
         while True:\n    head = agent.stdout.read(4)\n    if len(head) < 4:\n        break\n    \
         body = agent.stdout.read(struct.unpack('>I', head)[0])\n    \
         body = json.dumps(alter(json.loads(body))).encode()\n    send(struct.pack('>I', len(body)) + body)\n\
         sys.exit(agent.wait())\n"
    );
    fs::write(&script, text).expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).expect("ours");
    Some(format!("cmd:{} {}", python.display(), script.display()))
}

#[test]
fn texts_of_an_agent_are_printed_without_escapes() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let hostile = HOSTILE.chars().map(|char| format!("\\u{:04x}", u32::from(char))).collect::<String>();
    let facts = format!(
        "def spoil(value):\n    for key in value:\n        if isinstance(value[key], dict):\n            spoil(value[key])\n        \
         elif key in ('kernel', 'architecture', 'cpu_model', 'clocksource', 'governor', 'idle_driver', 'command_line'):\n            \
         value[key] = '{hostile}'\n\
         if isinstance(reply, dict) and 'facts' in reply:\n    spoil(reply['facts'])\n\
         if isinstance(reply, dict) and 'greeting' in reply:\n    reply['greeting']['software'] = '{hostile}'"
    );
    let error = format!(
        "if isinstance(reply, dict) and 'reflector' in reply:\n    reply = {{'error': {{'message': '{hostile}', 'cause': '{hostile}', 'hint': '{hostile}', 'exit_code': 3}}}}"
    );
    let unknown =
        format!("if isinstance(reply, dict) and 'reflector' in reply:\n    reply = {{'{hostile}': '{hostile}'}}");
    let stderr = format!(
        "if isinstance(reply, dict) and 'reflector' in reply:\n    sys.stderr.write('{hostile}')\n    sys.exit(5)"
    );
    for (change, codes, shown) in
        [(facts, [0, 4], false), (error, [3, 3], true), (unknown, [3, 3], true), (stderr, [3, 3], true)]
    {
        let Some(target) = altered_agent(home.path(), &change) else { return };
        let words = ["ping", &target, "--peer-addr", "127.0.0.1", "-n", "5", "--warmup", "0", "-v"];
        let ran = Latlab::at(home.path()).args(words).start().exits_with_one_of(&codes);
        expect_plain(&ran, &change);
        assert!(!shown || ran.stderr.contains(r"\x1b"), "{change}: {}", ran.stderr);
        let ran = Latlab::at(home.path()).args(["doctor", &target, "--peer-addr", "127.0.0.1"]).start();
        expect_plain(&ran.exits_with_one_of(&[0, 1, 2, 3]), &change);
    }
    run(home.path(), "list");
}
