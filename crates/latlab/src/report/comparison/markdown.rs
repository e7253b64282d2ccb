//! Comparisons as Markdown, for pull requests.

use super::view::{ComparisonView, PairView};
use crate::diagnostics::Severity;

/// The tables, ending in a newline.
pub fn render(view: &ComparisonView) -> String {
    let mut out = format!("**{}**\n\n", escaped(&view.heading));
    out += &table(&view.pairs, true);
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

fn table(pairs: &[PairView], judged: bool) -> String {
    let mut headings = vec!["comparison", "", "baseline", "candidate", "change"];
    let mut rule = vec!["---", "---", "---:", "---:", "---"];
    if judged {
        headings.extend(["verdict", "p"]);
        rule.extend(["---", "---:"]);
    }
    let line = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let mut out = line(&headings) + &line(&rule);
    for pair in pairs {
        let name = format!("{} → {}", escaped(&pair.baseline), escaped(&pair.candidate));
        for row in &pair.rows {
            let verdict = match &row.reason {
                Some(reason) => format!("{}: {}", row.verdict, escaped(reason)),
                None => row.verdict.clone(),
            };
            let mut cells = vec![name.as_str(), &row.label, &row.baseline, &row.candidate, &row.change];
            if judged {
                cells.extend([verdict.as_str(), row.p.as_str()]);
            }
            out += &line(&cells);
        }
    }
    out
}

/// Without what would end a cell or begin markup. Inside of code nothing is markup, and an entity would be shown as it
/// stands; a bar ends a cell there too.
fn escaped(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let parts: Vec<&str> = text.split('`').collect();
    // a name with a grave accent of its own pairs with no other
    let is_paired = parts.len() % 2 == 1;
    let each = parts.iter().enumerate().map(|(place, part)| match is_paired && place % 2 == 1 {
        true => part.replace('|', "\\|"),
        false => part.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*"),
    });
    each.collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn code_stays_as_it_is() {
        for (text, shown) in [
            ("gate `p50 <= +5%` kept by `<a|b>`", "gate `p50 <= +5%` kept by `<a\\|b>`"),
            ("a*b <c>\nd", "a\\*b &lt;c> d"),
            ("one ` <b>", "one ` &lt;b>"),
        ] {
            assert_eq!(escaped(text), shown);
        }
    }
}
