#!/usr/bin/env bash
#
# Prints the class path of one version of Apache Fluss, its server and its client.
#
#   ./class-path.sh VERSION DIR      DIR is made, for Maven's project
set -euo pipefail

mkdir "$2"
cat >"$2/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>fixtures</groupId>
  <artifactId>fixtures</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.fluss</groupId>
      <artifactId>fluss-server</artifactId>
      <version>$1</version>
    </dependency>
    <dependency>
      <groupId>org.apache.fluss</groupId>
      <artifactId>fluss-client</artifactId>
      <version>$1</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
POM
(cd "$2" && mvn -q -B dependency:build-classpath -Dmdep.outputFile=class-path.txt) >&2
cat "$2/class-path.txt"
