//! `[base]` and `[factors]`: options of the command, turned into the words that would be typed.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::page::{FileError, FileText, entries, scalar};
use crate::plan::{Kind, defaults};

/// The positional argument, which may be a factor all the same.
pub(super) const TARGET: &str = "target";
/// The value of an option that is left out.
pub(super) const NONE: &str = "none";
/// The schedule without an interval.
const CLOSED: &str = "closed";
/// Where recordings go and what is printed is the experiment's to say.
const NOT_OF_A_CONDITION: [&str; 10] =
    ["like", "output", "store", "no-record", "json", "quiet", "verbose", "help", "try-remedies", "break"];

/// A long option of a command.
#[derive(Clone, Copy, Debug)]
struct OptionForm {
    is_flag: bool,
    repeats: bool,
    /// `none` is one of its own values.
    knows_none: bool,
}

/// The long options of a command.
pub(super) struct KnownOptions {
    kind: Kind,
    options: BTreeMap<String, OptionForm>,
}

/// One option with one value, as words of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OptionValue {
    /// The key of the file.
    pub(super) key: String,
    /// The value in one line.
    pub(super) text: String,
    /// What would be typed; empty for a flag that is left out. Of `target` the bare word.
    pub(super) words: Vec<String>,
    /// Where it stands in the file.
    pub(super) at: usize,
}

/// A factor: one of its values for each condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Factor {
    pub(super) key: String,
    pub(super) at: usize,
    pub(super) values: Vec<OptionValue>,
}

impl KnownOptions {
    /// Those of the command that measures `kind`.
    pub(super) fn of(kind: Kind) -> KnownOptions {
        let definition = crate::cli::definition();
        let arguments = definition.find_subcommand(kind.word()).into_iter().flat_map(clap::Command::get_arguments);
        let form = |argument: &clap::Arg| {
            let action = argument.get_action();
            let repeats = matches!(action, clap::ArgAction::Append);
            let name = argument.get_long()?;
            let knows_none = name == "load" || argument.get_possible_values().iter().any(|own| own.get_name() == NONE);
            Some((name.to_owned(), OptionForm { is_flag: !action.takes_values(), repeats, knows_none }))
        };
        let options = arguments.filter_map(form).filter(|(name, _)| !NOT_OF_A_CONDITION.contains(&name.as_str()));
        KnownOptions { kind, options: options.collect() }
    }

    fn form(&self, page: FileText<'_>, key: &str, at: usize, section: &str) -> Result<OptionForm, FileError> {
        if key == TARGET && section == "factors" && self.kind.has_target() {
            return Ok(OptionForm { is_flag: false, repeats: false, knows_none: true });
        }
        if let Some(form) = self.options.get(key) {
            return Ok(*form);
        }
        let cause = match key {
            TARGET if self.kind.has_target() => {
                return Err(page.refuse(at, "`target` is no option", "write `target = …` above all tables"));
            }
            key if NOT_OF_A_CONDITION.contains(&key) => format!("`{key}` is not for a condition to say"),
            _ => {
                let known: Vec<&str> = self.options.keys().map(String::as_str).chain(self.target()).collect();
                return Err(page.unknown(key, at, section, &known));
            }
        };
        let hint = match key {
            "try-remedies" => "leave it out: `via`, `set` and `fifo` are factors".into(),
            "break" => "leave it out: a run that a late wake-up ended cannot be compared".into(),
            key => format!("leave it out, or give it to `latlab run`: `--{key}`"),
        };
        Err(page.refuse(at, cause, hint))
    }

    fn target(&self) -> Option<&'static str> {
        self.kind.has_target().then_some(TARGET)
    }

    /// The settings that all conditions have in common.
    pub(super) fn base(&self, page: FileText<'_>, table: &DeTable<'_>) -> Result<Vec<OptionValue>, FileError> {
        let read = |(key, span, value): (&str, Range<usize>, &Spanned<DeValue<'_>>)| {
            let form = self.form(page, key, span.start, "base")?;
            self.setting(page, key, form, value)
        };
        entries(table).into_iter().map(read).collect()
    }

    /// The factors, in the order of the file.
    pub(super) fn factors(&self, page: FileText<'_>, table: &DeTable<'_>) -> Result<Vec<Factor>, FileError> {
        let entries = entries(table);
        refuse_too_many(page, &entries)?;
        entries.into_iter().map(|(key, span, value)| self.factor(page, key, span.start, value)).collect()
    }

    fn factor(
        &self,
        page: FileText<'_>,
        key: &str,
        at: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Factor, FileError> {
        let form = self.form(page, key, at, "factors")?;
        let Some(values) = value.get_ref().as_array() else {
            let hint =
                format!("such as `{key} = [\"…\", \"…\"]`; what all conditions have in common stands in `[base]`");
            return Err(page.refuse(at, format!("the factor `{key}` is no array of values"), hint));
        };
        if values.is_empty() {
            let hint = "give it one value for each condition, or leave it out";
            return Err(page.refuse(at, format!("the factor `{key}` has no value"), hint));
        }
        let mut settings: Vec<OptionValue> = Vec::with_capacity(values.len());
        for value in values.iter() {
            let setting = self.setting(page, key, form, value)?;
            if settings.iter().any(|other| other.text == setting.text) {
                let cause = format!("the factor `{key}` has the value `{}` twice", setting.text);
                return Err(page.refuse(setting.at, cause, "more runs of a condition come from `runs` and `blocks`"));
            }
            settings.push(setting);
        }
        Ok(Factor { key: key.into(), at, values: settings })
    }

    fn setting(
        &self,
        page: FileText<'_>,
        key: &str,
        form: OptionForm,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<OptionValue, FileError> {
        let at = value.span().start;
        let refuse = |cause: String, hint: String| page.refuse(at, cause, hint);
        let typed = |text: &String| if key == TARGET { text.clone() } else { format!("--{key}={text}") };
        let left_out = |word: &str| (word.to_owned(), Vec::new());
        let (text, words) = match value.get_ref() {
            DeValue::Boolean(on) if form.is_flag => {
                (on.to_string(), on.then(|| format!("--{key}")).into_iter().collect())
            }
            _ if form.is_flag => {
                return Err(refuse(format!("`{key}` takes no value"), format!("`{key} = true`, or `false`")));
            }
            DeValue::Array(values) if form.repeats && !values.is_empty() => {
                let texts: Option<Vec<String>> = values.iter().map(|value| scalar(value.get_ref())).collect();
                let texts = texts.ok_or_else(|| self.wrong_type(page, key, value))?;
                (texts.join(","), texts.iter().map(typed).collect())
            }
            DeValue::Array(values) if values.is_empty() && key != TARGET => left_out(NONE),
            DeValue::String(word) if *word == NONE && !form.knows_none => left_out(NONE),
            // What a ping does without `--interval` has a name all the same.
            DeValue::String(word) if *word == CLOSED && key == "interval" && self.kind == Kind::Ping => {
                left_out(CLOSED)
            }
            DeValue::Array(_) if !form.repeats => {
                return Err(refuse(format!("`{key}` takes one value"), "several of them are a factor".into()));
            }
            scalar_value => {
                let text = scalar(scalar_value).ok_or_else(|| self.wrong_type(page, key, value))?;
                (text.clone(), vec![typed(&text)])
            }
        };
        Ok(OptionValue { key: key.into(), text, words, at })
    }

    fn wrong_type(&self, page: FileText<'_>, key: &str, value: &Spanned<DeValue<'_>>) -> FileError {
        let cause = format!("`{key}` cannot be {}", with_article(value.get_ref().type_str()));
        let hint = format!("what would be typed behind `latlab {} --{key}`, as a string or a number", self.kind.word());
        page.refuse(value.span().start, cause, hint)
    }
}

fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

/// Counted before anything is made of them.
fn refuse_too_many(page: FileText<'_>, entries: &[super::page::FileKey<'_, '_>]) -> Result<(), FileError> {
    let values = |value: &Spanned<DeValue<'_>>| value.get_ref().as_array().map_or(1, |array| array.len());
    let conditions = entries.iter().fold(1_u128, |all, (.., value)| all.saturating_mul(values(value) as u128));
    if conditions <= defaults::CONDITIONS_MAX as u128 {
        return Ok(());
    }
    let at = entries.first().map_or(0, |(_, span, _)| span.start);
    let count = u64::try_from(conditions).map_or_else(|_| "far too many".into(), crate::units::human::grouped);
    let cause = format!("these factors make {count} conditions, and {} is the limit", defaults::CONDITIONS_MAX);
    Err(page.refuse(at, cause, "every combination is a condition: leave out factors or values"))
}
