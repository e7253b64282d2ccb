//! Resolution of `[design]` and `[[compare]]` of an experiment file.

use std::collections::BTreeSet;

use super::file::{Field, FileError, FileText, ListedTable, scalar};
use super::options::{Factor, levels};
use crate::analysis::comparison::parse_estimand;
use crate::metric::Metric;
use crate::plan::{
    BetweenBlocks, Contrast, Design, ExperimentCondition, Factors, Kind, RunOrder, RunSpec, RunsRule, defaults,
};
use crate::stats::LOOKS_MAX;
use crate::units::Nanos;
use crate::units::human::{self, suggestion};

const DESIGN_KEYS: [&str; 9] =
    ["runs", "max-runs", "warmup-runs", "blocks", "between-blocks", "order", "seed", "settle", "looks"];

/// `until p99 ±3%`
struct UntilRule {
    statistic: String,
    half_width: f64,
    /// The position in the file.
    at: usize,
}

struct RunsCap {
    most: u32,
    /// The position in the file.
    at: usize,
}

/// The design that the fields of `[design]` and the defaults make.
pub(super) fn design(file: FileText<'_>, fields: Vec<Field<'_, '_, '_>>) -> Result<Design, FileError> {
    let mut design = Design {
        runs: RunsRule::PerBlock(defaults::EXPERIMENT_RUNS),
        warmup_runs: 0,
        blocks: 1,
        between: BetweenBlocks::Nothing,
        order: RunOrder::Randomized,
        seed: None,
        settle: defaults::EXPERIMENT_SETTLE,
        looks: None,
    };
    let (mut until, mut cap) = (None, None);
    for field in fields {
        match field.key {
            "runs" => match field.value.get_ref().as_str() {
                Some(text) => until = Some(field.until(text)?),
                None => design.runs = RunsRule::PerBlock(field.whole(1, u32::MAX)?),
            },
            "max-runs" => cap = Some(RunsCap { most: field.whole(1, u32::MAX)?, at: field.at }),
            "warmup-runs" => design.warmup_runs = field.whole(0, 1_000_u32)?,
            "blocks" => design.blocks = field.whole(1, defaults::BLOCKS_MAX)?,
            "between-blocks" => design.between = field.between()?,
            "order" => design.order = field.order()?,
            "seed" => design.seed = Some(field.whole(0, i64::MAX as u64)?),
            "settle" => design.settle = field.span()?,
            "looks" => design.looks = Some(field.whole(1, LOOKS_MAX)?),
            _ => return Err(field.unknown_key("design", &DESIGN_KEYS)),
        }
    }
    if let Some(rule) = stop_rule(file, until, cap)? {
        design.runs = rule;
    }
    Ok(design)
}

/// The stop rule; `None` if the number of runs is fixed.
fn stop_rule(
    file: FileText<'_>,
    until: Option<UntilRule>,
    cap: Option<RunsCap>,
) -> Result<Option<RunsRule>, FileError> {
    match (until, cap) {
        (None, None) => Ok(None),
        (None, Some(RunsCap { at, .. })) => {
            let hint = "leave it out, or write `runs = \"until p99 ±3%\"`";
            Err(file.error(at, "`max-runs` limits a rule, but `runs` is a number", hint))
        }
        (Some(UntilRule { at, .. }), None) => {
            let cause = "`runs = \"until …\"` needs `max-runs`: intervals may never become narrow enough";
            Err(file.error(at, cause, "such as `max-runs = 60`, per condition"))
        }
        (Some(_), Some(RunsCap { most, at })) if most < defaults::UNTIL_RUNS_MIN => {
            let cause = format!("with {most} runs the width of the interval is not known");
            Err(file.error(at, cause, format!("{} or more", defaults::UNTIL_RUNS_MIN)))
        }
        (Some(UntilRule { statistic, half_width, .. }), Some(RunsCap { most, .. })) => {
            Ok(Some(RunsRule::Until { statistic, half_width, most }))
        }
    }
}

impl Field<'_, '_, '_> {
    fn whole<T: TryFrom<u64>>(&self, least: u64, most: impl Into<u64>) -> Result<T, FileError> {
        let most = most.into();
        let typed = scalar(self.value.get_ref()).filter(|_| self.value.get_ref().is_integer());
        let number = typed.as_deref().and_then(|text| text.parse::<u64>().ok()).filter(|n| (least..=most).contains(n));
        let error = || {
            let cause = match scalar(self.value.get_ref()) {
                Some(typed) => format!("`{}` cannot be `{typed}`", self.key),
                None => format!("`{}` is not a number", self.key),
            };
            self.error(cause, format!("a whole number from {least} to {most}"))
        };
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(error)
    }

    fn order(&self) -> Result<RunOrder, FileError> {
        match self.text()? {
            "randomized" => Ok(RunOrder::Randomized),
            "shuffled" => Ok(RunOrder::Shuffled),
            "listed" => Ok(RunOrder::Listed),
            text => {
                let hint = suggestion(text, &["randomized", "shuffled", "listed"]);
                Err(self.error(format!("`{}` cannot be `{text}`", self.key), hint))
            }
        }
    }

    fn span(&self) -> Result<Nanos, FileError> {
        let span = human::parse_duration(self.text()?).map_err(|error| self.unreadable(error))?;
        if span <= defaults::PAUSE_MAX {
            return Ok(span);
        }
        let most = human::typed_span(defaults::PAUSE_MAX);
        Err(self.error(format!("`{}` is longer than {most}", self.key), "check the unit"))
    }

    fn between(&self) -> Result<BetweenBlocks, FileError> {
        const FORMS: &str = "`none`, `pause 10m` or `reboot`";
        match self.text()?.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["none"] => Ok(BetweenBlocks::Nothing),
            ["reboot"] => Ok(BetweenBlocks::Reboot),
            ["pause"] => Err(self.error("`pause` needs to know how long", FORMS)),
            ["pause", span] => {
                let span = human::parse_duration(span).map_err(|error| self.unreadable(error))?;
                if span > Nanos::ZERO && span <= defaults::PAUSE_MAX {
                    return Ok(BetweenBlocks::Pause(span));
                }
                let most = human::typed_span(defaults::PAUSE_MAX);
                Err(self.error("the length of the pause is out of range", format!("up to {most}")))
            }
            _ => Err(self.error(format!("`{}` cannot be `{}`", self.key, self.text()?), FORMS)),
        }
    }

    fn until(&self, text: &str) -> Result<UntilRule, FileError> {
        const FORM: &str = "a number of runs, or `\"until p99 ±3%\"`";
        let malformed = |cause: String| self.error(cause, FORM);
        let words: Vec<&str> = text.split_whitespace().collect();
        let ["until", statistic, width @ ..] = words.as_slice() else {
            return Err(malformed(format!("`runs` cannot be `{text}`")));
        };
        if !(*statistic == "mean" || human::parse_quantile(statistic).is_some()) {
            return Err(malformed(format!("the width of `{statistic}` is not available: use `mean` or a quantile")));
        }
        let width = width.concat();
        let share = width.strip_prefix('±').or_else(|| width.strip_prefix("+-"));
        let share = share.ok_or_else(|| malformed("it has no `±` before the width".into()))?;
        let half_width = human::parse_percent(share).map_err(|error| self.unreadable(error))?;
        if half_width > 0.0 && half_width < 1.0 {
            return Ok(UntilRule { statistic: (*statistic).into(), half_width, at: self.at });
        }
        Err(malformed(format!("an interval cannot be ±{} wide", human::typed_percent(half_width))))
    }
}

const COMPARE_KEYS: [&str; 4] = ["metric", "statistic", "baseline", "equivalence"];
const STATISTIC_HINT: &str = "`mean`, a quantile such as `p99.9` or `0.999`, or a ratio such as `loss_ratio`";

/// The contrasts that `[[compare]]` names; without it the usual ones of the first of `conditions`.
pub(super) fn contrasts(
    file: FileText<'_>,
    kind: Kind,
    conditions: &[ExperimentCondition],
    field: Option<Field<'_, '_, '_>>,
    factors: &[Factor],
) -> Result<Vec<Contrast>, FileError> {
    let runs = || conditions.iter().flat_map(|condition| &condition.plan.runs);
    let Some(field) = field else {
        let usual = |(metric, statistic): (_, &str)| Contrast { statistic: statistic.into(), ..empty(metric) };
        return Ok(runs().next().into_iter().flat_map(RunSpec::compared).map(usual).collect());
    };
    let known: BTreeSet<Metric> = kind.metrics().iter().copied().chain(runs().flat_map(RunSpec::metrics)).collect();
    let tables = field.tables()?;
    if tables.len() > defaults::CONTRASTS_MAX {
        let cause = format!("{} comparisons are more than {}", tables.len(), defaults::CONTRASTS_MAX);
        return Err(field.error(cause, "list the ones that you need"));
    }
    tables.into_iter().map(|table| contrast(file, kind, &known, &table, factors)).collect()
}

const fn empty(metric: Metric) -> Contrast {
    Contrast { metric, statistic: String::new(), baseline: Factors::new(), equivalence: None }
}

fn contrast(
    file: FileText<'_>,
    kind: Kind,
    known: &BTreeSet<Metric>,
    table: &ListedTable<'_, '_>,
    factors: &[Factor],
) -> Result<Contrast, FileError> {
    let mut contrast = empty(kind.metric());
    for field in file.fields(table.table) {
        match field.key {
            "metric" => contrast.metric = metric(&field, kind, known)?,
            "statistic" => contrast.statistic = statistic(&field)?,
            "baseline" => contrast.baseline = baseline(&field, factors)?,
            "equivalence" => {
                let share = human::parse_percent(field.text()?).map_err(|error| field.unreadable(error))?;
                contrast.equivalence = Some(share);
            }
            _ => return Err(field.unknown_key("compare", &COMPARE_KEYS)),
        }
    }
    if contrast.statistic.is_empty() {
        return Err(file.error(table.at, "this comparison has no `statistic`", STATISTIC_HINT));
    }
    Ok(contrast)
}

fn metric(field: &Field<'_, '_, '_>, kind: Kind, known: &BTreeSet<Metric>) -> Result<Metric, FileError> {
    let text = field.text()?;
    let error = || {
        let names: Vec<&str> = known.iter().map(|metric| metric.name()).collect();
        field.error(format!("`{text}` is not a metric of a {}", kind.word()), suggestion(text, &names))
    };
    let named = Metric::from_name(text).map(Metric::name);
    known.iter().copied().find(|metric| Some(metric.name()) == named).ok_or_else(error)
}

fn statistic(field: &Field<'_, '_, '_>) -> Result<String, FileError> {
    let typed = scalar(field.value.get_ref());
    let text = typed.as_deref().map_or_else(|| field.text(), Ok)?.trim();
    match parse_estimand(None, text) {
        Ok(_) if text.split_whitespace().count() == 1 => Ok(text.into()),
        Ok(_) => Err(field.error(format!("`{text}` is not a statistic of a run"), STATISTIC_HINT)),
        Err(error) => Err(field.error(format!("`{text}` is not a statistic of a run: {}", error.cause), error.hint)),
    }
}

/// `{ load = "none" }`: factors of this file, with values of this file.
fn baseline(field: &Field<'_, '_, '_>, factors: &[Factor]) -> Result<Factors, FileError> {
    let Some(table) = field.value.get_ref().as_table() else {
        return Err(field.error("`baseline` is not a table of factors", "such as `baseline = { load = \"none\" }`"));
    };
    levels(field.file, table, factors)
}
