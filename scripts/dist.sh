#!/usr/bin/env bash
# The files of a release, in dist/:
#     scripts/dist.sh [--binaries] [TARGET…]
# For each target a tar.gz, a .deb and an .rpm; for 64 bit a wheel and an image; SHA256SUMS. The same sources give
# the same bytes. With --binaries only the folders that become a tar.gz, without the notices and the list of crates.
#
# Rust ships musl and its start files for these targets, and rust-lld links for every architecture. The C sources of
# the DDS library are compiled by zig, which has the headers of musl: `pip install ziglang` (scripts/readers.txt).
# Packages are made by the tools of packaging/tools.txt and by buildah, wheels by scripts/python_package.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

only_binaries=""
if [ "${1:-}" = --binaries ]; then
    only_binaries=yes
    shift
fi
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(x86_64-unknown-linux-musl aarch64-unknown-linux-musl
    armv7-unknown-linux-musleabihf arm-unknown-linux-musleabihf)
# zig is started in other directories.
target_dir="$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")"
# Paths of the machine that builds are not in the binary; a path with a blank is not supported here.
home="$(realpath "${CARGO_HOME:-$HOME/.cargo}")"
paths=("$home=/cargo" "$target_dir=/target" "$PWD=.")
# With the component rust-src, the library of Rust is named by its place too, and otherwise by this.
paths+=("$(rustc --print sysroot)/lib/rustlib/src/rust=/rustc/$(rustc --verbose --version | sed -n 's/^commit-hash: //p')")
# Cargo forgets `strip` of the profile where a package has another opt-level.
strip="-C strip=symbols"
# Equal functions are linked once, and a relocation takes a bit.
sizes=(--icf=all --pack-dyn-relocs=relr)
# CI, which only wants to know whether it links and starts, compiles without optimisation: `release` with other settings.
profile="${DIST_PROFILE:-dist}"
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)"
# What packages and archives state as the time of their files: that of the commit. An archive has no commit.
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat --format=%Y Cargo.toml)}"
LATLAB_COMMIT="${LATLAB_COMMIT:-$(git rev-parse HEAD 2>/dev/null || true)}"
[ -n "$LATLAB_COMMIT" ] || unset LATLAB_COMMIT
export SOURCE_DATE_EPOCH LATLAB_COMMIT
PATH="$target_dir/tools/bin:$PATH"

die() {
    echo "error: $1" >&2
    exit 1
}

needed=(cargo rustc file readelf)
[ -n "$only_binaries" ] || needed+=(cargo-deb cargo-generate-rpm buildah)
for tool in "${needed[@]}"; do
    command -v "$tool" >/dev/null || die "\`$tool\` is missing"
done
export ZIG_PYTHON="${ZIG_PYTHON:-$target_dir/readers/bin/python}"
"$ZIG_PYTHON" -m ziglang version >/dev/null || die "\`$ZIG_PYTHON\` has no ziglang: scripts/bench_setup.sh installs it"

# The architecture in the words of Debian, of RPM and of wheels, and the CPU in those of zig. The wheel needs pyarrow, which
# has none for 32 bit.
describe() {
    local linux=manylinux_2_17 musl=musllinux_1_1
    zig_target="${1%%-*}-linux-musl" zig_cpu=baseline
    case "$1" in
        x86_64-*) deb=amd64 rpm=x86_64 wheel="${linux}_x86_64.${musl}_x86_64" ;;
        aarch64-*) deb=arm64 rpm=aarch64 wheel="${linux}_aarch64.${musl}_aarch64" ;;
        armv7-*)
            deb=armhf rpm=armv7hl wheel=""
            zig_target=arm-linux-musleabihf zig_cpu=generic+v7a+vfp3d16
            ;;
        # Raspberry Pi OS of 32 bit, which calls it armhf too.
        arm-*)
            deb=armhf-v6 rpm=armv6hl wheel=""
            zig_target=arm-linux-musleabihf zig_cpu=arm1176jzf_s
            ;;
        *) die "no packages are known for $1" ;;
    esac
}

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
    local target="$1" variable folder="dist/latlab-$version-$1"
    [ -d "$(rustc --print target-libdir --target "$target")" ] ||
        die "the standard library for $target is missing: rustup target add $target"
    variable="CARGO_TARGET_$(echo "$target" | tr 'a-z-' 'A-Z_')"
    describe "$target"
    env ZIG_TARGET="$zig_target" ZIG_CPU="$zig_cpu" \
        "CC_$(echo "$target" | tr - _)=$PWD/scripts/zig_cc" \
        "AR_$(echo "$target" | tr - _)=$PWD/scripts/zig_ar" \
        "${variable}_LINKER=rust-lld" \
        "CFLAGS_$(echo "$target" | tr - _)=${paths[*]/#/-ffile-prefix-map=}" \
        "${variable}_RUSTFLAGS=-C link-self-contained=yes -C target-feature=+crt-static $strip ${sizes[*]/#/-C link-arg=} ${paths[*]/#/--remap-path-prefix=}" \
        cargo build --profile "$profile" --locked --package latlab --bin latlab --target "$target"
    mkdir -p "$folder/licences" "$folder/systemd"
    cp "$target_dir/$target/$profile/latlab" "$folder/"
    cp -r ./*.md LICENSE-* docs examples "$folder/"
    cp LICENSE-MIT LICENSE-APACHE crates/latlab-dds/LICENSE-cyclonedds "$folder/licences/"
    cp packaging/latlab.service packaging/latlab.sysusers "$folder/systemd/"
    check_static "$folder/latlab"
}

# Man pages and completions come from a binary itself: one for this machine, or one that qemu runs.
describe_commands() {
    local folder="dist/latlab-$version-${targets[0]}" latlab shell
    latlab=("dist/latlab-$version-$(uname -m)-unknown-linux-musl/latlab")
    [ -x "${latlab[0]}" ] || case "${targets[0]}" in
        aarch64-*) latlab=(qemu-aarch64-static "$folder/latlab") ;;
        *) latlab=(qemu-arm-static "$folder/latlab") ;;
    esac
    mkdir -p dist/man dist/completions
    "${latlab[@]}" man --output dist/man
    for shell in bash zsh fish; do
        "${latlab[@]}" completions "$shell" >"dist/completions/latlab.$shell"
        [ -s "dist/completions/latlab.$shell" ] || die "no completions for $shell"
    done
    ls dist/man/*.1 >/dev/null || die "no man pages"
    for folder in dist/latlab-"$version"-*; do
        cp -r dist/man dist/completions "$folder/"
    done
    rm -r dist/man dist/completions
}

# What is linked into the binary, and under which licences: crates, the library of Rust, musl.
describe_contents() {
    local target="$1" folder="dist/latlab-$version-$1" zig
    zig="$("$ZIG_PYTHON" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')"
    scripts/contents.py "$target" "$folder/licences/THIRD-PARTY" "$folder/latlab.cdx.json"
    cp "$zig/lib/libc/musl/COPYRIGHT" "$folder/licences/LICENSE-musl"
    cp "$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html" "$folder/licences/"
}

package() {
    local target="$1" name="latlab-$version-$1"
    describe "$target"
    tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C dist "$name" |
        gzip --no-name >"dist/$name.tar.gz"
    # Where the lists of files in crates/latlab/Cargo.toml look.
    ln --symbolic --force --no-dereference "$name" dist/current
    cargo deb --no-build --no-strip --locked --package latlab --target "$target" --output "dist/latlab_${version}_$deb.deb"
    cargo generate-rpm --package crates/latlab --target "$target" --arch "$rpm" --output "dist/latlab-$version.$rpm.rpm"
    [ -z "$wheel" ] || (
        cd python
        LATLAB_BINARY="$OLDPWD/dist/$name/latlab" LATLAB_TAG="$wheel" \
            "${WHEEL_PYTHON:-$target_dir/python/bin/python}" -m build --wheel --no-isolation --outdir ../dist .
    )
    rm dist/current
}

# From scratch: the program, its licences and nothing else. One manifest names the images of both architectures.
image() {
    local manifest="latlab:$version" folder target container
    mkdir -p dist/image/data dist/image/tmp
    chmod 1777 dist/image/tmp
    buildah rmi --force "$manifest" >/dev/null 2>&1 || true
    buildah manifest create "$manifest"
    for target in "${targets[@]}"; do
        folder="dist/latlab-$version-$target"
        describe "$target"
        case "$deb" in amd64 | arm64) ;; *) continue ;; esac
        container="$(buildah from --arch "$deb" scratch)"
        buildah copy --quiet "$container" "$folder/latlab" /usr/bin/latlab
        buildah copy --quiet "$container" "$folder/licences" /usr/share/licenses/latlab
        # The store of recordings, a place for a volume; and one for temporary files.
        buildah copy --quiet --chown 65532:65532 "$container" dist/image /
        buildah config --arch "$deb" --os linux --user 65532:65532 --workingdir /data --port 9862/udp --env HOME=/ \
            --entrypoint '["/usr/bin/latlab"]' --cmd serve \
            --label org.opencontainers.image.title=latlab --label "org.opencontainers.image.version=$version" \
            --label 'org.opencontainers.image.licenses=MIT OR Apache-2.0' "$container"
        buildah commit --quiet --rm --timestamp "$SOURCE_DATE_EPOCH" --manifest "$manifest" "$container"
    done
    buildah manifest push --all "$manifest" "oci-archive:dist/latlab-$version-image.tar:latlab:$version"
    rm -r dist/image
}

# Where the archives will be is known to the job that publishes them.
pkgbuild() {
    local arch fills=(-e "s|@VERSION@|$version|" -e "s|@URL@|$LATLAB_URL|")
    for arch in x86_64 aarch64; do
        fills+=(-e "s|@SUM_$arch@|$(sha256sum "dist/latlab-$version-$arch-unknown-linux-musl.tar.gz" | cut -d ' ' -f 1)|")
    done
    sed "${fills[@]}" packaging/PKGBUILD >dist/PKGBUILD
}

[ -n "$only_binaries" ] || grep --quiet --line-regexp "version = \"$version\"" python/pyproject.toml ||
    die "python/pyproject.toml has another version than Cargo.toml"
rm -rf dist
for target in "${targets[@]}"; do
    build "$target"
done
describe_commands
if [ -z "$only_binaries" ]; then
    for target in "${targets[@]}"; do
        describe_contents "$target"
        package "$target"
    done
    image
    [ -z "${LATLAB_URL:-}" ] || pkgbuild
    (cd dist && sha256sum -- *.tar *.tar.gz *.deb *.rpm *.whl >SHA256SUMS)
fi
ls -l dist
