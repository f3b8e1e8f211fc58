#!/usr/bin/env bash
#
# Prints the class path of one version of Apache Fluss, its server and its client.
#
#   ./class-path.sh VERSION DIR      DIR is made, for Maven's project
set -euo pipefail

exec "$(dirname "${BASH_SOURCE[0]}")/../class-path.sh" "$2" "org.apache.fluss:fluss-server:$1" \
    "org.apache.fluss:fluss-client:$1" org.slf4j:slf4j-simple:1.7.36
