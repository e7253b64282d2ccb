#!/usr/bin/env python3
"""Counts how often the judgements of latlab hold, as the documents claim, by a reading of the documents alone.

    scripts/simulate_judgements.py LATLAB [ROW…] [--replicates 2000] [--seed 1]

Each ROW is a function below, without ROW all of them. It draws data from a process whose truth is known, asks the program LATLAB
by files of numbers, imported logs or experiments of commands, and prints tables of how often the answer was right. Where the
program cannot be asked thousands of times, the documented method is computed here, and its results are compared with the program's
on some of the data. Needs numpy and scipy (scripts/simulate_judgements.txt). Of N experiments, a figure of p per cent is
uncertain by about 2·√(p·(100−p)/N).
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

import numpy as np
from scipy import signal, special, stats

class Latlab:
    """The program, and a directory for what it reads and writes."""

    def __init__(self, binary):
        self.binary = str(pathlib.Path(binary).resolve())
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="judgements-"))
        self.environment = {**os.environ, "LATLAB_STORE": str(self.home / "store")}

    def call(self, *words):
        command = [self.binary, *map(str, words)]
        done = subprocess.run(command, cwd=self.home, env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode not in (0, 1, 4):
            sys.exit(f"latlab {' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr}")
        return done

    def json(self, *words):
        return json.loads(self.call(*words, "--json").stdout)

    def write(self, name, values):
        """A file with one value a line."""
        (self.home / name).write_text("\n".join(map(str, np.asarray(values).ravel().tolist())) + "\n")

    def clear(self):
        for entry in self.home.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def summary(self, text, importing, summing=()):
        """The summary of a text, imported as a log."""
        self.clear()
        (self.home / "log.txt").write_text(text)
        return self.json("summary", self.json("import", "log.txt", *importing)["recording"], *summing)

    def compare(self, baseline, candidate, *options):
        """The comparison of two files of numbers."""
        self.write("a.txt", baseline)
        self.write("b.txt", candidate)
        return self.json("compare", "a.txt", "b.txt", *options)


def table(heading, columns, rows):
    print(f"\n**{heading}**\n\n| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|", flush=True)
    for cells in rows:
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def percent(hits, of=None, digits=1):
    """A share in per cent: a number of something, or the true ones of a list."""
    if of is None:
        hits, of = sum(map(bool, hits)), len(hits)
    return f"{100 * hits / of:.{digits}f}" if of else "–"


def slashed(lists, digits=0):
    return "/".join(percent(hits, digits=digits) for hits in lists)


def codes(document):
    return {caveat["code"] for caveat in document["caveats"]}


def different(document):
    return document["comparisons"][0]["verdict"] in ("lower", "higher")


def holds(interval, truth, farther=0.0):
    """Whether an interval contains the truth; without an end it is open there."""
    low, high = interval["low"], interval["high"]
    return (low is None or low - farther <= truth) and (high is None or truth <= high + farther)


def counted(things):
    return sorted(((list(thing), things.count(thing)) for thing in set(things)), key=lambda pair: -pair[1])


# The documented tests of groups of runs, of many experiments at a time. Values are logarithms, and a row is an experiment.


def exchanges(is_candidate, strata, rng, limit=20_000, drawn=49_999):
    """Which places are the candidate's: in all exchanges inside of strata, or in random ones and the observed one. More random ones
    than the program draws, because all experiments of a design share them."""
    levels = [np.flatnonzero(strata == level) for level in np.unique(strata)]
    taken = [int(is_candidate[places].sum()) for places in levels]
    if math.prod(math.comb(len(places), m) for places, m in zip(levels, taken)) <= limit:
        chosen = itertools.product(*(itertools.combinations(places, m) for places, m in zip(levels, taken)))
        rows = np.array([[place for part in parts for place in part] for parts in chosen])
        masks = np.zeros((len(rows), len(strata)), bool)
        np.put_along_axis(masks, rows, True, axis=1)
        return masks
    masks = np.zeros((drawn + 1, len(strata)), bool)
    masks[0] = is_candidate
    for places, m in zip(levels, taken):
        order = np.argsort(rng.random((drawn, len(places))), axis=1)[:, :m]
        np.put_along_axis(masks[1:], places[order], True, axis=1)
    return masks


class Judged:
    """Both tests of many experiments of one design."""

    def __init__(self, values, is_candidate, strata, rng, masks=None):
        self.values, self.is_candidate = values, is_candidate
        self.masks = exchanges(is_candidate, strata, rng) if masks is None else masks
        # D, its standard error and its degrees of freedom by Welch's test inside of strata.
        weights, differences, squares, freedom, factors = [], [], [0.0, 0.0], [0, 0], [0.0, 0.0]
        for level in np.unique(strata):
            sides = [values[:, (is_candidate == which) & (strata == level)] for which in (False, True)]
            n, m = (side.shape[1] for side in sides)
            weights.append(n * m / (n + m))
            differences.append(sides[1].mean(axis=1) - sides[0].mean(axis=1))
            for which, side in enumerate(sides):
                squares[which] = squares[which] + ((side - side.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
                freedom[which] += side.shape[1] - 1
                factors[which] += weights[-1] ** 2 / side.shape[1]
        w, differences, total = np.array(weights)[:, None], np.array(differences), sum(weights)
        self.d = (w * differences).sum(axis=0) / total
        if min(freedom) >= max(1, len(weights) - 1):
            v = [squares[which] / freedom[which] * factors[which] / total**2 for which in (0, 1)]
            variance = v[0] + v[1]
            self.nu = variance**2 / (v[0] ** 2 / freedom[0] + v[1] ** 2 / freedom[1])
        else:
            variance = (w**2 * (differences - self.d) ** 2).sum(axis=0) / (total**2 - (w**2).sum())
            self.nu = np.full(len(self.d), len(weights) - 1.0)
        self.error = np.sqrt(variance)

    def tails(self, shift=0.0):
        """p of "at most" and of "at least" that shift: of the exchange test alone, and the larger one of both tests."""
        # D and the sum of the candidate's values grow alike in each exchange, since the weights of the strata cancel in it.
        values = self.values - shift * self.is_candidate
        counts, slack = self.masks.astype(float).T, 1e-9 * np.abs(values).max()
        parts = []
        for part in np.array_split(values, max(1, len(values) * counts.shape[1] // 10_000_000)):
            sums, observed = part @ counts, (part @ self.is_candidate.astype(float))[:, None]
            parts.append([(sums >= observed - slack).mean(axis=1), (sums <= observed + slack).mean(axis=1)])
        alone = np.concatenate(parts, axis=1)
        t = (self.d - shift) / self.error
        return alone, np.maximum(alone, [stats.t.sf(t, self.nu), stats.t.cdf(t, self.nu)])

    def p(self):
        """The two-sided p values by the exchange test alone, and by both tests."""
        return [np.minimum(1, 2 * tails.min(axis=0)) for tails in self.tails()]


def mean_interval(logs, confidence=0.95):
    """The documented interval of the mean of runs, the effect of skewness removed."""
    n = logs.shape[1]
    mean, sd, t = logs.mean(axis=1), logs.std(axis=1, ddof=1), stats.t.ppf(0.5 + confidence / 2, n - 1)
    # The documents do not name the estimator of the skewness. The program has that of Excel, G1.
    a = stats.skew(logs, axis=1, bias=False) / math.sqrt(n)
    return [mean - 3 / a * (np.cbrt(1 + a * (y - a / 6)) - 1) * sd / math.sqrt(n) for y in (t, -t)]


# Processes of delays. Each returns its values, the true mean, and the function of the true quantiles.


def normal_truth(mean, sd):
    return mean, lambda q: mean + sd * special.ndtri(q)


def root(function, low, high):
    """Where a falling function is 0."""
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return low


def levels_truth(*parts):
    """Normal values with a standard deviation of 1 at several levels: (share, level)."""
    quantile = lambda q: root(lambda x: q - sum(share * special.ndtr(x - level) for share, level in parts), -9, 19)
    return sum(share * level for share, level in parts), quantile


def recursive(noise, c):
    """x_t = c·x_{t−1} + noise, from the stationary state; noise has a standard deviation of 1."""
    return signal.lfilter([1.0], [1.0, -c], np.r_[noise[0] / math.sqrt(1 - c * c), noise[1:]])


def autoregressive(c):
    return lambda rng, n: (recursive(rng.normal(size=n), c), *normal_truth(0, 1 / math.sqrt(1 - c * c)))


def two_levels(length):
    """Levels that change at random, after that many values on average."""
    def draw(rng, n):
        level = (np.cumsum(rng.random(n) < 1 / length) + rng.integers(2)) % 2
        return 3 * level + rng.normal(size=n), *levels_truth((0.5, 0), (0.5, 3))
    return draw


def in_bursts(rng, n, length, gap, geometric=False):
    """Which values lie in bursts with random gaps, in a stationary process, and how many bursts there are."""
    many = 2 * (n // (length + gap)) + 100
    lengths = rng.geometric(1 / length, size=many) if geometric else np.full(many, length)
    gaps = rng.geometric(1 / gap, size=many)
    begins = np.cumsum(gaps + np.r_[0, lengths[:-1]]) - 20 * (length + gap)
    inside, number = np.zeros(n, bool), 0
    for begin, end in zip(begins, begins + lengths):
        if end > 0 and begin < n:
            inside[max(0, begin) : end] = True
            number += 1
    return inside, number


def bursts(length, each):
    """Bursts 10 higher; only runs with at least three of them count."""
    def draw(rng, n):
        number = 0
        while number < 3:
            inside, number = in_bursts(rng, n, length, each - length)
        return 10 * inside + rng.normal(size=n), *levels_truth((1 - length / each, 0), (length / each, 10))
    return draw


def queue(utilisation):
    """Sojourn times of M/M/1 with a mean service time of 1, from the stationary state."""
    def draw(rng, n):
        rate = 1 - utilisation
        service, gaps = rng.exponential(size=n), rng.exponential(1 / utilisation, size=n)
        total = np.cumsum(np.r_[rng.exponential(1 / rate) * (rng.random() < utilisation), service[:-1] - gaps[1:]])
        waiting = total - np.minimum(np.minimum.accumulate(total), 0)
        return waiting + service, 1 / rate, lambda q: -math.log1p(-q) / rate
    return draw


def fractional(d, n, size, rng):
    """Fractionally integrated noise (Davies and Harte), and its standard deviation."""
    k = np.arange(1, n + 1)
    variance = math.gamma(1 - 2 * d) / math.gamma(1 - d) ** 2
    covariance = np.r_[1, np.cumprod((k - 1 + d) / (k - d))] * variance
    spectrum = np.fft.rfft(np.r_[covariance, covariance[-2:0:-1]]).real.clip(0)
    noise = rng.normal(size=(size, n + 1)) + 1j * rng.normal(size=(size, n + 1))
    noise[:, [0, n]] = noise[:, [0, n]].real * math.sqrt(2)
    return np.fft.irfft(noise * np.sqrt(spectrum * n), 2 * n)[:, :n], math.sqrt(variance)


def long_memory(d):
    def draw(rng, n):
        values, sd = fractional(d, n, 1, rng)
        return values[0], *normal_truth(0, sd)
    return draw


def step(somewhere, of_run=True):
    """A step of 1. The truth is that of the time of this run, or of all such runs."""
    def draw(rng, n):
        share = rng.random() if somewhere else 0.5
        truth = share if of_run else 0.5
        return rng.normal(size=n) + (np.arange(n) >= share * n), *levels_truth((truth, 0), (1 - truth, 1))
    return draw


PROCESSES = {
    "white noise": lambda rng, n: (rng.normal(size=n), *normal_truth(0, 1)),
    "autoregressive, 0.5": autoregressive(0.5),
    "autoregressive, 0.7": autoregressive(0.7),
    "autoregressive, 0.95": autoregressive(0.95),
    "two levels for 200 each": two_levels(200),
    "bursts of 100, one in 2,000": bursts(100, 2_000),
    "bursts of 300, one in 20,000": bursts(300, 20_000),
    "queue, utilisation 0.9": queue(0.9),
    "long memory, 0.3": long_memory(0.3),
    "long memory, 0.45": long_memory(0.45),
    "step in the middle": step(False),
    "step somewhere, truth of the run": step(True),
    "step somewhere, truth of all runs": step(True, False),
}
SLOW = list(PROCESSES)[3:]


def runs_of(lab, rng, process, n, replicates, quantiles):
    """Of each run its summary, that of its metric, and the truth in nanoseconds: the mean, and the function of the quantiles."""
    nanoseconds = lambda x: 1e9 + 1e6 * x
    for _ in range(replicates):
        values, mean, quantile = process(rng, n)
        text = "\n".join(map(str, np.rint(nanoseconds(values)).astype(np.int64).tolist())) + "\n"
        summary = lab.summary(text, ("--from", "numbers", "--unit", "ns"), ("--quantiles", quantiles))
        yield summary, summary["metrics"]["delay"], nanoseconds(mean), lambda q: nanoseconds(quantile(q))


# The rows.


def one_run(lab, rng, replicates):
    """Intervals, lower bounds and caveats of one run."""
    def rows():
        for name, process in PROCESSES.items():
            for n in (200, 2_000, 20_000):
                if n == 200 and name not in SLOW or n < 20_000 and "one in 20,000" in name or n < 2_000 and "one in 2,000" in name:
                    continue
                hits = {key: [] for key in ("mean", 0.5, 0.9, 0.99)}
                supported = {key: [] for key in (0.5, 0.9, 0.99)}
                slow, rare, bounds = [], [], []
                for summary, metric, mean, quantile in runs_of(lab, rng, process, n, replicates, "0.5,0.9,0.99"):
                    hits["mean"].append(holds(metric["mean_interval"], mean))
                    for found in metric["quantiles"]:
                        truth = quantile(found["q"])
                        hits[found["q"]].append(holds(found, truth))
                        supported[found["q"]].append(found["supported"])
                        if "lower_bound" in found:
                            bounds.append(found["lower_bound"] <= truth)
                    slow.append("slow-changes" in codes(summary))
                    rare.append("rare-bursts" in codes(summary))
                caveats = [percent(slow), percent(rare), percent([a or b for a, b in zip(slow, rare)])]
                bound = percent(bounds, digits=0) if len(bounds) >= 0.1 * replicates else "–"
                yield [name, f"{n:,}", *(percent(each, digits=0) for each in hits.values()), *caveats, slashed(supported.values()), bound]
    columns = ["process", "n", "mean", "p50", "p90", "p99", "`slow-changes`", "`rare-bursts`", "either", "supported p50/p90/p99", "L"]
    table("Coverage of one run, %", columns, rows())


def coarse_clock(lab, rng, replicates):
    """1,000 values on a clock of 1 µs. The program's ends lie a step farther, which is undone for the other columns."""
    rows = []
    for cut, deviation in (("delays", 0.02), ("delays", 0.3), ("instants", 0.02)):
        hits = {key: [[], [], []] for key in ("mean", 0.5, 0.99)}
        for _ in range(replicates):
            mean = 1_237 + rng.random()
            delays = mean + deviation * rng.normal(size=1_000)
            begins = rng.random(1_000) if cut == "instants" else 0
            text = "\n".join(map(str, np.floor(begins + delays).astype(int))) + "\n"
            summary = lab.summary(text, ("--from", "numbers", "--unit", "us"), ("--quantiles", "0.5,0.99"))
            metric = summary["metrics"]["delay"]
            for column, farther in enumerate((-1_000, -500, 0)):
                hits["mean"][column].append(holds(metric["mean_interval"], 1_000 * mean, farther))
                for found in metric["quantiles"]:
                    truth = 1_000 * (mean + deviation * special.ndtri(found["q"]))
                    hits[found["q"]][column].append(holds(found, truth, farther))
        rows.append([cut, deviation, *map(slashed, hits.values())])
    table("Coarse clock: 0/half a step/a step farther, %", ["cut off", "deviation", "mean", "p50", "p99"], rows)


def losses(lab, rng, replicates):
    """The loss ratio: single losses, bursts of exactly 20, and of 20 on average (Gilbert)."""
    kinds = {
        "single": lambda n: rng.random(n) < 0.01,
        "in bursts of 20": lambda n: in_bursts(rng, n, 20, 20 * 99)[0],
        "Gilbert, 20 on average": lambda n: in_bursts(rng, n, 20, 20 * 99, geometric=True)[0],
    }
    rows = []
    for name, draw in kinds.items():
        for n in (2_000, 5_000, 20_000):
            hits, rare = [], []
            for _ in range(replicates):
                delays = rng.integers(900_000, 1_100_000, size=n)
                lines = [f"{i},{'' if gone else delay}" for i, (delay, gone) in enumerate(zip(delays.tolist(), draw(n)))]
                summary = lab.summary("id,delay [ns]\n" + "\n".join(lines) + "\n", ("--from", "csv", "--column", "2", "--lost", ""))
                hits.append(holds(summary["ratios"]["loss_ratio_interval"], 0.01))
                rare.append("rare-bursts" in codes(summary))
            rows.append([name, f"{n:,}", percent(hits), percent(rare), percent([not a and not b for a, b in zip(hits, rare)])])
    table("Losses of 1 %, %", ["losses", "n", "coverage", "`rare-bursts`", "neither"], rows)


def extremes(lab, rng, replicates):
    """`summary --extremes` of 200,000 round trips, 50 ms apart."""
    n, gap, memory = 200_000, 50_000_000, []

    def remembering():
        memory.extend(fractional(0.3, n, 4, rng)[0] if not memory else ())
        return memory.pop() + 20
    def rare(share, factor):
        beyond = lambda x: (1 - share) * math.exp(-x) + share * math.exp(-x / factor)
        draw = lambda: rng.exponential(size=n) * np.where(rng.random(n) < share, factor, 1)
        return draw, lambda p: root(lambda x: beyond(x) - p, 0, 200)
    sd = fractional(0.3, 8, 1, rng)[1]
    processes = {
        "white noise": (lambda: rng.normal(size=n) + 20, lambda p: 20 - special.ndtri(p)),
        "exponential": (lambda: rng.exponential(size=n), lambda p: -math.log(p)),
        "lognormal, 1": (lambda: np.exp(rng.normal(size=n)), lambda p: math.exp(-special.ndtri(p))),
        "Pareto, shape 0.2": (lambda: rng.random(n) ** -0.2, lambda p: p**-0.2),
        "long memory, 0.3": (remembering, lambda p: 20 - sd * special.ndtri(p)),
        "0.05 % five times slower": rare(0.0005, 5),
        "0.01 % five times slower": rare(0.0001, 5),
    }
    def rows():
        for name, (draw, level) in processes.items():
            held, multiples, low, reasons = [[], [], []], [], [], []
            truths = [100_000 * level(p) for p in (1e-4, 1e-5, 1 / n)]
            for _ in range(replicates):
                delays = (100_000 * draw()).astype(np.int64) + 1
                sent = np.arange(n, dtype=np.int64) * gap + 1_000_000_000
                log = np.stack([np.arange(n), sent, sent + delays // 2, sent + delays // 2, sent + delays], 1)
                text = ("%d %d %d %d %d\n" * n) % tuple(log.ravel().tolist())
                found = lab.summary(text, ("--from", "four-times"), ("--extremes", "--no-intervals"))["extremes"]
                reasons.append((found["reason"],))
                low.append(False)
                if found["reason"] is None:
                    bounds = {each["q"] or each["once_in_ns"]: each["upper_bound"] for each in found["levels"]}
                    last = bounds[max(key for key in bounds if key > 1)]
                    for hits, truth, bound in zip(held, truths, (bounds[0.9999], bounds[0.99999], last)):
                        hits.append(bound >= truth)
                    origin = 100_000 * (20 if name in ("white noise", "long memory, 0.3") else 0)
                    multiples.append((last - origin) / (truths[2] - origin))
                    low[-1] = not held[2][-1]
            why = ", ".join(f"{reason[0]} {percent(count, replicates)}" for reason, count in counted(reasons) if reason[0])
            multiple = f"{np.median(multiples):.2f}" if multiples else "–"
            yield [name, percent(len(multiples), replicates), slashed(held, 1), multiple, percent(low), why]
    columns = ["process", "given", "p99.99/p99.999/once in the run hold", "multiple", "too low", "no levels because of"]
    table("Extremes of 200,000 values, %", columns, rows())


def two_files(lab, rng, replicates):
    """Two files of 2,000 lines, each the probes of one run: who claims a difference that is none?"""
    rows = {"as they are": [], "`--lines probes`": [], "`--lines runs`": []}
    claims, same = [], []
    for _ in range(replicates):
        a, b = (np.round(48 * np.exp(0.03 * rng.normal() + 0.1 * rng.normal(size=2_000)), 6) for _ in range(2))
        for options, found in zip(((), ("--lines", "probes"), ("--lines", "runs")), rows.values()):
            judged = lab.compare(a, b, *options)["comparisons"][0]
            found.append((judged["verdict"], judged["reason"]))
        claims.append("Difference at" in lab.call("compare", "--ministat", "-A", "a.txt", "b.txt").stdout)
        same.append(claims[-1] == (stats.ttest_ind(a, b).pvalue <= 0.05))
    said = lambda found: ", ".join(f"{verdict} ({reason}): {count}" for (verdict, reason), count in counted(found))
    lines = [[name, percent([verdict in ("lower", "higher") for verdict, _ in found]), said(found)] for name, found in rows.items()]
    lines.append(["`--ministat`", percent(claims), f"as Student's t in {percent(same)} %"])
    table("Two files of 2,000 lines, the probes of one run each, %", ["how", "claims a difference", "verdicts"], lines)


def file_lines(lab, rng, replicates):
    """Files whose lines are runs: independent, and each like the one before."""
    rows = []
    for n in (5, 10, 30, 100):
        draw = lambda shift: np.round(48 * np.exp(0.03 * rng.normal(size=n) + shift), 6)
        shares = [[different(lab.compare(draw(0), draw(shift), "--lines", "runs")) for _ in range(replicates)] for shift in (0, math.log(1.05))]
        rows.append([f"{n}:{n}", *map(percent, shares)])
    table("Independent lines, %", ["lines", "false", "+5 % found"], rows)
    rows = []
    for c in (0, 0.5, 0.8):
        cells = [[], [], []]
        for n in (10, 30, 100):
            draw = lambda: np.round(48 * np.exp(0.03 * math.sqrt(1 - c * c) * recursive(rng.normal(size=n), c)), 6)
            found = [lab.compare(draw(), draw(), "--lines", "runs") for _ in range(replicates)]
            facts = [(different(each), "dependent-lines" in codes(each)) for each in found]
            for cell, hits in zip(cells, ([a for a, _ in facts], [b for _, b in facts], [a and not b for a, b in facts])):
                cell.append(percent(hits))
        rows.append([c, *map(", ".join, cells)])
    table("Dependent lines: 10, 30, 100 lines, %", ["autocorrelation", "false", "`dependent-lines`", "false without it"], rows)


EXPERIMENT = """
kind = "command"
[base]
command = "head -n {lines} {{group}}.txt; sed -i 1,{lines}d {{group}}.txt"
shell = true
count = 1
warmup = 0
metric = "x=*"
[factors]
group = {groups}
[design]
runs = {runs}
blocks = {blocks}
order = "{order}"
settle = "0s"
[[compare]]
metric = "x"
statistic = "mean"
"""


def write_experiment(lab, groups, runs, blocks=1, order="randomized", lines=1):
    text = EXPERIMENT.format(lines=lines, groups=json.dumps(list(groups)), runs=runs, blocks=blocks, order=order)
    (lab.home / "experiment.toml").write_text(text)


def experiment(lab, printed, runs, blocks=1, order="randomized", lines=1, options=()):
    """A real experiment whose runs print the given numbers: the k-th run of a group has the k-th `lines` numbers of it."""
    lab.clear()
    for name, numbers in printed.items():
        lab.write(f"{name}.txt", [f"{number:.12g}" for number in np.ravel(numbers)])
    write_experiment(lab, printed, runs, blocks, order, lines)
    return lab.json("run", "experiment.toml", "--new", *options)


def gates_over_runs(lab, rng, replicates):
    """Limits on the mean of runs: by the formula, and some by the program."""
    rows, gaps = [], []
    # The true mean is 100: at the limit, or 5 % below it.
    limits = [100, 100 / 0.95]
    for shape, draw in (("normal", rng.standard_normal), ("exponential", lambda size: rng.exponential(size=size) - 1)):
        for runs in (4, 10, 30):
            values = 100 * np.exp(0.03 * draw((replicates, runs)))
            low, high = map(np.exp, mean_interval(np.log(values)))
            documented = [np.where(low > limit, "broken", np.where(high <= limit, "kept", "undecided")) for limit in limits]
            cells = [f"{percent(states == 'broken')}/{percent(states == 'kept')}" for states in documented]
            agree = []
            for index in range(max(1, min(replicates // 20, 50))):
                gates = [f"x mean <= {limit:.9f}" for limit in limits] + ["every: x mean <= 100"]
                found = experiment(lab, {"one": values[index]}, runs, options=[word for gate in gates for word in ("--gate", gate)])
                found = found["experiment"]["gates"]
                gaps += [abs(found[0]["lower_bound"] / low[index] - 1), abs(found[0]["upper_bound"] / high[index] - 1)]
                agree += [gate["state"] == states[index] for gate, states in zip(found, documented)]
                agree.append(found[2]["broken"] == (values[index] > 100).sum())
            rows.append([shape, runs, *cells, percent(agree)])
    table("Gates over runs: broken/kept, %", ["runs are", "runs", "at the limit", "5 % below it", "the program agrees"], rows)
    print(f"\nEnds of intervals, by the formula and by the program, differ by at most {max(gaps):.2g}.")
    truth, outcomes = 100 * math.exp(0.1 * special.ndtri(0.99)), []
    for lines in (50, 2_000):
        for _ in range(max(1, min(replicates // 40, 25))):
            values = 100 * np.exp(0.1 * rng.normal(size=(10, lines)))
            gates = {"2 % below": f"x p99 <= {0.98 * truth:.6f}", "50 % above": f"x p99 <= {1.5 * truth:.6f}"}
            options = [word for gate in gates.values() for word in ("--gate", gate)]
            found = experiment(lab, {"one": values}, 10, lines=lines, options=options)["experiment"]["gates"]
            outcomes += [(lines, name, gate["state"], gate["reason"]) for name, gate in zip(gates, found)]
    columns = ["numbers a run", "limit, against the true p99", "state", "reason", "how often"]
    table("A gate `p99 <=` over 10 runs", columns, [[*outcome, count] for outcome, count in counted(outcomes)])


def gates_on_changes(lab, rng, replicates):
    """How often a true change at the limit breaks the gate; and values that are not all above 0, which have no change in per cent."""
    rows = []
    for n, m, spread in ((5, 5, 0.03), (10, 10, 0.03), (30, 30, 0.03), (4, 40, 0.03), (10, 10, 0.15)):
        broken = []
        for _ in range(replicates):
            a, b = 100 * np.exp(0.03 * rng.normal(size=n)), 105 * np.exp(spread * rng.normal(size=m))
            gates = lab.compare(a, b, "--gate", "value <= +5%", "--gate", "value >= +5%")["gates"]
            broken.append([gate["state"] == "broken" for gate in gates])
        rows.append([f"{n}:{m}", f"0.03/{spread}", *map(percent, zip(*broken))])
    table("A true change of +5 %, %", ["runs", "deviations", "breaks `<= +5%`", "breaks `>= +5%`"], rows)
    outcomes = []
    for _ in range(min(replicates, 200)):
        a, b = rng.normal(1, 1, size=10), rng.normal(1.5, 1, size=10)
        found = lab.compare(np.r_[-abs(a[0]), a[1:]], b, "--equivalence", "5%", "--gate", "value <= +5%")
        judged, gate = found["comparisons"][0], found["gates"][0]
        outcomes.append((*(judged[key] for key in ("scale", "verdict", "reason", "relative")), *(gate[key] for key in ("state", "reason", "value"))))
    columns = ["scale", "verdict", "reason", "relative change", "gate", "its reason", "its value", "how often"]
    table("Ten values against ten, one of them below 0", columns, [[*outcome, count] for outcome, count in counted(outcomes)])


def no_forecast(lab, rng, replicates):
    """What undecided comparisons, gates and plans say about a number of runs that would decide."""
    texts = []
    for n, m, options in ((10, 10, ()), (10, 10, ("--gate", "value <= +3%")), (10, 10, ("--equivalence", "1%")), (2, 2, ()), (3, 30, ())):
        for _ in range(min(replicates, 20)):
            lab.write("a.txt", 100 * np.exp(0.03 * rng.normal(size=n)))
            lab.write("b.txt", 102 * np.exp(0.03 * rng.normal(size=m)))
            texts.append(lab.call("compare", "a.txt", "b.txt", *options))
    values = 100 * np.exp(0.03 * rng.normal(size=(2, 10)))
    experiment(lab, {"a": values[0], "b": values[1]}, 10)
    store = next((lab.home / "store").iterdir())
    texts += [lab.call("run", store, *options) for options in ((), ("--format", "markdown"), ("--gate", "x mean <= +1%"), ("--gate", "x mean <= 100"))]
    write_experiment(lab, "ab", 2)
    texts.append(lab.call("run", "experiment.toml", "--dry-run"))
    pattern = re.compile(r"(?:\S+ ){0,3}(?:\bruns? (?:would|could|can|are needed)|more (?:runs|lines)|could\b)(?: \S+){0,4}")
    found = [pattern.findall(" ".join((text.stdout + text.stderr).split())) for text in texts]
    words = [(re.sub(r"\d+(\.\d+)?", "N", each),) for one in found for each in one]
    table(f"Words about runs in {len(texts)} outputs", ["words", "how often"], [[*each, count] for each, count in counted(words)[:20]])


def unequal_spread(lab, rng, replicates):
    """Groups of unequal spread and shape: the level of verdicts, gates and equivalence, and what is found."""
    normal = lambda sd: lambda size: sd * rng.normal(size=size)
    exponential = lambda size: 0.2 * (rng.exponential(size=size) - 1)
    gamma = lambda size: 0.2 * (rng.gamma(0.25, size=size) - 0.25) / 0.5
    higher = lambda share, height: lambda size: 0.03 * rng.normal(size=size) + height * ((rng.random(size) < share) - share)
    designs = [
        ("equal sd, 5:5", normal(0.03), normal(0.03), 5, 5, 1),
        ("equal sd, 5:20", normal(0.03), normal(0.03), 5, 20, 1),
        ("equal sd, 4:40", normal(0.03), normal(0.03), 4, 40, 1),
        ("sd 0.005/0.2, 5:5", normal(0.005), normal(0.2), 5, 5, 1),
        ("sd 0.03/0.15, 20:5", normal(0.03), normal(0.15), 20, 5, 1),
        ("sd 0.02/0.2, 40:4", normal(0.02), normal(0.2), 40, 4, 1),
        ("sd 0.005/0.2, 3 blocks of 3:3", normal(0.005), normal(0.2), 3, 3, 3),
        ("sd 0.005/0.2, 10 blocks of 1:1", normal(0.005), normal(0.2), 1, 1, 10),
        ("a tenth 30 % higher in both, 10:10", higher(0.1, 0.3), higher(0.1, 0.3), 10, 10, 1),
        ("normal/exponential 0.005/0.2, 5:5", normal(0.005), exponential, 5, 5, 1),
        ("normal/gamma of shape ¼ 0.005/0.2, 5:5", normal(0.005), gamma, 5, 5, 1),
        ("normal/one of four 20 % higher, 10:10", normal(0.03), higher(0.25, 0.2), 10, 10, 1),
        ("normal/a tenth 30 % higher, 10:10", normal(0.03), higher(0.1, 0.3), 10, 10, 1),
    ]
    rows, gaps, rise = [], {True: [], False: []}, math.log(1.05)
    for name, draw_a, draw_b, n, m, blocks in designs:
        is_candidate, strata = np.tile(np.arange(n + m) >= n, blocks), np.repeat(np.arange(blocks), n + m)
        size = (replicates, len(strata))
        values = np.where(is_candidate, draw_b(size), draw_a(size))
        judged = Judged(values, is_candidate, strata, rng)
        risen = Judged(values + rise * is_candidate, is_candidate, strata, rng, judged.masks)
        cells = [percent(p <= 0.05) for p in judged.p()]
        above, below = risen.tails(rise)[1], risen.tails(math.log(0.95))[1]
        cells += [percent(above[0] <= 0.025), percent((above[1] <= 0.05) & (below[0] <= 0.05))]
        rows.append([name, *cells, "/".join(percent(p <= 0.05) for p in risen.p())])
        # The program's answers to some of them: files of numbers in one block, experiments in several.
        both = judged.p()[1]
        for index in range(max(1, min(replicates // 20, 20))):
            a, b = 100 * np.exp(values[index][~is_candidate]), 100 * np.exp(values[index][is_candidate])
            found = lab.compare(a, b) if blocks == 1 else experiment(lab, {"a": a, "b": b}, n, blocks, "shuffled")
            found = found["comparisons"][0]
            gaps[found["exact"]].append(abs(found["p_value"] - both[index]))
    columns = ["design", "false, exchange alone", "both tests", "gate broken", "called equivalent", "rise of 5 % found, alone/both"]
    table("Groups of unequal spread, %", columns, rows)
    for exact, kind in ((True, "all"), (False, "random")):
        print(f"\np by {kind} exchanges: the program's and these differ by at most {max(gaps[exact]):.2g} ({len(gaps[exact])} comparisons).")


class Pcg:
    """PCG-XSH-RR 64/32, and the order of an experiment by it."""

    def __init__(self, state, stream):
        self.increment, self.state = 2 * stream + 1, 0
        self.next()
        self.state += state
        self.next()

    def next(self):
        old = self.state % 2**64
        self.state = (old * 6364136223846793005 + self.increment) % 2**64
        word, turn = (old >> 18 ^ old) >> 27 & 0xFFFFFFFF, old >> 59
        return (word >> turn | word << 32 - turn) & 0xFFFFFFFF

    def shuffled(self, things):
        for i in range(len(things) - 1, 0, -1):
            j = self.next() * (i + 1) >> 32
            things[i], things[j] = things[j], things[i]
        return things


def orders(lab, rng, replicates):
    """The order of an experiment, and what changes of the host do to orders and strata."""
    same = []
    for order, runs, conditions in (("randomized", 8, 2), ("randomized", 10, 3), ("shuffled", 8, 2), ("randomized", 4, 2), ("randomized", 3, 3)):
        for seed in rng.integers(0, 2**31, size=5).tolist():
            write_experiment(lab, "abc"[:conditions], runs, 2, order)
            path, turn = lab.home / "experiment.toml", list(range(1, conditions + 1))
            path.write_text(path.read_text().replace("settle", f"seed = {seed}\nsettle"))
            shown = re.findall(r"^block (\d+) +((?:\d+ )*\d+)$", lab.call("run", path, "--dry-run").stdout, re.M)
            for block, plan in shown:
                pcg = Pcg(seed, int(block))
                # "Fewer than 8 runs in all": of each condition, in both blocks.
                in_rounds = order == "randomized" and 2 * runs >= 8
                listed = sum((pcg.shuffled(turn[:]) for _ in range(runs)), []) if in_rounds else pcg.shuffled(turn * runs)
                same.append(listed == list(map(int, plan.split())))
    print(f"\nOrders of `--dry-run` that are as documented: {sum(same)} of {len(same)}.")

    def slow_noise(size):
        return 0.06 * math.sqrt(1 - 0.81) * np.array([recursive(noise, 0.9) for noise in rng.normal(size=size)])

    hosts = {
        "independent": lambda size: np.zeros(size),
        "slow noise of 6 %, 0.9": slow_noise,
        "slower by 18 % at the end": lambda size: math.log(1.18) * np.linspace(0, np.ones(size[0]), size[1]).T,
        "alternately slower by 5 %": lambda size: np.tile(math.log(1.05) * (np.arange(size[1]) % 2), (size[0], 1)),
    }
    rows = []
    for name, host in hosts.items():
        for runs in (8, 30):
            first = rng.random((replicates, runs)) < 0.5
            in_rounds = np.stack([~first, first], 2).reshape(replicates, 2 * runs)
            shuffled = rng.permuted(np.tile([False, True], (replicates, runs)), axis=1)
            values = host((replicates, 2 * runs)) + 0.03 * rng.normal(size=(replicates, 2 * runs))
            rounds, cells, is_candidate = np.tile(np.arange(runs), 2), [], np.repeat([False, True], runs)
            for taken, strata in ((in_rounds, rounds), (shuffled, 0 * rounds), (in_rounds, 0 * rounds)):
                # All runs of the baseline in their order, then those of the candidate.
                ordered = np.take_along_axis(values, np.argsort(taken, axis=1, kind="stable"), 1)
                judged = Judged(ordered, is_candidate, strata, rng)
                found = Judged(ordered + math.log(1.045) * is_candidate, is_candidate, strata, rng, judged.masks)
                cells.append(f"{percent(judged.p()[1] <= 0.05)}/{percent(found.p()[1] <= 0.05, digits=0)}")
            rows.append([name, runs, *cells])
    table("Orders: false/found, %", ["host", "runs", "rounds as strata", "all shuffled", "rounds as one stratum"], rows)


def plan(lab, rng, replicates):
    """The advice of `--plan` for a change of 3 %, and how often fresh experiments of that size find it."""
    fresh, large, rows = max(100, replicates // 4), min(60, max(16, replicates // 10)), []
    def advice(within, between, runs, lines=200):
        """Runs, the range of runs, and the share found: of the design with runs as long as those of the pilot."""
        means = 100 * np.exp(between * rng.normal(size=(2, runs, 1)))
        printed = means * (1 + within * math.sqrt(lines) * rng.normal(size=(2, runs, lines)))
        experiment(lab, {"a": printed[0], "b": printed[1]}, runs, lines=lines)
        shown = lab.call("run", "experiment.toml", "--plan", "x mean 3%").stdout
        return list(map(int, re.search(r"^ *1 executions +(\d+) +(\d+) to (\d+) +(\d+) %", shown, re.M).groups()))

    for within, between in ((0.025, 0.005), (0.01, 0.03), (0.02, 0.02), (0.005, 0.012)):
        known = {}

        def found(runs):
            if runs not in known:
                is_candidate, strata = np.repeat([False, True], runs), np.tile(np.arange(runs), 2) * (runs >= 8)
                values = math.hypot(within, between) * rng.normal(size=(fresh, 2 * runs)) + math.log(1.03) * is_candidate
                masks = exchanges(is_candidate, strata, rng, drawn=9_999)
                known[runs] = 100 * (Judged(values, is_candidate, strata, rng, masks).p()[1] <= 0.05).mean()
            return known[runs]

        runs, _, _, promised = advice(within, between, large)
        pilots = [advice(within, between, 8) for _ in range(max(2, min(100, replicates // 20)))]
        right = next(number for number in range(4, 257) if found(number) >= 80)
        spread = lambda numbers: "–".join(f"{np.percentile(numbers, q):.0f}" for q in (10, 90))
        rows.append([f"{100 * within:g}, {100 * between:g}", runs, promised, f"{found(runs):.1f}", right, len(pilots)])
        rows[-1] += [spread([pilot[0] for pilot in pilots]), percent([pilot[1] <= right <= pilot[2] for pilot in pilots])]
        rows[-1].append(spread([found(pilot[0]) for pilot in pilots]))
    columns = ["within, between", f"runs by a pilot of {large}", "it says", "fresh ones find", "fewest that find 80"]
    columns += ["pilots of 8", "advise (10–90)", "range holds", "these find (10–90)"]
    table(f"Plans for a change of 3 %, {fresh} fresh experiments, %", columns, rows)


def published(lab, rng, replicates):
    """How often honest figures are accused, and mistakes named."""
    types = ["inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "linear"]
    types += ["median_unbiased", "normal_unbiased"]
    def sample():
        n = int(rng.integers(1_000, 6_001))
        return np.round(rng.uniform(50, 500) * np.exp(rng.uniform(0.1, 0.6) * rng.normal(size=n)), 6)

    rows, verdicts = [], []
    accused = {digits: {method: [] for method in types} for digits in (1, 4)}
    for _ in range(replicates):
        values = sample()
        lab.write("raw.txt", values)
        for digits, method in itertools.product(accused, types):
            figures = [("mean", values.mean()), *((f"p{100 * q:g}", np.quantile(values, q, method=method)) for q in (0.5, 0.9, 0.99))]
            claims = " ".join(f"{name}={value:.{digits}f}" for name, value in figures)
            bad = [(each["verdict"],) for each in lab.json("check-published", "raw.txt", "--claims", claims)["figures"] if each["verdict"] != "holds"]
            accused[digits][method].append(bad)
            verdicts += bad
    rows = [[digits, *map(percent, methods.values())] for digits, methods in accused.items()]
    table("Honest figures that are accused, %", ["decimals", *(f"type {number}" for number in range(1, 10))], rows)
    print(f"\nVerdicts other than `holds`: {counted(verdicts) or 'none'}.")
    def shown(x, **other):
        figures = {"mean": x.mean(), "p50": np.median(x), "p99": np.quantile(x, 0.99), "max": x.max(), "stddev": x.std(ddof=1), **other}
        return " ".join(f"{name}={value:.3f}" for name, value in figures.items())
    def without(x, share, ends=False):
        k = int(len(x) * share)
        return np.sort(x)[k if ends else 0 : len(x) - k]

    mistakes = {
        "half-round-trip": lambda x: shown(x / 2),
        "population-stddev": lambda x: shown(x, stddev=x.std()),
        "p99-as-max": lambda x: shown(x, max=np.quantile(x, 0.99)),
        "max-as-quantile": lambda x: shown(x, p99=x.max()),
        "mean-median-exchanged": lambda x: shown(x, mean=np.median(x), p50=x.mean()),
        "slowest-1-left-out": lambda x: shown(without(x, 0.01)),
        "ends-1-left-out": lambda x: shown(without(x, 0.01, True)),
        "unit-times-1000": lambda x: shown(1_000 * x),
        "rounded-to-us": lambda x: shown(np.rint(x)),
        "cut-off-to-us": lambda x: shown(np.floor(x)),
        "distinct-values": lambda x: shown(np.unique(x)),
    }
    rows = []
    for name, wrong in mistakes.items():
        named, others = [], []
        for _ in range(max(10, replicates // 4)):
            values = np.round(sample(), 0 if name == "distinct-values" else 6)
            lab.write("raw.txt", values)
            found = lab.json("check-published", "raw.txt", "--unit", "us", "--claims", wrong(values))
            explained = [each if isinstance(each, str) else each["code"] for one in found["mistakes"] for each in one["mistakes"]]
            named.append(name in explained)
            others += [] if named[-1] else [(", ".join(explained) or "nothing",)]
        rows.append([f"`{name}`", len(named), percent(named), "; ".join(f"{each[0]}: {count}" for each, count in counted(others)[:3])])
    table("Mistakes that are named, %", ["mistake", "samples", "named", "named instead"], rows)


class Path:
    """A fluid path: a bucket and a queue in seconds of its capacity, which falls to 80 % in half of a period."""

    def __init__(self, rng, bucket, queue=0.0, period=None):
        self.queue, self.period, self.now = 50_000 * queue, period, rng.random() * (period or 1)
        # What fits, into the queue and as tokens of the bucket.
        self.room = self.most = 50_000 * (bucket + queue)

    def capacity(self):
        """The capacity, and the time until it changes."""
        if not self.period:
            return 50_000, math.inf
        place = self.now % self.period
        return (50_000, self.period / 2 - place) if place < self.period / 2 else (40_000, self.period - place)

    def send(self, rate, rest):
        """Packets lost while sending at this rate for so long."""
        lost = 0.0
        while rest > 1e-12:
            capacity, until = self.capacity()
            span = max(min(rest, until), 1e-9)
            excess = (rate - capacity) * span
            lost += max(0.0, excess - self.room)
            self.room = min(self.most, max(0.0, self.room - excess))
            self.now, rest = self.now + span, rest - span
        return lost

    def trial(self, rate, duration, pause):
        """Sent and delivered packets, how long the receiver counted, and packets that are late in a queue."""
        lost = math.floor(self.send(rate, duration))
        waiting = max(0.0, self.queue - self.room)
        drain = waiting / self.capacity()[0]
        self.send(0, drain + pause)
        return rate * duration, rate * duration - lost, duration + drain, waiting if drain > max(0.01 * duration, 0.001) else 0.0


def search(path, rng, time_s, pause, jump, confirmed=True):
    """A search for the rate without loss, by the documented rules. Which rate comes next, and how long the pauses are, they leave
    open: here it is bisection, with a jump first to the rate delivered at the highest one."""
    trial, e, width, begun = time_s / 120, 0.5, 0.02, path.now
    end, lower, factor = begun + time_s * 20 / 24, None, 1.02 if jump else 2.0
    ceiling = 50_000 * rng.uniform(1.3, 8)
    _, delivered, counting, _ = path.trial(ceiling, trial, pause)
    rate, upper = (delivered / counting, None) if jump else (ceiling / 2, ceiling)
    while path.now < end:
        kept, exceeded, decided = 0.0, 0.0, False
        while not decided:
            sent, delivered, counting, late = path.trial(rate, trial, pause)
            good = sent - delivered + late <= 0
            kept, exceeded = kept + good * trial, exceeded + (not good) * trial
            whole = max(5 * trial, kept + exceeded)
            decided = whole - kept <= e * whole or exceeded > e * whole
        if exceeded > e * whole:
            upper, lower = min(rate, upper or math.inf), lower if lower and lower < rate else None
        else:
            lower = max(rate, lower or 0)
        if lower and (lower >= ceiling or upper and upper - lower <= width * upper):
            break
        rate = math.sqrt(lower * upper) if lower and upper else min(ceiling, lower * factor) if lower else upper / factor
        factor **= 2 - bool(lower and upper)
    if not confirmed or not lower:
        return lower
    rate, less = lower, 0.01
    while path.now < end:
        sent, delivered, counting, _ = path.trial(rate, time_s / 12, pause)
        if delivered >= sent:
            return sent / counting * (1 - 0.005 * bool(upper))
        rate, less = min(delivered / (time_s / 12) * (1 - 0.005), rate * (1 - less)), 2 * less
    return None


def searches(lab, rng, replicates):
    """Rates found by trials. The program is not asked, since it needs a real path and a minute a search."""
    paths = {
        "policer, 1 ms": (0.001,),
        "policer, 100 ms": (0.1,),
        "tbf, 20 ms, 20 ms": (0.02, 0.02),
        "policer, 1 ms, period 5 s": (0.001, 0.0, 5.0),
        "policer, 1 ms, period 20 s": (0.001, 0.0, 20.0),
        "tbf, 1 ms, 50 ms, period 5 s": (0.001, 0.05, 5.0),
    }
    for pause, jump in itertools.product((0.005, 0.5), (False, True)):
        rows = []
        for name, path in paths.items():
            # In the slow half of a period, bucket and queue carry what exceeds its capacity.
            truth, cells = 50_000 * (0.8 + sum(path[:2]) / (path[2] / 2)) if len(path) > 2 else 50_000, []
            for time_s, confirmed in ((20, True), (60, False), (60, True)):
                bounds = [search(Path(rng, *path), rng, time_s, pause, jump, confirmed) for _ in range(replicates)]
                found = [bound for bound in bounds if bound]
                cells.append(f"{percent([bound <= truth * (1 + 1e-9) for bound in found])} ({percent(len(bounds) - len(found), len(bounds))})")
            rows.append([name, cells[0], cells[2], cells[1], f"{100 * (np.median(found) / truth - 1):+.1f}" if found else "–"])
        columns = ["path", "20 s", "60 s", "60 s, not confirmed", "error, 60 s"]
        how = "from the delivered rate" if jump else "by halves"
        table(f"Searches {how}, with pauses of {pause} s: held (no bound found), %", columns, rows)


SIMULATED = [one_run, coarse_clock, losses, extremes, two_files, file_lines, gates_over_runs, gates_on_changes, no_forecast]
SIMULATED += [unequal_spread, orders, plan, published, searches]
ROWS = {function.__name__.replace("_", "-"): function for function in SIMULATED}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("latlab")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--replicates", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if unknown := set(arguments.rows) - set(ROWS):
        parser.error(f"no row {', '.join(sorted(unknown))}; the rows are {', '.join(ROWS)}")
    for name in arguments.rows or ROWS:
        lab, begun = Latlab(arguments.latlab), time.monotonic()
        try:
            # Each row has random numbers of its own, whichever other rows are asked for.
            ROWS[name](lab, np.random.default_rng([arguments.seed, zlib.crc32(name.encode())]), arguments.replicates)
        finally:
            shutil.rmtree(lab.home, ignore_errors=True)
        print(f"\n({name}: {arguments.replicates:,} replicates, seed {arguments.seed}, {time.monotonic() - begun:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
