"""The manifest of a recording: reading it, and what it says as flat columns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ._crc32c import crc32c
from .errors import DamagedError, LatlabError, NewerFormatError, NotARecordingError

MAJOR = 1
_BYTES_MAX = 64 << 20
_SEAL = re.compile(rb',\n  "crc32c": "([0-9a-f]{8})"\n}\n\Z')

# Members of the manifest that are objects or null, and those of their members that are; none named: all that there are.
_OBJECTS = {
    "spec": ("work",),
    "condition": ("settings", "tags"),
    "experiment": ("factors",),
    "checksums": (),
    "run": ("import",),
}

Manifest = dict[str, Any]


def check_format(found: object, file: Path) -> tuple[int, int]:
    """The version `found` in `file`; an error if it is not one, or has a newer major."""
    if not isinstance(found, Mapping):
        raise DamagedError(file, "it has no `format`")
    major, minor = found.get("major"), found.get("minor")
    if not isinstance(major, int) or not isinstance(minor, int):
        raise DamagedError(file, "its `format` is not a version")
    if major > MAJOR:
        raise NewerFormatError(
            f"`{file.parent}` has format {major}.{minor}, and this package reads formats up to {MAJOR}.x; "
            "a newer version of the package is needed"
        )
    return major, minor


def read_manifest(directory: Path, verify: bool) -> Manifest:
    """The manifest in `directory`, its checksum compared if it has one and `verify` is set."""
    file = directory / "manifest.json"
    try:
        size = file.stat().st_size
        if size > _BYTES_MAX:
            raise DamagedError(file, f"{size} bytes, and a manifest has at most {_BYTES_MAX}")
        text = file.read_bytes()
    except FileNotFoundError:
        raise NotARecordingError(f"`{directory}` is not a recording: it has no `manifest.json`") from None
    except OSError as error:
        raise LatlabError(f"cannot read `{file}`: {error.strerror}") from error
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedError(file, f"{len(text)} bytes that are not JSON ({error})") from error
    if not isinstance(manifest, dict):
        raise DamagedError(file, "it is not a JSON object")
    version = check_format(manifest.get("format"), file)
    if verify:
        _check_seal(file, text, manifest, version)
    for key, kind in (("kind", str), ("run_id", str), ("started_at", str), ("ending", str), ("spec", dict)):
        if not isinstance(manifest.get(key), kind):
            raise DamagedError(file, f"it has no `{key}`")
    for key, members in _OBJECTS.items():
        found = manifest.get(key) or {}
        if not isinstance(found, dict):
            raise DamagedError(file, f"its `{key}` is not an object")
        for member in members or found:
            if found.get(member) is not None and not isinstance(found[member], dict):
                raise DamagedError(file, f"its `{key}.{member}` is not an object")
    return manifest


def _check_seal(file: Path, text: bytes, manifest: Manifest, version: tuple[int, int]) -> None:
    """Recordings of formats before 1.6 have no checksum, and a latlab before 1.6 that finishes a later one leaves it out."""
    if version < (1, 6) or "crc32c" not in manifest:
        return
    seal = _SEAL.search(text)
    if seal is None:
        raise DamagedError(file, "its checksum is not the last member")
    if int(seal.group(1), 16) != crc32c(text[: seal.start(1)]):
        raise DamagedError(file, "its checksum does not match")


def is_import(manifest: Manifest) -> bool:
    """Whether the rows are those of a log of another tool, of which only that is known which the log states."""
    return (manifest["spec"].get("work") or {}).get("kind") == "import"


def factors_of(manifest: Manifest) -> dict[str, str]:
    """Option → value as typed in the file of the experiment; empty outside of one."""
    position = manifest.get("experiment") or {}
    return {name: text_of(value) for name, value in (position.get("factors") or {}).items()}


def condition_columns(manifest: Manifest) -> dict[str, Any]:
    """What distinguishes the run from others, as names and plain values.

    `factor_…` are the factors of an experiment, `block`, `position`, `experiment` and `warmup_run` the place in it,
    `ending` is how the run ended, and `condition_…` are the members of `condition`, each setting and each tag with a column
    of its own.
    """
    columns: dict[str, Any] = {f"factor_{name}": value for name, value in factors_of(manifest).items()}
    position = manifest.get("experiment")
    if position:
        columns.update({key: position.get(key) for key in ("block", "position", "experiment")})
        columns["warmup_run"] = bool(position.get("warmup"))
    columns["ending"] = manifest["ending"]
    for name, value in (manifest.get("condition") or {}).items():
        if name in ("settings", "tags") and isinstance(value, Mapping):
            columns.update({f"condition_{name[:-1]}_{key}": text_of(entry) for key, entry in value.items()})
        elif name == "loads" and isinstance(value, list):
            columns["condition_loads"] = _loads(value, is_import(manifest))
        elif isinstance(value, (bool, int, str)) or value is None:
            columns[f"condition_{name}"] = value
        else:
            columns[f"condition_{name}"] = text_of(value)
    return columns


def _loads(loads: list[Any], imported: bool) -> str | None:
    """The loads as `latlab export` writes them: a log of another tool does not state them, which is not `none`."""
    if not loads:
        return None if imported else "none"
    return " + ".join(text_of(load) for load in loads)


def text_of(value: Any) -> str:
    """A value of the manifest as text: `true`, not `True`."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(text_of(entry) for entry in value)
    return json.dumps(value, sort_keys=True)
