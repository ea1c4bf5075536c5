#!/usr/bin/env bash
# needs: shared
# Promise: Paimon's Java library and pypaimon read the golden tables the same after every schema, snapshot,
# manifest, list and index manifest of them was written anew by room format; Java writes on top; and that we read again.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
shared=${TARN_SHARED:-$root/../shared}
export LAB=${LAB:-${TARN_CACHE:-$HOME/.cache/tarn}/lab}
passed=0 failed=0
end() { echo "$passed passed, $failed failed, ${1:-0} skipped"; [ "$failed" = 0 ]; exit; }
. "$shared/interop/env.sh"
if [ ! -s "$(paimon_jar)" ]; then
  echo "Paimon's jar was not fetched: $shared/interop/fetch-engines.sh java python"
  end 1
fi
run_tmp
work=$TMP_JAVA/format
trap 'rm -rf "$TMP_JAVA"' EXIT
mkdir -p "$work/classes" "$work/tmp" "$work/warehouse"

make -C "$root" --no-print-directory -s build/rooms/format.a build/rooms/base.a
"${CC:-gcc}" -std=gnu11 -D_GNU_SOURCE -I"$root/server" -pthread -o "$work/rewrite" "$here/rewrite_metadata.c" \
  "$root/build/rooms/format.a" "$root/build/rooms/base.a" -lssl -lcrypto -lzstd -lz -lsnappy -ljansson -linih -lxxhash -lm
"${JAVA}c" -nowarn -encoding UTF-8 -d "$work/classes" -cp "$(java_cp)" "$root"/test/golden/make/Golden{Tables,Indexes}.java
golden() {
  TZ=UTC "$JAVA" -Xmx1g -Dfile.encoding=UTF-8 -Djava.io.tmpdir="$work/tmp" -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
    -cp "$work/classes:$(java_cp)" GoldenTables "$1" "$work/warehouse" "$2"
}
indexes() {
  TZ=UTC "$JAVA" -Xmx1g -Dfile.encoding=UTF-8 -Djava.io.tmpdir="$work/tmp" -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
    -cp "$work/classes:$(java_cp)" GoldenIndexes "$@"
}
rewrite() { for t in "$work"/warehouse/golden.db/*/; do "$work/rewrite" "${t%/}" "$1"; done; }
same() { # WHAT WANT GOT: folders of JSON lines
  local f
  for f in "$2"/*.jsonl; do
    if cmp -s "$f" "$3/$(basename "$f")"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "$1: $(basename "$f") differs"
      diff "$f" "$3/$(basename "$f")" | head -5 || true
    fi
  done
}

for codec in none deflate zstd; do
  rm -rf "$work/warehouse/golden.db"
  mkdir -p "$work/warehouse/golden.db"
  cp -r "$root"/test/golden/table/*/ "$work/warehouse/golden.db/"
  rewrite $codec
  golden dump "$work/rows-$codec"
  same "Java reads $codec" "$root/test/golden/table" "$work/rows-$codec"
done

if [ -x "$PY" ]; then
  "$PY" - "$work/warehouse" "$root/test/golden/table" > "$work/python.log" 2>&1 <<'PYTHON' && passed=$((passed + 1)) || { failed=$((failed + 1)); tail -5 "$work/python.log"; }
import sys
from pypaimon import CatalogFactory
catalog = CatalogFactory.create({"warehouse": sys.argv[1]})
for name in "append_all append_buckets append_partitioned evolved pk_partitioned pk_sequence pk_dynamic py_append py_pk".split():
    builder = catalog.get_table("golden." + name).new_read_builder()
    got = builder.new_read().to_arrow(builder.new_scan().plan().splits()).num_rows
    want = sum(1 for _ in open(f"{sys.argv[2]}/{name}.jsonl", encoding="utf-8"))
    assert got == want, f"pypaimon reads {got} rows of {name}, not {want}"
PYTHON
fi

# Deletion vectors: Java finds the rows they hide through the index manifest.
indexes vectors "$work/warehouse"
golden dump "$work/rows-vectors"
rewrite zstd
golden dump "$work/rows-vectors-again"
mkdir "$work/rows-dv" && cp "$work/rows-vectors/java_dv.jsonl" "$work/rows-dv/"
same "deletion vectors" "$work/rows-dv" "$work/rows-vectors-again"
grep -q '"indexManifest" *: *"index-manifest-' "$(ls "$work"/warehouse/golden.db/java_dv/snapshot/snapshot-* | sort -V | tail -1)" ||
  { failed=$((failed + 1)); echo "Java made no deletion vectors"; }
if [ -x "$PY" ]; then
  "$PY" - "$work/warehouse" "$work/rows-dv/java_dv.jsonl" > "$work/python.log" 2>&1 <<'PYTHON' && passed=$((passed + 1)) || { failed=$((failed + 1)); tail -5 "$work/python.log"; }
import sys
from pypaimon import CatalogFactory
builder = CatalogFactory.create({"warehouse": sys.argv[1]}).get_table("golden.java_dv").new_read_builder()
got = builder.new_read().to_arrow(builder.new_scan().plan().splits()).num_rows
want = sum(1 for _ in open(sys.argv[2], encoding="utf-8"))
assert got == want, f"pypaimon reads {got} rows past deletion vectors, not {want}"
PYTHON
fi
# And every record of index manifests that no table has, which become a table's for a moment.
mkdir -p "$work/made/manifest" "$work/made/snapshot" "$work/made/schema" "$work/read" "$work/read-again"
for f in "$root"/test/golden/manifest/{java,py}_*.index; do cp "$f" "$work/made/manifest/index-manifest-$(basename "$f")"; done
indexes read "$work/warehouse" "$work"/made/manifest/* > "$work/read/records.jsonl"
"$work/rewrite" "$work/made" zstd
indexes read "$work/warehouse" "$work"/made/manifest/* > "$work/read-again/records.jsonl"
[ "$(wc -l < "$work/read/records.jsonl")" = 6 ] || { failed=$((failed + 1)); echo "Java doesn't read 6 records of index manifests"; }
same "index manifests" "$work/read" "$work/read-again"

golden more "$work/rows-more"
rewrite zstd
golden dump "$work/rows-again"
same "Java's own commits on top" "$work/rows-more" "$work/rows-again"
end
