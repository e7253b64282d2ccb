//! How this process was started.

/// Whether the file gave this process rights that its caller lacks (set-user-ID, file capabilities): then the
/// environment, which is the caller's, must not say what the process does with them. AT_SECURE of
/// [getauxval(3)](https://man7.org/linux/man-pages/man3/getauxval.3.html)
pub fn started_with_more_rights() -> bool {
    // SAFETY: takes a number and answers one.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_has_the_rights_of_its_caller() {
        assert!(!super::started_with_more_rights());
    }
}
