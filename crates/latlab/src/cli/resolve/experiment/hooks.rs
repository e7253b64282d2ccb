//! Resolution of `[hooks]`, and of `{factor}` in hooks and in `target`.

use std::collections::BTreeSet;
use std::fmt;

use regex_lite::Regex;

use super::file::{Field, FileError, FileText};
use super::options::{COMMAND, Factor, OptionValue, TARGET};
use crate::cli::value::{Refusal, host_and_port, refusal, split_command};
use crate::plan::hooks::{AFTER_RUN, BEFORE_BLOCK, BEFORE_RUN, READY, SERVICE, is_of_a_run};
use crate::plan::{HookAddress, HookCommand, Hooks, ReadyWhen, defaults};
use crate::units::Nanos;
use crate::units::human::{self, suggestion};

const TIMEOUT: &str = "hook-timeout";
/// What `{port}` names unless a factor has this name: a free port, another one for each run.
pub(super) const PORT: &str = "port";
/// The form of `ready` that is not split into words.
const LINE: &str = "line:";
const KEYS: [&str; 6] = [BEFORE_BLOCK, BEFORE_RUN, SERVICE, READY, AFTER_RUN, TIMEOUT];

/// `[hooks]` before placeholders are filled in.
#[derive(Debug, Default)]
pub(super) struct HookTemplates {
    commands: Vec<Template>,
    timeout: Nanos,
}

#[derive(Debug)]
struct Template {
    key: &'static str,
    words: Vec<String>,
    at: usize,
}

impl HookTemplates {
    /// Those of the section, if there is one.
    pub(super) fn of(fields: Vec<Field<'_, '_, '_>>) -> Result<HookTemplates, FileError> {
        let mut templates = HookTemplates { commands: Vec::new(), timeout: defaults::HOOK_TIMEOUT };
        for field in fields {
            match KEYS.into_iter().find(|key| *key == field.key) {
                Some(TIMEOUT) => templates.timeout = field.hook_timeout()?,
                Some(key) => templates.commands.push(Template { key, words: field.command()?, at: field.at }),
                None => return Err(field.unknown_key("hooks", &KEYS)),
            }
        }
        Ok(templates)
    }

    /// The names in braces in its commands.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.commands.iter().flat_map(|template| &template.words).flat_map(|word| placeholders(word)).collect()
    }

    /// Refuses a name in braces that is not one of `factors`, and a hook that is a factor too.
    pub(super) fn expect_known(&self, file: FileText<'_>, factors: &[Factor]) -> Result<(), FileError> {
        for Template { key, words, at } in &self.commands {
            if let Some(factor) = factors.iter().find(|factor| factor.key == *key) {
                let cause = format!("`{key}` is a factor, and line {} sets it for all", file.line(*at));
                return Err(file.error(factor.at, cause, "leave one of them out"));
            }
            for word in words {
                expect_factors(file, *at, word, factors)?;
                if *key == BEFORE_BLOCK && !placeholders(word).is_empty() {
                    let cause = format!("`{key}` runs once for all conditions, and `{word}` names a factor");
                    return Err(file.error(*at, cause, "move it to `before-run`"));
                }
            }
        }
        Ok(())
    }

    /// The hooks of the condition that has the levels `chosen`.
    pub(super) fn filled(&self, file: FileText<'_>, chosen: &[&OptionValue]) -> Result<Hooks, FileError> {
        let command = |key: &str| -> Result<Option<Vec<String>>, FileError> {
            let words = match chosen.iter().find(|level| level.key == key) {
                Some(level) if level.is_left_out() => None,
                Some(level) => {
                    Some(split_hook(key, &level.text).map_err(|cause| file.error(level.at, cause, EXAMPLE))?)
                }
                None => {
                    self.commands.iter().find(|template| template.key == key).map(|template| template.words.clone())
                }
            };
            Ok(words.map(|words| words.iter().map(|word| filled(word, chosen)).collect()))
        };
        let hook = |key: &str| Ok::<_, FileError>(command(key)?.map(HookCommand));
        let at = |key: &str| {
            let level = chosen.iter().find(|level| level.key == key).map(|level| level.at);
            level.or(self.commands.iter().find(|template| template.key == key).map(|template| template.at))
        };
        let ready = command(READY)?.map(|words| ready(&words)).transpose();
        Ok(Hooks {
            before_block: hook(BEFORE_BLOCK)?,
            before_run: hook(BEFORE_RUN)?,
            service: hook(SERVICE)?,
            ready: ready.map_err(|Refusal { cause, hint }| file.error(at(READY).unwrap_or_default(), cause, hint))?,
            after_run: hook(AFTER_RUN)?,
            timeout: self.timeout,
        })
    }
}

/// Whether the value of `key` is a command in which names in braces are filled in.
pub(super) fn is_filled(key: &str) -> bool {
    is_of_a_run(key) || key == COMMAND
}

/// Refuses a name in braces in `options`, as far as they are commands, that is not one of `factors`, or that names itself.
pub(super) fn expect_known_levels<'o>(
    file: FileText<'_>,
    options: impl IntoIterator<Item = &'o OptionValue>,
    factors: &[Factor],
) -> Result<(), FileError> {
    for level in options.into_iter().filter(|option| is_filled(&option.key) && !option.is_left_out()) {
        let OptionValue { key, text, at, .. } = level;
        if names_of_hook(text).contains(key) {
            let cause = format!("`{text}` names itself: `{{{key}}}`");
            return Err(file.error(*at, cause, "name another factor, or leave it out"));
        }
        words_of_hook(text).iter().try_for_each(|word| expect_factors(file, *at, word, factors))?;
    }
    Ok(())
}

/// Refuses a name in braces in `word` of a hook that is not one of `factors`.
fn expect_factors(file: FileText<'_>, at: usize, word: &str, factors: &[Factor]) -> Result<(), FileError> {
    let known: Vec<&str> = factors.iter().map(|factor| factor.key.as_str()).collect();
    let Some(name) = placeholders(word).into_iter().find(|name| name != PORT && !known.contains(&name.as_str())) else {
        return Ok(());
    };
    let near = if known.is_empty() {
        format!("this file has no factors: `{name} = [\"…\", \"…\"]` in `[factors]` is one")
    } else {
        suggestion(&name, &known)
    };
    let hint = format!("{near}; braces that are not a factor are written `{{{{{name}}}}}`");
    Err(file.error(at, format!("`{{{name}}}` is not a factor"), hint))
}

/// The words of a level of a hook; one that cannot be split is refused where it is used.
fn words_of_hook(text: &str) -> Vec<String> {
    split_command(text).unwrap_or_else(|_| vec![text.into()])
}

/// The names in braces in a level of a hook.
pub(super) fn names_of_hook(text: &str) -> BTreeSet<String> {
    words_of_hook(text).iter().flat_map(|word| placeholders(word)).collect()
}

/// The names in braces in a `target`, factors or not.
pub(super) fn names_of_target(text: &str) -> BTreeSet<String> {
    match words_of_target(text) {
        Some(words) => words.iter().flat_map(|word| placeholders(word)).collect(),
        None => placeholders(text),
    }
}

/// The words of a `target` that is a command.
fn words_of_target(text: &str) -> Option<Vec<String>> {
    text.strip_prefix("cmd:").and_then(shlex::split)
}

/// `target` with the levels `chosen` in place of the names of their factors. All other braces are text: a target that names
/// no factor is left byte for byte. A level in `cmd:` stays one word.
pub(super) fn filled_target(text: &str, chosen: &[&OptionValue]) -> String {
    let level = |name: &str| chosen.iter().find(|level| level.key == name && name != TARGET);
    target_with(text, |part| match part {
        Part::Name(name) => level(name).map_or_else(|| part.to_string(), |level| level.text.clone()),
        Part::Escaped(name) if level(name).is_some() => Part::Name(name).to_string(),
        part => part.to_string(),
    })
}

/// `target` in the words of a file with this `factor`, so that it arrives as typed.
pub(super) fn literal_target(typed: &str, factor: &str) -> String {
    target_with(typed, |part| match part {
        Part::Name(name) | Part::Escaped(name) if *name == factor => format!("{{{part}}}"),
        part => part.to_string(),
    })
}

/// The `word` of a hook so that it arrives as it is, but for `{port}`.
pub(super) fn literal_word(word: &str) -> String {
    with_parts(word, |part| match part {
        Part::Text(_) | Part::Name(PORT) => part.to_string(),
        Part::Name(_) | Part::Escaped(_) => format!("{{{part}}}"),
    })
}

/// `target` with each part of it, or of the words of its command, replaced; as it is if that changes nothing.
fn target_with(text: &str, replaced: impl Fn(&Part<'_>) -> String) -> String {
    let Some(words) = words_of_target(text) else { return with_parts(text, replaced) };
    let changed: Vec<String> = words.iter().map(|word| with_parts(word, &replaced)).collect();
    if changed == words {
        text.to_owned()
    } else {
        format!("cmd:{}", changed.iter().map(|word| human::shell_word(word)).collect::<Vec<_>>().join(" "))
    }
}

/// One part of a text with placeholders; shown as it is written.
enum Part<'t> {
    Text(&'t str),
    Name(&'t str),
    Escaped(&'t str),
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Text(text) => to.write_str(text),
            Part::Name(name) => write!(to, "{{{name}}}"),
            Part::Escaped(name) => write!(to, "{{{{{name}}}}}"),
        }
    }
}

/// The parts of `text`. Braces around anything but a name are text, and so is every brace too many.
fn parts(text: &str) -> Vec<Part<'_>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        parts.push(Part::Text(before));
        let (part, length) = match (name_within(from, "{{", "}}"), name_within(from, "{", "}")) {
            (Some(name), _) => (Part::Escaped(name), name.len() + 4),
            (None, Some(name)) => (Part::Name(name), name.len() + 2),
            (None, None) => (Part::Text(&from[..1]), 1),
        };
        parts.push(part);
        rest = &from[length..];
    }
    parts.push(Part::Text(rest));
    parts
}

/// The name between `open` and `close` at the beginning of `text`: a letter, then letters, digits, `-`, `_` and `.`.
fn name_within<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let (name, _) = text.strip_prefix(open)?.split_once(close)?;
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|sign| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.'));
    is_name.then_some(name)
}

/// The names in braces in `text`.
fn placeholders(text: &str) -> BTreeSet<String> {
    let name = |part: Part<'_>| if let Part::Name(name) = part { Some(name.to_owned()) } else { None };
    parts(text).into_iter().filter_map(name).collect()
}

/// `text` with each of its parts replaced.
fn with_parts(text: &str, replaced: impl Fn(&Part<'_>) -> String) -> String {
    parts(text).iter().map(replaced).collect()
}

/// The `word` of a hook or of a command with the levels `chosen` in place of the names of their factors.
pub(super) fn filled(word: &str, chosen: &[&OptionValue]) -> String {
    let level = |name: &str| chosen.iter().find(|level| level.key == name).map_or("", |level| level.text.as_str());
    with_parts(word, |part| match part {
        Part::Text(text) => (*text).to_owned(),
        Part::Name(name) => level(name).to_owned(),
        Part::Escaped(name) => Part::Name(name).to_string(),
    })
}

const EXAMPLE: &str = "such as `\"./deploy {build}\"`: a program and its arguments, without a shell";

/// The words of the hook `key`.
pub(super) fn split_hook(key: &str, text: &str) -> Result<Vec<String>, &'static str> {
    if key == READY && text.starts_with(LINE) { Ok(vec![text.to_owned()]) } else { split_command(text) }
}

fn ready(words: &[String]) -> Result<ReadyWhen, Refusal> {
    let error = |cause: String| refusal(cause, READY_FORMS);
    let address = |typed: &str| match (typed.parse(), host_and_port(typed)) {
        (Ok(port @ 1..), _) => Ok(HookAddress { host: "127.0.0.1".into(), port }),
        (_, Ok((host, Some(port)))) => Ok(HookAddress { host: host.to_owned(), port }),
        (_, Ok((_, None))) => Err(error(format!("`{typed}` has no port"))),
        (_, Err(Refusal { cause, .. })) => Err(error(cause)),
    };
    let form = if let [word] = words { word.split_once(':') } else { None };
    match form {
        Some(("udp", to)) => address(to).map(ReadyWhen::Udp),
        Some(("tcp", to)) => address(to).map(ReadyWhen::Tcp),
        Some(("listen", port)) => {
            port.parse().map(ReadyWhen::Listen).map_err(|_| error(format!("`{port}` must be a port")))
        }
        Some(("http", to)) => {
            let (to, path) = to.split_at(to.find('/').unwrap_or(to.len()));
            Ok(ReadyWhen::Http(address(to)?, if path.is_empty() { "/" } else { path }.to_owned()))
        }
        Some(("line", pattern)) => match Regex::new(pattern) {
            Ok(_) => Ok(ReadyWhen::Line(pattern.to_owned())),
            Err(why) => Err(error(format!("`{pattern}` is not a regular expression: {why}"))),
        },
        Some(("time", span)) => match human::parse_duration(span) {
            Ok(span) if span <= defaults::PAUSE_MAX => Ok(ReadyWhen::Time(span)),
            Ok(_) => Err(error(format!("`{span}` is too long"))),
            Err(why) => Err(error(format!("{why}: {}", why.cause))),
        },
        _ => Ok(ReadyWhen::Command(HookCommand(words.to_vec()))),
    }
}

const READY_FORMS: &str = "`udp:[HOST:]PORT`, `tcp:[HOST:]PORT`, `listen:PORT`, `http:[HOST:]PORT/PATH`, `line:REGEX`, `time:2s`, or \
                           a command that ends with exit status 0 once all is ready";

impl Field<'_, '_, '_> {
    fn command(&self) -> Result<Vec<String>, FileError> {
        split_hook(self.key, self.text()?).map_err(|cause| self.error(format!("`{}`: {cause}", self.key), EXAMPLE))
    }

    fn hook_timeout(&self) -> Result<Nanos, FileError> {
        let timeout = human::parse_duration(self.text()?).map_err(|error| self.unreadable(error))?;
        if timeout > Nanos::ZERO && timeout <= defaults::PAUSE_MAX {
            Ok(timeout)
        } else {
            Err(self.error(
                format!("`{}` cannot be {}", self.key, human::span(timeout)),
                format!("more than 0 and at most {}", human::span(defaults::PAUSE_MAX)),
            ))
        }
    }
}
