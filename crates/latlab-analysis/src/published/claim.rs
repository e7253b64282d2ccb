//! Claims as typed: published figures with the precision of their text, and published orders of groups.

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

/// The words of figures other than quantiles.
const WORDS: [(&str, PublishedFigure); 17] = [
    ("n", PublishedFigure::N),
    ("count", PublishedFigure::N),
    ("lost", PublishedFigure::Lost),
    ("loss", PublishedFigure::LossRatio),
    ("loss_ratio", PublishedFigure::LossRatio),
    ("mean", PublishedFigure::Mean),
    ("avg", PublishedFigure::Mean),
    ("average", PublishedFigure::Mean),
    ("min", PublishedFigure::Min),
    ("minimum", PublishedFigure::Min),
    ("max", PublishedFigure::Max),
    ("maximum", PublishedFigure::Max),
    ("median", PublishedFigure::Quantile(0.5)),
    ("stddev", PublishedFigure::Stddev),
    ("stdev", PublishedFigure::Stddev),
    ("std", PublishedFigure::Stddev),
    ("sd", PublishedFigure::Stddev),
];

impl PublishedFigure {
    /// The figure that is called `word`: `mean`, `median`, `p99.9`.
    fn named(word: &str) -> Option<PublishedFigure> {
        let word = word.to_ascii_lowercase();
        let known = WORDS.iter().find(|(name, _)| *name == word).map(|(_, figure)| *figure);
        known.or_else(|| parse_quantile(&word).filter(|_| word.starts_with(['p', 'q'])).map(PublishedFigure::Quantile))
    }

    /// The name in JSON and tables: `mean`, `p50`, `p99.9`.
    pub fn name(self) -> String {
        match self {
            PublishedFigure::N => "n".into(),
            PublishedFigure::Lost => "lost".into(),
            PublishedFigure::LossRatio => "loss_ratio".into(),
            PublishedFigure::Mean => "mean".into(),
            PublishedFigure::Min => "min".into(),
            PublishedFigure::Max => "max".into(),
            PublishedFigure::Quantile(q) => human::quantile(q),
            PublishedFigure::Stddev => "stddev".into(),
        }
    }

    /// Whether it has the unit of the values; the others are counts and shares.
    pub const fn is_of_values(self) -> bool {
        !matches!(self, PublishedFigure::N | PublishedFigure::Lost | PublishedFigure::LossRatio)
    }
}

/// The unit of a published number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedUnit {
    /// A unit of time.
    Time(TimeUnit),
    Percent,
}

/// The units that can be typed behind a number.
const UNITS: [(&str, PublishedUnit); 7] = [
    ("ns", PublishedUnit::Time(TimeUnit::Nanos)),
    ("us", PublishedUnit::Time(TimeUnit::Micros)),
    ("µs", PublishedUnit::Time(TimeUnit::Micros)),
    ("μs", PublishedUnit::Time(TimeUnit::Micros)),
    ("ms", PublishedUnit::Time(TimeUnit::Millis)),
    ("s", PublishedUnit::Time(TimeUnit::Seconds)),
    ("%", PublishedUnit::Percent),
];

/// A published number with the precision of its text.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedNumber {
    /// As typed, with its unit: `11.026ms`.
    pub text: String,
    /// All of its digits, with its sign.
    digits: i64,
    /// How many of them stand behind the point.
    pub decimals: u32,
    /// Its unit, if one was typed.
    pub unit: Option<PublishedUnit>,
}

/// Digits of a number at most; eighteen fit an `i64`.
const DIGITS_MAX: usize = 18;

impl PublishedNumber {
    /// Parses `-1.25`, `50_000` or `11.026ms`.
    fn parse(text: &str) -> Result<PublishedNumber, &'static str> {
        if text.contains(',') {
            return Err("it has a comma: write `1.821` or `1821`, and blanks between claims");
        }
        let end = text.find(|char: char| !char.is_ascii_digit() && !"+-−._".contains(char)).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let is_power = |rest: &str| rest.starts_with(|char: char| char.is_ascii_digit() || "+-−".contains(char));
        let unit = match unit {
            "" => None,
            word if word.strip_prefix(['e', 'E']).is_some_and(is_power) => {
                return Err("it has an exponent: write all of its digits, such as `12.5us` for `1.25e-05s`");
            }
            word => Some(UNITS.iter().find(|(known, _)| *known == word).ok_or("its unit is not known")?.1),
        };
        let negative = number.starts_with(['-', '−']);
        let plain = number.strip_prefix(['+', '-', '−']).unwrap_or(number).replace('_', "");
        let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || digits.bytes().any(|byte| !byte.is_ascii_digit()) {
            return Err("it is not a decimal number");
        }
        let digits = digits.trim_start_matches('0');
        if digits.len() > DIGITS_MAX || fraction.len() > DIGITS_MAX {
            return Err("it has more than 18 digits");
        }
        let digits: i64 = if digits.is_empty() { Ok(0) } else { digits.parse() }.map_err(|_| "it is not a number")?;
        let digits = if negative { -digits } else { digits };
        Ok(PublishedNumber { text: text.to_owned(), digits, decimals: fraction.len() as u32, unit })
    }

    /// The number, if its unit is so many ticks long.
    pub(super) fn value(&self, ticks: f64) -> f64 {
        let (digits, power) = (self.digits as f64, 10_f64.powi(self.decimals as i32));
        // Powers of ten from 1 on are exact, so that the product or quotient is rounded once.
        if ticks >= power { digits * (ticks / power) } else { digits / (power / ticks) }
    }

    /// One unit of its last digit, if its unit is so many ticks long.
    pub(super) fn step(&self, ticks: f64) -> f64 {
        ticks / 10_f64.powi(self.decimals as i32)
    }

    /// Whether it has decimals that can be left out: of `127ns` and `0.1ns` none can, as `12ns` and `0ns` are other numbers.
    pub(super) fn can_be_shorter(&self) -> bool {
        self.decimals > 0 && (self.digits() > 1 || self.digits == 0)
    }

    /// How many digits it was published with, without leading zeros.
    pub fn digits(&self) -> u32 {
        self.digits.unsigned_abs().checked_ilog10().map_or(1, |power| power + 1)
    }
}

/// A published figure: `p99.9=11.026ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureClaim {
    pub text: String,
    pub figure: PublishedFigure,
    pub published: PublishedNumber,
}

impl FigureClaim {
    /// Parses `mean=296us`.
    ///
    /// # Errors
    /// The figure is unknown, or its value is not a number with the precision of its text.
    fn parse(text: &str) -> Result<FigureClaim, ClaimError> {
        let refuse = |cause: String| ClaimError { text: text.into(), cause };
        let (name, value) = text.split_once('=').ok_or_else(|| refuse("it has neither `=` nor `<` nor `>`".into()))?;
        let figure = PublishedFigure::named(name).ok_or_else(|| refuse(unknown_figure(name)))?;
        let published = PublishedNumber::parse(value).map_err(|cause| refuse(format!("of `{value}`: {cause}")))?;
        let is_fitting = match (figure, published.unit) {
            (_, None) => true,
            (PublishedFigure::LossRatio, Some(unit)) => unit == PublishedUnit::Percent,
            (figure, Some(unit)) => figure.is_of_values() && unit != PublishedUnit::Percent,
        };
        match is_fitting {
            true => Ok(FigureClaim { text: text.into(), figure, published }),
            false => Err(refuse(format!("`{}` does not have that unit", figure.name()))),
        }
    }
}

fn unknown_figure(name: &str) -> String {
    let known: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
    match human::nearest(name, &known) {
        Some(near) => format!("`{name}` is not a figure; `{near}` is one"),
        None => format!("`{name}` is not a figure"),
    }
}

/// A published order of two groups: `a > b`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderClaim {
    /// As typed, with single blanks.
    pub text: String,
    /// The group that is claimed to have the larger figure.
    pub greater: String,
    pub lesser: String,
}

impl OrderClaim {
    /// Parses the `words` of `a > b`, `a>b` or `a<b`.
    fn parse(words: &[&str]) -> Result<OrderClaim, ClaimError> {
        let text = words.join(" ");
        let refuse = |cause: &str| ClaimError { text: text.clone(), cause: cause.into() };
        let (left, right) = text.split_once(['<', '>']).ok_or_else(|| refuse("it has neither `<` nor `>`"))?;
        let (left, right) = (left.trim(), right.trim());
        if left.is_empty() || right.is_empty() || right.contains(['<', '>', '=']) || left.contains('=') {
            return Err(refuse("an order has two names with one `<` or `>` between them"));
        }
        if left == right {
            return Err(refuse("it names the same group twice"));
        }
        let (greater, lesser) = if text.contains('>') { (left, right) } else { (right, left) };
        let (greater, lesser) = (greater.to_owned(), lesser.to_owned());
        Ok(OrderClaim { text, greater, lesser })
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatedClaims {
    pub figures: Vec<FigureClaim>,
    pub orders: Vec<OrderClaim>,
}

/// A claim that cannot be parsed.
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
             `n=50000` or `lost=5`; of groups `a > b` or `a < b`",
        )
    }
}

impl StatedClaims {
    /// Adds the claims of `text`: words between blanks; `#` begins a comment up to the end of its line.
    ///
    /// # Errors
    /// The first claim that cannot be parsed.
    pub fn add(&mut self, text: &str) -> Result<(), ClaimError> {
        text.lines().try_for_each(|line| self.add_line(line.split('#').next().unwrap_or_default()))
    }

    fn add_line(&mut self, line: &str) -> Result<(), ClaimError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut rest = words.as_slice();
        while let [first, others @ ..] = rest {
            let is_sign = |word: Option<&&str>| word.is_some_and(|word| word.starts_with(['<', '>']));
            let length = match (first, others.first()) {
                (_, next) if is_sign(next) => {
                    if next.is_some_and(|next| next.len() > 1) {
                        2
                    } else {
                        3
                    }
                }
                (first, _) if first.ends_with(['<', '>']) => 2,
                (_, Some(unit)) if first.contains('=') && UNITS.iter().any(|(known, _)| known == unit) => {
                    self.figures.push(FigureClaim::parse(&format!("{first}{unit}"))?);
                    rest = &others[1..];
                    continue;
                }
                _ => 1,
            };
            let (own, after) = rest.split_at(length.min(rest.len()));
            match own.concat().contains(['<', '>']) {
                true => self.orders.push(OrderClaim::parse(own)?),
                false => self.figures.push(FigureClaim::parse(first)?),
            }
            rest = after;
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.figures.is_empty() && self.orders.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(text: &str) -> StatedClaims {
        let mut claims = StatedClaims::default();
        claims.add(text).expect(text);
        claims
    }

    #[test]
    fn claims_keep_the_precision_of_their_text() {
        let claims =
            stated("mean=296us p99.9=11.026ms  n=50_000 # the first row\nmax = 1us".replace(" = ", "=").as_str());
        let ticks = [1e3, 1e6, 1.0, 1e3];
        let values: Vec<(String, f64, f64, u32)> = claims
            .figures
            .iter()
            .zip(ticks)
            .map(|(claim, ticks)| {
                let published = &claim.published;
                (claim.figure.name(), published.value(ticks), published.step(ticks), published.digits())
            })
            .collect();
        let expected =
            [("mean", 296e3, 1e3, 3), ("p99.9", 11_026e3, 1e3, 5), ("n", 50_000.0, 1.0, 5), ("max", 1e3, 1e3, 1)];
        assert_eq!(values, expected.map(|(name, value, step, digits)| (name.to_owned(), value, step, digits)));
    }

    #[test]
    fn a_unit_may_stand_behind_a_blank_and_words_have_synonyms() {
        let claims = stated("avg=-1.50 ms median=3s sd=.5us loss=0.5% loss_ratio=0.005 lost=5");
        let names: Vec<String> = claims.figures.iter().map(|claim| claim.figure.name()).collect();
        assert_eq!(names, ["mean", "p50", "stddev", "loss_ratio", "loss_ratio", "lost"]);
        assert_eq!(claims.figures[0].published.value(1e6), -1.5e6);
        assert_eq!(claims.figures[2].published.value(1e3), 500.0);
        assert_eq!(claims.figures[3].published.unit, Some(PublishedUnit::Percent));
    }

    #[test]
    fn orders_are_read_in_every_spelling() {
        let claims = stated("a > b mean=1ns c<d\ne >f\ng< h");
        let orders: Vec<(&str, &str)> =
            claims.orders.iter().map(|order| (order.greater.as_str(), order.lesser.as_str())).collect();
        assert_eq!(orders, [("a", "b"), ("d", "c"), ("e", "f"), ("h", "g")]);
        assert_eq!(claims.figures.len(), 1);
    }

    #[test]
    fn other_text_is_refused_with_the_claim() {
        for text in [
            "mean",
            "mean=",
            "mean=fast",
            "mean=1,5us",
            "mean=--5us",
            "mean=+-5us",
            "mean=−−5us",
            "meen=3us",
            "p100=3us",
            "p=3us",
            "mean=3parsecs",
            "n=3us",
            "mean=3%",
            "loss=3us",
            "mean=1.2.3us",
            "mean=1234567890123456789us",
            "a >",
            "> b",
            "a > a",
            "a > b=c",
        ] {
            let error = StatedClaims::default().add(text).expect_err(text);
            assert!(error.explain().hint.is_some() && error.to_string().contains('`'), "{error:?}");
        }
        let near = StatedClaims::default().add("meen=3us").expect_err("a misspelled figure");
        assert!(near.cause.contains("`mean` is one"), "{near:?}");
        for text in ["mean=1,821ms", "mean=1us,max=2us", "n=50,000"] {
            let error = StatedClaims::default().add(text).expect_err(text);
            assert!(error.cause.contains("it has a comma"), "{error:?}");
        }
        for text in ["mean=1.25e-05s", "max=2E3us", "n=1e+4", "mean=1e−5s"] {
            let error = StatedClaims::default().add(text).expect_err(text);
            assert!(error.cause.contains("it has an exponent: write all of its digits"), "{error:?}");
        }
    }
}
