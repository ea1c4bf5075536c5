#!/usr/bin/env python3
"""needs: shared
Promise: the rows of tables with merge engines other than deduplicate are those that Paimon's Java library reads, value by
value: of random histories, whoever wrote them, before and after compactions of either. TARN_EFFORT > 1 runs more histories.
engines.py [PART OF A CASE'S NAME]... runs some; SEED=N repeats histories.
"""
import base64
import collections
import json
import os
import random
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, check, equal, row_of, parse_line, same_rows  # noqa: E402
from peers import Java, Python  # noqa: E402
from shapes import Shape  # noqa: E402

SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
EFFORT = int(os.environ.get("TARN_EFFORT", 1))

lab = Lab("engines")
warehouse = lab.path("wh")
java = Java(lab, warehouse)
python = Python(lab, warehouse)
tarn = lab.daemon("d", warehouse, **{"worker.count": 1, "compaction.auto": "false"})


# ---------------------------------------------------------------- tables

def words(rnd):
    return rnd.choice(["a", "b", "a,b", "c", "", " ", "b,c,d", "\u00e4"])


def bitmap(rnd):
    """A 32-bit roaring bitmap of one or two arrays, in its portable form."""
    containers = []
    for key in sorted(rnd.sample([0, 1, 7, 65535], rnd.randrange(1, 4))):
        start = rnd.randrange(60000)
        values = sorted({start + i for i in range(rnd.choice([1, 3, 40]))} | {rnd.randrange(65536) for _ in range(rnd.choice([0, 2, 3000]))})
        containers.append((key, values))
    out = struct.pack("<II", 12346, len(containers))
    for key, values in containers:
        out += struct.pack("<HH", key, len(values) - 1)
    at = len(out) + 4 * len(containers)
    for _, values in containers:
        out += struct.pack("<I", at)
        at += 2 * len(values)
    for _, values in containers:
        out += struct.pack(f"<{len(values)}H", *values)
    return base64.b64encode(out).decode()


def lines(rnd):
    return [{"k": rnd.choice([1, 2, 3, None]), "s": rnd.choice([1, 2, 3, None]), "v": rnd.choice(["x", "y", None])} for _ in range(rnd.randrange(4))]


def stamped(rnd):
    return {k: rnd.choice([None, {"v": rnd.randrange(9), "ts": rnd.choice([None, "2026-01-01", "2026-01-02", "2026-01-03"])}])
            for k in rnd.sample("abc", rnd.randrange(3))}


VALUES = {
    "TINYINT": lambda r: r.randrange(-3, 4), "SMALLINT": lambda r: r.randrange(-9, 9), "INT": lambda r: r.randrange(-50, 50),
    "BIGINT": lambda r: r.randrange(-10**12, 10**12), "FLOAT": lambda r: r.randrange(-64, 64) / 4, "DOUBLE": lambda r: r.randrange(-64, 64) / 8,
    "DECIMAL(12, 2)": lambda r: f"{r.randrange(-10**5, 10**5) / 100:.2f}", "DECIMAL(38, 4)": lambda r: f"{r.randrange(-10**5, 10**5) / 10000:.4f}",
    "BOOLEAN": lambda r: r.random() < 0.5, "STRING": words, "DATE": lambda r: f"2026-01-{r.randrange(10, 31)}",
    "TIMESTAMP(6)": lambda r: f"2026-01-01 00:00:{r.randrange(10, 60)}.000001", "BYTES": bitmap,
    "ARRAY<INT>": lambda r: [r.choice([1, 2, 3, None]) for _ in range(r.randrange(4))],
    "ARRAY<STRING>": lambda r: [r.choice(["a", "bb", None]) for _ in range(r.randrange(4))],
    "MAP<STRING, INT>": lambda r: {k: r.choice([1, 2, None]) for k in r.sample("abcd", r.randrange(4))},
    "ARRAY<ROW<k INT, s INT, v STRING>>": lines,
    "MAP<STRING, ROW<v INT, ts STRING>>": stamped,
}
ROWS = "ARRAY<ROW<k INT, s INT, v STRING>>"


class Subject:
    """columns beside `id INT`; kinds: those that rows may have; bags: columns whose elements have no order."""

    def __init__(self, name, columns, kinds=("+I",), bags=(), some=0.7, **options):
        self.name, self.kinds, self.bags, self.some = name, kinds, bags, some
        self.columns = {"id": "INT", **columns}
        self.options = {"bucket": "1", **{k.replace("__", "."): v for k, v in options.items()}}

    def row(self, rnd, keys):
        return {"id": rnd.randrange(keys), **{n: VALUES[t](rnd) if rnd.random() < self.some else None for n, t in self.columns.items() if n != "id"}}

    def history(self, rnd, commits, rows, keys):
        return [[(rnd.choice(self.kinds), self.row(rnd, keys)) for _ in range(rnd.randrange(1, rows))] for _ in range(commits)]


def agg(name, columns, **more):
    """columns: {name: (type, function)}"""
    options = {f"fields.{n}.aggregate-function": f for n, (_, f) in columns.items() if f}
    kinds, bags, some = more.pop("kinds", ("+I",)), more.pop("bags", ()), more.pop("some", 0.7)
    s = Subject(name, {n: t for n, (t, _) in columns.items()}, kinds, bags, some, **{"merge-engine": "aggregation"})
    s.options.update(options)
    s.options.update(more.pop("options", {}))
    return s


ALL_KINDS = ("+I", "+I", "+U", "-U", "-D")

SUBJECTS = [
    Subject("pu_plain", {"a": "INT", "b": "STRING", "c": "DOUBLE", "d": "ARRAY<INT>", "e": "BOOLEAN"}, ("+I", "+U"), some=0.5,
            **{"merge-engine": "partial-update"}),
    Subject("pu_remove", {"a": "INT", "b": "STRING", "c": "MAP<STRING, INT>"}, ALL_KINDS, some=0.5,
            **{"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}),
    Subject("pu_ignore", {"a": "INT", "b": "STRING"}, ALL_KINDS, some=0.5, **{"merge-engine": "partial-update", "ignore-delete": "true"}),
    Subject("pu_sequence", {"s": "INT", "a": "INT", "b": "STRING"}, ("+I", "+U"), some=0.6, **{"merge-engine": "partial-update", "sequence.field": "s"}),
    Subject("pu_groups", {"b": "STRING", "g": "INT", "n": "INT", "h1": "INT", "h2": "DATE", "m": "BIGINT", "l": "STRING", "x": "STRING", "y": "DOUBLE"},
            ("+I", "+U"), some=0.7,
            **{"merge-engine": "partial-update", "fields.g.sequence-group": "b,n", "fields.n.aggregate-function": "sum",
               "fields.h1,h2.sequence-group": "m,l", "fields.m.aggregate-function": "max", "fields.l.aggregate-function": "listagg",
               "fields.y.aggregate-function": "last_non_null_value"}),
    Subject("pu_retract", {"b": "STRING", "g": "INT", "n": "INT", "h": "INT", "m": "DECIMAL(12, 2)", "z": "STRING", "x": "STRING"}, ALL_KINDS, some=0.7,
            **{"merge-engine": "partial-update", "fields.g.sequence-group": "b,n", "fields.n.aggregate-function": "sum",
               "fields.h.sequence-group": "m,z", "fields.m.aggregate-function": "sum", "fields.z.aggregate-function": "last_non_null_value"}),
    Subject("pu_drop_group", {"b": "STRING", "g": "INT", "n": "INT", "h": "INT", "m": "STRING"}, ALL_KINDS, some=0.8,
            **{"merge-engine": "partial-update", "fields.g.sequence-group": "b,n", "fields.n.aggregate-function": "sum",
               "fields.h.sequence-group": "m", "partial-update.remove-record-on-sequence-group": "g"}),
    agg("ag_numbers", {"a": ("TINYINT", "sum"), "b": ("SMALLINT", "sum"), "c": ("INT", "sum"), "d": ("BIGINT", "sum"), "e": ("FLOAT", "sum"),
                       "f": ("DOUBLE", "sum"), "g": ("DECIMAL(12, 2)", "sum"), "h": ("DECIMAL(38, 4)", "sum")}, kinds=ALL_KINDS),
    agg("ag_products", {"a": ("DOUBLE", "product"), "b": ("DECIMAL(38, 4)", "product"), "c": ("FLOAT", "product")}),
    agg("ag_chosen", {"a": ("INT", "min"), "b": ("STRING", "max"), "c": ("DECIMAL(38, 4)", "min"), "d": ("TIMESTAMP(6)", "max"), "e": ("DATE", "min"),
                      "f": ("BOOLEAN", "bool_and"), "g": ("BOOLEAN", "bool_or"), "h": ("STRING", "first_value"), "i": ("INT", "first_non_null_value"),
                      "j": ("INT", "first_not_null_value"), "k": ("DOUBLE", "max")}),
    agg("ag_last", {"a": ("INT", "last_value"), "b": ("STRING", "last_non_null_value"), "c": ("DOUBLE", None)}, kinds=ALL_KINDS),
    agg("ag_remove", {"a": ("INT", "sum"), "b": ("STRING", "listagg"), "c": ("STRING", None)}, kinds=("+I", "+I", "-D"),
        options={"aggregation.remove-record-on-delete": "true"}),
    agg("ag_ignore_retract", {"a": ("INT", "max"), "b": ("STRING", "listagg"), "c": ("INT", "sum")}, kinds=ALL_KINDS,
        options={"fields.a.ignore-retract": "true", "fields.b.ignore-retract": "true"}),
    agg("ag_texts", {"a": ("STRING", "listagg"), "b": ("STRING", "listagg"), "c": ("STRING", "listagg")},
        options={"fields.b.list-agg-delimiter": "; ", "fields.c.distinct": "true"}),
    agg("ag_default", {"s": ("INT", None), "a": ("INT", None), "b": ("STRING", "last_value")}, options={"fields.default-aggregate-function": "max", "sequence.field": "s"}),
    agg("ag_collect", {"a": ("ARRAY<INT>", "collect"), "b": ("ARRAY<STRING>", "collect")}, kinds=ALL_KINDS, bags=("b",), options={"fields.b.distinct": "true"}),
    agg("ag_maps", {"a": ("MAP<STRING, INT>", "merge_map")}, kinds=ALL_KINDS),
    agg("ag_keytime", {"a": ("MAP<STRING, ROW<v INT, ts STRING>>", "merge_map_with_keytime")}),
    agg("ag_nested", {"a": (ROWS, "nested_update"), "b": (ROWS, "nested_update"), "c": (ROWS, "nested_update")}, kinds=ALL_KINDS, bags=("a", "b", "c"),
        options={"fields.a.nested-key": "k", "fields.b.nested-key": "k,v", "fields.b.nested-sequence-field": "s",
                 "fields.b.nested-key-null-strategy": "ignore"}),
    agg("ag_nested_limit", {"a": (ROWS, "nested_update"), "c": (ROWS, "nested_partial_update")}, bags=("c",),
        options={"fields.a.count-limit": "3", "fields.c.nested-key": "k"}),
    agg("ag_bitmap", {"a": ("BYTES", "rbm32")}),
    Subject("first_row", {"a": "INT", "b": "STRING"}, ("+I", "+U"), **{"merge-engine": "first-row"}),
]
IN_CI = {"pu_groups", "pu_retract", "ag_numbers", "ag_nested", "first_row"}


def as_shape(subject, commits):
    shape = Shape(subject.name, subject.columns, commits, ["id"])
    shape.options = shape.schema["options"] = subject.options
    return shape


def plain(subject, rows):
    """Rows with what has no order put in one."""
    at = [i for i, n in enumerate(subject.columns) if n in subject.bags]
    out = collections.Counter()
    for row, n in rows.items():
        out[tuple(tuple(sorted(v, key=repr)) if i in at and v is not None else v for i, v in enumerate(row))] += n
    return out


def seen_by(subject, shape, table, reader):
    rows = tarn.scan(table, types=shape.types) if reader == "tarn" else {"java": java, "python": python}[reader].rows(table, types=shape.types)
    return plain(subject, rows)


def all_see(subject, shape, tables, when, want=None):
    for table in tables:
        for reader in ("java", "tarn"):
            got = seen_by(subject, shape, table, reader)
            want = got if want is None else want
            same_rows(got, want, f"{reader} reads {table} {when}, seed {SEED}")
    return want


def some_columns(subject, shape, table, rnd, rows):
    """A projection sees what the whole row shows."""
    names = sorted(rnd.sample(list(subject.columns), 2), key=list(subject.columns).index)
    got = tarn.tarn("scan", table, "--columns", ",".join(names), "-o", "jsonl").stdout.decode()
    types = [t for t in shape.types if t[0] in names]
    at = [list(subject.columns).index(n) for n in names]
    bags = [i for i, n in enumerate(names) if n in subject.bags]
    have, want = collections.Counter(), collections.Counter()
    for line in got.split("\n"):
        if line.strip():
            row = row_of(parse_line(line), types)
            have[tuple(tuple(sorted(v, key=repr)) if i in bags and v is not None else v for i, v in enumerate(row))] += 1
    for row, n in rows.items():
        want[tuple(row[i] for i in at)] += n
    same_rows(have, want, f"columns {names} of {table}, seed {SEED}")


def load(table, shape, commit):
    path = lab.write("in.jsonl", shape.lines(commit))
    words = ["load", table, path, "--format", "jsonl"]
    if any(k != "+I" for k, _ in commit):
        words += ["--op-column", "rowkind"]
    tarn.tarn(*words)


def write_java(table, shape, commit, *sets):
    java.ask("write", table, lab.write("w.jsonl", shape.lines(commit)), *sets)


def history(subject, number):
    """The same commits by Java into one table, by Tarn into another, by both in turns into a third."""
    rnd = random.Random(f"{SEED} {subject.name} {number}")
    commits = subject.history(rnd, rnd.randrange(3, 6), rnd.choice([6, 30]), rnd.choice([3, 12]))
    shape = as_shape(subject, commits)
    tables = [f"e.{who}_{subject.name}_{number}" for who in ("j", "t", "m")]
    for table in tables:
        java.ask("create", table, lab.write("schema.json", json.dumps(shape.schema)))
    hidden = subject.options["merge-engine"] == "first-row"
    want = None
    for i, commit in enumerate(commits):
        for table in tables:
            if table == tables[0] or (table == tables[2] and i % 2 == 0):
                write_java(table, shape, commit, "write-only=true")
            else:
                load(table, shape, commit)
    if not hidden:
        want = all_see(subject, shape, tables, "as written")
        some_columns(subject, shape, tables[1], rnd, want)
    # one table is compacted step by step, by whatever is picked; another at once; the third by Java
    tarn.tarn("compact", tables[0], "--wait")
    tarn.tarn("compact", tables[1], "--full", "--wait")
    java.ask("compact", tables[2])
    want = all_see(subject, shape, tables, "compacted", want)
    tarn.tarn("compact", tables[0], "--full", "--wait")
    tarn.tarn("compact", tables[2], "--full", "--wait")
    all_see(subject, shape, tables, "compacted as a whole", want)
    same_rows(seen_by(subject, shape, tables[1], "python"), want, f"pypaimon reads {tables[1]}, seed {SEED}")
    # on top of that, once more
    more = subject.history(rnd, 1, 20, 12)[0]
    for table in tables[:2]:
        write_java(table, shape, more, "write-only=true")
    load(tables[2], shape, more)
    if hidden:
        for table in tables:
            tarn.tarn("compact", table, "--wait")
    all_see(subject, shape, tables, "after one more commit")


def refused():
    """What an engine can't take is refused before it is in the table, with what to do."""
    tarn.tarn("table", "create", "e.no", "--columns", "id INT NOT NULL, a INT", "--primary-key", "id", "--option", "bucket=1",
              "--option", "merge-engine=partial-update")
    path = lab.write("no.jsonl", '{"id": 1, "a": 2, "op": "-D"}\n')
    error = tarn.tarn("load", "e.no", path, "--format", "jsonl", "--op-column", "op", ok=False).error
    check("ignore-delete" in error and "row 1" in error, error)
    equal(tarn.tarn("scan", "e.no", "-o", "jsonl").stdout, b"", "nothing was loaded")
    error = tarn.tarn("table", "create", "e.never", "--columns", "id INT NOT NULL, a STRING", "--primary-key", "id", "--option", "bucket=1",
                      "--option", "merge-engine=aggregation", "--option", "fields.a.aggregate-function=sum", ok=False).error
    check("fields.a.aggregate-function" in error and "numeric" in error, error)


def main():
    tarn.start()
    tarn.tarn("db", "create", "e")
    for number in range(1 if EFFORT == 1 else 2 * EFFORT):
        for subject in SUBJECTS:
            if EFFORT > 1 or lab.only or subject.name in IN_CI:
                lab.run(f"{subject.name} {number}", history, subject, number)
    lab.run("what can't be merged is refused", refused)
    lab.run("SIGTERM", tarn.stop)
    print(f"seed {SEED}")
    return lab.done()


lab.exit(main)
