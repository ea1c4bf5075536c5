#!/usr/bin/env bash
# Promise: a user's first hour with `tarn` against a real daemon: every command on real data, with the
# mistakes people make; outputs and exit codes are as documented. The last line counts.
set -u
export LC_ALL=C.UTF-8 TZ=UTC
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
BIN=${TARN_BIN:-$ROOT/build/bin}
unset TARN_TOKEN TARN_SERVER
DIR=$(mktemp -d)
PASSED=0 FAILED=0 SKIPPED=0 DAEMON=

stop_daemon() {
    if [ -n "$DAEMON" ]; then
        kill "$DAEMON" 2>/dev/null
        wait "$DAEMON" 2>/dev/null
        DAEMON=
    fi
}
trap 'stop_daemon; rm -rf "$DIR"' EXIT

pass() { PASSED=$((PASSED + 1)); }
fail() {
    FAILED=$((FAILED + 1))
    echo "FAILED  $1"
    sed 's/^/        out: /' "$DIR/out" | head -20
    sed 's/^/        err: /' "$DIR/err" | head -10
}
finish() {
    echo "$PASSED passed, $FAILED failed, $SKIPPED skipped"
    [ "$FAILED" -eq 0 ]
    exit
}

# try CODE WORDS...: runs tarn; true when it ends with CODE. Output lies in $DIR/out and $DIR/err.
try() {
    local want=$1
    shift
    LAST="tarn $*"
    timeout 120 "$BIN/tarn" "$@" >"$DIR/out" 2>"$DIR/err" </dev/null
    CODE=$?
    [ "$CODE" -eq "$want" ]
}
# check CODE 'PART' WORDS...: ... and standard output (for CODE 0) or error holds PART.
check() {
    local want=$1 part=$2 where=out
    shift 2
    [ "$want" -eq 0 ] || where=err
    if try "$want" "$@" && { [ -z "$part" ] || grep -qF -- "$part" "$DIR/$where"; }; then
        pass
    else
        fail "$LAST: code $CODE, want $want and \"$part\""
    fi
    if [ "$want" -ne 0 ] && [ "$(wc -l <"$DIR/err")" -ne 1 ]; then
        fail "$LAST: an error is one line"
    fi
}
# is 'TEXT' WORDS...: exit code 0 and exactly this output.
is() {
    local text=$1
    shift
    if try 0 "$@" && [ "$(cat "$DIR/out")" = "$text" ]; then
        pass
    else
        fail "$LAST: code $CODE, want: $text"
    fi
}

# ---- a daemon on free ports
"$BIN/tarnd" --set server.grpc_listen=127.0.0.1:0 --set server.http_listen=127.0.0.1:0 --set worker.count=1 \
    --set "server.data_dir=$DIR/data" --set compaction.auto=false 2>"$DIR/log" &
DAEMON=$!
for _ in $(seq 200); do
    grep -q worker.registered "$DIR/log" && break
    sleep 0.1
done
TARN_SERVER=$(sed -n 's/.*server\.ready.* grpc=\([^ ]*\).*/\1/p' "$DIR/log" | head -1)
export TARN_SERVER
: >"$DIR/out"
if [ -z "$TARN_SERVER" ]; then
    cp "$DIR/log" "$DIR/err"
    fail "tarnd did not start"
    finish
fi

# ---- status, smoke
check 0 '"state": "serving"' status
check 0 "workers" status -o table
check 0 '"ok":true' smoke
if grep -q '"ok":false' "$DIR/out"; then fail "smoke"; else pass; fi
check 1 "cannot reach 127.0.0.1:1" --server 127.0.0.1:1 status
check 1 "expected HOST:PORT" status --server nowhere
check 2 "did you mean status" stats

# ---- databases
check 0 "created database shop" db create shop --comment "the shop" -o table
check 1 "shop" db create shop
check 0 '"name":"shop"' db create shop --if-not-exists -ojsonl
check 0 "the shop" db show shop -o table
check 0 "owner" db alter shop --set owner=me
check 0 '"options":{}' db alter shop --reset owner -ojsonl
check 0 "shop" db list
check 1 "nope" db show nope
check 1 "nope" db drop nope
check 0 "" db drop nope --if-exists
check 1 "" db create 'a/b'

# ---- tables
check 0 "bucket = 1, write-only = true (chosen for you" table create shop.orders -o table --primary-key id,dt --partition-by dt \
    --columns 'id BIGINT NOT NULL, item STRING, amount DECIMAL(10, 2), dt DATE'
check 0 '"defaults_applied":{"bucket":"1","write-only":"true"}' table create shop.pk --columns 'id INT, v STRING' --primary-key id -ojsonl
check 1 "shop.orders" table create shop.orders --columns 'id INT'
check 0 "" table create shop.orders --columns 'id INT' --if-not-exists
check 1 "nodb" table create nodb.t --columns 'id INT'
check 1 "" table create shop.bad --columns 'id BIGNIT'
check 1 "" table create shop.bad --columns 'id INT, id INT'
check 1 "nope" table create shop.bad --columns 'id INT' --primary-key nope
check 2 "needs one of" table create shop.bad
check 2 "DATABASE.TABLE" table show orders
check 0 "BIGINT NOT NULL" table show shop.orders -o table
check 0 "created table shop.copy" table create shop.copy --like shop.orders -o table
check 0 "shop.copy2" table rename shop.copy copy2 -o table
check 1 "shop.copy" table show shop.copy
check 0 '"table":"copy2"' table list shop
check 0 "dropped table shop.copy2" table drop shop.copy2 -o table
check 1 "copy2" table drop shop.copy2
check 0 "" table drop shop.copy2 --if-exists
check 1 "no branch x; see tarn branch list" scan 'shop.orders$branch_x'
check 1 "a system table" scan 'shop.orders$files'

# ---- load and scan
cat >"$DIR/a.csv" <<'END'
id,item,amount,dt
1,apple,1.50,2026-01-31
2,"pear, ""ripe""",2.25,2026-01-31
3,"",,2026-02-01
4,中文字,100.00,2026-02-01
END
check 0 "4 rows in 2 files" load shop.orders "$DIR/a.csv" -o table
is 'id,item,amount,dt
1,apple,1.50,2026-01-31
2,"pear, ""ripe""",2.25,2026-01-31
3,"",,2026-02-01
4,中文字,100.00,2026-02-01' scan shop.orders -o csv
check 0 "(4 rows, snapshot 1)" scan shop.orders -o table
is '{"id": 3, "amount": null}' scan shop.orders --columns id,amount --where "item = ''"
is '[
{"id": 1},
{"id": 2}
]' scan shop.orders --columns id --limit 2 -o json
is '[]' scan shop.orders --where 'id > 100' -o json
is '' scan shop.orders --limit 0
check 1 "column idd" scan shop.orders --where 'idd = 1'
check 1 "expected" scan shop.orders --where 'id ='
check 1 "nope" scan shop.orders --columns nope
check 2 "commas" scan shop.orders --columns id,,item
check 1 "nope" scan shop.nope
check 1 "snapshot 99" scan shop.orders --snapshot 99
check 1 "snapshot" scan shop.orders --at 2020-01-01
check 2 "--at" scan shop.orders --at yesterday
check 2 "parquet or arrow" scan shop.orders -o avro

# ---- wrong lines are named by file, line, column and reason
printf 'id,item,amount,dt\n5,x,abc,2026-02-02\n6,y,1.00,2026-02-02\n7,z,2.00,notadate\n' >"$DIR/bad.csv"
check 1 "bad.csv:2: amount: 'abc'" load shop.orders "$DIR/bad.csv"
check 1 "bad.csv:4: dt: 'notadate'" load shop.orders "$DIR/bad.csv" --skip-bad 1
check 0 "1 row in 1 file" load shop.orders "$DIR/bad.csv" --skip-bad 2 -o table
if grep -q "bad.csv:2: amount: 'abc'" "$DIR/err" && grep -q "bad.csv:4: dt:" "$DIR/err"; then pass; else fail "bad rows"; fi
check 0 '"line":4' load shop.orders "$DIR/bad.csv" --skip-bad 2 -ojsonl
printf 'id,dt\n8,2026-02-02\n' >"$DIR/missing.csv"
check 0 "1 row" load shop.orders "$DIR/missing.csv" -o table
printf 'item,dt\nq,2026-02-02\n' >"$DIR/nokey.csv"
check 1 "no column id" load shop.orders "$DIR/nokey.csv"
printf 'id,dt,itme\n8,2026-02-02,a\n' >"$DIR/unknown.csv"
check 1 "did you mean item?" load shop.orders "$DIR/unknown.csv"
printf 'id,dt,item,item\n8,2026-02-02,a,b\n' >"$DIR/dup.csv"
check 1 "twice" load shop.orders "$DIR/dup.csv"
printf 'id,dt,item\n8,2026-02-02\n' >"$DIR/short.csv"
check 1 "short.csv:2:" load shop.orders "$DIR/short.csv"
printf 'id,dt,item\n8,2026-02-02,"abc\n' >"$DIR/quote.csv"
check 1 "quote.csv" load shop.orders "$DIR/quote.csv"
: >"$DIR/empty.csv"
check 1 "empty.csv" load shop.orders "$DIR/empty.csv"
printf 'id,dt\n' >"$DIR/head.csv"
check 0 "nothing to commit" load shop.orders "$DIR/head.csv" -o table
printf '{"id": 9, "dt": "2026-02-03", "item": "j"}\n{"id": "10", "dt": "2026-02-03", "amount": 3.5}\n' >"$DIR/a.jsonl"
check 0 "2 rows" load shop.orders "$DIR/a.jsonl" -o table
printf '{"id": 9, "dt": "2026-02-03"}\n{"id": 10\n' >"$DIR/b.jsonl"
check 1 "b.jsonl:2:" load shop.orders "$DIR/b.jsonl"
printf '{"id": 9, "dt": "2026-02-03", "id": 10}\n' >"$DIR/c.jsonl"
check 1 "c.jsonl:1:" load shop.orders "$DIR/c.jsonl"
printf '{"id": [1], "dt": "2026-02-03"}\n' >"$DIR/d.jsonl"
check 1 "d.jsonl:1: id" load shop.orders "$DIR/d.jsonl"
printf 'not parquet at all' >"$DIR/x.parquet"
check 1 "x.parquet" load shop.orders "$DIR/x.parquet"
check 1 "No such file" load shop.orders "$DIR/nosuch.csv"
check 1 "folder" load shop.orders "$DIR" --format csv
check 2 "compressed" load shop.orders a.csv.gz
check 2 "add --format" load shop.orders "$DIR/a"
check 2 "--format" load shop.orders -
check 1 "primary key" load shop.orders "$DIR/a.csv" --mode append
check 2 "did you mean upsert" load shop.orders "$DIR/a.csv" --mode upsrt
check 1 "nope" load shop.nope "$DIR/a.csv"
printf 'id;op;item;dt\n1;+I;A;2026-01-31\n8;-D;;2026-02-02\n' >"$DIR/op.csv"
check 0 "2 rows" load shop.orders "$DIR/op.csv" --delimiter ';' --op-column op -o table
is '{"id": 1, "item": "A"}
{"id": 2, "item": "pear, \"ripe\""}' scan shop.orders --columns id,item --where "id in (1, 2, 8)"
printf 'id\titem\tdt\n20\tNA\t2026-01-31\n21\t"NA"\t2026-01-31\n' >"$DIR/n.tsv"
check 0 "2 rows" load shop.orders "$DIR/n.tsv" --null NA -o table
is '{"id": 20, "item": null}
{"id": 21, "item": "NA"}' scan shop.orders --columns id,item --where 'id >= 20'
check 0 "snapshot" load shop.orders "$DIR/a.csv" --commit-user me --commit-id 5 -o table
check 0 "had landed before" load shop.orders "$DIR/a.csv" --commit-user me --commit-id 5 -o table
check 1 "identifier 4" load shop.orders "$DIR/a.csv" --commit-user me --commit-id 4
check 2 "needs --commit-user" load shop.orders "$DIR/a.csv" --commit-id 4
check 0 '"state": "landed"' commits shop.orders --user me --id 5 -o json
check 0 '"state": "not committed"' commits shop.orders --user me --id 6 -o json
check 0 '"last_identifier": 5' commits shop.orders --user me -o json
check 2 "--user" commits shop.orders
check 0 "4 rows" load shop.orders "$DIR/a.csv" --mode delete -o table
is '' scan shop.orders --where 'id <= 4'
cat "$DIR/a.csv" >"$DIR/in.csv"
if timeout 60 "$BIN/tarn" load shop.orders - --format csv -o table <"$DIR/in.csv" >"$DIR/out" 2>"$DIR/err" &&
    grep -q "4 rows" "$DIR/out"; then pass; else fail "load from standard input"; fi

# ---- columnar files out and in, and what they are made of
check 0 "" scan shop.orders --to "$DIR/o.parquet"
check 0 "" scan shop.orders --to "$DIR/o.arrow"
check 0 "" scan shop.orders -o parquet
if [ "$(head -c 4 "$DIR/out")" = PAR1 ]; then pass; else fail "parquet on standard output"; fi
check 0 "created table shop.p" table create shop.p --from-file "$DIR/o.parquet" -o table
check 0 "DECIMAL(10, 2)" table show shop.p -o table
check 0 "rows" load shop.p "$DIR/o.parquet" -o table
try 0 scan shop.orders -o csv && cp "$DIR/out" "$DIR/want.csv"
is "$(cat "$DIR/want.csv")" scan shop.p -o csv
check 0 "" table create shop.a --from-file "$DIR/o.arrow" --primary-key id,dt -o table
check 0 "rows" load shop.a "$DIR/o.arrow" -o table
check 1 "x.parquet" table create shop.x --from-file "$DIR/x.parquet"
check 2 "use --columns" table create shop.x --from-file "$DIR/a.csv"
check 0 "" table create shop.n --columns 'a MAP<STRING, INT>, b ROW<x INT, y ARRAY<STRING>>, c BYTES, d DOUBLE'
printf '%s\n' '{"a": {"k": 1}, "b": {"x": 1, "y": ["p", null]}, "c": "AAE=", "d": "NaN"}' >"$DIR/n.jsonl"
check 0 "1 row" load shop.n "$DIR/n.jsonl" -o table
check 0 '{"a": {"k": 1}, "b": {"x": 1, "y": ["p", null]}, "c": "AAE=", "d": "NaN"}' scan shop.n

# ---- changes of a table
check 0 "schema 1" table alter shop.orders --add-column 'note STRING' --after item --set snapshot.num-retained.min=5 -o table
check 0 "schema 2" table alter shop.orders --rename-column note=remark --column-comment remark=hello --comment hi -o table
check 0 "hello" table show shop.orders -o table
check 1 "id" table alter shop.orders --drop-column id
check 1 "nope" table alter shop.orders --drop-column nope
check 2 "nothing to change" table alter shop.orders
check 0 '"remark": null' scan shop.orders --limit 1
check 0 '"id":2' schemas shop.orders
check 1 "alter-column-null-to-not-null.disabled" table alter shop.n --not-null c
check 0 "schema 1" table alter shop.n --add-column 'b.z INT' --after x --move-column d --first --alter-type 'b.x BIGINT' -o table
check 0 "ROW<\`x\` BIGINT, \`z\` INT, \`y\` ARRAY<STRING>>" table show shop.n -o table
check 1 "column b.no does not exist" table alter shop.n --drop-column b.no
check 0 "schema 2" table alter shop.n --drop-column b.y --drop-column c -o table
check 0 '{"d": "NaN", "a": {"k": 1}, "b": {"x": 1, "z": null}}' scan shop.n
check 0 "snapshot.num-retained.min" options shop.orders --stored -o csv
check 0 "snapshot.time-retained,1 h,1 h,false,obeyed by Tarn" options shop.orders -o csv

# ---- looking around, and compaction
check 0 "dt=2026-01-31" files shop.orders -o table
check 0 '"partition":"dt=2026-01-31"' partitions shop.orders
check 0 '"sorted_runs"' buckets shop.orders -ojsonl
check 0 "manifest-" manifests shop.orders -o csv
check 0 '"kind":"APPEND"' snapshots shop.orders
check 0 '"files_left"' plan shop.orders --where "dt = DATE '2026-01-31'" -ojsonl
check 0 "bucket-0" plan shop.orders --explain -o table
check 0 "" compact shop.orders --full --dry-run -o table
try 0 scan shop.orders -o csv && cp "$DIR/out" "$DIR/want.csv"
check 0 "1 of 1 task done" compact shop.orders --full --partition dt=2026-01-31 --wait -o table
check 0 "done" compact shop.orders --full --wait -o table
check 0 "nothing to compact" compact shop.orders --full --wait -o table
is "$(cat "$DIR/want.csv")" scan shop.orders -o csv
check 0 '"state":"done"' jobs --ended
check 0 "full" jobs --ended --explain -o table
check 1 "job 999" jobs 999
check 1 "job 999" jobs 999 --cancel
check 0 "would run" rescale shop.orders --buckets 3 --dry-run -o table
check 0 "done" rescale shop.orders --buckets 3 -o table
check 0 "nothing to rescale" rescale shop.orders --buckets 3 -o table
check 2 "--buckets N" rescale shop.orders
if try 0 scan shop.orders -o csv && [ "$(sort "$DIR/want.csv")" = "$(sort "$DIR/out")" ]; then pass; else fail "$LAST: other rows than before the rescale"; fi
check 2 "KEY=VALUE" compact shop.orders --partition dt

# ---- cancelling, closed pipes, full disks
awk 'BEGIN { print "id,dt,item"; for (i = 0; i < 400000; i++) print i ",2026-03-01,item number " i }' >"$DIR/big.csv"
check 0 "400000 rows" load shop.orders "$DIR/big.csv" -o table
# Interrupted when it has read what there is, and waits for more. (A shell's own children in the background don't hear SIGINT.)
python3 - "$BIN/tarn" "$DIR/big.csv" >"$DIR/out" 2>"$DIR/err" <<'END'
import shutil, signal, subprocess, sys
load = subprocess.Popen([sys.argv[1], "load", "shop.orders", "-", "--format", "csv"], stdin=subprocess.PIPE)
with open(sys.argv[2], "rb") as file:
    shutil.copyfileobj(file, load.stdin)
load.send_signal(signal.SIGINT)
sys.exit(load.wait(30))
END
CODE=$?
if [ $CODE -eq 130 ] && grep -q "interrupted" "$DIR/err"; then pass; else fail "interrupted load: code $CODE"; fi
"$BIN/tarn" scan shop.orders 2>"$DIR/err" | head -1 >"$DIR/out"
if [ "${PIPESTATUS[0]}" -eq 141 ] && [ ! -s "$DIR/err" ]; then pass; else fail "a closed pipe is quiet"; fi
"$BIN/tarn" scan shop.orders >/dev/full 2>"$DIR/err"
if [ $? -eq 1 ] && grep -q "No space left" "$DIR/err"; then pass; else fail "a full disk"; fi
check 1 "longer --timeout" scan shop.orders --timeout "1 ms" -o csv --to "$DIR/never.csv"
if [ ! -e "$DIR/never.csv" ]; then pass; else fail "a scan that failed leaves no file"; fi

# ---- tags, branches, the way back
check 0 "tag v1 names snapshot" tag create shop.orders v1 --keep 30d -o table
check 0 "KEPT UNTIL" tag list shop.orders -o table
check 0 'the branch is table shop.orders$branch_try' branch create shop.orders try --tag v1 -o table
check 0 'the branch is table shop.orders$branch_tried' branch rename shop.orders try tried -o table
check 0 "tried" branch list shop.orders -o table
check 0 "shop.orders is at snapshot" branch fast-forward shop.orders tried -o table
check 0 "nothing of the table was undone" branch fast-forward shop.orders tried -o table
echo '{"id": 1, "dt": "2026-01-31"}' >"$DIR/one.jsonl"
check 0 "1 row" load shop.orders "$DIR/one.jsonl" -o table
try 0 branch fast-forward shop.orders tried -o table
if grep -qE "^snapshot [0-9]+ of the table was undone" "$DIR/out"; then pass; else fail "what a fast-forward undid"; fi
check 0 "dropped branch tried" branch drop shop.orders tried -o table
check 0 "shop.orders would go back from snapshot" rollback shop.orders --to-snapshot 1 --dry-run -o table
check 0 "tag v1 would go" rollback shop.orders --to-snapshot 1 --dry-run -o table
check 0 "shop.orders went back from snapshot" rollback shop.orders --to-snapshot 1 -o table
check 1 "has no tag v1" tag drop shop.orders v1

# ---- what the documents show of views and functions
(cd "$ROOT" && sed -n '/^cat >recent.json/,/^tarn function create/p' docs/operations.md) >"$DIR/objects.sh"
(cd "$DIR" && PATH="$BIN:$PATH" sh -e objects.sh) >"$DIR/out" 2>"$DIR/err" && pass || fail "the documents' view and function"
check 0 "DATE'2026-01-01'" view show shop.recent -o table
check 0 '"definition": "x * y"' function show shop.area
printf '{"query":\n' >"$DIR/bad.json"
check 1 "tarn: $DIR/bad.json: line 2, column 0: unexpected token" view create shop.bad --file "$DIR/bad.json"
echo '{"query": "SELECT 1"}' >"$DIR/bad.json"
check 1 "tarn: $DIR/bad.json: view: \"fields\" is missing" view create shop.bad --file "$DIR/bad.json"

# ---- expiry
check 2 "--keep-last" expire shop.orders --keep-last 0
check 2 "--older-than" expire shop.orders --older-than soon
check 0 "no snapshot of shop.orders expires now" expire shop.orders -o table
check 0 '"kept_by"' expire shop.orders --keep-last 1 --dry-run
check 0 "" db create small
check 0 "" table create small.t --columns 'a INT'
echo '{"a": 1}' >"$DIR/one.jsonl"
for _ in 1 2; do check 0 "1 row" load small.t "$DIR/one.jsonl" -o table; done
check 0 "snapshot 1 of small.t would expire, with 0 data files" expire small.t --keep-last 1 --dry-run -o table
check 1 "database small has 1 table; " db drop small
check 0 "" db drop small --cascade

# ---- not in this version
for name in orphans reconcile doctor user backup; do
    check 1 "tarn: $name: this version of Tarn does not have it yet" "$name" shop.orders
done

# ---- away with it
check 1 "--cascade" db drop shop
check 0 "dropped database shop and its tables" db drop shop --cascade -o table
is '[]' db list

kill "$DAEMON"
wait "$DAEMON"
CODE=$?
DAEMON=
cp "$DIR/log" "$DIR/err"
if [ $CODE -eq 0 ]; then pass; else fail "tarnd ended with $CODE"; fi
if grep -qE ' (error|fatal) ' "$DIR/log"; then
    grep -E ' (error|fatal) ' "$DIR/log" >"$DIR/err"
    fail "tarnd logged errors"
else
    pass
fi
finish
