"""What crash and interop scripts share: a daemon under test, the command line client, cases and counts, and rows as
values that can be compared. Only the standard library. Not a test of its own.

  lab = Lab("name")                       a scratch folder, removed at the end unless TARN_KEEP is set
  d = lab.daemon(); d.start(); d.tarn("db", "create", "x"); d.kill9(); d.start(); d.stop()
  with lab.case("what must hold"): ...    an exception in it is a failure of that name; Skip(why) skips
  sys.exit(lab.done())                    the counts; stops all that was started
"""
import atexit
import base64
import collections
import contextlib
import decimal
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("TARN_BIN", os.path.join(ROOT, "build/bin"))
SHARED = os.environ.get("TARN_SHARED", os.path.join(ROOT, "../shared"))
START_WAIT_S = float(os.environ.get("TARN_START_WAIT", 30))
CALL_WAIT_S = 120


class Skip(Exception):
    pass


class Failed(Exception):
    pass


def check(true, message):
    if not true:
        raise Failed(message)


def equal(got, want, what):
    if got != want:
        raise Failed(f"{what}: got {got!r}, want {want!r}")


def free_port(n=1):
    """The first of n that are free beside one another."""
    while True:
        with socket.socket() as first:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                for i in range(1, n):
                    with socket.socket() as s:
                        s.bind(("127.0.0.1", port + i))
                return port
            except OSError:
                continue


# ---------------------------------------------------------------- the daemon


def children(pid):
    """Pids of a process' children, by /proc."""
    out = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as f:
                    stat = f.read()
            except OSError:
                continue
            state, parent = stat.rpartition(")")[2].split()[:2]
            if int(parent) == pid and state != "Z":
                out.append(int(entry))
    return out


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def kill(pid, sig=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, sig)


def wait_until(what, test, seconds=20, every=0.05):
    end = time.monotonic() + seconds
    while True:
        got = test()
        if got:
            return got
        if time.monotonic() > end:
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(every)


REPORT = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:|assertion|Assertion")


class Daemon:
    """tarnd over a data directory and a warehouse. Ports are free ones, anew at each start."""

    def __init__(self, lab, data, warehouse=None, **settings):
        self.lab, self.data = lab, data
        self.warehouse = warehouse or os.path.join(data, "warehouse")
        self.settings = {"worker.count": 1, "commit.foreign_check": "0 ms", "compaction.auto": "false", **settings}
        self.process, self.address, self.http = None, None, None
        self.starts, self.orphans = 0, []
        self.log = data.rstrip("/") + ".log"

    def command(self, **more):
        args = [os.path.join(BIN, "tarnd")]
        values = {"server.data_dir": self.data, "server.grpc_listen": "127.0.0.1:0",
                  "server.http_listen": "127.0.0.1:0", "warehouse.uri": "file://" + self.warehouse,
                  **self.settings, **more}
        for key, val in values.items():
            args += ["--set", f"{key}={val}"]
        return args

    def spawn(self, env=None, prefix=(), **more):
        """Starts it without waiting: what it logs goes to the log file."""
        os.makedirs(self.data, exist_ok=True)
        self.starts += 1
        self.log_from = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*prefix, *self.command(**more)], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env={**os.environ, **(env or {})}, cwd=self.lab.dir)
        self.lab.started.append(self)

    def start(self, env=None, prefix=(), workers=True, **more):
        self.spawn(env, prefix, **more)
        end = time.monotonic() + START_WAIT_S
        while True:
            ready = re.search(r"server\.ready.*", self.said())
            if ready:
                break
            if self.process.poll() is not None:
                raise Failed(f"tarnd ended with {self.process.returncode}: {self.said()[-2000:]}")
            if time.monotonic() > end:
                raise Failed(f"tarnd is not ready after {START_WAIT_S} s: {self.said()[-2000:]}")
            time.sleep(0.02)
        found = re.findall(r"[0-9.]+:\d+", ready.group())
        self.address, self.http = found[0], found[1] if len(found) > 1 else None
        if workers and int(self.settings.get("worker.count", 1)) > 0 and more.get("worker.count") != 0:
            wait_until("a worker registers", self.workers_registered, START_WAIT_S)
        return self

    def workers_registered(self):
        got = self.tarn("status", "-o", "json", ok=None)
        return got.returncode == 0 and len(json.loads(got.stdout).get("workers", [])) > 0

    def said(self):
        """What the present process has logged."""
        with open(self.log, "rb") as f:
            f.seek(self.log_from)
            return f.read().decode("utf-8", "replace")

    def reports(self):
        """What sanitizers and assertions said, of it and its workers."""
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8", errors="replace") as f:  # line by line: one of 9 kB is searched from each of its bytes
            return [line.rstrip("\n") for line in f if REPORT.search(line)]

    def workers(self):
        return children(self.process.pid)

    def stop(self):
        """SIGTERM; it must drain and end by itself."""
        if self.process is None or self.process.poll() is not None:
            return
        workers = self.workers()
        self.process.terminate()
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failed("tarnd did not end within 60 s of SIGTERM") from None
        self.gone(workers)
        check(status == 0, f"tarnd ended with {status} after SIGTERM: {self.said()[-500:]}")

    def kill9(self):
        workers = self.workers()
        self.process.kill()
        self.process.wait()
        self.gone(workers)

    def gone(self, workers):
        """Workers must not outlive their daemon; those that do are named at the end of the script."""
        end = time.monotonic() + 10
        while any(alive(w) for w in workers) and time.monotonic() < end:
            time.sleep(0.02)
        for w in workers:
            if alive(w):
                self.orphans.append(w)
                kill(w)

    def tarn(self, *args, ok=True, stdin=None, timeout=CALL_WAIT_S, env=None):
        """Runs the client; ok True: it must succeed; False: it must fail with status 1 and one line; None: whatever."""
        got = subprocess.run([os.path.join(BIN, "tarn"), "--server", self.address, *map(str, args)],
                             input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, cwd=self.lab.dir,
                             env={**os.environ, "TARN_SERVER": self.address, **(env or {})})
        said = got.stderr.decode("utf-8", "replace").strip()
        if got.returncode != 0:
            said = error_line(said)
        if ok and got.returncode != 0:
            raise Failed(f"tarn {' '.join(map(str, args))}: status {got.returncode}: {said[-1500:]}")
        if ok is False:
            check(got.returncode == 1, f"tarn {' '.join(map(str, args))}: status {got.returncode}, want 1: {said[-500:]}")
            check(said and "\n" not in said, f"tarn {' '.join(map(str, args))}: not one line: {said!r}")
        got.error = said
        return got

    def popen(self, *args, **kw):
        return subprocess.Popen([os.path.join(BIN, "tarn"), "--server", self.address, *map(str, args)],
                                cwd=self.lab.dir, **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                                                     "stderr": subprocess.PIPE, **kw})

    def json(self, *args, **kw):
        out = self.tarn(*args, "-o", "json", **kw).stdout
        return json.loads(out, parse_float=decimal.Decimal) if out.strip() else None

    def lines(self, *args, **kw):
        return [json.loads(x) for x in self.tarn(*args, "-o", "jsonl", **kw).stdout.splitlines() if x.strip()]

    def rest(self, method, path, body=None, token=None, headers=None):
        """Calls the REST catalog. path: behind /v1; body: text, or what becomes JSON; -> status, JSON or text."""
        data = None if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{self.http}/v1{path}", method=method, data=data, headers=headers or {})
        if token:
            request.add_header("Authorization", "Bearer " + token)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            status, text = e.code, e.read().decode()
        return status, json.loads(text) if text.startswith("{") else text

    def scan(self, table, *args, types=None):
        """Rows as plain values, in no order: a Counter. types: as types_of() gives; else read from the schema file."""
        out = self.tarn("scan", table, "-o", "jsonl", *args).stdout.decode("utf-8")
        return rows_of(out, types or types_of(self.folder(table)), strict=True)

    def folder(self, table):
        db, name = table.split(".", 1)
        return os.path.join(self.warehouse, db + ".db", name)


class Watch:
    """`tarn watch` of a table, which goes on beside."""

    def __init__(self, daemon, table, *args):
        self.path = daemon.lab.path(f"watch-{time.monotonic_ns()}")
        with open(self.path, "wb") as out, open(self.path + ".err", "wb") as err:
            self.process = daemon.popen("watch", table, "-o", "jsonl", *args, stdout=out, stderr=err)

    def lines(self):
        """What it has said so far."""
        with open(self.path, encoding="utf-8") as f:
            return [json.loads(line) for line in f if line.endswith("\n")]

    def error(self):
        with open(self.path + ".err", encoding="utf-8") as f:
            return f.read().strip()

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        equal(self.process.wait(20), 0, "the status after Ctrl-C")

    def ended(self):
        """Its status."""
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failed(f"watch did not end; it said {self.error()!r}") from None


PROGRESS = re.compile(r"tarn: (load|scan|compact|infer): [0-9.]")


def error_line(said):
    """What a program said when it failed, without its progress: must be one line."""
    return "\n".join(line for line in said.splitlines() if not PROGRESS.match(line))


# ---------------------------------------------------------------- cases


class Lab:
    def __init__(self, name):
        self.name = name
        self.dir = tempfile.mkdtemp(prefix=f"tarn-{name}-")
        os.chmod(self.dir, 0o755)
        self.started, self.passed, self.failed, self.skipped = [], 0, 0, 0
        self.peers = []
        self.only = sys.argv[1:]
        self.began = time.monotonic()
        atexit.register(self.end_all)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(self.done() or 1))

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def daemon(self, name="d", warehouse=None, **settings):
        return Daemon(self, self.path(name), warehouse, **settings)

    @contextlib.contextmanager
    def case(self, name):
        start = time.monotonic()
        try:
            yield
        except Skip as e:
            self.skipped += 1
            print(f"SKIPPED {self.name}: {name}: {e}", flush=True)
        except (Failed, subprocess.TimeoutExpired) as e:
            self.failed += 1
            print(f"FAILED {name}: {e}", flush=True)
        except Exception:
            self.failed += 1
            print(f"FAILED {name}: {traceback.format_exc()}", flush=True)
        else:
            self.passed += 1
            print(f"ok {name} ({time.monotonic() - start:.1f} s)", flush=True)

    def rounds(self, count, seed, daemon, one_round):
        """one_round(N) so often, a case each, until one fails: then what it was, and what the daemon said. -> whether none did"""
        for n in range(count):
            with self.case(f"round {n}"):
                one_round(n)
            if self.failed:
                print(f"stopped after the first failure; log {daemon.log}, seed {seed}")
                print("\n".join(daemon.said().splitlines()[-40:]))
                return False
        return True

    def exit(self, main):
        """Ends the program with what main() answers; not even a first start is a failure, too."""
        try:
            sys.exit(main())
        except Failed as e:
            self.failed += 1
            print(f"FAILED {e}")
            sys.exit(self.done())

    def run(self, name, function, *args):
        """A case, unless the command line names others."""
        if not self.only or any(o in name for o in self.only):
            with self.case(name):
                function(*args)

    def write(self, name, text):
        path = self.path(name)
        with open(path, "w" if isinstance(text, str) else "wb", **({"encoding": "utf-8", "newline": ""} if isinstance(text, str) else {})) as f:
            f.write(text)
        return path

    def end_all(self):
        """Whatever still runs of what was started here."""
        for d in self.started:
            if d.process is not None and d.process.poll() is None:
                workers = d.workers()
                d.process.kill()
                d.process.wait()
                for w in workers:
                    kill(w)
        for p in self.peers:
            p.close()

    def done(self):
        orphans, reports = [], []
        for d in self.started:
            reports += d.reports()
            orphans += d.orphans
            d.orphans = []
        self.end_all()
        if reports:
            self.failed += 1
            print(f"FAILED no assertion or sanitizer speaks in the logs: {reports[0]}")
        if orphans:
            self.failed += 1
            print(f"FAILED no worker outlives its daemon: {len(orphans)} did, by more than 10 s")
        if os.environ.get("TARN_KEEP") or (self.failed and os.environ.get("TARN_KEEP_FAILED")):
            print(f"kept: {self.dir}")
        else:
            shutil.rmtree(self.dir, ignore_errors=True)
        print(f"{time.monotonic() - self.began:.0f} s")
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return 1 if self.failed else 0


# ---------------------------------------------------------------- values


class Num(str):
    """A number of JSON as it was written: "-0" and "-0.0" keep their sign."""


def types_of(folder):
    """[(column, type)] of a table's newest schema; nested types as in the schema file."""
    d = os.path.join(folder, "schema")
    newest = max((int(n.split("-")[1]) for n in os.listdir(d) if re.fullmatch(r"schema-\d+", n)))
    with open(os.path.join(d, f"schema-{newest}"), encoding="utf-8") as f:
        return [(c["name"], c["type"]) for c in json.load(f)["fields"]]


def nanos(text):
    m = re.fullmatch(r"(?:(\d{4,})-(\d\d)-(\d\d))?[T ]?(?:(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?", text)
    if not m:
        raise Failed(f"{text!r} is no date or time")
    y, mo, d, h, mi, s, f = m.groups()
    import datetime
    days = datetime.date(int(y), int(mo), int(d)).toordinal() - 719163 if y else 0
    return ((days * 24 + int(h or 0)) * 60 + int(mi or 0)) * 60 * 10**9 + int(s or 0) * 10**9 + int((f or "").ljust(9, "0"))


def real(text, pack):
    x = float(str(text).replace("Infinity", "inf"))
    if x != x:
        return "NaN"
    if pack == "f" and abs(x) != float("inf"):
        x = struct.unpack("f", struct.pack("f", x))[0]
    return struct.pack(">d", x)


def typed(v, t, strict=False):
    """JSON of the house's spelling as a plain value of type t: two are equal when they are the same value. strict: numbers
    must be numbers of JSON, decimals too, as tarn scan prints them."""
    if v is None:
        return None
    if isinstance(t, dict):
        kind = t["type"].split()[0]
        if kind == "ARRAY":
            return tuple(typed(x, t["element"], strict) for x in v)
        if kind == "MAP":
            pairs = v.items() if isinstance(v, dict) else v
            return frozenset(collections.Counter((typed(k, t["key"], strict and not isinstance(v, dict)), typed(x, t["value"], strict)) for k, x in pairs).items())
        if kind == "ROW":
            if set(v) != {f["name"] for f in t["fields"]}:
                raise Failed(f"members {sorted(v)} of {t}")
            return tuple(typed(v[f["name"]], f["type"], strict) for f in t["fields"])
        raise Failed(f"type {t}")
    root = re.match(r"[A-Z]+", t).group()
    number = root in ("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "DECIMAL") or (
        root in ("FLOAT", "DOUBLE") and v not in ("NaN", "Infinity", "-Infinity"))
    if strict and number and not isinstance(v, Num):
        raise Failed(f"{v!r} is no number of JSON, for {t}")
    if root in ("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT"):
        return int(v)
    if root == "DECIMAL":
        return decimal.Decimal(v)
    if root in ("FLOAT", "DOUBLE"):
        return real(v, "f" if root == "FLOAT" else "d")
    if root == "BOOLEAN":
        if not isinstance(v, bool):
            raise Failed(f"{v!r} for {t}")
        return v
    if isinstance(v, Num) or not isinstance(v, str):
        raise Failed(f"{v!r} for {t}")
    if root in ("TIMESTAMP", "TIME", "DATE"):
        return nanos(v)
    if root in ("BINARY", "VARBINARY", "BYTES"):
        return base64.b64decode(v, validate=True)
    return v


def row_of(value, types, strict=False):
    if list(value) != [c for c, _ in types] and set(value) != {c for c, _ in types}:
        raise Failed(f"columns {list(value)}, want {[c for c, _ in types]}")
    return tuple(typed(value[c], t, strict) for c, t in types)


def parse_line(line):
    return json.loads(line, parse_float=Num, parse_int=Num)


def rows_of(text, types, strict=False):
    """JSON lines as a Counter of rows."""
    return collections.Counter(row_of(parse_line(line), types, strict) for line in text.split("\n") if line.strip())




def same_rows(got, want, what):
    if got == want:
        return
    more, less = got - want, want - got
    text = "; ".join([f"unexpected: {r!r} x{n}" for r, n in list(more.items())[:3]] +
                     [f"missing: {r!r} x{n}" for r, n in list(less.items())[:3]])
    raise Failed(f"{what}: {sum(got.values())} rows, want {sum(want.values())}: {text}"[:3000])
