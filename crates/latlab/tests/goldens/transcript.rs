//! The transcript of a case: the output of each of its command lines.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Case, diff, json, testdata};

/// Time limit of a command line: no command measures, so one that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(120);

/// The whole transcript of `case`.
pub(crate) fn of(case: &Case) -> String {
    // In `/tmp`, so that its path has the same length on every host: messages that contain it are wrapped by length.
    let directory = tempfile::tempdir_in("/tmp").expect("a temporary directory");
    for input in &case.inputs {
        let (from, name) = input.split_once(" as ").unwrap_or_else(|| {
            let name = input.rsplit('/').next().expect("not empty");
            (input.as_str(), name)
        });
        copy(&testdata().join(from), &directory.path().join(name));
    }
    let mut base = Block::default();
    let mut blocks = Vec::new();
    for line in &case.lines {
        if let Some(line) = line.strip_prefix(VARIED) {
            blocks.push(block(directory.path(), line).as_varied(&base));
        } else {
            let block = block(directory.path(), line);
            blocks.push(block.whole());
            // Neither files nor documents of which only the schema is shown.
            if !block.command.is_empty() && !line.starts_with(VALID) {
                base = block;
            }
        }
    }
    blocks.join("\n")
}

/// Before a command line of which only the difference from the last whole one is shown.
const VARIED: &str = "~ ";
/// Before a command line whose document has to be valid under its schema, and of which only the members are shown whose
/// names follow: `valid:gates,caveats `.
const VALID: &str = "valid";

/// The output of one command line, or a file without a command line.
#[derive(Default)]
struct Block {
    command: String,
    exit: String,
    output: String,
}

impl Block {
    fn file(text: String) -> Block {
        Block { output: text, ..Block::default() }
    }

    fn whole(&self) -> String {
        format!("{}{}{}", self.command, self.exit, self.output)
    }

    /// The lines that differ from those of `base`; the whole if these are not fewer.
    fn as_varied(&self, base: &Block) -> String {
        let changes = diff::changes(&base.output, &self.output);
        if changes.lines().count() >= self.output.lines().count() && !changes.is_empty() {
            return self.whole();
        }
        let from = base.command.trim_start_matches("$ ").replacen("latlab ", "", 1);
        format!("{}{}[as] {from}{changes}", self.command, self.exit)
    }
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).expect("made");
        for entry in fs::read_dir(from).expect("a directory") {
            let entry = entry.expect("an entry");
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::create_dir_all(to.parent().expect("it is in a directory")).expect("made");
        fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }
}

/// The output of `line` in `directory`.
fn block(directory: &Path, line: &str) -> Block {
    if let Some((name, text)) = line.strip_prefix("write ").and_then(|line| line.split_once(' ')) {
        let text =
            text.replace("\\n", "\n").replace("DIR", &directory.to_string_lossy()).replace("BOOT-ID", &boot_id());
        let path = directory.join(name);
        fs::create_dir_all(path.parent().expect("it is in the directory")).expect("made");
        fs::write(path, text).expect("the directory takes a file");
        return Block::file(masked(directory, &shown(directory, Path::new(name))));
    }
    if let Some((recording, change)) = line.strip_prefix("patch ").and_then(|line| line.split_once(' ')) {
        patch(&directory.join(recording).join("manifest.json"), change);
        return Block::file(format!("$ patch {recording} '{change}'\n"));
    }
    let (members, line) = match line.strip_prefix(VALID).and_then(|line| line.split_once(' ')) {
        Some((members, line)) => (Some(members.trim_start_matches(':')), line),
        None => (None, line),
    };
    let words = shlex::split(line).unwrap_or_else(|| panic!("{line}: quotes"));
    if let [cat, path] = &words[..]
        && cat == "cat"
    {
        return Block::file(masked(directory, &shown(directory, Path::new(path))));
    }
    let ran = Ran::of(directory, words);
    let mut text = match json::schema_of(&ran.stdout) {
        Some(schema) => {
            json::check(&ran.stdout);
            let shown = members.map(|members| format!("[a valid {schema}]\n{}", json::members(&ran.stdout, members)));
            shown.unwrap_or_else(|| json::short(&ran.stdout))
        }
        None => ran.stdout.clone(),
    };
    if !ran.stdout.is_empty() && !ran.stdout.ends_with('\n') {
        text.push_str("[no end of line]\n");
    }
    if !ran.stderr.is_empty() {
        text.push_str("[stderr]\n");
        text.push_str(&ran.stderr);
    }
    Block {
        command: masked(directory, &format!("$ {}\n", typed(line))),
        exit: format!("[exit {}]\n", ran.code),
        output: masked(directory, &text),
    }
}

/// Merges `change` into the JSON file `path` (RFC 7386).
fn patch(path: &Path, change: &str) {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut value: Value = serde_json::from_str(&text).expect("a manifest");
    merge(&mut value, serde_json::from_str(change).unwrap_or_else(|error| panic!("{change}: {error}")));
    fs::write(path, value.to_string()).expect("written");
}

fn merge(value: &mut Value, change: Value) {
    let Value::Object(change) = change else { return *value = change };
    if !value.is_object() {
        *value = Value::Object(serde_json::Map::new());
    }
    let members = value.as_object_mut().expect("just made one");
    for (name, change) in change {
        match change {
            Value::Null => _ = members.remove(&name),
            change => merge(members.entry(name).or_insert(Value::Null), change),
        }
    }
}

/// The line as it is typed in a shell: `latlab` before its arguments.
fn typed(line: &str) -> String {
    let before: Vec<&str> = words_before(line).collect();
    let rest = line.split(' ').skip(before.len());
    before.into_iter().chain(["latlab"]).chain(rest).collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

/// The words of `line` before the arguments of `latlab`.
fn words_before(line: &str) -> impl Iterator<Item = &str> {
    line.split(' ').take_while(|word| is_variable(word) || *word == "tty")
}

/// Whether the command line `line` is run on a terminal.
pub(crate) fn needs_terminal(line: &str) -> bool {
    words_before(line.trim_start_matches(VARIED)).any(|word| word == "tty")
}

/// The transcript `text` without the command lines that are run on a terminal.
pub(crate) fn without_terminal(text: &str) -> String {
    let mut is_kept = true;
    let lines = text.split_inclusive('\n').filter(|line| {
        if let Some(typed) = line.strip_prefix("$ ") {
            is_kept = !needs_terminal(typed);
        }
        is_kept
    });
    let kept: String = lines.collect();
    // The blank line between the last block and one that was left out.
    if is_kept { kept } else { kept.strip_suffix('\n').unwrap_or(&kept).to_owned() }
}

fn is_variable(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'))
}

/// The file `path`, or each file of the directory `path`, as `cat` with names.
fn shown(directory: &Path, path: &Path) -> String {
    let whole = directory.join(path);
    if !whole.is_dir() {
        let text = fs::read_to_string(&whole).unwrap_or_else(|error| format!("[{error}]\n"));
        return format!("$ cat {}\n{text}", path.display());
    }
    let entries = fs::read_dir(&whole).expect("a directory").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<PathBuf> = entries.map(|name| path.join(name)).collect();
    names.sort();
    names.iter().map(|name| shown(directory, name)).collect::<Vec<_>>().join("\n")
}

/// `text` with placeholders for what differs between hosts and versions, and with control characters made visible.
fn masked(directory: &Path, text: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let text = text
        .replace(&*directory.to_string_lossy(), "DIR")
        .replace(env!("CARGO_BIN_EXE_latlab"), "LATLAB")
        .replace(&boot_id(), "BOOT-ID")
        .replace(&format!("latlab {version}"), "latlab VERSION")
        .replace(&format!("\"software\":\"{version}\""), "\"software\":\"VERSION\"");
    text.chars().map(visible).collect()
}

/// The id of the boot in which this test runs.
fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux has one");
    text.trim().to_owned()
}

/// The Unicode control picture of a control character; newlines, tabs and other characters are unchanged.
fn visible(character: char) -> char {
    match character {
        '\n' | '\t' => character,
        '\0'..' ' => char::from_u32(0x2400 + u32::from(character)).expect("there is a picture of each"),
        _ => character,
    }
}

/// A command that has ended.
struct Ran {
    code: String,
    stdout: String,
    stderr: String,
}

impl Ran {
    fn of(directory: &Path, mut words: Vec<String>) -> Ran {
        let mut environment = Vec::new();
        while words.first().is_some_and(|word| is_variable(word)) {
            let word = words.remove(0);
            let (name, value) = word.split_once('=').expect("a variable");
            environment.push((name.to_owned(), value.replace("DIR", &directory.to_string_lossy())));
        }
        let on_terminal = words.first().is_some_and(|word| word == "tty");
        let stdin = words.iter().position(|word| word == "<").map(|at| {
            let file = fs::File::open(directory.join(&words[at + 1])).expect("an input");
            words.truncate(at);
            Stdio::from(file)
        });
        let words: Vec<String> = words.iter().flat_map(|word| expanded(directory, word)).collect();
        let mut command = if on_terminal { terminal(&words[1..]) } else { latlab(&words) };
        let state = directory.join("state");
        command
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs([("LATLAB_STATE_DIR", &state), ("XDG_STATE_HOME", &state)])
            .envs(environment)
            .current_dir(directory)
            .stdin(stdin.unwrap_or_else(Stdio::null))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        finished(command.spawn().expect("the binary was built by the test run"))
    }
}

/// The paths that `word` matches, as a shell expands it; `word` itself if it has no match.
fn expanded(directory: &Path, word: &str) -> Vec<String> {
    let found = glob::glob(&directory.join(word).to_string_lossy()).ok().filter(|_| word.contains('*'));
    let paths = found.into_iter().flatten().map(|path| path.expect("readable"));
    let words = paths.map(|path| path.strip_prefix(directory).expect("below it").to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    if words.is_empty() { vec![word.to_owned()] } else { words }
}

fn latlab(arguments: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_latlab"));
    command.args(arguments);
    command
}

/// `latlab` on a terminal, which `script` of util-linux provides.
fn terminal(arguments: &[String]) -> Command {
    let words = [env!("CARGO_BIN_EXE_latlab")].into_iter().chain(arguments.iter().map(String::as_str));
    let line = shlex::try_join(words).expect("no NUL");
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm");
    command
}

fn finished(mut child: Child) -> Ran {
    let (stdout, stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let (stdout, stderr) = (thread::spawn(|| whole(stdout)), thread::spawn(|| whole(stderr)));
    let start = Instant::now();
    let code = loop {
        if let Some(status) = child.try_wait().expect("our own child") {
            break status.code().map_or_else(|| status.to_string(), |code| code.to_string());
        }
        if start.elapsed() > DEADLINE {
            let _ = child.kill();
            let _ = child.wait();
            break format!("none after {DEADLINE:?}");
        }
        thread::sleep(Duration::from_millis(1));
    };
    let [stdout, stderr] = [stdout, stderr].map(|reader| reader.join().expect("the reader ends with the pipe"));
    Ran { code, stdout, stderr }
}

fn whole(mut stream: impl Read) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("a pipe can be read");
    String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
}
