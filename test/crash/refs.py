#!/usr/bin/env python3
"""Promise: kill -9 of the daemon beside tags, branches, roll-backs, fast-forwards and commits by POST (those of Paimon's Java library, where
../shared is there) leaves each of them done, not done, or half done in the way that it says, and then the same call goes on; no acknowledged commit
is lost, none lands twice, history has no gap, and what Java reads is what Tarn reads.

One call after the other on one table, against a model of its history; one of them is under way when the daemon is killed; the state may go, too.
Rounds: N or TARN_CRASH_ROUNDS (10); the seed is printed, TARN_SEED runs it again (moments differ all the same).
"""
import json
import os
import random
import re
import shutil
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import peers  # noqa: E402
from lab import Failed, Lab, check, equal, free_port  # noqa: E402

ROUNDS = int(os.environ.get("N") or os.environ.get("TARN_CRASH_ROUNDS") or 10)
SEED = int(os.environ.get("TARN_SEED") or random.SystemRandom().randrange(1 << 32))
TABLE = "r.t"

lab = Lab("refs-kill")
rng = random.Random(SEED)

# Always the same one: a client that waits for its answer goes on where the next daemon is.
HTTP = f"127.0.0.1:{free_port()}"
tarn = lab.daemon("d", **{"server.http_listen": HTTP, "warehouse.name": "w"})
java = post = None


class Model:
    """What each snapshot of the table and of its branches holds, by id."""

    def __init__(self):
        self.history = {}            # id -> rows
        self.tags = {}               # name -> (id, rows)
        self.branches = {}           # name -> {id: rows}
        self.next_row = self.next_name = 0

    def latest(self):
        return max(self.history, default=0)

    def row(self):
        self.next_row += 1
        return self.next_row

    def name(self, kind):
        self.next_name += 1
        return f"{kind}{self.next_name}"


model = Model()
unanswered = half_done = 0


def rows_of(history):
    return sorted(history[max(history)]) if history else []


def ids(table):
    return sorted(r["id"] for r in tarn.lines("scan", table))


def file_of(*rows):
    return lab.write(f"rows-{rows[0]}.jsonl", "".join(json.dumps({"id": r}) + "\n" for r in rows))


# ---------------------------------------------------------------- calls
# Each: run() sends it; done() notes in the model that it was carried out; settle() makes, after the kill, sure that it is: what is there may
# be what was there before, what would be there, or, of a call that says so, something in between.


class Call:
    def words(self):
        raise NotImplementedError

    def run(self):
        got = tarn.tarn(*self.words(), ok=None)
        return got.returncode == 0, got.error

    def again(self, fine=""):
        """Once more; `fine`: the error of what is done already."""
        ok, error = self.run()
        check(ok or (fine and re.search(fine, error)), f"{self}: once more: {error}")

    def between(self):
        """States of the table's history that it may leave."""
        return [model.history]

    def __str__(self):
        return " ".join(map(str, self.words()))


class Load(Call):
    def __init__(self, table=TABLE):
        self.table, self.row = table, model.row()

    def target(self):
        return model.history if self.table == TABLE else model.branches[self.table.split("$branch_")[1]]

    def words(self):
        return ("load", self.table, file_of(self.row), "--commit-user", "job", "--commit-id", self.row)

    def done(self):
        history = self.target()
        latest = max(history, default=0)
        history[latest + 1] = history.get(latest, frozenset()) | {self.row}

    def between(self):
        if self.table != TABLE:
            return [model.history]
        latest = model.latest()
        return [model.history, {**model.history, latest + 1: model.history.get(latest, frozenset()) | {self.row}}]

    def settle(self):
        self.again()
        self.done()


class Post(Load):
    """By the Java library, which finishes the snapshot and sends it, again and again until it has an answer."""

    def run(self):
        try:
            post.ask("write", TABLE, file_of(self.row))
        except Failed as e:
            return False, str(e)
        return True, ""

    def settle(self):  # it wasn't acknowledged, and another call is another commit
        if self.row not in ids(TABLE):
            self.again()
        self.done()


class Tag(Call):
    def __init__(self):
        self.tag, self.id = model.name("t"), rng.choice(sorted(model.history))

    def words(self):
        return ("tag", "create", TABLE, self.tag, "--snapshot", self.id)

    def done(self):
        model.tags[self.tag] = (self.id, model.history[self.id])

    def settle(self):
        self.again("has a tag")
        self.done()


class Untag(Call):
    def __init__(self):
        self.tag = rng.choice(sorted(model.tags))

    def words(self):
        return ("tag", "drop", TABLE, self.tag)

    def done(self):
        del model.tags[self.tag]

    def settle(self):
        self.again("has no tag")
        self.done()


class Branch(Call):
    def __init__(self):
        self.branch, self.tag = model.name("b"), rng.choice(sorted(model.tags))

    def words(self):
        return ("branch", "create", TABLE, self.branch, "--tag", self.tag)

    def done(self):
        model.branches[self.branch] = dict([model.tags[self.tag]])

    def settle(self):  # cut off it leaves a branch that can be dropped
        got = tarn.tarn("branch", "drop", TABLE, self.branch, ok=None)
        check(got.returncode == 0 or "no branch" in got.error, f"dropping half a branch: {got.error}")
        self.again()
        self.done()


class Unbranch(Call):
    def __init__(self):
        self.branch = rng.choice(sorted(model.branches))

    def words(self):
        return ("branch", "drop", TABLE, self.branch)

    def done(self):
        del model.branches[self.branch]

    def settle(self):
        self.again("no branch")
        self.done()


def cut(history, to):
    return {n: rows for n, rows in history.items() if n <= to}


def cut_tags(tags, to):
    return {name: tag for name, tag in tags.items() if tag[0] <= to}


class Rollback(Call):
    def __init__(self):
        self.to = rng.choice(sorted(model.history)[-5:])

    def words(self):
        return ("rollback", TABLE, "--to-snapshot", self.to)

    def done(self):
        model.history = cut(model.history, self.to)
        model.tags = cut_tags(model.tags, self.to)

    def between(self):
        return [cut(model.history, n) for n in range(self.to, model.latest() + 1)]

    def settle(self):
        self.again()
        self.done()


class Forward(Call):
    """To where they part, as a roll-back; then one snapshot of the branch after the other. A branch that began elsewhere takes all of the
    table's history away (docs/format.md 10.8)."""

    def __init__(self):
        self.branch = rng.choice(sorted(model.branches))

    def words(self):
        return ("branch", "fast-forward", TABLE, self.branch)

    def parts(self):
        """The last one that both have, or what the branch begins behind; what the table keeps."""
        branch = model.branches[self.branch]
        at = next((n - 1 for n in sorted(branch) if model.history.get(n) != branch[n]), max(branch))
        return at, cut(model.history, at) if at in branch else {}

    def forwarded(self, to):
        at, kept = self.parts()
        return {**kept, **{n: rows for n, rows in model.branches[self.branch].items() if at < n <= to}}

    def done(self):
        at, _ = self.parts()
        model.history, model.tags = self.forwarded(max(model.branches[self.branch])), cut_tags(model.tags, at)
        for tag in tarn.lines("tag", "list", TABLE):  # the branch's come along
            model.tags.setdefault(tag["tag"], (tag["snapshot"], model.history.get(tag["snapshot"])))

    def between(self):
        at, kept = self.parts()
        states = [cut(model.history, n) for n in range(max(kept, default=0), model.latest() + 1)]
        return states + [self.forwarded(to) for to in range(at + 1, max(model.branches[self.branch]) + 1)]

    def settle(self):
        self.again()
        self.done()


def choose():
    kinds = [Load, Load, Post if post else Load, Tag]
    kinds += [Untag] if len(model.tags) > 3 else []
    kinds += [Branch, Branch] if model.tags and len(model.branches) < 4 else []
    kinds += [lambda: Load(f"{TABLE}$branch_{rng.choice(sorted(model.branches))}")] * 2 if model.branches else []
    kinds += [Forward, Forward, Unbranch] if model.branches else []
    kinds += [Rollback, Rollback] if model.latest() > 3 else []
    return rng.choice(kinds)()


# ---------------------------------------------------------------- what must hold


def folder_history():
    folder = os.path.join(tarn.folder(TABLE), "snapshot")
    return sorted(int(n[9:]) for n in os.listdir(folder) if re.fullmatch(r"snapshot-\d+", n))


def java_ids(table):
    out = lab.path("dump.jsonl")
    java.ask("dump", table, out)
    with open(out, encoding="utf-8") as f:
        return sorted(json.loads(line)["id"] for line in f)


def check_history(states, what):
    """The table is in one of these states, as the folder and Tarn have it."""
    there = folder_history()
    equal(there, list(range(there[0], there[0] + len(there))) if there else [], f"{what}: snapshot ids in the folder")
    equal([s["id"] for s in tarn.lines("snapshots", TABLE)], there, f"{what}: snapshots as listed")
    rows = ids(TABLE)
    at = [n for n, s in enumerate(states) if sorted(s) == there and rows_of(s) == rows]
    check(at, f"{what}: snapshots {there} with rows {rows}; may be {[(max(s, default=0), rows_of(s)) for s in states]}")
    return len(states) > 2 and 0 < at[0] < len(states) - 1 and rows != rows_of(model.history)


def check_all(what):
    check_history([model.history], what)
    equal({t["tag"]: t["snapshot"] for t in tarn.lines("tag", "list", TABLE)}, {tag: at for tag, (at, _) in model.tags.items()}, f"{what}: tags")
    equal(sorted(b["branch"] for b in tarn.lines("branch", "list", TABLE)), sorted(model.branches), f"{what}: branches")
    for name, history in model.branches.items():
        equal(ids(f"{TABLE}$branch_{name}"), rows_of(history), f"{what}: branch {name}")
    for tag, (_, rows) in model.tags.items():
        equal(sorted(r["id"] for r in tarn.lines("scan", TABLE, "--tag", tag)), sorted(rows), f"{what}: tag {tag}")
    for id in rng.sample(sorted(model.history), k=min(2, len(model.history))):
        equal(sorted(r["id"] for r in tarn.lines("scan", TABLE, "--snapshot", id)), sorted(model.history[id]), f"{what}: snapshot {id}")
    if java:
        equal(java_ids(TABLE), rows_of(model.history), f"{what}: Java's rows")
        for name, history in model.branches.items():
            equal(java_ids(f"{TABLE}$branch_{name}"), rows_of(history), f"{what}: Java's branch {name}")


class Sender(threading.Thread):
    def __init__(self, call):
        super().__init__()
        self.call, self.ok, self.error = call, False, None

    def run(self):
        try:
            self.ok, self.error = self.call.run()
        except Exception as e:
            self.error = repr(e)


def one_round(_):
    global unanswered, half_done
    for _ in range(rng.randrange(2, 6)):
        call = choose()
        ok, error = call.run()
        check(ok, f"{call}: {error}")
        call.done()
    call = choose()
    states = call.between()
    sender = Sender(call)
    sender.start()
    time.sleep(rng.uniform(0, 0.12) if not isinstance(call, Post) else rng.uniform(0, 0.4))
    tarn.kill9()
    if rng.random() < 0.25:
        shutil.rmtree(os.path.join(tarn.data, "state"))
    what = f"killed beside {call}{' (POST)' if isinstance(call, Post) else ''}"
    if not isinstance(call, Post):  # nobody sends it again yet
        sender.join(60)
    tarn.start()
    sender.join(120)
    check(not sender.is_alive(), f"{what}: it has no answer")
    if sender.ok:
        call.done()
    else:
        unanswered += 1
        half_done += check_history(states, what)
        call.settle()
    check_all(what)


def main():
    global java, post
    print(f"seed {SEED}, {ROUNDS} rounds")
    with lab.case("start and create"):
        tarn.start()
        tarn.tarn("db", "create", "r")
        tarn.tarn("table", "create", TABLE, "--columns", "id BIGINT")
        if peers.available():
            java = peers.Java(lab, tarn.warehouse)
            post = peers.Java(lab, tarn.warehouse, "metastore=rest", f"uri=http://{HTTP}", "warehouse=w", "token.provider=bear", "token=any")
        for _ in range(4):
            call = Load()
            check(*call.run())
            call.done()
    if lab.rounds(ROUNDS, SEED, tarn, one_round):
        with lab.case("the end"):
            tarn.stop()
    print(f"{model.next_row} rows, {tarn.starts} starts, {unanswered} calls without an answer, {half_done} of them half done")
    return lab.done()


lab.exit(main)
