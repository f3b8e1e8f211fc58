#!/usr/bin/env bash
#
# Prints the class path of artifacts that Maven fetches, with what they depend on.
#
#   ./class-path.sh DIR GROUP:ARTIFACT:VERSION...      DIR is made, for Maven's project
set -euo pipefail

dir=$1
shift
mkdir "$dir"
{
    cat <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>fixtures</groupId>
  <artifactId>fixtures</artifactId>
  <version>1</version>
  <dependencies>
POM
    for artifact in "$@"; do
        IFS=: read -r group name version <<<"$artifact"
        cat <<POM
    <dependency>
      <groupId>$group</groupId>
      <artifactId>$name</artifactId>
      <version>$version</version>
    </dependency>
POM
    done
    printf '  </dependencies>\n</project>\n'
} >"$dir/pom.xml"
(cd "$dir" && mvn -q -B dependency:build-classpath -Dmdep.outputFile=class-path.txt) >&2
cat "$dir/class-path.txt"
