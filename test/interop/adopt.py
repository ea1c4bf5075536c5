#!/usr/bin/env python3
"""needs: shared
Promise: databases that Paimon's Java library, pypaimon and (TARN_EFFORT > 1) Flink made before, with history, tags, branches and consumers, are taken as they are: every
file of theirs keeps its bytes and its time; what is broken is named, where it is, and hinders nothing else; whose compaction is whose is kept. Tables
that they make, rename or drop while the daemon runs show and vanish by themselves, and their file-system catalog sees whatever the daemon made.
A daemon that is killed while it adopts leaves each table adopted or not.
"""
import hashlib
import json
import os
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import flink  # noqa: E402
from lab import Lab, check, equal, wait_until  # noqa: E402
from peers import Java, Python  # noqa: E402

OURS = ".tarn-table"
LONG = int(os.environ.get("TARN_EFFORT") or 1) > 1 or len(sys.argv) > 1  # Flink takes a minute: so, or by name
SCHEMA = {"fields": [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}, {"id": 1, "name": "v", "type": "STRING"}],
          "partitionKeys": [], "primaryKeys": ["id"], "comment": ""}

lab = Lab("adopt")
before = lab.path("before")  # where they worked without a daemon
warehouse = lab.path("wh")
old = Java(lab, before)
java = Java(lab, warehouse)
tarn = lab.daemon("d", warehouse, **{"worker.count": 1, "commit.foreign_check": "0 s", "compaction.auto": "true",
                                     "compaction.check_interval": "100 ms"})


def schema(name, **options):
    return lab.write(name, json.dumps({**SCHEMA, "options": {"bucket": "1", **options}}))


def rows(*ids, tag=""):
    return lab.write("rows.jsonl", "".join(json.dumps({"id": i, "v": f"v{i}{tag}"}) + "\n" for i in ids))


def make(peer, table, commits=0, **options):
    peer.ask("create", table, schema("schema.json", **{k.replace("_", "-"): v for k, v in options.items()}))
    for n in range(1, commits + 1):
        peer.ask("write", table, rows(n))


def names(peer, what, of="-"):
    out = lab.path("names")
    peer.ask(what, of, out)
    with open(out, encoding="utf-8") as f:
        return sorted(f.read().split())


def dump(peer, table, *sets):
    out = lab.path("dump.jsonl")
    peer.ask("dump", table, out, *sets)
    with open(out, encoding="utf-8") as f:
        return sorted((r["id"], r["v"]) for r in map(json.loads, f))


def scan(table, *args):
    return sorted((r["id"], r["v"]) for r in tarn.lines("scan", table, *args))


def picture(folder):
    """Every file below: what is in it, and when it was written."""
    found = {}
    for at, folders, files in os.walk(folder):
        if ".tarn" in folders:  # whose the warehouse is
            folders.remove(".tarn")
        for name in files:
            path = os.path.join(at, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, folder)] = (hashlib.sha256(f.read()).hexdigest(), os.stat(path).st_mtime_ns)
    return found


def copy(database, to):
    """As a whole and at once: as a folder that somebody moved there."""
    temporary = lab.path("wh", "." + to)
    shutil.copytree(os.path.join(before, database + ".db"), temporary)
    os.rename(temporary, lab.path("wh", to + ".db"))


def adopt(*words, code=0):
    """The reports by table; code: how the command ends."""
    got = tarn.tarn("adopt", *words, "-o", "jsonl", ok=None)
    equal(got.returncode, code, f"adopt {words}: {got.error}")
    return {r["table"]: r for r in map(json.loads, got.stdout.splitlines())}


def told(report, kind):
    return [(f["where"], f["what"]) for f in report["findings"] if f["kind"] == kind]


def build():
    """What there was before: whole tables, others that use what Tarn hasn't, and broken ones."""
    make(old, "old.pk", 4)
    old.ask("tag", "old.pk", "kept", 2)
    old.ask("tag", "old.pk", "timed", 3, 86400)
    old.ask("branch", "old.pk", "b1", "kept")
    old.ask("add", "old.pk$branch_b1", "w", "INT")
    old.ask("write", "old.pk$branch_b1", lab.write("rows.jsonl", '{"id": 50, "v": "b", "w": 7}\n'))
    old.ask("consumer", "old.pk", "reader", 4)
    for n in range(5, 9):
        old.ask("write", "old.pk", rows(n, 1, tag="x"))
    old.ask("expire", "old.pk", 3)
    make(old, "old.plain", 2, write_only="true")
    make(old, "old.dv", 3, **{"deletion-vectors.enabled": "true"})
    make(old, "old.agg", 2, write_only="true", **{"sequence.snapshot-ordering": "true"})
    make(old, "old.orc", 1, **{"file.format": "orc"})
    make(old, "old.empty")
    python = Python(lab, before)
    python.ask("create", "old.py", schema("schema.json"))
    for n in (1, 2):
        python.ask("write", "old.py", rows(n))
    for broken in ("cut", "gap", "lost", "unread", "odd"):
        make(old, "broken." + broken, 3)
    make(old, "broken.fine", 2)
    os.makedirs(os.path.join(before, "old.db", "junk"))
    with open(os.path.join(before, "old.db", "junk", "notes"), "w", encoding="utf-8") as f:
        f.write("not a table")


def manifest_of(folder, snapshot, member):
    with open(os.path.join(folder, "snapshot", f"snapshot-{snapshot}"), encoding="utf-8") as f:
        return os.path.join(folder, "manifest", json.load(f)[member])


def data_file(folder):
    return max((os.path.join(at, f) for at, _, files in os.walk(folder) for f in files if f.startswith("data-")), key=os.path.getmtime)


def destroy(root):
    cut = manifest_of(os.path.join(root, "cut"), 2, "deltaManifestList")
    with open(cut, "r+b") as f:
        f.truncate(os.path.getsize(cut) - 3)
    os.unlink(os.path.join(root, "gap", "snapshot", "snapshot-2"))
    os.unlink(data_file(os.path.join(root, "lost")))
    with open(os.path.join(root, "unread", "schema", "schema-0"), "w", encoding="utf-8") as f:
        f.write('{"version": 3, "id"')
    os.makedirs(os.path.join(root, "odd", "tag"))
    for name, text in (("tag/tag-x", "{}"), ("consumer/consumer-y", "?")):
        os.makedirs(os.path.join(root, "odd", os.path.dirname(name)), exist_ok=True)
        with open(os.path.join(root, "odd", name), "w", encoding="utf-8") as f:
            f.write(text)
    with open(os.path.join(root, "odd", "snapshot", "LATEST"), "w", encoding="utf-8") as f:
        f.write("2")


def theirs(found):
    return {p: v for p, v in found.items() if os.path.basename(p) != OURS}


def unchanged(now, was, what):
    equal({p: now.get(p) for p in was if now.get(p) != was[p]}, {}, f"{what}: files that aren't as they were")
    equal(sorted(p for p in now if p not in was), [], f"{what}: files that weren't there")


def whole():
    copy("old", "old")
    was = picture(lab.path("wh"))
    looked = adopt("old", "--check", "--files", "all")
    unchanged(picture(lab.path("wh")), was, "a look")
    equal({n: r["outcome"] for n, r in looked.items()},
          {"agg": "checked", "dv": "checked", "empty": "checked", "junk": "no_table", "orc": "checked", "pk": "checked", "plain": "checked", "py": "checked"}, "seen")
    pk = looked["pk"]
    equal({k: pk[k] for k in ("tags", "branches", "consumers", "schemas", "damages", "limits", "compaction")},
          {"tags": 3, "branches": 1, "consumers": 1, "schemas": 3, "damages": 0, "limits": 0, "compaction": "writers"}, "pk")
    check(pk["earliest_snapshot"] == 4 and pk["snapshots"] == pk["latest_snapshot"] - 3 and pk["files_looked"] > 0, f"pk: {pk}")
    equal(told(looked["orc"], "limit"), [], "orc")
    for table, why in (("agg", "sequence.snapshot-ordering = true"),):
        check(any(why in what for _, what in told(looked[table], "limit")), f"{table}: {looked[table]['findings']}")
    equal([n for n, r in looked.items() if r["damages"]], [], "whole")
    taken = adopt("old")
    equal({n: r["outcome"] for n, r in taken.items() if n != "junk"}, {n: "adopted" for n in looked if n != "junk"}, "taken")
    now = picture(lab.path("wh"))
    unchanged(theirs(now), theirs(was), "their files")
    equal(sorted(p for p in now if p not in was), sorted(f"old.db/{n}/{OURS}" for n in looked if n != "junk"), "ours")
    equal({n: r["outcome"] for n, r in adopt("old", "--files", "none").items() if n != "junk"}, {n: "known" for n in looked if n != "junk"}, "again")
    unchanged(picture(lab.path("wh")), now, "again")


def read():
    """What was adopted is read as its makers read it, and nothing of it changes for that."""
    now = picture(lab.path("wh"))
    for table in ("old.pk", "old.py", "old.plain", "old.empty"):
        equal(scan(table), dump(java, table), table)
    for snapshot in [s["id"] for s in tarn.lines("snapshots", "old.pk")]:
        equal(scan("old.pk", "--snapshot", snapshot), dump(java, "old.pk", f"scan.snapshot-id={snapshot}"), f"snapshot {snapshot}")
    for tag in ("kept", "timed"):
        equal(scan("old.pk", "--tag", tag), dump(java, "old.pk", f"scan.tag-name={tag}"), f"tag {tag}")
    equal([b["branch"] for b in tarn.lines("branch", "list", "old.pk")], ["b1"], "branches")
    equal(scan("old.pk$branch_b1"), dump(java, "old.pk$branch_b1"), "the branch")
    equal([r["w"] for r in tarn.lines("scan", "old.pk$branch_b1", "--where", "id = 50")], [7], "its column")
    equal([(c["id"], c["next_snapshot"]) for c in tarn.lines("consumer", "list", "old.pk")], [("reader", 4)], "consumers")
    check("rows" in adopt("old.agg", "--check")["agg"]["findings"][0]["what"], "what such a table can't")
    check("snapshot-ordering" in tarn.tarn("scan", "old.agg", ok=False).error, "and it is refused so")
    unchanged(theirs(picture(lab.path("wh"))), theirs(now), "their files")


def broken():
    shutil.copytree(os.path.join(before, "broken.db"), lab.path("half"))
    destroy(lab.path("half"))
    os.rename(lab.path("half"), lab.path("wh", "broken.db"))
    was = picture(lab.path("wh"))
    for words in (("--check",), ()):
        found = adopt("broken", *words, code=1)
        damage = {n: told(r, "damage") for n, r in found.items()}
        for table, where, what in (("cut", "manifest/manifest-list", "bytes, and its snapshot says"), 
                                   ("gap", "snapshot/snapshot-2", "missing between 1 and 3"), ("lost", "bucket-0/data-", "it isn't there"),
                                   ("unread", "schema/schema-0", "the schema can't be read"), ("odd", "tag/tag-x", "the tag can't be read"),
                                   ("odd", "consumer/consumer-y", "the consumer can't be read")):
            check(any((where in w or where in x) and what in x and f"broken.db/{table}/" in w for w, x in damage[table]), f"{table}: {damage[table]}")
        equal(damage["fine"], [], "the one that is whole")
        check(all(f["advice"] for r in found.values() for f in r["findings"]), "what to do")
    unchanged(theirs(picture(lab.path("wh"))), theirs(was), "their files")
    equal({found["fine"]["outcome"], found["odd"]["outcome"]}, {"adopted"}, "the rest is adopted")
    equal(found["unread"]["outcome"], "failed", "what can't be opened")
    check("schema-0" in found["unread"]["failure"], found["unread"]["failure"])
    for table in ("broken.fine", "broken.odd"):
        equal(scan(table), dump(java, table), table)
    equal(scan("broken.cut", "--snapshot", 3) if found["cut"]["outcome"] == "adopted" else None,
          dump(java, "broken.cut", "scan.snapshot-id=3") if found["cut"]["outcome"] == "adopted" else None, "what is whole of the cut one")


def targets():
    make(old, "more.t", 1)
    copy("more", "more")
    for target in (lab.path("wh", "more.db", "t"), "file://" + lab.path("wh", "more.db") + "/", "more.db/t", "more", "more.t"):
        equal(list(adopt(target)), ["t"], target)
    for target, says in ((os.path.join(before, "more.db"), "outside the warehouse"), ("s3://bucket/more.db", "outside the warehouse"),
                         ("elsewhere", "no database elsewhere"), ("more.u", "no folder u"), ("more/t", "no place of a database"),
                         (lab.path("wh", "more.db", "t", "snapshot"), "no place of a database")):
        check(says in tarn.tarn("adopt", target, ok=False).error, f"{target}: {says}")
    everything = {(r["database"], r["table"]) for r in tarn.lines("adopt", "--all", "--check", ok=None)}
    check({("more", "t"), ("old", "pk"), ("broken", "gap")} <= everything, f"all: {everything}")


def kinds(table):
    return [s["kind"] for s in tarn.lines("snapshots", table)]


def compaction():
    """Of tables that others made their writers do it, until somebody says otherwise."""
    for table in ("a", "b"):
        make(old, "c." + table, 7, write_only="true")
    copy("c", "c")
    equal({n: r["compaction"] for n, r in adopt("c").items()}, {"a": "writers", "b": "writers"}, "whose")
    check("write-only is set" in str(adopt("c.a")["a"]["findings"]), "nobody does")
    before_it = {n: picture(lab.path("wh", "c.db", n)) for n in "ab"}
    equal(adopt("c.a", "--compaction", "tarn")["a"]["compaction"], "tarn", "taken")
    equal((tarn.json("table", "show", "c.a")["compaction"], tarn.json("table", "show", "c.b")["compaction"]), ("tarn", "writers"), "shown")
    wait_until("it is compacted", lambda: "COMPACT" in kinds("c.a"))
    equal(scan("c.a"), dump(java, "c.a"), "rows")
    for path, was in theirs(before_it["a"]).items():
        if os.path.basename(path) not in ("LATEST", "EARLIEST"):
            equal(picture(lab.path("wh", "c.db", "a"))[path], was, path)
    unchanged(picture(lab.path("wh", "c.db", "b")), before_it["b"], "the other one")
    tarn.kill9()
    shutil.rmtree(os.path.join(tarn.data, "state"))
    tarn.start()
    equal((tarn.json("table", "show", "c.a")["compaction"], tarn.json("table", "show", "c.b")["compaction"]), ("tarn", "writers"), "kept")
    java.ask("move", "c.a", "c.moved")
    equal(tarn.json("table", "show", "c.moved")["compaction"], "tarn", "of a table that others renamed")
    for n in range(20, 28):
        java.ask("write", "c.moved", rows(n))
    wait_until("what they write is compacted", lambda: kinds("c.moved").count("COMPACT") >= 2)
    equal(adopt("c.moved", "--compaction", "writers")["moved"]["compaction"], "writers", "given back")
    unchanged(picture(lab.path("wh", "c.db", "b")), before_it["b"], "the other one, still")
    check("its compaction stays its writers'" in str(adopt("old.agg", "--compaction", "tarn")["agg"]["findings"]), "what can't be compacted here")


def tables(database):
    return [t["table"] for t in tarn.lines("table", "list", database)]


def by_themselves():
    """No restart, no command: what they do shows in the lists."""
    python = Python(lab, warehouse)
    make(java, "live.one", 1)
    equal(tables("live"), ["one"], "made by Java")
    uuid = tarn.json("table", "show", "live.one")["uuid"]
    python.ask("create", "live.two", schema("schema.json"))
    python.ask("write", "live.two", rows(1, 2))
    equal(tables("live"), ["one", "two"], "made by pypaimon")
    equal(scan("live.two"), dump(java, "live.two"), "its rows")
    java.ask("move", "live.one", "live.uno")
    equal(tables("live"), ["two", "uno"], "renamed by Java")
    equal(tarn.json("table", "show", "live.uno")["uuid"], uuid, "it is the same table")
    check("no table live.one" in tarn.tarn("table", "show", "live.one", ok=False).error, "by its old name")
    equal(scan("live.uno"), dump(java, "live.uno"), "its rows")
    tarn.tarn("load", "live.uno", lab.write("l.jsonl", '{"id": 9, "v": "nine"}\n'))
    equal(scan("live.uno"), dump(java, "live.uno"), "written to, under its new name")
    java.ask("drop", "live.two")
    equal(tables("live"), ["uno"], "dropped by Java")
    check("no table live.two" in tarn.tarn("scan", "live.two", ok=False).error, "what was dropped")
    make(java, "live.two", 3)
    equal((tables("live"), scan("live.two")), (["two", "uno"], dump(java, "live.two")), "made again, another one")
    python.ask("drop", "live.uno")
    equal(tables("live"), ["two"], "dropped by pypaimon")
    count = tarn.json("status")["tables"]
    java.ask("undb", "live.-")
    check("live" not in [d["name"] for d in tarn.lines("db", "list")], "a database that Java dropped")
    check("no database live" in tarn.tarn("table", "list", "live", ok=False).error, "its tables")
    equal(tarn.json("status")["tables"], count - 1, "tables that are known")


def reverse():
    """Their file-system catalog sees whatever the daemon made."""
    tarn.tarn("db", "create", "ours")
    tarn.tarn("table", "create", "ours.t", "--columns", "id BIGINT NOT NULL, v STRING", "--primary-key", "id")
    tarn.tarn("table", "create", "ours.log", "--columns", "id BIGINT, v STRING")
    for n in (1, 2, 3):
        for table in ("ours.t", "ours.log"):
            tarn.tarn("load", table, lab.write("l.jsonl", json.dumps({"id": n, "v": f"v{n}"}) + "\n"))
    tarn.tarn("tag", "create", "ours.t", "two", "--snapshot", 2)
    tarn.tarn("branch", "create", "ours.t", "b", "--tag", "two")
    tarn.tarn("load", "ours.t$branch_b", lab.write("l.jsonl", '{"id": 7, "v": "b"}\n'))
    tarn.tarn("table", "create", "ours.gone", "--columns", "id BIGINT")
    tarn.tarn("table", "drop", "ours.gone")
    tarn.tarn("table", "create", "ours.was", "--columns", "id BIGINT, v STRING")
    tarn.tarn("table", "rename", "ours.was", "ours.is")
    tarn.tarn("view", "create", "ours.view", "--file", lab.write("view.json", json.dumps({"query": "SELECT 1", "fields": []})))
    mine = sorted(d["name"] for d in tarn.lines("db", "list"))
    equal([d for d in names(java, "databases") if d != "default"], [d for d in mine if d != "default"], "databases")
    for database in mine:
        seen = [t for t in tables(database) if not (database == "broken" and t == "unread")]
        equal([t for t in names(java, "tables", database + ".") if t != "unread"], seen, database)
    equal(names(java, "tables", "ours."), ["is", "log", "t"], "ours")
    equal(names(java, "branches", "ours.t"), ["b"], "branches")
    for table, words, sets in (("ours.t", (), ()), ("ours.log", (), ()), ("ours.is", (), ()), ("ours.t$branch_b", (), ()),
                               ("ours.t", ("--tag", "two"), ("scan.tag-name=two",)), ("ours.t", ("--snapshot", 1), ("scan.snapshot-id=1",))):
        equal(dump(java, table, *sets), scan(table, *words), f"{table} {words}")


def flink_rows(f, table, hints=""):
    return sorted((int(i), v) for i, v in f.batch(f"SELECT id, v FROM {table} {hints}").elements())


def read_on(f, count):
    """The next rows of consumer "reader", whose position is then a checkpoint's."""
    path = os.path.join(f.root, "fl.db/t/consumer/consumer-reader")
    was = os.stat(path).st_mtime_ns if os.path.exists(path) else 0
    f.ask("start", "reader", "SELECT id, v FROM fl.t /*+ OPTIONS('consumer-id'='reader', 'consumer.expiration-time'='1 d') */")
    got = sorted((int(i), v) for _, i, v in f.ask("take", "reader", count))
    newest = max(int(n[9:]) for n in os.listdir(os.path.join(f.root, "fl.db/t/snapshot")) if n.startswith("snapshot-"))
    wait_until("its position is written", lambda: os.path.exists(path) and os.stat(path).st_mtime_ns != was and json.load(open(path))["nextSnapshot"] == newest + 1, 60)
    f.ask("cancel", "reader")
    return got, newest + 1


def flink_at(root):
    f = flink.Flink(lab, "file://" + root, "2.0.2", "parallelism.default=1", *flink.checkpointed(lab.path("chk-" + os.path.basename(root))))
    f.root = root
    return f


def by_flink():
    """What Flink's file-system catalog made, with a tag, a branch and a consumer, goes on as it was, and so does Flink."""
    flink.fetch("flink", FLINK_VERSION="2.0.2")
    f = flink_at(before)
    f.batch("CREATE DATABASE fl")
    f.batch("CREATE TABLE fl.t (id BIGINT NOT NULL, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket'='1')")
    for n in range(1, 5):
        f.batch(f"INSERT INTO fl.t VALUES ({n}, 'v{n}')")
    f.batch("CALL sys.create_tag(`table` => 'fl.t', tag => 'two', snapshot_id => 2)")
    f.batch("CALL sys.create_branch('fl.t', 'b', 'two')")
    f.batch("INSERT INTO fl.`t$branch_b` VALUES (20, 'b')")
    all_of_them = [(n, f"v{n}") for n in range(1, 5)]
    got, next_snapshot = read_on(f, 4)
    equal(got, all_of_them, "what its reader had")
    f.close()
    copy("fl", "fl")
    was = picture(lab.path("wh", "fl.db"))
    report = adopt("fl")["t"]
    equal({k: report[k] for k in ("outcome", "tags", "branches", "consumers", "damages", "compaction")},
          {"outcome": "adopted", "tags": 2, "branches": 1, "consumers": 1, "damages": 0, "compaction": "writers"}, "fl.t; the branch has the tag, too")
    unchanged({p: v for p, v in picture(lab.path("wh", "fl.db")).items() if p in was}, was, "its files")
    equal(scan("fl.t"), all_of_them, "rows")
    equal(scan("fl.t", "--tag", "two"), all_of_them[:2], "the tag")
    equal(scan("fl.t$branch_b"), [*all_of_them[:2], (20, "b")], "the branch")
    equal([(c["id"], c["next_snapshot"]) for c in tarn.lines("consumer", "list", "fl.t")], [("reader", next_snapshot)], "its consumer")
    g = flink_at(warehouse)
    g.batch("INSERT INTO fl.t VALUES (5, 'v5'), (1, 'new')")
    tarn.tarn("load", "fl.t", lab.write("l.jsonl", '{"id": 6, "v": "v6"}\n'))
    now = [(1, "new"), *all_of_them[1:], (5, "v5"), (6, "v6")]
    equal((scan("fl.t"), flink_rows(g, "fl.t")), (now, now), "both wrote")
    equal(flink_rows(g, "fl.t", "/*+ OPTIONS('scan.tag-name'='two') */"), all_of_them[:2], "the tag, by Flink")
    got, next_snapshot = read_on(g, 3)
    equal(got, [(1, "new"), (5, "v5"), (6, "v6")], "what its reader had not yet")
    equal([(c["id"], c["next_snapshot"]) for c in tarn.lines("consumer", "list", "fl.t")], [("reader", next_snapshot)], "its consumer, afterwards")
    g.batch("INSERT INTO fl.`t$branch_b` VALUES (21, 'c')")
    equal(scan("fl.t$branch_b"), [*all_of_them[:2], (20, "b"), (21, "c")], "the branch, afterwards")
    tarn.tarn("tag", "create", "fl.t", "now")
    g.batch("CALL sys.delete_tag(`table` => 'fl.t', tag => 'two')")
    equal([t["tag"] for t in tarn.lines("tag", "list", "fl.t")], ["now"], "tags of both")
    equal(flink_rows(g, "fl.t", "/*+ OPTIONS('scan.tag-name'='now') */"), now, "our tag, by Flink")
    g.close()


def killed():
    """Killed while it adopts: each table is adopted or not, and all else is as it was."""
    make(old, "k.t00", 1)
    for n in range(1, 24):
        shutil.copytree(os.path.join(before, "k.db", "t00"), os.path.join(before, "k.db", f"t{n:02}"))
    for count in (0, 1, 5, 12, 20):
        shutil.rmtree(lab.path("wh", "k.db"), ignore_errors=True)
        tables_before = [d["name"] for d in tarn.lines("db", "list")]
        check("k" not in tables_before, f"{tables_before}")
        copy("k", "k")
        root = lab.path("wh", "k.db")
        was = picture(root)
        client = tarn.popen("adopt", "k", "-o", "jsonl")
        end = time.monotonic() + 20
        while sum(os.path.exists(os.path.join(root, t, OURS)) for t in os.listdir(root)) < count and time.monotonic() < end:
            pass
        tarn.process.send_signal(signal.SIGKILL)
        tarn.kill9()
        client.communicate(timeout=20)
        now = picture(root)
        mine = {p: v for p, v in now.items() if p not in was}
        unchanged({p: v for p, v in now.items() if p in was}, was, f"killed at {count}")
        for path in mine:
            name = os.path.basename(path)
            check(name == OURS or (name.startswith(OURS + ".") or name.startswith("." + OURS)) and name.endswith(".tmp"), f"a file of ours: {path}")
            if name == OURS:
                with open(os.path.join(root, path), encoding="utf-8") as f:
                    text = json.load(f)
                equal((text["name"], text["compaction"]), ("k." + path.split("/")[0], "writers"), path)
        uuids = {}
        for path in mine:
            if os.path.basename(path) == OURS:
                with open(os.path.join(root, path), encoding="utf-8") as f:
                    uuids[path.split("/")[0]] = json.load(f)["uuid"]
        tarn.start()
        listed = {t["table"]: t["uuid"] for t in tarn.lines("table", "list", "k")}
        equal(len(listed), 24, "tables")
        equal({t: listed[t] for t in uuids}, uuids, "those that were adopted are what they were")
        equal({r["outcome"] for r in adopt("k").values()}, {"known"}, "adopted")
        unchanged({p: v for p, v in picture(root).items() if p in was}, was, "after the start")
        equal(scan("k.t07"), [(1, "v1")], "rows")


build()
tarn.start()
lab.run("whole databases", whole)
lab.run("what was adopted is read", read)
lab.run("broken tables", broken)
lab.run("targets", targets)
lab.run("compaction", compaction)
lab.run("tables come and go by themselves", by_themselves)
lab.run("the reverse", reverse)
lab.run("killed while it adopts", killed)
if LONG:
    lab.run("what Flink made", by_flink)
sys.exit(lab.done())
