#!/bin/sh
# Makes the demo repository in DIR: `main` and four branches of one changed line each.
#   usage: demo/make-repo.sh DIR [--sabotage]
# --sabotage leaves the leak out of its branch, to prove that the demo notices.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$1
sabotage=${2:-}

mkdir -p "$dir"
git -C "$dir" -c init.defaultBranch=main init -q
cp "$here"/kvcache/*.c "$here"/kvcache/*.h "$here"/kvcache/meson.build "$here"/kvcache/cleanrun.yaml "$dir"/
cp "$here"/kvcache/gitignore "$dir"/.gitignore
git -C "$dir" config user.name "Demo Author"
git -C "$dir" config user.email "author@demo.invalid"
git -C "$dir" add -A
git -C "$dir" commit -qm "kvcache: a least-recently-used cache and its benchmark"

# branch NAME MESSAGE FILE FROM TO: replaces exactly one line that contains FROM.
branch() {
    git -C "$dir" checkout -qb "$1" main
    found=$(grep -cF -- "$4" "$dir/$3") || true
    if [ "$found" != 1 ]; then
        echo "make-repo: '$4' stands $found times in $3, expected once" >&2
        exit 1
    fi
    awk -v from="$4" -v to="$5" 'i = index($0, from) { $0 = substr($0, 1, i - 1) to substr($0, i + length(from)) } { print }' \
        "$dir/$3" >"$dir/$3.new"
    mv "$dir/$3.new" "$dir/$3"
    git -C "$dir" commit -qam "$2"
    git -C "$dir" checkout -q main
}

branch tidy-names "cache: say what is counted" cache.h \
    '/* hash chain entries looked at */' '/* entries looked at in a hash chain */'
if [ "$sabotage" = --sabotage ]; then
    branch forget-to-free "cache: release values later" cache.c '    (void) c;' '    (void) c; /* nothing kept */'
else
    branch forget-to-free "cache: release values later" cache.c \
        '    (void) c;' '    if (c->counters.evictions % 16 == 1) return;'
fi
branch more-work "bench: look twice" bench.c \
    '    const char *value = cache_get(b->cache, key, &len);' \
    '    const char *value = (cache_get(b->cache, key, &len), cache_get(b->cache, key, &len));'
branch bigger-cache "bench: a larger cache" bench.c '#define CAPACITY 20000' '#define CAPACITY 40000'
