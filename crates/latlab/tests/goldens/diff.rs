//! Differences between two texts, line by line.

/// Lines shown around a difference.
const CONTEXT: usize = 3;
const SHOWN: usize = 80;

/// The lines of `old` and `new` that the other lacks, marked `-` and `+`, with some context; cut after [`SHOWN`] lines.
pub(crate) fn of(old: &str, new: &str) -> String {
    let script = script(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    let near = |index: usize| {
        let around = index.saturating_sub(CONTEXT)..(index + CONTEXT + 1).min(script.len());
        script[around].iter().any(|(mark, _)| *mark != ' ')
    };
    let mut shown = Vec::new();
    let mut gap = false;
    for (index, (mark, line)) in script.iter().enumerate() {
        match near(index) {
            true => shown.push(format!("{mark} {line}")),
            false if !gap => shown.push("  ⋮".to_owned()),
            false => {}
        }
        gap = !near(index);
    }
    let more = shown.len().saturating_sub(SHOWN);
    shown.truncate(SHOWN);
    if more > 0 {
        shown.push(format!("  … {more} lines more"));
    }
    shown.join("\n")
}

/// The lines of `old` and `new` that the other lacks, marked `-` and `+`.
pub(crate) fn changes(old: &str, new: &str) -> String {
    let script = script(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    let changed = script.iter().filter(|(mark, _)| *mark != ' ');
    changed.map(|(mark, line)| format!("{mark} {line}\n")).collect()
}

/// Each line with its mark: the longest common subsequence between equal beginnings and ends.
fn script<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let tails = old[head..].iter().rev().zip(new[head..].iter().rev());
    let tail = tails.take_while(|(old, new)| old == new).count();
    let (left, right) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut longest = vec![vec![0_u32; right.len() + 1]; left.len() + 1];
    for i in (0..left.len()).rev() {
        for j in (0..right.len()).rev() {
            longest[i][j] =
                if left[i] == right[j] { longest[i + 1][j + 1] + 1 } else { longest[i + 1][j].max(longest[i][j + 1]) };
        }
    }
    let mut script: Vec<(char, &str)> = old[..head].iter().map(|&line| (' ', line)).collect();
    let (mut i, mut j) = (0, 0);
    while i < left.len() || j < right.len() {
        if i < left.len() && j < right.len() && left[i] == right[j] {
            script.push((' ', left[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == right.len() || (i < left.len() && longest[i + 1][j] >= longest[i][j + 1]) {
            script.push(('-', left[i]));
            i += 1;
        } else {
            script.push(('+', right[j]));
            j += 1;
        }
    }
    script.extend(old[old.len() - tail..].iter().map(|&line| (' ', line)));
    script
}

#[test]
fn a_diff_shows_the_changed_lines_and_what_stands_around_them() {
    let old: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let mut new = old.clone();
    new[9] = "nine".into();
    assert_eq!(of(&old.join("\n"), &new.join("\n")), "  ⋮\n  6\n  7\n  8\n- 9\n+ nine\n  10\n  11\n  12\n  ⋮");
}
