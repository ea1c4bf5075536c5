#!/usr/bin/env python3
"""Promise: what can go wrong around Tarn is told in one line that says what to do, with exit code 1, and leaves nothing half
done: workers that die, broken files, full disks, missing rights, a second daemon, ports in use, bad input."""
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import BIN, Lab, Skip, check, equal, error_line, kill, wait_until  # noqa: E402

lab = Lab("bad-conditions")
tarn = lab.daemon("d", **{"worker.count": 1, "worker.write_buffer": "1 mb"})
NOBODY = 65534


def data_files(daemon, table):
    return sorted(glob.glob(os.path.join(daemon.folder(table), "**/data-*"), recursive=True) +
                  glob.glob(os.path.join(daemon.folder(table), "**/.*.tmp"), recursive=True))


def snapshots(daemon, table):
    return len(daemon.json("snapshots", table))


def unchanged(daemon, table, f):
    """f leaves the table as it was: snapshots, rows, files."""
    before = snapshots(daemon, table), daemon.scan(table), data_files(daemon, table)
    f()
    wait_until("its files are removed", lambda: data_files(daemon, table) == before[2], 15)
    equal((snapshots(daemon, table), daemon.scan(table)), before[:2], "snapshots and rows")


def one_line(said, *words):
    check(said and "\n" not in said, f"not one line: {said!r}")
    for w in words:
        check(re.search(w, said, re.I), f"no {w!r} in: {said}")


# ---------------------------------------------------------------- workers


def killed_while_loading():
    def f():
        job = tarn.popen("load", "b.pk", "-", "--format", "jsonl", stdin=subprocess.PIPE)
        text = "".join(json.dumps({"id": i, "v": "x" * 200}) + "\n" for i in range(20000)).encode()
        job.stdin.write(text)
        job.stdin.flush()
        time.sleep(0.3)
        for w in tarn.workers():
            kill(w)
        try:
            job.stdin.write(text)
            job.stdin.close()
        except BrokenPipeError:
            pass
        job.stdin = None
        _, said = job.communicate(timeout=60)
        equal(job.returncode, 1, "status")
        one_line(error_line(said.decode().strip()), "worker")
        wait_until("a new worker", lambda: tarn.workers() and tarn.workers_registered())
    unchanged(tarn, "b.pk", f)


def killed_while_scanning():
    job = tarn.popen("scan", "b.big", "-o", "jsonl")
    first = job.stdout.read(1000)
    check(first, "no rows")
    time.sleep(0.3)
    for w in tarn.workers():
        kill(w)
    _, said = job.communicate(timeout=60)
    equal(job.returncode, 1, "status")
    one_line(error_line(said.decode().strip()), "worker")
    wait_until("a new worker", lambda: tarn.workers() and tarn.workers_registered())
    equal(sum(tarn.scan("b.big", "--limit", 10).values()), 10, "rows of the next scan")
    check(tarn.process.poll() is None, "the daemon died")


def killed_while_compacting():
    def f():
        for _ in range(2):
            job = tarn.popen("compact", "b.big", "--full", "--wait")
            time.sleep(0.25)
            for w in tarn.workers():
                kill(w)
            job.communicate(timeout=90)
            wait_until("a new worker", lambda: tarn.workers() and tarn.workers_registered())
    rows = tarn.scan("b.big")
    f()
    check(tarn.scan("b.big") == rows, "rows changed")
    tarn.tarn("compact", "b.big", "--full", "--wait")
    check(tarn.scan("b.big") == rows, "rows changed by the compaction")


def renamed_while_loading():
    tarn.tarn("table", "create", "b.moving", "--columns", "id BIGINT NOT NULL", "--primary-key", "id")
    old = tarn.folder("b.moving")
    job = tarn.popen("load", "b.moving", "-", "--format", "jsonl", stdin=subprocess.PIPE)
    job.stdin.write(b'{"id": 1}\n')
    job.stdin.flush()
    time.sleep(0.3)
    tarn.tarn("table", "rename", "b.moving", "b.moved")
    out, err = job.communicate(b'{"id": 2}\n', 60)
    equal(job.returncode, 1, "the load's status")
    one_line(error_line(err.decode().strip()), "b.moving was renamed to b.moved")
    check(not os.path.exists(old), "folders are left where the table was")
    equal(snapshots(tarn, "b.moved"), 0, "snapshots")


def gone_while_compacting():
    """By other hands: the daemon isn't told."""
    tarn.tarn("table", "create", "b.gone", "--columns", "id BIGINT NOT NULL", "--primary-key", "id")
    for _ in range(3):
        tarn.tarn("load", "b.gone", lab.write("one.jsonl", '{"id": 1}\n'))
    workers = tarn.workers()
    for w in workers:
        kill(w, signal.SIGSTOP)
    job = tarn.popen("compact", "b.gone", "--full", "--wait")
    wait_until("the task is there", lambda: tarn.lines("jobs", "--table", "b.gone"))
    shutil.rmtree(tarn.folder("b.gone"))
    for w in workers:
        kill(w, signal.SIGCONT)
    _, err = job.communicate(timeout=60)
    equal(job.returncode, 1, "the compaction's status")
    one_line(error_line(err.decode().strip()), "b.gone", "no longer there")


def silent_worker():
    """A worker that hangs is missed after about three leases, also while its poll is open."""
    d = lab.daemon("silent", **{"worker.lease": "1 s"}).start()
    workers = d.workers()
    for w in workers:
        kill(w, signal.SIGSTOP)
    wait_until("the worker is gone", lambda: "worker.gone" in d.said(), 10)
    for w in workers:
        kill(w, signal.SIGCONT)
    wait_until("it registers again", d.workers_registered)
    d.stop()


def no_worker():
    d = lab.daemon("lonely", **{"worker.count": 0})
    d.start()
    d.tarn("db", "create", "b")
    d.tarn("table", "create", "b.t", "--columns", "id INT")
    one_line(d.tarn("load", "b.t", lab.write("x.jsonl", '{"id": 1}\n'), ok=False).error, "worker")
    d.stop()


# ---------------------------------------------------------------- broken files


def broken_data_file():
    tarn.tarn("table", "create", "b.broken", "--columns", "id INT, v STRING")
    for i in range(3):
        tarn.tarn("load", "b.broken", lab.write("x.jsonl", "".join(f'{{"id": {i * 100 + j}, "v": "text {j}"}}\n' for j in range(100))))
    path = data_files(tarn, "b.broken")[1]
    with open(path, "rb") as f:
        whole = f.read()
    broken = {"cut": whole[: len(whole) // 2], "empty": b"", "zeroed": bytes(len(whole)),
              "garbage": b"PAR1" + os.urandom(len(whole) - 8) + b"PAR1",
              "torn page": whole[:40] + bytes(30) + whole[70:]}
    for what, data in broken.items():
        with open(path, "wb") as f:
            f.write(data)
        one_line(tarn.tarn("scan", "b.broken", ok=False).error, re.escape(os.path.basename(path)))
        said = tarn.tarn("compact", "b.broken", "--full", "--wait", "--timeout", "20", ok=False).error
        one_line(said)
    os.unlink(path)
    one_line(tarn.tarn("scan", "b.broken", ok=False).error, re.escape(os.path.basename(path)))
    with open(path, "wb") as f:
        f.write(whole)
    equal(sum(tarn.scan("b.broken").values()), 300, "rows of the repaired table")
    check(tarn.process.poll() is None, "the daemon died")


def broken_metadata():
    tarn.tarn("table", "create", "b.meta", "--columns", "id INT")
    tarn.tarn("load", "b.meta", lab.write("x.jsonl", '{"id": 1}\n'))
    tarn.stop()
    folder = tarn.folder("b.meta")
    snapshot = os.path.join(folder, "snapshot/snapshot-1")
    with open(snapshot, "rb") as f:
        whole = f.read()
    with open(snapshot, "wb") as f:
        f.write(whole[:50])
    shutil.rmtree(os.path.join(tarn.data, "state"))
    tarn.start()
    one_line(tarn.tarn("scan", "b.meta", ok=False).error, "snapshot-1|b.meta")
    check(sum(tarn.scan("b.pk").values()) > 0, "other tables")
    with open(snapshot, "wb") as f:
        f.write(whole)
    wait_until("the repaired table", lambda: tarn.tarn("scan", "b.meta", ok=None).returncode == 0, 5)


# ---------------------------------------------------------------- disks and rights


def mounted(size):
    if os.geteuid() != 0:
        raise Skip("needs root to mount a tmpfs")
    where = lab.path("small")
    os.makedirs(where, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", where], capture_output=True).returncode:
        raise Skip("no tmpfs can be mounted here")
    return where


def full_disk():
    where = mounted("3m")
    d = lab.daemon("full", os.path.join(where, "wh"))
    try:
        os.makedirs(d.warehouse)
        d.start()
        d.tarn("db", "create", "f")
        d.tarn("table", "create", "f.t", "--columns", "id INT NOT NULL, v STRING", "--primary-key", "id")
        d.tarn("load", "f.t", lab.write("x.jsonl", '{"id": 1, "v": "one"}\n'))
        lab.write("big.jsonl", "".join(f'{{"id": {i}, "v": "{os.urandom(100).hex()}"}}\n' for i in range(40000)))
        unchanged(d, "f.t", lambda: one_line(d.tarn("load", "f.t", lab.path("big.jsonl"), ok=False).error, "full|space"))
        # to the last byte: commits fail, too, and work again when there is room
        filler = os.path.join(where, "filler")
        with open(filler, "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                pass
        one = lab.write("x.jsonl", '{"id": 2, "v": "two"}\n')
        unchanged(d, "f.t", lambda: one_line(d.tarn("load", "f.t", one, "--commit-user", "u", "--commit-id", 1, ok=False).error,
                                             "full|space"))
        one_line(d.tarn("table", "create", "f.new", "--columns", "id INT", ok=False).error, "full|space")
        os.unlink(filler)
        d.tarn("load", "f.t", one, "--commit-user", "u", "--commit-id", 1)
        equal(sum(d.scan("f.t").values()), 2, "rows when there was room again")
        d.tarn("table", "create", "f.new", "--columns", "id INT")
        d.stop()
    finally:
        if d.process is not None and d.process.poll() is None:
            d.kill9()
        subprocess.run(["umount", "-l", where], check=True)


def as_nobody():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("needs root and setpriv")
    return ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


def worker_for_nobody(prefix):
    """-> tarn-worker where that user may run it: itself, or a copy when the checkout lies in a home, as root's, that is closed."""
    program = os.path.join(BIN, "tarn-worker")
    if subprocess.run([*prefix, "sh", "-c", 'test -x "$0"', program]).returncode == 0:
        return program
    copy = lab.path("programs", "bin", "tarn-worker")
    os.makedirs(os.path.dirname(copy))
    shutil.copy(program, copy)
    shutil.copytree(os.path.join(BIN, "../lib"), lab.path("programs", "lib"))
    return copy


def refused_start(d, *words, prefix=(), **more):
    d.spawn(prefix=prefix, **more)
    try:
        d.process.wait(20)
    except subprocess.TimeoutExpired:
        d.kill9()
        check(False, f"it started: {d.said()[-300:]}")
    equal(d.process.returncode, 1, f"status ({d.said()[-500:]})")
    lines = [x for x in d.said().splitlines() if x.startswith("tarnd:")]
    check(len(lines) == 1 and d.said().splitlines()[-1] == lines[0], f"not one line at the end: {d.said()[-1000:]}")
    one_line(lines[0], *words)
    return lines[0]


def warehouse_without_rights():
    prefix = as_nobody()
    d = lab.daemon("rights", lab.path("closed-wh"), **{"worker.program": worker_for_nobody(prefix)})
    os.makedirs(d.data, exist_ok=True)
    os.makedirs(d.warehouse)
    os.chown(d.data, NOBODY, NOBODY)
    os.chmod(d.warehouse, 0o700)  # ours: not even to be looked at
    refused_start(d, "closed-wh", "denied|right", prefix=prefix)
    os.chmod(d.warehouse, 0o555)
    refused_start(d, r"closed-wh|\.tarn'", "denied|right", prefix=prefix)
    os.chown(d.warehouse, NOBODY, NOBODY)
    os.chmod(d.warehouse, 0o755)
    d.start(prefix=prefix)
    d.tarn("db", "create", "r")
    d.tarn("table", "create", "r.t", "--columns", "id INT")
    one = lab.write("x.jsonl", '{"id": 1}\n')
    d.tarn("load", "r.t", one)
    for part in ("snapshot", "manifest", "bucket-0"):
        folder = os.path.join(d.folder("r.t"), part)
        mode = os.stat(folder).st_mode
        os.chown(folder, 0, 0)
        os.chmod(folder, 0o555)
        unchanged(d, "r.t", lambda: one_line(d.tarn("load", "r.t", one, ok=False).error, "denied|permission|right"))
        os.chown(folder, NOBODY, NOBODY)
        os.chmod(folder, mode)
    one_path = data_files(d, "r.t")[0]
    os.chown(one_path, 0, 0)
    os.chmod(one_path, 0o000)
    one_line(d.tarn("scan", "r.t", ok=False).error, "denied|permission|right")
    os.chmod(one_path, 0o644)
    d.tarn("load", "r.t", one)
    equal(sum(d.scan("r.t").values()), 2, "rows")
    d.stop()
    os.chown(d.data, 0, 0)
    os.chmod(d.data, 0o700)
    refused_start(d, re.escape(os.path.basename(d.data)), prefix=prefix)


# ---------------------------------------------------------------- a second one


def second_daemon():
    same_data = lab.daemon("d", lab.path("other-wh"))
    same_data.log = lab.path("second.log")
    refused_start(same_data, "stop the daemon|another server.data_dir")
    same_warehouse = lab.daemon("second", tarn.warehouse)
    refused_start(same_warehouse, "warehouse", "stop the daemon|elsewhere")
    check(sum(tarn.scan("b.pk").values()) > 0, "the first goes on")


def port_in_use():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        address = "127.0.0.1:%d" % s.getsockname()[1]
        for key in ("server.grpc_listen", "server.http_listen"):
            refused_start(lab.daemon("port"), re.escape(address), **{key: address})
    d = lab.daemon("port").start()  # what failed left nothing that is in the way
    d.stop()


def no_standard_files():
    """What is opened first must not become standard output: results and log lines would go into it."""
    d = lab.daemon("bare", **{"worker.count": 0})
    d.start(workers=False, prefix=("sh", "-c", 'exec "$@" <&- >&-', "sh"))
    for fd in "01":
        equal(os.readlink(f"/proc/{d.process.pid}/fd/{fd}"), "/dev/null", f"descriptor {fd} of tarnd")
    d.stop()
    client = [os.path.join(os.path.dirname(tarn.command()[0]), "tarn"), "--server", tarn.address]
    for how, words in ((">&-", ["scan", "b.pk"]), ("<&-", ["load", "b.pk", "-", "--format", "jsonl"])):
        got = subprocess.run(["sh", "-c", f'exec "$@" {how}', "sh", *client, *words], capture_output=True, timeout=60)
        equal(got.returncode, 1, f"status of {words[0]}")
        one_line(got.stderr.decode().strip(), "Bad file descriptor")


def bad_configuration():
    d = lab.daemon("conf")
    refused_start(d, "compaction.auto", **{"compaction.atuo": "true"})
    refused_start(d, "worker.count", **{"worker.count": "many"})
    refused_start(d, "credentials", **{"warehouse.uri": "s3://bucket/wh"})
    refused_start(d, "relative|absolute|file", **{"warehouse.uri": "file://relative/wh"})
    refused_start(d, "loopback|insecure|auth", **{"server.grpc_listen": "0.0.0.0:0"})
    refused_start(d, "listen|address|port", **{"server.grpc_listen": "127.0.0.1:99999"})


def nobody_there():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        gone = "127.0.0.1:%d" % s.getsockname()[1]
    got = subprocess.run([os.path.join(os.path.dirname(tarn.command()[0]), "tarn"), "--server", gone, "db", "list"],
                         capture_output=True, timeout=60)
    equal(got.returncode, 1, "status")
    one_line(got.stderr.decode().strip(), re.escape(gone))


# ---------------------------------------------------------------- bad input

CSV = {
    "no number": ("id,v\n1,a\nx,b\n", ["in.csv", "3", "id"]),
    "past the type": ("id,v\n99999999999,a\n", ["2", "id"]),
    "unknown column": ("id,w\n1,a\n", ["w"]),
    "a name twice": ("id,v,v\n1,a,b\n", ["v"]),
    "a null key": ("id,v\n,a\n", ["id"]),
    "a cell too many": ("id,v\n1,a,b\n", ["2"]),
    "a cell too few": ("id,v,d\n1,a\n", ["2"]),
    "an open quote": ('id,v\n1,"a\n', []),
    "no UTF-8": (b"id,v\n1,\xff\xfe\n", []),
    "a decimal too long": ("id,d\n1,123456789.12\n", ["d"]),
    "no date": ("id,dt\n1,2026-02-30\n", ["dt"]),
    "no header": ("", []),
    "only a header without the key": ("v\na\n", ["id"]),
}
JSONL = {
    "no JSON": ('{"id": 1}\n{"id": \n', ["2"]),
    "an array": ("[1, 2]\n", ["1"]),
    "a text for a number": ('{"id": "x"}\n', ["id"]),
    "a fraction for a whole number": ('{"id": 1.5}\n', ["id"]),
    "unknown member": ('{"id": 1, "nope": 2}\n', ["nope"]),
    "a member twice": ('{"id": 1, "id": 2}\n', ["id"]),
    "too deep": ('{"id": 1, "v": ' + "[" * 100000 + "]" * 100000 + "}\n", []),
    "NUL": (b'{"id": 1, "v": "\x00"}\n', []),
    "no object": ("null\n", ["1"]),
    "a huge number": ('{"id": 1' + "0" * 5000 + "}\n", []),
}


def bad_text(form, cases):
    for what, (text, words) in cases.items():
        path = lab.write(f"in.{form}", text)
        try:
            unchanged(tarn, "b.pk", lambda: one_line(tarn.tarn("load", "b.pk", path, ok=False).error, *words))
        except Exception as e:
            raise type(e)(f"{what}: {e}") from e


def bad_binary():
    for what, data in {"empty": b"", "garbage": os.urandom(5000), "a tail": b"PAR1" + bytes(100) + b"PAR1",
                       "a huge footer": b"PAR1" + bytes(16) + b"\xff\xff\xff\x7fPAR1"}.items():
        for form in ("parquet", "arrow"):
            path = lab.write(f"in.{form}", data)
            try:
                unchanged(tarn, "b.pk", lambda: one_line(tarn.tarn("load", "b.pk", path, ok=False).error))  # noqa: B023
            except Exception as e:
                raise type(e)(f"{what} as {form}: {e}") from e
    check(tarn.process.poll() is None, "the daemon died")


def absurd_sizes():
    wide = ",".join(f"c{i}" for i in range(200000))
    for name, text in {"a.jsonl": '{"id": 1, "v": "' + "x" * 150000000 + '"}\n', "b.csv": 'id,v\n1,"' + "x" * 150000000 + '"\n',
                       "c.csv": wide + "\n" + wide + "\n"}.items():
        path = lab.write(name, text)
        try:
            unchanged(tarn, "b.pk", lambda: one_line(tarn.tarn("load", "b.pk", path, ok=False).error, name))  # noqa: B023
        except Exception as e:
            raise type(e)(f"{name}: {e}") from e
        os.unlink(path)
    check(tarn.process.poll() is None, "the daemon died")


def bad_words():
    good = lab.write("good.csv", "id,v\n1,a\n")
    for words, says in [
        (["load", "b.nope", good], ["b.nope"]), (["load", "nope.pk", good], ["nope"]), (["load", "b.pk", lab.path("missing.csv")], ["missing.csv"]),
        (["load", "b.pk", lab.dir], []), (["load", "b.pk", good, "--mode", "overwrites"], ["overwrite"]),
        (["load", "b.pk", good, "--format", "orc"], ["orc"]), (["scan", "b.pk", "--where", "id ="], []),
        (["scan", "b.pk", "--where", "nope = 1"], ["nope"]), (["scan", "b.pk", "--where", "id = 'x'"], ["x"]),
        (["scan", "b.pk", "--columns", "id,nope"], ["nope"]), (["scan", "b.pk", "--snapshot", "999"], ["999"]),
        (["scan", "b.pk", "--where", "(" * 50000], []), (["table", "create", "b.pk", "--columns", "id INT"], ["b.pk"]),
        (["table", "create", "b.x", "--columns", "id NOTYPE"], ["NOTYPE"]), (["table", "create", "b.x", "--columns", "id INT, id INT"], ["id"]),
        (["table", "create", "b.x", "--columns", "id INT", "--primary-key", "nope"], ["nope"]),
        (["table", "create", "b.x", "--columns", "id INT", "--option", "bucket=-7"], ["bucket"]),
        (["table", "create", "b.x", "--columns", "id DECIMAL(99, 2)"], ["DECIMAL|precision"]),
        (["table", "create", "b.x", "--columns", "v " + "ARRAY<" * 5000 + "INT" + ">" * 5000], []),
        (["table", "create", "b.../x", "--columns", "id INT"], []), (["db", "create", "../x"], []), (["db", "create", "b"], ["b"]),
        (["db", "drop", "b"], ["cascade|tables"]), (["table", "drop", "b.nope"], ["b.nope"]), (["db", "create", "x" * 5000], []),
        (["table", "create", "b.merge", "--columns", "id INT NOT NULL", "--primary-key", "id", "--option", "sequence.snapshot-ordering=true"], None),
    ]:
        got = tarn.tarn(*words, ok=None)
        text = " ".join(words)[:100]
        if says is None:  # allowed or refused; writing it is refused below
            continue
        check(got.returncode == (2 if "--help" in got.error else 1), f"{text}: status {got.returncode}: {got.error[:300]}")
        check(got.error and "\n" not in got.error and len(got.error) < 2000, f"{text}: not one short line: {got.error[:300]!r}")
        for w in says:
            check(re.search(w, got.error, re.I), f"{text}: no {w!r} in {got.error[:300]}")
    if "merge" in {t["table"] for t in tarn.json("table", "list", "b")}:
        one_line(tarn.tarn("load", "b.merge", good, ok=False).error, "sequence.snapshot-ordering")
    check({t["table"] for t in tarn.json("table", "list", "b")} & {"x"} == set(), "a table that was refused is there")
    check(tarn.process.poll() is None, "the daemon died")


def skipped_rows():
    path = lab.write("in.csv", "id,v\n1,a\nx,b\n900001,c\n,d\n900002,e\n")
    unchanged(tarn, "b.pk", lambda: tarn.tarn("load", "b.pk", path, "--skip-bad", 1, ok=False))
    before = sum(tarn.scan("b.pk").values())
    got = tarn.tarn("load", "b.pk", path, "--skip-bad", 2, "-o", "json")
    check("3" in got.error + got.stdout.decode() and "5" in got.error + got.stdout.decode(), "the bad lines are named")
    equal(sum(tarn.scan("b.pk").values()), before + 2, "rows (one of the three was there)")


def main():
    with lab.case("start, and tables"):
        tarn.start()
        tarn.tarn("db", "create", "b")
        tarn.tarn("table", "create", "b.pk", "--columns", "id INT NOT NULL, v STRING, d DECIMAL(9, 2), dt DATE", "--primary-key", "id")
        tarn.tarn("load", "b.pk", lab.write("x.jsonl", "".join(f'{{"id": {i}, "v": "{i}"}}\n' for i in range(100))))
        tarn.tarn("table", "create", "b.big", "--columns", "id INT NOT NULL, v STRING", "--primary-key", "id")
        for c in range(3):
            tarn.tarn("load", "b.big", lab.write("x.jsonl", "".join(f'{{"id": {i}, "v": "{c} {i * 7919} {"x" * 400}"}}\n' for i in range(100000))))
    lab.run("worker killed while loading", killed_while_loading)
    lab.run("worker killed while scanning", killed_while_scanning)
    lab.run("worker killed while compacting", killed_while_compacting)
    lab.run("renamed while loading", renamed_while_loading)
    lab.run("gone while compacting", gone_while_compacting)
    lab.run("silent worker", silent_worker)
    lab.run("no worker", no_worker)
    lab.run("broken data files", broken_data_file)
    lab.run("broken snapshot file", broken_metadata)
    lab.run("full disk", full_disk)
    lab.run("missing rights", warehouse_without_rights)
    lab.run("a second daemon", second_daemon)
    lab.run("port in use", port_in_use)
    lab.run("no standard files", no_standard_files)
    lab.run("bad configuration", bad_configuration)
    lab.run("no daemon", nobody_there)
    lab.run("bad CSV", bad_text, "csv", CSV)
    lab.run("bad JSON lines", bad_text, "jsonl", JSONL)
    lab.run("bad Parquet and Arrow", bad_binary)
    lab.run("absurd sizes", absurd_sizes)
    lab.run("bad words", bad_words)
    lab.run("bad rows skipped", skipped_rows)
    lab.run("SIGTERM", tarn.stop)
    return lab.done()


sys.exit(main())
