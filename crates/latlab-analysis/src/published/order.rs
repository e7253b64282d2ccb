//! Published orders of groups, judged by the comparison of runs (docs/comparing.md).

use super::claim::OrderClaim;
use crate::comparison::{Comparison, ComparisonOptions, ComparisonRequest, RunGroup, RunGroups, Verdict, compare};
use crate::diagnostics::{Caveat, Failure};
use crate::stats::Outline;
use crate::units::human;

/// A published order with its verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedOrder {
    pub claim: OrderClaim,
    /// Whether the difference is proven with the published direction, or with the other one; `None` if it is not proven.
    pub holds: Option<bool>,
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
) -> Result<Vec<CheckedOrder>, Failure> {
    let options = ComparisonOptions::at(1.0 - (1.0 - confidence) / claims.len().max(1) as f64);
    claims.iter().map(|claim| checked(groups, request, claim, &options)).collect()
}

fn checked(
    groups: &RunGroups,
    request: &ComparisonRequest,
    claim: &OrderClaim,
    options: &ComparisonOptions,
) -> Result<CheckedOrder, Failure> {
    let mut pair = groups.clone();
    pair.groups = vec![named(groups, &claim.lesser)?.clone(), named(groups, &claim.greater)?.clone()];
    let compared = compare(pair, request, options)?;
    let outline = |group: usize| compared.outlines.get(group).and_then(|own| own.first().copied().flatten());
    let (lesser, greater) = (outline(0), outline(1));
    let comparison =
        compared.rows.into_iter().find(|row| !row.added).ok_or_else(|| no_group(groups, &claim.greater))?;
    let holds = match comparison.verdict {
        Verdict::Higher => Some(true),
        Verdict::Lower => Some(false),
        Verdict::Equivalent | Verdict::None | Verdict::Undecided => None,
    };
    Ok(CheckedOrder { claim: claim.clone(), holds, comparison, greater, lesser, caveats: compared.caveats })
}

fn named<'a>(groups: &'a RunGroups, name: &str) -> Result<&'a RunGroup, Failure> {
    groups.groups.iter().find(|group| group.name == name).ok_or_else(|| no_group(groups, name))
}

fn no_group(groups: &RunGroups, name: &str) -> Failure {
    let known: Vec<String> = groups.groups.iter().map(|group| group.name.clone()).collect();
    Failure::request(format!("no group has the name `{name}`"))
        .because(format!("the groups are {}", human::listed(&known)))
        .hint("name groups as in `--group NAME=GLOB`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::NumberFiles;
    use crate::published::claim::StatedClaims;

    /// Thirty numbers around `centre`, without a trend.
    fn group(name: &str, centre: f64, seed: u64) -> NumberFiles {
        let line = |step: u64| {
            let mixed = (step + 100 * seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            centre + (((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) % 997) as f64 - 498.0
        };
        NumberFiles { name: name.into(), files: vec![(format!("{name}.txt"), (1..=30).map(line).collect())] }
    }

    fn orders(text: &str) -> Result<Vec<CheckedOrder>, Failure> {
        let mut claims = StatedClaims::default();
        claims.add(text).expect(text);
        let groups = vec![group("plain", 6_100.0, 1), group("offloaded", 6_160.0, 2), group("slow", 3_700.0, 3)];
        let groups = RunGroups::of_numbers(groups).expect("three groups");
        check_orders(&groups, &ComparisonRequest::of_values(None), &claims.orders, 0.95)
    }

    #[test]
    fn an_order_holds_only_if_the_difference_is_proven() {
        let checked = orders("plain > slow slow > plain plain < offloaded offloaded < plain").expect("all groups");
        let verdicts: Vec<Option<bool>> = checked.iter().map(|order| order.holds).collect();
        assert_eq!(verdicts, [Some(true), Some(false), None, None]);
        assert_eq!(checked[0].medians_agree(), Some(true));
        assert_eq!(checked[2].medians_agree(), checked[3].medians_agree().map(|agree| !agree));
    }

    #[test]
    fn an_unknown_group_is_named_with_the_known_ones() {
        let error = orders("plain > fast").expect_err("no such group");
        assert!(error.cause.is_some_and(|cause| cause.contains("plain, offloaded and slow")));
    }
}
