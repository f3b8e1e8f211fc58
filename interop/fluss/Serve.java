import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.fluss.client.Connection;
import org.apache.fluss.client.admin.Admin;
import org.apache.fluss.client.table.Table;
import org.apache.fluss.client.table.scanner.ScanRecord;
import org.apache.fluss.client.table.scanner.log.LogScanner;
import org.apache.fluss.client.table.scanner.log.ScanRecords;
import org.apache.fluss.client.table.writer.AppendWriter;
import org.apache.fluss.client.table.writer.UpsertWriter;
import org.apache.fluss.metadata.DatabaseDescriptor;
import org.apache.fluss.metadata.PartitionInfo;
import org.apache.fluss.metadata.PartitionSpec;
import org.apache.fluss.metadata.Schema;
import org.apache.fluss.metadata.TableDescriptor;
import org.apache.fluss.metadata.TablePath;
import org.apache.fluss.row.BinaryString;
import org.apache.fluss.row.GenericRow;
import org.apache.fluss.types.DataTypes;

/**
 * A Fluss cluster that does what it is told, a line of standard input each, and answers with a line
 * "ok", or "error" and why. It ends with its input.
 *
 * <pre>
 *   start                 the tablet server, on its directory as it is now
 *   stop
 *   append DAY FROM N     N records to the partition of shop.visits, whose texts are numbers
 *   upsert FROM N         N rows of shop.customers
 *   read DAY              a line "offset text" for each record of the partition, before the "ok"
 * </pre>
 */
public final class Serve {
    private static final TablePath VISITS = TablePath.of("shop", "visits");
    private static final TablePath CUSTOMERS = TablePath.of("shop", "customers");

    public static void main(String[] args) throws Exception {
        Map<String, String> settings = new TreeMap<>(Cluster.SMALL);
        settings.put("log.replica.high-watermark.checkpoint-interval", "200ms");
        settings.put("remote.log.task-interval-duration", "0s"); // Its own tiering is off.
        try (Cluster cluster = new Cluster(Path.of(args[0]), settings);
                BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
            create(cluster);
            System.out.println("ok");
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                try {
                    serve(cluster, line.split(" "));
                    System.out.println("ok");
                } catch (Exception e) {
                    System.out.println("error " + e.toString().replace('\n', ' '));
                }
            }
        }
        System.exit(0); // Fluss leaves threads behind.
    }

    private static void serve(Cluster cluster, String[] words) throws Exception {
        switch (words[0]) {
            case "start" -> cluster.startTablet();
            case "stop" -> cluster.stopTablet();
            case "append" ->
                    append(cluster, words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]));
            case "upsert" -> upsert(cluster, Integer.parseInt(words[1]), Integer.parseInt(words[2]));
            case "read" -> read(cluster, words[1]);
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static void create(Cluster cluster) throws Exception {
        try (Connection c = cluster.connect();
                Admin admin = c.getAdmin()) {
            admin.createDatabase("shop", DatabaseDescriptor.EMPTY, false).get();
            Schema visits =
                    Schema.newBuilder()
                            .column("day", DataTypes.STRING())
                            .column("text", DataTypes.STRING())
                            .build();
            admin.createTable(
                            VISITS,
                            TableDescriptor.builder()
                                    .schema(visits)
                                    .partitionedBy("day")
                                    .distributedBy(1)
                                    .build(),
                            false)
                    .get();
            for (String day : new String[] {"2024-01-01", "2024-01-02"}) {
                admin.createPartition(VISITS, new PartitionSpec(Map.of("day", day)), false).get();
            }
            Schema customers =
                    Schema.newBuilder()
                            .column("id", DataTypes.INT())
                            .column("text", DataTypes.STRING())
                            .primaryKey("id")
                            .build();
            admin.createTable(
                            CUSTOMERS,
                            TableDescriptor.builder().schema(customers).distributedBy(1).build(),
                            false)
                    .get();
        }
    }

    private static void append(Cluster cluster, String day, int from, int n) throws Exception {
        try (Connection c = cluster.connect();
                Table t = c.getTable(VISITS)) {
            AppendWriter w = t.newAppend().createWriter();
            for (int i = from; i < from + n; i++) {
                BinaryString text = BinaryString.fromString("%064d".formatted(i));
                var done = w.append(GenericRow.of(BinaryString.fromString(day), text));
                if (i % 20 == 19) {
                    w.flush();
                    done.get();
                }
            }
            w.flush();
        }
    }

    private static void upsert(Cluster cluster, int from, int n) throws Exception {
        try (Connection c = cluster.connect();
                Table t = c.getTable(CUSTOMERS)) {
            UpsertWriter w = t.newUpsert().createWriter();
            for (int i = from; i < from + n; i++) {
                w.upsert(GenericRow.of(i, BinaryString.fromString("%064d".formatted(i))));
                if (i % 20 == 19) {
                    w.flush();
                }
            }
            w.flush();
        }
    }

    /** Reads until nothing more comes for a second. */
    private static void read(Cluster cluster, String day) throws Exception {
        try (Connection c = cluster.connect();
                Admin admin = c.getAdmin();
                Table t = c.getTable(VISITS);
                LogScanner s = t.newScan().createLogScanner()) {
            Map<String, Long> ids = new HashMap<>();
            for (PartitionInfo p : admin.listPartitionInfos(VISITS).get()) {
                ids.put(p.getPartitionName(), p.getPartitionId());
            }
            s.subscribeFromBeginning(ids.get(day), 0);
            StringBuilder out = new StringBuilder();
            for (int quiet = 0; quiet < 5; ) {
                ScanRecords got = s.poll(Duration.ofMillis(200));
                quiet = got.isEmpty() ? quiet + 1 : 0;
                for (ScanRecord r : got) {
                    out.append(r.logOffset()).append(' ').append(r.getRow().getString(1)).append('\n');
                }
            }
            System.out.print(out);
        }
    }
}
