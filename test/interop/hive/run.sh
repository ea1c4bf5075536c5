#!/usr/bin/env bash
# run.sh jars            prints the class path that Paimon's HiveCatalog needs beside Paimon's own jar
# run.sh peer URI        HivePeer, commands on standard input
# Jars come through Maven, once; compiled once for each text. Not a test of its own.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "${TARN_SHARED:-$here/../../../../shared}/interop/services/lib.sh"
java17
classpath "$here"
case ${1:-} in
jars) echo "$CP" ;;
peer) exec env TZ=UTC "$JAVA" -Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp "$CP" HivePeer "$2" ;;
*) exit 2 ;;
esac
