#!/usr/bin/env python3
"""Promise: what `tarn jobs --explain` and `tarn compact --dry-run` print is all that a decision was made from: score and pick are computed again
here, by a second reading of docs/operations.md and docs/format.md. Loads that are told to wait end when compaction has caught up. What a killed worker had written is removed.
"""
import math
import os
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, check, equal  # noqa: E402

lab = Lab("scheduler")


def score(i):
    def ratio(a, b):
        return a / b if a > 0 and b > 0 else 0
    urgency = (2 * ratio(i["sorted_runs"], i["trigger"]) + ratio(i["delete_rows"], i["rows"]) + ratio(i["small_files"], i["files"])
               + min(ratio(i["full_age_ms"], i["full_interval_ms"]), 4)) / (1 + math.log2(1 + ratio(i["pick_bytes"], i["new_bytes"])) / 4)
    late = 30 * (1 + min(ratio(i["lag_ms"], i["freshness_ms"]), 3)) if i["freshness_ms"] > 0 else 0
    stopped = 10 if 0 < i["stop_trigger"] < i["sorted_runs"] else 0
    fair = 1 / (1 + float(i["database_share"]) + float(i["table_share"]))
    return (10000 if i["ordered"] else 0) + stopped + late + (urgency + max(i["waiting_ms"], 0) / 60000) * fair


def pick(p):
    """(rule, files, output level) of Paimon's universal compaction, or None."""
    runs = [(r["level"], r["bytes"], r["files"]) for r in p["runs"]]
    top = max([p["levels"] - 1] + [r[0] for r in runs])
    size = lambda a, b: sum(r[1] for r in runs[a:b])  # noqa: E731

    def extend(n, going):
        total = size(0, n)
        while n < len(runs):
            if total * (100 + p["size_ratio_percent"]) / 100 < runs[n][1] and (not going or runs[n][0] > 1):
                total, going, n = total + runs[n][1], True, n + 1
        return n if going else 0

    def taken(rule, n):
        level = top if n == len(runs) else max(0, runs[n][0] - 1)
        while level == 0 and n < len(runs):
            level, n = runs[n][0], n + 1
        if n == len(runs):
            level = top
        return rule, sum(r[2] for r in runs[:n]), level

    if p["full"]:
        return taken("full", len(runs))
    many = len(runs) >= p["compaction_trigger"]
    if many and len(runs) > 1 and size(0, len(runs) - 1) * 100 > p["size_amplification_percent"] * runs[-1][1]:
        return taken("size amplification", len(runs))
    if many and extend(1, False):
        return taken("size ratio", extend(1, False))
    if len(runs) > p["compaction_trigger"]:
        first = len(runs) - p["compaction_trigger"] + 1
        return taken("file count", extend(first, first > 1))
    return None


def hold(job):
    d = job["decision"]
    check(math.isclose(score(d["inputs"]), float(d["score"]["total"]), rel_tol=1e-9), f"score of {job}")
    for a in d["alternatives"]:
        check(math.isclose(score(a["inputs"]), float(a["score"]), rel_tol=1e-9), f"score of {a}")
        check(a["score"] <= d["score"]["total"], f"{a} would have been the better choice")
    equal(pick(d["pick"]), (job["why"], job["files"], job["output_level"]), "what is picked")


def load(daemon, table, n, rows, *words):
    text = "".join(f'{{"id": {i % 50}, "v": "{n}-{i}"}}\n' for i in range(rows))
    return daemon.json("load", table, lab.write(f"rows-{n}.jsonl", text), *words)


def make(daemon, table, *words):
    daemon.tarn("table", "create", table, "--columns", "id BIGINT NOT NULL, v STRING", "--primary-key", "id", *words)


def explained():
    tarn = lab.daemon("explained", lab.path("wh1"), **{"worker.count": 1, "compaction.auto": "false"})
    tarn.start()
    tarn.tarn("db", "create", "a")
    make(tarn, "a.few")
    make(tarn, "a.many", "--option", "num-sorted-run.compaction-trigger=3")
    for n in range(9):
        load(tarn, "a.many", n, 10 if n else 5000)
        if n < 5:
            load(tarn, "a.few", n, 20)
    for table in ("a.few", "a.many"):
        for full in ((), ("--full",)):
            picks = tarn.json("compact", table, "--dry-run", *full)["picks"]
            equal(len(picks), 1, f"buckets of {table}")
            hold(picks[0])
            check(picks[0]["decision"]["decided_ms"] == 0, "nothing was decided")
        text = tarn.tarn("compact", table, "--dry-run", "-o", "table").stdout.decode()
        check("score" in text and "picked by the rules of sorted runs" in text, text)
        tarn.tarn("compact", table, "--wait")
    jobs = [j for j in tarn.json("jobs", "--ended", "--explain") if j["state"] == "done"]
    equal(len(jobs), 2, "jobs")
    for job in jobs:
        hold(job)
        check(job["snapshot"] > 0 and job["rows_in"] > 0 and job["decision"]["decided_ms"] > 0, f"outcome of {job}")
    check(f"job {jobs[0]['id']}: done" in tarn.tarn("jobs", "--explain", str(jobs[0]["id"]), "-o", "table").stdout.decode(), "for people")
    tarn.stop()


def obeyed():
    tarn = lab.daemon("obeyed", lab.path("wh2"), **{"worker.count": 1, "compaction.auto": "true", "compaction.check_interval": "2 s"})
    tarn.start()
    tarn.tarn("db", "create", "b")
    make(tarn, "b.t", "--option", "num-sorted-run.compaction-trigger=2", "--option", "num-sorted-run.stop-trigger=3")
    told, n, end = 0, 0, time.monotonic() + 60
    while not told and time.monotonic() < end:
        n += 1
        backlog = load(tarn, "b.t", n, 10)["backlog"]
        told += backlog is not None and backlog["advice"] == "wait"
        runs = [f["level"] for f in tarn.json("files", "b.t")]
        if backlog is not None and backlog["advice"] == "wait":
            check(backlog["sorted_runs"] > 3, f"told to wait by {backlog}")
            check(runs.count(0) + len({r for r in runs if r > 0}) <= 3, f"the load ended with levels {runs}")
            break
    check(told > 0, "no load was told to wait")
    tarn.stop()


def cleaned():
    """A worker that is killed while it compacts: what it had written goes, and nothing else."""
    tarn = lab.daemon("cleaned", lab.path("wh3"), **{"worker.count": 1, "compaction.auto": "false", "compaction.check_interval": "100 ms"})
    tarn.start()
    tarn.tarn("db", "create", "c")
    make(tarn, "c.t", "--option", "bucket=1")
    for n in range(2):
        text = "".join(f'{{"id": {i}, "v": "{n}-{i * 7919 % 104729}"}}\n' for i in range(200000))
        tarn.json("load", "c.t", lab.write("many.jsonl", text))
    folder = lab.path("wh3/c.db/t/bucket-0")
    before = set(os.listdir(folder))
    [pid] = tarn.workers()
    tarn.json("compact", "c.t", "--full")
    end = time.monotonic() + 60
    while set(os.listdir(folder)) == before and time.monotonic() < end:
        pass
    os.kill(pid, signal.SIGKILL)
    left = set(os.listdir(folder)) - before
    check(left, "the worker had begun a file when it was killed")
    while tarn.json("jobs") and time.monotonic() < end:
        time.sleep(0.1)
    live = {os.path.basename(f["path"]) for f in tarn.json("files", "c.t")}
    check(not live & left and len(live) == 1, f"done again: {live}")
    while set(os.listdir(folder)) != before | live and time.monotonic() < end:
        time.sleep(0.1)
    equal(set(os.listdir(folder)), before | live, "files of the bucket")
    check("task.leftovers_removed" in tarn.said(), "the log says so")
    tarn.stop()


lab.run("decisions are computed again", explained)
lab.run("loads wait where they are told to", obeyed)
lab.run("what a killed worker wrote is removed", cleaned)
sys.exit(lab.done())
