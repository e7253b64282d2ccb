#!/usr/bin/env python3
"""Tests the tests: changes one expression of a parser, of the reflector's policy or of the joiner, and runs the tests.

A build of the whole crate takes minutes. So the modules under test are copied to scratch crates of their own, with their unit
tests and those integration tests that need nothing else; a mutant then takes seconds. `base` has the modules below them,
`net` wire, transport and sessions, `rec` recordings and files of numbers.

mutants.py [--count N] [--seed S] [--directory DIR] [--only REGEX]; needs cargo-mutants, which lists the mutants."""

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CRATE = ROOT / "crates" / "latlab"

BASE = "clock diagnostics facts metric plan platform probe sample stats units".split()
# What is mutated.
FILES = {
    "base": ["src/units/human/parse.rs", "src/units/human/rates.rs"],
    "net": [
        "src/wire/*.rs",
        "src/transport/frame.rs",
        "src/agent/frame.rs",
        "src/session/codec.rs",
        "src/session/key.rs",
        "src/session/reflector/*.rs",
    ],
    "rec": [
        "src/formats/numbers.rs",
        "src/recording/block.rs",
        "src/recording/checksums.rs",
        "src/recording/event.rs",
        "src/recording/host_spool.rs",
        "src/recording/join.rs",
        "src/recording/manifest_file.rs",
        "src/recording/plausible.rs",
        "src/recording/spool.rs",
        "src/recording/tables/decode.rs",
        "src/recording/tables/file.rs",
    ],
}
# Loops over sockets: their tests are those of the whole program.
EXCLUDED = ["src/session/reflector/serve.rs"]
# Dependencies of modules that are not copied.
UNUSED = "clap|indicatif|jsonschema|netlink|toml"
PROFILE = """
[profile.dev]
opt-level = 0
debug = 0

[profile.dev.package."*"]
opt-level = 2

[workspace]
"""
BUILD_SECONDS = 3600
TEST_SECONDS = 120
MEMORY_BYTES = 4 << 30


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


def edit(path, *changes):
    text = path.read_text()
    for pattern, replacement in changes:
        text = re.sub(pattern, replacement, text, flags=re.DOTALL)
    path.write_text(text)


def manifest(name, crate, dependencies):
    """The dependencies of the workspace, as far as latlab has them."""
    workspace = (ROOT / "Cargo.toml").read_text().split("[workspace.dependencies]")[1].split("[workspace.lints")[0]
    workspace = re.sub(rf"(?m)^({UNUSED}).*\n", "", workspace)
    normal, tests = workspace.split("# tests only")
    normal = normal.replace('path = "crates/', f'path = "{ROOT}/crates/')
    package = f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n\n[dependencies]\n{dependencies}'
    (crate / "Cargo.toml").write_text(f"{package}{normal}\n[dev-dependencies]\n{tests}{PROFILE}")
    shutil.copy(ROOT / "Cargo.lock", crate / "Cargo.lock")


def make_crates(scratch):
    for crate in FILES:
        for part in ("src", "tests"):
            shutil.rmtree(scratch / crate / part, ignore_errors=True)
    base, net, rec = (scratch / crate for crate in FILES)
    source = CRATE / "src"
    for module in BASE:
        name = module if (source / module).is_dir() else f"{module}.rs"
        copy(source / name, base / "src" / name)
    (base / "src/lib.rs").write_text("".join(f"pub mod {module};\n" for module in BASE))
    for file in (base / "src").rglob("*.rs"):
        edit(file, (r"pub\(crate\)", "pub"))
    manifest("base", base, "")

    names = f"pub use base::{{{', '.join(BASE)}}};\n"
    for module in ("wire", "transport", "session", "agent/frame.rs"):
        copy(source / module, net / "src" / module)
    # Processes and loads are made of the rest of the program.
    (net / "src/session/loads.rs").unlink()
    (net / "src/session/reflector/process.rs").unlink()
    process = r"(REFLECTOR_COMMAND|ReflectorEvent|ReflectorProcessError|ReflectorRequest),?\s*"
    own = (r"pub\(crate\) use [a-z]+::ReflectorProcess;\n", "")
    edit(net / "src/session/mod.rs", (r"mod loads;\n", ""), (r"pub use loads::\{.*?\};\n", ""), own, (process, ""))
    edit(net / "src/session/reflector/mod.rs", (r"mod process;\n", ""), (r"pub use process::\{.*?\};\n", ""), own)
    (net / "src/lib.rs").write_text(
        names + "pub mod wire;\npub mod transport;\npub mod session;\npub mod agent {\n    pub mod frame;\n}\n"
    )
    for tests in ("wire_props.rs", "session.rs", "session"):
        copy(CRATE / "tests" / tests, net / "tests" / tests)

    for module in ("recording", "formats"):
        copy(source / module, rec / "src" / module)
    (rec / "src/lib.rs").write_text(names + "pub mod recording;\npub mod formats;\n")
    for tests in ("recording.rs", "recording", "runs", "sealed", "skip"):
        copy(CRATE / "tests" / tests, rec / "tests" / tests)
    for crate in (net, rec):
        manifest("latlab", crate, f'base = {{ path = "{base}" }}\n')
    # Tests read it two directories above.
    copy(ROOT / "testdata", scratch.parent / "testdata")


def mutants(scratch):
    for crate, files in FILES.items():
        command = ["cargo", "mutants", "--list", "--json", "--diff", "--dir", scratch / crate]
        command += [part for file in files for part in ("--file", file)]
        command += [part for file in EXCLUDED for part in ("--exclude", file)]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for mutant in json.loads(listed):
            yield crate, mutant["name"], mutant["diff"]


def cargo_test(crate, *arguments, seconds=TEST_SECONDS):
    # A mutant may loop or allocate without end: the time-out ends the test with its children.
    limits = ["timeout", "--kill-after=5", str(seconds), "prlimit", f"--data={MEMORY_BYTES}"]
    command = [*limits, "cargo", "test", "--quiet", "--offline", "--lib", "--tests", *arguments]
    return subprocess.run(command, cwd=crate, capture_output=True, text=True)


def build_tests(crate):
    return cargo_test(crate, "--no-run", seconds=BUILD_SECONDS)


def patch(crate, diff, *arguments):
    # Its second line names the change instead of the file.
    file = diff.split(maxsplit=2)[1]
    command = ["patch", "--silent", *arguments, file]
    subprocess.run(command, cwd=crate, input=diff, check=True, text=True)


def outcome(crate, diff):
    """Whether the tests find the mutant: `killed`, `killed (time-out)`, `survived` or `unviable`."""
    patch(crate, diff)
    try:
        if build_tests(crate).returncode != 0:
            return "unviable"
        return {0: "survived", 124: "killed (time-out)", 137: "killed (time-out)"}.get(
            cargo_test(crate).returncode, "killed"
        )
    finally:
        patch(crate, diff, "--reverse")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--count", type=int, default=150, help="of mutants that compile")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--directory", type=Path, default=ROOT / "target" / "mutants")
    arguments.add_argument("--only", default="", help="a regular expression on the names of the mutants")
    chosen = arguments.parse_args()
    scratch = chosen.directory.resolve() / "crates"
    make_crates(scratch)
    drawn = sorted(mutants(scratch))
    total = len(drawn)
    random.Random(chosen.seed).shuffle(drawn)
    drawn = [mutant for mutant in drawn if re.search(chosen.only, mutant[1])]
    for crate in FILES:
        built = build_tests(scratch / crate)
        sound = built if built.returncode != 0 else cargo_test(scratch / crate)
        if sound.returncode != 0:
            sys.exit(f"the tests of `{crate}` fail without a mutant:\n{sound.stdout}{sound.stderr}")
    counts = {}
    for crate, name, diff in drawn:
        # One that does not compile tests nothing.
        if sum(counts.values()) - counts.get("unviable", 0) == chosen.count:
            break
        start = time.monotonic()
        result = outcome(scratch / crate, diff)
        counts[result] = counts.get(result, 0) + 1
        print(f"{result}\t{crate}/{name}\t{time.monotonic() - start:.0f} s", flush=True)
    print(f"{total} mutants, of which {sum(counts.values())} were drawn: {counts}")


if __name__ == "__main__":
    main()
