"""What the interop scripts on S3 share: the fake store of fake_s3.py and the real one of ../shared as processes, and a daemon
whose warehouse lies there. Only the standard library. Not a test of its own."""
import json
import os
import socket
import subprocess
import sys

from lab import ROOT, SHARED, Daemon, Failed

ACCESS, SECRET = "labkey", "labsecret1"


class Fake:
    """test/lib/fake_s3.py; its words and rules are explained there."""

    def __init__(self, lab, *arguments):
        self.process = subprocess.Popen([sys.executable, os.path.join(ROOT, "test/lib/fake_s3.py"), "--access", ACCESS, "--secret", SECRET, *arguments],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.endpoint = "http://127.0.0.1:" + self.process.stdout.readline().split()[1]
        lab.peers.append(self)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def rules(self, *rules):
        if self.ask("rules " + json.dumps(rules)) != "ok":
            raise Failed("the fake store took no rules")

    def objects(self):
        return json.loads(self.ask("objects"))

    def log(self):
        return json.loads(self.ask("log"))

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(10)


class Real:
    """services/s3.sh on a port of its own, with its data in the lab's folder."""

    def __init__(self, lab, backend="versitygw"):
        from peers import LAB
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.script = os.path.join(SHARED, "interop/services/s3.sh")
        self.env = {**os.environ, "LAB": LAB, "LAB_STATE": lab.path("services"), "S3_BACKEND": backend, "S3_PORT": str(port), "S3_KEY": ACCESS, "S3_SECRET": SECRET}
        self.log = lab.path(f"s3-{backend}.log")
        self.endpoint = f"http://127.0.0.1:{port}"
        self.run("start")
        self.up = True
        lab.peers.append(self)

    def run(self, word):
        with open(self.log, "ab") as log:
            status = subprocess.run(["bash", self.script, word], env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=300).returncode
        if status != 0:
            with open(self.log, errors="replace") as log:
                raise Failed(f"s3.sh {word}: status {status}: {log.read()[-1000:]}")

    def close(self):
        if self.up:
            self.up = False
            self.run("wipe")


class S3Daemon(Daemon):
    """A daemon on s3://lake/PREFIX of a store."""

    def __init__(self, lab, store, name="d", prefix="wh", **settings):
        secret = lab.write("secret", SECRET + "\n")
        super().__init__(lab, lab.path(name), None, **{"warehouse.uri": f"s3://lake/{prefix}", "s3.endpoint": store.endpoint, "s3.access_key": ACCESS,
                                                       "s3.secret_key_file": secret, **settings})
