use super::{MinistatGroup, SYMBOLS};

/// The plot of `groups`, `width` characters between its borders, each line with its end.
///
/// Each observation is a symbol, stacked where they share a column; below stand for each group a bar from mean − s to
/// mean + s, its mean `A` and its median `M`.
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

/// From values to columns: the ends of the scale lie in the middle of the outermost columns.
#[derive(Clone, Copy)]
struct Scale {
    /// The left edge of the first column.
    left: f64,
    /// The width of a column in the unit of the values.
    step: f64,
    width: usize,
}

impl Scale {
    /// Over all observations and all bars; none where they are all the same, or farther apart than numbers go.
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

/// The stacked symbols, the topmost row first.
///
/// A stack is cut at the lowest of the highest stacks of the groups from its own on: so does ministat, whose example in
/// its manual page shows one of two equal iguanas.
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

/// How many observations of `group` lie in each column.
fn columns_of(group: &MinistatGroup, scale: Scale) -> Vec<usize> {
    let mut counts = vec![0; scale.width];
    for &value in &group.observations {
        counts[scale.column(value)] += 1;
    }
    counts
}

/// One line for all bars, or one for each. Later letters and ends cover earlier ones, lines cover nothing.
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
    use crate::stats::Outline;

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
    fn groups_that_meet_show_their_bits() {
        let (low, middle, high) = ([1.0, 2.0, 3.0], [10.0, 11.0, 12.0], [20.0, 21.0, 22.0]);
        let lines = plotted(&[&low, &middle, &high, &low], 30, false);
        assert_eq!(lines[1], "|## #        + ++          * **|");
        assert_eq!(lines[2], "||A_|        |_A|          |_A||");
        assert_eq!(plotted(&[&low[..]; 7], 30, true).len(), 2 + 1 + 7);
    }

    #[test]
    fn stacks_are_cut_at_the_lowest_after_them() {
        let (tied, single) = ([1.0, 1.0, 5.0], [1.0, 3.0, 5.0]);
        assert_eq!(plotted(&[&tied, &single], 10, true).len(), 2 + 1 + 2);
        assert_eq!(plotted(&[&single, &tied], 10, true).len(), 2 + 2 + 2);
        let lines = plotted(&[&tied, &single, &tied], 10, true);
        assert!(lines[1].contains('*') && !lines[1].contains('O'), "the first is cut at one: {lines:?}");
    }

    #[test]
    fn what_has_no_span_has_no_plot() {
        assert_eq!(plotted(&[&[5.0; 3]], 20, false), ["[no plot, span is zero width]"]);
        assert_eq!(plotted(&[&[-1e308, 0.0, 1e308]], 20, false), ["[no plot, span is zero width]"]);
        assert_eq!(plotted(&[&[7.0; 3], &[5.0; 3]], 20, false)[4], "|A                  A|");
    }
}
