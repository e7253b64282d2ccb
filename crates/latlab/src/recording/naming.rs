//! Names of runs and of their directories.

use std::io;

use jiff::Timestamp;

use crate::plan::Kind;

/// A fresh run id: 16 hexadecimal digits.
pub fn fresh_run_id() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}

/// CLOCK_REALTIME as the manifest's `started_at`: UTC, RFC 3339, to the millisecond.
pub fn started_at(realtime_ns: i64) -> String {
    let milliseconds = realtime_ns.div_euclid(1_000_000);
    let instant = Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{instant:.3}")
}

/// `<UTC start>-<kind>-<short id>`; the short id has `digits` digits of the run id.
pub(crate) fn directory_name(started_at: &str, kind: Kind, run_id: &str, digits: usize) -> String {
    let start = match started_at.parse::<Timestamp>() {
        Ok(instant) => instant.strftime("%Y%m%dT%H%M%SZ").to_string(),
        // An importer may know no better than some words; a directory's name bears only plain characters.
        Err(_) => started_at.chars().filter(char::is_ascii_alphanumeric).collect(),
    };
    let short = run_id.get(..digits).unwrap_or(run_id);
    format!("{start}-{}-{short}", kind.word())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_sort_by_their_start() {
        let start = started_at(1_795_227_300_123_456_789);
        assert_eq!(start, "2026-11-21T02:15:00.123Z");
        assert_eq!(directory_name(&start, Kind::Ping, "7f3a00112233aabb", 4), "20261121T021500Z-ping-7f3a");
        assert_eq!(directory_name("some day / or so", Kind::Ping, "7f", 4), "somedayorso-ping-7f");
    }

    #[test]
    fn run_ids_differ() {
        let (one, other) = (fresh_run_id().expect("chance"), fresh_run_id().expect("chance"));
        assert_eq!(one.len(), 16);
        assert!(one.bytes().all(|digit| digit.is_ascii_hexdigit()));
        assert_ne!(one, other);
    }
}
