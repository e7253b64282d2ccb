//! The options that cannot go together, in one table.

use std::sync::LazyLock;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use glob::Pattern;

use super::value::{TypedTarget, alone, out_of_place};
use crate::diagnostics::Failure;
use crate::plan::{Protocol, Target};

/// One thing that is refused: see [`EXCLUSIONS`].
struct Exclusion {
    commands: &'static str,
    option: &'static str,
    with: &'static str,
    cause: &'static str,
    hint: &'static str,
}

/// The exclusions of `exclusions.txt`, of which the first that a command line violates is reported: one of the options of the
/// first line, of the commands before the colon, is refused where all patterns behind `with:` hold. The goldens show each
/// `example:`.
///
/// A pattern is an option (`--df`), an option with one of several values (`--mode sendmmsg|gso`, `--load net=*`) or with any
/// other value (`--flows !=1`), a form of the target (`TARGET ssh|cmd`), an argument by the name of its value (`PATH`), or the
/// command itself. `!` before a pattern means that it does not hold: the message says that it is needed.
static EXCLUSIONS: LazyLock<Vec<Exclusion>> = LazyLock::new(|| {
    let block = |block: &'static str| {
        let mut fields = block.lines().filter_map(|line| line.split_once(": "));
        let (commands, option) = fields.next()?;
        let mut next = || fields.next().map(|(_, field)| field);
        Some(Exclusion { commands, option, with: next()?, cause: next()?, hint: next()? })
    };
    include_str!("exclusions.txt").split("\n\n").filter_map(block).collect()
});

/// Refuses options that cannot go together.
pub(super) fn check(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    let line = CommandLine { command, matches };
    EXCLUSIONS.iter().find_map(|rule| line.violation(rule)).map_or(Ok(()), Err)
}

/// What was typed for a command.
struct CommandLine<'a> {
    command: &'a Command,
    matches: &'a ArgMatches,
}

impl CommandLine<'_> {
    fn violation(&self, rule: &Exclusion) -> Option<Failure> {
        if !rule.commands.split(' ').any(|command| command == self.command.get_name()) {
            return None;
        }
        let option = rule.option.split(", ").find_map(|pattern| self.given(pattern))?;
        let (mut with, mut needed) = (None, Vec::new());
        for pattern in rule.with.split(", ") {
            match pattern.strip_prefix('!') {
                None => with = Some(self.given(pattern)?),
                Some(pattern) if self.given(pattern).is_some() => return None,
                Some(pattern) => needed.push(pattern),
            }
        }
        Some(match with {
            Some(with) if needed.is_empty() => out_of_place(&option, with, rule.cause, rule.hint),
            _ => alone(&option, &needed.join("|").replace('|', "` or `"), rule.cause, rule.hint),
        })
    }

    /// What was typed of `pattern`, if it holds.
    fn given(&self, pattern: &str) -> Option<String> {
        let (name, values) = pattern.split_once(' ').map_or((pattern, None), |(name, values)| (name, Some(values)));
        if name == self.command.get_name() {
            return Some(format!("latlab {name}"));
        }
        if let ("TARGET", Some(forms)) = (name, values) {
            return self.target(forms);
        }
        let argument = self.command.get_arguments().find(|argument| is_named(argument, name))?;
        let typed = self.typed(argument)?;
        let Some(values) = values else {
            return if argument.is_positional() { typed.into_iter().next() } else { Some(name.to_owned()) };
        };
        let fits = |value: &String| match values.strip_prefix("!=") {
            Some(other) => value != other,
            None => values.split('|').any(|one| Pattern::new(one).is_ok_and(|pattern| pattern.matches(value))),
        };
        typed.into_iter().find(fits).map(|value| format!("{name} {value}"))
    }

    /// The typed values of `argument`; `None` if it was not typed.
    fn typed(&self, argument: &Arg) -> Option<Vec<String>> {
        let id = argument.get_id().as_str();
        let is_typed = self.matches.value_source(id) == Some(ValueSource::CommandLine);
        let values = is_typed.then(|| self.matches.try_get_raw(id).ok().flatten()).flatten()?;
        Some(values.map(|value| value.to_string_lossy().into_owned()).collect())
    }

    /// The target, if it has one of `forms`.
    fn target(&self, forms: &str) -> Option<String> {
        let typed = self.matches.try_get_one::<TypedTarget>("target").ok()?;
        let target = typed.map_or(Target::Local, |typed| typed.over(Protocol::Native));
        let form = match &target {
            Target::Local | Target::Log { .. } => "local",
            Target::Lab => "lab",
            Target::Host { .. } => "HOST",
            Target::Ssh { .. } => "ssh",
            Target::Command { .. } => "cmd",
        };
        forms.split('|').any(|one| one == form).then(|| target.to_string())
    }
}

/// Whether `name` is that of `argument` on the command line or in its help.
fn is_named(argument: &Arg, name: &str) -> bool {
    match (name.strip_prefix("--"), name.strip_prefix('-')) {
        (Some(long), _) => argument.get_long() == Some(long),
        (None, Some(short)) => argument.get_short().is_some_and(|own| short.chars().eq([own])),
        (None, None) => {
            argument.is_positional()
                && argument.get_value_names().is_some_and(|names| names.iter().any(|own| own == name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The goldens are the only place in which refusals are tested.
    #[test]
    fn each_rule_is_shown_by_a_golden() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/goldens/refusals");
        let goldens: String = std::fs::read_dir(directory)
            .expect("the goldens")
            .map(|file| std::fs::read_to_string(file.expect("an entry").path()).expect("a text"))
            .collect();
        for rule in EXCLUSIONS.iter() {
            let shown = format!("  cause: {}\n  hint: {}\n", rule.cause, rule.hint);
            assert!(goldens.contains(&shown), "no golden shows that `{}` {}", rule.option, rule.cause);
        }
    }
}
