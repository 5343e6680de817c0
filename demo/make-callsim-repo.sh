#!/bin/sh
# Makes the repository of callsim in DIR: `main`, and branches that differ from it by the change their name tells:
#   leak           a watch of an ended call is forgotten: it goes on noting, and nothing counts it
#   slower         the answering side asks a slow directory for every call
#   dropped-point  one conditioning point less
#   skipped-point  the program leaves out a point that the definition wants
#   forged-source  the program tells of another source than it was built from
#   thinner-point  the program makes a tenth of that point's calls, and tells of it as if it were whole
# What is measured is fixed by the definition: overrides by environment are refused, so a change is a commit.
#   usage: demo/make-callsim-repo.sh DIR
set -eu
if [ $# != 1 ]; then
    echo "usage: demo/make-callsim-repo.sh DIR" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
dir=$1

mkdir -p "$dir"
git -C "$dir" -c init.defaultBranch=main init -q
cp "$here"/callsim/*.c "$here"/callsim/*.h "$here"/callsim/*.h.in "$here"/callsim/meson.build "$here"/callsim/cleanrun.yaml "$dir"/
cp "$here"/callsim/gitignore "$dir"/.gitignore
git -C "$dir" config user.name "Demo Author"
git -C "$dir" config user.email "author@demo.invalid"
git -C "$dir" add -A
git -C "$dir" commit -qm "callsim: a call-setup load and its gate"

# replace FILE FROM TO: in the one line that contains FROM.
replace() {
    found=$(grep -cF -- "$2" "$dir/$1") || true
    if [ "$found" != 1 ]; then
        echo "make-callsim-repo: '$2' stands $found times in $1, expected once" >&2
        exit 1
    fi
    awk -v from="$2" -v to="$3" 'i = index($0, from) { $0 = substr($0, 1, i - 1) to substr($0, i + length(from)) } { print }' \
        "$dir/$1" >"$dir/$1.new"
    mv "$dir/$1.new" "$dir/$1"
}

# finish NAME MESSAGE: the work tree's changes become the branch.
finish() {
    git -C "$dir" checkout -qb "$1"
    git -C "$dir" commit -qam "$2"
    git -C "$dir" checkout -q main
}

replace answer.c '    watch_end(call->watch);' '    (void) watch_end;'
finish leak "answer: leave the watch to the housekeeping"

replace answer.c '#define DIRECTORY_DELAY_US 0 ' '#define DIRECTORY_DELAY_US 3200 '
finish slower "answer: ask the remote directory"

replace cleanrun.yaml "CALLSIM_SWEEP: '50,100,200,400,800'" "CALLSIM_SWEEP: '50,100,400,800'"
sed -e '/^      - {name: point-200, /d' -e 's/point-100, point-200, point-400/point-100, point-400/' "$dir/cleanrun.yaml" >"$dir/cleanrun.yaml.new"
mv "$dir/cleanrun.yaml.new" "$dir/cleanrun.yaml"
finish dropped-point "cleanrun: a shorter sweep"

replace main.c 'if (s->n_points == MAX_POINTS) {' 'if (!strcmp(item, "200")) continue; if (s->n_points == MAX_POINTS) {'
finish skipped-point "main: the third point takes too long"

replace main.c 'callers_point(r->callers, p->target, start);' 'callers_point(r->callers, p->target == 200 ? 20 : p->target, start);'
finish thinner-point "main: fewer calls at the third point"

replace environment.c 'getenv("CLEANRUN_SOURCE_SHA256")' "\"$(printf %064d 7)\""
finish forged-source "environment: a fixed fingerprint"
