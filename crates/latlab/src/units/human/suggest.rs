//! Suggestions for mistyped words.

use strsim::osa_distance;

/// A hint with the known word that is most similar to `word`, or with all of them.
pub fn suggestion(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("known are {}", known.join(", ")),
    }
}

/// The known word with the smallest edit distance (optimal string alignment), at most a third of its letters.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let wanted = word.to_lowercase();
    let nearest = known.iter().map(|name| (osa_distance(&wanted, name), *name)).min();
    nearest.filter(|(edits, name)| *edits <= (name.len() / 3).max(1)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::suggestion;

    #[test]
    fn a_typo_is_corrected_and_another_word_is_not() {
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
