#!/usr/bin/env python3
"""needs: shared
Promise: `tarn rescale` gives a table with fixed buckets another number of them and changes no row: under all merge engines, with
changelogs, of append tables; partition by partition, the others going on with theirs; while loads run, all of which land; killed at any moment
(daemon, workers) the rows are those that they were, and asked again it ends. Paimon's Java library and pypaimon read
what it made and write on; Tarn reads what Java rescaled by INSERT OVERWRITE. rescale.py [PART OF A CASE'S NAME]... runs some.
TARN_EFFORT (1): more rounds.
"""
import collections
import json
import os
import random
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Failed, Lab, check, equal, kill, same_rows, types_of, wait_until  # noqa: E402
from peers import Java, Python  # noqa: E402

EFFORT = int(os.environ.get("TARN_EFFORT", "1"))
SEED = int(os.environ.get("TARN_SEED", random.randrange(1 << 30)))
JSONL = ("--format", "jsonl", "--op-column", "rowkind")

lab = Lab("rescale")
warehouse = lab.path("wh")
java, python = Java(lab, warehouse), Python(lab, warehouse)
tarn = lab.daemon("d", warehouse, **{"worker.count": 2, "compaction.check_interval": "200 ms", "compaction.freshness": "1 s"})
rng = random.Random(SEED)


def create(table, columns="p INT NOT NULL, id BIGINT NOT NULL, v STRING, n INT", keys="p,id", parts="p", **options):
    words = [w for k, v in options.items() for w in ("--option", f"{k.replace('__', '.').replace('_', '-')}={v}")]
    tarn.tarn("table", "create", table, "--columns", columns, *(["--primary-key", keys] if keys else []),
              *(["--partition-by", parts] if parts else []), *words)


def lines(rows):
    return "".join(json.dumps(r) + "\n" for r in rows)


def some(n, keys=90, parts=3, deletes=0.2):
    rows = {}
    for _ in range(n):
        key = rng.randrange(parts), rng.randrange(keys)
        rows[key] = {"p": key[0], "id": key[1], "v": f"{rng.random():.9f}", "n": rng.randrange(100),
                     "rowkind": "-D" if rng.random() < deletes else "+I"}
    return list(rows.values())


def load(table, rows, *words):
    return tarn.tarn("load", table, "-", *JSONL, *words, stdin=lines(rows).encode())


def counts(table):
    """How many buckets each partition has, as its files say."""
    got = {r["partition"]: {r["buckets"]} for r in tarn.lines("partitions", table)}
    for f in tarn.lines("files", table):
        check(f["bucket"] < max(got[f["partition"]]), f"{f}: partitions have {got}")
    return got


def read_by_all(table, what, pypaimon=True):
    types = types_of(tarn.folder(table))
    got = tarn.scan(table, types=types)
    same_rows(got, java.rows(table, types=types), f"{what}: Tarn and Java")
    if pypaimon:
        same_rows(got, python.rows(table, types=types), f"{what}: Tarn and pypaimon")
    return got


def rescale(table, n, *words):
    before = tarn.scan(table)
    was = latest(table)
    answer = tarn.json("rescale", table, "--buckets", n, *words)
    equal(answer["tasks_failed"], 0, f"{answer}")
    same_rows(tarn.scan(table), before, f"{table}: {n} buckets")
    same_rows(tarn.scan(table, "--snapshot", was), before, f"{table} as it was before")
    return answer


def latest(table):
    return max(int(s["id"]) for s in tarn.lines("snapshots", table))


def engine(table, options, deletes, pypaimon=True):
    """Loads, rescales up and down, Java's writes and compactions on both sides: the rows are those of a twin that keeps its buckets."""
    twin = table + "_twin"
    for t in (table, twin):
        create(t, bucket=3, **options)
    for i, n in enumerate([7, 2, 4][: 1 + EFFORT]):
        for _ in range(2):
            rows = some(60, deletes=deletes)
            load(table, rows)
            load(twin, rows)
        if i == 1:
            tarn.tarn("compact", table, "--full", "--wait")
            tarn.tarn("compact", twin, "--full", "--wait")
        answer = rescale(table, n)
        equal(answer["tasks_done"], 3, "a task a partition")
        equal({b for of in counts(table).values() for b in of}, {n}, "bucket counts")
        check(max(f["bucket"] for f in tarn.lines("files", table)) >= n - 2, "all of them are used")
        rows = some(60, deletes=deletes)
        path = lab.write("rows.jsonl", lines(rows))
        for t in (table, twin):
            java.ask("write", t, path)
        rows = some(40, deletes=deletes)
        load(table, rows)
        load(twin, rows)
        if i % 2:
            java.ask("compact", table)
        settle(table)
        settle(twin)
        same_rows(read_by_all(table, f"{n} buckets", pypaimon), tarn.scan(twin), f"{table} and its twin")


def settle(table):
    """Where readers skip level 0, they see it once it is compacted."""
    options = {o["key"]: o.get("value") for o in tarn.lines("options", table)}
    if options.get("merge-engine") == "first-row":
        tarn.tarn("compact", table, "--full", "--wait")


def append():
    create("r.append", keys=None, bucket=2, bucket_key="id")
    model = []
    for n in (5, 3):
        rows = some(200, keys=1000, deletes=0)
        model += rows
        load("r.append", rows)
        rescale("r.append", n)
        java.ask("write", "r.append", lab.write("rows.jsonl", lines(rows[:9])))
        model += rows[:9]
        got = read_by_all("r.append", f"{n} buckets")
        equal(sum(got.values()), len(model), "rows")
    keyed = collections.defaultdict(list)  # within a key rows stay in order
    for r in tarn.lines("scan", "r.append"):
        keyed[r["p"], r["id"]].append(r["v"])
    want = collections.defaultdict(list)
    for r in model:
        want[r["p"], r["id"]].append(r["v"])
    equal(keyed, want, "order within a key")


def changelog(table, producer):
    """What was in no changelog yet, because it wasn't compacted, is so once it is; nothing is there twice."""
    create(table, bucket=2, changelog_producer=producer, num_sorted_run__compaction_trigger=100)
    tarn.tarn("table", "alter", table, "--set", "write-only=false")
    for n in (5, 3):
        load(table, some(60))
        tarn.tarn("compact", table, "--full", "--wait")
        load(table, some(60))
        rescale(table, n)
        load(table, some(40))
    tarn.tarn("compact", table, "--full", "--wait")
    read_by_all(table, "with a changelog")
    replayed = {}
    for r in tarn.lines("scan", table, "--changes", f"0..{latest(table)}"):
        key, row = (r["p"], r["id"]), {k: v for k, v in r.items() if k != "rowkind"}
        if r["rowkind"] in ("+I", "+U"):
            check(producer == "input" or r["rowkind"] == "+U" or key not in replayed, f"+I of a row that is there: {r}")
            replayed[key] = row
        elif producer == "input":  # as it was given
            replayed.pop(key, None)
        else:
            equal(replayed.pop(key, None), row, f"what {r['rowkind']} takes away")
    equal(sorted(replayed.items()), sorted(((r["p"], r["id"]), r) for r in tarn.lines("scan", table)), "the changelog, replayed")


def partitions():
    """Old and new counts side by side: each is written to by its own, by Tarn; Java is refused where they differ from the option."""
    create("r.parts", bucket=2)
    load("r.parts", some(80, deletes=0))
    plan = tarn.json("rescale", "r.parts", "--buckets", 5, "--partition", "p=1", "--dry-run")
    equal([(p["kind"], p["state"], p["partition"]) for p in plan["picks"]], [("rescale", "planned", "p=1")], "dry run")
    equal({b for of in counts("r.parts").values() for b in of}, {2}, "a dry run changes nothing")
    rescale("r.parts", 5, "--partition", "p=1")
    equal({p: of for p, of in counts("r.parts").items()}, {"p=0": {2}, "p=1": {5}, "p=2": {2}}, "side by side")
    model = {(r["p"], r["id"]): r for r in tarn.lines("scan", "r.parts")}
    rows = some(150, parts=5)
    load("r.parts", rows)
    for r in rows:
        model.pop((r["p"], r["id"]), None)
        if r["rowkind"] != "-D":
            model[r["p"], r["id"]] = {k: v for k, v in r.items() if k != "rowkind"}
    equal(counts("r.parts"), {"p=0": {2}, "p=1": {5}, "p=2": {2}, "p=3": {5}, "p=4": {5}}, "loads keep a partition's count")
    equal(sorted((r["p"], r["id"], r["v"]) for r in tarn.lines("scan", "r.parts")), sorted((r["p"], r["id"], r["v"]) for r in model.values()), "rows")
    for k in list(model)[:20]:
        equal(len(tarn.lines("scan", "r.parts", "--where", f"p = {k[0]} AND id = {k[1]}")), 1, f"looked up {k}")
    read_by_all("r.parts", "side by side")
    java.ask("write", "r.parts", lab.write("rows.jsonl", lines([{"p": 1, "id": 5, "v": "j", "n": 1, "rowkind": "+I"}])))
    try:
        java.ask("write", "r.parts", lab.write("rows.jsonl", lines([{"p": 0, "id": 5, "v": "j", "n": 1, "rowkind": "+I"}])))
        raise AssertionError("Java wrote 5 buckets into a partition of 2")
    except Failed as e:
        check("bucket" in str(e), str(e))
    tarn.tarn("compact", "r.parts", "--full", "--wait")
    equal(counts("r.parts")["p=0"], {2}, "a compaction keeps the count")
    answer = rescale("r.parts", 5)
    equal(answer["tasks_total"], 2, "the others")
    equal(rescale("r.parts", 5)["tasks_total"], 0, "nothing is left")
    read_by_all("r.parts", "all of them")


class Loads(threading.Thread):
    """Loads one after the other, each of its own keys' next versions."""

    def __init__(self, table, first, stop):
        super().__init__()
        self.table, self.first, self.stop, self.model, self.count, self.trouble = table, first, stop, {}, 0, None

    def run(self):
        try:
            while not self.stop.is_set():
                self.count += 1
                rows = [{"p": k % 2, "id": self.first + k, "v": f"{self.count}", "n": 0, "rowkind": "+I"} for k in range(40)]
                load(self.table, rows, "--no-wait")
                for r in rows:
                    self.model[r["p"], r["id"]] = r["v"]
        except Exception as e:
            self.trouble = e


def while_loads_run():
    create("r.busy", bucket=2)
    load("r.busy", [{"p": i % 2, "id": 10000 + i, "v": "old" * 20, "n": i, "rowkind": "+I"} for i in range(20000)])
    stop = threading.Event()
    loads = [Loads("r.busy", 1000 * i, stop) for i in range(3)]
    for t in loads:
        t.start()
    for n in ([5, 3] + [4, 2, 6] * EFFORT)[: 1 + EFFORT]:
        answer = tarn.json("rescale", "r.busy", "--buckets", n, timeout=240)
        equal((answer["tasks_failed"], {b for of in counts("r.busy").values() for b in of}), (0, {n}), f"rescaled to {n} meanwhile")
    stop.set()
    for t in loads:
        t.join()
        check(t.trouble is None, f"all loads land: {t.trouble}")
    want = {k: v for t in loads for k, v in t.model.items()}
    got = {(r["p"], r["id"]): r["v"] for r in tarn.lines("scan", "r.busy") if r["id"] < 10000}
    equal(got, want, "rows that were loaded meanwhile")
    equal(sum(read_by_all("r.busy", "after loads").values()), 20000 + len(want), "rows")
    check("ingest.bucketed_again" in tarn.said(), "loads met a rescale")


def killed():
    create("r.kill", bucket=2)
    load("r.kill", [{"p": i % 4, "id": i, "v": "x" * 20, "n": i, "rowkind": "+I"} for i in range(40000)])
    want = tarn.scan("r.kill")
    began = time.monotonic()
    rescale("r.kill", 3)
    took = time.monotonic() - began
    for i in range(2 * EFFORT):
        n = 4 + i % 3
        running = tarn.popen("rescale", "r.kill", "--buckets", n)
        time.sleep(rng.random() * took)
        if i % 2:
            for w in tarn.workers():
                kill(w)
        else:
            tarn.kill9()
            tarn.start()
        running.communicate(timeout=200)
        same_rows(tarn.scan("r.kill"), want, f"killed, round {i}")
        check(all(len(of) == 1 for of in counts("r.kill").values()), f"a partition has one count: {counts('r.kill')}")
        rescale("r.kill", n)
        equal({b for of in counts("r.kill").values() for b in of}, {n}, "asked again")
    same_rows(read_by_all("r.kill", "in the end"), want, "rows")


def by_java():
    """INSERT OVERWRITE under another option, as Paimon's own documents rescale."""
    create("r.java", bucket=2)
    load("r.java", some(80, deletes=0))
    rows = tarn.lines("scan", "r.java")
    java.ask("set", "r.java", "bucket=5")
    java.ask("overwrite", "r.java", lab.write("rows.jsonl", lines({**r, "rowkind": "+I"} for r in rows if r["p"] != 2)))
    equal(sorted(map(str, tarn.lines("scan", "r.java"))), sorted(map(str, rows)), "rows")
    equal(counts("r.java"), {"p=0": {5}, "p=1": {5}, "p=2": {2}}, "side by side")
    load("r.java", some(80))
    read_by_all("r.java", "written on by Tarn")
    rescale("r.java", 5)
    read_by_all("r.java", "rescaled by both")


def refused():
    create("r.dynamic", bucket=-1)
    said = tarn.tarn("rescale", "r.dynamic", "--buckets", 4, ok=False).error
    check("only fixed buckets" in said and "bucket = -1" in said, said)
    create("r.vectors", bucket=2)
    java.ask("set", "r.vectors", "deletion-vectors.enabled=true")
    said = tarn.tarn("rescale", "r.vectors", "--buckets", 4, ok=False).error
    check("deletion vectors" in said or "deletion-vectors" in said, said)
    equal(tarn.tarn("rescale", "r.vectors", ok=None).returncode, 2, "without --buckets")
    create("r.cancel", bucket=2)
    load("r.cancel", some(50, deletes=0))
    before = tarn.scan("r.cancel")
    tarn.stop()
    tarn.start(workers=False, **{"worker.count": 0})
    queued = tarn.json("rescale", "r.cancel", "--buckets", 4, "--no-wait")["picks"]
    jobs = [j for j in tarn.lines("jobs", "--table", "r.cancel") if j["kind"] == "rescale"]
    equal(sorted(j["id"] for j in jobs), sorted(p["id"] for p in queued), "tarn jobs lists them")
    for j in jobs:
        tarn.tarn("jobs", j["id"], "--cancel")
    ended = {j["id"]: j for j in tarn.lines("jobs", "--ended")}
    equal({(ended[j["id"]]["state"], ended[j["id"]]["failure"]) for j in jobs}, {("failed", "cancelled")}, "cancelled")
    said = tarn.tarn("jobs", jobs[0]["id"], "--cancel", ok=False).error
    check("is not queued" in said, said)
    tarn.stop()
    tarn.start()
    same_rows(tarn.scan("r.cancel"), before, "rows")
    load("r.cancel", some(50))
    equal({b for of in counts("r.cancel").values() for b in of}, {2}, "it is written to as it was")
    read_by_all("r.cancel", "after that")


def main():
    tarn.start()
    tarn.tarn("db", "create", "r")
    print(f"seed {SEED}")
    lab.run("deduplicate", engine, "r.dedup", {}, 0.2)
    lab.run("aggregation", engine, "r.agg", {"merge_engine": "aggregation", "fields__n__aggregate_function": "sum"}, 0, False)
    lab.run("partial-update", engine, "r.partial", {"merge_engine": "partial-update", "fields__n__sequence_group": "v"}, 0, False)
    lab.run("first-row", engine, "r.first", {"merge_engine": "first-row"}, 0, False)
    lab.run("append", append)
    lab.run("changelog by lookup", changelog, "r.lookup", "lookup")
    lab.run("changelog by full compactions", changelog, "r.full", "full-compaction")
    lab.run("changelog by loads", changelog, "r.input", "input")
    lab.run("partition by partition", partitions)
    lab.run("while loads run", while_loads_run)
    lab.run("killed", killed)
    lab.run("by Java", by_java)
    lab.run("refused and cancelled", refused)
    tarn.stop()
    return lab.done()


lab.exit(main)
