#!/usr/bin/env python3
"""Makes real causes of slow probes, and counts how often `latlab explain` names them.

    scripts/injected_causes.py LATLAB [CAUSE ...] [--repeats 20]

Each repeat measures while the cause is made now and then, and reads `explain --json`. It is found if three or
more, and most, of those of the ten worst episodes that were sent meanwhile are in the right stage and name what ran. A
period and CPUs must be claimed. What else is named is counted: the stage with most of the excess, what ran the longest,
claims. The ends run under SCHED_FIFO, so that other work is no cause, but those of `quiet`, which should have no claim.
`lab`: whether the bound of `summary --one-way` holds the delays of two clocks of known offset. `stamps`: the medians of the
stages beside those of crates/latlab/benches/bare/stamps.c. Wants root and two CPUs.
"""

import argparse
import collections
import contextlib
import csv
import ctypes
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE, THERE = 0, 1  # the CPUs of the ends
ENDS, HOG = 50, 60  # their priority, and that of what takes their CPU
FIFO = f"--stamps kernel --cpu {HERE} --fifo {ENDS}"
PINNED = f"{FIFO} --peer-cpu {THERE}"
AHEAD_S = 1_000
LIBC = ctypes.CDLL(None)
PROCESS_MADVISE, MADV_PAGEOUT = 440, 21
OWN_NAME = pathlib.Path("/proc/self/comm").read_text().strip()
BARE = pathlib.Path(__file__).parent.parent / "crates/latlab/benches/bare/stamps.c"


def output(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


@contextlib.contextmanager
def hogging(cpu):
    """This process runs on `cpu` before all others."""
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(HOG))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, range(os.cpu_count()))


def spin(until):
    while time.monotonic() < until:
        pass


class Ping:
    """`latlab ping`, whose block runs while it measures; its explanation afterwards."""

    def __init__(self, latlab, options, target="local", prefix=()):
        self.latlab, self.store, self.spans = latlab, tempfile.TemporaryDirectory(), []
        words = [*prefix, latlab, "ping", target, "--warmup", "0", "-q", "--json", "--store", self.store.name]
        self.process = subprocess.Popen([*words, *options.split()], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def __enter__(self):
        until = time.monotonic() + 20
        while not any(spool.stat().st_size > 6_400 for spool in pathlib.Path(self.store.name).glob("*/events.spool")):
            if self.process.poll() is not None or time.monotonic() > until:
                sys.exit(f"no probe: {self.process.communicate()[1].decode()}")
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        said = self.process.communicate()[1].decode()
        if self.process.returncode:
            sys.exit(said)
        self.recording = str(next(path for path in pathlib.Path(self.store.name).iterdir() if path.is_dir()))

    def caused(self, start, end):
        """Monotonic seconds: a probe that was under way then may be slow."""
        self.spans.append((start - 0.001, end))

    def rows(self):
        return list(csv.DictReader(output(self.latlab, "export", self.recording, "-q").splitlines()))

    def explained(self):
        return json.loads(output(self.latlab, "explain", "--worst", "10", "--json", "-q", self.recording))["runs"][0]


def claims(found):
    def word(test, period_ns):
        return f"period of {period_ns // 1_000_000} ms" if period_ns else test

    return {word(it["test"], it["period_ns"]): it["what"] for it in found["common"] if it["is_claimed"]}


def judged(ping, stages, is_cause=lambda ran, episode: True):
    """Whether the cause is found in one of these stages, of what `is_cause` says ran then; and what else is named."""
    found, start = ping.explained(), int(ping.rows()[0]["sent_ns"]) / 1e9
    most = max(found["stages"], key=lambda stage: stage["excess_ns"])["name"]
    others = [name for name in [most, *claims(found)] if name not in stages]

    def is_then(sent):
        return any(since <= sent <= until for since, until in ping.spans)

    def is_right(episode):
        ran = episode.get("ran")
        return episode["stage"] in stages and (not ran or any(is_cause(each, episode) for each in ran))

    during = [episode for episode in found["worst"] if is_then(start + episode["start_ns"] / 1e9)]
    right = list(filter(is_right, during))
    first = [(episode["ran"][0], episode) for episode in right if episode.get("ran")]
    ran_most = collections.Counter(ran["what"] for ran, episode in first if not is_cause(ran, episode))
    others += [f"{what} ran most" for what, count in ran_most.items() if 2 * count > len(right)]
    return len(right) >= 3 and 2 * len(right) > len(during), others


def hog(latlab):
    """A thread takes the reflector's CPU for 5 ms, 20 times."""
    with Ping(latlab, f"-i 1ms -d 3s {PINNED} --trace") as ping, hogging(THERE):
        for _ in range(20):
            time.sleep(random.uniform(0.05, 0.15))
            start = time.monotonic()
            spin(start + 0.005)
            ping.caused(start, start + 0.005)
    return judged(ping, ["peer's wake-up"], lambda ran, _: ran["what"] == OWN_NAME)


@contextlib.contextmanager
def serving(latlab):
    """A reflector of its own, and its address."""
    address = f"127.0.0.1:{random.randrange(20_000, 30_000)}"
    words = [latlab, "serve", "--bind", address, "--cpu", str(THERE), "--fifo", str(ENDS)]
    reflector = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.2)
        yield reflector, address
    finally:
        reflector.kill()
        reflector.wait()


def stopped(latlab):
    """The reflector is stopped for 5 ms, 20 times. It sleeps in its receive call when that happens: the kernel has the probe,
    and the call returns after the stop. The stamps cannot tell this from a late wake-up."""
    with serving(latlab) as (reflector, address), Ping(latlab, f"-i 1ms -d 3s {FIFO}", address) as ping, hogging(THERE):
        for _ in range(20):
            time.sleep(random.uniform(0.05, 0.15))
            start = time.monotonic()
            reflector.send_signal(signal.SIGSTOP)
            time.sleep(0.005)
            reflector.send_signal(signal.SIGCONT)
            ping.caused(start, time.monotonic())
    return judged(ping, ["peer's wake-up"])


def interrupts(latlab):
    """4,000 timers that nobody waits for expire within 4 ms on the reflector's CPU, 20 times."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (8_192, 8_192))
    timers = [LIBC.timerfd_create(time.CLOCK_MONOTONIC, 0) for _ in range(4_000)]
    with Ping(latlab, f"-i 1ms -d 4s {PINNED} --trace") as ping:
        os.sched_setaffinity(0, {THERE})
        for _ in range(20):
            start_ns = time.monotonic_ns() + random.randrange(70_000_000, 150_000_000)
            for number, timer in enumerate(timers):
                due = (ctypes.c_long * 4)(0, 0, *divmod(start_ns + 1_000 * number, 1_000_000_000))
                LIBC.timerfd_settime(timer, 1, due, None)
            time.sleep(start_ns / 1e9 + 0.01 - time.monotonic())
            ping.caused(start_ns / 1e9, start_ns / 1e9 + 0.005)
        os.sched_setaffinity(0, range(os.cpu_count()))
    os.closerange(timers[0], timers[-1] + 1)
    at_peer = ["peer's wake-up", "peer's process", "peer's reply path"]
    return judged(ping, at_peer, lambda ran, episode: ran["is_interrupt"] and 4 * ran["ns"] > episode["delay_ns"])


def migration(latlab):
    """The sender is moved to the reflector's CPU and back, 20 times. Its probes are slow on one of them: a CPU is claimed."""
    with Ping(latlab, f"-i 1ms -d 4s --stamps kernel --fifo {ENDS} --cpu any --peer-cpu {THERE}") as ping:
        for move in range(40):
            time.sleep(random.uniform(0.03, 0.1))
            for thread in pathlib.Path(f"/proc/{ping.process.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {(HERE, THERE)[move % 2]})
    named, cpus = set(claims(ping.explained())), {"sent_cpu", "received_cpu", "placement"}
    return bool(named & cpus), named - cpus


def page_fault(latlab):
    """The kernel drops the sender's pages of files, 20 times: its thread waits for the disk. Pages that the reflector has too
    would stay: it runs a copy."""
    copy, options = tempfile.TemporaryDirectory(), f"-i 1ms -d 4s {FIFO} --trace"
    with serving(shutil.copy(latlab, copy.name)) as (_, address), Ping(latlab, options, address) as ping:
        handle = os.pidfd_open(ping.process.pid)
        for _ in range(20):
            time.sleep(random.uniform(0.05, 0.15))
            start = time.monotonic()
            for line in pathlib.Path(f"/proc/{ping.process.pid}/maps").read_text().splitlines():
                first, last = (int(address, 16) for address in line.split()[0].split("-"))
                span = (ctypes.c_size_t * 2)(first, last - first)
                LIBC.syscall(PROCESS_MADVISE, handle, span, ctypes.c_size_t(1), MADV_PAGEOUT, 0)
            ping.caused(start, time.monotonic() + 0.002)
        os.close(handle)
    return judged(ping, ["stack and wake-up here"], lambda ran, _: ran["what"] in ("idle", "measure"))


class Namespaces:
    """Two network namespaces with a veth pair between them."""

    ADDRESSES = ["10.199.7.1", "10.199.7.2"]

    def __enter__(self):
        self.names = [f"causes-{os.getpid()}-{end}" for end in "ab"]
        for name in self.names:
            output("ip", "netns", "add", name)
        near, far = self.names
        output(*f"ip -n {near} link add veth0 type veth peer name veth0 netns {far}".split())
        for name, address in zip(self.names, self.ADDRESSES):
            output(*f"ip -n {name} address add {address}/24 dev veth0".split())
            for device in ("veth0", "lo"):
                output(*f"ip -n {name} link set {device} up".split())
        return self

    def __exit__(self, *_):
        for name in self.names:
            output("ip", "netns", "delete", name)

    def ping(self, latlab, options, clock=""):
        agent = f"cmd:ip netns exec {self.names[1]} {clock} {latlab} agent --stdio"
        return Ping(latlab, f"--peer-addr {self.ADDRESSES[1]} {options}", agent, ["ip", "netns", "exec", self.names[0]])

    def shape(self):
        output(*f"tc -n {self.names[0]} qdisc add dev veth0 root tbf rate 20mbit burst 3000 limit 100000".split())

    def bursts(self, seconds):
        """Bursts of 15 kB, 6 ms at 20 Mbit/s; when they began."""
        code = f"""if True:
            import random, socket, time
            end, to = time.monotonic() + {seconds}, socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            while time.monotonic() < end:
                print(time.monotonic())
                for _ in range(10):
                    to.sendto(bytes(1400), ("{self.ADDRESSES[1]}", 9))
                time.sleep(random.uniform(0.05, 0.15))"""
        return map(float, output("ip", "netns", "exec", self.names[0], sys.executable, "-c", code).split())


def queue(latlab):
    """Bursts of another sender wait in the token bucket of the sender's interface, of 20 Mbit/s."""
    with Namespaces() as lab:
        lab.shape()
        with lab.ping(latlab, f"-i 1ms -d 3s {PINNED}") as ping:
            for start in lab.bursts(2.5):
                ping.caused(start, start + 0.01)
    return judged(ping, ["queue"])


def period(latlab):
    """A thread takes the reflector's CPU for 0.5 ms every 4 ms. Probes at random intervals meet all phases of all periods."""
    with Ping(latlab, f"-i 1.3ms --poisson -d 4s {PINNED}") as ping, hogging(THERE):
        due = time.monotonic() // 0.004 * 0.004 + 0.002  # far from the ticks of a kernel with 250 Hz
        while ping.process.poll() is None:
            due += 0.004
            time.sleep(max(0, due - time.monotonic()))
            spin(due + 0.0005)
    named = claims(ping.explained())
    what = named.pop("period of 4 ms", "")
    is_right = bool(re.match(r"sent about (1\.[7-9]|2(\.[0-3])?)\d* ms after", what))
    return is_right, named if is_right or not what else [*named, what]


def quiet(latlab):
    """No cause: nothing is claimed."""
    with Ping(latlab, "-i 1.3ms --poisson -d 3s --stamps kernel") as ping:
        pass
    named = claims(ping.explained())
    return not named, named


def lab(latlab):
    """The delays between two clocks, one ahead by 1,000 s: the bound of each mean holds the true one."""
    by_kernel, clock = random.random() < 0.5, f"unshare --time --fork --monotonic {AHEAD_S} --boottime {AHEAD_S}"
    with Namespaces() as pair:
        if random.random() < 0.5:
            pair.shape()
        with pair.ping(latlab, "-i 1ms -d 1s" + " --stamps kernel" * by_kernel, clock) as ping:
            pair.bursts(0.6)
    found = json.loads(output(latlab, "summary", "--one-way", "--json", "-q", ping.recording))["one_way"]
    of_kernel = ["tx_software_ns", "reflector_rx_software_ns", "reflector_tx_software_ns", "rx_software_ns"]
    columns = of_kernel if by_kernel else ["sent_ns", "reflector_received_ns", "reflector_sent_ns", "received_ns"]
    stamps = [[int(row[column]) for column in columns] for row in ping.rows() if all(row[column] for column in columns)]
    there = statistics.fmean(peer - sent for sent, peer, _, _ in stamps) - AHEAD_S * 1e9
    back = statistics.fmean(received - peer for _, _, peer, received in stamps) + AHEAD_S * 1e9
    wrong = []
    for way, truth in (("forward_delay", there), ("backward_delay", back)):
        if not found[way]["low"]["mean"] <= truth <= found[way]["high"]["mean"]:
            wrong.append(way)
    return not wrong and found["without_bound"] == 0, wrong


def stamps(latlab, repeats):
    """Prints the median of each stage in ns, of the C program and of latlab in turn, and the median of their ratios."""
    with tempfile.TemporaryDirectory() as work:
        output("cc", "-O2", "-o", f"{work}/stamps", str(BARE))
        pairs = collections.defaultdict(list)
        for _ in range(repeats):
            lines = output(f"{work}/stamps", "3000", str(HERE), str(THERE)).splitlines()
            bare = {line.split("\t")[0]: int(line.split("\t")[1]) for line in lines}
            with Ping(latlab, f"-i 1ms -n 3000 --stamps kernel --cpu {HERE} --peer-cpu {THERE}") as ping:
                pass
            for stage in ping.explained()["stages"]:
                pairs[stage["name"]].append((bare[stage["name"]], stage["median_ns"]))
    print(f"{'stage':24}{'C program':>12}{'latlab':>12}{'ratio':>8}")
    for stage, both in pairs.items():
        columns = [*zip(*both), [there / here for here, there in both]]
        print("{:24}{:12.0f}{:12.0f}{:8.2f}".format(stage, *map(statistics.median, columns)))


CAUSES = {function.__name__: function for function in (hog, stopped, queue, period, interrupts, migration, page_fault, quiet, lab)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("latlab")
    parser.add_argument("causes", nargs="*", metavar="CAUSE", help=f"{', '.join([*CAUSES, 'stamps'])}; default: all")
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    latlab = os.path.abspath(arguments.latlab)
    for name in arguments.causes or [*CAUSES, "stamps"]:
        if name == "stamps":
            stamps(latlab, arguments.repeats)
            continue
        found, others = 0, collections.Counter()
        for _ in range(arguments.repeats):
            is_found, named = CAUSES[name](latlab)
            found += is_found
            others.update(set(named))
        also = ", ".join(f"{other} ({count})" for other, count in others.most_common()) or "nothing"
        print(f"{name:12}{found:4} of {arguments.repeats}; also named: {also}; load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
