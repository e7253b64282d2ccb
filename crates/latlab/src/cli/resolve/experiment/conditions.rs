//! Every combination of the factors as a command line, parsed and settled like one that was typed.

use clap::error::ErrorKind;

use super::kind;
use super::leave_out::ConditionFilter;
use super::options::{Factor, OptionValue};
use super::page::{FileError, FileText};
use super::{ConditionSelection, Environment, KeySource};
use crate::cli::{self, error};
use crate::diagnostics::Failure;
use crate::plan::{ExperimentCondition, Factors, Kind, Plan};

/// A condition that cannot be asked of its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// Which.
    pub factors: Factors,
    /// Why.
    pub reason: String,
}

/// What the file says about its conditions.
pub(super) struct CommandLines<'a> {
    pub(super) page: FileText<'a>,
    pub(super) kind: Kind,
    pub(super) target: Option<&'a OptionValue>,
    pub(super) base: &'a [OptionValue],
    pub(super) factors: &'a [Factor],
}

/// The conditions, and where their keys come from.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub(super) conditions: Vec<ExperimentCondition>,
    pub(super) keys: Vec<KeySource>,
    pub(super) impossible: Vec<Impossible>,
}

impl<'a> CommandLines<'a> {
    /// Settles every one of `combinations`.
    pub(super) fn settle(
        &self,
        combinations: Vec<Vec<&'a OptionValue>>,
        rows: ConditionSelection,
        surroundings: &Environment,
    ) -> Result<Settled, FileError> {
        let mut settled = Settled::default();
        for chosen in combinations {
            let factors: Factors = chosen.iter().map(|value| (value.key.clone(), value.text.clone())).collect();
            match self.condition(&chosen, surroundings) {
                Ok((plan, key)) if plan.runs.len() == 1 => {
                    self.refuse_twice(&chosen, &plan, &settled)?;
                    settled.conditions.push(ExperimentCondition { factors, plan });
                    settled.keys.push(key);
                }
                Ok(_) => return Err(self.several_runs(&chosen)),
                Err(failure) if rows == ConditionSelection::Possible => {
                    let reason = failure.cause.unwrap_or(failure.message);
                    settled.impossible.push(super::Impossible { factors, reason });
                }
                Err(failure) => return Err(self.blame(&chosen, failure)),
            }
        }
        Ok(settled)
    }

    /// Every combination but those that are `left_out`; the last factor varies fastest.
    pub(super) fn combinations(&self, left_out: &ConditionFilter) -> Vec<Vec<&'a OptionValue>> {
        let mut all = self.factors.iter().fold(vec![Vec::new()], |chosen, factor| {
            let with = |before: &Vec<&'a OptionValue>, value: &'a OptionValue| [before.as_slice(), &[value]].concat();
            chosen.iter().flat_map(|before| factor.values.iter().map(move |value| with(before, value))).collect()
        });
        all.retain(|values| !left_out.holds(values));
        all
    }

    fn settings<'s>(&'s self, chosen: &'s [&'a OptionValue]) -> impl Iterator<Item = &'a OptionValue> + 's {
        self.target.into_iter().chain(self.base).chain(chosen.iter().copied())
    }

    fn condition(&self, chosen: &[&OptionValue], surroundings: &Environment) -> Result<(Plan, KeySource), Failure> {
        let (targets, options): (Vec<&OptionValue>, Vec<&OptionValue>) =
            self.settings(chosen).partition(|setting| setting.key == super::TARGET);
        let words = |setting: &OptionValue| setting.words.clone();
        let command = ["latlab", self.kind.word()].into_iter().map(str::to_owned);
        let options = options.into_iter().flat_map(words);
        let mut targets = targets.into_iter().flat_map(words).peekable();
        let border = targets.peek().map(|_| "--".to_owned());
        let typed = command.chain(options).chain(border).chain(targets);
        let cli = cli::parse(typed.map(Into::into)).map_err(|told| match told.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Failure::request("a condition is no question"),
            _ => error::of(&told),
        })?;
        kind::settle(&cli.command, surroundings)
    }

    /// The failure with the line of the option that it names first, else of the last factor or the target.
    fn blame(&self, chosen: &[&OptionValue], failure: Failure) -> FileError {
        let named = |setting: &&OptionValue| names_option(&failure.message, &setting.key);
        let mut settings: Vec<&OptionValue> = self.settings(chosen).collect();
        // Of two that contradict each other the one that varies is the surprising one.
        settings.reverse();
        let guilty = settings.iter().copied().find(named).or(settings.first().copied());
        let key = guilty.map(|setting| format!("`{}`: ", setting.key)).unwrap_or_default();
        let because = failure.cause.map(|cause| format!(": {cause}")).unwrap_or_default();
        FileError {
            file: self.page.file.into(),
            line: self.page.line(guilty.map_or(0, |setting| setting.at)),
            cause: format!("{key}{}{because}", failure.message),
            hint: failure.hint,
        }
    }

    /// Refuses a condition that is one already, in other words: its runs would be compared with themselves.
    fn refuse_twice(&self, chosen: &[&OptionValue], plan: &Plan, settled: &Settled) -> Result<(), FileError> {
        let Some(twin) = settled.conditions.iter().find(|condition| condition.plan == *plan) else { return Ok(()) };
        let differs = |setting: &&&OptionValue| twin.factors.get(&setting.key) != Some(&setting.text);
        let guilty = chosen.iter().rev().find(differs);
        let (at, words) = guilty.map_or((0, String::new()), |guilty| {
            let of_twin = twin.factors.get(&guilty.key).map(String::as_str).unwrap_or_default();
            (guilty.at, format!("`{}` of `{}` is the same as `{of_twin}`", guilty.text, guilty.key))
        });
        Err(self.page.refuse(at, words, "leave one of them out; `tag` makes two names for one condition"))
    }

    fn several_runs(&self, chosen: &[&OptionValue]) -> FileError {
        let keys = kind::multiplying(self.kind);
        let several = |setting: &&OptionValue| {
            keys.contains(&setting.key.as_str()) && (setting.text.contains(',') || setting.text == "sweep")
        };
        let guilty = self.settings(chosen).find(several);
        let key = guilty.map_or(keys[0], |setting| setting.key.as_str());
        let cause = format!("`{key}` makes several runs, and a condition is one");
        let hint = match self.factors.iter().any(|factor| factor.key == key) {
            true => format!("name each value by itself: `{key} = [a, b, …]`, one for each condition"),
            false => format!("make it a factor: `{key} = [a, b, …]` in `[factors]`, one value for each condition"),
        };
        self.page.refuse(guilty.map_or(0, |setting| setting.at), cause, hint)
    }
}

/// Whether `message` speaks of the option `--key`, or of the target.
fn names_option(message: &str, key: &str) -> bool {
    let option = match key {
        super::TARGET => "`TARGET".to_owned(),
        "ipv4" => "`-4".to_owned(),
        "ipv6" => "`-6".to_owned(),
        key => format!("`--{key}"),
    };
    message.match_indices(&option).any(|(at, _)| {
        let next = message[at + option.len()..].chars().next();
        next.is_none_or(|sign| !sign.is_alphanumeric() && sign != '-')
    })
}
