#!/usr/bin/env python3
"""Promise: 200 connections with mixed calls (reads, lists, alterations, commits, tables that come and go, errors, clients that break) for as long
as one likes cost the daemon no memory, no descriptors and no threads that stay; each answer is right, and each commit that was acknowledged is in
the history once. LOAD_SECONDS=30 rest_load.py: so long; else ten minutes with TARN_EFFORT of 10 or more, and some seconds without.
"""
import collections
import gzip
import http.client
import json
import os
import random
import re
import socket
import statistics
import struct
import sys
import threading
import time
import urllib.request
import uuid

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, check, equal, wait_until  # noqa: E402

SECONDS = float(os.environ.get("LOAD_SECONDS") or (600 if int(os.environ.get("TARN_EFFORT") or 1) >= 10 else 10))
CONNECTIONS = 200
TABLES = 8  # that are read and committed to
GROWTH_MAX = 256 << 10  # bytes of heap, in three quarters of the time: with ten minutes 5 a turn
PAUSE_S = 0.05  # between two calls of a connection: memory is to be seen, not how fast it goes
TOKEN = "sesame-open-0123456789"
COLUMNS = [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}] + [{"id": i, "name": f"column_{i}", "type": "STRING"} for i in range(1, 20)]
SCHEMA = {"fields": COLUMNS, "partitionKeys": [], "primaryKeys": ["id"], "options": {"bucket": "1"}, "comment": None}
DATABASE = "/v1/tarn/databases/db"

lab = Lab("load")
tokens = lab.write("tokens", f"me:{TOKEN}\n")
os.chmod(tokens, 0o600)
os.environ["TARN_TOKEN"] = TOKEN
tarnd = lab.daemon("d", **{"auth.mode": "token", "auth.token_file": tokens, "commit.foreign_check": "1 s", "worker.count": 1})
# What threads keep for their next malloc counts as given out; without that, what is given out is what somebody holds.
tarnd.start(env={"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"})
PID = tarnd.process.pid


class Wrong(Exception):
    pass


class Client:
    """One connection that is kept, and made again where the daemon, or this client itself, has closed it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.connection = None

    def ask(self, method, path, body=None, token=TOKEN, headers=None, want=(200,)):
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", **(headers or {})}
        if self.connection is None:
            host, port = tarnd.http.split(":")
            self.connection = http.client.HTTPConnection(host, int(port), timeout=60)
        self.connection.request(method, path, data, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.headers.get("connection") == "close":
            self.close()
        if answer.status not in want:
            raise Wrong(f"{method} {path} is {answer.status}, want {want}: {text[:300]}")
        if answer.headers.get("content-encoding") == "gzip":
            text = gzip.decompress(text)
        return answer.status, json.loads(text) if text.startswith(b"{") else text

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def raw(self):
        host, port = tarnd.http.split(":")
        return socket.create_connection((host, int(port)), timeout=60)


# ---------------------------------------------------------------- what clients do


def get_table(c):
    name = f"t{c.random.randrange(TABLES)}"
    table = c.ask("GET", f"{DATABASE}/tables/{name}", headers={"Accept-Encoding": "gzip"} if c.random.random() < 0.5 else None)[1]
    if table["name"] != name or table["schema"]["fields"] != COLUMNS:
        raise Wrong(f"another table than {name}: {str(table)[:200]}")


def load_snapshot(c):
    got = c.ask("GET", f"{DATABASE}/tables/t{c.random.randrange(TABLES)}/snapshot")[1]["snapshot"]
    if got["recordCount"] != 1 or got["snapshot"]["totalRecordCount"] != 1:
        raise Wrong(f"sums: {str(got)[:300]}")


def list_tables(c):
    token, names = "", []
    while token is not None:
        page = c.ask("GET", f"{DATABASE}/tables?maxResults=5&pageToken={token}")[1]
        names += page["tables"]
        token = page["nextPageToken"]
    if names != sorted(set(names)) or not {f"t{i}" for i in range(TABLES)} <= set(names):
        raise Wrong(f"list: {names}")


def list_details(c):
    details = c.ask("GET", f"{DATABASE}/table-details?tableNamePattern=t%25", headers={"Accept-Encoding": "gzip"})[1]["tableDetails"]
    if not {f"t{i}" for i in range(TABLES)} <= {d["name"] for d in details}:
        raise Wrong("details: a table is missing")


def list_others(c):
    c.ask("GET", "/v1/config?warehouse=tarn")
    c.ask("GET", "/v1/tarn/databases")
    c.ask("GET", f"{DATABASE}/tables/t0/partitions")
    c.ask("GET", f"{DATABASE}/tables/t0/snapshots?maxResults=10")
    c.ask("GET", f"{DATABASE}/tables/t0/tags")


def alter(c):
    """What was altered shows in the next answer. Each has one table of those that are altered for itself, as long as it does this."""
    with c.altered.pop_lock:
        if not c.altered.free:
            return
        i = c.altered.free.pop()
    try:
        value = str(c.random.randrange(1 << 60))
        c.ask("POST", f"{DATABASE}/tables/a{i}", {"changes": [{"action": "setOption", "key": "v", "value": value}]})
        got = c.ask("GET", f"{DATABASE}/tables/a{i}")[1]["schema"]["options"].get("v")
        if got != value:
            raise Wrong(f"stale: v = {value} was set, {got} is shown")
    finally:
        with c.altered.pop_lock:
            c.altered.free.append(i)


def commit(c):
    """A snapshot of nothing on top of the latest one: no manifest has to be written for it."""
    name = f"t{c.random.randrange(TABLES)}"
    table = c.ask("GET", f"{DATABASE}/tables/{name}")[1]
    base = c.ask("GET", f"{DATABASE}/tables/{name}/snapshot")[1]["snapshot"]["snapshot"]
    live, nothing = LISTS[name]
    snapshot = {**base, "id": base["id"] + 1, "uuid": str(uuid.uuid4()), "baseManifestList": live, "deltaManifestList": nothing, "commitUser": f"load-{uuid.uuid4()}",
                "commitIdentifier": 9223372036854775807, "commitKind": "APPEND", "timeMillis": int(time.time() * 1000), "deltaRecordCount": 0}
    for key in ("baseManifestListSize", "deltaManifestListSize", "properties", "changelogManifestList", "changelogRecordCount"):
        snapshot.pop(key, None)
    body = {"tableId": table["id"], "snapshot": snapshot, "statistics": []}
    got = c.ask("POST", f"{DATABASE}/tables/{name}/commit", body)[1]
    if got["success"] and c.random.random() < 0.2:  # sent again, it is known
        if not c.ask("POST", f"{DATABASE}/tables/{name}/commit", body)[1]["success"]:
            raise Wrong("a commit that landed isn't known any more")
    if got["success"]:
        c.landed[name].append((snapshot["id"], snapshot["uuid"]))


def come_and_go(c):
    name = f"x{c.random.randrange(1 << 40)}"
    identifier = {"database": "db", "object": name}
    c.ask("POST", f"{DATABASE}/tables", {"identifier": identifier, "schema": SCHEMA})
    c.ask("POST", f"{DATABASE}/tables", {"identifier": identifier, "schema": SCHEMA}, want=(409,))
    c.ask("POST", "/v1/tarn/tables/rename", {"source": identifier, "destination": {"database": "db", "object": name + "y"}})
    c.ask("GET", f"{DATABASE}/tables/{name}", want=(404,))
    c.ask("GET", f"{DATABASE}/tables/{name}y")
    c.ask("DELETE", f"{DATABASE}/tables/{name}y")
    c.ask("GET", f"{DATABASE}/tables/{name}y", want=(404,))


def errors(c):
    c.ask("GET", f"{DATABASE}/tables/nope", want=(404,))
    c.ask("GET", f"{DATABASE}/tables/t0/snapshots/99999999", want=(404,))
    c.ask("POST", f"{DATABASE}/tables", b'{"identifier":', want=(400,))
    c.ask("POST", f"{DATABASE}/tables", b"[" * 100, want=(400,))
    c.ask("POST", f"{DATABASE}/tables/t0", {"changes": [{"action": "dropColumn", "fieldNames": ["nope"]}]}, want=(404,))
    c.ask("GET", f"{DATABASE}/tables/t0", token="x", want=(401,))
    c.ask("GET", "/v1/tarn/nope", want=(501,))
    c.ask("GET", "/" + "x" * 9000, want=(414,))
    c.ask("POST", f"{DATABASE}/tables/t0/commit", gzip.compress(bytes(20 << 20), 1), headers={"Content-Encoding": "gzip"}, want=(400,))


HEAD = f"POST {DATABASE}/tables HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n".encode()


def break_off(c):
    """Half a request, or no taking of the answer, and then gone, in one of several ways."""
    s = c.raw()
    try:
        s.sendall(c.random.choice([
            b"", b"GET /v1/con", HEAD, HEAD + b"Content-Length: 100000\r\n\r\n" + b"x" * c.random.randrange(100000), HEAD + b"Transfer-Encoding: chunked\r\n\r\nff\r\nx",
            b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/1.1\nHost: x\n\n", HEAD.replace(b"POST", b"GET") + b"\r\n",
            HEAD.replace(b"POST", b"GET").replace(b"tables", b"table-details") * 1 + b"\r\n" + HEAD.replace(b"POST", b"GET") * 3]))
        how = c.random.randrange(4)
        if how == 0:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        elif how == 1:
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
        elif how == 2:
            time.sleep(c.random.random())
    except ConnectionError:
        pass  # what is no HTTP may be answered with a reset while it is still being sent
    finally:
        s.close()


def send_ahead(c):
    s = c.raw()
    request = f"GET {DATABASE}/tables/t1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    s.sendall((request + b"\r\n") * 19 + request + b"Connection: close\r\n\r\n")
    got = b""
    while piece := s.recv(1 << 20):
        got += piece
    s.close()
    if got.count(b"HTTP/1.1 200 OK\r\n") != 20:
        raise Wrong(f"of 20 that were sent ahead {got.count(b'HTTP/1.1 200 OK')} were answered")


CALLS = [(get_table, 30), (load_snapshot, 25), (list_tables, 5), (list_details, 3), (list_others, 5), (alter, 2), (commit, 6), (come_and_go, 1), (errors, 8),
         (break_off, 10), (send_ahead, 5)]


# ---------------------------------------------------------------- how the daemon is


def status(name):
    with open(f"/proc/{PID}/status", encoding="ascii") as f:
        return int(re.search(rf"^{name}:\s+(\d+)", f.read(), re.M).group(1))


def descriptors():
    """{what they are: how many}"""
    kinds = collections.Counter()
    for fd in os.listdir(f"/proc/{PID}/fd"):
        try:
            target = os.readlink(f"/proc/{PID}/fd/{fd}")
        except OSError:
            continue
        kinds["state" if "/state/" in target else re.sub(r"\d+", "N", target)] += 1
    return kinds


class Altered:
    def __init__(self):
        self.pop_lock = threading.Lock()
        self.free = list(range(4))


LISTS = {}  # table -> (the list of all that is live, an empty one)


def make_tables():
    c = Client(0)
    c.ask("POST", "/v1/tarn/databases", {"name": "db"})
    row = lab.write("row.jsonl", '{"id": 1}\n')
    for name in [f"t{i}" for i in range(TABLES)] + [f"a{i}" for i in range(4)]:
        c.ask("POST", f"{DATABASE}/tables", {"identifier": {"database": "db", "object": name}, "schema": SCHEMA})
        if name[0] == "t":
            tarnd.tarn("load", f"db.{name}", row)
            first = c.ask("GET", f"{DATABASE}/tables/{name}/snapshot")[1]["snapshot"]["snapshot"]
            LISTS[name] = first["deltaManifestList"], first["baseManifestList"]
    c.close()


class Load:
    def __init__(self):
        self.counts, self.wrong, self.landed = collections.Counter(), [], {f"t{i}": [] for i in range(TABLES)}
        self.lock, self.is_over, self.altered = threading.Lock(), threading.Event(), Altered()

    def run(self, seed):
        c = Client(seed)
        c.altered, c.landed = self.altered, {name: [] for name in self.landed}
        counts, functions, weights = collections.Counter(), *zip(*CALLS)
        while not self.is_over.is_set():
            call = c.random.choices(functions, weights)[0]
            try:
                call(c)
            except Exception as e:  # a connection that breaks is wrong, too
                with self.lock:
                    self.wrong.append(f"{call.__name__}: {type(e).__name__}: {e}")
                c.close()
            counts[call.__name__] += 1
            self.is_over.wait(PAUSE_S * c.random.random() * 2)
        c.close()
        with self.lock:
            self.counts += counts
            for name, landed in c.landed.items():
                self.landed[name] += landed


def keep_log_small():
    if os.path.getsize(tarnd.log) > 256 << 20:  # it is written by appending
        os.truncate(tarnd.log, 0)


def held():
    """Bytes of the heap that somebody holds while nothing is asked, and of them those that are bounded: write buffers, caches."""
    def once():
        text = urllib.request.urlopen(f"http://{tarnd.http}/metrics", timeout=60).read().decode()
        of = {name: int(float(value)) for name, value in re.findall(r'^tarn_memory_bytes\{of="(\w+)"\} (\S+)$', text, re.M)}
        bounded = of["pages"] + of["state_buffers"] + of["state_cache"]
        return of["heap_used"] - bounded, bounded
    wait_until("the load's connections are closed", lambda: descriptors()["socket:[N]"] <= before["socket:[N]"], 30)
    looks = []
    for _ in range(20):  # what is on its way ends meanwhile
        looks.append(once())
        time.sleep(0.1)
    return min(looks)


def sample(load, seconds):
    """[(resident kB, threads)] each second."""
    samples, end = [], time.monotonic() + seconds
    while time.monotonic() < end and len(load.wrong) < 100:
        time.sleep(1)
        check(tarnd.process.poll() is None, f"tarnd ended: {tarnd.said()[-1000:]}")
        samples.append((status("VmRSS"), status("Threads")))
        keep_log_small()
    return samples


load = Load()
samples, quiet = [], []


def all_answers_are_right(seconds):
    load.is_over.clear()
    threads = [threading.Thread(target=load.run, args=(len(samples) * CONNECTIONS + seed + 1,)) for seed in range(CONNECTIONS)]
    for t in threads:
        t.start()
    try:
        samples.extend(sample(load, seconds))
    finally:
        load.is_over.set()
        for t in threads:
            t.join()
    print(f"{sum(load.counts.values())} turns: " + ", ".join(f"{name} {n}" for name, n in load.counts.most_common()), flush=True)
    check(not load.wrong, f"{len(load.wrong)} were wrong: " + "; ".join(load.wrong[:5]))
    quiet.append(held())
    for call, _ in CALLS:
        check(load.counts[call.__name__] > 0, f"nobody did {call.__name__}")


def commits_are_there_once():
    c = Client(0)
    count = 0
    for name, landed in load.landed.items():
        ids = [i for i, _ in landed]
        equal(len(ids), len(set(ids)), f"{name}: two commits were told the same snapshot")
        newest = c.ask("GET", f"{DATABASE}/tables/{name}/snapshot")[1]["snapshot"]["snapshot"]["id"]
        equal(sorted(ids), list(range(2, newest + 1)), f"{name}: snapshots and acknowledged commits")
        for i, snapshot_uuid in c.random.sample(landed, min(20, len(landed))):
            equal(c.ask("GET", f"{DATABASE}/tables/{name}/snapshots/{i}")[1]["snapshot"]["uuid"], snapshot_uuid, f"{name}: snapshot {i}")
        count += len(landed)
    c.close()
    check(count > 0, "nothing was committed")
    print(f"{count} commits", flush=True)


def memory_is_flat():
    """What is held is the same at the end as after a quarter of the time. Resident memory isn't that: malloc keeps what was given back to it, in pieces."""
    quarter = len(samples) // 4
    early, late = (statistics.median(s[0] for s in part) for part in (samples[quarter : 2 * quarter], samples[-quarter:]))
    print(f"resident: {samples[0][0] >> 10} MiB at first, median of the second quarter {early / 1024:.1f}, of the last {late / 1024:.1f}, most {max(s[0] for s in samples) >> 10} MiB", flush=True)
    (held_early, bounded_early), (held_late, bounded_late) = quiet
    print(f"held between: {held_early >> 10} and {held_late >> 10} kB; in bounded buffers and caches {bounded_early >> 10} and {bounded_late >> 10}", flush=True)
    check(held_late < held_early + GROWTH_MAX, f"held grew from {held_early} to {held_late} bytes")
    check(late < early + (48 << 10), f"resident grew from {early} to {late} kB, more than buffers and caches may")


def nothing_is_left_open():
    end = time.monotonic() + 30
    # connections are closed, and spare files given back, a little later
    while (after := descriptors()) and any(n > before[kind] for kind, n in after.items() if kind != "state") and time.monotonic() < end:
        time.sleep(0.1)
    print(f"descriptors before {dict(before)}, after {dict(after)}", flush=True)
    for kind, count in after.items():
        if kind != "state":  # RocksDB's tables
            check(count <= before[kind], f"{count} of {kind}, {before[kind]} before")
    quarter = len(samples) // 4
    early, late = (max(s[1] for s in part) for part in (samples[quarter : 2 * quarter], samples[-quarter:]))
    print(f"threads: at most {early} in the second quarter, {late} in the last", flush=True)
    check(late <= CONNECTIONS + 50, f"{late} threads for {CONNECTIONS} connections")  # who waits has one
    check(len(samples) < 100 or late <= early + CONNECTIONS / 8, f"threads grew from {early} to {late}")


make_tables()  # the daemon has met its worker then
before = descriptors()
for part in (SECONDS / 4, SECONDS * 3 / 4):
    lab.run(f"{CONNECTIONS} connections for {part:.1f} s are answered rightly", all_answers_are_right, part)
lab.run("commits are there once", commits_are_there_once)
lab.run("memory is flat", memory_is_flat)
lab.run("nothing is left open", nothing_is_left_open)
with lab.case("it ends when it is told to"):
    tarnd.stop()
sys.exit(lab.done())
