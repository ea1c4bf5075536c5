#!/usr/bin/env python3
"""needs: shared
Promise: Paimon's Java library, pypaimon and Tarn see the same rows, value by value, in tables that any of them wrote,
at every snapshot, before and after the compactions of each. java_paimon.py [PART OF A CASE'S NAME]... runs some.

The tables are those of test/lib/shapes.py; what must be seen after each commit is known from there, not from any reader.
"""
import collections
import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import lab as house  # noqa: E402
from lab import Lab, check, equal, rows_of, same_rows, types_of  # noqa: E402
from peers import Java, Python  # noqa: E402
from shapes import Shape, add, shapes  # noqa: E402

GOLDEN = os.path.join(house.ROOT, "test/golden/table")
FORMATS = ["jsonl", "csv", "parquet", "arrow"]
SHAPES = {s.name: s for s in shapes()}
EMPTY = collections.Counter()

lab = Lab("interop")
warehouse = lab.path("wh")
java = Java(lab, warehouse)
python = Python(lab, warehouse)
tarn = lab.daemon("d", warehouse, **{"worker.count": 2})


def input_file(shape, commit, form, kinds="rowkind"):
    """A commit as a file for tarn load."""
    path = lab.path(f"in.{'feather' if form == 'feather' else form}")
    if form == "csv":
        return lab.write("in.csv", shape.csv(commit, kinds))
    rows = lab.write("in.jsonl", shape.lines(commit, kinds))
    if form != "jsonl":
        python.ask("file", lab.write("in.schema", json.dumps(shape.schema)), rows, path)
    return rows if form == "jsonl" else path


def load(table, shape, commit, form):
    """tarn load of one commit -> the snapshot's id."""
    path = input_file(shape, commit, form)
    words = ["load", table, path, "--format", "arrow" if form == "feather" else form]
    kinds = {k for k, _ in commit}
    if kinds == {"-D"}:
        path = input_file(shape, [("+I", r) for _, r in commit], form)
        words += ["--mode", "delete"]
    elif kinds != {"+I"}:
        words += ["--op-column", "rowkind"]
    return tarn.json(*words)["snapshot"]


def java_writes(table, shape, commits):
    return [int(java.ask("write", table, lab.write("w.jsonl", shape.lines(c)))) for c in commits]


def all_see(table, shape, state, when, readers=("tarn", "java", "python")):
    for name in readers:
        if name == "tarn":
            got = tarn.scan(table, types=shape.types)
        else:
            got = (java if name == "java" else python).rows(table, types=shape.types)
        same_rows(got, state, f"{name}, {when}")


def history(table, shape, ids, states):
    """Each state at its snapshot, by Tarn and by Java."""
    for n, state in zip(ids, states):
        same_rows(tarn.scan(table, "--snapshot", n, types=shape.types), state, f"tarn at snapshot {n}")
        same_rows(java.rows(table, f"scan.snapshot-id={n}", types=shape.types), state, f"java at snapshot {n}")


def compact_both(table, shape, state):
    tarn.tarn("compact", table, "--full", "--wait")
    all_see(table, shape, state, "after tarn compact")
    java.ask("compact", table)
    all_see(table, shape, state, "after java's compaction")


# ---------------------------------------------------------------- Java writes

created_by_java = {}


def java_makes(shape, database):
    table = f"{database}.{shape.name}"
    java.ask("create", table, lab.write("schema.json", json.dumps(shape.schema)))
    return table, java_writes(table, shape, shape.commits)


def from_java(shape):
    table, ids = created_by_java.pop(shape.name)
    states = shape.states()
    all_see(table, shape, states[-1] if states else EMPTY, "as java wrote it")
    history(table, shape, ids, states)
    if not states:
        return
    compact_both(table, shape, states[-1])
    # Java goes on where Tarn's compaction ended, and Tarn after that
    java_writes(table, shape, [shape.commits[0]])
    again = Shape(shape.name, shape.columns, shape.commits + [shape.commits[0]], shape.pk, shape.part)
    again.options = shape.options
    all_see(table, shape, again.states(len(shape.commits))[-1], "after another commit of java")
    if "rowkind.field" not in shape.options:
        again.commits = again.commits + [shape.commits[-1]]
        load(table, shape, shape.commits[-1], "jsonl")
        all_see(table, shape, again.states(len(shape.commits))[-1], "after a load on top")
    history(table, shape, ids, states)


# ---------------------------------------------------------------- Tarn writes


def from_tarn(shape):
    table = "t." + shape.name
    tarn.tarn("table", "create", table, *shape.create_words())
    equal([(n, t) for n, t in types_of(tarn.folder(table))], retyped(shape), "the schema file")
    states, ids = shape.states(), []
    for i, commit in enumerate(shape.commits):
        ids.append(load(table, shape, commit, FORMATS[(i + len(shape.name)) % 4]))
    all_see(table, shape, states[-1] if states else EMPTY, "as tarn wrote it")
    history(table, shape, ids, states)
    if states:
        compact_both(table, shape, states[-1])
        history(table, shape, ids, states)


def retyped(shape):
    """The types as they must stand in the schema file that Tarn writes: ids of nested fields are Tarn's to choose."""
    folder = tarn.folder("t." + shape.name)
    is_now = dict(types_of(folder))

    def same(want, got):
        if isinstance(want, str) or isinstance(got, str):
            return want == got
        if want["type"] != got["type"]:
            return False
        if "fields" in want:
            return [f["name"] for f in want["fields"]] == [f["name"] for f in got["fields"]] and \
                all(same(a["type"], b["type"]) for a, b in zip(want["fields"], got["fields"]))
        return all(same(want[k], got[k]) for k in want if k != "type")

    return [(n, is_now[n] if n in is_now and same(t, is_now[n]) else t) for n, t in shape.types]


def every_format(form):
    """Every type through one input format, and out again as that format."""
    shape = SHAPES["ap_all"]
    table = "t.format_" + form
    tarn.tarn("table", "create", table, *shape.create_words())
    for commit in shape.commits:
        load(table, shape, commit, form)
    all_see(table, shape, shape.states()[-1], "as loaded")
    # out and in again
    out = lab.path("out." + ("arrow" if form == "feather" else form))
    if form in ("parquet", "arrow", "feather"):
        tarn.tarn("scan", table, "-o", "arrow" if form == "feather" else form, "--to", out)
    else:
        lab.write(os.path.basename(out), tarn.tarn("scan", table, "-o", form).stdout)
    copy = table + "_copy"
    tarn.tarn("table", "create", copy, "--like", table)
    tarn.tarn("load", copy, out)
    all_see(copy, shape, shape.states()[-1], "scanned and loaded again", ("tarn", "java"))


# ---------------------------------------------------------------- taking turns


def in_turns(shape):
    """Commits by Java and Tarn alternately, a compaction of one or the other between."""
    table = "m." + shape.name
    java.ask("create", table, lab.write("schema.json", json.dumps(shape.schema)))
    states, ids = shape.states(), []
    for i, commit in enumerate(shape.commits):
        if i % 2:
            ids += java_writes(table, shape, [commit])
        else:
            ids.append(load(table, shape, commit, "jsonl"))
        all_see(table, shape, states[i], f"after commit {i}", ("tarn", "java"))
        if i == 1:
            java.ask("compact", table)
        elif i == 2:
            tarn.tarn("compact", table, "--full", "--wait")
    history(table, shape, ids, states)
    all_see(table, shape, states[-1], "at the end")


def rolled_back():
    shape = SHAPES["pk_part1"]
    table = "m.rolled_back"
    java.ask("create", table, lab.write("schema.json", json.dumps({**shape.schema, "options": {"bucket": "1", "write-only": "true"}})))
    ids = java_writes(table, shape, shape.commits[:1])
    ids.append(load(table, shape, shape.commits[1], "jsonl"))
    ids += java_writes(table, shape, shape.commits[2:])
    all_see(table, shape, shape.states()[-1], "before the roll-back")
    java.ask("rollback", table, ids[1])
    all_see(table, shape, shape.states()[1], "after java's roll-back")
    new = load(table, shape, shape.commits[2], "jsonl")
    equal(new, ids[1] + 1, "the snapshot after the roll-back")
    all_see(table, shape, shape.states()[2], "after a load on the rolled back table")


def expired_by_java():
    """Snapshots that Java expires are gone here, too; the latest is as it was, also after a restart from nothing."""
    shape = SHAPES["pk_part1"]
    table = "m.expired"
    tarn.tarn("table", "create", table, *shape.create_words())
    ids = [load(table, shape, c, "jsonl") for c in shape.commits]
    tarn.tarn("compact", table, "--full", "--wait")
    last = tarn.json("snapshots", table)[-1]["id"]  # each partition's compaction made one
    java.ask("expire", table, last - ids[-1] + 1)
    equal([s["id"] for s in tarn.json("snapshots", table)], list(range(ids[-1], last + 1)), "snapshots")
    said = tarn.tarn("scan", table, "--snapshot", ids[0], ok=False).error
    check(str(ids[0]) in said and "Parquet" not in said and ".parquet" not in said, f"the refusal: {said}")
    all_see(table, shape, shape.states()[-1], "after java's expiry")
    new = load(table, shape, shape.commits[0], "jsonl")
    more = Shape(shape.name, shape.columns, [*shape.commits, shape.commits[0]], shape.pk, shape.part)
    all_see(table, shape, more.states()[-1], "after a load on top")
    history(table, shape, [ids[-1], new], [shape.states()[-1], more.states()[-1]])


def many_files():
    """Files roll at the target size; a compaction makes runs of many files, which Java reads as they lie."""
    table = "t.many"
    types = [("id", "BIGINT NOT NULL"), ("v", "STRING"), ("n", "INT")]
    tarn.tarn("table", "create", table, "--columns", "id BIGINT NOT NULL, v STRING, n INT", "--primary-key", "id",
              "--option", "bucket=2", "--option", "target-file-size=128 kb", "--option", "write-buffer-size=256 kb")
    want = {}
    for c in range(3):
        rows = {i: (i, f"{c} {i * 2654435761 % 4294967296:x}", c) for i in range(c * 5000, 20000 + c * 5000)}
        lab.write("many.jsonl", "".join(f'{{"id": {i}, "v": "{v}", "n": {n}}}\n' for i, v, n in rows.values()))
        tarn.tarn("load", table, lab.path("many.jsonl"))
        want.update(rows)
    want = collections.Counter(want.values())
    for when in ("loaded", "compacted"):
        same_rows(tarn.scan(table, types=types), want, f"tarn, {when}")
        same_rows(java.rows(table, types=types), want, f"java, {when}")
        same_rows(python.rows(table, types=types), want, f"python, {when}")
        if when == "loaded":
            tarn.tarn("compact", table, "--full", "--wait")
    files = tarn.json("files", table)
    check(len(files) >= 4 and all(f["level"] > 0 for f in files), f"{len(files)} files, all above level 0")


def merged_manifests():
    """More snapshots than manifests: what was merged beside the commits, with and without deletes, is read by Java at every
    snapshot; Java merges on top of it, and Tarn reads that."""
    rows = [{"id": i % 50, "part": i % 3, "v": f"{i * 2654435761 % 4294967296:x}"} for i in range(200)]
    commits = [add(rows[i * 4: i * 4 + 8]) for i in range(40)]
    shape = Shape("merged", {"id": "INT", "part": "INT", "v": "STRING"}, commits, pk=["id", "part"], part=["part"], bucket=1,
                  manifest__merge_min_count=5, manifest__target_file_size="6 kb", manifest__full_compaction_threshold_size="30 kb")
    table = "t.merged"
    tarn.tarn("table", "create", table, *shape.create_words())
    states, seen = shape.states(), []
    for i, commit in enumerate(commits):
        seen.append((load(table, shape, commit, "jsonl"), states[i]))
        if i % 7 == 6:
            tarn.tarn("compact", table, "--full", "--wait")
            seen.append((tarn.json("snapshots", table)[-1]["id"], states[i]))
    last = tarn.json("snapshots", table)[-1]["id"]
    manifests = [n for n in os.listdir(os.path.join(tarn.folder(table), "manifest")) if not n.startswith("manifest-list")]
    check(len(manifests) > last + 5, f"{len(manifests)} manifests of {last} snapshots: some are merged ones")
    history(table, shape, [n for n, _ in seen], [s for _, s in seen])
    java_writes(table, shape, commits[:2])
    longer = Shape(shape.name, shape.columns, commits + commits[:2], shape.pk, shape.part)
    all_see(table, shape, longer.states()[-1], "after commits of java")


def evolved_by_java():
    """Options that Java alters are seen and obeyed."""
    shape = Shape("opt", {"k": "INT", "v": "STRING"}, [add([{"k": 1, "v": "a"}])], pk=["k"], bucket=1)
    table, _ = java_makes(shape, "m")
    same_rows(tarn.scan(table), shape.states()[-1], "before")
    java.ask("set", table, "ignore-delete=true")
    rows = lab.write("d.jsonl", '{"k": 1, "v": null}\n')
    tarn.tarn("load", table, rows, "--mode", "delete")
    all_see(table, shape, shape.states()[-1], "after a delete that is ignored")


def dropped_by_java():
    shape = Shape("gone", {"k": "INT", "v": "STRING"}, [add([{"k": 1, "v": "a"}])])
    table, _ = java_makes(shape, "m")
    uuid = tarn.json("table", "show", table)["uuid"]
    java.ask("drop", table)
    check(table in tarn.tarn("scan", table, ok=False).error, "the refusal names the table")
    java.ask("create", table, lab.write("schema.json", json.dumps(shape.schema)))
    same_rows(tarn.scan(table, types=shape.types), EMPTY, "the table made again")
    check(tarn.json("table", "show", table)["uuid"] != uuid, "a table made again has the uuid of the dropped one")


# ---------------------------------------------------------------- pypaimon writes


def from_python(shape):
    """pypaimon creates and writes; Java's reader judges what it wrote, too."""
    table = "p." + shape.name
    commits = [[(k, r) for k, r in c if k == "+I"] for c in shape.commits]
    only = Shape(shape.name, shape.columns, [c for c in commits if c], shape.pk, shape.part)
    only.options = shape.options
    python.ask("create", table, lab.write("schema.json", json.dumps(shape.schema)))
    for c in only.commits:
        python.ask("write", table, lab.write("w.jsonl", shape.lines(c, None)))
    state = only.states()[-1]
    all_see(table, shape, state, "as pypaimon wrote it")
    compact_both(table, shape, state)


# ---------------------------------------------------------------- found, not created


def golden(name):
    """A golden table that lies in the warehouse reads as Java read it when it was made."""
    table = "golden." + name
    with open(os.path.join(GOLDEN, name + ".jsonl"), encoding="utf-8") as f:
        types = types_of(tarn.folder(table))
        want = rows_of(f.read(), types)
    same_rows(tarn.scan(table, types=types), want, "tarn")
    tarn.tarn("compact", table, "--full", "--wait")
    same_rows(tarn.scan(table, types=types), want, "tarn after its compaction")
    same_rows(java.rows(table, types=types), want, "java after tarn's compaction")


def uuids():
    return {t: tarn.json("table", "show", t)["uuid"] for t in found_tables()}


def found_tables():
    return ["golden." + n for n in golden_names()] + ["t." + n for n in list(SHAPES)[:3]]


def golden_names():
    return sorted(n for n in os.listdir(GOLDEN) if os.path.isdir(os.path.join(GOLDEN, n)))


def listed():
    names = {t["table"] for t in tarn.json("table", "list", "golden")}
    equal(names & set(golden_names()), set(golden_names()) - {late()}, "tables found at start")


def late():
    return golden_names()[0]


def first_named():
    """A table that was put there while the daemon ran is found when it is named."""
    shutil.copytree(os.path.join(GOLDEN, late()), tarn.folder("golden." + late()))
    golden(late())
    shutil.copytree(os.path.join(GOLDEN, "py_append"), tarn.folder("brandnew.t"))
    check(sum(tarn.scan("brandnew.t").values()) == 3, "a table in a database that was put there")


def state_deleted():
    """A lost state directory: each table keeps its uuid, its snapshots and its rows."""
    before = uuids()
    tarn.stop()
    shutil.rmtree(os.path.join(tarn.data, "state"))
    tarn.start()
    equal(uuids(), before, "uuids after the state was deleted")
    shape = SHAPES["pk_all"]
    all_see("t.pk_all", shape, shape.states()[-1], "after the state was deleted")
    load("t.pk_all", shape, shape.commits[0], "jsonl")


def main():
    os.makedirs(os.path.join(warehouse, "golden.db"))
    for name in golden_names():
        if name != late():
            shutil.copytree(os.path.join(GOLDEN, name), os.path.join(warehouse, "golden.db", name))
    found_at_start = [n for i, n in enumerate(SHAPES) if i % 2 == 0]
    with lab.case("java writes tables of all shapes"):
        for name, shape in SHAPES.items():
            if name in found_at_start:
                created_by_java[name] = java_makes(shape, "j")
    tarn.start()
    for db in "tm":
        tarn.tarn("db", "create", db)
    with lab.case("java writes tables while the daemon runs"):
        for name, shape in SHAPES.items():
            if name not in found_at_start:
                created_by_java[name] = java_makes(shape, "j")
    lab.run("golden tables are found at start", listed)
    for name in golden_names():
        if name != late():
            lab.run(f"golden {name}", golden, name)
    lab.run("tables are found when first named", first_named)
    for name, shape in SHAPES.items():
        lab.run(f"java writes {name}, tarn reads and compacts", from_java, shape)
    for name, shape in SHAPES.items():
        lab.run(f"tarn writes {name}, java and pypaimon read", from_tarn, shape)
    for form in FORMATS + ["feather"]:
        lab.run(f"every type through {form}", every_format, form)
    for name in ("ap_bucket", "pk_all", "pk_part1", "pk_part4", "pk_keys", "pk_seq", "pk_seq_desc", "pk_ignore", "pk_thin"):
        lab.run(f"java and tarn take turns in {name}", in_turns, SHAPES[name])
    lab.run("java rolls back", rolled_back)
    lab.run("java expires snapshots", expired_by_java)
    lab.run("files that roll", many_files)
    lab.run("manifests merged beside commits", merged_manifests)
    lab.run("java alters options", evolved_by_java)
    lab.run("java drops and makes again", dropped_by_java)
    for name in ("ap_all", "ap_bucket", "pk_all", "pk_part1", "pk_part4"):
        lab.run(f"pypaimon writes {name}", from_python, SHAPES[name])
    lab.run("a deleted state directory", state_deleted)
    lab.run("SIGTERM", tarn.stop)
    return lab.done()


sys.exit(main())
