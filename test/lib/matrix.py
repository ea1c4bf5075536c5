"""Cases that say which engine of which version did what, for the table in docs/compatibility.md. Not a test of its own.

  CASES = [case("Flink 2.0.2, Paimon 2.0.0", "streaming read", function, argument..., short=True), ...]
  if __name__ == "__main__": matrix.main(__file__, CASES, begin)     begin() -> the Lab, with what the cases need started

SCRIPT --list says the cases, a JSON line each, and runs nothing: scripts/lint-docs holds the table to them. SCRIPT [PART OF A NAME]... runs some.
Those that aren't short run with TARN_EFFORT above 1. TARN_RECORD=1 writes what came of each into the table.
"""
import collections
import fcntl
import json
import os
import re
import sys

from lab import ROOT

DOCUMENT = os.path.join(ROOT, "docs/compatibility.md")
TABLE = re.compile(r"(<!-- engines: .*? -->\n\|.*?\|\n\|[-|]*\|\n)(.*?)(<!-- end of engines -->)", re.S)
NOT_RUN = "not run as it is now"
EFFORT = int(os.environ.get("TARN_EFFORT", 1))
Case = collections.namedtuple("Case", "engine what function arguments short")


def case(engine, what, function, *arguments, short=False):
    return Case(engine, what, function, arguments, short)


def rows_of(text):
    """{(engine, what, script): result} of the table's lines."""
    found = re.findall(r"^\| ([^|]*) \| ([^|]*) \| `test/interop/([^|]*)` \| ([^|]*) \|$", text, re.M)
    return {row[:3]: row[3] for row in found}


def record(script, cases, one, result):
    with open(os.path.join(ROOT, "build/matrix.lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(DOCUMENT, encoding="utf-8") as f:
            text = f.read()
        before = rows_of(TABLE.search(text).group(2))
        rows = {key: r for key, r in before.items() if key[2] != script}
        rows.update({(c.engine, c.what, script): before.get((c.engine, c.what, script), NOT_RUN) for c in cases})
        rows[one.engine, one.what, script] = result
        lines = "".join(f"| {e} | {w} | `test/interop/{s}` | {r} |\n" for (e, w, s), r in sorted(rows.items()))
        with open(DOCUMENT, "w", encoding="utf-8") as f:
            f.write(TABLE.sub(lambda m: m.group(1) + lines + m.group(3), text))


def run(lab, c):
    """-> what came of it, or None where the command line names others."""
    before = lab.passed, lab.failed
    lab.run(f"{c.engine}: {c.what}", c.function, *c.arguments)
    if (lab.passed, lab.failed) == before:
        return None
    return "passed" if lab.failed == before[1] else "failed"


def main(path, cases, begin):
    script = os.path.basename(path)
    if sys.argv[1:] == ["--list"]:
        for c in cases:
            print(json.dumps({"engine": c.engine, "what": c.what, "script": script}))
        return 0
    some = [c for c in cases if c.short or EFFORT > 1]
    if not some:
        print("0 passed, 0 failed, 0 skipped")
        return 0
    lab = begin()
    for c in some:
        result = run(lab, c)
        if result and os.environ.get("TARN_RECORD"):
            record(script, cases, c, result)
    for d in lab.started:
        d.stop()
    return lab.done()
