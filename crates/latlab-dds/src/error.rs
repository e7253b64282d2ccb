//! Refusals of the library.

use std::ffi::{CStr, CString};

use thiserror::Error;

use crate::ffi::{self, DdsReturn};

/// A refusal of the library.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot {action}: {cause}")]
pub struct DdsError {
    pub action: &'static str,
    pub cause: String,
    pub is_timeout: bool,
}

/// `code` unless it is an error of `action`.
pub(crate) fn checked(action: &'static str, code: DdsReturn) -> Result<DdsReturn, DdsError> {
    if code >= 0 {
        return Ok(code);
    }
    // SAFETY: the library returns a constant for every code.
    let words = unsafe { CStr::from_ptr(ffi::dds_strretcode(code)) };
    Err(DdsError { action, cause: words.to_string_lossy().to_lowercase(), is_timeout: code == ffi::TIMEOUT })
}

pub(crate) fn c_string(action: &'static str, text: &str) -> Result<CString, DdsError> {
    CString::new(text).map_err(|error| DdsError { action, cause: error.to_string(), is_timeout: false })
}
