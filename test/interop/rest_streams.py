#!/usr/bin/env python3
"""needs: shared
Promise: Kafka -> Flink -> table and changes of PostgreSQL -> Flink -> table, through the daemon's REST catalog and with the real servers of
../shared/interop/services, give the rows of the source, also where the job is killed and restored and the daemon compacts beside it.
rest_streams.py [PART OF A CASE'S NAME]... runs some.
"""
import collections
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import flink  # noqa: E402
import lab as house  # noqa: E402
import matrix  # noqa: E402
import peers  # noqa: E402
from flink import Flink, killed_and_restored  # noqa: E402
from lab import Lab, equal, free_port, wait_until  # noqa: E402
from matrix import case  # noqa: E402

lab, tarnd = None, None
KAFKA, POSTGRES = "2.0.2", "1.20.5"  # the connectors' lines of Flink


def begin():
    global lab, tarnd
    lab = Lab("rest-streams")
    tarnd = lab.daemon("d", **{"compaction.auto": "true"})
    tarnd.start()
    tarnd.tarn("db", "create", "s")
    return lab


class Service:
    def __init__(self, name, **environment):
        self.script = os.path.join(house.SHARED, f"interop/services/{name}.sh")
        state = lab.path(name)
        os.makedirs(state, exist_ok=True)
        os.chmod(state, 0o755)
        self.environment = {**os.environ, "LAB": peers.LAB, "LAB_STATE": state, **environment}
        self.up = True
        lab.peers.append(self)  # which the lab closes, whatever happens, before it removes the folder
        self.run("start")

    def run(self, *words, stdin=None):
        got = subprocess.run(["bash", self.script, *words], env=self.environment, input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        out = got.stdout.decode("utf-8", "replace")
        if got.returncode != 0:
            if "needs apt package" in out:
                raise house.Skip(out.strip())
            raise house.Failed(f"{self.script} {words[0]}: {out[-1500:]}")
        return out

    def close(self):
        if self.up:
            self.up = False
            self.run("wipe")


def engine(version, *conf):
    return Flink(lab, f"http://{tarnd.http}", version, *conf)


def plain(row):
    """Texts; a time without the noughts at its end, which each side prints as it likes."""
    return tuple(None if v is None else str(v) if i < 3 or "." not in v else v.rstrip("0").rstrip(".") for i, v in enumerate(row))


def rows_of(table):
    lines = tarnd.tarn("scan", table, "-o", "jsonl").stdout.decode("utf-8").splitlines()
    return collections.Counter(plain(json.loads(line, parse_float=str).values()) for line in lines)


COLUMNS = "id BIGINT, name STRING, amount DECIMAL(12, 2), ts TIMESTAMP(3)"


def from_kafka():
    flink.fetch("flink", "kafka", FLINK_VERSION=KAFKA)
    port = free_port(2)
    kafka = Service("kafka", KAFKA_PORT=str(port))
    try:
        at = ["--bootstrap-server", f"127.0.0.1:{port}"]
        kafka.run("tool", "org.apache.kafka.tools.TopicCommand", *at, "--create", "--topic", "orders", "--partitions", "1")
        said, last = [], {}
        for m in range(8000):
            said.append({"id": m % 800, "name": f"n{m % 800}/{m}", "amount": f"{m}.{m % 100:02}", "ts": f"2026-01-01T00:{m // 60 % 60:02}:{m % 60:02}.{m % 1000:03}"})
            last[m % 800] = said[-1]
        kafka.run("tool", "org.apache.kafka.tools.ConsoleProducer", *at, "--topic", "orders", stdin="".join(json.dumps(x) + "\n" for x in said).encode())
        f = engine(KAFKA)
        f.batch(f"CREATE TABLE s.kafka ({COLUMNS}, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2')")
        f.batch("CREATE TABLE s.kafka_log (id BIGINT, name STRING)")
        f.close()
        source = (f"CREATE TEMPORARY TABLE src ({COLUMNS}) WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = '127.0.0.1:{port}', "
                  "'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601', 'properties.max.poll.records' = '100')")
        want = collections.Counter(plain((x["id"], x["name"], x["amount"], x["ts"].replace("T", " "))) for x in last.values())
        log = collections.Counter((str(x["id"]), x["name"]) for x in said)
        for table, columns, rows in (("s.kafka", "*", want), ("s.kafka_log", "id, name", log)):
            killed_and_restored(lambda conf: engine(KAFKA, "parallelism.default=1", *conf), lab.path("chk-" + table), [source], 2,
                                f"INSERT INTO {table} SELECT {columns} FROM src", lambda: rows_of(table) == rows)
            equal(rows_of(table), rows, f"rows of {table}")
    finally:
        kafka.close()


def from_postgres():
    flink.fetch("flink", "cdc", FLINK_VERSION=POSTGRES)
    port = free_port()
    postgres = Service("postgres", PG_PORT=str(port))
    try:
        def pg(text):
            return postgres.run("sql", text)
        pg("create table orders (id bigint primary key, name text, amount numeric(12,2), ts timestamp(3)); alter table orders replica identity full; "
           "insert into orders select i, 'n' || i, i * 1.25, timestamp '2026-01-01' + i * interval '1 second' from generate_series(1, 500) i")
        f = engine(POSTGRES)
        f.batch(f"CREATE TABLE s.pg ({COLUMNS}, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2')")
        f.close()
        source = (f"CREATE TEMPORARY TABLE src ({COLUMNS}, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'postgres-cdc', 'hostname' = '127.0.0.1', 'port' = '{port}', "
                  "'username' = 'lab', 'password' = 'labpw', 'database-name' = 'lab', 'schema-name' = 'public', 'table-name' = 'orders', 'slot.name' = 'flink', "
                  "'decoding.plugin.name' = 'pgoutput', 'scan.incremental.snapshot.enabled' = 'true')")

        def there():
            text = pg("select coalesce(json_agg(json_build_array(id::text, name, amount::text, to_char(ts, 'YYYY-MM-DD HH24:MI:SS.MS'))), '[]') from orders")
            return collections.Counter(plain(row) for row in json.loads(text))

        def same():
            return rows_of("s.pg") == there()
        folder = lab.path("chk-pg")
        for turn, change in enumerate(("update orders set amount = -amount, name = null where id % 10 = 0; delete from orders where id % 10 = 1",
                                       "insert into orders values (1000, '', null, null); update orders set name = 'later' where id < 50",
                                       "delete from orders where id > 300; insert into orders values (301, 'again', 1.5, timestamp '2026-02-01 00:00:00.123')")):
            found = flink.checkpoints(folder)
            g = engine(POSTGRES, "parallelism.default=1", *flink.checkpointed(folder), *([f"execution.state-recovery.path=file://{found[-1]}"] if found else []))
            g.ask("streaming", source)
            g.ask("start", "job", "INSERT INTO s.pg SELECT * FROM src")
            wait_until("the rows of before", same, 90, 1)
            pg(change)
            if turn < 2:
                g.kill9()  # with changes under way
            else:
                wait_until("all changes", same, 90, 1)
                g.ask("cancel", "job")
                g.close()
        equal(rows_of("s.pg"), there(), "rows")
    finally:
        postgres.close()


CASES = [
    case(flink.title(KAFKA) + ", Kafka 4.1.2", "Kafka to tables with a key and without, killed twice and restored", from_kafka),
    case(flink.title(POSTGRES) + ", PostgreSQL 15", "changes of PostgreSQL (insert, update, delete) to a table, killed twice and restored", from_postgres),
]
if __name__ == "__main__":
    sys.exit(matrix.main(__file__, CASES, begin))
