//! Comments and names of tests in plain technical English: words that made readers stop are counted and held by a
//! ceiling.

use crate::repository;
use crate::source::Source;

/// Words of comments and names of tests, and what to write instead.
const UNCLEAR: [(&str, &str); 23] = [
    ("nobody", "`None` without a …; no process, no caller"),
    ("somebody", "name the process, thread or caller"),
    ("whoever", "name the caller"),
    ("told", "received, reported, given"),
    ("tells", "reports, says, distinguishes"),
    ("tell", "report, say, distinguish"),
    ("none where", "`None` if …"),
    ("none of", "`None`, no …"),
    ("is no", "is not a …, has no …"),
    ("house", "project, tree"),
    ("room", "module, space"),
    ("river", "data flow"),
    ("wing", "half"),
    ("bed", "timer thread"),
    ("twin", "conflicting option"),
    ("errand", "process"),
    ("wishes", "options, parameters"),
    ("dream", "simulated sleep"),
    ("lane", "run"),
    ("in vain", "without effect, without an answer"),
    ("for ever", "in every later version, without an end"),
    ("at hand", "available"),
    ("shall", "must, is to; say what is done"),
];

/// Line and name of each function under `#[test]`.
fn test_names(source: &Source) -> Vec<(usize, &str)> {
    let name = |(attribute, _): (usize, &str)| {
        let offset = attribute + source.code[attribute..].find("fn ")? + "fn ".len();
        let name = source.code[offset..].split('(').next()?;
        Some((source.line_of(offset), name))
    };
    source.code.match_indices("#[test]").filter_map(name).collect()
}

/// `path:line: word; what to write instead` of each unclear word in the comments and names of tests of `source`.
pub(crate) fn unclear_words(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let mut texts = [source.comments(), test_names(source)].concat();
    texts.sort_unstable();
    for (line, text) in texts {
        let words = format!(" {} ", plain(text));
        let unclear = UNCLEAR.iter().filter(|(word, _)| words.contains(&format!(" {word} ")));
        found.extend(unclear.map(|(word, instead)| format!("{}:{}: {word}; {instead}", source.path, line)));
    }
    found
}

/// `text` in lower case without code and punctuation.
fn plain(text: &str) -> String {
    let outside_code: String = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let letters = |char: char| if char.is_alphabetic() { char.to_ascii_lowercase() } else { ' ' };
    outside_code.chars().map(letters).collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The unclear words of all Rust files in `crates` except this one.
pub(crate) fn of_repository() -> Vec<String> {
    let elsewhere = |source: &&Source| !source.path.ends_with("tidy/voice.rs");
    repository::sources("crates").iter().filter(elsewhere).flat_map(unclear_words).collect()
}

#[test]
fn an_unclear_word_of_a_comment_or_of_a_test_name_is_reported() {
    let text = "/// None where nobody knows.\nlet nobody = \"// told\"; // in the house\n  // a `room` of ballrooms\n\
        //! The Room, told.\n#[test]\n#[ignore]\nfn a_key_that_is_no_key() {}\nfn told() {}";
    let found = unclear_words(&Source::new("x.rs", text));
    let words: Vec<&str> = found.iter().filter_map(|line| line.split([' ', ';']).nth(1)).collect();
    assert_eq!(words, ["nobody", "none", "house", "told", "room", "is"], "{found:?}");
}
