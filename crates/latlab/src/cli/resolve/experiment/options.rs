//! Resolution of `[base]` and `[factors]` of an experiment file to the words of a command line.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::{Field, FileError, FileText, scalar};
use crate::plan::{Factors, Kind, defaults, hooks};
use crate::units::human::{grouped, suggestion};

/// The positional argument, which may be a factor as well.
pub(super) const TARGET: &str = "target";
/// The same of a `command`: a line of words, or of shell with `shell`.
pub(super) const COMMAND: &str = "command";
/// The value of an option that is left out.
const NONE: &str = "none";
/// The schedule without an interval.
const CLOSED: &str = "closed";
/// Options that the experiment decides, not a condition.
const NOT_OF_A_CONDITION: [&str; 12] = [
    "output",
    "store",
    "live",
    "no-record",
    "json",
    "quiet",
    "verbose",
    "help",
    "try-remedies",
    "break",
    "gate",
    "gate-strict",
];

/// A long option of a command.
#[derive(Clone, Copy, Debug)]
struct OptionForm {
    is_flag: bool,
    repeats: bool,
    /// `none` is one of its own values.
    knows_none: bool,
    /// It is not an option but a name in braces, or a hook: its level is a tag.
    is_free: bool,
}

impl OptionForm {
    const VALUE: OptionForm = OptionForm { is_flag: false, repeats: false, knows_none: true, is_free: false };
    const FREE: OptionForm = OptionForm { is_free: true, ..OptionForm::VALUE };
}

/// The long options of a command.
pub(super) struct KnownOptions {
    kind: Kind,
    /// The names in braces in hooks and in `target`.
    named: BTreeSet<String>,
    options: BTreeMap<String, OptionForm>,
}

/// One option with one value, as words of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OptionValue {
    pub(super) key: String,
    pub(super) text: String,
    /// Its level in results: the text, unless `[names]` has another one.
    pub(super) name: String,
    /// The words of the command line: empty for an option that is left out, the bare value for `target` and `command`.
    pub(super) words: Vec<String>,
    /// The position in the file.
    pub(super) at: usize,
}

/// A factor: each condition has one of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Factor {
    pub(super) key: String,
    pub(super) at: usize,
    pub(super) values: Vec<OptionValue>,
}

impl OptionValue {
    /// Whether the option, or the hook, is left out: `"none"` and `[]`.
    pub(super) const fn is_left_out(&self) -> bool {
        self.words.is_empty()
    }

    /// Shows the level as `name`, in the tag of a free factor too.
    pub(super) fn rename(&mut self, name: &str) {
        let OptionValue { key, text, words, .. } = self;
        if *words == [format!("--tag={key}={text}")] {
            words[0] = format!("--tag={key}={name}");
        }
        self.name = name.to_owned();
    }
}

impl KnownOptions {
    /// Those of the command that measures `kind`, beside the names in braces.
    pub(super) fn of(kind: Kind, named: BTreeSet<String>) -> KnownOptions {
        let definition = crate::cli::definition();
        let arguments = definition.find_subcommand(kind.word()).into_iter().flat_map(clap::Command::get_arguments);
        let form = |argument: &clap::Arg| {
            let action = argument.get_action();
            let repeats = matches!(action, clap::ArgAction::Append);
            let name = argument.get_long()?;
            let knows_none = name == "load" || argument.get_possible_values().iter().any(|own| own.get_name() == NONE);
            let is_flag = !action.takes_values();
            Some((name.to_owned(), OptionForm { is_flag, repeats, knows_none, is_free: false }))
        };
        let options = arguments.filter_map(form).filter(|(name, _)| !NOT_OF_A_CONDITION.contains(&name.as_str()));
        let command = (kind == Kind::Command).then(|| (COMMAND.to_owned(), OptionForm::VALUE));
        KnownOptions { kind, named, options: options.chain(command).collect() }
    }

    fn form(&self, field: &Field<'_, '_, '_>, section: &str) -> Result<OptionForm, FileError> {
        let has_target = self.kind.has_target();
        if field.key == TARGET && section == "factors" && has_target {
            return Ok(OptionForm::VALUE);
        }
        if let Some(form) = self.options.get(field.key) {
            return Ok(*form);
        }
        let is_hook = hooks::is_of_a_run(field.key);
        if (is_hook || self.named.contains(field.key)) && section == "factors" {
            return Ok(OptionForm { knows_none: !is_hook, ..OptionForm::FREE });
        }
        if field.key == TARGET && has_target {
            return Err(field.key_error("`target` is not an option", "write `target = …` above all tables"));
        }
        if !NOT_OF_A_CONDITION.contains(&field.key) {
            let target = has_target.then_some(TARGET);
            let named = self.named.iter().map(String::as_str);
            let known: Vec<&str> = self.options.keys().map(String::as_str).chain(target).chain(named).collect();
            let error = field.unknown_key(section, &known);
            return Err(match section {
                "factors" if field.key != TARGET => free_factor(field, error),
                _ => error,
            });
        }
        let hint = match field.key {
            "try-remedies" => "leave it out: options such as `set` and `fifo` are factors".into(),
            "break" => "omit it: a run that a late wake-up ended cannot be compared".into(),
            key => format!("leave it out, or give it to `latlab run`: `--{key}`"),
        };
        Err(field.key_error(format!("`{}` cannot be set in a condition", field.key), hint))
    }

    /// The options that all conditions have in common.
    pub(super) fn base(&self, file: FileText<'_>, table: &DeTable<'_>) -> Result<Vec<OptionValue>, FileError> {
        let read = |field: Field<'_, '_, '_>| self.option(&field, self.form(&field, "base")?);
        file.fields(table).into_iter().map(read).collect()
    }

    /// The factors, in the order of the file.
    pub(super) fn factors(&self, file: FileText<'_>, table: &DeTable<'_>) -> Result<Vec<Factor>, FileError> {
        let fields = file.fields(table);
        refuse_too_many(file, &fields)?;
        fields.iter().map(|field| self.factor(field)).collect()
    }

    fn factor(&self, field: &Field<'_, '_, '_>) -> Result<Factor, FileError> {
        let form = self.form(field, "factors")?;
        let key = field.key;
        let Some(values) = field.value.get_ref().as_array() else {
            let hint = format!("such as `{key} = [\"…\", \"…\"]`; options common to all conditions belong to `[base]`");
            return Err(field.key_error(format!("the factor `{key}` is not an array of values"), hint));
        };
        if values.is_empty() {
            let hint = "give it one value for each condition, or leave it out";
            return Err(field.key_error(format!("the factor `{key}` has no value"), hint));
        }
        let mut options: Vec<OptionValue> = Vec::with_capacity(values.len());
        for value in values.iter() {
            let field = Field { value, ..*field };
            let option = self.option(&field, form)?;
            if options.iter().any(|other| other.text == option.text) {
                let cause = format!("the factor `{key}` has the value `{}` twice", option.text);
                return Err(field.error(cause, "more runs of a condition come from `runs` and `blocks`"));
            }
            options.push(option);
        }
        Ok(Factor { key: key.into(), at: field.at, values: options })
    }

    fn option(&self, field: &Field<'_, '_, '_>, form: OptionForm) -> Result<OptionValue, FileError> {
        let key = field.key;
        let typed = |text: &String| match () {
            () if form.is_free => format!("--tag={key}={text}"),
            () if key == TARGET || key == COMMAND => text.clone(),
            () => format!("--{key}={text}"),
        };
        let left_out = |word: &str| (word.to_owned(), Vec::new());
        let (text, words) = match field.value.get_ref() {
            DeValue::Boolean(on) if form.is_flag => {
                (on.to_string(), on.then(|| format!("--{key}")).into_iter().collect())
            }
            _ if form.is_flag => {
                return Err(field.error(format!("`{key}` takes no value"), format!("`{key} = true`, or `false`")));
            }
            DeValue::Array(values) if form.repeats && !values.is_empty() => {
                let texts = scalars(values).ok_or_else(|| self.wrong_type(field))?;
                (texts.join(","), texts.iter().map(typed).collect())
            }
            DeValue::Array(values) if values.is_empty() && key != TARGET && key != COMMAND => left_out(NONE),
            DeValue::String(word) if *word == NONE && !form.knows_none => left_out(NONE),
            // A ping without `--interval` has a name as well.
            DeValue::String(word) if *word == CLOSED && key == "interval" && self.kind == Kind::Ping => {
                left_out(CLOSED)
            }
            DeValue::Array(_) if !form.repeats => {
                return Err(field.error(format!("`{key}` takes one value"), "several values belong to a factor"));
            }
            value => {
                let text = scalar(value).ok_or_else(|| self.wrong_type(field))?;
                (text.clone(), vec![typed(&text)])
            }
        };
        Ok(OptionValue { key: key.into(), name: text.clone(), text, words, at: field.value.span().start })
    }

    fn wrong_type(&self, field: &Field<'_, '_, '_>) -> FileError {
        let (key, noun) = (field.key, field.value.get_ref().type_str());
        let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        let command = self.kind.word();
        let hint = format!("what would be typed behind `latlab {command} --{key}`, as a string or a number");
        field.error(format!("`{key}` cannot be {article} {noun}"), hint)
    }
}

/// The error of a factor that is neither an option nor used.
fn free_factor(field: &Field<'_, '_, '_>, error: FileError) -> FileError {
    let key = field.key;
    let cause = format!("the factor `{key}` is not an option, and no hook and no `target` names `{{{key}}}`");
    FileError { cause, ..error }
}

fn scalars(values: &[Spanned<DeValue<'_>>]) -> Option<Vec<String>> {
    values.iter().map(|value| scalar(value.get_ref())).collect()
}

/// Refuses too many conditions before any is made.
fn refuse_too_many(file: FileText<'_>, fields: &[Field<'_, '_, '_>]) -> Result<(), FileError> {
    let values = |field: &Field<'_, '_, '_>| field.value.get_ref().as_array().map_or(1, |array| array.len()) as u128;
    let conditions = fields.iter().fold(1_u128, |all, field| all.saturating_mul(values(field)));
    if conditions <= defaults::CONDITIONS_MAX as u128 {
        return Ok(());
    }
    let at = fields.first().map_or(0, |field| field.at);
    let count = u64::try_from(conditions).map_or_else(|_| "far too many".into(), grouped);
    let cause = format!("these factors make {count} conditions; the limit is {}", defaults::CONDITIONS_MAX);
    Err(file.error(at, cause, "every combination is a condition: leave out factors or values"))
}

/// The levels of `factors` that `table` names.
pub(super) fn levels(file: FileText<'_>, table: &DeTable<'_>, factors: &[Factor]) -> Result<Factors, FileError> {
    let mut levels = Factors::new();
    for field in file.fields(table) {
        let key = field.key;
        let Some(factor) = factors.iter().find(|factor| factor.key == key) else {
            let known: Vec<&str> = factors.iter().map(|factor| factor.key.as_str()).collect();
            return Err(field.key_error(format!("`{key}` is not a factor"), suggestion(key, &known)));
        };
        let typed = match field.value.get_ref() {
            DeValue::Boolean(on) => Some(on.to_string()),
            DeValue::Array(values) if values.is_empty() => Some(NONE.into()),
            DeValue::Array(values) => scalars(values).map(|texts| texts.join(",")),
            value => scalar(value),
        };
        let values: Vec<&str> = factor.values.iter().map(|value| value.name.as_str()).collect();
        let typed = typed.unwrap_or_default();
        if !values.contains(&typed.as_str()) {
            let cause = format!("the factor `{key}` has no value `{typed}`");
            return Err(field.error(cause, suggestion(&typed, &values)));
        }
        levels.insert(key.into(), typed);
    }
    Ok(levels)
}
