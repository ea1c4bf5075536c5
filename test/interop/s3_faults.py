#!/usr/bin/env python3
"""Promise: a daemon and its worker on S3 keep every acknowledged commit and double none, over a store that drops answers, answers 503,
cuts lists short and forgets conditions; the start refuses a store that can't commit; secrets appear nowhere.

The store is test/lib/fake_s3.py, so this needs nothing but Python. s3_faults.py [PART OF A CASE'S NAME]... runs some."""
import collections
import json
import os
import random
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import lab as house  # noqa: E402
from lab import BIN, Lab, check, equal, wait_until  # noqa: E402
from s3_lab import ACCESS, SECRET, Fake, S3Daemon  # noqa: E402

lab = Lab("s3-faults")
store = Fake(lab, "--page", "50")
tarn = S3Daemon(lab, store)

NOISE = [
    {"do": "answer", "status": 503, "skip": 7, "count": 0, "method": "GET"},
    {"do": "reset_after", "method": "PUT"},
]


def csv(first, count, tag):
    return lab.write("rows.csv", "id,v\n" + "".join(f"{i},{tag}{i}\n" for i in range(first, first + count)))


def rows(table):
    out = tarn.tarn("scan", table, "-o", "jsonl").stdout.decode()
    return {r["id"]: r["v"] for r in map(json.loads, out.splitlines())}


def snapshots(table):
    return [s["id"] for s in tarn.lines("snapshots", table)]


def refused_start(word, **settings):
    daemon = S3Daemon(lab, settings.pop("store", store), "refused", **settings)
    daemon.spawn()
    status = daemon.process.wait(60)
    equal(status, 1, "exit status")
    check(word in daemon.said(), f"it said: {daemon.said()[-600:]}")
    check(SECRET not in daemon.said(), "the secret is in the log")


def start_refusals():
    fake = Fake(lab, "--conditions", "ignored")
    refused_start("s3.conditional_put = single_writer", store=fake)
    equal(fake.objects(), {}, "what is left there")
    refused_start("there is no bucket", **{"warehouse.uri": "s3://nothing/wh"})
    refused_start("AccessDenied", **{"s3.credentials": "anonymous"})
    single = S3Daemon(lab, fake, "single", **{"s3.conditional_put": "single_writer"}).start()
    single.tarn("db", "create", "x")
    single.tarn("table", "create", "x.t", "--columns", "id BIGINT NOT NULL, v STRING", "--primary-key", "id")
    single.tarn("load", "x.t", csv(0, 10, "a"))
    equal(len(single.lines("scan", "x.t")), 10, "rows")
    single.stop()
    fake.close()


def secrets_stay_secret():
    config = subprocess.run([os.path.join(BIN, "tarnd"), "--check-config", *tarn.command()[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    equal(config.returncode, 0, "--check-config")
    check(SECRET.encode() not in config.stdout and b"secret_key_file" in config.stdout, "the configuration as printed")
    for pid in [tarn.process.pid, *tarn.workers()]:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            check(SECRET.encode() not in f.read(), "an argument")
        with open(f"/proc/{pid}/environ", "rb") as f:
            check(SECRET.encode() not in f.read(), "a variable")
    check(SECRET not in tarn.said(), "the log")


def main_job():
    tarn.tarn("db", "create", "a")
    tarn.tarn("table", "create", "a.t", "--columns", "id BIGINT NOT NULL, v STRING", "--primary-key", "id")
    tarn.tarn("load", "a.t", csv(0, 1000, "a"))
    tarn.tarn("load", "a.t", csv(500, 1000, "b"))
    want = {i: f"{'a' if i < 500 else 'b'}{i}" for i in range(1500)}
    equal(rows("a.t"), want, "rows")
    tarn.tarn("compact", "a.t", "--full", "--wait")
    equal(rows("a.t"), want, "rows after the compaction")
    tarn.kill9()
    tarn.start()
    equal(rows("a.t"), want, "rows after a kill")
    secrets_stay_secret()


def faults_double_nothing():
    tarn.tarn("table", "create", "a.f", "--columns", "id BIGINT NOT NULL, v STRING", "--primary-key", "id")
    seed = int(os.environ.get("TARN_SEED", time.time()))
    print(f"TARN_SEED={seed}")
    dice, want, acknowledged = random.Random(seed), {}, 0
    kinds = [{"do": "answer", "status": 503}, {"do": "answer", "status": 500}, {"do": "reset"}, {"do": "reset_after"}, {"do": "after", "status": 503},
             {"do": "truncate", "keep": 3}, {"do": "garble", "part": "list-type"}, {"do": "answer", "status": 409, "code": "OperationAborted", "method": "PUT"}]
    for n in range(12):
        store.rules(*({**dice.choice(kinds), "skip": dice.randrange(6), "count": dice.randrange(1, 4)} for _ in range(3)))
        got = tarn.tarn("load", "a.f", csv(n * 10, 10, f"r{n}-"), ok=None)
        store.rules()
        if got.returncode == 0:
            acknowledged += 1
            want.update({i: f"r{n}-{i}" for i in range(n * 10, n * 10 + 10)})
        else:
            landed = rows("a.f").keys() & set(range(n * 10, n * 10 + 10))
            check(len(landed) in (0, 10), f"half a commit: {landed}; it said {got.error}")
            want.update({i: f"r{n}-{i}" for i in landed})
    print(f"{acknowledged} of 12 loads were acknowledged")
    check(acknowledged >= 8, "retries carry most loads through")
    equal(rows("a.f"), want, "rows")
    equal(snapshots("a.f"), list(range(1, len(snapshots("a.f")) + 1)), "snapshots without gaps")
    tarn.kill9()
    tarn.start()
    equal(rows("a.f"), want, "rows after a kill")


def scans_get_through():
    want = rows("a.f")
    for rule in ({"do": "answer", "status": 503}, {"do": "reset"}, {"do": "truncate", "keep": 10}, {"do": "slow", "ms": 300}):
        store.rules({**rule, "method": "GET", "part": ".parquet", "skip": 1, "count": 3})
        equal(rows("a.f"), want, f"rows through {rule}")
    store.rules({"do": "answer", "status": 404, "method": "GET", "part": ".parquet"})
    got = tarn.tarn("scan", "a.f", ok=False)
    check(".parquet" in got.error, got.error)
    store.rules()


def forbidden_is_no_answer():
    store.rules({"do": "answer", "status": 403, "part": "/a.db/t/"})
    got = tarn.tarn("load", "a.t", csv(0, 1, "x"), ok=False)
    check("403" in got.error or "denied" in got.error.lower(), got.error)
    store.rules()
    tarn.tarn("load", "a.t", csv(0, 1, "x"))
    equal(rows("a.t")[0], "x0", "the row")


def renamed_and_dropped():
    tarn.tarn("table", "create", "a.r", "--columns", "id BIGINT NOT NULL, v STRING", "--primary-key", "id")
    tarn.tarn("load", "a.r", csv(0, 100, "r"))
    # One that fails before it has happened, and again.
    store.rules({"do": "answer", "status": 403, "method": "DELETE", "part": "/a.db/r/schema"})
    tarn.tarn("table", "rename", "a.r", "a.s", ok=False)
    store.rules()
    tarn.tarn("load", "a.r", csv(50, 50, "q"))
    tarn.tarn("table", "rename", "a.r", "a.s")
    equal(rows("a.s"), {i: f"{'r' if i < 50 else 'q'}{i}" for i in range(100)}, "rows after the rename")
    equal([k for k in store.objects() if "/a.db/r/" in k], [], "what is left of the old place")
    # A drop that fails half-way, and a table of the same name.
    store.rules({"do": "answer", "status": 403, "method": "DELETE", "part": "/a.db/s/snapshot"})
    tarn.tarn("table", "drop", "a.s", ok=False)
    store.rules()
    tarn.tarn("table", "create", "a.s", "--columns", "id BIGINT NOT NULL, v STRING", "--primary-key", "id")
    equal(rows("a.s"), {}, "rows of the new table")
    tarn.tarn("load", "a.s", csv(7, 1, "n"))
    equal(rows("a.s"), {7: "n7"}, "rows of the new table")
    # and one that a kill cuts off
    store.rules({"do": "hang", "ms": 3000, "method": "DELETE", "part": "/a.db/s/snapshot"})
    child = tarn.popen("table", "drop", "a.s")
    time.sleep(1)
    tarn.kill9()
    child.wait(30)
    store.rules()
    tarn.start()
    equal([k for k in store.objects() if "/a.db/s/" in k or "dropped" in k], [], "what is left of the table")


def reads_are_few():
    tarn.tarn("compact", "a.t", "--full", "--wait")
    store.log()
    rows("a.t")
    log = store.log()
    data = [p for m, p, s in log if m == "GET" and ".parquet" in p]
    files = len(set(p.split("?")[0] for p in data))
    check(0 < len(data) <= 2 * files, f"{len(data)} reads of {files} files")
    equal([s for m, p, s in log if s not in (200, 206, 404)], [], "other answers")


def keys_file(n):
    """The n-th keys, which have a token: what the file says and what the store accepts."""
    text = f"[default]\naws_access_key_id = ASIA{n}\naws_secret_access_key = secret{n}\naws_session_token = token{n}\n"
    return text, {f"ASIA{n}": {"secret": f"secret{n}", "token": f"token{n}", "expires": None}}


def keys_end_half_way():
    fake = Fake(lab)
    text, keys = keys_file(1)
    path = lab.write("keys.ini", text)

    def accept(*lists):
        equal(fake.ask("keys " + json.dumps({k: v for some in lists for k, v in some.items()})), "ok", "the store")

    def seen(rule):
        """What the store was asked meets the rule, from now on."""
        fake.log()
        fake.rules(rule)

    accept(keys)
    daemon = S3Daemon(lab, fake, "keys", **{"s3.credentials": "file", "s3.credentials_file": path}).start()
    watch = None
    try:
        daemon.tarn("db", "create", "k")
        daemon.tarn("table", "create", "k.t", "--columns", "id BIGINT NOT NULL, v STRING", "--primary-key", "id", "--option", "write-only=false")
        watch = daemon.popen("watch", "k.t", "--from", "earliest", "--limit", 900, "-o", "jsonl", text=True)
        daemon.tarn("load", "k.t", csv(0, 300, "a"))
        daemon.tarn("load", "k.t", csv(100, 300, "b"))
        want = {i: f"{'a' if i < 100 else 'b'}{i}" for i in range(400)}

        def state():
            return {r["id"]: r["v"] for r in daemon.lines("scan", "k.t")}

        # While the compacted file is being put the keys end; new ones lie in the file.
        seen({"do": "slow", "ms": 2000, "method": "PUT", "part": ".parquet", "count": 1})
        job = daemon.popen("compact", "k.t", "--full", "--wait", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        wait_until("the output is being put", lambda: any(m == "GET" and ".parquet" in p for m, p, _ in fake.log()))
        text, keys = keys_file(2)
        lab.write("keys.ini", text)
        accept(keys)
        said = job.communicate(timeout=60)[0]
        equal(job.returncode, 0, f"the compaction, which said {said}")
        check(any(status == 403 for _, _, status in fake.log()), "the store refused the old keys")
        equal(state(), want, "rows behind it")

        # They end, and no new ones are there: it fails by name, nothing of it is seen, and it is done when they are.
        daemon.tarn("load", "k.t", csv(200, 300, "c"))
        want.update({i: f"c{i}" for i in range(200, 500)})
        fake.rules()
        seen({"do": "slow", "ms": 1000, "method": "GET", "part": ".parquet"})
        job = daemon.popen("compact", "k.t", "--full", "--wait", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        wait_until("its inputs are being read", lambda: any(m == "GET" and ".parquet" in p for m, p, _ in fake.log()))
        text, keys = keys_file(3)
        accept(keys)
        wait_until("the store refuses", lambda: any(s == 403 for _, _, s in fake.log()))
        got = daemon.tarn("snapshots", "k.t", ok=None)
        check(got.returncode == 0 or "InvalidAccessKeyId" in got.error, f"without keys: {got.error}")
        lab.write("keys.ini", text)
        fake.rules()
        job.communicate(timeout=60)
        equal(state(), want, "rows with new keys")
        daemon.tarn("compact", "k.t", "--full", "--wait")
        equal(state(), want, "rows behind the compaction")
        last = daemon.lines("snapshots", "k.t")
        equal(sorted(s["id"] for s in last), list(range(1, len(last) + 1)), "snapshots without gaps")
        told = [json.loads(line) for line in watch.communicate(timeout=60)[0].splitlines()]
        equal([(r["id"], r["v"]) for r in told], [(i, f"{tag}{i}") for first, tag in ((0, "a"), (100, "b"), (200, "c")) for i in range(first, first + 300)], "rows that the stream told")
        for n in (1, 2, 3):
            check(f"secret{n}" not in daemon.said() and f"token{n}" not in daemon.said(), "a secret is in the log")
    finally:
        if watch is not None:
            watch.kill()
            watch.wait(10)
        daemon.stop()
        fake.close()


for name, function in [("the start refuses what can't commit", start_refusals)]:
    lab.run(name, function)
tarn.start()
lab.run("a table is loaded, upserted, compacted, and survives a kill; secrets stay secret", main_job)
lab.run("faults lose nothing, double nothing", faults_double_nothing)
lab.run("scans get through faults, or fail by name", scans_get_through)
lab.run("403 is an error, not an empty table", forbidden_is_no_answer)
lab.run("tables are renamed and dropped, also through failures", renamed_and_dropped)
lab.run("a scan asks for each data file at most twice", reads_are_few)
lab.run("keys that end during a compaction and a stream", keys_end_half_way)
with lab.case("it stops"):
    tarn.stop()
sys.exit(lab.done())
