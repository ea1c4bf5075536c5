#!/usr/bin/env python3
"""Promise: a daemon whose state is full or damaged, whose disk fails to sync, or whose store is away for a while refuses clearly, loses nothing
that it acknowledged, goes on serving what it can, and needs no more than what its message says (docs/faults.md, rows 1, 20-24).
At the end Paimon's Java library and pypaimon read the tables, where ../shared is there.
faults.py [PART OF A CASE'S NAME]... runs some."""
import collections
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import peers  # noqa: E402
from lab import Failed, Lab, Skip, check, equal, wait_until  # noqa: E402

SEED = int(os.environ.get("TARN_SEED") or random.SystemRandom().randrange(1 << 32))
EFFORT = int(os.environ.get("TARN_EFFORT") or 1)

lab = Lab("faults")
rng = random.Random(SEED)


def make(d):
    d.tarn("db", "create", "f")
    for name in ("t", "other"):
        d.tarn("table", "create", "f." + name, "--columns", "id INT NOT NULL, v STRING", "--primary-key", "id", "--option", "bucket=1")


def load(d, number, table="f.t", user="faults", **kw):
    path = lab.write(f"{table}.{number}.jsonl", json.dumps({"id": number, "v": f"row {number}"}) + "\n")
    return d.tarn("load", table, path, "-o", "json", "--commit-user", user, "--commit-id", number, **kw)


def rows(d, table="f.t"):
    return sorted(r[0] for r in d.scan(table))


def snapshots(d, table="f.t"):
    return [s["id"] for s in d.json("snapshots", table)]


def identities_once(d, table="f.t"):
    seen = collections.Counter()
    for path in glob.glob(os.path.join(d.folder(table), "snapshot/snapshot-*")):
        with open(path) as f:
            s = json.load(f)
        seen[s["commitUser"], s["commitIdentifier"], s["commitKind"]] += 1
    check(all(n == 1 for n in seen.values()), f"landed more than once: {seen}")


# ---------------------------------------------------------------- row 22: the state


def damage(path, how):
    with open(path, "rb") as f:
        body = bytearray(f.read())
    if how == "cut":
        body = body[: rng.randrange(len(body))]
    elif how == "zeroed":
        body = bytearray(len(body))
    elif body:
        at = rng.randrange(len(body))
        body[at] ^= 1 << rng.randrange(8)
    with open(path, "wb") as f:
        f.write(body)


def damaged_state():
    """It opens and knows everything, or it says what to do in one line, and that helps."""
    d = lab.daemon("state").start()
    make(d)
    for i in range(6):
        load(d, i)
    d.kill9()
    state = os.path.join(d.data, "state")
    kept = lab.path("state-kept")
    shutil.copytree(state, kept)
    files = sorted(n for n in os.listdir(kept) if re.search(r"\.(log|sst)$|MANIFEST|CURRENT", n) and os.path.getsize(os.path.join(kept, n)))
    refused = 0
    for n in range(6, 6 + 8 * min(EFFORT, 20)):
        shutil.rmtree(state)
        shutil.copytree(kept, state)
        name, how = files[n % len(files)], rng.choice(["cut", "zeroed", "flipped"])
        damage(os.path.join(state, name), how)
        d.spawn()
        wait_until("it starts or ends", lambda: d.process.poll() is not None or "server.ready" in d.said(), 30)
        if d.process.poll() is not None:
            refused += 1
            equal(d.process.returncode, 1, f"status after {name} was {how}")
            last = d.said().splitlines()[-1]
            check("state" in last and re.search(r"move .*away", last), f"{name} {how}: {last}")
            shutil.rmtree(state)  # as it says
        else:
            d.kill9()
        d.start()
        equal(rows(d), list(range(n)), f"rows after {name} was {how}")
        equal(json.loads(load(d, 3).stdout)["snapshot"], 4, f"the snapshot of a load sent again, after {name} was {how}")
        load(d, n)
        equal(rows(d), list(range(n + 1)), f"rows after {name} was {how}, and a load")
        identities_once(d)
        d.kill9()
    print(f"{refused} refused")


# ---------------------------------------------------------------- row 20: full disks


def mounted(name, size):
    if os.geteuid() != 0:
        raise Skip("needs root to mount a tmpfs")
    where = lab.path(name)
    os.makedirs(where)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", where], capture_output=True).returncode:
        raise Skip("no tmpfs can be mounted here")
    return where


def full_state():
    """What the warehouse acknowledged stays acknowledged; reads go on or say why; with room again no restart is needed for loads."""
    where = mounted("full-state", "48m")
    d = lab.daemon("full-state", lab.path("full-state-wh"))
    d.log = lab.path("full-state-daemon.log")
    try:
        d.start()
        make(d)
        for i in range(3):
            load(d, i)
        filler = os.path.join(where, "filler")
        with open(filler, "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(1 << 16))
            except OSError:
                pass
        landed = {0, 1, 2}
        for i in range(3, 9):
            got = load(d, i, ok=None)
            if got.returncode == 0:
                landed.add(i)
            else:
                check("\n" not in got.error, f"not one line: {got.error}")
        check(d.process.poll() is None, f"the daemon died: {d.said()[-500:]}")
        check("state.stopped" in d.said(), f"no word of it in the log: {d.said()[-500:]}")
        problems = [p["problem"] for p in d.json("status")["problems"]]
        check(any("no write is taken until there is room" in p for p in problems), f"no word of it in tarn status: {problems}")
        os.unlink(filler)
        wait_until("it goes on", lambda: load(d, 9, ok=None).returncode == 0 and d.json("status")["problems"] == [], 10)
        check("state.goes_on" in d.said(), d.said()[-500:])
        landed.add(9)
        check(landed <= set(rows(d)), f"acknowledged and lost, without a restart: {landed - set(rows(d))}")
        d.kill9()
        d.start()
        got = set(rows(d))
        check(landed <= got, f"acknowledged and lost: {landed - got}")
        for i in range(3, 9):
            load(d, i, user="later")
        equal(rows(d), list(range(10)), "rows when there was room again")
        identities_once(d)
        d.stop()
    finally:
        if d.process is not None and d.process.poll() is None:
            d.kill9()
        subprocess.run(["umount", "-l", where], check=True)


# ---------------------------------------------------------------- row 21: syncs that fail

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static int fails(int fd)
{
    char link[64], path[4096];
    if (access(getenv("FAILING"), F_OK) != 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n < 0 ? 0 : n] = 0;
    return strstr(path, getenv("FAILING_PART")) != NULL;
}
int fsync(int fd)
{
    if (fails(fd)) { errno = EIO; return -1; }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
int fdatasync(int fd)
{
    if (fails(fd)) { errno = EIO; return -1; }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
"""


def shim():
    library = lab.path("shim.so")
    if not os.path.exists(library):
        compiler = shutil.which("cc") or shutil.which("gcc")
        if not compiler:
            raise Skip("needs a compiler")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, lab.write("shim.c", SHIM), "-ldl"], check=True)
    return library


def failing_syncs():
    """No commit is acknowledged while its sync fails, and a later sync is not taken for it."""
    for part in ("/manifest", "/snapshot"):
        name = "sync" + part.replace("/", "-")
        failing = lab.path(name + "-now")
        d = lab.daemon(name)
        env = {"LD_PRELOAD": shim(), "FAILING": failing, "FAILING_PART": "f.db/t" + part}
        if "asan" in os.environ.get("TARN_BIN", ""):
            raise Skip("sanitizers want to be loaded first")
        d.start(env=env)
        make(d)
        load(d, 0)
        load(d, 0, "f.other")
        before = snapshots(d)
        with open(failing, "w"):
            pass
        got = load(d, 1, ok=False)
        check(re.search(r"sync|outcome|input/output|not say", got.error, re.I), f"no word of it: {got.error}")
        load(d, 1, "f.other", ok=None)
        os.unlink(failing)
        check(d.process.poll() is None, f"the daemon died: {d.said()[-300:]}")
        again = load(d, 1, ok=None)
        if again.returncode != 0:  # the folder's sync failed: nothing more is taken until a restart, which is said
            check(re.search(r"sync|restart|unknown|not say", again.error, re.I), f"no word of it: {again.error}")
            d.kill9()
            d.start(env=env)
            load(d, 1)
        equal(rows(d), [0, 1], "rows")
        check(set(before) <= set(snapshots(d)), "snapshots")
        identities_once(d)
        d.kill9()


# ---------------------------------------------------------------- rows 1 and 24: answers that are lost, a store that is away


def lost_answers():
    """Every request two to five times, over answers of the store that are lost: one snapshot each."""
    d = lab.daemon("lost")
    put = "put_if_absent:f.db/t/snapshot/"
    d.start(env={"TARN_STORE_FAULTS": f"{put}:1:2:fail_after;{put}:2:1:late:50:5;{put}:3:1:unknown;{put}:4:2:fail_after;{put}:5:1:late:300:9"})
    make(d)
    for i in range(8):
        first = None
        for _ in range(rng.randrange(2, 6)):
            got = load(d, i, ok=None)
            if got.returncode == 0:
                snapshot = json.loads(got.stdout)["snapshot"]
                check(first in (None, snapshot), f"load {i} is told to be in {first} and in {snapshot}")
                first = snapshot
        if first is None:
            load(d, i)
    equal(rows(d), list(range(8)), "rows")
    identities_once(d)
    d.kill9()
    d.start()
    equal(rows(d), list(range(8)), "rows after a restart")
    d.stop()


def outage():
    """The store is away for some seconds: the catalog is served, loads say so or land, all once, and memory stays bounded."""
    d = lab.daemon("outage", **{"commit.foreign_check": "1 h", "worker.count": 0})
    d.start(env={"TARN_STORE_FAULTS": "put_if_absent:t/snapshot/snapshot-3:0:1:throttle:4000"}, workers=False)
    worker = subprocess.Popen([os.path.join(os.path.dirname(d.command()[0]), "tarn-worker"), "--server", d.address],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until("a worker registers", d.workers_registered, 20)
        make(d)
        load(d, 0)
        load(d, 1)
        results = {}

        def one(i):
            results[i] = load(d, i, user=f"job {i}", ok=None)  # one user's identifiers only rise
        threads = [threading.Thread(target=one, args=(i,)) for i in range(2, 10)]
        for t in threads:
            t.start()
        time.sleep(1)
        served = time.monotonic()
        for words in (["status"], ["table", "show", "f.t"], ["table", "list", "f"], ["db", "list"]):
            got = d.tarn(*words)
            check("can't reach its store; this is what it knew" in got.stderr.decode(), f"{words}: it doesn't say how old it is: {got.stderr}")
        check(time.monotonic() - served < 5, "the catalog waits for the store")
        for t in threads:
            t.join()
        for i, got in results.items():
            if got.returncode != 0:
                check(re.search(r"store|503|unavailable|again|outcome", got.error, re.I), f"load {i}: {got.error}")
        for i in range(2, 10):
            load(d, i, user=f"job {i}")
        equal(rows(d), list(range(10)), "rows")
        identities_once(d)
        with open(f"/proc/{d.process.pid}/status") as f:
            high = int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1))
        check(high < 600 << 10, f"{high >> 10} MiB")
        d.stop()
    finally:
        worker.kill()
        worker.wait()


# ---------------------------------------------------------------- row 23: objects of the warehouse


def damaged_objects():
    """Told by name; other tables are served; put right, the table works without a restart."""
    d = lab.daemon("objects").start()
    make(d)
    for i in range(3):
        load(d, i)
    load(d, 0, "f.other")
    d.stop()
    shutil.rmtree(os.path.join(d.data, "state"))
    for part in ("snapshot/snapshot-2", "schema/schema-0", "manifest/manifest-*"):
        path = sorted(glob.glob(os.path.join(d.folder("f.t"), part)))[0]
        with open(path, "rb") as f:
            whole = f.read()
        for broken in (b"", whole[: len(whole) // 2], bytes(len(whole)), None):
            if broken is None:
                os.unlink(path)
            else:
                with open(path, "wb") as f:
                    f.write(broken)
            d.start()
            got = d.tarn("scan", "f.t", ok=None)
            if got.returncode != 0:
                check("f.t" in got.error or os.path.basename(path) in got.error, f"{part}: {got.error}")
            equal(rows(d, "f.other"), [0], f"the other table, without {part}")
            with open(path, "wb") as f:
                f.write(whole)
            wait_until(f"the table works again with {part}", lambda: d.tarn("scan", "f.t", ok=None).returncode == 0, 10)
            equal(rows(d), [0, 1, 2], f"rows, {part}")
            d.kill9()
            shutil.rmtree(os.path.join(d.data, "state"))


CASES = [damaged_state, full_state, failing_syncs, lost_answers, outage, damaged_objects]


def main():
    print(f"seed {SEED}")
    for f in CASES:
        lab.run(f.__name__.replace("_", " "), f)
    peers.others_read_what_is_left(lab)
    return lab.done()


try:
    sys.exit(main())
except Failed as e:
    print(f"FAILED {e}")
    sys.exit(lab.done() or 1)
