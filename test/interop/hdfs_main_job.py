#!/usr/bin/env python3
"""needs: shared
Promise: on a real HDFS the store keeps what every store promises, and the main job runs as on a local disk: create, load,
upsert, delete, compact, scan, restart, start without state. Paimon's Java library (by HDFS' own protocol) and pypaimon (on
a copy) see the same rows at each step, and what Java commits there is seen by Tarn.

Minutes long: runs with TARN_EFFORT of 10 or more, as make check-long sets it. hdfs_main_job.py [PART OF A CASE'S NAME]...
The server is ../shared/interop/services/hdfs.sh; it is wiped in the end."""
import atexit
import json
import os
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import lab as house  # noqa: E402
import peers  # noqa: E402
from lab import Lab, Skip, check, equal, free_port, same_rows  # noqa: E402
from shapes import shapes  # noqa: E402

SERVICE = os.path.join(house.SHARED, "interop/services/hdfs.sh")
SHAPES = {s.name: s for s in shapes()}
JOBS = ["ap_part", "pk_all", "pk_part4"]

lab = Lab("hdfs")


class Hdfs:
    def __init__(self):
        self.port, self.http = free_port(), free_port()
        self.environment = {**os.environ, "LAB": peers.LAB, "LAB_STATE": lab.path("hdfs"), "HDFS_PORT": str(self.port),
                            "HDFS_HTTP_PORT": str(self.http)}
        atexit.register(self.wipe)
        self.run("start", check=True)
        self.endpoint, self.uri = f"http://127.0.0.1:{self.http}", f"hdfs://127.0.0.1:{self.port}"

    def run(self, word, check=False):
        got = subprocess.run(["bash", SERVICE, word], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             timeout=300)
        if check and got.returncode != 0:
            raise house.Failed(f"hdfs.sh {word}: {got.stdout.decode('utf-8', 'replace')[-1500:]}")

    def wipe(self):
        """Before the folder is gone, in which its pid stands; a second time does nothing."""
        atexit.unregister(self.wipe)
        self.run("wipe")

    def ask(self, path, op):
        url = f"{self.endpoint}/webhdfs/v1{urllib.parse.quote(path)}?op={op}&user.name=root"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read()

    def copy(self, path, folder):
        """A folder of HDFS to the local disk."""
        os.makedirs(folder, exist_ok=True)
        for entry in json.loads(self.ask(path, "LISTSTATUS"))["FileStatuses"]["FileStatus"]:
            name = entry["pathSuffix"]
            if entry["type"] == "DIRECTORY":
                self.copy(f"{path}/{name}", os.path.join(folder, name))
            else:
                with open(os.path.join(folder, name), "wb") as f:
                    f.write(self.ask(f"{path}/{name}", "OPEN"))

    def hidden(self, path):
        """What is left of files that were never published."""
        out = []
        for entry in json.loads(self.ask(path, "LISTSTATUS"))["FileStatuses"]["FileStatus"]:
            name = f"{path}/{entry['pathSuffix']}"
            out += self.hidden(name) if entry["type"] == "DIRECTORY" else [name] if name.endswith(".tmp") else []
        return out


def conformance(hdfs):
    program = os.path.join(house.BIN, "../test/unit/store/hdfs_test")
    if not os.path.exists(program):
        raise Skip("build/test/unit/store/hdfs_test is not built")
    got = subprocess.run([program, "hdfs_real.*"], env={**os.environ, "TARN_TEST_WEBHDFS": hdfs.endpoint}, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, timeout=900)
    check(got.returncode == 0, got.stdout.decode("utf-8", "replace")[-3000:])


class Job:
    def __init__(self, hdfs):
        self.hdfs, self.copies = hdfs, 0
        os.environ["HADOOP_USER_NAME"] = "root"
        self.tarn = lab.daemon("d", **{"worker.count": 2, "warehouse.uri": hdfs.uri + "/lake/wh",
                                       "hdfs.webhdfs_endpoint": hdfs.endpoint, "hdfs.chunk_size": "64 kb"})
        self.tarn.start()
        self.tarn.tarn("db", "create", "i")
        self.java = peers.Java(lab, hdfs.uri + "/lake/wh")

    def see(self, shape, want, when):
        """Tarn, Java and pypaimon."""
        table = "i." + shape.name
        same_rows(self.tarn.scan(table, types=shape.types), want, f"tarn {when}")
        same_rows(self.java.rows(table, types=shape.types), want, f"java {when}")
        self.copies += 1
        folder = lab.path(f"copy{self.copies}")
        self.hdfs.copy(f"/lake/wh/i.db/{shape.name}", os.path.join(folder, "i.db", shape.name))
        python = peers.Python(lab, folder)
        same_rows(python.rows(table, types=shape.types), want, f"pypaimon {when}")
        python.close()
        shutil.rmtree(folder)

    def load(self, shape, commit):
        words = ["load", "i." + shape.name, lab.write("in.jsonl", shape.lines(commit))]
        if {k for k, _ in commit} != {"+I"}:
            words += ["--op-column", "rowkind"]
        return self.tarn.json(*words)["snapshot"]

    def table(self, shape):
        table, states = "i." + shape.name, shape.states()
        self.tarn.tarn("table", "create", table, *shape.create_words())
        for n, commit in enumerate(shape.commits):
            equal(self.load(shape, commit), n + 1, "snapshot")
        self.see(shape, states[-1], "after loads")
        self.tarn.tarn("compact", table, "--full", "--wait")
        self.see(shape, states[-1], "after compaction")

    def restart(self, shape):
        self.tarn.stop()
        self.tarn.start()
        self.see(shape, shape.states()[-1], "after a restart")
        self.tarn.kill9()
        shutil.rmtree(os.path.join(self.tarn.data, "state"))
        self.tarn.start()
        self.see(shape, shape.states()[-1], "without the state of before")

    def foreign(self, shape):
        """Java's snapshots there are adopted, and Tarn goes on after them."""
        table, commit = "i." + shape.name, [("+I", r) for k, r in shape.commits[0] if k == "+I"]
        before = self.tarn.scan(table, types=shape.types)
        theirs = int(self.java.ask("write", table, lab.write("w.jsonl", shape.lines(commit))))
        ours = self.load(shape, commit)
        check(ours > theirs, f"snapshot {ours} comes after java's {theirs}")
        more = {shape.row(r): 2 for _, r in commit}
        for row, times in more.items():
            before[row] += times
        self.see(shape, before, "after a commit of each")

    def rename(self, shape):
        self.tarn.tarn("table", "rename", "i." + shape.name, "i.renamed")
        same_rows(self.tarn.scan("i.renamed", types=shape.types), shape.states()[-1], "renamed")
        same_rows(self.java.rows("i.renamed", types=shape.types), shape.states()[-1], "java, renamed")
        self.tarn.tarn("table", "drop", "i.renamed")
        check("renamed" not in [e["pathSuffix"] for e in json.loads(self.hdfs.ask("/lake/wh/i.db", "LISTSTATUS"))
                                ["FileStatuses"]["FileStatus"]], "the folder is gone")

    def clean(self):
        self.tarn.stop()
        equal(self.hdfs.hidden("/lake/wh"), [], "what is left of unpublished files")


def run_all(hdfs):
    lab.run("the conformance suite", conformance, hdfs)
    with lab.case("a daemon on an empty HDFS"):
        job = Job(hdfs)
    for name in JOBS:
        lab.run(f"load, compact, scan: {name}", job.table, SHAPES[name])
    lab.run("restart, and without state", job.restart, SHAPES["pk_all"])
    lab.run("java commits there too", job.foreign, SHAPES["ap_part"])
    lab.run("rename and drop a table", job.rename, SHAPES["pk_part4"])
    lab.run("nothing hidden is left", job.clean)


def main():
    if int(os.environ.get("TARN_EFFORT", 1)) < 10:
        raise Skip("minutes long: make check-long")
    if not os.path.exists(SERVICE):
        raise Skip(f"there is no {SERVICE}")
    hdfs = Hdfs()
    try:
        run_all(hdfs)
    finally:
        lab.end_all()
        hdfs.wipe()


with lab.case("HDFS"):
    main()
sys.exit(lab.done())
