#!/usr/bin/env python3
"""needs: shared
Promise: a real Hive metastore is what the catalog is. A table that tarnd pushes has, parameter by parameter, what Paimon's own
HiveCatalog writes for the same schema; names, schemas and partitions follow; what somebody changes there is repaired; what others made there
stays untouched; a metastore that is away holds nobody up, and has all again once it is back. Paimon's Java library, through HiveCatalog, reads the rows
of a pushed table. hms.py [PART OF A CASE'S NAME]...

The server is ../shared/interop/services/hms.sh; it is wiped in the end."""
import atexit
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import lab as house  # noqa: E402
import peers  # noqa: E402
from lab import Lab, check, equal, free_port, same_rows, wait_until  # noqa: E402

SERVICE = os.path.join(house.SHARED, "interop/services/hms.sh")
HIVE = os.path.join(house.ROOT, "test/interop/hive/run.sh")
MARKS = ["tarn.warehouse", "tarn.table", "tarn.fingerprint"]
# What the metastore itself keeps: statistics of a folder that it lists when a table is made, unless it is told not to; times.
ITS_OWN = ["transient_lastDdlTime", "numFiles", "totalSize", "numFilesErasureCoded", "bucketing_version"]

lab = Lab("hms")


class Metastore:
    def __init__(self):
        self.port = free_port()
        self.environment = {**os.environ, "LAB": peers.LAB, "LAB_STATE": lab.path("hms"), "HMS_PORT": str(self.port), "HMS_DB": "disk", "WAIT_S": "200"}
        self.uri = f"thrift://127.0.0.1:{self.port}"
        atexit.register(self.wipe)
        self.run("start")

    def run(self, word):
        got = subprocess.run(["bash", SERVICE, word], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        if got.returncode != 0:
            raise house.Failed(f"hms.sh {word}: {got.stdout.decode('utf-8', 'replace')[-1500:]}")

    def wipe(self):
        """Before the folder is gone, in which its pid stands; a second time does nothing."""
        atexit.unregister(self.wipe)
        self.run("wipe")

    def pid(self):
        with open(lab.path("hms", f"hms-{self.port}", "pid"), encoding="utf-8") as f:
            return int(f.read().split()[0])


class Hive(peers.Peer):
    """Hive's own client."""

    def __init__(self, uri):
        super().__init__(lab, lab.path("unused"), ["bash", HIVE, "peer", uri])

    def all(self):
        out = self.file()
        self.ask("dump", out)
        with open(out, encoding="utf-8") as f:
            return json.load(f)

    def table(self, name):
        db, table = name.split(".")
        return self.all().get(db, {"tables": {}})["tables"].get(table)


metastore = Metastore()
tarnd = lab.daemon("d", **{"hms.uri": metastore.uri, "hms.check_interval": "1 s", "hms.user": "keeper"})
tarnd.start()
hive = Hive(metastore.uri)
os.environ["TARN_JAVA_MORE"] = subprocess.run(["bash", HIVE, "jars"], env={**os.environ, "LAB": peers.LAB}, check=True,
                                              stdout=subprocess.PIPE).stdout.decode().strip()
# Paimon's HiveCatalog over the same metastore, with a warehouse of its own
paimon = peers.Java(lab, lab.path("hive-warehouse"), "metastore=hive", f"uri={metastore.uri}", "table.type=external",
                    "warehouse=file://" + lab.path("hive-warehouse"))


def http(method, path, body=None):
    status, got = tarnd.rest(method, "/tarn" + path, body)
    equal(status, 200, f"{method} {path}: {got}")
    return got


def create(name, schema):
    db, table = name.split(".")
    tarnd.tarn("db", "create", db, ok=None)
    http("POST", f"/databases/{db}/tables", {"identifier": {"database": db, "object": table}, "schema": schema})


def mirror():
    return tarnd.json("status")["mirrors"][0]


def pushed(name, test=lambda table: True, what=""):
    """The table there, once it passes the test."""
    def ready():
        table = hive.table(name)
        return table if table is not None and test(table) else None
    return wait_until(f"{name} {what} is there", ready, 90, 0.2)


def gone(name):
    wait_until(f"{name} is gone", lambda: hive.table(name) is None, 90, 0.2)


def rows(*numbers):
    return lab.write("r.jsonl", "".join(json.dumps({"id": n, "v": f"x{n}", "dt": f"d{n % 3}", "hh": n % 2}) + "\n" for n in numbers))


def field(number, name, kind, comment=None):
    return {"id": number, "name": name, "type": kind, **({"description": comment} if comment is not None else {})}


ATOMS = ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(12, 2)", "DECIMAL(38, 38)", "CHAR(5)", "CHAR(300)",
         "VARCHAR(20)", "VARCHAR(65535)", "VARCHAR(65536)", "STRING", "BINARY(4)", "VARBINARY(9)", "BYTES", "DATE", "TIME(3)", "TIMESTAMP(3)",
         "TIMESTAMP(9)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"]
NESTED = [{"type": "ARRAY", "element": "INT"}, {"type": "MAP", "key": "STRING", "value": {"type": "ARRAY", "element": "DECIMAL(3, 1)"}},
          {"type": "MULTISET", "element": "STRING"},
          {"type": "ROW", "fields": [field(90, "x", "INT"), field(91, "y_2", {"type": "ROW", "fields": [field(92, "z", "DATE", "deep")]})]}]
PARTITIONED = {"fields": [field(0, "id", "BIGINT NOT NULL"), field(1, "v", "STRING", "a value"), field(2, "dt", "STRING NOT NULL", "the day"),
                          field(3, "hh", "INT NOT NULL")],
               "partitionKeys": ["dt", "hh"], "primaryKeys": ["id", "dt", "hh"], "options": {"bucket": "1"}, "comment": None}
SCHEMAS = {
    "plain": {"fields": [field(0, "id", "INT")], "partitionKeys": [], "primaryKeys": [], "options": {}, "comment": None},
    "types": {"fields": [field(i, f"c{i}", t, f"comment {i}") for i, t in enumerate(ATOMS + NESTED)],
              "partitionKeys": [], "primaryKeys": [], "options": {"bucket": "-1"}, "comment": "all there are, 'quoted' and ünïcödé"},
    "keyed": {"fields": [field(0, "id", "BIGINT NOT NULL"), field(1, "v", "STRING")], "partitionKeys": [], "primaryKeys": ["id"],
              "options": {"bucket": "2", "merge-engine": "deduplicate", "file.format": "parquet", "k": "v"}, "comment": "k"},
    "bucketed": {"fields": [field(0, "a", "INT"), field(1, "b", "STRING")], "partitionKeys": [], "primaryKeys": [],
                 "options": {"bucket": "3", "bucket-key": "b,a"}, "comment": "c"},
    "columns": PARTITIONED,
    "parts": {**PARTITIONED, "options": {"bucket": "1", "metastore.partitioned-table": "true"}},
}


def comparable(table, marks):
    """Without what must differ: places, marks, what the metastore adds."""
    parameters = {k: v for k, v in table["parameters"].items() if k not in ITS_OWN}
    if marks:
        for mark in MARKS:
            check(parameters.pop(mark, None) is not None, f"no parameter {mark}")
    storage = {k: v for k, v in table["storage"].items() if k != "location"}
    return {**table, "owner": None, "parameters": parameters, "storage": storage, "partitions": None}


def as_paimon(name):
    # The daemon would choose write-only where nothing is said of it; Paimon doesn't.
    schema = {**SCHEMAS[name], "options": {**SCHEMAS[name]["options"], "write-only": "true"}}
    create(f"ours.{name}", schema)
    paimon.ask("create", f"theirs.{name}", lab.write("schema.json", json.dumps(schema)))
    ours, theirs = pushed(f"ours.{name}"), hive.table(f"theirs.{name}")
    for part in theirs["storage"]:
        if part != "location":
            equal(ours["storage"][part], theirs["storage"][part], f"storage, {part}")
    equal(comparable(ours, True), comparable(theirs, False), "the table")
    equal(ours["owner"], "keeper", "owner")
    equal(ours["storage"]["location"], "file:" + tarnd.folder(f"ours.{name}"), "location")
    equal(theirs["storage"]["location"], "file:" + os.path.join(lab.path("hive-warehouse"), f"theirs.db/{name}"), "theirs")


def databases():
    http("POST", "/databases", {"name": "facts", "options": {"comment": "of facts", "k": "v", "owner": "ada"}})
    there = wait_until("the database", lambda: hive.all().get("facts"), 90, 0.2)
    equal((there["comment"], there["owner"], there["parameters"].get("k")), ("of facts", "ada", "v"), "what is told of it")
    equal(there["location"], f"file:{tarnd.warehouse}/facts.db", "location")
    tarnd.tarn("db", "alter", "facts", "--set", "k=w")
    wait_until("the other value", lambda: hive.all()["facts"]["parameters"].get("k") == "w", 90, 0.2)
    create("facts.t", SCHEMAS["plain"])
    pushed("facts.t")
    tarnd.tarn("db", "drop", "facts", "--cascade")
    wait_until("it is gone", lambda: "facts" not in hive.all(), 90, 0.2)


def followed():
    create("follow.t", SCHEMAS["keyed"])
    before = pushed("follow.t")
    tarnd.tarn("table", "alter", "follow.t", "--add-column", "n BIGINT", "--set", "k=w", "--reset", "file.format")
    after = pushed("follow.t", lambda t: len(t["storage"]["columns"]) == 3, "with its column")
    equal(after["storage"]["columns"][2][:2], ["n", "bigint"], "the new column")
    equal((after["parameters"]["k"], after["parameters"].get("file.format")), ("w", None), "options")
    equal(after["parameters"]["tarn.table"], before["parameters"]["tarn.table"], "it is the same table")
    tarnd.tarn("table", "alter", "follow.t", "--alter-type", "n STRING")  # Hive lets nobody alter it so
    pushed("follow.t", lambda t: t["storage"]["columns"][2][1] == "string", "with the other type")
    tarnd.tarn("table", "rename", "follow.t", "follow.u")
    renamed = pushed("follow.u")
    equal(renamed["storage"]["location"], "file:" + tarnd.folder("follow.u"), "its place")
    gone("follow.t")
    tarnd.tarn("table", "drop", "follow.u")
    gone("follow.u")
    create("follow.u", SCHEMAS["plain"])
    again = pushed("follow.u")
    check(again["parameters"]["tarn.table"] != before["parameters"]["tarn.table"], "another table")
    check(os.path.isdir(tarnd.folder("follow.u")), "its folder is there: the metastore drops no data")


def partitions():
    name = "ours.parts"
    tarnd.tarn("load", name, rows(0, 1, 2, 3), "--format", "jsonl")
    want = {"d0,0", "d1,1", "d2,0", "d0,1"}
    there = pushed(name, lambda t: set(t["partitions"]) == want, "with its partitions")["partitions"]
    equal(there["d0,1"]["storage"]["location"], f"file:{tarnd.folder(name)}/dt=d0/hh=1", "a partition's place")
    same = {k: v for k, v in there["d0,1"]["storage"].items() if k != "location"}
    equal(same, {k: v for k, v in hive.table(name)["storage"].items() if k != "location"}, "the rest of it is the table's")
    tarnd.tarn("load", name, rows(4), "--format", "jsonl")  # d1, 0
    pushed(name, lambda t: set(t["partitions"]) == want | {"d1,0"}, "with a new one")
    odd = lab.write("odd.jsonl", json.dumps({"id": 9, "v": "x", "dt": "a/b=c %25:ü", "hh": 1}) + "\n")
    tarnd.tarn("load", name, odd, "--format", "jsonl")
    pushed(name, lambda t: "a/b=c %25:ü,1" in t["partitions"], "with an odd name")
    hive.ask("drop-partition", name, "d2,0")
    hive.ask("add-partition", name, "dx,7")
    pushed(name, lambda t: "d2,0" in t["partitions"] and "dx,7" not in t["partitions"], "repaired")
    check(os.path.isdir(os.path.join(tarnd.folder(name), "dt=d2/hh=0")), "its data is there")


def repaired():
    create("drift.t", SCHEMAS["keyed"])
    good = comparable(pushed("drift.t"), True)
    for words in (["column", "drift.t", "id", "string"], ["location", "drift.t", "file:/elsewhere"], ["parameter", "drift.t", "bucket", "7"],
                  ["unset", "drift.t", "storage_handler"], ["drop", "drift.t"]):
        hive.ask(*words)
        pushed("drift.t", lambda t: comparable(t, True) == good and t["storage"]["location"].endswith("/drift.db/t"), f"after {words[0]}")
    check("hms.repaired" in tarnd.said(), "the log tells of repairs")
    text = urllib.request.urlopen(f"http://{tarnd.http}/metrics", timeout=10).read().decode()
    check(re.search(r'tarn_hms_repairs_total\{what="table_changed"\} [1-9]', text), "the repairs are counted")
    hive.ask("parameter", "drift.t", "note", "by_hand")
    time.sleep(2.5)  # two checks
    equal(hive.table("drift.t")["parameters"].get("note"), "by_hand", "what others add is no drift")


def untouched():
    hive.ask("database", "shared")
    theirs = lab.path("theirs")
    os.makedirs(theirs)
    hive.ask("table", "shared.mine", "file:" + theirs)
    hive.ask("table", "shared.taken", "file:" + theirs)
    before = hive.all()["shared"]
    create("shared.taken", SCHEMAS["plain"])
    create("shared.free", SCHEMAS["plain"])
    pushed("shared.free")
    after = hive.all()["shared"]
    for table in ("mine", "taken"):
        equal(after["tables"][table], before["tables"][table], table)
    equal({**after, "tables": 0}, {**before, "tables": 0}, "the database")
    status = tarnd.json("status")
    equal([p["table"] for p in status["problems"] if p["table"].startswith("shared.")], ["shared.taken"], "status names it")
    tarnd.tarn("db", "drop", "shared", "--cascade")
    gone("shared.free")
    equal(hive.all()["shared"]["tables"], before["tables"], "after ours was dropped")


def unfit():
    tarnd.tarn("db", "create", "Big")
    create("names.up", {**SCHEMAS["plain"], "fields": [field(0, "Id", "INT"), field(1, "vV", "STRING")]})
    create("names.Down", SCHEMAS["plain"])
    create("names.twins", {**SCHEMAS["plain"], "fields": [field(0, "a", "INT"), field(1, "A", "INT")]})
    there = pushed("names.up")
    equal([c[0] for c in there["storage"]["columns"]], ["id", "vv"], "columns in lower case, as the metastore has them")
    wait_until("all is told", lambda: {p["table"] for p in tarnd.json("status")["problems"]} >= {"Big", "names.Down", "names.twins"}, 10)
    equal(set(hive.all()["names"]["tables"]), {"up"}, "what is there")
    check(mirror()["refused"] >= 3 and mirror()["state"] != "down", f"status: {mirror()}")


def read_through_hive():
    tarnd.tarn("load", "ours.columns", rows(*range(20)), "--format", "jsonl")
    got = paimon.rows("ours.columns", types=house.types_of(tarnd.folder("ours.columns")))
    same_rows(got, tarnd.scan("ours.columns"), "what HiveCatalog reads")
    same_rows(paimon.rows("ours.parts", types=house.types_of(tarnd.folder("ours.parts"))), tarnd.scan("ours.parts"), "with partitions there")


def away():
    create("away.t", SCHEMAS["keyed"])
    pushed("away.t")
    wait_until("in step", lambda: mirror()["state"] == "in step", 90)
    os.kill(metastore.pid(), signal.SIGSTOP)  # it accepts, and never answers
    create("away.hangs", SCHEMAS["plain"])
    began = time.monotonic()
    tarnd.tarn("load", "away.t", lab.write("r.jsonl", '{"id": 1, "v": "x"}\n'), "--format", "jsonl")
    check(time.monotonic() - began < 10, "a load waits for the metastore")
    os.kill(metastore.pid(), signal.SIGCONT)
    pushed("away.hangs")
    metastore.run("stop")
    wait_until("it is told", lambda: mirror()["state"] == "down", 90)
    check("failure" in mirror() and mirror()["failure"], "with a reason")
    create("away.new", SCHEMAS["plain"])
    tarnd.tarn("table", "drop", "away.hangs")
    tarnd.stop()
    tarnd.start()  # with nobody there
    tarnd.tarn("load", "away.t", lab.write("r.jsonl", '{"id": 2, "v": "y"}\n'), "--format", "jsonl")
    equal(mirror()["state"], "down", "state at start")
    metastore.run("start")
    pushed("away.new")
    gone("away.hangs")
    pushed("away.t")
    wait_until("in step again", lambda: mirror()["state"] == "in step", 90)


# The others, and a metastore that is away, take minutes: with TARN_EFFORT of 10 or more, as make check-long sets it, or by name.
LONG = int(os.environ.get("TARN_EFFORT", 1)) >= 10 or len(sys.argv) > 1
for name in SCHEMAS if LONG else ("types", "bucketed", "columns", "parts"):
    lab.run(f"table {name} is there what HiveCatalog makes of it", as_paimon, name)
lab.run("partitions follow, and are repaired", partitions)
lab.run("schema, name and end of a table follow", followed)
lab.run("what others made stays as it is", untouched)
lab.run("HiveCatalog reads what was pushed", read_through_hive)
if LONG:
    lab.run("databases are made, altered and dropped", databases)
    lab.run("what somebody changes is repaired", repaired)
    lab.run("what Hive can't have is told", unfit)
    lab.run("a metastore that hangs, is gone, and comes back", away)
metastore.wipe()
sys.exit(lab.done())
