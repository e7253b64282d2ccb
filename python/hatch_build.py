"""Puts the program into the wheel, as a file of `bin`: no maturin, since the program is built before and is not an extension."""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):
    """Adds the static binary LATLAB_BINARY, which runs where a wheel with the tag LATLAB_TAG is installed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        binary = os.environ.get("LATLAB_BINARY")
        if version != "standard" or binary is None:
            return
        build_data["shared_scripts"] = {binary: "latlab"}
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['LATLAB_TAG']}"
