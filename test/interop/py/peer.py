"""pypaimon over a warehouse, told what to do line by line; for test/lib/peers.py, in the engines' venv.

  create DB.TABLE SCHEMA.json              a schema as Paimon writes it
  write  DB.TABLE ROWS.jsonl               one commit
  prepare DB.TABLE ROWS.jsonl OUT          as write, but not committed: the messages' version, and each serialized, in base64, a line of OUT each
  dump   DB.TABLE OUT.jsonl ENGINE [k=v]   what the reader returns; ENGINE: python, native or rust; k=v: table options
  files  DB.TABLE OUT [k=v]...             the names of the files that it would read, a line each
  file   SCHEMA.json ROWS.jsonl OUT        the rows as OUT.parquet or OUT.arrow (IPC stream) or OUT.feather (IPC file)
  move   DB.TABLE DB.NEW                   another name
  drop   DB.TABLE
  set    DB.TABLE k=v...                   alters options
  add    DB.TABLE COLUMN TYPE              (blanks in the type as _)
  retype DB.TABLE COLUMN TYPE
  rename DB.TABLE COLUMN NEW
  remove DB.TABLE COLUMN
  tables DB. OUT                           their names, a line each
  columns FILE                             names of a Parquet file's columns, and its row count
  tag DB.TABLE NAME SNAPSHOT, untag DB.TABLE NAME, branch DB.TABLE NAME [TAG], unbranch DB.TABLE NAME, forward DB.TABLE NAME,
  rollback DB.TABLE SNAPSHOT, tags DB.TABLE OUT
  rust-write DB.TABLE ROWS.jsonl           as write, by pypaimon-rust alone
  rust-sql FILE OUT                        a statement of pypaimon-rust's SQL; rows as JSON arrays of texts

Answers: "ok NUMBER" or "error WHAT". peer.py WAREHOUSE SHARED-INTEROP-FOLDER [k=v]...: a folder or URI, options of the catalog
"""
import base64
import decimal
import json
import os
import sys
import traceback

warehouse, interop = sys.argv[1:3]
sys.path.insert(0, interop)
os.environ["PAIMON_CATALOG_OPTIONS"] = "\n".join(["warehouse=" + (warehouse if "://" in warehouse else "file://" + warehouse), *sys.argv[3:]])

import pyarrow as pa  # noqa: E402
import pyarrow.ipc  # noqa: E402
import pyarrow.parquet  # noqa: E402
import compare_tables as ct  # noqa: E402
from paimon_py import catalog, table  # noqa: E402
from pypaimon import Schema  # noqa: E402
from pypaimon.write import commit_message_serializer as serializer  # noqa: E402
from pypaimon.common.identifier import Identifier  # noqa: E402
from pypaimon.function.function import FunctionImpl  # noqa: E402
from pypaimon.function.function_change import FunctionChange  # noqa: E402
from pypaimon.function.function_definition import FunctionDefinition  # noqa: E402
from pypaimon.schema.data_types import AtomicType, DataField, PyarrowFieldParser  # noqa: E402
from pypaimon.schema.schema_change import SchemaChange  # noqa: E402
from pypaimon.table.instant import Instant  # noqa: E402

T = pa.types


def value(v, t):
    """JSON as what pa.array takes for type t; timestamps and dates as numbers."""
    if v is None:
        return None
    if T.is_timestamp(t) or T.is_time(t):
        return ct.nanos(v) // ct.UNIT[t.unit]
    if T.is_date(t):
        return ct.nanos(v) // (86400 * 10**9)
    if T.is_floating(t):
        return float(v)
    if T.is_decimal(t):
        return decimal.Decimal(str(v))
    if T.is_binary(t) or T.is_fixed_size_binary(t) or T.is_large_binary(t):
        return base64.b64decode(v)
    if T.is_list(t):
        return [value(x, t.value_type) for x in v]
    if T.is_map(t):
        pairs = v.items() if isinstance(v, dict) else v
        return [(value(k, t.key_type), value(x, t.item_type)) for k, x in pairs]
    if T.is_struct(t):
        return {f.name: value(v.get(f.name), f.type) for f in t}
    return v


def rows_as_arrow(schema, path):
    with open(path, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f if line.strip()]
    fields = list(schema)
    if any("rowkind" in r for r in rows) and "rowkind" not in schema.names:
        fields.append(pa.field("rowkind", pa.string()))
    columns = [pa.array([value(r.get(f.name), f.type) for r in rows], type=f.type) for f in fields]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def fields_of(path):
    with open(path, encoding="utf-8") as f:
        s = json.load(f)
    return s, [DataField.from_dict(d) for d in s["fields"]]


def create(name, path):
    s, fields = fields_of(path)
    catalog().create_database(name.split(".")[0], True)
    catalog().create_table(name, Schema(fields, s["partitionKeys"], s["primaryKeys"], s["options"]), False)
    return 0


def write(name, path):
    t = table(name, "python")
    b = t.new_batch_write_builder()
    w, c = b.new_write(), b.new_commit()
    w.write_arrow(rows_as_arrow(PyarrowFieldParser.from_paimon_schema(t.fields), path))
    c.commit(w.prepare_commit())
    w.close()
    c.close()
    return 0


def prepare(name, path, out):
    t = table(name, "python")
    w = t.new_batch_write_builder().new_write()
    w.write_arrow(rows_as_arrow(PyarrowFieldParser.from_paimon_schema(t.fields), path))
    messages = w.prepare_commit()
    with open(out, "w", encoding="ascii") as f:
        f.write(f"{serializer.VERSION}\n")
        for m in messages:
            f.write(base64.b64encode(serializer.serialize_commit_message(m, t.partition_keys_fields)).decode() + "\n")
    w.close()
    return len(messages)


def dump(name, out, engine, *sets):
    side = ct.load(name, os.environ["PAIMON_CATALOG_OPTIONS"], dict(kv.split("=", 1) for kv in sets), engine, None, None, "")
    with open(out, "w", encoding="utf-8") as f:
        for r in side.rows:
            f.write(json.dumps({c: ct.to_json(v, t) for v, (c, t) in zip(r, side.types.items())}) + "\n")
    return len(side.rows)


def files(name, out, *sets):
    plan = table(name, "python", dict(kv.split("=", 1) for kv in sets)).new_read_builder().new_scan().plan()
    names = [f.file_name for s in plan.splits() for f in s.files]
    with open(out, "w", encoding="utf-8") as f:
        f.write("".join(n + "\n" for n in names))
    return len(names)


def rust_write(name, path):
    t = table(name, "rust")
    b = t.new_batch_write_builder()
    w, c = b.new_write(), b.new_commit()
    for batch in rows_as_arrow(PyarrowFieldParser.from_paimon_schema(catalog().get_table(name).fields), path).to_batches():
        w.write_arrow(batch)
    c.commit(w.prepare_commit())
    w.close()
    c.close()
    return 0


CONTEXTS = []


def rust_sql(path, out):
    from pypaimon_rust.datafusion import SQLContext
    if not CONTEXTS:
        CONTEXTS.append(SQLContext())
        CONTEXTS[0].register_catalog("tarn", dict(kv.split("=", 1) for kv in os.environ["PAIMON_CATALOG_OPTIONS"].splitlines()), "")
        CONTEXTS[0].set_current_catalog("tarn")
    with open(path, encoding="utf-8") as f:
        batches = CONTEXTS[0].sql(f.read())
    with open(out, "w", encoding="utf-8") as f:
        for b in batches:
            for row in zip(*(c.to_pylist() for c in b.columns)):
                f.write(json.dumps([None if v is None else str(v) for v in row]) + "\n")
    return sum(b.num_rows for b in batches)


def rollback(name, snapshot):
    catalog().rollback_to(name, Instant.snapshot(int(snapshot)))
    return 0


def tags(name, out):
    names = catalog().list_tags_paged(name).elements
    with open(out, "w", encoding="utf-8") as f:
        f.write("".join(n + "\n" for n in names))
    return len(names)


REFS = {
    "tag": lambda name, tag, snapshot: catalog().create_tag(name, tag, int(snapshot)) or 0,
    "untag": lambda name, tag: catalog().delete_tag(name, tag) or 0,
    "branch": lambda name, branch, *tag: catalog().create_branch(name, branch, *tag) or 0,
    "unbranch": lambda name, branch: catalog().drop_branch(name, branch) or 0,
    "forward": lambda name, branch: catalog().fast_forward(name, branch) or 0,
    "rollback": rollback,
    "tags": tags,
    "rust-write": rust_write,
    "rust-sql": rust_sql,
}


def move(name, new):
    catalog().rename_table(name, new)
    return 0


def drop(name):
    catalog().drop_table(name)
    return 0


def alter(name, *changes):
    catalog().alter_table(name, list(changes))
    return 0


def type_of(text):
    return AtomicType(text.replace("_", " "))


ALTERS = {
    "set": lambda name, *sets: alter(name, *(SchemaChange.set_option(*kv.split("=", 1)) for kv in sets)),
    "add": lambda name, column, text: alter(name, SchemaChange.add_column(column, type_of(text))),
    "retype": lambda name, column, text: alter(name, SchemaChange.update_column_type(column, type_of(text))),
    "rename": lambda name, column, new: alter(name, SchemaChange.rename_column(column, new)),
    "remove": lambda name, column: alter(name, SchemaChange.drop_column(column)),
}


def tables(database, out):
    names = catalog().list_tables(database[:-1])
    with open(out, "w", encoding="utf-8") as f:
        f.write("".join(n + "\n" for n in names))
    return len(names)


def function_create(name, path):
    with open(path, encoding="utf-8") as f:
        made = json.load(f)

    def fields(key):
        return None if made.get(key) is None else [DataField.from_dict(d) for d in made[key]]
    definitions = {k: FunctionDefinition.from_dict(d) for k, d in made["definitions"].items()}
    catalog().create_function(name, FunctionImpl(Identifier.from_string(name), fields("inputParams"), fields("returnParams"), made["deterministic"],
                                                 definitions, made["comment"], made["options"]))
    return 0


def function_show(name, out):
    got = catalog().get_function(name)
    with open(out, "w", encoding="utf-8") as f:
        json.dump({"name": got.name(), "inputParams": got.input_params() and [x.to_dict() for x in got.input_params()],
                   "returnParams": got.return_params() and [x.to_dict() for x in got.return_params()], "deterministic": got.is_deterministic(),
                   "definitions": {k: d.to_dict() for k, d in got.definitions().items()}, "comment": got.comment(), "options": got.options()}, f)
    return 0


def function_alter(name, path):
    with open(path, encoding="utf-8") as f:
        catalog().alter_function(name, [FunctionChange.from_dict(d) for d in json.load(f)])
    return 0


def function_drop(name):
    catalog().drop_function(name)
    return 0


def functions(database, out):
    names = catalog().list_functions(database[:-1])
    with open(out, "w", encoding="utf-8") as f:
        f.write("".join(n + "\n" for n in names))
    return len(names)


FUNCTIONS = {"function-create": function_create, "function-show": function_show, "function-alter": function_alter,
             "function-drop": function_drop, "functions": functions}


def file(schema, rows, out):
    t = rows_as_arrow(PyarrowFieldParser.from_paimon_schema(fields_of(schema)[1]), rows)
    if out.endswith(".parquet"):
        pa.parquet.write_table(t, out)
    elif out.endswith(".feather"):
        with pa.ipc.new_file(out, t.schema) as w:
            w.write_table(t)
    else:
        with pa.ipc.new_stream(out, t.schema) as w:
            w.write_table(t)
    return t.num_rows


def columns(path):
    f = pa.parquet.ParquetFile(path)
    return f"{f.metadata.num_rows} {','.join(f.schema_arrow.names)}"


answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
os.dup2(2, 1)  # nobody else's words among the answers
for line in sys.stdin:
    word, *rest = line.split()
    try:
        done = {"create": create, "write": write, "prepare": prepare, "dump": dump, "files": files, "file": file, "columns": columns,
                "move": move, "drop": drop, "tables": tables, **ALTERS, **REFS, **FUNCTIONS}[word](*rest)
        print("ok", done, file=answers)
    except Exception as e:  # told to the one who asked
        traceback.print_exc()
        print("error", " ".join(f"{type(e).__name__}: {e}".split()), file=answers)
