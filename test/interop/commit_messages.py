#!/usr/bin/env python3
"""needs: shared
Promise: what a stock Paimon writer prepares is committed as it stands. Paimon's Java library writes the data files and
serializes its CommitMessages, the daemon commits the bytes, and Java, pypaimon and Tarn see the same rows, value by value, at
every snapshot; the compactions of the library too. Sent twice, they land once.

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


with lab.case("start"):
    tarn.start()
    tarn.tarn("db", "create", "m")
for s in shapes():
    if s.name in SHAPES:
        with lab.case(s.name):
            from_messages(s)
with lab.case("an older state is refused"):
    an_older_state_is_refused()
with lab.case("stop"):
    tarn.stop()
sys.exit(lab.done())
