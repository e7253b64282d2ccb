//! `[[compare]]`, settled.

use super::file::{Field, FileError, FileText, ListedTable};
use super::options::{Factor, levels};
use crate::analysis::comparison::parse_estimand;
use crate::metric::Metric;
use crate::plan::{Contrast, Factors, Kind};
use crate::units::human::{self, suggestion};

const KEYS: [&str; 4] = ["metric", "statistic", "baseline", "equivalence"];
const STATISTIC_HINT: &str = "`mean`, a quantile such as `p50` or `p99.9`, or a ratio such as `loss_ratio`";

/// The contrasts that `[[compare]]` names; without it the usual two of the kind.
pub(super) fn contrasts(
    file: FileText<'_>,
    kind: Kind,
    field: Option<Field<'_, '_, '_>>,
    factors: &[Factor],
) -> Result<Vec<Contrast>, FileError> {
    let Some(field) = field else {
        let usual = |statistic: &str| Contrast { statistic: statistic.into(), ..empty(kind) };
        return Ok(kind.compared_statistics().map(usual).into());
    };
    field.tables()?.into_iter().map(|table| contrast(file, kind, &table, factors)).collect()
}

const fn empty(kind: Kind) -> Contrast {
    Contrast { metric: kind.metric(), statistic: String::new(), baseline: Factors::new(), equivalence: None }
}

fn contrast(
    file: FileText<'_>,
    kind: Kind,
    table: &ListedTable<'_, '_>,
    factors: &[Factor],
) -> Result<Contrast, FileError> {
    let mut contrast = empty(kind);
    for field in file.fields(table.table) {
        match field.key {
            "metric" => contrast.metric = metric(&field, kind)?,
            "statistic" => contrast.statistic = statistic(&field)?,
            "baseline" => contrast.baseline = baseline(&field, factors)?,
            "equivalence" => {
                let share = human::parse_percent(field.text()?).map_err(|error| field.unreadable(error))?;
                contrast.equivalence = Some(share);
            }
            _ => return Err(field.unknown_key("compare", &KEYS)),
        }
    }
    if contrast.statistic.is_empty() {
        return Err(file.error(table.at, "this comparison has no `statistic`", STATISTIC_HINT));
    }
    Ok(contrast)
}

fn metric(field: &Field<'_, '_, '_>, kind: Kind) -> Result<Metric, FileError> {
    let text = field.text()?;
    let error = || {
        let known: Vec<&str> = kind.metrics().iter().map(|metric| metric.name()).collect();
        field.error(format!("`{text}` is no metric of a {}", kind.word()), suggestion(text, &known))
    };
    Metric::from_name(text).filter(|metric| kind.metrics().contains(metric)).ok_or_else(error)
}

fn statistic(field: &Field<'_, '_, '_>) -> Result<String, FileError> {
    let text = field.text()?.trim();
    match parse_estimand(None, text) {
        Ok(_) if text.split_whitespace().count() == 1 => Ok(text.into()),
        Ok(_) => Err(field.error(format!("`{text}` is no statistic of a run"), STATISTIC_HINT)),
        Err(error) => Err(field.error(format!("`{text}` is no statistic of a run: {}", error.cause), error.hint)),
    }
}

/// `{ load = "none" }`: factors of this file, with values of this file.
fn baseline(field: &Field<'_, '_, '_>, factors: &[Factor]) -> Result<Factors, FileError> {
    let Some(table) = field.value.get_ref().as_table() else {
        return Err(field.error("`baseline` is no table of factors", "such as `baseline = { load = \"none\" }`"));
    };
    levels(field.file, table, factors)
}
