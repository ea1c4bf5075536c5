"""Tables of many shapes for the interop scripts: columns, keys, options, and commits of rows whose result is known.
Rows are dicts of JSON values in the house's spelling, decimals as strings. Not a test of its own."""
import base64
import collections
import json
import re

from lab import parse_line, row_of


def b64(raw):
    return base64.b64encode(raw).decode()


# Edges of each type; a column takes them in turn.
TEXTS = ["", "seven77", "\u00e4\u20ac\U0001f600 multi-byte", "a text that is longer than sixteen", 'quote " back \\ newline \n tab \t, comma',
         "eight888", "null", "NaN", " lead and trail ", "\u0001\u007f"]
DAYS = ["1970-01-01", "1969-12-31", "2024-02-29", "0001-01-01", "9999-12-31", "1900-03-01", "1582-10-14"]
CLOCKS = ["00:00:00.000000000", "23:59:59.999999999", "12:34:56.789123456", "01:02:03.000000001", "00:00:00.100000000"]
NEAR_DAYS = ["1970-01-01", "1969-12-31", "2024-02-29", "1677-09-22", "2262-04-10", "1900-03-01"]  # what INT96 in Java reaches


def clock(i, digits):
    c = CLOCKS[i % len(CLOCKS)][: 9 + digits] if digits else CLOCKS[i % len(CLOCKS)][:8]
    return c


def edge(sql, i):
    """The i-th value of a type written as SQL; None where i says so is the caller's."""
    m = re.match(r"([A-Z_]+)(?:\((\d+)(?:, *(\d+))?\))?", sql)
    root, p, s = m.group(1), int(m.group(2) or 0), int(m.group(3) or 0)
    if root == "BOOLEAN":
        return i % 2 == 0
    if root in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        top = 1 << ({"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}[root] - 1)
        return [0, -1, top - 1, -top, 42, 1][i % 6]
    if root == "FLOAT":
        return [0.0, "NaN", 3.4028234663852886e38, "-Infinity", -0.0, 1.401298464324817e-45, "Infinity", 0.10000000149011612][i % 8]
    if root == "DOUBLE":
        return [0.0, "NaN", 1.7976931348623157e308, "-Infinity", -0.0, 5e-324, "Infinity", 0.1][i % 8]
    if root == "DECIMAL":
        whole, part = "9" * (p - s), "9" * s
        dot = "." if s else ""
        low = "0" + dot + "0" * max(s - 1, 0) + ("5" if s else "")
        return ["0", "-" + (whole or "0") + dot + part, (whole or "0") + dot + part, low, "-" + low, "1"][i % 6]
    if root == "STRING":
        return TEXTS[i % len(TEXTS)]
    if root == "VARCHAR":
        return TEXTS[i % len(TEXTS)][:p]
    if root == "CHAR":
        return ["abcde", "\u00e4\u00f6\u00fc\u00df\u20ac", "12345"][i % 3]
    if root == "BINARY":
        return b64(bytes([0, 255, i % 256, 127] * p)[:p])
    if root in ("VARBINARY", "BYTES"):
        return b64([b"", b"\x00\xff", b"seven77", bytes(range(16))][i % 4])
    if root == "DATE":
        return DAYS[i % len(DAYS)]
    if root == "TIME":
        return clock(i, p)[: 8 + (p + 1 if p else 0)]
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        days = DAYS if p <= 6 else NEAR_DAYS
        return days[i % len(days)] + " " + clock(i * 3 + i // 5, p)
    if root == "ARRAY":
        inner = sql[6:-1]
        return [[], [edge(inner, i), None, edge(inner, i + 1)], [None], [edge(inner, i)] * 3][i % 4]
    if root == "MAP":
        k, v = split_two(sql[4:-1])
        pairs = [] if i % 4 == 3 else [(edge(k, j), edge(v, i + j) if j % 3 else None) for j in range(i % 4 + 1)]
        pairs = list({json.dumps(a): (a, b) for a, b in pairs}.values())
        return {a: b for a, b in pairs} if k.startswith(("STRING", "VARCHAR", "CHAR")) else [[a, b] for a, b in pairs]
    if root == "ROW":
        return {n: None if (i + j) % 5 == 4 else edge(t, i + j) for j, (n, t) in enumerate(members(sql[4:-1]))}
    raise ValueError(sql)


def split_top(text):
    out, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            out.append(text[start:at].strip())
            start = at + 1
    return out + [text[start:].strip()]


def split_two(text):
    a, b = split_top(text)
    return a, b


def members(text):
    return [tuple(m.split(" ", 1)) for m in split_top(text)]


class Ids:
    def __init__(self):
        self.next = -1

    def __call__(self):
        self.next += 1
        return self.next


def as_json(sql, ids, not_null=False):
    """A type as Paimon's schema JSON has it."""
    null = " NOT NULL" if not_null else ""
    if sql.startswith("ARRAY<"):
        return {"type": "ARRAY" + null, "element": as_json(sql[6:-1], ids)}
    if sql.startswith("MAP<"):
        k, v = split_two(sql[4:-1])
        return {"type": "MAP" + null, "key": as_json(k, ids), "value": as_json(v, ids)}
    if sql.startswith("ROW<"):
        return {"type": "ROW" + null, "fields": [{"id": ids(), "name": n, "type": as_json(t, ids)} for n, t in members(sql[4:-1])]}
    m = re.fullmatch(r"TIMESTAMP_LTZ\((\d)\)", sql)
    return (f"TIMESTAMP({m.group(1)}) WITH LOCAL TIME ZONE" if m else sql) + null


class Shape:
    """columns: {name: SQL type}; commits: lists of (kind, row). What a reader must see after each: states()."""

    def __init__(self, name, columns, commits, pk=(), part=(), **options):
        self.name, self.columns, self.commits, self.pk, self.part = name, columns, commits, list(pk), list(part)
        self.options = {k.replace("__", ".").replace("_", "-"): str(v) for k, v in options.items()}
        keys = set(self.pk)
        ids = Ids()
        top = [(ids(), n, t) for n, t in columns.items()]
        self.schema = {"fields": [{"id": i, "name": n, "type": as_json(t, ids, n in keys)} for i, n, t in top],
                       "partitionKeys": self.part, "primaryKeys": self.pk, "options": self.options, "comment": ""}
        self.types = [(f["name"], f["type"]) for f in self.schema["fields"]]

    def sql(self):
        return ", ".join(f"`{n}` {t}" + (" NOT NULL" if n in self.pk else "") for n, t in self.columns.items())

    def create_words(self):
        words = ["--columns", self.sql()]
        if self.pk:
            words += ["--primary-key", ",".join(self.pk)]
        if self.part:
            words += ["--partition-by", ",".join(self.part)]
        for k, v in self.options.items():
            words += ["--option", f"{k}={v}"]
        return words

    def row(self, r):
        return row_of(parse_line(json.dumps({n: r.get(n) for n in self.columns})), self.types)

    def order(self, r):
        """By sequence fields, nulls first."""
        sign = -1 if self.options.get("sequence.field.sort-order") == "descending" else 1
        fields = [f for f in self.options.get("sequence.field", "").split(",") if f]
        return tuple((r.get(f) is not None, sign * (r.get(f) or 0)) for f in fields)

    def states(self, compacted=None):
        """A Counter of rows after each commit. compacted: after so many a full compaction forgot what was deleted."""
        out, table, bag = [], {}, collections.Counter()
        kind_column = self.options.get("rowkind.field")
        for n, commit in enumerate(self.commits):
            if n == compacted:
                table = {k: v for k, v in table.items() if v[0] in ("+I", "+U")}
            for kind, r in commit:
                kind = r[kind_column] if kind_column else kind
                if not self.pk:
                    bag[self.row(r)] += 1
                    continue
                if self.options.get("ignore-delete") == "true" and kind in ("-D", "-U"):
                    continue
                at = dict(self.types)
                key = tuple(repr(row_of(parse_line(json.dumps({k: r[k]})), [(k, at[k])])) for k in self.pk)
                if key not in table or self.order(r) >= self.order(table[key][1]):
                    table[key] = (kind, r)
            out.append(collections.Counter(bag) if not self.pk else
                       collections.Counter(self.row(r) for kind, r in table.values() if kind in ("+I", "+U")))
        return out

    def lines(self, commit, kinds="rowkind"):
        """A commit as JSON lines; kinds: the member that carries row kinds other than +I."""
        out = []
        for kind, r in commit:
            r = {n: r.get(n) for n in self.columns}
            if kinds and any(k != "+I" for k, _ in commit):
                r[kinds] = kind
            out.append(json.dumps(r) + "\n")
        return "".join(out)

    def csv(self, commit, kinds="rowkind"):
        """A commit as CSV: null is nothing, "" the empty text, nested values JSON."""
        mixed = any(k != "+I" for k, _ in commit)
        out = [",".join([*self.columns, *([kinds] if mixed else [])])]
        for kind, r in commit:
            cells = [cell(r.get(n)) for n in self.columns] + ([kind] if mixed else [])
            out.append(",".join(cells))
        return "\n".join(out) + "\n"


def cell(v):
    if v is None:
        return ""
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (dict, list)):
        v = json.dumps(v)
    elif not isinstance(v, str):
        return repr(v)
    return '"' + v.replace('"', '""') + '"'


ALL = {
    "c_bool": "BOOLEAN", "c_tiny": "TINYINT", "c_small": "SMALLINT", "c_int": "INT", "c_big": "BIGINT", "c_float": "FLOAT",
    "c_double": "DOUBLE", "c_dec9": "DECIMAL(9, 2)", "c_dec18": "DECIMAL(18, 4)", "c_dec19": "DECIMAL(19, 0)",
    "c_dec38": "DECIMAL(38, 10)", "c_char": "CHAR(5)", "c_varchar": "VARCHAR(30)", "c_string": "STRING", "c_binary": "BINARY(4)",
    "c_varbinary": "VARBINARY(20)", "c_bytes": "BYTES", "c_date": "DATE", "c_time0": "TIME(0)", "c_time3": "TIME(3)",
    **{f"c_ts{p}": f"TIMESTAMP({p})" for p in range(10)},
    **{f"c_ltz{p}": f"TIMESTAMP_LTZ({p})" for p in (0, 1, 3, 5, 6, 8, 9)},
}
NESTED = {
    "n_array": "ARRAY<INT>", "n_texts": "ARRAY<STRING>", "n_map": "MAP<STRING, BIGINT>", "n_map2": "MAP<INT, DOUBLE>",
    "n_row": "ROW<x INT, y ARRAY<STRING>>", "n_rows": "ARRAY<ROW<a DECIMAL(20, 2), b TIMESTAMP(6)>>",
    "n_deep": "MAP<INT, ARRAY<ROW<t TIMESTAMP(3), m MAP<STRING, DECIMAL(9, 2)>>>>", "n_lists": "ARRAY<ARRAY<DATE>>",
    "n_rr": "ROW<p ROW<q ROW<r STRING, s BYTES>>, f FLOAT>",
}


def full_row(columns, i, nulls=lambda i, j: (i * 7 + j) % 6 == 5, **fixed):
    r = {n: None if nulls(i, j) else edge(t, i + j // 3) for j, (n, t) in enumerate(columns.items())}
    r.update(fixed)
    return r


def add(rows):
    return [("+I", r) for r in rows]


def shapes():
    out = []
    cols = {"id": "BIGINT", **ALL, **NESTED}
    never = lambda i, j: False  # noqa: E731
    out.append(Shape("ap_all", cols, [
        add([full_row(cols, i, never, id=i) for i in range(10)]),
        add([full_row(cols, i, id=i) for i in range(10, 30)] + [{"id": 30}, {"id": None}])]))
    cols = {"k": "STRING", "n": "BIGINT", "v": "INT"}
    out.append(Shape("ap_bucket", cols, [
        add([{"k": TEXTS[i % 9] if i % 7 else None, "n": i - 20, "v": i} for i in range(40)]),
        add([{"k": f"key-{i}", "n": -(1 << 63) + i, "v": None} for i in range(40)])], bucket=4, bucket_key="k,n"))
    cols = {"id": "BIGINT", "dt": "DATE", "s": "STRING", "amount": "DECIMAL(38, 10)"}
    texts = ["a/b", "x=y", "50%", "stra\u00dfe", "", None, "2026-01-01 00:00", " lead"]
    out.append(Shape("ap_part", cols, [
        add([{"id": i, "dt": None if i == 3 else DAYS[i % 7], "s": s, "amount": "0.05"} for i, s in enumerate(texts)]),
        add([{"id": 100 + i, "dt": DAYS[0], "s": s, "amount": None} for i, s in enumerate(texts)])], part=["dt", "s"]))
    cols = {**ALL, "id": "BIGINT", **NESTED}
    out.append(Shape("pk_all", cols, [
        add([full_row(cols, i, never, id=i) for i in range(10)]),
        [("+I", full_row(cols, 3, id=2)), ("-D", full_row(cols, 1, never, id=1)), ("+I", full_row(cols, 11, id=11)),
         ("-D", full_row(cols, 4, never, id=77))],
        add([full_row(cols, 5, id=1), {"id": -5}])], pk=["id"], bucket=1, write_only="true"))
    cols = {"v": "STRING", "dt": "STRING", "id": "INT", "d": "DOUBLE"}
    commits = [add([{"id": i, "dt": f"2024-05-1{i % 3}", "v": f"v{c}", "d": i / (c + 1)} for i in range(c * 3, 12 + c)]) for c in range(4)]
    commits[2] += [("-D", {"id": i, "dt": f"2024-05-1{i % 3}", "v": None, "d": None}) for i in (0, 7)]
    out.append(Shape("pk_part1", cols, commits, pk=["id", "dt"], part=["dt"], bucket=1, num_sorted_run__compaction_trigger=3))
    cols = {"v": "STRING", "h": "INT", "dt": "DATE", "id": "BIGINT", "name": "VARCHAR(40)"}
    commits = [add([{"id": i * (c + 1), "dt": DAYS[i % 5], "h": i % 2 - 1, "v": f"v{c}",
                     "name": "a name longer than seven bytes" if i % 4 == 0 else f"n{i}"} for i in range(30)]) for c in range(3)]
    commits.append([("-D", {"id": i, "dt": DAYS[i % 5], "h": i % 2 - 1, "v": None,
                            "name": "a name longer than seven bytes" if i % 4 == 0 else f"n{i}"}) for i in range(0, 30, 3)])
    out.append(Shape("pk_part4", cols, commits, pk=["id", "dt", "h", "name"], part=["dt", "h"], bucket=4))
    cols = {"a": "STRING", "b": "DECIMAL(20, 2)", "c": "TIMESTAMP(6)", "d": "DATE", "e": "VARBINARY(20)", "f": "SMALLINT",
            "g": "DOUBLE", "h": "BOOLEAN", "i": "TIMESTAMP_LTZ(3)", "j": "DECIMAL(9, 2)", "v": "INT"}
    keys = [{**{n: edge(t, i + j) for j, (n, t) in enumerate(cols.items())}, "v": i, "f": i % 40} for i in range(60)]
    out.append(Shape("pk_keys", cols, [add(keys), add([{**k, "v": k["v"] + 1000} for k in keys[::3]]),
                                       [("-D", {**k}) for k in keys[::7]]],
                     pk=["f", "c", "a", "b", "d", "e", "g", "h", "i", "j"], bucket=4, write_only="true"))
    cols = {"k": "STRING", "v": "STRING", "s1": "INT", "s2": "BIGINT"}
    a = lambda k, v, s1, s2: ("+I", {"k": k, "v": v, "s1": s1, "s2": s2})  # noqa: E731
    out.append(Shape("pk_seq", cols, [
        [a("a", "nine", 9, 0), a("b", "one", 1, 0), a("c", "some", 5, 5), a("d", "low", None, 9)],
        [a("a", "three", 3, 0), a("b", "two", 2, 0), a("c", "same", 5, 5), a("c", "less", 5, None), a("d", "null", None, 3)],
        [("-D", {"k": "a", "v": None, "s1": 8, "s2": 0}), ("-D", {"k": "b", "v": None, "s1": 2, "s2": 1})]],
        pk=["k"], bucket=1, sequence__field="s1,s2"))
    out.append(Shape("pk_seq_desc", {"k": "INT", "v": "STRING", "s": "INT"}, [
        add([{"k": 1, "v": "b", "s": 1}, {"k": 1, "v": "d", "s": 3}, {"k": 1, "v": "e", "s": 2}, {"k": 2, "v": "x", "s": 5}]),
        add([{"k": 2, "v": "y", "s": 6}, {"k": 3, "v": "z", "s": 0}]),
        add([{"k": 2, "v": "w", "s": 4}, {"k": 3, "v": "same", "s": 0}])],
        pk=["k"], bucket=1, sequence__field="s", sequence__field__sort_order="descending", write_only="true"))
    out.append(Shape("pk_ignore", {"k": "INT", "v": "STRING"}, [
        add([{"k": 1, "v": "A"}, {"k": 2, "v": "B"}]), [("-D", {"k": 1, "v": "A"}), ("+I", {"k": 3, "v": "C"})],
        [("-D", {"k": 3, "v": "C"}), ("+I", {"k": 1, "v": "D"})]], pk=["k"], bucket=1, ignore_delete="true", write_only="true"))
    cols = {"k1": "TIMESTAMP(6)", "k2": "DECIMAL(20, 2)", "v": "DOUBLE"}
    rows = [{"k1": f"1969-12-31 23:59:59.12345{i}", "k2": f"{i * 7 - 20}.0{i}", "v": "NaN" if i % 2 else i / 3} for i in range(6)]
    out.append(Shape("pk_thin", cols, [add(rows), add([{**r, "v": -0.0} for r in rows[:4]]), [("-D", rows[5])]],
                     pk=["k2", "k1"], bucket=2, data_file__thin_mode="true", write_only="true"))
    out.append(Shape("pk_rowkind", {"k": "INT", "v": "STRING", "kind": "STRING"}, [
        add([{"k": 1, "v": "A", "kind": "+I"}, {"k": 2, "v": "B", "kind": "+I"}]),
        add([{"k": 1, "v": "A", "kind": "-D"}, {"k": 2, "v": "C", "kind": "+U"}]),
        add([{"k": 1, "v": "again", "kind": "+I"}, {"k": 2, "v": "C", "kind": "-U"}])],
        pk=["k"], bucket=1, rowkind__field="kind", write_only="true"))
    out.append(Shape("ap_empty", {"k": "INT", "v": "ARRAY<INT>"}, []))
    return out
