#!/usr/bin/env bash
# Makes test/golden/{table,schema,snapshot,manifest} anew with real Paimon: Java's library and pypaimon.
# Not run by CI: names and times in the files differ each time, and some tests know them.
#   INTEROP=folder of the interop scripts, default ../shared/interop; its engines must have been fetched
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
golden=$(cd "$here/.." && pwd)
. "${INTEROP:-$here/../../../../shared/interop}/env.sh"
have "$(paimon_jar)" java
run_tmp
work=$TMP_JAVA/golden
mkdir -p "$work/classes" "$work/tmp"

"${JAVA}c" -nowarn -encoding UTF-8 -d "$work/classes" -cp "$(java_cp)" "$here/GoldenTables.java"
tables() {
  TZ=UTC "$JAVA" -Xmx1g -Dfile.encoding=UTF-8 -Djava.io.tmpdir="$work/tmp" -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
    -cp "$work/classes:$(java_cp)" GoldenTables "$1" "$work/warehouse" "$work/rows"
}
tables make
"$PY" "$here/golden_tables.py" "$work/warehouse"
tables dump # the rows of pypaimon's tables, as Java sees them

rm -rf "$golden"/table "$golden"/schema "$golden"/snapshot "$golden"/manifest
mkdir -p "$golden"/table "$golden"/schema "$golden"/snapshot "$golden"/manifest
cp -r "$work/warehouse/golden.db/." "$golden/table/"
cp "$work"/rows/*.jsonl "$golden/table/"
find "$golden/table" -name '.*' -type f -delete

# Copies with lasting names for the tests of single files: TABLE FILE NAME
pick() { cp "$golden/table/$1"/$2 "$golden/$3"; }
pick append_all schema/schema-0 schema/java-every-type.json
pick pk_partitioned schema/schema-0 schema/java-primary-key.json
pick evolved schema/schema-2 schema/java-evolved.json
pick py_pk schema/schema-0 schema/pypaimon.json
pick append_all snapshot/snapshot-1 snapshot/java-append.json
pick pk_dynamic snapshot/snapshot-1 snapshot/java-index.json
pick py_pk snapshot/snapshot-1 snapshot/pypaimon.json
last=$(ls "$golden"/table/pk_partitioned/snapshot/snapshot-* | sort -V | tail -1)
cp "$last" "$golden/snapshot/java-compact.json"
# The manifests by what their snapshot calls them.
field() { sed -n "s/.*\"$2\" *: *\"\([^\"]*\)\".*/\1/p" "$1"; }
for t in append_all append_partitioned pk_all pk_dynamic py_append py_pk; do
  d=$golden/table/$t
  list=$(field "$d/snapshot/snapshot-1" deltaManifestList)
  cp "$d/manifest/$list" "$golden/manifest/$t.list"
  cp "$d/manifest/$(field "$d/snapshot/snapshot-1" baseManifestList)" "$golden/manifest/$t.empty-list"
  m=$("$PY" -c 'import fastavro, sys; print(next(fastavro.reader(open(sys.argv[1], "rb")))["_FILE_NAME"])' "$d/manifest/$list")
  cp "$d/manifest/$m" "$golden/manifest/$t.manifest"
done
rm -f "$golden"/manifest/{append_partitioned,pk_all,pk_dynamic,py_append}.empty-list
d=$golden/table/pk_dynamic
cp "$d/manifest/$(field "$d/snapshot/snapshot-1" indexManifest)" "$golden/manifest/pk_dynamic.index"

# Deletion vectors in both forms.
rm -rf "$golden"/deletion_vector
"${JAVA}c" -nowarn -encoding UTF-8 -d "$work/classes" -cp "$(java_cp)" "$here/GoldenVectors.java"
"$JAVA" -cp "$work/classes:$(java_cp)" GoldenVectors "$golden/deletion_vector"

# Indexes of data files, and index manifests that no table of ours has.
rm -rf "$golden"/file_index "$golden"/commit_message
"${JAVA}c" -nowarn -encoding UTF-8 -d "$work/classes" -cp "$(java_cp)" "$here/GoldenIndexes.java"
TZ=UTC "$JAVA" -Xmx1g -Dfile.encoding=UTF-8 -Djava.io.tmpdir="$work/tmp" -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
  -cp "$work/classes:$(java_cp)" GoldenIndexes "$work/warehouse" "$golden/file_index" "$golden/manifest"
"$PY" "$here/golden_indexes.py" "$work/warehouse" "$golden/manifest/py_full.index"

# Commit messages, by each library that can be had: 2.0.0 is here, older ones come from Maven.
messages() { # CLASS_PATH
  rm -rf "$work/messages"
  mkdir -p "$work/messages"
  "${JAVA}c" -nowarn -encoding UTF-8 -d "$work/messages" -cp "$1" "$here/GoldenMetadata.java"
  "$JAVA" -Dfile.encoding=UTF-8 -cp "$work/messages:$1" GoldenMetadata "$golden/commit_message"
}
messages "$(java_cp)"
"$PY" "$here/golden_messages.py" "$golden/commit_message"
for v in 1.3.1 1.4.2; do
  mvn -q -B dependency:get -Dartifact="org.apache.paimon:paimon-bundle:$v" -Dtransitive=false
  messages "$HOME/.m2/repository/org/apache/paimon/paimon-bundle/$v/paimon-bundle-$v.jar:$(java_cp | cut -d: -f2-)"
done
echo "table: $(find "$golden/table" -type f -print0 | xargs -0 cat | wc -c) bytes"
