"""What opens, and what is refused with which error."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import latlab
from latlab._crc32c import crc32c

OLD = [
    "1.0-finished",
    "1.1-finished",
    "1.2-finished",
    "1.3-wakeup",
    "1.4-stream",
    "1.5-search",
    "1.5-tcp",
    "1.6-finished",
]
OLD += ["1.7-dds", "1.7-finished", "1.8-finished", "1.8-hosts", "1.8-xdp", "1.9-finished", "1.10-finished"]
OLD += ["1.11-counts", "1.11-import", "1.11-import-stream", "1.11-values", "1.12-command", "1.12-printed"]
OLD += ["1.13-stamped", "1.13-traced"]
DIED = [
    "1.0-died",
    "1.1-died",
    "1.4-stream-died",
    "1.5-search-died",
    "1.6-died",
    "1.6-stream-died",
    "1.9-died",
    "1.10-died",
]


def rewrite(recording: Path, change: Callable[[str], str]) -> None:
    """Changes the manifest and seals it anew."""
    file = recording / "manifest.json"
    text, seal = file.read_text().rsplit('"crc32c": "', 1)
    changed = (change(text) + '"crc32c": "').encode()
    assert seal.endswith('"\n}\n')
    file.write_bytes(changed + f"{crc32c(changed):08x}".encode() + b'"\n}\n')


@pytest.mark.parametrize("name", OLD)
def test_a_recording_of_each_version_opens_and_has_its_rows(testdata: Path, name: str) -> None:
    run = latlab.recording(testdata / "recordings/old" / name)
    assert ".".join(map(str, run.format)) == name.split("-")[0]
    run.verify()
    assert run.table(phase="all").num_rows == run.manifest["rows"] > 0


def test_every_old_recording_is_opened_or_refused_here(testdata: Path) -> None:
    found = {path.name for path in (testdata / "recordings/old").iterdir() if path.is_dir()}
    assert found == {*OLD, *DIED}, "a new version needs a row here"


@pytest.mark.parametrize("name", DIED)
def test_a_run_that_died_is_refused_with_the_command_that_finishes_it(testdata: Path, name: str) -> None:
    path = testdata / "recordings/old" / name
    with pytest.raises(latlab.UnfinishedError, match=f"latlab summary .*{name}` finishes it"):
        latlab.open(path)


def test_a_run_that_dies_is_readable_after_the_command_of_the_message(
    binary: Path, command: Callable[..., object], tmp_path: Path
) -> None:
    path = tmp_path / "dying"
    arguments = [str(binary), "ping", "-d", "60s", "-i", "1ms", "--warmup", "0", "-o", str(path), "-q"]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        spool = path / "events.spool"
        deadline = time.monotonic() + 30
        while not (spool.exists() and spool.stat().st_size > 64_000):
            assert process.poll() is None and time.monotonic() < deadline, "nothing was recorded"
            time.sleep(0.05)
        with pytest.raises(latlab.UnfinishedError, match="is being measured"):
            latlab.open(path)
    finally:
        process.kill()
        process.wait()
    with pytest.raises(latlab.UnfinishedError, match="latlab summary .* finishes it"):
        latlab.open(path)
    command("summary", path, "--json")
    run = latlab.recording(path)
    assert run.ending == "recovered"
    assert run.sample().n > 0


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("fewer-rows-than-promised", latlab.DamagedError, "300 rows, but 301 in the manifest"),
        ("missing-rows", latlab.DamagedError, "probes.parquet.*the file is missing"),
        ("missing-spool", latlab.DamagedError, "its spool is missing"),
        ("newer-major", latlab.NewerFormatError, r"format 2\.0"),
        ("no-recording", latlab.NotARecordingError, "no `manifest.json`"),
        ("truncated-manifest", latlab.DamagedError, "manifest.json.*not JSON"),
        ("truncated-rows", latlab.DamagedError, "probes.parquet.*does not end as a Parquet file"),
        ("zero-bytes-manifest", latlab.DamagedError, "0 bytes"),
        ("zero-bytes-rows", latlab.DamagedError, "0 bytes"),
        ("foreign-spool", latlab.UnfinishedError, "finishes it"),
        ("truncated-spool-header", latlab.UnfinishedError, "finishes it"),
        ("zero-bytes-spool", latlab.UnfinishedError, "finishes it"),
    ],
)
def test_a_bad_recording_is_refused_by_name(
    testdata: Path, name: str, error: type[latlab.LatlabError], message: str
) -> None:
    with pytest.raises(error, match=message):
        latlab.recording(testdata / "recordings/bad" / name).table()


def test_a_newer_minor_opens_and_its_unknown_keys_are_in_the_manifest(recording: Path) -> None:
    rewrite(
        recording, lambda text: text.replace('"minor": 10', '"minor": 99').replace('"kind":', '"new": 1,\n  "kind":', 1)
    )
    run = latlab.recording(recording)
    assert run.format == (1, 99)
    assert run.manifest["new"] == 1
    assert run.sample().n > 0


def test_a_newer_kind_is_named_and_its_tables_stay_readable(recording: Path) -> None:
    rewrite(recording, lambda text: text.replace('"kind": "ping"', '"kind": "carrier-pigeon"', 1))
    run = latlab.recording(recording)
    with pytest.raises(latlab.LatlabError, match="of kind `carrier-pigeon`.*probes, host"):
        run.table()
    assert run.table("host").num_rows == run.manifest["host_rows"]


def test_a_changed_manifest_is_damage(recording: Path) -> None:
    file = recording / "manifest.json"
    file.write_text(file.read_text().replace('"ending": "completed"', '"ending": "interrupted"'))
    with pytest.raises(latlab.DamagedError, match="manifest.json.*checksum"):
        latlab.open(recording)
    unverified = latlab.open(recording, verify=False)
    assert isinstance(unverified, latlab.Recording)
    assert unverified.ending == "interrupted"


@pytest.mark.parametrize(
    ("found", "changed", "what"),
    [
        ('"tags": {', '"tags": 5, "were": {', "condition.tags"),
        ('"probes.parquet": {', '"probes.parquet": [], "was": {', "checksums.probes.parquet"),
    ],
)
def test_a_member_of_the_manifest_that_is_not_an_object_is_damage(
    recording: Path, found: str, changed: str, what: str
) -> None:
    rewrite(recording, lambda text: text.replace(found, changed))
    assert changed in (recording / "manifest.json").read_text()
    with pytest.raises(latlab.DamagedError, match=f"its `{what}` is not an object"):
        latlab.open(recording)


def change_byte(file: Path, place: int) -> None:
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)


def test_a_changed_column_is_damage_when_it_is_read_and_not_before(recording: Path) -> None:
    file = recording / "probes.parquet"
    change_byte(file, pq.ParquetFile(file).metadata.row_group(0).column(0).data_page_offset + 20)
    run = latlab.recording(recording)
    assert run.table(columns=["fate"]).num_rows > 0
    with pytest.raises(latlab.DamagedError, match="checksum of column `seq` in row group 0"):
        run.table(columns=["seq"])
    with pytest.raises(latlab.DamagedError, match="column `seq`"):
        run.verify()


def test_an_answer_before_its_probe_is_damage_in_a_recording_of_latlab_alone(recording: Path) -> None:
    file = recording / "probes.parquet"
    table = pq.read_table(file)
    swapped = [{"sent_ns": "received_ns", "received_ns": "sent_ns"}.get(name, name) for name in table.column_names]
    pq.write_table(table.rename_columns(swapped), file)
    with pytest.raises(latlab.DamagedError, match="`received_ns` is before `sent_ns`"):
        latlab.recording(recording, verify=False).sample()
    rewrite(recording, lambda text: text.replace('"name": "latlab"', '"name": "another tool"'))
    assert (latlab.recording(recording, verify=False).sample().max or 0) < 0


def test_an_impossible_interval_is_damage(testdata: Path, tmp_path: Path) -> None:
    shutil.copytree(testdata / "recordings/old/1.4-stream", tmp_path / "stream")
    file = tmp_path / "stream/intervals.parquet"
    table = pq.read_table(file)
    end = table.column_names.index("end_ns")
    pq.write_table(
        table.set_column(end, "end_ns", table["start_ns"].take(pa.array(range(len(table) - 1, -1, -1)))), file
    )
    with pytest.raises(latlab.DamagedError, match="an interval ends before it begins"):
        latlab.recording(tmp_path / "stream").sample()


def test_a_changed_footer_is_damage(recording: Path) -> None:
    file = recording / "probes.parquet"
    change_byte(file, file.stat().st_size - 40)
    with pytest.raises(latlab.DamagedError, match="checksum of the footer"):
        latlab.recording(recording).table()


def test_a_cut_file_is_damage(recording: Path) -> None:
    os.truncate(recording / "host.parquet", 1000)
    run = latlab.recording(recording)
    assert run.table().num_rows > 0
    with pytest.raises(latlab.DamagedError, match="host.parquet"):
        run.table("host")


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(latlab.NotARecordingError, match="no recording at"):
        latlab.open(tmp_path / "none")
    with pytest.raises(latlab.NotARecordingError, match="is not a recording"):
        latlab.open(tmp_path)


@pytest.mark.parametrize("name", ["old/1.0", "old/1.1", "finished/factors", "finished/stream", "finished/wakeup"])
def test_an_experiment_of_each_version_opens(testdata: Path, name: str) -> None:
    experiment = latlab.open(testdata / "experiments" / name)
    assert isinstance(experiment, latlab.Experiment)
    assert experiment.format[0] == 1
    assert experiment.runs
    assert not experiment.missing


def test_a_changed_line_of_a_journal_is_damage(command: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(
        'kind = "ping"\n[base]\ncount = 50\n[factors]\nsize = [24, 64]\n[design]\nruns = 1\n'
    )
    command("run", tmp_path / "two.toml", "--store", tmp_path / "store", "--quiet")
    (path,) = (tmp_path / "store").glob("*-experiment-*")
    experiment = latlab.open(path)
    assert isinstance(experiment, latlab.Experiment)
    assert experiment.is_finished
    assert [run.factors["size"] for run in experiment.runs if not run.is_warmup].count("24") == 1
    journal = path / "journal.jsonl"
    assert b'"crc32c"' in journal.read_bytes()
    journal.write_bytes(journal.read_bytes().replace(b'"position":1', b'"position":2', 1))
    with pytest.raises(latlab.DamagedError, match="checksum of line"):
        latlab.open(path)
