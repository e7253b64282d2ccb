"""Recordings for the tests: those of the repository, and some that the real binary makes.

LATLAB names the binary; without it the debug build of the repository is used. A missing binary fails the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
LOGS = Path(__file__).resolve().parent / "data"
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def binary() -> Path:
    path = Path(os.environ.get("LATLAB") or REPOSITORY / "target/debug/latlab")
    if not path.is_file():
        pytest.fail(f"no binary at `{path}`: set LATLAB, or run `cargo build`")
    return path.resolve()


@pytest.fixture(scope="session")
def testdata(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, since the binary finishes the recordings of runs that died."""
    copy = tmp_path_factory.mktemp("repository") / "testdata"
    shutil.copytree(REPOSITORY / "testdata", copy)
    return copy


@pytest.fixture(scope="session")
def command(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Runs the binary in a directory of its own; a command that fails fails the test."""
    directory = tmp_path_factory.mktemp("work")

    def run(*arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        words = [str(binary), *map(str, arguments)]
        done = subprocess.run(words, cwd=directory, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode in (0, 4) or not check, f"{words}: exit {done.returncode}\n{done.stderr}"
        return done

    return run


@pytest.fixture(scope="session")
def store(command: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run of each kind, made now."""
    store = tmp_path_factory.mktemp("store") / "runs"
    command("ping", "-n", 2000, "--store", store, "--tag", "build=one")
    command("ping", "-n", 300, "-i", "2ms", "--store", store, "--with-wakeup", "2ms")
    command("wakeup", "-n", 200, "-i", "1ms", "--store", store)
    command("stream", "--rate", "20Mbit/s", "-d", "1s", "--warmup", "200ms", "--flows", 2, "--store", store)
    return store


@pytest.fixture(scope="session")
def imported(command: Command, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The recording that the binary makes of a log in `data`. Tools wrote them on loopback; two short ones are made up."""
    store = tmp_path_factory.mktemp("imported")

    def make(log: str | Path, *options: str) -> Path:
        recording = store / f"{len(list(store.iterdir()))}"
        command("import", LOGS / log, "-o", recording, *options)
        return recording

    return make


@pytest.fixture(scope="session")
def summary(command: Command) -> Callable[[Path], Any]:
    """`latlab summary --json` of a recording, with quantiles far out on both sides."""
    quantiles = "0.0001,0.01,0.25,0.5,0.57,0.9,0.99,0.999,0.9999"

    def read(recording: Path) -> Any:
        return json.loads(command("summary", recording, "--json", "--quantiles", quantiles).stdout)

    return read


@pytest.fixture
def recording(testdata: Path, tmp_path: Path) -> Path:
    """A copy of a finished recording with checksums, to be damaged."""
    copy = tmp_path / "recording"
    shutil.copytree(testdata / "recordings/old/1.10-finished", copy)
    return copy
