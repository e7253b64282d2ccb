//! The comparisons of a condition.

/// Longer ones first: `>=` begins with `>`.
pub(super) const OPERATORS: [(&str, Operator); 4] =
    [(">=", Operator::AtLeast), ("<=", Operator::AtMost), (">", Operator::Above), ("<", Operator::Below)];

/// How a figure is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    AtLeast,
    AtMost,
    Above,
    Below,
}

impl Operator {
    /// Whether the comparison holds.
    pub(super) fn compares(self, left: f64, right: f64) -> bool {
        match self {
            Operator::AtLeast => left >= right,
            Operator::AtMost => left <= right,
            Operator::Above => left > right,
            Operator::Below => left < right,
        }
    }
}
