#!/usr/bin/env python3
"""needs: shared
Promise: what Paimon's REST catalog has besides the calls that every job makes answers its Java client and pypaimon as the protocol says:
ways back of a schema, replacing tables, partitions without files and marks, tokens, permissions; errors have the types that clients know. rest_gaps.py [PART OF A CASE'S NAME]... runs some.
"""
import json
import os
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Failed, Lab, check, equal, types_of  # noqa: E402
from peers import LAB, Java, RestGaps  # noqa: E402

TOKEN = "sesame-open-0123456789"
SCHEMA = {"fields": [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}, {"id": 1, "name": "v", "type": "STRING"},
                     {"id": 2, "name": "dt", "type": "STRING NOT NULL"}],
          "partitionKeys": ["dt"], "primaryKeys": ["id", "dt"], "options": {"bucket": "1"}, "comment": None}

lab = Lab("rest-gaps")
tokens = lab.write("tokens", f"me:{TOKEN}\nzoe:another-token-of-zoe\n")
os.chmod(tokens, 0o600)
tarnd = lab.daemon("d", **{"warehouse.name": "lab", "auth.mode": "token", "auth.token_file": tokens})
os.environ["TARN_TOKEN"] = TOKEN
tarnd.start()
options = ["metastore=rest", f"uri=http://{tarnd.http}", "warehouse=lab", "token.provider=bear", f"token={TOKEN}"]
java = Java(lab, tarnd.warehouse, *options)
gaps = RestGaps(lab, "lab", *options)


def http(method, path, body=None):
    return tarnd.rest(method, "/lab" + path, body, TOKEN)


def pypaimon(code):
    """Runs it with `catalog`, pypaimon's; -> what it printed, as JSON."""
    start = "import json, pypaimon\ncatalog = pypaimon.CatalogFactory.create(" + repr(dict(o.split("=", 1) for o in options)) + ")\n"
    python = os.path.join(os.environ.get("ENGINES", os.path.join(LAB, "engines")), "venv/bin/python")
    done = subprocess.run([python, "-c", start + code], capture_output=True, text=True, timeout=120, check=False)
    check(done.returncode == 0, done.stderr[-2000:])
    return json.loads(done.stdout)


def ask(*words):
    said = gaps.ask(*words)
    return json.loads(said) if said else None


def refused(part, *words):
    try:
        gaps.ask(*words)
    except Failed as e:
        check(part in str(e), f"{words}: {e}")
    else:
        check(False, f"{words} went well")


def create(name, schema=None):
    java.ask("create", name, lab.write("s.json", json.dumps(schema or SCHEMA)))


def rows(*numbers):
    return lab.write("r.jsonl", "".join(json.dumps({"id": n, "v": f"x{n}", "dt": f"d{n % 2}"}) + "\n" for n in numbers))


def schema_files(name):
    return sorted(os.listdir(os.path.join(tarnd.folder(name), "schema")))


# --- schemas ---

def schema_back():
    create("db.s")
    for key in "ab":
        java.ask("set", "db.s", f"{key}=1")
    refused("Schema 7 of table db.s does not exist", "schema-back", "db.s", 7)
    refused("TableNotExistException", "schema-back", "db.nope", 0)
    ask("schema-back", "db.s", 1)
    equal(schema_files("db.s"), ["schema-0", "schema-1"], "what is left")
    java.ask("write", "db.s", rows(1))
    refused("Cannot rollback to schema 0, schema 1 is still referenced by snapshots/tags/changelogs.", "schema-back", "db.s", 0)
    java.ask("set", "db.s", "c=1")
    equal(tarnd.json("schema", "rollback", "db.s", "--to", "1"), {"from": 2, "schema": 1}, "tarn's own way")
    equal(schema_files("db.s"), ["schema-0", "schema-1"], "what is left of that")
    said = tarnd.tarn("schema", "rollback", "db.s", "--to", "0", ok=False)
    check(b"still referenced" in said.stderr, said.stderr)
    java.ask("write", "db.s", rows(2))
    equal(sum(java.rows("db.s").values()), 2, "rows that java reads")


# --- replace ---

OTHER = {"fields": [{"id": 0, "name": "dt", "type": "STRING NOT NULL"}, {"id": 1, "name": "k", "type": "STRING NOT NULL"}],
         "partitionKeys": ["dt"], "primaryKeys": ["dt", "k"], "options": {"bucket": "2"}, "comment": "other"}


def replaced():
    create("db.r")
    java.ask("write", "db.r", rows(1, 2))
    uuid, old = http("GET", "/databases/db/tables/r")[1]["id"], types_of(tarnd.folder("db.r"))
    http("POST", "/databases/db/tables/r/partitions/mark", {"specs": [{"dt": "d1"}]})
    ask("replace", "db.r", lab.write("o.json", json.dumps(OTHER)))
    table = http("GET", "/databases/db/tables/r")[1]
    equal((table["id"], table["schemaId"], [f["name"] for f in table["schema"]["fields"]], table["schema"]["comment"]),
          (uuid, 1, ["dt", "k"], "other"), "what it is now")
    equal(len(java.rows("db.r")), 0, "rows that java reads")
    equal(http("GET", "/databases/db/tables/r/partitions")[1]["partitions"], [], "partitions")
    java.ask("write", "db.r", lab.write("r.jsonl", json.dumps({"dt": "d1", "k": "a"}) + "\n" + json.dumps({"dt": "d9", "k": "b"}) + "\n"))
    equal(sum(java.rows("db.r").values()), 2, "rows that java reads of what came then")
    equal(sum(tarnd.scan("db.r").values()), 2, "rows that tarn reads")
    equal(len(tarnd.lines("scan", "db.r", "--snapshot", "1")), 2, "rows of before, by time travel")
    equal(sum(java.rows("db.r", "scan.snapshot-id=1", types=old).values()), 2, "the same by java")
    equal([p["done"] for p in http("GET", "/databases/db/tables/r/partitions")[1]["partitions"]], [False, False], "marks went, too")
    refused("UnsupportedOperationException", "replace", "db.r", lab.write("p.json", json.dumps({**OTHER, "partitionKeys": ["k"]})))
    refused("TableNotExistException", "replace", "db.nope", lab.path("o.json"))
    made = tarnd.json("table", "replace", "db.r", "--columns", "dt STRING NOT NULL, n INT", "--partition-by", "dt")
    equal((made["schema"], made["uuid"]), (2, uuid), "tarn's own way")
    tarnd.tarn("rollback", "db.r", "--to-snapshot", "1")
    equal(http("GET", "/databases/db/tables/r")[1]["schemaId"], 0, "back before it was replaced: the schema, too")
    equal((sum(java.rows("db.r").values()), sum(tarnd.scan("db.r").values())), (2, 2), "rows")


# --- register ---

def registered():
    create("db.from")
    java.ask("write", "db.from", rows(1, 2))
    folder = tarnd.folder("db.reg")
    for n in ("reg", "reg2"):
        shutil.copytree(tarnd.folder("db.from"), tarnd.folder("db." + n))
    for path, part in [("/elsewhere/db.db/reg", "outside the warehouse"), (tarnd.folder("db.from"), "can't lie in"),
                       (f"s3:{folder}", "outside the warehouse")]:
        refused(part, "register", "db.reg", path)
    os.mkdir(tarnd.folder("db.hollow"))
    refused("there is no table", "register", "db.hollow", "file:" + tarnd.folder("db.hollow"))
    ask("register", "db.reg", "file:" + folder + "/")
    equal(sum(java.rows("db.reg").values()), 2, "rows that java reads")
    refused("TableAlreadyExistException", "register", "db.reg", "file://" + folder)
    check(http("GET", "/databases/db/tables/reg")[1]["id"] != http("GET", "/databases/db/tables/from")[1]["id"], "an id of its own")
    equal(tarnd.json("table", "register", "db.reg2", tarnd.folder("db.reg2"))["snapshot"], 1, "by tarn")


# --- partitions ---

def partitions():
    create("db.p")
    java.ask("write", "db.p", rows(1, 2, 3))
    d1, d5 = '[{"dt":"d1"}]', '[{"dt":"d5"}]'
    listed = lambda: {p["spec"]["dt"]: (p["fileCount"], p["recordCount"], p["done"]) for p in ask("partitions", "db.p")}  # noqa: E731
    before = listed()
    equal({k: v[1:] for k, v in before.items()}, {"d0": (1, False), "d1": (2, False)}, "what is there")
    ask("mark", "db.p", d1)
    equal(listed()["d1"][2], True, "d1 is done")
    equal(ask("create", "db.p", d5, "false"), [[{"dt": "d5"}], []], "one without files")
    refused("AlreadyExistsException", "create", "db.p", '[{"dt":"d6"},{"dt":"d1"}]', "false")
    equal(ask("create", "db.p", '[{"dt":"d5"},{"dt":"d1"}]', "true"), [[], [{"dt": "d5"}, {"dt": "d1"}]], "both are there")
    equal(listed()["d5"], (0, 0, False), "it has no files")
    equal(pypaimon("""
from pypaimon.common.identifier import Identifier
print(json.dumps(sorted([p.spec["dt"], p.record_count] for p in catalog.rest_api.list_partitions_paged(Identifier.from_string("db.p")).elements)))
"""), [["d0", 1], ["d1", 2], ["d5", 0]], "what pypaimon lists")
    equal({p["partition"]: (p["records"], p["done"] is not None, p["created"] is not None) for p in tarnd.json("partitions", "db.p")},
          {"dt=d0": (1, False, False), "dt=d1": (2, True, False), "dt=d5": (0, False, True)}, "what tarn lists")
    refused("NoSuchResourceException", "drop", "db.p", '[{"dt":"d1"},{"dt":"d7"}]', "false")
    equal(sum(java.rows("db.p").values()), 3, "nothing went")
    equal(ask("drop", "db.p", '[{"dt":"d1"},{"dt":"d7"},{"dt":"d5"}]', "true"), [[{"dt": "d1"}, {"dt": "d5"}], [{"dt": "d7"}]], "dropped")
    equal(sum(java.rows("db.p").values()), 1, "rows that java reads")
    with open(os.path.join(tarnd.folder("db.p"), "snapshot/snapshot-2"), encoding="utf-8") as f:
        equal(json.load(f)["commitKind"], "OVERWRITE", "how it went")
    java.ask("write", "db.p", rows(5))
    equal(listed()["d1"][2], False, "what comes again isn't done")
    said = tarnd.json("partitions", "mark", "db.p", "dt=d1", "dt=d0")
    equal((sorted(said["marked"]), said["missing"]), (["dt=d0", "dt=d1"], []), "marked by tarn")
    check(all(v[2] for v in listed().values()), "both are done")
    tarnd.json("partitions", "mark", "db.p", "dt=d1", "--undo")
    equal(listed()["d1"][2], False, "not any more")
    check(b"no partition dt=d8" in tarnd.tarn("partitions", "mark", "db.p", "dt=d8", ok=False).stderr, "one that isn't there")
    ask("truncate", "db.p", '[{"dt":"d0"}]')  # as Paimon's catalogs do it: a commit of the client's
    java.ask("write", "db.p", rows(2))
    equal(listed()["d0"][2], False, "a mark goes with a commit of a client, too")
    equal(tarnd.json("partitions", "drop", "db.p", "dt=d0", "dt=d1")["dropped"], ["dt=d0", "dt=d1"], "dropped by tarn")
    equal((ask("partitions", "db.p"), len(java.rows("db.p"))), ([], 0), "nothing is left")


def partitions_without_a_state():
    """Last, as the daemon has another port afterwards."""
    create("db.kept")
    java.ask("write", "db.kept", rows(1))
    tarnd.json("partitions", "create", "db.kept", "dt=d5")
    tarnd.json("partitions", "mark", "db.kept", "dt=d1")
    path = "/databases/db/tables/kept/partitions"
    before = http("GET", path)
    tarnd.stop()
    shutil.rmtree(os.path.join(tarnd.data, "state"))
    tarnd.start()
    equal(http("GET", path), before, "partitions, and what is done")


# --- tokens and permissions ---

def token():
    create("db.token")
    got, ends = ask("token", "db.token")
    equal(got, {}, "nothing is added to the client's own credentials")
    check(ends > (time.time() + 86400) * 1000, "it holds for a day at least")
    refused("NoSuchResourceException", "token", "db.nope")


def permissions():
    got = pypaimon("""
from pypaimon.management.list_permissions_request import ListPermissionsRequest
from pypaimon.management.resource_type import ResourceType
from pypaimon.management.permission_assignment import PermissionAssignment
from pypaimon.management.permission_resource import PermissionResource
api = catalog.rest_api
ask = lambda *a, **k: [p.to_dict() for p in api.list_permissions(ListPermissionsRequest(*a, **k)).data()]
try:
    api.grant_permission(PermissionAssignment(PermissionResource(ResourceType.TABLE, "d", "t"), "SELECT", "alice"))
    refused = "no"
except Exception as e:
    refused = type(e).__name__ + ": " + str(e)
print(json.dumps([ask(ResourceType.CATALOG_ALL), ask(ResourceType.CATALOG, principal="zoe"),
                  ask(ResourceType.TABLE, "db", "t"), refused]))
""")
    equal(got[:3], [[{"resource": {"type": "CATALOG_ALL"}, "access": "ALL", "principal": p} for p in ("me", "zoe")],
                    [{"resource": {"type": "CATALOG"}, "access": "ALL", "principal": "zoe"}], []], "what is listed")
    check("NotImplemented" in got[3] and "token_file" in got[3], got[3])


lab.run("a schema goes back", schema_back)
lab.run("partitions are made, marked and dropped", partitions)
lab.run("a table is replaced", replaced)
lab.run("a table of others is registered", registered)
lab.run("a token adds nothing", token)
lab.run("permissions are those of the token file", permissions)
lab.run("partitions after the state is lost", partitions_without_a_state)
tarnd.stop()
sys.exit(lab.done())
