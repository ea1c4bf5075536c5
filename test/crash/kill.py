#!/usr/bin/env python3
"""Promise: kill -9 of the daemon or of a worker at any moment loses no acknowledged commit, doubles none, leaves no table
unreadable and no load half there; the state directory may go, too; a load sent again under its identity is the same one.

Loads and compactions run on several tables; at a random moment something is killed; then everything is held against a
model. Rounds: N or TARN_CRASH_ROUNDS (20); the seed is printed, TARN_SEED runs it again (moments differ all the same).
At the end Paimon's Java library and pypaimon read the tables, where ../shared is there.
"""
import collections
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
from lab import Lab, check, equal, kill, same_rows, wait_until  # noqa: E402

ROUNDS = int(os.environ.get("N") or os.environ.get("TARN_CRASH_ROUNDS") or 20)
SEED = int(os.environ.get("TARN_SEED") or random.SystemRandom().randrange(1 << 32))
KEYS = 400
HISTORY = 6
TYPES = [("id", "BIGINT"), ("p", "STRING"), ("load", "BIGINT"), ("v", "STRING")]

lab = Lab("kill")
rng = random.Random(SEED)
tarn = lab.daemon("d", **{"compaction.auto": "true", "compaction.check_interval": "100 ms", "worker.count": 2, "worker.lease": "10 s"})


class Op:
    """One load: an identity and rows."""

    def __init__(self, number, mode, rows):
        self.number, self.mode, self.rows = number, mode, rows

    def apply(self, table, model):
        """model: {key: row} of a primary key, else a Counter of rows."""
        model = model.copy()
        for r in self.rows:
            if not table.pk:
                model[r] += 1
            elif self.mode == "delete":
                model.pop(table.key(r), None)
            else:
                model[table.key(r)] = r
        return model


class Table:
    def __init__(self, name, pk, part, options):
        self.name, self.pk, self.part, self.options = "k." + name, pk, part, options
        self.user = "crash-" + name
        self.model = {} if pk else collections.Counter()
        self.pending = None          # sent, and no answer yet that we know
        self.landed = {}             # number -> snapshot
        self.history = []            # (snapshot, rows) of some acknowledged loads
        self.number = 0
        self.rng = random.Random(rng.random())

    def key(self, r):
        return r[:2] if self.part else r[0]

    def create(self):
        words = ["--columns", "id BIGINT NOT NULL, p STRING NOT NULL, load BIGINT, v STRING"]
        words += ["--primary-key", "id,p" if self.part else "id"] if self.pk else []
        words += ["--partition-by", "p"] if self.part else []
        for o in self.options:
            words += ["--option", o]
        tarn.tarn("table", "create", self.name, *words)

    def next(self):
        self.number += 1
        mode = "delete" if self.pk and self.rng.random() < 0.2 else "upsert" if self.pk else "append"
        size = self.rng.choice([1, 7, 60, 300, 2000])
        if not self.pk and sum(self.model.values()) > 8000:
            size = 1  # to read all of it each round costs time
        keys = [self.rng.randrange(KEYS) for _ in range(size)] if not self.pk else \
            self.rng.sample(range(KEYS), min(size, KEYS))
        rows = [(k, f"p{k % 2}", self.number, f"{self.number}/{i}") for i, k in enumerate(keys)]
        return Op(self.number, mode, rows)

    def rows(self, model=None):
        model = self.model if model is None else model
        return collections.Counter(model.values()) if self.pk else collections.Counter(model)

    def send(self, op):
        """-> (status, answer, error). The caller notes what it means."""
        path = lab.write(f"{self.user}.jsonl", "".join(
            json.dumps(dict(zip(("id", "p", "load", "v"), r))) + "\n" for r in op.rows))
        self.pending = op
        got = tarn.tarn("load", self.name, path, "-o", "json", "--commit-user", self.user, "--commit-id", op.number,
                        "--mode", op.mode, ok=None)
        if got.returncode == 0:
            self.acknowledged(op, json.loads(got.stdout)["snapshot"])
        return got.returncode, got.error

    def acknowledged(self, op, snapshot):
        check(op.number not in self.landed, f"load {op.number} of {self.name} was acknowledged twice")
        self.landed[op.number] = snapshot
        self.model = op.apply(self, self.model)
        self.pending = None
        if self.rng.random() < 0.5:
            self.history = (self.history + [(snapshot, self.rows())])[-HISTORY:]


TABLES = [
    Table("pk", True, False, ["bucket=1", "num-sorted-run.compaction-trigger=3"]),
    Table("pk_part", True, True, ["bucket=2", "num-sorted-run.compaction-trigger=3"]),
    Table("ap", False, False, ["compaction.min.file-num=3"]),
    Table("ap_part", False, True, ["bucket=2", "bucket-key=id"]),
]


# ---------------------------------------------------------------- what runs when it is killed


class Traffic(threading.Thread):
    """Loads into one table, one after the other, and now and then asks for a compaction, until told to stop."""

    def __init__(self, table, stop):
        super().__init__()
        self.table, self.stop, self.trouble, self.errors = table, stop, None, []

    def run(self):
        try:
            while not self.stop.is_set():
                t = self.table
                if t.rng.random() < 0.2:
                    got = tarn.tarn("compact", t.name, *(["--full"] if t.rng.random() < 0.5 else []),
                                    *(["--wait"] if t.rng.random() < 0.5 else []), ok=None)
                    status, error = got.returncode, got.error
                else:
                    status, error = t.send(t.pending or t.next())
                if status != 0:
                    self.errors.append(error)
                    check("\n" not in error and status == 1, f"status {status}, error {error!r}")
                    if tarn.process.poll() is not None or self.stop.is_set():
                        return
                    time.sleep(0.05)
        except Exception as e:
            self.trouble = e


def traffic_until(moment):
    """Runs traffic on all tables, calls moment() in the midst of it, waits for the end."""
    stop = threading.Event()
    running = [Traffic(t, stop) for t in TABLES]
    for r in running:
        r.start()
    try:
        moment()
    finally:
        stop.set()
        for r in running:
            r.join()
    for r in running:
        if r.trouble:
            raise r.trouble
    return [e for r in running for e in r.errors]


def daemon_dies():
    def moment():
        time.sleep(rng.uniform(0.01, 0.9))
        tarn.kill9()
    traffic_until(moment)


def worker_dies():
    """The daemon lives on, says what happened, and starts another."""
    def moment():
        time.sleep(rng.uniform(0.01, 0.6))
        for w in rng.sample(tarn.workers(), k=min(len(tarn.workers()), rng.choice([1, 1, 2]))):
            kill(w)
        time.sleep(rng.uniform(0.2, 1.0))
    for error in traffic_until(moment):
        check(re.search(r"worker|ended|try again|cancel|lease|lost", error, re.I), f"an error that doesn't say why: {error}")
    check(tarn.process.poll() is None, "the daemon died of its worker's death")
    wait_until("a new worker", lambda: len(tarn.json("status")["workers"]) > 0 and len(tarn.workers()) == 2, 20)


# ---------------------------------------------------------------- what must hold


def snapshot_files(table):
    folder = os.path.join(tarn.folder(table.name), "snapshot")
    out = {}
    for n in os.listdir(folder) if os.path.isdir(folder) else []:
        if re.fullmatch(r"snapshot-\d+", n):
            with open(os.path.join(folder, n)) as f:
                out[int(n[9:])] = json.load(f)
    return out


def identities(snapshots):
    """{(user, identifier): [snapshot ids]} of what isn't a compaction."""
    out = collections.defaultdict(list)
    for n, s in snapshots.items():
        if s["commitKind"] != "COMPACT":
            out[s["commitUser"], s["commitIdentifier"]].append(n)
    return out


def settle(table):
    """Holds the table against the model, then sends what had no answer again."""
    seen = tarn.scan(table.name, types=TYPES)
    without = table.rows()
    if table.pending is None:
        same_rows(seen, without, f"{table.name}: rows")
    else:
        within = table.rows(table.pending.apply(table, table.model))
        if seen != without:
            same_rows(seen, within, f"{table.name}: a load without an answer is half there")
    listed = [s["id"] for s in tarn.json("snapshots", table.name)]  # first: a compaction may add another any time
    snapshots = snapshot_files(table)
    ids = sorted(snapshots)
    equal(ids, list(range(1, len(ids) + 1)), f"{table.name}: snapshot ids")
    equal(listed, ids[: len(listed)], f"{table.name}: snapshots as listed")
    landed = identities(snapshots)
    for who, where in landed.items():
        check(len(where) == 1, f"{table.name}: {who} landed {len(where)} times, as {where}")
    for number, snapshot in table.landed.items():
        equal(landed.get((table.user, number)), [snapshot], f"{table.name}: load {number}")
    if table.pending is not None:
        op = table.pending
        there = landed.get((table.user, op.number))
        check((seen == without) or there, f"{table.name}: the rows of load {op.number} are there without its snapshot")
        status, error = table.send(op)
        equal(status, 0, f"{table.name}: load {op.number} sent again: {error}")
        if there:
            equal(table.landed[op.number], there[0], f"{table.name}: load {op.number} sent again: snapshot")
        same_rows(tarn.scan(table.name, types=TYPES), table.rows(), f"{table.name}: after load {op.number} was sent again")
    if table.landed and rng.random() < 0.3:  # one that was answered long ago
        op = Op(max(table.landed), "upsert" if table.pk else "append", [(1, "p1", 1, "again")])
        before = table.landed.pop(op.number)
        model, history = table.model, table.history
        status, error = table.send(op)
        table.model, table.history, table.pending = model, history, None
        equal((status, table.landed.get(op.number)), (0, before), f"{table.name}: load {op.number} a second time: {error}")
        table.landed[op.number] = before
        same_rows(tarn.scan(table.name, types=TYPES), table.rows(), f"{table.name}: after load {op.number} a second time")
    if table.history:
        snapshot, rows = rng.choice(table.history)
        same_rows(tarn.scan(table.name, "--snapshot", snapshot, types=TYPES), rows, f"{table.name}: at snapshot {snapshot}")


def one_round(_):
    what = rng.choice(["daemon", "daemon", "daemon", "daemon and state", "worker"])
    if what == "worker":
        worker_dies()
    else:
        daemon_dies()
        if what == "daemon and state":
            shutil.rmtree(os.path.join(tarn.data, "state"))
        tarn.start()
    for table in TABLES:
        settle(table)


def the_end():
    for table in TABLES:
        tarn.tarn("compact", table.name, "--full", "--wait")
        same_rows(tarn.scan(table.name, types=TYPES), table.rows(), f"{table.name}: compacted")
    tarn.stop()


def others_agree():
    for reader in (peers.Java(lab, tarn.warehouse), peers.Python(lab, tarn.warehouse)):
        for table in TABLES:
            same_rows(reader.rows(table.name, types=TYPES), table.rows(), f"{type(reader).__name__}: {table.name}")


def main():
    print(f"seed {SEED}, {ROUNDS} rounds")
    with lab.case("start and create"):
        tarn.start()
        tarn.tarn("db", "create", "k")
        for table in TABLES:
            table.create()
    if lab.rounds(ROUNDS, SEED, tarn, one_round):
        with lab.case("after the last round"):
            the_end()
        if peers.available():
            with lab.case("java and pypaimon read the same rows"):
                others_agree()
    loads = sum(len(t.landed) for t in TABLES)
    print(f"{loads} loads, {sum(max(snapshot_files(t), default=0) for t in TABLES)} snapshots, {tarn.starts} starts")
    return lab.done()


lab.exit(main)
