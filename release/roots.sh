#!/bin/sh
# Makes clean Debian roots below FOLDER, to install into: Debian 12, 13 and sid with Python and pip,
# and sid with Rust, where the sdist is built. Needs debootstrap and root's rights.
#
#     release/roots.sh FOLDER

set -eu
folder=${1:?names no folder}
mirror=${MIRROR:-http://deb.debian.org/debian}
python=python3,python3-pip,python3-venv,ca-certificates
mkdir -p "$folder"
make_root() {
    [ -e "$folder/$1/.ready" ] && return
    rm -rf "${folder:?}/$1"
    debootstrap --variant=minbase --include="$3" "$2" "$folder/$1" "$mirror"
    cp /etc/resolv.conf "$folder/$1/etc/resolv.conf"
    # The certificates of this machine, which may trust a proxy.
    cp /etc/ssl/certs/ca-certificates.crt "$folder/$1/etc/ssl/certs/ca-certificates.crt"
    touch "$folder/$1/.ready"
}
make_root bookworm bookworm "$python"
make_root trixie trixie "$python"
make_root sid sid "$python"
make_root sid-rust sid "$python,cargo,rustc,gcc,libc6-dev"
