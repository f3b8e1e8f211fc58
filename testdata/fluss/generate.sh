#!/usr/bin/env bash
#
# Makes the fixtures of tierd's Fluss layout anew: the data directory of a real Apache Fluss tablet
# server, which this script fetches, runs on loopback and stops again.
#
#   ./generate.sh                          v0 and v0-live, of a release
#   ./generate.sh SERVER.jar CLIENT.jar    v1 and v1-live, of a build of Fluss's main branch:
#                                          mvn package -DskipTests -pl fluss-server,fluss-client -am
#
# Needs a JDK 17 and Maven, which fetches Fluss by its coordinates. It takes about two minutes.
# Everything happens in a temporary directory that is removed at the end; the sets replace their
# predecessors only once they are complete and show what they have to show (generator/Promises.java).
set -euo pipefail

version=0.9.1-incubating

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)

cleanup() {
    status=$?
    trap - EXIT
    if ((status != 0)) && [[ -e $work/fluss.log ]]; then
        printf '\n== the end of %s\n' "$work/fluss.log" >&2
        tail -n 30 "$work/fluss.log" >&2
    fi
    rm -rf "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The class path of Fluss, with a logging backend; its jars bring ZooKeeper with them.
path=$("$here/class-path.sh" "$version" "$work/maven")
mkdir "$work/classes" "$work/out"
set=v0
if (($# == 2)); then
    # What the release's own jars bring with them is not needed then.
    path=$1:$2:$(tr ':' '\n' <<<"$path" | grep -v '/fluss-' | paste -sd:)
    version=main set=v1
fi
javac -cp "$path" -d "$work/classes" "$here"/generator/*.java
echo "making $set and $set-live"
java --add-opens=java.base/java.nio=ALL-UNNAMED -cp "$work/classes:$path" \
    -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
    Generate "$version" "$work/out/$set" "$work/out/$set-live" "$work/cluster" 2>"$work/fluss.log"
for made in "$set" "$set-live"; do
    rm -rf "${here:?}/$made"
    mv "$work/out/$made" "$here/$made"
done
