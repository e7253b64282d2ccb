//! Claims as typed: published figures with the precision of their text.

use thiserror::Error;

use crate::diagnostics::{Explain, Failure};
use crate::units::human::{self, TimeUnit, parse_quantile};

/// A figure that is published of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PublishedFigure {
    /// Number of values, lost ones included.
    N,
    Lost,
    /// Lost probes as a share of all.
    LossRatio,
    Mean,
    Min,
    Max,
    /// Quantile in (0, 1); the median is that of 0.5.
    Quantile(f64),
    Stddev,
}

/// The words of figures other than quantiles; the first of each is its name in JSON and tables.
const WORDS: [(&str, PublishedFigure); 17] = [
    ("n", PublishedFigure::N),
    ("count", PublishedFigure::N),
    ("lost", PublishedFigure::Lost),
    ("loss_ratio", PublishedFigure::LossRatio),
    ("loss", PublishedFigure::LossRatio),
    ("mean", PublishedFigure::Mean),
    ("avg", PublishedFigure::Mean),
    ("average", PublishedFigure::Mean),
    ("min", PublishedFigure::Min),
    ("minimum", PublishedFigure::Min),
    ("max", PublishedFigure::Max),
    ("maximum", PublishedFigure::Max),
    ("stddev", PublishedFigure::Stddev),
    ("stdev", PublishedFigure::Stddev),
    ("std", PublishedFigure::Stddev),
    ("sd", PublishedFigure::Stddev),
    ("median", PublishedFigure::MEDIAN),
];

impl PublishedFigure {
    pub(super) const MEDIAN: PublishedFigure = PublishedFigure::Quantile(0.5);

    /// The figure that is called `word`: `mean`, `median`, `p99.9`.
    fn named(word: &str) -> Option<PublishedFigure> {
        let word = word.to_ascii_lowercase();
        let known = WORDS.iter().find(|(name, _)| *name == word).map(|(_, figure)| *figure);
        known.or_else(|| parse_quantile(&word).filter(|_| word.starts_with(['p', 'q'])).map(PublishedFigure::Quantile))
    }

    /// The name in JSON and tables: `mean`, `p50`, `p99.9`.
    pub(crate) fn name(self) -> String {
        match self {
            PublishedFigure::Quantile(q) => human::quantile(q),
            _ => {
                WORDS.iter().find(|(_, figure)| *figure == self).map(|(name, _)| (*name).to_owned()).unwrap_or_default()
            }
        }
    }

    /// Whether it has the unit of the values; the others are counts and shares.
    pub(crate) fn is_of_values(self) -> bool {
        !matches!(self, PublishedFigure::N | PublishedFigure::Lost | PublishedFigure::LossRatio)
    }
}

/// The unit of a published number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedUnit {
    Time(TimeUnit),
    Percent,
}

impl PublishedUnit {
    fn named(word: &str) -> Option<PublishedUnit> {
        if word == "%" { Some(PublishedUnit::Percent) } else { TimeUnit::from_word(word).map(PublishedUnit::Time) }
    }
}

/// A published figure: `p99.9=11.026ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureClaim {
    pub text: String,
    pub figure: PublishedFigure,
    /// The number in its unit.
    pub value: f64,
    /// How many of its digits stand behind the point, of those that a double has.
    pub decimals: usize,
    pub unit: Option<PublishedUnit>,
}

/// Digits that tell one double from all others; further ones are not kept.
const DIGITS_KEPT: usize = 17;

impl FigureClaim {
    /// Parses `mean=296us`.
    fn parse(text: &str) -> Result<FigureClaim, ClaimError> {
        let refuse = |cause: String| ClaimError { text: text.into(), cause };
        let (name, number) = text.split_once('=').ok_or_else(|| refuse("it has no `=`".into()))?;
        let figure = PublishedFigure::named(name).ok_or_else(|| refuse(unknown_figure(name)))?;
        let (value, decimals, unit) =
            parse_number(number).map_err(|cause| refuse(format!("of `{number}`: {cause}")))?;
        let is_fitting = match unit {
            None => true,
            Some(PublishedUnit::Percent) => figure == PublishedFigure::LossRatio,
            Some(PublishedUnit::Time(_)) => figure.is_of_values(),
        };
        if !is_fitting {
            return Err(refuse(format!("`{}` does not have that unit", figure.name())));
        }
        Ok(FigureClaim { text: text.into(), figure, value, decimals, unit })
    }
}

/// Parses `-1.25`, `50_000` or `11.026ms`: the number, its decimals and its unit.
fn parse_number(text: &str) -> Result<(f64, usize, Option<PublishedUnit>), &'static str> {
    if text.contains(',') {
        return Err("it has a comma: write `1.821` or `1821`, and blanks between claims");
    }
    let end = text.find(|char: char| !char.is_ascii_digit() && !"+-−._".contains(char)).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let exponent = unit.strip_prefix(['e', 'E']).and_then(|rest| rest.chars().next());
    if exponent.is_some_and(|char| char.is_ascii_digit() || "+-−".contains(char)) {
        return Err("it has an exponent: write all of its digits, such as `12.5us` for `1.25e-05s`");
    }
    let number = number.replace('_', "").replace('−', "-");
    let value = number.parse().map_err(|_| "it is not a decimal number")?;
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    let further = digits.trim_start_matches('0').len().saturating_sub(DIGITS_KEPT);
    let decimals = number.split_once('.').map_or(0, |(_, fraction)| fraction.len()).saturating_sub(further);
    let unit = if unit.is_empty() { None } else { Some(PublishedUnit::named(unit).ok_or("its unit is not known")?) };
    Ok((value, decimals, unit))
}

fn unknown_figure(name: &str) -> String {
    let known: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
    match human::nearest(name, &known) {
        Some(near) => format!("`{name}` is not a statistic; `{near}` is one"),
        None => format!("`{name}` is not a statistic"),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot read the claim `{text}`")]
pub struct ClaimError {
    text: String,
    cause: String,
}

impl Explain for ClaimError {
    fn explain(&self) -> Failure {
        Failure::request(self).because(&self.cause).hint(
            "`FIGURE=VALUE` with the published digits and the unit, such as `mean=296us`, `p99.9=11.026ms`, `max=3.2ms`, \
             `n=50000` or `lost=5`; `latlab compare` says whether groups differ",
        )
    }
}

/// The claims in `text`: words between blanks; `#` begins a comment up to the end of its line.
///
/// # Errors
/// The first claim that cannot be parsed.
pub fn parse_claims(text: &str) -> Result<Vec<FigureClaim>, ClaimError> {
    let mut claims = Vec::new();
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace().peekable();
        while let Some(word) = words.next() {
            let is_unit = |next: &&str| word.contains('=') && PublishedUnit::named(next).is_some();
            let unit = words.next_if(is_unit).unwrap_or_default();
            claims.push(FigureClaim::parse(&format!("{word}{unit}"))?);
        }
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_keep_the_precision_of_their_text() {
        let claims =
            parse_claims("mean=296us p99.9=11.026ms  n=50_000 # the first row\nloss=0.5% avg=-1.50 ms sd=.5us")
                .expect("claims");
        let read: Vec<(String, f64, usize)> =
            claims.iter().map(|claim| (claim.figure.name(), claim.value, claim.decimals)).collect();
        let expected = [
            ("mean", 296.0, 0),
            ("p99.9", 11.026, 3),
            ("n", 50_000.0, 0),
            ("loss_ratio", 0.5, 1),
            ("mean", -1.5, 2),
            ("stddev", 0.5, 1),
        ];
        assert_eq!(read, expected.map(|(name, value, decimals)| (name.to_owned(), value, decimals)));
        assert_eq!(claims[3].unit, Some(PublishedUnit::Percent));
        assert_eq!(claims[4].unit, Some(PublishedUnit::Time(TimeUnit::Millis)));
    }

    #[test]
    fn other_text_is_refused_with_the_claim() {
        for (text, cause) in [
            ("mean", "no `=`"),
            ("mean=", "decimal"),
            ("mean=fast", "decimal"),
            ("mean=--5us", "decimal"),
            ("mean=1.2.3us", "decimal"),
            ("meen=3us", "`mean` is one"),
            ("p100=3us", "not a statistic"),
            ("mean=3parsecs", "unit is not known"),
            ("n=3us", "not have that unit"),
            ("mean=3%", "not have that unit"),
            ("a > b", "no `=`"),
            ("n=50,000", "it has a comma"),
            ("mean=1.25e-05s", "it has an exponent"),
            ("n=1E+4", "it has an exponent"),
        ] {
            let error = parse_claims(text).expect_err(text);
            assert!(error.cause.contains(cause) && error.to_string().contains('`'), "{error:?}");
        }
    }
}
