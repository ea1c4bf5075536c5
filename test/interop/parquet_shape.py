#!/usr/bin/env python3
"""Compares a Parquet file of ours with one of Java Paimon, column by column, with pyarrow.

parquet_shape.py OURS JAVA_FILE_OR_FOLDER: physical and logical types, lengths, levels, field ids, names of groups.
Without arguments: runs the unit test that writes such a file and calls this script.
"""
import glob
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VENV = os.path.expanduser("~/.cache/tarn/lab/engines/venv/bin/python")


def nested_ids(field, path, out):
    """Field ids as Arrow's schema of the file shows them, nested ones too."""
    meta = field.metadata or {}
    out[path] = meta.get(b"PARQUET:field_id", b"-").decode()
    for i in range(field.type.num_fields):
        child = field.type.field(i)
        nested_ids(child, f"{path}.{i}", out)


def shape(path):
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    columns = {}
    for i in range(len(file.schema)):
        c = file.schema.column(i)
        logical = str(c.logical_type)
        # Whether a logical type was derived from the older annotation is no part of its meaning.
        logical = logical.split(", is_from_converted_type")[0]
        columns[c.path] = (c.physical_type, logical, c.length, c.max_definition_level, c.max_repetition_level)
    ids = {}
    for field in file.schema_arrow:
        nested_ids(field, field.name, ids)
    message = str(file.schema).split("\n")[1].split("{")[0].split()[-1]
    return {"message": message, "columns": columns, "ids": ids, "rows": file.read().num_rows}


def main():
    if len(sys.argv) == 1:
        test = os.path.join(ROOT, "build/test/unit/columnar/java_files_test")
        subprocess.run(["make", "-s", test[len(ROOT) + 1:]], cwd=ROOT, check=True)
        sys.exit(subprocess.run([test, "java_files.have*"], cwd=ROOT).returncode)
    ours, theirs = sys.argv[1:3]
    if os.path.isdir(theirs):
        theirs = sorted(glob.glob(theirs + "/*.parquet"))[0]
    a, b = shape(ours), shape(theirs)
    wrong = 0
    if a["message"] != "paimon_schema":
        print(f"message is {a['message']}")
        wrong += 1
    for part in ("columns", "ids"):
        for key in sorted(set(a[part]) | set(b[part])):
            if a[part].get(key) != b[part].get(key):
                print(f"{part} {key}: ours {a[part].get(key)}, Java {b[part].get(key)}")
                wrong += 1
    print(f"{len(a['columns'])} columns, {len(a['ids'])} fields compared, {wrong} differences")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
