//! `[design]`, settled.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::page::{FileError, FileText, entries, scalar};
use crate::plan::{BetweenBlocks, Design, RunOrder, RunsRule, defaults};
use crate::units::Nanos;
use crate::units::human::{self, ParseError, suggestion};

const DESIGN_KEYS: [&str; 8] =
    ["runs", "max-runs", "warmup-runs", "blocks", "between-blocks", "order", "seed", "settle"];

/// What `[design]` says and does not say.
pub(super) fn design(page: FileText<'_>, table: Option<&DeTable<'_>>) -> Result<Design, FileError> {
    let mut read = DesignReader::new(page);
    for (key, span, value) in table.map(entries).unwrap_or_default() {
        if !DESIGN_KEYS.contains(&key) {
            return Err(page.unknown(key, span.start, "design", &DESIGN_KEYS));
        }
        read.take(key, span, value)?;
    }
    read.settle()
}

/// A value with its place.
type At<T> = (T, usize);

struct DesignReader<'a> {
    page: FileText<'a>,
    design: Design,
    most: Option<At<u32>>,
    until: Option<At<(String, f64)>>,
}

impl<'a> DesignReader<'a> {
    fn new(page: FileText<'a>) -> DesignReader<'a> {
        let design = Design {
            runs: RunsRule::PerBlock(defaults::EXPERIMENT_RUNS),
            warmup_runs: 0,
            blocks: 1,
            between: BetweenBlocks::Nothing,
            order: RunOrder::Randomized,
            seed: defaults::EXPERIMENT_SEED,
            settle: defaults::EXPERIMENT_SETTLE,
        };
        DesignReader { page, design, most: None, until: None }
    }

    fn take(&mut self, key: &str, span: Range<usize>, value: &Spanned<DeValue<'_>>) -> Result<(), FileError> {
        let field = Field { page: self.page, key, value };
        match key {
            "runs" => match value.get_ref().as_str() {
                Some(text) => self.until = Some((field.until(text)?, span.start)),
                None => self.design.runs = RunsRule::PerBlock(field.whole(1, u32::MAX)?),
            },
            "max-runs" => self.most = Some((field.whole(1, u32::MAX)?, span.start)),
            "warmup-runs" => self.design.warmup_runs = field.whole(0, 1_000_u32)?,
            "blocks" => self.design.blocks = field.whole(1, defaults::BLOCKS_MAX)?,
            "between-blocks" => self.design.between = field.between()?,
            "order" => {
                self.design.order = match field.word(&["randomized", "listed"])? {
                    "listed" => RunOrder::Listed,
                    _ => RunOrder::Randomized,
                }
            }
            "seed" => self.design.seed = field.whole(0, i64::MAX as u64)?,
            _ => self.design.settle = field.span()?,
        }
        Ok(())
    }

    fn settle(self) -> Result<Design, FileError> {
        let DesignReader { page, mut design, most, until } = self;
        match (until, most) {
            (None, None) => {}
            (None, Some((_, at))) => {
                let hint = "leave it out, or write `runs = \"until p99 ±3%\"`";
                return Err(page.refuse(at, "`max-runs` is the cap of a rule, and `runs` is a number", hint));
            }
            (Some((_, at)), None) => {
                let cause = "`runs = \"until …\"` needs `max-runs`: intervals may never become so narrow";
                return Err(page.refuse(at, cause, "such as `max-runs = 60`, per condition"));
            }
            (Some(_), Some((most, at))) if most < defaults::UNTIL_RUNS_MIN => {
                let cause = format!("{most} runs do not know how wide their interval should be");
                return Err(page.refuse(at, cause, format!("{} or more", defaults::UNTIL_RUNS_MIN)));
            }
            (Some(((statistic, half_width), _)), Some((most, _))) => {
                design.runs = RunsRule::Until { statistic, half_width, most };
            }
        }
        Ok(design)
    }
}

/// One key of a table with its value.
pub(super) struct Field<'a, 't, 'i> {
    pub(super) page: FileText<'a>,
    pub(super) key: &'t str,
    pub(super) value: &'t Spanned<DeValue<'i>>,
}

impl<'t> Field<'_, 't, '_> {
    pub(super) fn refuse(&self, cause: impl Into<String>, hint: impl Into<String>) -> FileError {
        self.page.refuse(self.value.span().start, cause, hint)
    }

    pub(super) fn unreadable(&self, error: ParseError) -> FileError {
        self.refuse(format!("{error} for `{}`: {}", self.key, error.cause), error.hint.clone())
    }

    pub(super) fn text(&self) -> Result<&'t str, FileError> {
        let kind = self.value.get_ref().type_str();
        let refusal = || self.refuse(format!("`{}` is no text but of the type {kind}", self.key), "put it in quotes");
        self.value.get_ref().as_str().ok_or_else(refusal)
    }

    fn whole<T: TryFrom<u64>>(&self, least: u64, most: impl Into<u64>) -> Result<T, FileError> {
        let most = most.into();
        let typed = scalar(self.value.get_ref()).filter(|_| self.value.get_ref().is_integer());
        let number = typed.as_deref().and_then(|text| text.parse::<u64>().ok()).filter(|n| (least..=most).contains(n));
        let refusal = || {
            let typed = typed.clone().or_else(|| scalar(self.value.get_ref()));
            let cause = match typed {
                Some(typed) => format!("`{}` cannot be `{typed}`", self.key),
                None => format!("`{}` is no number", self.key),
            };
            self.refuse(cause, format!("a whole number from {least} to {most}"))
        };
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(refusal)
    }

    fn word(&self, known: &[&str]) -> Result<&'t str, FileError> {
        let text = self.text()?;
        if known.contains(&text) {
            return Ok(text);
        }
        Err(self.refuse(format!("`{}` cannot be `{text}`", self.key), suggestion(text, known)))
    }

    fn span(&self) -> Result<Nanos, FileError> {
        let span = human::parse_duration(self.text()?).map_err(|error| self.unreadable(error))?;
        if span <= defaults::PAUSE_MAX {
            return Ok(span);
        }
        let most = human::typed_span(defaults::PAUSE_MAX);
        Err(self.refuse(format!("`{}` is longer than {most}", self.key), "see the unit"))
    }

    fn between(&self) -> Result<BetweenBlocks, FileError> {
        const FORMS: &str = "`none`, `pause 10m` or `reboot`";
        match self.text()?.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["none"] => Ok(BetweenBlocks::Nothing),
            ["reboot"] => Ok(BetweenBlocks::Reboot),
            ["pause"] => Err(self.refuse("`pause` needs to know how long", FORMS)),
            ["pause", span] => {
                let span = human::parse_duration(span).map_err(|error| self.unreadable(error))?;
                if span > Nanos::ZERO && span <= defaults::PAUSE_MAX {
                    return Ok(BetweenBlocks::Pause(span));
                }
                let most = human::typed_span(defaults::PAUSE_MAX);
                Err(self.refuse("a pause is no longer than that, and no shorter than nothing", format!("up to {most}")))
            }
            _ => Err(self.refuse(format!("`{}` cannot be `{}`", self.key, self.text()?), FORMS)),
        }
    }

    /// `until p99 ±3%`.
    fn until(&self, text: &str) -> Result<(String, f64), FileError> {
        const FORM: &str = "a number of runs, or `\"until p99 ±3%\"`";
        let malformed = |cause: String| self.refuse(cause, FORM);
        let words: Vec<&str> = text.split_whitespace().collect();
        let ["until", statistic, width @ ..] = words.as_slice() else {
            return Err(malformed(format!("`runs` cannot be `{text}`")));
        };
        if !(*statistic == "mean" || is_quantile(statistic)) {
            return Err(malformed(format!("the width of `{statistic}` cannot be looked at: `mean` or a quantile can")));
        }
        let width = width.concat();
        let share = width.strip_prefix('±').or_else(|| width.strip_prefix("+-"));
        let share = share.ok_or_else(|| malformed("it has no `±` before the width".into()))?;
        let share = human::parse_percent(share).map_err(|error| self.unreadable(error))?;
        if share > 0.0 && share < 1.0 {
            return Ok(((*statistic).into(), share));
        }
        Err(malformed(format!("no interval can be asked to be ±{} wide", human::typed_percent(share))))
    }
}

/// `p50`, `p99.9`.
fn is_quantile(statistic: &str) -> bool {
    let percent = statistic.strip_prefix('p').and_then(|digits| digits.parse::<f64>().ok());
    percent.is_some_and(|percent| percent > 0.0 && percent < 100.0)
}
