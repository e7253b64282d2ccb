#!/usr/bin/env bash
# Static binaries for x86_64 and aarch64, with man pages and completions, in dist/.
#
# Rust ships musl and its start files for these targets, and rust-lld links for every architecture. The C sources of
# the DDS library are compiled by zig, which has the headers of musl: `pip install ziglang` (scripts/readers.txt).
set -euo pipefail
cd "$(dirname "$0")/.."

targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(x86_64-unknown-linux-musl aarch64-unknown-linux-musl)
# zig is started in other directories.
target_dir="$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")"
# Paths of the machine that builds are not in the binary; a path with a blank is not supported here.
home="$(realpath "${CARGO_HOME:-$HOME/.cargo}")"
paths=("$home=/cargo" "$target_dir=/target" "$PWD=.")
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)"

die() {
    echo "error: $1" >&2
    exit 1
}

for tool in cargo rustc file readelf; do
    command -v "$tool" >/dev/null || die "\`$tool\` is missing"
done
export ZIG_PYTHON="${ZIG_PYTHON:-$target_dir/readers/bin/python}"
"$ZIG_PYTHON" -m ziglang version >/dev/null || die "\`$ZIG_PYTHON\` has no ziglang: scripts/bench_setup.sh installs it"

# A wrong answer of any of these means that the binary would need something of its host.
check_static() {
    local binary="$1" kind
    kind="$(file --brief "$binary")"
    case "$kind" in
        *"statically linked"* | *"static-pie linked"*) ;;
        *) die "$binary is not static: $kind" ;;
    esac
    if readelf --program-headers --wide "$binary" | grep -q ' INTERP '; then
        die "$binary asks for a dynamic loader"
    fi
    if readelf --dynamic --wide "$binary" 2>/dev/null | grep -q '(NEEDED)'; then
        die "$binary needs shared libraries"
    fi
    if grep --quiet --text --fixed-strings -e "$HOME/" -e "$home/" -e "$PWD/" "$binary"; then
        die "$binary has paths of this machine"
    fi
    echo "$binary: $kind"
}

build() {
    local target="$1" variable folder
    [ -d "$(rustc --print target-libdir --target "$target")" ] ||
        die "the standard library for $target is missing: rustup target add $target"
    variable="CARGO_TARGET_$(echo "$target" | tr 'a-z-' 'A-Z_')"
    env ZIG_TARGET="${target%%-*}-linux-musl" \
        "CC_$(echo "$target" | tr - _)=$PWD/scripts/zig_cc" \
        "AR_$(echo "$target" | tr - _)=$PWD/scripts/zig_ar" \
        "${variable}_LINKER=rust-lld" \
        "CFLAGS_$(echo "$target" | tr - _)=${paths[*]/#/-ffile-prefix-map=}" \
        "${variable}_RUSTFLAGS=-C link-self-contained=yes -C target-feature=+crt-static ${paths[*]/#/--remap-path-prefix=}" \
        cargo build --release --locked --package latlab --bin latlab --target "$target"
    folder="dist/latlab-$version-$target"
    mkdir -p "$folder"
    cp "$target_dir/$target/release/latlab" README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE \
        crates/latlab-dds/LICENSE-cyclonedds "$folder/"
    check_static "$folder/latlab"
}

rm -rf dist
for target in "${targets[@]}"; do
    build "$target"
done

# Man pages and completions come from a binary itself: one for this machine, or one that qemu runs.
latlab=("dist/latlab-$version-$(uname -m)-unknown-linux-musl/latlab")
[ -x "${latlab[0]}" ] || latlab=(qemu-aarch64-static "dist/latlab-$version-aarch64-unknown-linux-musl/latlab")
mkdir -p dist/man dist/completions
"${latlab[@]}" man --output dist/man
for shell in bash zsh fish; do
    "${latlab[@]}" completions "$shell" >"dist/completions/latlab.$shell"
    [ -s "dist/completions/latlab.$shell" ] || die "no completions for $shell"
done
ls dist/man/*.1 >/dev/null || die "no man pages"
for folder in dist/latlab-"$version"-*; do
    cp -r dist/man dist/completions "$folder/"
    tar --create --gzip --owner=0 --group=0 --numeric-owner --file "$folder.tar.gz" -C dist "$(basename "$folder")"
done
ls -l dist
