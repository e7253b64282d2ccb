//! Rendering of comparisons as Markdown and CSV.

use super::view::{ComparisonView, ContrastView};
use crate::analysis::comparison::{Comparison, Comparisons};
use crate::diagnostics::Severity;
use crate::stats::Interval;

/// Renders Markdown tables with a final newline.
pub fn render(view: &ComparisonView) -> String {
    let mut out = format!("**{}**\n\n", escaped(&view.heading));
    out += &view.common.iter().map(|common| format!("{}\n\n", escaped(common))).collect::<String>();
    if !view.contrasts.is_empty() {
        out += &table(&view.contrasts, true);
    }
    if !view.shifts.is_empty() {
        out += "\nAlong the distribution (intervals, no verdicts):\n\n";
        out += &table(&view.shifts, false);
    }
    for line in view.gates.iter().chain(&view.footnotes) {
        out += &format!("\n{}\n", escaped(line));
    }
    let serious = view.caveats.iter().filter(|caveat| caveat.severity > Severity::Note);
    for caveat in serious {
        out += &format!("\n> **warning:** {}  \n> effect: {}\n", escaped(&caveat.message), escaped(&caveat.effect));
    }
    out
}

/// A warning of one line as Markdown, with a final newline.
pub(crate) fn warning(message: &str) -> String {
    format!("> **warning:** {}\n", escaped(message))
}

fn table(contrasts: &[ContrastView], judged: bool) -> String {
    let mut headings = vec!["comparison", "", "baseline", "candidate", "change"];
    let mut rule = vec!["---", "---", "---:", "---:", "---"];
    if judged {
        headings.extend(["verdict", "p"]);
        rule.extend(["---", "---:"]);
    }
    let line = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let mut out = line(&headings) + &line(&rule);
    for contrast in contrasts {
        let title = escaped(&contrast.title);
        for row in &contrast.rows {
            let verdict = match row.remark() {
                Some(remark) => format!("{}: {}", row.verdict, escaped(&remark)),
                None => row.verdict.clone(),
            };
            let label = escaped(&row.label.join(", "));
            let mut cells = vec![title.as_str(), &label, &row.baseline, &row.candidate, &row.change];
            if judged {
                cells.extend([verdict.as_str(), row.p.as_str()]);
            }
            out += &line(&cells);
        }
    }
    out
}

/// Escapes characters that end a cell or begin markup. In code spans only bars are escaped: they end a cell, but
/// markup and entities have no effect. Grave accents that are not all single and in pairs begin no code span.
fn escaped(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let parts: Vec<&str> = text.split('`').collect();
    // A grave accent within a name must not pair with another. Two in a row are another mark than one.
    let is_paired = parts.len() % 2 == 1 && !text.contains("``");
    let each = parts.iter().enumerate().map(|(place, part)| match is_paired && place % 2 == 1 {
        true => part.replace('|', "\\|"),
        false => {
            let part = part.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*");
            // The middle of a link or an image.
            part.replace("](", "]\\(")
        }
    });
    each.collect::<Vec<_>>().join(if is_paired { "`" } else { "\\`" })
}

const COLUMNS: &str = "metric,statistic,unit,baseline,candidate,baseline_runs,candidate_runs,blocks,baseline_value,\
                       candidate_value,difference,difference_low,difference_high,relative,relative_low,relative_high,\
                       confidence,verdict,p_value,adjusted_p_value,runs_needed,margin,equivalence_p_value,\
                       adjusted_equivalence_p_value,reason";

/// Renders CSV with a header line and a final newline; rows along the distribution have an empty verdict.
pub fn csv(comparisons: &Comparisons) -> String {
    let judged = comparisons.rows.iter().map(|row| csv_line(row, comparisons, true));
    let shifts = comparisons.shifts.iter().map(|row| csv_line(row, comparisons, false));
    let lines: String = judged.chain(shifts).collect();
    format!("{COLUMNS}\n{lines}")
}

fn csv_line(row: &Comparison, comparisons: &Comparisons, judged: bool) -> String {
    let name = |place: usize| quoted(&comparisons.groups.groups[place].name);
    let number =
        |value: Option<f64>| value.filter(|value| value.is_finite()).map(|value| value.to_string()).unwrap_or_default();
    let ends =
        |interval: Option<Interval>| [interval.and_then(|it| it.low), interval.and_then(|it| it.high)].map(number);
    let [low, high] = ends(row.difference.map(|effect| effect.interval));
    let [relative_low, relative_high] = ends(row.relative.map(|effect| effect.interval));
    let verdict = if judged { row.verdict.word() } else { "" };
    let cells = [
        row.quantity.metric_name().into(),
        row.quantity.statistic_name(),
        row.quantity.unit().unwrap_or_default().into(),
        name(row.baseline),
        name(row.candidate),
        row.evidence.runs.0.to_string(),
        row.evidence.runs.1.to_string(),
        row.evidence.blocks.to_string(),
        number(row.centres.map(|centres| centres.0)),
        number(row.centres.map(|centres| centres.1)),
        number(row.difference.map(|effect| effect.value)),
        low,
        high,
        number(row.relative.map(|effect| effect.value)),
        relative_low,
        relative_high,
        comparisons.options.confidence.to_string(),
        verdict.into(),
        number(row.p_value),
        number(row.adjusted_p_value),
        row.undecided.and_then(|why| why.runs_needed()).map(|count| count.to_string()).unwrap_or_default(),
        number(row.margin),
        number(row.p_equivalent),
        number(row.adjusted_p_equivalent),
        row.undecided.filter(|_| judged).map(|why| why.code()).unwrap_or_default().into(),
    ];
    cells.join(",") + "\n"
}

/// `text` as a cell of CSV: quoted if necessary (RFC 4180).
pub(crate) fn quoted(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn code_spans_are_not_escaped() {
        for (text, shown) in [
            ("gate `p50 <= +5%` met for `<a|b>`", "gate `p50 <= +5%` met for `<a\\|b>`"),
            ("a*b <c>\nd", "a\\*b &lt;c> d"),
            ("one ` <b>", "one \\` &lt;b>"),
            ("``a```<b>`", "\\`\\`a\\`\\`\\`&lt;b>\\`"),
            ("![a](http://b)", "![a]\\(http://b)"),
        ] {
            assert_eq!(escaped(text), shown);
        }
    }
}
