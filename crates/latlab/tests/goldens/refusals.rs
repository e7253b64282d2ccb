//! Wrong requests: message and exit code of each.

use crate::{Case, case};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("refusals/latlab", &[], LATLAB),
        case("refusals/exclusions", &[], &examples()),
        case("refusals/ping", &[], PING),
        case("refusals/targets", &[], TARGETS),
        case("refusals/stream", &[], STREAM),
        case("refusals/wakeup", &[], WAKEUP),
        case("refusals/loads", &[], LOADS),
        case("refusals/settings", &[], SETTINGS),
        case("refusals/serve", &["inputs/key"], SERVE),
        case("refusals/summary", &["recordings/good/closed", "recordings/old/1.3-wakeup"], SUMMARY),
        case(
            "refusals/compare",
            &["inputs/before", "inputs/after", "recordings/good/closed", "recordings/good/scheduled"],
            COMPARE,
        ),
        case("refusals/others", &["inputs/key"], OTHERS),
        case("refusals/run", &[], RUN),
        case("refusals/experiment-files", &[], &files()),
    ]
}

/// The examples of the table of exclusions.
fn examples() -> String {
    let lines = include_str!("../../src/cli/exclusions.txt").lines();
    lines.filter_map(|line| line.strip_prefix("example: ")).collect::<Vec<_>>().join("\n")
}

/// Each wrong file of [`FILES`], as `latlab run --dry-run` answers it.
fn files() -> String {
    FILES
        .lines()
        .filter(|line| !line.is_empty())
        .map(|text| format!("write x.toml {text}\nrun x.toml --dry-run\n"))
        .collect()
}

const LATLAB: &str = "
pign
ping --cuont 5
explain
--no-such-option
help pign
";

const PING: &str = "
ping --size 23
ping -s 64,23
ping --size 70000
ping --size 70_000
ping --size 0
ping 127.0.0.1 --protocol echo --size 23
ping --count 0
ping -n 0
ping -n -1
ping -n 99999999999999999999
ping --interval 0
ping --interval 0ms
ping --interval -5ms
ping --duration -5s
ping --duration=-5s
ping -d 10
ping -i 10
ping -d 10parsec
ping -d 25h
ping --timeout 0s
ping --timeout 61s
ping --timeout -1s
ping -i 1ms --max-backlog 0s
ping --warmup soon
ping --source-port 0
ping --source-port 65536
ping --dscp 64
ping --dscp voice
ping --cpu 1024
ping --peer-cpu -1
ping --fifo 100
ping --quantiles 0.5,99
ping --window 0s
ping --deadline 200
ping --tag build
ping --tag a=1 --tag a=2
ping --peer-addr fe80::1 ssh:pi3
ping ssh:pi3 --peer-addr 10.0.0.1 -6
ping --fifo 5 --with-wakeup 20us
ping --bind a/b
ping --wait sleep
ping --protocol icmp
ping --cuont 5
ping --no-such-option
ping -z
ping local another
ping --stamps
ping --count
ping -4 -6
ping -q -v
ping --no-record --output x
ping --json --json
ping --gate 'p99 <= 5'
ping --gate 'p99 <= +5%'
ping --gate 'p99.9'
ping --gate 'send_slip p50 <= 1us'
ping --gate 'deadline_miss_ratio <= 1%'
ping --gate 'p50 >= 1Mbit/s'
ping --gate-strict
ping 127.0.0.1:7 --protocol echo --gate 'reflector_dwell max <= 1ms'
";

const TARGETS: &str = "
ping 127.0.0.1:0
ping [::1]:0
ping 127.0.0.1:65536
ping [::1
ping user@host
ping 192.0.2.9
ping [2001:db8::9]:7000
ping ssh:-oProxyCommand=reboot
ping cmd:
ping -6 127.0.0.1
ping --transport dds --domain 300
ping --transport dds --history keep-some
ping --transport dds --history keep-last:0
ping --transport dds --interface fe80::1
ping --transport dds --bind fe80::1
ping fe80::1%lo --transport dds --psk-file k
serve --transport dds --interface fe80::1
serve --transport dds --bind [fe80::1]:9862
serve --transport dds --bind 127.0.0.1 --bind 127.0.0.2
serve --port 9000
ping 192.0.2.1 --transport dds --psk-file k
serve --domain 7
ping -s 24,25,26,27,28 --source-port sweep
ping --try-remedies -s 24,25
";

const STREAM: &str = "
stream --gate 'p99 <= 1ms'
stream --gate 'deadline_miss_ratio <= 1%'
stream --gate 'mean >= 1kpps'
stream --rate 0
stream --rate fast
stream --rate 10Mbit
stream --rate 90%
stream --rate max:wire
stream --rate 5kpps:wire
stream --rate 1kbit/s
stream --rate 1kbit/s -s 64
stream --rate 100Tbit/s
stream --rate 9pps
stream --search lab
stream --search 0.3
stream --search 0,1%,0
stream --search 0,1%,2%,3%,4%
stream --search -d 9s
stream --search -d 6m -s 64,1472
stream --probe 10us
stream --probe often
stream --source-port 65535 --flows 2
stream --warmup 500
stream ssh:pi3 --flows 64 --size 64,100
stream --rate max -s 24,64 --direction down
stream -s 11
stream --flows 0
stream --flows 65
stream --direction sideways
stream --rate search
stream --rate search:2
stream --search 101%
stream --poisson
stream --interval 1ms
stream -n 5 -d 1s --rate 1kpps --timeout 1s
stream 127.0.0.1 --protocol echo
stream --deadline 1ms
stream --probe 0ms
stream --batch 0
stream --batch 10000
stream lab --cpu 5000
stream --gso on
";

const WAKEUP: &str = "
wakeup --gate 'loss_ratio <= 1%'
wakeup --gate 'response_time p50 <= 1ms'
wakeup --try-remedies --gate 'p50 <= 1ms'
wakeup -i 0
wakeup --via sleepy
wakeup --via select,selct
wakeup -i 5s -d 1s
wakeup local
wakeup --size 64
wakeup --cpu 3-1
wakeup --cpu 0,0
wakeup --cpu x
wakeup --set mtu=1400
wakeup --set governor@peer=performance
wakeup --break 0s
wakeup --break soon
wakeup --fifo 0
wakeup --fifo 100
wakeup --relative=yes
wakeup --try-remedies -i 1ms,2ms
wakeup --try-remedies -i 1s -d 8s
wakeup -i 1ms,1000us
wakeup --via select,select
wakeup --with-wakeup 1ms
wakeup -n 0
ping --with-wakeup 0ms
ping --with-wakeup 1ms:soon
ping --with-wakeup 1ms:late=0
ping --with-wakeup 1ms:via=nap
ping --slow 5ms
";

const LOADS: &str = "
load --load cpu=0%
load --load cpu=120%
load --load cup=80%
load --load cpu
load --load cpu=80%:perod=1ms
load --load cpu=80%:period=0s
load --load cpu=80%:cpus=1-0
load --load cpu=80%@there
load --load heaters=0
load --load heaters=257
load --load mem=2
load --load mem=0GB/s
load --load mem=1GB/s:buffer=1
load --load net=101%
load --load net=fast
load --load net=90Mbit/s:size=1
load --load none=1
load --load none --load cpu=1%
load --load cpu=5% -d 0s
load --load cpu=5% -n 5
load -s 5 --load cpu=5%
ping --load net=5%@peer 127.0.0.1
ping 127.0.0.1 -n 1 --load cpu=50%@peer
";

const SETTINGS: &str = "
ping -n 5 --set govenor=performance
ping -n 5 --set governor
ping -n 5 --set governor=
ping -n 5 --set rt-runtime=-1 --set rt-runtime=-1
ping -n 5 --set rt-runtime=fast
ping -n 5 --set rt-runtime=-1@local
ping -n 5 --set rt-runtime@there=-1
ping -n 5 --set offload:lo=tso:off,tx-tcp-segmentation:on
ping -n 5 --set offload=tso
ping -n 5 --set offload=warp:off
ping -n 5 --set offload=tso:maybe
ping -n 5 --set mtu=65000 --set mtu:lo=64000
ping -n 5 --set mtu=1
ping -n 5 --set mtu=big
ping -n 5 --set coalesce=rx-usecs
ping -n 5 --set coalesce=rx-usec:0
ping -n 5 --set irq-affinity=5
ping -n 5 --set irq-affinity=5:3-1
ping -n 5 --set idle-states=5us
ping -n 5 --set idle-states=max-us:x
ping -n 5 --set cpu-dma-latency=x
ping -n 5 --set timer-slack=0
ping -n 5 --set socket-buffer=0
ping -n 5 --set turbo=maybe
ping -n 5 --set frequency=2
ping -n 5 --set smt=off
ping 127.0.0.1:9 -n 5 --set governor@peer=performance
ping -n 5 --set governor:lo=performance
";

const SERVE: &str = "
serve --bind 0.0.0.0
serve --bind 127.0.0.1:0
serve --bind localhost
serve --max-sessions 0
serve --max-duration -1s
serve --max-size 23
serve --psk-fd 3 --allow-down 1Gb
serve --psk-fd three
serve --psk-fd 3 --psk-file k
serve --psk-file missing
serve --psk-file key
serve --bind 0.0.0.0 --psk-file missing
serve --wait sleep
serve --cpu -1
serve --fifo 0
serve --interval 1ms
serve local
ping 192.0.2.9 --psk-file missing
ping 192.0.2.9 --psk-file key
";

const SUMMARY: &str = "
summary
summary missing
summary .
summary closed/manifest.json
summary closed missing
summary closed --quantiles 1
summary closed --quantiles 0.5,x
summary closed --quantiles ''
summary closed --deadline 5
summary closed --window 0s
summary closed --window 1ns
summary closed --gate ''
summary closed --gate p50
summary closed --gate 'p50 <= fast'
summary closed --gate 'p50 <= 5'
summary closed --gate 'p50 = 5us'
summary closed --gate 'p500 <= 5us'
summary closed --gate 'medain <= 5us'
summary closed --gate 'rond_trip_delay p50 <= 5us'
summary closed --gate 'send_slip p50 <= 1us'
summary closed --gate 'loss_ratio <= 5us'
summary closed --gate 'loss_ratio <= 500%'
summary closed --gate 'wakeup_latency p50 <= 5us'
summary closed --gate 'delivered_rate mean >= 5Mbit/s'
summary closed --gate 'p50 <= 5us 6us'
summary closed --gate 'broke <= 0'
summary 1.3-wakeup --half
summary 1.3-wakeup --gate 'round_trip_delay p50 <= 1us'
summary 1.3-wakeup --gate 'loss_ratio <= 1%'
summary closed -q -v
summary closed --json --json
summary closed --no-intervals=1
";

const COMPARE: &str = "
compare before
compare before missing
compare before .
compare . before
compare . missing
compare before closed
compare closed
compare --by load
compare --by load missing
compare --by load before after
compare --by laod closed closed
compare --by size closed closed
compare --by size --group a=b closed
compare closed scheduled --baseline v9
compare --by size --baseline v9 closed
compare before after --baseline before
compare --group a
compare --group a=missing*
compare --group =x
compare --group a=before --group a=after
compare --group a=before --group b=after
compare --group a=closed --group b=missing*
compare --group 'a=[' --group b=after
compare --group a=closed closed
compare before before
compare before ./before
compare - - < before
compare closed closed
compare --group 'a=be*' --group 'b=*fore'
compare before after --statistic p99
compare before after --statistic medain
compare before after --metric response_time
compare closed scheduled --metric rond_trip_delay
compare closed scheduled --metric wakeup_latency
compare closed scheduled --metric send_slip
compare closed scheduled --statistic p101
compare before after --by load
compare before after --kind ping
compare before after --shift
compare before after --gate 'p99 <= +5%'
compare before after --gate 'value <= 5'
compare before after --gate 'valeu <= 5%'
compare before after --gate 'value < 5%'
compare before after --gate 'value'
compare before after --gate 'value >= +500%x'
compare before after --gate-strict
compare before after --equivalence 3us
compare before after --equivalence 0%
compare before after --equivalence -3%
compare before after -c 100
compare before after -c 49
compare before after -c x
compare before after --over weeks
compare before after --format html
compare before after --format csv --json
compare before after -C 2
compare before after -C 0
compare before after -C x
compare before after -d ''
compare --ministat before after -c 97
compare --ministat before after -w 1
compare --ministat before after -w x
compare --ministat before after --json
compare --ministat before after --shift
compare --ministat before after --gate 'value <= 5%'
compare --ministat before after --format csv
write c1 1\\n2\\n3\\n
write c2 1\\n2\\n3\\n
write c3 1\\n2\\n3\\n
write c4 1\\n2\\n3\\n
write c5 1\\n2\\n3\\n
write c6 1\\n2\\n3\\n
compare --ministat before after c1 c2 c3 c4 c5 c6
compare --ministat before before
compare --ministat before closed
compare --ministat before --statistic p99
compare --ministat missing
compare --ministat closed
compare -A before after
compare -n before after
compare -s before after
compare -w 60 before after
write two 1\\n2\\n
compare --ministat before two
compare before two
write words one\\ntwo\\n
compare before words
compare --ministat before words
write nan 1\\nNaN\\n3\\n
compare before nan
write nothing #
compare before nothing
";

const OTHERS: &str = "
doctor --cpu 4096
doctor --calibrate --size 23
doctor --peer-addr 10.0.0.1
doctor --restore --calibrate
doctor --wait sleep
doctor --interval 0s
keygen
keygen key
keygen missing/key
list extra
list --store key
LATLAB_STORE=key list
completions
completions tcsh
man --output key
man pign
agent --stdio extra
agent --stdio < key
reflector
stressor
net-load
";

const RUN: &str = "
run
run missing.toml
run missing
run pi-udp-laod
run .
run aa --quick --full
run aa --quick --reboots
run aa lab --target lab
run aa --dry-run --json
run aa --dry-run --print-unit
run aa --print-unit --json
run aa --new --force
run aa --print-unit --gate 'p99 <= 1ms'
run aa --dry-run --gate 'p99 <= 5'
run aa --dry-run --gate 'send_slip p50 <= 1us'
run wakeup-governor lab
run wakeup-governor --target lab --dry-run
run aa nowhere:0 --dry-run
run aa 192.0.2.9 --dry-run
run udp-loopback-matrix --quick --reboots
write x.toml kind='ping'
run x.toml lab
run x.toml --quick
run x.toml --full --dry-run
run x.toml --reboots
run x.toml --store x.toml
run x.toml --dry-run -v
run x.toml --dry-run -q
run aa --ab x y -- wakeup
run aa --ab x x --runs 3 -- wakeup
run --ab x y --quick -- ping
run x.toml --ab x y -- ping
run --ab x y --equivalence 3us -- ping
run --ab x \\\"y -- ping
run --ab x y --ready \\\"z -- ping
run --ab x y -- ping --tag service=z
run --ab x y -- list
recipes show
recipes pi-udp
recipes aa pi-udp-load
";

const FILES: &str = r#"
kind = "ping"\nx
kind='ping'\nkind='ping'
kind='wakeup'\n[factors]\nvia=['poll']\n[[leave-out]]\n
kind='wakeup'\n[factors]\nvia=['poll']\n[[leave-out]]\nvia='poll'
kind='wakeup'\n[factors]\nvia=['poll']\n[[leave-out]]\nvia='pol'
kind='wakeup'\n[factors]\nvia=['poll']\n[leave-out]\nvia='poll'
kind='wakeup'\n[base]\nbreak='1ms'
kind='ping'\n[base]\ngate='p99 <= 1ms'
kind='streem'
kind='wakeup'\ntarget='local'
kind='wakeup'\n[factors]\ntarget=['local']
kind='wakeup'\n[base]\nsize=64
kind='wakeup'\n[base]\ninterval='1ms'\nvia=['select','futex']
kind='wakeup'\n[base]\ninterval='1ms,2ms'
kind='wakeup'\n[factors]\nvia=['select','selct']
kind='wakeup'\n[factors]\nload=['net=1Mbit/s']
kind='wakeup'\n[[compare]]\nmetric='pdv'\nstatistic='p50'
kind='ping'\n[[compare]]\nmetric='wakeup_latency'\nstatistic='p50'
kind='pign'
kind=3
kind='ping'\nnmae='x'
kind='ping'\nname=''
kind='ping'\ntarget=5
kind='ping'\nbase=5
kind='ping'\n\n[base]\ncuont=5
kind='ping'\n[base]\nstore='x'
kind='ping'\n[base]\nhelp=true
kind='ping'\n[base]\ntarget='x'
kind='ping'\n[base]\nmlock='yes'
kind='ping'\n[base]\ncount=[1,2]
kind='ping'\n[base]\ncount=true
kind='ping'\n[base]\ncount=1979-05-27
kind='ping'\n[base]\ntag=[[1]]
kind='ping'\n[base]\ncount=0
kind='ping'\n[base]\ncount=-5
kind='ping'\n[base]\nwait='spinn'
kind='ping'\n[base]\nsize=[32,64]
kind='ping'\n[base]\nsource-port='sweep'
kind='ping'\n[factors]\nsource-port=['sweep']
kind='ping'\n[factors]\nsize=[24,\n'024']
kind='ping'\n[factors]\ninterval=['closed',\n'none']
kind='ping'\n[factors]\ninterval=['closed','1ms']\npoisson=[true]
kind='ping'\n[factors]\nload='none'
kind='ping'\n[factors]\nload=[]
kind='ping'\n[factors]\nload=['none','none']
kind='ping'\n[factors]\nload=['none',\n'cup=8%']
kind='ping'\n[base]\nsize=64\n[factors]\nsize=[24,32]
kind='ping'\ntarget='lab'\n[factors]\ntarget=['lab','local']
kind='ping'\n[base]\npoisson=true
kind='ping'\ntarget='192.0.2.9'
kind='ping'\n[design]\nrunz=3
kind='ping'\n[design]\nruns=0
kind='ping'\n[design]\nruns=1.5
kind='ping'\n[design]\nruns=true
kind='ping'\n[design]\nruns='many'
kind='ping'\n[design]\nruns='until p99 ±3%'
kind='ping'\n[design]\nruns='until p99 3%'\nmax-runs=20
kind='ping'\n[design]\nruns='until p99 ±0%'\nmax-runs=20
kind='ping'\n[design]\nruns='until loss_ratio ±3%'\nmax-runs=20
kind='ping'\n[design]\nruns='until p99 ±3%'\nmax-runs=9
kind='ping'\n[design]\nmax-runs=9
kind='ping'\n[design]\nblocks=1001
kind='ping'\n[design]\norder='random'
kind='ping'\n[design]\nbetween-blocks='pause'
kind='ping'\n[design]\nbetween-blocks='pause 10'
kind='ping'\n[design]\nbetween-blocks='nap 10s'
kind='ping'\n[design]\nsettle=5
kind='ping'\n[design]\nsettle='5'
kind='ping'\n[design]\nruns=1000\nblocks=1000
kind='ping'\n[[compare]]\nmetric='pdv'
kind='ping'\n[[compare]]\nstatistic='p101'
kind='ping'\n[[compare]]\nmetric='round_trip'\nstatistic='p50'
kind='ping'\n[[compare]]\nstatistic='p50'\nbaseline={load='none'}
kind='ping'\n[factors]\nload=['none']\n[[compare]]\nstatistic='p50'\nbaseline={load='nome'}
kind='ping'\n[[compare]]\nstatistic='p50'\nequivalence='3us'
kind='ping'\n[compare]\nstatistic='p50'
# nothing
"#;
