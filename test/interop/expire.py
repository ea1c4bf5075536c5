#!/usr/bin/env python3
"""needs: shared
Promise: an expiry of ours leaves the files that Java's leaves. One history, copied: Java expires in one copy and Tarn in the other, step by
step; the names of all files are the same afterwards, and both read the same rows, of the table and of its tags.
"""
import json
import os
import random
import shutil
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, check, equal  # noqa: E402
from peers import Java  # noqa: E402

lab = Lab("expire")
warehouse = lab.path("wh")
java = Java(lab, warehouse)
tarn = lab.daemon("d", warehouse, **{"worker.count": 1, "commit.foreign_check": "0 s", "compaction.auto": "false", "expiry.auto": "false"})
tarn.start()
dice = random.Random(int(os.environ.get("TARN_SEED", "7")))
STEPS = 10


def create(table, keys=("id",), **options):
    schema = {"fields": [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}, {"id": 1, "name": "v", "type": "STRING"}],
              "partitionKeys": [], "primaryKeys": list(keys), "comment": "",
              "options": {k.replace("_", "-").replace("--", "."): v for k, v in options.items()}}
    java.ask("create", table, lab.write("schema.json", json.dumps(schema)))


def write(table, n, keyed):
    rows = [{"id": dice.randrange(20), "v": f"v{n}"} for _ in range(5)]
    kinds = [{"rowkind": "-D" if keyed and dice.random() < 0.2 else "+I", **r} for r in rows]
    return int(java.ask("write", table, lab.write("rows.jsonl", "".join(json.dumps(r) + "\n" for r in kinds))))


def names(table):
    """Files of the copy, without what only a daemon or an engine of its own puts there."""
    root = os.path.join(warehouse, table.replace(".", ".db/"))
    found = {os.path.relpath(os.path.join(d, f), root) for d, _, files in os.walk(root) for f in files}
    return {f for f in found if not os.path.basename(f).startswith(".")}


def copy(table, to):
    shutil.copytree(os.path.join(warehouse, table.replace(".", ".db/")), os.path.join(warehouse, to.replace(".", ".db/")),
                    ignore=shutil.ignore_patterns(".tarn-table", ".*.crc"))


def rows(table, tag=None):
    """What Java and Tarn read of it, which is one; of what Tarn lists only, what Java does."""
    out = lab.path("dump.jsonl")
    java.ask("dump", table, out, *([f"scan.tag-name={tag}"] if tag else []))
    with open(out, encoding="utf-8") as f:
        theirs = sorted((r["id"], r["v"]) for r in map(json.loads, f))
    if table.startswith("e.vectors"):
        return theirs
    ours = sorted((r["id"], r["v"]) for r in tarn.lines("scan", table, *(["--tag", tag] if tag else [])))
    equal(ours, theirs, f"{table}, tag {tag}")
    return theirs


def same(name, keyed=True, **options):
    table, theirs, ours = f"e.{name}", f"e.{name}_java", f"e.{name}_tarn"
    create(table, keys=("id",) if keyed else (), **options)
    tags, last = {}, 0
    for n in range(STEPS):
        last = write(table, n, keyed)
        if dice.random() < 0.3:
            at = last if dice.random() < 0.5 else max(1, last - 1)
            java.ask("tag", table, f"t{n}", at)
            tags[f"t{n}"] = rows(table, f"t{n}")
    copy(table, theirs)
    copy(table, ours)
    want = rows(table)
    for keep in (last - 3, last // 2, 4, 1):
        java.ask("expire", theirs, keep)
        tarn.tarn("expire", ours, "--keep-last", keep)
        equal(names(ours), names(theirs), f"files, {keep} snapshots left of {last}")
        equal([s["id"] for s in tarn.lines("snapshots", ours)], list(range(last - keep + 1, last + 1)), "snapshots")
        for copied in (theirs, ours):
            equal(rows(copied), want, copied)
            for tag, tagged in tags.items():
                equal(rows(copied, tag), tagged, tag)
    check(names(ours) < names(table), "files went")
    java.ask("write", ours, lab.write("more.jsonl", json.dumps({"rowkind": "+I", "id": 100, "v": "x"}) + "\n"))
    equal(len(rows(ours)), len(want) + 1, "rows after one more")


def by_itself():
    """What the daemon maintains is expired as its options say, while it is written to; what its writers do is left to them."""
    own = lab.daemon("own", lab.path("own"), **{"worker.count": 1, "compaction.auto": "true", "expiry.check_interval": "100 ms"})
    own.start()
    own.tarn("db", "create", "o")
    for table, write_only in (("o.ours", "true"), ("o.theirs", "false")):
        own.tarn("table", "create", table, "--columns", "id BIGINT NOT NULL, v STRING", "--primary-key", "id", "--option", "snapshot.num-retained.min=2",
                 "--option", "snapshot.num-retained.max=3", "--option", f"write-only={write_only}")
        for n in range(12):
            own.tarn("load", table, lab.write("rows.jsonl", json.dumps({"id": n, "v": "x"}) + "\n"))
    deadline = time.monotonic() + 60
    while len(own.lines("snapshots", "o.ours")) > 3:
        check(time.monotonic() < deadline, "the daemon expires by itself")
        time.sleep(0.1)
    equal(len(own.lines("snapshots", "o.ours")), 3, "snapshots that stay")
    equal(sorted(r["id"] for r in own.lines("scan", "o.ours")), list(range(12)), "rows")
    equal(len(own.lines("snapshots", "o.theirs")), 12, "its writers' business")
    own.stop()


lab.run("by itself", by_itself)
lab.run("a table with a key, compacted by its writers", lambda: same("keyed", bucket="1", num_sorted_run__compaction_trigger="3"))
lab.run("with deletion vectors", lambda: same("vectors", bucket="1", deletion_vectors__enabled="true", num_sorted_run__compaction_trigger="3"))
lab.run("with changelogs", lambda: same("logged", bucket="2", changelog_producer="input", num_sorted_run__compaction_trigger="3"))
lab.run("without a key", lambda: same("plain", False, bucket="-1"))
tarn.stop()
sys.exit(lab.done())
