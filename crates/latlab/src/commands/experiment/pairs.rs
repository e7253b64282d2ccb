//! Which conditions a rule of width compares.

use crate::plan::Factors;

/// What is compared with what: each condition with the one that differs from it in `baseline` only; the first with all
/// others where none is named, or nothing would be compared.
pub(super) fn pairs(conditions: &[&Factors], baseline: Option<&Factors>) -> Vec<(usize, usize)> {
    let named = baseline.filter(|baseline| !baseline.is_empty()).map(|baseline| {
        let pair = |(place, factors): (usize, &&Factors)| {
            let wanted: Factors = (*factors).clone().into_iter().chain(baseline.clone()).collect();
            let other = conditions.iter().position(|factors| **factors == wanted)?;
            (other != place).then_some((other, place))
        };
        conditions.iter().enumerate().filter_map(pair).collect::<Vec<_>>()
    });
    let first = || (1..conditions.len()).map(|other| (0, other)).collect();
    named.filter(|pairs| !pairs.is_empty()).unwrap_or_else(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_is_the_one_that_is_named() {
        let of = |load: &str, size: &str| {
            Factors::from([("load".to_owned(), load.to_owned()), ("size".to_owned(), size.to_owned())])
        };
        let all = [of("a", "1"), of("a", "2"), of("b", "1"), of("b", "2")];
        let conditions: Vec<&Factors> = all.iter().collect();
        let named = Factors::from([("load".to_owned(), "b".to_owned())]);
        assert_eq!(pairs(&conditions, Some(&named)), [(2, 0), (3, 1)]);
        let first = [(0, 1), (0, 2), (0, 3)];
        assert_eq!(pairs(&conditions, None), first);
        assert_eq!(pairs(&conditions, Some(&Factors::new())), first);
        let gone = Factors::from([("load".to_owned(), "c".to_owned())]);
        assert_eq!(pairs(&conditions, Some(&gone)), first);
    }
}
