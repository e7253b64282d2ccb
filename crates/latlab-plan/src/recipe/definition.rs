//! The definition of a recipe: the file of an experiment with parameters, and the published figures that it reproduces.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::metric::Metric;
use crate::plan::{Factors, Kind};
use crate::stats::MeanDifference;
use crate::units::human;

/// Words of a template, each with its text.
type RecipeText = BTreeMap<String, String>;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Recipe {
    /// The name for `latlab run`.
    pub name: String,
    /// The measurement, in one line.
    pub title: String,
    /// Who measured it first, and how.
    pub origin: String,
    /// The interpretation of its figures.
    pub lesson: String,
    /// Its file, with words such as `@RUNS@` that depend on target and scale.
    #[serde(skip)]
    template: &'static str,
    words: BTreeMap<String, RecipeText>,
    /// The target if none is typed.
    pub usual_target: String,
    /// The texts of words that depend on the target; `other` are those of all that are not listed.
    #[serde(default)]
    words_of_target: BTreeMap<String, RecipeText>,
    /// The published figures, if there are some.
    pub published: Option<Published>,
    /// What its page asks and answers.
    pub asked: Option<Asked>,
    #[serde(default)]
    pub pictures: Pictures,
}

/// A question in the words of a reader, and sentences that answer it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Asked {
    pub question: String,
    pub answers: Vec<Answer>,
}

/// A sentence about two conditions, of the metric of the publication.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Answer {
    pub statistic: Column,
    /// Levels of factors of the one condition and of the other.
    pub from: Factors,
    pub to: Factors,
    /// The verdict on their comparison without which the sentence is `otherwise`.
    pub verdict: Option<String>,
    #[serde(default)]
    pub otherwise: String,
    /// Has `{from}` and `{to}` for the two figures, `{share}` for 1 − from/to, and `{change}` for what the comparison says, if
    /// there is one: `: higher, +10 %`.
    pub text: String,
}

/// What the pictures of a recipe have besides its runs and the published figures.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Pictures {
    /// Factors whose levels are named in this order; others come first.
    pub order: Vec<String>,
    /// Words for levels, by `factor=level`; empty if another factor says the same.
    pub levels: BTreeMap<String, String>,
    pub prediction: Option<Prediction>,
}

/// A delay that is a share of a factor, but not less than a least one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Prediction {
    pub name: String,
    pub factor: String,
    pub share: f64,
    pub least_ns: f64,
}

impl Prediction {
    /// The delay at a `level` of the factor, both in ns.
    pub fn at(&self, level: f64) -> f64 {
        (level * self.share).max(self.least_ns)
    }
}

/// The separation of the blocks of a recipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Between {
    /// As the recipe's file says: without pause or reboot.
    #[default]
    AsItsFileSays,
    Reboots,
}

crate::worded! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum RecipeScale: word {
        Quick = "quick",
        /// At most half an hour.
        #[default]
        Usual = "usual",
        /// That of the publication, or more.
        Full = "full",
    }
}

impl Recipe {
    /// The recipe with this `template` and the file `about` it, which are parts of the program.
    pub(super) fn of(template: &'static str, about: &str) -> Recipe {
        let recipe: Recipe = toml::from_str(about).unwrap_or_else(|error| panic!("a built-in recipe: {error}"));
        Recipe { template, ..recipe }
    }

    /// Whether it has a target; without one it is about this host.
    pub fn has_target(&self) -> bool {
        self.template.contains("@TARGET@")
    }

    pub fn file(&self, target: &str, scale: RecipeScale, between: Between) -> String {
        let quoted = format!("\"{}\"", target.replace('\\', "\\\\").replace('"', "\\\""));
        let with = |file: String, (word, text): (&String, &String)| file.replace(&format!("@{word}@"), text);
        let of_target = self.words_of_target.get(target).or_else(|| self.words_of_target.get("other"));
        let words = self.words.get(scale.word()).into_iter().chain(of_target).flatten();
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
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Published {
    pub heading: String,
    pub metric: Metric,
    /// The publication's unit in units of the metric, nanoseconds or bits a second.
    pub own_units: f64,
    /// The name of that unit.
    pub unit: String,
    pub decimals: usize,
    /// Whether its figures are half of the metric.
    #[serde(default)]
    pub half: bool,
    /// What the two lines of known figures of a row are.
    #[serde(default = "from_raw_data")]
    pub sources: [String; 2],
    /// The name of a further line with the metric itself, where the figures are half of it.
    pub whole: Option<String>,
    /// The sample that the figures describe.
    pub figures_of: FiguresOf,
    /// Its columns, and others that can be computed from its raw data.
    pub columns: Vec<Column>,
    /// Its own names of the columns; those of latlab if empty.
    #[serde(default)]
    pub headings: Vec<String>,
    pub lesson: Lesson,
    pub rows: Vec<PublishedRow>,
    /// Levels of factors that a smaller scale does not vary.
    #[serde(default)]
    pub implied: Factors,
}

/// The sources of most publications.
fn from_raw_data() -> [String; 2] {
    ["published", "recomputed"].map(str::to_owned)
}

/// The sample that the figures of a publication describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FiguresOf {
    /// Probes, packets or wake-ups of one run. Of several runs measured here the mean of each figure is shown.
    Singletons,
    /// Means of runs. Each row is tested against the first.
    Runs,
}

/// What the lesson of a publication recomputes from the runs measured here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lesson {
    /// Mean and p99.9 over a table that still holds the packet ids.
    IdsIncluded,
    DistinctValues,
    /// What the tests say of rows for which the text claims something else.
    UntestedClaim,
    /// Halves of round trips beside the whole, and the number of samples that the highest quantile takes.
    HalfRoundTrip,
    /// How late `select` wakes, and by how much the kernel may stretch its time-out.
    SleepStretch,
}

impl Lesson {
    /// The mistake of `latlab check-published` that is repeated on the singletons of the runs.
    pub const fn mistake(self) -> Option<&'static str> {
        match self {
            Lesson::IdsIncluded => Some("ids-included"),
            Lesson::DistinctValues => Some("distinct-values"),
            Lesson::UntestedClaim | Lesson::HalfRoundTrip | Lesson::SleepStretch => None,
        }
    }
}

/// A statistic of a run, or of the runs of a row.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Column {
    Min,
    Mean,
    Stddev,
    Max,
    Median,
    Quantile(f64),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PublishedRow {
    /// The condition in the publication's words.
    pub label: String,
    /// The levels of the recipe's factors.
    pub factors: Factors,
    /// Published figures, column by column; empty if the publication has no such row.
    #[serde(default, deserialize_with = "figures")]
    pub published: Vec<Option<f64>>,
    /// Figures computed from the publication's raw data, or on its second test system; empty if these are not published.
    #[serde(default, deserialize_with = "figures")]
    pub recomputed: Vec<Option<f64>>,
    /// Stands behind the basis of the measured figures.
    #[serde(default)]
    pub note: String,
    /// The published difference to the first row at 95 % confidence, if there is one.
    pub against_first: Option<MeanDifference>,
}

/// Figures of which `nan` is missing.
fn figures<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Option<f64>>, D::Error> {
    let figures: Vec<f64> = Vec::deserialize(deserializer)?;
    Ok(figures.into_iter().map(|figure| Some(figure).filter(|figure| !figure.is_nan())).collect())
}

impl Published {
    pub fn kind(&self) -> Kind {
        Kind::of_metric(self.metric)
    }

    /// Whether the condition with these `factors` is that of `row`.
    pub fn is_done_by(&self, row: &PublishedRow, factors: &Factors) -> bool {
        self.has_levels(&row.factors, factors)
    }

    /// Whether `factors` have the `levels`.
    pub fn has_levels(&self, levels: &Factors, factors: &Factors) -> bool {
        levels.iter().all(|(factor, value)| match factors.get(factor) {
            // Of an option that is given several times the last one varies.
            Some(own) => {
                own.strip_suffix(value.as_str()).is_some_and(|others| others.is_empty() || others.ends_with(','))
            }
            None => self.implied.get(factor) == Some(value),
        })
    }

    /// The publication's name of the condition with these `factors`.
    pub fn label(&self, factors: &Factors) -> Option<&str> {
        self.rows.iter().find(|row| self.is_done_by(row, factors)).map(|row| row.label.as_str())
    }

    /// The publication's name of the column at `place`.
    pub fn heading_of(&self, place: usize) -> String {
        self.headings.get(place).cloned().unwrap_or_else(|| self.columns[place].heading())
    }
}

impl Column {
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
            Column::Quantile(q) => human::quantile(q),
        }
    }
}

impl TryFrom<String> for Column {
    type Error = String;

    fn try_from(heading: String) -> Result<Column, String> {
        let words = [Column::Median, Column::Min, Column::Mean, Column::Stddev, Column::Max];
        let quantile = || human::parse_quantile(&heading).map(Column::Quantile);
        let found = words.into_iter().find(|column| column.heading() == heading).or_else(quantile);
        found.ok_or_else(|| format!("`{heading}` is not a column"))
    }
}
