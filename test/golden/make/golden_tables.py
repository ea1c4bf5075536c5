"""Makes the golden tables that pypaimon writes: golden_tables.py WAREHOUSE."""
import datetime
import sys
from decimal import Decimal

import pyarrow as pa
from pypaimon import CatalogFactory, Schema

catalog = CatalogFactory.create({"warehouse": sys.argv[1]})
catalog.create_database("golden", True)


def write(name, schema, batches, **kw):
    catalog.create_table("golden." + name, Schema.from_pyarrow_schema(schema, **kw), False)
    table = catalog.get_table("golden." + name)
    for rows in batches:
        builder = table.new_batch_write_builder()
        w, c = builder.new_write(), builder.new_commit()
        w.write_arrow(pa.Table.from_pylist(rows, schema=schema))
        c.commit(w.prepare_commit())
        w.close()
        c.close()


T = datetime.datetime
write(
    "py_append",
    pa.schema(
        [
            ("id", pa.int64()),
            ("flag", pa.bool_()),
            ("small", pa.int16()),
            ("real", pa.float64()),
            ("amount", pa.decimal128(12, 2)),
            ("big", pa.decimal128(38, 10)),
            ("text", pa.string()),
            ("raw", pa.binary()),
            ("day", pa.date32()),
            ("ts3", pa.timestamp("ms")),
            ("ts6", pa.timestamp("us")),
            ("list", pa.list_(pa.int32())),
        ]
    ),
    [
        [
            dict(id=1, flag=True, small=-32768, real=float("nan"), amount=Decimal("-12.34"), big=Decimal("0.05"),
                 text="", raw=b"\x00\xff", day=datetime.date(1969, 12, 31), ts3=T(1969, 12, 31, 23, 59, 59, 999000),
                 ts6=T(1969, 12, 31, 23, 59, 59, 999999), list=[1, None, 3]),
            dict(id=2, flag=False, small=32767, real=-0.0, amount=Decimal("9999999999.99"),
                 big=Decimal("-9999999999999999999999999999.9999999999"), text="stra\u00dfe \U0001f600", raw=b"",
                 day=datetime.date(2024, 5, 14), ts3=T(2024, 5, 14), ts6=T(2024, 5, 14, 1, 2, 3, 456789), list=[]),
        ],
        [dict(id=3)],
    ],
)
PK = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        ("v", pa.string()),
        pa.field("dt", pa.string(), nullable=False),
    ]
)
write(
    "py_pk",
    PK,
    [
        [dict(k=k, v="v%d" % k, dt="x") for k in (1, 2, 3, 4, 123456789012345)],
        [dict(k=2, v="changed", dt="x"), dict(k=2, v=None, dt="y/z")],
    ],
    primary_keys=["k", "dt"],
    partition_keys=["dt"],
    options={"bucket": "4"},
)
