//! Checks that the footer of a Parquet file is a whole structure, before the general reader decodes it: that reader allocates
//! what a list claims to hold, and a claim of billions ends the process.
//!
//! Thrift's compact protocol: <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.

/// Deeper structures do not occur in a footer.
const DEPTH_MAX: u32 = 16;
/// Type of a struct in the header of a field or list.
const STRUCT: u8 = 12;

/// Whether `bytes` begin with a whole struct whose lists and texts fit into them.
pub(super) fn is_whole_struct(bytes: &[u8]) -> bool {
    Walk { left: bytes }.value(STRUCT, DEPTH_MAX).is_some()
}

struct Walk<'a> {
    left: &'a [u8],
}

impl Walk<'_> {
    /// Walks over a value of the type `kind`; `None` if it is not whole.
    fn value(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            3 => self.skip(1),
            4..=6 => self.varint().map(drop),
            7 => self.skip(8),
            8 => self.varint().and_then(|length| self.skip(length)),
            9 | 10 => self.list(depth),
            11 => self.map(depth),
            STRUCT => self.fields(depth),
            _ => None,
        }
    }

    fn fields(&mut self, depth: u32) -> Option<()> {
        loop {
            let header = self.byte()?;
            if header == 0 {
                return Some(());
            }
            if header >> 4 == 0 {
                self.varint()?;
            }
            match header & 0xf {
                // The value of a boolean field is its type.
                1 | 2 => (),
                kind => self.value(kind, depth)?,
            }
        }
    }

    fn list(&mut self, depth: u32) -> Option<()> {
        let header = self.byte()?;
        let length = if header >> 4 == 0xf { self.varint()? } else { u64::from(header >> 4) };
        self.elements(length, &[header & 0xf], depth)
    }

    fn map(&mut self, depth: u32) -> Option<()> {
        let length = self.varint()?;
        if length == 0 {
            return Some(());
        }
        let kinds = self.byte()?;
        self.elements(length, &[kinds >> 4, kinds & 0xf], depth)
    }

    fn elements(&mut self, length: u64, kinds: &[u8], depth: u32) -> Option<()> {
        // The smallest struct of a footer, the order of a column, takes 3 bytes; the reader reserves some hundred for each.
        let least_bytes = if kinds == [STRUCT] { 3 } else { 1 };
        if length.saturating_mul(least_bytes) > self.left.len() as u64 {
            return None;
        }
        for _ in 0..length {
            for kind in kinds {
                // A boolean element is a byte, unlike a boolean field.
                self.value(if matches!(kind, 1 | 2) { 3 } else { *kind }, depth)?;
            }
        }
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, left) = self.left.split_first()?;
        self.left = left;
        Some(*byte)
    }

    fn skip(&mut self, length: u64) -> Option<()> {
        self.left = self.left.get(usize::try_from(length).ok()?..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::is_whole_struct;

    #[test]
    fn a_struct_is_whole_with_its_stop_and_all_its_elements() {
        // Field 1: i32; field 2: list of two i32; field 3: text of 2 bytes; field 4: struct with a true.
        let whole = [0x15, 2, 0x19, 0x25, 2, 4, 0x18, 2, b'a', b'b', 0x1c, 0x11, 0, 0];
        assert!(is_whole_struct(&whole));
        for length in 0..whole.len() {
            assert!(!is_whole_struct(&whole[..length]), "{length} bytes");
        }
    }

    #[test]
    fn a_list_that_claims_more_than_there_is_is_refused() {
        assert!(is_whole_struct(&[0x19, 0xf5, 1, 2, 0]));
        assert!(!is_whole_struct(&[0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 7, 2, 0]));
        assert!(!is_whole_struct(&[0x18, 0xff, 0xff, 0xff, 0xff, 7, 2, 0]));
        assert!(!is_whole_struct(&[0x1b, 0xff, 0xff, 3, 0x55, 2, 0]));
    }

    #[test]
    fn endless_nesting_is_refused() {
        let mut nested = vec![0x1c; 1000];
        nested.resize(2001, 0);
        assert!(!is_whole_struct(&nested));
    }
}
