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
from random import Random

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


# Values of a type, and what Java lets its columns become; texts are what the targets spell.
WHOLE = [0, 1, -1, 127, -128, 300, -40000]
RETYPED = [
    ("TINYINT", [0, 1, -1, 127, -128], ["SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "BOOLEAN", "STRING", "CHAR(5)", "VARCHAR(2)"]),
    ("INT", [*WHOLE, 2147483647, -2147483648], ["TINYINT", "SMALLINT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 0)", "BOOLEAN", "STRING", "CHAR(3)", "TIMESTAMP(3)",
                                                 "TIMESTAMP(6) WITH LOCAL TIME ZONE"]),
    ("BIGINT", [*WHOLE, (1 << 40) + 7, (1 << 63) - 1, -(1 << 63)], ["TINYINT", "SMALLINT", "INT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "BOOLEAN", "STRING"]),
    ("FLOAT", [0.0, -0.0, 1.5, -1.5, 0.1, 1e10, -3e38, 1e-5], ["TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE", "DECIMAL(10, 2)", "STRING"]),
    ("DOUBLE", [0.0, -0.0, 1.5, -2.5, 0.1, 123456789.125, 1e300, -1e19, 0.005, 12345678.0, 100.0], ["TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DECIMAL(10, 2)", "STRING"]),
    ("DECIMAL(20, 3)", ["0", "1.5", "-1.999", "99999999999999999.999", "-300.001", "0.005"], ["TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)",
                                                                                              "DECIMAL(38, 5)", "STRING", "CHAR(4)"]),
    ("BOOLEAN", [True, False], ["TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 2)", "STRING", "CHAR(3)", "VARCHAR(5)"]),
    ("STRING", ["1", "0", "42", "-7", "+8"], ["TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 2)", "BYTES", "BINARY(4)", "VARBINARY(1)", "CHAR(5)", "VARCHAR(1)"]),
    ("STRING", ["true", "F", "yes", "n", "1"], ["BOOLEAN"]),
    ("STRING", ["1.25", "-0.005", "1e3", "123456.789"], ["DECIMAL(5, 2)", "FLOAT", "DOUBLE"]),
    ("STRING", ["1970-01-01", "2024-02-29"], ["DATE"]),
    ("STRING", ["2024-02-29 12:34:56.789", "1969-12-31 23:59:59"], ["TIMESTAMP(3)", "TIMESTAMP(6)"]),
    ("VARCHAR(9)", ["", "seven77", "\u00e4\u20ac\U0001f600", "ab"], ["CHAR(3)", "CHAR(12)", "VARCHAR(2)", "STRING", "BYTES", "BINARY(3)"]),
    ("CHAR(3)", ["abc"], ["VARCHAR(2)", "CHAR(5)", "STRING"]),
    ("BYTES", [tables.b64(b"abc"), tables.b64(b"")], ["BINARY(2)", "BINARY(5)", "VARBINARY(2)", "STRING"]),
    ("DATE", ["1970-01-01", "1969-12-31", "2024-02-29"], ["STRING", "TIMESTAMP(3)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"]),
    ("TIME(3)", ["00:00:00", "23:59:59.999", "12:34:56.700"], ["STRING", "TIMESTAMP(3)"]),
    # before 1970 Java's casts to DATE and to fewer digits go up, Tarn's down (docs/format.md 2.3)
    ("TIMESTAMP(3)", ["1970-01-01 00:00:00", "1970-01-01 23:59:58.500", "2024-02-29 12:34:56.789"], ["STRING", "INT", "BIGINT", "DATE", "TIME(3)", "TIMESTAMP(0)",
                                                                                                     "TIMESTAMP(6)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"]),
    ("TIMESTAMP(6)", ["1970-01-01 00:00:00", "2024-02-29 12:34:56.789012"], ["STRING", "TIMESTAMP(3)", "TIMESTAMP(9)", "BIGINT"]),
]


def retyped(n):
    """Columns of one type become what Java lets them become: both read the same of the old files, and after a compaction of each."""
    source, values, targets = RETYPED[n]
    form = ("parquet", "avro", "orc")[n % 3]
    if lacks(form, source) or any(lacks(form, t) for t in targets) or (form == "orc" and source.startswith("TIMESTAMP")):
        form = "parquet"
    columns = {"id": "BIGINT", **{f"c{i}": source for i in range(len(targets))}}
    shape = Shape("retyped", columns, [add([{"id": r, **{c: v for c in columns if c != "id"}} for r, v in enumerate([*values, None])])], ("id",), bucket=1, file__format=form)
    table = f"mix.retyped{n}"
    create(table, shape)
    java_writes(table, shape, shape.commits[0])
    out = lab.path("alter.out")
    changes = [{"action": "updateColumnType", "fieldNames": [f"c{i}"], "newDataType": t, "keepNullability": False} for i, t in enumerate(targets)]
    java.ask("alter", "mix.-", lab.write("alter.jsonl", json.dumps({"table": table.split(".")[1], "changes": changes}) + "\n"), out)
    with open(out, encoding="utf-8") as f:
        equal(f.read().strip(), "", "what Java refused")
    types = types_of(tarn.folder(table))
    want = java.rows(table, types=types)
    same_rows(tarn.scan(table, types=types), want, f"tarn, {source} in {form}")
    tarn.tarn("compact", table, "--full", "--wait")
    all_see(table, types, want, "after tarn's compaction")


NEW = ["INT", "BIGINT", "DOUBLE", "STRING", "DECIMAL(20, 2)", "BOOLEAN", "DATE", "ARRAY<INT>", "ROW<x INT, y STRING>", "MAP<STRING, BIGINT>"]
NEXT = {"INT": ["BIGINT", "STRING", "DOUBLE", "DECIMAL(20, 2)", "SMALLINT", "BOOLEAN"], "BIGINT": ["INT", "STRING", "FLOAT"], "DOUBLE": ["FLOAT", "STRING"],
        "DECIMAL(20, 2)": ["DOUBLE", "DECIMAL(10, 1)", "STRING", "INT"], "BOOLEAN": ["INT", "STRING"], "DATE": ["STRING", "TIMESTAMP(3)"], "STRING": ["BYTES", "VARCHAR(3)"],
        "FLOAT": ["DOUBLE"], "SMALLINT": ["BIGINT"]}


def changed_at_random(seed):
    """Columns, and fields within, are added, dropped, renamed, moved and retyped between writes of both, in changing formats."""
    random = Random(f"{os.environ.get('TARN_SEED', 1)} {seed}")
    columns, table, count = {"id": "BIGINT", "i": "INT", "s": "STRING", "r": "ROW<x INT, y STRING>"}, f"mix.random{seed}", 0
    pk = ("id",) if seed % 2 else ()
    start = Shape("start", columns, [], pk, bucket=1 if pk else -1, file__format="avro", write_only="true")
    create(table, start)
    fields = {"r": ["x", "y"]}  # of ROW columns; all INT but y

    def value(sql, name, i):
        if name in fields:
            return None if i % 7 == 6 else {f: i if f != "y" else f"y{i}" for f in fields[name]}
        return None if i % 5 == 4 else NEAR[i % 7] if sql == "DATE" else NEAR[i % 7] + " 01:02:03.004" if sql == "TIMESTAMP(3)" else tables.edge(sql, i)

    def change():
        nonlocal count
        count += 1
        name = random.choice([c for c in columns if c != "id"] or [None])
        kind = random.choice(["add", "add", "drop", "rename", "retype", "retype", "move", "inside"])
        if kind == "drop" and len(columns) > 3:
            fields.pop(name, None)
            del columns[name]
            return {"action": "dropColumn", "fieldNames": [name]}
        if kind == "rename" and name:
            new = f"n{count}"
            columns[new] = columns.pop(name)
            if name in fields:
                fields[new] = fields.pop(name)
            return {"action": "renameColumn", "fieldNames": [name], "newName": new}
        if kind == "retype" and name and columns[name] in NEXT:
            columns[name] = random.choice(NEXT[columns[name]])
            return {"action": "updateColumnType", "fieldNames": [name], "newDataType": columns[name], "keepNullability": True}
        if kind == "move" and name:
            return {"action": "updateColumnPosition", "move": {"fieldName": name, "referenceFieldName": None, "type": "FIRST"}}
        if kind == "inside" and name in fields:
            fields[name].append(f"f{count}")
            return {"action": "addColumn", "fieldNames": [name, f"f{count}"], "dataType": "INT"}
        sql = random.choice(NEW)
        columns[f"c{count}"] = sql
        if sql.startswith("ROW"):
            fields[f"c{count}"] = ["x", "y"]
        return {"action": "addColumn", "fieldNames": [f"c{count}"], "dataType": tables.as_json(sql, tables.Ids())}

    for step in range(6):
        rows = [{c: value(sql, c, step * 10 + j) for c, sql in columns.items()} for j in range(12)]
        for j, r in enumerate(rows):
            r["id"] = (step * 7 + j) % 40
        path = lab.write("random.jsonl", "".join(json.dumps(r) + "\n" for r in rows))
        if step % 2:
            java.ask("write", table, path)
        else:
            tarn.tarn("load", table, path)
        changes = [change() for _ in range(random.randint(1, 3))]
        changes.append({"action": "setOption", "key": "file.format", "value": random.choice(["parquet", "orc", "avro"])})
        out = lab.path("random.out")
        java.ask("alter", "mix.-", lab.write("alter.jsonl", json.dumps({"table": table.split(".")[1], "changes": changes}) + "\n"), out)
        with open(out, encoding="utf-8") as f:
            equal(f.read().strip(), "", f"what Java refused of {changes}")
        types = types_of(tarn.folder(table))
        want = java.rows(table, types=types)
        same_rows(tarn.scan(table, types=types), want, f"tarn, step {step}, {changes}")
        if step == 3:
            tarn.tarn("compact", table, "--full", "--wait")
            all_see(table, types, want, "after tarn's compaction")
    java.ask("compact", table)
    all_see(table, types, want, "after java's compaction")


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
    for n, (source, _, _) in enumerate(RETYPED):
        lab.run(f"columns of {source} retyped ({n})", retyped, n)
    for seed in range(4 if EFFORT == 1 else 40):
        lab.run(f"columns changed at random ({seed})", changed_at_random, seed)
    tarn.stop()
    return lab.done()


sys.exit(main())
