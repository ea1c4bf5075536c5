#!/usr/bin/env python3
"""Every gRPC method of tarn.v1, asked by a stock client in another language.

Promise: stubs made from proto/ by the stock generator get the answers that the protos promise; errors
carry google.rpc.ErrorInfo with a stable reason; a mutation with a request_id takes effect once; loads
and scans pass through the daemon; a fake worker is served as a real one. At the end every method of
every service has been called.

Needs grpcio, grpcio-tools, grpcio-reflection, grpcio-health-checking (a virtual environment in
$TARN_CACHE/pyenv is used where the running Python hasn't them).
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from concurrent import futures

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("TARN_BIN", os.path.join(ROOT, "build", "bin"))
VENV = os.path.join(os.environ.get("TARN_CACHE", os.path.expanduser("~/.cache/tarn")), "pyenv", "bin", "python")

try:
    import grpc
    from google.rpc import error_details_pb2, status_pb2
    from grpc_health.v1 import health_pb2, health_pb2_grpc
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
    from grpc_tools import protoc
except ImportError:
    if os.path.exists(VENV) and os.path.abspath(sys.executable) != os.path.abspath(VENV) and "TARN_REEXEC" not in os.environ:
        os.environ["TARN_REEXEC"] = "1"
        os.execv(VENV, [VENV, __file__])
    print("skipped: grpcio and its tools are not installed (scripts/setup)")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

WORK = tempfile.mkdtemp(prefix="tarn-grpc-")
GEN = os.path.join(WORK, "gen")
os.makedirs(GEN)
PROTOS = [os.path.join("tarn/v1", f) for f in sorted(os.listdir(os.path.join(ROOT, "proto/tarn/v1")))]
assert protoc.main(["protoc", f"-I{ROOT}/proto", f"--python_out={GEN}", f"--grpc_python_out={GEN}"] + PROTOS) == 0
sys.path.insert(0, GEN)
from tarn.v1 import admin_pb2, catalog_pb2 as c, common_pb2 as m, data_pb2 as d  # noqa: E402
from tarn.v1 import maintenance_pb2 as mt, table_pb2 as t, worker_pb2 as w  # noqa: E402
from tarn.v1 import data_pb2_grpc  # noqa: E402

BATCH = 2**63 - 1
SERVICES = {
    "CatalogService": c, "TableService": t, "MaintenanceService": mt, "WorkerService": w,
    "DataService": d, "AdminService": admin_pb2,
}
called = set()
results = {"passed": 0, "failed": 0, "skipped": 0}


# ---- the harness

class Client:
    """client.CatalogService.GetTable(request): any method, by the descriptors, and noted as called."""

    def __init__(self, address, token=None):
        self.channel = grpc.insecure_channel(address, options=[("grpc.enable_retries", 0)])
        self.metadata = (("authorization", f"Bearer {token}"),) if token else None
        for name, module in SERVICES.items():
            setattr(self, name, Service(self, module.DESCRIPTOR.services_by_name[name]))

    def close(self):
        self.channel.close()


class Service:
    def __init__(self, client, descriptor):
        for method in descriptor.methods:
            setattr(self, method.name, self.bind(client, descriptor, method))

    @staticmethod
    def bind(client, descriptor, method):
        path = f"/{descriptor.full_name}/{method.name}"
        kind = ("stream" if method.client_streaming else "unary") + "_" + (
            "stream" if method.server_streaming else "unary")
        request = method.input_type._concrete_class
        response = method.output_type._concrete_class
        stub = getattr(client.channel, kind)(path, request_serializer=request.SerializeToString,
                                             response_deserializer=response.FromString)

        def call(argument, timeout=30):
            called.add(path)
            answer = stub(argument, timeout=timeout, metadata=client.metadata)
            return list(answer) if method.server_streaming else answer
        return call


def reason(call, *args):
    """The reason of the error that the call must end with, and its code."""
    try:
        call(*args)
    except grpc.RpcError as error:
        for key, value in error.trailing_metadata() or ():
            if key == "grpc-status-details-bin":
                for detail in status_pb2.Status.FromString(value).details:
                    info = error_details_pb2.ErrorInfo()
                    if detail.Unpack(info):
                        assert info.domain == "tarn", info
                        return info.reason
        return f"(no ErrorInfo, {error.code()}: {error.details()})"
    return "(no error)"


def expect(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


def case(fn):
    try:
        fn()
        results["passed"] += 1
    except Exception:
        results["failed"] += 1
        print(f"FAILED {fn.__name__}")
        traceback.print_exc(limit=-3, file=sys.stdout)


class Daemon:
    def __init__(self, name, *sets, binary="tarnd"):
        self.dir = os.path.join(WORK, name)
        os.makedirs(self.dir, exist_ok=True)
        self.log_path = os.path.join(self.dir, "log")
        self.log = open(self.log_path, "ab")
        arguments = [os.path.join(BIN, binary)]
        for pair in (f"server.data_dir={self.dir}/data", "server.grpc_listen=127.0.0.1:0",
                     "server.http_listen=127.0.0.1:0", "compaction.auto=false") + sets:
            arguments += ["--set", pair]
        start = os.path.getsize(self.log_path)
        self.process = subprocess.Popen(arguments, stderr=self.log, cwd=self.dir)
        for _ in range(1000):
            with open(self.log_path, encoding="utf-8", errors="replace") as file:
                file.seek(start)
                for line in file:
                    if "server.ready" in line:
                        words = dict(p.split("=", 1) for p in line.split() if "=" in p)
                        self.grpc, self.http = words["grpc"], words["http"]
                        return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            raise RuntimeError(f"tarnd did not start: {file.read()}")

    def warehouse(self, *parts):
        return os.path.join(self.dir, "data", "warehouse", *parts)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.log.close()
        return code


def ref(database, table, uuid=""):
    return m.TableRef(database=database.encode(), table=table.encode(), uuid=uuid)


def option(key, value):
    return m.Option(key=key.encode(), value=value.encode())


def new_table(client, name, columns, keys=(), partition=(), options=(), database="db"):
    return client.CatalogService.CreateTable(c.CreateTableRequest(
        database=database.encode(), table=name.encode(), columns_sql=columns.encode(),
        primary_keys=[k.encode() for k in keys], partition_keys=[p.encode() for p in partition],
        options=[option(*o) for o in options]))


# ---- rows as Paimon serializes them: arity, then a BinaryRow

def row(*longs):
    """A serialized row of BIGINTs."""
    null_bytes = ((len(longs) + 63 + 8) // 64) * 8
    return len(longs).to_bytes(4, "big") + bytes(null_bytes) + b"".join(v.to_bytes(8, "little", signed=True) for v in longs)


def empty_row():
    return row()


def data_file(daemon, table, name, first, last, level=0, rows=None, create=True, sequence=0, bucket=0, database="db"):
    """A made-up file of a table of one BIGINT key `id`."""
    folder = daemon.warehouse(f"{database}.db", table, f"bucket-{bucket}")
    os.makedirs(folder, exist_ok=True)
    if create:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"x" * 100)
    return t.DataFile(name=name.encode(), size=100, row_count=rows or last - first + 1, min_key=row(first),
                      max_key=row(last), key_stats=t.Stats(min=row(first), max=row(last), null_counts=[0]),
                      min_sequence=sequence, max_sequence=sequence + last - first,
                      level=level, delete_row_count=0, creation_time_ms=int(time.time() * 1000), source=0)


def entry(file, kind=0, total=1, bucket=0):
    return t.FileEntry(kind=kind, partition=empty_row(), bucket=bucket, total_buckets=total, file=file)


# ---- catalog

def catalog_cases(daemon, client):
    cat = client.CatalogService

    def databases():
        made = cat.CreateDatabase(c.CreateDatabaseRequest(name=b"db", comment=b"first", options=[option("a", "1")]))
        expect((made.name, made.comment, made.table_count), (b"db", b"first", 0))
        expect(reason(cat.CreateDatabase, c.CreateDatabaseRequest(name=b"db")), "DATABASE_EXISTS")
        cat.CreateDatabase(c.CreateDatabaseRequest(name=b"db", ignore_if_exists=True))
        got = cat.GetDatabase(c.GetDatabaseRequest(name=b"db"))
        expect([(o.key, o.value) for o in got.options], [(b"a", b"1")])
        got = cat.AlterDatabase(c.AlterDatabaseRequest(name=b"db", set=[option("b", "2")], remove=[b"a"]))
        expect([(o.key, o.value) for o in got.options], [(b"b", b"2")])
        expect(reason(cat.GetDatabase, c.GetDatabaseRequest(name=b"none")), "DATABASE_NOT_FOUND")

    def names_are_checked():
        for bad in (b"", b"a/b", b"..", b"a\0b", b"\xff\xfe", b"_x", b"a$b", b"x" * 300, b"a\nb", b"x.db"):
            expect(reason(cat.CreateDatabase, c.CreateDatabaseRequest(name=bad)), "NAME_INVALID")
        for bad in (b"a/b", b"../db.db/x", b"a\0b", b"\xff\xfe"):
            expect(reason(cat.GetTable, c.GetTableRequest(table=m.TableRef(database=b"db", table=bad))), "NAME_INVALID")
        expect(reason(cat.GetTable, c.GetTableRequest()), "INVALID_ARGUMENT")
        expect(reason(cat.GetTable, c.GetTableRequest(table=m.TableRef(uuid="x"))), "INVALID_ARGUMENT")

    def paging():
        for i in range(7):
            cat.CreateDatabase(c.CreateDatabaseRequest(name=b"page%d" % i))
        seen, token = [], ""
        for _ in range(20):
            r = cat.ListDatabases(c.ListDatabasesRequest(page=m.Page(size=3, token=token)))
            assert len(r.databases) <= 3
            seen += [x.name for x in r.databases]
            token = r.next_page_token
            if not token:
                break
        expect(seen, sorted(seen))
        expect([s for s in seen if s.startswith(b"page")], [b"page%d" % i for i in range(7)])
        for i in range(7):
            cat.DropDatabase(c.DropDatabaseRequest(name=b"page%d" % i))

    def tables():
        made = new_table(client, "t", "id BIGINT NOT NULL, name STRING COMMENT 'who'", keys=["id"])
        expect([(o.key, o.value) for o in made.defaults_applied], [(b"bucket", b"1"), (b"write-only", b"true")])
        expect([(f.name, f.type) for f in made.fields], [(b"id", "BIGINT NOT NULL"), (b"name", "STRING")])
        expect((made.schema_id, made.snapshot_id, list(made.primary_keys)), (0, 0, [b"id"]))
        assert made.schema_json.startswith(b"{") and made.path.endswith("/db.db/t"), made.path
        expect(reason(cat.CreateTable, c.CreateTableRequest(database=b"db", table=b"t", columns_sql=b"a INT")), "TABLE_EXISTS")
        again = cat.CreateTable(c.CreateTableRequest(database=b"db", table=b"t", columns_sql=b"a INT", ignore_if_exists=True))
        expect((again.uuid, len(again.defaults_applied)), (made.uuid, 0))
        got = cat.GetTable(c.GetTableRequest(table=m.TableRef(uuid=made.uuid)))
        expect((got.database, got.name, got.fields[1].description), (b"db", b"t", b"who"))
        other = made.uuid[:-1] + ("0" if made.uuid[-1] != "0" else "1")
        expect(reason(cat.GetTable, c.GetTableRequest(table=ref("db", "t", other))), "TABLE_REPLACED")
        expect(reason(cat.GetTable, c.GetTableRequest(table=ref("db", "nope"))), "TABLE_NOT_FOUND")
        expect(reason(cat.GetTable, c.GetTableRequest(table=ref("nope", "t"))), "DATABASE_NOT_FOUND")

    def ways_to_make_one():
        fields = [m.Field(name=b"k", type="INT NOT NULL"), m.Field(name=b"dt", type="DATE"),
                  m.Field(name=b"x", type="ROW<`a` INT, `b` ARRAY<STRING>>", description=b"nested")]
        made = cat.CreateTable(c.CreateTableRequest(database=b"db", table=b"f", fields=fields, partition_keys=[b"dt"],
                                                    options=[option("bucket", "-1")], comment=b"by fields"))
        expect((list(made.partition_keys), made.comment, [o.key for o in made.defaults_applied]), ([b"dt"], b"by fields", [b"write-only"]))
        like = cat.CreateTable(c.CreateTableRequest(database=b"db", table=b"l", like=ref("db", "t"), options=[option("bucket", "3")]))
        expect((list(like.primary_keys), {o.key: o.value for o in like.options}), ([b"id"], {b"bucket": b"3", b"write-only": b"true"}))
        schema = cat.GetTable(c.GetTableRequest(table=ref("db", "f"))).schema_json
        copy = cat.CreateTable(c.CreateTableRequest(database=b"db", table=b"s", schema_json=schema))
        expect([(f.name, f.type) for f in copy.fields], [(f.name, f.type) for f in made.fields])
        bad = [dict(), dict(columns_sql=b"a INT", schema_json=schema), dict(columns_sql=b"a NONSENSE"),
               dict(schema_json=b"{}"), dict(columns_sql=b"a INT", primary_keys=[b"zz"]),
               dict(columns_sql=b"a INT, a INT"), dict(columns_sql=b"a INT", options=[option("bucket", "x")]),
               dict(fields=[m.Field(name=b"a", type="DECIMAL(99, 1)")])]
        for arguments in bad:
            expect(reason(cat.CreateTable, c.CreateTableRequest(database=b"db", table=b"bad", **arguments)), "SCHEMA_INVALID")

    def listing():
        r = cat.ListTables(c.ListTablesRequest(database=b"db", page=m.Page(size=3)))
        expect(([x.name for x in r.tables], r.next_page_token), ([b"f", b"l", b"s"], "s"))
        r = cat.ListTables(c.ListTablesRequest(database=b"db", page=m.Page(size=3, token=r.next_page_token)))
        expect(([x.name for x in r.tables], r.next_page_token), ([b"t"], ""))
        expect(reason(cat.ListTables, c.ListTablesRequest(database=b"nope")), "DATABASE_NOT_FOUND")

    def altering():
        change = c.SchemaChange
        r = cat.AlterTable(c.AlterTableRequest(table=ref("db", "t"), changes=[
            change(set_option=option("snapshot.num-retained.max", "10")),
            change(set_comment=b"people"),
            change(add_column=c.AddColumn(field=m.Field(name=b"age", type="INT"), after=b"id")),
            change(rename_column=c.RenameColumn(**{"from": b"name", "to": b"full_name"})),
            change(alter_column=c.AlterColumn(name=b"age", description=b"years"))]))
        expect((r.schema_id, r.comment), (1, b"people"))
        expect([(f.name, f.type) for f in r.fields],
               [(b"id", "BIGINT NOT NULL"), (b"age", "INT"), (b"full_name", "STRING")])
        expect(r.fields[1].description, b"years")
        assert reason(cat.AlterTable, c.AlterTableRequest(table=ref("db", "t"), changes=[
            change(alter_column=c.AlterColumn(name=b"age", type="NONSENSE"))])) == "SCHEMA_INVALID"
        r = cat.AlterTable(c.AlterTableRequest(table=ref("db", "t"), changes=[
            change(drop_column=b"age"), change(remove_option=b"snapshot.num-retained.max")]))
        expect(([f.name for f in r.fields], [o.key for o in r.options]), ([b"id", b"full_name"], [b"bucket", b"write-only"]))
        expect(reason(cat.AlterTable, c.AlterTableRequest(table=ref("db", "t"), changes=[change(drop_column=b"zz")])),
               "COLUMN_NOT_FOUND")
        expect(reason(cat.AlterTable, c.AlterTableRequest(table=ref("db", "t"))), "INVALID_ARGUMENT")
        expect(reason(cat.AlterTable, c.AlterTableRequest(table=ref("db", "t"), changes=[change()])), "INVALID_ARGUMENT")
        expect(cat.GetTable(c.GetTableRequest(table=ref("db", "t"))).schema_id, 2)

    def renaming_and_dropping():
        r = cat.RenameTable(c.RenameTableRequest(table=ref("db", "l"), to_table=b"l2"))
        expect((r.database, r.name), (b"db", b"l2"))
        expect(reason(cat.RenameTable, c.RenameTableRequest(table=ref("db", "l2"), to_table=b"t")), "TABLE_EXISTS")
        expect(reason(cat.GetTable, c.GetTableRequest(table=ref("db", "l"))), "TABLE_NOT_FOUND")
        cat.DropTable(c.DropTableRequest(table=ref("db", "l2")))
        expect(reason(cat.DropTable, c.DropTableRequest(table=ref("db", "l2"))), "TABLE_NOT_FOUND")
        cat.DropTable(c.DropTableRequest(table=ref("db", "l2"), ignore_if_missing=True))
        expect(reason(cat.DropDatabase, c.DropDatabaseRequest(name=b"db")), "DATABASE_NOT_EMPTY")
        cat.CreateDatabase(c.CreateDatabaseRequest(name=b"gone"))
        new_table(client, "a", "x INT", database="gone")
        new_table(client, "b", "x INT", database="gone")
        expect(cat.DropDatabase(c.DropDatabaseRequest(name=b"gone", cascade=True)).tables_dropped, 2)
        expect(reason(cat.DropDatabase, c.DropDatabaseRequest(name=b"gone")), "DATABASE_NOT_FOUND")
        cat.DropDatabase(c.DropDatabaseRequest(name=b"gone", ignore_if_missing=True))

    def request_ids():
        request = c.CreateDatabaseRequest(name=b"once", request_id="r-1")
        first = cat.CreateDatabase(request)
        expect(cat.CreateDatabase(request), first)
        other = c.CreateDatabaseRequest(name=b"twice", request_id="r-1")
        expect(reason(cat.CreateDatabase, other), "INVALID_ARGUMENT")
        drop = c.DropDatabaseRequest(name=b"once", request_id="r-2")
        expect(cat.DropDatabase(drop), cat.DropDatabase(drop))
        expect(cat.CreateDatabase(request), first)  # remembered, not done: it is still gone
        expect(reason(cat.GetDatabase, c.GetDatabaseRequest(name=b"once")), "DATABASE_NOT_FOUND")
        # At the same time: one makes it, all hear the same.
        request = c.CreateTableRequest(database=b"db", table=b"crowd", columns_sql=b"a INT", request_id="r-3")
        with futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda _: cat.CreateTable(request), range(16)))
        assert all(a == answers[0] for a in answers)
        # A failure isn't remembered.
        request = c.DropTableRequest(table=ref("db", "later"), request_id="r-4")
        expect(reason(cat.DropTable, request), "TABLE_NOT_FOUND")
        new_table(client, "later", "a INT")
        cat.DropTable(request)
        cat.DropTable(c.DropTableRequest(table=ref("db", "crowd")))

    for fn in (databases, names_are_checked, paging, tables, ways_to_make_one, listing, altering,
               renaming_and_dropping, request_ids):
        case(fn)


# ---- tables

def table_cases(daemon, client):
    tab = client.TableService
    new_table(client, "k", "id BIGINT NOT NULL, v BIGINT", keys=["id"], options=[("bucket", "1")])

    def commits():
        f1 = data_file(daemon, "k", "data-k1.parquet", 1, 10)
        r = tab.Commit(t.CommitRequest(table=ref("db", "k"), commit_user="u", commit_identifier=1, append=[entry(f1)],
                                       watermark=77, properties=[option("p", "q")]))
        expect((r.snapshot_id, r.compact_snapshot_id, r.repeated_commit), (1, 0, False))
        f2 = data_file(daemon, "k", "data-k2.parquet", 5, 20, sequence=10)
        again = tab.Commit(t.CommitRequest(table=ref("db", "k"), commit_user="u", commit_identifier=1, append=[entry(f2)]))
        expect((again.snapshot_id, again.repeated_commit), (1, True))
        r = tab.Commit(t.CommitRequest(table=ref("db", "k"), commit_user="u", commit_identifier=5, append=[entry(f2)]))
        expect(r.snapshot_id, 2)
        stale = t.CommitRequest(table=ref("db", "k"), commit_user="u", commit_identifier=3,
                                append=[entry(data_file(daemon, "k", "data-k3.parquet", 1, 2))])
        expect(reason(tab.Commit, stale), "COMMIT_IDENTIFIER_STALE")

    def commits_refused():
        def refused(file, want, **more):
            expect(reason(tab.Commit, t.CommitRequest(table=ref("db", "k"), commit_identifier=BATCH,
                                                      append=[entry(file, **more)])), want)
        refused(data_file(daemon, "k", "data-no.parquet", 1, 2, create=False), "FILE_MISSING")
        good = data_file(daemon, "k", "data-k4.parquet", 1, 2)
        refused(good, "BUCKET_MISMATCH", total=4)
        refused(data_file(daemon, "k", "data-k1.parquet", 1, 10), "COMMIT_CONFLICT")
        refused(data_file(daemon, "k", "data-k4.parquet", 1, 2, create=False), "COMMIT_CONFLICT", kind=1)
        for change in (dict(name=b"../x"), dict(name=b""), dict(name=b"a\0b"), dict(size=-1), dict(row_count=-1),
                       dict(level=-1), dict(delete_row_count=-1), dict(delete_row_count=3), dict(schema_id=9), dict(min_key=b"zz"), dict(min_key=row(1, 2)),
                       dict(min_sequence=9, max_sequence=1), dict(value_stats=t.Stats(min=row(1), max=row(1), null_counts=[0]))):
            bad = t.DataFile()
            bad.CopyFrom(good)
            bad.MergeFrom(t.DataFile(**{k: v for k, v in change.items() if k != "name"}))
            if "name" in change:
                bad.name = change["name"]
            refused(bad, "INVALID_ARGUMENT")
        outside = t.DataFile(external_path=b"file:///etc/passwd")
        outside.MergeFrom(good)
        refused(outside, "UNSUPPORTED_FEATURE")
        expect(reason(tab.Commit, t.CommitRequest(table=ref("db", "k"), commit_identifier=4, append=[entry(good)])),
               "INVALID_ARGUMENT")  # an identifier without a user
        expect(reason(tab.Commit, t.CommitRequest(table=ref("db", "k"), commit_user="u", append=[t.FileEntry()])),
               "INVALID_ARGUMENT")
        expect(len(tab.ListSnapshots(t.ListSnapshotsRequest(table=ref("db", "k"))).snapshots), 2)

    def a_bomb_of_empty_parts():
        bomb = t.CommitRequest(table=ref("db", "k"), commit_user="u").SerializeToString() + b"\x22\x00" * 4000000
        raw = client.channel.unary_unary("/tarn.v1.TableService/Commit")
        expect(reason(raw, bomb), "TOO_LARGE")
        expect(reason(raw, b"\xff\xff\xff"), "INVALID_ARGUMENT")
        bad_text = b"\x12\x02\xff\xfe"
        expect(reason(raw, bad_text), "INVALID_ARGUMENT")

    def snapshots():
        r = tab.ListSnapshots(t.ListSnapshotsRequest(table=ref("db", "k"), page=m.Page(size=1)))
        s = r.snapshots[0]
        expect((s.id, s.commit_user, s.commit_identifier, s.kind, s.total_record_count, s.watermark),
               (1, "u", 1, t.APPEND, 10, 77))
        assert ("p", "q") in [(o.key.decode(), o.value.decode()) for o in s.properties], s.properties
        r2 = tab.ListSnapshots(t.ListSnapshotsRequest(table=ref("db", "k"), page=m.Page(size=1, token=r.next_page_token)))
        expect(([x.id for x in r2.snapshots], r2.next_page_token), ([2], ""))
        expect(reason(tab.ListSnapshots, t.ListSnapshotsRequest(table=ref("db", "k"), page=m.Page(token="x"))), "INVALID_ARGUMENT")

    def plans():
        def plan(**arguments):
            messages = tab.Plan(t.PlanRequest(table=ref("db", "k"), **arguments))
            return [s for x in messages for s in x.splits], messages[-1].summary
        splits, summary = plan()
        expect((summary.snapshot_id, summary.files_left, len(splits)), (2, 2, 1))
        expect((splits[0].path, splits[0].raw, len(splits[0].files)), ("bucket-0", False, 2))
        splits, summary = plan(version=m.Version(snapshot_id=1))
        expect((summary.snapshot_id, summary.files_left), (1, 1))
        splits, summary = plan(where="id = 1")
        expect((summary.files_left, summary.pruned_by_key), (1, 1))
        splits, summary = plan(where="id > 100")
        expect((summary.files_left, len(splits)), (0, 0))
        expect(reason(tab.Plan, t.PlanRequest(table=ref("db", "k"), where="id = ")), "EXPRESSION_INVALID")
        expect(reason(tab.Plan, t.PlanRequest(table=ref("db", "k"), where="idd = 1")), "COLUMN_NOT_FOUND")
        expect(reason(tab.Plan, t.PlanRequest(table=ref("db", "k"), version=m.Version(snapshot_id=99))), "SNAPSHOT_NOT_FOUND")
        expect(reason(tab.Plan, t.PlanRequest(table=ref("db", "k"), version=m.Version(time_ms=1))), "NO_SNAPSHOT_AT")
        empty = tab.Plan(t.PlanRequest(table=ref("db", "t")))
        expect((len(empty), empty[0].summary.snapshot_id), (1, 0))

    def lists():
        files = [f for r in tab.ListFiles(t.ListFilesRequest(table=ref("db", "k"))) for f in r.files]
        expect([(f.file.name, f.level, f.min_key, f.max_key, f.added_by, f.path) for f in files],
               [(b"data-k1.parquet", 0, "1", "10", 1, "bucket-0/data-k1.parquet"),
                (b"data-k2.parquet", 0, "5", "20", 2, "bucket-0/data-k2.parquet")])
        r = tab.ListFiles(t.ListFilesRequest(table=ref("db", "k"), version=m.Version(snapshot_id=1), where="id = 15"))
        expect((len(r), r[0].snapshot_id, len(r[0].files)), (1, 1, 0))
        r = tab.ListManifests(t.ListManifestsRequest(table=ref("db", "k")))
        expect((r.snapshot_id, sorted(x.list for x in r.manifests)), (2, ["base", "delta"]))
        expect(sum(x.added_files for x in r.manifests), 2)
        p = tab.ListPartitions(t.ListPartitionsRequest(table=ref("db", "k"))).partitions
        expect([(x.partition, x.record_count, x.file_count, x.size, x.bucket_count) for x in p], [("", 26, 2, 200, 1)])
        b = tab.ListBuckets(t.ListBucketsRequest(table=ref("db", "k"))).buckets
        expect([(x.bucket, x.record_count, x.file_count, x.sorted_runs, x.levels) for x in b], [(0, 26, 2, 2, 1)])
        assert abs(b[0].last_file_time_ms - time.time() * 1000) < 86400000
        s = tab.ListSchemas(t.ListSchemasRequest(table=ref("db", "t"))).schemas
        expect([x.id for x in s], [0, 1, 2])
        o = tab.ListOptions(t.ListOptionsRequest(table=ref("db", "k"))).options
        expect((o[0].key, o[0].value, o[0].default_value, o[0].stored), ("bucket", "1", "-1", True))
        assert any(x.key == "file.format" and not x.stored and x.value == "parquet" for x in o)

    for fn in (commits, commits_refused, a_bomb_of_empty_parts, snapshots, plans, lists):
        case(fn)


# ---- maintenance and a worker that is this program

class FakeWorker(data_pb2_grpc.DataServiceServicer):
    """Takes streams from the daemon; `entries` is what it says it wrote."""

    def __init__(self):
        self.entries, self.requests, self.fail, self.bearer = [], [], None, None
        self.cancelled = threading.Event()
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        data_pb2_grpc.add_DataServiceServicer_to_server(self, self.server)
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def refuse(self, context):
        info = error_details_pb2.ErrorInfo(reason=self.fail, domain="tarn")
        status = status_pb2.Status(code=3, message="line 3: nonsense")
        status.details.add().Pack(info)
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "line 3: nonsense")

    def Ingest(self, requests, context):
        context.add_callback(lambda: self.cancelled.set())
        self.bearer = dict(context.invocation_metadata()).get("authorization")
        self.requests = []
        for request in requests:
            self.requests.append(request)
            if self.fail and len(self.requests) == 2:
                self.refuse(context)
        return d.IngestResponse(rows=2, files_written=1, bytes_written=100, entries=self.entries,
                                bad_row_count=1, bad_rows=[d.BadRow(file=b"x", line=3, reason=b"why")])

    def Scan(self, request, context):
        self.requests = [request]
        yield d.ScanResponse(data=b"id\n")
        if self.fail:
            self.refuse(context)
        for i in range(50):
            yield d.ScanResponse(data=b"%d\n" % i * 10000)
        yield d.ScanResponse(summary=d.ScanSummary(snapshot_id=request.task.snapshot_id, rows=50))

    def Infer(self, requests, context):
        self.requests = list(requests)
        return d.InferResponse(fields=[m.Field(name=b"a", type="INT")])


def refs_cases(daemon, client):
    """Tags, branches, and the way back."""
    tab = client.TableService
    new_table(client, "r", "id BIGINT NOT NULL, v BIGINT", keys=["id"], options=[("bucket", "1")])

    def land(n, table="r"):
        file = data_file(daemon, "r", f"data-r{table[2:]}{n}.parquet", n, n, sequence=n)
        return tab.Commit(t.CommitRequest(table=ref("db", table), commit_user="u", commit_identifier=n, append=[entry(file)])).snapshot_id

    def tags():
        expect([land(n) for n in (1, 2, 3)], [1, 2, 3])
        made = tab.CreateTag(t.CreateTagRequest(table=ref("db", "r"), name="two", version=m.Version(snapshot_id=2), retained_ms=5000))
        expect((made.name, made.snapshot.id, made.retained_ms, made.create_time_ms > 0), ("two", 2, 5000, True))
        expect(tab.CreateTag(t.CreateTagRequest(table=ref("db", "r"), name="top")).snapshot.id, 3)
        tab.CreateTag(t.CreateTagRequest(table=ref("db", "r"), name="x"))
        expect(reason(tab.CreateTag, t.CreateTagRequest(table=ref("db", "r"), name="two")), "TAG_EXISTS")
        expect(reason(tab.CreateTag, t.CreateTagRequest(table=ref("db", "r"), name="")), "NAME_INVALID")
        expect(reason(tab.CreateTag, t.CreateTagRequest(table=ref("db", "r"), name="y", retained_ms=-1)), "INVALID_ARGUMENT")
        expect(reason(tab.CreateTag, t.CreateTagRequest(table=ref("db", "r"), name="y", version=m.Version(tag="two"))), "INVALID_ARGUMENT")
        first = tab.ListTags(t.ListTagsRequest(table=ref("db", "r"), page=m.Page(size=2)))
        expect([tag.name for tag in first.tags], ["top", "two"])
        rest = tab.ListTags(t.ListTagsRequest(table=ref("db", "r"), page=m.Page(size=2, token=first.next_page_token)))
        expect(([tag.name for tag in rest.tags], rest.next_page_token), (["x"], ""))
        expect([tag.name for tag in tab.ListTags(t.ListTagsRequest(table=ref("db", "r"), prefix="t")).tags], ["top", "two"])
        tab.DropTag(t.DropTagRequest(table=ref("db", "r"), name="x"))
        expect(reason(tab.DropTag, t.DropTagRequest(table=ref("db", "r"), name="x")), "TAG_NOT_FOUND")

    def branches():
        tab.CreateBranch(t.CreateBranchRequest(table=ref("db", "r"), branch="b", tag="two"))
        expect(reason(tab.CreateBranch, t.CreateBranchRequest(table=ref("db", "r"), branch="b")), "BRANCH_EXISTS")
        expect(list(tab.ListBranches(t.ListBranchesRequest(table=ref("db", "r"))).branches), ["b"])
        expect(land(7, "r$branch_b"), 3)
        tab.RenameBranch(t.RenameBranchRequest(table=ref("db", "r"), branch="b", to="c"))
        expect(reason(tab.ListSnapshots, t.ListSnapshotsRequest(table=ref("db", "r$branch_b"))), "BRANCH_NOT_FOUND")
        expect([s.id for s in tab.ListSnapshots(t.ListSnapshotsRequest(table=ref("db", "r$branch_c"))).snapshots], [2, 3])
        expect(tab.FastForward(t.FastForwardRequest(table=ref("db", "r"), branch="c")).snapshot_id, 3)
        got = tab.GetCommit(t.GetCommitRequest(table=ref("db", "r"), commit_user="u", commit_identifier=7))
        expect(got.snapshot_id, 3)
        tab.DropBranch(t.DropBranchRequest(table=ref("db", "r"), branch="c"))
        expect(reason(tab.DropBranch, t.DropBranchRequest(table=ref("db", "r"), branch="c")), "BRANCH_NOT_FOUND")

    def back():
        def request(**more):
            return t.RollBackRequest(table=ref("db", "r"), **more)
        expect(reason(tab.RollBack, request()), "INVALID_ARGUMENT")
        expect(reason(tab.RollBack, request(to=m.Version(snapshot_id=9))), "SNAPSHOT_NOT_FOUND")
        expect(reason(tab.RollBack, request(to=m.Version(snapshot_id=1), only_from=2)), "SNAPSHOT_TAKEN")
        dry = tab.RollBack(request(to=m.Version(snapshot_id=1), dry_run=True))
        expect((dry.to, list(dry.tags)), (1, ["two"]))
        done = tab.RollBack(request(to=m.Version(snapshot_id=1), only_from=3, request_id="once"))
        expect((done, tab.RollBack(request(to=m.Version(snapshot_id=1), only_from=3, request_id="once"))), (done, done))
        expect([s.id for s in tab.ListSnapshots(t.ListSnapshotsRequest(table=ref("db", "r"))).snapshots], [1])

    cat = client.CatalogService

    def schema_back():
        def request(to, **more):
            return t.RollBackSchemaRequest(table=ref("db", "s2"), schema_id=to, **more)
        cat.CreateTable(c.CreateTableRequest(database=b"db", table=b"s2", columns_sql=b"id BIGINT"))
        for _ in range(2):
            cat.AlterTable(c.AlterTableRequest(table=ref("db", "s2"), changes=[c.SchemaChange(set_comment=b"x")]))
        expect(reason(tab.RollBackSchema, request(3)), "INVALID_ARGUMENT")
        done = tab.RollBackSchema(request(1, request_id="once"))
        expect((getattr(done, "from"), done.to), (2, 1))
        expect(tab.RollBackSchema(request(1, request_id="once")), done)
        expect([s.id for s in tab.ListSchemas(t.ListSchemasRequest(table=ref("db", "s2"))).schemas], [0, 1])

    def partitions():
        def spec(**values):
            return t.PartitionSpec(values=[m.PartitionValue(column=k.encode(), value=v.encode()) for k, v in values.items()])

        def names(list_):
            return ["/".join(f"{o.key.decode()}={o.value.decode()}" for o in n.values) for n in list_]
        table = ref("db", "p2")
        cat.CreateTable(c.CreateTableRequest(database=b"db", table=b"p2", columns_sql=b"id BIGINT, d DATE, h INT", partition_keys=[b"d", b"h"]))
        make = t.CreatePartitionsRequest(table=table, partitions=[spec(d="2024-01-01", h="3"), spec(d="2024-01-01", h="4")])
        got = tab.CreatePartitions(make)
        expect((names(got.changed), names(got.others)), (["d=19723/h=3", "d=19723/h=4"], []))
        expect(reason(tab.CreatePartitions, make), "PARTITION_EXISTS")
        expect(reason(tab.MarkPartitions, t.MarkPartitionsRequest(table=table, partitions=[spec(h="9")])), "PARTITION_NOT_FOUND")
        got = tab.MarkPartitions(t.MarkPartitionsRequest(table=table, partitions=[spec(h="4"), spec(h="9")], ignore_if_missing=True))
        expect((names(got.changed), names(got.others)), (["d=19723/h=4"], ["h=9"]))
        p = tab.ListPartitions(t.ListPartitionsRequest(table=table)).partitions
        expect([(x.partition, x.values[0].value, x.file_count, x.HasField("created_ms"), x.HasField("done_ms")) for x in p],
               [("d=2024-01-01,h=3", b"2024-01-01", 0, True, False), ("d=2024-01-01,h=4", b"2024-01-01", 0, True, True)])
        expect(reason(tab.DropPartitions, t.DropPartitionsRequest(table=table, partitions=[spec(h="9")])), "PARTITION_NOT_FOUND")
        got = tab.DropPartitions(t.DropPartitionsRequest(table=table, partitions=[spec(d="2024-01-01")]))
        expect((names(got.changed), got.snapshot_id), (["d=19723/h=3", "d=19723/h=4"], 0))
        expect(len(tab.ListPartitions(t.ListPartitionsRequest(table=table)).partitions), 0)

    def replaced():
        made = cat.CreateTable(c.CreateTableRequest(database=b"db", table=b"r2", columns_sql=b"id BIGINT"))
        new = c.CreateTableRequest(columns_sql=b"k STRING NOT NULL", primary_keys=[b"k"])
        got = cat.ReplaceTable(c.ReplaceTableRequest(table=ref("db", "r2"), definition=new))
        expect((got.uuid, got.schema_id, [f.name for f in got.fields], [o.key for o in got.defaults_applied]),
               (made.uuid, 1, [b"k"], [b"bucket", b"write-only"]))
        expect(reason(cat.ReplaceTable, c.ReplaceTableRequest(table=ref("db", "r2"))), "INVALID_ARGUMENT")
        expect(reason(cat.ReplaceTable, c.ReplaceTableRequest(table=ref("db", "nope"), definition=new)), "TABLE_NOT_FOUND")

    def registered():
        here = cat.GetTable(c.GetTableRequest(table=ref("db", "r2"))).path
        there = here.replace("/r2", "/r3")
        folder = there.removeprefix("file:")
        shutil.copytree(here.removeprefix("file:"), folder)
        request = c.RegisterTableRequest(database=b"db", table=b"r3", path=there.encode())
        made = cat.RegisterTable(request)
        expect((made.name, [f.name for f in made.fields]), (b"r3", [b"k"]))
        expect(reason(cat.RegisterTable, request), "TABLE_EXISTS")
        request = c.RegisterTableRequest(database=b"db", table=b"r4", path=there.encode())
        expect(reason(cat.RegisterTable, request), "PATH_INVALID")

    def adopted():
        def outcomes(**more):
            return [(r.database, r.name, r.outcome) for r in cat.Adopt(c.AdoptRequest(targets=[b"db.r3"], **more))]
        expect(outcomes(check_only=True), [(b"db", b"r3", c.AdoptReport.OUTCOME_CHECKED)])
        expect(outcomes(), [(b"db", b"r3", c.AdoptReport.OUTCOME_KNOWN)])
        expect(reason(cat.Adopt, c.AdoptRequest(targets=[b"db.nope"])), "TABLE_NOT_FOUND")

    for fn in (tags, branches, back, schema_back, partitions, replaced, registered, adopted):
        case(fn)


def object_cases(client):
    """Views and functions."""
    cat = client.CatalogService
    cat.CreateDatabase(c.CreateDatabaseRequest(name=b"obj"))

    def obj(name, kind=c.VIEW, database="obj"):
        return c.ObjectRef(kind=kind, database=database.encode(), name=name.encode())

    def views():
        body = {"query": "SELECT 1", "fields": [{"id": 0, "name": "a", "type": "INT"}], "more": [1, None]}
        request = c.CreateObjectRequest(object=obj("v"), body_json=json.dumps(body).encode(), request_id="view")
        made = cat.CreateObject(request)
        expect((made, json.loads(made.body_json), made.object.name), (cat.CreateObject(request), body, b"v"))
        request.request_id = ""
        expect(reason(cat.CreateObject, request), "VIEW_EXISTS")
        request.ignore_if_exists = True
        expect(cat.CreateObject(request), made)
        expect(cat.GetObject(c.GetObjectRequest(object=obj("v"))), made)
        expect(reason(cat.CreateTable, c.CreateTableRequest(database=b"obj", table=b"v", columns_sql=b"id BIGINT")), "VIEW_EXISTS")
        for bad in (c.CreateObjectRequest(object=obj("w"), body_json=b"{}"), c.CreateObjectRequest(body_json=b"{}"),
                    c.CreateObjectRequest(object=obj("w", kind=0), body_json=b"{}")):
            expect(reason(cat.CreateObject, bad), "INVALID_ARGUMENT")
        expect(reason(cat.CreateObject, c.CreateObjectRequest(object=obj("w"), body_json=b"{")), "JSON_MALFORMED")
        changed = cat.AlterObject(c.AlterObjectRequest(object=obj("v"), changes=[
            c.ObjectChange(set_option=m.Option(key=b"k", value=b"v")), c.ObjectChange(set_comment=b"c"),
            c.ObjectChange(add_part=m.Option(key=b"spark", value=b"s")), c.ObjectChange(add_part=m.Option(key=b"flink", value=b"f")),
            c.ObjectChange(update_part=m.Option(key=b"spark", value=b"t")), c.ObjectChange(drop_part=b"flink"), c.ObjectChange(remove_option=b"x")]))
        expect(json.loads(changed.body_json), {**body, "options": {"k": "v"}, "comment": "c", "dialects": {"spark": "t"}})
        expect(reason(cat.AlterObject, c.AlterObjectRequest(object=obj("v"), changes=[c.ObjectChange(drop_part=b"x")])), "DIALECT_NOT_FOUND")
        expect(reason(cat.AlterObject, c.AlterObjectRequest(object=obj("v"), changes=[c.ObjectChange()])), "INVALID_ARGUMENT")
        moved = cat.RenameObject(c.RenameObjectRequest(object=obj("v"), to_name=b"w"))
        expect((moved.uuid, moved.object.name), (made.uuid, b"w"))
        expect(reason(cat.GetObject, c.GetObjectRequest(object=obj("v"))), "VIEW_NOT_FOUND")

    def functions():
        for name in ("f", "g", "h"):
            cat.CreateObject(c.CreateObjectRequest(object=obj(name, c.FUNCTION), body_json=b'{"definitions":{"spark":{"type":"sql"}}}'))
        first = cat.ListObjects(c.ListObjectsRequest(kind=c.FUNCTION, database=b"obj", page=m.Page(size=2)))
        expect([(o.object.name, o.body_json) for o in first.objects], [(b"f", b""), (b"g", b"")])
        rest = cat.ListObjects(c.ListObjectsRequest(kind=c.FUNCTION, database=b"obj", page=m.Page(token=first.next_page_token), whole=True))
        expect([(o.object.name, json.loads(o.body_json), len(o.uuid)) for o in rest.objects], [(b"h", {"definitions": {"spark": {"type": "sql"}}}, 36)])
        expect([o.object.name for o in cat.ListObjects(c.ListObjectsRequest(kind=c.VIEW)).objects], [b"w"])
        expect(reason(cat.ListObjects, c.ListObjectsRequest(database=b"obj")), "INVALID_ARGUMENT")
        expect(reason(cat.AlterObject, c.AlterObjectRequest(object=obj("f", c.FUNCTION), changes=[
            c.ObjectChange(add_part=m.Option(key=b"spark", value=b"{}"))])), "DEFINITION_EXISTS")
        cat.DropObject(c.DropObjectRequest(object=obj("f", c.FUNCTION)))
        expect(reason(cat.DropObject, c.DropObjectRequest(object=obj("f", c.FUNCTION))), "FUNCTION_NOT_FOUND")
        cat.DropObject(c.DropObjectRequest(object=obj("f", c.FUNCTION), ignore_if_missing=True))
        expect(reason(cat.DropDatabase, c.DropDatabaseRequest(name=b"obj")), "DATABASE_NOT_EMPTY")
        cat.DropDatabase(c.DropDatabaseRequest(name=b"obj", cascade=True))
        expect(reason(cat.GetObject, c.GetObjectRequest(object=obj("w"))), "DATABASE_NOT_FOUND")

    for fn in (views, functions):
        case(fn)


def commit_cases(daemon, client):
    """Whole commits: two parts, overwrites, several tables, and what became of them."""
    tab = client.TableService
    new_table(client, "p", "p BIGINT NOT NULL, id BIGINT NOT NULL, v BIGINT", keys=["p", "id"], partition=["p"],
              options=[("bucket", "1"), ("write-only", "true")])
    for name in ("m1", "m2"):
        new_table(client, name, "id BIGINT NOT NULL, v BIGINT", keys=["id"], options=[("bucket", "1")])

    def part_file(p, name, first, last, **more):
        folder = daemon.warehouse("db.db", "p", f"p={p}", "bucket-0")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"x" * 100)
        return t.FileEntry(partition=row(p), total_buckets=1, file=data_file(daemon, "p", name, first, last, create=False, **more))

    def commit(table, identifier, **more):
        return tab.Commit(t.CommitRequest(table=ref("db", table), commit_user="job", commit_identifier=identifier, **more))

    def fate(table, identifier, user="job", **more):
        return tab.GetCommit(t.GetCommitRequest(table=ref("db", table), commit_user=user, commit_identifier=identifier, **more))

    def live(table):
        return sorted(f.file.name.decode() for r in tab.ListFiles(t.ListFilesRequest(table=ref("db", table))) for f in r.files)

    def both_parts():
        first, second = part_file(1, "data-a", 1, 5), part_file(1, "data-b", 6, 9, sequence=10)
        expect((commit("p", 1, append=[first]).snapshot_id, commit("p", 2, append=[second]).snapshot_id), (1, 2))
        merged = part_file(1, "data-ab", 1, 9, level=5, rows=9)
        gone = [t.FileEntry(kind=1, partition=row(1), total_buckets=1, file=x.file) for x in (first, second)]
        r = commit("p", 3, append=[part_file(2, "data-c", 1, 3)], compact=gone + [merged])
        expect((r.snapshot_id, r.compact_snapshot_id), (3, 4))
        expect(live("p"), ["data-ab", "data-c"])
        got = fate("p", 3)
        expect((got.state, got.snapshot_id, got.compact_snapshot_id), (t.GetCommitResponse.LANDED, 3, 4))

    def what_did_not_land():
        expect(fate("p", 99).state, t.GetCommitResponse.NOT_COMMITTED)
        expect(reason(tab.Commit, t.CommitRequest(table=ref("db", "p"), commit_user="job", commit_identifier=4, append=[
            t.FileEntry(kind=1, partition=row(1), total_buckets=1, file=part_file(1, "data-a", 1, 5).file)])), "COMMIT_CONFLICT")
        got = fate("p", 4)
        expect((got.state, got.reason), (t.GetCommitResponse.REFUSED, "COMMIT_CONFLICT"))
        assert "data-a" in got.message, got.message
        expect(reason(tab.GetCommit, t.GetCommitRequest(table=ref("db", "p"))), "INVALID_ARGUMENT")

    def what_is_to_be_committed_again():
        r = tab.FilterCommitted(t.FilterCommittedRequest(table=ref("db", "p"), commit_user="job", commit_identifiers=[5, 2, 3, 7]))
        expect((list(r.commit_identifiers), r.last_committed), ([5, 7], 3))
        r = tab.FilterCommitted(t.FilterCommittedRequest(table=ref("db", "p"), commit_user="other", commit_identifiers=[1]))
        expect((list(r.commit_identifiers), r.WhichOneof("_last")), ([1], None))

    def overwrites():
        dynamic = t.Overwrite(what=t.Overwrite.DYNAMIC)
        commit("p", 5, append=[part_file(2, "data-d", 1, 3)], overwrite=dynamic)
        expect(live("p"), ["data-ab", "data-d"])
        one = t.Overwrite(what=t.Overwrite.PARTITIONS, partitions=[
            t.PartitionSpec(values=[m.PartitionValue(column=b"p", value=b"1")])])
        commit("p", 6, overwrite=one)  # drops the partition
        expect(live("p"), ["data-d"])
        expect(tab.ListSnapshots(t.ListSnapshotsRequest(table=ref("db", "p"))).snapshots[-1].kind, t.OVERWRITE)
        commit("p", 7, overwrite=t.Overwrite(what=t.Overwrite.TABLE))  # truncates
        expect(live("p"), [])
        for bad in (t.Overwrite(what=t.Overwrite.PARTITIONS), t.Overwrite(what=9), t.Overwrite(what=t.Overwrite.PARTITIONS, partitions=[
                t.PartitionSpec(values=[m.PartitionValue(column=b"id", value=b"1")])])):
            expect(reason(tab.Commit, t.CommitRequest(table=ref("db", "p"), commit_identifier=BATCH, overwrite=bad)), "INVALID_ARGUMENT")

    def batches_are_told_apart_by_what_they_bring():
        send = lambda name: commit("m1", BATCH, append=[entry(data_file(daemon, "m1", name, 1, 2))])
        first, second, again = send("data-x"), send("data-y"), send("data-x")
        expect((first.snapshot_id, second.snapshot_id), (1, 2))
        expect((again.snapshot_id, again.repeated_commit), (1, True))
        expect(live("m1"), ["data-x", "data-y"])

    def several_tables():
        both = lambda n: t.CommitTablesRequest(commits=[
            t.CommitRequest(table=ref("db", table), commit_user="job", commit_identifier=n,
                            append=[entry(data_file(daemon, table, f"data-both-{n}", 1, 2))]) for table in ("m1", "m2")])
        expect([x.snapshot_id for x in tab.CommitTables(both(1)).commits], [3, 1])
        expect([x.repeated_commit for x in tab.CommitTables(both(1)).commits], [True, True])
        expect(fate("m2", 1).state, t.GetCommitResponse.LANDED)
        expect(os.listdir(daemon.warehouse(".tarn", "intents")), [])
        expect(reason(tab.CommitTables, t.CommitTablesRequest()), "INVALID_ARGUMENT")

    def files_that_begin_below_what_another_wrote_are_counted():
        send = lambda user, name, sequence: tab.Commit(t.CommitRequest(
            table=ref("db", "m2"), commit_user=user, commit_identifier=BATCH, append=[entry(data_file(daemon, "m2", name, 1, 2, sequence=sequence))]))
        expect(send("high", "data-high", 1000).sequence_overlaps, 0)
        expect(send("low", "data-low", 500).sequence_overlaps, 1)
        expect(send("higher", "data-higher", 2000).sequence_overlaps, 0)

    def index_files():
        index = lambda **more: t.IndexEntry(**{**dict(partition=empty_row(), type="HASH", name=b"index-1", size=4, row_count=1), **more})
        refused = lambda want, **more: expect(reason(tab.Commit, t.CommitRequest(
            table=ref("db", "m2"), commit_identifier=BATCH, append_index=[index(**more)])), want)
        refused("UNSUPPORTED_FEATURE", type="GEO")
        refused("INVALID_ARGUMENT", name=b"../x")
        refused("INVALID_ARGUMENT", size=-1)
        refused("INVALID_ARGUMENT", partition=row(1))
        refused("INVALID_ARGUMENT", type="DELETION_VECTORS", vectors=[t.VectorRange(data_file=b"d", offset=1, length=99)])
        made_from = lambda name, **base: t.CommitRequest(table=ref("db", "m2"), commit_identifier=BATCH, append_index=[index(name=name)], **base)
        summary = lambda: [r.summary for r in tab.Plan(t.PlanRequest(table=ref("db", "m2"), summary_only=True))][-1]
        tab.Commit(made_from(b"index-1"))  # the bucket's first
        now = summary()
        snapshot = next(s for s in tab.ListSnapshots(t.ListSnapshotsRequest(table=ref("db", "m2"))).snapshots if s.id == now.snapshot_id)
        expect(now.snapshot_proof, snapshot.uuid)
        expect(reason(tab.Commit, made_from(b"index-2")), "INDEX_STALE")
        expect(reason(tab.Commit, made_from(b"index-2", base_snapshot=now.snapshot_id, base_snapshot_proof="another")), "INDEX_STALE")
        tab.Commit(made_from(b"index-2", base_snapshot=now.snapshot_id, base_snapshot_proof=now.snapshot_proof))
        tab.Commit(made_from(b"index-3", base_snapshot=summary().snapshot_id, base_snapshot_proof=tab.ListSnapshots(
            t.ListSnapshotsRequest(table=ref("db", "m2"))).snapshots[-1].delta_manifest_list))

    def serialized_messages():
        golden = lambda name: open(os.path.join(ROOT, "test/golden/commit_message", name), "rb").read()
        send = lambda version, *messages, **more: t.CommitRequest(
            table=ref("db", "m2"), commit_identifier=BATCH, messages=t.SerializedMessages(version=version, messages=messages), **more)
        expect(tab.Commit(send(12, golden("empty.v12"))).snapshot_id, 0)
        expect(reason(tab.Commit, send(9, golden("empty.v12"))), "COMMIT_MESSAGE_INVALID")
        expect(reason(tab.Commit, send(12, golden("full.v12")[:-3])), "COMMIT_MESSAGE_INVALID")
        expect(reason(tab.Commit, send(12, golden("empty.v12"), append=[entry(data_file(daemon, "m2", "data-z", 1, 2))])),
               "INVALID_ARGUMENT")

    def pins():
        summary = [r.summary for r in tab.Plan(t.PlanRequest(table=ref("db", "m1"), pin_ms=60000))][-1]
        assert summary.pin.id and summary.pin.expires_ms > time.time() * 1000 + 30000, summary
        r = tab.RenewPin(t.RenewPinRequest(table=ref("db", "m1"), pin_id=summary.pin.id, keep_ms=120000))
        assert r.expires_ms > time.time() * 1000 + 90000, r
        tab.RenewPin(t.RenewPinRequest(table=ref("db", "m1"), pin_id=summary.pin.id))
        assert reason(tab.RenewPin, t.RenewPinRequest(table=ref("db", "m1"), pin_id=summary.pin.id, keep_ms=5)) != "(no error)"

    for fn in (both_parts, what_did_not_land, what_is_to_be_committed_again, overwrites, batches_are_told_apart_by_what_they_bring,
               several_tables, files_that_begin_below_what_another_wrote_are_counted, index_files, serialized_messages, pins):
        case(fn)


def worker_cases(daemon, client):
    work, maintenance = client.WorkerService, client.MaintenanceService
    fake = FakeWorker()
    state = {}

    def nobody_works():
        expect(reason(client.DataService.Infer, iter([d.IngestRequest()])), "NO_WORKER")

    def registering():
        r = work.Register(w.RegisterRequest(name="py", address=fake.address, slots=2, version="x", memory_max_bytes=5))
        assert r.worker_id and r.lease_ms == 60000
        state["id"] = r.worker_id
        s = client.AdminService.GetStatus(admin_pb2.GetStatusRequest())
        expect([(x.name, x.address, x.local, x.slots) for x in s.workers], [("py", fake.address, False, 2)])
        expect(reason(work.Register, w.RegisterRequest(name="py", address="127.0.0.1:1")), "INVALID_ARGUMENT")
        expect(len(work.Poll(w.PollRequest(worker_id=r.worker_id, free_slots=1)).tasks), 0)
        begun = time.time()
        work.Poll(w.PollRequest(worker_id=r.worker_id, free_slots=1, wait_ms=300))
        assert 0.25 < time.time() - begun < 5
        assert reason(work.Poll, w.PollRequest(worker_id="nobody", free_slots=1)) != "(no error)"

    def compaction():
        dry = maintenance.Compact(mt.CompactRequest(table=ref("db", "k"), full=True, dry_run=True))
        expect((len(dry), dry[0].tasks_total, dry[0].picks[0].files, dry[0].files_before), (1, 1, 2, 2))
        expect(len(maintenance.ListJobs(mt.ListJobsRequest()).jobs), 0)
        answers = []
        follower = threading.Thread(target=lambda: answers.extend(
            maintenance.Compact(mt.CompactRequest(table=ref("db", "k"), full=True, wait=True), 60)))
        follower.start()
        tasks = work.Poll(w.PollRequest(worker_id=state["id"], free_slots=2, wait_ms=10000)).tasks
        expect(len(tasks), 1)
        task = tasks[0]
        table = task.compact.table
        expect((table.name, table.path, len(table.schemas), table.schema_id), (b"db.k", b"db.db/k", 1, 0))
        assert table.store_uri.startswith("file:///"), table.store_uri
        expect((len(task.compact.files), task.compact.bucket, task.compact.drop_delete), (2, 0, True))
        state["packed"] = [f for f in task.compact.files if b"data-k1" in f][0]
        lease = w.LeaseRef(task_id=task.id, token=task.token)
        job = maintenance.ListJobs(mt.ListJobsRequest(table=ref("db", "k"))).jobs[0]
        expect((job.id, job.table, job.state, job.worker, job.kind), (task.id, "db.k", "leased", state["id"], "compact"))
        expect(len(work.Renew(w.RenewRequest(worker_id=state["id"], leases=[lease])).lost_task_ids), 0)
        old = w.LeaseRef(task_id=task.id, token=task.token - 1)
        expect(list(work.Renew(w.RenewRequest(worker_id=state["id"], leases=[old])).lost_task_ids), [task.id])
        expect(reason(work.Report, w.ReportRequest(worker_id=state["id"], lease=old)), "LEASE_LOST")
        expect(reason(work.Report, w.ReportRequest(worker_id=state["id"])), "INVALID_ARGUMENT")
        # entries that are no packed entries change nothing
        expect(reason(work.Report, w.ReportRequest(worker_id=state["id"], lease=lease, entries=[b"nonsense"])),
               "MANIFEST_MALFORMED")
        # A worker that isn't ours: input and output are Paimon's file metadata. It has no address, so no rows come.
        work.Report(w.ReportRequest(worker_id=state["id"], lease=lease, failure_reason="IO_ERROR", failure_message="hm"))
        other = state["other"] = work.Register(w.RegisterRequest(name="theirs", slots=1)).worker_id
        task = work.Poll(w.PollRequest(worker_id=other, free_slots=1, wait_ms=20000, file_entries=True)).tasks[0]
        expect((len(task.compact.files), sorted(e.file.name for e in task.compact.inputs)), (0, [b"data-k1.parquet", b"data-k2.parquet"]))
        inputs = list(task.compact.inputs)
        assert all(e.file.key_stats.min and e.file.row_count and e.total_buckets == 1 for e in inputs), inputs
        lease = w.LeaseRef(task_id=task.id, token=task.token)
        gone = [t.FileEntry(kind=1, partition=e.partition, bucket=e.bucket, total_buckets=1, file=e.file) for e in inputs]
        # Not what it was given, and both forms at once.
        expect(reason(work.Report, w.ReportRequest(worker_id=other, lease=lease, changes=gone, entries=[state["packed"]])), "INVALID_ARGUMENT")
        expect(reason(work.Report, w.ReportRequest(worker_id=state["id"], lease=lease, changes=gone)), "LEASE_LOST")
        expect(maintenance.GetBacklog(mt.GetBacklogRequest(table=ref("db", "k"))).backlog.advice, 0)
        job = maintenance.ListJobs(mt.ListJobsRequest(table=ref("db", "k"), explain=True)).jobs[0]
        expect((job.worker, job.decision.inputs.sorted_runs, len(job.decision.pick.runs), job.decision.inputs.ordered), (other, 2, 2, True))
        assert job.decision.score.total > 10000 and job.priority == job.decision.score.total, job
        # What may pass is tried again, what can't isn't.
        work.Report(w.ReportRequest(worker_id=other, lease=lease, failure_reason="IO_ERROR", failure_message="hm"))
        task = work.Poll(w.PollRequest(worker_id=state["id"], free_slots=1, wait_ms=20000)).tasks[0]
        assert (task.id, task.token > lease.token) == (lease.task_id, True)
        work.Report(w.ReportRequest(worker_id=state["id"], lease=w.LeaseRef(task_id=task.id, token=task.token),
                                    failure_reason="DATA_FILE_MALFORMED", failure_message="broken"))
        follower.join(60)
        assert not follower.is_alive()
        last = answers[-1]
        expect((last.tasks_total, last.tasks_done, last.tasks_failed), (1, 0, 1))
        expect((last.files_before, last.files_after), (2, 2))
        assert "broken" in last.failure, last.failure
        job = maintenance.ListJobs(mt.ListJobsRequest(ended=True)).jobs[0]
        expect((job.id, job.state), (task.id, "failed"))
        problems = client.AdminService.GetStatus(admin_pb2.GetStatusRequest()).problems
        assert any(p.table == "db.k" and "broken" in p.problem for p in problems), problems

    def compaction_by_others():
        """One file goes up by its metadata alone."""
        new_table(client, "theirs", "id BIGINT NOT NULL, v BIGINT", keys=["id"], options=[("bucket", "1")])
        low = entry(data_file(daemon, "theirs", "data-t1.parquet", 1, 10))
        client.TableService.Commit(t.CommitRequest(table=ref("db", "theirs"), commit_user="u", commit_identifier=1, append=[low]))
        maintenance.Compact(mt.CompactRequest(table=ref("db", "theirs"), full=True))
        task = work.Poll(w.PollRequest(worker_id=state["other"], free_slots=1, wait_ms=20000, file_entries=True)).tasks[0]
        gone, come = t.FileEntry(), t.FileEntry()
        for e in (gone, come):
            e.CopyFrom(task.compact.inputs[0])
        gone.kind, come.file.level = 1, task.compact.output_level
        lease = w.LeaseRef(task_id=task.id, token=task.token)
        # What another was given, and what was never there: nothing of it lands.
        expect(reason(work.Report, w.ReportRequest(worker_id=state["id"], lease=lease, changes=[gone, come])), "LEASE_LOST")
        done = w.ReportRequest(worker_id=state["other"], lease=lease, changes=[gone, come])
        landed = work.Report(done).snapshot_id
        expect((landed, work.Report(done).snapshot_id), (2, 2)) # again: the same answer
        job = [j for j in maintenance.ListJobs(mt.ListJobsRequest(table=ref("db", "theirs"), ended=True)).jobs]
        expect([(j.state, j.snapshot_id) for j in job], [("done", 2)])
        files = [f for r in client.TableService.ListFiles(t.ListFilesRequest(table=ref("db", "theirs"))) for f in r.files]
        expect([(f.file.name, f.level) for f in files], [(b"data-t1.parquet", 5)])
        advice = maintenance.Advise(mt.AdviseRequest(table=ref("db", "theirs")))
        expect((advice.first_snapshot, advice.last_snapshot, advice.loaded_bytes, advice.now.buckets, advice.advised.buckets), (1, 2, 100, 1, 1))
        new_table(client, "empty", "id BIGINT NOT NULL", keys=["id"], options=[("bucket", "1")])
        expect(reason(maintenance.Advise, mt.AdviseRequest(table=ref("db", "empty"))), "INVALID_ARGUMENT")

    def expiry():
        table = ref("db", "k")
        would = maintenance.Expire(mt.ExpireRequest(table=table, keep_last=1, dry_run=True))
        left = client.CatalogService.GetTable(c.GetTableRequest(table=table)).snapshot_id
        expect((would.to, would.snapshots), (left, would.to - getattr(would, "from")))
        expect(reason(maintenance.Expire, mt.ExpireRequest(table=table, keep_last=-1)), "INVALID_ARGUMENT")
        expect(reason(maintenance.Expire, mt.ExpireRequest(table=table, by_age=True, older_than_ms=-1)), "INVALID_ARGUMENT")
        none = maintenance.Expire(mt.ExpireRequest(table=table, by_age=True, older_than_ms=3600000))
        assert none.snapshots == 0 and none.kept_by, none
        expect(maintenance.Expire(mt.ExpireRequest(table=table)).snapshots, 0)

    def compaction_of_partitions():
        new_table(client, "parts", "dt DATE, h INT, x INT", partition=["dt", "h"], options=[("bucket", "-1")])

        def compact(*values):
            return maintenance.Compact(mt.CompactRequest(table=ref("db", "parts"), dry_run=True, partition=[
                m.PartitionValue(column=k, value=v) for k, v in values]))
        expect(len(compact((b"dt", b"2026-01-31"))[0].picks), 0)
        expect(reason(compact, (b"h", b"1")), "INVALID_ARGUMENT")
        expect(reason(compact, (b"dt", b"soon")), "VALUE_INVALID")
        expect(reason(compact, (b"dt", b"2026-01-31"), (b"x", b"1")), "INVALID_ARGUMENT")

    def sequences():
        uuid = client.CatalogService.GetTable(c.GetTableRequest(table=ref("db", "k"))).uuid
        ask = w.ReserveSequencesRequest(table_uuid=uuid, partition=empty_row(), bucket=0, count=10)
        first = work.ReserveSequences(ask).first
        assert first >= 26, first
        assert work.ReserveSequences(ask).first >= first + 10
        expect(reason(work.ReserveSequences, w.ReserveSequencesRequest(table_uuid=uuid, count=0)), "INVALID_ARGUMENT")
        expect(reason(work.ReserveSequences, w.ReserveSequencesRequest(table_uuid="x", count=1)), "TABLE_NOT_FOUND")
        expect(work.GetBucketCount(w.GetBucketCountRequest(table_uuid=uuid, partition=empty_row())).buckets, 1)
        expect(reason(work.GetBucketCount, w.GetBucketCountRequest(table_uuid="x")), "TABLE_NOT_FOUND")

    def rescale():
        """Queued, listed and cancelled; a dry run is asked for first."""
        ask = mt.RescaleRequest(table=ref("db", "theirs"), buckets=2)
        expect(reason(lambda q: list(maintenance.Rescale(q)), mt.RescaleRequest(table=ref("db", "theirs"))), "INVALID_ARGUMENT")
        planned = list(maintenance.Rescale(mt.RescaleRequest(table=ref("db", "theirs"), buckets=2, dry_run=True)))[0].picks
        expect([(p.kind, p.state, p.bucket) for p in planned], [("rescale", "planned", -1)])
        picks = list(maintenance.Rescale(ask))[0].picks
        expect([(p.kind, p.state) for p in picks], [("rescale", "queued")])
        # Who isn't tarn-worker gets none.
        expect(len(work.Poll(w.PollRequest(worker_id=state["other"], free_slots=1, wait_ms=0, file_entries=True)).tasks), 0)
        maintenance.CancelJob(mt.CancelJobRequest(id=picks[0].id))
        expect(reason(maintenance.CancelJob, mt.CancelJobRequest(id=picks[0].id)), "INVALID_ARGUMENT")
        job = [j for j in maintenance.ListJobs(mt.ListJobsRequest(ended=True)).jobs if j.id == picks[0].id][0]
        expect((job.state, job.failure), ("failed", "cancelled"))

    def start(**arguments):
        arguments.setdefault("table", ref("db", "k"))
        return d.IngestRequest(start=d.IngestStart(**arguments))

    def parts(*more, **arguments):
        return iter([start(**arguments), d.IngestRequest(file=d.IngestFile(name=b"x.csv", format=d.CSV)),
                     d.IngestRequest(data=b"1,2\n")] + list(more))

    def packed(name):
        data_file(daemon, "k", f"data-{name}.parquet", 1, 10)
        return state["packed"].replace(b"data-k1", b"data-" + name.encode())

    def ingest():
        fake.entries = [packed("i1")]
        r = client.DataService.Ingest(parts(commit_user="loader", commit_identifier=7))
        expect((r.snapshot_id, r.rows, r.repeated_commit, len(r.entries), r.bad_row_count), (3, 2, False, 0, 1))
        expect(r.bad_rows[0].reason, b"why")
        first = fake.requests[0]
        expect((first.WhichOneof("part"), first.task.start.mode, first.task.start.commit_user), ("task", d.UPSERT, "loader"))
        expect((first.task.table.name, first.task.table.schema_id), (b"db.k", 0))
        expect([x.WhichOneof("part") for x in fake.requests[1:]], ["file", "data"])
        assert fake.bearer and fake.bearer.startswith("Bearer "), fake.bearer
        fake.requests = []
        r = client.DataService.Ingest(parts(commit_user="loader", commit_identifier=7))
        expect((r.snapshot_id, r.repeated_commit, fake.requests), (3, True, []))
        fake.entries = []
        expect(client.DataService.Ingest(parts()).snapshot_id, 0)

    def ingest_refused():
        ask = lambda **arguments: reason(client.DataService.Ingest, parts(**arguments))
        expect(ask(mode=d.APPEND_ROWS), "INVALID_ARGUMENT")
        expect(ask(table=ref("db", "f"), mode=d.DELETE_ROWS), "INVALID_ARGUMENT")
        expect(ask(table=ref("db", "f"), mode=d.UPSERT), "INVALID_ARGUMENT")
        expect(ask(mode=77), "INVALID_ARGUMENT")
        expect(ask(table=ref("db", "nope")), "TABLE_NOT_FOUND")
        expect(ask(commit_identifier=1), "INVALID_ARGUMENT")
        expect(reason(client.DataService.Ingest, iter([d.IngestRequest(data=b"x")])), "INVALID_ARGUMENT")
        expect(reason(client.DataService.Ingest, iter([])), "INVALID_ARGUMENT")

    def ingest_whose_commit_fails():
        fake.entries = [packed("i2"), state["packed"].replace(b"data-k1", b"data-zz")]  # the second isn't there
        path = daemon.warehouse("db.db", "k", "bucket-0", "data-i2.parquet")
        assert os.path.exists(path)
        expect(reason(client.DataService.Ingest, parts()), "FILE_MISSING")
        assert not os.path.exists(path), "the files of a commit that was refused are removed"

    def worker_says_no():
        fake.fail, fake.entries = "ROW_INVALID", []
        many = [d.IngestRequest(data=b"x" * 400000) for _ in range(200)]
        expect(reason(client.DataService.Ingest, parts(*many)), "ROW_INVALID")
        expect(reason(client.DataService.Scan, d.ScanRequest(table=ref("db", "k"))), "ROW_INVALID")
        fake.fail = None

    def client_gives_up():
        fake.cancelled.clear()
        hold = threading.Event()

        def slow():
            yield start()
            hold.wait(20)
        stub = client.channel.stream_unary("/tarn.v1.DataService/Ingest", request_serializer=d.IngestRequest.SerializeToString,
                                           response_deserializer=d.IngestResponse.FromString)
        future = stub.future(slow())
        time.sleep(0.5)
        fake.cancelled.clear()
        future.cancel()
        assert fake.cancelled.wait(10), "the worker's call ends with the client's"
        hold.set()

    def scan():
        messages = client.DataService.Scan(d.ScanRequest(table=ref("db", "k"), where="id = 1", columns=[b"id"], limit=5, format=d.CSV))
        expect(messages[0].data, b"id\n")
        expect((messages[-1].summary.rows, messages[-1].summary.snapshot_id, len(messages)), (50, 3, 52))
        q = fake.requests[0]
        expect((q.where, list(q.columns), q.limit, q.format), ("id = 1", [b"id"], 5, d.CSV))
        expect([(len(s.files), s.bucket) for s in q.task.splits], [(2, 0)])
        client.DataService.Scan(d.ScanRequest(table=ref("db", "k"), version=m.Version(snapshot_id=1)))
        q = fake.requests[0]
        expect((q.task.snapshot_id, [len(s.files) for s in q.task.splits]), (1, [1]))
        client.DataService.Scan(d.ScanRequest(table=ref("db", "t")))  # an empty one still has a header
        q = fake.requests[0]
        expect((q.task.snapshot_id, len(q.task.splits), q.task.table.schema_id, len(q.task.table.schemas)), (0, 0, 2, 1))
        expect(reason(client.DataService.Scan, d.ScanRequest(table=ref("db", "k"), where="(")), "EXPRESSION_INVALID")

    def infer():
        r = client.DataService.Infer(iter([d.IngestRequest(file=d.IngestFile(name=b"x")), d.IngestRequest(data=b"PAR1")]))
        expect([(f.name, f.type) for f in r.fields], [(b"a", "INT")])
        expect(len(fake.requests), 2)

    def delete():  # what the table's kind rules out never reaches a worker: test/interop/deletion_vectors.py deletes
        ask = lambda **arguments: reason(client.DataService.Delete, d.DeleteRequest(**arguments))
        fake.requests = []
        expect(ask(table=ref("db", "k"), where="id = 1"), "INVALID_ARGUMENT")  # it has a primary key
        expect(ask(table=ref("db", "t"), where="id = 1"), "INVALID_ARGUMENT")  # no deletion vectors
        expect(ask(table=ref("db", "nope"), where="id = 1"), "TABLE_NOT_FOUND")
        expect(fake.requests, [])

    def worker_is_gone():
        fake.server.stop(0).wait()
        expect(reason(client.DataService.Ingest, parts()), "WORKER_LOST")
        expect([x.name for x in client.AdminService.GetStatus(admin_pb2.GetStatusRequest()).workers], ["theirs"])

    for fn in (nobody_works, registering, compaction, compaction_by_others, expiry, compaction_of_partitions, sequences, rescale, ingest, ingest_refused,
               ingest_whose_commit_fails, worker_says_no, client_gives_up, scan, infer, delete, worker_is_gone):
        case(fn)


# ---- the daemon itself

def admin_cases(daemon, client):
    def status():
        s = client.AdminService.GetStatus(admin_pb2.GetStatusRequest())
        expect((s.state, s.warehouse_name, s.grpc_address, s.http_address), ("serving", "tarn", daemon.grpc, daemon.http))
        assert s.version and s.epoch >= 1 and s.databases >= 1 and s.tables >= 1, s
        assert 1 << 20 < s.resident_bytes < 1 << 30

    def health():
        stub = health_pb2_grpc.HealthStub(client.channel)
        expect(stub.Check(health_pb2.HealthCheckRequest()).status, health_pb2.HealthCheckResponse.SERVING)
        expect(stub.Check(health_pb2.HealthCheckRequest(service="tarn.v1.TableService")).status,
               health_pb2.HealthCheckResponse.SERVING)

    def reflection():
        stub = reflection_pb2_grpc.ServerReflectionStub(client.channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        names = {s.name for r in stub.ServerReflectionInfo(iter([request])) for s in r.list_services_response.service}
        assert {f"tarn.v1.{n}" for n in SERVICES} <= names, names

    def unknown_method():
        try:
            client.channel.unary_unary("/tarn.v1.CatalogService/Nothing")(b"", timeout=5)
            raise AssertionError("answered")
        except grpc.RpcError as error:
            expect(error.code(), grpc.StatusCode.UNIMPLEMENTED)

    for fn in (status, health, reflection, unknown_method):
        case(fn)


def restart_cases():
    def what_was_committed_is_there_again():
        daemon = Daemon("main", "worker.count=0")
        client = Client(daemon.grpc)
        got = client.CatalogService.GetTable(c.GetTableRequest(table=ref("db", "k")))
        expect((got.snapshot_id, got.record_count), (3, 36))
        again = client.TableService.Commit(t.CommitRequest(table=ref("db", "k"), commit_user="u", commit_identifier=1,
                                                           append=[entry(data_file(daemon, "k", "data-k9.parquet", 1, 2))]))
        expect((again.snapshot_id, again.repeated_commit), (1, True))
        expect(client.AdminService.GetStatus(admin_pb2.GetStatusRequest()).epoch, 2)
        client.close()
        expect(daemon.stop(), 0)

    def refuses_in_one_line():
        daemon = Daemon("held", "worker.count=0")
        tarnd = os.path.join(BIN, "tarnd")

        def fails(word, *sets):
            arguments = [tarnd]
            for pair in ("worker.count=0", "server.grpc_listen=127.0.0.1:0", "server.http_listen=127.0.0.1:0") + sets:
                arguments += ["--set", pair]
            r = subprocess.run(arguments, stderr=subprocess.PIPE, timeout=30, cwd=daemon.dir)
            last = r.stderr.decode().strip().splitlines()[-1]
            expect(r.returncode, 1)
            assert last.startswith("tarnd: ") and word in last and ";" in last, last
        other = f"server.data_dir={WORK}/held2"
        fails("in use by process", f"server.data_dir={daemon.dir}/data")
        fails("is held by", other, f"warehouse.uri=file://{daemon.warehouse()}")
        fails("another program listens there", other, f"server.grpc_listen={daemon.grpc}")
        fails("listens at", other, f"server.http_listen={daemon.http}")
        fails("auth.mode", other, "server.grpc_listen=0.0.0.0:0")
        fails("warehouse.name", other, "warehouse.name=a/b")
        fails("server.treads", other, "server.treads=1")
        expect(daemon.stop(), 0)

    def arguments():
        def run(*arguments):
            r = subprocess.run([os.path.join(BIN, "tarnd"), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               timeout=30, cwd=WORK, env={**os.environ, "TARN_LOG_LEVEL": "warn"})
            return r.returncode, r.stdout.decode(), r.stderr.decode()
        code, out, _ = run("--version")
        expect((code, out.split()[0]), (0, "tarnd"))
        code, out, _ = run("--help")
        assert code == 0 and "--check-config" in out
        path = os.path.join(WORK, "some.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("[log]\nlevel = debug\n[commit]\nretries = 3\n[worker]\ncount = 1\n")
        code, out, _ = run("-c", path, "--set", "worker.count=5", "--check-config")
        lines = [x.replace(" ", "") for x in out.splitlines()]
        assert code == 0 and {"level=warn", "retries=3", "count=5"} <= set(lines), out
        expect(run("--nonsense")[0], 2)
        expect(run("nonsense")[0], 2)
        code, _, err = run("-c", path, "--set", "worker.count=-2", "--check-config")
        assert code == 1 and "worker.count = -2" in err, err
        # what a start refuses, the check refuses, in the same words
        for said, *sets in [
            ("warehouse.uri: 'foo' is no store: expected file:///absolute/path", "warehouse.uri=foo"),
            ("warehouse.uri: 'file:a/b'", "warehouse.uri=file:a/b"), ("warehouse.uri", "warehouse.uri=s3://"),
            ("server.data_dir", "server.data_dir="), ("auth.token_file", "auth.mode=token"),
            ("auth.token_file", "auth.mode=token", "auth.token_file=/nowhere"), ("oidc", "auth.mode=oidc"),
            ("auth.mode = x", "auth.mode=x"), ("log.level = loud", "log.level=loud"), ("log.format", "log.format=xml"),
            ("server.grpc_listen", "server.grpc_listen=0.0.0.0:0"), ("server.http_listen", "server.http_listen=1"),
            ("server.threads", "server.threads=-1"), ("worker.memory", "worker.memory=1 mb"),
            ("worker.write_buffer", "worker.write_buffer=0"), ("worker.lease", "worker.lease=0 s"),
            ("commit.retries", "commit.retries=-1"), ("check_interval", "compaction.check_interval=0 s"),
            ("/nowhere", "worker.program=/nowhere"), ("ftp", "warehouse.uri=ftp://x"),
        ]:
            given = [x for one in sets for x in ("--set", one)]
            checked, started = run(*given, "--check-config"), run(*given)
            assert checked[0] == 1 and said in checked[2] and checked[2].count("\n") == 1, (sets, checked)
            expect(started[::2], checked[::2])

    for fn in (what_was_committed_is_there_again, refuses_in_one_line, arguments):
        case(fn)


def token_cases():
    def tokens():
        path = os.path.join(WORK, "tokens")
        with open(path, "w", encoding="utf-8") as file:
            file.write("ann:secret-of-ann\n")
        os.chmod(path, 0o600)
        daemon = Daemon("token", "worker.count=0", "auth.mode=token", f"auth.token_file={path}")
        nobody, ann = Client(daemon.grpc), Client(daemon.grpc, "secret-of-ann")
        expect(reason(nobody.CatalogService.ListDatabases, c.ListDatabasesRequest()), "UNAUTHENTICATED")
        ann.CatalogService.CreateDatabase(c.CreateDatabaseRequest(name=b"x"))
        expect(reason(ann.WorkerService.Register, w.RegisterRequest(name="x", address="127.0.0.1:1", slots=1)), "PERMISSION_DENIED")
        with open(path, "a", encoding="utf-8") as file:
            file.write("bob:secret-of-bob\n")
        bob = Client(daemon.grpc, "secret-of-bob")
        expect(reason(bob.CatalogService.ListDatabases, c.ListDatabasesRequest()), "UNAUTHENTICATED")
        daemon.process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        bob.CatalogService.ListDatabases(c.ListDatabasesRequest())
        for client in (nobody, ann, bob):
            client.close()
        expect(daemon.stop(), 0)
    case(tokens)


# ---- rows, through a real worker

def real_worker_cases():
    if not os.path.exists(os.path.join(BIN, "tarn-worker")):
        results["skipped"] += 1
        print("skipped: loads and scans through a real worker: tarn-worker is not built")
        return
    daemon = Daemon("real", "worker.count=1")
    client = Client(daemon.grpc)
    client.CatalogService.CreateDatabase(c.CreateDatabaseRequest(name=b"db"))
    new_table(client, "r", "id BIGINT NOT NULL, name STRING", keys=["id"])

    def load(text, **arguments):
        arguments.setdefault("table", ref("db", "r"))
        return client.DataService.Ingest(iter([
            d.IngestRequest(start=d.IngestStart(**arguments)),
            d.IngestRequest(file=d.IngestFile(name=b"x.csv", format=d.CSV)), d.IngestRequest(data=text)]))

    def rows(**arguments):
        return b"".join(x.data for x in client.DataService.Scan(d.ScanRequest(table=ref("db", "r"), format=d.CSV, **arguments)))

    def rows_come_back():
        r = load(b"id,name\n2,b\n1,a\n", commit_user="py", commit_identifier=1)
        expect((r.snapshot_id, r.rows, r.files_written), (1, 2, 1))
        expect(rows(), b"id,name\n1,a\n2,b\n")
        expect(load(b"id,name\n3,c\n", commit_user="py", commit_identifier=1).repeated_commit, True)
        load(b"id,name\n2,B\n3,c\n")
        expect(rows(), b"id,name\n1,a\n2,B\n3,c\n")
        expect(rows(version=m.Version(snapshot_id=1)), b"id,name\n1,a\n2,b\n")
        expect(rows(where="id >= 2", columns=[b"name"], limit=1), b"name\nB\n")
        load(b"id,name\n1,\n", mode=d.DELETE_ROWS)
        expect(rows(), b"id,name\n2,B\n3,c\n")

    def a_bad_row_is_named():
        expect(reason(load, b"id,name\n9,x\nnine,y\n"), "ROW_INVALID")
        expect(len(client.TableService.ListSnapshots(t.ListSnapshotsRequest(table=ref("db", "r"))).snapshots), 3)

    def compacted():
        r = client.MaintenanceService.Compact(mt.CompactRequest(table=ref("db", "r"), full=True, wait=True), 60)
        expect((r[-1].tasks_done, r[-1].tasks_failed, r[-1].files_before, r[-1].files_after), (1, 0, 3, 1))
        expect(r[-1].snapshot_id, 4)
        expect(rows(), b"id,name\n2,B\n3,c\n")

    def a_worker_that_dies_is_started_again():
        pid = subprocess.run(["pgrep", "-P", str(daemon.process.pid)], stdout=subprocess.PIPE, check=True).stdout.split()
        os.kill(int(pid[0]), signal.SIGKILL)
        for _ in range(200):
            s = client.AdminService.GetStatus(admin_pb2.GetStatusRequest())
            if s.worker_restarts >= 1 and s.workers and s.workers[0].last_seen_ms > 0:
                try:
                    expect(rows(), b"id,name\n2,B\n3,c\n")
                    return
                except grpc.RpcError:
                    pass  # the old one's address; the next try gets the new one
            time.sleep(0.1)
        raise AssertionError("no worker came back")

    for fn in (rows_come_back, a_bad_row_is_named, compacted, a_worker_that_dies_is_started_again):
        case(fn)
    client.close()
    if daemon.stop() != 0:
        results["failed"] += 1
        print("FAILED: the daemon with a worker did not end well")


# ---- subscriptions: streams that stay open

def details(error):
    """Reason and metadata of the ErrorInfo."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                info = error_details_pb2.ErrorInfo()
                if detail.Unpack(info):
                    return info.reason, dict(info.metadata)
    return f"(no ErrorInfo, {error.code()})", {}


def subscribe_cases():
    daemon = Daemon("subscribe", "worker.count=0", "commit.foreign_check=100ms", "subscribe.slow_after=1s")
    client = Client(daemon.grpc)
    table = client.TableService
    client.CatalogService.CreateDatabase(c.CreateDatabaseRequest(name=b"db"))
    new_table(client, "s", "id BIGINT NOT NULL", ["id"])
    path = "/tarn.v1.TableService/Subscribe"
    stub = client.channel.unary_stream(path, request_serializer=t.SubscribeRequest.SerializeToString,
                                       response_deserializer=t.SubscribeResponse.FromString)
    count = 0

    def subscribe(**more):
        called.add(path)
        return stub(t.SubscribeRequest(table=ref("db", "s"), **more), timeout=30)

    def commit():
        nonlocal count
        count += 1
        return table.Commit(t.CommitRequest(table=ref("db", "s"), commit_user="u", commit_identifier=count, append=[
            entry(data_file(daemon, "s", f"f-{count}", count, count, sequence=count))])).snapshot_id

    def snapshots_and_tokens():
        for _ in range(3):
            commit()
        stream = subscribe(earliest=True)
        told = [next(stream) for _ in range(3)]
        expect([x.snapshot.id for x in told], [1, 2, 3])
        expect([(x.last_of_snapshot, x.whole, len(x.splits)) for x in told], [(True, False, 0)] * 3)
        commit()
        expect(next(stream).snapshot.id, 4)
        stream.cancel()
        rest = subscribe(resume_token=told[1].resume_token)
        expect([next(rest).snapshot.id for _ in range(2)], [3, 4])
        rest.cancel()
        late = subscribe(snapshot_id=4)
        expect(next(late).snapshot.id, 4)
        late.cancel()
        timed = subscribe(time_ms=told[2].snapshot.time_ms)
        expect(next(timed).snapshot.id <= 3, True)
        timed.cancel()

    def changes_name_their_files():
        stream = subscribe(what=t.SubscribeRequest.CHANGES, snapshot_id=2)
        told = next(stream)
        expect([(s.bucket, s.snapshot_id, [f.name for f in s.files]) for s in told.splits], [(0, 2, [b"f-2"])])
        stream.cancel()
        stream = subscribe(what=t.SubscribeRequest.CHANGES, full_first=True)
        told = next(stream)
        expect((told.whole, told.snapshot.id), (True, 4))
        expect(sorted(f.name for s in told.splits for f in s.files), [b"f-1", b"f-2", b"f-3", b"f-4"])
        commit()
        told = next(stream)
        expect((told.whole, [f.name for s in told.splits for f in s.files]), (False, [b"f-5"]))
        stream.cancel()
        for bad in ({"what": 7}, {"how": 9}, {"where": "id = 1"}, {"full_first": True}, {"resume_token": b"x"},
                    {"what": t.SubscribeRequest.CHANGES, "where": "nope ="}, {"snapshot_id": 0}, {"consumer": "a/b"}):
            try:
                next(subscribe(**bad))
                raise AssertionError(f"{bad} was taken")
            except grpc.RpcError as error:
                expect((bad, error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)), (bad, True))

    def consumers():
        made = table.SetConsumer(t.SetConsumerRequest(table=ref("db", "s"), id="billing", next_snapshot=2)).consumer
        expect((made.id, made.next_snapshot), ("billing", 2))
        stream = subscribe(consumer="billing", keep_consumer="billing")
        expect(next(stream).snapshot.id, 2)
        stream.cancel()
        listed = table.ListConsumers(t.ListConsumersRequest(table=ref("db", "s"))).consumers
        expect([(x.id, x.next_snapshot) for x in listed], [("billing", 2)])
        with open(daemon.warehouse("db.db", "s", "consumer", "consumer-billing"), encoding="utf-8") as file:
            expect(file.read(), '{\n  "nextSnapshot" : 2\n}')
        expect(reason(table.SetConsumer, t.SetConsumerRequest(table=ref("db", "s"), id="b", next_snapshot=99)), "INVALID_ARGUMENT")
        table.DropConsumer(t.DropConsumerRequest(table=ref("db", "s"), id="billing"))
        expect(reason(table.DropConsumer, t.DropConsumerRequest(table=ref("db", "s"), id="billing")), "CONSUMER_NOT_FOUND")

    def a_gap_is_told_with_the_earliest_token():
        stream = subscribe(earliest=True)
        first = next(stream)
        stream.cancel()
        for gone in (1, 2):
            os.unlink(daemon.warehouse("db.db", "s", "snapshot", f"snapshot-{gone}"))
        time.sleep(0.3)
        try:
            next(subscribe(resume_token=first.resume_token))
            raise AssertionError("a gap was passed over")
        except grpc.RpcError as error:
            word, facts = details(error)
            expect((error.code(), word, facts["earliest_snapshot"]), (grpc.StatusCode.OUT_OF_RANGE, "SNAPSHOT_EXPIRED", "3"))
            again = subscribe(resume_token=bytes.fromhex(facts["earliest_token"]))
            expect(next(again).snapshot.id, 3)
            again.cancel()

    def others_commits_and_roll_backs_are_told():
        folder = daemon.warehouse("db.db", "s", "snapshot")
        last = commit() - 1  # what others will commit: it stands on the last one
        os.link(os.path.join(folder, f"snapshot-{last + 1}"), os.path.join(folder, ".next"))
        table.RollBack(t.RollBackRequest(table=ref("db", "s"), to=m.Version(snapshot_id=last)))
        stream = subscribe()
        os.rename(os.path.join(folder, ".next"), os.path.join(folder, f"snapshot-{last + 1}"))
        expect(next(stream).snapshot.id, last + 1)
        os.unlink(os.path.join(folder, f"snapshot-{last + 1}"))
        try:
            next(stream)
            raise AssertionError("a roll-back was passed over")
        except grpc.RpcError as error:
            expect((error.code(), details(error)[0]), (grpc.StatusCode.ABORTED, "SNAPSHOT_ROLLED_BACK"))

    def a_reader_that_stands_still_is_shed_alone():
        new_table(client, "wide", "id BIGINT NOT NULL", ["id"])
        wide = ref("db", "wide")
        stuck = stub(t.SubscribeRequest(table=wide, earliest=True), timeout=60)
        for number in range(1, 101):  # what fits no window: 40 MB
            table.Commit(t.CommitRequest(table=wide, commit_user="u", commit_identifier=number, force_empty=True,
                                         properties=[option("note", "x" * 400000)]))
        other = stub(t.SubscribeRequest(table=wide, earliest=True), timeout=60)
        expect([next(other).snapshot.id for _ in range(100)], list(range(1, 101)))
        time.sleep(3)  # subscribe.slow_after is one second
        table.Commit(t.CommitRequest(table=wide, commit_user="u", commit_identifier=101, force_empty=True))
        expect(next(other).snapshot.id, 101)
        other.cancel()
        told = []
        try:
            for x in stuck:
                told.append(x)
            raise AssertionError("it was not shed")
        except grpc.RpcError as error:
            expect(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        expect([x.snapshot.id for x in told], list(range(1, len(told) + 1)))
        token = {"resume_token": told[-1].resume_token} if told else {"earliest": True}
        again = stub(t.SubscribeRequest(table=wide, **token), timeout=60)
        expect([next(again).snapshot.id for _ in range(101 - len(told))], list(range(len(told) + 1, 102)))
        again.cancel()

    def the_end_of_the_server_ends_it_at_once():
        stream = subscribe()
        threading.Timer(0.5, lambda: daemon.process.send_signal(signal.SIGTERM)).start()
        start = time.monotonic()
        try:
            next(stream)
            raise AssertionError("something was told")
        except grpc.RpcError as error:
            expect((error.code(), details(error)[0]), (grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN"))
        expect(daemon.process.wait(20), 0)
        expect(time.monotonic() - start < 10, True)

    for fn in (snapshots_and_tokens, changes_name_their_files, consumers, a_gap_is_told_with_the_earliest_token,
               others_commits_and_roll_backs_are_told, a_reader_that_stands_still_is_shed_alone,
               the_end_of_the_server_ends_it_at_once):
        case(fn)
    client.close()
    daemon.stop()


def main():
    daemon = Daemon("main", "worker.count=0")
    client = Client(daemon.grpc)
    catalog_cases(daemon, client)
    table_cases(daemon, client)
    refs_cases(daemon, client)
    object_cases(client)
    commit_cases(daemon, client)
    worker_cases(daemon, client)
    admin_cases(daemon, client)
    client.close()

    def ends_well():
        expect(daemon.stop(), 0)
    case(ends_well)
    restart_cases()
    subscribe_cases()
    token_cases()
    real_worker_cases()

    def every_method_was_called():
        every = {f"/{s.full_name}/{x.name}" for n, module in SERVICES.items()
                 for s in [module.DESCRIPTOR.services_by_name[n]] for x in s.methods}
        expect(sorted(every - called), [])
    case(every_method_was_called)


try:
    main()
except Exception:
    traceback.print_exc(file=sys.stdout)
    results["failed"] += 1
for line in os.popen("ps -eo pid,args").read().splitlines():
    if WORK in line and "ps -eo" not in line and str(os.getpid()) not in line.split()[0]:
        print("still running:", line)
        os.kill(int(line.split()[0]), signal.SIGKILL)
        results["failed"] += 1
if results["failed"] == 0 and "TARN_KEEP" not in os.environ:
    import shutil
    shutil.rmtree(WORK, ignore_errors=True)
else:
    print("kept:", WORK)
print(f"{results['passed']} passed, {results['failed']} failed, {results['skipped']} skipped")
sys.exit(1 if results["failed"] else 0)
