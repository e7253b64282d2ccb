//! The guard on a fake host, whose files refuse a value, read back another one, or vanish.

#[path = "../../../../latlab/tests/fake_host/mod.rs"]
mod fake_host;

use std::fs;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use super::super::recover::{recover, restore_own, unrestored};
use super::*;
use crate::diagnostics::Explain;
use crate::plan::Setting;
use fake_host::FakeHost;

const RT: &str = "proc/sys/kernel/sched_rt_runtime_us";
const RMEM: &str = "proc/sys/net/core/rmem_max";
const WMEM: &str = "proc/sys/net/core/wmem_max";
const GOVERNOR: &str = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor";

/// A fake host with four knobs.
fn four_knobs() -> FakeHost {
    let host = FakeHost::with(&[(RT, "950000\n"), (RMEM, "1000\n"), (WMEM, "2000\n"), (GOVERNOR, "ondemand\n")]);
    let offered = "sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors";
    host.write(offered, "ondemand performance\n");
    host
}

impl FakeHost {
    /// Replaces a file by a link.
    fn replace(&self, file: &str, by: &str) {
        fs::remove_file(self.path(file)).expect("a file");
        symlink(by, self.path(file)).expect("a link");
        // inotify(7) reports once that the watched file was removed.
        self.written();
    }

    fn host_root(&self) -> HostRoot {
        HostRoot::new(self.root())
    }

    fn knob_journal(&self) -> KnobJournal {
        KnobJournal::at(self.journal())
    }

    fn hold(&self, settings: &[Setting]) -> Result<HostGuard, KnobError> {
        let mut guard = self.find(settings)?;
        guard.apply(Some(&self.knob_journal()))?;
        Ok(guard)
    }

    fn find(&self, settings: &[Setting]) -> Result<HostGuard, KnobError> {
        let spec = |setting: &Setting| SettingSpec { setting: setting.clone(), interface: None, side: None };
        let specs: Vec<_> = settings.iter().map(spec).collect();
        HostGuard::find(&specs, &PathInterfaces::loopback(), self.host_root())
    }
}

fn three() -> [Setting; 3] {
    [Setting::Governor("performance".into()), Setting::RtRuntime(-1), Setting::SocketBuffer(4096)]
}

fn is_as_before(host: &FakeHost) {
    let now = [GOVERNOR, RT, RMEM, WMEM].map(|file| host.read(file));
    assert_eq!(now, ["ondemand", "950000", "1000", "2000"]);
}

#[test]
fn settings_are_restored_in_reverse_order() {
    let host = four_knobs();
    let mut guard = host.hold(&three()).expect("all knobs are there");
    assert_eq!(host.written(), [GOVERNOR, RT, RMEM, WMEM]);
    assert_eq!([GOVERNOR, RT, RMEM, WMEM].map(|file| host.read(file)), ["performance", "-1", "4096", "4096"]);
    assert_eq!(host.pages(), 1);
    let facts = guard.facts();
    assert_eq!((facts[0].before.as_str(), facts[0].read_back.as_deref()), ("ondemand", Some("performance")));
    assert!(facts.iter().all(|fact| fact.ended.is_none()));

    let facts = guard.restore();
    assert_eq!(host.written(), [WMEM, RMEM, RT, GOVERNOR]);
    assert!(facts.iter().all(|fact| fact.ended == Some(Restoration::Restored)), "{facts:?}");
    is_as_before(&host);
    assert_eq!(host.pages(), 0);
    drop(guard);
    assert!(host.written().is_empty(), "once is enough");
}

#[test]
fn a_panic_restores_all_settings() {
    let host = four_knobs();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _guard = host.hold(&three()).expect("all knobs are there");
        panic!("on purpose");
    }));
    assert!(outcome.is_err());
    assert_eq!(host.written(), [GOVERNOR, RT, RMEM, WMEM, RMEM, RT, GOVERNOR]);
    assert_eq!(host.pages(), 0);
}

#[test]
fn an_absent_knob_is_an_error_before_any_change() {
    let host = four_knobs();
    for (wish, cause) in [
        (Setting::BusyPoll(50), "does not have `/proc/sys/net/core/busy_poll`"),
        (Setting::CpuDmaLatency(0), "/dev/cpu_dma_latency"),
        (Setting::Governor("powersave".into()), "`policy0` offers `ondemand performance`"),
        (Setting::IdleStates(crate::plan::IdleStates::MaxUs(0)), "no idle states"),
        (Setting::Coalesce(vec![("rx-usecs".into(), 0)]), "`lo coalesce`"),
        (Setting::Offload(vec![("rx-no-such".into(), false)]), "no feature `rx-no-such`"),
    ] {
        let error = host.hold(&[Setting::RtRuntime(-1), wish]).expect_err("absent");
        assert!(matches!(error, KnobError::Absent { .. }), "{error:?}");
        assert!(error.explain().cause.is_some_and(|reported| reported.contains(cause)), "{cause}: {error:?}");
        assert_eq!((error.explain().exit_code, host.written().len(), host.pages()), (3, 0, 0));
    }
}

#[test]
fn a_refused_write_restores_the_other_knobs() {
    let host = four_knobs();
    // Read-only, also for root.
    host.replace(RMEM, "/proc/sys/kernel/ngroups_max");
    let error = host.hold(&three()).expect_err("it cannot be written");
    assert!(matches!(&error, KnobError::Refused { place, .. } if place == "/proc/sys/net/core/rmem_max"), "{error:?}");
    assert_eq!(host.written(), [GOVERNOR, RT, GOVERNOR]);
    assert_eq!(host.pages(), 0);
}

#[test]
fn a_value_that_reads_back_differently_restores_the_other_knobs() {
    let host = four_knobs();
    // A file of this process (proc_pid_coredump_filter(5)) that takes a number and shows it as eight hexadecimal digits.
    let filter = fs::read_to_string("/proc/self/coredump_filter").expect("Linux has it");
    host.replace(RMEM, "/proc/self/coredump_filter");
    let error = host.hold(&three()).expect_err("it reads otherwise");
    assert!(matches!(&error, KnobError::Differs { wanted, .. } if wanted == "4096"), "{error:?}");
    assert_eq!(host.written(), [GOVERNOR, RT, GOVERNOR]);
    fs::write("/proc/self/coredump_filter", format!("0x{}", filter.trim())).expect("our own");
}

#[test]
fn a_refused_write_that_changed_the_value_is_restored() {
    let host = four_knobs();
    // It can be truncated and cannot grow: it is emptied, and then the write is refused.
    let sealed = rustix::fs::memfd_create("sealed", rustix::fs::MemfdFlags::ALLOW_SEALING).expect("a file");
    rustix::io::write(&sealed, b"1000").expect("written");
    rustix::fs::fcntl_add_seals(&sealed, rustix::fs::SealFlags::GROW).expect("sealed");
    let number = std::os::fd::AsRawFd::as_raw_fd(&sealed);
    host.replace(RMEM, &format!("/proc/self/fd/{number}"));
    let mut guard = host.find(&three()).expect("all knobs are there");
    let error = guard.apply(Some(&host.knob_journal())).expect_err("it cannot be written");
    assert!(matches!(&error, KnobError::Refused { .. }), "{error:?}");
    assert_eq!(host.read(RMEM), "", "half a change");
    // Now it can be written.
    fs::remove_file(host.path(RMEM)).expect("a link");
    host.write(RMEM, "");
    drop(guard);
    is_as_before(&host);
    assert_eq!(host.pages(), 0);
}

#[test]
fn a_knob_that_vanishes_stays_in_the_journal_and_the_others_are_restored() {
    let host = four_knobs();
    let mut guard = host.hold(&three()).expect("all knobs are there");
    fs::remove_file(host.path(RT)).expect("a file");
    let facts = guard.restore();
    assert!(matches!(&facts[1].ended, Some(Restoration::Failed { reason }) if reason.contains("ENOENT")), "{facts:?}");
    assert_eq!([GOVERNOR, RMEM].map(|file| host.read(file)), ["ondemand", "1000"]);
    let (page, left) = unrestored(&host.knob_journal()).expect("a page");
    assert_eq!((page.exists(), left), (true, vec!["rt-runtime=-1".to_owned()]));
    // When the file exists again, the next latlab restores it.
    host.write(RT, "-1");
    drop(restore_own(&host.knob_journal(), &host.host_root()));
    assert_eq!((host.read(RT).as_str(), host.pages()), ("950000", 0));
}

#[test]
fn a_value_that_is_already_set_is_neither_written_nor_journalled() {
    let host = four_knobs();
    let mut guard = host.hold(&[Setting::RtRuntime(950_000)]).expect("there");
    assert_eq!((host.written().len(), host.pages()), (0, 0));
    assert_eq!(guard.restore()[0].ended, Some(Restoration::Restored));
}

#[test]
fn without_a_journal_nothing_is_set() {
    let host = four_knobs();
    fs::write(host.knob_journal().directory(), "a file").expect("a file");
    let error = host.hold(&three()).expect_err("no journal");
    assert!(matches!(error, KnobError::Journal { .. }), "{error:?}");
    assert!(host.written().is_empty());
}

#[test]
fn the_restored_value_is_that_before_any_latlab() {
    let host = four_knobs();
    let rt = |us| [Setting::RtRuntime(us)];
    for wanted in [-1, 700_000] {
        let first = host.hold(&rt(-1)).expect("there");
        // It finds the value of the first, and waits for its end …
        let mut second = host.find(&rt(wanted)).expect("there");
        let error = second.apply(Some(&host.knob_journal())).expect_err("held, though it may be there already");
        assert!(matches!(error, KnobError::Taken { .. }), "{error:?}");
        assert!(second.facts()[0].read_back.is_none());
        // … after which the host has its former values.
        drop(first);
        second.apply(Some(&host.knob_journal())).expect("free");
        assert_eq!((second.facts()[0].before.as_str(), host.read(RT)), ("950000", wanted.to_string()));
        drop(second);
        assert_eq!((host.read(RT).as_str(), host.pages()), ("950000", 0));
    }
}

#[test]
fn a_knob_that_a_dead_process_left_changed_is_refused() {
    let host = four_knobs();
    let page = leave_behind(&host, None);
    let error = host.hold(&[Setting::RtRuntime(1)]).expect_err("not put back yet");
    assert!(matches!(&error, KnobError::Left { page: kept, .. } if *kept == page), "{error:?}");
    assert!(host.written().is_empty());
    recover(&host.knob_journal(), &host.host_root());
    drop(host.hold(&[Setting::RtRuntime(1)]).expect("put back"));
    is_as_before(&host);
    host.written();
    leave_behind(&host, Some("another boot"));
    host.hold(&[Setting::RtRuntime(1)]).expect("a reboot has undone that");
}

/// The page of a process that has ended.
fn leave_behind(host: &FakeHost, boot: Option<&str>) -> PathBuf {
    let guard = host.hold(&three()).expect("all knobs are there");
    let own = guard.page.as_ref().expect("journalled").path.clone();
    let text = fs::read_to_string(&own).expect("a page");
    let mut page: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    page["owner"]["started_ticks"] = 0.into();
    if let Some(boot) = boot {
        page["owner"]["boot_id"] = boot.into();
    }
    std::mem::forget(guard);
    fs::remove_file(&own).expect("a page");
    let left: &Path = &own.with_file_name(format!("{}-0.json", std::process::id()));
    fs::write(left, page.to_string()).expect("a page");
    assert_eq!(host.written().len(), 4);
    left.to_owned()
}

#[test]
fn values_of_dead_processes_are_restored_in_reverse_order() {
    let host = four_knobs();
    leave_behind(&host, None);
    // Another process has set one of the values since, and one has its former value already.
    host.write(GOVERNOR, "schedutil");
    host.write(WMEM, "2000");
    host.written();
    let (recovered, unrecovered) = recover(&host.knob_journal(), &host.host_root());
    let outcomes: Vec<_> = recovered.iter().map(|one| (one.place.as_str(), &one.outcome)).collect();
    let changed = Restoration::Changed { found: "schedutil".into() };
    let expected = [
        ("/proc/sys/net/core/wmem_max", &Restoration::Restored),
        ("/proc/sys/net/core/rmem_max", &Restoration::Restored),
        ("/proc/sys/kernel/sched_rt_runtime_us", &Restoration::Restored),
        ("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", &changed),
    ];
    assert_eq!(outcomes, expected);
    assert!(unrecovered.is_empty() && recovered.iter().all(|one| one.kept_in.is_none()));
    assert_eq!((host.written(), host.pages()), (vec![RMEM, RT], 0));
}

#[test]
fn values_that_cannot_be_restored_stay_in_the_journal_and_are_reported() {
    let host = four_knobs();
    let page = leave_behind(&host, None);
    fs::remove_file(host.path(RT)).expect("a file");
    for _ in 0..2 {
        let (recovered, _) = recover(&host.knob_journal(), &host.host_root());
        let kept: Vec<_> = recovered.iter().filter(|one| one.kept_in.is_some()).collect();
        assert_eq!(kept.len(), 1);
        assert_eq!((kept[0].setting.as_str(), kept[0].before.as_str()), ("rt-runtime=-1", "950000"));
    }
    assert_eq!(host.read(GOVERNOR), "ondemand");
    fs::write(&page, "").expect("a page");
    let (recovered, unrecovered) = recover(&host.knob_journal(), &host.host_root());
    assert!(recovered.is_empty());
    assert!(unrecovered.iter().any(|one| one.path == page), "{unrecovered:?}");
}
