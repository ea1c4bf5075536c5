import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.options.Options;
import org.apache.paimon.rest.RESTApi;
import org.apache.paimon.rest.responses.CreatePartitionsResponse;
import org.apache.paimon.rest.responses.DropPartitionsResponse;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.core.type.TypeReference;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.utils.JsonSerdeUtil;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * The calls of Paimon's REST catalog that its table library never makes on its own, told line by line (WAREHOUSE [k=v]... as TarnInterop):
 * what the catalog gives, or the name of what it throws. SPECS is a JSON array of objects, without blanks.
 *
 *   partitions   DB.TABLE                        all of them
 *   by-names     DB.TABLE SPECS
 *   create       DB.TABLE SPECS true|false       ignore those that are there?
 *   mark         DB.TABLE SPECS
 *   drop         DB.TABLE SPECS true|false       ignore those that aren't there?
 *   truncate     DB.TABLE SPECS                  as catalogs drop partitions of Paimon's tables: by a commit
 *   schema-back  DB.TABLE ID
 *   register     DB.TABLE PATH
 *   replace      DB.TABLE SCHEMA.json
 *   token        DB.TABLE
 */
public class RestGaps {
    public static void main(String[] a) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        Options o = new Options();
        o.set("warehouse", a[0]);
        for (int i = 1; i < a.length; i++) {
            o.set(a[i].substring(0, a[i].indexOf('=')), a[i].substring(a[i].indexOf('=') + 1));
        }
        Catalog catalog = CatalogFactory.createCatalog(CatalogContext.create(o));
        RESTApi api = new RESTApi(o, true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                answers.println("ok " + carryOut(catalog, api, line.trim().split(" +")));
            } catch (Throwable e) {
                e.printStackTrace();
                answers.println("error " + e.toString().replaceAll("\\s+", " "));
            }
        }
    }

    static List<Map<String, String>> specs(String json) throws Exception {
        return new ObjectMapper().readValue(json, new TypeReference<List<Map<String, String>>>() {});
    }

    static String json(Object... values) {
        return JsonSerdeUtil.toFlatJson(values.length == 1 ? values[0] : Arrays.asList(values));
    }

    static String carryOut(Catalog catalog, RESTApi api, String[] w) throws Exception {
        Identifier id = Identifier.fromString(w[1]);
        switch (w[0]) {
            case "partitions":
                return json(catalog.listPartitions(id));
            case "by-names":
                return json(catalog.listPartitionsByNames(id, specs(w[2])));
            case "create":
                CreatePartitionsResponse c = api.createPartitions(id, specs(w[2]), Boolean.parseBoolean(w[3]));
                return json(c.getCreated(), c.getExisted());
            case "mark":
                catalog.markDonePartitions(id, specs(w[2]));
                return "";
            case "drop":
                DropPartitionsResponse d = api.dropPartitions(id, specs(w[2]), Boolean.parseBoolean(w[3]));
                return json(d.getDropped(), d.getMissing());
            case "truncate":
                catalog.dropPartitions(id, specs(w[2]));
                return "";
            case "schema-back":
                catalog.rollbackSchema(id, Long.parseLong(w[2]));
                return "";
            case "register":
                catalog.registerTable(id, w[2]);
                return "";
            case "replace":
                String text = new String(Files.readAllBytes(Paths.get(w[2])), StandardCharsets.UTF_8);
                catalog.replaceTable(id, JsonSerdeUtil.fromJson(text, Schema.class), false);
                return "";
            case "token":
                return json(api.loadTableToken(id).getToken(), api.loadTableToken(id).getExpiresAtMillis());
            default:
                throw new IllegalArgumentException("no command " + w[0]);
        }
    }
}
