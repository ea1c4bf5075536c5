#!/usr/bin/env python3
"""needs: shared
Promise: Flink SQL, unmodified, has in the daemon's REST catalog what it has in its own: tables, batch writes, upserts by checkpoint that are
exactly once whatever is killed, streaming reads, aggregates, lookup joins, time travel, tags, branches, altered schemas; Tarn reads the same rows
and compacts beside it. A few cases belong to each change, the rest to check long. rest_flink.py [PART OF A CASE'S NAME]... runs some.
"""
import collections
import os
import socket
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import flink  # noqa: E402
import matrix  # noqa: E402
from flink import Flink, killed_and_restored  # noqa: E402
from lab import Lab, check, equal, wait_until  # noqa: E402
from matrix import case  # noqa: E402
from peers import Python  # noqa: E402

lab, tarnd, python = None, None, None
SESSIONS = {}  # of each version one for what needs no process of its own
KEYED = "(id BIGINT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2')"


def begin():
    global lab, tarnd, python
    lab = Lab("rest-flink")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        http = f"127.0.0.1:{s.getsockname()[1]}"
    tarnd = lab.daemon("d", **{"server.http_listen": http, "compaction.auto": "true"})
    tarnd.start()
    python = Python(lab, tarnd.warehouse, "metastore=rest", f"uri=http://{http}", "warehouse=tarn", "token.provider=bear", "token=x")
    return lab


def engine(version, *conf):
    flink.fetch("flink", FLINK_VERSION=version)
    return Flink(lab, f"http://{tarnd.http}", version, *conf)


def session(version):
    """-> a Flink, and the database of its version."""
    if version not in SESSIONS:
        SESSIONS[version] = engine(version, "execution.checkpointing.interval=300ms", f"parallelism.default={2 if matrix.EFFORT > 1 else 1}")
    database = "f" + version.replace(".", "_")
    SESSIONS[version].batch(f"CREATE DATABASE IF NOT EXISTS {database}")
    return SESSIONS[version], database


def by_tarn(table, *args):
    """Rows as texts, as Flink prints BIGINT, INT and STRING."""
    out = collections.Counter()
    for row in tarnd.lines("scan", table, *args):
        out[tuple(None if v is None else str(v) for v in row.values())] += 1
    return out


def counted(rows):
    return collections.Counter(tuple(None if v is None else str(v) for v in row) for row in rows)


def expect(f, table, rows, what="rows"):
    want = counted(rows)
    equal(f.batch(f"SELECT * FROM {table}"), want, f"{what} that Flink reads")
    equal(by_tarn(table), want, f"{what} that tarn reads")


def batches(version):
    f, db = session(version)
    f.batch(f"CREATE TABLE {db}.p (id BIGINT, v STRING, dt STRING, PRIMARY KEY (id, dt) NOT ENFORCED) PARTITIONED BY (dt) WITH ('bucket' = '1')")
    f.batch(f"INSERT INTO {db}.p VALUES (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y')")
    f.batch(f"INSERT INTO {db}.p VALUES (1, 'A', 'x'), (4, CAST(NULL AS STRING), 'y')")
    expect(f, f"{db}.p", [(1, "A", "x"), (2, "b", "x"), (3, "c", "y"), (4, None, "y")])
    tarnd.tarn("compact", f"{db}.p")
    f.batch(f"UPDATE {db}.p SET v = 'u' WHERE id = 2")
    f.batch(f"DELETE FROM {db}.p WHERE id = 3")
    expect(f, f"{db}.p", [(1, "A", "x"), (2, "u", "x"), (4, None, "y")], "changed rows")
    f.batch(f"INSERT OVERWRITE {db}.p PARTITION (dt = 'x') SELECT 9, 'n'")
    expect(f, f"{db}.p", [(9, "n", "x"), (4, None, "y")], "overwritten rows")
    equal(f.batch(f"SHOW PARTITIONS {db}.p"), counted([("dt=x",), ("dt=y",)]), "partitions")
    f.batch(f"ALTER TABLE {db}.p DROP PARTITION (dt = 'y')")
    expect(f, f"{db}.p", [(9, "n", "x")], "rows without a partition")
    f.batch(f"TRUNCATE TABLE {db}.p")
    expect(f, f"{db}.p", [], "rows of a truncated table")


def appends(version):
    """One without a key, and writes of tarn between Flink's."""
    f, db = session(version)
    f.batch(f"CREATE TABLE {db}.a (id BIGINT, v STRING)")
    f.batch(f"INSERT INTO {db}.a VALUES (1, 'a'), (1, 'a')")
    tarnd.tarn("load", f"{db}.a", lab.write("a.jsonl", '{"id": 2, "v": "t"}\n'), "--format", "jsonl")
    f.batch(f"INSERT INTO {db}.a SELECT id + 10, v FROM {db}.a")
    want = [(1, "a"), (1, "a"), (2, "t"), (11, "a"), (11, "a"), (12, "t")]
    expect(f, f"{db}.a", want)
    f.batch(f"CALL sys.compact(`table` => '{db}.a')")
    expect(f, f"{db}.a", want, "compacted rows")


TYPES = """c01 BOOLEAN, c02 TINYINT, c03 SMALLINT, c04 INT, c05 BIGINT, c06 FLOAT, c07 DOUBLE, c08 DECIMAL(9, 3), c09 DECIMAL(38, 10), c10 CHAR(3), c11 VARCHAR(9),
 c12 STRING, c13 BINARY(3), c14 BYTES, c15 DATE, c16 TIME(3), c17 TIMESTAMP(3), c18 TIMESTAMP(6), c19 TIMESTAMP(9), c20 TIMESTAMP_LTZ(6), c21 ARRAY<STRING>,
 c22 MAP<STRING, INT>, c23 ROW<x INT, y ARRAY<DOUBLE>>"""
VALUES = """TRUE, CAST(-7 AS TINYINT), CAST(300 AS SMALLINT), -70000, 5000000000, CAST(1.5 AS FLOAT), CAST(-2.25 AS DOUBLE), CAST(123456.789 AS DECIMAL(9, 3)),
 CAST('1234567890123456789012345678.0123456789' AS DECIMAL(38, 10)), 'abc', 'vär', 'a ''string''', X'010203', X'ff00', DATE '1969-12-31', TIME '23:59:58.123',
 TIMESTAMP '2026-01-02 03:04:05.678', TIMESTAMP '2026-01-02 03:04:05.678901', TIMESTAMP '2026-01-02 03:04:05.678901234',
 CAST(TIMESTAMP '2026-01-02 03:04:05.678901' AS TIMESTAMP_LTZ(6)), ARRAY['a', 'b'], MAP['k', 1], ROW(1, ARRAY[CAST(0.5 AS DOUBLE)])"""


def all_types(version):
    f, db = session(version)
    f.batch(f"CREATE TABLE {db}.types (id BIGINT, {TYPES}, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1')")
    f.batch(f"INSERT INTO {db}.types SELECT 1, {VALUES}")
    nulls = ", ".join(f"CAST(NULL AS {c.strip().split(' ', 1)[1]})" for c in split_columns(TYPES))
    f.batch(f"INSERT INTO {db}.types SELECT 2, {nulls}")
    want = tarnd.scan(f"{db}.types")
    equal(python.rows(f"{db}.types"), want, "rows that pypaimon reads")
    seen = f.batch(f"SELECT * FROM {db}.types")
    tarnd.tarn("compact", f"{db}.types")
    equal(f.batch(f"SELECT * FROM {db}.types"), seen, "rows that Flink reads of Tarn's compaction")
    f.batch(f"CREATE TABLE {db}.types2 WITH ('bucket' = '1') LIKE {db}.types (EXCLUDING OPTIONS)")
    f.batch(f"INSERT INTO {db}.types2 SELECT * FROM {db}.types")
    equal(tarnd.scan(f"{db}.types2"), want, "rows that Flink copied")


def split_columns(text):
    """At commas that are not within brackets."""
    out, depth = [""], 0
    for c in text:
        depth += (c in "(<") - (c in ")>")
        if c == "," and depth == 0:
            out.append("")
        else:
            out[-1] += c
    return out


def sequence(n, rate):
    return (f"CREATE TEMPORARY TABLE gen (n BIGINT, proc AS PROCTIME()) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0', "
            f"'fields.n.end' = '{n - 1}', 'rows-per-second' = '{rate}')")


def upserts(version, kills):
    """Rows by checkpoint into a table with a key and one without, in order by one writer; the process is killed, and begins at its checkpoint."""
    f, db = session(version)
    n = 3000 if kills == 1 else 9000
    f.batch(f"CREATE TABLE {db}.up{kills} {KEYED}")
    killed_and_restored(lambda conf: engine(version, "parallelism.default=1", *conf), lab.path(f"chk-up-{version}-{kills}"), [sequence(n, 1500)], kills,
                        f"INSERT INTO {db}.up{kills} SELECT MOD(n, 700), n FROM gen")
    expect(f, f"{db}.up{kills}", [(i, max(range(i, n, 700))) for i in range(700)])


def once(version, kills):
    """Two writers of one job: each row is there once."""
    f, db = session(version)
    f.batch(f"CREATE TABLE {db}.once (n BIGINT, v STRING)")
    killed_and_restored(lambda conf: engine(version, "parallelism.default=2", *conf), lab.path(f"chk-once-{version}"), [sequence(8000, 1000)], kills,
                        f"INSERT INTO {db}.once SELECT n, 'v' FROM gen")
    expect(f, f"{db}.once", [(n, "v") for n in range(8000)])


def aggregated(version, kills):
    """A table of details, by a job that is killed, and its sums by another that is, too."""
    f, db = session(version)
    f.batch(f"CREATE TABLE {db}.detail (n BIGINT, k BIGINT) WITH ('bucket' = '-1')")
    f.batch(f"CREATE TABLE {db}.sums (k BIGINT, total BIGINT, most BIGINT, cnt BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('bucket' = '1', "
            "'merge-engine' = 'aggregation', 'fields.total.aggregate-function' = 'sum', 'fields.most.aggregate-function' = 'max', 'fields.cnt.aggregate-function' = 'sum')")
    n = 10000
    killed_and_restored(lambda conf: engine(version, "parallelism.default=1", *conf), lab.path(f"chk-detail-{version}"), [sequence(n, 1500)], kills,
                        f"INSERT INTO {db}.detail SELECT n, MOD(n, 13) FROM gen")
    read = (f"INSERT INTO {db}.sums SELECT k, n, n, CAST(1 AS BIGINT) FROM {db}.detail /*+ OPTIONS('scan.mode' = 'from-snapshot', 'scan.snapshot-id' = '1', "
            "'continuous.discovery-interval' = '200ms', 'scan.max-splits-per-task' = '1') */")
    want = counted([(k, sum(range(k, n, 13)), max(range(k, n, 13)), len(range(k, n, 13))) for k in range(13)])
    killed_and_restored(lambda conf: engine(version, "parallelism.default=1", *conf), lab.path(f"chk-sums-{version}"), [], kills, read,
                        lambda: f.batch(f"SELECT * FROM {db}.sums") == want)
    equal(f.batch(f"SELECT * FROM {db}.sums"), want, "sums")
    equal(f.batch(f"SELECT k, total FROM {db}.sums WHERE k = 3"), counted([(3, sum(range(3, n, 13)))]), "one of them")


def streaming_read(version):
    """What others write is read as it comes, rows of Tarn's loads among it, into a copy with a key; compactions add nothing."""
    f, db = session(version)
    f.batch(f"CREATE TABLE {db}.live (id BIGINT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1', 'changelog-producer' = 'input')")
    f.batch(f"CREATE TABLE {db}.plain (id BIGINT, v BIGINT)")
    f.batch(f"CREATE TABLE {db}.copy {KEYED}")
    f.batch(f"CREATE TABLE {db}.copy2 (id BIGINT, v BIGINT)")
    f.batch(f"INSERT INTO {db}.live VALUES (1, 1), (2, 2)")
    f.batch(f"INSERT INTO {db}.plain VALUES (1, 1), (2, 2)")
    hint = "/*+ OPTIONS('continuous.discovery-interval' = '200ms') */"
    f.ask("start", "copy", f"INSERT INTO {db}.copy SELECT * FROM {db}.live {hint}")
    f.ask("start", "copy2", f"INSERT INTO {db}.copy2 SELECT * FROM {db}.plain {hint}")
    f.ask("start", "seen", f"SELECT * FROM {db}.live {hint}")
    equal(counted(r[1:] for r in f.ask("take", "seen", 2)), counted([(1, 1), (2, 2)]), "the first rows")
    f.batch(f"INSERT INTO {db}.live VALUES (1, 10), (3, 3)")
    f.batch(f"DELETE FROM {db}.live WHERE id = 2")
    got = f.ask("take", "seen", 3)
    equal(collections.Counter(tuple(r[1:]) for r in got if r[0] in ("+I", "+U")), counted([(1, 10), (3, 3)]), f"rows that follow: {got}")
    equal([r[1] for r in got if r[0] == "-D"], ["2"], "the row that goes")
    f.ask("cancel", "seen")
    for n in range(3, 8):
        if n % 2:
            f.batch(f"INSERT INTO {db}.plain VALUES ({n}, {n})")
        else:
            tarnd.tarn("load", f"{db}.plain", lab.write("p.jsonl", f'{{"id": {n}, "v": {n}}}\n'), "--format", "jsonl")
    tarnd.tarn("compact", f"{db}.plain")
    wait_until("a copy with a key", lambda: by_tarn(f"{db}.copy") == counted([(1, 10), (3, 3)]), 60, 0.5)
    wait_until("a copy without", lambda: by_tarn(f"{db}.copy2") == counted([(n, n) for n in range(1, 8)]), 60, 0.5)
    for job in ("copy", "copy2"):
        f.ask("cancel", job)
    expect(f, f"{db}.copy2", [(n, n) for n in range(1, 8)])


def looked_up(version):
    f, db = session(version)
    f.batch(f"CREATE TABLE {db}.dim (k BIGINT, name STRING, PRIMARY KEY (k) NOT ENFORCED) WITH ('bucket' = '1')")
    f.batch(f"CREATE TABLE {db}.joined (n BIGINT, name STRING)")
    tarnd.tarn("load", f"{db}.dim", lab.write("d.jsonl", "".join(f'{{"k": {k}, "name": "n{k}"}}\n' for k in range(5))), "--format", "jsonl")
    f.batch(f"INSERT INTO {db}.dim VALUES (3, 'three')")
    f.streaming(sequence(20, 1000))
    f.streaming(f"INSERT INTO {db}.joined SELECT n, name FROM gen LEFT JOIN {db}.dim FOR SYSTEM_TIME AS OF gen.proc AS d ON MOD(gen.n, 10) = d.k")
    f.streaming("DROP TEMPORARY TABLE gen")
    expect(f, f"{db}.joined", [(n, None if n % 10 > 4 else "three" if n % 10 == 3 else f"n{n % 10}") for n in range(20)])


def at_snapshot(f, table, *options):
    hint = ", ".join(f"'{k}' = '{v}'" for k, v in options)
    return f.batch(f"SELECT * FROM {table} /*+ OPTIONS({hint}) */")


def time_travel(version):
    f, db = session(version)
    t = f"{db}.travel"
    f.batch(f"CREATE TABLE {t} {KEYED}")
    f.batch(f"INSERT INTO {t} VALUES (1, 1)")
    time.sleep(0.01)
    between = int(time.time() * 1000)
    f.batch(f"INSERT INTO {t} VALUES (1, 2), (2, 2)")
    f.batch(f"CALL sys.create_tag(`table` => '{t}', tag => 'one', snapshot_id => 1)")
    equal([x["tag"] for x in tarnd.lines("tag", "list", t)], ["one"], "tags that tarn lists")
    tarnd.tarn("tag", "create", t, "two", "--snapshot", "2")
    f.batch(f"INSERT INTO {t} VALUES (3, 3)")
    first, second = counted([(1, 1)]), counted([(1, 2), (2, 2)])
    for options, want in (([("scan.snapshot-id", 1)], first), ([("scan.tag-name", "one")], first), ([("scan.tag-name", "two")], second),
                          ([("scan.timestamp-millis", between)], first), ([("incremental-between", "1,2")], second),
                          ([("incremental-between", "one,two")], second)):
        equal(at_snapshot(f, t, *options), want, str(options))
    equal(f.batch(f"SELECT tag_name, snapshot_id FROM {db}.`travel$tags`"), counted([("one", 1), ("two", 2)]), "its table of tags")
    f.batch(f"CALL sys.delete_tag(`table` => '{t}', tag => 'one')")
    equal([x["tag"] for x in tarnd.lines("tag", "list", t)], ["two"], "tags that are left")
    f.batch(f"CALL sys.rollback_to(`table` => '{t}', tag => 'two')")
    expect(f, t, [(1, 2), (2, 2)], "rows after the roll-back")
    f.batch(f"INSERT INTO {t} VALUES (4, 4)")
    expect(f, t, [(1, 2), (2, 2), (4, 4)], "rows after one more write")


def branches(version):
    f, db = session(version)
    t = f"{db}.tree"
    f.batch(f"CREATE TABLE {t} {KEYED}")
    f.batch(f"INSERT INTO {t} VALUES (1, 1)")
    f.batch(f"CALL sys.create_tag(`table` => '{t}', tag => 'one', snapshot_id => 1)")
    f.batch(f"CALL sys.create_branch('{t}', 'dev', 'one')")
    f.batch(f"INSERT INTO {db}.`tree$branch_dev` VALUES (2, 2)")
    equal(f.batch(f"SELECT * FROM {db}.`tree$branch_dev`"), counted([(1, 1), (2, 2)]), "rows of the branch")
    expect(f, t, [(1, 1)], "rows of the table")
    equal(f.batch(f"SELECT branch_name FROM {db}.`tree$branches`"), counted([("dev",)]), "its table of branches")
    f.batch(f"CALL sys.fast_forward(`table` => '{t}', branch => 'dev')")
    expect(f, t, [(1, 1), (2, 2)], "rows, forwarded")
    f.batch(f"CALL sys.delete_branch(`table` => '{t}', branch => 'dev')")
    equal(f.batch(f"SELECT branch_name FROM {db}.`tree$branches`"), counted([]), "branches that are left")


def altered(version):
    f, db = session(version)
    t = f"{db}.alter1"
    f.batch(f"CREATE TABLE {t} (id BIGINT, v INT, w STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1')")
    f.batch(f"INSERT INTO {t} VALUES (1, 1, 'a')")
    for change in ("ADD (x INT COMMENT 'new', y STRING)", "MODIFY v BIGINT", "RENAME w TO z", "DROP y", "SET ('snapshot.num-retained.min' = '5', 'k' = 'v')", "RESET ('k')",
                   "MODIFY x INT FIRST", "ADD u STRING AFTER id"):
        f.batch(f"ALTER TABLE {t} {change}")
    equal([row[0] for row in f.ask("batch", f"DESCRIBE {t}") for row in [row[1:]]], ["x", "id", "u", "v", "z"], "columns")
    f.batch(f"INSERT INTO {t} (id, v, z, x, u) VALUES (2, 5000000000, 'b', 7, 'u')")
    expect(f, t, [(None, 1, None, 1, "a"), (7, 2, "u", 5000000000, "b")])
    made = tarnd.json("table", "show", t)
    check("snapshot.num-retained.min" in str(made) and "'k'" not in str(made), f"options: {made}")
    equal(python.rows(t), tarnd.scan(t), "rows that pypaimon reads")
    f.batch(f"ALTER TABLE {t} RENAME TO alter2")
    expect(f, f"{db}.alter2", [(None, 1, None, 1, "a"), (7, 2, "u", 5000000000, "b")], "rows under another name")
    f.batch(f"DROP TABLE {db}.alter2")
    check(not os.path.exists(tarnd.folder(f"{db}.alter2")), "the folder is gone")


def views(version):
    f, db = session(version)
    f.batch(f"CREATE TABLE {db}.base {KEYED}")
    f.batch(f"INSERT INTO {db}.base VALUES (1, 1), (2, 2)")
    f.batch(f"CREATE VIEW {db}.twice AS SELECT id, v * 2 AS v2 FROM {db}.base WHERE id > 1")
    equal(f.batch(f"SELECT * FROM {db}.twice"), counted([(2, 4)]), "rows of the view")
    equal([v["name"] for v in tarnd.lines("view", "list", db)], ["twice"], "views that tarn lists")
    f.batch(f"DROP VIEW {db}.twice")
    equal(tarnd.lines("view", "list", db), [], "views that are left")


def daemon_killed(version):
    """The daemon is killed while a job writes: the job begins again at its checkpoint, by its own restarts."""
    f, db = session(version)
    n = 20000
    f.batch(f"CREATE TABLE {db}.shaken (n BIGINT, v STRING)")
    f.batch(f"CREATE TABLE {db}.shaken_key {KEYED}")
    g = engine(version, "parallelism.default=1", *flink.checkpointed(lab.path(f"chk-shaken-{version}"), "200ms"),
               "restart-strategy.fixed-delay.attempts=1000")
    g.ask("streaming", sequence(n, 1500))
    g.ask("start", "plain", f"INSERT INTO {db}.shaken SELECT n, 'v' FROM gen")
    g.ask("start", "keyed", f"INSERT INTO {db}.shaken_key SELECT MOD(n, 500), n FROM gen")
    for _ in range(4):
        time.sleep(2.5)
        tarnd.kill9()
        time.sleep(0.5)
        tarnd.start()
    g.ask("await", "plain")
    g.ask("await", "keyed")
    g.close()
    expect(f, f"{db}.shaken", [(i, "v") for i in range(n)])
    expect(f, f"{db}.shaken_key", [(i, max(range(i, n, 500))) for i in range(500)])


def cases_of(version):
    e, newest = flink.title(version), version == "2.0.2"
    return [
        case(e, "batch insert, update, delete, overwrite, partitions, truncate", batches, version, short=newest),
        case(e, "append table, written by Flink and tarn in turn, compacted by Flink", appends, version),
        case(e, "all types, compacted by Tarn", all_types, version),
        case(e, "streaming upserts while Tarn compacts, killed once and restored from the checkpoint", upserts, version, 1, short=newest),
        case(e, "streaming upserts while Tarn compacts, killed 3 times and restored from the checkpoint", upserts, version, 3),
        case(e, "streaming appends of 2 writers, killed twice and restored from the checkpoint", once, version, 2),
        case(e, "aggregate table fed from a detail table, both jobs killed and restored", aggregated, version, 2),
        case(e, "streaming reads, with a changelog and without", streaming_read, version),
        case(e, "lookup join", looked_up, version),
        case(e, "time travel, tags, roll-back", time_travel, version),
        case(e, "branches", branches, version),
        case(e, "ALTER TABLE, renamed and dropped", altered, version),
        case(e, "views", views, version),
        case(e, "the daemon is killed 4 times while a job writes", daemon_killed, version),
    ]


CASES = [c for version in flink.PAIMON for c in cases_of(version)]
if __name__ == "__main__":
    sys.exit(matrix.main(__file__, CASES, begin))
