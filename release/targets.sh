#!/bin/sh
# Checks the types of the Rust crates for Arm, Windows, macOS and WebAssembly (the engine alone), in a
# root below FOLDER with Debian sid's Rust and the sources of its library. With `test`, also runs the
# engine's tests for Arm under qemu and for Windows under Wine; with `count`, only counts the
# instructions of splitting a byte on the tiers of Arm. Needs debootstrap and root's rights.
#
#     release/targets.sh FOLDER [test | count]

set -eu
root=${1:?names no folder}/targets
source=$(cd "$(dirname "$0")/.." && pwd)
mirror=${MIRROR:-http://deb.debian.org/debian}
if [ ! -e "$root/.ready" ]; then
    mkdir -p "$root"
    debootstrap --variant=minbase --include=ca-certificates sid "$root" "$mirror"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    # The certificates of this machine, which may trust a proxy.
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
    # Mirrors may be older than their lists say.
    echo 'Acquire::Check-Valid-Until false;' >"$root/etc/apt/apt.conf.d/99mirror"
    chroot "$root" sh -eu <<'INSIDE'
export DEBIAN_FRONTEND=noninteractive
dpkg --add-architecture arm64
apt-get -q update
apt-get -qy --no-install-recommends install cargo rustc rust-src gcc libc6-dev \
    libstd-rust-dev-wasm32 libstd-rust-dev:arm64 gcc-aarch64-linux-gnu libc6-dev-arm64-cross \
    gcc-mingw-w64-x86-64-win32 qemu-user wine wine64
INSIDE
    mkdir -p "$root/source"
    touch "$root/.ready"
fi
export root source
unshare --mount --pid --fork --mount-proc="$root/proc" sh -eu -c '
    mount --bind "$source" "$root/source"
    mount --bind /dev "$root/dev"
    exec chroot "$root" env -i PATH=/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 sh -eux -c "$(cat)" sh "$@"
' sh "${2:-}" <<'INSIDE'
cd /source
# The library of Rust is built from its sources where Debian has no ready one.
export CARGO_TARGET_DIR=/root/target RUSTC_BOOTSTRAP=1
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export PYO3_CROSS=1 PYO3_CROSS_PYTHON_VERSION=3.13
# No C is compiled for systems without a compiler here.
export CC_wasm32_unknown_unknown=true AR_wasm32_unknown_unknown=true
export CC_aarch64_apple_darwin=true AR_aarch64_apple_darwin=true
if [ "$1" = count ]; then
    cargo build --locked --profile ablation -p bpe-core --example split --target aarch64-unknown-linux-gnu
    set +x
    # qemu logs every instruction of splitting a text once and 21 times; the start varies by 30,000.
    count() {
        qemu-aarch64 -L /usr/aarch64-linux-gnu -one-insn-per-tb -d exec,nochain -D /dev/stderr \
            "$CARGO_TARGET_DIR/aarch64-unknown-linux-gnu/ablation/examples/split" "$@" 2>&1 | grep -c ^Trace
    }
    for pattern in 0 3; do
        for BPE_ENGINE_TIER in portable neon; do
            export BPE_ENGINE_TIER
            for text in README.md core/src/split/mod.rs benchmarks/cases/texts/zh.txt; do
                passes=$(($(count $pattern 21 <$text) - $(count $pattern 1 <$text)))
                echo "$pattern $BPE_ENGINE_TIER $text $passes $(wc -c <$text)"
            done
        done
    done | awk '{ printf "%s %s %s %.1f\n", $1, $2, $3, $4 / 20 / $5 }'
    exit
fi
both="-p bpe-core -p bpe-bindings"
cargo check --locked -p bpe-core --target wasm32-unknown-unknown
cargo check --locked $both --target aarch64-unknown-linux-gnu
cargo check --locked $both -Zbuild-std --target x86_64-pc-windows-gnu
cargo check --locked $both -Zbuild-std --target aarch64-apple-darwin
[ "$1" = test ] || exit 0
export CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine WINEDEBUG=-all
cargo test --locked -p bpe-core --tests --target aarch64-unknown-linux-gnu
cargo test --locked -p bpe-core --tests -Zbuild-std --target x86_64-pc-windows-gnu
INSIDE
