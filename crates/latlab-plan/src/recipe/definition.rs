//! The definition of a recipe: the file of an experiment with parameters, and the published figures that it reproduces.

use crate::metric::Metric;
use crate::plan::{Factors, Kind};
use crate::stats::MeanDifference;

#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// The name for `latlab run`.
    pub name: &'static str,
    /// The measurement, in one line.
    pub title: &'static str,
    /// Who measured it first, and how.
    pub origin: &'static str,
    /// The interpretation of its figures.
    pub lesson: &'static str,
    /// Its file, with words such as `@RUNS@` that depend on target and scale.
    pub(super) template: &'static str,
    /// The texts of these words: quick, usual, full.
    pub(super) words: [RecipeText; 3],
    /// The target if none is typed.
    pub usual_target: &'static str,
    /// The texts of words that depend on the target.
    pub(super) words_of_target: fn(&str) -> RecipeText,
    /// The published figures, if there are some.
    pub published: Option<&'static Published>,
}

/// Words of a template, each with its text.
pub(super) type RecipeText = &'static [(&'static str, &'static str)];

/// The words of a recipe whose file is the same for all targets.
pub(super) const fn no_words(_target: &str) -> RecipeText {
    &[]
}

/// The separation of the blocks of a recipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Between {
    /// As the recipe's file says: without pause or reboot.
    #[default]
    AsItsFileSays,
    Reboots,
}

/// The extent of a recipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecipeScale {
    Quick,
    /// At most half an hour.
    #[default]
    Usual,
    /// That of the publication, or more.
    Full,
}

impl RecipeScale {
    pub const fn word(self) -> &'static str {
        match self {
            RecipeScale::Quick => "quick",
            RecipeScale::Usual => "usual",
            RecipeScale::Full => "full",
        }
    }
}

impl Recipe {
    /// Whether it has a target; without one it is about this host.
    pub fn has_target(&self) -> bool {
        self.template.contains("@TARGET@")
    }

    /// The file of the experiment.
    pub fn file(&self, target: &str, scale: RecipeScale, between: Between) -> String {
        let quoted = format!("\"{}\"", target.replace('\\', "\\\\").replace('"', "\\\""));
        let words = self.words[scale as usize];
        let with = |file: String, (word, text): &(&str, &str)| file.replace(&format!("@{word}@"), text);
        let words = words.iter().chain((self.words_of_target)(target));
        let file = words.fold(self.template.replace("@TARGET@", &quoted), with);
        match between {
            Between::AsItsFileSays => file,
            Between::Reboots => file.replacen("\nblocks = ", "\nbetween-blocks = \"reboot\"\nblocks = ", 1),
        }
    }

    /// The source in the journal: another target, scale or kind of block is another experiment.
    pub fn source(&self, target: &str, scale: RecipeScale, between: Between) -> String {
        let reboots = if between == Between::Reboots { " reboots" } else { "" };
        format!("recipe:{} {}{reboots} {target}", self.name, scale.word())
    }
}

/// The figures of a publication, in its own columns.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// The heading of the columns.
    pub heading: &'static str,
    /// The metric that latlab measures.
    pub metric: Metric,
    /// The publication's unit in units of the metric, nanoseconds or bits a second.
    pub own_units: f64,
    /// The name of that unit.
    pub unit: &'static str,
    pub decimals: usize,
    /// Whether its figures are half of the metric.
    pub half: bool,
    /// What the two lines of known figures of a row are: `published` and `recomputed`.
    pub sources: [&'static str; 2],
    /// The heading of a further table with the metric itself, where the figures are half of it.
    pub whole: Option<&'static str>,
    /// The sample that the figures describe.
    pub figures_of: FiguresOf,
    /// Its columns, and others that can be computed from its raw data.
    pub columns: &'static [Column],
    pub rows: &'static [PublishedRow],
    /// Levels of factors that a smaller scale does not vary.
    pub implied: &'static [(&'static str, &'static str)],
}

/// The sample that the figures of a publication describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiguresOf {
    /// Probes, packets or wake-ups of one run. Of several runs measured here the median of each figure is shown.
    Singletons,
    /// Means of runs. Each row is tested against the first.
    Runs,
}

/// A statistic of a run, or of the runs of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Column {
    Min,
    Mean,
    Stddev,
    Max,
    Median,
    Quantile(f64),
}

/// A row of a publication.
#[derive(Clone, Copy, Debug)]
pub struct PublishedRow {
    /// The condition in the publication's words.
    pub label: &'static str,
    /// The levels of the recipe's factors.
    pub factors: &'static [(&'static str, &'static str)],
    /// Published figures, column by column; empty if the publication has no such row.
    pub published: &'static [Option<f64>],
    /// Figures computed from the publication's raw data, or on its second test system; empty if these are not published.
    pub recomputed: &'static [Option<f64>],
    /// The published difference to the first row at 95 % confidence, if there is one.
    pub against_first: Option<MeanDifference>,
}

impl Published {
    /// The sources of most publications.
    pub(super) const FROM_RAW_DATA: [&'static str; 2] = ["published", "raw data"];

    /// The kind of its runs.
    pub fn kind(&self) -> Kind {
        Kind::of_metric(self.metric)
    }

    /// Whether the condition with these `factors` is that of `row`.
    pub fn is_done_by(&self, row: &PublishedRow, factors: &Factors) -> bool {
        row.factors.iter().all(|(factor, value)| match factors.get(*factor) {
            // Of an option that is given several times the last one varies.
            Some(own) => own.strip_suffix(value).is_some_and(|others| others.is_empty() || others.ends_with(',')),
            None => self.implied.contains(&(factor, value)),
        })
    }
}

impl Column {
    /// The quantile, if it is one.
    pub const fn quantile(self) -> Option<f64> {
        match self {
            Column::Quantile(q) => Some(q),
            Column::Median => Some(0.5),
            Column::Min | Column::Mean | Column::Stddev | Column::Max => None,
        }
    }

    pub fn heading(self) -> String {
        match self {
            Column::Median => "median".into(),
            Column::Min => "min".into(),
            Column::Mean => "mean".into(),
            Column::Stddev => "stdev".into(),
            Column::Max => "max".into(),
            Column::Quantile(q) => crate::units::human::quantile(q),
        }
    }
}
