import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.BinaryRowWriter;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.data.serializer.InternalSerializers;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.index.IndexFileMetaSerializer;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.DataFileMetaSerializer;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.io.DataOutputViewStreamWrapper;
import org.apache.paimon.stats.SimpleStats;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.sink.CommitMessageSerializer;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.BigIntType;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.SerializationUtils;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Makes test/golden/commit_message with Paimon's own serializer: GoldenMetadata OUT. Each message is NAME.vN, in the
 * version N of the library it runs on, and NAME.vN.txt says what Java reads in it, field by field. Compiles and
 * runs with 1.3.1 (version 10), 1.4.2 (11) and 2.0.0 (12). Of version 13 no library could be had: with 2.0.0 it is
 * made too, by the library's row serializer over the field list of the sources of 2.1.
 */
public class GoldenMetadata {
    static final int VERSION = CommitMessageSerializer.CURRENT_VERSION;
    static final DataFileMetaSerializer FILES = new DataFileMetaSerializer();
    static final IndexFileMetaSerializer INDEXES = new IndexFileMetaSerializer();

    public static void main(String[] a) throws Exception {
        Path out = Paths.get(a[0]);
        Files.createDirectories(out);
        message(out, "small", row(3), 0, 1, lists(file(0)), none(5));
        message(out, "empty", BinaryRow.EMPTY_ROW, -2, null, none(5), none(5));
        message(out, "full", row("2024-05-14 and more", 7), 12345, 20000,
                Arrays.asList(Arrays.asList(file(1), file(2), file(3)), Arrays.asList(file(2)), Arrays.asList(file(1)),
                        Arrays.asList(index(0), index(1)), Arrays.asList(index(2))),
                Arrays.asList(Arrays.asList(file(3), file(0)), Arrays.asList(file(1)), Arrays.asList(file(3)),
                        Arrays.asList(index(3)), Arrays.asList(index(1), index(4))));
    }

    // ---------------------------------------------------------------- what is written

    /** Fields of a data file, as many as this version has; null where the file has none. */
    static GenericRow file(int i) {
        byte[] min = SerializationUtils.serializeBinaryRow(row(i)), max = SerializationUtils.serializeBinaryRow(row("key " + i, i));
        GenericRow keyStats = stats(row(i), row(i + 5), 0L), valueStats = stats(row("a", i), row("zzzzzzzzz", i), 3L, null);
        return GenericRow.of(str(i == 0 ? "data-1.parquet" : "data-\u00e4\u20ac-" + i + ".orc"), 100L + i, 2L << i,
                i == 0 ? SerializationUtils.serializeBinaryRow(BinaryRow.EMPTY_ROW) : min,
                i == 0 ? SerializationUtils.serializeBinaryRow(BinaryRow.EMPTY_ROW) : max,
                i == 0 ? stats(BinaryRow.EMPTY_ROW, BinaryRow.EMPTY_ROW) : keyStats,
                i == 0 ? stats(BinaryRow.EMPTY_ROW, BinaryRow.EMPTY_ROW) : valueStats,
                (long) i, Long.MAX_VALUE - i, (long) i * 7, i,
                i == 2 ? strings("data-2.orc.index", "b") : strings(), Timestamp.fromEpochMillis(1715690096789L + i),
                i == 3 ? null : (Long) (long) i, i == 2 ? new byte[0] : i == 1 ? new byte[] {0, 5, 78, 78, (byte) 208, 26, 53, (byte) 174, 9} : null,
                i == 3 ? null : (Byte) (byte) (i % 2),
                i == 1 ? strings("k", "a column with a long name") : i == 2 ? strings() : null,
                i == 1 ? str("s3://elsewhere/data-1.orc") : null, i == 1 ? (Long) 77L : null,
                i == 3 ? strings("v", "w\u00df") : null,
                i == 3 ? new GenericArray(new long[] {5, -1}) : null);
    }

    static GenericRow stats(BinaryRow min, BinaryRow max, Long... nulls) {
        return GenericRow.of(SerializationUtils.serializeBinaryRow(min), SerializationUtils.serializeBinaryRow(max), new GenericArray(nulls));
    }

    static GenericRow index(int i) {
        InternalArray vectors = i == 1 ? new GenericArray(new Object[] {
                    GenericRow.of(str("data-1.parquet"), 1, 24, 2L), GenericRow.of(str("data-\u00e4.parquet"), 33, Integer.MAX_VALUE, null)})
                : i == 2 ? new GenericArray(new Object[0]) : null;
        GenericRow global = i < 3 ? null : GenericRow.of(0L, 99L + i, 4, i == 3 ? new GenericArray(new int[] {7, 8, 9}) : null,
                i == 3 ? new byte[] {1, 2, 3} : null, i == 4 ? "DEIX and more".getBytes(StandardCharsets.UTF_8) : null);
        return GenericRow.of(str(i < 1 ? "HASH" : i < 3 ? "DELETION_VECTORS" : "btree"), str("index-5e-" + i), 8L * i, (long) i, vectors,
                i == 2 ? str("file:/tmp/elsewhere/index-5e-2") : null, global);
    }

    // ---------------------------------------------------------------- writing

    static List<List<GenericRow>> none(int count) {
        List<List<GenericRow>> l = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            l.add(new ArrayList<>());
        }
        return l;
    }

    static List<List<GenericRow>> lists(GenericRow one) {
        List<List<GenericRow>> l = none(5);
        l.get(0).add(one);
        return l;
    }

    static void message(Path out, String name, BinaryRow partition, int bucket, Integer total, List<List<GenericRow>> data,
            List<List<GenericRow>> compact) throws Exception {
        CommitMessageImpl m = new CommitMessageImpl(partition, bucket, total,
                new DataIncrement(files(data.get(0)), files(data.get(1)), files(data.get(2)), indexes(data.get(3)), indexes(data.get(4))),
                new CompactIncrement(files(compact.get(0)), files(compact.get(1)), files(compact.get(2)), indexes(compact.get(3)), indexes(compact.get(4))));
        CommitMessageSerializer s = new CommitMessageSerializer();
        byte[] bytes = s.serialize(m);
        Files.write(out.resolve(name + ".v" + VERSION), bytes);
        dump(out.resolve(name + ".v" + VERSION + ".txt"), (CommitMessageImpl) s.deserialize(VERSION, bytes));
        if (VERSION == 12) {
            version13(out, name, partition, bucket, total, data, compact);
        }
    }

    static List<DataFileMeta> files(List<GenericRow> rows) {
        List<DataFileMeta> l = new ArrayList<>();
        for (GenericRow r : rows) {
            l.add(FILES.fromRow(r));
        }
        return l;
    }

    static List<IndexFileMeta> indexes(List<GenericRow> rows) {
        List<IndexFileMeta> l = new ArrayList<>();
        for (GenericRow r : rows) {
            l.add(INDEXES.fromRow(r));
        }
        return l;
    }

    static void version13(Path out, String name, BinaryRow partition, int bucket, Integer total, List<List<GenericRow>> data,
            List<List<GenericRow>> compact) throws Exception {
        List<DataField> fields = new ArrayList<>(DataFileMeta.SCHEMA.getFields());
        fields.add(new DataField(20, "_WRITE_COLS_SEQUENCES", new ArrayType(true, new BigIntType(false))));
        RowType type = new RowType(false, fields);
        InternalRowSerializer files = InternalSerializers.create(type);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputViewStreamWrapper view = new DataOutputViewStreamWrapper(bytes);
        StringBuilder text = head(partition, bucket, total);
        SerializationUtils.serializeBinaryRow(partition, view);
        view.writeInt(bucket);
        view.writeBoolean(total != null);
        if (total != null) {
            view.writeInt(total);
        }
        for (List<List<GenericRow>> part : Arrays.asList(data, compact)) {
            String prefix = part == data ? "" : "compact ";
            for (int i = 0; i < 5; i++) {
                if (i >= 3) {
                    INDEXES.serializeList(indexes(part.get(i)), view);
                } else {
                    view.writeInt(part.get(i).size());
                    for (GenericRow r : part.get(i)) {
                        files.serialize(files.toBinaryRow(r), view);
                    }
                }
                for (GenericRow r : part.get(i)) {
                    line(text, prefix + NAMES[i], i >= 3 ? IndexFileMeta.SCHEMA : type, r);
                }
            }
        }
        Files.write(out.resolve(name + ".v13"), bytes.toByteArray());
        Files.write(out.resolve(name + ".v13.txt"), text.toString().getBytes(StandardCharsets.UTF_8));
    }

    // ---------------------------------------------------------------- what Java sees

    static final String[] NAMES = {"new", "deleted", "changelog", "new index", "deleted index"};

    static StringBuilder head(BinaryRow partition, int bucket, Integer total) {
        return new StringBuilder("partition=" + hex(SerializationUtils.serializeBinaryRow(partition)) + " bucket=" + bucket
                + " total=" + total + "\n");
    }

    static void dump(Path out, CommitMessageImpl m) throws Exception {
        StringBuilder b = head(m.partition(), m.bucket(), m.totalBuckets());
        DataIncrement d = m.newFilesIncrement();
        CompactIncrement c = m.compactIncrement();
        dumpFiles(b, NAMES[0], d.newFiles());
        dumpFiles(b, NAMES[1], d.deletedFiles());
        dumpFiles(b, NAMES[2], d.changelogFiles());
        dumpIndexes(b, NAMES[3], d.newIndexFiles());
        dumpIndexes(b, NAMES[4], d.deletedIndexFiles());
        dumpFiles(b, "compact " + NAMES[0], c.compactBefore());
        dumpFiles(b, "compact " + NAMES[1], c.compactAfter());
        dumpFiles(b, "compact " + NAMES[2], c.changelogFiles());
        dumpIndexes(b, "compact " + NAMES[3], c.newIndexFiles());
        dumpIndexes(b, "compact " + NAMES[4], c.deletedIndexFiles());
        Files.write(out, b.toString().getBytes(StandardCharsets.UTF_8));
    }

    static void dumpFiles(StringBuilder b, String what, List<DataFileMeta> files) {
        for (DataFileMeta f : files) {
            line(b, what, DataFileMeta.SCHEMA, FILES.toRow(f));
        }
    }

    static void dumpIndexes(StringBuilder b, String what, List<IndexFileMeta> files) {
        for (IndexFileMeta f : files) {
            line(b, what, IndexFileMeta.SCHEMA, INDEXES.toRow(f));
        }
    }

    static void line(StringBuilder b, String what, RowType type, InternalRow row) {
        b.append(what).append(':');
        for (int i = 0; i < type.getFieldCount(); i++) {
            DataField f = type.getFields().get(i);
            b.append(' ').append(f.name()).append('=');
            value(b, f.type(), InternalRow.createFieldGetter(f.type(), i).getFieldOrNull(row));
        }
        b.append('\n');
    }

    static void value(StringBuilder b, DataType t, Object v) {
        if (v == null) {
            b.append("null");
            return;
        }
        switch (t.getTypeRoot()) {
            case VARBINARY:
                b.append(hex((byte[]) v));
                break;
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                b.append(((Timestamp) v).getMillisecond());
                break;
            case ARRAY:
                DataType e = ((ArrayType) t).getElementType();
                InternalArray.ElementGetter get = InternalArray.createElementGetter(e);
                b.append('[');
                for (int i = 0; i < ((InternalArray) v).size(); i++) {
                    b.append(i == 0 ? "" : ",");
                    value(b, e, get.getElementOrNull((InternalArray) v, i));
                }
                b.append(']');
                break;
            case ROW:
                RowType r = (RowType) t;
                b.append('(');
                for (int i = 0; i < r.getFieldCount(); i++) {
                    b.append(i == 0 ? "" : ",");
                    value(b, r.getTypeAt(i), InternalRow.createFieldGetter(r.getTypeAt(i), i).getFieldOrNull((InternalRow) v));
                }
                b.append(')');
                break;
            default:
                b.append(v);
        }
    }

    static BinaryRow row(Object... values) {
        BinaryRow r = new BinaryRow(values.length);
        BinaryRowWriter w = new BinaryRowWriter(r);
        for (int i = 0; i < values.length; i++) {
            if (values[i] instanceof Integer) {
                w.writeInt(i, (Integer) values[i]);
            } else {
                w.writeString(i, str((String) values[i]));
            }
        }
        w.complete();
        return r;
    }

    static GenericArray strings(String... s) {
        Object[] o = new Object[s.length];
        for (int i = 0; i < s.length; i++) {
            o[i] = str(s[i]);
        }
        return new GenericArray(o);
    }

    static BinaryString str(String s) {
        return BinaryString.fromString(s);
    }

    static String hex(byte[] b) {
        StringBuilder s = new StringBuilder();
        for (byte x : b) {
            s.append(String.format("%02x", x));
        }
        return s.toString();
    }
}
