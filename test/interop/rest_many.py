#!/usr/bin/env python3
"""needs: shared
Promise: writers of several engines and versions on one table at once, beside Tarn's compaction and their own, lose nothing and double nothing;
and whatever becomes of the answers to Flink's commits (lost, late, replaced by 500, 503, 429, before or after they were carried out), its rows are
exact. Also the contract of rest_catalog.py and rest_faults.py with older Java libraries. rest_many.py [PART OF A CASE'S NAME]... runs some.
"""
import collections
import json
import os
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import flink  # noqa: E402
import matrix  # noqa: E402
import peers  # noqa: E402
import strike  # noqa: E402
from flink import Flink  # noqa: E402
from lab import BIN, ROOT, Failed, Lab, check, equal  # noqa: E402
from matrix import case  # noqa: E402

lab, tarnd = None, None
FIELDS = [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}, {"id": 1, "name": "v", "type": "BIGINT"}]
ROUNDS, LINES = 12, 60


def begin():
    global lab, tarnd
    lab = Lab("rest-many")
    tarnd = lab.daemon("d", **{"compaction.auto": "true"})
    tarnd.start()
    tarnd.tarn("db", "create", "m")
    return lab


def options(uri=None):
    return ["metastore=rest", f"uri={uri or 'http://' + tarnd.http}", "warehouse=tarn", "token.provider=bear", "token=x"]


def counted(rows):
    return collections.Counter(tuple(str(v) for v in row) for row in rows)


def by_tarn(table):
    return counted(row.values() for row in tarnd.lines("scan", table))


def sequence(n, rate):
    return (f"CREATE TEMPORARY TABLE gen (n BIGINT) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0', "
            f"'fields.n.end' = '{n - 1}', 'rows-per-second' = '{rate}')")


class Writer(threading.Thread):
    """Calls write(lines of a round's file) round by round; `again`: a round that failed is written again, which may only be where its rows replace
    themselves."""

    def __init__(self, name, first, write, keyed):
        super().__init__()
        self.word, self.first, self.write, self.keyed = name, first, write, keyed
        self.wrong, self.again = None, 0

    def run(self):
        for turn in range(ROUNDS):
            numbers = range(LINES) if self.keyed else range(turn * LINES, turn * LINES + LINES)
            path = lab.write(f"{self.word}.jsonl", "".join(json.dumps({"id": self.first + n, "v": turn}) + "\n" for n in numbers))
            for attempt in range(10):
                try:
                    self.write(path)
                    break
                except Exception as e:
                    if not self.keyed or attempt == 9:
                        self.wrong = f"{self.word}: {e}"
                        return
                    self.again += 1

    def rows(self):
        if self.keyed:
            return [(self.first + n, ROUNDS - 1) for n in range(LINES)]
        return [(self.first + n, n // LINES) for n in range(ROUNDS * LINES)]


def at_once(name, keyed, more):
    """Flink of two versions, Java of two, pypaimon, pypaimon-rust and tarn on one table."""
    versions, n = list(flink.PAIMON), 6000
    for version in versions:
        flink.fetch("flink", FLINK_VERSION=version)
    flink.fetch("java", PAIMON_FLINK="paimon-bundle", PAIMON_VERSION="1.4.2")
    java = peers.Java(lab, tarnd.warehouse, *options())
    older = peers.Java(lab, tarnd.warehouse, *options(), environment={"PAIMON_FLINK": "paimon-bundle", "PAIMON_VERSION": "1.4.2"})
    python, rust = (peers.Python(lab, tarnd.warehouse, *options()) for _ in range(2))
    schema = {"fields": FIELDS, "partitionKeys": [], "primaryKeys": ["id"] if keyed else [], "options": {"bucket": "2" if keyed else "-1", **more}, "comment": None}
    java.ask("create", name, lab.write("s.json", json.dumps(schema)))
    writers = [Writer(word, (i + 1) * 100000, write, keyed) for i, (word, write) in enumerate((
        ("java", lambda path: java.ask("write", name, path)), ("older", lambda path: older.ask("write", name, path)),
        ("python", lambda path: python.ask("write", name, path)), ("rust", lambda path: rust.ask("rust-write", name, path)),
        ("tarn", lambda path: tarnd.tarn("load", name, path, "--format", "jsonl"))))]
    want = counted(row for w in writers for row in w.rows())
    flinks = []
    for i, version in enumerate(versions):
        first = (i + 1) * 1000000
        f = Flink(lab, f"http://{tarnd.http}", version, "parallelism.default=1", *flink.checkpointed(lab.path(f"chk-{name}-{version}"), "400ms"))
        f.ask("streaming", sequence(n, 400))
        f.ask("start", "job", f"INSERT INTO {name} SELECT {f'{first} + MOD(n, 500), n' if keyed else f'{first} + n, n'} FROM gen")
        flinks.append(f)
        want += counted([(first + k, max(range(k, n, 500))) for k in range(500)] if keyed else [(first + k, k) for k in range(n)])
    for w in writers:
        w.start()
    while any(w.is_alive() for w in writers):  # of a table that isn't write-only the daemon compacts nothing by itself
        tarnd.tarn("compact", name, ok=None)
    for w in writers:
        w.join()
    for f in flinks:
        f.ask("await", "job")
    equal([w.wrong for w in writers if w.wrong], [], "what went wrong")
    got = by_tarn(name)
    equal((got - want, want - got), (collections.Counter(), collections.Counter()), "rows that tarn reads too many, and misses")
    types = [("id", "BIGINT"), ("v", "BIGINT")]
    for peer in (java, older, python):
        equal(counted(peer.rows(name, types=types)), want, f"rows that {type(peer).__name__} reads")
    equal(flinks[0].batch(f"SELECT * FROM {name}"), want, "rows that Flink reads")
    compactions = [s for s in tarnd.lines("snapshots", name) if s["kind"].upper() == "COMPACT"]
    check(not keyed or compactions, "there were compactions")
    print(f"  {len(tarnd.lines('snapshots', name))} snapshots, {len(compactions)} of them compactions; rounds written again: "
          + ", ".join(f"{w.word} {w.again}" for w in writers), flush=True)
    for p in (java, older, python, rust, *flinks):
        p.close()


def struck(version):
    """Each other commit of streaming jobs, a job for each of the faults, into a table without a key and one with it."""
    flink.fetch("flink", FLINK_VERSION=version)
    uri, close = strike.serve(tarnd.http)
    n, word = 2500, "m.f" + version.replace(".", "_")
    f = Flink(lab, uri, version, "parallelism.default=1", *flink.checkpointed(lab.path(f"chk-{word}"), "200ms"), "restart-strategy.fixed-delay.attempts=200")
    try:
        f.ask("streaming", sequence(n, 1000))
        for fault in strike.FAULTS:
            name, before = f"{word}_{fault.replace(' ', '_')}", strike.Proxy.struck
            f.batch(f"CREATE TABLE {name} (id BIGINT, v BIGINT)")
            f.batch(f"CREATE TABLE {name}_key (id BIGINT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1')")
            for table, columns in ((name, "n, n"), (name + "_key", "MOD(n, 100), n")):
                strike.Proxy.faults.extend([None, fault] * 6)
                f.streaming(f"INSERT INTO {table} SELECT {columns} FROM gen")
                strike.Proxy.faults.clear()
            check(strike.Proxy.struck > before + 1, f"{fault}: {strike.Proxy.struck - before} commits were struck")
            for table, want in ((name, [(i, i) for i in range(n)]), (name + "_key", [(k, max(range(k, n, 100))) for k in range(100)])):
                got, want = by_tarn(table), counted(want)
                equal((got - want, want - got), (collections.Counter(), collections.Counter()), f"{fault}: rows of {table} too many, and missing")
    finally:
        strike.Proxy.faults.clear()
        close()
        f.close()


def contract(script, version):
    """That script whole, with the Java library of that version in the place of the newest."""
    flink.fetch("java", PAIMON_FLINK="paimon-bundle", PAIMON_VERSION=version)
    got = subprocess.run([sys.executable, os.path.join(ROOT, "test/interop", script)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         env={**os.environ, "PAIMON_FLINK": "paimon-bundle", "PAIMON_VERSION": version, "TARN_BIN": BIN})
    said = got.stdout.decode("utf-8", "replace")
    if got.returncode != 0:
        raise Failed("\n".join(line for line in said.splitlines() if not line.startswith("ok "))[-3000:])


EVERYBODY = "Flink 2.0.2 and 1.20.5, Java library 2.0.0 and 1.4.2, pypaimon 2.1.0, pypaimon-rust 0.4.0, tarn"
CASES = [
    case(EVERYBODY, "all write one table with a key at once, which they and Tarn compact", at_once, "m.keyed", True, {"write-only": "false"}),
    case(EVERYBODY, "all write one table with a key at once, `write-only`, which Tarn compacts", at_once, "m.keyed_wo", True, {"write-only": "true"}),
    case(EVERYBODY, "all write one append table at once, which Tarn compacts", at_once, "m.plain", False, {}),
    *[case(flink.title(version), "answers to each other commit of a streaming job: " + ", ".join(strike.FAULTS), struck, version) for version in flink.PAIMON],
    *[case(f"Java library {version}", f"`{script}`", contract, script, version)
      for version in ("1.4.2", "1.3.1", "1.2.0") for script in ("rest_catalog.py", "rest_faults.py")],
]
if __name__ == "__main__":
    sys.exit(matrix.main(__file__, CASES, begin))
