#!/usr/bin/env bash
# check_globals.sh BUILD-DIR: no folder's library defines a writable object (style rule 21). Constant tables land in
# .rodata and .data.rel.ro, which pass. Symbols are read, not section sizes: gcc keeps nameless images of initialisers
# (struct err e = ERR_INIT) in .data, and nobody can write to those.
set -euo pipefail
build=${1:?usage: check_globals.sh BUILD-DIR}
found=0

for lib in base experiment evidence audit runner server; do
    archive=$build/$lib/lib$lib.a
    [ -e "$archive" ] || { echo "check_globals: $archive is missing"; exit 1; }
    # name|value|class|type|size|line|section
    hits=$(nm -A -f sysv "$archive" | awk -F'|' '
        { gsub(/ /, "", $7) }
        $4 ~ /SECTION/ { next }
        $7 == "*COM*" || ($7 ~ /^\.(data|bss|tdata|tbss)(\.|$)/ && $7 !~ /^\.data\.rel\.ro/) { print $1 "in " $7 }')
    if [ -n "$hits" ]; then
        printf '%s\n' "$hits"
        found=1
    fi
done
[ "$found" -eq 0 ] || exit 1
echo "check_globals: ok"
