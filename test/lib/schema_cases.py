"""Schemas and lists of Paimon's SchemaChange, for test/interop/evolve.py. Not a test of its own.

CASES: (name, key of BASES, has the table a snapshot, changes, None or in what Tarn differs from Java on purpose)."""
import json


def f(i, name, kind, description=None, default=None):
    field = {"id": i, "name": name, "type": kind}
    if description is not None:
        field["description"] = description
    if default is not None:
        field["defaultValue"] = default
    return field


def row(*fields):
    return {"type": "ROW", "fields": list(fields)}


def array(element, null=True):
    return {"type": "ARRAY" if null else "ARRAY NOT NULL", "element": element}


def mapped(key, value):
    return {"type": "MAP", "key": key, "value": value}


def schema(fields, highest, pk=(), part=(), schema_id=0, comment=None, **options):
    out = {"version": 3, "id": schema_id, "fields": fields, "highestFieldId": highest, "partitionKeys": list(part), "primaryKeys": list(pk),
           "options": {k.replace("__", "."): v for k, v in options.items()}}
    if comment is not None:
        out["comment"] = comment
    out["timeMillis"] = 0
    return out


NESTED = [
    f(0, "a", "INT"),
    f(1, "r", row(f(2, "x", "INT"), f(3, "y", "STRING NOT NULL", "why"), f(4, "q", row(f(5, "z", "INT"), f(6, "w", "INT"))))),
    f(7, "l", array("INT")),
    f(8, "ll", array(array("INT NOT NULL"), False)),
    f(9, "m", mapped("STRING NOT NULL", "INT")),
    f(10, "lr", array(row(f(11, "x", "INT"), f(12, "y", "INT")))),
    f(13, "mr", mapped("INT", row(f(14, "x", "FLOAT"), f(15, "l", array(row(f(16, "deep", "INT"), f(17, "b", "INT"))))))),
    f(18, "s", "STRING", "a text", "none"),
]

BASES = {
    "pk": schema([f(0, "k", "BIGINT NOT NULL"), f(1, "dt", "STRING NOT NULL"), f(2, "v", "INT"), f(3, "s", "STRING", "comment of s"),
                  f(4, "d", "DECIMAL(10, 2)"), f(5, "b", "BOOLEAN")], 5, ["dt", "k"], ["dt"], bucket="2", comment="a table"),
    "late": schema([f(0, "k", "INT NOT NULL"), f(4, "v", "INT")], 9, ["k"], schema_id=3, bucket="1"),
    "agg": {**schema([f(0, "k", "BIGINT NOT NULL"), f(1, "g", "INT"), f(2, "v", "BIGINT"), f(3, "w", "STRING"), f(4, "ts", "INT")], 4, ["k"]),
     "options": {"bucket": "2", "bucket-key": "k", "merge-engine": "aggregation", "sequence.field": "ts,g", "fields.v.aggregate-function": "sum",
                 "fields.v.ignore-retract": "true", "fields.w.aggregate-function": "listagg", "fields.w.list-agg-delimiter": ";",
                 "fields.w.distinct": "true"}},
    "partial": {**schema([f(0, "k", "BIGINT NOT NULL"), f(1, "g", "INT"), f(2, "v", "BIGINT"), f(3, "w", "STRING"), f(4, "h", "INT")], 4, ["k"]),
                "options": {"bucket": "2", "merge-engine": "partial-update", "fields.g.sequence-group": "v,w"}},
    "append": {**schema([f(0, "k", "INT"), f(1, "p1", "STRING"), f(2, "p2", "INT"), f(3, "v", "INT")], 3, [], ["p1", "p2"]),
               "options": {"bucket": "-1", "add-column-before-partition": "true"}},
    "plain": {**schema([f(0, "k", "INT"), f(1, "v", "INT")], 1), "options": {}},
    "buckets": {**schema([f(0, "k", "INT"), f(1, "v", "INT"), f(2, "w", "INT")], 2),
                "options": {"bucket": "4", "bucket-key": "v,k", "ignore-delete": "true", "deletion-vectors.enabled": "false"}},
    "strict": {**schema([f(0, "k", "INT"), f(1, "v", "INT"), f(2, "n", "INT NOT NULL")], 2),
               "options": {"disable-explicit-type-casting": "true", "alter-column-null-to-not-null.disabled": "false"}},
    "index": {**schema([f(0, "k", "INT"), f(1, "v", "INT"), f(2, "w", "STRING"), f(3, "t", "BIGINT")], 3),
              "options": {"file-index.bloom-filter.columns": "v,w", "file-index.bloom-filter.v.items": "100", "fields.v.stats-mode": "full"}},
    "kind": {**schema([f(0, "k", "INT NOT NULL"), f(1, "v", "INT"), f(2, "op", "STRING"), f(3, "t", "BIGINT")], 3, ["k"]),
             "options": {"bucket": "1", "rowkind.field": "op", "record-level.expire-time": "1 h", "record-level.time-field": "t"}},
    "maps": {**schema([f(0, "k", "INT"), f(1, "m", mapped("STRING NOT NULL", "INT")), f(2, "n", mapped("STRING NOT NULL", "INT"))], 2),
             "options": {"fields.m.map.storage-layout": "shared-shredding", "fields.m.map.shared-shredding.max-columns": "8"}},
    "nested": schema(NESTED, 18, bucket="-1"),
    "blobs": {**schema([f(0, "k", "INT"), f(1, "b", "BLOB"), f(2, "bs", array("BLOB")), f(3, "v", {"type": "VECTOR", "element": "FLOAT", "length": 4})], 3),
              "options": {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true", "blob-field": "bs, b",
                          "vector-field": "v", "field.v.vector-dim": "4"}},
    "one": schema([f(0, "k", "INT")], 0, bucket="-1"),
}

TYPES = ["CHAR(3)", "CHAR(5) NOT NULL", "VARCHAR(7)", "STRING", "STRING NOT NULL", "BOOLEAN", "BOOLEAN NOT NULL", "BINARY(4)", "VARBINARY(6)", "BYTES",
         "DECIMAL(10, 2)", "DECIMAL(5, 0) NOT NULL", "TINYINT", "SMALLINT", "INT", "INT NOT NULL", "BIGINT", "FLOAT", "DOUBLE", "DATE", "DATE NOT NULL",
         "TIME(0)", "TIME(3)", "TIMESTAMP(3)", "TIMESTAMP(6) NOT NULL", "TIMESTAMP(9)", "TIMESTAMP(3) WITH LOCAL TIME ZONE",
         "TIMESTAMP(6) WITH LOCAL TIME ZONE", "VARIANT", "BLOB", array("INT"), array("BIGINT"), {"type": "MULTISET", "element": "INT"},
         mapped("STRING", "INT"), row(f(5, "x", "INT")), row(f(5, "x", "BIGINT")), {"type": "VECTOR", "element": "FLOAT", "length": 3}]

CASES = []


def case(name, base, *changes, snapshot=False, differs=None):
    CASES.append((name, base, snapshot, list(changes), differs))


def both(name, base, *changes, differs=(None, None)):
    case(name, base, *changes, differs=differs[0])
    case(name + ", with rows", base, *changes, snapshot=True, differs=differs[1])


def put(key, value):
    return {"action": "setOption", "key": key, "value": value}


def reset(key):
    return {"action": "removeOption", "key": key}


def move(name, kind, reference=None):
    return {"fieldName": name, "referenceFieldName": reference, "type": kind}


def add(path, kind, comment=None, where=None):
    return {"action": "addColumn", "fieldNames": path.split("."), "dataType": kind, "comment": comment, "move": where}


def rename(path, name):
    return {"action": "renameColumn", "fieldNames": path.split("."), "newName": name}


def drop(path):
    return {"action": "dropColumn", "fieldNames": path.split(".")}


def retype(path, kind, keep=True):
    return {"action": "updateColumnType", "fieldNames": path.split("."), "newDataType": kind, "keepNullability": keep}


def nullable(path, yes):
    return {"action": "updateColumnNullability", "fieldNames": path.split("."), "newNullability": yes}


def comment(path, text):
    return {"action": "updateColumnComment", "fieldNames": path.split("."), "newComment": text}


def default(path, text):
    return {"action": "updateColumnDefaultValue", "fieldNames": path.split("."), "newDefaultValue": text}


def place(name, kind, reference=None):
    return {"action": "updateColumnPosition", "move": move(name, kind, reference)}


DROP_KEY = {"action": "dropPrimaryKey"}
ELSEWHERE = "Java goes where the path doesn't lead, or does nothing"

# ---------------------------------------------------------------- the table

case("nothing changes", "pk", {"action": "updateComment", "comment": "a table"})
case("no changes at all", "pk")
case("the comment of the table", "pk", {"action": "updateComment", "comment": "another \u00e9 \"text\""})
case("the comment of the table goes", "pk", {"action": "updateComment", "comment": None})
case("an empty comment of the table", "pk", {"action": "updateComment", "comment": ""})
both("drop the primary key", "late", DROP_KEY)
both("drop the primary key of a partitioned table", "pk", DROP_KEY)
both("drop the primary key and its bucket", "late", DROP_KEY, reset("bucket"))
both("drop the primary key that is not there", "plain", DROP_KEY)
both("drop the primary key, then its column", "late", DROP_KEY, put("bucket", "-1"), drop("k"),
     differs=("in Java its keys are those of before the request", None))

# ---------------------------------------------------------------- options

both("an option", "pk", put("snapshot.num-retained.max", "12"))
both("an option nobody knows", "pk", put("my.own", "x"))
both("an option with an empty value", "pk", put("my.own", ""))
both("an option goes", "buckets", reset("ignore-delete"))
both("an option goes that was not there", "pk", reset("my.own"))
both("set, then reset", "pk", put("my.own", "x"), reset("my.own"))
both("the type of the table", "pk", put("type", "materialized-table"))
both("the type of the table, as it is", "pk", put("type", "TABLE"))
both("the type of the table goes", "pk", reset("type"))
for key, value in [("bucket-function.type", "mod"), ("merge-engine", "first-row"), ("rowkind.field", "s"), ("dynamic-bucket.initial-buckets", "3"),
                   ("force-lookup", "true"), ("row-tracking.enabled", "true"), ("index-file-in-data-file-dir", "true"),
                   ("aggregation.remove-record-on-delete", "false"), ("partial-update.remove-record-on-delete", "false"),
                   ("data-file.path-directory", "x"), ("sequence.snapshot-ordering", "false"), ("bucket-key", "k")]:
    both(f"frozen option {key}", "pk", put(key, value))
    both(f"frozen option {key} goes", "pk", reset(key))
both("a frozen option as it is", "agg", put("merge-engine", "aggregation"))
for value in ("3", "-1", "-2", "0", "x", "2"):
    both(f"bucket {value}", "pk", put("bucket", value))
    both(f"bucket {value} of a table without", "plain", put("bucket", value))
both("bucket goes", "pk", reset("bucket"))
both("ignore-delete from true to false", "buckets", put("ignore-delete", "false"))
both("ignore-delete to true", "pk", put("ignore-delete", "true"))
both("ignore-update-before to true", "pk", put("ignore-update-before", "true"))
both("deletion vectors", "pk", put("deletion-vectors.enabled", "true"))
both("deletion vectors, said to be modifiable in the same request", "pk", put("deletion-vectors.modifiable", "true"), put("deletion-vectors.enabled", "true"))
both("deletion vectors as they are", "buckets", put("deletion-vectors.enabled", "false"))
both("primary key by option", "plain", put("primary-key", "k"))
both("primary key by option, of two", "plain", put("primary-key", "k, v"))
both("primary key by option as it is", "late", put("primary-key", "k"))
both("another primary key by option", "late", put("primary-key", "v"))
both("partition keys by option as they are", "append", put("partition", "p1, p2"))
both("partition keys by option", "plain", put("partition", "k"))
both("sequence field that is not there", "pk", put("sequence.field", "nobody"))
both("sequence field", "pk", put("sequence.field", "v"))
both("an option of a column that is not there", "pk", put("fields.nobody.aggregate-function", "sum"))
both("an option of a column", "pk", put("fields.v.stats-mode", "none"))
both("the default aggregation", "agg", put("fields.default-aggregate-function", "max"))

# ---------------------------------------------------------------- adding

for kind in ("INT", "DECIMAL(5, 1)", "TIMESTAMP(3) WITH LOCAL TIME ZONE", row(f(77, "x", "INT"), f(77, "y", array(row(f(3, "z", "INT NOT NULL"))))),
             mapped("STRING NOT NULL", row(f(0, "x", "INT"))), mapped(row(f(9, "kk", "INT")), row(f(0, "x", "INT"))),
             array(array("INT NOT NULL")), {"type": "MULTISET", "element": row(f(1, "x", "INT"))}, "VARIANT",
             {"type": "VECTOR", "element": "FLOAT", "length": 3}):
    both(f"add {kind if isinstance(kind, str) else kind['type']}", "late", add("n", kind, "new"))
both("add with an empty comment", "late", add("n", "INT", ""))
both("add NOT NULL", "late", add("n", "INT NOT NULL"))
both("add first", "pk", add("n", "INT", None, move("n", "FIRST")))
both("add last", "append", add("n", "INT", None, move("n", "LAST")))
both("add after", "pk", add("n", "INT", None, move("n", "AFTER", "v")))
both("add after the last", "pk", add("n", "INT", None, move("n", "AFTER", "b")))
both("add before", "pk", add("n", "INT", None, move("n", "BEFORE", "k")))
both("add after nobody", "pk", add("n", "INT", None, move("n", "AFTER", "nobody")))
both("add before nobody", "pk", add("n", "INT", None, move("n", "BEFORE", "nobody")))
both("add before partitions", "append", add("n", "INT"))
both("add two before partitions", "append", add("n", "INT"), add("o", "INT"))
both("add what is there", "pk", add("v", "INT"))
both("add in another case", "pk", add("V", "INT"))
both("add under a name of Paimon", "pk", add("_SEQUENCE_NUMBER", "BIGINT"))
both("add under a prefix of Paimon", "pk", add("_KEY_x", "BIGINT"))
both("add, then drop", "late", add("n", "INT"), drop("n"))
both("drop, then add", "late", drop("v"), add("v", "STRING"))
both("add with a dot in its name", "late", {"action": "addColumn", "fieldNames": ["a.b"], "dataType": "INT", "comment": None, "move": None})
both("add into a row", "nested", add("r.n", "INT", "c"))
both("add first into a row", "nested", add("r.n", "INT", None, move("n", "FIRST")))
both("add after one of a row", "nested", add("r.n", row(f(0, "i", "INT")), None, move("n", "AFTER", "x")))
both("add after one outside of the row", "nested", add("r.n", "INT", None, move("n", "AFTER", "a")))
both("add into a row of a row", "nested", add("r.q.n", "INT"))
both("add what is in the row", "nested", add("r.x", "INT"))
both("add into the row of an array", "nested", add("lr.element.n", "INT"))
both("add into the row of a map", "nested", add("mr.value.n", "INT"))
both("add deep", "nested", add("mr.value.l.element.n", "INT"))
both("add into nobody", "nested", add("nobody.n", "INT"))
both("add into nobody of a row", "nested", add("r.nobody.n", "INT"))
both("add into an INT", "nested", add("a.n", "INT"), differs=(ELSEWHERE, ELSEWHERE))
both("add an element", "nested", add("l.element", "INT"), differs=(None, None))
both("add NOT NULL into a row", "nested", add("r.n", "INT NOT NULL"))

# ---------------------------------------------------------------- renaming

both("rename", "pk", rename("v", "value"))
both("rename with a comment and a default", "nested", rename("s", "t"))
both("rename a primary key", "pk", rename("k", "key"))
both("rename a partition key", "pk", rename("dt", "day"))
both("rename nobody", "pk", rename("nobody", "n"))
both("rename to what is there", "pk", rename("v", "s"))
both("rename to itself", "pk", rename("v", "v"))
both("rename to a name of Paimon", "pk", rename("v", "rowkind"))
both("rename and add under the old name", "pk", rename("v", "w"), add("v", "STRING"))
both("rename twice", "pk", rename("v", "w"), rename("w", "x"))
both("rename a primary key twice", "late", rename("k", "w"), rename("w", "x"), differs=("Java loses the key", "Java loses the key"))
both("rename in a row", "nested", rename("r.x", "xx"))
both("rename in a row to what is there", "nested", rename("r.x", "y"))
both("rename deep", "nested", rename("mr.value.l.element.deep", "deeper"))
both("rename nobody in a row", "nested", rename("r.nobody", "n"))
both("rename an element", "nested", rename("l.element", "e"), differs=(ELSEWHERE, ELSEWHERE))
both("rename in a row like a column that options name", "nested", put("fields.r.stats-mode", "none"), rename("r.x", "xx"))
both("rename the bucket key", "agg", rename("k", "key"))
both("rename a sequence field", "agg", rename("ts", "time"))
both("rename the other sequence field", "agg", rename("g", "h"))
both("rename an aggregated column", "agg", rename("v", "sum_v"))
both("rename a list", "agg", rename("w", "all_w"))
both("rename all", "agg", rename("k", "a"), rename("g", "b"), rename("v", "c"), rename("w", "d"), rename("ts", "e"))
both("rename a sequence group", "partial", rename("g", "gg"))
both("rename in a sequence group", "partial", rename("w", "ww"))
both("rename two bucket keys", "buckets", rename("v", "x"), rename("k", "y"))
both("rename an indexed column", "index", rename("v", "x"), differs=("Java doesn't rename in file-index and stats-mode",) * 2)
both("rename the row kind", "kind", rename("op", "x"), differs=("Java doesn't rename in rowkind.field",) * 2)
both("rename the time field", "kind", rename("t", "x"), differs=("Java doesn't rename in record-level.time-field",) * 2)
both("rename a shredded map", "maps", rename("m", "mm"))

# ---------------------------------------------------------------- dropping

both("drop", "pk", drop("v"))
both("drop a primary key", "pk", drop("k"))
both("drop a partition key", "pk", drop("dt"))
both("drop nobody", "pk", drop("nobody"))
both("drop the last one", "one", drop("k"))
both("drop the last one beside a new one", "one", add("n", "INT"), drop("k"))
both("drop in a row", "nested", drop("r.x"))
both("drop deep", "nested", drop("mr.value.l.element.b"))
both("drop all of a row", "nested", drop("r.q.z"), drop("r.q.w"))
both("drop a row", "nested", drop("r"))
both("drop nobody in a row", "nested", drop("r.nobody"))
both("drop in nobody", "nested", drop("nobody.x"))
both("drop an element", "nested", drop("l.element"), differs=("Java drops the array",) * 2)
both("drop the sequence field", "agg", drop("ts"))
both("drop an aggregated column", "agg", drop("v"))
both("drop an aggregated column and its options", "agg", drop("v"), reset("fields.v.aggregate-function"), reset("fields.v.ignore-retract"))
both("drop in a sequence group", "partial", drop("w"))
both("drop the bucket key", "buckets", drop("v"))
both("drop an indexed column", "index", drop("v"))
both("drop the row kind", "kind", drop("op"))
both("drop the time field", "kind", drop("t"))
both("drop a shredded map", "maps", drop("m"))
both("drop another map", "maps", drop("n"))

# ---------------------------------------------------------------- types

both("widen", "pk", retype("v", "BIGINT"))
both("widen and make NOT NULL", "pk", retype("v", "BIGINT NOT NULL", False))
both("widen, keeping nullable", "pk", retype("v", "BIGINT NOT NULL", True))
both("narrow", "pk", retype("d", "INT"))
both("to what it is", "pk", retype("v", "INT"))
both("a boolean to what it is", "pk", retype("b", "BOOLEAN"))
both("a primary key", "pk", retype("k", "DECIMAL(20, 0)"))
both("a partition key", "pk", retype("dt", "INT"))
both("retype nobody", "pk", retype("nobody", "INT"))
both("retype the sequence field", "agg", retype("ts", "BIGINT"))
both("retype with a comment", "pk", retype("s", "VARCHAR(10)"))
both("retype the bucket key", "buckets", retype("k", "BIGINT"))
both("explicit where forbidden", "strict", retype("v", "STRING"))
both("implicit where explicit is forbidden", "strict", retype("v", "BIGINT"))
both("to NOT NULL where explicit is forbidden", "strict", retype("v", "BIGINT NOT NULL", False))
both("from NOT NULL", "strict", retype("n", "BIGINT", False))
both("NOT NULL stays", "strict", retype("n", "BIGINT", True))
both("retype in a row", "nested", retype("r.x", "BIGINT"))
both("retype in a row from NOT NULL", "nested", retype("r.y", "BYTES", False))
both("retype an element", "nested", retype("l.element", "BIGINT"))
both("retype an element to NOT NULL", "nested", retype("l.element", "BIGINT NOT NULL", False))
both("retype an element of elements", "nested", retype("ll.element.element", "BIGINT"))
both("retype an array of an array", "nested", retype("ll.element", array("BIGINT")))
both("retype an array of an array to text", "nested", retype("ll.element", "STRING"))
both("retype a value", "nested", retype("m.value", "STRING"))
both("retype a key", "nested", retype("m.key", "BIGINT"), differs=("Java changes the type of the values",) * 2)
both("retype in the row of an array", "nested", retype("lr.element.x", "DOUBLE"))
both("retype in the row of a map", "nested", retype("mr.value.x", "DOUBLE"))
both("retype deep", "nested", retype("mr.value.l.element.deep", "STRING"))
both("retype a row", "nested", retype("r", row(f(0, "x", "BIGINT"))))
both("retype a row to text", "nested", retype("r", "STRING"))
both("retype an array to text", "nested", retype("l", "STRING"))
both("retype a map to text", "nested", retype("m", "STRING"))
both("retype text to an array", "nested", retype("s", array("STRING")))
both("retype nobody in a row", "nested", retype("r.nobody", "INT"))
both("retype in an INT", "nested", retype("a.x", "INT"))
both("retype by a step that is called otherwise", "nested", retype("l.x", "BIGINT"), differs=(ELSEWHERE, ELSEWHERE))
both("retype what has a default", "nested", retype("s", "INT"), differs=("Java 2.0.0 leaves a default that is none of the type",) * 2)

# ---------------------------------------------------------------- nullability

both("to NOT NULL", "pk", nullable("v", False))
both("to NOT NULL where allowed", "strict", nullable("v", False))
both("to nullable", "strict", nullable("n", True))
both("to nullable as it is", "pk", nullable("v", True))
both("a primary key to nullable", "pk", nullable("k", True))
both("a primary key to NOT NULL as it is", "pk", nullable("k", False))
both("a field to nullable", "nested", nullable("r.y", True))
both("a field to NOT NULL", "nested", nullable("r.x", False))
both("a row to NOT NULL", "nested", put("alter-column-null-to-not-null.disabled", "false"), nullable("r", False))
both("an array to nullable", "nested", nullable("ll", True))
both("an element of elements to nullable", "nested", nullable("ll.element.element", True))
both("the row of an array to nullable", "nested", nullable("lr.element", True))
both("a value to nullable as it is", "nested", nullable("m.value", True))
both("nullability of nobody", "nested", nullable("nobody", True))

# ---------------------------------------------------------------- comments, defaults, places

both("comment", "pk", comment("v", "c"))
both("comment goes", "pk", comment("s", None))
both("empty comment", "pk", comment("s", ""))
both("comment of a key", "pk", comment("k", "the key"))
both("comment of a field", "nested", comment("r.x", "c"))
both("comment of a field goes", "nested", comment("r.y", None))
both("comment of nobody", "nested", comment("r.nobody", "c"))
both("comment deep", "nested", comment("mr.value.l.element.deep", "c"))
both("comment of an element", "nested", comment("l.element", "c"), differs=(ELSEWHERE, ELSEWHERE))
both("default goes", "nested", default("s", None))
both("default of a field", "nested", default("r.x", "7"))
both("default of nobody", "nested", default("nobody", "7"))
both("default of a key", "pk", default("k", "7"))
both("place first", "pk", place("v", "FIRST"))
both("place first where it is", "pk", place("k", "FIRST"))
both("place last", "pk", place("k", "LAST"))
both("place last where it is", "pk", place("b", "LAST"))
for reference in ("k", "dt", "v", "s", "d", "b", "nobody"):
    both(f"place s after {reference}", "pk", place("s", "AFTER", reference))
    both(f"place s before {reference}", "pk", place("s", "BEFORE", reference))
both("place nobody", "pk", place("nobody", "FIRST"))

DEFAULTS = {
    "INT": ["7", "-7", "+7", "'7'", "2147483648", "-2147483648", "7.9", "", "x", "-", "7.", "7.x", " 7", "1e3"],
    "TINYINT": ["127", "128", "-128", "-129"],
    "BIGINT": ["9223372036854775807", "9223372036854775808", "-9223372036854775808"],
    "BOOLEAN": ["true", "FALSE", "t", "yes", "n", "1", "2", ""],
    "FLOAT": ["1.5", "NaN", "Infinity", "-Infinity", "1e10", "x", ""],
    "DOUBLE": ["1.5", "1e400", "x"],
    "DECIMAL(5, 2)": ["1.5", "1.555", "x", "", "-999.99"],
    "STRING": ["", "text", "'quoted'", "'"],
    "CHAR(3)": ["longer", ""],
    "BYTES": ["any", ""],
    "DATE": ["2026-01-31", "2026-02-30", "19000", "x", ""],
    "TIME(3)": ["12:30:45.123", "1000", "x"],
    "TIMESTAMP(3)": ["2026-01-31 12:00:00", "2026-01-31 12:00:00.123", "1700000000000", "x", "2026-13-01 00:00:00"],
    "TIMESTAMP(2)": ["2026-01-31 12:00:00"],
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": ["2026-01-31 12:00:00", "x"],
    "VARIANT": ["1"],
    "MULTISET": ["1"],
    "ARRAY": ["[1, 2]", "[]", "ARRAY(1,2)", "array()", "[1, x]", "[null]", "1, 2", "[1", ""],
    "MAP": ["{a -> 1}", "{a -> 1, b -> null}", "{}", "MAP(a, 1)", "MAP(a, 1, b)", "MAP()", "{a 1}", "x", "{a -> x}"],
    "ROW": ["{1, a}", "STRUCT(1, a)", "{}", "{1}", "{x, a}", "{1, a, 2}", "{null, a}"],
}
NESTED_KINDS = {"MULTISET": {"type": "MULTISET", "element": "INT"}, "ARRAY": array("INT"), "MAP": mapped("STRING", "INT"),
                "ROW": row(f(0, "x", "INT"), f(0, "y", "STRING"))}
for kind, texts in DEFAULTS.items():
    for text in texts:
        case(f"default \"{text}\" of {kind}", "late", add("n", NESTED_KINDS.get(kind, kind)), default("n", text))
case("default of a DECIMAL that is too large", "late", add("n", "DECIMAL(5, 2)"), default("n", "1000"), differs="Java takes it and writes null")

# ---------------------------------------------------------------- BLOBs and vectors

for text in ("__BLOB_FIELD", "__BLOB_FIELD; a photo", " __BLOB_FIELD ;", "__BLOB_DESCRIPTOR_FIELD;x", "__BLOB_VIEW_FIELD", "__BLOB", "__BLOB_FIELDS",
             "__VECTOR_FIELD; 8", "__VECTOR_FIELD;8;the rest", "__VECTOR_FIELD", "__VECTOR_FIELD;0", "__VECTOR_FIELD;x", "__VECTORS", "a __BLOB_FIELD"):
    for kind in ("BYTES", array("BYTES"), mapped("INT", "BINARY(3)"), array("FLOAT"), "INT", "BLOB"):
        case(f"add \"{text}\" {kind if isinstance(kind, str) else json.dumps(kind)}", "blobs", add("n", kind, text))
both("add a BLOB", "blobs", add("n", "BLOB"))
both("add a BLOB where there is none", "plain", add("n", "BLOB"))
both("add a BLOB to a primary key table", "pk", add("n", "BLOB"))
both("add a BLOB in a row", "blobs", add("n", row(f(0, "x", "BLOB"))))
both("add a directive in a row", "nested", add("r.n", "BYTES", "__BLOB_FIELD"))
both("comment by a directive", "blobs", comment("k", "__BLOB_FIELD"), differs=("Java 2.0.0 takes it as text, later versions refuse it",) * 2)
both("rename a BLOB", "blobs", rename("b", "x"))
both("rename BLOBs", "blobs", rename("bs", "x"))
both("rename a vector", "blobs", rename("v", "x"), differs=("Java doesn't rename in vector-field",) * 2)
both("drop a BLOB", "blobs", drop("b"))
both("drop BLOBs", "blobs", drop("b"), drop("bs"))
both("drop a vector", "blobs", drop("v"))
both("drop what is no BLOB", "blobs", drop("v"), drop("k"))
both("a BLOB to bytes", "blobs", retype("b", "BYTES"))
both("an INT to a BLOB", "blobs", retype("k", "BLOB"))
