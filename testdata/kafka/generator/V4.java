import static java.util.Map.entry;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The set v4: a log directory of Kafka 4 after clean shutdowns, with all that can be in one. */
final class V4 {
    static final Map<String, String> SETTINGS = Map.ofEntries(
            entry("offsets.topic.segment.bytes", "1048576"),
            entry("transaction.state.log.segment.bytes", "1048576"),
            entry("log.segment.bytes", "1048576"),
            entry("log.retention.check.interval.ms", "500"),
            entry("log.initial.task.delay.ms", "500"),
            entry("log.segment.delete.delay.ms", "1000"),
            entry("log.cleaner.backoff.ms", "250"),
            entry("log.cleaner.dedupe.buffer.size", "4194304"),
            // Record time is fixed and in the past, or oddly far from now: all of it is welcome.
            entry("log.message.timestamp.before.max.ms", "" + Long.MAX_VALUE),
            entry("log.message.timestamp.after.max.ms", "" + Long.MAX_VALUE));

    private static final long YEAR = 365 * 24 * Writer.HOUR;
    private static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");

    private final Broker broker;
    private final Topics topics;

    private V4(Broker broker, Topics topics) {
        this.broker = broker;
        this.topics = topics;
    }

    static void generate(Path home, String classPath, Path out) throws Exception {
        try (Broker broker = Broker.kraft(home, classPath, SETTINGS)) {
            broker.start();
            Facts facts;
            try (Admin admin = broker.admin()) {
                V4 set = new V4(broker, new Topics(admin));
                set.fill();
                facts = Facts.ask(broker, admin, set.topics);
            }
            broker.stop();
            Disk.copy(broker.logDir(), out);
            facts.write(out, Generate.MODERN, "after a clean shutdown");
        }
    }

    private void fill() throws Exception {
        codecs();
        orders();
        transactions();
        appendTime();
        headersAndNulls();
        oddTimes();
        topics.create("idle", 2, Map.of());
        compacted("compacted", 1, "" + 10 * YEAR);
        compacted("formerly-compacted", 2, "0");
        afterCompaction("formerly-compacted");
        trimmed();
        groupOffset();
        epochs();
    }

    /** One topic for each codec, segments of an hour. */
    private void codecs() throws Exception {
        for (String codec : CODECS) {
            String topic = "codec-" + codec;
            topics.create(topic, 1, Topics.HOURLY);
            try (Writer writer = Writer.plain(broker, codec, codec.hashCode())) {
                writer.batches(topic, 0, 0, 24, 20, 200);
            }
        }
    }

    /**
     * Segments that are full at the smallest size that Kafka 4 allows. Partition 1 changes its
     * codec with every batch, and its records are not in the order of their timestamps.
     */
    private void orders() throws Exception {
        topics.create("orders-2024", 2, Map.of(
                "segment.bytes", "1048576", "segment.ms", "" + Long.MAX_VALUE));
        try (Writer writer = Writer.plain(broker, "none", 21)) {
            for (int i = 0; i < 68; i++) {
                writer.batch("orders-2024", 0, Writer.EPOCH + i * Writer.MINUTE, 50, 1000);
            }
        }
        Random random = new Random(22);
        List<Writer> writers = new ArrayList<>();
        try {
            for (String codec : CODECS) {
                writers.add(Writer.plain(broker, codec, 23 + codec.hashCode()));
            }
            for (int i = 0; i < 100; i++) {
                Writer writer = writers.get(i % writers.size());
                List<Integer> order = new ArrayList<>();
                for (int n = 0; n < 50; n++) {
                    order.add(n);
                }
                Collections.shuffle(order, random);
                for (int n : order) {
                    writer.send("orders-2024", 1, Writer.EPOCH + i * Writer.MINUTE + n,
                            Writer.key(n), writer.value(1000));
                }
                writer.flush();
            }
        } finally {
            writers.forEach(Writer::close);
        }
    }

    /**
     * Two producers whose transactions overlap, committed and aborted by turns, records outside of
     * transactions between them, and one transaction that spans most of the log and is aborted.
     */
    private void transactions() throws Exception {
        topics.create("transactions", 2, Topics.TINY_INDEX);
        try (Writer first = Writer.transactional(broker, "none", "first", 31);
                Writer second = Writer.transactional(broker, "lz4", "second", 32);
                Writer longest = Writer.transactional(broker, "none", "longest", 33);
                Writer outside = Writer.plain(broker, "gzip", 34)) {
            longest.producer.beginTransaction();
            for (int round = 0; round < 12; round++) {
                long time = Writer.EPOCH + round * Writer.HOUR;
                first.producer.beginTransaction();
                second.producer.beginTransaction();
                for (int partition = 0; partition < 2; partition++) {
                    first.batch("transactions", partition, time, 3, 400);
                    second.batch("transactions", partition, time + Writer.MINUTE, 4, 400);
                    outside.batch("transactions", partition, time + 2 * Writer.MINUTE, 5, 400);
                    first.batch("transactions", partition, time + 3 * Writer.MINUTE, 3, 400);
                }
                if (round % 4 == 1) {
                    longest.batch("transactions", 0, time + 4 * Writer.MINUTE, 2, 400);
                }
                end(first, round % 3 != 1);
                end(second, round % 4 != 2);
            }
            longest.producer.abortTransaction();
        }
    }

    private static void end(Writer writer, boolean commit) {
        if (commit) {
            writer.producer.commitTransaction();
        } else {
            writer.producer.abortTransaction();
        }
    }

    private void appendTime() throws Exception {
        topics.create("append-time", 1, Topics.merge(Topics.TINY_INDEX,
                Map.of("message.timestamp.type", "LogAppendTime")));
        try (Writer plain = Writer.plain(broker, "none", 41);
                Writer zipped = Writer.plain(broker, "gzip", 42)) {
            for (int i = 0; i < 40; i++) {
                (i % 2 == 0 ? plain : zipped).batch("append-time", 0, Writer.EPOCH + i, 8, 300);
            }
        }
    }

    private void headersAndNulls() throws Exception {
        String topic = "headers_and.nulls";
        topics.create(topic, 1, Topics.HOURLY);
        try (Writer writer = Writer.plain(broker, "none", 51)) {
            byte[] empty = {};
            for (int i = 0; i < 24; i++) {
                long time = Writer.EPOCH + i * 10 * Writer.MINUTE;
                writer.send(topic, 0, time, null, writer.value(50));
                writer.send(topic, 0, time, Writer.key(i), null);
                writer.send(topic, 0, time, null, null);
                writer.send(topic, 0, time, empty, empty);
                ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
                        topic, 0, time, Writer.key(i), writer.value(30));
                record.headers().add(new RecordHeader("trace", Writer.bytes("id-" + i)));
                record.headers().add(new RecordHeader("trace", Writer.bytes("twice")));
                record.headers().add(new RecordHeader("null", null));
                record.headers().add(new RecordHeader("", empty));
                record.headers().add(new RecordHeader("größe-\u4e2d", new byte[] {0, -1, 127}));
                writer.send(record);
                writer.flush();
            }
        }
    }

    /** Partition 0: near and absurd timestamps by turns; 1: none at all; 2: all in the future. */
    private void oddTimes() throws Exception {
        long year2100 = 4_102_444_800_000L;
        topics.create("odd-times", 3, Topics.TINY_INDEX);
        try (Writer writer = Writer.plain(broker, "none", 61)) {
            for (int i = 0; i < 30; i++) {
                writer.batch("odd-times", 0, Writer.EPOCH + i * Writer.MINUTE, 5, 300);
                writer.send("odd-times", 0, 0, Writer.key(i), writer.value(300));
                writer.sendWithoutTimestamp("odd-times", 0, Writer.key(i), writer.value(300));
                writer.flush();
                if (i == 12) {
                    writer.batch("odd-times", 0, year2100, 2, 300);
                }
                for (int n = 0; n < 5; n++) {
                    writer.sendWithoutTimestamp("odd-times", 1, Writer.key(n), writer.value(300));
                }
                writer.flush();
                writer.batch("odd-times", 2, year2100 + i * Writer.MINUTE, 5, 300);
            }
        }
    }

    /**
     * A topic that the cleaner has been through: most keys were written many times, some once, some
     * were deleted; one producer's last records were all superseded, which leaves an empty batch;
     * and a transaction was aborted. Every round is one pass of the cleaner: the second takes away
     * what the first has marked, if the delete retention is over by then.
     */
    private void compacted(String topic, int rounds, String deleteRetentionMillis)
            throws Exception {
        topics.create(topic, 1, Topics.merge(Topics.TINY_INDEX, Map.of(
                "cleanup.policy", "compact",
                "delete.retention.ms", deleteRetentionMillis)));
        try (Writer writer = Writer.plain(broker, "none", 71);
                Writer zipped = Writer.plain(broker, "zstd", 72);
                Writer superseded = Writer.plain(broker, "none", 73);
                Writer aborted = Writer.transactional(broker, "none", topic, 74)) {
            for (int round = 0; round < rounds; round++) {
                // At a ratio of one the cleaner waits, so that it sees all of the round or nothing.
                topics.set(topic, "min.cleanable.dirty.ratio", "1.0");
                if (round == 0) {
                    superseded.batch(topic, 0, Writer.EPOCH, 3, 300);
                    aborted.producer.beginTransaction();
                    aborted.batch(topic, 0, Writer.EPOCH, 6, 300);
                    aborted.producer.abortTransaction();
                }
                for (int i = 60 * round; i < 60 * (round + 1); i++) {
                    keyed(topic, i % 4 == 3 ? zipped : writer, i);
                }
                topics.set(topic, "min.cleanable.dirty.ratio", "0.01");
                Disk.awaitCleaned(broker.logDir(), topic + "-0");
            }
        }
    }

    /** Writes one batch of keys that come again, keys that do not, and now and then a tombstone. */
    private static void keyed(String topic, Writer writer, int batch) {
        long time = Writer.EPOCH + batch * Writer.MINUTE;
        for (int n = 0; n < 6; n++) {
            boolean repeated = n % 2 == 0 || batch % 5 == 0;
            byte[] key = repeated ? Writer.key((batch + n) % 7)
                    : Writer.bytes("once-" + batch + "-" + n);
            writer.send(topic, 0, time + n, key, writer.value(300));
        }
        if (batch % 8 == 5) {
            writer.send(topic, 0, time + 7, Writer.bytes("once-" + (batch - 1) + "-1"), null);
        }
        writer.flush();
    }

    /** Ends the compaction of a topic and goes on writing: the gaps stay where they are. */
    private void afterCompaction(String topic) throws Exception {
        topics.set(topic, "cleanup.policy", "delete");
        try (Writer writer = Writer.plain(broker, "none", 75)) {
            for (int i = 120; i < 150; i++) {
                writer.batch(topic, 0, Writer.EPOCH + i * Writer.MINUTE, 6, 300);
            }
        }
    }

    /** Partition 0 starts within a segment, 1 has nothing left, 2 starts with a segment. */
    private void trimmed() throws Exception {
        topics.create("trimmed", 3, Topics.HOURLY);
        try (Writer writer = Writer.plain(broker, "none", 81)) {
            for (int partition = 0; partition < 3; partition++) {
                writer.batches("trimmed", partition, 0, 40, 10, 200);
            }
        }
        List<Long> bases = Disk.bases(broker.logDir().resolve("trimmed-2"));
        Map<Integer, Long> starts = new HashMap<>();
        starts.put(0, bases.get(2) + 13);
        starts.put(1, 400L);
        starts.put(2, bases.get(2));
        for (Map.Entry<Integer, Long> start : starts.entrySet()) {
            topics.deleteRecordsBelow("trimmed", start.getKey(), start.getValue());
            Path folder = broker.logDir().resolve("trimmed-" + start.getKey());
            Await.until("the head dropped in " + folder, () ->
                    Disk.bases(folder).get(0) > bases.get(1));
            Disk.awaitNothingToUnlink(folder);
        }
    }

    /** Writes the log under several leader epochs: each start of the broker begins a new one. */
    private void epochs() throws Exception {
        topics.create("epochs", 2, Topics.HOURLY);
        for (int term = 0; term < 4; term++) {
            try (Writer writer = Writer.plain(broker, "snappy", 91 + term)) {
                writer.batches("epochs", 0, 8 * term, 8, 10, 200);
                if (term % 2 == 0) {
                    writer.batches("epochs", 1, 8 * term, 8, 10, 200);
                }
            }
            broker.restart();
        }
    }

    /** Commits one offset of one group, so that __consumer_offsets exists. */
    private void groupOffset() {
        Properties settings = new Properties();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrap());
        settings.put(ConsumerConfig.GROUP_ID_CONFIG, "readers");
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        TopicPartition partition = new TopicPartition("codec-none", 0);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(17)));
        }
    }
}
