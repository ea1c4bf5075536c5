#!/usr/bin/env python3
"""needs: shared
Promise: the unmodified REST clients of Paimon's Java library and of pypaimon make, list, change, rename and drop tables through tarnd, write
and compact them; what they made is in the folder as a file-system catalog has it, each sees what the other made, rows by rows, and a
commit that is sent again lands once. rest_catalog.py [PART OF A
CASE'S NAME]... runs some.
"""
import json
import os
import shutil
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, check, equal, types_of  # noqa: E402
from peers import Java, Python  # noqa: E402

TOKEN = "sesame-open-0123456789"
KEYED = {"fields": [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}, {"id": 1, "name": "v", "type": "STRING"},
                    {"id": 2, "name": "r", "type": {"type": "ROW", "fields": [{"id": 3, "name": "x", "type": "DECIMAL(10, 2)"}]}}],
         "partitionKeys": [], "primaryKeys": ["id"], "options": {"bucket": "1"}, "comment": "c"}

lab = Lab("rest")
tokens = lab.write("tokens", f"me:{TOKEN}\n")
os.chmod(tokens, 0o600)
tarnd = lab.daemon("d", **{"warehouse.name": "lab-1.x", "auth.mode": "token", "auth.token_file": tokens})
os.environ["TARN_TOKEN"] = TOKEN
tarnd.start()
options = ["metastore=rest", f"uri=http://{tarnd.http}", "warehouse=lab-1.x", "token.provider=bear", f"token={TOKEN}"]
java = Java(lab, tarnd.warehouse, *options)
python = Python(lab, tarnd.warehouse, *options)
PEERS = {"java": java, "python": python}


def http(method, path, body=None, token=TOKEN, headers=None):
    return tarnd.rest(method, path, body, token, headers)


def create(peer, name, schema=None):
    peer.ask("create", name, lab.write("s.json", json.dumps(schema or KEYED)))


def tables(peer, database):
    out = peer.file()
    peer.ask("tables", database + ".", out)
    with open(out, encoding="utf-8") as f:
        return sorted(f.read().split())


def schema_file(name, number=0):
    with open(os.path.join(tarnd.folder(name), f"schema/schema-{number}"), encoding="utf-8") as f:
        return json.load(f)


def made_by(word):
    create(PEERS[word], f"{word}.t")
    made = schema_file(f"{word}.t")
    equal(made["fields"], KEYED["fields"], "fields of schema-0")
    equal(made["highestFieldId"], 3, "highestFieldId")
    equal(made["primaryKeys"], ["id"], "primary keys")
    for other in PEERS.values():
        equal(tables(other, word), ["t"], "what the other lists")
    status, table = http("GET", f"/lab-1.x/databases/{word}/tables/t")
    equal((status, table["schema"]["fields"]), (200, KEYED["fields"]), "fields that are served")
    PEERS[word].ask("move", f"{word}.t", f"{word}.u")
    equal(tables(PEERS[word], word), ["u"], "after the rename")
    equal(http("GET", f"/lab-1.x/tables/id/{table['id']}")[1]["name"], "u", "found by its id, which stays")
    PEERS[word].ask("drop", f"{word}.u")
    equal(tables(PEERS[word], word), [], "after the drop")
    check(not os.path.exists(tarnd.folder(f"{word}.u")), "the folder is gone")


def errors_of(word):
    peer = PEERS[word]
    create(peer, f"{word}.e")
    for words, part in [(["create", f"{word}.e", lab.path("s.json")], "AlreadyExist"),
                        (["drop", f"{word}.nope"], "NotExist"),
                        (["move", f"{word}.nope", f"{word}.x"], "NotExist")]:
        try:
            peer.ask(*words)
        except Exception as e:
            check(part in str(e), f"{words}: {e}")
        else:
            check(False, f"{words} went well")


def altered_by(word):
    peer, name = PEERS[word], f"{word}.a"
    create(peer, name)
    first = ["first"] if word == "java" else []  # pypaimon 2.1.0 can't write a move as JSON, and takes every 404 for the table
    for words in (["add", name, "n", "BIGINT"], ["add", name, "first", "INT", *first], ["retype", name, "first", "BIGINT"],
                  ["rename", name, "n", "m"], ["remove", name, "v"], ["set", name, "k=v"]):
        peer.ask(*words)
    made = schema_file(name, 6)
    want = [(0, "id", "BIGINT NOT NULL"), (4, "m", "BIGINT")]
    want.insert(0 if first else 2, (5, "first", "BIGINT"))
    equal([(f["id"], f["name"], f["type"]) for f in made["fields"] if f["name"] != "r"], want, "columns")
    equal((made["highestFieldId"], made["options"]["k"]), (5, "v"), "the rest")
    for words, part in [(["remove", name, "nope"], "NotExist"), (["add", name, "id", "INT"], "AlreadyExist"),
                        (["remove", name, "id"], "id")]:
        try:
            peer.ask(*words)
        except Exception as e:
            check(part in str(e), f"{words}: {e}")
        else:
            check(False, f"{words} went well")


def ten_rules():
    equal(http("GET", "/config?warehouse=lab-1.x", token=None)[0], 401, "no token")
    equal(http("GET", "/config?warehouse=lab-1.x", token="x")[0], 401, "another token")
    for name in ("lab-1.x", "lab%2D1.x", "lab%252D1.x"):
        equal(http("GET", f"/config?warehouse={name}")[1]["defaults"], {"prefix": "lab-1.x"}, name)
    equal(http("GET", "/config?warehouse=other")[0], 400, "another warehouse")
    equal(http("POST", "/lab-1.x/databases", '{"name":"raw","options":null,"unknown":[{}]}',
               headers={"Content-Type": "text/plain; charset=UTF-8"}), (200, ""), "a body of another type, with more in it")
    equal(http("POST", "/lab-1.x/databases/raw/tables",
               {"identifier": {"database": "raw", "object": "t a+b"}, "schema": KEYED}), (200, ""), "a table")
    for path in ("t+a%2Bb", "t%20a%2Bb"):
        equal(http("GET", f"/lab-1.x/databases/raw/tables/{path}")[1]["name"], "t a+b", path)
    status, none = http("GET", "/lab-1.x/databases/raw/tables/t+a%2Bb/snapshot")
    equal((status, none["code"], none["resourceType"]), (404, 404, "SNAPSHOT"), "no snapshot yet")
    status, none = http("GET", "/lab-1.x/databases/raw/tables/nope/snapshot")
    equal((status, none["resourceType"], none["resourceName"]), (404, "TABLE", "nope"), "no table")


def rows(*numbers, v="x"):
    return lab.write("r.jsonl", "".join(json.dumps({"id": n, "v": f"{v}{n}", "dt": f"d{n % 2}"}) + "\n" for n in numbers))


PARTITIONED = {"fields": [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}, {"id": 1, "name": "v", "type": "STRING"},
                          {"id": 2, "name": "dt", "type": "STRING NOT NULL"}],
               "partitionKeys": ["dt"], "primaryKeys": ["id", "dt"], "options": {"bucket": "1"}, "comment": None}


def expect_sums(name):
    """What is served of a table and its partitions, against the files that a plan has."""
    path = "/lab-1.x/databases/" + name.replace(".", "/tables/")
    files = tarnd.lines("files", name)
    latest = http("GET", path + "/snapshot")[1]["snapshot"]
    equal((latest["fileCount"], latest["recordCount"], latest["fileSizeInBytes"]),
          (len(files), sum(f["rows"] for f in files), sum(f["size_bytes"] for f in files)), "sums of the table")
    partitions = http("GET", path + "/partitions")[1]["partitions"]
    want = {}
    for f in files:
        sums = want.setdefault(f["partition"], [0, 0, 0])
        for i, more in enumerate((1, f["rows"], f["size_bytes"])):
            sums[i] += more
    got = {",".join(f"{k}={v}" for k, v in p["spec"].items()): [p["fileCount"], p["recordCount"], p["fileSizeInBytes"]] for p in partitions}
    equal(got, want, "sums of partitions")


def all_write(schema, name):
    """Java, pypaimon and tarn in turn, on one table."""
    create(java, name, schema)
    seen = {}
    for turn in range(6):
        numbers = range(turn * 3, turn * 3 + 8)
        path = rows(*numbers, v=f"t{turn}-")
        if turn % 3 < 2:
            (java, python)[turn % 3].ask("write", name, path)
        else:
            tarnd.tarn("load", name, path, "--format", "jsonl")
        if schema["primaryKeys"]:
            seen.update({n: turn for n in numbers})
    for _ in range(2):  # before and after compaction
        want = tarnd.scan(name)
        equal(sum(want.values()), len(seen) if schema["primaryKeys"] else 48, "rows that tarn reads")
        for word, peer in PEERS.items():
            equal(peer.rows(name), want, f"rows that {word} reads")
        expect_sums(name)
        java.ask("compact", name)
    plain = Java(lab, tarnd.warehouse)  # a file-system catalog, without the daemon
    equal(plain.rows(name), want, "rows that a file-system catalog reads")
    plain.close()


def drop_column_of_written():
    """A commit made under an older schema, and reads over both."""
    create(java, "w.evolve", PARTITIONED)
    java.ask("write", "w.evolve", rows(1, 2, 3))
    python.ask("add", "w.evolve", "extra", "INT")
    java.ask("write", "w.evolve", rows(3, 4))
    for peer in PEERS.values():
        equal(peer.rows("w.evolve"), tarnd.scan("w.evolve"), "rows over two schemas")


def sent_again():
    create(java, "w.again", PARTITIONED)
    for n in (1, 2):
        java.ask("write", "w.again", rows(n))
    path = "/lab-1.x/databases/w/tables/again"
    table = http("GET", path)[1]
    want = tarnd.scan("w.again")

    def snapshot(n):
        with open(os.path.join(tarnd.folder("w.again"), f"snapshot/snapshot-{n}"), encoding="utf-8") as f:
            return json.load(f)

    def commit(body):
        return http("POST", path + "/commit", {"tableId": table["id"], "statistics": [], "baseSnapshotUuid": None, **body})

    for n in (1, 2):
        equal(commit({"snapshot": snapshot(n)}), (200, {"success": True}), f"snapshot {n} once more")
    equal(commit({"snapshot": {**snapshot(2), "uuid": "another"}, "baseSnapshotUuid": "x"}), (200, {"success": True}),
          "the same files by the same user, in another snapshot")
    stranger = {**snapshot(2), "uuid": "another", "commitUser": "stranger"}
    equal(commit({"snapshot": stranger}), (200, {"success": False}), "an id that is taken")
    equal(commit({"snapshot": {**stranger, "id": 3}, "baseSnapshotUuid": "x"}), (200, {"success": False}), "another base")
    status, body = commit({"snapshot": {**stranger, "id": 3}})
    equal((status, body.get("success")), (200, False), "upon lists of an older snapshot")
    for wrong in ("nope", "00000000-0000-4000-8000-000000000000"):
        status, body = commit({"snapshot": snapshot(2), "tableId": wrong})
        equal((status, body["resourceType"]), (404, "TABLE"), f"table id {wrong}")
    equal(commit({"snapshot": snapshot(2), "tableId": None})[1], {"success": True}, "no table id")
    status, body = commit({"snapshot": {**stranger, "id": 3, "deltaManifestList": "gone"}})
    equal(status, 400, f"a list that isn't there: {body}")
    equal(commit({})[0], 400, "no snapshot")
    equal(tarnd.scan("w.again"), want, "rows, as before")
    equal(http("GET", path + "/snapshot")[1]["snapshot"]["snapshot"], snapshot(2), "the latest, as before")


def beside_others():
    """Java, pypaimon and tarn commit to one table at once, as fast as they can."""
    name = "w.busy"
    create(java, name, {**PARTITIONED, "primaryKeys": [], "options": {"bucket": "-1"}})
    wrong = []

    def write(word, first):
        try:
            for turn in range(5):
                path = lab.write(f"{word}.jsonl", "".join(json.dumps({"id": n, "v": word, "dt": "d"}) + "\n" for n in range(first + turn * 10, first + turn * 10 + 10)))
                PEERS[word].ask("write", name, path)
        except Exception as e:
            wrong.append(f"{word}: {e}")

    loads = 0
    writers = [threading.Thread(target=write, args=(word, (i + 1) * 1000)) for i, word in enumerate(PEERS)]
    for w in writers:
        w.start()
    while any(w.is_alive() for w in writers):
        tarnd.tarn("load", name, rows(100000 + loads), "--format", "jsonl")
        loads += 1
    equal(wrong, [], "what went wrong")
    got = sorted(row[0] for row in tarnd.scan(name).elements())
    want = [n for i in range(2) for n in range((i + 1) * 1000, (i + 1) * 1000 + 50)] + list(range(100000, 100000 + loads))
    equal(got, want, f"ids, each once, beside {loads} loads")


def back_and_tags():
    create(java, "w.back", PARTITIONED)
    for n in (1, 2, 3):
        java.ask("write", "w.back", rows(n))
    path = "/lab-1.x/databases/w/tables/back"
    equal(http("POST", path + "/tags", {"tagName": "two", "snapshotId": 2, "timeRetained": "1 d"}), (200, ""), "a tag")
    equal(http("GET", path + "/tags/two")[1]["tagTimeRetained"], "PT24H", "how long it is kept")
    for word, peer in PEERS.items():
        equal(sum(peer.rows("w.back", "scan.tag-name=two").values()), 2, f"rows that {word} reads at the tag")
    java.ask("rollback", "w.back", 2)
    for word, peer in PEERS.items():
        equal(sum(peer.rows("w.back").values()), 2, f"rows that {word} reads after the roll-back")
    python.ask("write", "w.back", rows(7, 8))
    equal(sum(tarnd.scan("w.back").values()), 4, "rows that tarn reads after one more write")
    equal(http("GET", path + "/snapshot")[1]["snapshot"]["snapshot"]["id"], 3, "its id")


def branches():
    create(java, "w.tree", PARTITIONED)
    for n in (1, 2):
        java.ask("write", "w.tree", rows(n))
    path = "/lab-1.x/databases/w/tables/tree"
    equal(http("POST", path + "/tags", {"tagName": "one", "snapshotId": 1})[0], 200, "a tag")
    java.ask("branch", "w.tree", "dev", "one")
    equal(http("POST", path + "/branches", {"branch": "empty", "fromTag": None}), (200, ""), "a branch without a tag")
    equal(http("GET", path + "/branches")[1], {"branches": ["dev", "empty"]}, "the list")
    main, dev = http("GET", path)[1], http("GET", path + "%24branch_dev")[1]
    equal((dev["name"], dev["id"], dev["path"]), ("tree$branch_dev", main["id"], main["path"]), "a branch as a table")
    for n, (word, peer) in enumerate(PEERS.items()):
        peer.ask("write", "w.tree$branch_dev", rows(10 + n))
    for word, peer in PEERS.items():
        equal(sum(peer.rows("w.tree$branch_dev", types=types_of(tarnd.folder("w.tree"))).values()), 1 + len(PEERS), f"rows of the branch that {word} reads")
        equal(sum(peer.rows("w.tree").values()), 2, f"rows of the table that {word} reads")
    equal(http("POST", path + "%24branch_dev", {"changes": [{"action": "addColumn", "fieldNames": ["extra"], "dataType": "INT"}]})[0], 200, "alter")
    check("extra" in json.dumps(http("GET", path + "%24branch_dev")[1]) and "extra" not in json.dumps(http("GET", path)[1]), "its own schema")
    java.ask("forward", "w.tree", "dev")
    for word, peer in PEERS.items():
        equal(sum(peer.rows("w.tree").values()), 1 + len(PEERS), f"rows of the table that {word} reads, forwarded")
    equal(http("POST", path + "/branches/empty/rename", {"toBranch": "bare"}), (200, ""), "another name")
    for method, rest, body, want in (("POST", "/branches", {"branch": "bare"}, (409, "BRANCH", "bare")), ("POST", "/branches", {"branch": "main"}, (400, None, None)),
                                     ("POST", "/branches", {"branch": "x", "fromTag": "nope"}, (404, "TAG", "nope")), ("DELETE", "/branches/nope", None, (404, "BRANCH", "nope")),
                                     ("POST", "/branches/nope/forward", {}, (404, "BRANCH", "nope")), ("POST", "/branches/dev/rename", {"toBranch": "bare"}, (409, "BRANCH", "bare")),
                                     ("GET", "%24branch_nope", None, (404, "TABLE", "tree$branch_nope")), ("DELETE", "%24branch_dev", None, (400, None, None))):
        status, answer = http(method, path + rest, body) if body is not None else http(method, path + rest)
        equal((status, answer["resourceType"], answer["resourceName"]) if want[1] else (status, None, None), want, f"{method} {rest} {body}: {answer}")
    java.ask("unbranch", "w.tree", "dev")
    equal(http("DELETE", path + "/branches/bare"), (200, ""), "dropped")
    equal(http("GET", path + "/branches")[1], {"branches": []}, "none is left")


def asked(peer, word, name):
    """What a peer writes into a file, as JSON or lines."""
    out = peer.file()
    peer.ask(word, name, out)
    with open(out, encoding="utf-8") as f:
        return json.load(f) if word.endswith("-show") else f.read().split()


def refused(peer, words, *parts):
    try:
        peer.ask(*words)
    except Exception as e:
        check(all(part in str(e) for part in parts), f"{words}: {e}")
    else:
        check(False, f"{words} went well")


def view_read_by_java(name):
    """Java puts who made it, and when, among the options that it reads."""
    got = asked(java, "view-show", name)
    for key in ("owner", "createdAt", "createdBy", "updatedAt", "updatedBy"):
        del got["options"][key]
    return {"comment": None, **got}


def views():
    tarnd.tarn("db", "create", "o")
    path = "/lab-1.x/databases/o/"
    schema = {"fields": [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}, {"id": 1, "name": "r", "type": {"type": "ARRAY", "element": "STRING"}}],
              "query": "SELECT id, 'ä\n' FROM t", "dialects": {"spark": "SELECT 1"}, "comment": "c", "options": {"k": "v"}}
    file = lab.write("view.json", json.dumps(schema))
    java.ask("view-create", "o.v", file)
    equal(http("GET", path + "views/v")[1]["schema"], schema, "what is served")
    equal(view_read_by_java("o.v"), schema, "what Java reads")
    create(java, "o.t")
    refused(java, ["view-create", "o.v", file], "ViewAlreadyExist", "o.v")
    refused(java, ["view-create", "o.t", file], "AlreadyExist")
    refused(java, ["create", "o.v", lab.path("s.json")], "TableAlreadyExist")
    equal(http("POST", path + "views", {"identifier": {"database": "o", "object": "t"}, "schema": schema})[1]["resourceType"], "TABLE", "a table's name")
    java.ask("view-alter", "o.v", lab.write("c.json", json.dumps([
        {"action": "setOption", "key": "k2", "value": "w"}, {"action": "removeOption", "key": "k"}, {"action": "updateComment", "comment": None},
        {"action": "addDialect", "dialect": "flink", "query": "f"}, {"action": "updateDialect", "dialect": "spark", "query": "s"}])))
    changed = {**schema, "options": {"k2": "w"}, "comment": None, "dialects": {"flink": "f", "spark": "s"}}
    equal(view_read_by_java("o.v"), changed, "what Java reads, altered")
    for action, part in (("addDialect", "DialectAlreadyExist"), ("dropDialect", "DialectNotExist")):
        name = "spark" if part == "DialectAlreadyExist" else "trino"
        refused(java, ["view-alter", "o.v", lab.write("c.json", json.dumps([{"action": action, "dialect": name, "query": "x"}]))], part, name)
    tarnd.tarn("view", "alter", "o.v", "--set", "k2=x", "--drop-dialect", "spark")
    changed = {**changed, "options": {"k2": "x"}, "dialects": {"flink": "f"}}
    equal(view_read_by_java("o.v"), changed, "what Java reads, altered by tarn")
    tarnd.tarn("view", "create", "o.w", "--file", file)
    equal(view_read_by_java("o.w"), schema, "what Java reads of tarn's")
    refused(java, ["view-move", "o.v", "o.w"], "ViewAlreadyExist")
    refused(java, ["view-move", "o.nope", "o.x"], "ViewNotExist")
    uuid = http("GET", path + "views/v")[1]["id"]
    java.ask("view-move", "o.v", "o.x_y")
    equal(http("GET", path + "views/x_y")[1]["id"], uuid, "its id, which stays")
    equal(asked(java, "views", "o."), ["w", "x_y"], "what Java lists")
    equal([v["name"] for v in tarnd.lines("view", "list", "o")], ["w", "x_y"], "what tarn lists")
    equal(http("GET", "/lab-1.x/views?databaseNamePattern=o&maxResults=1")[1], {"views": [{"database": "o", "object": "w"}], "nextPageToken": "o.w"}, "of all")
    for name in ("w", "x_y"):
        java.ask("view-drop", f"o.{name}")
    refused(java, ["view-show", "o.w", java.file()], "ViewNotExist")
    refused(java, ["view-drop", "o.w"], "ViewNotExist")


def without_a_state():
    """Last, as the daemon has another port afterwards."""
    made = {"query": "SELECT 1", "fields": []}
    tarnd.tarn("db", "create", "lost")
    tarnd.tarn("view", "create", "lost.v", "--file", lab.write("view.json", json.dumps(made)))
    before = http("GET", "/lab-1.x/databases/lost/view-details")
    tarnd.stop()
    shutil.rmtree(os.path.join(tarnd.data, "state"))
    tarnd.start()
    equal(http("GET", "/lab-1.x/databases/lost/view-details"), before, "views")
    tarnd.tarn("db", "drop", "lost", "--cascade")
    check(not os.path.exists(os.path.join(tarnd.warehouse, ".tarn/views/lost")), "the folder is gone")


def functions_of(word):
    peer, db = PEERS[word], f"f{word}"
    tarnd.tarn("db", "create", db)
    made = {"name": "area", "inputParams": [{"id": 0, "name": "x", "type": "DOUBLE"}, {"id": 1, "name": "y", "type": "DOUBLE NOT NULL"}],
            "returnParams": [{"id": 0, "name": "a", "type": "DOUBLE"}], "deterministic": True, "comment": "c", "options": {"k": "v"},
            "definitions": {"spark": {"type": "sql", "definition": "x * y"}, "trino": {"type": "lambda", "definition": "(x, y) -> x * y", "language": "JAVA"},
                            "flink": {"type": "file", "fileResources": [{"resourceType": "jar", "uri": "/a.jar"}], "language": "JAVA",
                                      "className": "A", "functionName": "area"}}}
    file = lab.write("f.json", json.dumps(made))
    peer.ask("function-create", f"{db}.area", file)
    served = http("GET", f"/lab-1.x/databases/{db}/functions/area")[1]
    equal({k: served[k] for k in made}, made, "what is served")
    for other in PEERS.values():
        equal(asked(other, "function-show", f"{db}.area"), made, "what each reads")
    refused(peer, ["function-create", f"{db}.area", file], "FunctionAlreadyExist")
    peer.ask("function-alter", f"{db}.area", lab.write("c.json", json.dumps([
        {"action": "setOption", "key": "k", "value": "w"}, {"action": "updateComment", "comment": "d"},
        {"action": "updateDefinition", "name": "spark", "definition": {"type": "sql", "definition": "y * x"}}, {"action": "dropDefinition", "name": "trino"}])))
    tarnd.tarn("function", "alter", f"{db}.area", "--add-definition", 'hive={"type":"sql","definition":"h"}')
    definitions = {"spark": {"type": "sql", "definition": "y * x"}, "flink": made["definitions"]["flink"], "hive": {"type": "sql", "definition": "h"}}
    for other in PEERS.values():
        equal(asked(other, "function-show", f"{db}.area"), {**made, "options": {"k": "w"}, "comment": "d", "definitions": definitions}, "what each reads, altered")
        equal(asked(other, "functions", f"{db}."), ["area"], "what each lists")
    for change, part in (({"action": "addDefinition", "name": "spark", "definition": {"type": "sql", "definition": "x"}}, "AlreadyExist"),
                         ({"action": "dropDefinition", "name": "nope"}, "NotExist")):
        refused(peer, ["function-alter", f"{db}.area", lab.write("c.json", json.dumps([change]))], part)
    peer.ask("function-drop", f"{db}.area")
    refused(peer, ["function-show", f"{db}.area", peer.file()], "NotExist")
    refused(peer, ["function-drop", f"{db}.area"], "NotExist")


def snapshots_as_their_files():
    tarnd.tarn("db", "create", "s")
    tarnd.tarn("table", "create", "s.t", "--primary-key", "id", "--columns", "id BIGINT NOT NULL, v STRING")
    for n in (1, 2):
        tarnd.tarn("load", "s.t", lab.write("r.jsonl", json.dumps({"id": n, "v": "x"}) + "\n"), "--format", "jsonl")
        with open(os.path.join(tarnd.folder("s.t"), f"snapshot/snapshot-{n}"), encoding="utf-8") as f:
            on_disk = json.load(f)
        status, got = http("GET", "/lab-1.x/databases/s/tables/t/snapshot")
        equal((status, got["snapshot"]["snapshot"]), (200, on_disk), f"snapshot {n}")
        equal((got["snapshot"]["recordCount"], got["snapshot"]["fileCount"]), (n, n), "its totals")
        check(got["snapshot"]["fileSizeInBytes"] > 0 and got["snapshot"]["lastFileCreationTime"] > 10**12, f"its totals: {got}")
    equal([s["id"] for s in http("GET", "/lab-1.x/databases/s/tables/t/snapshots")[1]["snapshots"]], [1, 2], "the list")
    for word, peer in PEERS.items():
        equal(sum(peer.rows("s.t").values()), 2, f"rows that {word} reads")


for word in PEERS:
    lab.run(f"{word} makes, lists, renames and drops", made_by, word)
    lab.run(f"{word} meets errors of its own types", errors_of, word)
    lab.run(f"{word} changes a schema", altered_by, word)
lab.run("the ten rules", ten_rules)
lab.run("all write a table with a key", all_write, PARTITIONED, "w.keyed")
lab.run("all write a table without one", all_write, {**PARTITIONED, "primaryKeys": [], "options": {"bucket": "-1"}}, "w.append")
lab.run("a schema changes between two writes", drop_column_of_written)
lab.run("a commit that is sent again", sent_again)
lab.run("all commit at once", beside_others)
lab.run("roll-back and tags", back_and_tags)
lab.run("branches", branches)
lab.run("snapshots are their files", snapshots_as_their_files)
for word in PEERS:
    lab.run(f"{word} makes, changes and drops functions", functions_of, word)
lab.run("views", views)
lab.run("views after the state is lost", without_a_state)
tarnd.stop()
sys.exit(lab.done())
