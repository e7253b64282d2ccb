//! Headings, remarks and caveats that no recording in testdata has: each case changes facts in the manifest of a copy.

use crate::{Case, case};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("caveats/kept", &["recordings/forms/loaded as x"], KEPT),
        case("caveats/host", &["recordings/forms/loaded as x"], HOST),
        case("caveats/loads", &["recordings/forms/loaded as x", "recordings/forms/netload as y"], LOADS),
        case("caveats/wakeups", &["recordings/forms/break as x", "recordings/forms/with-wakeup as y"], WAKEUPS),
        case("caveats/streams", &["recordings/forms/stream-down as x", "recordings/old/1.4-stream as y"], STREAMS),
        case("caveats/searches", &["recordings/forms/search as x", "recordings/old/1.5-search as y"], SEARCHES),
        case("headings/ping", &["recordings/good/closed as x", "recordings/good/scheduled as y"], PING_HEADINGS),
        case("headings/others", &["recordings/old/1.4-stream as x", "recordings/old/1.3-wakeup as y"], OTHER_HEADINGS),
        case("compare/untrusted", &["recordings/good/closed as x", "recordings/good/scheduled as y"], UNTRUSTED),
    ]
}

const KEPT: &str = r#"
patch x {"ending":"interrupted","reason":"SIGINT","run":{"strays":{"bad-tag":3,"short":1},"gap_events":7,"orphan_answers":2,"undecided_probes":4,"unreadable_events":5,"socket_drops":9,"socket_errors":{"ECONNREFUSED":6},"timed_out_ns":5000000,"refused_pause_ns":3000000}}
summary x --no-intervals -v
~ summary x
patch x {"ending":"failed","reason":"cannot write `events.spool`: no space left on device (ENOSPC)","run":{"gap_events":7,"orphan_answers":0,"undecided_probes":0,"unreadable_events":0,"socket_drops":1,"socket_errors":{},"reflector":{"socket_drops":5}}}
~ summary x --no-intervals -v
patch x {"ending":"recovered","reason":null,"run":{"gap_events":0,"orphan_answers":2}}
~ summary x --no-intervals -v
patch x {"ending":"completed","run":{"orphan_answers":0,"stamps":{"error_ns":20,"clock_steps":0,"cost_ns":400}}}
~ summary x --no-intervals -v
list --store .
"#;

const HOST: &str = r#"
patch x {"here":{"clock_end":{"realtime_ns":1795381185930988360,"boottime_ns":2171184850241}},"instrument":{"clock_read_ns":812.5,"clock_resolution_ns":4000000,"tag_ns":41.5,"bare_loop":{"p50_ns":3611.0,"p99_ns":4466.0,"n":20000,"size_bytes":64,"wait":"block","cpu":0,"peer_cpu":1,"measured_at":"2026-11-22T20:00:00Z","boot_id":null}},"run":{"reflector_died":"killed by SIGKILL","conditions":{"path.unfragmented-bytes":"40"}}}
summary x --no-intervals -v
patch x {"spec":{"here":{"wait":"spin","cpu":0,"fifo":10},"peer":{"wait":"spin","cpu":0}},"here":{"before":{"kernel":"Linux 6.1.0","governors":["ondemand","powersave"]}},"run":{"conditions":null}}
patch x {"run":{"conditions":{}}}
~ summary x --no-intervals -v
patch x {"here":{"before":{"kernel":"Linux 6.12.1","steal_ticks":0},"after":{"steal_ticks":90}},"settings":[{"setting":"governor=performance","at":"local","place":"/sys/devices/system/cpu/cpufreq/policy0/scaling_governor","places":1,"before":"ondemand","set":"performance","read_back":"performance","ended":{"outcome":"failed","reason":"no such file or directory (ENOENT)"}},{"setting":"rt-runtime=-1","at":"peer","place":"/proc/sys/kernel/sched_rt_runtime_us","places":1,"before":"950000","set":"-1","read_back":"-1","ended":{"outcome":"changed","found":"500000"}}]}
~ summary x --no-intervals -v
"#;

const LOADS: &str = r#"
patch x {"loads":[{"load":"cpu=20%","kind":"cpu","at":"local","unit":"share","offered":0.2,"achieved":0.11,"min":0.1,"max":0.12,"five_seconds":[0.1,0.12],"measured_ns":9000000000,"period_ns":16180000,"cpus":[0,1]},{"load":"mem=100MB/s","kind":"mem","at":"peer","unit":"bytes_per_second","offered":100000000.0,"achieved":60160220.9,"measured_ns":9000000000,"cpus":[]},{"load":"heaters=3","kind":"heaters","at":"local","unit":"cpus","offered":3.0,"achieved":1.5,"min":1.2,"max":1.6,"measured_ns":9000000000,"cpus":[]},{"load":"cpu=50%","kind":"cpu","at":"peer","unit":"share","offered":0.5,"ended_early":"killed by SIGKILL","cpus":[]}]}
summary x --no-intervals -v
patch y {"loads":[{"load":"net=90%","kind":"net","at":"local","unit":"bits_per_second","offered":90000000.0,"achieved":61000000.0,"min":60000000.0,"max":90000000.0,"measured_ns":9000000000,"cpus":[]}]}
summary y --no-intervals -v
"#;

const WAKEUPS: &str = r#"
patch x {"run":{"wakeup":{"not_slept":3}}}
summary x --no-intervals -v
patch x {"run":{"wakeup":{"broke":null,"cut_short":true,"niceness":5,"timer_slack_ns":50000}},"spec":{"here":{"fifo":null},"work":{"relative":true}}}
~ summary x --no-intervals -v
patch x {"run":{"wakeup":{"niceness":5,"cut_short":false}},"spec":{"work":{"via":"select"}}}
summary x --no-intervals -v
patch y {"spec":{"work":{"with_wakeup":{"late_ns":null}}}}
summary y --no-intervals -v
"#;

const STREAMS: &str = r#"
patch x {"spec":{"work":{"sending":{"checksum":false}}},"run":{"stream":{"send_buffer_bytes":212992,"receive_buffer_bytes":212992}}}
summary x --no-intervals -v
patch x {"here":{"before":{"network":{"interface":{"offloads":null}}}}}
patch x {"spec":{"work":{"sending":{"checksum":true,"mode":"gso"},"direction":"up","pace":{"bps":40000000}}},"here":{"before":{"network":{"interface":{"name":"eth0","offloads":{"tx-checksum-ipv4":false}}}}}}
~ summary x --no-intervals -v
summary x --no-intervals -v
patch y {"spec":{"work":{"flows":2,"pace":{"kind":"max"}}},"run":{"stream":{"drops_are_merged":true,"settled":false}}}
summary y --no-intervals -v
"#;

const SEARCHES: &str = r#"
patch x {"run":{"search":{"ending":"time_up"}},"spec":{"work":{"search":{"goals":[{"loss_ratio":0.0,"final_trial_ns":100000000,"duration_sum_ns":9000000000,"exceed_ratio":0.5,"width":0.0002}]}}}}
summary x --no-intervals -v
patch x {"run":{"search":{"trials":[]}}}
~ summary x --no-intervals -v
summary x --no-intervals -v
patch x {"run":{"search":{"ending":"cut_short"}}}
~ summary x --no-intervals -v
patch y {"run":{"search":{"ending":"silent","trials":[{"lasting_ns":100000000,"sending_ns":100000000,"counting_ns":100000000,"sent_packets":1000,"delivered_packets":500,"answered":true}]}}}
summary y --no-intervals -v
patch y {"run":{"search":{"ending":"settled","ceiling_pps":20000.0,"trials":[{"asked_pps":20000.0,"lasting_ns":500000000,"sending_ns":500000000,"counting_ns":500000000,"sent_packets":10000,"delivered_packets":10000,"answered":true},{"asked_pps":20000.0,"lasting_ns":500000000,"sending_ns":500000000,"counting_ns":500000000,"sent_packets":10000,"delivered_packets":10000,"answered":true}]}}}
~ summary y --no-intervals -v
"#;

const PING_HEADINGS: &str = r#"
patch x {"spec":{"target":{"kind":"host","host":"pi3","port":9862},"authenticated":true,"work":{"path":{"family":"ipv6","dscp":46,"dont_fragment":true,"source_port":5000,"bind_interface":"eth0"},"size_bytes":1472,"protocol":"echo"},"here":{"wait":"busy-poll","cpu":3,"fifo":50,"mlock":true}}}
summary x --no-intervals
summary x y --no-intervals
patch x {"spec":{"target":{"kind":"ssh","host":"pi@pi3"},"work":{"protocol":"native","timeout_ns":250000},"tags":{"build":"b","host":"y"},"judging":{"quantiles":[0.25,0.75],"half":true,"window_ns":20000000,"deadline_ns":45000}}}
~ summary x --no-intervals
~ summary x y --no-intervals
patch y {"spec":{"work":{"schedule":{"kind":"poisson","mean_ns":10000,"seed":7}}}}
summary y --no-intervals
patch y {"spec":{"work":{"schedule":{"kind":"nonsense"}}}}
summary y
patch y {"spec":{"work":{"kind":"nonsense"}}}
summary y
patch y {"format":{"minor":99}}
summary y
list --store .
"#;

const OTHER_HEADINGS: &str = r#"
patch x {"spec":{"target":{"kind":"lab"},"authenticated":true,"work":{"wire":true,"pace":{"kind":"rate","bps":1000000000},"sending":{"mode":"sendmmsg","batch":16,"connect":true}},"here":{"wait":"spin","cpu":1,"fifo":20,"mlock":true},"peer":{"wait":"spin","cpu":0,"mlock":false}}}
summary x --no-intervals
patch x {"spec":{"work":{"pace":{"kind":"max"}}}}
~ summary x --no-intervals
patch y {"spec":{"work":{"via":"poll","relative":true,"interval_ns":1000000000},"here":{"fifo":80,"mlock":true},"tags":{"build":"b"}}}
summary y --no-intervals
patch y {"spec":{"work":{"via":"spin","cpus":"anywhere"}}}
~ summary y --no-intervals
"#;

const UNTRUSTED: &str = r#"
patch x {"instrument":{"clock_read_ns":500}}
compare x y --statistic p50
valid:caveats,comparisons compare x y --statistic p50 --json
compare x y --gate 'p99.99 <= +5%'
compare x y --gate 'p99.99 <= +5%' --gate-strict
valid:gates,caveats summary x --gate 'p99.99 <= 1us' --json
summary y --gate 'response_time p99.99 <= 1us'
"#;
