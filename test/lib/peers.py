"""Paimon's Java library and pypaimon as processes that are told what to do line by line (test/interop/java, .../py).
Not a test of its own. LAB and ../shared (or TARN_SHARED) say where they lie."""
import os
import subprocess

from lab import ROOT, SHARED, Failed, rows_of, types_of

LAB = os.environ.get("LAB") or os.path.join(os.environ.get("TARN_CACHE", os.path.expanduser("~/.cache/tarn")), "lab")


class Peer:
    def __init__(self, lab, warehouse, command):
        self.lab, self.warehouse, self.count = lab, warehouse, 0
        if "://" not in warehouse:
            os.makedirs(warehouse, exist_ok=True)
        self.log = open(lab.path(type(self).__name__ + ".log"), "ab")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                        env={**os.environ, "LAB": LAB, "PYTHONDONTWRITEBYTECODE": "1"})
        lab.peers.append(self)

    def ask(self, *words):
        try:
            self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline().decode("utf-8", "replace").strip()
        word, _, rest = answer.partition(" ")
        if word != "ok":
            raise Failed(f"{type(self).__name__}: {' '.join(map(str, words))}: {rest or 'it ended; see ' + self.log.name}")
        return rest

    def folder(self, table):
        db, name = table.split(".", 1)
        return os.path.join(self.warehouse, db + ".db", name)

    def file(self):
        self.count += 1
        return self.lab.path(f"{type(self).__name__}-{self.count}.jsonl")

    def rows(self, table, *sets, types=None):
        """What the peer reads, as lab.rows_of."""
        out = self.file()
        self.ask("dump", table, out, *self.dump_words(), *sets)
        with open(out, encoding="utf-8") as f:
            text = f.read()
        os.unlink(out)
        return rows_of(text, types or types_of(self.folder(table)))

    def dump_words(self):
        return ()

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()


class Java(Peer):
    def __init__(self, lab, warehouse, *options):
        """options: of the catalog, "k=v"."""
        super().__init__(lab, warehouse, ["bash", os.path.join(ROOT, "test/interop/java/run.sh"), warehouse, *options])


class Python(Peer):
    engine = "native"

    def __init__(self, lab, warehouse, *options):
        python = os.path.join(os.environ.get("ENGINES", os.path.join(LAB, "engines")), "venv/bin/python")
        super().__init__(lab, warehouse, [python, os.path.join(ROOT, "test/interop/py/peer.py"), warehouse,
                                          os.path.join(SHARED, "interop"), *options])

    def dump_words(self):
        return (self.engine,)


def available():
    return os.path.isdir(os.path.join(SHARED, "interop"))
