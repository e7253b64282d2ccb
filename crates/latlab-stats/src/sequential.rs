//! Group sequential tests: the level of one of several looks at growing data. Method, simulation and limits:
//! docs/statistics.md, "Looking again".

/// The level α for which [`POCOCK`] was computed.
const POCOCK_ALPHA: f64 = 0.05;
/// The level of each of 2 to 10 looks at equally many further runs, two-sided (Pocock 1977).
const POCOCK: [f64; 9] = [0.0294, 0.0221, 0.0182, 0.0158, 0.0142, 0.0130, 0.0120, 0.0112, 0.0106];

/// The most looks that can be declared.
pub const LOOKS_MAX: u32 = POCOCK.len() as u32 + 1;

/// A look at an experiment whose verdicts were shown before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// From 1.
    pub number: u32,
    /// How many looks were declared before the first, 1 to [`LOOKS_MAX`]; `None` if that is open.
    pub declared: Option<u32>,
    /// Whether each look so far added equally many runs, within a tenth.
    pub balanced: bool,
}

impl Look {
    /// The first of an open number.
    pub const FIRST: Look = Look { number: 1, declared: None, balanced: true };

    /// The level at which this look may claim something, so that all of them together keep about `alpha`: Pocock's if the
    /// looks were declared and are balanced, an equal part if they are not. The first look of an open number has α, since it
    /// may be the only one, and the k-th α/2ᵏ⁺².
    pub fn level(self, alpha: f64) -> f64 {
        let is_tabulated = self.balanced && (alpha - POCOCK_ALPHA).abs() < 1e-9;
        match self.declared {
            Some(declared) if self.number <= declared => match POCOCK.get((declared as usize).wrapping_sub(2)) {
                Some(level) if is_tabulated => *level,
                _ => alpha / f64::from(declared),
            },
            _ if self.number == 1 => alpha,
            _ => alpha / 2_f64.powi(self.number.min(60) as i32 + 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_look_has_the_level_that_its_declaration_gives() {
        let level = |number, declared, balanced| Look { number, declared, balanced }.level(0.05);
        assert_eq!(Look::FIRST.level(0.05), 0.05);
        assert_eq!((level(2, None, true), level(3, None, false)), (0.003_125, 0.001_562_5));
        assert_eq!(
            (level(1, Some(5), true), level(5, Some(5), true), level(3, Some(5), false)),
            (0.0158, 0.0158, 0.01)
        );
        assert_eq!((level(1, Some(1), true), level(10, Some(10), true)), (0.05, 0.0106));
        assert_eq!(level(6, Some(5), true), 0.05 / 256.0, "beyond the declared number");
        assert_eq!(Look { number: 2, declared: Some(4), balanced: true }.level(0.01), 0.0025, "another level");
    }
}
