//! Invalid command lines leave nothing behind. Their messages are in the goldens (`testdata/goldens/refusals`).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::harness::{Latlab, contains, empty};

#[test]
fn a_refused_command_line_prints_nothing_and_makes_no_file() {
    for line in ["ping --size 23", "ping --no-such-option", "stream --mode gso --checksum off", "pign"] {
        let ran = Latlab::new().line(line).stdout(empty()).stderr(contains("\n  hint: ")).failure(2);
        let left = std::fs::read_dir(ran.directory()).expect("the directory is there").count();
        assert_eq!(left, 0, "{line} left something behind");
    }
}

#[test]
fn an_argument_that_is_not_utf8_is_refused() {
    let strange = OsStr::from_bytes(b"\xff\xfe");
    Latlab::new().args([OsStr::new("ping"), strange]).stderr(contains("\n  hint: ")).failure(2);
}
