#!/usr/bin/env python3
"""needs: shared
Promise: keys have one bucket, whoever writes: in tables with dynamic buckets Tarn and Paimon's Java library give
keys to buckets by the same index, one after the other, and read the same rows of what the other wrote and compacted; so they do
where keys cross partitions, and where rows wait for their bucket; loads that run at once, and those that kill -9 ends, leave no key in two buckets. buckets.py [PART OF A CASE'S NAME]... runs some.
TARN_EFFORT (1): more rounds.
"""
import collections
import json
import os
import random
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, check, equal, same_rows, types_of, wait_until  # noqa: E402
from peers import Java  # noqa: E402

EFFORT = int(os.environ.get("TARN_EFFORT", "1"))
SEED = int(os.environ.get("TARN_SEED", random.randrange(1 << 30)))
JSONL = ("--format", "jsonl", "--op-column", "rowkind")
COLUMNS = [("p", "INT NOT NULL"), ("id", "BIGINT NOT NULL"), ("v", "STRING")]

lab = Lab("buckets")
warehouse = lab.path("wh")
java = Java(lab, warehouse)
tarn = lab.daemon("d", warehouse, **{"worker.count": 2})
rng = random.Random(SEED)


def create(table, keys=("p", "id"), parts=("p",), **options):
    java.ask("create", table, lab.write("schema.json", json.dumps({
        "fields": [{"id": i, "name": n, "type": t} for i, (n, t) in enumerate(COLUMNS)],
        "partitionKeys": list(parts), "primaryKeys": list(keys), "options": options, "comment": ""})))
    tarn.tarn("table", "show", table)


def lines(rows):
    return "".join(json.dumps({**dict(zip(("p", "id", "v"), row[:3])), "rowkind": row[3] if len(row) > 3 else "+I"}) + "\n"
                   for row in rows)


class Model:
    """What the table must show: by key."""

    def __init__(self, keys=(0, 1)):
        self.keys, self.rows = keys, {}

    def apply(self, rows):
        for row in rows:
            key = tuple(row[k] for k in self.keys)
            if row[3:] == ("-D",):
                self.rows.pop(key, None)
            else:
                self.rows[key] = row[:3]


def by_tarn(table, rows, **kw):
    text = lines(rows)
    return tarn.tarn("load", table, "-", *JSONL, stdin=text.encode(), **kw)


def by_java(table, rows):
    java.ask("write", table, lab.write("rows.jsonl", lines(rows)))


def shown(table, model, what):
    """Both see the model's rows: no key twice, as one in two buckets would be."""
    types = types_of(tarn.folder(table))
    got = tarn.scan(table, types=types)
    equal(sum(got.values()), len(model.rows), f"{what}: rows that Tarn reads")
    same_rows(got, java.rows(table, types=types), f"{what}: Tarn and Java")
    equal({tuple(r[c] for c in ("p", "id", "v")) for r in tarn.lines("scan", table)}, set(model.rows.values()), what)


def some(n, keys, parts=3, deletes=0.2):
    """n rows of random partitions, some of them deletes, no key twice."""
    rows = {}
    for _ in range(n):
        key = rng.randrange(parts), rng.randrange(keys)
        rows[key] = key + (f"{rng.random():.9f}",) + (("-D",) if rng.random() < deletes else ())
    return list(rows.values())


def compact_by_tarn(table):
    tarn.tarn("compact", table, "--full", "--wait")


def dynamic(table, keys, parts, options):
    create(table, keys, parts, bucket=-1, **{"dynamic-bucket.target-row-num": 7, **options})
    model = Model(tuple("p id v".split().index(k) for k in keys))
    writers = [by_tarn, by_java]
    for i in range(4 + 4 * EFFORT):
        rows = some(40, 60, deletes=0.2 if len(keys) == 2 else 0)
        if len(keys) == 1:  # the key is the id alone
            rows = list({r[1]: (0, *r[1:]) for r in rows}.values())
        writers[i % 2](table, rows)
        model.apply(rows)
        shown(table, model, f"after write {i}")
        if i % 4 == 2:
            compact_by_tarn(table)
            shown(table, model, f"after Tarn's compaction {i}")
        if i % 4 == 3:
            java.ask("compact", table)
            shown(table, model, f"after Java's compaction {i}")
    all_buckets = {f["bucket"] for f in tarn.lines("files", table)}
    check(len(all_buckets) > 2, f"buckets that were filled: {all_buckets}")
    gone = [(*row[:2], None, "-D") for row in model.rows.values()]
    by_tarn(table, gone)  # what a key has in another bucket would stay
    model.apply(gone)
    shown(table, model, "all deleted")


def crossing():
    """Keys that move between partitions: one row each, whoever moved it."""
    create("b.cross", ("id",), ("p",), bucket=-1, **{"dynamic-bucket.target-row-num": 6})
    model, writers = Model((1,)), [by_tarn, by_java]
    for i in range(6 + 4 * EFFORT):
        rows = list({r[1]: r for r in some(40, 60, parts=4)}.values())
        writers[i % 2]("b.cross", rows)
        model.apply(rows)
        shown("b.cross", model, f"after write {i}")
        if i % 4 == 2:
            compact_by_tarn("b.cross")
            shown("b.cross", model, f"after Tarn's compaction {i}")
        if i % 4 == 3:
            java.ask("compact", "b.cross")
            shown("b.cross", model, f"after Java's compaction {i}")
    moves = [(p, 1000, f"move {p}") for p in (0, 1, 2, 1, 0, 3)]  # within one load, too
    by_tarn("b.cross", moves)
    model.apply(moves)
    shown("b.cross", model, "moved to and fro")
    path = lab.write("rows.jsonl", lines([(5, n, "once") for n in range(40)]))
    running = [tarn.popen("load", "b.cross", path, *JSONL) for _ in range(4)]
    ends = [(p.communicate()[1].decode(), p.returncode) for p in running]
    check(any(status == 0 for _, status in ends), f"one of them lands: {ends}")
    check(all(status == 0 or "INDEX_STALE" in said or "load again" in said for said, status in ends), f"and the others are told: {ends}")
    model.apply([(5, n, "once") for n in range(40)])
    shown("b.cross", model, "loads at once")
    anew = [(6, n, "anew") for n in range(10)]
    tarn.tarn("table", "alter", "b.cross", "--set", "dynamic-partition-overwrite=false")
    tarn.tarn("load", "b.cross", "-", *JSONL, "--mode", "overwrite", stdin=lines(anew).encode())
    model.rows = {}
    model.apply(anew)
    shown("b.cross", model, "overwritten")


def overwritten():
    create("b.over", bucket=-1, **{"dynamic-bucket.target-row-num": 5})
    model = Model()
    first = some(50, 40, deletes=0)
    by_tarn("b.over", first)
    anew = [(0, i, "new") for i in range(30, 42)]
    tarn.tarn("load", "b.over", "-", *JSONL, "--mode", "overwrite", stdin=lines(anew).encode())
    model.apply(first)
    model.rows = {k: r for k, r in model.rows.items() if k[0] != 0}
    model.apply(anew)
    shown("b.over", model, "overwritten by Tarn")
    more = some(60, 60)
    by_java("b.over", more)
    model.apply(more)
    shown("b.over", model, "written by Java after it")
    java.ask("overwrite", "b.over", lab.write("rows.jsonl", lines([(1, i, "j") for i in range(20)])))
    model.rows = {k: r for k, r in model.rows.items() if k[0] != 1}
    model.apply([(1, i, "j") for i in range(20)])
    more = some(60, 60)
    by_tarn("b.over", more)
    model.apply(more)
    shown("b.over", model, "written by Tarn after Java's overwrite")


def at_once(table, kill):
    """Loads at once, each with an identity: what landed is told by the table. kill: the daemon dies meanwhile."""
    create(table, bucket=-1, **{"dynamic-bucket.target-row-num": 9, "dynamic-bucket.max-buckets": 6})
    model, jobs = Model(), 0
    for n in range(2 * EFFORT):
        running = []
        for _ in range(6):
            jobs += 1
            rows = some(50, 80, parts=2)
            path = lab.write(f"load-{jobs}.jsonl", lines(rows))
            running.append((jobs, rows, tarn.popen("load", table, path, *JSONL, "--commit-user", f"job-{jobs}", "--commit-id", "1")))
        if kill:
            running[rng.randrange(6)][2].wait()
            tarn.kill9()
        ends = [(job, rows, p.communicate()[1].decode(), p.returncode) for job, rows, p in running]
        if kill:
            tarn.start()
        landed = []
        for job, rows, said, status in ends:
            fate = tarn.json("commits", table, "--user", f"job-{job}", "--id", "1")
            snapshot = fate.get("append_snapshot_id") or fate.get("snapshot")
            check(status != 0 or snapshot, f"load {job} was acknowledged, and is {fate}")
            check(kill or status == 0, f"load {job}: {said}")
            if snapshot:
                landed.append((int(snapshot), rows))
        for _, rows in sorted(landed, key=lambda x: x[0]):
            model.apply(rows)
        shown(table, model, f"round {n}: {len(landed)} landed")
        rows = some(30, 90, parts=2)
        by_java(table, rows)
        model.apply(rows)
        shown(table, model, f"round {n}, and Java's")
    if not kill:
        check("ingest.assigned_again" in tarn.said(), "loads at once met")


def postponed(table, options):
    """Rows wait for a bucket, whoever wrote them, and are given it in the order in which they came."""
    create(table, bucket=-2, **options)
    model = Model()
    for i in range(3 + EFFORT):
        for n in range(3):
            rows = some(50, 40)
            (by_java if (i + n) % 2 else by_tarn)(table, rows)
            model.apply(rows)
        by_tarn(table, twice := [(0, i, "first"), (0, i, "second"), (1, i, "gone"), (1, i, None, "-D")])
        model.apply(twice)
        moved(table)
        shown(table, model, f"round {i}")
        if i % 2:
            compact_by_tarn(table)
            shown(table, model, f"round {i}, compacted")
    return model


def moved(table):
    tarn.tarn("compact", table, "--wait")
    wait_until("nothing waits for a bucket", lambda: all(f["bucket"] >= 0 for f in tarn.lines("files", table)))


def postpones():
    model = postponed("b.later", {"postpone.default-bucket-num": 3})
    equal({p["buckets"] for p in tarn.lines("partitions", "b.later")}, {3}, "buckets of a partition")
    tarn.tarn("table", "alter", "b.later", "--set", "postpone.default-bucket-num=5")
    rows = [(7, n, "new") for n in range(60)] + [(1, n, "old") for n in range(60)]
    by_tarn("b.later", rows)
    model.apply(rows)
    moved("b.later")
    equal({p["partition"]: p["buckets"] for p in tarn.lines("partitions", "b.later")}, {"p=0": 3, "p=1": 3, "p=2": 3, "p=7": 5}, "a partition keeps its number")
    shown("b.later", model, "a new partition")
    postponed("b.rows", {"postpone.target-row-num-per-bucket": 20})
    check(min(p["buckets"] for p in tarn.lines("partitions", "b.rows")) > 1, "buckets by rows")
    postponed("b.log", {"postpone.default-bucket-num": 2, "changelog-producer": "input"})
    told = collections.OrderedDict()
    for r in tarn.lines("scan", "b.log", "--changes", f"0..{max(int(s['id']) for s in tarn.lines('snapshots', 'b.log'))}"):
        told.pop((r["p"], r["id"]), None)
        if r["rowkind"] != "-D":
            told[r["p"], r["id"]] = (r["p"], r["id"], r["v"])
    equal(set(told.values()), {(r["p"], r["id"], r["v"]) for r in tarn.lines("scan", "b.log")}, "the changelog, replayed")


def main():
    tarn.start()
    print(f"seed {SEED}")
    lab.run("postponed", postpones)
    lab.run("dynamic buckets, by partition", dynamic, "b.parts", ("p", "id"), ("p",), {})
    lab.run("dynamic buckets, at most three", dynamic, "b.most", ("p", "id"), ("p",), {"dynamic-bucket.max-buckets": 3})
    lab.run("dynamic buckets, no partitions", dynamic, "b.plain", ("id",), (), {})
    lab.run("dynamic buckets, overwritten", overwritten)
    lab.run("keys across partitions", crossing)
    lab.run("dynamic buckets, loads at once", at_once, "b.once", False)
    lab.run("dynamic buckets, loads at once and kill -9", at_once, "b.kill", True)
    tarn.stop()
    return lab.done()


lab.exit(main)
