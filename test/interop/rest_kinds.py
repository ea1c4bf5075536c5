#!/usr/bin/env python3
"""needs: shared
Promise: tables of all kinds and places, as the unmodified REST clients of Paimon's Java library and of pypaimon make and use them: format
and object tables, of which the daemon has only the entry; tables outside of the warehouse, where an administrator allows them; folders by
uuid; names with any character; and tables that are write-only because the daemon does all that keeps them in order.
rest_kinds.py [PART OF A CASE'S NAME]... runs some.
"""
import json
import os
import sys
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, check, equal, rows_of  # noqa: E402
from peers import Java, Python  # noqa: E402

FIELDS = [{"id": 0, "name": "id", "type": "BIGINT"}, {"id": 1, "name": "v", "type": "STRING"}, {"id": 2, "name": "dt", "type": "STRING"}]
TYPES = [("id", "BIGINT"), ("v", "STRING"), ("dt", "STRING")]

lab = Lab("rest-kinds")
OUT = lab.path("out")
tarnd = lab.daemon("d", **{"warehouse.external_paths": "file://" + OUT})
tarnd.start()
REST = ["metastore=rest", "warehouse=tarn", "token.provider=bear", "token=any"]
java = Java(lab, tarnd.warehouse, *REST, f"uri=http://{tarnd.http}")
python = Python(lab, tarnd.warehouse, *REST, f"uri=http://{tarnd.http}")
PEERS = {"java": java, "python": python}


def http(method, path, body=None, daemon=tarnd):
    return daemon.rest(method, "/tarn" + path, body)


def served(name, daemon=tarnd):
    database, table = name.split(".", 1)
    status, got = http("GET", f"/databases/{database}/tables/{urllib.parse.quote_plus(table)}", daemon=daemon)
    equal(status, 200, f"{name}: {got}")
    return got


def create(peer, name, fields=FIELDS, partitions=(), keys=(), **options):
    schema = {"fields": fields, "partitionKeys": list(partitions), "primaryKeys": list(keys),
              "options": {k.replace("_", "-"): v for k, v in options.items()}, "comment": None}
    peer.ask("create", name, lab.write("s.json", json.dumps(schema)))


def rows(*numbers, v="x"):
    return lab.write("r.jsonl", "".join(json.dumps({"id": n, "v": f"{v}{n}", "dt": f"d{n % 2}"}) + "\n" for n in numbers))


def want(*numbers, v="x"):
    return rows_of("".join(json.dumps({"id": n, "v": f"{v}{n}", "dt": f"d{n % 2}"}) + "\n" for n in numbers), TYPES)


def below(folder):
    return sorted(os.path.relpath(os.path.join(d, f), folder) for d, _, files in os.walk(folder) for f in files)


def tables(peer, database):
    out = peer.file()
    peer.ask("tables", database + ".", out)
    with open(out, encoding="utf-8") as f:
        return sorted(f.read().split())


def format_table(word, form):
    """Made, changed and dropped by either, written and read by Java; its folder holds nothing but data files."""
    peer, name = PEERS[word], f"{word}.{form}"
    create(peer, name, partitions=["dt"], type="format-table", **{"file.format": form})
    table = served(name)
    equal((table["isExternal"], table["schema"]["options"]["type"]), (False, "format-table"), "what is served")
    folder = table["path"][len("file://"):]
    java.ask("write", name, rows(1, 2, 3))
    files = below(folder)
    check(files and all(f.split("/")[0] in ("dt=d0", "dt=d1") for f in files if not f.endswith(".crc")), f"files: {files}")
    equal(java.rows(name, types=TYPES), want(1, 2, 3), "rows that java reads")
    for other, reader in PEERS.items():
        check(form in tables(reader, word), f"{other} lists it")
    peer.ask("set", name, "k=v")
    equal(served(name)["schema"]["options"]["k"], "v", "its new option")
    peer.ask("move", name, f"{word}.moved")
    equal(java.rows(f"{word}.moved", types=TYPES), want(1, 2, 3), "rows under its new name")
    refusal = tarnd.tarn("scan", f"{word}.moved", ok=False).error
    check("format-table" in refusal and "engines" in refusal, refusal)
    check("format-table" in tarnd.tarn("load", f"{word}.moved", rows(9), "--format", "jsonl", ok=False).error, "a load is refused")
    check("format-table" in tarnd.tarn("compact", f"{word}.moved", ok=False).error, "a compaction is refused")
    check("moved" in json.dumps(tarnd.json("table", "show", f"{word}.moved")), "tarn shows it")
    peer.ask("drop", f"{word}.moved")
    equal(below(folder), [], "what is left of it")
    check("moved" not in tables(peer, word), "it is listed no more")


def object_table():
    create(java, "o.files", fields=[], type="object-table")
    table = served("o.files")
    equal([f["name"] for f in table["schema"]["fields"]], ["path", "name", "length", "mtime", "atime", "owner"], "its columns")
    folder = table["path"][len("file://"):]
    os.makedirs(os.path.join(folder, "deep"))
    for name, text in (("a.txt", "abc"), ("deep/b.bin", "12345")):
        with open(os.path.join(folder, name), "w", encoding="ascii") as f:
            f.write(text)
    out = java.file()
    java.ask("dump", "o.files", out)
    with open(out, encoding="utf-8") as f:
        got = sorted((r["name"], r["length"]) for r in map(json.loads, f.read().split("\n")[:-1]))
    equal(got, [("a.txt", 3), ("b.bin", 5)], "objects that java lists")
    java.ask("drop", "o.files")
    equal(below(folder), [], "what is left of it")


def external(word):
    peer, name = PEERS[word], f"{word}.ext"
    create(java, name, keys=["id"], bucket="1", path=f"file://{OUT}/{word}/ext")
    table = served(name)
    equal((table["isExternal"], table["path"]), (True, f"file://{OUT}/{word}/ext"), "what is served")
    check("path" not in table["schema"]["options"], "the path is said once")
    peer.ask("write", name, rows(1, 2))
    tarnd.tarn("load", name, rows(2, 3, v="y"), "--format", "jsonl")
    peer.ask("write", name, rows(4))
    both = want(1, 4) + want(2, 3, v="y")
    equal(tarnd.scan(name, types=TYPES), both, "rows that tarn reads")
    for other, reader in PEERS.items():
        equal(reader.rows(name, types=TYPES), both, f"rows that {other} reads")
    tarnd.tarn("compact", name, "--full", "--wait")
    equal(peer.rows(name, types=TYPES), both, "rows behind a compaction")
    files = below(f"{OUT}/{word}/ext")
    check(not any(f.startswith(".tarn") for f in files), f"something of ours: {files}")
    peer.ask("move", name, f"{word}.ext2")
    tarnd.stop()
    tarnd.start(**{"server.http_listen": tarnd.http})  # clients go on
    equal(tarnd.scan(f"{word}.ext2", types=TYPES), both, "rows behind a restart")
    for other, reader in PEERS.items():
        equal(reader.rows(f"{word}.ext2", types=TYPES), both, f"rows behind a restart that {other} reads")
    peer.ask("drop", f"{word}.ext2")
    equal(below(f"{OUT}/{word}/ext"), files, "its files, which stay")
    create(java, f"{word}.again", keys=["id"], bucket="1", path=f"file://{OUT}/{word}/ext")
    equal(tarnd.scan(f"{word}.again", types=TYPES), both, "rows of what was there")


def refused_places():
    for path, why in ((f"file://{lab.path('elsewhere')}/t", "external_paths"), (f"file://{OUT}/../t", "absolute URI"),
                      (f"file://{tarnd.warehouse}/x.db/t", "meets the warehouse"), ("s3://bucket/t", "external_paths")):
        for options in ({}, {"type": "format-table"}):
            status, got = http("POST", "/databases/java/tables",
                               {"identifier": {"database": "java", "object": "no"}, "schema": {"fields": FIELDS, "options": {**options, "path": path}}})
            equal(status, 400, f"{path}: {got}")
            check(why in got["message"], f"{path}: {got}")
    refusal = tarnd.tarn("table", "create", "java.no", "--columns", "id BIGINT", "--option", "path=file:///elsewhere", ok=False).error
    check("external_paths" in refusal, refusal)
    check(not os.path.exists(lab.path("elsewhere")), "nothing was made there")


NAMES = ["t#1", "t#2", "t?1", "t?2", "t%2Fx", "t%", "t*", "{t}", "[t]", "t:1", "t;1", "t'1", 't"1', "t&a=b", "t+1", "t=1", "tä", "\u202et", "(t)~!@,", "t|1", "<t>"]


def names(word):
    """Each has rows of its own, wherever the client cuts an URL; what a name looks like leads nowhere else."""
    peer, other = PEERS[word], PEERS["python" if word == "java" else "java"]
    tarnd.tarn("db", "create", f"n{word}")
    for n, name in enumerate(NAMES):
        create(peer, f"n{word}.{name}", keys=["id"], bucket="1")
        peer.ask("write", f"n{word}.{name}", rows(n))
    equal(tables(other, f"n{word}"), sorted(NAMES), "what the other lists")
    for n, name in enumerate(NAMES):
        equal(other.rows(f"n{word}.{name}", types=TYPES), want(n), f"rows of {name} that the other reads")
        equal(tarnd.scan(f"n{word}.{name}", types=TYPES), want(n), f"rows of {name} that tarn reads")
    peer.ask("move", f"n{word}.t#1", f"n{word}.t?3")
    equal(other.rows(f"n{word}.t?3", types=TYPES), want(0), "rows under another name")
    for name in ["t?3", *NAMES[1:]]:
        peer.ask("drop", f"n{word}.{name}")
    equal(tables(other, f"n{word}"), [], "what is left")


def folders_by_uuid():
    by_uuid = lab.daemon("u", **{"warehouse.table_folders": "uuid"})
    by_uuid.start()
    peer = Python(lab, by_uuid.warehouse, *REST, f"uri=http://{by_uuid.http}")
    create(peer, "db.t", keys=["id"], bucket="1")
    table = served("db.t", by_uuid)
    check(table["path"].endswith("/tables/" + table["id"]), table["path"])
    peer.ask("write", "db.t", rows(1, 2))
    by_uuid.tarn("load", "db.t", rows(3), "--format", "jsonl")
    peer.ask("move", "db.t", "db.u")
    equal(served("db.u", by_uuid)["path"], table["path"], "where it is under another name")
    by_uuid.stop()
    by_uuid.start(**{"server.http_listen": by_uuid.http})
    equal(by_uuid.scan("db.u", types=TYPES), want(1, 2, 3), "rows that tarn reads")
    equal(peer.rows("db.u", types=TYPES), want(1, 2, 3), "rows that pypaimon reads")
    peer.ask("drop", "db.u")
    check(not os.path.exists(table["path"][len("file://"):]), "its folder is gone")
    by_uuid.stop()


def write_only():
    """Chosen where the daemon does all that writers would; then they neither compact nor expire."""
    create(java, "java.asks", keys=["id"], bucket="1", **{"tag.automatic-creation": "process-time"})
    check("write-only" not in served("java.asks")["schema"]["options"], "it asks for tags")
    create(java, "java.says", keys=["id"], bucket="1", write_only="false")
    equal(served("java.says")["schema"]["options"]["write-only"], "false", "what a client says")
    create(java, "java.wo", keys=["id"], bucket="1")
    equal(served("java.wo")["schema"]["options"]["write-only"], "true", "what was chosen")
    for n in range(8):
        java.ask("write", "java.wo", rows(n))
    equal({s["kind"] for s in tarnd.lines("snapshots", "java.wo")}, {"APPEND"}, "what writers commit")
    tarnd.tarn("compact", "java.wo", "--full", "--wait")
    equal(java.rows("java.wo", types=TYPES), want(*range(8)), "rows behind the daemon's compaction")
    tarnd.tarn("expire", "java.wo", "--keep-last", "1")
    equal(len(tarnd.lines("snapshots", "java.wo")), 1, "snapshots that are left")
    equal(java.rows("java.wo", types=TYPES), want(*range(8)), "rows behind the daemon's expiry")


for word in PEERS:
    for form in ("csv", "json"):
        lab.run(f"{word} has a format table of {form}", format_table, word, form)
lab.run("java has an object table", object_table)
for word in PEERS:
    lab.run(f"{word} has a table outside of the warehouse", external, word)
lab.run("what is not allowed outside", refused_places)
for word in PEERS:
    lab.run(f"{word} gives any name", names, word)
lab.run("folders by uuid", folders_by_uuid)
lab.run("write-only tables", write_only)
tarnd.stop()
sys.exit(lab.done())
