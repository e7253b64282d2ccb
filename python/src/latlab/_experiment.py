"""Directories of several runs: experiments and stores."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ._crc32c import crc32c
from ._manifest import check_format
from ._recording import Recording
from .errors import DamagedError, LatlabError

_SEAL = re.compile(rb',"crc32c":"([0-9a-f]{8})"}\Z')
_JOURNAL_MAX = 256 << 20


class Experiment:
    """An experiment: its journal and its runs, in the order in which they began."""

    def __init__(self, path: Path, verify: bool = True) -> None:
        self.path = path
        self._verify = verify

    def __repr__(self) -> str:
        return f"<latlab.Experiment {self.path.name}, {len(self.runs)} runs>"

    @cached_property
    def journal(self) -> list[dict[str, Any]]:
        """The events in the order of the lines; a last line without an end was interrupted by a crash and is left out."""
        file = self.path / "journal.jsonl"
        if not file.is_file():
            raise DamagedError(file, "the file is missing")
        if file.stat().st_size > _JOURNAL_MAX:
            raise DamagedError(file, f"{file.stat().st_size} bytes, and a journal has at most {_JOURNAL_MAX}")
        lines = file.read_bytes().split(b"\n")[:-1]
        events = [_event(file, number, line) for number, line in enumerate(lines, 1)]
        if not events or events[0].get("event") != "begun":
            raise DamagedError(file, "it does not begin with `begun`")
        check_format(events[0].get("format"), file)
        if self._verify:
            _check_lines(file, lines)
        return events

    @property
    def format(self) -> tuple[int, int]:
        """Major and minor version of the format of the journal."""
        return check_format(self.journal[0].get("format"), self.path / "journal.jsonl")

    @property
    def id(self) -> str:
        """16 hexadecimal digits."""
        return str(self.journal[0].get("experiment"))

    @property
    def is_finished(self) -> bool:
        """Whether no run is left, as far as the journal says."""
        ends = [event["event"] for event in self.journal if event.get("event") in ("finished", "changed", "run_began")]
        return bool(ends) and ends[-1] == "finished"

    @cached_property
    def runs(self) -> tuple[Recording, ...]:
        """Every recording of the experiment, warm-up runs and unfinished ones too."""
        return _recordings(self.path / "runs", self._verify)

    @property
    def missing(self) -> list[str]:
        """The names of recordings that the journal has as completed and that are gone."""
        ended = (event for event in self.journal if event.get("event") == "run_ended")
        names = [str(event["recording"]) for event in ended if event.get("outcome") in ("completed", "untrusted")]
        return [name for name in names if not (self.path / "runs" / name / "manifest.json").exists()]


class Store:
    """A directory of recordings and experiments."""

    def __init__(self, path: Path, verify: bool = True) -> None:
        self.path = path
        self._verify = verify

    def __repr__(self) -> str:
        return (
            f"<latlab.Store {self.path.name}, {len(self.recordings)} recordings, {len(self.experiments)} experiments>"
        )

    @cached_property
    def recordings(self) -> tuple[Recording, ...]:
        """The single recordings, in the order in which they began."""
        return _recordings(self.path, self._verify)

    @cached_property
    def experiments(self) -> tuple[Experiment, ...]:
        """The experiments, in the order of their names."""
        return tuple(Experiment(path, self._verify) for path in _directories(self.path) if is_experiment(path))

    @cached_property
    def runs(self) -> tuple[Recording, ...]:
        """The single recordings, and after them the runs of each experiment."""
        return self.recordings + tuple(run for experiment in self.experiments for run in experiment.runs)

    @property
    def missing(self) -> list[str]:
        """The names of recordings that journals of its experiments have as completed and that are gone."""
        return [name for experiment in self.experiments for name in experiment.missing]


def is_experiment(path: Path) -> bool:
    """Whether the directory is one of an experiment."""
    return (path / "journal.jsonl").exists() or (path / "experiment.toml").exists()


def is_recording(path: Path) -> bool:
    """Whether the directory is one of a recording."""
    return (path / "manifest.json").exists()


def _directories(path: Path) -> list[Path]:
    try:
        return sorted(entry for entry in path.iterdir() if entry.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LatlabError(f"cannot read `{path}`: {error.strerror}") from error


def _recordings(path: Path, verify: bool) -> tuple[Recording, ...]:
    """Names begin with the time of the start; runs of one second are in the order of their place in an experiment."""
    found = [Recording(entry, verify) for entry in _directories(path) if is_recording(entry)]
    return tuple(sorted(found, key=lambda run: (run.path.name.split("-")[0], _place(run), run.path.name)))


def _place(run: Recording) -> Sequence[int]:
    try:
        position = run.manifest.get("experiment") or {}
    except LatlabError:
        return (0, 0)
    places = (position.get("block"), position.get("position"))
    return tuple(place if isinstance(place, int) else 0 for place in places)


def _event(file: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DamagedError(file, f"line {number} is not JSON ({error})") from error
    if not isinstance(event, dict):
        raise DamagedError(file, f"line {number} is not a JSON object")
    return event


def _check_lines(file: Path, lines: Sequence[bytes]) -> None:
    """Since 1.3 each line has the checksum of all lines so far, each without its last ten bytes."""
    value = 0
    for number, line in enumerate(lines, 1):
        seal = _SEAL.search(line)
        if seal is None:
            # An older latlab began the journal, or goes on with it from here on.
            return
        value = crc32c(line[: seal.start(1)], value)
        if int(seal.group(1), 16) != value:
            raise DamagedError(file, f"the checksum of line {number} does not match")
