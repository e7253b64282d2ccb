//! Finds the blocks and the commands in a Markdown document.

/// A fenced block with commands.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    /// Line of the opening fence, from 1.
    pub(crate) line: usize,
    pub(crate) root: bool,
    /// Why it cannot run in a test.
    pub(crate) norun: Option<String>,
    /// Exit code of the last command.
    pub(crate) exit: i32,
    pub(crate) commands: Vec<Command>,
}

/// A `$ latlab …` line and its expected output.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    /// As typed, without `$`, continuation lines joined.
    pub(crate) typed: String,
    pub(crate) output: Vec<String>,
}

/// Every block of `text` that holds a `latlab` command.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    fenced(text).filter_map(|(line, info, lines)| block(line, info, &lines)).collect()
}

/// Line, info string and content of each fenced block.
fn fenced(text: &str) -> impl Iterator<Item = (usize, &str, Vec<&str>)> {
    let mut lines = text.lines().enumerate();
    std::iter::from_fn(move || {
        let (number, fence) = lines.find(|(_, line)| line.trim_start().starts_with("```"))?;
        let indent = fence.len() - fence.trim_start().len();
        let inside = lines.by_ref().map(|(_, line)| line.get(indent.min(line.len())..).unwrap_or_default());
        let content = inside.take_while(|line| !line.starts_with("```")).collect();
        Some((number + 1, fence.trim_start().trim_start_matches('`'), content))
    })
}

fn block(line: usize, info: &str, lines: &[&str]) -> Option<Block> {
    let (language, rest) = info.split_once(',').unwrap_or((info, ""));
    if !["console", "text"].contains(&language.trim()) {
        return None;
    }
    let norun = rest.split_once("norun=\"").map(|(_, reason)| reason.trim_end().trim_end_matches('"').to_string());
    let words: Vec<&str> = rest.split("norun=").next().unwrap_or_default().split(',').map(str::trim).collect();
    let exit = words.iter().find_map(|word| word.strip_prefix("exit=")).and_then(|code| code.parse().ok());
    let commands = commands(lines);
    let block = Block { line, root: words.contains(&"root"), norun, exit: exit.unwrap_or(0), commands };
    (!block.commands.is_empty()).then_some(block)
}

fn commands(lines: &[&str]) -> Vec<Command> {
    let mut found: Vec<Command> = Vec::new();
    let mut ours = false;
    for line in lines {
        let last = found.last_mut().filter(|_| ours);
        match (line.strip_prefix("$ "), last) {
            (Some(typed), _) => {
                ours = typed.split_whitespace().next() == Some("latlab");
                if ours {
                    found.push(Command { typed: typed.into(), output: Vec::new() });
                }
            }
            (None, Some(command)) if command.typed.ends_with('\\') => {
                command.typed = format!("{} {}", command.typed.trim_end_matches('\\').trim_end(), line.trim());
            }
            (None, Some(command)) => command.output.push((*line).to_string()),
            (None, None) => {}
        }
    }
    found
}

/// Every command and option that `text` names as (line, words): `$ latlab …` in blocks that are run or
/// not, and code spans that start with `latlab ` or `--`.
pub(crate) fn named_commands(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for block in blocks(text) {
        found.extend(block.commands.into_iter().map(|command| (block.line, command.typed)));
    }
    let mut fence = false;
    for (number, line) in text.lines().enumerate() {
        fence ^= line.trim_start().starts_with("```");
        let spans = line.split('`').skip(1).step_by(2).filter(|_| !fence);
        let ours = spans.filter(|span| span.starts_with("latlab ") || span.starts_with("--"));
        found.extend(ours.map(|span| (number + 1, span.to_string())));
    }
    found
}

#[test]
fn blocks_and_commands_are_found() {
    let text = "# x\n```console,root,exit=3\n$ latlab ping \\\n    -n 5\nout 1\n\n$ ls\nout 2\n$ latlab list\n```\n\
                ```sh\n$ latlab no\n```\n```text,norun=\"a, b\"\n$ latlab serve &\n```\n```console\n$ ls\n```";
    let found = blocks(text);
    assert_eq!(found.len(), 2, "{found:?}");
    let command = |typed: &str, output: &[&str]| Command {
        typed: typed.into(),
        output: output.iter().map(|line| line.to_string()).collect(),
    };
    let first = Block { line: 2, root: true, exit: 3, ..Block::default() };
    let commands = vec![command("latlab ping -n 5", &["out 1", ""]), command("latlab list", &[])];
    assert_eq!(found[0], Block { commands, ..first });
    assert_eq!((found[1].line, found[1].norun.as_deref()), (14, Some("a, b")));
    assert_eq!(found[1].commands, [command("latlab serve &", &[])]);
}

#[test]
fn indented_blocks_are_found() {
    assert_eq!(blocks("- x\n  ```console\n  $ latlab list\n  one\n  ```\n")[0].commands[0].output, ["one"]);
}

#[test]
fn names_are_found_in_prose_and_blocks() {
    let text =
        "Use `latlab ping --half` or `--json`, not `cargo --x`.\n```console\n$ latlab list\n```\n```rust\n`--no`\n```";
    let found: Vec<String> = named_commands(text).into_iter().map(|(_, command)| command).collect();
    assert_eq!(found, ["latlab list", "latlab ping --half", "--json"]);
}
