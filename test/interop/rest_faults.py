#!/usr/bin/env python3
"""needs: shared
Promise: whatever becomes of the answers to their commits (lost, late, replaced by 500, 503 or 429, before or after tarnd carried them
out), Paimon's Java library and pypaimon end with each row exactly once. rest_faults.py [PART OF A CASE'S NAME]... runs some.

A proxy stands between the clients and tarnd, and strikes the commits that it is told to.
"""
import collections
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from lab import Lab, check, equal  # noqa: E402
from peers import Java, Python  # noqa: E402
from strike import FAULTS, Proxy, serve  # noqa: E402

SCHEMA = {"fields": [{"id": 0, "name": "id", "type": "BIGINT"}, {"id": 1, "name": "v", "type": "STRING"}],
          "partitionKeys": [], "primaryKeys": [], "options": {"bucket": "-1"}, "comment": None}

lab = Lab("rest-faults")
tarnd = lab.daemon("d")
tarnd.start()
uri, close = serve(tarnd.http)
options = ["metastore=rest", f"uri={uri}", "warehouse=tarn", "token.provider=bear", "token=x"]
PEERS = {"java": Java(lab, tarnd.warehouse, *options), "python": Python(lab, tarnd.warehouse, *options)}


def struck(word, fault, times):
    peer, name = PEERS[word], f"{word}.{fault.replace(' ', '_')}_{times}"
    peer.ask("create", name, lab.write("s.json", json.dumps(SCHEMA)))
    want, before = set(), Proxy.struck
    for turn in range(3):
        numbers = range(turn * 10, turn * 10 + 5)
        want.update(numbers)
        if turn == 1:
            Proxy.faults.extend([fault] * times)
        path = lab.write("r.jsonl", "".join(json.dumps({"id": n, "v": "x"}) + "\n" for n in numbers))
        try:
            peer.ask("write", name, path)
        except Exception as e:  # a client may give up; then its rows are there once, or not at all, and it may write them again
            check(turn == 1 and fault in ("503 before", "429 before", "500 before", "lost before"), f"{fault}: {e}")
            equal(sum(tarnd.scan(name).values()), 5, "rows after a commit that its writer gave up")
            Proxy.faults.clear()
            peer.ask("write", name, path)
    check(Proxy.struck > before, "the proxy struck")
    got = collections.Counter(row[0] for row in tarnd.scan(name).elements())
    equal(got, collections.Counter(want), "ids, each once")
    equal(peer.rows(name), tarnd.scan(name), f"rows that {word} reads")


for word in PEERS:
    for fault in FAULTS:
        for times in (1, 2):
            lab.run(f"{word}: {fault}, {times} in a row", struck, word, fault, times)
close()
tarnd.stop()
sys.exit(lab.done())
