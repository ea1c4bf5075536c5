"""Paimon's Java library and pypaimon as processes that are told what to do line by line (test/interop/java, .../py).
Not a test of its own. LAB and ../shared (or TARN_SHARED) say where they lie."""
import glob
import os
import shutil
import subprocess

from lab import ROOT, SHARED, Failed, check, rows_of, same_rows, types_of

LAB = os.environ.get("LAB") or os.path.join(os.environ.get("TARN_CACHE", os.path.expanduser("~/.cache/tarn")), "lab")


class Peer:
    def __init__(self, lab, warehouse, command, **env):
        self.lab, self.warehouse, self.count = lab, warehouse, 0
        if "://" not in warehouse:
            os.makedirs(warehouse, exist_ok=True)
        self.log = open(lab.path(type(self).__name__ + ".log"), "ab")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                        env={**os.environ, "LAB": LAB, "PYTHONDONTWRITEBYTECODE": "1", **env})
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

    def files(self, table, *sets):
        """Names of the files that the peer would read, in no order."""
        out = self.file()
        self.ask("files", table, out, *sets)
        with open(out, encoding="utf-8") as f:
            names = f.read().split()
        os.unlink(out)
        return sorted(names)

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
    def __init__(self, lab, warehouse, *options, environment=None):
        """options: of the catalog, "k=v"; environment: as ../shared/interop/env.sh has it, to choose a version."""
        super().__init__(lab, warehouse, ["env", *(f"{k}={v}" for k, v in (environment or {}).items()), "bash", os.path.join(ROOT, "test/interop/java/run.sh"), warehouse, *options])


class RestGaps(Peer):
    def __init__(self, lab, warehouse, *options):
        super().__init__(lab, warehouse, ["bash", os.path.join(ROOT, "test/interop/java/run.sh"), warehouse, *options],
                         PROGRAM="RestGaps")


class Deletions(Peer):
    def __init__(self, lab, warehouse, *options):
        super().__init__(lab, warehouse, ["bash", os.path.join(ROOT, "test/interop/java/run.sh"), warehouse, *options],
                         PROGRAM="Deletions")


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


class Left:
    """Tables that a script leaves behind, kept with the rows that Tarn read of them: in the end the others read them, too."""

    def __init__(self, lab):
        self.lab, self.warehouse, self.tables = lab, lab.path("left"), []
        self.count = 0

    def keep(self, folder, rows, types):
        """The table as it lies in its folder now; rows as lab.rows_of."""
        self.count += 1
        name = f"t{self.count}"
        shutil.copytree(folder, os.path.join(self.warehouse, "l.db", name))
        self.tables.append((folder, "l." + name, rows, types))

    def also(self, suffix, rows, types):
        """What else can be read of the table that was kept last: "$branch_NAME"."""
        self.tables.append((self.tables[-1][0], f"l.t{self.count}{suffix}", rows, types))

    def keep_all(self, daemon):
        """All tables of its warehouse. It is started anew, without faults, and stopped."""
        if daemon.process.poll() is None:
            daemon.stop()
        daemon.start(**{"worker.count": 1, "compaction.auto": "false"})
        for schema in sorted(glob.glob(os.path.join(daemon.warehouse, "*.db/*/schema"))):
            folder = os.path.dirname(schema)
            table = os.path.basename(os.path.dirname(folder))[:-3] + "." + os.path.basename(folder)
            self.keep(folder, daemon.scan(table), types_of(folder))
        daemon.stop()

    def read_by_others(self):
        check(self.tables, "nothing is left")
        for reader in (Java(self.lab, self.warehouse), Python(self.lab, self.warehouse)):
            for folder, name, rows, types in self.tables:
                same_rows(reader.rows(name, types=types), rows, f"{type(reader).__name__}: {folder}")
        print(f"{len(self.tables)} tables with {sum(sum(rows.values()) for _, _, rows, _ in self.tables)} rows")


def others_read_what_is_left(lab, left=None):
    """A case, where ../shared is there: Java's library and pypaimon read all that was kept in `left`, or else every table of every
    warehouse of this script's daemons."""
    if not available():
        return
    with lab.case("java and pypaimon read every table that is left"):
        if left is None:
            left = Left(lab)
            for daemon in {d.warehouse: d for d in lab.started}.values():
                left.keep_all(daemon)
        left.read_by_others()
