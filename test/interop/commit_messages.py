#!/usr/bin/env python3
"""needs: shared
Promise: what a stock Paimon writer prepares is committed as it stands. Paimon's Java library writes the data files and
serializes its CommitMessages, the daemon commits the bytes, and Java, pypaimon and Tarn see the same rows, value by value, at
every snapshot; the compactions of the library too. Sent twice, they land once. What only a committer knows (row ids, sequence numbers, properties)
is what the library would have given them.

The tables are those of test/lib/shapes.py. Needs grpcio and grpcio-tools (a virtual environment in $TARN_CACHE/pyenv is used
where the running Python hasn't them).
"""
import base64
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import lab as house  # noqa: E402

VENV = os.path.join(os.environ.get("TARN_CACHE", os.path.expanduser("~/.cache/tarn")), "pyenv", "bin", "python")
try:
    import grpc
    from grpc_tools import protoc
except ImportError:
    if os.path.exists(VENV) and "TARN_REEXEC" not in os.environ:
        os.environ["TARN_REEXEC"] = "1"
        os.execv(VENV, [VENV, __file__])
    print("skipped: grpcio and its tools are not installed (scripts/setup)")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

from lab import Lab, check, equal, same_rows  # noqa: E402
from peers import Java, Python  # noqa: E402
from shapes import shapes  # noqa: E402

BATCH = 2**63 - 1
SHAPES = ["ap_all", "ap_bucket", "ap_part", "pk_all", "pk_part4", "pk_keys", "pk_seq", "pk_thin"]

lab = Lab("messages")
warehouse = lab.path("wh")
java = Java(lab, warehouse)
python = Python(lab, warehouse)
tarn = lab.daemon("d", warehouse, **{"compaction.auto": "false", "worker.count": 1})

generated = lab.path("gen")
os.makedirs(generated, exist_ok=True)
names = [f"tarn/v1/{n}" for n in sorted(os.listdir(os.path.join(house.ROOT, "proto/tarn/v1")))]
assert protoc.main(["protoc", f"-I{house.ROOT}/proto", f"--python_out={generated}", f"--grpc_python_out={generated}"] + names) == 0
sys.path.insert(0, generated)
from tarn.v1 import common_pb2, table_pb2, table_pb2_grpc  # noqa: E402


def send(table, lines, user, identifier):
    """What `prepare` wrote, committed."""
    database, name = table.split(".")
    request = table_pb2.CommitRequest(
        table=common_pb2.TableRef(database=database.encode(), table=name.encode()), commit_user=user, commit_identifier=identifier,
        messages=table_pb2.SerializedMessages(version=int(lines[0]), messages=[base64.b64decode(x) for x in lines[1:]]))
    with grpc.insecure_channel(tarn.address) as channel:
        return table_pb2_grpc.TableServiceStub(channel).Commit(request, timeout=60)


def prepared(*words):
    out = lab.path("messages.txt")
    java.ask(*[out if w is None else w for w in words])
    with open(out, encoding="ascii") as file:
        return file.read().split()


def all_see(table, shape, state, when):
    for name, got in (("tarn", tarn.scan(table, types=shape.types)), ("java", java.rows(table, types=shape.types)),
                      ("pypaimon", python.rows(table, types=shape.types))):
        same_rows(got, state, f"{name}, {when}")


def from_messages(shape):
    table = "m." + shape.name
    tarn.tarn("table", "create", table, *shape.create_words())
    states, ids = shape.states(), []
    for n, commit in enumerate(shape.commits):
        lines = prepared("prepare", table, lab.write("w.jsonl", shape.lines(commit)), None)
        answer = send(table, lines, "job", n)
        again = send(table, lines, "job", n)
        equal((again.snapshot_id, again.repeated_commit), (answer.snapshot_id, True), "sent again")
        ids.append(max(answer.snapshot_id, answer.compact_snapshot_id))
    all_see(table, shape, states[-1], "as committed")
    for n, state in zip(ids, states):
        same_rows(tarn.scan(table, "--snapshot", n, types=shape.types), state, f"tarn at snapshot {n}")
        same_rows(java.rows(table, f"scan.snapshot-id={n}", types=shape.types), state, f"java at snapshot {n}")
    if shape.name.startswith("pk_"):
        answer = send(table, prepared("prepare-compact", table, None), "compactor", BATCH)
        check(answer.snapshot_id == 0 and answer.compact_snapshot_id > max(ids), f"a compaction: {answer}")
        all_see(table, shape, states[-1], "after java's compaction, committed by the daemon")


def from_python(shape):
    """Version 14, which ends with a snapshot to check from."""
    table, out = "m.py_" + shape.name, lab.path("messages.txt")
    tarn.tarn("table", "create", table, *shape.create_words())
    commits = [c for c in shape.commits if all(kind == "+I" for kind, _ in c)][:2]
    for n, commit in enumerate(commits):
        python.ask("prepare", table, lab.write("w.jsonl", shape.lines(commit)), out)
        with open(out, encoding="ascii") as file:
            lines = file.read().split()
        equal(lines[0], "14", "the version of pypaimon's messages")
        answer = send(table, lines, "job", n)
        again = send(table, lines, "job", n)
        equal((again.snapshot_id, again.repeated_commit), (answer.snapshot_id, True), "sent again")
    rows = tarn.scan(table, types=shape.types)
    check(sum(rows.values()) > 0, "rows")
    for name, got in (("java", java.rows(table, types=shape.types)), ("pypaimon", python.rows(table, types=shape.types))):
        same_rows(got, rows, name)
    if not shape.pk:
        equal(sum(rows.values()), sum(len(c) for c in commits), "rows")


def an_older_state_is_refused():
    table = "m.pk_seq"
    shape = next(s for s in shapes() if s.name == "pk_seq")
    lines = prepared("prepare", table, lab.write("w.jsonl", shape.lines(shape.commits[0])), None)
    send(table, lines, "job", 100)
    lines = prepared("prepare", table, lab.write("w.jsonl", shape.lines(shape.commits[0])), None)
    try:
        send(table, lines, "job", 50)
    except grpc.RpcError as e:
        check("50" in e.details() and "100" in e.details(), e.details())
    else:
        raise house.Failed("an identifier below the last one was taken")


# ---------------------------------------------------------------- stamps


def committed(table, snapshot):
    """What the snapshot added and removed, and what it says of stamps."""
    out = lab.path("entries.jsonl")
    java.ask("entries", table, out, snapshot)
    with open(out, encoding="utf-8") as file:
        entries = [json.loads(line) for line in file]
    with open(os.path.join(tarn.folder(table), f"snapshot/snapshot-{snapshot}"), encoding="utf-8") as file:
        said = json.load(file)
    mark = "sequence.generation.max-sequence-number"
    return entries, said.get("nextRowId"), (said.get("properties") or {}).get(mark)


def in_order(entries):
    return sorted(entries, key=lambda e: json.dumps(e, sort_keys=True))


def stamped(name, columns, pk, part, counts, **options):
    """The same rows into twin tables, by the library alone and as messages that the daemon commits."""
    tables = [f"m.{name}_java", f"m.{name}_tarn"]
    words = ["--columns", columns] + (["--primary-key", ",".join(pk)] if pk else []) + (["--partition-by", ",".join(part)] if part else [])
    for k, v in options.items():
        words += ["--option", f"{k.replace('__', '.').replace('_', '-')}={v}"]
    for table in tables:
        tarn.tarn("table", "create", table, *words)
    next_row = 0
    for n, count in enumerate(counts):
        rows = lab.write("w.jsonl", "".join(json.dumps({"id": i, "v": i + n, "p": f"p{i % 3}"}) + "\n" for i in range(count)))
        theirs = int(java.ask("write", tables[0], rows))
        ours = send(tables[1], prepared("prepare", tables[1], rows, None), "job", n).snapshot_id
        equal(ours, theirs, "the snapshot")
        (want, want_next, want_mark), (got, got_next, got_mark) = (committed(t, ours) for t in tables)
        equal((got_next, got_mark), (want_next, want_mark), f"nextRowId and the largest sequence number of snapshot {ours}")
        if not part:
            equal(in_order(got), in_order(want), f"entries of snapshot {ours}")
        else:  # the library takes partitions in the order of a hash map
            blank = [[{**e, "first_row": None} for e in in_order(x)] for x in (got, want)]
            equal(blank[0], blank[1], f"entries of snapshot {ours}, but for row ids")
            got.sort(key=lambda e: e["first_row"])
            for e in got:
                equal(e["first_row"], next_row, f"row ids of snapshot {ours} without gaps")
                next_row += e["rows"]
            equal(next_row, got_next, "the next row id")
            places = [e["partition"]["p"] for e in got]
            equal(len([1 for a, b in zip(places, places[1:]) if a != b]), len(set(places)) - 1, "those of a partition in a row")
    return tables


def compacted_likewise(tables):
    theirs = int(java.ask("compact", tables[0]))
    ours = send(tables[1], prepared("prepare-compact", tables[1], None), "compactor", BATCH).compact_snapshot_id
    equal(ours, theirs, "the snapshot of the compaction")
    want, got = (committed(t, ours) for t in tables)
    equal((in_order(got[0]), *got[1:]), (in_order(want[0]), *want[1:]), "the compaction")


def row_ids():
    tables = stamped("rows", "id BIGINT, v BIGINT, p STRING", [], [], [2500, 1, 1200], bucket="-1", row_tracking__enabled="true",
                     target_file_size="1 kb")
    equal([e["first_row"] for e in committed(tables[1], 3)[0]], [2501, 3501], "row ids of the third snapshot")
    stamped("rows_part", "id BIGINT, v BIGINT, p STRING", [], ["p"], [6000, 2, 3], bucket="-1", row_tracking__enabled="true",
            target_file_size="1 kb")


def sequences():
    columns = "id BIGINT, v BIGINT, p STRING"
    for name, options in (("ordering", {"sequence__snapshot_ordering": "true"}), ("carried", {"write__sequence_number_init_mode": "snapshot"})):
        tables = stamped(name, columns, ["id"], [], [40, 25, 3], bucket="2", write_only="true", **options)
        entries, _, mark = committed(tables[1], 3)
        equal((max(e["high"] for e in entries), mark), (3, None) if name == "ordering" else (int(mark), mark), "stamps of the third snapshot")
        compacted_likewise(tables)


with lab.case("start"):
    tarn.start()
    tarn.tarn("db", "create", "m")
for s in shapes():
    if s.name in SHAPES:
        with lab.case(s.name):
            from_messages(s)
for s in shapes():
    if s.name in ("ap_bucket", "ap_part", "pk_part4"):
        lab.run(f"{s.name} by pypaimon", from_python, s)
lab.run("row ids are the library's", row_ids)
lab.run("sequence numbers are the library's", sequences)
with lab.case("an older state is refused"):
    an_older_state_is_refused()
with lab.case("stop"):
    tarn.stop()
sys.exit(lab.done())
