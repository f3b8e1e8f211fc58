#!/usr/bin/env bash
#
# fetch.sh DIRECTORY [tiered]: brings the systems that the tests run into the directory: what are Go
# modules through the module proxy, Azurite through npm, Kafka and Fluss through Maven; with tiered,
# also the Kafka that is measured. What is there already stays; what Maven and npm keep for
# themselves is there too. A download that fails is tried again.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)

missing=()
for tool in go java javac mvn node npm kcat; do
    command -v "$tool" >/dev/null || missing+=("$tool")
done
if ((${#missing[@]})); then
    echo "missing: ${missing[*]}: the systems need Go, a JDK from 17 on, Maven, Node.js with npm, and kcat" >&2
    exit 1
fi

# again COMMAND...: up to four times, until it succeeds.
again() {
    local wait
    for wait in 5 15 45; do
        "$@" && return
        echo "failed: $*: again in $wait s" >&2
        sleep "$wait"
    done
    "$@"
}

cd "$here"
again go mod download
CGO_ENABLED=0 go build -o "$out/bin/" tool

# same FILE...: whether these files are those that the copy in the directory was made from.
same() {
    local file
    for file in "$@"; do cmp -s "$file" "$out/$file" || return 1; done
}

if ! same azurite/package.json azurite/package-lock.json; then
    mkdir -p "$out/azurite"
    cp azurite/package-lock.json "$out/azurite/"
    cp azurite/package.json "$out/azurite/package.json.new"
    (cd "$out/azurite" && mv package.json.new package.json &&
        again npm ci --cache "$out/npm" --no-audit --no-fund --ignore-scripts --loglevel error ||
        { rm package.json; exit 1; })
fi

for pom in kafka "${@:2}"; do
    if ! same "$pom/pom.xml" || ! [[ -s $out/$pom/class-path ]]; then
        mkdir -p "$out/$pom"
        again mvn -q -B -f "$pom/pom.xml" -Dmaven.repo.local="$out/maven" \
            dependency:build-classpath -Dmdep.outputFile="$out/$pom/class-path.new"
        mv "$out/$pom/class-path.new" "$out/$pom/class-path"
        cp "$pom/pom.xml" "$out/$pom/"
    fi
done

# The generator of testdata/fluss knows what a tablet server needs.
version=$(sed -n 's/.*flussVersion = "\(.*\)".*/\1/p' fluss_test.go)
fluss() {
    rm -rf "$out/fluss-$version"
    MAVEN_OPTS="-Dmaven.repo.local=$out/maven" \
        ../testdata/fluss/class-path.sh "$version" "$out/fluss-$version" >/dev/null
}
[[ -s $out/fluss-$version/class-path.txt ]] || again fluss
