//! Rendering of comparisons as text in the width of the terminal: effect first, p value last.

use super::view::{ChangeView, ComparisonView, ContrastView};
use crate::report::text::caveat_lines;
use crate::report::text::{Style, width, wrap};

/// Distance of adjacent columns in characters.
const GAP: usize = 2;
/// Width of a p value in characters.
const P_WIDTH: usize = 6;
/// Lines below a row are indented by less than its label if they would have fewer characters than this.
const REMARK_LEAST: usize = 40;

/// Renders the report with a final newline.
pub fn render(view: &ComparisonView, style: Style) -> String {
    let mut heading = wrap(&view.heading, style.width);
    heading.extend(view.common.iter().flat_map(|common| wrap(common, style.width)));
    let mut sections: Vec<Vec<String>> = vec![heading, table(&view.contrasts, style)];
    if !view.shifts.is_empty() {
        let title = wrap("along the distribution (intervals, no verdicts)", style.width);
        let mut lines: Vec<String> = title.iter().map(|line| style.strong(line)).collect();
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

/// How much of a row stands in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RowLayout {
    Whole,
    /// All but the verdict, which stands below.
    Figures,
    /// Label, figures and verdict stand below each other.
    Parts,
}

/// Column widths over all contrasts, so that these are aligned.
struct Columns {
    label: usize,
    baseline: usize,
    candidate: usize,
    change: usize,
    verdict: usize,
    layout: RowLayout,
}

impl Columns {
    fn of(contrasts: &[ContrastView], labels: &[Vec<RowLabel>], available: usize) -> Columns {
        let widest = |heading: &str, cell: fn(&ChangeView) -> &String| {
            let cells = contrasts.iter().flat_map(|contrast| &contrast.rows).map(|row| width(cell(row)));
            cells.chain([width(heading)]).max().unwrap_or(0)
        };
        let mut columns = Columns {
            label: labels.iter().flatten().map(|label| width(&label.own)).max().unwrap_or(0),
            baseline: widest("baseline", |row| &row.baseline),
            candidate: widest("candidate", |row| &row.candidate),
            change: widest("change", |row| &row.change),
            verdict: widest("", |row| &row.verdict),
            layout: RowLayout::Parts,
        };
        let figures = 1 + columns.label + columns.baseline + columns.candidate + columns.change + 3 * GAP;
        if figures + columns.verdict + P_WIDTH + 2 * GAP <= available {
            columns.layout = RowLayout::Whole;
        } else if figures <= available {
            columns.layout = RowLayout::Figures;
        }
        columns
    }

    /// Formats the first four cells.
    fn figures(&self, [label, baseline, candidate, change]: [&str; 4]) -> String {
        let right_aligned = |text: &str, available: usize| format!("{}{text}{}", pad(text, available), " ".repeat(GAP));
        let figures = right_aligned(baseline, self.baseline) + &right_aligned(candidate, self.candidate);
        format!(" {label}{}{}{figures}{change}", pad(label, self.label), " ".repeat(GAP))
    }

    fn line(&self, figures: [&str; 4], verdict: &str, p: &str) -> String {
        let [_, _, _, change] = figures;
        let gap = " ".repeat(GAP);
        let judgement = format!("{verdict}{}{gap}{}{p}", pad(verdict, self.verdict), pad(p, P_WIDTH));
        format!("{}{}{gap}{judgement}", self.figures(figures), pad(change, self.change))
    }

    /// Formats the headings of the columns; `None` if there are none.
    fn headings(&self, judged: bool) -> Option<String> {
        let headings = ["", "baseline", "candidate", "change"];
        let line = match self.layout {
            RowLayout::Whole if judged => self.line(headings, "", "p"),
            RowLayout::Whole | RowLayout::Figures => self.figures(headings),
            RowLayout::Parts => return None,
        };
        Some(line.trim_end().to_owned())
    }
}

fn pad(text: &str, available: usize) -> String {
    " ".repeat(available.saturating_sub(width(text)))
}

/// The label of a row.
struct RowLabel {
    /// Levels in a line of their own above the row.
    above: Option<String>,
    own: String,
}

/// The labels of a contrast. If they are `nested`, levels stand above the statistics of their pair, else beside them in
/// columns: a level is blank if it and those before it are the same as in the row above.
fn labels(contrast: &ContrastView, nested: bool) -> Vec<RowLabel> {
    let count = contrast.rows.iter().map(|row| row.label.len()).max().unwrap_or(0);
    let cell = |row: &ChangeView, column: usize| row.label.get(column).map_or(0, |cell| width(cell));
    let widths: Vec<usize> =
        (0..count).map(|column| contrast.rows.iter().map(|row| cell(row, column)).max().unwrap_or(0)).collect();
    let label = |(number, row): (usize, &ChangeView)| {
        let before = number.checked_sub(1).map_or(&[][..], |before| &contrast.rows[before].label[..]);
        let is_repeated = |column: usize| before.get(..=column) == Some(&row.label[..=column]);
        if let Some((own, levels)) = row.label.split_last().filter(|(_, levels)| nested && !levels.is_empty()) {
            let above = (!is_repeated(levels.len() - 1)).then(|| format!(" {}", levels.join(", ")));
            return RowLabel { above, own: format!(" {own}") };
        }
        let mut own = String::new();
        for (column, (cell, available)) in row.label.iter().zip(&widths).enumerate() {
            let shown = if column + 1 < row.label.len() && is_repeated(column) { "" } else { cell };
            own += &format!("{shown}{}{}", pad(shown, *available), " ".repeat(GAP));
        }
        RowLabel { above: None, own: own.trim_end().to_owned() }
    };
    contrast.rows.iter().enumerate().map(label).collect()
}

/// Formats each contrast, with as much of a row in one line as the width allows.
fn table(contrasts: &[ContrastView], style: Style) -> Vec<String> {
    let labelled = |nested: bool| {
        let labels: Vec<Vec<RowLabel>> = contrasts.iter().map(|contrast| labels(contrast, nested)).collect();
        let columns = Columns::of(contrasts, &labels, style.width);
        (labels, columns)
    };
    let (mut labels, mut columns) = labelled(false);
    if columns.layout != RowLayout::Whole {
        let (nested, narrower) = labelled(true);
        if narrower.layout < columns.layout {
            (labels, columns) = (nested, narrower);
        }
    }
    let judged = contrasts.iter().flat_map(|contrast| &contrast.rows).any(|row| !row.verdict.is_empty());
    let headings = columns.headings(judged).filter(|_| !contrasts.is_empty());
    let mut lines: Vec<String> = headings.iter().map(|headings| style.quiet(headings)).collect();
    for (contrast, labels) in contrasts.iter().zip(&labels) {
        lines.extend(wrap(&contrast.title, style.width).iter().map(|line| style.strong(line)));
        for (row, label) in contrast.rows.iter().zip(labels) {
            lines.extend(label.above.iter().cloned());
            lines.extend(row_lines(row, &label.own, &columns, style));
        }
    }
    lines
}

fn row_lines(row: &ChangeView, label: &str, columns: &Columns, style: Style) -> Vec<String> {
    let figures = [label, &row.baseline, &row.candidate, &row.change];
    let below = |indent: usize, text: &str| -> Vec<String> {
        let lines = wrap(text, style.width.saturating_sub(indent).max(1));
        lines.iter().map(|line| format!("{}{line}", " ".repeat(indent))).collect()
    };
    let deep = 1 + columns.label + GAP;
    let indent = if columns.layout == RowLayout::Parts || deep + REMARK_LEAST > style.width { 1 + GAP } else { deep };
    let verdict = if row.verdict.is_empty() { String::new() } else { format!("{}, p {}", row.verdict, row.p) };
    let mut lines = match columns.layout {
        RowLayout::Whole => vec![columns.line(figures, &row.verdict, &row.p)],
        RowLayout::Figures => [vec![columns.figures(figures)], below(indent, &verdict)].concat(),
        RowLayout::Parts => {
            let values = below(indent, &format!("{} → {}", row.baseline, row.candidate));
            [below(1, &row.label.join(", ")), values, below(indent, &row.change), below(indent, &verdict)].concat()
        }
    };
    for remark in row.remark().iter().chain(&row.explanation) {
        lines.extend(below(indent, remark).iter().map(|line| style.quiet(line)));
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}
