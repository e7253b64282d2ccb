//! What somebody may have meant who typed a word that is not known.

/// The known word most like `word`, or all of them, as a hint.
pub fn suggestion(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("known are {}", known.join(", ")),
    }
}

/// The known word that is a slip of the finger away from `word`: a third of its letters at most.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let wanted = word.to_lowercase();
    let nearest = known.iter().map(|name| (distance(&wanted, name), *name)).min();
    nearest.filter(|(edits, name)| *edits <= (name.len() / 3).max(1)).map(|(_, name)| name)
}

/// Letters to insert, remove, replace or swap with their neighbour (optimal string alignment).
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    rows[0] = (0..=to.len()).collect();
    for i in 1..=from.len() {
        rows[i][0] = i;
        for j in 1..=to.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let swaps = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
            let swapped = if swaps { rows[i - 2][j - 2] + 1 } else { usize::MAX };
            rows[i][j] = replaced.min(swapped).min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
        }
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::suggestion;

    #[test]
    fn a_slip_is_told_from_another_word() {
        let known = ["governor", "mtu", "offload"];
        for (word, hint) in [
            ("govenor", "did you mean `governor`?"),
            ("Offload", "did you mean `offload`?"),
            ("mut", "did you mean `mtu`?"),
            ("disk", "known are governor, mtu, offload"),
            ("mtuu", "did you mean `mtu`?"),
        ] {
            assert_eq!(suggestion(word, &known), hint);
        }
    }
}
