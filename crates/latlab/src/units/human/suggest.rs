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

/// Insertions, deletions and replacements that turn one word into the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
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
            ("mut", "known are governor, mtu, offload"),
            ("mtuu", "did you mean `mtu`?"),
        ] {
            assert_eq!(suggestion(word, &known), hint);
        }
    }
}
