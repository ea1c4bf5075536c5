#!/usr/bin/env python3
"""`tarn watch` through kills, restarts, roll-backs and expiry.

Promise: rows that were watched, replayed by key, are the rows of a scan; every snapshot is told once and in order,
whatever is killed meanwhile; a roll-back and a gap by others are explicit ends, never a silent skip; a consumer never
stands in front of what was printed. TARN_CRASH_ROUNDS makes more rounds of the history, TARN_SEED repeats one.
"""
import json
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import peers  # noqa: E402
from lab import Failed, Lab, Watch, check, equal, free_port, wait_until  # noqa: E402

ROUNDS = int(os.environ.get("TARN_CRASH_ROUNDS", 2))
COMMITS = 30
lab = Lab("watch")


def make_daemon(name, **settings):
    """On a port of its own: watchers come back to it after a restart."""
    return lab.daemon(name, **{"server.grpc_listen": f"127.0.0.1:{free_port()}", "commit.foreign_check": "100 ms",
                               **settings})


def load(daemon, table, rows, mode, number):
    """Until it is known to have landed: once, for its identity is the same each time."""
    text = "id,v\n" + "".join(f"{k},{v}\n" for k, v in rows)
    for _ in range(200):
        got = daemon.tarn("load", table, "-", "--format", "csv", "--mode", mode, "-o", "json", "--commit-user", "u",
                          "--commit-id", number, stdin=text.encode(), ok=None)
        if got.returncode == 0:
            return json.loads(got.stdout)["snapshot"]
        time.sleep(0.1)
    raise Failed(f"a load doesn't land: {got.error}")


def replay(rows):
    state = {}
    for row in rows:
        if row["rowkind"] in ("+I", "+U"):
            state[row["id"]] = row["v"]
        elif row["rowkind"] == "-D":
            state.pop(row["id"], None)
    return state


def scanned(daemon, table, *args):
    return {row["id"]: row["v"] for row in daemon.lines("scan", table, *args)}


def last_snapshot(daemon, table):
    return daemon.lines("snapshots", table)[-1]["id"]


def history(seed):
    pick = random.Random(seed)
    print(f"seed {seed}")
    d = make_daemon(f"h{seed}", **{"compaction.auto": "true"}).start()
    d.tarn("db", "create", "a")
    d.tarn("table", "create", "a.t", "--columns", "id BIGINT NOT NULL, v BIGINT", "--primary-key", "id",
           "--option", f"bucket={pick.choice([1, 2, 4])}")
    rows = Watch(d, "a.t", "--from", "earliest", "--consumer", "me")
    events = Watch(d, "a.t", "--from", "earliest", "--events")
    state, told, kills = {}, 0, 0
    for number in range(1, COMMITS + 1):
        if state and pick.random() < 0.3:
            keys = pick.sample(sorted(state), min(len(state), 4))
            load(d, "a.t", [(k, state.pop(k)) for k in keys], "delete", number)
            told += len(keys)
        else:
            new = {pick.randrange(40): pick.randrange(1000) for _ in range(5)}
            load(d, "a.t", new.items(), "upsert", number)
            state.update(new)
            told += len(new)
        if pick.random() < 0.2:
            kills += 1
            d.kill9() if pick.random() < 0.6 else d.stop()
            d.start()
    wait_until("all rows are printed", lambda: len(rows.lines()) >= told, 120)
    last = last_snapshot(d, "a.t")
    wait_until("all events are printed", lambda: (events.lines() or [{"id": 0}])[-1]["id"] >= last, 120)
    rows.interrupt()
    events.interrupt()
    equal(len(rows.lines()), told, f"rows printed, after {kills} kills")
    equal(replay(rows.lines()), state, "the watched rows, replayed, against what was loaded")
    equal(scanned(d, "a.t"), state, "a scan against what was loaded")
    ids = [e["id"] for e in events.lines()]
    equal(ids, list(range(1, len(ids) + 1)), "the events' snapshots")
    consumer = d.lines("consumer", "list", "a.t")
    check(len(consumer) == 1 and consumer[0]["next_snapshot"] <= last_snapshot(d, "a.t") + 1, f"consumer {consumer}")

    # The difference of any two versions, on top of the first, is the second.
    for _ in range(4):
        low, high = sorted(pick.sample(range(1, last + 1), 2))
        before = scanned(d, "a.t", "--snapshot", low)
        for row in d.lines("scan", "a.t", "--changes", f"{low}..{high}", "--how", "diff"):
            if row["rowkind"] in ("-D", "-U"):
                equal(before.pop(row["id"], None), row["v"], f"what {row} takes away")
            else:
                before[row["id"]] = row["v"]
        equal(before, scanned(d, "a.t", "--snapshot", high), f"the difference of {low} and {high}")
        # and the changes in between, replayed on the first, too
        state_low = scanned(d, "a.t", "--snapshot", low)
        for row in d.lines("scan", "a.t", "--changes", f"{low}..{high}"):
            state_low.pop(row["id"], None) if row["rowkind"] == "-D" else state_low.update({row["id"]: row["v"]})
        equal(state_low, scanned(d, "a.t", "--snapshot", high), f"the changes from {low} to {high}")
    d.stop()


def appends():
    d = make_daemon("appends").start()
    d.tarn("db", "create", "a")
    d.tarn("table", "create", "a.t", "--columns", "id BIGINT, v BIGINT")
    watch = Watch(d, "a.t", "--from", "earliest", "--limit", "30")
    for number in range(1, 7):
        load(d, "a.t", [(number * 10 + i, i) for i in range(5)], "append", number)
        if number == 3:
            d.kill9()
            d.start()
    equal(watch.ended(), 0, f"the status of watch, which said {watch.error()!r}")
    rows = watch.lines()
    equal([(r["rowkind"], r["id"]) for r in rows],
          [("+I", n * 10 + i) for n in range(1, 7) for i in range(5)], "the rows, in order of commits")
    equal([r["id"] for r in d.lines("scan", "a.t", "--changes", "2..3")], [30, 31, 32, 33, 34], "changes 2..3")
    equal(d.lines("scan", "a.t", "--changes", "0..", "--where", "v = 4 AND id > 50"),
          [{"rowkind": "+I", "id": 54, "v": 4}, {"rowkind": "+I", "id": 64, "v": 4}], "changes with a filter")
    d.stop()


def rolled_back():
    d = make_daemon("rollback").start()
    d.tarn("db", "create", "a")
    d.tarn("table", "create", "a.t", "--columns", "id BIGINT NOT NULL, v BIGINT", "--primary-key", "id")
    watch = Watch(d, "a.t", "--from", "earliest")
    for number in range(1, 5):
        load(d, "a.t", [(number, number)], "upsert", number)
    wait_until("all is printed", lambda: len(watch.lines()) == 4)
    os.unlink(os.path.join(d.folder("a.t"), "snapshot", "snapshot-4"))
    with open(os.path.join(d.folder("a.t"), "snapshot", "LATEST"), "w") as hint:
        hint.write("3")
    equal(watch.ended(), 1, "the status of watch")
    check("rolled back" in watch.error(), f"watch said {watch.error()!r}")
    d.stop()


def expired():
    d = make_daemon("expired").start()
    d.tarn("db", "create", "a")
    d.tarn("table", "create", "a.t", "--columns", "id BIGINT NOT NULL, v BIGINT", "--primary-key", "id")
    for number in range(1, 7):
        load(d, "a.t", [(number, number)], "upsert", number)
    watch = Watch(d, "a.t", "--from", "earliest")
    wait_until("all is printed", lambda: len(watch.lines()) == 6)
    watch.process.send_signal(signal.SIGSTOP)
    d.kill9()  # the one that was stopped has missed nothing yet
    d.start()
    load(d, "a.t", [(7, 7)], "upsert", 7)
    load(d, "a.t", [(8, 8)], "upsert", 8)
    for gone in range(1, 8):
        os.unlink(os.path.join(d.folder("a.t"), "snapshot", f"snapshot-{gone}"))
    with open(os.path.join(d.folder("a.t"), "snapshot", "EARLIEST"), "w") as hint:
        hint.write("8")
    time.sleep(0.5)
    watch.process.send_signal(signal.SIGCONT)
    equal(watch.ended(), 1, "the status of watch")
    check("snapshot 7" in watch.error() and "expired" in watch.error() and "earliest snapshot is 8" in watch.error(),
          f"watch said {watch.error()!r}")
    equal(len(watch.lines()), 6, "rows printed")
    got = d.tarn("watch", "a.t", "--from", "3", ok=False)
    check("snapshot 3" in got.error and "expired" in got.error, got.error)
    got = d.tarn("scan", "a.t", "--changes", "2..8", ok=False)
    check("expired" in got.error, got.error)
    later = d.lines("watch", "a.t", "--from", "earliest", "--until", "8")
    equal([r["id"] for r in later], [8], "what is left")
    d.stop()


def consumer_goes_on():
    d = make_daemon("consumer").start()
    d.tarn("db", "create", "a")
    d.tarn("table", "create", "a.t", "--columns", "id BIGINT NOT NULL, v BIGINT", "--primary-key", "id")
    seen = []
    for number in range(1, 10):
        load(d, "a.t", [(number, number)], "upsert", number)
        if number % 3 == 0:
            first = ["--from", "earliest"] if number == 3 else []
            seen += d.lines("watch", "a.t", "--consumer", "me", *first, "--until", str(number))
    equal([r["id"] for r in seen], list(range(1, 10)), "rows over three runs")
    equal(d.lines("consumer", "list", "a.t")[0]["next_snapshot"], 10, "where the consumer stands")
    d.tarn("consumer", "set", "a.t", "me", "--next", "8")
    equal([r["id"] for r in d.lines("watch", "a.t", "--consumer", "me", "--until", "9")], [8, 9], "rows after a step back")
    d.tarn("consumer", "drop", "a.t", "me")
    equal(d.lines("consumer", "list", "a.t"), [], "consumers")
    d.stop()


def limit_cuts():
    d = make_daemon("limit").start()
    d.tarn("db", "create", "a")
    d.tarn("table", "create", "a.t", "--columns", "id BIGINT, v BIGINT")
    load(d, "a.t", [(i, i) for i in range(1, 6)], "append", 1)
    load(d, "a.t", [(6, 6), (7, 7)], "append", 2)

    def run(*args):
        rows = d.lines("watch", "a.t", "--consumer", "me", *args)
        return [r["id"] for r in rows], d.lines("consumer", "list", "a.t")[0]["next_snapshot"]

    equal(run("--from", "earliest", "--limit", 3), ([1, 2, 3], 1), "rows, and where the consumer stands, within a snapshot")
    equal(run("--limit", 6), ([1, 2, 3, 4, 5, 6], 2), "again, from a whole snapshot into the next")
    equal(run("--limit", 2), ([6, 7], 3), "and exactly to its end")
    events = d.lines("watch", "a.t", "--from", "earliest", "--events", "--limit", 2)
    load(d, "a.t", [(8, 8)], "append", 3)
    got = [d.lines("watch", "a.t", "--resume", e["resume_token"], "--until", 3) for e in events]
    equal([[r["id"] for r in rows] for rows in got], [[6, 7, 8], [8]], "rows behind tokens")
    got = d.tarn("watch", "a.t", "--resume", "00ff", ok=False)
    check("resume_token" in got.error, got.error)
    d.stop()


def restarted_before_a_message():
    """Whoever waits when the daemon goes hears of all that comes afterwards, also if there was nothing yet."""
    d = make_daemon("early").start()
    d.tarn("db", "create", "a")
    for table in ("a.empty", "a.t"):
        d.tarn("table", "create", table, "--columns", "id BIGINT, v BIGINT")
    load(d, "a.t", [(1, 1)], "append", 1)
    watches = [Watch(d, "a.empty", "--from", "latest", "--consumer", "c"), Watch(d, "a.t", "--from", "latest", "--consumer", "c"),
               Watch(d, "a.t", "--consumer", "d"), Watch(d, "a.t", "--from", "2", "--consumer", "e")]
    wait_until("all are there", lambda: sum(len(d.lines("consumer", "list", t)) for t in ("a.empty", "a.t")) == 4)
    d.stop()
    wait_until("they say so", lambda: all("connection lost, trying again" in w.error() for w in watches))
    d.start()
    load(d, "a.empty", [(2, 2)], "append", 1)
    load(d, "a.t", [(2, 2)], "append", 2)
    load(d, "a.t", [(3, 3)], "append", 3)
    for w, want in zip(watches, ([2], [2, 3], [2, 3], [2, 3])):
        wait_until("the rows come", lambda w=w, want=want: [r["id"] for r in w.lines()] == want)
        equal(w.error().count("connection lost"), 1, "times that it was said")
        w.interrupt()
    d.stop()


first_seed = int(os.environ.get("TARN_SEED", 0)) or random.randrange(1, 10**6)
lab.run("appends are told in order of commits", appends)
lab.run("a roll-back by others is an explicit end", rolled_back)
lab.run("a gap is an explicit end", expired)
lab.run("a consumer goes on where it stood", consumer_goes_on)
lab.run("a consumer stays in front of what a limit cut", limit_cuts)
lab.run("a restart before the first message loses nothing", restarted_before_a_message)
for number in range(ROUNDS):
    lab.run("a watched history is the table", history, first_seed + number)
peers.others_read_what_is_left(lab)
sys.exit(lab.done())
