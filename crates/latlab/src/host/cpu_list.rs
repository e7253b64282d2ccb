//! The kernel's lists of CPUs: `0-3,6`.

/// The CPUs of `list`, ascending as the kernel writes them; none where it is no such list.
pub fn parse(list: &str) -> Option<Vec<u16>> {
    let mut cpus = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u16>().ok()?..=last.parse::<u16>().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn ranges_and_single_cpus() {
        assert_eq!(parse("0-2,6\n"), Some(vec![0, 1, 2, 6]));
        assert_eq!(parse("3"), Some(vec![3]));
        assert_eq!(parse("\n"), Some(vec![]));
        assert_eq!(parse("0-x"), None);
    }
}
