import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;

/**
 * The set v4-live: a log directory of Kafka 4 copied while its broker runs, with nobody writing.
 * Indexes of active segments are still as long as they were preallocated, a transaction is open,
 * and dropped segments and a deleted topic wait to be unlinked.
 */
final class Live {
    private static final Map<String, String> SETTINGS = Topics.merge(V4.SETTINGS, Map.of(
            "log.index.size.max.bytes", "4096",
            "log.segment.delete.delay.ms", "600000",
            "log.flush.offset.checkpoint.interval.ms", "500",
            "log.flush.start.offset.checkpoint.interval.ms", "500",
            "replica.high.watermark.checkpoint.interval.ms", "500"));

    private Live() {}

    static void generate(Path home, String classPath, Path out) throws Exception {
        try (Broker broker = Broker.kraft(home, classPath, SETTINGS)) {
            broker.start();
            try (Admin admin = broker.admin();
                    Writer open = Writer.transactional(broker, "none", "open", 5)) {
                Topics topics = new Topics(admin);
                fill(broker, topics, open);
                awaitCheckpoints(broker.logDir());
                Facts facts = Facts.ask(broker, admin, topics);
                Disk.copy(broker.logDir(), out);
                facts.write(out, Generate.MODERN, "from the running broker");
            }
        }
    }

    private static void fill(Broker broker, Topics topics, Writer open) throws Exception {
        topics.create("events", 2, Topics.HOURLY);
        topics.create("idle", 1, Map.of());
        topics.create("dropping", 1, Topics.HOURLY);
        topics.create("doomed", 1, Topics.HOURLY);
        topics.create("open-transaction", 1, Map.of("segment.ms", "" + Long.MAX_VALUE));
        try (Writer writer = Writer.plain(broker, "lz4", 1)) {
            writer.batches("events", 0, 0, 26, 20, 200);
            writer.batches("events", 1, 0, 3, 20, 200);
            writer.batches("dropping", 0, 0, 26, 10, 200);
            writer.batches("doomed", 0, 0, 8, 10, 200);
        }
        open.producer.beginTransaction();
        open.batch("open-transaction", 0, Writer.EPOCH, 5, 200);
        open.producer.commitTransaction();
        open.producer.beginTransaction();
        open.batch("open-transaction", 0, Writer.EPOCH + Writer.MINUTE, 5, 200);

        topics.deleteRecordsBelow("dropping", 0, 150);
        Await.until("the head of dropping waits to be unlinked", () ->
                Disk.names(broker.logDir().resolve("dropping-0")).stream()
                        .anyMatch(name -> name.endsWith(".log.deleted")));
        topics.delete("doomed");
        Await.until("doomed waits to be unlinked", () ->
                Disk.names(broker.logDir()).stream().anyMatch(name -> name.endsWith("-delete")));
    }

    /** Returns once the checkpoints on disk tell of all that was written. */
    private static void awaitCheckpoints(Path logDir) throws Exception {
        List<Long> bases = Disk.bases(logDir.resolve("events-0"));
        Await.until("checkpoints of events-0", () ->
                offset(logDir, "recovery-point", "events-0") == bases.get(bases.size() - 1)
                        && offset(logDir, "replication", "events-0") == 520
                        && offset(logDir, "log-start", "dropping-0") == 150);
    }

    private static long offset(Path logDir, String kind, String partition) throws Exception {
        return Disk.checkpoint(logDir.resolve(kind + "-offset-checkpoint"))
                .getOrDefault(partition, -1L);
    }
}
