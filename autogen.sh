#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes configure and Makefile.in.
set -e
cd "$(dirname "$0")"
for tool in autoreconf automake libtoolize pkg-config; do
    command -v $tool >/dev/null || {
        echo "autogen.sh: $tool is missing; type: contrib/install-deps" >&2
        exit 1
    }
done
mkdir -p build-aux
exec autoreconf --install --force "$@"
