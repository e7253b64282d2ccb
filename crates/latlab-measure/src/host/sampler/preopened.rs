//! Files that are opened once and read repeatedly, into buffers of their own.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::host::root::HostRoot;

/// A file of text. `/proc` generates it for each reading from its start.
#[derive(Debug)]
pub(super) struct PreopenedText {
    file: File,
    buffer: Box<[u8]>,
}

impl PreopenedText {
    /// Opens `file`; `None` if it cannot be read or has more than `most` bytes.
    pub(super) fn open(root: &HostRoot, file: &str, most: usize) -> Option<PreopenedText> {
        let file = root.open(file).ok()?;
        let mut text = PreopenedText { file, buffer: vec![0; most].into() };
        let length = text.read()?.len();
        // It may grow by digits, and by CPUs.
        text.buffer = vec![0; (2 * length + 4_096).min(most)].into();
        Some(text)
    }

    /// The present text; `None` if it no longer fits into the buffer.
    pub(super) fn read(&mut self) -> Option<&str> {
        let mut length = 0;
        loop {
            match self.file.read_at(self.buffer.get_mut(length..)?, length as u64).ok()? {
                0 if length == self.buffer.len() => return None,
                0 => return std::str::from_utf8(&self.buffer[..length]).ok(),
                bytes => length += bytes,
            }
        }
    }
}

/// A file that holds one number.
#[derive(Debug)]
pub(super) struct PreopenedNumber {
    file: File,
    radix: u32,
}

impl PreopenedNumber {
    /// Opens `file`; `None` if it cannot be opened.
    pub(super) fn open(root: &HostRoot, file: &str) -> Option<PreopenedNumber> {
        Some(PreopenedNumber { file: root.open(file).ok()?, radix: 10 })
    }

    /// Opens a file whose number is hexadecimal.
    pub(super) fn open_hexadecimal(root: &HostRoot, file: &str) -> Option<PreopenedNumber> {
        Some(PreopenedNumber { file: root.open(file).ok()?, radix: 16 })
    }

    pub(super) fn read(&self) -> Option<i64> {
        let mut bytes = [0; 32];
        let length = self.file.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(&bytes[..length]).ok()?.trim_matches(['\0', '\n', ' ']);
        let digits = if self.radix == 16 { text.trim_start_matches("0x") } else { text };
        i64::from_str_radix(digits, self.radix).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::root::tests::FakeHost;

    #[test]
    fn numbers_are_read_repeatedly() {
        let host = FakeHost::new()
            .with("sys/a", "812\n")
            .with("sys/b", "0x50005\n")
            .with("sys/c", "-40000")
            .with("sys/d", "<unknown>");
        let number = PreopenedNumber::open(&host.root, "sys/a").expect("is there");
        assert_eq!(number.read(), Some(812));
        let host = host.with("sys/a", "7\n");
        assert_eq!(number.read(), Some(7));
        assert_eq!(
            PreopenedNumber::open_hexadecimal(&host.root, "sys/b").and_then(|number| number.read()),
            Some(0x5_0005)
        );
        assert_eq!(PreopenedNumber::open(&host.root, "sys/c").and_then(|number| number.read()), Some(-40_000));
        assert_eq!(PreopenedNumber::open(&host.root, "sys/d").and_then(|number| number.read()), None);
        assert!(PreopenedNumber::open(&host.root, "sys/e").is_none());
    }

    #[test]
    fn a_text_that_outgrows_its_buffer_is_unknown() {
        let host = FakeHost::new().with("proc/x", "some text\n");
        let mut text = PreopenedText::open(&host.root, "proc/x", 10_000).expect("is there");
        assert_eq!(text.read(), Some("some text\n"));
        let host = host.with("proc/x", &"y".repeat(6_000));
        assert_eq!(text.read(), None);
        assert!(PreopenedText::open(&host.root, "proc/x", 6_000).is_none());
        assert!(PreopenedText::open(&host.root, "proc/x", 6_001).is_some());
    }
}
