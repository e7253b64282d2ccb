//! Names that say nothing, or the wrong thing, are not used.

use crate::source::{Source, is_word};
use crate::{Breach, expect_none, repository};

/// Modules of that name collect what has no name of its own.
const EMPTY_NAMES: [&str; 10] =
    ["util", "utils", "common", "helper", "helpers", "manager", "misc", "types", "data", "info"];
/// Who asks and who answers are `SessionSender` and `SessionReflector` (RFC 8762).
const WRONG_ROLES: [&str; 2] = ["client", "server"];
/// Fields of that name hide what they are and in which unit.
const BARE_FIELDS: [&str; 2] = ["latency", "time"];

/// The parts of a path that name modules.
fn empty_module_names(path: &str) -> Vec<Breach> {
    path.trim_end_matches(".rs")
        .split('/')
        .filter(|part| EMPTY_NAMES.contains(part) || WRONG_ROLES.contains(part))
        .map(|part| format!("{path}: a module named `{part}`; name it by its noun"))
        .collect()
}

/// `mod util { … }` inside a file.
fn empty_inline_names(source: &Source) -> Vec<Breach> {
    source
        .find_word("mod")
        .into_iter()
        .filter_map(|offset| {
            let rest = source.code[offset + 3..].trim_start();
            let name = &rest[..rest.bytes().take_while(|byte| is_word(*byte)).count()];
            let breach = || format!("{}:{}: a module named `{name}`", source.path, source.line_of(offset));
            EMPTY_NAMES.contains(&name).then(breach)
        })
        .collect()
}

/// The words of an identifier: `EchoClient`, `echo_client` → echo, client.
fn words(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for char in identifier.chars() {
        if char == '_' || char.is_ascii_uppercase() {
            words.push(String::new());
        }
        if char != '_' {
            words.last_mut().expect("never empty").push(char.to_ascii_lowercase());
        }
    }
    words
}

fn wrong_roles(source: &Source) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (number, line) in source.code.lines().enumerate() {
        for identifier in line.split(|char: char| !(char.is_ascii() && is_word(char as u8))) {
            if words(identifier).iter().any(|word| WRONG_ROLES.contains(&word.trim_end_matches('s'))) {
                let at = number + 1;
                breaches.push(format!("{}:{at}: `{identifier}`; the ends are sender and reflector", source.path));
            }
        }
    }
    breaches
}

fn bare_fields(source: &Source) -> Vec<Breach> {
    let is_bare = |line: &str| {
        let start = line.trim_start();
        let field = start.strip_prefix("pub(crate) ").or(start.strip_prefix("pub ")).unwrap_or(start);
        BARE_FIELDS.iter().any(|name| field.strip_prefix(name).is_some_and(|rest| rest.starts_with(": ")))
    };
    let bare = source.code.lines().enumerate().filter(|(_, line)| is_bare(line));
    bare.map(|(number, line)| {
        format!("{}:{}: `{}`; say which delay, and end in its unit", source.path, number + 1, line.trim())
    })
    .collect()
}

#[test]
fn modules_are_named_by_nouns() {
    expect_none(repository::files("crates", &[".rs"]).iter().flat_map(|path| empty_module_names(path)).collect());
    expect_none(repository::sources("crates").iter().flat_map(empty_inline_names).collect());
}

#[test]
fn the_ends_are_sender_and_reflector() {
    expect_none(repository::own_sources().iter().flat_map(wrong_roles).collect());
}

#[test]
fn fields_say_which_delay_and_in_which_unit() {
    expect_none(repository::own_sources().iter().flat_map(bare_fields).collect());
}

#[test]
fn empty_names_are_seen() {
    for path in ["crates/a/src/utils.rs", "crates/a/src/helper/mod.rs", "crates/a/src/plan/types.rs", "a/src/server.rs"]
    {
        assert_eq!(empty_module_names(path).len(), 1, "{path}");
    }
    assert!(empty_module_names("crates/latlab/src/plan/database.rs").is_empty());
    assert_eq!(empty_inline_names(&Source::new("x.rs", "mod util { }\nmod tests {}\n// mod misc")).len(), 1);
}

#[test]
fn wrong_roles_and_bare_fields_are_seen() {
    let roles =
        "struct EchoClient;\nlet server_address = 1;\nlet observer = 2; // the client\nfn deserve() {}\nclients";
    assert_eq!(wrong_roles(&Source::new("x.rs", roles)).len(), 3);
    let fields = "struct X {\n    pub latency: u64,\n    time: i64,\n    delay_ns: i64,\n    pub time_lost_ns: i64,\n}";
    assert_eq!(bare_fields(&Source::new("x.rs", fields)).len(), 2);
}
