#!/usr/bin/env python3
"""needs: shared
Promise: the indexes that a table's options ask for are written with each data file, by loads and compactions (also of what is copied
unread), with and without primary key, in the manifest or beside the file: the bytes are those that Java writes for the same rows; Java
leaves out files by ours and Tarn by Java's, the rows found are the same; with the file its index goes.
"""
import glob
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, check, equal, same_rows  # noqa: E402
from peers import Java  # noqa: E402
from shapes import Shape  # noqa: E402

lab = Lab("indexes")
warehouse = lab.path("wh")
java = Java(lab, warehouse)
tarn = lab.daemon("d", warehouse, **{"worker.count": 1, "commit.foreign_check": "0 s", "compaction.auto": "false"})
ROWS = 400
COLUMNS = {"id": "BIGINT", "s": "STRING", "n": "BIGINT", "f": "DOUBLE", "t": "TIMESTAMP(6)", "y": "DATE", "b": "BOOLEAN", "x": "BYTES", "e": "DECIMAL(9, 2)"}
INDEXES = {"file-index.bitmap.columns": "s,n,f,t,y,b", "file-index.bloom-filter.columns": "s, n,id,x", "file-index.bsi.columns": "n,e,y,t", "file-index.bitmap.n.version": "1",
           "file-index.bitmap.t.index-block-size": "128 b",
           **{f"file-index.bloom-filter.{c}.{k}": v for c in ("s", "n", "id", "x") for k, v in (("items", "500"), ("fpp", "0.001"))}}


def row(i):
    """s is a text of an even number, n an even number: the odd ones lie between, and aren't there."""
    if i % 11 == 0:
        return {"id": 2 * i, **{n: None for n in COLUMNS if n != "id"}}
    return {"id": 2 * i, "s": f"text {2 * (i % 60):04}", "n": 2 * (i * 37 % 97), "f": i % 31 / 8, "t": f"2026-01-31 12:00:{i % 60:02}.123456",
            "y": f"2026-02-{1 + i % 28:02}", "b": i % 3 == 0, "x": "AAE=" if i % 2 else "/w==",
            "e": f"{i % 50 - 20}.25"}


def shape(name, pk=(), **options):
    commits = [[("+I", row(c * ROWS + i)) for i in range(ROWS)] for c in (0, 1)]
    return Shape(name, COLUMNS, commits, pk, write_only="true", **options, **INDEXES)


def lines(s, commit):
    return lab.write("rows.jsonl", s.lines(commit, kinds=None))


def beside(table):
    """The index files of a table by what they hold."""
    return sorted(open(f, "rb").read() for f in glob.glob(os.path.join(tarn.folder(table), "bucket-0/*.index")))


def left(table, where):
    plan = tarn.json("plan", table, "--where", where, "--explain")
    plan = plan[0] if isinstance(plan, list) else plan
    return plan["files_left"], plan["pruned_by_index"]


def pruned_by_both(table, s, embedded, when):
    """What isn't there, between bounds: no file is read. What is there is found. Tarn's plan doesn't fetch indexes that lie beside small files."""
    files = len(java.files(table))
    for where, column, value in (("s = 'text 0051'", "s", "text_0051"), ("n = 33", "n", 33), ("id = 401", "id", 401)):
        if embedded:
            files_left, by_index = left(table, where)
            check(files_left == 0 and by_index > 0, f"{table} where {where}, {when}: {files_left} of {files} left, {by_index} ruled out by index")
        if column != "s":  # words of commands have no blanks
            equal(int(java.ask("where", table, lab.path("where"), column, value)), 0, f"java, {table} where {where}, {when}")
    check(left(table, "n = 34")[0] > 0, f"{table}, {when}")
    check(int(java.ask("where", table, lab.path("where"), "n", 34)) > 0, f"java, {table}, {when}")
    same_rows(java.rows(table, types=s.types), s.states()[-1], f"java, {table}, {when}")
    some = [r for c in s.commits for _, r in c if r["n"] == 34]
    equal(sum(tarn.scan(table, "--where", "n = 34", types=s.types).values()), len(some), f"{table}: rows, {when}")


def both(s, embedded):
    """The same commits by Java and by Tarn, then compacted in full by each: everywhere the same indexes."""
    ours, theirs = f"i.tarn_{s.name}", f"i.java_{s.name}"
    java.ask("create", theirs, lab.write("schema.json", json.dumps(s.schema)))
    tarn.tarn("table", "create", ours, *s.create_words())
    for commit in s.commits:
        java.ask("write", theirs, lines(s, commit))
        tarn.tarn("load", ours, lines(s, commit))
    equal(beside(ours), beside(theirs), f"{s.name}: index files of loads")
    equal(len(beside(ours)), 0 if embedded else len(s.commits), f"{s.name}: index files")
    if not s.pk:
        for table in (ours, theirs):
            pruned_by_both(table, s, embedded, "loaded")
    tarn.tarn("compact", ours, "--full", "--wait")
    java.ask("compact", theirs, "write-only=false")
    equal(beside(ours), beside(theirs), f"{s.name}: index files after compaction")
    for table in (ours, theirs):
        pruned_by_both(table, s, embedded, "compacted")
    # each goes on with the other's files
    java.ask("write", ours, lines(s, s.commits[0]))
    java.ask("compact", ours, "write-only=false")
    tarn.tarn("load", theirs, lines(s, s.commits[0]))
    tarn.tarn("compact", theirs, "--full", "--wait")
    same_rows(tarn.scan(ours, types=s.types), java.rows(theirs, types=s.types), f"{s.name}: rows in the end")


def expiry_takes_them():
    """With a file that no snapshot has any more, its index goes."""
    table = "i.tarn_beside"
    files, indexes = ({os.path.basename(f) for f in glob.glob(os.path.join(tarn.folder(table), "bucket-0", p))} for p in ("*.parquet", "*.index"))
    equal({f + ".index" for f in files}, indexes, "each file has its index")
    tarn.tarn("expire", table, "--keep-last", "1")
    files, indexes = ({os.path.basename(f) for f in glob.glob(os.path.join(tarn.folder(table), "bucket-0", p))} for p in ("*.parquet", "*.index"))
    equal({f + ".index" for f in files}, indexes, "each file has its index, and no other is left")
    equal(len(files), 1, "files")


def refused():
    for key, value in (("file-index.bsi.columns", "s"), ("file-index.range-bitmap.columns", "n"), ("file-index.bitmap.columns", "x"), ("file-index.bloom-filter.columns", "b")):
        tarn.tarn("table", "create", "i.refused", "--columns", Shape("r", COLUMNS, []).sql(), "--option", f"{key}={value}")
        said = tarn.tarn("load", "i.refused", lab.write("rows.jsonl", "{}\n"), ok=False).stderr.decode()
        check(key in said and value in said, said)
        tarn.tarn("table", "drop", "i.refused")


def main():
    tarn.start()
    tarn.tarn("db", "create", "i")
    small, large = ({"file-index.in-manifest-threshold": size} for size in ("1 b", "1 mb"))
    cases = [(shape("beside", bucket="-1", **small), False), (shape("copied", bucket="-1", file__block_size="1 kb", **small), False),
             (shape("keyed", ("id",), bucket="1", **small), False), (shape("keyed_embedded", ("id",), bucket="1", **large), True),
             (shape("embedded", bucket="1", bucket_key="id", **large), True)]
    for s, embedded in cases:
        lab.run(f"{s.name}: the bytes are Java's, both leave files out", both, s, embedded)
    lab.run("what has no file any more has no index", expiry_takes_them)
    lab.run("what isn't written is refused by name", refused)
    lab.run("SIGTERM", tarn.stop)
    return lab.done()


sys.exit(main())
