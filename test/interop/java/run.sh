#!/usr/bin/env bash
# [PROGRAM=NAME] run.sh WAREHOUSE [k=v]...: TarnInterop, or another of these, over WAREHOUSE, a folder or URI; commands on standard input, see the head of its file.
# TARN_JAVA_MORE: more jars, for catalogs that need some. Compiled once for each text and class path into $LAB/classes. Not a test of its own.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "${TARN_SHARED:-$here/../../../../shared}/interop/env.sh"
have "$(paimon_jar)" java
HERE=$here/..   # compile_java looks for $HERE/java/NAME.java
program=${PROGRAM:-TarnInterop}
classes=$(compile_java "$program" "$(java_cp)")
[ $# -gt 0 ] || exit 0   # only compiled
run_tmp
exec env TZ=UTC "$JAVA" -Xmx1g -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dfile.encoding=UTF-8 -Djava.io.tmpdir="$TMP_JAVA" \
  -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp "$classes:$(java_cp)${TARN_JAVA_MORE:+:$TARN_JAVA_MORE}" "$program" "$@"
