#!/usr/bin/env python3
"""needs: shared
Promise: tables whose data files are ORC, Avro or Parquet, or of several formats, read the same in Paimon's Java library, in pypaimon and in Tarn,
whoever wrote them, before and after the compactions of each; and so they do where the columns were changed between the writes.
formats.py [PART OF A CASE'S NAME]... runs some; TARN_EFFORT above 1 all the tables of test/lib/shapes.py.
"""
import collections
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import shapes as tables  # noqa: E402
from lab import Lab, check, equal, rows_of, same_rows, types_of  # noqa: E402
from peers import Java, Python  # noqa: E402
from shapes import Shape, add  # noqa: E402

EFFORT = int(os.environ.get("TARN_EFFORT", 1))
# Arrow reads no times outside 1677..2262 from ORC, and writes none before 1970 that have a part of a second. (Java's writer of ORC takes days before
# 1582 for those of another calendar, and its reader loses the last second of 1969.)
NEAR = ["1970-01-01", "1970-01-02", "2024-02-29", "2000-01-01", "2262-04-10", "2100-03-01", "2000-10-15"]

lab = Lab("formats")
warehouse = lab.path("wh")
java = Java(lab, warehouse)
python = Python(lab, warehouse)
tarn = lab.daemon("d", warehouse, **{"worker.count": 1, "compaction.auto": "false"})


def lacks(form, sql):
    """Has the format no such type, by Java's writer?"""
    if form == "orc":
        return "BINARY(" in sql or "MULTISET" in sql
    return form == "avro" and any(f"{t}({p})" in sql for t in ("TIMESTAMP", "TIMESTAMP_LTZ") for p in (7, 8, 9))


def shapes_of(form):
    """The tables of test/lib/shapes.py in a format, without the columns it doesn't have."""
    before = tables.DAYS, tables.NEAR_DAYS
    if form == "orc":
        tables.DAYS = tables.NEAR_DAYS = NEAR
    out = {}
    for s in tables.shapes():
        gone = {n for n, sql in s.columns.items() if lacks(form, sql)}
        if gone & set([*s.pk, *s.part]):
            continue
        columns = {n: sql for n, sql in s.columns.items() if n not in gone}
        commits = [[(k, {n: v for n, v in r.items() if n not in gone}) for k, r in c] for c in s.commits]
        options = {k.replace(".", "__").replace("-", "_"): v for k, v in {**s.options, "file.format": form}.items()}
        out[s.name] = Shape(s.name, columns, commits, s.pk, s.part, **options)
    tables.DAYS, tables.NEAR_DAYS = before
    return out


def all_see(table, types, want, when, readers=("tarn", "java")):
    for name in readers:
        got = tarn.scan(table, types=types) if name == "tarn" else (java if name == "java" else python).rows(table, types=types)
        same_rows(got, want, f"{name}, {when}")


def extensions(table):
    names = [f["path"] if "path" in f else f["name"] for f in tarn.json("files", table)]
    return collections.Counter(n.rsplit(".", 1)[1] for n in names)


def create(table, shape):
    java.ask("create", table, lab.write("schema.json", json.dumps(shape.schema)))


def java_writes(table, shape, commit):
    java.ask("write", table, lab.write("w.jsonl", shape.lines(commit)))


def load(table, shape, commit):
    path, words = lab.write("in.jsonl", shape.lines(commit)), []
    if {k for k, _ in commit} == {"-D"}:
        path, words = lab.write("in.jsonl", shape.lines(add([r for _, r in commit]))), ["--mode", "delete"]
    elif {k for k, _ in commit} != {"+I"}:
        words = ["--op-column", "rowkind"]
    tarn.tarn("load", table, path, "--format", "jsonl", *words)


def both_compact(table, shape, want):
    tarn.tarn("compact", table, "--full", "--wait")
    all_see(table, shape.types, want, "after tarn's compaction")
    java.ask("compact", table)
    all_see(table, shape.types, want, "after java's compaction")


def from_java(form, shape):
    table = f"{form}.j_{shape.name}"
    create(table, shape)
    for c in shape.commits:
        java_writes(table, shape, c)
    want = shape.states()[-1]
    all_see(table, shape.types, want, "as java wrote it")
    equal(set(extensions(table)), {form}, "formats of the files")
    both_compact(table, shape, want)


def from_tarn(form, shape):
    table = f"{form}.t_{shape.name}"
    create(table, shape)
    for c in shape.commits:
        load(table, shape, c)
    want = shape.states()[-1]
    equal(set(extensions(table)), {form}, "formats of the files")
    all_see(table, shape.types, want, "as tarn wrote it")
    both_compact(table, shape, want)


PLAIN = {"id": "BIGINT", "i": "INT", "d": "DOUBLE", "s": "STRING", "p": "DECIMAL(20, 2)", "b": "BOOLEAN", "day": "DATE", "t": "TIMESTAMP(3)",
         "u": "TIMESTAMP(6)", "a": "ARRAY<INT>", "r": "ROW<x INT, y STRING>"}


def plain(form, name, pk=(), columns=None, **options):
    before, columns = tables.DAYS, columns or PLAIN
    tables.DAYS = NEAR
    rows = [tables.full_row(columns, i, id=i % 25) for i in range(40)]
    tables.DAYS = before
    return Shape(name, columns, [add(rows[:15]), add(rows[15:30]), add(rows[30:])], pk, bucket=1 if pk else -1, file__format=form, **options)


def old_times():
    """Times before 1970 that Java wrote to ORC are read; what Tarn doesn't write is refused, and nothing is lost."""
    shape = Shape("old", {"id": "BIGINT", "t": "TIMESTAMP(3)", "u": "TIMESTAMP(6)", "n": "TIMESTAMP(9)", "d": "DATE"},
                  [add([{"id": i, "t": f"{day} 12:34:56.789", "u": f"{day} 01:02:03.000001", "n": f"{day} 00:00:00.123456789", "d": d}])
                   for i, (day, d) in enumerate([("1969-12-30", "0001-01-01"), ("1900-03-01", "9999-12-31"), ("1700-01-01", "1582-10-14")])],
                  ("id",), bucket=1, file__format="orc")
    table = "orc.old"
    create(table, shape)
    for c in shape.commits:
        java_writes(table, shape, c)
    want = shape.states()[-1]
    all_see(table, shape.types, want, "as java wrote it")
    said = tarn.tarn("load", table, lab.write("in.jsonl", shape.lines(shape.commits[0])), ok=False).error
    check("part of a second" in said and "parquet" in said, f"the refusal says why, and what to do: {said}")
    all_see(table, shape.types, want, "after the refusal")
    tarn.tarn("table", "alter", table, "--set", "file.format=parquet")
    both_compact(table, shape, want)


def with_python(form):
    """pypaimon reads what Tarn and Java wrote, and the reverse."""
    for pk in ((), ("id",)):
        columns = {n: sql for n, sql in PLAIN.items() if form != "avro" or n != "a"}  # its Avro has no null in an array
        shape = plain(form, "py" + "_".join(pk), pk, columns)
        table = f"{form}.{shape.name}"
        python.ask("create", table, lab.write("schema.json", json.dumps(shape.schema)))
        for i, c in enumerate(shape.commits):
            if i == 0:
                python.ask("write", table, lab.write("w.jsonl", shape.lines(c, None)))
            else:
                (java_writes if i == 1 else load)(table, shape, c)
        want = shape.states()[-1]
        all_see(table, shape.types, want, "as all wrote it", ("tarn", "java", "python"))
        tarn.tarn("compact", table, "--full", "--wait")
        all_see(table, shape.types, want, "after tarn's compaction", ("tarn", "java", "python"))


def per_level():
    """Another format on each level, and on the way a table whose format is altered."""
    shape = plain("parquet", "levels", ("id",), file__format__per__level="0:avro,5:orc", num_levels=6)
    table = "mix.levels"
    create(table, shape)
    load(table, shape, shape.commits[0])
    java_writes(table, shape, shape.commits[1])
    equal(set(extensions(table)), {"avro"}, "level 0")
    all_see(table, shape.types, shape.states()[1], "on level 0")
    tarn.tarn("compact", table, "--full", "--wait")
    equal(extensions(table), {"orc": 1}, "the top level")
    all_see(table, shape.types, shape.states()[1], "on the top level")
    load(table, shape, shape.commits[2])
    all_see(table, shape.types, shape.states()[2], "on both")
    java.ask("compact", table)
    all_see(table, shape.types, shape.states()[2], "after java's compaction")


def altered():
    for pk in ((), ("id",)):
        shape = plain("orc", "altered" + "_".join(pk), pk)
        table = "mix." + shape.name
        create(table, shape)
        for i, (c, form) in enumerate(zip(shape.commits, ("orc", "avro", "parquet"))):
            tarn.tarn("table", "alter", table, "--set", f"file.format={form}")
            (load if i % 2 else java_writes)(table, shape, c)
        equal(len(extensions(table)), 3, "formats of the files")
        want = shape.states()[-1]
        all_see(table, shape.types, want, "in three formats")
        both_compact(table, shape, want)
        tarn.tarn("table", "alter", table, "--set", "file.format=csv")
        check("csv" in tarn.tarn("load", table, lab.write("in.jsonl", shape.lines(shape.commits[0])), ok=False).error, "the refusal names the format")


def statistics(form):
    """What the manifests say of a file bounds it: Java's scan with a filter and Tarn's read the same rows, whose files each wrote."""
    shape = plain(form, "stats")
    table = f"{form}.stats"
    create(table, shape)
    for i, c in enumerate(shape.commits):
        (load if i % 2 else java_writes)(table, shape, c)
    for where in ("id = 7", "day >= '2024-01-01'", "s IS NULL", "p > 1", "t < '1969-12-31 00:00:00'", "i = 42 AND b = true"):
        kept = tarn.tarn("scan", table, "--where", where, "-o", "jsonl").stdout.decode()
        copy = f"{table}_copy"
        tarn.tarn("table", "drop", copy, ok=None)
        tarn.tarn("table", "create", copy, "--like", table, "--option", "file.format=parquet")
        tarn.tarn("load", copy, lab.write("copy.jsonl", "".join(shape.lines(c) for c in shape.commits)))
        same_rows(rows_of(kept, shape.types), rows_of(tarn.tarn("scan", copy, "--where", where, "-o", "jsonl").stdout.decode(), shape.types), where)


def main():
    tarn.start()
    for db in ("orc", "avro", "mix"):
        tarn.tarn("db", "create", db)
    for form in ("orc", "avro"):
        for name, shape in shapes_of(form).items():
            if EFFORT == 1 and name not in ("ap_all", "pk_all"):
                continue
            if not shape.commits:
                continue
            lab.run(f"{form}: java writes {name}, tarn reads and compacts", from_java, form, shape)
            lab.run(f"{form}: tarn writes {name}, java reads and compacts", from_tarn, form, shape)
        lab.run(f"{form}: pypaimon, java and tarn take turns", with_python, form)
        lab.run(f"{form}: what statistics leave out", statistics, form)
    lab.run("times before 1970 in ORC", old_times)
    lab.run("a format for each level", per_level)
    lab.run("a table whose format is altered", altered)
    tarn.stop()
    return lab.done()


sys.exit(main())
