#!/usr/bin/env python3
"""needs: shared
Promise: what Paimon's Java library commits, `tarn watch` tells: deltas, and the changelogs of each producer, which replayed
by key are the table; of overwrites it tells what Java's streaming reader tells, and nothing where the table doesn't ask for it;
Java's roll-backs and expiry are explicit ends; a consumer that Tarn keeps holds Java's expiry back.
"""
import json
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Failed, Lab, Watch, check, equal, wait_until  # noqa: E402
from peers import Java, others_read_what_is_left  # noqa: E402

lab = Lab("streams")
warehouse = lab.path("wh")
java = Java(lab, warehouse)
tarn = lab.daemon("d", warehouse, **{"worker.count": 1, "commit.foreign_check": "100 ms"})


def create(table, keys=("id",), **options):
    schema = {"fields": [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}, {"id": 1, "name": "v", "type": "STRING"}],
              "partitionKeys": [], "primaryKeys": list(keys), "comment": "",
              "options": {k.replace("_", "-").replace("--", "."): v for k, v in options.items()}}
    java.ask("create", table, lab.write("schema.json", json.dumps(schema)))


def write(table, rows):
    """Rows as (kind, id, v) -> the latest snapshot."""
    text = "".join(json.dumps({"rowkind": k, "id": i, "v": v}) + "\n" for k, i, v in rows)
    return int(java.ask("write", table, lab.write("rows.jsonl", text)))


def replay(rows, strict):
    """strict: each row must fit the state before it, as a changelog's does."""
    state = {}
    for row in rows:
        kind, key, value = row["rowkind"], row["id"], row["v"]
        if strict:
            fits = {"+I": key not in state, "+U": key not in state, "-U": state.get(key) == value,
                    "-D": state.get(key) == value}[kind]
            check(fits, f"{row} on top of {state.get(key)!r}")
        if kind[0] == "+":
            state[key] = value
        else:
            state.pop(key, None)
    return state


def producer(name, strict, **options):
    table = "s." + name.replace("-", "_")
    create(table, bucket="2", changelog_producer=name, **options)
    watch = Watch(tarn, table, "--from", "earliest")
    pick, state = random.Random(5), {}
    for _ in range(8):
        rows = []
        for key in pick.sample(range(30), 8):
            if key in state and pick.random() < 0.3:
                rows.append(("-D", key, state.pop(key)))
            else:
                state[key] = f"v{pick.randrange(1000)}"
                rows.append(("+I", key, state[key]))
        last = write(table, rows)
        if name == "full-compaction":  # else nothing of it is in a changelog yet
            last = int(java.ask("compact", table))
    try:
        wait_until("the stream comes to the table", lambda: replay(watch.lines(), False) == state, 20)
    except Failed:
        raise Failed(f"{replay(watch.lines(), False)} is not {state}; {watch.error()}") from None
    watch.interrupt()
    equal(replay(watch.lines(), strict), state, "the stream, replayed")
    equal({r["id"]: r["v"] for r in tarn.lines("scan", table)}, state, "a scan")
    equal(replay(tarn.lines("scan", table, "--changes", f"0..{last}"), strict), state, "all changes in one scan")
    for low in range(1, last):
        before = {r["id"]: r["v"] for r in tarn.lines("scan", table, "--snapshot", low)}
        for row in tarn.lines("scan", table, "--changes", f"{low}..{last}", "--how", "diff"):
            if row["rowkind"][0] == "-":
                equal(before.pop(row["id"], None), row["v"], f"what {row} takes away")
            else:
                before[row["id"]] = row["v"]
        equal(before, state, f"the difference from {low}")


def appends():
    create("s.appends", keys=(), bucket="-1")
    watch = Watch(tarn, "s.appends", "--from", "earliest", "--limit", "6")  # it may begin after the first write
    for n in range(3):
        write("s.appends", [("+I", n * 2, "a"), ("+I", n * 2 + 1, None)])
    equal(watch.ended(), 0, watch.error())
    equal([(r["rowkind"], r["id"], r["v"]) for r in watch.lines()],
          [("+I", i, "a" if i % 2 == 0 else None) for i in range(6)], "rows")


def told(rows):
    """By key, in order: a snapshot has no order of keys."""
    steps = {}
    for row in rows:
        steps.setdefault(row["id"], []).append((row["rowkind"], row["v"]))
    return steps


def folded(rows):
    """Of an overwrite Java tells every version that was there, in any order, and all that is: of those that went, the one that
    stood is what the stream told last; what stayed is no news, what is another is a change."""
    out, state, groups = [], {}, {}
    for row in rows:
        groups.setdefault((row["snapshot"], row["id"]), []).append(row)
    for (_, key), group in groups.items():
        gone = [r for r in group if r["rowkind"] == "-D"]
        if gone:
            before = [r for r in gone if r["v"] == state.get(key)]
            check(before, f"Java takes {gone} away, the stream told {state.get(key)!r}")
            after = [r for r in group if r["rowkind"] != "-D"]
            if not after:
                group = [before[0]]
            elif after[-1]["v"] == before[0]["v"]:
                group = []
            else:
                group = [{**before[0], "rowkind": "-U"}, {**after[-1], "rowkind": "+U"}]
        out += group
        for row in group:
            state[key] = row["v"] if row["rowkind"][0] == "+" else None
    return out


def streamed_by_java(table, first=1):
    out = lab.path("java-stream.jsonl")
    java.ask("stream", table, out, first)
    with open(out, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def overwrites(keys, told_of, producer):
    """Overwrites of both sides between appends of both sides."""
    table = f"s.over_{len(keys)}_{producer}_{'told' if told_of else 'silent'}".replace("-", "_")
    option = "streaming-read-overwrite" if keys else "streaming-read-append-overwrite"
    create(table, keys=keys, bucket="2" if keys else "-1", **({"changelog_producer": producer} if keys else {}),
           **({option: "true"} if told_of else {}))
    watch = Watch(tarn, table, "--from", "earliest")

    def load(mode, *rows):
        text = "".join(json.dumps({"id": i, "v": v}) + "\n" for i, v in rows)
        return tarn.json("load", table, lab.write("rows.jsonl", text), "--mode", mode)["snapshot"]

    def overwrite(rows):
        text = "".join(json.dumps({"id": i, "v": v}) + "\n" for i, v in rows)
        return int(java.ask("overwrite", table, lab.write("rows.jsonl", text)))

    write(table, [("+I", i, "a") for i in range(6)])
    overwrite([(0, "a"), (1, "b"), (9, "new")])  # stays, changes, comes; four go
    write(table, [("+I", 2, "c")])
    load("upsert" if keys else "append", (1, "d"), (3, "d"))
    load("overwrite", (1, "d"), (2, "e"))
    load("overwrite")  # of nothing: all of it goes
    last = write(table, [("+I", 7, "f")])
    want = streamed_by_java(table)
    if keys and told_of:
        want = folded(want)
    try:
        wait_until("the stream tells as much as Java's", lambda: told(watch.lines()) == told(want), 20)
    except Failed:
        raise Failed(f"{told(watch.lines())} is not Java's {told(want)}; {watch.error()}") from None
    watch.interrupt()
    if told_of:
        equal(any(r["rowkind"][0] == "-" for r in want), bool(keys), "rows that went are told")
        equal(sorted((r["id"], r["v"]) for r in tarn.lines("scan", table)), [(7, "f")], "the table")
        if keys:
            equal(replay(watch.lines(), False), {7: "f"}, "the stream, replayed")
    for n in range(last):
        got = tarn.lines("scan", table, "--changes", f"{n}..{n + 1}")
        equal(told(got), told([r for r in want if r["snapshot"] == n + 1]), f"snapshot {n + 1}")


def undone():
    create("s.undone", bucket="1")
    for n in range(4):
        last = write("s.undone", [("+I", n, "a")])
    watch = Watch(tarn, "s.undone", "--from", "earliest")
    wait_until("all is printed", lambda: len(watch.lines()) == 4)
    java.ask("rollback", "s.undone", last - 2)
    equal(watch.ended(), 1, "the status of watch")
    check("rolled back" in watch.error(), watch.error())


def expired():
    create("s.expired", bucket="1")
    for n in range(6):
        last = write("s.expired", [("+I", n, "a")])
    tarn.tarn("consumer", "set", "s.expired", "reader", "--next", "3")
    java.ask("expire", "s.expired", 1)
    left = [s["id"] for s in tarn.lines("snapshots", "s.expired")]
    equal(left, list(range(3, last + 1)), "what the consumer keeps from Java's expiry")
    equal([r["id"] for r in tarn.lines("watch", "s.expired", "--consumer", "reader", "--until", last)], [2, 3, 4, 5], "its rows")
    java.ask("expire", "s.expired", 1)
    equal([s["id"] for s in tarn.lines("snapshots", "s.expired")], [last], "what is left once it has moved")
    got = tarn.tarn("watch", "s.expired", "--from", 2, ok=False)
    check("snapshot 2" in got.error and f"the earliest snapshot is {last}" in got.error, got.error)


tarn.start()
lab.run("deltas", producer, "none", False)
lab.run("changelog of input", producer, "input", False)
lab.run("changelog of lookup", producer, "lookup", True)
lab.run("changelog of full compaction", lambda: producer("full-compaction", True))
lab.run("appended rows", appends)
for told_of in (True, False):
    lab.run("overwrites of a table with a key" + (", told" if told_of else ""), overwrites, ["id"], told_of, "none")
    lab.run("overwrites of appended rows" + (", told" if told_of else ""), overwrites, [], told_of, "none")
    lab.run("overwrites beside changelogs" + (", told" if told_of else ""), overwrites, ["id"], told_of, "input")
lab.run("a roll-back by Java", undone)
lab.run("expiry by Java", expired)
others_read_what_is_left(lab)
sys.exit(lab.done())
