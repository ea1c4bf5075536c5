import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.crosspartition.GlobalIndexAssigner;
import org.apache.paimon.crosspartition.IndexBootstrap;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.function.Function;
import org.apache.paimon.function.FunctionChange;
import org.apache.paimon.function.FunctionImpl;
import org.apache.paimon.index.BucketAssigner;
import org.apache.paimon.index.HashBucketAssigner;
import org.apache.paimon.index.SimpleHashBucketAssigner;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.manifest.BucketEntry;
import org.apache.paimon.manifest.ManifestCommittable;
import org.apache.paimon.consumer.Consumer;
import org.apache.paimon.consumer.ConsumerManager;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.operation.FileStoreCommit;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.options.Options;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.reader.RecordReaderIterator;
import org.apache.paimon.rest.requests.CreateFunctionRequest;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageSerializer;
import org.apache.paimon.append.AppendCompactCoordinator;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.table.sink.RowPartitionKeyExtractor;
import org.apache.paimon.table.sink.TableWriteImpl;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.EndOfScanException;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.ScanMode;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.table.source.StreamTableScan;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeChecks;
import org.apache.paimon.types.DataTypeFamily;
import org.apache.paimon.types.DataTypeJsonParser;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.JsonSerdeUtil;
import org.apache.paimon.view.View;
import org.apache.paimon.view.ViewChange;
import org.apache.paimon.view.ViewImpl;
import org.apache.paimon.view.ViewSchema;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.time.Duration;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Paimon's own Java library over a file-system warehouse (WAREHOUSE [k=v]..., options of the catalog), told what to do line
 * by line, since a JVM costs seconds:
 *
 *   create  DB.TABLE SCHEMA.json             a schema as Paimon's Schema class reads it
 *   write   DB.TABLE ROWS.jsonl [k=v]...     one commit; member "rowkind" (+I, -U, +U, -D) is the row's kind
 *   prepare DB.TABLE ROWS.jsonl OUT [k=v]... as write, but not committed: the messages' version, and each serialized, in base64,
 *                                            a line of OUT each
 *   prepare-compact DB.TABLE OUT [k=v]...    likewise of a compaction
 *   compact DB.TABLE [k=v]...                everything, to the top level
 *   overwrite DB.TABLE ROWS.jsonl [k=v]...   as write; what was there goes (in the partitions that it brings)
 *   dump    DB.TABLE OUT.jsonl [k=v]...      what the reader returns; k=v are table options (scan.snapshot-id=7)
 *   stream  DB.TABLE OUT.jsonl FROM [k=v]... what the streaming reader tells of the snapshots from FROM to the latest, with members
 *                                            "rowkind" and "snapshot"
 *   files   DB.TABLE OUT [k=v]...            the names of the files that it would read, a line each
 *   filter  DB.TABLE OUT USER ID...          of these identifiers of a job those that it would commit after a restart, a line each
 *   entries DB.TABLE OUT.jsonl SNAPSHOT      what that snapshot added and removed, an object each: "kind" (ADD, DELETE), "partition", "bucket",
 *                                            "level", "rows", "first_row" (or null), "low" and "high" (sequence numbers)
 *   set     DB.TABLE k=v...                  alters options
 *   drop    DB.TABLE
 *   rollback DB.TABLE SNAPSHOT               back to that snapshot, those after it are gone
 *   rollback-tag DB.TABLE NAME               back to a tag's snapshot
 *   tag     DB.TABLE NAME SNAPSHOT [SECONDS] a tag, kept for so long
 *   tags    DB.TABLE OUT.jsonl               an object each: "tag", "snapshot", "created" (a date-time) and "retained" (seconds), or null
 *   untag   DB.TABLE NAME
 *   branch  DB.TABLE NAME [TAG]              a branch, from a tag; DB.TABLE$branch_NAME is its table
 *   unbranch DB.TABLE NAME
 *   forward DB.TABLE NAME                    the table's history becomes the branch's
 *   consumer DB.TABLE ID SNAPSHOT            the reader ID wants this snapshot next
 *   expire  DB.TABLE N                       keeps the last N snapshots
 *   race    DB.TABLE A.jsonl B.jsonl         two writers open at the same time; A commits first
 *   retype  DB.TABLE COLUMN TYPE             alters a column's type (blanks in it as _)
 *   rename  DB.TABLE COLUMN NEW
 *   remove  DB.TABLE COLUMN
 *   add     DB.TABLE COLUMN TYPE [first]
 *   move    DB.TABLE DB.NEW                  another name
 *   tables  DB. OUT                          their names, a line each
 *   databases - OUT                          likewise
 *   branches DB.TABLE OUT                    likewise
 *   undb    DB.-                             drops a database with all its tables
 *   view-create DB.VIEW SCHEMA.json, view-show DB.VIEW OUT.json, view-alter DB.VIEW CHANGES.json, view-move DB.VIEW DB.NEW,
 *   view-drop DB.VIEW, views DB. OUT         JSON as REST has it; function-create, -show, -alter, -drop and functions likewise
 *   alter   DB.- CHANGES.jsonl OUT           lines {"table": NAME, "changes": [SchemaChange as REST has it]}, each through the catalog;
 *                                            OUT has a line each, empty or what it was refused with
 *
 * Each is answered by a line "ok NUMBER" (rows, or the latest snapshot's id) or "error WHAT". Values are
 * written as Tarn writes them; decimals are strings.
 */
public class TarnInterop {
    static final ObjectMapper JSON = new ObjectMapper();
    static Catalog catalog;

    public static void main(String[] a) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        Options o = new Options();
        o.set("warehouse", a[0].contains("://") ? a[0] : "file://" + a[0]);
        o.set("cache-enabled", "false"); // others write here, too
        for (int i = 1; i < a.length; i++) {
            o.set(a[i].substring(0, a[i].indexOf('=')), a[i].substring(a[i].indexOf('=') + 1));
        }
        catalog = CatalogFactory.createCatalog(CatalogContext.create(o));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                answers.println("ok " + carryOut(line.trim().split(" +")));
            } catch (Throwable e) {
                e.printStackTrace();
                Throwable c = e;
                while (c.getCause() != null && c.getCause() != c) {
                    c = c.getCause();
                }
                answers.println("error " + (c + " [" + e + "]").replaceAll("\\s+", " "));
            }
        }
    }

    static String read(String path) throws Exception {
        return new String(Files.readAllBytes(Paths.get(path)), StandardCharsets.UTF_8);
    }

    static long put(String path, Object value) throws Exception {
        Files.write(Paths.get(path), JsonSerdeUtil.toJson(value).getBytes(StandardCharsets.UTF_8));
        return 0;
    }

    static long carryOutView(String[] w) throws Exception {
        if (w[0].equals("views")) {
            List<String> names = catalog.listViews(w[1].substring(0, w[1].length() - 1));
            Files.write(Paths.get(w[2]), names);
            return names.size();
        }
        Identifier id = Identifier.fromString(w[1]);
        switch (w[0]) {
            case "view-create":
                ViewSchema s = JsonSerdeUtil.fromJson(read(w[2]), ViewSchema.class);
                catalog.createView(id, new ViewImpl(id, s.fields(), s.query(), s.dialects(), s.comment(), s.options()), false);
                return 0;
            case "view-show":
                View v = catalog.getView(id);
                return put(w[2], new ViewSchema(v.rowType().getFields(), v.query(), v.dialects(), v.comment().orElse(null), v.options()));
            case "view-alter":
                catalog.alterView(id, Arrays.asList(JsonSerdeUtil.fromJson(read(w[2]), ViewChange[].class)), false);
                return 0;
            case "view-move":
                catalog.renameView(id, Identifier.fromString(w[2]), false);
                return 0;
            default:
                catalog.dropView(id, false);
                return 0;
        }
    }

    static long carryOutFunction(String[] w) throws Exception {
        if (w[0].equals("functions")) {
            List<String> names = catalog.listFunctions(w[1].substring(0, w[1].length() - 1));
            Files.write(Paths.get(w[2]), names);
            return names.size();
        }
        Identifier id = Identifier.fromString(w[1]);
        switch (w[0]) {
            case "function-create":
                CreateFunctionRequest r = JsonSerdeUtil.fromJson(read(w[2]), CreateFunctionRequest.class);
                catalog.createFunction(id, new FunctionImpl(id, r.inputParams(), r.returnParams(), r.isDeterministic(), r.definitions(), r.comment(), r.options()), false);
                return 0;
            case "function-show":
                Function f = catalog.getFunction(id);
                return put(w[2], new CreateFunctionRequest(f));
            case "function-alter":
                catalog.alterFunction(id, Arrays.asList(JsonSerdeUtil.fromJson(read(w[2]), FunctionChange[].class)), false);
                return 0;
            default:
                catalog.dropFunction(id, false);
                return 0;
        }
    }

    static long carryOut(String[] w) throws Exception {
        if (w[0].startsWith("view")) {
            return carryOutView(w);
        }
        if (w[0].startsWith("function")) {
            return carryOutFunction(w);
        }
        if (w[0].equals("databases")) {
            List<String> names = catalog.listDatabases();
            Files.write(Paths.get(w[2]), names);
            return names.size();
        }
        if (w[0].equals("tables")) {
            List<String> names = catalog.listTables(w[1].substring(0, w[1].length() - 1));
            Files.write(Paths.get(w[2]), names);
            return names.size();
        }
        Identifier id = Identifier.fromString(w[1]);
        switch (w[0]) {
            case "create":
                catalog.createDatabase(id.getDatabaseName(), true);
                String text = new String(Files.readAllBytes(Paths.get(w[2])), StandardCharsets.UTF_8);
                catalog.createTable(id, JsonSerdeUtil.fromJson(text, Schema.class), false);
                return 0;
            case "write":
                return write(catalog.getTable(id).copy(options(w, 3)), Paths.get(w[2]), false);
            case "overwrite":
                return write(catalog.getTable(id).copy(options(w, 3)), Paths.get(w[2]), true);
            case "stream":
                return stream(catalog.getTable(id).copy(options(w, 4)), Paths.get(w[2]), Long.parseLong(w[3]));
            case "prepare":
                return prepare(catalog.getTable(id).copy(options(w, 4)), Paths.get(w[2]), Paths.get(w[3]));
            case "prepare-compact":
                return prepareCompact((FileStoreTable) catalog.getTable(id).copy(options(w, 3)), Paths.get(w[2]));
            case "compact":
                return compact((FileStoreTable) catalog.getTable(id).copy(options(w, 2)));
            case "dump":
                return dump(catalog.getTable(id).copy(options(w, 3)), Paths.get(w[2]));
            case "files":
                return files(catalog.getTable(id).copy(options(w, 3)), Paths.get(w[2]));
            case "where":
                return where((FileStoreTable) catalog.getTable(id), Paths.get(w[2]), w[3], w[4]);
            case "filter":
                return filter((FileStoreTable) catalog.getTable(id), w);
            case "entries":
                return entries((FileStoreTable) catalog.getTable(id), Paths.get(w[2]), Long.parseLong(w[3]));
            case "set":
                List<SchemaChange> changes = new ArrayList<>();
                options(w, 2).forEach((k, v) -> changes.add(SchemaChange.setOption(k, v)));
                catalog.alterTable(id, changes, false);
                return 0;
            case "drop":
                catalog.dropTable(id, false);
                return 0;
            case "rollback":
                ((FileStoreTable) catalog.getTable(id)).rollbackTo(Long.parseLong(w[2]));
                return Long.parseLong(w[2]);
            case "rollback-tag":
                ((FileStoreTable) catalog.getTable(id)).rollbackTo(w[2]);
                return 0;
            case "tag":
                if (w.length > 4) {
                    catalog.getTable(id).createTag(w[2], Long.parseLong(w[3]), Duration.ofSeconds(Long.parseLong(w[4])));
                } else {
                    catalog.getTable(id).createTag(w[2], Long.parseLong(w[3]));
                }
                return Long.parseLong(w[3]);
            case "tags":
                return tags((FileStoreTable) catalog.getTable(id), Paths.get(w[2]));
            case "untag":
                catalog.getTable(id).deleteTag(w[2]);
                return 0;
            case "branch":
                if (w.length > 3) {
                    catalog.getTable(id).createBranch(w[2], w[3]);
                } else {
                    catalog.getTable(id).createBranch(w[2]);
                }
                return 0;
            case "unbranch":
                catalog.getTable(id).deleteBranch(w[2]);
                return 0;
            case "forward":
                catalog.getTable(id).fastForward(w[2]);
                return 0;
            case "branches":
                List<String> branches = ((FileStoreTable) catalog.getTable(id)).branchManager().branches();
                Files.write(Paths.get(w[2]), branches);
                return branches.size();
            case "consumer":
                FileStoreTable read = (FileStoreTable) catalog.getTable(id);
                new ConsumerManager(read.fileIO(), read.location(), read.coreOptions().branch())
                        .resetConsumer(w[2], new Consumer(Long.parseLong(w[3])));
                return 0;
            case "undb":
                catalog.dropDatabase(id.getDatabaseName(), false, true);
                return 0;
            case "expire":
                int keep = Integer.parseInt(w[2]);
                return ((FileStoreTable) catalog.getTable(id)).newExpireSnapshots()
                        .config(ExpireConfig.builder().snapshotRetainMin(keep).snapshotRetainMax(keep)
                                .snapshotTimeRetain(Duration.ZERO).build())
                        .expire();
            case "race":
                return race(catalog.getTable(id), Paths.get(w[2]), Paths.get(w[3]));
            case "alter":
                return alterEach(id.getDatabaseName(), Paths.get(w[2]), Paths.get(w[3]));
            case "retype":
                return alter(id, SchemaChange.updateColumnType(w[2], type(w[3])));
            case "rename":
                return alter(id, SchemaChange.renameColumn(w[2], w[3]));
            case "remove":
                return alter(id, SchemaChange.dropColumn(w[2]));
            case "add":
                return alter(id, w.length == 4 ? SchemaChange.addColumn(w[2], type(w[3]))
                        : SchemaChange.addColumn(w[2], type(w[3]), null, SchemaChange.Move.first(w[2])));
            case "move":
                catalog.renameTable(id, Identifier.fromString(w[2]), false);
                return 0;
            default:
                throw new IllegalArgumentException("no command " + w[0]);
        }
    }

    static Map<String, String> options(String[] w, int from) {
        Map<String, String> m = new LinkedHashMap<>();
        for (int i = from; i < w.length; i++) {
            String[] kv = w[i].split("=", 2);
            m.put(kv[0], kv[1]);
        }
        return m;
    }

    static DataType type(String text) {
        return DataTypeJsonParser.parseAtomicTypeSQLString(text.replace('_', ' '));
    }

    static long alter(Identifier id, SchemaChange change) throws Exception {
        catalog.alterTable(id, Collections.singletonList(change), false);
        return 0;
    }

    static long alterEach(String database, Path changes, Path out) throws Exception {
        List<String> answers = new ArrayList<>();
        for (String line : Files.readAllLines(changes, StandardCharsets.UTF_8)) {
            JsonNode node = JSON.readTree(line);
            try {
                SchemaChange[] list = JsonSerdeUtil.fromJson(node.get("changes").toString(), SchemaChange[].class);
                catalog.alterTable(Identifier.create(database, node.get("table").asText()), Arrays.asList(list), false);
                answers.add("");
            } catch (Exception e) {
                answers.add((e.getClass().getSimpleName() + ": " + e.getMessage()).replaceAll("\\s+", " "));
            }
        }
        Files.write(out, answers, StandardCharsets.UTF_8);
        return answers.size();
    }

    static long latest(Table t) {
        return t instanceof FileStoreTable ? t.latestSnapshot().map(s -> s.id()).orElse(0L) : 0;
    }

    // ---------------------------------------------------------------- writing

    static IOManager scratch() {
        return IOManager.create(System.getProperty("java.io.tmpdir"));
    }

    static long write(Table t, Path rows, boolean overwrite) throws Exception {
        BatchWriteBuilder wb = t.newBatchWriteBuilder();
        if (overwrite) {
            wb.withOverwrite();
        }
        try (BatchTableWrite w = wb.newWrite(); BatchTableCommit c = wb.newCommit()) {
            w.withIOManager(scratch());
            fill(w, t, rows, overwrite);
            c.commit(w.prepareCommit());
        }
        return latest(t);
    }

    static long prepare(Table t, Path rows, Path out) throws Exception {
        try (BatchTableWrite w = t.newBatchWriteBuilder().newWrite()) {
            w.withIOManager(scratch());
            fill(w, t, rows, false);
            return serialize(w.prepareCommit(), out);
        }
    }

    static long prepareCompact(FileStoreTable t, Path out) throws Exception {
        t = t.copy(Collections.singletonMap("write-only", "false"));
        try (BatchTableWrite w = t.newBatchWriteBuilder().newWrite()) {
            w.withIOManager(scratch());
            for (BucketEntry b : t.newSnapshotReader().bucketEntries()) {
                w.compact(b.partition(), b.bucket(), true);
            }
            return serialize(w.prepareCommit(), out);
        }
    }

    static long serialize(List<CommitMessage> messages, Path out) throws Exception {
        CommitMessageSerializer serializer = new CommitMessageSerializer();
        List<String> lines = new ArrayList<>();
        lines.add(String.valueOf(serializer.getVersion()));
        for (CommitMessage m : messages) {
            lines.add(Base64.getEncoder().encodeToString(serializer.serialize(m)));
        }
        Files.write(out, lines);
        return messages.size();
    }

    static void each(Table t, Path rows, Sink sink) throws Exception {
        for (String line : Files.readAllLines(rows)) {
            JsonNode n = JSON.readTree(line);
            GenericRow r = row(t.rowType(), n);
            if (n.hasNonNull("rowkind")) {
                r.setRowKind(RowKind.fromShortString(n.get("rowkind").asText()));
            }
            sink.accept(r);
        }
    }

    interface Sink {
        void accept(InternalRow row) throws Exception;
    }

    /** Rows as its engines write them: buckets of keys by its own assigners, one at a time. */
    static void fill(BatchTableWrite w, Table table, Path rows, boolean overwrite) throws Exception {
        if (!(table instanceof FileStoreTable)) { // a format table
            each(table, rows, w::write);
            return;
        }
        FileStoreTable t = (FileStoreTable) table;
        TableWriteImpl<?> into = (TableWriteImpl<?>) w;
        if (t.bucketMode() == BucketMode.HASH_DYNAMIC) {
            RowPartitionKeyExtractor keys = new RowPartitionKeyExtractor(t.schema());
            long most = t.coreOptions().dynamicBucketTargetRowNum();
            int max = t.coreOptions().dynamicBucketMaxBuckets();
            BucketAssigner assigner = overwrite ? new SimpleHashBucketAssigner(1, 0, most, max)
                    : new HashBucketAssigner(t.snapshotManager(), "tarn-interop", t.store().newIndexFileHandler(), 1, 1, 0, most, max);
            each(t, rows, r -> into.write(r, assigner.assign(keys.partition(r), keys.trimmedPrimaryKey(r).hashCode())));
        } else if (t.bucketMode() == BucketMode.KEY_DYNAMIC) {
            GlobalIndexAssigner assigner = new GlobalIndexAssigner(t);
            ExecutorService threads = Executors.newSingleThreadExecutor();
            assigner.open(0, threads, scratch(), 1, 0, (row, bucket) -> {
                try {
                    into.write(row, bucket);
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            });
            if (!overwrite) {
                try (RecordReaderIterator<InternalRow> known = new RecordReaderIterator<>(new IndexBootstrap(t).bootstrap(1, 0))) {
                    while (known.hasNext()) {
                        assigner.bootstrapKey(known.next());
                    }
                }
            }
            assigner.endBoostrap(false);
            each(t, rows, assigner::processInput);
            assigner.close();
            threads.shutdown();
        } else {
            each(t, rows, w::write);
        }
    }

    static long race(Table t, Path first, Path second) throws Exception {
        BatchWriteBuilder a = t.newBatchWriteBuilder(), b = t.newBatchWriteBuilder();
        try (BatchTableWrite wa = a.newWrite(); BatchTableCommit ca = a.newCommit();
                BatchTableWrite wb = b.newWrite(); BatchTableCommit cb = b.newCommit()) {
            wa.withIOManager(scratch());
            wb.withIOManager(scratch());
            fill(wa, t, first, false);
            fill(wb, t, second, false);
            List<CommitMessage> ma = wa.prepareCommit(), mb = wb.prepareCommit();
            ca.commit(ma);
            cb.commit(mb);
        }
        return latest(t);
    }

    /** Every bucket to its top level; an unaware table's files by its own coordinator. */
    static long compact(FileStoreTable t) throws Exception {
        t = t.copy(Collections.singletonMap("write-only", "false"));
        BatchWriteBuilder wb = t.newBatchWriteBuilder();
        try (BatchTableWrite w = wb.newWrite(); BatchTableCommit c = wb.newCommit()) {
            w.withIOManager(scratch());
            if (t.bucketMode() == BucketMode.BUCKET_UNAWARE) {
                FileStoreTable few = t.copy(Collections.singletonMap("compaction.min.file-num", "2"));
                List<CommitMessage> messages = new ArrayList<>();
                BaseAppendFileStoreWrite rewrite =
                        (BaseAppendFileStoreWrite) few.store().newWrite("tarn-interop");
                try {
                    for (AppendCompactTask task : new AppendCompactCoordinator(few, false).run()) {
                        messages.add(task.doCompact(few, rewrite));
                    }
                } catch (EndOfScanException e) {
                    // how it says that there is nothing
                }
                rewrite.close();
                c.commit(messages);
            } else {
                for (BucketEntry b : t.newSnapshotReader().bucketEntries()) {
                    w.compact(b.partition(), b.bucket(), true);
                }
                c.commit(w.prepareCommit());
            }
        }
        return latest(t);
    }

    static GenericRow row(RowType type, JsonNode n) {
        GenericRow r = new GenericRow(type.getFieldCount());
        for (int i = 0; i < type.getFieldCount(); i++) {
            r.setField(i, parse(type.getTypeAt(i), n.get(type.getFieldNames().get(i))));
        }
        return r;
    }

    static Object parse(DataType type, JsonNode n) {
        if (n == null || n.isNull()) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return n.booleanValue();
            case TINYINT:
                return (byte) n.intValue();
            case SMALLINT:
                return (short) n.intValue();
            case INTEGER:
                return n.intValue();
            case BIGINT:
                return n.longValue();
            case FLOAT:
                return n.isTextual() ? Float.parseFloat(n.textValue()) : (float) n.doubleValue();
            case DOUBLE:
                return n.isTextual() ? Double.parseDouble(n.textValue()) : n.doubleValue();
            case DECIMAL:
                DecimalType d = (DecimalType) type;
                return Decimal.fromBigDecimal(new BigDecimal(n.asText()), d.getPrecision(), d.getScale());
            case CHAR:
            case VARCHAR:
                return BinaryString.fromString(n.textValue());
            case BINARY:
            case VARBINARY:
                return Base64.getDecoder().decode(n.textValue());
            case DATE:
                return (int) LocalDate.parse(n.textValue()).toEpochDay();
            case TIME_WITHOUT_TIME_ZONE:
                return (int) (LocalTime.parse(n.textValue()).toNanoOfDay() / 1_000_000);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return Timestamp.fromLocalDateTime(LocalDateTime.parse(n.textValue().replace(' ', 'T')));
            case ARRAY:
                Object[] items = new Object[n.size()];
                for (int i = 0; i < items.length; i++) {
                    items[i] = parse(((ArrayType) type).getElementType(), n.get(i));
                }
                return new GenericArray(items);
            case MAP:
                return parseMap((MapType) type, n);
            case ROW:
                return row((RowType) type, n);
            default:
                throw new IllegalArgumentException(type.toString());
        }
    }

    static GenericMap parseMap(MapType type, JsonNode n) {
        Map<Object, Object> m = new LinkedHashMap<>();
        if (n.isObject()) {
            for (Iterator<Map.Entry<String, JsonNode>> i = n.fields(); i.hasNext(); ) {
                Map.Entry<String, JsonNode> e = i.next();
                m.put(BinaryString.fromString(e.getKey()), parse(type.getValueType(), e.getValue()));
            }
        } else {
            for (JsonNode pair : n) {
                m.put(parse(type.getKeyType(), pair.get(0)), parse(type.getValueType(), pair.get(1)));
            }
        }
        return new GenericMap(m);
    }

    // ---------------------------------------------------------------- reading

    static long dump(Table t, Path to) throws Exception {
        ReadBuilder rb = t.newReadBuilder();
        RowType type = rb.readType();
        List<String> lines = new ArrayList<>();
        for (Split s : rb.newScan().plan().splits()) {
            try (RecordReader<InternalRow> r = rb.newRead().withIOManager(scratch()).createReader(s);
                    RecordReaderIterator<InternalRow> it = new RecordReaderIterator<>(r)) {
                while (it.hasNext()) {
                    lines.add(json(type, it.next()));
                }
            }
        }
        Collections.sort(lines);
        Files.write(to, lines);
        return lines.size();
    }

    static long files(Table t, Path to) throws Exception {
        List<String> lines = new ArrayList<>();
        for (Split s : t.newReadBuilder().newScan().plan().splits()) {
            for (DataFileMeta f : ((DataSplit) s).dataFiles()) {
                lines.add(f.fileName());
            }
        }
        Files.write(to, lines);
        return lines.size();
    }

    /** Rows that a reader is given where it says that it wants column = value: whole files are left out, their rows aren't looked at. */
    static long where(FileStoreTable t, Path to, String column, String value) throws Exception {
        RowType type = t.rowType();
        int at = type.getFieldIndex(column);
        Object literal = type.getTypeAt(at).getTypeRoot() == org.apache.paimon.types.DataTypeRoot.VARCHAR
                ? (Object) BinaryString.fromString(value) : (Object) Long.valueOf(value);
        ReadBuilder rb = t.newReadBuilder().withFilter(new org.apache.paimon.predicate.PredicateBuilder(type).equal(at, literal));
        long n = 0;
        for (Split s : rb.newScan().plan().splits()) {
            try (RecordReader<InternalRow> r = rb.newRead().withIOManager(scratch()).createReader(s);
                    RecordReaderIterator<InternalRow> it = new RecordReaderIterator<>(r)) {
                for (; it.hasNext(); it.next()) {
                    n++;
                }
            }
        }
        Files.write(to, Arrays.asList(Long.toString(n)));
        return n;
    }

    static long filter(FileStoreTable t, String[] w) throws Exception {
        List<ManifestCommittable> all = new ArrayList<>();
        for (String id : Arrays.asList(w).subList(4, w.length)) {
            all.add(new ManifestCommittable(Long.parseLong(id)));
        }
        List<String> lines = new ArrayList<>();
        try (FileStoreCommit commit = t.store().newCommit(w[3], t)) {
            for (ManifestCommittable left : commit.filterCommitted(all)) {
                lines.add(Long.toString(left.identifier()));
            }
        }
        Files.write(Paths.get(w[2]), lines);
        return lines.size();
    }

    /** Paimon 1.2 has none. */
    static Object firstRow(DataFileMeta f) throws Exception {
        try {
            return DataFileMeta.class.getMethod("firstRowId").invoke(f);
        } catch (NoSuchMethodException e) {
            return null;
        }
    }

    static long entries(FileStoreTable t, Path to, long snapshot) throws Exception {
        List<String> lines = new ArrayList<>();
        RowType partition = t.schema().logicalPartitionType();
        for (ManifestEntry e : t.store().newScan().withSnapshot(snapshot).withKind(ScanMode.DELTA).plan().files()) {
            DataFileMeta f = e.file();
            lines.add("{\"kind\": " + quote(e.kind().name()) + ", \"partition\": " + json(partition, e.partition()) + ", \"bucket\": " + e.bucket()
                    + ", \"level\": " + f.level() + ", \"rows\": " + f.rowCount() + ", \"first_row\": " + firstRow(f)
                    + ", \"low\": " + f.minSequenceNumber() + ", \"high\": " + f.maxSequenceNumber() + "}");
        }
        Files.write(to, lines);
        return lines.size();
    }

    static long tags(FileStoreTable t, Path to) throws Exception {
        long n = 0;
        try (java.io.Writer out = Files.newBufferedWriter(to)) {
            for (String name : new java.util.TreeSet<>(t.tagManager().allTagNames())) {
                org.apache.paimon.tag.Tag tag = t.tagManager().getOrThrow(name);
                Map<String, Object> o = new LinkedHashMap<>();
                o.put("tag", name);
                o.put("snapshot", tag.id());
                o.put("created", tag.getTagCreateTime() == null ? null : tag.getTagCreateTime().toString());
                o.put("retained", tag.getTagTimeRetained() == null ? null : tag.getTagTimeRetained().getSeconds());
                out.write(JSON.writeValueAsString(o) + "\n");
                n++;
            }
        }
        return n;
    }

    static long stream(Table t, Path to, long from) throws Exception {
        ReadBuilder rb = t.newReadBuilder();
        StreamTableScan scan = rb.newStreamScan();
        List<String> lines = new ArrayList<>();
        scan.restore(from);
        for (long last = latest(t); scan.checkpoint() <= last; ) {
            for (Split s : scan.plan().splits()) {
                try (RecordReader<InternalRow> r = rb.newRead().withIOManager(scratch()).createReader(s);
                        RecordReaderIterator<InternalRow> it = new RecordReaderIterator<>(r)) {
                    while (it.hasNext()) {
                        InternalRow row = it.next();
                        lines.add("{\"snapshot\": " + (scan.checkpoint() - 1) + ", \"rowkind\": " + quote(row.getRowKind().shortString())
                                + ", " + json(rb.readType(), row).substring(1));
                    }
                }
            }
        }
        Files.write(to, lines);
        return lines.size();
    }

    static String json(RowType type, InternalRow row) {
        StringBuilder b = new StringBuilder("{");
        for (int i = 0; i < type.getFieldCount(); i++) {
            DataField f = type.getFields().get(i);
            b.append(i == 0 ? "" : ", ").append(quote(f.name())).append(": ");
            b.append(text(f.type(), InternalRow.createFieldGetter(f.type(), i).getFieldOrNull(row)));
        }
        return b.append("}").toString();
    }

    static String text(DataType type, Object v) {
        if (v == null) {
            return "null";
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
            case TINYINT:
            case SMALLINT:
            case INTEGER:
            case BIGINT:
                return v.toString();
            case FLOAT:
            case DOUBLE:
                double d = ((Number) v).doubleValue();
                return Double.isNaN(d) || Double.isInfinite(d) ? quote(v.toString()) : v.toString();
            case DECIMAL:
                return ((Decimal) v).toBigDecimal().toPlainString();
            case CHAR:
            case VARCHAR:
                return quote(v.toString());
            case BINARY:
            case VARBINARY:
                return quote(Base64.getEncoder().encodeToString((byte[]) v));
            case DATE:
                return quote(LocalDate.ofEpochDay((Integer) v).toString());
            case TIME_WITHOUT_TIME_ZONE:
                return quote(LocalTime.ofNanoOfDay((Integer) v * 1_000_000L)
                        .format(DateTimeFormatter.ofPattern("HH:mm:ss.SSS")));
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                int p = DataTypeChecks.getPrecision(type);
                String pattern = "uuuu-MM-dd HH:mm:ss" + (p == 0 ? "" : "." + "SSSSSSSSS".substring(0, p));
                return quote(((Timestamp) v).toLocalDateTime().format(DateTimeFormatter.ofPattern(pattern)));
            case ARRAY:
                return array(((ArrayType) type).getElementType(), (InternalArray) v);
            case MAP:
                return map((MapType) type, (InternalMap) v);
            case ROW:
                return json((RowType) type, (InternalRow) v);
            default:
                throw new IllegalArgumentException(type.toString());
        }
    }

    static String array(DataType type, InternalArray a) {
        List<String> items = new ArrayList<>();
        for (int i = 0; i < a.size(); i++) {
            items.add(text(type, InternalArray.createElementGetter(type).getElementOrNull(a, i)));
        }
        return "[" + String.join(", ", items) + "]";
    }

    static String map(MapType type, InternalMap m) {
        DataType key = type.getKeyType(), val = type.getValueType();
        InternalArray keys = m.keyArray(), values = m.valueArray();
        boolean object = key.getTypeRoot().getFamilies().contains(DataTypeFamily.CHARACTER_STRING);
        List<String> items = new ArrayList<>();
        for (int i = 0; i < m.size(); i++) {
            String k = text(key, InternalArray.createElementGetter(key).getElementOrNull(keys, i));
            String v = text(val, InternalArray.createElementGetter(val).getElementOrNull(values, i));
            items.add(object ? k + ": " + v : "[" + k + ", " + v + "]");
        }
        return object ? "{" + String.join(", ", items) + "}" : "[" + String.join(", ", items) + "]";
    }

    static String quote(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\') {
                b.append('\\').append(c);
            } else if (c < 0x20) {
                b.append(String.format("\\u%04x", (int) c));
            } else {
                b.append(c);
            }
        }
        return b.append('"').toString();
    }
}
