#!/usr/bin/env python3
"""needs: shared
Promise: tags, branches and roll-backs are Paimon's. Java reads what Tarn tagged, Tarn what Java did, with their times; a tag of an expired
snapshot gives its rows to both, and the way back to it; a roll-back of one side is the history of the other, and what was
committed behind it can be sent again.
"""
import datetime
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, check, equal  # noqa: E402
from peers import Java  # noqa: E402

lab = Lab("refs")
warehouse = lab.path("wh")
java = Java(lab, warehouse)
tarn = lab.daemon("d", warehouse, **{"worker.count": 1, "commit.foreign_check": "0 s", "compaction.auto": "false"})


def make(table, commits):
    tarn.tarn("table", "create", table, "--columns", "id BIGINT NOT NULL, v STRING", "--primary-key", "id")
    for n in range(1, commits + 1):
        load(table, n, n)


def load(table, id, user, ok=True):
    rows = lab.write("rows.jsonl", json.dumps({"id": id, "v": f"v{id}"}) + "\n")
    return tarn.tarn("load", table, rows, "--commit-user", "job", "--commit-id", user, ok=ok)


def ids(table, *args):
    return sorted(r["id"] for r in tarn.lines("scan", table, *args))


def java_ids(table, *args):
    out = lab.path("dump.jsonl")
    java.ask("dump", table, out, *args)
    with open(out, encoding="utf-8") as f:
        return sorted(json.loads(line)["id"] for line in f)


def java_tags(table):
    out = lab.path("tags.jsonl")
    java.ask("tags", table, out)
    with open(out, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def tags(table):
    return {t["tag"]: t for t in tarn.lines("tag", "list", table)}


def tag_file(table, name):
    with open(os.path.join(tarn.folder(table), "tag", "tag-" + name), encoding="utf-8") as f:
        return f.read()


def both_ways():
    make("r.tags", 3)
    equal(tarn.json("tag", "create", "r.tags", "ours")["snapshot"], 3, "the latest")
    tarn.tarn("tag", "create", "r.tags", "2026-01-31 é", "--snapshot", 1, "--keep", "36h")
    java.ask("tag", "r.tags", "theirs", 2)
    java.ask("tag", "r.tags", "20260131", 2, 90)
    seen = {t["tag"]: t for t in java_tags("r.tags")}
    equal({n: (t["snapshot"], t["retained"]) for n, t in seen.items()},
          {"ours": (3, None), "2026-01-31 é": (1, 36 * 3600), "theirs": (2, None), "20260131": (2, 90)}, "what Java sees")
    mine = tags("r.tags")
    equal({n: t["snapshot"] for n, t in mine.items()}, {n: t["snapshot"] for n, t in seen.items()}, "what Tarn sees")
    for name in ("2026-01-31 é", "20260131"):  # the same moment, here and there
        made = datetime.datetime.fromisoformat(seen[name]["created"][:23]).astimezone()
        ours = datetime.datetime.fromisoformat(mine[name]["created"].replace("Z", "+00:00"))
        check(abs((made - ours).total_seconds()) < 0.002, f"{name} was made at {made}, and {ours}")
    equal(mine["ours"]["until"], None, "a tag without an end")
    # A tag of Java's and one of ours, of one snapshot: Java leaves out what it doesn't know.
    tarn.tarn("tag", "create", "r.tags", "same", "--snapshot", 2)
    same = json.loads(tag_file("r.tags", "same"))
    check(same.pop("writerVersion").startswith("tarn-"), "what Java doesn't know is kept")
    equal(same, json.loads(tag_file("r.tags", "theirs")), "the file of a tag")
    for name, want in (("ours", [1, 2, 3]), ("2026-01-31 é", [1]), ("theirs", [1, 2]), ("20260131", [1, 2])):
        equal(ids("r.tags", "--tag", name), want, name)
        if " " not in name:  # the words of the lines that Java is asked by
            equal(java_ids("r.tags", "scan.tag-name=" + name), want, f"Java: {name}")
    java.ask("untag", "r.tags", "ours")
    tarn.tarn("tag", "drop", "r.tags", "theirs")
    equal(sorted(t["tag"] for t in java_tags("r.tags")), sorted(["2026-01-31 é", "20260131", "same"]), "what is left")
    equal(sorted(tags("r.tags")), sorted(["2026-01-31 é", "20260131", "same"]), "what is left here")
    for words, says in ((("create", "r.tags", "same"), "has a tag same already"), (("drop", "r.tags", "theirs"), "has no tag theirs"),
                        (("create", "r.tags", "a/b"), "without slashes"), (("create", "r.tags", " "), "not only blanks"),
                        (("create", "r.tags", "x" * 201), "201 bytes"), (("create", "r.tags", "n", "--snapshot", 9), "no snapshot 9"),
                        (("create", "r.tags", "n", "--at", "1980-01-01 00:00:00"), "earliest"),
                        (("create", "r.tags", "n", "--keep", "2000000d"), "only for 1 to")):
        check(says in tarn.tarn("tag", *words, ok=False).error, f"{words}: {says}")


def expired():
    make("r.expired", 4)
    tarn.tarn("tag", "create", "r.expired", "two", "--snapshot", 2)
    java.ask("tag", "r.expired", "three", 3)
    java.ask("expire", "r.expired", 1)
    equal([s["id"] for s in tarn.lines("snapshots", "r.expired")], [4], "what Java's expiry left")
    for name, want in (("two", [1, 2]), ("three", [1, 2, 3])):
        equal(ids("r.expired", "--tag", name), want, name)
        equal(java_ids("r.expired", "scan.tag-name=" + name), want, f"Java: {name}")
    would = tarn.json("rollback", "r.expired", "--to-tag", "two", "--dry-run")
    equal(would, {"from": 4, "snapshot": 2, "tags": ["three"], "restored": True, "dry_run": True}, "what would go")
    equal((ids("r.expired"), sorted(tags("r.expired"))), ([1, 2, 3, 4], ["three", "two"]), "nothing went")
    equal(tarn.json("rollback", "r.expired", "--to-tag", "two")["restored"], True, "from its tag")
    equal([s["id"] for s in tarn.lines("snapshots", "r.expired")], [2], "the only one")
    for hint in ("EARLIEST", "LATEST"):
        with open(os.path.join(tarn.folder("r.expired"), "snapshot", hint), encoding="utf-8") as f:
            equal(f.read(), "2", hint)
    equal((ids("r.expired"), java_ids("r.expired"), sorted(tags("r.expired"))), ([1, 2], [1, 2], ["two"]), "the table")
    load("r.expired", 9, 5)
    equal((ids("r.expired"), java_ids("r.expired")), ([1, 2, 9], [1, 2, 9]), "and on")


def back():
    make("r.back", 5)
    tarn.tarn("tag", "create", "r.back", "old", "--snapshot", 2)
    tarn.tarn("tag", "create", "r.back", "new", "--snapshot", 4)
    for words, says in ((("--to-snapshot", 9), "no snapshot 9"), (("--to-tag", "none"), "no tag none"),
                        (("--to-time", "1980-01-01"), "earliest"), (("--to-snapshot", 2, "--only-from", 4), "is 5, not 4")):
        check(says in tarn.tarn("rollback", "r.back", *words, ok=False).error, f"{words}: {says}")
    for words in ((), ("--to-snapshot", 1, "--to-tag", "old")):
        equal(tarn.tarn("rollback", "r.back", *words, ok=None).returncode, 2, f"status of {words}")
    equal(len(tarn.lines("snapshots", "r.back")), 5, "snapshots")
    equal(tarn.json("rollback", "r.back", "--to-snapshot", 3, "--only-from", 5),
          {"from": 5, "snapshot": 3, "tags": ["new"], "restored": False, "dry_run": False}, "what went")
    equal((ids("r.back"), java_ids("r.back")), ([1, 2, 3], [1, 2, 3]), "rows")
    equal([c["state"] for n in (3, 4) for c in tarn.lines("commits", "r.back", "--user", "job", "--id", n)], ["landed", "rolled back"],
          "what became of the commits")
    load("r.back", 4, 4)  # the same identity, again
    equal((ids("r.back"), java_ids("r.back")), ([1, 2, 3, 4], [1, 2, 3, 4]), "rows, sent again")
    tarn.tarn("tag", "create", "r.back", "new")  # its name is free
    java.ask("rollback-tag", "r.back", "old")
    equal((ids("r.back"), sorted(tags("r.back"))), ([1, 2], ["old"]), "as Java rolled back")
    load("r.back", 7, 9)
    equal((ids("r.back"), java_ids("r.back")), ([1, 2, 7], [1, 2, 7]), "and on")
    equal(tarn.json("rollback", "r.back", "--to-time", tarn.lines("snapshots", "r.back")[0]["time"])["snapshot"], 1, "to a time")
    equal(tarn.json("rollback", "r.back", "--to-snapshot", 1)["from"], 1, "to where it is")


def branches():
    make("r.b", 3)
    tarn.tarn("tag", "create", "r.b", "two", "--snapshot", 2)
    equal(tarn.json("branch", "create", "r.b", "ours", "--tag", "two"), {"branch": "ours"}, "made")
    java.ask("branch", "r.b", "theirs", "two")
    tarn.tarn("branch", "create", "r.b", "empty")
    equal([b["branch"] for b in tarn.lines("branch", "list", "r.b")], ["empty", "ours", "theirs"], "branches")
    for name, rows in (("ours", [1, 2]), ("theirs", [1, 2]), ("empty", [])):
        table = "r.b$branch_" + name
        equal((ids(table), java_ids(table)), (rows, rows), name)
        load(table, 10, 10)  # the identity of the table's commits is another one
        java.ask("write", table, lab.write("rows.jsonl", json.dumps({"rowkind": "+I", "id": 11, "v": "j"}) + "\n"))
        equal((ids(table), java_ids(table)), (rows + [10, 11], rows + [10, 11]), f"{name}, written to by both")
    equal((ids("r.b"), java_ids("r.b")), ([1, 2, 3], [1, 2, 3]), "the table itself")
    # a schema of its own
    tarn.tarn("table", "alter", "r.b$branch_ours", "--add-column", "w INT")
    check("w" in tarn.lines("scan", "r.b$branch_ours")[0] and "w" not in tarn.lines("scan", "r.b")[0], "a column of the branch")
    # compacted, and read by both
    tarn.tarn("compact", "r.b$branch_theirs", "--full", "--wait")
    equal((ids("r.b$branch_theirs"), java_ids("r.b$branch_theirs")), ([1, 2, 10, 11], [1, 2, 10, 11]), "after a compaction")
    tarn.stop()
    tarn.start()
    equal((ids("r.b$branch_theirs"), ids("r.b$branch_ours"), ids("r.b")), ([1, 2, 10, 11], [1, 2, 10, 11], [1, 2, 3]), "after a restart")
    # fast-forward: ours by Tarn, then theirs by Java
    at = tarn.json("branch", "fast-forward", "r.b", "ours")
    equal(at, {"fast_forwarded_to": "ours", "snapshot": 4, "undone_from": 3, "undone_to": 3}, "where the table is")
    equal((ids("r.b"), java_ids("r.b")), ([1, 2, 10, 11], [1, 2, 10, 11]), "the table")
    check("w" in tarn.lines("scan", "r.b")[0], "the branch's schema")
    equal([c["state"] for c in tarn.lines("commits", "r.b", "--user", "job", "--id", 3)], ["rolled back"], "the commit that is gone")
    load("r.b", 12, 12)
    equal((ids("r.b"), java_ids("r.b")), ([1, 2, 10, 11, 12], [1, 2, 10, 11, 12]), "and on")
    java.ask("forward", "r.b", "theirs")
    equal((ids("r.b"), java_ids("r.b")), ([1, 2, 10, 11], [1, 2, 10, 11]), "as Java forwarded")
    # a new name, a move of the table, the end
    tarn.tarn("branch", "rename", "r.b", "ours", "kept")
    tarn.tarn("table", "rename", "r.b", "r.c")
    equal((ids("r.c$branch_kept"), java_ids("r.c$branch_kept")), ([1, 2, 10, 11], [1, 2, 10, 11]), "in the moved table")
    tarn.tarn("branch", "drop", "r.c", "kept")
    java.ask("unbranch", "r.c", "theirs")
    equal([b["branch"] for b in tarn.lines("branch", "list", "r.c")], ["empty"], "what is left")
    for table in ("r.c$branch_kept", "r.c$branch_theirs"):
        check("no branch" in tarn.tarn("scan", table, ok=False).error, table)
    for words, says in ((("branch", "create", "r.c", "main"), "of the table itself"), (("branch", "create", "r.c", "12"), "digits only"),
                        (("branch", "create", "r.c", "a$b"), "a $"), (("branch", "create", "r.c", "empty"), "has a branch empty already"),
                        (("branch", "create", "r.c", "x", "--tag", "nope"), "no tag nope"), (("branch", "drop", "r.c", "x"), "no branch x"),
                        (("branch", "fast-forward", "r.c", "x"), "no branch x"), (("branch", "list", "r.c$branch_empty"), "is a branch"),
                        (("branch", "create", "r.c$branch_empty", "y"), "is a branch"),
                        (("table", "drop", "r.c$branch_empty"), "is a branch"), (("table", "rename", "r.c$branch_empty", "r.d"), "is a branch")):
        check(says in tarn.tarn(*words, ok=False).error, f"{words}: {says}")
    equal(ids("r.c$branch_main"), ids("r.c"), "main is the table")
    tarn.tarn("table", "drop", "r.c")
    check("no table" in tarn.tarn("scan", "r.c$branch_empty", ok=False).error, "a branch of a table that is gone")
    make("r.c", 1)
    check("no branch" in tarn.tarn("scan", "r.c$branch_empty", ok=False).error, "a branch of the table that was there before")


tarn.start()
tarn.tarn("db", "create", "r")
lab.run("tags of both", both_ways)
lab.run("a tag that outlived its snapshot", expired)
lab.run("roll-back", back)
lab.run("branches", branches)
sys.exit(lab.done())
