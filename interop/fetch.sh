#!/usr/bin/env bash
#
# fetch.sh DIRECTORY: brings the systems that the tests run into the directory: what are Go modules
# through the module proxy, Azurite through npm, Kafka through Maven. What is there already stays.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)

missing=()
for tool in go java javac mvn node npm; do
    command -v "$tool" >/dev/null || missing+=("$tool")
done
if ((${#missing[@]})); then
    echo "missing: ${missing[*]}: the systems need Go, a JDK from 17 on, Maven, and Node.js with npm" >&2
    exit 1
fi

cd "$here"
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
        npm ci --no-audit --no-fund --ignore-scripts --loglevel error || { rm package.json; exit 1; })
fi

if ! same kafka/pom.xml || ! [[ -s $out/kafka/class-path ]]; then
    mkdir -p "$out/kafka"
    mvn -q -B -f kafka/pom.xml dependency:build-classpath \
        -Dmdep.outputFile="$out/kafka/class-path.new"
    mv "$out/kafka/class-path.new" "$out/kafka/class-path"
    cp kafka/pom.xml "$out/kafka/"
fi
