//! CRC-32C (RFC 3720, appendix B.4) of what a recording holds: the column chunks and the footer of each table, and the
//! manifest itself. Formats: docs/recording.md, section 12.

use serde::{Deserialize, Serialize};

/// Checksums of a Parquet file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableChecksums {
    pub bytes: u64,
    /// CRC-32C of all bytes after the last column chunk, as eight hexadecimal digits.
    pub footer: String,
    /// For each row group the CRC-32C of each column chunk, in the order of the columns: eight hexadecimal digits each, with
    /// a space between two.
    pub row_groups: Vec<String>,
}

impl TableChecksums {
    /// The checksum of a column chunk; `None` if the file has more chunks than checksums.
    pub(super) fn of_chunk(&self, group: usize, column: usize) -> Option<&str> {
        self.row_groups.get(group)?.split(' ').nth(column)
    }
}

/// The CRC-32C of `bytes`, as eight hexadecimal digits.
pub(super) fn crc32c_text(bytes: &[u8]) -> String {
    format!("{:08x}", crc32c::crc32c(bytes))
}

/// What is wrong with `what`, whose checksum is `expected`; `None` if its bytes have it.
pub(super) fn mismatch(what: &str, bytes: &[u8], expected: &str) -> Option<String> {
    let found = crc32c_text(bytes);
    (found != expected).then(|| format!("{what}: its CRC-32C is {found}, and {expected} was written"))
}

/// The last member of a manifest, before and after its eight digits.
const SEAL: [&str; 2] = [",\n  \"crc32c\": \"", "\"\n}\n"];
const DIGITS: usize = 8;

/// `json`, an object in the pretty form with at least one member, with the checksum of all bytes before its digits as last
/// member.
pub(super) fn seal(mut json: Vec<u8>) -> Vec<u8> {
    json.truncate(json.trim_ascii_end().len().saturating_sub(b"\n}".len()));
    json.extend_from_slice(SEAL[0].as_bytes());
    let digits = crc32c_text(&json);
    json.extend_from_slice(digits.as_bytes());
    json.extend_from_slice(SEAL[1].as_bytes());
    json
}

/// Whether the bytes of a manifest have the checksum in them: `None` without one, else what is wrong, if anything is.
pub(super) fn check_seal(bytes: &[u8]) -> Option<Result<(), String>> {
    let (covered, digits) = bytes.strip_suffix(SEAL[1].as_bytes())?.split_last_chunk::<DIGITS>()?;
    covered.strip_suffix(SEAL[0].as_bytes())?;
    let digits = str::from_utf8(digits).ok()?;
    Some(mismatch("it was changed", covered, digits).map_or(Ok(()), Err))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_castagnoli_one() {
        // RFC 3720, appendix B.4, and the usual check value.
        assert_eq!(crc32c_text(&[0; 32]), "8a9136aa");
        assert_eq!(crc32c_text(b"123456789"), "e3069283");
    }

    #[test]
    fn every_changed_byte_of_a_sealed_manifest_is_found() {
        let sealed = seal(b"{\n  \"format\": 1,\n  \"rows\": 7\n}\n".to_vec());
        assert_eq!(check_seal(&sealed), Some(Ok(())));
        assert!(serde_json::from_slice::<serde_json::Value>(&sealed).is_ok_and(|value| value["rows"] == 7));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_ne!(check_seal(&changed), Some(Ok(())), "byte {at}");
        }
        assert_eq!(check_seal(b"{\n  \"format\": 1\n}\n"), None);
    }

    #[test]
    fn the_checksum_of_a_chunk_is_found_by_row_group_and_column() {
        let row_groups = vec!["00000000 11111111".into(), "22222222 33333333".into()];
        let checksums = TableChecksums { bytes: 0, footer: String::new(), row_groups };
        assert_eq!(checksums.of_chunk(1, 1), Some("33333333"));
        assert_eq!((checksums.of_chunk(2, 0), checksums.of_chunk(0, 2)), (None, None));
    }
}
