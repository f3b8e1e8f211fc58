#!/usr/bin/env bash
#
# Makes main/ anew: record batches of every magic, written and read by the classes of Fluss's main
# branch, since no release writes other magics than 0.
#
#   ./generate-main.sh [CHECKOUT]     a clone of github.com/apache/fluss; made where none is given
#
# Needs a JDK 17, Maven for the libraries, and git. Only what the program uses is compiled.
set -euo pipefail

version=0.9.1-incubating # of the release whose jar has the shaded libraries
commit=545c55390296374100d24947df4dcc58c964164d
arrow=15.0.0

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if (($# > 0)); then
    git clone -q --shared "$1" "$work/source"
else
    git clone -q https://github.com/apache/fluss "$work/source"
fi
git -C "$work/source" checkout -q "$commit"

path=$("$here/class-path.sh" "$version" "$work/maven")
mkdir "$work/classes" "$work/main"
path=$path:$("$here/../class-path.sh" "$work/arrow" "org.apache.arrow:arrow-vector:$arrow" \
    "org.apache.arrow:arrow-memory-netty:$arrow")
javac -nowarn -proc:none -Xprefer:source -cp "$path" -d "$work/classes" \
    -sourcepath "$work/source/fluss-common/src/main/java" "$here/generator-main/Batches.java" \
    2>"$work/javac.log" || { cat "$work/javac.log" >&2 && exit 1; }
java --add-opens=java.base/java.nio=ALL-UNNAMED -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
    -cp "$work/classes:$path" Batches "$work/main/batches.log" "$work/main/expected.json"
rm -rf "${here:?}/main"
mv "$work/main" "$here/main"
