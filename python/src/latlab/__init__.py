"""Reads recordings of latlab as tables of pyarrow, pandas or polars.

run = latlab.open("latlab-runs/20261121T021500Z-ping-7f3a")
run.rows().to_pandas()
run.sample("round_trip_delay").quantile(0.99)
latlab.frame("latlab-runs/20261121T030000Z-experiment-51c0", engine="polars")
"""

from ._experiment import Experiment, Store
from ._frame import figures, frame, open, recording
from ._recording import Recording, Rows
from ._sample import RateSample, Sample
from .errors import (
    DamagedError,
    LatlabError,
    LeftOutWarning,
    NewerFormatError,
    NotARecordingError,
    UnfinishedError,
)

__version__ = "0.1.0"

__all__ = [
    "DamagedError",
    "Experiment",
    "LatlabError",
    "LeftOutWarning",
    "NewerFormatError",
    "NotARecordingError",
    "RateSample",
    "Recording",
    "Rows",
    "Sample",
    "Store",
    "UnfinishedError",
    "__version__",
    "figures",
    "frame",
    "open",
    "recording",
]
