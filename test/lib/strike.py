"""A proxy between REST clients and tarnd that strikes the commits that it is told to. Not a test of its own.

  uri, close = serve(tarnd.http);  Proxy.faults.extend(["500 after", None, "lost after"])     of the next commits, None: no fault
"""
import collections
import http.client
import http.server
import json
import socket
import threading
import time

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


def serve(upstream):
    """-> its URI, and what closes it."""
    Proxy.upstream = upstream
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}", server.shutdown
