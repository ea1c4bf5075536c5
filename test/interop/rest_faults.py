#!/usr/bin/env python3
"""needs: shared
Promise: whatever becomes of the answers to their commits (lost, late, replaced by 500, 503 or 429, before or after tarnd carried them
out), Paimon's Java library and pypaimon end with each row exactly once. rest_faults.py [PART OF A CASE'S NAME]... runs some.

A proxy stands between the clients and tarnd, and strikes the commits that it is told to.
"""
import collections
import http.client
import http.server
import json
import os
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, check, equal  # noqa: E402
from peers import Java, Python  # noqa: E402

SCHEMA = {"fields": [{"id": 0, "name": "id", "type": "BIGINT"}, {"id": 1, "name": "v", "type": "STRING"}],
          "partitionKeys": [], "primaryKeys": [], "options": {"bucket": "-1"}, "comment": None}
ERROR = {"message": "struck", "resourceType": None, "resourceName": None}

# what happens to a commit: is it handed on; what is answered: a status, "lost", "late", or None (what tarnd said)
FAULTS = {
    "lost after": (True, "lost"),
    "lost before": (False, "lost"),
    "500 after": (True, 500),
    "500 before": (False, 500),
    "503 before": (False, 503),
    "429 before": (False, 429),
    "late": (True, "late"),
    "twice": (True, "twice"),
}


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream = None
    faults = collections.deque()  # of the next commits
    struck = 0

    def ask(self, body):
        conn = http.client.HTTPConnection(self.upstream, timeout=120)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "accept-encoding")}
        conn.request(self.command, self.path, body or None, headers)
        answer = conn.getresponse()
        got = answer.status, answer.read()
        conn.close()
        return got

    def relay(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = Proxy.faults.popleft() if self.path.endswith("/commit") and Proxy.faults else None
        handed_on, answer = FAULTS[fault] if fault else (True, None)
        status, text = self.ask(body) if handed_on else (None, b"")
        Proxy.struck += fault is not None
        if answer == "lost":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if answer == "late":
            time.sleep(2)
        if answer == "twice":
            again = self.ask(body)
            assert again == (status, text), f"{again} after {(status, text)}"
        if isinstance(answer, int):
            status, text = answer, json.dumps({**ERROR, "code": answer}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = relay

    def log_message(self, *a):
        pass


lab = Lab("rest-faults")
tarnd = lab.daemon("d")
tarnd.start()
Proxy.upstream = tarnd.http
proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
proxy.daemon_threads = True
threading.Thread(target=proxy.serve_forever, daemon=True).start()
options = ["metastore=rest", f"uri=http://127.0.0.1:{proxy.server_port}", "warehouse=tarn", "token.provider=bear", "token=x"]
PEERS = {"java": Java(lab, tarnd.warehouse, *options), "python": Python(lab, tarnd.warehouse, *options)}


def struck(word, fault, times):
    peer, name = PEERS[word], f"{word}.{fault.replace(' ', '_')}_{times}"
    peer.ask("create", name, lab.write("s.json", json.dumps(SCHEMA)))
    want, before = set(), Proxy.struck
    for turn in range(3):
        numbers = range(turn * 10, turn * 10 + 5)
        want.update(numbers)
        if turn == 1:
            Proxy.faults.extend([fault] * times)
        path = lab.write("r.jsonl", "".join(json.dumps({"id": n, "v": "x"}) + "\n" for n in numbers))
        try:
            peer.ask("write", name, path)
        except Exception as e:  # a client may give up; then its rows are there once, or not at all, and it may write them again
            check(turn == 1 and fault in ("503 before", "429 before", "500 before", "lost before"), f"{fault}: {e}")
            equal(sum(tarnd.scan(name).values()), 5, "rows after a commit that its writer gave up")
            Proxy.faults.clear()
            peer.ask("write", name, path)
    check(Proxy.struck > before, "the proxy struck")
    got = collections.Counter(row[0] for row in tarnd.scan(name).elements())
    equal(got, collections.Counter(want), "ids, each once")
    equal(peer.rows(name), tarnd.scan(name), f"rows that {word} reads")


for word in PEERS:
    for fault in FAULTS:
        for times in (1, 2):
            lab.run(f"{word}: {fault}, {times} in a row", struck, word, fault, times)
proxy.shutdown()
tarnd.stop()
sys.exit(lab.done())
