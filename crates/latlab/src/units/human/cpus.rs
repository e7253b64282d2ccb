//! Lists of CPUs, as the kernel writes them: `0-3,6`.

use super::parse::ParseError;

const HINT: &str = "CPU numbers and ranges of them, such as `0-3` or `0-3,6`; `latlab doctor` shows those of this host";

/// Reads `0-3,6`, each CPU once, ascending. Whether a host has them is for the host to say.
///
/// Refused: an empty list or part, a range that goes down, a CPU named twice, a number above `highest`.
pub fn parse_cpus(text: &str, highest: u16) -> Result<Vec<u16>, ParseError> {
    let refuse = |cause: String| ParseError::new("list of CPUs", text, cause, HINT);
    let number = |text: &str| match text.trim().parse::<u16>() {
        Ok(cpu) if cpu <= highest && !text.trim().starts_with('+') => Ok(cpu),
        Ok(cpu) if cpu > highest => Err(refuse(format!("the highest CPU number is {highest}"))),
        _ => Err(refuse(format!("`{}` is no CPU number", text.trim()))),
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(refuse(format!("`{}` goes down", part.trim())));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    match cpus.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(refuse(format!("CPU {} stands in it twice", pair[0]))),
        None => Ok(cpus),
    }
}

/// `cpus`, which ascend, as they are typed: `0-3,6`.
pub fn typed_cpus(cpus: &[u16]) -> String {
    let neighbours = |a: &u16, b: &u16| a.checked_add(1) == Some(*b);
    let ranges = cpus.chunk_by(neighbours).map(|range| match range {
        [one] => one.to_string(),
        range => format!("{}-{}", range[0], range[range.len() - 1]),
    });
    ranges.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_can_be_typed_again() {
        for (text, cpus, typed) in [
            ("0", vec![0], "0"),
            ("0-3,6", vec![0, 1, 2, 3, 6], "0-3,6"),
            ("6, 0-1", vec![0, 1, 6], "0-1,6"),
            ("1023", vec![1_023], "1023"),
            ("2-2", vec![2], "2"),
        ] {
            assert_eq!(parse_cpus(text, 1_023), Ok(cpus.clone()), "{text}");
            assert_eq!(typed_cpus(&cpus), typed);
        }
        assert_eq!(typed_cpus(&[]), "");
    }

    #[test]
    fn what_is_no_list_is_refused_with_its_cause() {
        for (text, cause) in [
            ("", "`` is no CPU number"),
            ("0,", "`` is no CPU number"),
            ("a", "`a` is no CPU number"),
            ("0-", "`` is no CPU number"),
            ("-1", "`` is no CPU number"),
            ("+1", "`+1` is no CPU number"),
            ("1.5", "`1.5` is no CPU number"),
            ("3-1", "goes down"),
            ("0-2,1", "CPU 1 stands in it twice"),
            ("1024", "highest CPU number is 1023"),
            ("99999", "`99999` is no CPU number"),
        ] {
            let error = parse_cpus(text, 1_023).expect_err(text);
            assert!(error.cause.contains(cause), "{text}: {}", error.cause);
            assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
        }
    }
}
