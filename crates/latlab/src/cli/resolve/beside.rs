use super::{RequestError, value};
use crate::plan::{ConcurrentWakeups, EndSpec, WaitMode, WakeupCpus, defaults};
use crate::units::Nanos;

const OPTION: &str = "--with-wakeup";
const HINT: &str = "`--with-wakeup 1ms`, or `--with-wakeup 1ms:late=200us`";

/// Wake-ups beside a sender that runs as `here` says.
pub(super) fn beside(typed: &str, here: EndSpec) -> Result<ConcurrentWakeups, RequestError> {
    if here.wait == WaitMode::Spin {
        let cause = "a sender that spins leaves its CPU to nobody: a thread there could only wake in its place";
        return Err(value::unusable(OPTION, typed, cause, "`--wait block` or `--wait busy-poll`"));
    }
    let (interval, late) = match typed.split_once(':') {
        None => (typed, None),
        Some((interval, rest)) => (interval, Some(late(typed, rest)?)),
    };
    let interval_ns = value::span(OPTION, interval, defaults::INTERVAL_MAX)?;
    if here.fifo.is_some() && interval_ns < defaults::RESTLESS_INTERVAL {
        let cause = "at the sender's own FIFO priority a thread that hardly sleeps keeps the sender from its CPU";
        return Err(value::unusable(OPTION, typed, cause, "50 us or more, such as `--with-wakeup 1ms`"));
    }
    // Unpinned, the sender may run on any CPU.
    let cpus = here.cpu.map_or(WakeupCpus::All, |cpu| WakeupCpus::These(vec![cpu]));
    Ok(ConcurrentWakeups { interval_ns, late_ns: late, cpus })
}

fn late(typed: &str, rest: &str) -> Result<Nanos, RequestError> {
    let late = rest.strip_prefix("late=");
    let late =
        late.ok_or_else(|| value::unusable(OPTION, typed, "after the interval only `late=T2` is known", HINT))?;
    value::span(OPTION, late, defaults::INTERVAL_MAX).map_err(|error| {
        let cause = format!("its `late=`: {}", error.cause().unwrap_or_else(|| error.to_string()));
        value::unusable(OPTION, typed, cause, error.hint().unwrap_or_else(|| HINT.into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle(typed: &str) -> Result<ConcurrentWakeups, RequestError> {
        beside(typed, EndSpec { cpu: Some(3), ..EndSpec::SYSTEM })
    }

    #[test]
    fn wake_ups_are_where_the_sender_is() {
        let expected =
            ConcurrentWakeups { interval_ns: Nanos::from_millis(1), late_ns: None, cpus: WakeupCpus::These(vec![3]) };
        assert_eq!(settle("1ms"), Ok(expected.clone()));
        let late = ConcurrentWakeups { late_ns: Some(Nanos::from_micros(200)), ..expected.clone() };
        assert_eq!(settle("1ms:late=200us"), Ok(late));
        assert_eq!(beside("1ms", EndSpec::SYSTEM), Ok(ConcurrentWakeups { cpus: WakeupCpus::All, ..expected }));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_value() {
        for (typed, words) in [
            ("0ms", "longer than 0"),
            ("1", "unit"),
            ("2h", "up to"),
            ("1ms:200us", "late=200us"),
            ("1ms:late=", ""),
            ("1ms:late=0us", "longer than 0"),
            ("", ""),
        ] {
            let error = settle(typed).expect_err(typed);
            assert!(error.hint().is_some_and(|hint| hint.contains(words)), "{typed}: {error:?}");
        }
        for late in ["0", "0us"] {
            let typed = format!("1ms:late={late}");
            let error = settle(&typed).expect_err(late);
            assert!(error.to_string().contains(&format!("`{typed}`")), "{error}");
            assert!(error.cause().is_some_and(|cause| cause.contains("`late=`")), "{error:?}");
        }
        let fifo = EndSpec { fifo: Some(5), ..EndSpec::SYSTEM };
        let error = beside("20us", fifo).expect_err("a thread that keeps the CPU of its sender");
        assert!(error.to_string().contains("`20us`") && error.hint().is_some_and(|hint| hint.contains("50 us")));
        assert!(beside("50us", fifo).is_ok() && beside("20us", EndSpec::SYSTEM).is_ok());
        let spinning = EndSpec { wait: WaitMode::Spin, ..EndSpec::SYSTEM };
        let error = beside("1ms", spinning).expect_err("a spinning sender");
        assert!(error.to_string().contains("`1ms`") && error.hint().is_some_and(|hint| hint.contains("block")));
    }
}
