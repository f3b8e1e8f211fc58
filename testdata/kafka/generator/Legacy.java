import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;

/**
 * The sets magic0 and magic1: log directories of a Kafka 2.8 told to write the message formats of
 * Kafka 0.9 and 0.10. The producer is of today; the broker converts, so that every byte on disk is
 * its own.
 */
final class Legacy {
    private static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4");
    private static final Map<String, String> SMALL = Map.of(
            "segment.bytes", "8192",
            "segment.index.bytes", "1024",
            "index.interval.bytes", "1024",
            "segment.ms", "" + Long.MAX_VALUE);

    private final Broker broker;
    private final Topics topics;

    private Legacy(Broker broker, Topics topics) {
        this.broker = broker;
        this.topics = topics;
    }

    static void magic0(Path home, String classPath, Path out) throws Exception {
        generate(home, classPath, out, "0.9.0", set -> { });
    }

    static void magic1(Path home, String classPath, Path out) throws Exception {
        generate(home, classPath, out, "0.10.0", set -> {
            set.appendTime();
            set.compacted();
            set.upgraded();
        });
    }

    /** What one set has and the other has not. */
    private interface More {
        void fill(Legacy set) throws Exception;
    }

    private static void generate(Path home, String classPath, Path out, String format, More more)
            throws Exception {
        try (Broker broker = Broker.zooKeeper(home, classPath, Map.of(
                "log.message.format.version", format,
                "log.cleaner.backoff.ms", "250",
                "log.cleaner.dedupe.buffer.size", "4194304",
                "log.segment.delete.delay.ms", "1000"))) {
            broker.start();
            Facts facts;
            try (Admin admin = broker.admin()) {
                Legacy set = new Legacy(broker, new Topics(admin));
                set.codecs();
                set.topics.create("idle", 1, Map.of());
                more.fill(set);
                facts = Facts.ask(broker, admin, set.topics);
            }
            broker.stop();
            Disk.copy(broker.logDir(), out);
            facts.write(out, Generate.LEGACY, "after a clean shutdown");
        }
    }

    private void codecs() throws Exception {
        for (String codec : CODECS) {
            String topic = "codec-" + codec;
            topics.create(topic, 1, SMALL);
            try (Writer writer = Writer.legacy(broker, codec, codec.hashCode())) {
                for (int i = 0; i < 30; i++) {
                    long time = Writer.EPOCH + i * Writer.MINUTE;
                    writer.send(topic, 0, time, null, writer.value(40));
                    writer.send(topic, 0, time, Writer.key(i), null);
                    writer.sendWithoutTimestamp(topic, 0, Writer.key(i), writer.value(40));
                    writer.batch(topic, 0, time, 8, 150);
                }
            }
        }
    }

    private void appendTime() throws Exception {
        topics.create("append-time", 1, Topics.merge(SMALL,
                Map.of("message.timestamp.type", "LogAppendTime")));
        try (Writer plain = Writer.legacy(broker, "none", 41);
                Writer zipped = Writer.legacy(broker, "gzip", 42)) {
            for (int i = 0; i < 20; i++) {
                (i % 2 == 0 ? plain : zipped).batch("append-time", 0, Writer.EPOCH + i, 8, 150);
            }
        }
    }

    /** Compaction within wrappers: the inner offsets that remain are no longer dense. */
    private void compacted() throws Exception {
        topics.create("compacted", 1, Topics.merge(SMALL, Map.of(
                "cleanup.policy", "compact",
                "min.cleanable.dirty.ratio", "0.01",
                // Merging would leave one segment: the limit of an index keeps them apart.
                "segment.index.bytes", "64",
                "index.interval.bytes", "512")));
        try (Writer plain = Writer.legacy(broker, "none", 71);
                Writer zipped = Writer.legacy(broker, "gzip", 72)) {
            for (int i = 0; i < 40; i++) {
                Writer turn = i % 2 == 0 ? plain : zipped;
                for (int n = 0; n < 6; n++) {
                    // A segment has five batches: nothing of the fifth outlives the cleaner.
                    boolean repeated = n % 2 == 0 || i % 5 == 4;
                    byte[] key = repeated ? Writer.key((i + n) % 7)
                            : Writer.bytes("once-" + i + "-" + n);
                    turn.send("compacted", 0, Writer.EPOCH + i * Writer.MINUTE + n,
                            key, turn.value(150));
                }
                turn.flush();
            }
        }
        Disk.awaitCleaned(broker.logDir(), "compacted-0");
    }

    /** A log that has lived through the upgrades: magic 0, then 1, then 2, in the same files. */
    private void upgraded() throws Exception {
        topics.create("upgraded", 1, SMALL);
        int batch = 0;
        for (String format : List.of("0.9.0", "0.10.0", "2.8")) {
            topics.set("upgraded", "message.format.version", format);
            try (Writer plain = Writer.legacy(broker, "none", 81 + batch);
                    Writer zipped = Writer.legacy(broker, "gzip", 82 + batch)) {
                for (int i = 0; i < 9; i++, batch++) {
                    (i % 2 == 0 ? plain : zipped).batch("upgraded", 0,
                            Writer.EPOCH + batch * Writer.MINUTE, 8, 150);
                }
            }
        }
    }
}
