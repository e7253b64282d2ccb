//! Names and descriptions of error numbers. [errno(3)](https://man7.org/linux/man-pages/man3/errno.3.html)

use std::io;

/// The symbolic name of an error number. `None` if network, scheduling and file system calls do not usually return it.
pub const fn name(errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::EPERM => "EPERM",
        libc::ENOENT => "ENOENT",
        libc::EINTR => "EINTR",
        libc::EIO => "EIO",
        libc::ENXIO => "ENXIO",
        libc::EAGAIN => "EAGAIN",
        libc::ENOMEM => "ENOMEM",
        libc::EACCES => "EACCES",
        libc::EBUSY => "EBUSY",
        libc::EEXIST => "EEXIST",
        libc::ENODEV => "ENODEV",
        libc::ENOTDIR => "ENOTDIR",
        libc::EISDIR => "EISDIR",
        libc::EINVAL => "EINVAL",
        libc::EMFILE => "EMFILE",
        libc::ENOSPC => "ENOSPC",
        libc::EROFS => "EROFS",
        libc::ENAMETOOLONG => "ENAMETOOLONG",
        libc::ENOSYS => "ENOSYS",
        libc::EMSGSIZE => "EMSGSIZE",
        libc::ENOPROTOOPT => "ENOPROTOOPT",
        libc::EOPNOTSUPP => "EOPNOTSUPP",
        libc::EAFNOSUPPORT => "EAFNOSUPPORT",
        libc::EADDRINUSE => "EADDRINUSE",
        libc::EADDRNOTAVAIL => "EADDRNOTAVAIL",
        libc::ENETDOWN => "ENETDOWN",
        libc::ENETUNREACH => "ENETUNREACH",
        libc::ENOBUFS => "ENOBUFS",
        libc::ETIMEDOUT => "ETIMEDOUT",
        libc::EDQUOT => "EDQUOT",
        libc::ECONNREFUSED => "ECONNREFUSED",
        libc::EHOSTDOWN => "EHOSTDOWN",
        libc::EHOSTUNREACH => "EHOSTUNREACH",
        libc::ENONET => "ENONET",
        _ => return None,
    })
}

/// The description of an error, as it stands in the cause of a message: `operation not permitted (EPERM)`.
pub fn explain(error: &io::Error) -> String {
    let Some(errno) = error.raw_os_error() else { return error.to_string() };
    // The standard library appends " (os error N)" to the system's own sentence.
    let sentence = error.to_string();
    let sentence = sentence.split(" (os error").next().unwrap_or_default();
    let mut letters = sentence.chars();
    let lower: String = letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect();
    match name(errno) {
        Some(name) => format!("{lower} ({name})"),
        None => format!("{lower} (errno {errno})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_number_becomes_a_sentence_with_its_name() {
        assert_eq!(explain(&io::Error::from_raw_os_error(libc::EPERM)), "operation not permitted (EPERM)");
        assert!(explain(&io::Error::from_raw_os_error(libc::ECHILD)).ends_with("(errno 10)"));
        assert_eq!(explain(&io::Error::other("no number")), "no number");
    }
}
