#!/usr/bin/env bash
# flink.sh [k=v]...: FlinkPeer with that configuration; commands on standard input, see the head of FlinkPeer.java. FLINK_VERSION and the like
# as ../shared/interop/env.sh has them. Not a test of its own.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "${TARN_SHARED:-$here/../../../../shared}/interop/env.sh"
have "$FLINK_HOME/lib" flink; have "$(paimon_jar)" flink
HERE=$here/..   # compile_java looks for $HERE/java/NAME.java
cp=$(flink_cp)
classes=$(compile_java FlinkPeer "$cp")
run_tmp
open=(); for p in lang lang.reflect lang.invoke net nio text time util util.concurrent util.concurrent.atomic util.concurrent.locks; do
  open+=("--add-opens=java.base/java.$p=ALL-UNNAMED"); done
log=$TMP_JAVA/log4j.properties
printf '%s\n' status=error rootLogger.level=warn rootLogger.appenderRef.c.ref=c appender.c.type=Console appender.c.name=c \
  appender.c.target=SYSTEM_ERR appender.c.layout.type=PatternLayout 'appender.c.layout.pattern=%d{HH:mm:ss} %p %c{1} %m%n' >"$log"
exec env TZ=UTC "$JAVA" -Xmx1g -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dfile.encoding=UTF-8 -Djava.io.tmpdir="$TMP_JAVA" \
  -Dlog4j.configurationFile="$log" "${open[@]}" -cp "$classes:$cp" FlinkPeer "$@"
