import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ResultKind;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Flink SQL in one JVM, told what to do line by line, since a JVM costs seconds; each job has a mini cluster of its own, as Flink's local
 * executor has it. FlinkPeer [k=v]...: Flink's configuration.
 *
 *   batch SQL            one statement in batch mode (or streaming SQL); an INSERT is waited for. Rows: "row [kind, field...]", JSON texts
 *   streaming SQL
 *   start NAME SQL       an INSERT in streaming mode that goes on beside what follows; or a SELECT, whose rows `take` fetches
 *   take NAME N          the next N rows of a SELECT that was started
 *   await NAME           until that job ends by itself
 *   cancel NAME
 *   set KEY VALUE        configuration of the streaming mode
 *
 * Answers: "ok NUMBER" or "error WHAT".
 */
public final class FlinkPeer {
    private static final Map<String, TableResult> JOBS = new HashMap<>();
    private static final Map<String, CloseableIterator<Row>> ROWS = new HashMap<>();
    private static PrintStream out;

    public static void main(String[] args) throws Exception {
        out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
        System.setOut(System.err); // nobody else's words among the answers
        Configuration c = new Configuration();
        for (String kv : args) {
            c.setString(kv.split("=", 2)[0], kv.split("=", 2)[1]);
        }
        EnvironmentSettings.Builder b = EnvironmentSettings.newInstance().withConfiguration(c);
        TableEnvironment batch = TableEnvironment.create(b.inBatchMode().build());
        TableEnvironment streaming = TableEnvironment.create(b.inStreamingMode().build());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ", 2);
            try {
                out.println("ok " + answer(batch, streaming, words[0], words.length > 1 ? words[1] : ""));
            } catch (Throwable e) {
                e.printStackTrace();
                StringBuilder text = new StringBuilder();
                for (Throwable t = e; t != null; t = t.getCause()) {
                    text.append(' ').append(t);
                }
                out.println("error" + text.toString().replaceAll("\\s+", " "));
            }
        }
        System.exit(0); // the clusters' threads are not all daemons
    }

    private static long answer(TableEnvironment batch, TableEnvironment streaming, String word, String rest) throws Exception {
        String[] two = rest.split(" ", 2);
        switch (word) {
            case "batch":
                return run(batch, rest);
            case "streaming":
                return run(streaming, rest);
            case "set":
                streaming.getConfig().set(two[0], two[1]);
                return 0;
            case "start":
                TableResult job = streaming.executeSql(two[1]);
                JOBS.put(two[0], job);
                if (job.getResultKind() == ResultKind.SUCCESS_WITH_CONTENT && !two[1].toUpperCase().startsWith("INSERT")) {
                    ROWS.put(two[0], job.collect());
                }
                return 0;
            case "take":
                return take(ROWS.get(two[0]), Long.parseLong(two[1]));
            case "await":
                JOBS.remove(rest).await();
                return 0;
            case "cancel":
                JOBS.remove(rest).getJobClient().get().cancel().get();
                ROWS.remove(rest);
                return 0;
            default:
                throw new IllegalArgumentException("no command " + word);
        }
    }

    private static long run(TableEnvironment env, String sql) throws Exception {
        TableResult result = env.executeSql(sql);
        String up = sql.trim().toUpperCase();
        if (result.getJobClient().isPresent() && (up.startsWith("INSERT") || up.startsWith("UPDATE") || up.startsWith("DELETE"))) {
            result.await();
            return 0;
        }
        if (result.getResultKind() != ResultKind.SUCCESS_WITH_CONTENT) {
            return 0;
        }
        try (CloseableIterator<Row> rows = result.collect()) {
            return take(rows, Long.MAX_VALUE);
        }
    }

    private static long take(CloseableIterator<Row> rows, long most) {
        long n = 0;
        for (; n < most && rows.hasNext(); n++) {
            Row row = rows.next();
            StringBuilder text = new StringBuilder("row [" + quoted(row.getKind().shortString()));
            for (int i = 0; i < row.getArity(); i++) {
                text.append(", ").append(row.getField(i) == null ? "null" : quoted(text(row.getField(i))));
            }
            out.println(text.append(']'));
        }
        return n;
    }

    private static String text(Object value) {
        if (value instanceof byte[]) {
            return Arrays.toString((byte[]) value);
        }
        return value instanceof Object[] ? Arrays.deepToString((Object[]) value) : String.valueOf(value);
    }

    private static String quoted(String text) {
        StringBuilder s = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            s.append(c < ' ' || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        }
        return s.append('"').toString();
    }
}
