//! Comments in plain technical English: words that made readers stop are counted and held by a ceiling.

use crate::repository;
use crate::source::Source;

/// Words of comments, and what to write instead.
const UNCLEAR: [(&str, &str); 22] = [
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
];

/// The comment of `line`, if it begins with one.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.starts_with("//").then(|| line.trim_start_matches(['/', '!']))
}

/// `path:line: word; what to write instead` of each unclear word in the comments of `source`.
pub(crate) fn unclear_words(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        let Some(words) = comment(line).map(|text| format!(" {} ", plain(text))) else { continue };
        let unclear = UNCLEAR.iter().filter(|(word, _)| words.contains(&format!(" {word} ")));
        found.extend(unclear.map(|(word, instead)| format!("{}:{}: {word}; {instead}", source.path, number + 1)));
    }
    found
}

/// `text` in lower case without code and punctuation.
fn plain(text: &str) -> String {
    let outside_code: String = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let letters = |char: char| if char.is_alphabetic() { char.to_ascii_lowercase() } else { ' ' };
    outside_code.chars().map(letters).collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Those of everything that is written in Rust.
pub(crate) fn of_repository() -> Vec<String> {
    let elsewhere = |source: &&Source| !source.path.ends_with("tidy/voice.rs");
    repository::sources("crates").iter().filter(elsewhere).flat_map(unclear_words).collect()
}

#[test]
fn an_unclear_word_of_a_comment_is_reported() {
    let text = "/// None where nobody knows.\nlet nobody = 1;\n  // a `room` of ballrooms\n//! The Room, told.\n";
    let found = unclear_words(&Source::new("x.rs", text));
    let words: Vec<&str> = found.iter().filter_map(|line| line.split([' ', ';']).nth(1)).collect();
    assert_eq!(words, ["nobody", "none", "told", "room"], "{found:?}");
}
