//! Published orders of groups, judged by the comparison of runs (docs/comparing.md).

use thiserror::Error;

use super::claim::OrderClaim;
use crate::analysis::comparison::{
    Comparison, ComparisonOptions, ComparisonRequest, GroupingError, RunGroup, RunGroups, Verdict, compare,
};
use crate::diagnostics::{Caveat, Explain, Failure};
use crate::stats::Outline;
use crate::units::human;

/// What the data say about a published order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderVerdict {
    /// The difference is proven, and has the published direction.
    Holds,
    /// A difference in the other direction is proven.
    Contradicted,
    /// These data do not decide.
    Undecided,
}

impl OrderVerdict {
    /// The word in JSON and tables.
    pub const fn word(self) -> &'static str {
        match self {
            OrderVerdict::Holds => "holds",
            OrderVerdict::Contradicted => "contradicted",
            OrderVerdict::Undecided => "undecided",
        }
    }
}

/// A published order with its verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedOrder {
    pub claim: OrderClaim,
    pub verdict: OrderVerdict,
    /// The comparison of the group that is claimed to be greater with the other one as the baseline.
    pub comparison: Comparison,
    /// The figures of the runs or lines of the group that is claimed to be greater; `None` without any.
    pub greater: Option<Outline>,
    /// The same of the other group.
    pub lesser: Option<Outline>,
    /// The caveats of the comparison.
    pub caveats: Vec<Caveat>,
}

impl CheckedOrder {
    /// Whether the medians have the order that is claimed; `None` if they are equal or a group has no figure.
    pub fn medians_agree(&self) -> Option<bool> {
        let (greater, lesser) = (self.greater?.median, self.lesser?.median);
        (greater != lesser).then_some(greater > lesser)
    }
}

/// Why an order cannot be judged.
#[derive(Debug, Error)]
pub enum OrderError {
    /// No group has that name.
    #[error("no group has the name `{name}`")]
    NoGroup {
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The groups cannot be compared.
    #[error(transparent)]
    Incomparable(#[from] GroupingError),
}

impl Explain for OrderError {
    fn explain(&self) -> Failure {
        match self {
            OrderError::NoGroup { known, .. } => Failure::request(self)
                .because(format!("the groups are {}", human::listed(known)))
                .hint("name groups as in `--group NAME=GLOB`"),
            OrderError::Incomparable(error) => error.explain(),
        }
    }
}

/// Checks the order of the figures that `request` asks for, of which it has one. All verdicts hold together with `confidence`:
/// each claim is judged at its share of the level (Bonferroni).
///
/// # Errors
/// If a group is missing, or two cannot be compared.
pub fn check_orders(
    groups: &RunGroups,
    request: &ComparisonRequest,
    claims: &[OrderClaim],
    confidence: f64,
) -> Result<Vec<CheckedOrder>, OrderError> {
    let options = ComparisonOptions::at(1.0 - (1.0 - confidence) / claims.len().max(1) as f64);
    claims.iter().map(|claim| checked(groups, request, claim, &options)).collect()
}

fn checked(
    groups: &RunGroups,
    request: &ComparisonRequest,
    claim: &OrderClaim,
    options: &ComparisonOptions,
) -> Result<CheckedOrder, OrderError> {
    let mut pair = groups.clone();
    pair.groups = vec![named(groups, &claim.lesser)?.clone(), named(groups, &claim.greater)?.clone()];
    let compared = compare(pair, request, options)?;
    let outline = |group: usize| compared.outlines.get(group).and_then(|own| own.first().copied().flatten());
    let (lesser, greater) = (outline(0), outline(1));
    let Some(comparison) = compared.rows.into_iter().find(|row| !row.added) else {
        let known = groups.groups.iter().map(|group| group.name.clone()).collect();
        return Err(OrderError::NoGroup { name: claim.greater.clone(), known });
    };
    let verdict = match comparison.verdict {
        Verdict::Higher => OrderVerdict::Holds,
        Verdict::Lower => OrderVerdict::Contradicted,
        Verdict::Equivalent | Verdict::None | Verdict::Undecided => OrderVerdict::Undecided,
    };
    Ok(CheckedOrder { claim: claim.clone(), verdict, comparison, greater, lesser, caveats: compared.caveats })
}

fn named<'a>(groups: &'a RunGroups, name: &str) -> Result<&'a RunGroup, OrderError> {
    groups.groups.iter().find(|group| group.name == name).ok_or_else(|| OrderError::NoGroup {
        name: name.to_owned(),
        known: groups.groups.iter().map(|group| group.name.clone()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::comparison::NumberFiles;
    use crate::analysis::published::claim::StatedClaims;

    /// Thirty numbers around `centre`, without a trend.
    fn group(name: &str, centre: f64, seed: u64) -> NumberFiles {
        let line = |step: u64| {
            let mixed = (step + 100 * seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            centre + (((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) % 997) as f64 - 498.0
        };
        NumberFiles { name: name.into(), files: vec![(format!("{name}.txt"), (1..=30).map(line).collect())] }
    }

    fn orders(text: &str) -> Result<Vec<CheckedOrder>, OrderError> {
        let mut claims = StatedClaims::default();
        claims.add(text).expect(text);
        let groups = vec![group("plain", 6_100.0, 1), group("offloaded", 6_160.0, 2), group("slow", 3_700.0, 3)];
        let groups = RunGroups::of_numbers(groups).expect("three groups");
        check_orders(&groups, &ComparisonRequest::of_values(None), &claims.orders, 0.95)
    }

    #[test]
    fn an_order_holds_only_if_the_difference_is_proven() {
        let checked = orders("plain > slow slow > plain plain < offloaded offloaded < plain").expect("all groups");
        let verdicts: Vec<OrderVerdict> = checked.iter().map(|order| order.verdict).collect();
        use OrderVerdict::{Contradicted, Holds, Undecided};
        assert_eq!(verdicts, [Holds, Contradicted, Undecided, Undecided]);
        assert_eq!(checked[0].medians_agree(), Some(true));
        assert_eq!(checked[2].medians_agree(), checked[3].medians_agree().map(|agree| !agree));
    }

    #[test]
    fn an_unknown_group_is_named_with_the_known_ones() {
        let error = orders("plain > fast").expect_err("no such group").explain();
        assert!(error.cause.is_some_and(|cause| cause.contains("plain, offloaded and slow")));
    }
}
