#!/usr/bin/env python3
"""Promise: under steady upserts into 200 tables the scheduler keeps sorted runs down, no table starves, memory stays flat, and a limit of
bytes a second holds.

A minute of it with TARN_EFFORT of 10 or more, as make check-long sets it; SOAK_SECONDS=3600 soak.py: so long. What depends on the
machine (loads a second, how long a read takes) is printed, and not judged.
"""
import os
import random
import re
import statistics
import sys
import threading
import time
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, Skip, check, equal, wait_until  # noqa: E402

SECONDS = float(os.environ.get("SOAK_SECONDS") or (60 if int(os.environ.get("TARN_EFFORT") or 1) >= 10 else 0))
SEED = int(os.environ.get("TARN_SEED") or random.SystemRandom().randrange(1 << 32))
TABLES, WRITERS, ROWS = 200, 4, 200
TRIGGER, STOP = 3, 6
RATE, BURST_S = 40_000, 10  # server/maintain/budget.h
DRAIN_S = 300                # a slow machine's time, not a limit of what is promised

lab = Lab("soak")
tables = [f"d{i % 8}.t{i}" for i in range(TABLES)]
rounds = [0] * TABLES
print(f"seed {SEED}, {SECONDS:.0f} s")


def runs_of(daemon, table):
    levels = [f["level"] for f in daemon.json("files", table)]
    return levels.count(0) + len({level for level in levels if level > 0})


def upsert(daemon, i, name):
    text = "".join(f'{{"id": {k}, "v": "{rounds[i] + 1}-{k * 7919 % 10007}"}}\n' for k in range(ROWS))
    answer = daemon.json("load", tables[i], lab.write(f"rows-{name}.jsonl", text))
    rounds[i] += 1
    return answer


def rss_kb(daemon):
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))


def metric(daemon, name):
    with urllib.request.urlopen(f"http://{daemon.http}/metrics") as answer:
        found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", answer.read().decode(), re.M)
    return float(found.group(1)) if found else 0


class Soak:
    """Writers, each with tables of its own, the first of them written most often; and a reader."""

    def __init__(self, daemon):
        self.daemon, self.over, self.failures = daemon, threading.Event(), []
        self.loads, self.waits, self.runs, self.reads, self.memory = 0, 0, [], [], []

    def guarded(self, what, *args):
        try:
            what(*args)
        except Exception as e:  # told by the main thread  # pylint: disable=broad-except
            self.failures.append(e)
            self.over.set()

    def write(self, n):
        mine, rng = range(n, TABLES, WRITERS), random.Random(SEED + n)
        turn = 0
        while not self.over.is_set():
            turn += 1
            i = mine[turn // 2 % len(mine)] if turn % 2 else mine[min(int(rng.expovariate(0.2)), len(mine) - 1)]
            backlog = upsert(self.daemon, i, n)["backlog"]
            self.loads += 1
            self.waits += backlog is not None and backlog["advice"] == "wait"

    def read(self):
        rng = random.Random(SEED - 1)
        while not self.over.is_set():
            i = rng.randrange(TABLES)
            if rounds[i] > 0:
                begun = time.monotonic()
                check(len(self.daemon.lines("scan", tables[i])) == ROWS, f"rows of {tables[i]}")
                self.reads.append((time.monotonic() - begun) * 1000)
                self.runs.append(runs_of(self.daemon, tables[i]))
            self.memory.append(rss_kb(self.daemon))

    def run(self):
        jobs = [(self.write, n) for n in range(WRITERS)] + [(self.read,)]
        threads = [threading.Thread(target=self.guarded, args=job) for job in jobs]
        for t in threads:
            t.start()
        self.over.wait(SECONDS)
        self.over.set()
        for t in threads:
            t.join()
        if self.failures:
            raise self.failures[0]


def thirds(values):
    n = max(len(values) // 3, 1)
    return values[:n], values[-n:]


def drained(daemon):
    return not daemon.json("jobs") and all(runs_of(daemon, t) <= TRIGGER for t in tables)


def make(daemon, chosen):
    for name in range(8):
        daemon.tarn("db", "create", f"d{name}")
    for t in chosen:
        daemon.tarn("table", "create", t, "--columns", "id BIGINT NOT NULL, v STRING", "--primary-key", "id", "--option", "bucket=1",
                    "--option", f"num-sorted-run.compaction-trigger={TRIGGER}", "--option", f"num-sorted-run.stop-trigger={STOP}")


def steady():
    if SECONDS == 0:
        raise Skip("a soak takes a minute: TARN_EFFORT=10, or SOAK_SECONDS=60")
    d = lab.daemon("steady", lab.path("warehouse"), **{"compaction.auto": "true", "compaction.check_interval": "200 ms", "worker.count": 2})
    d.start()
    make(d, tables)
    soak = Soak(d)
    soak.run()
    first, last = thirds(soak.reads)
    before, after = thirds(soak.memory)
    ended = metric(d, "tarn_compactions_total")
    print(f"{soak.loads / SECONDS:.0f} loads/s, {soak.waits} told to wait; {ended:.0f} compactions; sorted runs: mean {statistics.mean(soak.runs):.2f}, "
          f"most {max(soak.runs)}; a read {statistics.median(first):.0f} ms, at the end {statistics.median(last):.0f} ms; "
          f"memory {max(before) // 1024} MB, at the end {max(after) // 1024} MB")
    check(min(rounds) > 0, "a table was never written")
    check(max(soak.runs) <= STOP + 1, f"a table had {max(soak.runs)} sorted runs; its writer waits above {STOP}")
    check(max(after) < max(before) * 1.3 + 64 * 1024, f"memory grew from {max(before)} to {max(after)} kB")
    wait_until("every table is compacted", lambda: drained(d), DRAIN_S, 0.5)
    equal([j["failure"] for j in d.json("jobs", "--ended") if j["state"] == "failed"], [], "failed jobs")
    for i, t in enumerate(tables):
        equal({line["v"].split("-")[0] for line in d.lines("scan", t)}, {str(rounds[i])}, f"rows of {t}")
    d.stop()


def bounded():
    """One table has work all the time, each of the others once; together more than the limit allows."""
    if SECONDS == 0:
        raise Skip("as the other")
    d = lab.daemon("bounded", lab.path("bounded-warehouse"), **{"compaction.auto": "false", "worker.count": 1})
    d.start()
    make(d, tables[:2] + tables[2::2])
    for i in range(0, TABLES, 2):
        for _ in range(TRIGGER + 1):
            upsert(d, i, "b")
    d.stop()
    begun = time.monotonic()
    d.start(**{"compaction.auto": "true", "compaction.check_interval": "200 ms", "compaction.bytes_per_second": str(RATE)})
    soak, most, largest = Soak(d), 0.0, 0
    hot = threading.Thread(target=soak.guarded, args=(lambda: [upsert(d, 1, "hot") for _ in iter(soak.over.is_set, True)],))
    for t in tables[::2]:
        d.tarn("files", t)  # it is known from now on
    hot.start()
    end = time.monotonic() + DRAIN_S
    left = set(tables[::2])
    while left and not soak.failures and time.monotonic() < end:
        taken = metric(d, "tarn_compacted_bytes_total")
        allowed = RATE * (time.monotonic() - begun + BURST_S)
        largest = max([largest] + [int(j["size_bytes"]) for j in d.json("jobs", "--ended")])
        check(taken <= allowed + largest, f"{taken:.0f} bytes were compacted where {allowed:.0f} may be")
        most = max(most, taken / allowed)
        left = {t for t in left if runs_of(d, t) > TRIGGER}
    soak.over.set()
    hot.join()
    if soak.failures:
        raise soak.failures[0]
    check(not left, f"{len(left)} tables starve beside one that has work all the time")
    print(f"{time.monotonic() - begun:.0f} s at {RATE} bytes a second: at most {100 * most:.0f} % of what may be taken")
    check(most > 0.5, "the limit was never near: this shows nothing")
    d.stop()


lab.run("sorted runs stay few, and memory flat", steady)
lab.run("a limit holds and nothing starves", bounded)
sys.exit(lab.done())
