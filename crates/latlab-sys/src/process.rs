//! How this process was started.

/// Whether the file gave this process rights that its caller lacks (set-user-ID, file capabilities): then the
/// environment, which is the caller's, must not say what the process does with them. AT_SECURE of
/// [getauxval(3)](https://man7.org/linux/man-pages/man3/getauxval.3.html)
pub fn started_with_more_rights() -> bool {
    // SAFETY: takes a number and answers one.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Whether this process ignores `signal`, as whoever starts it with nohup(1) wants it to.
/// [sigaction(2)](https://man7.org/linux/man-pages/man2/sigaction.2.html); false for a number that is no signal.
pub fn ignores(signal: i32) -> bool {
    // SAFETY: a `sigaction` is plain values, for which zero bytes are valid.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action nothing changes; the old one is written to `now`, which is ours.
    let told = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
    told == 0 && now.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_the_runtime_ignores_is_seen() {
        // Programs in Rust ignore SIGPIPE from their start.
        assert!(super::ignores(libc::SIGPIPE));
        assert!(!super::ignores(libc::SIGTERM) && !super::ignores(-1));
    }

    #[test]
    fn a_test_has_the_rights_of_its_caller() {
        assert!(!super::started_with_more_rights());
    }
}
