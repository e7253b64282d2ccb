# The one door for people and for CI. `just` lists the recipes.

_default:
    @just --list

# the README's test command
test:
    cargo test --workspace

# whether tests pass on a busy machine: 20 times those that depend on time, 3 times all; 100 minutes; needs stress-ng
steady *COUNTS:
    scripts/steady.sh {{ COUNTS }}

# how often `latlab explain` names causes that are made here: docs/explain.md; a quarter of an hour; wants root
causes LATLAB="target/release/latlab" *CAUSES:
    scripts/injected_causes.py {{ LATLAB }} {{ CAUSES }}

# how often judgements hold, by a script of its own: the tables of docs/statistics.md; an hour; wants numpy and scipy
judgements LATLAB="target/release/latlab" *ROWS:
    scripts/simulate_judgements.py {{ LATLAB }} {{ ROWS }}

# formatting, and clippy with warnings as errors
lint:
    cargo fmt --check
    cargo clippy --workspace --all-targets -- -D warnings

# the documentation of the code, with warnings as errors
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# the documents as a book in target/book; needs mdbook
book:
    mdbook build

# lines of code, tests, goldens and documents, import circles: each with its ceiling
shape:
    cargo test --quiet --package latlab --test tidy -- --nocapture --exact shape::no_measure_is_above_its_ceiling

# licences, banned crates, sources, advisories; needs cargo-deny and the network
deny:
    cargo deny check

# pages of reports in a headless Chromium, which needs chromium, pdftotext (poppler-utils) and python3-venv
pages LATLAB="target/debug/latlab":
    [ -x target/browser/bin/python ] || python3 -m venv target/browser
    target/browser/bin/pip install --quiet --requirement scripts/browser.txt
    scripts/report_pages.sh {{ LATLAB }} target/browser/bin/python target/pages --screenshots

# the Python package: wheel, types, tests, notebook; needs python3-venv
python LATLAB="target/debug/latlab":
    [ -x target/python/bin/python ] || python3 -m venv target/python
    target/python/bin/pip install --quiet --requirement scripts/python_package.txt
    scripts/python_package.sh {{ LATLAB }} target/python/bin/python target/python-package

# everything that must hold before a change is merged; installs what it needs, wants root
ci:
    .ci/run

# archives, packages, wheels and the image of a release in dist/; needs what release-check installs
dist *TARGETS:
    scripts/dist.sh {{ TARGETS }}

# builds the release and tries every part in a fresh root: docs/releasing.md; wants root; half an hour
release-check *PARTS:
    scripts/release_check.sh {{ PARTS }}

# the peer and the reader that the benches compare with
bench-setup:
    scripts/bench_setup.sh

# latlab's own cost, judged as docs/performance.md says; on a quiet machine
bench *ARGUMENTS: bench-setup
    cargo bench --package latlab --bench round_trip -- {{ ARGUMENTS }}
    cargo bench --package latlab --bench loop_cost -- {{ ARGUMENTS }}
    cargo bench --package latlab --bench wakeup -- {{ ARGUMENTS }}
    cargo bench --package latlab --bench command -- {{ ARGUMENTS }}
    cargo bench --package latlab --bench load -- {{ ARGUMENTS }}
    cargo bench --package latlab --bench live -- {{ ARGUMENTS }}
    cargo bench --package latlab --bench endurance -- {{ ARGUMENTS }}
    cargo bench --package latlab --bench stream -- {{ ARGUMENTS }}
    cargo bench --package latlab --bench ministat -- {{ ARGUMENTS }}
    cargo bench --package latlab --bench import -- {{ ARGUMENTS }}
    cargo bench --package latlab --bench compare -- {{ ARGUMENTS }}

# the tables of docs/statistics.md: 2,000 simulated runs, searches or experiments for each row; an hour
simulate REPLICATES="2000":
    LATLAB_REPLICATES={{ REPLICATES }} cargo test --release --package latlab-stats --test stats one_run -- --nocapture --test-threads 1
    LATLAB_REPLICATES={{ REPLICATES }} cargo test --release --package latlab-stats --test stats rare_delays -- --nocapture --include-ignored
    cargo test --release --package latlab-analysis --lib explain::level -- --nocapture --include-ignored
    LATLAB_REPLICATES={{ REPLICATES }} cargo test --release --package latlab-stats --test stats clock_windows -- --nocapture --include-ignored
    LATLAB_REPLICATES={{ REPLICATES }} cargo test --release --package latlab-measure --lib bounds_of_searches -- --nocapture --include-ignored
    LATLAB_SIMULATE=1 cargo test --release --package latlab-analysis --test comparing --test published -- --nocapture --include-ignored --test-threads 1

# another build of latlab beside this one: does a change cost anything?
bench-change BEFORE *ARGUMENTS:
    LATLAB_BEFORE={{ BEFORE }} cargo bench --package latlab --bench before_after -- {{ ARGUMENTS }}

# shows that the benches run; the figures mean nothing
bench-quick: (bench "--quick")

# damaged logs, recordings and experiments: the first 10,000 mutations; 15 minutes
mutations RANGE="0..10000":
    LATLAB_DAMAGED_LOGS=10000 cargo test --release --package latlab-formats --test logs
    LATLAB_MUTATIONS={{ RANGE }} cargo test --release --package latlab --test mutations -- --nocapture

# a minute of each fuzz target from its kept corpus; needs a nightly toolchain and cargo-fuzz
fuzz-smoke SECONDS="60":
    scripts/fuzz_smoke.sh {{ SECONDS }}

# fuzz one parser; needs a nightly toolchain and cargo-fuzz
fuzz TARGET *ARGUMENTS:
    cargo +nightly fuzz run --fuzz-dir fuzz {{ TARGET }} {{ ARGUMENTS }}

# valid inputs of the fuzz targets, made from the protocol and from testdata
fuzz-seeds:
    scripts/fuzz_seeds.py

# the kept corpus of a fuzz target, without inputs that add no coverage; AND: a directory of further inputs
fuzz-minimise TARGET AND="":
    scripts/fuzz_minimise.sh {{ TARGET }} {{ AND }}

# changes one expression of a crate at a time: which changes do its tests find? needs cargo-mutants
mutants CRATE *ARGUMENTS:
    cargo mutants --package {{ CRATE }} {{ ARGUMENTS }}
