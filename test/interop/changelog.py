#!/usr/bin/env python3
"""needs: shared
Promise: the changelogs that Tarn writes are those that Paimon's Java library writes of the same history, record by record, whoever
reads them; a changelog that is replayed from the start is the table, at every step, and what one of the two began the other goes on with.

TARN_EFFORT above 1: longer histories, and more of them.
"""
import json
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, check, equal  # noqa: E402
from peers import Java, others_read_what_is_left  # noqa: E402

EFFORT = int(os.environ.get("TARN_EFFORT", "1"))
COLUMNS = [("id", "BIGINT NOT NULL"), ("s", "INT"), ("v", "STRING")]

lab = Lab("changelog")
warehouse = lab.path("wh")
java = Java(lab, warehouse)
tarn = lab.daemon("d", warehouse, **{"worker.count": 1})


def create(table, options):
    schema = {"fields": [{"id": i, "name": n, "type": t} for i, (n, t) in enumerate(COLUMNS)], "partitionKeys": [],
              "primaryKeys": ["id"], "comment": "", "options": {"bucket": "2", **options}}
    java.ask("create", table, lab.write("schema.json", json.dumps(schema)))


def text(rows):
    return lab.write("rows.jsonl", "".join(json.dumps({"rowkind": k, "id": i, "s": s, "v": v}) + "\n" for k, i, s, v in rows))


def by_java(table, rows, full):
    last = int(java.ask("write", table, text(rows)))
    return int(java.ask("compact", table)) if full else last


def by_tarn(table, rows, full):
    last = tarn.json("load", table, text(rows), "--op-column", "rowkind")["snapshot"]
    if full is not None:
        tarn.json("compact", table, "--wait", *(["--full"] if full else []))
    return tarn.lines("snapshots", table)[-1]["id"] if full is not None else last


def streamed_by_java(table):
    out = lab.path("java-stream.jsonl")
    java.ask("stream", table, out, 1)
    with open(out, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def told(rows):
    """What is told of each key, in order: of different keys there is none."""
    steps = {}
    for row in rows:
        steps.setdefault(row["id"], []).append((row["rowkind"], row["s"], row["v"]))
    return steps


def replay(rows, strict):
    state = {}
    for row in rows:
        kind, key, value = row["rowkind"], row["id"], (row["s"], row["v"])
        if strict:
            before = state.get(key)
            check(before is None if kind == "+I" or kind == "+U" else before == value, f"{row} on top of {before}")
        if kind[0] == "+":
            state[key] = value
        elif strict or kind == "-D":
            state.pop(key, None)
    return state


def history(seed, length):
    """Loads of few keys, which come again within one and in later ones, also with the values that they have."""
    pick, n = random.Random(seed), 0
    for _ in range(length):
        rows = []
        for _ in range(pick.randrange(1, 12)):
            n += 1
            rows.append((pick.choice(["+I", "+I", "+U", "-D"]), pick.randrange(12), pick.choice([None, 1, 2, 3]),
                         pick.choice(["same", f"v{n}"])))
        yield rows


def compare(name, producer, seed, options=None):
    """The same history through both, each record compared; then through both by turns."""
    options = {"changelog-producer": producer, **(options or {})}
    strict, full = producer != "input", {"input": None, "lookup": False, "full-compaction": True}[producer]
    ours, theirs, mixed = (f"c.{name}_{w}" for w in ("ours", "theirs", "mixed"))
    for table in (ours, theirs, mixed):
        create(table, options)
    pick = random.Random(seed + 1)
    ends = [(0, 0)]
    for rows in history(seed, 8 if EFFORT == 1 else 30):
        ends.append((by_tarn(ours, rows, full), by_java(theirs, rows, bool(full))))
        pick.choice([by_tarn, by_java])(mixed, rows, full)
    of_ours, of_theirs, of_mixed = (streamed_by_java(t) for t in (ours, theirs, mixed))
    for (a, b), (c, d) in zip(ends, ends[1:]):
        equal(told(r for r in of_ours if a < r["snapshot"] <= c), told(r for r in of_theirs if b < r["snapshot"] <= d),
              f"Tarn's changelog of snapshots {a + 1} to {c}, beside Java's")
    for table, read in ((ours, of_ours), (theirs, of_theirs), (mixed, of_mixed)):
        last = tarn.lines("snapshots", table)[-1]["id"]
        mine = tarn.lines("scan", table, "--changes", f"0..{last}")
        equal(told(mine), told(read), f"{table}: what Tarn reads of it, beside Java")
        state = {r["id"]: (r["s"], r["v"]) for r in tarn.lines("scan", table)}
        if "sequence.field" not in options or strict:  # else the order of what came isn't the order of what counts
            equal(replay(mine, strict), state, f"{table}: its changelog, replayed")


tarn.start()
lab.run("input", compare, "input", "input", 1)
lab.run("input, with a sequence field and files of their own kind", compare, "input_field", "input", 2,
        {"sequence.field": "s", "changelog-file.prefix": "log-", "changelog-file.stats-mode": "none",
         "target-file-row-num": "3"})
lab.run("lookup", compare, "lookup", "lookup", 3)
lab.run("full compaction", compare, "full", "full-compaction", 4, {"changelog-producer.row-deduplicate": "true"})
if EFFORT > 1:
    for seed in range(5, 5 + 4 * EFFORT):
        for producer in ("input", "lookup", "full-compaction"):
            more = {"sequence.field": "s"} if seed % 2 else {}
            if seed % 4 < 2:
                more["changelog-producer.row-deduplicate"] = "true"
            if seed % 3 == 0:
                more["target-file-row-num"] = "3"
            lab.run(f"{producer}, {seed}: {more}", compare, f"{producer}_{seed}".replace("-", "_"), producer, seed, more)
others_read_what_is_left(lab)
sys.exit(lab.done())
