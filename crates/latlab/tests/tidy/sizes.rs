//! Files and functions stay small enough to be read at once.

use crate::source::{Source, is_word};
use crate::{Breach, expect_none, repository};

/// Lines of a file that is shipped.
const FILE_LINES: usize = 400;
/// Lines of a file of tests or benches.
const TEST_FILE_LINES: usize = 600;
/// Lines of a function, hot loops included.
const FUNCTION_LINES: usize = 70;
/// Lines of a file in `commands/`: each tells a story.
const COMMAND_LINES: usize = 100;
/// Lines of a bare loop, the measure of our own overhead: it must stay bare.
const BARE_LINES: usize = 150;

fn limit_of(path: &str) -> usize {
    match path {
        "crates/latlab/src/measure/bare.rs"
        | "crates/latlab/src/measure/bare_tcp.rs"
        | "crates/latlab/src/measure/bare_wakeup.rs" => BARE_LINES,
        _ if path.contains("/tests/") || path.contains("/benches/") || path.starts_with("fuzz/") => TEST_FILE_LINES,
        _ if path.starts_with("crates/latlab/src/commands/") && !path.ends_with("/mod.rs") => COMMAND_LINES,
        _ => FILE_LINES,
    }
}

fn long_file(source: &Source) -> Option<Breach> {
    let (lines, limit) = (source.text.lines().count(), limit_of(&source.path));
    (lines > limit).then(|| format!("{}: {lines} lines, the limit is {limit}; split it by noun", source.path))
}

/// Name, first line and number of lines of each function with a body.
fn functions(source: &Source) -> Vec<(String, usize, usize)> {
    source.find_word("fn").into_iter().filter_map(|offset| function(source, offset)).collect()
}

fn function(source: &Source, offset: usize) -> Option<(String, usize, usize)> {
    let code = &source.code[offset + 2..];
    let name: String = code.trim_start().chars().take_while(|char| char.is_ascii() && is_word(*char as u8)).collect();
    let body = body(code)?;
    let (first, last) = (source.line_of(offset), source.line_of(offset + 2 + body));
    (!name.is_empty()).then_some((name, first, last - first + 1))
}

/// The offset of the brace that closes the first body in `code`; none for a declaration.
fn body(code: &str) -> Option<usize> {
    let (mut round, mut curly) = (0, 0);
    for (offset, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => round += 1,
            b')' | b']' => round -= 1,
            b';' if round == 0 && curly == 0 => return None,
            b'{' => curly += 1,
            b'}' => {
                curly -= 1;
                if curly == 0 && round == 0 {
                    return Some(offset);
                }
            }
            _ => {}
        }
    }
    None
}

fn long_functions(source: &Source) -> Vec<Breach> {
    functions(source)
        .into_iter()
        .filter(|(_, _, lines)| *lines > FUNCTION_LINES)
        .map(|(name, line, lines)| {
            format!("{}:{line}: `{name}` has {lines} lines, the limit is {FUNCTION_LINES}", source.path)
        })
        .collect()
}

#[test]
fn files_are_short() {
    expect_none(repository::sources("").iter().filter_map(long_file).collect());
}

#[test]
fn functions_are_short() {
    expect_none(repository::sources("").iter().flat_map(long_functions).collect());
}

#[test]
fn a_long_file_is_seen() {
    let long = "\n".repeat(401);
    let cases = [("src/x.rs", 1), ("tests/x.rs", 0), ("src/commands/ping.rs", 1), ("src/commands/mod.rs", 1)];
    for (path, expected) in cases {
        let source = Source::new(&format!("crates/latlab/{path}"), &long);
        assert_eq!(long_file(&source).iter().count(), expected, "{path}");
    }
    assert!(long_file(&Source::new("crates/latlab/src/commands/ping.rs", &"\n".repeat(101))).is_some());
    assert!(long_file(&Source::new("crates/latlab/src/measure/bare.rs", &"\n".repeat(151))).is_some());
}

#[test]
fn a_long_function_is_seen() {
    let long = format!(
        "impl X {{\n    fn short(&self) -> [u8; 2] {{ [1, 2] }}\n    fn long(f: fn(u8) -> u8) {{{}}}\n}}",
        "\n".repeat(70)
    );
    let source = Source::new("x.rs", &long);
    assert_eq!(functions(&source), [("short".into(), 2, 1), ("long".into(), 3, 71)]);
    assert_eq!(long_functions(&source).len(), 1);
    let declared =
        Source::new("x.rs", "trait T { fn f(&self) -> [u8; 3]; fn g() where u8: Copy; }\nfn h() { let s = \"}\"; }");
    assert_eq!(functions(&declared), [("h".into(), 2, 1)]);
}
