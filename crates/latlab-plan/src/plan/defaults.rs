//! Every default and every limit, each with its reason.

use crate::units::Nanos;

/// Duration of a run: long enough for 200,000 round trips on loopback, short enough to wait for.
pub const DURATION: Nanos = Nanos::from_secs(10);
/// The warm-up ends after this time …
pub const WARMUP: Nanos = Nanos::from_secs(1);
/// … or after this many probes: caches, routes and neighbour entries are warm long before.
pub const WARMUP_PROBES: u64 = 1_000;
pub const TIMEOUT: Nanos = Nanos::from_secs(1);
/// A longer time-out is probably a wrong unit.
pub const TIMEOUT_MAX: Nanos = Nanos::from_secs(60);
/// Without an answer for so long, a run of probes says so: as long as HELLOs are sent before a target counts as silent …
pub const UNANSWERED_NOTICE: Nanos = Nanos::from_secs(3);
/// … and ends after so long, in which ten probes of a closed loop with the default time-out are lost …
pub const UNANSWERED_MAX: Nanos = Nanos::from_secs(10);
/// … if so many probes were refused or their time-outs have passed, so that a run with a long interval or time-out is not
/// ended by chance: a path that loses half of the probes loses the first ten in one of 1,000 runs.
pub const UNANSWERED_PROBES: u64 = 10;
/// How far a sender may fall behind its schedule before it skips due probes.
pub const MAX_BACKLOG: Nanos = Nanos::from_secs(1);
/// Payload of a probe: one cache line, enough for all stamps.
pub const SIZE_BYTES: u32 = 64;
/// The smallest payload of a probe: header and tag (docs/protocol.md).
pub const SIZE_MIN_BYTES: u32 = 24;
/// The largest UDP payload over IPv4: 65,535 − 20 (IP) − 8 (UDP).
pub const SIZE_MAX_BYTES: u32 = 65_507;
/// Not assigned by the IANA, and easy to remember next to 862 of STAMP.
pub const PORT: u16 = 9862;
/// The quantiles of every summary.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];
/// Quantiles of the rates of a stream: low ones matter, and a minute has 600 intervals.
pub const STREAM_QUANTILES: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];
pub const CONFIDENCE: f64 = 0.95;
/// The store, unless `--store` or `LATLAB_STORE` says otherwise.
pub const STORE: &str = "./latlab-runs";
/// Ports of `--source-port sweep`: enough to use several members of a typical ECMP or LACP group.
pub const SWEEP_PORTS: u16 = 16;
/// The first of them, below the ephemeral range of Linux (32768), so that none is in use by chance.
pub const SWEEP_FIRST_PORT: u16 = 30_000;
/// Rounds in which several runs are interleaved.
pub const ROUNDS: u32 = 10;
/// A thread with a shorter interval hardly sleeps: a wake-up costs 5 to 25 µs, and is late by as much.
pub const RESTLESS_INTERVAL: Nanos = Nanos::from_micros(50);
/// The longest sleep of a blocked sender, after which it checks for Ctrl-C and the end of the run.
pub const NAP: Nanos = Nanos::from_millis(100);
/// How long a busy-polling receive polls the driver before it sleeps, as the documentation of the kernel recommends
/// (Documentation/admin-guide/sysctl/net.rst, `busy_read`).
pub const BUSY_POLL_US: u32 = 50;
/// Receive buffer of both ends: 5,000 small datagrams with the bookkeeping of the kernel, so that a thread that is
/// preempted for 50 ms at 100,000 probes a second drops nothing.
pub const RECEIVE_BUFFER_BYTES: u32 = 4 << 20;
/// Slots of the event ring: 131,072 × 64 B = 8 MiB, a quarter of a second at 500,000 events a second.
pub const RING_EVENTS: usize = 1 << 17;
/// Interval of wake-ups: that of a typical control loop, and short enough for 1,000 of them in the default duration.
pub const WAKEUP_INTERVAL: Nanos = Nanos::from_millis(10);
/// The ring of a thread holds the slots of a stall of this length …
pub const WAKEUP_RING: Nanos = Nanos::from_secs(4);
/// … and at least this many: 256 KiB.
pub const WAKEUP_RING_EVENTS_MIN: usize = 1 << 12;
/// How often the writer thread empties the ring; `kill -9` loses at most this time and one write. Each run of the writer
/// delays a probe if no other CPU is free: four times as many of them are in the 99.9th percentile (docs/performance.md).
pub const DRAIN: Nanos = Nanos::from_millis(200);
/// The same while events are so frequent that they would fill more than a quarter of the ring in [`DRAIN`]: a writer that
/// does not get its CPU for 0.4 s at 280,000 events a second then loses none.
pub const DRAIN_FREQUENT: Nanos = Nanos::from_millis(50);
/// The same for wake-ups, whose ring holds seconds: on an otherwise idle host each run of the writer delays the next
/// wake-up on other CPUs (docs/performance.md, Wake-ups).
pub const WAKEUP_DRAIN: Nanos = Nanos::from_millis(500);
/// The shortest key: 128 bit.
pub const KEY_MIN_BYTES: usize = 16;
/// A longer run is monitoring instead of measuring: caches, clocks and hosts change meanwhile.
pub const DURATION_MAX: Nanos = Nanos::from_secs(24 * 3600);
/// A shorter interval of probes is probably a wrong unit: sending one over a socket and receiving its answer takes several
/// times as long. To record those that are never sent would take longer than the run.
pub const INTERVAL_MIN: Nanos = Nanos::from_micros(1);
/// A longer interval is probably a wrong unit.
pub const INTERVAL_MAX: Nanos = Nanos::from_secs(3600);
/// Port of the UDP echo service (RFC 862), for `--protocol echo` without a port.
pub const ECHO_PORT: u16 = 7;
/// The highest CPU number in the fixed affinity mask (CPU_SETSIZE − 1).
pub const CPU_MAX: u16 = 1_023;
/// The highest priority of SCHED_FIFO (sched(7)).
pub const FIFO_MAX: u8 = 99;
/// The largest code point: six bits (RFC 2474, section 3).
pub const DSCP_MAX: u8 = 63;
/// The most runs of one command: a table of more is hard to read, and rounds of more take too long.
pub const RUNS_MAX: usize = 64;
/// The most quantiles of one summary: a table with more columns is hard to read.
pub const QUANTILES_MAX: usize = 32;
/// Payload of a packet of a network load if the path carries it: fits in an MTU of 1,500 bytes with IPv6, UDP and the
/// 52 bytes that common tunnels add.
pub(crate) const STREAM_SIZE_BYTES: u32 = 1_400;
/// Payload of a packet of `latlab stream` over IPv4: with 20 bytes of IP and 8 of UDP it fills an MTU of 1,500 …
pub(crate) const STREAM_PACKET_IPV4_BYTES: u32 = 1_472;
/// … and over IPv6, whose header has 40.
pub(crate) const STREAM_PACKET_IPV6_BYTES: u32 = 1_452;
/// One flow, as in a program with one socket.
pub const STREAM_FLOWS: u16 = 1;
/// Each flow is a session and a thread: with more of them the scheduler is measured.
pub const STREAM_FLOWS_MAX: u16 = 64;
/// The longest time for which a slice of a stream waits for counts: [`STREAM_PATIENCE`] before it and after it …
pub(crate) const STREAM_SETTLES: Nanos = Nanos(STREAM_PATIENCE.0 * 2);
/// … and over TCP this long each time, as a slow path may take: four flows at 256 kbit/s, with 256 KiB each.
pub const STREAM_SETTLES_CONNECTED: Nanos = Nanos::from_secs(30);
/// Events of the ring of a flow: twenty a second, for three minutes in which the writer does not run. 256 KiB.
pub const STREAM_RING_EVENTS: usize = 1 << 12;
/// The least default payload of a packet at a low rate.
pub(crate) const STREAM_SIZE_SLOW_BYTES: u32 = 64;
/// The slowest stream has one packet in each window of 100 ms, since a window without one shows nothing.
pub(crate) const STREAM_PACKETS_MIN_PER_SECOND: u64 = 10;
/// The fastest stream: no link is faster, so a higher rate is probably a wrong unit.
pub const STREAM_RATE_MAX_BPS: u64 = 10_000_000_000_000;
/// The least share of the rate without loss, which the search finds to within 2 %.
pub(crate) const STREAM_SHARE_MIN: f64 = 0.01;
/// Bytes that Ethernet adds to an IP packet: preamble and delimiter 8, addresses and type 14, check sequence 4,
/// gap 12 (IEEE 802.3, clause 3).
pub(crate) const ETHERNET_OVERHEAD_BYTES: u32 = 38;
/// Achieved rates are reported per window of this length …
pub const STREAM_WINDOW: Nanos = Nanos::from_millis(100);
/// … whose counts are polled again after this time without an answer.
pub const STREAM_POLL_AGAIN: Nanos = Nanos::from_millis(25);
/// After the last packet of a part of a stream the poll is repeated after this time first, which doubles each time.
pub const STREAM_POLL_SOON: Nanos = Nanos::from_millis(1);
/// A stream without counts for this time ends: the circuit breaker of RFC 8085, section 3.1.10.
pub const STREAM_SILENCE_MAX: Nanos = Nanos::from_secs(5);
/// Packets of a stream between two checks of clock and schedule: with fewer the checks cost more than 1 % of sending;
/// with more the kernel does not cut a burst from one buffer (`GSO_SEGMENTS_MAX`).
pub const STREAM_BATCH: u16 = 64;
/// The largest batch: UIO_MAXIOV, the limit of one sendmmsg(2).
pub const STREAM_BATCH_MAX: u16 = 1_024;
/// The most packets of one buffer: UDP_MAX_SEGMENTS of Linux before 6.9 (128 since then).
pub(crate) const GSO_SEGMENTS_MAX: u16 = 64;
/// Buffer of the sockets of a stream in each direction: 44 bursts of 64 packets at 1,472 bytes, or 5,000 small datagrams
/// with the bookkeeping of the kernel.
pub const STREAM_BUFFER_BYTES: u32 = 4 << 20;
/// How long the receiver of a stream sleeps after it has emptied its socket, so that one wake-up serves many packets. With
/// the default timer slack it sleeps twice as long: some 30 packets at 300,000 a second.
pub const STREAM_RECEIVE_PAUSE: Nanos = Nanos::from_micros(50);
/// Unsent data that the kernel of the sender of a TCP stream accepts (TCP_NOTSENT_LOWAT), which a poll is queued behind.
/// Less would leave a fast path idle between two wake-ups of the sender: at 10 Gbit/s this lasts 200 µs.
pub const STREAM_UNSENT_BYTES: u32 = 256 << 10;
/// A measured stream without counts for this time ends, so that its command ends within 2 s.
pub const STREAM_PATIENCE: Nanos = Nanos::from_millis(1_500);
/// The longest search of a network load for the rate without loss.
pub const RATE_SEARCH: Nanos = Nanos::from_secs(10);
/// Duration of a search with its stages: as long as a person waits …
pub const SEARCH: Nanos = Nanos::from_secs(60);
/// … at least this, for sixty trials of 100 ms …
pub const SEARCH_MIN: Nanos = Nanos::from_secs(10);
/// … and at most this for all sizes of a command together: longer trials are not needed, and a reflector ends the
/// session of probes if it is idle for longer.
pub const SEARCH_MAX: Nanos = SERVE_IDLE;
/// The most goals, since each takes a share of the time.
pub const SEARCH_GOALS_MAX: usize = 4;
/// Number of full-length trials in the whole time …
pub(crate) const SEARCH_TRIALS_IN_ALL: i64 = 120;
/// … which last at least this, since a receiver preempted for 20 ms would decide shorter ones …
pub const SEARCH_TRIAL_MIN: Nanos = Nanos::from_millis(100);
/// … and at most this: further seconds show no more than the first.
pub(crate) const SEARCH_TRIAL_MAX: Nanos = Nanos::from_secs(1);
/// Number of trials that confirm a lower bound in the whole time: ten times as long as the others up to two minutes, so that
/// a bucket adds a tenth of what it adds to those.
pub(crate) const SEARCH_CONFIRMING_IN_ALL: i64 = 12;
/// Trials without a pace at the beginning, of which the best is the most that this end can send, without brief
/// interference.
pub const SEARCH_TRIALS_WITHOUT_PACE: usize = 3;
/// Trials that classify a rate; three are enough if they agree.
pub(crate) const SEARCH_TRIALS_AT_A_RATE: i64 = 5;
/// The share of them that may lose more: the majority of trials decides.
pub(crate) const SEARCH_EXCEED_RATIO: f64 = 0.5;
/// Relative width of the bounds of a rate: trials of half a second differ by about as much.
pub(crate) const SEARCH_WIDTH: f64 = 0.02;
/// Time-out of the poll after a trial without a pace, which fills queues of unknown depth; a silent target ends the search
/// within [`STREAM_SILENCE_MAX`].
pub const SEARCH_PATIENCE_WITHOUT_PACE: Nanos = Nanos(STREAM_SILENCE_MAX.0 - 500_000_000);
/// A trial without a pace whose last packet is answered later than this has shown the rate of the path; another one would
/// fill the queue again.
pub const SEARCH_DEEP_QUEUE: Nanos = Nanos::from_millis(500);
/// Packets of a trial at the lowest rate.
pub const SEARCH_PACKETS_MIN: f64 = 10.0;
/// Number of stages in the whole time …
pub(crate) const SEARCH_STAGES_IN_ALL: i64 = 24;
/// … which last at least this, for some hundred probes …
pub(crate) const SEARCH_STAGE_MIN: Nanos = Nanos::from_millis(200);
/// … and at most as long as a default run.
pub(crate) const SEARCH_STAGE_MAX: Nanos = Nanos::from_secs(10);
/// Interval of polls while no packets are sent: negligible next to a thousand probes a second, and short enough that the
/// last poll before a receiver fails is not much older than the last probe.
pub const SEARCH_ASKS_EVERY: Nanos = Nanos::from_millis(250);
/// The time-out of the probes of a search is the whole time divided by this, at most [`TIMEOUT`].
pub(crate) const SEARCH_TIMEOUTS_IN_ALL: i64 = 60;
/// An overloaded receiver recovers as soon as nothing is sent; one that leaves this many polls in a row unanswered has
/// failed. They share [`STREAM_PATIENCE`], since paced trials are short and near the rate of the path.
pub const SEARCH_SILENT_QUESTIONS: u32 = 2;
/// Interval of the probes during a stream …
pub const STREAM_PROBE_INTERVAL: Nanos = Nanos::from_millis(1);
/// … and the shortest one: 10,000 probes a second are a load of their own.
pub const STREAM_PROBE_INTERVAL_MIN: Nanos = Nanos::from_micros(100);
/// Events of the ring of these probes: two for each, for three seconds at the shortest interval. 4 MiB.
pub const STREAM_PROBE_RING_EVENTS: usize = 1 << 16;
/// Concurrent sessions of a reflector: eight senders with 16 source ports and two sizes each …
pub const SERVE_SESSIONS: u16 = 256;
/// … and the most, since their replay windows are allocated before the first packet.
pub const SERVE_SESSIONS_MAX: u16 = 1_024;
/// Sessions from one prefix (/24 or /64): half, so that one network cannot keep all others out.
pub const SERVE_SESSIONS_PER_PREFIX: u16 = 128;
/// New sessions a second: each costs a keyed hash …
pub const SERVE_NEW_SESSIONS: u32 = 100;
/// … and at this rate still less than 1 % of a small core.
pub const SERVE_NEW_SESSIONS_MAX: u32 = 1_000;
/// COOKIEs a second, the only answer to unknown senders: at most 48 kB a second …
pub const SERVE_COOKIES: u32 = 1_000;
/// … or 480 kB a second.
pub const SERVE_COOKIES_MAX: u32 = 10_000;
/// The longest session by default: the longest run, and an hour for set-up and evaluation.
pub const SERVE_DURATION: Nanos = Nanos::from_secs(25 * 3600);
/// The longest session that can be allowed.
pub const SERVE_DURATION_MAX: Nanos = Nanos::from_secs(7 * 24 * 3600);
/// A session without probes for this time is ended: several sizes are interleaved, and each waits for the others …
pub const SERVE_IDLE: Nanos = Nanos::from_secs(600);
/// … and the longest such time: the intervals of the slowest Poisson schedule reach ten times their mean.
pub const SERVE_IDLE_MAX: Nanos = INTERVAL_MAX.saturating_mul(10);
/// Heartbeat interval of an agent's connection, of which one may be lost within the silence that ends it …
pub const AGENT_BEAT: Nanos = Nanos::from_millis(500);
/// … which is this long, so that a host is restored within 2 s of the loss of its connection.
pub const AGENT_SILENCE: Nanos = Nanos::from_millis(1_500);
/// The dead-man timer of an armed run expires this long after its planned end.
pub const AGENT_DEAD_MAN: Nanos = Nanos::from_secs(5);
/// A run without a planned end is armed repeatedly for this time.
pub const AGENT_ARMED: Nanos = Nanos::from_secs(60);
/// Interval of host samples: ten a second show what a window of a second hides.
pub const SAMPLE_PERIOD: Nanos = Nanos::from_millis(100);
/// The same with up to two CPUs, where every sample takes a CPU from one of the ends.
pub const SAMPLE_PERIOD_NO_CPU_TO_SPARE: Nanos = Nanos::from_millis(500);
/// The share of one CPU that host samples may cost: the pause after a sample grows with its duration.
pub const SAMPLER_SHARE: f64 = 0.005;
/// The largest packet that every network carries unfragmented (RFC 791, section 3.2).
pub const MTU_MIN_BYTES: u32 = 68;
/// The longest time of a setting: a second of idle latency, polling or slack is probably a wrong unit.
pub const SETTING_MICROS_MAX: u32 = 1_000_000;
/// Period of a burst of a CPU or memory load and the pause after it. The tick of the kernel samples whether a CPU is busy
/// at multiples of 10 ms (HZ 100), 4 ms (250), 3⅓ ms (300) or 1 ms (1000), and samples a period in a simple ratio to one
/// of them at always the same phase: at 10 ms and HZ 100 an exact 50 % shows as 0 or 100 %. The golden ratio is the
/// number farthest from simple ratios: with 10 ms times that, tick counts over 5 s are wrong by at most 0.7 points at any
/// of these HZ (docs/design/0005-loads.md has the search).
pub const LOAD_PERIOD: Nanos = Nanos::from_micros(16_180);
/// The shortest period, of which a wake-up takes about 10 µs.
pub const LOAD_PERIOD_MIN: Nanos = Nanos::from_millis(1);
/// The longest period: loads are evaluated over windows of 5 s.
pub const LOAD_PERIOD_MAX: Nanos = Nanos::from_secs(5);
/// The least CPU load, which is controlled to within one point.
pub const CPU_LOAD_MIN: f64 = 0.01;
/// The most heaters of one load: if all share one CPU, each of them still runs about once a second.
pub const HEATERS_MAX: u32 = 256;
/// The least memory load: one page in a millisecond …
pub const MEMORY_LOAD_MIN_BPS: f64 = 4_096_000.0;
/// … and the greatest, beyond any host of today.
pub const MEMORY_LOAD_MAX_BPS: f64 = 1e13;
/// Size of the buffers of a memory load, on all of its CPUs together: more than most last-level caches …
pub const MEMORY_LOAD_BUFFER_BYTES: u32 = 256 << 20;
/// … and at least one page to read and one to write for each of 256 CPUs.
pub const MEMORY_LOAD_BUFFER_MIN_BYTES: u32 = 2 << 20;
/// Loads of one command, each a process of its own.
pub const LOADS_MAX: usize = 16;
/// Loads run for this time before the warm-up: their control needs a second to settle.
pub const LOAD_SETTLE: Nanos = Nanos::from_secs(1);
/// Confidence of intervals and tests of a comparison, in per cent.
pub const CONFIDENCE_PERCENT: f64 = 95.0;
/// The confidence levels of ministat, in per cent.
pub const MINISTAT_CONFIDENCES: [f64; 6] = [80.0, 90.0, 95.0, 98.0, 99.0, 99.5];
/// The most groups of the ministat form, which has this many symbols.
pub const MINISTAT_GROUPS_MAX: usize = 7;
/// The fewest observations of a group of the ministat form.
pub const MINISTAT_VALUES_MIN: usize = 3;
/// Characters between the borders of a plot: at least two for its ends, and at most the width of any terminal.
pub const PLOT_WIDTHS: std::ops::RangeInclusive<u64> = 2..=10_000;
/// Characters between the borders of a plot that is not shown on a terminal, the default of ministat.
pub const PLOT_WIDTH: usize = 74;
/// Delimiters of the columns of a file of numbers.
pub const TEXT_DELIMITERS: &[u8] = b" \t";
/// The highest column of a file of numbers that can be chosen.
pub const TEXT_COLUMN_MAX: u64 = 1_000_000;
/// The most numbers of one file: 0.8 GB of memory.
pub const NUMBERS_MAX: usize = 100_000_000;
/// The longest file of an experiment, in bytes; the built-in ones have less than 4,000.
pub const EXPERIMENT_FILE_MAX_BYTES: u64 = 1 << 20;
/// The longest options of one condition, in bytes, so that [`CONDITIONS_MAX`] of them fit into memory.
pub const CONDITION_MAX_BYTES: usize = 64 << 10;
/// The most comparisons (`[[compare]]`) of an experiment, each with a row for every condition.
pub const CONTRASTS_MAX: usize = 100;
/// The most quantiles of one summary, with those of its gates and of its manifest.
pub const SUMMARY_QUANTILES_MAX: usize = 1_000;
/// The most gates of one command.
pub const GATES_MAX: usize = 100;
/// The most conditions of an experiment: one run of a second each takes a quarter of an hour.
pub const CONDITIONS_MAX: usize = 1_000;
/// The most runs of an experiment: of a second each they take more than a day …
pub const EXPERIMENT_RUNS_MAX: u64 = 100_000;
/// … and the most blocks: one a day for three years.
pub const BLOCKS_MAX: u32 = 1_000;
/// Runs per condition and block: enough for a test of two conditions to reach p = 10⁻⁵.
pub const EXPERIMENT_RUNS: u32 = 10;
/// Runs without an answer after which an experiment ends, if no run was answered before: one may be a condition that loses
/// everything, which is a result, but a target that is down would take 10 s for each of all runs.
pub const SILENT_RUNS: usize = 3;
/// Conditions that these runs are of at least, unless fewer are measured: in a random order an experiment may begin with
/// several runs of the one that loses everything.
pub const SILENT_CONDITIONS: usize = 2;
/// The fewest runs of a condition whose interval is precise enough to decide on more runs.
pub const UNTIL_RUNS_MIN: u32 = 10;
/// The same of one block: a single run shows no variance within it.
pub(crate) const UNTIL_BLOCK_RUNS_MIN: u32 = 2;
/// Pause before a change of conditions, for the effects of the previous run to decay.
pub const EXPERIMENT_SETTLE: Nanos = Nanos::from_secs(1);
/// The longest pause between blocks.
pub const PAUSE_MAX: Nanos = Nanos::from_secs(7 * 24 * 3600);
/// The time that a hook of an experiment may take: to deploy a build and start a server.
pub const HOOK_TIMEOUT: Nanos = Nanos::from_secs(60);
/// The most looks at the gates of an experiment …
pub const GATE_LOOKS_MAX: u32 = 5;
/// … and the runs of each condition before each.
pub const GATE_LOOK_RUNS: u32 = ROUNDS_MIN;
/// The fewest rounds that are strata of a test: eight reach p = 0.8 %.
pub const ROUNDS_MIN: u32 = 8;
/// Runs of two commands: two looks at a gate.
pub const AB_RUNS: u32 = 16;
/// Default seed of an order, so that the same file gives the same order.
pub const EXPERIMENT_SEED: u64 = 1;
/// Estimate of a round trip before any is measured, for the expected duration of a counted closed loop.
pub const ROUND_TRIP_GUESS: Nanos = Nanos::from_micros(100);
/// The same of an execution of a command.
pub const EXECUTION_GUESS: Nanos = Nanos::from_millis(100);
/// Runs of each remedy and of the unchanged condition in each block …
pub const REMEDY_RUNS: u32 = 3;
/// … and blocks: 8,000 permutations, so that p values reach 0.00025, with which ten comparisons can be decided at once.
pub const REMEDY_BLOCKS: u32 = 3;
/// Default warm-up of each of these short runs: the first wake-ups of a thread are slow.
pub const REMEDY_WARMUP: Nanos = Nanos::from_millis(100);
/// Time of a run in addition to its probes: starting a reflector, reading host facts, writing Parquet.
pub const RUN_OVERHEAD: Nanos = Nanos::from_millis(400);
/// Size of a recording without its rows, mostly host facts and host samples, in bytes …
pub const RUN_BYTES: f64 = 70e3;
pub const PROBE_BYTES: f64 = 25.0;

/// Episodes of slow probes that `latlab explain` lists, and around which `--trace` keeps what the CPUs ran.
pub const WORST_EPISODES: usize = 20;
/// The part of the trace that is kept before …
pub const TRACED_BEFORE: Nanos = Nanos::from_millis(10);
/// … and after each of them.
pub const TRACED_AFTER: Nanos = Nanos::from_millis(1);
