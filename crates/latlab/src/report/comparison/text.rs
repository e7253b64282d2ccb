//! Rendering of comparisons as text in 80 columns: effect first, p value last.

use super::view::{ChangeView, ComparisonView, PairView};
use crate::report::text::caveat_lines;
use crate::report::text::{Style, width, wrap};

/// Distance of adjacent columns in characters.
const GAP: usize = 2;
/// Width of a p value in characters.
const P_WIDTH: usize = 6;

/// Renders the report with a final newline.
pub fn render(view: &ComparisonView, style: Style) -> String {
    let mut sections: Vec<Vec<String>> = vec![wrap(&view.heading, style.width)];
    sections.push(table(&view.pairs, style));
    if !view.shifts.is_empty() {
        let mut lines = vec![style.strong("along the distribution (intervals, no verdicts)")];
        lines.extend(table(&view.shifts, style));
        sections.push(lines);
    }
    let mut closing = Vec::new();
    for line in view.gates.iter().chain(&view.footnotes) {
        closing.extend(wrap(line, style.width));
    }
    sections.push(closing);
    sections.push(caveat_lines(&view.caveats, style));
    let sections = sections.into_iter().filter(|lines| !lines.is_empty());
    sections.map(|lines| lines.join("\n") + "\n").collect::<Vec<_>>().join("\n")
}

/// Column widths over all pairs, so that pairs are aligned.
struct Columns {
    label: usize,
    baseline: usize,
    candidate: usize,
    change: usize,
    verdict: usize,
}

impl Columns {
    fn of(pairs: &[PairView]) -> Columns {
        let widest = |heading: &str, cell: fn(&ChangeView) -> &String| {
            let cells = pairs.iter().flat_map(|pair| &pair.rows).map(|row| width(cell(row)));
            cells.chain([width(heading)]).max().unwrap_or(0)
        };
        Columns {
            label: widest("", |row| &row.label),
            baseline: widest("baseline", |row| &row.baseline),
            candidate: widest("candidate", |row| &row.candidate),
            change: widest("change", |row| &row.change),
            verdict: widest("", |row| &row.verdict),
        }
    }

    /// Returns the width of a line including verdict and p value.
    fn width(&self) -> usize {
        let each = [self.label, self.baseline, self.candidate, self.change, self.verdict, P_WIDTH];
        1 + each.iter().sum::<usize>() + GAP * (each.len() - 1)
    }

    /// Formats the first four cells.
    fn figures(&self, [label, baseline, candidate, change]: [&str; 4]) -> String {
        let right_aligned = |text: &str, available: usize| format!("{}{text}{}", pad(text, available), " ".repeat(GAP));
        let figures = right_aligned(baseline, self.baseline) + &right_aligned(candidate, self.candidate);
        format!(" {label}{}{}{figures}{change}", pad(label, self.label), " ".repeat(GAP))
    }

    /// Formats all six cells.
    fn line(&self, figures: [&str; 4], verdict: &str, p: &str) -> String {
        let [_, _, _, change] = figures;
        let gap = " ".repeat(GAP);
        let judgement = format!("{verdict}{}{gap}{}{p}", pad(verdict, self.verdict), pad(p, P_WIDTH));
        format!("{}{}{gap}{judgement}", self.figures(figures), pad(change, self.change))
    }
}

fn pad(text: &str, available: usize) -> String {
    " ".repeat(available.saturating_sub(width(text)))
}

/// Formats each pair. If lines would be too long, each row has three: label, figures, verdict with p value.
fn table(pairs: &[PairView], style: Style) -> Vec<String> {
    let mut columns = Columns::of(pairs);
    let judged = pairs.iter().flat_map(|pair| &pair.rows).any(|row| !row.verdict.is_empty());
    let stacked = columns.width() > style.width;
    if stacked {
        columns.label = 0;
    }
    let headings = ["", "baseline", "candidate", "change"];
    let heading = if judged && !stacked { columns.line(headings, "", "p") } else { columns.figures(headings) };
    let mut lines = vec![style.quiet(heading.trim_end())];
    for pair in pairs {
        let name = wrap(&format!("{} → {}", pair.baseline, pair.candidate), style.width);
        lines.extend(name.iter().map(|line| style.strong(line)));
        lines.extend(pair.rows.iter().flat_map(|row| row_lines(row, &columns, stacked, style)));
    }
    lines
}

fn row_lines(row: &ChangeView, columns: &Columns, stacked: bool, style: Style) -> Vec<String> {
    let [baseline, candidate, change] = [&row.baseline, &row.candidate, &row.change].map(String::as_str);
    let indent = " ".repeat(1 + columns.label + GAP);
    let available = style.width.saturating_sub(indent.len()).max(20);
    let mut lines = match stacked {
        false => vec![columns.line([&row.label, baseline, candidate, change], &row.verdict, &row.p)],
        true => vec![format!(" {}", row.label), columns.figures(["", baseline, candidate, change])],
    };
    if stacked && !row.verdict.is_empty() {
        lines.push(format!("{indent}{}, p {}", row.verdict, row.p));
    }
    for remark in row.reason.iter().chain(&row.explanation) {
        lines.extend(wrap(remark, available).iter().map(|line| style.quiet(&format!("{indent}{line}"))));
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}
