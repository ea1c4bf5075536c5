"""Flink SQL as a process that is told what to do line by line (test/interop/java/FlinkPeer.java), with the daemon's REST catalog in use, or a
file-system catalog. Not a test of its own.

  f = Flink(lab, tarnd, "2.0.2");  f.batch("INSERT INTO db.t VALUES (1)");  f.batch("SELECT * FROM db.t") -> Counter of tuples of texts
"""
import collections
import glob
import json
import os
import subprocess

from lab import ROOT, SHARED, Failed, Skip, wait_until
from peers import LAB, Peer

# Flink, and the Paimon that ../shared/interop puts beside it
PAIMON = {"2.0.2": "2.0.0", "1.20.5": "1.3.1"}


def title(version):
    return f"Flink {version}, Paimon {PAIMON[version]}"


def fetch(*targets, **environment):
    """What isn't there yet is brought through mvn and pip; a machine without them skips."""
    got = subprocess.run(["bash", os.path.join(SHARED, "interop/fetch-engines.sh"), *targets], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "LAB": LAB, **environment})
    if got.returncode != 0:
        raise Skip(f"fetch-engines.sh {' '.join(targets)}: {got.stdout.decode('utf-8', 'replace').strip()[-200:]}")


class Flink(Peer):
    def __init__(self, lab, uri, version, *conf, jars=""):
        """uri: of the REST catalog, or a warehouse's folder (file:…), for a file-system catalog; conf: "k=v" of Flink's configuration."""
        super().__init__(lab, lab.dir, ["env", f"FLINK_VERSION={version}", f"FLINK_JARS={jars}", "bash", os.path.join(ROOT, "test/interop/java/flink.sh"),
                                        "restart-strategy.type=none", *conf])
        self.version = version
        options = f"'warehouse'='{uri}'" if uri.startswith("file:") else f"'metastore'='rest', 'uri'='{uri}', 'warehouse'='tarn', 'token.provider'='bear', 'token'='x'"
        for mode in ("batch", "streaming"):
            self.ask(mode, f"CREATE CATALOG tarn WITH ('type'='paimon', {options})")
            self.ask(mode, "USE CATALOG tarn")

    def ask(self, *words):
        """-> rows, lists of texts that begin with their kind."""
        rows = []
        try:
            self.process.stdin.write((" ".join(" ".join(map(str, words)).split()) + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        while True:
            word, _, rest = self.process.stdout.readline().decode("utf-8", "replace").strip().partition(" ")
            if word != "row":
                break
            rows.append(json.loads(rest))
        if word != "ok":
            raise Failed(f"Flink {self.version}: {' '.join(map(str, words))[:300]}: {rest[-1500:] or 'it ended; see ' + self.log.name}")
        return rows

    def batch(self, sql):
        return collections.Counter(tuple(r[1:]) for r in self.ask("batch", sql))

    def streaming(self, sql):
        return collections.Counter(tuple(r[1:]) for r in self.ask("streaming", sql))

    def kill9(self):
        self.process.kill()
        self.process.wait()


def checkpoints(folder):
    """Finished ones, the newest last."""
    return sorted((os.path.dirname(m) for m in glob.glob(os.path.join(folder, "*/chk-*/_metadata"))), key=os.path.getmtime)


def checkpointed(folder, interval="300ms"):
    """Configuration of jobs whose checkpoints outlive them. Paimon's committer fails on purpose once it committed what it was restored with: so
    they are restarted."""
    return ["restart-strategy.type=fixed-delay", "restart-strategy.fixed-delay.attempts=20", "restart-strategy.fixed-delay.delay=100ms",
            f"execution.checkpointing.interval={interval}", f"execution.checkpointing.dir=file://{folder}", f"state.checkpoints.dir=file://{folder}",
            "execution.checkpointing.externalized-checkpoint-retention=RETAIN_ON_CANCELLATION", "execution.checkpointing.num-retained=3"]


def killed_and_restored(make, folder, sqls, kills, job, ended=None):
    """Runs an INSERT, behind the statements `sqls`, in a Flink that make(configuration) makes; it is killed each time another checkpoint is there, and
    the next one begins at the newest. At last it is left alone until it ends by itself, or until ended() is true."""
    for turn in range(kills + 1):
        found = checkpoints(folder)
        f = make(checkpointed(folder) + ([f"execution.state-recovery.path=file://{found[-1]}"] if found else []))
        for sql in sqls:
            f.ask("streaming", sql)
        f.ask("start", "job", job)
        if turn < kills:
            wait_until("another checkpoint", lambda: set(checkpoints(folder)) - set(found), 60)
            f.kill9()
    if ended:
        wait_until("the rows that are waited for", ended, 90, 1)
        f.ask("cancel", "job")
    else:
        f.ask("await", "job")
    f.close()
