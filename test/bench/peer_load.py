#!/usr/bin/env python3
"""The peer of `tarn load`: pypaimon with its Rust core writes a Parquet file into a table, one commit.

  peer_load.py make ROWS FILE [scattered]     the harness' 8 columns as a Parquet file, in order of the key or not
  peer_load.py slices ROWS COUNT FOLDER       the same rows in COUNT files, 0.parquet and on, each with the keys behind the one before
  peer_load.py load FILE WAREHOUSE_FOLDER ENGINE   native or rust; a fresh table; CPU of the whole process

Run by the Python of the lab (scripts of ../shared/interop fetch it). Prints one line "RESULT ...".
"""
import os
import resource
import sys
import time
import uuid

sys.path.insert(0, os.environ["INTEROP"])
import paimon_py  # noqa: E402  (the harness' schema, rows and engines)


def make(rows, path, scattered):
    import numpy
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = paimon_py.rows(rows, 0, 1)
    if scattered:
        table = table.take(pa.array(numpy.random.default_rng(7).permutation(rows)))
    pq.write_table(table, path + ".new")
    os.rename(path + ".new", path)


def slices(rows, count, folder):
    import pyarrow.parquet as pq

    os.makedirs(folder)
    for i in range(count):
        pq.write_table(paimon_py.rows(rows // count, rows // count * i, 1), os.path.join(folder, f"{i}.parquet"))


def load(path, warehouse, engine):
    import pyarrow.parquet as pq

    os.environ["PAIMON_CATALOG_OPTIONS"] = "warehouse=file://" + os.path.realpath(warehouse)
    sys.argv = ["paimon_py.py", "create", "bench.load_" + uuid.uuid4().hex[:8]]
    paimon_py.main()
    wall = time.time()
    table = paimon_py.table(sys.argv[2], engine)
    builder = table.new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    before = time.process_time()
    data = pq.read_table(path, schema=paimon_py.SCHEMA, use_threads=False)
    if engine == "rust":
        for batch in data.to_batches():
            write.write_arrow(batch)
    else:
        write.write_arrow(data)
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()
    cpu = time.process_time() - before
    whole = resource.getrusage(resource.RUSAGE_SELF)
    print(f"RESULT load engine={engine} rows={data.num_rows} cpu_s={cpu:.3f} wall_s={time.time() - wall:.3f}"
          f" process_cpu_s={whole.ru_utime + whole.ru_stime:.3f} rows_per_cpu_s={data.num_rows / cpu:.0f}"
          f" peak_rss_mib={whole.ru_maxrss // 1024}")


if __name__ == "__main__":
    if len(sys.argv) in (4, 5) and sys.argv[1] == "make":
        make(int(sys.argv[2]), sys.argv[3], sys.argv[4:] == ["scattered"])
    elif len(sys.argv) == 5 and sys.argv[1] == "slices":
        slices(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    elif len(sys.argv) == 5 and sys.argv[1] == "load":
        load(*sys.argv[2:])
    else:
        sys.exit(__doc__)
