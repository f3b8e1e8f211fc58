#!/bin/sh
#
# demo.sh TIERD: runs tierd's main job on the log directory of a real Kafka broker and on a plain
# log, shows what it did and why, and compares every file with what it was before. Everything happens
# in demo/out, which stays for a closer look. Exits 1 if anything is not as promised.
set -eu

tierd=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
demo=$(cd "$(dirname "$0")" && pwd)
out=$demo/out
export TIERD_LOG_LEVEL=warn

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$(printf '\033[1m') plain=$(printf '\033[0m')
fi

say() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }

fail() {
    echo "demo: $*" >&2
    exit 1
}

# tierd ARGUMENT...: shows the command and runs it.
tierd() {
    printf '\n$ tierd %s\n' "$*"
    "$tierd" "$@"
}

# sums FILE...: a line "sha256  path" for each.
if command -v sha256sum >/dev/null; then
    sums() { sha256sum "$@"; }
else
    sums() { shasum -a 256 "$@"; }
fi

# tree_sums DIRECTORY...: sums of every file whose name ends in .log, the newest of each directory
# first.
tree_sums() {
    find "$@" -type f -name '*.log' | LC_ALL=C sort -r | while read -r path; do sums "$path"; done
}

# prepare makes the two sources. Git keeps no modification times, so all get one, of long ago.
prepare() {
    rm -rf "$out"
    mkdir -p "$out/bucket" "$out/wal/meter"
    cp -R "$demo/../testdata/kafka/v4" "$out/kafka"
    rm "$out/kafka/expected.json" # what the tests expect, and no part of a log directory
    : >"$out/kafka/.lock"         # a broker leaves one behind, and git would not keep it
    cp -R "$demo/policies" "$demo/tierd.yaml" "$out"
    for base in 0 1000 2000 3000; do
        name=$(printf '%020d' $base)
        awk -v from=$base 'BEGIN { for (i = 0; i < 1000; i++) print "record", from + i }' \
            >"$out/wal/meter/$name.log"
        echo "index of $base" >"$out/wal/meter/$name.idx"
    done
    find "$out/kafka" "$out/wal" -exec touch -t 202407010000 {} +
}

# tiers PATH: whether tierd copies logs like the one of the path: not those that are compacted, and
# not the broker's own.
tiers() {
    case $1 in
        kafka/__* | kafka/compacted-* | kafka/formerly-compacted-*) return 1 ;;
    esac
}

# check compares sources and bucket with before.sums, which was taken before tierd ran, and asks
# tierd nothing.
check() {
    tree_sums bucket >bucket.sums
    copied=0 deleted=0 dir=''
    while read -r sum path; do
        closed=yes
        [ "$(dirname "$path")" = "$dir" ] || closed=no # nothing follows the newest of a directory
        dir=$(dirname "$path")
        if [ $closed = yes ] && tiers "$path"; then
            grep -q "^$sum .*/$(basename "$path")\$" bucket.sums ||
                fail "$path is closed, and the bucket has no copy of it"
            copied=$((copied + 1))
        elif [ ! -e "$path" ]; then
            fail "$path is gone, and was not tierd's to delete"
        fi
        if [ ! -e "$path" ]; then
            deleted=$((deleted + 1))
        elif [ "$(sums "$path")" != "$sum  $path" ]; then
            fail "$path is not what it was"
        fi
    done <before.sums
    echo "$(wc -l <before.sums) .log files before; $copied of them closed, each of these in the" \
        "bucket with its SHA-256; $deleted of those gone from disk; every other as it was."
    [ "$deleted" -gt 0 ] || fail "nothing was deleted"
}

prepare
cd "$out"
tree_sums kafka wal >before.sums

say "The configuration"
grep -v '^#' tierd.yaml

say "Copy what is closed, delete what is proved to be copied and due"
tierd check
tierd run --once

say "Where every log stands, and why"
tierd status
tierd ls orders-2024/0

say "Why: a segment that went, one that is too young, one under legal hold, one that still grows"
tierd explain orders-2024/0@10
tierd explain transactions/0@10
tierd explain epochs/0@10
tierd explain orders-2024/0@3399

say "Every deletion is on record, and no record was tampered with"
tierd audit verify

say "What the disk says"
check
for gone in kafka/orders-2024-0/00000000000000000000.log wal/meter/00000000000000002000.log; do
    [ ! -e "$gone" ] || fail "$gone was due, and is there"
done
for kept in kafka/transactions-0 kafka/epochs-0 kafka/compacted-0; do
    [ -e "$kept/00000000000000000000.log" ] || fail "$kept has lost its first segment"
done

say "The archive is whole, and a table comes back from it"
tierd verify
tierd restore orders-2024 --to restored
find restored -name '*.log' | while read -r path; do
    sum=$(sums "$path" | cut -d ' ' -f 1)
    grep -q "^$sum  kafka/${path#restored/}\$" before.sums || fail "$path is not what it was"
done
[ -e restored/orders-2024-0/00000000000000000000.log ] || fail "what was deleted did not come back"

say "Again: nothing is left to do"
tree_sums kafka wal bucket >again.sums
tierd run --once >again.txt
head -n 3 again.txt
tree_sums kafka wal bucket | cmp -s - again.sums || fail "a second run changed something"

printf '\nAll as promised. Everything lies in %s.\n' "$out"
