//! `[[compare]]`, settled.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::design::Field;
use super::options::{Factor, NONE};
use super::page::{FileError, FileText, entries, scalar};
use crate::analysis::comparison::parse_estimand;
use crate::metric::Metric;
use crate::plan::{Contrast, Factors, Kind};
use crate::units::human::{self, suggestion};

const CONTRAST_KEYS: [&str; 4] = ["metric", "statistic", "baseline", "equivalence"];
const STATISTIC_HINT: &str = "`mean`, a quantile such as `p50` or `p99.9`, or a ratio such as `loss_ratio`";

/// What `[[compare]]` asks for; without it the usual two rows.
pub(super) fn contrasts(
    page: FileText<'_>,
    kind: Kind,
    rows: Option<&Spanned<DeValue<'_>>>,
    factors: &[Factor],
) -> Result<Vec<Contrast>, FileError> {
    let Some(value) = rows else {
        let usual = |statistic: &str| Contrast {
            metric: kind.metric(),
            statistic: statistic.into(),
            baseline: Factors::new(),
            equivalence: None,
        };
        return Ok(kind.compared_statistics().map(usual).into());
    };
    let tables = page.list(value, "compare")?;
    tables.into_iter().map(|(table, at)| contrast((page, kind), table, at, factors)).collect()
}

fn contrast(
    (page, kind): (FileText<'_>, Kind),
    table: &DeTable<'_>,
    at: usize,
    factors: &[Factor],
) -> Result<Contrast, FileError> {
    let mut contrast =
        Contrast { metric: kind.metric(), statistic: String::new(), baseline: Factors::new(), equivalence: None };
    for (key, span, value) in entries(table) {
        let field = Field { page, key, value };
        match key {
            "metric" => contrast.metric = metric(&field, kind)?,
            "statistic" => contrast.statistic = statistic(&field)?,
            "baseline" => contrast.baseline = baseline(&field, factors)?,
            "equivalence" => {
                let text = field.text()?;
                contrast.equivalence = Some(human::parse_percent(text).map_err(|error| field.unreadable(error))?);
            }
            _ => return Err(page.unknown(key, span.start, "compare", &CONTRAST_KEYS)),
        }
    }
    if contrast.statistic.is_empty() {
        return Err(page.refuse(at, "this comparison has no `statistic`", STATISTIC_HINT));
    }
    Ok(contrast)
}

fn metric(field: &Field<'_, '_, '_>, kind: Kind) -> Result<Metric, FileError> {
    let text = field.text()?;
    let refusal = || {
        let known: Vec<&str> = kind.metrics().iter().map(|metric| metric.name()).collect();
        field.refuse(format!("`{text}` is no metric of a {}", kind.word()), suggestion(text, &known))
    };
    Metric::from_name(text).filter(|metric| kind.metrics().contains(metric)).ok_or_else(refusal)
}

fn statistic(field: &Field<'_, '_, '_>) -> Result<String, FileError> {
    let text = field.text()?.trim();
    match parse_estimand(None, text) {
        Ok(_) if text.split_whitespace().count() == 1 => Ok(text.into()),
        Ok(_) => Err(field.refuse(format!("`{text}` is no statistic of a run"), STATISTIC_HINT)),
        Err(error) => Err(field.refuse(format!("`{text}` is no statistic of a run: {}", error.cause), error.hint)),
    }
}

/// `{ load = "none" }`: factors of this file, with values of this file.
fn baseline(field: &Field<'_, '_, '_>, factors: &[Factor]) -> Result<Factors, FileError> {
    let Some(table) = field.value.get_ref().as_table() else {
        return Err(field.refuse("`baseline` is no table of factors", "such as `baseline = { load = \"none\" }`"));
    };
    chosen(field.page, table, factors)
}

/// Values of `factors`, as `table` names them.
pub(super) fn chosen(page: FileText<'_>, table: &DeTable<'_>, factors: &[Factor]) -> Result<Factors, FileError> {
    let mut chosen = Factors::new();
    for (key, span, value) in entries(table) {
        let known: Vec<&str> = factors.iter().map(|factor| factor.key.as_str()).collect();
        let Some(factor) = factors.iter().find(|factor| factor.key == key) else {
            return Err(page.refuse(span.start, format!("`{key}` is no factor"), suggestion(key, &known)));
        };
        let typed = match value.get_ref() {
            DeValue::Boolean(on) => Some(on.to_string()),
            DeValue::Array(values) if values.is_empty() => Some(NONE.into()),
            DeValue::Array(values) => {
                let texts: Option<Vec<_>> = values.iter().map(|value| scalar(value.get_ref())).collect();
                texts.map(|texts| texts.join(","))
            }
            value => scalar(value),
        };
        let values: Vec<&str> = factor.values.iter().map(|value| value.text.as_str()).collect();
        let typed = typed.unwrap_or_default();
        if !values.contains(&typed.as_str()) {
            let at = value.span().start;
            let cause = format!("the factor `{key}` has no value `{typed}`");
            return Err(page.refuse(at, cause, suggestion(&typed, &values)));
        }
        chosen.insert(key.into(), typed);
    }
    Ok(chosen)
}
