"""golden_messages.py FOLDER: commit messages of version 14 into py_plain.v14 and py_check.v14, by pypaimon; its Rust core must read
and write the same bytes."""
import dataclasses
import os
import sys
import tempfile

import pyarrow as pa
from pypaimon import CatalogFactory, Schema
from pypaimon.write.commit_message_serializer import serialize_commit_message
from pypaimon_rust.datafusion import CommitMessage as RustMessage

catalog = CatalogFactory.create({"warehouse": tempfile.mkdtemp()})
catalog.create_database("golden", True)
columns = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("dt", pa.string(), nullable=False), pa.field("v", pa.string())])
catalog.create_table("golden.t", Schema.from_pyarrow_schema(columns, partition_keys=["dt"], primary_keys=["k", "dt"],
                                                            options={"bucket": "1"}), False)
table = catalog.get_table("golden.t")
write = table.new_batch_write_builder().new_write()
write.write_arrow(pa.Table.from_pydict({"k": [1, 2, 3], "dt": ["a"] * 3, "v": ["x", "y", None]}, schema=columns))
plain, = write.prepare_commit()
for name, message in (("py_plain", plain), ("py_check", dataclasses.replace(plain, check_from_snapshot=5000000007))):
    text = serialize_commit_message(message, table.partition_keys_fields)
    assert RustMessage.deserialize(text, version=14).serialize() == text
    with open(os.path.join(sys.argv[1], name + ".v14"), "wb") as file:
        file.write(text)
