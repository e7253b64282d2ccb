//! The classic form: what FreeBSD's ministat prints of groups of observations, to the character. Written from its
//! manual page and its output; where the two tools differ, docs/comparing.md says so.

mod plot;

use crate::analysis::MinistatTest;
use crate::stats::Outline;
use crate::units::human::general;

/// The symbol of each group; where several meet in a plot, the symbol of their numbers' bits together.
const SYMBOLS: [char; 8] = [' ', 'x', '+', '*', '%', '#', '@', 'O'];

/// One group.
#[derive(Clone, Debug, PartialEq)]
pub struct MinistatGroup {
    /// The file, `<stdin>` or the name of the group.
    pub name: String,
    /// Its observations, in any order.
    pub observations: Vec<f64>,
    /// Their figures.
    pub outline: Outline,
}

/// What is shown of the groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinistatForm {
    /// Whether there is a plot, and how many characters wide it is between its borders.
    pub plot_width: Option<usize>,
    /// Whether each group's bar has a line of its own.
    pub separate_bars: bool,
    /// Whether the groups are named and the figures have a heading.
    pub headed: bool,
    /// At what confidence in per cent the others are tested against the first; none: not at all.
    pub tested_at: Option<f64>,
}

/// Up to seven groups as ministat shows them.
pub fn render(groups: &[MinistatGroup], form: MinistatForm) -> String {
    let mut text = String::new();
    let symbols = SYMBOLS[1..].iter().copied();
    if form.headed {
        for (group, symbol) in groups.iter().zip(symbols.clone()) {
            text += &format!("{symbol} {}\n", group.name);
        }
    }
    if let Some(width) = form.plot_width {
        text += &plot::plot(groups, width, form.separate_bars);
    }
    if form.headed {
        text += "    N           Min           Max        Median           Avg        Stddev\n";
    }
    for (number, (group, symbol)) in groups.iter().zip(symbols).enumerate() {
        text += &figures(symbol, &group.outline);
        if let Some(percent) = form.tested_at.filter(|_| number > 0) {
            text += &test(&groups[0].outline, &group.outline, percent);
        }
    }
    text
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

    /// The example of the manual page, with the widths of the tool itself.
    #[test]
    fn iguanas_and_chameleons_look_as_in_the_manual() {
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
    fn what_is_left_out_leaves_no_trace() {
        let form = MinistatForm { plot_width: None, headed: false, tested_at: None, ..WHOLE };
        let expected = "\
x   7            50           750           200           300     238.04761
+   5           150           930           500           540     299.08193
";
        assert_eq!(render(&lizards(), form), expected);
    }
}
