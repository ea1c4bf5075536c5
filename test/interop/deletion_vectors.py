#!/usr/bin/env python3
"""needs: shared
Promise: rows that deletion vectors mark are gone for every reader, and no others: Paimon's Java library, pypaimon and Tarn see the same
rows of tables in which any of them deleted, at each snapshot, by tag, branch, filter and limit, before and after the compactions of
each. deletion_vectors.py [PART OF A CASE'S NAME]... runs some; TARN_EFFORT above 1 runs more shapes.
"""
import collections
import json
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, check, equal, same_rows  # noqa: E402
from peers import Deletions, Java, Python  # noqa: E402

MORE = int(os.environ.get("TARN_EFFORT", "1")) > 1
lab = Lab("deletion_vectors")
warehouse = lab.path("wh")
tarn = lab.daemon("d", warehouse, **{"worker.count": 2})
java = Java(lab, warehouse)
marks = Deletions(lab, warehouse)
python = Python(lab, warehouse)
FIELDS = [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}, {"id": 1, "name": "g", "type": "INT NOT NULL"},
          {"id": 2, "name": "v", "type": "STRING"}]


def make(table, keys=(), parts=(), **options):
    schema = {"fields": FIELDS, "partitionKeys": list(parts), "primaryKeys": list(keys), "comment": "",
              "options": {"deletion-vectors.enabled": "true", **{k.replace("__", ".").replace("_", "-"): v for k, v in options.items()}}}
    java.ask("create", table, lab.write("schema.json", json.dumps(schema)))


def row(i, v, parts=1):
    return {"id": i, "g": i % parts, "v": v}


def java_writes(table, rows, *words):
    return int(java.ask("write", table, lab.write("w.jsonl", "".join(json.dumps(r) + "\n" for r in rows)), *words))


def counted(rows):
    return collections.Counter((r["id"], r["g"], r["v"]) for r in rows)


def scan(table, *words):
    return counted(tarn.lines("scan", table, *words))


def all_see(table, rows, when, readers=("tarn", "java", "python")):
    want = counted(rows)
    for name in readers:
        got = tarn.scan(table) if name == "tarn" else (java if name == "java" else python).rows(table)
        got = collections.Counter(tuple(r) for r in got.elements())
        same_rows(got, want, f"{name}, {when}")


def limits(table, rows):
    for n in (1, len(rows) // 2, len(rows) - 1, len(rows), len(rows) + 7):
        got = scan(table, "--limit", n)
        equal(sum(got.values()), min(n, len(rows)), f"rows of limit {n}")
        check(not got - counted(rows), f"rows of limit {n} that aren't the table's: {got - counted(rows)}")


def filters(table, rows):
    for text, test in (("id >= 40 AND id < 60", lambda r: 40 <= r["id"] < 60), ("v = 'b'", lambda r: r["v"] == "b"),
                       ("id = 41", lambda r: r["id"] == 41), ("v IS NULL", lambda r: r["v"] is None)):
        same_rows(scan(table, "--where", text), counted([r for r in rows if test(r)]), text)


def keyed_rows(states, table, n):
    """Java's own reader is the model of a table whose rows merge: what it reads at a snapshot."""
    if n not in states:
        states[n] = collections.Counter(tuple(r) for r in java.rows(table, f"scan.snapshot-id={n}").elements())
    return states[n]


def keyed_case(table, wide, merges, more):
    """Java upserts, deletes and compacts; level 0 stays hidden until then, unless readers merge."""
    make(table, keys=["id"], bucket="1", deletion_vectors__bitmap64=wide, deletion_vectors__merge_on_read=merges, **more)
    model, states, deltas = {}, {}, {}

    def now():
        if "sequence__field" not in more:
            return [row(i, v) for i, v in model.items()]
        return [{"id": i, "g": g, "v": v} for i, g, v in java.rows(table).elements()]

    for c in range(6):
        batch = {i: random.choice("abc") for i in random.sample(range(120), 50)}
        gone = random.sample(sorted(model), len(model) // 4)
        lines = [row(i, v) for i, v in batch.items()] + [{**row(i, None), "rowkind": "-D"} for i in gone if i not in batch]
        n = java_writes(table, lines, f"write-only={str(c % 3 == 2).lower()}")
        model.update(batch)
        for i in gone:
            if i not in batch:
                del model[i]
        deltas[c] = n
        if c % 3 != 2 or merges == "true":
            all_see(table, now(), f"after commit {c}")
    for n in range(1, int(deltas[5]) + 1):
        same_rows(scan(table, "--snapshot", n), keyed_rows(states, table, n), f"snapshot {n}")
    visible = [{"id": i, "g": g, "v": v} for i, g, v in keyed_rows(states, table, deltas[5]).elements()]
    limits(table, visible)
    filters(table, visible)
    # What commits brought is told as it was written, though it lies at level 0.
    told = tarn.lines("scan", table, "--changes", f"{deltas[4]}..{deltas[5]}")
    check("lookup" in more.values() or told and all("rowkind" in r for r in told), f"nothing is told of the last commit: {told}")
    tarn.tarn("tag", "create", table, "t", "--snapshot", deltas[3])
    same_rows(scan(table, "--tag", "t"), keyed_rows(states, table, deltas[3]), "tag t")
    java.ask("compact", table)
    all_see(table, now(), "after Java's compaction")
    if "changelog_producer" not in more:
        keyed_ours(table, {r["id"]: r["v"] for r in now()}, merges == "true", "sequence__field" in more)


def keyed_ours(table, model, merges, by_value):
    """Loads and compactions of ours, some beside Java's: what level 0 takes the place of is marked, and merged where a sequence field says so."""
    seen = [row(i, v) for i, v in model.items()]  # by who doesn't merge
    marked = 0  # at any time: a compaction that goes all the way leaves none
    for c in range(6):
        batch = {i: random.choice("abcd") for i in random.sample(range(150), 40)}
        gone = [] if by_value else [i for i in random.sample(sorted(model), len(model) // 5) if i not in batch]
        lines = [{**row(i, v), "rowkind": "+I"} for i, v in batch.items()] + [{**row(i, None), "rowkind": "-D"} for i in gone]
        if c == 3:
            java_writes(table, lines, "write-only=true")
        else:
            tarn.tarn("load", table, lab.write("k.jsonl", "".join(json.dumps(r) + "\n" for r in lines)), "--format", "jsonl", "--op-column", "rowkind")
        for i, v in batch.items():
            if not by_value or v >= model.get(i, ""):
                model[i] = v
        for i in gone:
            del model[i]
        rows = [row(i, v) for i, v in model.items()]
        all_see(table, rows if merges else seen, f"before our compaction {c}")
        if c == 1:
            continue  # two loads at once
        tarn.tarn("compact", table, "--wait")
        seen = rows
        all_see(table, rows, f"after our compaction {c}")
        marked += int(marks.ask("marked", table))
        limits(table, rows)
    check(marked > 0, "our compactions marked nothing")
    java_writes(table, [row(i, "z") for i in range(0, 150, 7)], "write-only=false")
    for i in range(0, 150, 7):
        model[i] = "z"
    all_see(table, [row(i, v) for i, v in model.items()], "after Java's compaction upon ours")
    tarn.tarn("compact", table, "--full", "--wait")
    all_see(table, [row(i, v) for i, v in model.items()], "after our full compaction")
    equal(int(marks.ask("vectors", table)), 0, "deletion vectors after our full compaction")


def append_shapes():
    for wide in ("false", "true"):
        for bucket in ("-1", "2"):
            for parts in (1, 3):
                yield f"append, bitmap64 = {wide}, bucket = {bucket}, {parts} partitions", wide, bucket, parts


def append_deletes(table, wide, bucket, parts):
    """Java deletes, all read."""
    more = {} if bucket == "-1" else {"bucket_key": "id"}
    make(table, parts=["g"] if parts > 1 else [], bucket=bucket, deletion_vectors__bitmap64=wide, write_only="true", **more)
    rows, states = [], {}
    for c in range(3):
        new = [row(i, random.choice("abc") if i % 7 else None, parts) for i in range(c * 40, c * 40 + 40)]
        rows += new
        states[java_writes(table, new)] = list(rows)
    for gone in (range(0, 120, 3), range(41, 42), range(80, 120), range(1, 120, 3)):
        rows = [r for r in rows if r["id"] not in gone]
        states[int(marks.ask("delete", table, "id", ",".join(map(str, gone))))] = list(rows)
    all_see(table, rows, "at the latest snapshot")
    for n, state in states.items():
        same_rows(scan(table, "--snapshot", n), counted(state), f"snapshot {n}")
    limits(table, rows)
    filters(table, rows)
    return rows, states


def refusals():
    make("dv.r1", keys=["id"], bucket="1")
    check("primary key" in tarn.tarn("delete", "dv.r1", "--where", "id = 1", ok=False).error, "a table with a key takes a delete")
    make("dv.r2", deletion_vectors__enabled="false")
    check("deletion-vectors.enabled" in tarn.tarn("delete", "dv.r2", "--where", "id = 1", ok=False).error, "a table without vectors takes a delete")
    make("dv.r3")
    check("nobody" in tarn.tarn("delete", "dv.r3", "--where", "nobody = 1", ok=False).error, "an unknown column is taken")
    equal(tarn.json("delete", "dv.r3", "--where", "id = 1")["snapshot"], 0, "the snapshot of a delete in an empty table")


def main():
    tarn.start()
    random.seed(7)
    shapes = list(append_shapes())
    for n, (name, *shape) in enumerate(shapes if MORE else [shapes[0], shapes[7]]):
        lab.run(name, append_case, f"dv.a{n}", *shape)
    keyed = [("false", "false", {}), ("true", "true", {}), ("true", "false", {"changelog_producer": "lookup"}),
             ("false", "true", {"sequence__field": "v"}), ("false", "false", {"changelog_producer": "input"})]
    for n, (wide, merges, more) in enumerate(keyed if MORE else keyed[:2]):
        lab.run(f"primary key, bitmap64 = {wide}, merge-on-read = {merges} {more or ''}", keyed_case, f"dv.k{n}", wide, merges, more)
    lab.run("what can't be deleted is refused by name", refusals)
    lab.run("SIGTERM", tarn.stop)
    return lab.done()


def append_case(table, wide, bucket, parts):
    rows, states = append_deletes(table, wide, bucket, parts)
    first = min(states)
    last = max(states)
    # Changes: a delta knows what was appended, a difference what was deleted as well.
    same_rows(scan(table, "--changes", f"{first}..{last}", "--columns", "id,g,v"),
              counted(states[first + 2]) - counted(states[first]), "what was appended")
    # What a tag, a branch and a roll-back show has the vectors of its own time.
    for name, n in (("some", last - 1), ("all", first + 2)):
        tarn.tarn("tag", "create", table, name, "--snapshot", n)
    tarn.tarn("branch", "create", table, "b", "--tag", "some")
    same_rows(scan(table, "--tag", "some"), counted(states[last - 1]), "tag some")
    same_rows(scan(table, "--tag", "all"), counted(states[first + 2]), "tag all")
    same_rows(scan(table + "$branch_b"), counted(states[last - 1]), "the branch")
    java.ask("expire", table, 1)
    same_rows(scan(table, "--tag", "some"), counted(states[last - 1]), "tag some, whose snapshot has expired")
    all_see(table, rows, "after the expiry")
    # A compaction leaves the rows out, and their vectors go with it; Java goes on from there, and so on.
    check(int(marks.ask("vectors", table)) > 0, "no deletion vectors before the compaction")
    tarn.tarn("compact", table, "--full", "--wait")
    all_see(table, rows, "after our compaction")
    equal(int(marks.ask("vectors", table)), 0, "deletion vectors after our compaction")
    rows += [row(i, "n", parts) for i in range(200, 230)]
    tarn.tarn("load", table, lab.write("l.jsonl", "".join(json.dumps(r) + "\n" for r in rows[-30:])), "--format", "jsonl")
    rows = [r for r in rows if r["id"] % 5]
    marks.ask("delete", table, "id", ",".join(map(str, range(0, 230, 5))))
    all_see(table, rows, "after more deletes")
    if parts > 1:  # of one partition: the vectors of others stay
        tarn.tarn("compact", table, "--full", "--wait", "--partition", "g=1")
        all_see(table, rows, "after our compaction of a partition")
        check(int(marks.ask("vectors", table)) > 0, "no deletion vectors beside the compacted partition")
    java.ask("compact", table)
    all_see(table, rows, "after Java's compaction")
    # Our own deletes, by any condition, beside Java's; a row that is gone already counts no more.
    for where, test in (("id >= 20 AND id < 30 OR v = 'a'", lambda r: 20 <= r["id"] < 30 or r["v"] == "a"),
                        ("v IS NULL", lambda r: r["v"] is None), ("id < 25", lambda r: r["id"] < 25), ("id = -1", lambda r: False)):
        gone = [r for r in rows if test(r)]
        got = tarn.json("delete", table, "--where", where)
        equal((got["rows"], got["snapshot"] > 0), (len(gone), bool(gone)), f"rows deleted where {where}")
        rows = [r for r in rows if not test(r)]
        all_see(table, rows, f"after our delete where {where}")
    marked = int(marks.ask("marked", table))
    check(marked > 0, "our deletes marked nothing")
    marks.ask("delete", table, "id", ",".join(map(str, range(60, 70))))
    rows = [r for r in rows if not 60 <= r["id"] < 70]
    all_see(table, rows, "after Java's deletes upon ours")
    java.ask("compact", table)
    all_see(table, rows, "after Java's compaction of our deletes")
    # What is overwritten takes its vectors along.
    marks.ask("delete", table, "v", "b")
    rows = [{"id": 7, "g": 7 % parts, "v": "z"}] + [r for r in rows if r["v"] != "b" and parts > 1 and r["g"] != 7 % parts]
    tarn.tarn("load", table, lab.write("o.jsonl", json.dumps(rows[0]) + "\n"), "--format", "jsonl", "--mode", "overwrite")
    all_see(table, rows, "after an overwrite")


sys.exit(main())
