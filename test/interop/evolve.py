#!/usr/bin/env python3
"""needs: shared
Promise: what Paimon's Java library makes of a table's schema and a list of changes Tarn makes of them, and what it refuses Tarn
refuses, but for the few cases that say otherwise; and both read the same in a table that both alter. evolve.py [PART OF A CASE'S NAME]... runs some; evolve.py --record writes what
Java answered into test/golden/evolve, for the unit tests.
"""
import json
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import lab as house  # noqa: E402
from lab import Lab, check, equal, rows_of, same_rows, types_of  # noqa: E402
from peers import Java  # noqa: E402
from schema_cases import BASES, CASES, TYPES, array, f as field, mapped, row, schema  # noqa: E402

GOLDEN = os.path.join(house.ROOT, "test/golden")
SNAPSHOT = os.path.join(GOLDEN, "table/pk_all/snapshot/snapshot-1")

lab = Lab("evolve")
warehouse = lab.path("wh")


def build():
    """test/interop/evolve.c over room format."""
    rooms = [os.path.join(house.ROOT, "build/rooms", n) for n in ("format.a", "base.a")]
    subprocess.run(["make", "-C", house.ROOT, "--no-print-directory", "-s", "build/rooms/format.a", "build/rooms/base.a"], check=True)
    out = lab.path("evolve")
    subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-D_GNU_SOURCE", "-I" + os.path.join(house.ROOT, "server"),
                    "-I" + os.path.join(house.ROOT, "test/lib"), "-pthread", "-o", out,
                    os.path.join(house.ROOT, "test/interop/evolve.c"), os.path.join(house.ROOT, "test/lib/schema_changes.c"), *rooms,
                    "-lssl", "-lcrypto", "-lzstd", "-lz", "-lsnappy", "-ljansson", "-linih", "-lxxhash", "-lm"], check=True)
    return out


def by_tarn(program, asked):
    """[(schema, changes, has a snapshot)] -> [next schema, or what it was refused with]"""
    lines = "".join(json.dumps({"schema": s, "changes": c, "snapshot": n}) + "\n" for s, c, n in asked)
    said = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    equal(len(said), len(asked), "answers of Tarn")
    return [json.loads(line[3:]) if line.startswith("ok ") else line for line in said]


def by_java(asked):
    """The same through Java's catalog, each on a table of its own."""
    shutil.rmtree(warehouse, ignore_errors=True)
    java = Java(lab, warehouse)
    lines = []
    for i, (schema, changes, snapshot) in enumerate(asked):
        folder = os.path.join(warehouse, "e.db", f"t{i}")
        os.makedirs(os.path.join(folder, "schema"))
        for n in range(schema["id"] + 1):
            with open(os.path.join(folder, f"schema/schema-{n}"), "w", encoding="utf-8") as f:
                json.dump({**schema, "id": n}, f)
        if snapshot:
            os.makedirs(os.path.join(folder, "snapshot"))
            shutil.copy(SNAPSHOT, os.path.join(folder, "snapshot"))
        lines.append(json.dumps({"table": f"t{i}", "changes": changes}) + "\n")
    out = lab.path("java.out")
    java.ask("alter", "e.-", lab.write("changes.jsonl", "".join(lines)), out)
    java.close()
    answers = []
    with open(out, encoding="utf-8") as f:
        for i, line in enumerate(f.read().split("\n")[:len(asked)]):
            if line:
                answers.append(line)
                continue
            with open(os.path.join(warehouse, f"e.db/t{i}/schema/schema-{asked[i][0]['id'] + 1}"), encoding="utf-8") as g:
                answers.append(json.load(g))
    equal(len(answers), len(asked), "answers of Java")
    return answers


def plain(answer):
    """A schema as text: members as they stand, options sorted (Java keeps them in no order), without its time."""
    return json.dumps({**answer, "options": dict(sorted(answer["options"].items())), "timeMillis": 0}, ensure_ascii=False)


def compare(name, java, tarn, differs):
    refused = isinstance(java, str), isinstance(tarn, str)
    if differs:
        check(refused[0] != refused[1] or (not refused[0] and plain(java) != plain(tarn)),
              f"{name}: Java and Tarn agree, though \"{differs}\": {java} / {tarn}")
        return
    check(refused[0] == refused[1], f"{name}: Java: {java}; Tarn: {tarn}")
    if not refused[0]:
        equal(plain(tarn), plain(java), name)


def cast_questions():
    """Every type to every type, with and without explicit casts."""
    asked, names = [], []
    for explicit in (True, False):
        options = {} if explicit else {"disable-explicit-type-casting": "true"}
        for source in TYPES:
            for target in TYPES:
                schema = {"version": 3, "id": 0, "fields": [{"id": 0, "name": "a", "type": "INT"}, {"id": 1, "name": "c", "type": source}],
                          "highestFieldId": 20, "partitionKeys": [], "primaryKeys": [], "options": {"bucket": "-1", **options}, "timeMillis": 0}
                asked.append((schema, [{"action": "updateColumnType", "fieldNames": ["c"], "newDataType": target, "keepNullability": False}], False))
                names.append(f"{json.dumps(source)} to {json.dumps(target)}, explicit {explicit}")
    return asked, names


def record(java, casts):
    """For test/unit/format. Of a table with rows only what differs from one without."""
    folder = os.path.join(GOLDEN, "evolve")
    os.makedirs(folder, exist_ok=True)
    before = None
    with open(os.path.join(folder, "cases.jsonl"), "w", encoding="utf-8") as f:
        f.write(json.dumps(BASES, ensure_ascii=False) + "\n")
        for (name, base, snapshot, changes, differs), answer in zip(CASES, java):
            want = None if isinstance(answer, str) else json.loads(plain(answer))
            now = (base, changes, want)
            if not differs and not (snapshot and now == before):
                f.write(json.dumps({"name": name, "base": base, "snapshot": snapshot, "changes": changes, "want": want},
                                   ensure_ascii=False) + "\n")
            before = now
    rows = ["".join("-" if isinstance(a, str) else "x" for a in casts[i:i + len(TYPES)]) for i in range(0, len(casts), len(TYPES))]
    with open(os.path.join(folder, "casts.json"), "w", encoding="utf-8") as f:
        json.dump({"types": TYPES, "explicit": rows[:len(TYPES)], "implicit": rows[len(TYPES):]}, f, indent=1)
        f.write("\n")


def created_alike(java, tarn):
    """A new table whose comments say what its columns are, with rows in rows."""
    made = schema([field(0, "k", "INT NOT NULL", "a key"), field(1, "b", "BYTES", "__BLOB_FIELD; a photo"), field(2, "v", array("FLOAT"), "__VECTOR_FIELD;8"),
                   field(3, "r", row(field(4, "x", "INT"), field(6, "q", row(field(5, "y", "INT")))))], 6, bucket="-1")
    made["options"].update({"row-tracking.enabled": "true", "data-evolution.enabled": "true"})
    path = lab.write("made.json", json.dumps(made))
    java.ask("create", "m.by_java", path)
    tarn.tarn("table", "create", "m.by_tarn", "--schema-file", path)
    texts = []
    for name in ("by_java", "by_tarn"):
        with open(os.path.join(tarn.folder("m." + name), "schema/schema-0"), encoding="utf-8") as f:
            texts.append(plain(json.load(f)))
    equal(texts[1], texts[0], "the first schema")


def in_turns():
    """A table with rows that Java and Tarn alter and write alternately reads the same by both after every step."""
    table = "m.turns"
    folder = lab.path("turns")
    java, tarn = Java(lab, folder), lab.daemon("turns-d", folder)
    start = {"fields": [field(0, "k", "INT NOT NULL"), field(1, "v", "INT"), field(2, "r", row(field(3, "x", "INT"), field(4, "y", "STRING"))),
                        field(5, "l", array(row(field(6, "a", "INT")))), field(7, "m", mapped("STRING NOT NULL", row(field(8, "p", "INT")))),
                        field(9, "s", "STRING")],
             "partitionKeys": [], "primaryKeys": ["k"], "options": {"bucket": "1"}}
    java.ask("create", table, lab.write("turns.json", json.dumps(start)))
    tarn.start()
    created_alike(java, tarn)
    count = 0

    def write(by, *rows):
        text = "".join(json.dumps(r) + "\n" for r in rows)
        if by is java:
            java.ask("write", table, lab.write("turns.jsonl", text))
        else:
            tarn.tarn("load", table, lab.write("turns.jsonl", text))

    def alter(by, *changes):
        if by is tarn:
            tarn.tarn("table", "alter", table, *changes)
        else:
            out = lab.path("turns.out")
            java.ask("alter", "m.-", lab.write("turns.jsonl", json.dumps({"table": "turns", "changes": changes}) + "\n"), out)
            with open(out, encoding="utf-8") as f:
                equal(f.read().strip(), "", "what Java refused")

    def same(want):
        nonlocal count
        count += 1
        types = types_of(tarn.folder(table))
        want = rows_of("".join(json.dumps(r) + "\n" for r in want), types)
        same_rows(java.rows(table, types=types), want, f"java, step {count}")
        same_rows(tarn.scan(table, types=types), want, f"tarn, step {count}")

    one = {"k": 1, "v": 10, "r": {"x": 1, "y": "why"}, "l": [{"a": 1}, None], "m": {"e": {"p": 5}}, "s": "text"}
    write(java, one)
    alter(tarn, "--add-column", "r.z STRING", "--after", "x", "--add-column", "l.element.b INT", "--first", "--rename-column", "v=value",
          "--move-column", "s", "--first", "--add-column", "m.value.q STRING")
    seen = {"s": "text", "k": 1, "value": 10, "r": {"x": 1, "z": None, "y": "why"}, "l": [{"b": None, "a": 1}, None], "m": {"e": {"p": 5, "q": None}}}
    same([seen])
    two = {**seen, "k": 2, "r": {"x": 2, "z": "z", "y": None}, "l": [{"b": 1, "a": None}], "m": {"e": {"p": 1, "q": "q"}}}
    write(java, two)
    same([seen, two])
    alter(java, {"action": "renameColumn", "fieldNames": ["r", "z"], "newName": "y2"}, {"action": "dropColumn", "fieldNames": ["r", "y"]},
          {"action": "addColumn", "fieldNames": ["r", "y"], "dataType": "INT"}, {"action": "dropColumn", "fieldNames": ["s"]})
    for r, y2 in ((seen, None), (two, "z")):
        del r["s"]
        r["r"] = {"x": r["k"], "y2": y2, "y": None}
    same([seen, two])
    three = {**two, "k": 3, "r": {"x": 3, "y2": "a", "y": 7}}
    write(tarn, three)
    same([seen, two, three])
    alter(tarn, "--rename-column", "k=key", "--drop-column", "m", "--rename-column", "l.element.a=c", "--drop-column", "l.element.b")
    rows = []
    for r in (seen, two, three):
        rows.append({"key": r["k"], "value": r["value"], "r": r["r"], "l": [e and {"c": e["a"]} for e in r["l"]]})
    same(rows)
    tarn.tarn("compact", table, "--full", "--wait")
    same(rows)
    rows[0]["value"] = 11
    write(java, rows[0])
    same(rows)
    java.close()
    tarn.stop()


def main():
    program = build()
    recording = "--record" in sys.argv
    lab.only = [w for w in sys.argv[1:] if w != "--record"]
    asked = [(BASES[base], changes, snapshot) for _, base, snapshot, changes, _ in CASES]
    questions, names = cast_questions()
    java = by_java(asked + questions)
    tarn = by_tarn(program, asked + questions)
    if recording:
        record(java[:len(asked)], java[len(asked):])
    for (name, _, _, _, differs), j, t in zip(CASES, java, tarn):
        lab.run(name, compare, name, j, t, differs)

    def casts():
        wrong = [f"{n}: Java: {j}; Tarn: {t}" for n, j, t in zip(names, java[len(asked):], tarn[len(asked):]) if isinstance(j, str) != isinstance(t, str)]
        check(not wrong, f"{len(wrong)} of {len(names)}: " + "; ".join(wrong[:10]))
    lab.run("every cast that Java allows, and no other", casts)
    lab.run("java and tarn alter in turns", in_turns)
    sys.exit(lab.done())


if __name__ == "__main__":
    main()
