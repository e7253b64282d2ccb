//! Cache lines that the processor fetches while other work goes on. No address is wrong: without memory there, or on other
//! processors than x86-64 and aarch64, nothing happens.

/// Bytes of a cache line of most processors. A longer one is asked for twice.
pub const LINE_BYTES: usize = 64;

/// Fetches the cache line at `place`, which is read soon.
/// [PREFETCHT0](https://www.felixcloutier.com/x86/prefetchh),
/// [PRFM](https://developer.arm.com/documentation/ddi0602/latest/Base-Instructions/PRFM--immediate---Prefetch-memory--immediate--)
#[inline]
pub fn to_read<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction has no effect that a program sees, at any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// Fetches the cache line at `place`, which is written soon: other processors lose their copies.
/// [PREFETCHW](https://www.felixcloutier.com/x86/prefetchw), PRFM as above
#[inline]
pub fn to_write<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction has no effect that a program sees, at any address; Intel's before Broadwell ignore it.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_is_permitted_and_no_value_changes() {
        let value = 7_u64;
        for place in [&raw const value, std::ptr::null(), std::ptr::without_provenance(usize::MAX)] {
            to_read(place);
            to_write(place);
        }
        assert_eq!(value, 7);
    }
}
