import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.BinaryRowWriter;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.index.DeletionVectorMeta;
import org.apache.paimon.index.GlobalIndexMeta;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.manifest.IndexManifestFile;
import org.apache.paimon.options.Options;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypes;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Makes test/golden/file_index and test/golden/manifest/java_*.index with Paimon's own library: GoldenIndexes
 * WAREHOUSE FILE_INDEX MANIFEST, folders that it fills. Of each indexed table there are NAME.index (the container),
 * NAME.schema, and NAME.rows: its rows as text, one a line, values divided by tabs, \N for null.
 *
 *   GoldenIndexes vectors WAREHOUSE      makes golden.java_dv, a table with deletion vectors
 *   GoldenIndexes read WAREHOUSE FILE..  prints what Java reads in index manifests, sorted by name; needs java_dv
 */
public class GoldenIndexes {
    static Catalog cat;
    static Path out;

    public static void main(String[] a) throws Exception {
        Options o = new Options();
        o.set("warehouse", "file://" + a[a[0].equals("vectors") || a[0].equals("read") ? 1 : 0]);
        if (a[0].equals("vectors") || a[0].equals("read")) {
            cat = CatalogFactory.createCatalog(CatalogContext.create(o));
            if (a[0].equals("vectors")) {
                vectors();
            } else {
                read(Arrays.asList(a).subList(2, a.length));
            }
            return;
        }
        out = Paths.get(a[1]);
        Files.createDirectories(out);
        Files.createDirectories(Paths.get(a[2]));
        cat = CatalogFactory.createCatalog(CatalogContext.create(o));
        cat.createDatabase("indexes", true);
        everyType("v1", "1");
        everyType("v2", "2");
        blocks();
        large();
        bloom();
        indexManifests(Paths.get(a[2]));
        cat.close();
    }

    // ---------------------------------------------------------------- file indexes

    static final String[] NAMES = {"c_bool", "c_tiny", "c_small", "c_int", "c_big", "c_float", "c_double", "c_char", "c_varchar", "c_string",
        "c_date", "c_time", "c_ts3", "c_ts6", "c_ts9", "c_ltz3", "c_ltz6", "c_\uD83D\uDE00"};
    static final DataType[] TYPES = {DataTypes.BOOLEAN(), DataTypes.TINYINT(), DataTypes.SMALLINT(), DataTypes.INT(), DataTypes.BIGINT(),
        DataTypes.FLOAT(), DataTypes.DOUBLE(), DataTypes.CHAR(3), DataTypes.VARCHAR(20), DataTypes.STRING(), DataTypes.DATE(), DataTypes.TIME(3),
        DataTypes.TIMESTAMP(3), DataTypes.TIMESTAMP(6), DataTypes.TIMESTAMP(9), DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(3),
        DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(6), DataTypes.INT()};

    /** Values at the edges of each type, some often, some once, and nulls: often, once, never, always. */
    static Object value(int column, int i) {
        if (i % 5 == 4 && column != 3 || column == 8 && i != 7 && i % 2 == 0 || column == 17 && i != 3) {
            return column == 4 && i != 4 ? (Object) 4L : null;
        }
        int k = i % 7;
        long[] longs = {0, -1, 1, Long.MAX_VALUE, Long.MIN_VALUE, 42, 1L << 40};
        double[] reals = {0.0, -0.0, Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, 1.5, -1e-3};
        String[] texts = {"", "a", "\u00e4\u20ac\uD83D\uDE00", "quote \" back \\", "a text that is longer than sixteen", "z%_", "abc"};
        long[] millis = {0, -1, 1715690096789L, -62135596800000L, 253402300799999L, 1, 999};
        switch (column) {
            case 0: return i < 20 ? (Object) (i % 2 == 0) : (Object) true;
            case 1: return (byte) (k == 3 ? 127 : k == 4 ? -128 : k);
            case 2: return (short) (k == 3 ? 32767 : k == 4 ? -32768 : i * 3);
            case 3: return k == 3 ? Integer.MAX_VALUE : k == 4 ? Integer.MIN_VALUE : i;
            case 4: return longs[k];
            case 5: return (float) reals[k];
            case 6: return reals[k];
            case 7: return str("ab" + (char) ('a' + k));
            case 8: return str("v" + i);
            case 9: return str(texts[k]);
            case 10: return (int) LocalDate.of(1969 + i, 12, 31).toEpochDay();
            case 11: return k * 1001 + i;
            case 12: case 15: return Timestamp.fromEpochMillis(millis[k]);
            case 13: case 16: return Timestamp.fromEpochMillis(millis[k], i * 1000);
            case 14: return Timestamp.fromEpochMillis(k == 3 || k == 4 ? -1000 : millis[k], k == 3 ? 999999 : i * 7);
            default: return i;
        }
    }

    static void everyType(String name, String version) throws Exception {
        Schema.Builder s = Schema.newBuilder();
        StringBuilder all = new StringBuilder(), hashed = new StringBuilder();
        for (int c = 0; c < NAMES.length; c++) {
            s.column(NAMES[c], TYPES[c]);
            all.append(c == 0 ? "" : ",").append(NAMES[c]);
            hashed.append(c < 2 ? "" : ",").append(c == 0 ? "" : NAMES[c]);
            s.option("file-index.bitmap." + NAMES[c] + ".version", version);
            if (version.equals("2") && c > 0) {
                s.option("file-index.bloom-filter." + NAMES[c] + ".items", "40");
            }
        }
        s.option("file-index.bitmap.columns", all.toString());
        if (version.equals("2")) { // and both at once
            s.option("file-index.bloom-filter.columns", hashed.toString());
        }
        List<GenericRow> rows = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            GenericRow r = new GenericRow(NAMES.length);
            for (int c = 0; c < NAMES.length; c++) {
                r.setField(c, value(c, i));
            }
            rows.add(r);
        }
        table(name, s, "1 mb", rows, true);
    }

    /** Bloom filters alone, beside the file, and other indexes nobody here reads. */
    static void bloom() throws Exception {
        Schema.Builder s = Schema.newBuilder().column("i", DataTypes.INT()).column("s", DataTypes.STRING()).column("b", DataTypes.BYTES())
                .column("d", DataTypes.DOUBLE()).column("other", DataTypes.INT())
                .option("file-index.bloom-filter.columns", "i,s,b,d").option("file-index.bsi.columns", "other")
                .option("file-index.range-bitmap.columns", "i");
        for (String c : "i s b d".split(" ")) {
            s.option("file-index.bloom-filter." + c + ".items", "200").option("file-index.bloom-filter." + c + ".fpp", "0.01");
        }
        List<GenericRow> rows = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            rows.add(GenericRow.of(i * 3, i % 9 == 0 ? null : str("text " + i), new byte[] {(byte) i, (byte) 200, 0}, i / 4.0 - 3, i));
        }
        table("bloom", s, "1 b", rows, true);
    }

    /** Version 2 divides its values into blocks; here into many. */
    static void blocks() throws Exception {
        Schema.Builder s = Schema.newBuilder().column("s", DataTypes.STRING()).column("i", DataTypes.INT()).column("r", DataTypes.DOUBLE())
                .option("file-index.bitmap.columns", "s,i,r");
        for (String c : "s i r".split(" ")) {
            s.option("file-index.bitmap." + c + ".index-block-size", "64 b");
        }
        List<GenericRow> rows = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            int k = i * 37 % 101;
            rows.add(GenericRow.of(k % 10 == 0 ? null : str("k" + k), k - 50, k % 13 / 2.0 - 1));
        }
        table("blocks", s, "1 mb", rows, true);
    }

    /** Sets of rows as arrays, bitmaps and runs, beyond 65536; column c is i % 3, d is i / 10000, e is null, 0 or 1. */
    static void large() throws Exception {
        Schema.Builder s = Schema.newBuilder().column("c", DataTypes.INT()).column("d", DataTypes.INT()).column("e", DataTypes.TINYINT())
                .option("file-index.bitmap.columns", "c,d,e");
        List<GenericRow> rows = new ArrayList<>();
        for (int i = 0; i < 70000; i++) {
            rows.add(GenericRow.of(i % 3, i / 10000, i % 7 == 0 ? null : (Byte) (byte) (i % 2)));
        }
        table("large", s, "100 mb", rows, false);
    }

    static void table(String name, Schema.Builder s, String threshold, List<GenericRow> rows, boolean text) throws Exception {
        Identifier id = Identifier.create("indexes", name);
        cat.dropTable(id, true);
        cat.createTable(id, s.option("bucket", "-1").option("file-index.in-manifest-threshold", threshold).build(), false);
        FileStoreTable t = (FileStoreTable) cat.getTable(id);
        BatchWriteBuilder wb = t.newBatchWriteBuilder();
        try (BatchTableWrite w = wb.newWrite(); BatchTableCommit c = wb.newCommit()) {
            w.withIOManager(IOManager.create(System.getProperty("java.io.tmpdir")));
            for (GenericRow r : rows) {
                w.write(r);
            }
            c.commit(w.prepareCommit());
        }
        for (Split split : t.newReadBuilder().newScan().plan().splits()) {
            for (DataFileMeta f : ((DataSplit) split).dataFiles()) {
                byte[] bytes = f.embeddedIndex();
                if (bytes == null) {
                    bytes = Files.readAllBytes(Paths.get(t.location().toUri().getPath(), "bucket-0", f.extraFiles().get(0)));
                }
                Files.write(out.resolve(name + ".index"), bytes);
            }
        }
        Files.write(out.resolve(name + ".schema"), Files.readAllBytes(Paths.get(t.location().toUri().getPath(), "schema", "schema-0")));
        if (!text) {
            return;
        }
        StringBuilder b = new StringBuilder();
        for (GenericRow r : rows) {
            for (int c = 0; c < r.getFieldCount(); c++) {
                b.append(c == 0 ? "" : "\t").append(print(t.rowType().getFields().get(c), r.getField(c)));
            }
            b.append('\n');
        }
        Files.write(out.resolve(name + ".rows"), b.toString().getBytes(StandardCharsets.UTF_8));
    }

    static String print(DataField f, Object v) {
        if (v == null) {
            return "\\N";
        }
        switch (f.type().getTypeRoot()) {
            case DATE:
                return LocalDate.ofEpochDay((Integer) v).toString();
            case TIME_WITHOUT_TIME_ZONE:
                return java.time.LocalTime.ofNanoOfDay((Integer) v * 1_000_000L).toString();
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return ((Timestamp) v).toLocalDateTime().toString();
            case VARBINARY:
                return java.util.Base64.getEncoder().encodeToString((byte[]) v);
            default:
                return v.toString();
        }
    }

    // ---------------------------------------------------------------- index manifests

    static void indexManifests(Path manifest) throws Exception {
        FileStoreTable t = (FileStoreTable) cat.getTable(Identifier.create("indexes", "v1"));
        IndexManifestFile file = t.store().indexManifestFileFactory().create();
        LinkedHashMap<String, DeletionVectorMeta> two = new LinkedHashMap<>(), none = new LinkedHashMap<>();
        two.put("data-1.parquet", new DeletionVectorMeta("data-1.parquet", 1, 24, 2L));
        two.put("data-2.orc", new DeletionVectorMeta("data-2.orc", 33, 44, null));
        copy(t, file, manifest.resolve("java_vectors.index"), BucketMode.HASH_FIXED, Arrays.asList(
                entry(row("2024-05-14 at night", 1), 7, new IndexFileMeta("DELETION_VECTORS", "index-1", 77, 2, two, null)),
                entry(row("x", 2), 7, new IndexFileMeta("DELETION_VECTORS", "index-2", 1, 0, none, "s3://elsewhere/index-2"))));
        copy(t, file, manifest.resolve("java_global.index"), BucketMode.BUCKET_UNAWARE, Arrays.asList(
                entry(BinaryRow.EMPTY_ROW, 0, new IndexFileMeta("btree", "index-3", 500, 100, null, null,
                        new GlobalIndexMeta(0, 99, 3, null, new byte[] {1, 2, (byte) 255})))));
        copy(t, file, manifest.resolve("java_global_full.index"), BucketMode.BUCKET_UNAWARE, Arrays.asList(
                entry(BinaryRow.EMPTY_ROW, 0, new IndexFileMeta("lumina", "index-4", 1L << 40, 7, null, "file:/index-4",
                        new GlobalIndexMeta(100, Long.MAX_VALUE, 4, new int[] {5, -6, 70000}, null, new byte[0])))));
    }

    /** Primary keys updated and deleted after a compaction: what is overridden is marked, file by file. */
    static void vectors() throws Exception {
        Schema s = Schema.newBuilder().column("k", DataTypes.INT()).column("v", DataTypes.STRING()).primaryKey("k")
                .option("bucket", "2").option("deletion-vectors.enabled", "true").build();
        Identifier id = Identifier.create("golden", "java_dv");
        cat.createTable(id, s, false);
        for (int c = 0; c < 3; c++) {
            BatchWriteBuilder wb = cat.getTable(id).newBatchWriteBuilder();
            try (BatchTableWrite w = wb.newWrite(); BatchTableCommit commit = wb.newCommit()) {
                w.withIOManager(IOManager.create(System.getProperty("java.io.tmpdir")));
                for (int i = c * 7; i < 200; i += 1 + c * c) {
                    w.write(GenericRow.ofKind(c == 2 && i % 2 == 0 ? org.apache.paimon.types.RowKind.DELETE
                            : org.apache.paimon.types.RowKind.INSERT, i, str("v" + c)));
                }
                commit.commit(w.prepareCommit());
            }
        }
    }

    static void read(List<String> files) throws Exception {
        FileStoreTable t = (FileStoreTable) cat.getTable(Identifier.create("golden", "java_dv"));
        IndexManifestFile file = t.store().indexManifestFileFactory().create();
        for (String f : files) {
            String name = "index-manifest-" + java.util.UUID.randomUUID(); // the reader keeps what it read by name
            Path copy = Paths.get(t.location().toUri().getPath(), "manifest", name);
            Files.write(copy, Files.readAllBytes(Paths.get(f)));
            List<String> lines = new ArrayList<>();
            for (IndexManifestEntry e : file.read(name)) {
                GlobalIndexMeta g = e.indexFile().globalIndexMeta();
                lines.add(e + " " + (g == null ? "" : g.rowRangeStart() + "-" + g.rowRangeEnd() + " of " + g.getIndexedFieldIds() + " "
                        + Arrays.toString(g.indexMeta()) + Arrays.toString(g.sourceMeta())));
            }
            Files.delete(copy);
            java.util.Collections.sort(lines);
            System.out.println(String.join("\n", lines));
        }
    }

    static IndexManifestEntry entry(BinaryRow partition, int bucket, IndexFileMeta f) {
        return new IndexManifestEntry(FileKind.ADD, partition, bucket, f);
    }

    static void copy(FileStoreTable t, IndexManifestFile file, Path to, BucketMode mode, List<IndexManifestEntry> entries) throws Exception {
        String name = file.writeIndexFiles(null, entries, mode);
        Files.write(to, Files.readAllBytes(Paths.get(t.location().toUri().getPath(), "manifest", name)));
    }

    static BinaryRow row(String text, int number) {
        BinaryRow r = new BinaryRow(2);
        BinaryRowWriter w = new BinaryRowWriter(r);
        w.writeString(0, str(text));
        w.writeInt(1, number);
        w.complete();
        return r;
    }

    static BinaryString str(String s) {
        return BinaryString.fromString(s);
    }
}
