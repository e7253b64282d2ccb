#!/usr/bin/env bash
# Builds what a release consists of, and tries every part as a user would: installed into a fresh root, started there,
# removed. As root on Debian 12; installs what it lacks; about 30 minutes. Each part has a line at the end, with its time.
#     scripts/release_check.sh [PART…]
# A target whose standard library is missing is named as not built, and its parts have then not passed.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_INCREMENTAL=0 CARGO_TERM_COLOR=never DEBIAN_FRONTEND=noninteractive NO_COLOR=1
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
export PATH="$CARGO_TARGET_DIR/tools/bin:$PATH:/usr/local/sbin:/usr/sbin:/sbin"
work="$CARGO_TARGET_DIR/release-check"
python="$CARGO_TARGET_DIR/python/bin/python"
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)"
size_max=$((18 * 1000 * 1000))
results=() missing=() failed="" built=()
targets=(x86_64-unknown-linux-musl aarch64-unknown-linux-musl armv7-unknown-linux-musleabihf arm-unknown-linux-musleabihf)
mkdir -p "$work"

die() {
    echo "error: $1" >&2
    exit 1
}

# Runs the function of this name in a shell of its own, where the first failure ends it.
part() {
    local name="$1" from=$SECONDS status=0
    [ ${#wanted[@]} -eq 0 ] || [[ " ${wanted[*]} " = *" $name "* ]] || return 0
    (
        set +e
        ( set -e; "$name" )
    ) >"$work/$name.log" 2>&1 || status=$?
    if [ "$status" = 0 ]; then
        results+=("$(printf 'ok      %5d s  %s' $((SECONDS - from)) "$name")")
    else
        failed=yes
        results+=("$(printf 'FAILED  %5d s  %s: %s' $((SECONDS - from)) "$name" "$work/$name.log")")
        tail -n 20 "$work/$name.log" >&2
    fi
    echo "${results[-1]}"
}

# What runs a binary of the target on this machine.
runner() {
    case "$1" in
        "$(uname -m)"-*) ;;
        aarch64-*) echo qemu-aarch64-static ;;
        *) echo qemu-arm-static ;;
    esac
}

# A command in the root ROOT, with what a kernel shows of processes and devices: inside [--userspec=USER] ROOT COMMAND…
inside() {
    local root="$1"
    [[ "$1" != --* ]] || root="$2"
    mkdir -p "$root/proc" "$root/dev"
    # shellcheck disable=SC2016 # the inner shell expands them
    unshare --mount sh -c \
        'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$@"' "$root" "$@"
}

# A function in the background is a shell, which has the program as its child.
end_reflector() {
    pkill -TERM -P "$1" || kill -TERM "$1"
    wait "$1" || true
}

# A ping between two processes of the binary that the words start.
ping_with() {
    local port=$((20000 + RANDOM % 10000)) reflector answered
    "$@" serve --bind "127.0.0.1:$port" &
    reflector=$!
    sleep 1
    "$@" ping "127.0.0.1:$port" -n 200 --timeout 5s --no-record --json >"$work/ping.json"
    end_reflector "$reflector"
    answered="$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["answered"])' "$work/ping.json")"
    [ "$answered" = 200 ] || die "$answered answers of 200"
}

packages() {
    local absent=() tool
    declare -A package=([buildah]=buildah [mmdebstrap]=mmdebstrap [rpm]=rpm [file]=file [qemu-arm-static]=qemu-user-static
        [systemd-analyze]=systemd [makepkg]=makepkg [bsdtar]=libarchive-tools [nix-instantiate]=nix-bin [lintian]=lintian
        [shellcheck]=shellcheck)
    for tool in "${!package[@]}"; do
        command -v "$tool" >/dev/null || absent+=("${package[$tool]}")
    done
    if [ ${#absent[@]} -gt 0 ]; then
        apt-get update --quiet
        apt-get install --quiet --yes --no-install-recommends "${absent[@]}"
    fi
    command -v kubeconform >/dev/null || GOBIN="$CARGO_TARGET_DIR/tools/bin" go install github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0
    xargs cargo install --locked --root "$CARGO_TARGET_DIR/tools" <packaging/tools.txt
    for tool in readers python_package:python workflows; do
        [ -x "$CARGO_TARGET_DIR/${tool#*:}/bin/python" ] || python3 -m venv "$CARGO_TARGET_DIR/${tool#*:}"
        "$CARGO_TARGET_DIR/${tool#*:}/bin/pip" install --quiet --requirement "scripts/${tool%:*}.txt"
    done
}

files() { scripts/dist.sh "${built[@]}"; }

size() {
    local target bytes
    for target in "${built[@]}"; do
        bytes="$(stat --format=%s "dist/latlab-$version-$target/latlab")"
        echo "$target: $bytes bytes"
        [ "$bytes" -le "$size_max" ] || die "the binary for $target has $bytes bytes, more than $size_max"
    done
}

archives() {
    local target folder file latlab
    (cd dist && sha256sum --check --quiet SHA256SUMS)
    for target in "${built[@]}"; do
        rm -rf "$work/archive"
        mkdir "$work/archive"
        tar -xf "dist/latlab-$version-$target.tar.gz" -C "$work/archive"
        folder="$work/archive/latlab-$version-$target"
        for file in man/latlab.1 man/latlab-ping.1 completions/latlab.{bash,zsh,fish} latlab.cdx.json systemd/latlab.service \
            licences/{LICENSE-MIT,LICENSE-APACHE,LICENSE-cyclonedds,LICENSE-musl,THIRD-PARTY,COPYRIGHT-library.html}; do
            [ -s "$folder/$file" ] || die "$target has no $file"
        done
        read -ra latlab <<<"$(runner "$target") $folder/latlab"
        [ "$("${latlab[@]}" -V)" = "latlab $version" ] || die "$target does not state its version"
        ping_with "${latlab[@]}"
    done
}

# From another directory, with nothing of the first build.
reproducible() {
    local again="$work/again" target="${built[0]}" readers="$CARGO_TARGET_DIR/readers"
    rm -rf "$again"
    git worktree prune
    git worktree add --detach "$again" HEAD
    LATLAB_URL="" ZIG_PYTHON="$readers/bin/python" WHEEL_PYTHON="$python" CARGO_TARGET_DIR="$again/target" \
        "$again/scripts/dist.sh" "$target"
    for file in "$again"/dist/*"$target"*.tar.gz "$again"/dist/*.{deb,rpm,whl}; do
        cmp "$file" "dist/$(basename "$file")"
    done
    git worktree remove --force "$again"
}

# Names and modes of all files but those that every run of a package manager changes.
listing() {
    (cd "$1" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/rpm -o -path ./var/lib/apt -o -name .rpmdb -o \
        -path ./var/log -o -path ./var/cache \) -prune -o \
        -printf '%p %M %U\n' | sort; cat etc/passwd etc/group)
}

fresh_root() {
    [ -e "$work/fresh.tar" ] || mmdebstrap --variant=minbase --include=systemd,passwd bookworm "$work/fresh.tar"
    rm -rf "$work/fresh"
    mkdir "$work/fresh"
    tar -xf "$work/fresh.tar" -C "$work/fresh"
    listing "$work/fresh" >"$work/before"
}

# The reflector as the unit starts it, measured from the same root.
try_installed() {
    local root="$work/fresh" port=9862 reflector
    inside "$root" latlab --version
    inside "$root" latlab ping -n 100 --no-record -q
    systemd-analyze verify --man=no --root="$root" latlab.service
    rm -f "$root/etc/latlab.key"
    inside "$root" latlab keygen /etc/latlab.key
    # As systemd hands the key to a service that is not root.
    chroot "$root" install -D --group latlab --mode 0440 /etc/latlab.key /run/credentials/latlab/key
    inside --userspec=latlab:latlab "$root" env HOME=/nonexistent \
        latlab serve --bind "127.0.0.1:$port" --psk-file /run/credentials/latlab/key &
    reflector=$!
    sleep 1
    inside "$root" latlab ping "127.0.0.1:$port" --psk-file /etc/latlab.key -n 100 --no-record -q
    end_reflector "$reflector"
    rm -r "$root/etc/latlab.key" "$root/run/credentials"
}

expect_no_rest() {
    listing "$work/fresh" >"$work/after"
    diff "$work/before" "$work/after" || die "the removed package left something"
}

deb() {
    fresh_root
    # The authors have no common address, and the changelog is not in the form of Debian.
    lintian --allow-root --fail-on error --suppress-tags malformed-contact,no-changelog "dist/latlab_${version}_amd64.deb"
    cp "dist/latlab_${version}_amd64.deb" "$work/fresh/latlab.deb"
    inside "$work/fresh" apt-get install --quiet --yes /latlab.deb
    try_installed
    inside "$work/fresh" apt-get purge --quiet --yes latlab
    rm "$work/fresh/latlab.deb"
    expect_no_rest
}

rpm_package() {
    fresh_root
    # Directories that belong to others in a system of rpm.
    mkdir -p "$work/fresh/usr/share/"{fish/vendor_completions.d,zsh/site-functions,licenses}
    listing "$work/fresh" >"$work/before"
    rpm --root "$work/fresh" --initdb
    # The root is one of Debian, whose shell no package of rpm provides.
    rpm --root "$work/fresh" --install --nodeps "dist/latlab-$version.x86_64.rpm"
    try_installed
    rpm --root "$work/fresh" --erase latlab
    expect_no_rest
}

# In an environment with nothing but what the wheel asks for.
wheel() {
    rm -rf "$work/wheel"
    python3 -m venv "$work/wheel"
    "$work/wheel/bin/pip" install --quiet "$(echo dist/latlab-"$version"-*x86_64*.whl)"
    PATH="$work/wheel/bin:$PATH" LATLAB_STORE="$work/wheel/runs" "$work/wheel/bin/python" - <<'PYTHON'
import subprocess
import latlab
subprocess.run(["latlab", "ping", "-n", "500", "-q"], check=True)
(run,) = latlab.open(__import__("os").environ["LATLAB_STORE"]).runs
assert run.sample("round_trip_delay").n == 500
PYTHON
    scripts/python_package.sh "dist/latlab-$version-x86_64-unknown-linux-musl/latlab" "$python" "$work/python"
}

crates() {
    cargo package --workspace --locked
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
    cargo test --doc --package latlab-stats --package latlab-recording
    cargo install --locked --path crates/latlab --root "$work/installed"
    "$work/installed/bin/latlab" ping -n 100 --no-record -q
}

# Without a daemon. The program runs in the root of the image by itself: a container needs more of the kernel than this
# machine may have.
image() {
    local arch container root program
    for arch in amd64 arm64; do
        container="$(buildah from --arch "$arch" "oci-archive:dist/latlab-$version-image.tar:latlab:$version")"
        buildah inspect --format '{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}' "$container" |
            grep --line-regexp '65532:65532 \[/usr/bin/latlab\] \[serve\]'
        root="$(buildah mount "$container")"
        program="$(runner "$([ "$arch" = amd64 ] && echo x86_64- || echo aarch64-)")"
        if [ -z "$program" ]; then
            ping_with inside --userspec=65532:65532 "$root" /usr/bin/latlab
        else
            ping_with "$program" "$root/usr/bin/latlab"
        fi
        buildah rm "$container"
    done
}

manifests() {
    local tools="$CARGO_TARGET_DIR/workflows/bin" place
    # With the schemas of kubernetes-validate, each made one file: its own would be fetched.
    "$tools/python" - "$work/schemas" <<'PYTHON'
import json, pathlib, sys, kubernetes_validate
source = max((pathlib.Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema").glob("*-local-strict"))
read = lambda name: json.loads((source / name).read_text().replace("/api/_definitions.json#", "#"))
pathlib.Path(sys.argv[1]).mkdir(exist_ok=True)
for name in ["job-batch-v1.json", "daemonset-apps-v1.json"]:
    schema = read(name) | {"$defs": read("_definitions.json")["$defs"]}
    (pathlib.Path(sys.argv[1]) / name).write_text(json.dumps(schema))
PYTHON
    kubeconform -strict -summary -schema-location "$work/schemas/{{.ResourceKind}}{{.KindSuffix}}.json" packaging/kubernetes
    "$tools/check-jsonschema" --builtin-schema vendor.compose-spec packaging/compose.yaml
    for place in README.md python/pyproject.toml packaging/compose.yaml packaging/kubernetes/*.yaml; do
        grep --quiet --fixed-strings "$version" "$place" || die "$place has another version"
    done
}

aur_and_nix() {
    local folder="$work/aur"
    nix-instantiate --parse flake.nix >/dev/null
    rm -rf "$folder"
    mkdir -p "$folder"
    cp dist/PKGBUILD "$folder/"
    chown -R nobody "$folder"
    # Which refuses root, and knows no package of this system.
    (cd "$folder" && setpriv --reuid nobody --regid nogroup --clear-groups env "HOME=$folder" PACMAN=true makepkg --nodeps)
    bsdtar -tf "$folder"/latlab-bin-*.pkg.tar* | grep --line-regexp usr/bin/latlab
}

wanted=("$@")
for target in "${targets[@]}"; do
    if [ -d "$(rustc --print target-libdir --target "$target")" ]; then
        built+=("$target")
    else
        missing+=("not built here: $target, since rustup has no standard library for it")
        failed=yes
    fi
done
# Where makepkg will look for the archives.
export LATLAB_URL="${LATLAB_URL:-file://$work/site}"
mkdir -p "$work/site/releases/download"
ln -sfn "$PWD/dist" "$work/site/releases/download/v$version"
[ "$(id -u)" = 0 ] || die "fresh roots need root"
for name in packages files size archives reproducible deb rpm_package wheel crates image manifests aur_and_nix; do
    part "$name"
done
printf '\n'
printf '%s\n' "${results[@]}" "${missing[@]}"
[ -z "$failed" ]
