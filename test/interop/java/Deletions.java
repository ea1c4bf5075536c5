import org.apache.paimon.Snapshot;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.deletionvectors.Bitmap64DeletionVector;
import org.apache.paimon.deletionvectors.BitmapDeletionVector;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.deletionvectors.append.BaseAppendDeleteFileMaintainer;
import org.apache.paimon.index.IndexFileHandler;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.options.Options;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.reader.RecordReaderIterator;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.Split;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Deletion vectors by Paimon's own Java library over a file-system warehouse, told what to do line by line as TarnInterop is:
 *
 *   delete  DB.TABLE COLUMN VALUE,VALUE...   marks the rows of an append table whose COLUMN is one of these, as one commit; answers
 *                                            the latest snapshot's id
 *   marked  DB.TABLE                         rows that the deletion vectors of the latest snapshot mark
 *   vectors DB.TABLE                         deletion vectors of the latest snapshot
 */
public class Deletions {
    static Catalog catalog;

    public static void main(String[] a) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        Options o = new Options();
        o.set("warehouse", "file://" + a[0]);
        o.set("cache-enabled", "false");
        catalog = CatalogFactory.createCatalog(CatalogContext.create(o));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                answers.println("ok " + carryOut(line.trim().split(" +")));
            } catch (Throwable e) {
                e.printStackTrace();
                answers.println("error " + String.valueOf(e).replaceAll("\\s+", " "));
            }
        }
    }

    static long carryOut(String[] w) throws Exception {
        FileStoreTable t = (FileStoreTable) catalog.getTable(Identifier.fromString(w[1]));
        switch (w[0]) {
            case "delete":
                return delete(t, w[2], new HashSet<>(Arrays.asList(w[3].split(","))));
            case "marked":
                return count(t, true);
            case "vectors":
                return count(t, false);
            default:
                throw new IllegalArgumentException(w[0]);
        }
    }

    static long count(FileStoreTable t, boolean rows) {
        long n = 0;
        Snapshot s = t.snapshotManager().latestSnapshot();
        for (IndexManifestEntry e : t.store().newIndexFileHandler().scan(s, "DELETION_VECTORS")) {
            for (DeletionVector v : t.store().newIndexFileHandler().dvIndex(e.partition(), e.bucket()).readAllDeletionVectors(e.indexFile()).values()) {
                n += rows ? v.getCardinality() : 1;
            }
        }
        return n;
    }

    /** Positions of a file count its rows, also those that are deleted already. */
    static DeletionVector find(FileStoreTable t, DataSplit s, DataFileMeta f, int column, Set<String> values) throws Exception {
        DeletionVector v = t.coreOptions().deletionVectorBitmap64() ? new Bitmap64DeletionVector() : new BitmapDeletionVector();
        InternalRow.FieldGetter get = InternalRow.createFieldGetter(t.rowType().getTypeAt(column), column);
        DataSplit one = DataSplit.builder().withSnapshot(s.snapshotId()).withPartition(s.partition()).withBucket(s.bucket())
                .withBucketPath(s.bucketPath()).withTotalBuckets(s.totalBuckets()).withDataFiles(Collections.singletonList(f))
                .rawConvertible(true).build();
        long at = 0;
        try (RecordReader<InternalRow> r = t.newRead().createReader(one);
                RecordReaderIterator<InternalRow> it = new RecordReaderIterator<>(r)) {
            for (; it.hasNext(); at++) {
                if (values.contains(String.valueOf(get.getFieldOrNull(it.next())))) {
                    v.delete(at);
                }
            }
        }
        return v;
    }

    static long delete(FileStoreTable t, String column, Set<String> values) throws Exception {
        IndexFileHandler handler = t.store().newIndexFileHandler();
        Snapshot latest = t.snapshotManager().latestSnapshot();
        Map<List<Object>, BaseAppendDeleteFileMaintainer> maintainers = new LinkedHashMap<>();
        Map<List<Object>, Integer> totals = new LinkedHashMap<>();
        int at = t.rowType().getFieldIndex(column);
        for (Split split : t.newScan().plan().splits()) {
            DataSplit s = (DataSplit) split;
            BinaryRow partition = s.partition();
            List<Object> key = Arrays.asList(partition, s.bucket());
            for (DataFileMeta f : s.dataFiles()) {
                DeletionVector v = find(t, s, f, at, values);
                if (v.isEmpty()) {
                    continue;
                }
                totals.put(key, s.totalBuckets());
                maintainers.computeIfAbsent(key, k -> t.bucketMode() == BucketMode.BUCKET_UNAWARE
                        ? BaseAppendDeleteFileMaintainer.forUnawareAppend(handler, latest, partition)
                        : BaseAppendDeleteFileMaintainer.forBucketedAppend(handler, latest, partition, s.bucket()))
                        .notifyNewDeletionVector(f.fileName(), v);
            }
        }
        List<CommitMessage> messages = new ArrayList<>();
        for (Map.Entry<List<Object>, BaseAppendDeleteFileMaintainer> m : maintainers.entrySet()) {
            List<IndexFileMeta> added = new ArrayList<>(), deleted = new ArrayList<>();
            for (IndexManifestEntry e : m.getValue().persist()) {
                (e.kind() == FileKind.ADD ? added : deleted).add(e.indexFile());
            }
            messages.add(new CommitMessageImpl(m.getValue().getPartition(), m.getValue().getBucket(), totals.get(m.getKey()),
                    new DataIncrement(Collections.emptyList(), Collections.emptyList(), Collections.emptyList(), added, deleted),
                    CompactIncrement.emptyIncrement()));
        }
        try (BatchTableCommit c = t.newBatchWriteBuilder().newCommit()) {
            c.commit(messages);
        }
        return t.snapshotManager().latestSnapshotId();
    }
}
