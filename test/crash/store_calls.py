#!/usr/bin/env python3
"""Promise: whichever call of the store is the last one of a daemon or of a worker, a load and a compaction are afterwards
wholly there or not at all, and sending the load again settles it.

TARN_STORE_FAULTS ends the process after (or before) its N-th call, for each N (server/store/faulty.c). CI takes some of them, from a
random offset that is printed (TARN_SEED); TARN_EFFORT of 10 or more takes all. At the end Paimon's Java library and pypaimon read the
tables as each restart found them, and as they were afterwards, where ../shared is there.
"""
import collections
import json
import os
import random
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import peers  # noqa: E402
from lab import BIN, Failed, Lab, check, equal, kill, same_rows, wait_until  # noqa: E402

EFFORT = int(os.environ.get("TARN_EFFORT") or 1)
SEED = int(os.environ.get("TARN_SEED") or random.SystemRandom().randrange(1 << 32))
STEP = 1 if EFFORT >= 10 else 9
TABLE = "s.t"
TYPES = [("id", "BIGINT"), ("v", "STRING")]
USER = "store-calls"

lab = Lab("store-calls")
rng = random.Random(SEED)
base = lab.path("base")
left = peers.Left(lab)


def model(*commits):
    table = {}
    for c in commits:
        table.update(c)
    return collections.Counter(table.items())


FIRST = {i: "first" for i in range(50)}
SECOND = {i: "second" for i in range(25, 75)}
THIRD = {i: "third" for i in range(60, 90)}


def load(daemon, number, rows, **kw):
    path = lab.write("rows.jsonl", "".join(json.dumps({"id": k, "v": v}) + "\n" for k, v in rows.items()))
    return daemon.tarn("load", TABLE, path, "-o", "json", "--commit-user", USER, "--commit-id", number, **kw)


def prepare():
    d = lab.daemon("base")
    d.start()
    d.tarn("db", "create", "s")
    d.tarn("table", "create", TABLE, "--columns", "id BIGINT NOT NULL, v STRING", "--primary-key", "id", "--option", "bucket=1")
    load(d, 1, FIRST)
    load(d, 2, SECOND)
    d.stop()


def start_worker(daemon, faults):
    """One of our own, with faults or without: the daemon's would have the daemon's."""
    env = {k: v for k, v in os.environ.items() if k != "TARN_STORE_FAULTS"}
    log = open(lab.path("worker.log"), "ab")
    worker = subprocess.Popen([os.path.join(BIN, "tarn-worker"), "--server", daemon.address], stdin=subprocess.DEVNULL,
                              stdout=log, stderr=log, env={**env, **({"TARN_STORE_FAULTS": faults} if faults else {})}, cwd=lab.dir)
    log.close()
    return worker


def scenario(daemon, patience):
    """-> (the load was acknowledged, the compaction was); nobody may be there who compacts"""
    got = load(daemon, 3, THIRD, ok=None, timeout=60)
    loaded = got.returncode == 0
    if loaded:
        check(json.loads(got.stdout)["snapshot"] > 0, got.stdout)
    got = daemon.tarn("compact", TABLE, "--full", "--wait", "--timeout", patience, ok=None, timeout=60)
    return loaded, got.returncode == 0


def run(who, n, fault):
    """-> whether the fault struck"""
    shutil.rmtree(lab.path("d"), ignore_errors=True)
    shutil.copytree(base, lab.path("d"))
    daemon = lab.daemon("d", **{"worker.count": 0, "worker.lease": "2 s"})
    faults = f"*::{n}:1:{fault}"
    worker, loaded = None, False
    try:
        try:
            daemon.start(env={"TARN_STORE_FAULTS": faults} if who == "daemon" else None)
        except Failed:
            check(who == "daemon" and daemon.process.poll() == 137, f"the daemon did not start: {daemon.said()[-500:]}")
            struck = True
        else:
            worker = start_worker(daemon, faults if who == "worker" else None)
            wait_until("the worker registers", lambda: daemon.process.poll() is not None or worker.poll() is not None or
                       daemon.workers_registered())
            loaded, _ = scenario(daemon, 30 if who == "daemon" else 2)
            struck = (daemon.process if who == "daemon" else worker).poll() == 137
            check(struck or daemon.process.poll() is None, f"the daemon ended with {daemon.process.poll()}: {daemon.said()[-500:]}")
        if daemon.process.poll() is None:
            daemon.kill9()
    finally:
        if worker is not None:
            kill(worker.pid)
            worker.wait()
    daemon = lab.daemon("d")
    daemon.start()
    seen = daemon.scan(TABLE, types=TYPES)
    old, new = model(FIRST, SECOND), model(FIRST, SECOND, THIRD)
    if loaded or seen != old:
        same_rows(seen, new, f"{who} {fault} {n}: rows")
    left.keep(daemon.folder(TABLE), seen, TYPES)
    got = load(daemon, 3, THIRD)
    snapshots = daemon.json("snapshots", TABLE)
    equal([s["id"] for s in snapshots], list(range(1, len(snapshots) + 1)), "snapshot ids")
    folder = os.path.join(daemon.folder(TABLE), "snapshot")
    mine = []
    for s in snapshots:
        with open(os.path.join(folder, f"snapshot-{s['id']}")) as f:
            one = json.load(f)
        if (one["commitUser"], one["commitIdentifier"], one["commitKind"]) == (USER, 3, "APPEND"):
            mine.append(s["id"])
    equal(mine, [json.loads(got.stdout)["snapshot"]], f"{who} {fault} {n}: snapshots of the load")
    same_rows(daemon.scan(TABLE, types=TYPES), new, f"{who} {fault} {n}: rows after the load was sent again")
    daemon.tarn("compact", TABLE, "--full", "--wait")
    same_rows(daemon.scan(TABLE, types=TYPES), new, f"{who} {fault} {n}: rows after a compaction")
    left.keep(daemon.folder(TABLE), new, TYPES)
    daemon.stop()
    return struck


def unclear(fault):
    """The put of a snapshot is stored, or not, and the answer is lost: the load says how it is."""
    shutil.rmtree(lab.path("d"), ignore_errors=True)
    shutil.copytree(base, lab.path("d"))
    daemon = lab.daemon("d")
    daemon.start(env={"TARN_STORE_FAULTS": f"put_if_absent:snapshot/snapshot-3:0:1:{fault}"})
    got = load(daemon, 3, THIRD, ok=None)
    if fault != "fail_before":
        equal(got.returncode, 0, f"status ({got.error})")
    got = load(daemon, 3, THIRD)  # again
    equal(json.loads(got.stdout)["snapshot"], 3, "the snapshot of the load")
    equal([s["id"] for s in daemon.json("snapshots", TABLE)], [1, 2, 3], "snapshots")
    same_rows(daemon.scan(TABLE, types=TYPES), model(FIRST, SECOND, THIRD), "rows")
    left.keep(daemon.folder(TABLE), model(FIRST, SECOND, THIRD), TYPES)
    daemon.stop()


def main():
    print(f"seed {SEED}, every {STEP}th call")
    with lab.case("a table with two loads"):
        prepare()
    for fault in ("fail_after", "unknown", "fail_before"):
        lab.run(f"K01 the put of a snapshot: {fault}", unclear, fault)
    for who in ("daemon", "worker"):
        for fault in ("kill_after", "kill_before"):
            n, calls = rng.randrange(STEP) if STEP > 1 else 0, 0
            while not lab.failed:
                with lab.case(f"{who}: {fault} at call {n}"):
                    if not run(who, n, fault):
                        calls = n
                if calls or n > 2000:
                    break
                n += STEP
            print(f"{who}: {fault}: up to {calls} calls")
    peers.others_read_what_is_left(lab, left)
    return lab.done()


sys.exit(main())
