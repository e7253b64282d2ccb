//! A test that cannot run here says so; where CI runs it, that is a failure: CI has root and every program that the
//! tests call (`.ci/run` installs them), and a test that is skipped there guards nothing.

use std::fmt::Display;
use std::io::Write;

/// Says past the test harness's capture that `test` cannot run here, and why; with CI=true fails it.
#[track_caller]
pub(crate) fn skip(test: &str, reason: impl Display) {
    assert!(!on_ci(std::env::var("CI").ok().as_deref()), "`{test}` cannot run here, but on CI it must: {reason}");
    writeln!(std::io::stderr(), "skipped {test}: {reason}").expect("stderr is open");
}

/// Whether this value of the variable CI means a run on CI.
fn on_ci(value: Option<&str>) -> bool {
    value == Some("true")
}

#[test]
fn only_on_ci_is_a_skipped_test_a_failure() {
    assert_eq!([None, Some(""), Some("false"), Some("true")].map(on_ci), [false, false, false, true]);
}
