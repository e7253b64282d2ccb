"""Errors of this package. Each message says what was read, what is wrong and what helps."""

from __future__ import annotations

from pathlib import Path


class LatlabError(Exception):
    """Every error that this package raises on purpose, except for wrong arguments (ValueError)."""


class NotARecordingError(LatlabError):
    """The directory is neither a recording, an experiment nor a store."""


class NewerFormatError(LatlabError):
    """The directory has a newer major format than this package reads."""


class UnfinishedError(LatlabError):
    """The rows of the run are still in its spool: it is being measured, or its process died."""


class DamagedError(LatlabError):
    """A file is missing or was changed. `file` is its path, `cause` what is wrong with it."""

    def __init__(self, file: Path, cause: str) -> None:
        self.file = file
        self.cause = cause
        super().__init__(f"`{file}` is damaged: {cause}; restore it from a copy")


class LeftOutWarning(UserWarning):
    """Runs were left out of a table of several runs, with the reason."""
