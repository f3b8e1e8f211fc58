import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.fluss.client.Connection;
import org.apache.fluss.client.admin.Admin;
import org.apache.fluss.client.table.Table;
import org.apache.fluss.client.table.scanner.ScanRecord;
import org.apache.fluss.client.table.scanner.log.LogScanner;
import org.apache.fluss.client.table.scanner.log.ScanRecords;
import org.apache.fluss.client.table.writer.AppendWriter;
import org.apache.fluss.client.table.writer.UpsertWriter;
import org.apache.fluss.metadata.DatabaseDescriptor;
import org.apache.fluss.metadata.LogFormat;
import org.apache.fluss.metadata.PartitionInfo;
import org.apache.fluss.metadata.PartitionSpec;
import org.apache.fluss.metadata.Schema;
import org.apache.fluss.metadata.TableBucket;
import org.apache.fluss.metadata.TableDescriptor;
import org.apache.fluss.metadata.TableInfo;
import org.apache.fluss.metadata.TablePath;
import org.apache.fluss.record.FileLogRecords;
import org.apache.fluss.record.LogRecordBatch;
import org.apache.fluss.row.BinaryString;
import org.apache.fluss.row.GenericRow;
import org.apache.fluss.server.log.checkpoint.OffsetCheckpointFile;
import org.apache.fluss.types.DataTypes;

/** Makes two sets: Generate VERSION CLEAN LIVE WORK, of a stopped server and of a running one. */
public final class Generate {
    private static final String DATABASE = "shop";
    private static final Pattern LOG =
            Pattern.compile("([^/]+)/([^/]+)-(\\d+)(?:/([^/]+)-p(\\d+))?/log-(\\d+)");
    private static final Pattern SEGMENT = Pattern.compile("(\\d{20})\\.(.*)");

    /** Whether the server is of the main branch: it knows statistics, and clients write magic 1. */
    private static boolean main;

    /** What the running cluster said of each log, by bucket. */
    private static final Map<TableBucket, Map<String, Object>> said = new LinkedHashMap<>();

    public static void main(String[] args) throws Exception {
        String version = args[0];
        main = !version.startsWith("0.");
        Path clean = Path.of(args[1]), live = Path.of(args[2]), work = Path.of(args[3]);
        Map<String, String> settings = new TreeMap<>(Cluster.SMALL);
        settings.put("log.replica.high-watermark.checkpoint-interval", "200ms");
        settings.put("remote.log.task-interval-duration", "0s"); // Its own tiering is off.
        settings.put("log.flush.offset.checkpoint-interval", "500ms");
        // However full the disk is that this runs on.
        settings.put("server.data-disk.write-limit-ratio", "0.999");
        settings.put("server.data-disk.write-recover-ratio", "0.998");
        try (Cluster cluster = new Cluster(work, settings)) {
            fill(cluster);
            cluster.stopTablet(); // A second life: the marker goes, and comes back.
            cluster.startTablet();
            more(cluster);
            awaitHighWatermarks(cluster.data);
            copy(cluster.data, live);
            Files.writeString(live.resolve("expected.json"), describe(version, live, "live"));
            cluster.stopTablet();
            copy(cluster.data, clean);
            Files.writeString(clean.resolve("expected.json"), describe(version, clean, "clean"));
        }
        System.exit(0); // Fluss leaves threads behind.
    }

    private static TableDescriptor.Builder descriptor(LogFormat format, Schema schema) {
        TableDescriptor.Builder b = TableDescriptor.builder().schema(schema).logFormat(format);
        if (main && format == LogFormat.ARROW && schema.getPrimaryKeyIndexes().length == 0) {
            b.property("table.statistics.columns", "*");
        }
        return b;
    }

    private static Schema plain(String... keys) {
        Schema.Builder b =
                Schema.newBuilder()
                        .column("id", DataTypes.INT())
                        .column("day", DataTypes.STRING())
                        .column("region", DataTypes.STRING())
                        .column("text", DataTypes.STRING());
        return (keys.length > 0 ? b.primaryKey(keys) : b).build();
    }

    private static void fill(Cluster cluster) throws Exception {
        try (Connection c = cluster.connect();
                Admin admin = c.getAdmin()) {
            admin.createDatabase(DATABASE, DatabaseDescriptor.EMPTY, false).get();
            create(admin, "orders", descriptor(LogFormat.ARROW, plain()).distributedBy(2));
            create(admin, "rows-1", descriptor(LogFormat.INDEXED, plain()).distributedBy(1));
            create(admin, "idle", descriptor(LogFormat.ARROW, plain()).distributedBy(1));
            create(
                    admin,
                    "visits",
                    descriptor(LogFormat.ARROW, plain()).distributedBy(1).partitionedBy("day"));
            create(
                    admin,
                    "sales",
                    descriptor(LogFormat.INDEXED, plain())
                            .distributedBy(1)
                            .partitionedBy("day", "region"));
            create(
                    admin,
                    "customers",
                    descriptor(LogFormat.ARROW, plain("id")).distributedBy(1, "id"));
            for (String day : List.of("2024-01-01", "2024-01-02")) {
                admin.createPartition(path("visits"), spec("day", day), false).get();
                for (String region : List.of("eu", "us")) {
                    PartitionSpec s = spec("day", day, "region", region);
                    admin.createPartition(path("sales"), s, false).get();
                }
            }
            append(c, "orders", 0, 500, "2024-01-01", "eu");
            append(c, "rows-1", 0, 300, "2024-01-01", "eu");
            append(c, "visits", 0, 250, "2024-01-01", "eu");
            append(c, "visits", 250, 20, "2024-01-02", "eu");
            append(c, "sales", 0, 200, "2024-01-01", "us");
            upsert(c, 0, 300);
            // Made anew under its old name: another table id, and offsets from 0.
            create(admin, "again", descriptor(LogFormat.ARROW, plain()).distributedBy(1));
            append(c, "again", 0, 30, "2024-01-01", "eu");
            admin.dropTable(path("again"), false).get();
            awaitGone(cluster.data.resolve(DATABASE), "again-");
            create(admin, "again", descriptor(LogFormat.ARROW, plain()).distributedBy(1));
            append(c, "again", 1000, 200, "2024-01-01", "eu");
        }
    }

    /** What is written after the server was started again. */
    private static void more(Cluster cluster) throws Exception {
        try (Connection c = cluster.connect();
                Admin admin = c.getAdmin()) {
            append(c, "orders", 500, 300, "2024-01-01", "eu");
            append(c, "visits", 270, 200, "2024-01-02", "eu");
            upsert(c, 100, 50);
            for (String table :
                    List.of("orders", "rows-1", "idle", "visits", "sales", "customers", "again")) {
                read(c, admin, table);
            }
        }
    }

    private static TablePath path(String table) {
        return TablePath.of(DATABASE, table);
    }

    private static PartitionSpec spec(String... words) {
        Map<String, String> values = new LinkedHashMap<>();
        for (int i = 0; i < words.length; i += 2) {
            values.put(words[i], words[i + 1]);
        }
        return new PartitionSpec(values);
    }

    private static void create(Admin admin, String table, TableDescriptor.Builder d)
            throws Exception {
        admin.createTable(path(table), d.build(), false).get();
    }

    private static GenericRow row(int i, String day, String region) {
        String text = "record %d of many: %s".formatted(i, Integer.toString(i * 7919, 36).repeat(4));
        return GenericRow.of(
                i,
                BinaryString.fromString(day),
                BinaryString.fromString(region),
                BinaryString.fromString(text));
    }

    private static void append(Connection c, String table, int from, int n, String day, String region)
            throws Exception {
        try (Table t = c.getTable(path(table))) {
            AppendWriter w = t.newAppend().createWriter();
            for (int i = from; i < from + n; i++) {
                var done = w.append(row(i, day, region));
                if (i % 10 == 9) {
                    w.flush(); // So batches are small, and end at the same records each time.
                    done.get();
                }
            }
            w.flush();
        }
    }

    private static void upsert(Connection c, int from, int n) throws Exception {
        try (Table t = c.getTable(path("customers"))) {
            UpsertWriter w = t.newUpsert().createWriter();
            for (int i = from; i < from + n; i++) {
                w.upsert(row(i, "2024-01-01", "eu"));
                if (i % 10 == 9) {
                    w.flush();
                }
            }
            // Deleting what is not there makes a batch without records.
            w.delete(row(-1, "2024-01-01", "eu"));
            w.flush();
        }
    }

    /** Reads a table as a client does, and notes what it got. */
    private static void read(Connection c, Admin admin, String table) throws Exception {
        TableInfo info = admin.getTableInfo(path(table)).get();
        try (Table t = c.getTable(path(table));
                LogScanner s = t.newScan().createLogScanner()) {
            List<TableBucket> buckets = new ArrayList<>();
            if (info.isPartitioned()) {
                for (PartitionInfo p : admin.listPartitionInfos(path(table)).get()) {
                    s.subscribeFromBeginning(p.getPartitionId(), 0);
                    buckets.add(new TableBucket(info.getTableId(), p.getPartitionId(), 0));
                }
            } else {
                for (int b = 0; b < info.getNumBuckets(); b++) {
                    s.subscribeFromBeginning(b);
                    buckets.add(new TableBucket(info.getTableId(), b));
                }
            }
            for (TableBucket b : buckets) {
                Map<String, Object> facts = new LinkedHashMap<>();
                facts.put("primary_key", info.hasPrimaryKey());
                facts.put("read", 0L);
                facts.put("read_to", 0L);
                said.put(b, facts);
            }
            for (int quiet = 0; quiet < 5; ) {
                ScanRecords got = s.poll(Duration.ofMillis(200));
                quiet = got.isEmpty() ? quiet + 1 : 0;
                for (TableBucket b : got.buckets()) {
                    Map<String, Object> facts = said.get(b);
                    for (ScanRecord r : got.records(b)) {
                        facts.merge("read", 1L, (x, y) -> (Long) x + (Long) y);
                        facts.put("read_to", r.logOffset() + 1);
                    }
                }
            }
        }
    }

    private static void awaitGone(Path dir, String prefix) throws Exception {
        for (int i = 0; i < 600; i++) {
            try (Stream<Path> s = Files.list(dir)) {
                if (s.noneMatch(p -> p.getFileName().toString().startsWith(prefix))) {
                    return;
                }
            }
            Thread.sleep(100);
        }
        throw new IllegalStateException(prefix + " is still in " + dir);
    }

    /** Waits until the server has written down that all was replicated. */
    private static void awaitHighWatermarks(Path data) throws Exception {
        for (int i = 0; i < 100; i++) {
            var marks = checkpoint(data, "high-watermark-checkpoint");
            boolean reached = true;
            for (var e : said.entrySet()) {
                long want = (Long) e.getValue().get("read_to");
                reached &= marks.getOrDefault(e.getKey(), -1L) >= want;
            }
            if (reached) {
                Thread.sleep(1000); // And that what was rolled is flushed.
                return;
            }
            Thread.sleep(100);
        }
        throw new IllegalStateException("the high watermarks are not written down");
    }

    private static Map<TableBucket, Long> checkpoint(Path data, String name) throws IOException {
        return new OffsetCheckpointFile(data.resolve(name).toFile()).read();
    }

    /** Copies the logs and what is beside them; RocksDB's files are not for tierd. */
    private static void copy(Path from, Path to) throws IOException {
        try (Stream<Path> all = Files.walk(from)) {
            for (Path p : all.sorted().toList()) {
                Path rest = from.relativize(p);
                boolean inKv = rest.getNameCount() > 1 && rest.toString().matches(".*/kv-\\d+/.*");
                boolean cache = rest.toString().startsWith(".historical-lookup-cache");
                if (inKv || cache || rest.toString().endsWith(".tmp")) {
                    continue;
                }
                Path target = to.resolve(rest);
                if (Files.isDirectory(p)) {
                    Files.createDirectories(target);
                } else {
                    Files.copy(p, target, StandardCopyOption.COPY_ATTRIBUTES);
                }
                if (rest.toString().matches(".*/kv-\\d+")) {
                    Files.writeString(target.resolve("README"), "RocksDB's files were here.\n");
                }
            }
        }
    }

    private static String describe(String version, Path set, String captured) throws Exception {
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("format", 1);
        all.put("fluss", version);
        all.put("captured", captured);
        all.put("clean_shutdown", Files.exists(set.resolve(".fluss_cleanshutdown")));
        List<Map<String, Object>> logs = new ArrayList<>();
        try (Stream<Path> dirs = Files.walk(set)) {
            for (Path dir : dirs.sorted().toList()) {
                Matcher m = LOG.matcher(set.relativize(dir).toString());
                if (m.matches() && Files.isDirectory(dir)) {
                    logs.add(describeLog(set, dir, m));
                }
            }
        }
        Promises.keep(logs, main, captured.equals("live"));
        all.put("logs", logs);
        return Json.write(all, "") + "\n";
    }

    private static Map<String, Object> describeLog(Path set, Path dir, Matcher m) throws Exception {
        long table = Long.parseLong(m.group(3));
        int number = Integer.parseInt(m.group(6));
        Long partition = m.group(5) == null ? null : Long.valueOf(m.group(5));
        TableBucket bucket = new TableBucket(table, partition, number);
        Map<String, Object> log = new LinkedHashMap<>();
        log.put("dir", set.relativize(dir).toString());
        log.put("database", m.group(1));
        log.put("table", m.group(2));
        log.put("table_id", table);
        log.put("partition", m.group(4) == null ? "" : m.group(4));
        log.put("partition_id", partition == null ? -1 : partition);
        log.put("bucket", number);
        var marks = checkpoint(set, "high-watermark-checkpoint");
        var points = checkpoint(set, "recovery-point-offset-checkpoint");
        log.put("high_watermark", marks.getOrDefault(bucket, -1L));
        log.put("recovery_point", points.getOrDefault(bucket, -1L));
        log.putAll(said.get(bucket));
        Map<Long, List<Path>> files = new TreeMap<>();
        List<String> others = new ArrayList<>();
        try (Stream<Path> all = Files.list(dir)) {
            for (Path p : all.sorted().toList()) {
                Matcher s = SEGMENT.matcher(p.getFileName().toString());
                boolean ofOne = s.matches() && Files.exists(dir.resolve(s.group(1) + ".log"));
                if (ofOne) {
                    files.computeIfAbsent(Long.valueOf(s.group(1)), k -> new ArrayList<>()).add(p);
                } else {
                    others.add(p.getFileName().toString());
                }
            }
        }
        List<Object> segments = new ArrayList<>();
        for (var e : files.entrySet()) {
            segments.add(describeSegment(dir, e.getKey(), e.getValue()));
        }
        log.put("segments", segments);
        log.put("other_files", others);
        return log;
    }

    private static Map<String, Object> describeSegment(Path dir, long base, List<Path> files)
            throws Exception {
        long next = base, records = 0, time = -1;
        int batches = 0, empty = 0, appendOnly = 0;
        TreeSet<Object> magics = new TreeSet<>(), writers = new TreeSet<>();
        Path name = dir.resolve("%020d.log".formatted(base));
        byte[] bytes = Files.readAllBytes(name);
        int position = 0;
        try (FileLogRecords log = FileLogRecords.open(name.toFile(), false)) {
            for (LogRecordBatch b : log.batches()) {
                b.ensureValid();
                batches++;
                records += b.getRecordCount();
                empty += b.getRecordCount() == 0 ? 1 : 0;
                appendOnly += bytes[position + 27] & 1; // The attributes, which have no getter.
                position += b.sizeInBytes();
                next = b.nextLogOffset();
                time = Math.max(time, b.commitTimestamp());
                magics.add((long) b.magic());
                writers.add(b.writerId());
            }
        }
        Map<String, Object> s = new LinkedHashMap<>();
        s.put("base", base);
        s.put("next", next);
        s.put("batches", batches);
        s.put("empty_batches", empty);
        s.put("append_only_batches", appendOnly);
        s.put("records", records);
        s.put("max_timestamp", time);
        s.put("magics", new ArrayList<>(magics));
        s.put("writers", new ArrayList<>(writers));
        List<Object> list = new ArrayList<>();
        for (Path p : files) {
            Map<String, Object> f = new LinkedHashMap<>();
            byte[] content = Files.readAllBytes(p);
            f.put("name", p.getFileName().toString());
            f.put("size", content.length);
            byte[] sum = MessageDigest.getInstance("SHA-256").digest(content);
            f.put("sha256", HexFormat.of().formatHex(sum));
            list.add(f);
        }
        s.put("files", list);
        return s;
    }

    /** Writes what the sets hold as JSON: maps, lists, strings, numbers, truths. */
    private static final class Json {
        static String write(Object o, String indent) {
            String in = indent + " ";
            if (o instanceof Map<?, ?> m) {
                return m.entrySet().stream()
                        .map(e -> in + quote(e.getKey()) + ": " + write(e.getValue(), in))
                        .collect(Collectors.joining(",\n", "{\n", "\n" + indent + "}"));
            }
            if (o instanceof List<?> l && l.stream().anyMatch(x -> x instanceof Map)) {
                return l.stream()
                        .map(x -> in + write(x, in))
                        .collect(Collectors.joining(",\n", "[\n", "\n" + indent + "]"));
            }
            if (o instanceof List<?> l) {
                return l.stream().map(x -> write(x, in)).collect(Collectors.joining(", ", "[", "]"));
            }
            return o instanceof String ? quote(o) : String.valueOf(o);
        }

        private static String quote(Object o) {
            return '"' + o.toString().replace("\\", "\\\\").replace("\"", "\\\"") + '"';
        }
    }
}
