//! Every default and every limit, each with its reason.

use crate::units::Nanos;

/// How long a run measures: long enough for 200,000 round trips on loopback, short enough to wait for.
pub const DURATION: Nanos = Nanos::from_secs(10);
/// Warm-up ends after so long …
pub const WARMUP: Nanos = Nanos::from_secs(1);
/// … or after so many probes: caches, routes and neighbour entries are warm long before.
pub const WARMUP_PROBES: u64 = 1_000;
/// Later answers are `late`.
pub const TIMEOUT: Nanos = Nanos::from_secs(1);
/// A longer wait for one answer is a mistake in the unit.
pub const TIMEOUT_MAX: Nanos = Nanos::from_secs(60);
/// How far a sender may fall behind its schedule before it gives up due probes.
pub const MAX_BACKLOG: Nanos = Nanos::from_secs(1);
/// Default payload: fits in one cache line, carries full stamps.
pub const SIZE_BYTES: u32 = 64;
/// The smallest probe: header and tag (docs/protocol.md).
pub const SIZE_MIN_BYTES: u32 = 24;
/// The largest UDP payload over IPv4: 65,535 − 20 (IP) − 8 (UDP).
pub const SIZE_MAX_BYTES: u32 = 65_507;
/// Assigned to nobody at the IANA on either side; next to STAMP's 862 for memory.
pub const PORT: u16 = 9862;
/// The quantiles of every summary.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];
/// Those of a stream's rates: what is looked for lies below the median, and a minute has 600 intervals.
pub const STREAM_QUANTILES: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];
/// Confidence of every interval that nobody chose otherwise.
pub const CONFIDENCE: f64 = 0.95;
/// The store, unless `--store` or `LATLAB_STORE` says otherwise.
pub const STORE: &str = "./latlab-runs";
/// `--source-port sweep` uses so many ports: enough to meet several members of a usual ECMP or LACP group.
pub const SWEEP_PORTS: u16 = 16;
/// The first of them, below the ephemeral range of Linux (32768) so that none is in use by chance.
pub const SWEEP_FIRST_PORT: u16 = 30_000;
/// Several runs take turns in so many rounds.
pub const ROUNDS: u32 = 10;
/// A thread that wakes at shorter intervals hardly sleeps: a wake-up costs it 5 to 25 µs, and is late by as much.
pub const RESTLESS_INTERVAL: Nanos = Nanos::from_micros(50);
/// The longest nap of a blocked sender: it looks at Ctrl-C and at the end of the run this often.
pub const NAP: Nanos = Nanos::from_millis(100);
/// How long a busy-polling receive asks the driver before it sleeps: the kernel documentation's advice
/// (Documentation/admin-guide/sysctl/net.rst, `busy_read`).
pub const BUSY_POLL_US: u32 = 50;
/// Receive buffer asked for on both ends: 5,000 small datagrams with the kernel's bookkeeping, so that a
/// thread kept from its CPU for 50 ms at 100,000 probes a second loses none of them.
pub const RECEIVE_BUFFER_BYTES: u32 = 4 << 20;
/// Slots of the event ring: 131,072 × 64 B = 8 MiB, a quarter second at 500,000 events a second.
pub const RING_EVENTS: usize = 1 << 17;
/// From one wake-up to the next: the usual tick of a control loop, and short enough for 1,000 of them in the default
/// duration.
pub const WAKEUP_INTERVAL: Nanos = Nanos::from_millis(10);
/// A thread's ring holds the slots of so long a stall …
pub const WAKEUP_RING: Nanos = Nanos::from_secs(4);
/// … and no fewer than these: 256 KiB.
pub const WAKEUP_RING_EVENTS_MIN: usize = 1 << 12;
/// How often the writer thread empties the ring; `kill -9` loses at most this and one write.
pub const DRAIN: Nanos = Nanos::from_millis(50);
/// The same beside wake-ups whose ring holds seconds: on a host that is idle otherwise each time that the writer runs makes
/// the next wake-up elsewhere later (docs/performance.md, Wake-ups).
pub const WAKEUP_DRAIN: Nanos = Nanos::from_millis(500);
/// The shortest key: 128 bit.
pub const KEY_MIN_BYTES: usize = 16;
/// A longer run is monitoring, not measuring: caches, clocks and hosts are no longer the same ones.
pub const DURATION_MAX: Nanos = Nanos::from_secs(24 * 3600);
/// A longer gap is a mistake in the unit.
pub const INTERVAL_MAX: Nanos = Nanos::from_secs(3600);
/// Where plain UDP echoes listen (RFC 862), for `--protocol echo` without a port.
pub const ECHO_PORT: u16 = 7;
/// The highest CPU number that the kernel's fixed affinity mask can hold (CPU_SETSIZE − 1).
pub const CPU_MAX: u16 = 1_023;
/// SCHED_FIFO's highest priority (sched(7)).
pub const FIFO_MAX: u8 = 99;
/// The largest code point: six bits (RFC 2474, section 3).
pub const DSCP_MAX: u8 = 63;
/// Runs of one command: with more, a table is no longer read and a round no longer short.
pub const RUNS_MAX: usize = 64;
/// Quantiles of one summary: with more, a column is no longer found.
pub const QUANTILES_MAX: usize = 32;
/// Round trips of one bare loop: 500 lie beyond its p99, and it takes seconds at most.
pub const BARE_COUNT: u64 = 50_000;
/// Payload of a stream's packet where the path carries it: fits in 1,500 bytes of MTU with IPv6, UDP and the 52 bytes
/// that common tunnels add.
pub const STREAM_SIZE_BYTES: u32 = 1_400;
/// Payload of a packet of `latlab stream` over IPv4: with 20 bytes of IP and 8 of UDP an Ethernet packet of 1,500 …
pub const STREAM_PACKET_IPV4_BYTES: u32 = 1_472;
/// … and over IPv6, whose header has 40.
pub const STREAM_PACKET_IPV6_BYTES: u32 = 1_452;
/// One flow is what a program with one socket gets.
pub const STREAM_FLOWS: u16 = 1;
/// Each flow is a session and a thread: more of them than this measure the scheduler.
pub const STREAM_FLOWS_MAX: u16 = 64;
/// What a slice of a stream may take beyond its time, to hear what arrived: [`STREAM_PATIENCE`] before it and after it …
pub const STREAM_SETTLES: Nanos = Nanos(STREAM_PATIENCE.0 * 2);
/// … and over TCP so long each time, where the path is so slow: four flows at 256 kbit/s, with 256 KiB each.
pub const STREAM_SETTLES_CONNECTED: Nanos = Nanos::from_secs(30);
/// Events of a flow's ring: twenty a second, for three minutes of a writer that is kept from its work. 256 KiB.
pub const STREAM_RING_EVENTS: usize = 1 << 12;
/// The least payload of a stream's packet that a slow rate is spread over, unless one was asked for.
pub const STREAM_SIZE_SLOW_BYTES: u32 = 64;
/// The slowest stream: one packet in each window of 100 ms, since a window without one says nothing.
pub const STREAM_PACKETS_MIN_PER_SECOND: u64 = 10;
/// The fastest stream that can be asked for: no link is faster, so a faster one is a mistake in the unit.
pub const STREAM_RATE_MAX_BPS: u64 = 10_000_000_000_000;
/// The least share of the rate without loss: the search knows that to 2 %, and less would be its noise.
pub const STREAM_SHARE_MIN: f64 = 0.01;
/// What Ethernet adds to an IP packet, in bytes: preamble and delimiter 8, addresses and type 14, check sequence 4,
/// gap 12 (IEEE 802.3, clause 3).
pub const ETHERNET_OVERHEAD_BYTES: u32 = 38;
/// Achieved rates are told per window of this length …
pub const STREAM_WINDOW: Nanos = Nanos::from_millis(100);
/// … whose counts are asked for again after so long without an answer.
pub const STREAM_POLL_AGAIN: Nanos = Nanos::from_millis(25);
/// Behind the last packet of a stretch it is sent again so soon the first time, and after twice as long each next time.
pub const STREAM_POLL_SOON: Nanos = Nanos::from_millis(1);
/// A stream that nobody counts for so long is ended: the circuit breaker of RFC 8085, section 3.1.10.
pub const STREAM_SILENCE_MAX: Nanos = Nanos::from_secs(5);
/// Packets of a stream that leave between two looks at clock and schedule: with fewer, looking costs more than 1 % of
/// sending; with more, a burst at 1,472 bytes is longer than 64 KiB, which is what a merged buffer holds.
pub const STREAM_BATCH: u16 = 64;
/// The most that can be asked for: UIO_MAXIOV, what one sendmmsg(2) takes.
pub const STREAM_BATCH_MAX: u16 = 1_024;
/// Packets that one buffer is cut into at most: UDP_MAX_SEGMENTS of Linux before 6.9 (128 since then).
pub const GSO_SEGMENTS_MAX: u16 = 64;
/// Buffer of a stream's sockets, each way: 44 bursts of 64 packets at 1,472 bytes, or 5,000 small datagrams with the
/// kernel's bookkeeping.
pub const STREAM_BUFFER_BYTES: u32 = 4 << 20;
/// What the kernel of a stream's sender takes over TCP and does not send yet (TCP_NOTSENT_LOWAT): a POLL is behind no more
/// than this. Less would leave a fast path idle between two wake-ups of the sender: at 10 Gbit/s this lasts 200 µs.
pub const STREAM_UNSENT_BYTES: u32 = 256 << 10;
/// A measured stream that nobody counts for so long is ended, so that its command ends within 2 s.
pub const STREAM_PATIENCE: Nanos = Nanos::from_millis(1_500);
/// The search for the rate without loss takes so long at most.
pub const RATE_SEARCH: Nanos = Nanos::from_secs(10);
/// A search with its stages takes so long at most: as long as a person waits …
pub const SEARCH: Nanos = Nanos::from_secs(60);
/// … and no less than this: sixty trials of 100 ms.
pub const SEARCH_MIN: Nanos = Nanos::from_secs(10);
/// More time buys no longer trials, and a reflector forgets the session of probes that rests for longer than this; all sizes
/// of a command together.
pub const SEARCH_MAX: Nanos = SERVE_IDLE;
/// The loss ratios that are searched for: none (RFC 2544), and half a per cent, which an accident does not decide.
pub const SEARCH_GOALS: [f64; 2] = [0.0, 0.005];
/// Each goal takes its share of the time.
pub const SEARCH_GOALS_MAX: usize = 4;
/// So many trials of full length would fill the time …
pub const SEARCH_TRIALS_IN_ALL: i64 = 120;
/// … which are no shorter than this, since a receiver that is kept from its CPU for 20 ms would decide them …
pub const SEARCH_TRIAL_MIN: Nanos = Nanos::from_millis(100);
/// … and no longer than this: what is not seen in a second is seen in the next.
pub const SEARCH_TRIAL_MAX: Nanos = Nanos::from_secs(1);
/// Trials without a pace at the beginning: the best of them is the most that this end can send, and a neighbour of a moment
/// is not in it.
pub const SEARCH_TRIALS_WITHOUT_PACE: usize = 3;
/// Trials that settle what a rate is: three of them, where they agree.
pub const SEARCH_TRIALS_AT_A_RATE: i64 = 5;
/// The share of them that may lose more: what most trials show is the path.
pub const SEARCH_EXCEED_RATIO: f64 = 0.5;
/// The bounds of a rate are to lie within this share: trials of half a second differ by about as much.
pub const SEARCH_WIDTH: f64 = 0.02;
/// What leaves without a pace fills whatever queue is on the path, and nobody knows yet how deep that is: the question
/// behind it is waited for so long, so that a silent target ends the search within [`STREAM_SILENCE_MAX`].
pub const SEARCH_PATIENCE_WITHOUT_PACE: Nanos = Nanos(STREAM_SILENCE_MAX.0 - 500_000_000);
/// A trial without a pace that is answered later than this behind its last packet has told what the path carries; another
/// would fill the queue again.
pub const SEARCH_DEEP_QUEUE: Nanos = Nanos::from_millis(500);
/// A trial at the least rate has so many packets.
pub const SEARCH_PACKETS_MIN: f64 = 10.0;
/// So many stages would fill the time …
pub const SEARCH_STAGES_IN_ALL: i64 = 24;
/// … which are no shorter, for some hundred probes …
pub const SEARCH_STAGE_MIN: Nanos = Nanos::from_millis(200);
/// … and no longer than a usual run.
pub const SEARCH_STAGE_MAX: Nanos = Nanos::from_secs(10);
/// Where nothing is sent the receiver is asked so often whether it is there: next to a thousand probes a second that is nothing,
/// and the last question before it falls silent is not much older than the last probe.
pub const SEARCH_ASKS_EVERY: Nanos = Nanos::from_millis(250);
/// So many time-outs of probes would fill the time.
pub const SEARCH_TIMEOUTS_IN_ALL: i64 = 60;
/// A swamped receiver recovers as soon as nothing is sent; one that leaves so many questions in a row unanswered is gone.
/// They share [`STREAM_PATIENCE`]: paced trials are short, and near to what the path carries.
pub const SEARCH_SILENT_QUESTIONS: u32 = 2;
/// From one probe beside a stream to the next …
pub const STREAM_PROBE_INTERVAL: Nanos = Nanos::from_millis(1);
/// … and no less: 10,000 probes a second are a load of their own.
pub const STREAM_PROBE_INTERVAL_MIN: Nanos = Nanos::from_micros(100);
/// Events of the ring of probes beside a stream: two for each, for three seconds at the shortest interval. 4 MiB.
pub const STREAM_PROBE_RING_EVENTS: usize = 1 << 16;
/// Sessions a reflector holds at a time: eight senders with 16 source ports and two sizes each …
pub const SERVE_SESSIONS: u16 = 256;
/// … and can hold at most: their replay windows are allocated before the first packet.
pub const SERVE_SESSIONS_MAX: u16 = 1_024;
/// Sessions from one prefix (/24 or /64): half, so that one network cannot keep all others out.
pub const SERVE_SESSIONS_PER_PREFIX: u16 = 128;
/// New sessions a second: each costs a keyed hash …
pub const SERVE_NEW_SESSIONS: u32 = 100;
/// … and at this rate still less than 1 % of a small core.
pub const SERVE_NEW_SESSIONS_MAX: u32 = 1_000;
/// COOKIEs a second: the only thing said to strangers, 48 kB a second at most …
pub const SERVE_COOKIES: u32 = 1_000;
/// … or 480 kB a second.
pub const SERVE_COOKIES_MAX: u32 = 10_000;
/// The longest session unless told otherwise: a run's longest, and an hour for what surrounds it.
pub const SERVE_DURATION: Nanos = Nanos::from_secs(25 * 3600);
/// The longest session that can be allowed: a longer one is a forgotten one.
pub const SERVE_DURATION_MAX: Nanos = Nanos::from_secs(7 * 24 * 3600);
/// A session without a probe for so long is forgotten: several sizes take turns, and each waits for the others …
pub const SERVE_IDLE: Nanos = Nanos::from_secs(600);
/// … or after so long at most: the gaps of the slowest Poisson schedule reach ten times their mean.
pub const SERVE_IDLE_MAX: Nanos = INTERVAL_MAX.saturating_mul(10);
/// This end of an agent's connection beats so often: one beat may be lost within the silence that ends it …
pub const AGENT_BEAT: Nanos = Nanos::from_millis(500);
/// … which is this long, so that a host is restored within 2 s of the loss of its connection.
pub const AGENT_SILENCE: Nanos = Nanos::from_millis(1_500);
/// The dead-man timer of an armed run: its planned end and so much more.
pub const AGENT_DEAD_MAN: Nanos = Nanos::from_secs(5);
/// A run whose end nobody knows is armed for so long, again and again.
pub const AGENT_ARMED: Nanos = Nanos::from_secs(60);
/// From one host sample to the next: ten a second show what a window of a second hides.
pub const SAMPLE_PERIOD: Nanos = Nanos::from_millis(100);
/// The same with two CPUs or fewer: every sample then takes a CPU from one of the ends.
pub const SAMPLE_PERIOD_NO_CPU_TO_SPARE: Nanos = Nanos::from_millis(500);
/// The share of one CPU that host samples may cost: a sample that took longer makes the pause after it longer.
pub const SAMPLER_SHARE: f64 = 0.005;
/// The smallest packet that every network must carry whole (RFC 791, section 3.2).
pub const MTU_MIN_BYTES: u32 = 68;
/// No setting of a time is longer: a second of idle latency, polling or slack is a mistake in the unit.
pub const SETTING_MICROS_MAX: u32 = 1_000_000;
/// How long one burst of a CPU or memory load and the rest after it take. The kernel's tick finds a CPU busy or idle
/// at multiples of 10 ms (HZ 100), 4 ms (250), 3⅓ ms (300) or 1 ms (1000), and a period in a simple ratio to one of
/// them is always found in the same phase: at 10 ms and HZ 100 an exact 50 % shows as 0 or 100 %. 10 ms times the
/// golden ratio is as far from every simple ratio as a number can be: over 5 s the tick counts are wrong by at most
/// 0.7 points at any of these HZ (docs/design/0005-loads.md has the search).
pub const LOAD_PERIOD: Nanos = Nanos::from_micros(16_180);
/// The shortest period: waking up takes some 10 µs of it.
pub const LOAD_PERIOD_MIN: Nanos = Nanos::from_millis(1);
/// The longest period: loads are judged over windows of 5 s.
pub const LOAD_PERIOD_MAX: Nanos = Nanos::from_secs(5);
/// The least CPU load: the promise is one point up or down.
pub const CPU_LOAD_MIN: f64 = 0.01;
/// Heaters of one load: on one CPU each of them has a turn every second already.
pub const HEATERS_MAX: u64 = 256;
/// The slowest memory load: one page in a millisecond …
pub const MEMORY_LOAD_MIN_BPS: f64 = 4_096_000.0;
/// … and the fastest, beyond any host of today.
pub const MEMORY_LOAD_MAX_BPS: f64 = 1e13;
/// What a memory load walks through, on all of its CPUs together: more than most last-level caches …
pub const MEMORY_LOAD_BUFFER_BYTES: u32 = 256 << 20;
/// … and at least one page to read and one to write for each of 256 CPUs.
pub const MEMORY_LOAD_BUFFER_MIN_BYTES: u32 = 2 << 20;
/// Loads of one command, each a process of its own.
pub const LOADS_MAX: usize = 16;
/// Loads run so long before the warm-up: their control needs a second to be within its promise.
pub const LOAD_SETTLE: Nanos = Nanos::from_secs(1);
/// The confidence of intervals and tests of a comparison, in per cent.
pub const CONFIDENCE_PERCENT: f64 = 95.0;
/// The confidence levels that ministat knows, in per cent.
pub const MINISTAT_CONFIDENCES: [f64; 6] = [80.0, 90.0, 95.0, 98.0, 99.0, 99.5];
/// Groups of the ministat form: it has so many symbols.
pub const MINISTAT_GROUPS_MAX: usize = 7;
/// Observations that each group of the ministat form needs.
pub const MINISTAT_VALUES_MIN: usize = 3;
/// Characters between the borders of a plot: two tell the ends apart, and no terminal is wider than the most.
pub const PLOT_WIDTHS: std::ops::RangeInclusive<u64> = 2..=10_000;
/// Characters between the borders of a plot that is not shown on a terminal: ministat's own default.
pub const PLOT_WIDTH: usize = 74;
/// What stands between the columns of a file of numbers.
pub const TEXT_DELIMITERS: &[u8] = b" \t";
/// The last column of a file of numbers that can be chosen.
pub const TEXT_COLUMN_MAX: u64 = 1_000_000;
/// Conditions of an experiment: with one run of a second each, a thousand take a quarter of an hour to go round.
pub const CONDITIONS_MAX: usize = 1_000;
/// Runs of an experiment: of a second each more than a day …
pub const EXPERIMENT_RUNS_MAX: u64 = 100_000;
/// … in so many blocks at most: one a day for three years.
pub const BLOCKS_MAX: u32 = 1_000;
/// Runs per condition and block: enough for an exact test of two conditions to reach p = 10⁻⁵.
pub const EXPERIMENT_RUNS: u32 = 10;
/// Fewer runs of a condition than this do not know how wide their interval should be.
pub const UNTIL_RUNS_MIN: u32 = 10;
/// The same of one block: a single run says nothing about how much runs differ within it.
pub const UNTIL_BLOCK_RUNS_MIN: u32 = 2;
/// Waited before the conditions switch: what the run before has warmed up or filled is gone by then, mostly.
pub const EXPERIMENT_SETTLE: Nanos = Nanos::from_secs(1);
/// A longer pause between blocks is forgotten by whoever asked for it.
pub const PAUSE_MAX: Nanos = Nanos::from_secs(7 * 24 * 3600);
/// The seed of an order, where none is named: the same file gives the same order.
pub const EXPERIMENT_SEED: u64 = 1;
/// A round trip, where nobody has measured one yet: a guess for the expected duration of a closed loop that is counted.
pub const ROUND_TRIP_GUESS: Nanos = Nanos::from_micros(100);
/// Runs of each remedy and of the condition as asked, in each block …
pub const REMEDY_RUNS: u32 = 3;
/// … and blocks: 8,000 exchanges, so that p values reach 0.00025, with which ten comparisons can be decided at once.
pub const REMEDY_BLOCKS: u32 = 3;
/// The warm-up of each of these short runs, unless another was typed: the first wake-ups of a thread are slow.
pub const REMEDY_WARMUP: Nanos = Nanos::from_millis(100);
/// What a run takes beside its probes: starting a reflector, reading host facts, writing Parquet.
pub const RUN_OVERHEAD: Nanos = Nanos::from_millis(400);
/// What a recording takes beside its rows, mostly host facts and host samples, in bytes …
pub const RUN_BYTES: f64 = 70e3;
/// … and for each probe.
pub const PROBE_BYTES: f64 = 25.0;
