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
