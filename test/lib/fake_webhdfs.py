#!/usr/bin/env python3
"""WebHDFS in memory, for tests: NameNodes and a DataNode that do as Hadoop 3.4.2 was seen to do, and on demand as it
does on a bad day. The answers' texts are Hadoop's own, shortened.

fake_webhdfs.py [--page N] [--token TOKEN] [--inodes no] [--redirect 307] [--renames careless]

Prints "port ACTIVE STANDBY" and then obeys lines on standard input, answering each with one line; ends when it is closed.
  rules [RULE, ...]      JSON: disturbs requests; replaces the rules of before
  switch                 the standby NameNode becomes the active one, and the other way round
  token TOKEN            the only one that is accepted from now on
  log                    JSON list of [operation, path, query, step, status] of the requests since the last `log`
  files                  JSON object: path -> size, of all files
RULE: {"op": "RENAME", "part": "text in path or query", "step": 1 (NameNode) or 2 (DataNode), "skip": N, "count": N (0: all),
       "do": "answer" (status, exception, message) | "after" (the same, but carried out) | "reset" | "reset_after" (no answer, not or carried
       out) | "late" (no answer; carried out ms later) | "truncate" (bytes of the body that are kept; the length says so) |
       "garble" | "go" (location: where step 1 sends) | "plain" (status, without JSON)}
Only the standard library. Not a test of its own."""
import argparse
import http.server
import json
import socket
import sys
import threading
import time
import urllib.parse


class Remote(Exception):
    def __init__(self, status, exception, message=""):
        super().__init__(exception)
        self.status, self.exception, self.message = status, exception, message


def missing(path):
    return Remote(404, "FileNotFoundException", f"File does not exist: {path}")


class Node:
    ids = 16385

    def __init__(self, body=None):
        Node.ids += 1
        self.id, self.body, self.children = Node.ids, body, None if body is not None else {}
        self.mtime = int(time.time() * 1000)


class Tree:
    def __init__(self):
        self.root = Node()

    def by_id(self, number, node=None):
        node = node or self.root
        if node.id == number:
            return node
        for child in (node.children or {}).values():
            found = self.by_id(number, child)
            if found:
                return found
        return None

    def find(self, path):
        if path.startswith("/.reserved/.inodes/"):
            return self.by_id(int(path.rpartition("/")[2]))
        node = self.root
        for name in [n for n in path.split("/") if n]:
            if node.children is None:
                return None
            node = node.children.get(name)
            if node is None:
                return None
        return node

    def parent(self, path, make=False):
        node, names = self.root, [n for n in path.split("/") if n]
        for i, name in enumerate(names[:-1]):
            if make:
                node.children.setdefault(name, Node())
            node = node.children.get(name)
            if node is None:
                return None, names[-1]
            if node.children is None:
                raise Remote(403, "ParentNotDirectoryException", "/" + "/".join(names[: i + 1]) + " (is not a directory)")
        return node, names[-1]

    def rename(self, source, target, options):
        if ":" in target:
            raise Remote(400, "InvalidPathException", f"Invalid path name {target}")
        node = self.find(source)
        if node is None:
            raise Remote(404, "FileNotFoundException", f"rename source {source} is not found.")
        if (target + "/").startswith(source + "/"):
            raise Remote(403, "IOException", f"Rename destination {target} is a directory or file under source {source}")
        folder, name = self.parent(target)
        if folder is None:
            raise Remote(404, "FileNotFoundException", f"rename destination parent {target} not found.")
        there = folder.children.get(name)
        if there is not None:
            if (there.children is None) != (node.children is None):
                raise Remote(403, "IOException", f"Source {source} and destination {target} must both be directories")
            if options != "OVERWRITE":
                raise Remote(403, "FileAlreadyExistsException", f"rename destination {target} already exists")
        old, old_name = self.parent(source)
        del old.children[old_name]
        folder.children[name] = node

    def delete(self, path):
        folder, name = self.parent_for_delete(path)
        node = folder.children.get(name) if folder else None
        if node is None:
            return False
        if node.children:
            raise Remote(403, "PathIsNotEmptyDirectoryException", f"`{path} is non empty': Directory is not empty")
        del folder.children[name]
        return True

    def parent_for_delete(self, path):
        try:
            return self.parent(path)
        except Remote as e:  # Hadoop's permission checker says it in its own way
            raise Remote(403, "AccessControlException", e.message)

    def create(self, path, body):
        if ":" in path:
            raise Remote(400, "InvalidPathException", f"Invalid path name {path}")
        folder, name = self.parent(path, make=True)
        if name in folder.children:
            raise Remote(403, "FileAlreadyExistsException", f"{path} for client 127.0.0.1 already exists\n\tat org.apache")
        folder.children[name] = Node(body)


def status_of(node, name):
    return {"accessTime": 0, "blockSize": 0, "fileId": node.id if OPTIONS.inodes != "no" else 0, "group": "supergroup",
            "length": len(node.body or b""), "modificationTime": node.mtime, "owner": "root", "pathSuffix": name,
            "permission": "755", "replication": 1, "type": "DIRECTORY" if node.children is not None else "FILE"}


class Fake:
    def __init__(self):
        self.lock, self.tree = threading.RLock(), Tree()
        self.rules, self.log, self.active = [], [], 0
        self.token = OPTIONS.token

    def rule_for(self, op, text, step):
        with self.lock:
            for rule in self.rules:
                if rule.get("op", op) != op or rule.get("part", "") not in text or rule.get("step", step) != step:
                    continue
                rule["seen"] = rule.get("seen", 0) + 1
                if rule["seen"] <= rule.get("skip", 0):
                    continue
                if rule.get("count", 0) and rule["seen"] > rule.get("skip", 0) + rule["count"]:
                    continue
                return rule
        return None

    # What one request does; (status, body as bytes or value, headers).
    def carry_out(self, op, path, query, step, body, base):
        with self.lock:
            if step == 1 and op in ("CREATE", "APPEND", "OPEN"):
                return self.send_on(op, path, query, base)
            return getattr(self, op.lower())(path, query, body)

    def send_on(self, op, path, query, base):
        if ":" in path:
            raise Remote(400, "InvalidPathException", f"Invalid path name {path}")
        if op != "CREATE" and self.tree.find(path) is None:
            raise Remote(404, "FileNotFoundException", f"File {path} not found.")
        kept = {k: v for k, v in query.items() if k != "noredirect"}
        # As Java's URI: what is beyond ASCII stays as it is in JSON.
        quoted = "".join(c if ord(c) > 127 else urllib.parse.quote(c, safe="/+&;=,~!@$()*'") for c in path)
        location = f"{base}/webhdfs/v1{quoted}?" + urllib.parse.urlencode(dict(kept, step="2"))
        if OPTIONS.redirect == "307":
            return 307, b"", {"Location": urllib.parse.quote(location, safe="%/:?&=+;,~!@$()*'")}
        return 200, {"Location": location}, {}

    def getfilestatus(self, path, query, body):
        node = self.tree.find(path)
        if node is None:
            raise missing(path)
        return 200, {"FileStatus": status_of(node, "")}, {}

    def liststatus_batch(self, path, query, body):
        node = self.tree.find(path)
        if node is None:
            raise Remote(404, "FileNotFoundException", f"File {path} does not exist.")
        if node.children is None:
            entries, rest = [status_of(node, "")], 0
        else:
            names = [n for n in sorted(node.children) if n > query.get("startAfter", "")]
            entries = [status_of(node.children[n], n) for n in names[: OPTIONS.page]]
            rest = len(names) - len(entries)
        return 200, {"DirectoryListing": {"partialListing": {"FileStatuses": {"FileStatus": entries}}, "remainingEntries": rest}}, {}

    def mkdirs(self, path, query, body):
        if self.tree.find(path) is not None and self.tree.find(path).children is None:
            raise Remote(403, "FileAlreadyExistsException", f"Path is not a directory: {path}")
        self.tree.parent(path.rstrip("/") + "/x", make=True)
        return 200, {"boolean": True}, {}

    def delete(self, path, query, body):
        return 200, {"boolean": self.tree.delete(path)}, {}

    def rename(self, path, query, body):
        options = "OVERWRITE" if OPTIONS.renames == "careless" else query.get("renameoptions")
        self.tree.rename(path, query["destination"], options)
        return 200, b"", {}

    def create(self, path, query, body):
        self.tree.create(path, body)
        return 201, b"", {"Location": "hdfs://localhost" + urllib.parse.quote(path)}

    def append(self, path, query, body):
        self.tree.find(path).body += body
        return 200, b"", {}

    def open(self, path, query, body):
        node = self.tree.find(path)
        if node is None or node.children is not None:
            raise Remote(404, "FileNotFoundException", f"Path is not a file: {path}")
        offset, size = int(query.get("offset", 0)), len(node.body)
        if offset > size or (offset == size and offset > 0):
            raise Remote(403, "IOException", f"Offset={offset} out of the range [0, {size}); OPEN, path={path}")
        return 200, node.body[offset : offset + int(query.get("length", size))], {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # an answer in one piece: in two, it waits for the other side's delayed acknowledgement
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def reply(self, status, body, headers, keep=None):
        data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data if keep is None else data[:keep])
        if keep is not None:
            self.drop()

    def drop(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def refuse(self, error):
        self.reply(error.status, {"RemoteException": {"exception": error.exception, "javaClassName": "x." + error.exception,
                                                      "message": error.message}}, {})

    def identity(self, query):
        if FAKE.token is None:
            if query.get("user.name") is None:
                raise Remote(401, "AuthenticationException", "Authentication required")
        elif query.get("delegation") != FAKE.token:
            raise Remote(403, "InvalidToken", "token can't be found in cache")

    def handle_any(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        path = urllib.parse.unquote(url.path)[len("/webhdfs/v1"):] or "/"
        op, step = query.get("op", ""), 2 if query.get("step") else 1
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        base = f"http://127.0.0.1:{self.server.server_port}"
        rule = FAKE.rule_for(op, self.path + " " + path, step) or {}
        do = rule.get("do")

        def carry_out():
            if step == 1 and self.server.number != FAKE.active:
                raise Remote(403, "StandbyException", "Operation category READ is not supported in state standby.")
            self.identity(query)
            return FAKE.carry_out(op, path, query, step, body, base)

        status = 0
        try:
            if do in ("after", "reset_after"):
                carry_out()
            if do == "late":
                def later():
                    time.sleep(rule["ms"] / 1000)
                    try:
                        FAKE.carry_out(op, path, query, step, body, base)
                    except Remote:
                        pass
                threading.Thread(target=later, daemon=True).start()
            if do in ("reset", "reset_after", "late"):
                return self.drop()
            if do in ("answer", "after"):
                raise Remote(rule["status"], rule["exception"], rule.get("message", ""))
            if do == "plain":
                status = rule["status"]
                return self.reply(status, b"<html>no</html>", {})
            status, answer, headers = carry_out()
            if do == "go":
                answer, headers = {"Location": rule["location"]}, {}
            if do == "garble":
                answer = b'{"x":'
            self.reply(status, answer, headers, rule.get("bytes") if do == "truncate" else None)
        except Remote as error:
            status = error.status
            self.refuse(error)
        finally:
            with FAKE.lock:
                FAKE.log.append([op, path, url.query, step, status])

    do_GET = do_PUT = do_POST = do_DELETE = handle_any


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a connection that its client closed


def files(node, path, out):
    for name, child in (node.children or {}).items():
        if child.children is None:
            out[f"{path}/{name}"] = len(child.body)
        files(child, f"{path}/{name}", out)
    return out


def obey(line):
    word, _, rest = line.partition(" ")
    with FAKE.lock:
        if word == "rules":
            FAKE.rules = json.loads(rest)
        elif word == "switch":
            FAKE.active = 1 - FAKE.active
        elif word == "token":
            FAKE.token = rest
        elif word == "log":
            log, FAKE.log = FAKE.log, []
            return json.dumps(log)
        elif word == "files":
            return json.dumps(files(FAKE.tree.root, "", {}))
        else:
            return "what?"
    return "ok"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--page", type=int, default=1000)
    parser.add_argument("--token")
    parser.add_argument("--inodes", default="yes")
    parser.add_argument("--redirect", default="json")
    parser.add_argument("--renames", default="strict")
    OPTIONS = parser.parse_args()
    FAKE = Fake()
    servers = []
    for number in range(2):
        server = Server(("127.0.0.1", 0), Handler)
        server.number = number
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        servers.append(server)
    print("port", servers[0].server_port, servers[1].server_port, flush=True)
    for line in sys.stdin:
        print(obey(line.rstrip("\n")), flush=True)
