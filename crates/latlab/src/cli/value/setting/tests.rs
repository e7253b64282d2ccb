use super::*;

#[test]
fn every_knob_is_understood_and_shown_as_it_can_be_typed() {
    for (typed, shown) in [
        ("governor=performance", "governor=performance"),
        ("cpu-dma-latency=0", "cpu-dma-latency=0us"),
        ("cpu-dma-latency=10us", "cpu-dma-latency=10us"),
        ("idle-states=none", "idle-states=max-us:0"),
        ("idle-states=max-us:10", "idle-states=max-us:10"),
        ("idle-states=off:C2,C3", "idle-states=off:C2,C3"),
        ("timer-slack=1", "timer-slack=1ns"),
        ("timer-slack=50us", "timer-slack=50000ns"),
        ("irq-affinity=24:3,0-1,25:2", "irq-affinity=24:0-1,3,25:2"),
        ("rt-runtime=-1", "rt-runtime=-1"),
        ("rt-runtime=950ms", "rt-runtime=950000us"),
        ("busy-poll=50", "busy-poll=50us"),
        ("coalesce=rx-usecs:0,adaptive-rx:off", "coalesce=rx-usecs:0,adaptive-rx:0"),
        ("offload=tx-checksum:off,tso:off", "offload=tx-checksum:off,tso:off"),
        ("offload:eth1@local=rx-gro-list:on", "offload:eth1@local=rx-gro-list:on"),
        ("mtu:eth1=9000", "mtu:eth1=9000"),
        ("socket-buffer@local=4MiB", "socket-buffer@local=4194304"),
    ] {
        let spec = setting(typed).unwrap_or_else(|error| panic!("{typed}: {error:?}"));
        assert_eq!(spec.map(|spec| spec.to_string()).as_deref(), Some(shown));
    }
}

#[test]
fn a_knob_that_stays_as_found_is_not_set() {
    for typed in ["governor=as-found", "timer-slack=as-found", "mtu:eth1@local=as-found"] {
        assert_eq!(setting(typed), Ok(None), "{typed}");
    }
    assert!(setting("governr=as-found").is_err());
}

#[test]
fn what_is_not_understood_is_refused_with_its_value() {
    for (typed, expected) in [
        ("governor", "no `=`"),
        ("govenor=performance", "did you mean `governor`?"),
        ("=1", "there is no knob ``"),
        ("governor@here=performance", "no end `here`"),
        ("governor=", "no governor"),
        ("governor=Fast!", "no governor"),
        ("governor:eth0=performance", "does not belong to an interface"),
        ("cpu-dma-latency=-1", "whole number of microseconds"),
        ("cpu-dma-latency=1ns", "finer"),
        ("cpu-dma-latency=1h", "more than"),
        ("idle-states=C6", "it does not name the states to disable"),
        ("idle-states=off:", "it does not name the states to disable"),
        ("idle-states=max-us:x", "`x`"),
        ("timer-slack=0", "default slack"),
        ("timer-slack=fast", "nanoseconds"),
        ("timer-slack=1m", "more than"),
        ("irq-affinity=24", "no interrupt"),
        ("irq-affinity=x:0", "`x`"),
        ("irq-affinity=24:3-1", "`3-1`"),
        ("irq-affinity=24:9999", "`9999`"),
        ("irq-affinity=24:0,24:1", "twice"),
        ("rt-runtime=-2", "microseconds"),
        ("busy-poll=on", "microseconds"),
        ("coalesce=rx-usec:0", "did you mean `rx-usecs`?"),
        ("coalesce=rx-usecs", "`NAME:VALUE`"),
        ("coalesce=rx-usecs:off", "`off`"),
        ("offload=tx-checksun:off", "did you mean `tx-checksum`?"),
        ("offload=foo:off", "known are"),
        ("offload=tso:no", "neither `on` nor `off`"),
        ("offload=tso:on,tso:off", "twice"),
        ("mtu=67", "the least is `68B`"),
        ("rt-runtime=-1@peer", "stands before the `=`"),
        ("mtu=9k5", "unit"),
        ("mtu:a/b=1500", "not a valid interface"),
        ("socket-buffer=0", "the least"),
        ("socket-buffer=3000000000", "2147483647"),
    ] {
        let error = setting(typed).expect_err(typed);
        let explanation = format!("{} {}", error.cause, error.hint);
        assert!(explanation.contains(expected), "{typed}: {explanation}");
    }
}
