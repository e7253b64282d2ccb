//! The conditions of an experiment: every combination of levels as a command line, parsed and resolved as if typed.

use std::ffi::OsString;

use super::file::{Field, FileError, FileText};
use super::hooks::{HookTemplates, filled, filled_target};
use super::options::{COMMAND, Factor, OptionValue, TARGET, levels};
use crate::cli::args::Command;
use crate::cli::options::KeySource;
use crate::cli::resolve::{self, Environment};
use crate::cli::value::{split_command, unusable};
use crate::cli::{self, NotParsed};
use crate::diagnostics::Failure;
use crate::facts::ExcludedCondition;
use crate::plan::{ExperimentCondition, Factors, Kind, Plan, defaults};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionSelection {
    /// All: one that is impossible is an error.
    All,
    /// Those that are possible: a recipe runs on hosts that lack something.
    Possible,
}

pub(super) struct CommandLines<'a> {
    pub(super) file: FileText<'a>,
    pub(super) kind: Kind,
    pub(super) target: Option<&'a OptionValue>,
    pub(super) base: &'a [OptionValue],
    pub(super) factors: &'a [Factor],
    pub(super) hooks: &'a HookTemplates,
    /// What fills `{port}` in, unless a factor does.
    pub(super) port: Option<&'a OptionValue>,
}

/// The conditions, and where their keys come from.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub(super) conditions: Vec<ExperimentCondition>,
    pub(super) keys: Vec<KeySource>,
    pub(super) impossible: Vec<ExcludedCondition>,
}

/// `[[leave-out]]`: levels that are not measured together.
pub(super) fn left_out(
    file: FileText<'_>,
    field: Option<Field<'_, '_, '_>>,
    factors: &[Factor],
) -> Result<Vec<Factors>, FileError> {
    let mut combinations = Vec::new();
    let rows = field.as_ref().map(Field::tables).transpose()?.unwrap_or_default();
    if let Some(first) = rows.first().filter(|_| rows.len() > defaults::CONDITIONS_MAX) {
        let cause = format!("{} combinations are excluded; the limit is {}", rows.len(), defaults::CONDITIONS_MAX);
        return Err(file.error(first.at, cause, "leave out levels instead"));
    }
    for row in rows {
        let levels = levels(file, row.table, factors)?;
        if levels.is_empty() {
            let hint = "list the factors that must not be combined";
            return Err(file.error(row.at, "this excludes every condition", hint));
        }
        combinations.push(levels);
    }
    Ok(combinations)
}

/// The factors of a condition, as typed or named.
pub(super) fn factors_of(chosen: &[&OptionValue]) -> Factors {
    chosen.iter().map(|value| (value.key.clone(), value.name.clone())).collect()
}

impl<'a> CommandLines<'a> {
    pub(super) fn settle(
        &self,
        combinations: Vec<Vec<&'a OptionValue>>,
        selection: ConditionSelection,
        environment: &Environment,
    ) -> Result<Settled, FileError> {
        let mut settled = Settled::default();
        for chosen in combinations {
            self.expect_short(&chosen)?;
            let factors = factors_of(&chosen);
            let filling: Vec<&OptionValue> = chosen.iter().copied().chain(self.port).collect();
            match self.condition(&filling, environment) {
                Ok((plan, key)) if plan.runs.len() == 1 => {
                    self.refuse_same(&chosen, &plan, &settled)?;
                    let hooks = self.hooks.filled(self.file, &filling)?;
                    settled.conditions.push(ExperimentCondition { factors, plan, hooks });
                    settled.keys.push(key);
                }
                Ok(_) => return Err(self.several_runs(&chosen)),
                Err(failure) if selection == ConditionSelection::Possible => {
                    let reason = failure.cause.unwrap_or(failure.message);
                    settled.impossible.push(ExcludedCondition { factors, reason });
                }
                Err(failure) => return Err(self.located(&chosen, failure)),
            }
        }
        Ok(settled)
    }

    /// Every combination of the factors but those `left_out`; the last factor varies fastest.
    pub(super) fn combinations(&self, left_out: &[Factors]) -> Vec<Vec<&'a OptionValue>> {
        let mut all = self.factors.iter().fold(vec![Vec::new()], |chosen, factor| {
            let with = |before: &Vec<&'a OptionValue>, value: &'a OptionValue| [before.as_slice(), &[value]].concat();
            chosen.iter().flat_map(|before| factor.values.iter().map(move |value| with(before, value))).collect()
        });
        all.retain(|values: &Vec<&OptionValue>| {
            let has = |(key, text): (&String, &String)| values.iter().any(|one| one.key == *key && one.name == *text);
            !left_out.iter().any(|levels| levels.iter().all(has))
        });
        all
    }

    /// Refuses options of one condition that are too long to be made for each.
    fn expect_short(&self, chosen: &[&'a OptionValue]) -> Result<(), FileError> {
        let bytes = |option: &OptionValue| option.words.iter().map(String::len).sum::<usize>();
        let all: usize = self.options(chosen).map(bytes).sum();
        if all <= defaults::CONDITION_MAX_BYTES {
            return Ok(());
        }
        let longest = self.options(chosen).max_by_key(|option| bytes(option));
        let cause =
            format!("the options of a condition have {all} bytes; the limit is {}", defaults::CONDITION_MAX_BYTES);
        Err(self.file.error(longest.map_or(0, |option| option.at), cause, "shorten its values"))
    }

    fn options<'s>(&'s self, chosen: &'s [&'a OptionValue]) -> impl Iterator<Item = &'a OptionValue> + 's {
        self.target.into_iter().chain(self.base).chain(chosen.iter().copied())
    }

    fn condition(&self, chosen: &[&OptionValue], environment: &Environment) -> Result<(Plan, KeySource), Failure> {
        let bare = if self.kind == Kind::Command { COMMAND } else { TARGET };
        let (bare, options): (Vec<&OptionValue>, Vec<&OptionValue>) =
            self.options(chosen).partition(|option| option.key == bare);
        let by_shell = options.iter().any(|option| option.words == ["--shell"]);
        let command = ["latlab", self.kind.word()].into_iter().map(str::to_owned);
        let options = options.into_iter().flat_map(|option| option.words.clone());
        let words = bare.into_iter().flat_map(|option| &option.words).map(|text| match self.kind {
            Kind::Command if by_shell => Ok(vec![filled(text, chosen)]),
            Kind::Command => match split_command(text) {
                Ok(words) => Ok(words.iter().map(|word| filled(word, chosen)).collect()),
                Err(cause) => Err(unusable("COMMAND", text, cause, "quote it as in a shell, or add `shell = true`")),
            },
            _ => Ok(vec![filled_target(text, chosen)]),
        });
        let words = words.collect::<Result<Vec<_>, _>>()?.concat();
        let separator = (!words.is_empty()).then(|| "--".to_owned());
        let typed: Vec<OsString> = command.chain(options).chain(separator).chain(words).map(Into::into).collect();
        let cli = cli::parse(typed).map_err(|answer| match answer {
            NotParsed::Page(_) => Failure::request("a condition cannot be help or version"),
            NotParsed::Refused(failure) => failure,
        })?;
        match &cli.command {
            Command::Ping(args) => resolve::ping(args, environment).map(|job| (job.plan, job.key)),
            Command::Stream(args) => resolve::stream(args, environment).map(|job| (job.plan, job.key)),
            Command::Command(args) => resolve::command(args, environment).map(|job| (job.plan, job.key)),
            Command::Wakeup(args) => resolve::wakeup(args, environment).map(|job| (job.plan, KeySource::None)),
            _ => Err(Failure::request("a condition is a command that measures")),
        }
    }

    /// The failure with the line of the option that it names first, else of the last factor or the target.
    fn located(&self, chosen: &[&OptionValue], failure: Failure) -> FileError {
        let named = |option: &&OptionValue| names_option(&failure.message, &option.key);
        let mut options: Vec<&OptionValue> = self.options(chosen).collect();
        // Of two options that contradict each other the one that varies is the surprising one.
        options.reverse();
        let culprit = options.iter().copied().find(named).or(options.first().copied());
        let key = culprit.map(|option| format!("`{}`: ", option.key)).unwrap_or_default();
        let because = failure.cause.map(|cause| format!(": {cause}")).unwrap_or_default();
        let cause = format!("{key}{}{because}", failure.message);
        FileError { hint: failure.hint, ..self.file.error(culprit.map_or(0, |option| option.at), cause, "") }
    }

    /// Refuses a condition that equals another one in other words: its runs would be compared with themselves.
    fn refuse_same(&self, chosen: &[&OptionValue], plan: &Plan, settled: &Settled) -> Result<(), FileError> {
        let Some(same) = settled.conditions.iter().find(|condition| condition.plan == *plan) else { return Ok(()) };
        let differs = |option: &&&OptionValue| same.factors.get(&option.key) != Some(&option.name);
        let culprit = chosen.iter().rev().find(differs);
        let (at, words) = culprit.map_or((0, String::new()), |culprit| {
            let other = same.factors.get(&culprit.key).map(String::as_str).unwrap_or_default();
            (culprit.at, format!("`{}` of `{}` is the same as `{other}`", culprit.name, culprit.key))
        });
        Err(self.file.error(at, words, "leave one of them out; `tag` makes two names for one condition"))
    }

    fn several_runs(&self, chosen: &[&OptionValue]) -> FileError {
        let keys = multiplying(self.kind);
        let several = |option: &&OptionValue| {
            keys.contains(&option.key.as_str()) && (option.text.contains(',') || option.text == "sweep")
        };
        let culprit = self.options(chosen).find(several);
        let key = culprit.map_or(keys[0], |option| option.key.as_str());
        let cause = format!("`{key}` makes several runs, and a condition is one");
        let hint = if self.factors.iter().any(|factor| factor.key == key) {
            format!("name each value by itself: `{key} = [a, b, …]`, one for each condition")
        } else {
            format!("make it a factor: `{key} = [a, b, …]` in `[factors]`, one value for each condition")
        };
        self.file.error(culprit.map_or(0, |option| option.at), cause, hint)
    }
}

/// Options of which several values make several runs.
const fn multiplying(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Ping => &["size", "source-port"],
        Kind::Stream => &["size"],
        Kind::Wakeup => &["interval", "via"],
        Kind::Command | Kind::Values => &[],
    }
}

/// Whether `message` names the option `--key`, or the target.
fn names_option(message: &str, key: &str) -> bool {
    let option = match key {
        TARGET => "`TARGET".to_owned(),
        COMMAND => "`COMMAND".to_owned(),
        "ipv4" => "`-4".to_owned(),
        "ipv6" => "`-6".to_owned(),
        key => format!("`--{key}"),
    };
    message.match_indices(&option).any(|(at, _)| {
        let next = message[at + option.len()..].chars().next();
        next.is_none_or(|sign| !sign.is_alphanumeric() && sign != '-')
    })
}
