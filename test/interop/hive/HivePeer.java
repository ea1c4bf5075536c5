import com.google.gson.GsonBuilder;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.Database;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.NoSuchObjectException;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.SerDeInfo;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.thrift.transport.TTransportException;

/**
 * Hive's own client of a metastore, told what to do line by line; answers "ok" or "error WHY". HivePeer URI.
 *
 *   dump FILE                 everything that is there, as JSON
 *   database DB               makes one, as somebody else would
 *   table DB.T LOCATION       makes one, as somebody else would: managed, one column, no mark
 *   drop DB.T | drop-database DB | drop-partition DB.T V1,V2 | add-partition DB.T V1,V2
 *   column DB.T NAME TYPE     changes the first column
 *   location DB.T URI | parameter DB.T KEY VALUE | unset DB.T KEY
 */
public class HivePeer {
    static HiveMetaStoreClient client;

    public static void main(String[] a) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                if (client == null) {
                    Configuration c = MetastoreConf.newMetastoreConf();
                    MetastoreConf.setVar(c, MetastoreConf.ConfVars.THRIFT_URIS, a[0]);
                    MetastoreConf.setBoolVar(c, MetastoreConf.ConfVars.EXECUTE_SET_UGI, false);
                    client = new HiveMetaStoreClient(c);
                }
                carryOut(line.trim().split(" +"));
                answers.println("ok");
            } catch (Throwable e) {
                e.printStackTrace();
                client = null;
                answers.println("error " + e.toString().replaceAll("\\s+", " "));
            }
        }
    }

    static void carryOut(String[] w) throws Exception {
        try {
            client.getAllDatabases();
        } catch (TTransportException e) {
            client.reconnect(); // it was started anew
        }
        if (w[0].equals("dump")) {
            Files.write(Paths.get(w[1]), new GsonBuilder().serializeNulls().create().toJson(databases()).getBytes(StandardCharsets.UTF_8));
            return;
        }
        String[] name = w[1].split("\\.");
        switch (w[0]) {
            case "database":
                client.createDatabase(new Database(w[1], "theirs", null, new HashMap<>()));
                return;
            case "drop-database":
                client.dropDatabase(w[1], false, false, true);
                return;
            case "table":
                client.createTable(theirs(name, w[2]));
                return;
            case "drop":
                client.dropTable(name[0], name[1], false, false);
                return;
            case "drop-partition":
                client.dropPartition(name[0], name[1], Arrays.asList(w[2].split(",")), false);
                return;
            default:
                alter(name, w);
        }
    }

    static void alter(String[] name, String[] w) throws Exception {
        Table t = client.getTable(name[0], name[1]);
        switch (w[0]) {
            case "column":
                t.getSd().getCols().set(0, new FieldSchema(w[2], w[3], "theirs"));
                break;
            case "location":
                t.getSd().setLocation(w[2]);
                break;
            case "parameter":
                t.getParameters().put(w[2], w[3]);
                break;
            case "unset":
                t.getParameters().remove(w[2]);
                break;
            case "add-partition":
                StorageDescriptor sd = new StorageDescriptor(t.getSd());
                sd.setLocation(null);
                client.add_partition(new Partition(Arrays.asList(w[2].split(",")), name[0], name[1], 1, 1, sd, new HashMap<>()));
                return;
            default:
                throw new IllegalArgumentException(w[0]);
        }
        client.alter_table(name[0], name[1], t);
    }

    static Table theirs(String[] name, String location) {
        Table t = new Table();
        t.setDbName(name[0]);
        t.setTableName(name[1]);
        t.setTableType("EXTERNAL_TABLE");
        StorageDescriptor sd = new StorageDescriptor();
        sd.setCols(new ArrayList<>(List.of(new FieldSchema("theirs", "int", ""))));
        sd.setLocation(location);
        sd.setSerdeInfo(new SerDeInfo("s", "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", new HashMap<>()));
        sd.setInputFormat("org.apache.hadoop.mapred.TextInputFormat");
        sd.setOutputFormat("org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat");
        t.setSd(sd);
        t.setParameters(new HashMap<>(Map.of("EXTERNAL", "TRUE")));
        return t;
    }

    // ---- what is there

    static Map<String, Object> databases() throws Exception {
        Map<String, Object> out = new TreeMap<>();
        for (String name : client.getAllDatabases()) {
            try {
                out.put(name, database(name));
            } catch (NoSuchObjectException e) {
                // dropped since it was listed, it or a table in it: as if it were asked a moment later
                out.remove(name);
                if (client.getAllDatabases().contains(name)) {
                    return databases();
                }
            }
        }
        return out;
    }

    static Map<String, Object> database(String name) throws Exception {
        Database d = client.getDatabase(name);
        Map<String, Object> facts = new TreeMap<>();
        facts.put("comment", d.getDescription());
        facts.put("location", d.getLocationUri());
        facts.put("owner", d.getOwnerName());
        facts.put("parameters", new TreeMap<>(d.getParameters()));
        Map<String, Object> tables = new TreeMap<>();
        for (String t : client.getAllTables(name)) {
            tables.put(t, table(client.getTable(name, t)));
        }
        facts.put("tables", tables);
        return facts;
    }

    static List<List<String>> columns(List<FieldSchema> fields) {
        List<List<String>> out = new ArrayList<>();
        for (FieldSchema f : fields) {
            out.add(Arrays.asList(f.getName(), f.getType(), f.getComment()));
        }
        return out;
    }

    static Map<String, Object> storage(StorageDescriptor sd) {
        Map<String, Object> out = new TreeMap<>();
        out.put("columns", columns(sd.getCols()));
        out.put("location", sd.getLocation());
        out.put("input", sd.getInputFormat());
        out.put("output", sd.getOutputFormat());
        out.put("serde", sd.getSerdeInfo().getSerializationLib());
        out.put("serde name", sd.getSerdeInfo().getName());
        out.put("serde parameters", new TreeMap<>(sd.getSerdeInfo().getParameters()));
        out.put("compressed", sd.isCompressed());
        out.put("buckets", sd.getNumBuckets());
        out.put("bucket columns", sd.getBucketCols());
        out.put("sort columns", String.valueOf(sd.getSortCols()));
        out.put("parameters", new TreeMap<>(sd.getParameters()));
        return out;
    }

    static Map<String, Object> table(Table t) throws Exception {
        Map<String, Object> out = new TreeMap<>();
        out.put("type", t.getTableType());
        out.put("owner", t.getOwner());
        out.put("retention", t.getRetention());
        out.put("storage", storage(t.getSd()));
        out.put("keys", columns(t.getPartitionKeys()));
        out.put("parameters", new TreeMap<>(t.getParameters()));
        Map<String, Object> partitions = new TreeMap<>();
        if (!t.getPartitionKeys().isEmpty()) {
            for (Partition p : client.listPartitions(t.getDbName(), t.getTableName(), (short) -1)) {
                Map<String, Object> facts = new TreeMap<>();
                facts.put("storage", storage(p.getSd()));
                facts.put("parameters", new TreeMap<>(p.getParameters()));
                partitions.put(String.join(",", p.getValues()), facts);
            }
        }
        out.put("partitions", partitions);
        return out;
    }
}
