"""Makes an index manifest with pypaimon: golden_indexes.py WAREHOUSE FILE. Its schema is not Java's letter by letter."""
import shutil
import sys

import pyarrow as pa
from pypaimon import CatalogFactory, Schema
from pypaimon.globalindex.global_index_meta import GlobalIndexMeta
from pypaimon.index.deletion_vector_meta import DeletionVectorMeta
from pypaimon.index.index_file_meta import IndexFileMeta
from pypaimon.manifest.index_manifest_entry import IndexManifestEntry
from pypaimon.manifest.index_manifest_file import IndexManifestFile
from pypaimon.table.row.generic_row import GenericRow

catalog = CatalogFactory.create({"warehouse": sys.argv[1]})
catalog.create_database("py", True)
catalog.create_table("py.t", Schema.from_pyarrow_schema(pa.schema([("a", pa.int32())])), True)
table = catalog.get_table("py.t")


def entry(file):
    return IndexManifestEntry(0, GenericRow([], []), 0, file)


vectors = {"data-1.parquet": DeletionVectorMeta("data-1.parquet", 1, 24, 2), "data-2.orc": DeletionVectorMeta("data-2.orc", 33, 44)}
file = IndexManifestFile(table)
name = file.write(
    [
        entry(IndexFileMeta("DELETION_VECTORS", "index-1", 77, 2, vectors)),
        entry(IndexFileMeta("btree", "index-2", 500, 100, None, "s3://elsewhere/index-2", GlobalIndexMeta(0, 99, 3, [4], b"\x01\xff"))),
    ]
)
shutil.copy(f"{sys.argv[1]}/py.db/t/manifest/{name}", sys.argv[2])
