#!/usr/bin/env python3
"""Promise: whichever call of the store is the last one of a daemon, what was under way is afterwards not there, wholly there, or half there in the
way that it says: roll-backs (to a snapshot, to a tag whose snapshot has expired, of schemas), fast-forwards, tags and branches that come and go,
snapshots that expire, and over REST tables that are made, altered, renamed, replaced, registered and dropped. The state may go, too. Then the same call goes on, or another
one, and each table's folder is at each moment a history that others can read: Paimon's Java library and pypaimon do, where ../shared is there.

TARN_STORE_FAULTS ends the process after its N-th call (server/store/faulty.h), for each N. What is right is measured: the same call, undisturbed.
CI takes some N, from a random offset that is printed (TARN_SEED); TARN_EFFORT of 10 or more takes all, of 100 or more also ends before each. Words choose operations by their names.
"""
import collections
import glob
import json
import os
import random
import re
import shutil
import sys
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import peers  # noqa: E402
from lab import Failed, Lab, check, equal, types_of, wait_until  # noqa: E402

EFFORT = int(os.environ.get("TARN_EFFORT") or 1)
SEED = int(os.environ.get("TARN_SEED") or random.SystemRandom().randrange(1 << 32))
STEP = 1 if EFFORT >= 10 else 31
CALLS_MAX = 400  # of one operation: more is an end that never comes
SCHEMA = {"fields": [{"id": 0, "name": "id", "type": "BIGINT"}], "partitionKeys": [], "primaryKeys": [], "options": {}, "comment": None}
OTHER = {**SCHEMA, "fields": [*SCHEMA["fields"], {"id": 1, "name": "v", "type": "STRING"}]}

lab = Lab("ref-calls")
between = collections.Counter()  # operation -> how often it was half there
rng = random.Random(SEED)
left = peers.Left(lab)


# ---------------------------------------------------------------- what is there


def load(d, table, row):
    d.tarn("load", table, lab.write("row.jsonl", json.dumps({"id": row}) + "\n"))


def rest(d, method, path, body=None):
    status, answer = d.rest(method, "/tarn" + path, body)
    return status == 200, f"{status} {answer}"


def numbers(folder, prefix):
    """Of the files PREFIX-N, in order."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(int(n[len(prefix) + 1:]) for n in names if re.fullmatch(prefix + r"-\d+", n))


def hint(folder, name):
    path = os.path.join(folder, "snapshot", name)
    if not os.path.exists(path):
        return None
    with open(path, encoding="ascii") as f:
        return int(f.read())


def check_version(folder, manifests, path, what):
    """Of a snapshot, or a tag: all that it names is there."""
    with open(path, encoding="utf-8") as f:
        snapshot = json.load(f)
    for key in ("baseManifestList", "deltaManifestList", "changelogManifestList", "indexManifest"):
        if snapshot.get(key):
            check(os.path.exists(os.path.join(manifests, snapshot[key])), f"{what}: {key} {snapshot[key]} is missing")
    check(os.path.exists(os.path.join(folder, "schema", f"schema-{snapshot['schemaId']}")), f"{what}: schema {snapshot['schemaId']} is missing")
    return snapshot


def check_history(folder, manifests):
    """As Paimon reads a folder: schemas and snapshots without a gap, the hint the newest's (it is believed if the next isn't there)."""
    schemas, snapshots = (numbers(os.path.join(folder, kind), kind) for kind in ("schema", "snapshot"))
    equal(schemas, list(range(len(schemas))), f"{folder}: schemas")
    earliest, latest = (hint(folder, name) for name in ("EARLIEST", "LATEST"))
    if snapshots:  # those before the hint are of no history: not yet, or no more
        first = earliest if earliest in snapshots else snapshots[0]
        snapshots = [n for n in snapshots if n >= first]
        equal(snapshots, list(range(first, snapshots[-1] + 1)), f"{folder}: snapshots")
    if latest is not None:
        check(latest + 1 in snapshots or latest == max(snapshots, default=0), f"{folder}: the hint is {latest}, snapshots are {snapshots}")
    for n in snapshots:
        equal(check_version(folder, manifests, os.path.join(folder, f"snapshot/snapshot-{n}"), f"{folder}: snapshot {n}")["id"], n, f"{folder}: id")
    for tag in glob.glob(os.path.join(folder, "tag/tag-*")):
        check_version(folder, manifests, tag, tag)


def check_folders(d):
    for folder in glob.glob(os.path.join(d.warehouse, "*.db/*")) + glob.glob(os.path.join(d.warehouse, "tables/*")):
        if numbers(os.path.join(folder, "schema"), "schema"):
            check_history(folder, os.path.join(folder, "manifest"))
            for branch in glob.glob(os.path.join(folder, "branch/branch-*")):
                if numbers(os.path.join(branch, "schema"), "schema"):
                    check_history(branch, os.path.join(folder, "manifest"))


def ids(d, table, *version):
    return sorted(json.loads(line)["id"] for line in d.tarn("scan", table, "-o", "jsonl", *version).stdout.splitlines())


def history_of(d, table):
    return {"snapshots": [s["id"] for s in d.lines("snapshots", table)], "rows": ids(d, table)}


def state_of(d, table):
    """What Tarn says of a table, or None."""
    database, name = table.split(".", 1)
    status, got = d.rest("GET", f"/tarn/databases/{database}/tables/{urllib.parse.quote(name)}")
    if status == 404:
        return None
    check(status == 200, f"{table}: {status} {got}")
    if got["schema"]["options"].get("type") == "format-table":
        return {"schema": got["schema"]["fields"]}
    tags = {t["tag"]: ids(d, table, "--tag", t["tag"]) for t in d.lines("tag", "list", table)}
    branches = {b["branch"]: history_of(d, f"{table}$branch_{b['branch']}") for b in d.lines("branch", "list", table)}
    return {"schema": [f["name"] for f in got["schema"]["fields"]], "version": got["schemaId"], **history_of(d, table), "tags": tags, "branches": branches,
            "folder": os.path.relpath(got["path"].removeprefix("file:"), d.warehouse)}


def without_folder(state):
    """Folders by uuid are named anew each time."""
    return {t: s and {k: v for k, v in s.items() if k != "folder"} for t, s in state.items()}


# ---------------------------------------------------------------- what is done


class Operation:
    """send(d) carries it out -> (whether it did, what was said). tables: those that it is about, as they are called before and afterwards.
    done: what it says when it was done already; counted: what then is another all the same.
    needs_state: without it, nothing is done for a while. between(seen, old, new): whether it may leave this, of its first table."""

    def __init__(self, name, tables, send, done=None, between=None, prepare=None, settle=None, counted=(), needs_state=False):
        self.name, self.tables, self.send, self.done, self.between = name, tables.split(), send, done, between
        self.prepare, self.settle, self.counted, self.needs_state = prepare, settle or send, counted, needs_state

    def observe(self, d):
        return without_folder(self.look(d))

    def look(self, d):
        return {t: state_of(d, t) for t in self.tables}

    def may_leave(self, seen, old, new):
        if seen in (old, new):
            return True
        first = self.tables[0]
        return (self.between is not None and all(seen[t] == old[t] for t in self.tables[1:]) and seen[first] is not None and
                self.between(seen[first], old[first], new[first]))


def cli(*words):
    def send(d):
        got = d.tarn(*words, ok=None)
        return got.returncode == 0, got.error
    return send


def by_rest(method, path, body=None):
    return lambda d: rest(d, method, path, body)


def same_but(seen, old, *keys):
    return all(seen[k] == old[k] for k in old if k not in keys)


def going_back(seen, old, new):
    """Snapshots go from the newest one on, rows with them, and then the tags that are of what went."""
    count = len(seen["snapshots"])
    way = seen["snapshots"] == new["snapshots"] or (seen["snapshots"] == old["snapshots"][:count] and count >= len(new["snapshots"]))
    return (way and same_but(seen, old, "snapshots", "rows", "tags") and seen["rows"] == list(range(1, seen["snapshots"][-1] + 1)) and
            new["tags"].items() <= seen["tags"].items() <= old["tags"].items())


def going_forward(seen, old, new):
    """Back to where they part, and then one after the other comes."""
    if len(seen["snapshots"]) >= 2 and going_back(seen, old, {**new, "snapshots": [1, 2], "tags": {"kept": [1, 2]}}):
        return True
    count = len(seen["snapshots"])
    return (same_but(seen, new, "snapshots", "rows", "tags") and seen["snapshots"] == new["snapshots"][:count] and count >= 2 and
            seen["rows"] == new["rows"][:count] and seen["tags"].items() <= {**old["tags"], **new["tags"]}.items())


def all_anew(seen, old, new):
    """The branch begins below all that the table has: that goes, and then one after the other comes."""
    count = len(seen["snapshots"])
    last = seen["snapshots"][-1] if count else 0
    back = seen["snapshots"] == old["snapshots"][:count] and seen["rows"] == list(range(1, last + 1))
    on = seen["snapshots"] == new["snapshots"][:count] and seen["rows"] == new["rows"][:last]
    return (back or on) and same_but(seen, old, "snapshots", "rows", "tags") and seen["tags"].items() <= {**old["tags"], **new["tags"]}.items()


def half_a_branch(seen, old, new):
    return same_but(seen, old, "branches") and {k: v for k, v in seen["branches"].items() if k != "n"} == old["branches"]


def branch_anew(tag):
    """Half of one can be dropped."""
    def settle(d):
        got = d.tarn("branch", "drop", "r.t", "n", ok=None)
        check(got.returncode == 0 or "no branch" in got.error, f"dropping half a branch: {got.error}")
        return cli("branch", "create", "r.t", "n", *tag)(d)
    return settle


def fewer_schemas(seen, old, new):
    return same_but(seen, old, "schema", "version") and new["version"] <= seen["version"] <= old["version"]


def emptied(seen, old, new):
    return same_but(seen, old, "snapshots", "rows") and seen["snapshots"] == new["snapshots"] and seen["rows"] == []


def others_make_a_table(d):
    shutil.copytree(os.path.join(d.warehouse, "r.db/c"), os.path.join(d.warehouse, "r.db/reg"))
    os.unlink(os.path.join(d.warehouse, "r.db/reg/.tarn-table"))


def register(d):
    return rest(d, "POST", "/databases/r/register", {"identifier": {"database": "r", "object": "reg"}, "path": os.path.join(d.warehouse, "r.db/reg")})


def rename(source, database, name):
    return by_rest("POST", "/tables/rename", {"source": {"database": "r", "object": source}, "destination": {"database": database, "object": name}})


def make(name, schema=SCHEMA):
    return by_rest("POST", "/databases/r/tables", {"identifier": {"database": "r", "object": name}, "schema": schema})


GONE, THERE = r"404|not found", r"409|exists"
R = "/databases/r"
FORMAT = {**SCHEMA, "options": {"type": "format-table", "file.format": "parquet"}}
OPERATIONS = [
    Operation("roll back", "r.t", cli("rollback", "r.t", "--to-snapshot", 2), between=going_back),
    Operation("roll back to an expired snapshot", "r.x", cli("rollback", "r.x", "--to-tag", "kept"), between=going_back),
    Operation("fast-forward", "r.t", cli("branch", "fast-forward", "r.t", "b"), between=going_forward),
    Operation("fast-forward to one from before all that is left", "r.x", cli("branch", "fast-forward", "r.x", "b"), between=all_anew),
    Operation("roll back of schemas", "r.s", cli("schema", "rollback", "r.s", "--to", 0), between=fewer_schemas),
    Operation("expire", "r.t", cli("expire", "r.t", "--keep-last", 1), needs_state=True),
    Operation("expire a branch", "r.t", cli("expire", "r.t$branch_b", "--keep-last", 1), needs_state=True),
    Operation("create a tag", "r.t", cli("tag", "create", "r.t", "new", "--snapshot", 3), done="has a tag"),
    Operation("drop a tag", "r.t", cli("tag", "drop", "r.t", "kept"), done="has no tag"),
    Operation("create a branch", "r.t", cli("branch", "create", "r.t", "n", "--tag", "kept"), between=half_a_branch, settle=branch_anew(("--tag", "kept"))),
    Operation("create an empty branch", "r.t", cli("branch", "create", "r.t", "n"), between=half_a_branch, settle=branch_anew(())),
    Operation("drop a branch", "r.t", cli("branch", "drop", "r.t", "b"), done="no branch"),
    Operation("rename a branch", "r.t", cli("branch", "rename", "r.t", "b", "n"), done="no branch"),
    Operation("create a table", "r.new", make("new"), done=THERE),
    Operation("create a table by uuid", "r.n:w", make("n:w"), done=THERE),
    Operation("create a format table", "r.new", make("new", FORMAT), done=THERE),
    Operation("alter a table", "r.c", by_rest("POST", R + "/tables/c", {"changes": [{"action": "addColumn", "fieldNames": ["w"], "dataType": "INT", "comment": None, "move": None}]}),
              done="already|exists|409"),
    Operation("replace a table", "r.c", by_rest("POST", R + "/tables/c/replace", {"schema": OTHER}), between=emptied, counted=("version",)),
    Operation("register a table", "r.reg r.c", register, done=THERE, prepare=others_make_a_table),
    Operation("rename a table", "r.c r.d", rename("c", "r", "d"), done=GONE),
    Operation("rename into another database", "r.c q.c", rename("c", "q", "c"), done=GONE),
    Operation("rename a table by uuid", "r.u:v r.u:w", rename("u:v", "r", "u:w"), done=GONE),
    Operation("rename out of the folders by name", "r.c r.c:2", rename("c", "r", "c:2"), done=GONE),
    Operation("rename a format table", "r.f r.g", rename("f", "r", "g"), done=GONE),
    Operation("drop a table", "r.c", by_rest("DELETE", R + "/tables/c"), done=GONE),
    Operation("drop a table by uuid", "r.u:v", by_rest("DELETE", R + "/tables/u%3Av"), done=GONE),
    Operation("drop a format table", "r.f", by_rest("DELETE", R + "/tables/f"), done=GONE),
]


# ---------------------------------------------------------------- rounds


def alter(d, table, column):
    d.tarn("table", "alter", table, "--add-column", f"{column} INT")


def prepare():
    d = lab.daemon("base").start()
    d.tarn("db", "create", "r")
    d.tarn("db", "create", "q")
    for name in ("t", "x", "s", "c", "u:v"):
        check(*make(name)(d))
        for row in range(1, 6 if name in "tx" else 3):
            load(d, "r." + name, row)
        d.tarn("tag", "create", "r." + name, "kept", "--snapshot", 2)
        if name in "tx":
            d.tarn("tag", "create", "r." + name, "gone", "--snapshot", 4)
        if name in ("t", "x", "c", "u:v"):
            d.tarn("branch", "create", "r." + name, "b", "--tag", "kept")
            load(d, f"r.{name}$branch_b", 11)
            load(d, f"r.{name}$branch_b", 12)
    check(*make("f", FORMAT)(d))
    alter(d, "r.s", "v")
    alter(d, "r.s", "w")
    d.stop()
    snapshots = os.path.join(d.folder("r.x"), "snapshot")  # as an expiry leaves it that respects tags
    for n in (1, 2, 3):
        os.unlink(os.path.join(snapshots, f"snapshot-{n}"))
    lab.write(os.path.join(snapshots, "EARLIEST"), "4")
    check_folders(d)


def fresh():
    lab.end_all()  # one that a failure left would go on in this folder
    shutil.rmtree(lab.path("d"), ignore_errors=True)
    shutil.copytree(lab.path("base"), lab.path("d"))
    return lab.daemon("d", **{"worker.count": 0})


def calls_of_a_start():
    """How many calls of the store a daemon has made when it is ready."""
    low, high = 0, 1024
    while low < high:
        n = (low + high) // 2
        d = fresh()
        try:
            d.start(env={"TARN_STORE_FAULTS": f"*::{n}:1:kill_after"})
            high = n
        except Failed:
            equal(d.process.poll(), 137, f"a start that ends at call {n}: {d.said()[-500:]}")
            low = n + 1
        if d.process.poll() is None:
            d.kill9()
    return low


def undisturbed(operation):
    """-> what is there before, and afterwards"""
    d = fresh().start(**{"worker.count": 1})
    if operation.prepare:
        operation.prepare(d)
    old = operation.observe(d) if operation.prepare is None else {t: None if t == operation.tables[0] else state_of(d, t) for t in operation.tables}
    check(*operation.send(d))
    new = operation.observe(d)
    check(old != new, f"{operation.name} does nothing")
    check_folders(d)
    d.stop()
    return without_folder(old), new


def keep_copies(d, copy, looked):
    """Those tables that are there, as the kill left them, for others to read."""
    for table, state in looked.items():
        if state is None or "rows" not in state:
            continue
        folder = os.path.join(copy, state["folder"])
        left.keep(folder, as_rows(state["rows"], folder), types_of(folder))
        for branch, at in state["branches"].items():
            folder_of_branch = os.path.join(folder, "branch", "branch-" + branch)
            left.also(f"$branch_{branch}", as_rows(at["rows"], folder_of_branch), types_of(folder_of_branch))


def as_rows(of_ids, folder):
    """All other columns are null."""
    return collections.Counter((i, *[None] * (len(types_of(folder)) - 1)) for i in of_ids)


def load_instead(d, operation, seen):
    """Another call than the one that was cut off."""
    for table in [t for t, s in seen.items() if s is not None and "rows" in s]:
        load(d, table, 1000)
        equal(ids(d, table), [*seen[table]["rows"], 1000], f"{table}: rows after a load")
        equal(history_of(d, table)["snapshots"], [*seen[table]["snapshots"], max(seen[table]["snapshots"], default=0) + 1], f"{table}: snapshots after a load")


def run(operation, n, fault, old, new, loses_state, goes_on):
    """-> whether the fault struck"""
    d = fresh()
    acknowledged, error = False, None
    try:
        d.start(env={"TARN_STORE_FAULTS": f"*::{n}:1:{fault}"})
        if operation.prepare:
            operation.prepare(d)
        acknowledged, error = operation.send(d)
    except Failed:
        check(d.process.poll() == 137, f"the daemon did not start: {d.said()[-500:]}")
    except OSError as e:  # no answer over HTTP
        error = repr(e)
    if not acknowledged:
        wait_until(f"nothing struck, and it failed: {error}", lambda: d.process.poll() is not None, 10)
    struck = d.process.poll() is not None
    check(not struck or d.process.poll() == 137, f"the daemon ended with {d.process.poll()}: {d.said()[-500:]}")
    if not struck:
        d.kill9()
    check_folders(d)
    copy = lab.path("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(d.warehouse, copy)
    if loses_state:
        shutil.rmtree(os.path.join(d.data, "state"))
    d.start(**{"worker.count": 1})
    looked = operation.look(d)
    seen = without_folder(looked)
    if acknowledged:
        equal(seen, new, "what it acknowledged")
    between[operation.name] += seen not in (old, new)
    check(operation.may_leave(seen, old, new), f"it left {seen}; before it was {old}, done it is {new}")
    check_folders(d)
    keep_copies(d, copy, looked)
    if goes_on:
        ok, error = operation.settle(d)
        check(ok or (seen == new and operation.done and re.search(operation.done, error)), f"once more: {error}; what was there: {seen}")
        first, now = operation.tables[0], operation.observe(d)
        if seen == new:
            check(now[first] is None or all(now[first][k] >= new[first][k] for k in operation.counted), f"after the same call once more: {now}")
            now = {**now, first: now[first] and {**now[first], **{k: new[first][k] for k in operation.counted}}}
        equal(now, new, "after the same call once more")
    else:
        load_instead(d, operation, seen)
    check_folders(d)
    d.kill9()
    return struck


def cut_off_at_each(operation, first):
    old, new = undisturbed(operation)
    for fault in ("kill_after", "kill_before") if EFFORT >= 100 else ("kill_after",):
        n = first + (rng.randrange(STEP) if STEP > 1 else 0)
        while True:
            loses_state, goes_on = rng.random() < 0.5 and not operation.needs_state, rng.random() < 0.6
            try:
                struck = run(operation, n, fault, old, new, loses_state, goes_on)
            except Exception as e:
                raise Failed(f"{fault} at call {n}, state {'lost' if loses_state else 'kept'}, {'the same call' if goes_on else 'a load'} then: {e!r}") from e
            if not struck:
                break
            n += STEP
            check(n < first + CALLS_MAX, "there is no end to its calls")
        print(f"{operation.name}: {fault}: up to {n - first} calls; {between[operation.name]} times half there", flush=True)
    if STEP == 1 and operation.between not in (None, half_a_branch):
        check(between[operation.name] > 0, "it was never met half done")


def main():
    print(f"seed {SEED}, every {STEP}th call")
    with lab.case("tables with tags, branches and schemas"):
        prepare()
    if not lab.failed:
        first = calls_of_a_start()
        print(f"a start makes {first} calls")
        for operation in OPERATIONS:
            lab.run(operation.name, cut_off_at_each, operation, first)
    peers.others_read_what_is_left(lab, left)
    return lab.done()


sys.exit(main())
