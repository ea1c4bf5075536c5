import org.apache.paimon.deletionvectors.Bitmap64DeletionVector;
import org.apache.paimon.deletionvectors.BitmapDeletionVector;
import org.apache.paimon.deletionvectors.DeletionVector;

import java.io.DataOutputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongPredicate;

/**
 * Makes test/golden/deletion_vector with Paimon's own library: GoldenVectors FOLDER. narrow.index and wide.index hold the same
 * vectors in both forms; vectors.txt says of each form and vector: offset, length, cardinality. Which rows they are is a rule
 * that test/unit/format/deletion_vector_test.c has, too.
 */
public class GoldenVectors {
    static final List<String> lines = new ArrayList<>();

    static void put(DataOutputStream out, boolean wide, String name, long rows, LongPredicate rule) throws Exception {
        DeletionVector v = wide ? new Bitmap64DeletionVector() : new BitmapDeletionVector();
        for (long i = 0; i < rows; i++)
            if (rule.test(i)) v.delete(i);
        int start = out.size();
        int length = v.serializeTo(out);
        lines.add((wide ? "wide " : "narrow ") + name + " " + start + " " + length + " " + v.getCardinality());
    }

    public static void main(String[] a) throws Exception {
        Path folder = Files.createDirectories(Paths.get(a[0]));
        for (boolean wide : new boolean[] {false, true}) {
            try (OutputStream file = Files.newOutputStream(folder.resolve(wide ? "wide.index" : "narrow.index"));
                    DataOutputStream out = new DataOutputStream(file)) {
                out.writeByte(1);
                put(out, wide, "few", 10, i -> i == 3 || i == 5);
                put(out, wide, "one", 1, i -> true);
                put(out, wide, "edges", 200000, i -> i == 65535 || i == 65536 || i == 131071);
                put(out, wide, "third", 200000, i -> i % 3 == 0);
                put(out, wide, "half", 200000, i -> i < 100000);
                put(out, wide, "runs", 300000, i -> i % 1000 < 37);
                put(out, wide, "all", 70000, i -> true);
                put(out, wide, "many", 9 * 65536, i -> i % 65536 == i / 65536);
            }
        }
        Files.write(folder.resolve("vectors.txt"), lines);
    }
}
