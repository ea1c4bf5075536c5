#!/usr/bin/env python3
"""needs: shared
Promise: Paimon's Java library and pypaimon find in the tables that the simulated histories leave (history_test.c), in each snapshot
that is retained, the files that the model says, each once.

TARN_HISTORY_ROUNDS: how many histories (3), TARN_SEED: the first one's; it is printed.
"""
import os
import random
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import peers  # noqa: E402
from lab import BIN, Lab, check, equal  # noqa: E402

PROGRAM = os.path.join(BIN, "../test/history/history_test")
SEEDS = int(os.environ.get("TARN_HISTORY_ROUNDS") or 3)
FIRST = int(os.environ.get("TARN_SEED") or random.SystemRandom().randrange(1, 1 << 32))

lab = Lab("history-others")
warehouse = lab.path("wh")
os.makedirs(warehouse)


def play():
    got = subprocess.run([PROGRAM, "history.seeds"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=lab.dir,
                         env={**os.environ, "TARN_FIRST": str(FIRST), "TARN_SEEDS": str(SEEDS), "TARN_HISTORY_TABLES": warehouse})
    equal(got.returncode, 0, got.stdout.decode("utf-8", "replace")[-2000:])
    equal(len(os.listdir(os.path.join(warehouse, "h.db"))), SEEDS, "tables")


def truth(seed):
    """[(snapshot, names)] of what is retained."""
    with open(os.path.join(warehouse, f"t{seed}"), encoding="utf-8") as f:
        return [(int(line.split()[0]), sorted(line.split()[1:])) for line in f]


def ask(reader):
    snapshots = files = 0
    for seed in range(FIRST, FIRST + SEEDS):
        held = truth(seed)
        check(held, f"seed {seed} leaves no snapshot")
        equal(reader.files(f"h.t{seed}"), held[-1][1], f"seed {seed}, the latest")
        for snapshot, names in held:
            equal(reader.files(f"h.t{seed}", f"scan.snapshot-id={snapshot}"), names, f"seed {seed}, snapshot {snapshot}")
            snapshots, files = snapshots + 1, files + len(names)
    print(f"{snapshots} snapshots with {files} files")


print(f"seed {FIRST}, {SEEDS} histories")
with lab.case("histories are played, and leave their tables"):
    play()
for peer in (peers.Java, peers.Python):
    with lab.case(f"{peer.__name__} finds the files that the model says"):
        ask(peer(lab, warehouse))
sys.exit(lab.done())
