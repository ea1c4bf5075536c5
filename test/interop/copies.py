#!/usr/bin/env python3
"""needs: shared
Promise: a compaction of Tarn that copies row groups unread leaves files that Java, pypaimon and Tarn read as before, whoever wrote
what it copied: of files that overlap nothing, and of what nothing overlaps in files that others do. Java compacts the copies further.
"""
import glob
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import json  # noqa: E402

from lab import Lab, check, equal, same_rows  # noqa: E402
from peers import Java, Python  # noqa: E402
from shapes import Shape  # noqa: E402

lab = Lab("copies")
warehouse = lab.path("wh")
java, python = Java(lab, warehouse), Python(lab, warehouse)
tarn = lab.daemon("d", warehouse, **{"worker.count": 1, "commit.foreign_check": "0 s", "compaction.auto": "false"})
ROWS, COMMITS = 300, 3
COLUMNS = {"id": "BIGINT", "s": "STRING", "n": "DECIMAL(9, 2)", "d": "DECIMAL(20, 2)", "f": "DOUBLE", "t": "TIMESTAMP(3)",
           "b": "BOOLEAN", "y": "DATE", "l": "ARRAY<INT>", "r": "ROW<x INT, y ARRAY<STRING>>"}


def row(i):
    if i % 7 == 0:
        return {"id": i, **{n: None for n in COLUMNS if n != "id"}}
    return {"id": i, "s": f"text-{i % 50}", "n": i / 4, "d": -i * 1000, "f": i / 8, "t": f"2026-01-31 12:00:{i % 60:02}.123", "b": i % 2 == 0,
            "y": f"2026-02-{1 + i % 28:02}", "l": [i, None], "r": {"x": i, "y": ["a", None, str(i)]}}


def shape(name, pk=(), **options):
    """Commits whose keys don't overlap; a row group of a few rows is worth copying."""
    commits = [[("+I", row(c * ROWS + i)) for i in range(ROWS)] for c in (1, 0, 2)]
    return Shape(name, COLUMNS, commits, pk, file__block_size="1 kb", bucket="1", write_only="true", **options)


def lines(commit, kinds=True):
    return lab.write("rows.jsonl", "".join(json.dumps({"rowkind": kind, **r} if kinds else r) + "\n" for kind, r in commit))


def files(table):
    return {f: open(f, "rb").read() for f in glob.glob(os.path.join(tarn.folder(table), "bucket-0/*.parquet"))}


def read_by_all(table, want, types, when):
    same_rows(tarn.scan(table, types=types), want, f"tarn, {when}")
    same_rows(java.rows(table, types=types), want, f"java, {when}")
    same_rows(python.rows(table, types=types), want, f"pypaimon, {when}")


def compact_and_look(table, want, types, when, count):
    """All of `count` live files go into one, which has the pages of each."""
    before = files(table)
    tarn.tarn("compact", table, "--full", "--wait")
    new = [data for f, data in files(table).items() if f not in before]
    equal(len(new), 1, f"new files, {when}")
    found = sum(data[4:260] in new[0] for data in before.values())
    equal(found, count, f"files whose first page is in the new one, {when}")
    read_by_all(table, want, types, when)


def few_in_the_middle(table, s):
    """Rows written again over a few of the keys: what none of them touches is copied out of the merge."""
    again = [("+I", {**row(ROWS + i), "s": "again"}) for i in range(100, 110)] + [("-D", row(ROWS + 120))]
    later = Shape(s.name, COLUMNS, s.commits + [again], s.pk, **{k.replace("-", "_").replace(".", "__"): v for k, v in s.options.items()})
    want = later.states()[-1]
    java.ask("write", table, lines(again))
    before = files(table)
    tarn.tarn("compact", table, "--full", "--wait")
    new = [data for f, data in files(table).items() if f not in before]
    equal(len(new), 1, "new files")
    check(any(data[4:260] in new[0] for data in before.values()), "the first row group is in it as it was")
    read_by_all(table, want, s.types, "a few written again")
    java.ask("write", table, lines(again))
    java.ask("compact", table, "write-only=false")
    read_by_all(table, want, s.types, f"{table} compacted by java")
    check(sum(tarn.scan(table, "--where", f"id = {ROWS + 105}", types=s.types).values()) == 1, "a row is found by its key")


def written_by(writer, s):
    table = f"c.{writer}_{s.name}"
    if writer == "java":
        java.ask("create", table, lab.write("schema.json", json.dumps(s.schema)))
    else:
        tarn.tarn("table", "create", table, *s.create_words())
    for commit in s.commits:
        if writer == "java":
            java.ask("write", table, lines(commit))
        else:
            tarn.tarn("load", table, lines(commit, kinds=False))
    want = s.states()[-1]
    equal(sum(want.values()), ROWS * COMMITS, "rows")
    compact_and_look(table, want, s.types, f"{table} copied", COMMITS)
    if s.pk:
        few_in_the_middle(table, s)
        return
    java.ask("write", table, lines(s.commits[0]))
    more = want + s.states()[0]
    java.ask("compact", table, "write-only=false")
    read_by_all(table, more, s.types, f"{table} compacted by java")
    check(sum(tarn.scan(table, "--where", f"id = {ROWS + 5}", types=s.types).values()) == 2, "rows are found by their id")


def main():
    keyed, append = shape("keyed", ("id",)), shape("append", bucket_key="id")
    tarn.start()
    tarn.tarn("db", "create", "c")
    for s in (keyed, append):
        for writer in ("java", "tarn"):
            lab.run(f"{writer} writes {s.name}, tarn copies, all read", written_by, writer, s)
    lab.run("SIGTERM", tarn.stop)
    return lab.done()


sys.exit(main())
