//! Rendering of groups of observations in the exact format of FreeBSD's ministat. Written from its
//! manual page and output; differences are documented in docs/comparing.md.

use crate::stats::MinistatTest;
use crate::stats::Outline;
use crate::units::human::general;

/// Plot symbol of each group. Symbols of groups in the same cell are combined by bitwise OR of their indices.
const SYMBOLS: [char; 8] = [' ', 'x', '+', '*', '%', '#', '@', 'O'];

#[derive(Clone, Debug, PartialEq)]
pub struct MinistatGroup {
    /// File name, `<stdin>` or name of the group.
    pub name: String,
    pub observations: Vec<f64>,
    pub outline: Outline,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinistatForm {
    /// Width of the plot between its borders in characters; `None` for no plot.
    pub plot_width: Option<usize>,
    /// True if each group's bar is on a separate line.
    pub separate_bars: bool,
    /// True if group names and the table heading are printed.
    pub headed: bool,
    /// Confidence level in per cent of tests against the first group; `None` for no test.
    pub tested_at: Option<f64>,
}

/// Renders up to seven groups.
pub fn render(groups: &[MinistatGroup], form: MinistatForm) -> String {
    let mut text = String::new();
    if form.headed {
        text.extend(symbols(groups).into_iter().map(|line| line + "\n"));
    }
    if let Some(width) = form.plot_width {
        text += &plot(groups, width, form.separate_bars);
    }
    if form.headed {
        text += "    N           Min           Max        Median           Avg        Stddev\n";
    }
    for (number, (group, symbol)) in groups.iter().zip(&SYMBOLS[1..]).enumerate() {
        text += &figures(*symbol, &group.outline);
        if let Some(percent) = form.tested_at.filter(|_| number > 0) {
            text += &test(&groups[0].outline, &group.outline, percent);
        }
    }
    text
}

/// The symbol and the name of each group.
pub(super) fn symbols(groups: &[MinistatGroup]) -> Vec<String> {
    groups.iter().zip(&SYMBOLS[1..]).map(|(group, symbol)| format!("{symbol} {}", group.name)).collect()
}

fn figures(symbol: char, outline: &Outline) -> String {
    let Outline { n, min, max, median, mean, stddev } = *outline;
    let figures = [min, max, median, mean, stddev].map(|figure| format!(" {:>13}", general(figure, 8)));
    format!("{symbol} {n:>3}{}\n", figures.concat())
}

fn test(baseline: &Outline, candidate: &Outline, percent: f64) -> String {
    let test = MinistatTest::of(baseline, candidate, percent);
    let Some(test) = test.filter(|test| test.proven) else {
        return format!("No difference proven at {percent:.1}% confidence\n");
    };
    let [difference, margin, pooled] =
        [test.difference, test.margin, test.pooled_stddev].map(|value| general(value, 6));
    let [relative, relative_margin] = [test.difference, test.margin].map(|value| general(test.percent(value), 6));
    format!(
        "Difference at {percent:.1}% confidence\n\t{difference} +/- {margin}\n\t{relative}% +/- {relative_margin}%\n\
         \t(Student's t, pooled s = {pooled})\n"
    )
}

/// Draws the plot of `groups`, `width` characters between its borders.
///
/// Each observation is a symbol; symbols in the same column are stacked. The bar of each group extends from mean − s to
/// mean + s, with the mean `A` and the median `M`.
pub(super) fn plot(groups: &[MinistatGroup], width: usize, separate_bars: bool) -> String {
    let Some(scale) = Scale::of(groups, width) else { return "[no plot, span is zero width]\n".into() };
    let border = format!("+{}+\n", "-".repeat(width));
    let mut text = border.clone();
    for line in stacks(groups, scale).into_iter().chain(bars(groups, scale, separate_bars)) {
        text.push('|');
        text.extend(line);
        text += "|\n";
    }
    text + &border
}

/// Mapping of values to columns. The ends of the scale are the centres of the outermost columns.
#[derive(Clone, Copy)]
struct Scale {
    /// Value at the left edge of the first column.
    left: f64,
    /// Width of a column in the unit of the values.
    step: f64,
    width: usize,
}

impl Scale {
    /// Covers all observations and bars; `None` if their range is zero or not finite.
    fn of(groups: &[MinistatGroup], width: usize) -> Option<Scale> {
        let outlines = || groups.iter().map(|group| &group.outline);
        let least = outlines().map(|outline| outline.min.min(outline.mean - outline.stddev)).reduce(f64::min)?;
        let most = outlines().map(|outline| outline.max.max(outline.mean + outline.stddev)).reduce(f64::max)?;
        let step = (most - least) / (width - 1) as f64;
        (step.is_normal()).then_some(Scale { left: least - 0.5 * step, step, width })
    }

    fn column(&self, value: f64) -> usize {
        (((value - self.left) / self.step) as usize).min(self.width - 1)
    }
}

/// Stacks the symbols of each column, topmost row first.
///
/// Stacks are limited to the lowest maximum stack height of the group and all later groups. ministat does the same:
/// the example in its manual page shows only one of two equal iguanas.
fn stacks(groups: &[MinistatGroup], scale: Scale) -> Vec<Vec<char>> {
    let mut counts: Vec<Vec<usize>> = groups.iter().map(|group| columns_of(group, scale)).collect();
    let mut height = usize::MAX;
    for counts in counts.iter_mut().rev() {
        height = height.min(counts.iter().copied().max().unwrap_or(0));
        counts.iter_mut().for_each(|count| *count = (*count).min(height));
    }
    let rows = counts.last().and_then(|counts| counts.iter().copied().max()).unwrap_or(0);
    let cell = |row: usize, column: usize| {
        let there = counts.iter().zip(1..).filter(|(counts, _)| counts[column] > row);
        SYMBOLS[there.fold(0, |bits: usize, (_, number)| bits | number)]
    };
    (0..rows).rev().map(|row| (0..scale.width).map(|column| cell(row, column)).collect()).collect()
}

/// Counts the observations of `group` in each column.
fn columns_of(group: &MinistatGroup, scale: Scale) -> Vec<usize> {
    let mut counts = vec![0; scale.width];
    for &value in &group.observations {
        counts[scale.column(value)] += 1;
    }
    counts
}

/// Draws one line for all bars, or one for each. Later letters and ends replace earlier ones; lines replace nothing.
fn bars(groups: &[MinistatGroup], scale: Scale, separate: bool) -> Vec<Vec<char>> {
    let mut lines: Vec<Vec<char>> = Vec::new();
    for outline in groups.iter().map(|group| &group.outline) {
        if separate || lines.is_empty() {
            lines.push(vec![' '; scale.width]);
        }
        let Some(line) = lines.last_mut() else { continue };
        let (from, to) = (scale.column(outline.mean - outline.stddev), scale.column(outline.mean + outline.stddev));
        line[from..to].iter_mut().filter(|cell| **cell == ' ').for_each(|cell| *cell = '_');
        line[from] = '|';
        line[to] = '|';
        line[scale.column(outline.median)] = 'M';
        line[scale.column(outline.mean)] = 'A';
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, observations: &[f64]) -> MinistatGroup {
        let outline = Outline::of(&mut observations.to_vec()).expect("observations");
        MinistatGroup { name: name.into(), observations: observations.to_vec(), outline }
    }

    fn lizards() -> [MinistatGroup; 2] {
        let iguana = [50.0, 200.0, 150.0, 400.0, 750.0, 400.0, 150.0];
        [group("iguana", &iguana), group("chameleon", &[150.0, 400.0, 720.0, 500.0, 930.0])]
    }

    const WHOLE: MinistatForm =
        MinistatForm { plot_width: Some(60), separate_bars: true, headed: true, tested_at: Some(95.0) };

    /// The example of the manual page with ministat's default widths.
    #[test]
    fn output_equals_the_example_of_the_manual_page() {
        let expected = "\
x iguana
+ chameleon
+------------------------------------------------------------+
|x      *  x            *      +              + x           +|
| |________M______A_______________|                          |
|             |________________M__A___________________|      |
+------------------------------------------------------------+
    N           Min           Max        Median           Avg        Stddev
x   7            50           750           200           300     238.04761
+   5           150           930           500           540     299.08193
No difference proven at 95.0% confidence
";
        assert_eq!(render(&lizards(), WHOLE), expected);
        let expected = "\
Difference at 80.0% confidence
\t240 +/- 212.215
\t80% +/- 70.7384%
\t(Student's t, pooled s = 264.159)
";
        let text = render(&lizards(), MinistatForm { plot_width: None, tested_at: Some(80.0), ..WHOLE });
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn disabled_parts_are_omitted() {
        let form = MinistatForm { plot_width: None, headed: false, tested_at: None, ..WHOLE };
        let expected = "\
x   7            50           750           200           300     238.04761
+   5           150           930           500           540     299.08193
";
        assert_eq!(render(&lizards(), form), expected);
    }

    fn plotted(groups: &[&[f64]], width: usize, separate: bool) -> Vec<String> {
        let group = |values: &&[f64]| MinistatGroup {
            name: String::new(),
            observations: values.to_vec(),
            outline: Outline::of(&mut values.to_vec()).expect("observations"),
        };
        let groups: Vec<MinistatGroup> = groups.iter().map(group).collect();
        plot(&groups, width, separate).lines().map(String::from).collect()
    }

    #[test]
    fn bars_widen_the_scale() {
        let expected = [
            "+--------------------+",
            "|    x               |",
            "|    x               |",
            "|    x              x|",
            "||___M___A______|    |",
            "+--------------------+",
        ];
        assert_eq!(plotted(&[&[1.0, 1.0, 1.0, 10.0]], 20, false), expected);
    }

    #[test]
    fn groups_in_one_cell_show_the_combined_symbol() {
        let (low, middle, high) = ([1.0, 2.0, 3.0], [10.0, 11.0, 12.0], [20.0, 21.0, 22.0]);
        let lines = plotted(&[&low, &middle, &high, &low], 30, false);
        assert_eq!(lines[1], "|## #        + ++          * **|");
        assert_eq!(lines[2], "||A_|        |_A|          |_A||");
        assert_eq!(plotted(&[&low[..]; 7], 30, true).len(), 2 + 1 + 7);
    }

    #[test]
    fn stacks_are_limited_by_later_groups() {
        let (tied, single) = ([1.0, 1.0, 5.0], [1.0, 3.0, 5.0]);
        assert_eq!(plotted(&[&tied, &single], 10, true).len(), 2 + 1 + 2);
        assert_eq!(plotted(&[&single, &tied], 10, true).len(), 2 + 2 + 2);
        let lines = plotted(&[&tied, &single, &tied], 10, true);
        assert!(lines[1].contains('*') && !lines[1].contains('O'), "the first is cut at one: {lines:?}");
    }

    #[test]
    fn observations_without_range_have_no_plot() {
        assert_eq!(plotted(&[&[5.0; 3]], 20, false), ["[no plot, span is zero width]"]);
        assert_eq!(plotted(&[&[-1e308, 0.0, 1e308]], 20, false), ["[no plot, span is zero width]"]);
        assert_eq!(plotted(&[&[7.0; 3], &[5.0; 3]], 20, false)[4], "|A                  A|");
    }
}
