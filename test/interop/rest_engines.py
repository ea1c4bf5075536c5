#!/usr/bin/env python3
"""needs: shared
Promise: pypaimon and pypaimon-rust, unmodified, read, write, change schemas, tag and branch through the daemon's REST catalog; Spark with a connector
that knows no REST reads the daemon's tables in their folder, and what it writes in tables of its own is the daemon's, too. rest_engines.py
[PART OF A CASE'S NAME]... runs some.
"""
import collections
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import lab as house  # noqa: E402
import matrix  # noqa: E402
import peers  # noqa: E402
from flink import fetch  # noqa: E402
from lab import Lab, check, equal, wait_until  # noqa: E402
from matrix import case  # noqa: E402

PYTHON, RUST, SPARK = "pypaimon 2.1.0", "pypaimon-rust 0.4.0", "Spark 3.5.6, Paimon 0.9.0, file-system catalog"
lab, tarnd, python = None, None, None
KEYED = {"fields": [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}, {"id": 1, "name": "v", "type": "STRING"}, {"id": 2, "name": "dt", "type": "STRING NOT NULL"}],
         "partitionKeys": ["dt"], "primaryKeys": ["id", "dt"], "options": {"bucket": "1"}, "comment": None}
PLAIN = {**KEYED, "primaryKeys": [], "options": {"bucket": "-1"}}


def begin():
    global lab, tarnd, python
    lab = Lab("rest-engines")
    tarnd = lab.daemon("d", **{"compaction.auto": "true"})
    tarnd.start()
    python = peers.Python(lab, tarnd.warehouse, "metastore=rest", f"uri=http://{tarnd.http}", "warehouse=tarn", "token.provider=bear", "token=x")
    return lab


def create(name, schema):
    python.ask("create", name, lab.write("s.json", json.dumps(schema)))


def rows(*numbers, v="x"):
    return lab.write("r.jsonl", "".join(json.dumps({"id": n, "v": f"{v}{n}", "dt": f"d{n % 2}"}) + "\n" for n in numbers))


def read_by(engine, name, *sets):
    python.engine = engine
    return python.rows(name, *sets)


def ids(name, *args):
    return sorted(r["id"] for r in tarnd.lines("scan", name, *args))


def sql(text):
    """pypaimon-rust's SQL: -> its rows."""
    out = python.file()
    python.ask("rust-sql", lab.write("q.sql", text), out)
    with open(out, encoding="utf-8") as f:
        return collections.Counter(tuple(json.loads(line)) for line in f)


def written(word, schema, name):
    """By one of them and tarn in turn; each reads the same, before and after Tarn compacts."""
    create(name, schema)
    for turn in range(4):
        path = rows(*range(turn * 3, turn * 3 + 8), v=f"t{turn}-")
        if turn % 2:
            tarnd.tarn("load", name, path, "--format", "jsonl")
        else:
            python.ask(word, name, path)
    for _ in range(2):
        want = tarnd.scan(name)
        equal(sum(want.values()), 17 if schema["primaryKeys"] else 32, "rows that tarn reads")
        for engine in ("python", "native", "rust"):
            equal(read_by(engine, name), want, f"rows that {engine} reads")
        tarnd.tarn("compact", name)


def python_schema():
    create("py.alter", KEYED)
    python.ask("write", "py.alter", rows(1, 2))
    for words in (["add", "py.alter", "n", "INT"], ["retype", "py.alter", "n", "BIGINT"], ["rename", "py.alter", "v", "w"], ["set", "py.alter", "k=v"]):
        python.ask(*words)
    python.ask("write", "py.alter", lab.write("r.jsonl", json.dumps({"id": 2, "w": "new", "dt": "d0", "n": 5 * 10**9}) + "\n"))
    want = tarnd.scan("py.alter")
    equal(sum(want.values()), 2, "rows that tarn reads")
    for engine in ("python", "native", "rust"):
        equal(read_by(engine, "py.alter"), want, f"rows that {engine} reads over two schemas")


def python_refs():
    name = "py.refs"
    create(name, PLAIN)
    for n in (1, 2, 3):
        python.ask("write", name, rows(n))
    python.ask("tag", name, "one", 1)
    tarnd.tarn("tag", "create", name, "two", "--snapshot", "2")
    out = python.file()
    python.ask("tags", name, out)
    with open(out, encoding="utf-8") as f:
        equal(f.read().split(), ["one", "two"], "tags that pypaimon lists")
    for engine in ("python", "native"):
        for tag, count in (("one", 1), ("two", 2)):
            equal(sum(read_by(engine, name, f"scan.tag-name={tag}").values()), count, f"rows at {tag} that {engine} reads")
    python.ask("branch", name, "dev", "one")
    python.ask("write", name + "$branch_dev", rows(9))
    equal(ids(name + "$branch_dev"), [1, 9], "rows of the branch")
    equal(ids(name), [1, 2, 3], "rows of the table")
    python.ask("forward", name, "dev")
    equal(ids(name), [1, 9], "rows of the table, forwarded")
    python.ask("unbranch", name, "dev")
    equal(tarnd.lines("branch", "list", name), [], "branches that are left")
    python.ask("write", name, rows(10))
    python.ask("rollback", name, 1)
    equal(ids(name), [1], "rows after the roll-back")
    python.ask("untag", name, "one")
    equal([t["tag"] for t in tarnd.lines("tag", "list", name)], [], "tags that are left: the forwarding took the later one")


def rust_sql():
    """DDL, writes, time travel and tags by pypaimon-rust's own SQL."""
    tarnd.tarn("db", "create", "rsql")
    sql("CREATE TABLE rsql.t (id BIGINT NOT NULL, v STRING, PRIMARY KEY (id)) WITH ('bucket' = '1')")
    sql("INSERT INTO rsql.t VALUES (1, 'a'), (2, 'b')")
    sql("INSERT INTO rsql.t VALUES (2, 'B'), (3, 'c')")
    equal(sql("SELECT id, v FROM rsql.t"), collections.Counter([("1", "a"), ("2", "B"), ("3", "c")]), "rows that it reads")
    equal(tarnd.scan("rsql.t"), collections.Counter([(1, "a"), (2, "B"), (3, "c")]), "rows that tarn reads")
    sql("ALTER TABLE rsql.t ADD COLUMN n INT")
    sql("INSERT INTO rsql.t VALUES (4, 'd', 7)")
    equal(sql("SELECT id, v, n FROM rsql.t WHERE id > 2"), collections.Counter([("3", "c", None), ("4", "d", "7")]), "rows over two schemas")
    equal(sum(read_by("native", "rsql.t").values()), 4, "rows that pypaimon reads")
    sql("CALL sys.create_tag(table => 'rsql.t', tag => 'one', snapshot_id => 1)")
    equal([t["tag"] for t in tarnd.lines("tag", "list", "rsql.t")], ["one"], "tags that tarn lists")
    equal(sql("SELECT id FROM rsql.t VERSION AS OF 'one'"), collections.Counter([("1",), ("2",)]), "rows at the tag")
    sql("CALL sys.rollback_to(table => 'rsql.t', tag => 'one')")
    equal(ids("rsql.t"), [1, 2], "rows after the roll-back")


def rust_branch():
    create("rs.tree", PLAIN)
    python.ask("rust-write", "rs.tree", rows(1))
    tarnd.tarn("branch", "create", "rs.tree", "dev")
    python.ask("rust-write", "rs.tree$branch_dev", rows(2))
    equal((ids("rs.tree"), ids("rs.tree$branch_dev")), ([1], [2]), "rows of the table, and of the branch")


# ---------------------------------------------------------------- Spark


def spark(text):
    """-> rows as texts of tabs."""
    fetch("spark")
    got = subprocess.run(["bash", os.path.join(house.SHARED, "interop/spark-sql.sh"), lab.write("spark.sql", text)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, timeout=240,
                         env={**{k: v for k, v in os.environ.items() if k != "PAIMON_REST_URI"}, "LAB": peers.LAB, "PAIMON_WAREHOUSE": "file://" + tarnd.warehouse})
    if got.returncode != 0:
        raise house.Failed("spark-sql.sh: " + got.stderr.decode("utf-8", "replace")[-1500:])
    return [tuple(line.split("\t")) for line in got.stdout.decode("utf-8").splitlines()]


def spark_reads():
    """Tables that tarn and pypaimon wrote, one of them compacted; at a version, and the tables of snapshots and files."""
    for name, schema in (("sp.keyed", KEYED), ("sp.plain", PLAIN)):
        create(name, schema)
        for turn in range(3):
            tarnd.tarn("load", name, rows(*range(turn * 2, turn * 2 + 5), v=f"t{turn}-"), "--format", "jsonl")
    tarnd.tarn("compact", "sp.keyed")
    tarnd.tarn("table", "alter", "sp.plain", "--add-column", "n INT")
    tarnd.tarn("load", "sp.plain", lab.write("r.jsonl", '{"id": 77, "v": "n", "dt": "d1", "n": 7}\n'), "--format", "jsonl")
    got = spark("SELECT 'k', * FROM sp.keyed; SELECT 'p', * FROM sp.plain; SELECT 'v', count(*) FROM sp.plain VERSION AS OF 1; SELECT 's', snapshot_id FROM sp.`plain$snapshots`;"
                "SELECT 'f', count(*) FROM sp.`keyed$files`; SHOW TABLES IN sp")

    def of(word):
        return collections.Counter(r[1:] for r in got if r[0] == word)
    for word, name in (("k", "sp.keyed"), ("p", "sp.plain")):
        equal(of(word), collections.Counter(tuple(str(v) for v in r.values()) for r in tarnd.lines("scan", name)), f"rows of {name}")
    equal(of("v"), collections.Counter([("5",)]), "rows at version 1")
    equal(of("s"), collections.Counter([(str(n),) for n in range(1, 5)]), "snapshots")
    equal(of("f"), collections.Counter([(str(len(tarnd.lines("files", "sp.keyed"))),)]), "files")


def spark_writes():
    """A table of Spark's own, in the daemon's warehouse and without it: it is found, its commits are adopted as they come, and its rows are Tarn's."""
    spark("CREATE DATABASE IF NOT EXISTS spark; CREATE TABLE spark.own (id BIGINT NOT NULL, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1', 'file.format' = 'parquet');"
          "INSERT INTO spark.own VALUES (1, 'a'), (2, 'b'); INSERT INTO spark.own VALUES (2, 'B'), (3, 'c')")
    wait_until("the table is found", lambda: tarnd.tarn("table", "show", "spark.own", ok=None).returncode == 0, 30, 0.5)
    equal(tarnd.scan("spark.own"), collections.Counter([(1, "a"), (2, "B"), (3, "c")]), "rows that tarn reads")
    spark("UPDATE spark.own SET v = 'u' WHERE id = 1; DELETE FROM spark.own WHERE id = 2; CALL sys.compact(table => 'spark.own')")
    want = collections.Counter([(1, "u"), (3, "c")])
    equal(tarnd.scan("spark.own"), want, "rows that tarn reads, changed and compacted")
    for engine in ("native", "rust"):
        equal(read_by(engine, "spark.own"), want, f"rows that {engine} reads over REST")
    check(spark("SELECT count(*) FROM spark.own") == [("2",)], "rows that Spark counts")


CASES = [
    case(PYTHON, "table with a key, written by pypaimon and tarn in turn", written, "write", KEYED, "py.keyed", short=True),
    case(PYTHON, "append table, written by pypaimon and tarn in turn", written, "write", PLAIN, "py.plain", short=True),
    case(PYTHON, "schema changes", python_schema, short=True),
    case(PYTHON, "tags, branches, roll-back", python_refs, short=True),
    case(RUST, "table with a key, written by pypaimon-rust and tarn in turn", written, "rust-write", KEYED, "rs.keyed", short=True),
    case(RUST, "append table, written by pypaimon-rust and tarn in turn", written, "rust-write", PLAIN, "rs.plain", short=True),
    case(RUST, "SQL: CREATE TABLE, INSERT, ALTER TABLE, time travel, tags, roll-back", rust_sql, short=True),
    case(RUST, "a branch written", rust_branch, short=True),
    case(SPARK, "reads Tarn's tables, with and without a key, compacted, of two schemas", spark_reads),
    case(SPARK, "a table of its own: created, written, updated, deleted from, compacted; read by Tarn, pypaimon, pypaimon-rust", spark_writes),
]
if __name__ == "__main__":
    sys.exit(matrix.main(__file__, CASES, begin))
