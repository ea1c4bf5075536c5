#!/usr/bin/env python3
"""Promise: what tarnd answers to native commits is the truth, whoever kills it and when: an acknowledged commit is in the
table once, one that is "not committed" never, and asking settles those that had no answer; with a lost state, too.

Clients of another language commit files of known rows at once, one file each, under batch and streaming identities; the
daemon is killed at a random moment and started again; what had no answer is asked for, and sent again. Watchers follow
each table through all of it, leaving and coming back behind their last token: every snapshot once, in order, with its files. At the end
Paimon's Java library and pypaimon read the table (where ../shared is there): exactly the rows of the commits that landed.
Rounds: N or TARN_HISTORY_ROUNDS (4); the seed is printed, TARN_SEED runs it again (moments differ all the same).

Needs grpcio and grpcio-tools (a virtual environment in $TARN_CACHE/pyenv is used where the running Python hasn't them).
"""
import collections
import os
import random
import shutil
import sys
import threading
import time
import uuid

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test/lib"))
VENV = os.path.join(os.environ.get("TARN_CACHE", os.path.expanduser("~/.cache/tarn")), "pyenv/bin/python")
try:
    import grpc
    from google.rpc import error_details_pb2, status_pb2
    from grpc_tools import protoc
except ImportError:
    if os.path.exists(VENV) and "TARN_REEXEC" not in os.environ:
        os.environ["TARN_REEXEC"] = "1"
        os.execv(VENV, [VENV, __file__, *sys.argv[1:]])
    print("skipped: grpcio and its tools are not installed (scripts/setup)")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)
import peers  # noqa: E402
from lab import Failed, Lab, check, equal, same_rows  # noqa: E402

ROUNDS = int(os.environ.get("N") or os.environ.get("TARN_HISTORY_ROUNDS") or 4)
SEED = int(os.environ.get("TARN_SEED") or random.SystemRandom().randrange(1 << 32))
CLIENTS = 8
FILES = 400  # with rows of their own; each commit takes one
ROWS = 4 * FILES
BATCH = 2**63 - 1
TYPES = [("id", "BIGINT"), ("v", "STRING")]

rng = random.Random(SEED)
lab = Lab("history")
tarn = lab.daemon("d", **{"worker.count": 1})


def stubs():
    out = lab.path("gen")
    os.makedirs(out)
    protos = [os.path.join("tarn/v1", f) for f in sorted(os.listdir(os.path.join(ROOT, "proto/tarn/v1")))]
    check(protoc.main(["protoc", f"-I{ROOT}/proto", f"--python_out={out}", f"--grpc_python_out={out}"] + protos) == 0, "protoc")
    sys.path.insert(0, out)


stubs()
from tarn.v1 import catalog_pb2, catalog_pb2_grpc, common_pb2, table_pb2 as t, table_pb2_grpc  # noqa: E402

State = t.GetCommitResponse.State


def connect():
    channel = grpc.insecure_channel(tarn.address, options=[("grpc.enable_retries", 0)])
    return table_pb2_grpc.TableServiceStub(channel), catalog_pb2_grpc.CatalogServiceStub(channel)


def reason_of(error):
    """ErrorInfo's reason; None: the server said nothing, so that the outcome is not known."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                info = error_details_pb2.ErrorInfo()
                if detail.Unpack(info):
                    return info.reason
    return None


# ---------------------------------------------------------------- files with known rows


class Source:
    """A file of the table h.source: a DataFile message and its place."""

    def __init__(self, message, path):
        self.message, self.path = message, path


def make_sources():
    """One load into as many buckets as there are to be files: no row is in two of them."""
    tarn.tarn("db", "create", "h")
    tarn.tarn("table", "create", "h.source", "--columns", "id BIGINT NOT NULL, v STRING", "--option", f"bucket={FILES}",
              "--option", "bucket-key=id")
    rows = lab.write("rows.jsonl", "".join(f'{{"id": {i}, "v": "row {i}"}}\n' for i in range(ROWS)))
    tarn.tarn("load", "h.source", rows)
    tables, catalog = connect()
    ref = common_pb2.TableRef(database=b"h", table=b"source")
    sources = []
    for answer in tables.Plan(t.PlanRequest(table=ref, with_stats=True)):
        for split in answer.splits:
            for f in split.files:
                sources.append(Source(f, os.path.join(tarn.folder("h.source"), split.path, f.name.decode())))
    check(len(sources) > FILES // 2, f"{len(sources)} files")
    rng.shuffle(sources)
    return sources


# ---------------------------------------------------------------- commits


class Commit:
    """One identity and its file. What was said about it is noted in the order of the answers."""

    def __init__(self, user, identifier, source):
        self.user, self.identifier, self.source = user, identifier, source
        self.name = f"data-{uuid.UUID(int=rng.getrandbits(128))}-0.{source.path.rsplit('.', 1)[1]}"
        self.landed, self.refused, self.unknown, self.running = None, [], 0, 0
        self.settled = False  # told "not committed", and not sent again since

    def __str__(self):
        return f"({self.user}, {'batch' if self.identifier == BATCH else self.identifier}, {self.name})"

    def request(self, table):
        f = t.DataFile()
        f.CopyFrom(self.source.message)
        f.name = self.name.encode()
        entry = t.FileEntry(kind=0, partition=b"\0\0\0\0" + b"\0" * 8, bucket=0, total_buckets=-1, file=f)
        return t.CommitRequest(table=table.ref, commit_user=self.user, commit_identifier=self.identifier, append=[entry])


class Table:
    def __init__(self, name, *options):
        self.name, self.options = name, options
        self.lock = threading.Lock()
        self.commits = []

    def create(self):
        words = []
        for o in self.options:
            words += ["--option", o]
        tarn.tarn("table", "create", "h." + self.name, "--columns", "id BIGINT NOT NULL, v STRING", *words)
        _, catalog = connect()
        made = catalog.GetTable(catalog_pb2.GetTableRequest(
            table=common_pb2.TableRef(database=b"h", table=self.name.encode())))
        self.ref = common_pb2.TableRef(database=b"h", table=self.name.encode(), uuid=made.uuid)
        self.bucket = os.path.join(tarn.folder("h." + self.name), "bucket-0")
        os.makedirs(self.bucket, exist_ok=True)

    def send(self, stub, commit):
        """Sends it once and notes the answer."""
        with self.lock:
            commit.running += 1
        try:
            answer = stub.Commit(commit.request(self), timeout=60)
        except grpc.RpcError as error:
            reason = reason_of(error)
            with self.lock:
                commit.running -= 1
                if reason is None or reason in ("OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED", "CANCELLED"):
                    commit.unknown += 1
                else:
                    commit.refused.append(reason)
                    check(reason != "INTERNAL", f"{commit}: {error.details()}")
                    check(commit.landed is None or reason in ("SHUTTING_DOWN", "UNAVAILABLE"),
                          f"{commit}, which landed in {commit.landed}, is refused: {reason}: {error.details()}")
            return False
        with self.lock:
            commit.running -= 1
            check(answer.snapshot_id > 0 and answer.compact_snapshot_id == 0, f"{commit}: {answer}")
            if commit.landed is not None:
                equal((answer.snapshot_id, answer.repeated_commit), (commit.landed, True), f"{commit} sent again")
            commit.landed = answer.snapshot_id
            commit.settled = False
        return True

    def ask(self, stub, commit, lost):
        """What became of it, until that is settled."""
        for _ in range(200):
            answer = stub.GetCommit(t.GetCommitRequest(table=self.ref, commit_user=commit.user,
                                                       commit_identifier=commit.identifier), timeout=60)
            if answer.state != State.OPEN:
                break
            time.sleep(0.05)
        with self.lock:
            if answer.state == State.LANDED:
                if commit.landed is not None:
                    equal(answer.snapshot_id, commit.landed, f"{commit}, as asked for")
                check(commit.unknown > 0 or commit.landed is not None, f"{commit} was refused, and landed")
                commit.landed = answer.snapshot_id
            elif answer.state in (State.NOT_COMMITTED, State.REFUSED):
                check(commit.landed is None, f"{commit} landed in {commit.landed} and is told {State.Name(answer.state)}")
                commit.settled = True
            elif answer.state == State.NOT_KNOWN:
                check(lost, f"{commit} is not known, and no state was lost")
            else:
                raise Failed(f"{commit} is told {State.Name(answer.state)}")
        return answer.state


TABLES = [Table("batch"), Table("all", "tarn.group-commit=all"), Table("none", "tarn.group-commit=none")]


class Client(threading.Thread):
    """Commits into one table, one after the other; sends some again."""

    def __init__(self, table, number, sources, stop):
        super().__init__()
        self.table, self.number, self.sources, self.stop = table, number, sources, stop
        self.trouble, self.rng = None, random.Random(rng.random())
        self.identifier = int(time.time() * 1000)  # rises from round to round

    def next(self):
        streaming = self.number % 2 == 0
        self.identifier += 1
        commit = Commit(f"stream-{self.number}" if streaming else f"batch-{self.number}-{self.identifier}",
                        self.identifier if streaming else BATCH, self.sources.pop())
        shutil.copyfile(commit.source.path, os.path.join(self.table.bucket, commit.name))
        with self.table.lock:
            self.table.commits.append(commit)
        return commit

    def run(self):
        stub, _ = connect()
        mine = []
        try:
            while not self.stop.is_set() and self.sources:
                if mine and self.rng.random() < 0.3:
                    commit = self.rng.choice(mine[-5:])
                    if commit.landed is None and commit.user.startswith("stream") and commit is not mine[-1]:
                        continue  # a stream goes on from its last one
                else:
                    commit = self.next()
                    mine.append(commit)
                if not self.table.send(stub, commit) and commit.unknown:
                    time.sleep(0.02)
        except Exception as e:
            self.trouble = e


class Watcher(threading.Thread):
    """Follows a table's changes from its first snapshot on: one in a stream of its own, behind a token whenever that broke."""

    def __init__(self, table):
        super().__init__(daemon=True)
        self.table, self.rng = table, random.Random(rng.random())
        self.told = []  # (snapshot, its files, token), as far as they are whole
        self.part, self.token, self.streams = [], None, 0
        self.trouble, self.stop = None, threading.Event()

    def run(self):
        try:
            while not self.stop.is_set():
                try:
                    self.follow()
                except grpc.RpcError as error:
                    reason = reason_of(error)
                    check(reason in (None, "SHUTTING_DOWN", "UNAVAILABLE", "STORE_UNAVAILABLE", "CANCELLED", "BUSY"),
                          f"the stream of {self.table.name} behind {self.told[-1:]} ended: {reason}: {error.details()}")
                    time.sleep(0.02)
        except Exception as e:
            self.trouble = e

    def follow(self):
        self.streams += 1
        start = {"resume_token": self.token} if self.token else {"earliest": True}
        leave_after = self.rng.randrange(1, 200)
        with grpc.insecure_channel(tarn.address, options=[("grpc.enable_retries", 0)]) as channel:
            stream = table_pb2_grpc.TableServiceStub(channel).Subscribe(
                t.SubscribeRequest(table=self.table.ref, what=t.SubscribeRequest.CHANGES, **start))
            for event in stream:
                self.take(event)
                leave_after -= 1
                if self.stop.is_set() or leave_after == 0:
                    break
            stream.cancel()

    def take(self, event):
        check(event.snapshot.id == (self.told[-1][0] if self.told else 0) + 1,
              f"{self.table.name}: snapshot {event.snapshot.id} is told behind {self.told[-1:]}")
        self.part += [f.name.decode() for s in event.splits for f in s.files]
        self.token = event.resume_token
        if event.last_of_snapshot:
            self.told.append((event.snapshot.id, self.part, self.token))
            self.part = []

    def reaches(self, latest):
        end = time.monotonic() + 30
        while (self.told[-1][0] if self.told else 0) < latest:
            if self.trouble:
                raise self.trouble
            check(time.monotonic() < end, f"{self.table.name}: told up to {self.told[-1:]}, the table is at {latest}")
            time.sleep(0.02)

    def hold(self):
        """All that landed is told where it landed, once, and nothing else; any old token continues with the same."""
        stub, _ = connect()
        folder = os.path.join(tarn.folder("h." + self.table.name), "snapshot")
        latest = max((int(n[9:]) for n in os.listdir(folder) if n.startswith("snapshot-")), default=0) if os.path.isdir(folder) else 0
        self.reaches(latest)
        told = self.told[:]
        where = {name: id for id, files, _ in told for name in files}
        equal(sum(len(files) for _, files, _ in told), len(where), f"{self.table.name}: files told, each once")
        for commit in self.table.commits:
            if commit.landed is not None:
                equal(where.get(commit.name), commit.landed, f"{commit}: the snapshot that was told of it")
            elif commit.settled or not commit.unknown:
                check(commit.name not in where, f"{commit} did not land, and is told of in snapshot {where.get(commit.name)}")
        equal(sorted(where), sorted(names(self.table)), f"{self.table.name}: the stream's files, and the table's")
        if len(told) > 1:
            self.again(stub, told, self.rng.randrange(len(told) - 1))

    def again(self, stub, told, n):
        stream = stub.Subscribe(t.SubscribeRequest(table=self.table.ref, what=t.SubscribeRequest.CHANGES, resume_token=told[n][2]), timeout=30)
        for id, files, _ in told[n + 1:]:
            event = next(stream)
            equal((event.snapshot.id, [f.name.decode() for s in event.splits for f in s.files]), (id, files), f"behind the token of {told[n][0]}")
        stream.cancel()


def one_round(table, sources):
    stop = threading.Event()
    clients = [Client(table, n, sources, stop) for n in range(CLIENTS)]
    for c in clients:
        c.start()
    lost = rng.random() < 0.3
    time.sleep(rng.choice([0.1, 0.5, 1.5]) * rng.random())
    tarn.kill9()
    stop.set()
    for c in clients:
        c.join()
    for c in clients:
        if c.trouble:
            raise c.trouble
    if lost:
        shutil.rmtree(os.path.join(tarn.data, "state"))
    tarn.start(workers=False, **{"worker.count": 0})
    return lost


def settle(table, lost):
    stub, _ = connect()
    for commit in table.commits:
        doubtful = commit.landed is None and commit.unknown
        if doubtful or rng.random() < 0.1:
            table.ask(stub, commit, lost)
        if (doubtful and rng.random() < 0.5) or rng.random() < 0.05:
            table.send(stub, commit)


def names(table):
    stub, _ = connect()
    got = []
    for answer in stub.Plan(t.PlanRequest(table=table.ref)):
        got += [f.name.decode() for s in answer.splits for f in s.files]
    return got


def hold(table):
    """The table has the files of the commits that landed, and no others, each once."""
    got = names(table)
    equal(len(got), len(set(got)), f"{table.name}: files, each once")
    for commit in table.commits:
        if commit.landed is not None:
            check(commit.name in got, f"{commit} was told to be in snapshot {commit.landed}; its file isn't there")
        elif commit.settled:
            check(commit.name not in got, f"{commit} was told not to be committed; its file is there")
        elif not commit.unknown:
            check(commit.name not in got, f"{commit} was refused ({commit.refused}); its file is there")
    return set(got)


def left_to_commit(table):
    """{user: (the identifiers of a job, those behind its last one that landed)}: what a job commits after a restart."""
    sent, landed = collections.defaultdict(set), collections.defaultdict(int)
    for c in table.commits:
        if c.identifier != BATCH:
            sent[c.user].add(c.identifier)
            if c.name in table.there:
                landed[c.user] = max(landed[c.user], c.identifier)
    return {user: (sorted(ids), sorted(i for i in ids if i > landed[user])) for user, ids in sent.items()}


def restarted_jobs():
    stub, _ = connect()
    for table in TABLES:
        for user, (ids, left) in left_to_commit(table).items():
            got = stub.FilterCommitted(t.FilterCommittedRequest(table=table.ref, commit_user=user, commit_identifiers=ids))
            equal(sorted(got.commit_identifiers), left, f"{table.name}: what {user} has to commit again")


def restarted_jobs_of_others():
    """Java's library walks snapshots back for the job's own: where jobs don't share them, it finds the same."""
    java = peers.Java(lab, tarn.warehouse)
    users = 0
    for table in TABLES:
        for user, (ids, left) in left_to_commit(table).items() if table.name != "all" else ():
            out = lab.path("filtered")
            java.ask("filter", "h." + table.name, out, user, *ids)
            with open(out, encoding="utf-8") as f:
                equal(sorted(map(int, f.read().split())), left, f"{table.name}: what Java's {user} has to commit again")
            users += 1
    check(users > 0, "no job was there")


def others_agree():
    for reader in (peers.Java(lab, tarn.warehouse), peers.Python(lab, tarn.warehouse)):
        for table in TABLES:
            same_rows(reader.rows("h." + table.name, types=TYPES), table.rows, f"{type(reader).__name__}: {table.name}")


def main():
    print(f"seed {SEED}, {ROUNDS} rounds")
    sources = []
    with lab.case("files to commit"):
        tarn.start()
        sources = make_sources()
        for table in TABLES:
            table.create()
            table.watcher = Watcher(table)
            table.watcher.start()
        tarn.stop()
        tarn.start(workers=False, **{"worker.count": 0})
    used = list(sources)

    def round_and_hold(n):
        table = TABLES[n % len(TABLES)]
        lost = one_round(table, used)
        settle(table, lost)
        for other in TABLES:
            hold(other)
            other.watcher.hold()

    if not lab.rounds(ROUNDS, SEED, tarn, round_and_hold):
        return lab.done()
    with lab.case("row counts"):
        for table in TABLES:
            table.there = hold(table)
            table.count = sum(c.source.message.row_count for c in table.commits if c.name in table.there)
    with lab.case("a job that begins again is told what to commit"):
        restarted_jobs()
    with lab.case("each row of the files that landed is there, once"):
        for table in TABLES:
            table.watcher.stop.set()
        tarn.stop()
        tarn.start()
        for table in TABLES:
            table.rows = tarn.scan("h." + table.name, types=TYPES)
            equal(sum(table.rows.values()), table.count, f"{table.name}: rows")
            check(all(v == 1 for v in table.rows.values()), f"{table.name}: a row is there twice")
        tarn.stop()
    if peers.available():
        with lab.case("java and pypaimon read the same rows"):
            others_agree()
        with lab.case("java finds what its jobs have to commit again"):
            restarted_jobs_of_others()
    commits = [c for table in TABLES for c in table.commits]
    print(f"{len(commits)} commits, {sum(c.landed is not None for c in commits)} landed, "
          f"{sum(c.unknown > 0 for c in commits)} without an answer once, {tarn.starts} starts; "
          f"{sum(len(table.watcher.told) for table in TABLES)} snapshots told over {sum(table.watcher.streams for table in TABLES)} streams")
    return lab.done()


lab.exit(main)
