#!/usr/bin/env bash
#
# Makes the fixtures of tierd's Kafka layout anew: real log directories, written by real Apache
# Kafka brokers that this script fetches, runs on loopback and stops again.
#
#   ./generate.sh                 all sets
#   ./generate.sh v4 magic0       some of them: v4, v4-live, magic0, magic1
#
# Needs a JDK 17 and Maven, which fetches Kafka by its coordinates. Each set takes about a minute.
# Everything happens in a temporary directory that is removed at the end; a set replaces its
# predecessor only once it is complete and shows what it has to show (generator/Promises.java).
set -euo pipefail

modern=4.4.0
legacy=2.8.2

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
driver=

cleanup() {
    status=$?
    trap - EXIT
    if [[ -n $driver ]] && kill "$driver" 2>/dev/null; then
        wait "$driver" || true # Its shutdown hook takes the brokers with it.
    fi
    if ((status != 0)); then
        for log in "$work"/*/*.log; do
            [[ -e $log ]] && printf '\n== the end of %s\n' "$log" && tail -n 30 "$log"
        done >&2
    fi
    rm -rf "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Prints the class path of one Kafka version, with a logging backend and, by Kafka's own
# dependencies, the codecs.
class_path() {
    "$here/../class-path.sh" "$work/maven-$1" "org.apache.kafka:kafka_2.13:$1" \
        org.slf4j:slf4j-simple:1.7.36
}

modern_path=$(class_path "$modern")
legacy_path=
mkdir "$work/classes"
javac -cp "$modern_path" -d "$work/classes" "$here"/generator/*.java

sets=("$@")
((${#sets[@]} > 0)) || sets=(v4 v4-live magic0 magic1)
for set in "${sets[@]}"; do
    path=$modern_path
    if [[ $set == magic* ]]; then
        [[ -n $legacy_path ]] || legacy_path=$(class_path "$legacy")
        path=$legacy_path
    fi
    echo "making $set"
    java -cp "$work/classes:$modern_path" \
        -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
        -Dkafka.modern="$modern" -Dkafka.legacy="$legacy" \
        Generate "$set" "$work/$set" "$path" "$work/out/$set" &
    driver=$!
    wait "$driver"
    driver=
    rm -rf "${here:?}/$set" "$work/$set"
    mv "$work/out/$set" "$here/$set"
done
