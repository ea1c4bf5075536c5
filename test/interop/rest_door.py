#!/usr/bin/env python3
"""Promise: the HTTP door of the daemon itself holds what docs/operations.md says of it, seen from outside and by the byte: connections are kept,
requests sent ahead are answered in order, slow clients hold up nobody, each limit has its status, bombs don't go off, certificates and tokens
change while it runs, a stop answers what is under way, and the access log says who asked what and no secret. rest_door.py [PART OF A CASE'S
NAME]... runs some.
"""
import gzip
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, Skip, check, equal, wait_until  # noqa: E402

TOKEN, OTHER = "canary-0-sesame-open", "canary-1-open-sesame"
PREFIX = "/v1/tarn"
SCHEMA = {"fields": [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}], "partitionKeys": [], "primaryKeys": ["id"],
          "options": {"bucket": "1"}, "comment": None}

lab = Lab("door")
tokens = lab.write("tokens", f"ann:{TOKEN}\n")
os.chmod(tokens, 0o600)
tarnd = lab.daemon("d", **{"auth.mode": "token", "auth.token_file": tokens, "worker.count": 0, "commit.foreign_check": "1 s"})
tarnd.start()


class Wire:
    """One connection, byte by byte."""

    def __init__(self, address=None, context=None):
        host, port = (address or tarnd.http).rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.file = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def receive(self, method="GET"):
        """-> status, {header: value}, body. None where the connection was closed instead."""
        line = self.file.readline()
        if not line:
            return None
        status, headers = int(line.split()[1]), {}
        while (line := self.file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").rstrip("\r\n").partition(": ")
            headers[name.lower()] = value
        length = 0 if method == "HEAD" else int(headers.get("content-length", 0))
        return status, headers, self.file.read(length)

    def ask(self, *words, **more):
        self.send(request(*words, **more))
        return self.receive(words[0])

    def is_closed(self):
        return self.file.read() == b""

    def close(self):
        self.file.close()
        self.socket.close()


def request(method, path, body=b"", token=TOKEN, headers=()):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: x", *headers]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def once(*words, **more):
    wire = Wire()
    answer = wire.ask(*words, **more)
    wire.close()
    return answer


def create(name, **more):
    return once("POST", f"{PREFIX}/databases/db/tables",
                {"identifier": {"database": "db", "object": name}, "schema": {**SCHEMA, **more}})


equal(once("POST", f"{PREFIX}/databases", {"name": "db"})[0], 200, "a database")
equal(create("t")[0], 200, "a table")


def kept_and_in_order():
    wire = Wire()
    for _ in range(20):
        equal(wire.ask("GET", f"{PREFIX}/databases/db/tables/t")[0], 200, "on one connection")
    ahead = [("GET", "/healthz"), ("GET", f"{PREFIX}/databases/db/tables/nope"), ("HEAD", f"{PREFIX}/databases"), ("POST", f"{PREFIX}/databases", b"{"),
             ("GET", f"{PREFIX}/databases/db/tables/t")] * 50
    wire.send(b"".join(request(*words) for words in ahead))
    for words in ahead:
        want = {"nope": 404, "{": 400}.get(words[-1].rsplit("/", 1)[-1] if isinstance(words[-1], str) else words[-1].decode(), 200)
        equal(wire.receive(words[0])[0], want, f"sent ahead: {words}")
    old = wire.ask("GET", "/healthz", headers=["Connection: close"])
    equal((old[0], old[1]["connection"]), (200, "close"), "the last one")
    check(wire.is_closed(), "closed when asked to")
    wire = Wire()
    wire.send("GET /healthz HTTP/1.0\r\n\r\n")
    equal(wire.receive()[0], 200, "HTTP/1.0")
    check(wire.is_closed(), "HTTP/1.0 isn't kept")


def slow_clients_hold_up_nobody():
    crawlers = []
    for front in (b"GET /v1/config HTTP/1.1\r\nHost: x\r\nX: ", request("POST", f"{PREFIX}/databases", b"x" * 9000)[:-8990]):
        for _ in range(100):
            wire = Wire()
            wire.send(front)
            crawlers.append(wire)
    deaf = []
    for _ in range(50):  # they ask for much and take nothing
        wire = Wire()
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.send(request("GET", "/metrics") * 200)
        deaf.append(wire)
    worst = 0
    for i in range(200):
        for wire in crawlers[i % 50 :: 50]:
            wire.send(b"x")
        begun = time.monotonic()
        equal(once("GET", f"{PREFIX}/databases/db/tables/t")[0], 200, "beside slow ones")
        worst = max(worst, time.monotonic() - begun)
    check(worst < 5, f"an answer took {worst:.1f} s beside slow clients")
    begun = time.monotonic()
    for wire in crawlers[:100]:  # a byte now and then doesn't lengthen the time that a head has
        answer = wire.receive()
        equal((answer[0], answer[1]["connection"]), (408, "close"), "a head that crawls")
    check(time.monotonic() - begun < 25, "crawling heads end")
    for wire in [*crawlers, *deaf]:
        wire.close()


def each_limit_has_its_status():
    nested = b'{"name":' + b"[" * 2000 + b"]" * 2000 + b"}"
    many = b'{"removals":[' + b",".join([b'""'] * (1 << 20)) + b"]}"
    for what, status, words, more in [
        ("the largest head", 200, ("GET", "/healthz"), {"headers": ["X: " + "x" * 32000]}),
        ("a larger head", 431, ("GET", "/healthz"), {"headers": ["X: " + "x" * 33000]}),
        ("100 headers and more", 431, ("GET", "/healthz"), {"headers": [f"X{i}: y" for i in range(101)]}),
        ("a long target", 414, ("GET", "/" + "x" * 8200), {}),
        ("many segments", 414, ("GET", "/x" * 33), {}),
        ("many parameters", 414, ("GET", "/v1/config?" + "&".join(["a"] * 65)), {}),
        ("nested JSON", 400, ("POST", f"{PREFIX}/databases", nested), {}),
        ("too many values", 400, ("POST", f"{PREFIX}/databases/db", many), {}),
        ("no JSON", 400, ("POST", f"{PREFIX}/databases", b"{\"name\""), {}),
        ("no object", 400, ("POST", f"{PREFIX}/databases", b"[1]"), {}),
        ("not UTF-8", 400, ("POST", f"{PREFIX}/databases", b'{"name":"\xff"}'), {}),
        ("an unknown coding", 415, ("POST", f"{PREFIX}/databases", b"{}"), {"headers": ["Content-Encoding: br"]}),
        ("another version", 505, ("GET", "/healthz HTTP/3.0\r\nX:"), {}),
        ("an endpoint that isn't there", 501, ("GET", f"{PREFIX}/nope"), {}),
        ("outside of the API", 404, ("GET", "/nope"), {}),
        ("a method that isn't there", 405, ("POST", "/healthz", b"x"), {}),
        ("climbing", 404, ("GET", f"{PREFIX}/databases/..%2f..%2fetc/tables/passwd"), {}),
        ("half an escape", 400, ("GET", f"{PREFIX}/databases/%4"), {}),
    ]:
        answer = once(*words, **more)
        equal(answer[0], status, f"{what}: {str(answer)[:500]}")
    wire = Wire()  # refused by what it says of itself, before any of it has come
    wire.send(f"POST {PREFIX}/databases HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 16777217\r\n\r\n")
    answer = wire.receive()
    equal((answer[0], answer[1]["connection"]), (400, "close"), "a body that is too large")  # clients have a type for 400, none for 413
    check(b"exceeds 16777216 bytes" in answer[2], answer)


def gzip_goes_both_ways():
    wide = [{"id": i, "name": f"column_{i}", "type": "BIGINT"} for i in range(200)]
    body = gzip.compress(json.dumps({"identifier": {"database": "db", "object": "wide"}, "schema": {**SCHEMA, "fields": wide, "primaryKeys": [], "options": {}}}).encode())
    equal(once("POST", f"{PREFIX}/databases/db/tables", body, headers=["Content-Encoding: gzip"])[0], 200, "a body in gzip")
    plain = once("GET", f"{PREFIX}/databases/db/tables/wide")
    small = once("GET", f"{PREFIX}/databases/db/tables/wide", headers=["Accept-Encoding: gzip, deflate"])
    check("content-encoding" not in plain[1], "gzip only where it is taken")
    equal((small[1]["content-encoding"], small[1]["vary"]), ("gzip", "Accept-Encoding"), "headers of gzip")
    check(len(small[2]) * 3 < len(plain[2]), f"{len(small[2])} bytes of {len(plain[2])}")
    equal(gzip.decompress(small[2]), plain[2], "what is in it")
    equal(json.loads(plain[2])["schema"]["fields"], wide, "columns")
    no = once("GET", f"{PREFIX}/databases/db/tables/wide", headers=["Accept-Encoding: gzip;q=0"])
    check("content-encoding" not in no[1], "gzip;q=0")


def peak_kb(name="VmRSS"):
    with open(f"/proc/{tarnd.process.pid}/status", encoding="ascii") as f:
        return int(re.search(rf"{name}:\s+(\d+)", f.read()).group(1))


def a_bomb_does_not_go_off():
    bomb = gzip.compress(bytes(1 << 29), 1)
    before = peak_kb()
    for _ in range(4):
        equal(once("POST", f"{PREFIX}/databases", bomb, headers=["Content-Encoding: gzip"])[0], 400, f"{len(bomb)} bytes that are 512 MB")
    check(peak_kb("VmHWM") - before < 200_000, f"from {before} to {peak_kb('VmHWM')} kB")
    for broken in (bomb[:1000], b"\x1f\x8b", b"plain", gzip.compress(b"{}")[:-1] + b"x"):
        equal(once("POST", f"{PREFIX}/databases", broken, headers=["Content-Encoding: gzip"])[0], 400, f"broken gzip {broken[:9]}")


def reloaded(daemon, times):
    return len(re.findall(r"server\.reload(?:ed|_failed)", daemon.said())) >= times


def hup(daemon):
    times = len(re.findall(r"server\.reload(?:ed|_failed)", daemon.said())) + 1
    daemon.process.send_signal(signal.SIGHUP)
    wait_until("SIGHUP is obeyed", lambda: reloaded(daemon, times))


def tokens_change_while_it_runs():
    for token in (None, "x", TOKEN[:-1], TOKEN + "x", OTHER):
        answer = once("GET", f"{PREFIX}/databases", token=token)
        equal((answer[0], answer[1]["www-authenticate"]), (401, "Bearer"), f"token {token}")
        check(b'"code":401' in answer[2], answer)
    for scheme in ("Basic", "bearer"):
        answer = once("GET", f"{PREFIX}/databases", token=None, headers=[f"Authorization: {scheme} {TOKEN}"])
        equal(answer[0], 200 if scheme == "bearer" else 401, scheme)
    kept = Wire()
    equal(kept.ask("GET", f"{PREFIX}/databases")[0], 200, "the first token")
    lab.write("tokens", f"bob:{OTHER}\n")
    hup(tarnd)
    equal(once("GET", f"{PREFIX}/databases", token=OTHER)[0], 200, "the new token")
    equal(kept.ask("GET", f"{PREFIX}/databases")[0], 401, "the old one, also on an open connection")
    lab.write("tokens", "bob:\n")
    hup(tarnd)
    equal(once("GET", f"{PREFIX}/databases", token=OTHER)[0], 200, "a broken file changes nothing")
    check("server.reload_failed" in tarnd.said(), "and is told")
    lab.write("tokens", f"ann:{TOKEN}\n")
    hup(tarnd)
    equal(once("GET", f"{PREFIX}/databases")[0], 200, "and back")
    body = Wire()  # refused before the body is read
    body.send(request("POST", f"{PREFIX}/databases", b"x" * 100000, token="x")[:-99999])
    equal(body.receive()[0], 401, "a body of somebody unknown")


def make_pair(name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", lab.path(f"{name}.key"), "-out", lab.path(f"{name}.pem")], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def use_pair(cert, key=None):
    shutil.copy(lab.path(f"{cert}.pem"), lab.path("server.pem"))
    shutil.copy(lab.path(f"{key or cert}.key"), lab.path("server.key"))


def certificates_change_while_it_runs():
    if shutil.which("openssl") is None:
        raise Skip("no openssl command")
    for name in ("first", "second"):
        make_pair(name)
    use_pair("first")
    daemon = lab.daemon("tls", **{"tls.cert": lab.path("server.pem"), "tls.key": lab.path("server.key"), "worker.count": 0})
    daemon.start(workers=False)

    def shown(wire):
        return dict(x[0] for x in wire.socket.getpeercert()["subject"])["commonName"]

    def connect(*names):
        context = ssl.create_default_context()
        for name in names:
            context.load_verify_locations(lab.path(f"{name}.pem"))
        return Wire(daemon.http, context)

    kept = connect("first")
    equal((kept.ask("GET", "/healthz")[0], shown(kept)), (200, "first"), "the first certificate")
    use_pair("second")
    hup(daemon)
    equal(shown(connect("first", "second")), "second", "a new connection")
    equal(kept.ask("GET", "/healthz")[0], 200, "an open connection goes on")
    use_pair("first", "second")
    hup(daemon)
    check("server.reload_failed" in daemon.said(), "files that don't fit are told")
    equal(shown(connect("first", "second")), "second", "and change nothing")
    wire = Wire(daemon.http)
    wire.send(request("GET", "/healthz"))
    try:
        said = wire.file.read()
    except ConnectionResetError:
        said = b""
    check(not said.startswith(b"HTTP"), "nothing but TLS is served")
    daemon.stop()


def a_stop_answers_what_is_under_way():
    daemon = lab.daemon("drain", **{"worker.count": 0})
    daemon.start(workers=False, env={"TARN_STORE_FAULTS": "put_if_absent:schema/:0:0:delay:2000"})
    wire = Wire(daemon.http)
    equal(wire.ask("POST", f"{PREFIX}/databases", {"name": "db"})[0], 200, "a database")
    idle = Wire(daemon.http)
    equal(idle.ask("GET", "/healthz")[0], 200, "before")
    wire.send(request("POST", f"{PREFIX}/databases/db/tables", {"identifier": {"database": "db", "object": "t"}, "schema": SCHEMA}))
    time.sleep(0.5)  # it is under way for two seconds
    ended = []
    stopper = threading.Thread(target=lambda: ended.append(daemon.stop()))
    stopper.start()
    check(idle.is_closed(), "idle connections are closed")
    wait_until("the port is closed", lambda: refused(daemon.http))
    answer = wire.receive()
    equal((answer[0], answer[1].get("connection")), (200, "close"), "what is under way is answered")
    check(wire.is_closed(), "and its connection closed")
    stopper.join()
    check(os.path.exists(os.path.join(daemon.folder("db.t"), "schema/schema-0")), "and was done")


def refused(address):
    try:
        Wire(address).close()
    except ConnectionRefusedError:
        return True
    return False


def the_log_says_who_and_no_secret():
    nasty = ["%0d%0alevel=error%20event=forged", "%22%20status=200%20x=%22", "%e2%80%ae%1b%5b31m", "%00", "%ff", "x" * 3000]
    for name in nasty:
        once("GET", f"{PREFIX}/databases/{name}?token={TOKEN}&q=canary-2")
    once("GET", f"{PREFIX}/databases", headers=["x-request-id: canary\x1b[31m", "X-Secret: canary-3"])
    once("GET", f"{PREFIX}/databases", headers=["x-request-id: my-own.id_7"])
    once("GET", f"{PREFIX}/databases", token=OTHER)
    once("POST", f"{PREFIX}/databases", {"name": "db", "options": {"password": "canary-4"}})
    wait_until("lines are there", lambda: "my-own.id_7" in tarnd.said())
    time.sleep(0.2)
    said = tarnd.said()
    for secret in (TOKEN, OTHER, "canary-2", "canary-3", "canary-4"):
        check(secret not in said, f"{secret} is in the log")
    check(all(0x20 <= ord(c) != 0x7f for c in said.replace("\n", "")), "no control character")
    lines = [line for line in said.splitlines() if " http.request " in line]
    form = re.compile(r'\d{4}-\d\d-\d\dT\S+ (?:debug|info|warn) http\.request req=\S+ method="[^"]*" path="(?:[^"\\]|\\.)*(?:"|\.\.\.) status=\d{3} bytes=\d+ ms=[\d.]+ '
                      r'principal="[a-z]*" peer=127\.0\.0\.1:\d+(?: error="(?:[^"\\]|\\.)*")?$')
    for line in lines:
        check(form.match(line) or (len(line) > 8000 and line.endswith("...")), f"no line of the access log: {line[:300]} … {line[-300:]}")
    mine = [line for line in lines if " req=my-own.id_7 " in line]
    equal(len(mine), 1, "one line a request, with its id")
    check('method="GET"' in mine[0] and f'path="{PREFIX}/databases"' in mine[0] and 'status=200' in mine[0] and 'principal="ann"' in mine[0], mine[0])
    check(not any(line.split()[1:3] == ["error", "event=forged"] for line in said.splitlines()), "a forged line")


def who_is_turned_away_may_come_again():
    wires = []
    try:
        while len(wires) < 5000:
            wire = Wire()
            wires.append(wire)
            wire.send("GET /healthz HTTP/1.1\r\n")  # not idle: its place isn't given to others
            if len(wires) > 4000 and len(wires) % 50 == 0:
                try:
                    answer = once("GET", "/healthz")
                except OSError:
                    continue
                if answer is not None and answer[0] == 503:
                    equal((answer[1]["retry-after"], answer[1]["connection"]), ("1", "close"), "too many connections")
                    break
        check(4000 < len(wires) < 5000, f"{len(wires)} connections and no limit")
    except OSError as e:
        if len(wires) < 4097:
            raise Skip(f"{len(wires)} connections: {e}") from None
        raise
    finally:
        for wire in wires:
            wire.close()
    wait_until("there is room again", lambda: (once("GET", "/healthz") or [0])[0] == 200)


for case in (kept_and_in_order, slow_clients_hold_up_nobody, each_limit_has_its_status, gzip_goes_both_ways, a_bomb_does_not_go_off,
             tokens_change_while_it_runs, certificates_change_while_it_runs, a_stop_answers_what_is_under_way, the_log_says_who_and_no_secret,
             who_is_turned_away_may_come_again):
    lab.run(case.__name__.replace("_", " "), case)
with lab.case("it ends when it is told to"):
    tarnd.stop()
sys.exit(lab.done())
