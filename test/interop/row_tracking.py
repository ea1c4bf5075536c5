#!/usr/bin/env python3
"""needs: shared
Promise: in tables that track rows each row keeps its id and its sequence number, as Java's `TABLE$row_tracking` tells them, through
loads and compactions of Tarn, and through compactions of what Java wrote and of what was compacted before, partitioned or not, in Parquet
and ORC; new rows get the ids that follow. (Java 2.0.0 fails to read `$row_tracking` of Avro files, its own too.)
"""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, check, equal, same_rows  # noqa: E402
from peers import Java  # noqa: E402
from shapes import Shape  # noqa: E402

lab = Lab("row_tracking")
warehouse = lab.path("wh")
java = Java(lab, warehouse)
tarn = lab.daemon("d", warehouse, **{"worker.count": 1, "commit.foreign_check": "0 s", "compaction.auto": "false"})
COLUMNS = {"id": "BIGINT", "p": "STRING", "s": "STRING"}
TRACKING = [("_ROW_ID", "BIGINT NOT NULL"), ("_SEQUENCE_NUMBER", "BIGINT NOT NULL")]
ROWS, COMMITS = 50, 4


def row(i):
    return {"id": i, "p": "ab"[i % 2], "s": None if i % 9 == 0 else f"text {i % 13}"}


def tracked(table, s):
    """Rows with their ids and sequence numbers, as Java reads them."""
    out = lab.path("tracked.jsonl")
    java.ask("dump", table + "$row_tracking", out)
    with open(out, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    ids = [r["_ROW_ID"] for r in rows]
    equal(len(set(ids)), len(rows), "row ids, each once")
    return sorted((int(r["_ROW_ID"]), int(r["_SEQUENCE_NUMBER"]), r["id"], r["p"], r["s"]) for r in rows)


def written(table, s, n, writer):
    lines = lab.write("rows.jsonl", s.lines(s.commits[n], kinds=None))
    if writer == "java":
        java.ask("write", table, lines)
    else:
        tarn.tarn("load", table, lines)


def kept(s, writers):
    table = f"r.{s.name}"
    if writers[0] == "java":
        java.ask("create", table, lab.write("schema.json", json.dumps(s.schema)))
    else:
        tarn.tarn("table", "create", table, *s.create_words())
    for n in range(COMMITS - 1):
        written(table, s, n, writers[n % len(writers)])
    before = tracked(table, s)
    equal([r[0] for r in before], list(range(ROWS * (COMMITS - 1))), f"{table}: row ids")
    equal(sorted({r[1] for r in before}), [1, 2, 3], f"{table}: sequence numbers are the snapshots' ids")
    names = java.files(table)
    tarn.tarn("compact", table, "--full", "--wait")
    check(not set(names) & set(java.files(table)), f"{table}: all files were written anew")
    equal(tracked(table, s), before, f"{table}: rows with ids, compacted")
    same_rows(tarn.scan(table, types=s.types), s.states()[COMMITS - 2], f"{table}: rows, compacted")
    written(table, s, COMMITS - 1, writers[-1])
    after = tracked(table, s)
    equal([r for r in after if r[0] < len(before)], before, f"{table}: rows of before")
    equal([r[0] for r in after], list(range(ROWS * COMMITS)), f"{table}: row ids, with new rows")
    equal({r[1] for r in after[len(before):]}, {6 if s.part else 5}, f"{table}: sequence number of new rows")
    tarn.tarn("compact", table, "--full", "--wait")  # of rows that have them stored and of some that don't
    equal(tracked(table, s), after, f"{table}: rows with ids, compacted again")
    same_rows(java.rows(table, types=s.types), s.states()[-1], f"{table}: rows in the end")
    same_rows(tarn.scan(table, types=s.types), s.states()[-1], f"{table}: rows in the end")
    equal(sum(tarn.scan(table, "--where", "id = 77", types=s.types).values()), 1, f"{table}: a row is found")


def main():
    tarn.start()
    tarn.tarn("db", "create", "r")
    commits = [[("+I", row(c * ROWS + i)) for i in range(ROWS)] for c in range(COMMITS)]
    options = {"bucket": "-1", "row-tracking.enabled": "true", "compaction.min.file-num": "2"}
    for name, part, writers, more in (("tarn", (), ("tarn",), {}), ("java", (), ("java",), {}), ("both_parts", ("p",), ("tarn", "java"), {}),
                                      ("orc", (), ("java", "tarn"), {"file.format": "orc"}),
                                      ("rolled", (), ("tarn",), {"target-file-row-num": "20", "file-index.bitmap.columns": "s"})):
        s = Shape(name, COLUMNS, commits, (), part, **options, **more)
        lab.run(f"{name}: rows keep what they are known by", kept, s, writers)
    lab.run("SIGTERM", tarn.stop)
    return lab.done()


sys.exit(main())
