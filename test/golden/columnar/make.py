#!/usr/bin/env python3
"""Makes foreign.parquet and friends: files of other writers' habits, by pyarrow (test/unit/columnar/foreign_test.c).

make.py FOLDER. Made with pyarrow 26.0.1; the bytes differ between versions, what they hold does not.
"""
import datetime
import decimal
import sys

import pyarrow as pa
import pyarrow.parquet as pq

D = decimal.Decimal
folder = sys.argv[1]


def write(name, table, **options):
    pq.write_table(table, f"{folder}/{name}.parquet", **options)


# Names of columns are what foreign_test.c expects; two rows, the second all null.
plain = pa.table({
    "dict": pa.array(["x", None]).dictionary_encode(),
    "large": pa.array(["y", None], pa.large_string()),
    "fixed": pa.array([b"abcd", None], pa.binary(4)),
    "u8": pa.array([255, None], pa.uint8()),
    "u32": pa.array([4294967295, None], pa.uint32()),
    "ns": pa.array([-1, None], pa.timestamp("ns")),
    "s": pa.array([-1, None], pa.timestamp("s", "UTC")),
    "ms": pa.array([-1, None], pa.timestamp("ms")),
    "tus": pa.array([43200000000, None], pa.time64("us")),
    "dec": pa.array([D("-1.25"), None], pa.decimal128(9, 2)),
    "dec20": pa.array([D("-123456789012345678.25"), None], pa.decimal128(20, 2)),
    "biglist": pa.array([["p", None], None], pa.large_list(pa.string())),
    "three": pa.array([[1, 2, 3], None], pa.list_(pa.int32(), 3)),
    "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    "row": pa.array([{"b": 1, "a": "s"}, None], pa.struct([("b", pa.int32()), ("a", pa.string())])),
    "nothing": pa.array([None, None], pa.null()),
})
write("foreign", plain, compression="gzip", data_page_version="2.0")
write("foreign_v1", plain.drop_columns(["ns"]), compression="lz4", version="1.0", use_dictionary=False, use_compliant_nested_type=False)

stamps = pa.table({
    "t": pa.array([-1, 1769860800123456789, None, -86400000000000], pa.timestamp("ns")),
    "l": pa.array([[-1, None], [], None, [1]], pa.list_(pa.timestamp("ns"))),
})
write("int96", stamps, use_deprecated_int96_timestamps=True)
# The year 9999 in an INT96: more than nanoseconds since 1970 hold.
far = pa.table({"t": pa.array([datetime.datetime(9999, 12, 31)], pa.timestamp("us"))})
write("int96_far", far, use_deprecated_int96_timestamps=True)
write("int96_far_list", pa.table({"t": pa.array([[datetime.datetime(9999, 12, 31)]], pa.list_(pa.timestamp("us")))}),
      use_deprecated_int96_timestamps=True)
write("int64_far", far)
