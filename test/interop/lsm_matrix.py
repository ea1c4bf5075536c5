#!/usr/bin/env python3
"""needs: shared
Promise: tables of any combination of merge engine, changelog producer, deletion vectors, bucket mode, file format, partitions,
sequence field, schema change and share of deletes read the same in Paimon's Java library and here, whoever wrote and
compacted them in which order; what isn't taken is refused by name. TARN_EFFORT > 1 draws more combinations.
lsm_matrix.py [PART OF A CASE'S NAME]... runs some; SEED=N repeats combinations.
"""
import itertools
import json
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, check, same_rows, types_of  # noqa: E402
from peers import Java, Python  # noqa: E402
from shapes import Shape  # noqa: E402

SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
EFFORT = int(os.environ.get("TARN_EFFORT", 1))
KEYS, COMMITS = 12, 5

lab = Lab("lsm_matrix")
warehouse = lab.path("wh")
java, python = Java(lab, warehouse), Python(lab, warehouse)
tarn = lab.daemon("d", warehouse, **{"worker.count": 1, "compaction.auto": "false"})

DIMENSIONS = {
    "engine": ["deduplicate", "partial-update", "aggregation", "first-row"],
    "producer": ["none", "input", "lookup", "full-compaction"],
    "vectors": [False, True],
    "bucket": ["1", "3", "-1"],
    "format": ["parquet", "orc", "avro"],
    "parted": [False, True],
    "sequence": [False, True],
    "change": ["none", "add", "rename", "retype", "drop"],
    "deletes": [0, 0.1, 0.5],
}


def is_table(c):
    """Those that Paimon makes no sense of, as its documents and its schema check say, are not drawn."""
    if c["engine"] == "first-row" and (c["deletes"] or c["sequence"] or c["vectors"] or c["producer"] not in ("none", "lookup")):
        return False
    if c["vectors"] and c["producer"] not in ("none", "lookup"):
        return False
    return not (c["engine"] == "partial-update" and c["producer"] == "input")


def is_refused(c):
    """What the daemon doesn't take yet: each says so by name."""
    if c["vectors"] and c["engine"] != "deduplicate":
        return "merge-engine"
    if c["vectors"] and c["producer"] != "none":
        return "changelog-producer"
    return "changelog-producer" if c["producer"] in ("lookup", "full-compaction") and c["engine"] != "deduplicate" else None


def pairs_of(c):
    return set(itertools.combinations(sorted(c.items(), key=str), 2))


def draw(count):
    """Each next one is the one of some tried that has most pairs of choices which none before it had."""
    rnd, seen, out = random.Random(SEED), set(), []
    while len(out) < count:
        tried = [c for c in ({k: rnd.choice(v) for k, v in DIMENSIONS.items()} for _ in range(200)) if is_table(c)]
        if EFFORT == 1:
            tried = [c for c in tried if not is_refused(c)]
        best = max(tried, key=lambda c: len(pairs_of(c) - seen))
        seen |= pairs_of(best)
        out.append(best)
    return out


def name_of(c):
    words = [c["engine"], c["producer"], "vectors" if c["vectors"] else "", f"bucket {c['bucket']}", c["format"], "parted" if c["parted"] else "",
             "sequence" if c["sequence"] else "", c["change"], f"{c['deletes']} deletes"]
    return ", ".join(w for w in words if w)


def options_of(c):
    options = {"merge-engine": c["engine"], "changelog-producer": c["producer"], "bucket": c["bucket"], "file.format": c["format"], "write-only": "true"}
    if c["vectors"]:
        options["deletion-vectors.enabled"] = "true"
    if c["sequence"]:
        options["sequence.field"] = "s"
    if c["engine"] == "partial-update" and c["deletes"]:
        options["partial-update.remove-record-on-delete" if not c["sequence"] else "ignore-delete"] = "true"
    if c["engine"] == "aggregation":
        options.update({"fields.a.aggregate-function": "sum", "fields.b.aggregate-function": "last_value", "fields.d.aggregate-function": "max",
                        "fields.d.ignore-retract": "true"})
    return options


def alteration(c):
    """(the change as Java's peer takes it, new name or type of each column that has one)"""
    return {"add": ({"action": "addColumn", "fieldNames": ["n"], "dataType": "BIGINT"}, {"n": "BIGINT"}),
            "rename": ({"action": "renameColumn", "fieldNames": ["b"], "newName": "text"}, {"text": "STRING", "b": None}),
            "retype": ({"action": "updateColumnType", "fieldNames": ["i"], "newDataType": "BIGINT", "keepNullability": True}, {"i": "BIGINT"}),
            "drop": ({"action": "dropColumn", "fieldNames": ["i"]}, {"i": None})}.get(c["change"])


def alter(table, c, columns):
    change, changed = alteration(c)
    out = lab.path("alter.out")
    java.ask("alter", "m.-", lab.write("alter.jsonl", json.dumps({"table": table.split(".")[1], "changes": [change]}) + "\n"), out)
    with open(out, encoding="utf-8") as f:
        refusal = f.read().strip()
    check(refusal == "", refusal)
    for name, sql in changed.items():
        if sql is None:
            del columns[name]
        else:
            columns[name] = sql


VALUES = {"INT": lambda r: r.randrange(-50, 50), "BIGINT": lambda r: r.randrange(-10**12, 10**12), "STRING": lambda r: r.choice(["a", "bb", "", "\u00e4"]),
          "DECIMAL(12, 2)": lambda r: f"{r.randrange(-10**5, 10**5) / 100:.2f}"}


def commit(rnd, c, columns):
    kinds = ["+I"] * 20 + ["-D"] * int(20 * c["deletes"] / (1 - c["deletes"])) if c["deletes"] < 1 else ["-D"]
    rows = []
    for _ in range(rnd.randrange(1, 25)):
        key = rnd.randrange(KEYS)
        row = {"id": key, **({"p": key % 2} if c["parted"] else {})}
        row.update({n: VALUES[t](rnd) if rnd.random() < 0.7 else None for n, t in columns.items() if n not in row})
        rows.append((rnd.choice(kinds), row))
    return rows


def lines(rows):
    return "".join(json.dumps({"rowkind": kind, **row}) + "\n" for kind, row in rows)


def write(who, table, rows):
    if who == "java":
        java.ask("write", table, lab.write("rows.jsonl", lines(rows)), "write-only=true")
    else:
        tarn.tarn("load", table, lab.write("rows.jsonl", lines(rows)), "--op-column", "rowkind")


def compact(who, table, full):
    if who == "java":
        java.ask("compact", table)
    else:
        tarn.tarn("compact", table, "--wait", *(["--full"] if full else []))


def read_alike(table, when):
    types = types_of(tarn.folder(table))
    want = java.rows(table, types=types)
    same_rows(tarn.scan(table, types=types), want, f"tarn reads {table} {when}, seed {SEED}")
    return want


def refuse(c, option):
    columns = Shape("no", {"id": "INT", "s": "INT", "a": "INT"}, [], ["id"])
    table = "m.no"
    tarn.tarn("table", "drop", table, ok=None)
    columns.schema["options"] = {k: v for k, v in options_of(c).items() if not k.startswith("fields.")}
    java.ask("create", table, lab.write("schema.json", json.dumps(columns.schema)))
    path = lab.write("rows.jsonl", '{"id": 1, "s": 1, "a": 1}\n')
    loaded = tarn.tarn("load", table, path, ok=None)
    said = loaded.error if loaded.returncode else tarn.tarn("compact", table, "--full", "--wait", ok=False).error
    check(option in said, f"refused by the name of {option}: {said}")


def cell(number, c):
    """The same commits into three tables: by Java, by Tarn, by either; each compacts its own now and then."""
    rnd = random.Random(f"{SEED} {number}")
    columns = {"id": "INT", **({"p": "INT"} if c["parted"] else {}), "s": "INT", "a": "INT", "b": "STRING", "d": "DECIMAL(12, 2)", "i": "INT"}
    shape = Shape("t", columns, [], ["id", "p"] if c["parted"] else ["id"], ["p"] if c["parted"] else [])
    shape.schema["options"] = options_of(c)
    tables = {who: f"m.{who}{number}" for who in ("java", "tarn", "both")}
    for table in tables.values():
        java.ask("create", table, lab.write("schema.json", json.dumps(shape.schema)))
    for step in range(COMMITS):
        rows = commit(rnd, c, columns)
        if step == 2 and alteration(c):
            before = dict(columns)
            for table in tables.values():
                columns = dict(before)
                alter(table, c, columns)
            rows = commit(rnd, c, columns)
        # What compactions forget (docs/compatibility.md, "What depends on when compactions ran"): all tables have theirs at once, and full ones.
        merges = c["engine"] in ("aggregation", "partial-update")
        forgets = (c["deletes"] > 0 and (c["sequence"] or merges)) or (c["sequence"] and merges)
        together = rnd.random() < 0.3
        for who, table in tables.items():
            write(rnd.choice(["java", "tarn"]) if who == "both" else who, table, rows)
            if together or (not forgets and rnd.random() < 0.3):
                compact(rnd.choice(["java", "tarn"]) if who == "both" else who, table, together)
            read_alike(table, f"after commit {step + 1}")
    want = None
    for who, table in tables.items():
        compact(rnd.choice(["java", "tarn"]) if who == "both" else who, table, True)
        got = read_alike(table, "compacted as a whole")
        want = got if want is None else want
        same_rows(got, want, f"{table} beside java's, seed {SEED}")
    same_rows(python.rows(tables["both"], types=types_of(tarn.folder(tables["both"]))), want, f"pypaimon reads {tables['both']}, seed {SEED}")


def main():
    tarn.start()
    tarn.tarn("db", "create", "m")
    for number, c in enumerate(draw(4 if EFFORT == 1 else 12 * EFFORT)):
        option = is_refused(c)
        if option:
            lab.run(f"{number}: {name_of(c)}: refused", refuse, c, option)
        else:
            lab.run(f"{number}: {name_of(c)}", cell, number, c)
    lab.run("SIGTERM", tarn.stop)
    print(f"seed {SEED}")
    return lab.done()


lab.exit(main)
