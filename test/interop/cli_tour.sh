#!/usr/bin/env bash
# Promise: a user's first hour with `tarn` against a real daemon: every command on real data, with the
# mistakes people make; outputs and exit codes are as documented. The last line counts.
set -u
export LC_ALL=C.UTF-8 TZ=UTC
BIN=${TARN_BIN:-$(cd "$(dirname "$0")/../.." && pwd)/build/bin}
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
check 0 "bucket = 1 (chosen for you" table create shop.orders -o table --primary-key id,dt --partition-by dt \
    --columns 'id BIGINT NOT NULL, item STRING, amount DECIMAL(10, 2), dt DATE'
check 0 '"defaults_applied":{"bucket":"1"}' table create shop.pk --columns 'id INT, v STRING' --primary-key id -ojsonl
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
check 1 "branch" scan 'shop.orders$branch_x'

# ---- load and scan
cat >"$DIR/a.csv" <<'END'
id,item,amount,dt
1,apple,1.50,2026-01-31
2,"pear, ""ripe""",2.25,2026-01-31
3,"",,2026-02-01
4,中文字,100.00,2026-02-01
END
check 0 "4 rows in 2 files" load shop.orders "$DIR/a.csv" -o table
check 0 "no rows" load shop.orders "$DIR/a.csv" "$DIR/a.csv" --mode delete -o table
[ "$CODE" -eq 0 ] && :
