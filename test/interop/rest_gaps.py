#!/usr/bin/env python3
"""needs: shared
Promise: what Paimon's REST catalog has besides the calls that every job makes answers its Java client and pypaimon as the protocol says:
ways back of a schema, tokens, permissions; errors have the types that clients know. rest_gaps.py [PART OF A CASE'S NAME]... runs some.
"""
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Failed, Lab, check, equal  # noqa: E402
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
    """-> status, JSON or text."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{tarnd.http}/v1/lab{path}", method=method, data=data,
                                     headers={"Authorization": "Bearer " + TOKEN})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            status, text = answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        status, text = e.code, e.read().decode()
    return status, json.loads(text) if text.startswith("{") else text


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
lab.run("a token adds nothing", token)
lab.run("permissions are those of the token file", permissions)
tarnd.stop()
sys.exit(lab.done())
