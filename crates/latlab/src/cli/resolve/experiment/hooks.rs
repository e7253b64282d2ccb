//! Resolution of `[hooks]`, and of `{factor}` in hooks and in `target`.

use std::collections::BTreeSet;

use super::file::{Field, FileError, FileText};
use super::options::{Factor, OptionValue};
use crate::cli::resolve::target::{host_and_port, split_command};
use crate::diagnostics::Explain;
use crate::plan::hooks::{AFTER_RUN, BEFORE_BLOCK, BEFORE_RUN, SERVICE, WAIT_FOR};
use crate::plan::{HookAddress, HookCommand, Hooks, WaitFor, defaults};
use crate::units::Nanos;
use crate::units::human::{self, suggestion};

const TIMEOUT: &str = "hook-timeout";
const KEYS: [&str; 6] = [BEFORE_BLOCK, BEFORE_RUN, SERVICE, WAIT_FOR, AFTER_RUN, TIMEOUT];

/// `[hooks]` before placeholders are filled in.
#[derive(Debug, Default)]
pub(super) struct HookTemplates {
    /// By key.
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
            if let Some(level) = chosen.iter().find(|level| level.key == key) {
                return split_command(&level.text).map(Some).map_err(|cause| file.error(level.at, cause, EXAMPLE));
            }
            let template = self.commands.iter().find(|template| template.key == key);
            Ok(template.map(|template| template.words.iter().map(|word| filled(word, chosen)).collect()))
        };
        let hook = |key: &str| Ok::<_, FileError>(command(key)?.map(HookCommand));
        let at = |key: &str| {
            let level = chosen.iter().find(|level| level.key == key).map(|level| level.at);
            level.or(self.commands.iter().find(|template| template.key == key).map(|template| template.at))
        };
        let wait_for = command(WAIT_FOR)?.map(|words| wait_for(&words)).transpose();
        Ok(Hooks {
            before_block: hook(BEFORE_BLOCK)?,
            before_run: hook(BEFORE_RUN)?,
            service: hook(SERVICE)?,
            wait_for: wait_for
                .map_err(|Refused { cause, hint }| file.error(at(WAIT_FOR).unwrap_or_default(), cause, hint))?,
            after_run: hook(AFTER_RUN)?,
            timeout: self.timeout,
        })
    }
}

/// Refuses a name in braces in `text` that is not one of `factors`.
pub(super) fn expect_factors(file: FileText<'_>, at: usize, text: &str, factors: &[Factor]) -> Result<(), FileError> {
    let known: Vec<&str> = factors.iter().map(|factor| factor.key.as_str()).collect();
    match placeholders(text).into_iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let near = suggestion(&name, &known);
            let hint = format!("{near}; braces that are not a factor are written `{{{{{name}}}}}`");
            Err(file.error(at, format!("`{{{name}}}` is not a factor"), hint))
        }
    }
}

/// `target` with its placeholders filled in. A level in `cmd:` stays one word.
pub(super) fn filled_target(text: &str, chosen: &[&OptionValue]) -> String {
    match text.strip_prefix("cmd:").and_then(shlex::split).filter(|_| !placeholders(text).is_empty()) {
        Some(words) => {
            let words = words.iter().map(|word| human::shell_word(&filled(word, chosen)));
            format!("cmd:{}", words.collect::<Vec<_>>().join(" "))
        }
        None => filled(text, chosen),
    }
}

/// One part of a text with placeholders.
enum Part<'t> {
    Text(&'t str),
    /// A name in braces.
    Name(&'t str),
}

/// The parts of `text`. `{{` and `}}` are braces; braces around anything but a name are text.
fn parts(text: &str) -> Vec<Part<'_>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        parts.push(Part::Text(before));
        let name = from.strip_prefix('{').and_then(|inner| inner.split_once('}')).filter(|(name, _)| is_name(name));
        rest = if from.starts_with("{{") || from.starts_with("}}") {
            parts.push(Part::Text(&from[..1]));
            &from[2..]
        } else if let Some((name, after)) = name {
            parts.push(Part::Name(name));
            after
        } else {
            parts.push(Part::Text(&from[..1]));
            &from[1..]
        };
    }
    parts.push(Part::Text(rest));
    parts
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|sign| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.'))
}

/// The names in braces in `text`.
pub(super) fn placeholders(text: &str) -> BTreeSet<String> {
    let name = |part: Part<'_>| if let Part::Name(name) = part { Some(name.to_owned()) } else { None };
    parts(text).into_iter().filter_map(name).collect()
}

/// `text` with the levels `chosen` in place of the names of their factors.
fn filled(text: &str, chosen: &[&OptionValue]) -> String {
    let level = |name: &str| chosen.iter().find(|level| level.key == name).map_or("", |level| level.text.as_str());
    let fill = |part: Part<'_>| match part {
        Part::Text(text) => text.to_owned(),
        Part::Name(name) => level(name).to_owned(),
    };
    parts(text).into_iter().map(fill).collect()
}

const EXAMPLE: &str = "such as `\"./deploy {build}\"`: a program and its arguments, without a shell";

/// Why a `wait-for` cannot be used.
struct Refused {
    cause: String,
    hint: String,
}

fn wait_for(words: &[String]) -> Result<WaitFor, Refused> {
    let address = |typed: &str| {
        let hint = "`udp HOST:PORT`, `tcp HOST:PORT`, or a command that ends with exit status 0 once all is ready";
        let error = |cause: String| Refused { cause, hint: hint.into() };
        match host_and_port(WAIT_FOR, typed) {
            Ok((host, Some(port))) => Ok(HookAddress { host: host.to_owned(), port }),
            Ok((_, None)) => Err(error(format!("`{typed}` has no port"))),
            Err(refused) => {
                let failure = refused.explain();
                Err(error(failure.cause.unwrap_or(failure.message)))
            }
        }
    };
    match words {
        [protocol, typed] if protocol == "udp" => address(typed).map(WaitFor::Udp),
        [protocol, typed] if protocol == "tcp" => address(typed).map(WaitFor::Tcp),
        words => Ok(WaitFor::Command(HookCommand(words.to_vec()))),
    }
}

impl Field<'_, '_, '_> {
    fn command(&self) -> Result<Vec<String>, FileError> {
        split_command(self.text()?).map_err(|cause| self.error(format!("`{}`: {cause}", self.key), EXAMPLE))
    }

    fn hook_timeout(&self) -> Result<Nanos, FileError> {
        let timeout = human::parse_duration(self.text()?).map_err(|error| self.unreadable(error))?;
        match timeout > Nanos::ZERO && timeout <= defaults::PAUSE_MAX {
            true => Ok(timeout),
            false => Err(self.error(
                format!("`{}` cannot be {}", self.key, human::span(timeout)),
                format!("more than 0 and at most {}", human::span(defaults::PAUSE_MAX)),
            )),
        }
    }
}
