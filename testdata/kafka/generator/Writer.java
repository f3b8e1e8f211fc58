import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A producer whose batches are as large as the caller wants them: what was sent between two flushes
 * is one batch per partition. Keys, values and timestamps come from a seed, never from the clock.
 */
final class Writer implements AutoCloseable {
    /** 2024-06-01T00:00:00Z, in milliseconds. */
    static final long EPOCH = 1_717_200_000_000L;
    static final long MINUTE = 60_000L;
    static final long HOUR = 60 * MINUTE;

    private static final String[] WORDS = {
        "segment", "offset", "ledger", "retention", "manifest", "archive", "broker", "epoch"};

    final KafkaProducer<byte[], byte[]> producer;
    private final Random random;
    private volatile Exception failure;

    private Writer(Properties settings, long seed) {
        producer = new KafkaProducer<>(settings);
        random = new Random(seed);
    }

    static Writer plain(Broker broker, String codec, long seed) {
        return new Writer(settings(broker, codec), seed);
    }

    static Writer transactional(Broker broker, String codec, String id, long seed) {
        Properties settings = settings(broker, codec);
        settings.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, id);
        settings.put(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG, 600_000);
        Writer writer = new Writer(settings, seed);
        writer.producer.initTransactions();
        return writer;
    }

    /** A producer without a producer id, which message formats before 2 have no room for. */
    static Writer legacy(Broker broker, String codec, long seed) {
        Properties settings = settings(broker, codec);
        settings.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, false);
        return new Writer(settings, seed);
    }

    private static Properties settings(Broker broker, String codec) {
        Properties settings = new Properties();
        settings.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrap());
        settings.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        settings.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        settings.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, codec);
        // Never send by size or by time: only flush() ends a batch.
        settings.put(ProducerConfig.BATCH_SIZE_CONFIG, 256 * 1024);
        settings.put(ProducerConfig.LINGER_MS_CONFIG, 100_000);
        settings.put(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, 200_000);
        return settings;
    }

    /** Queues one record; it is written at the next flush. */
    void send(String topic, int partition, long timestamp, byte[] key, byte[] value) {
        send(new ProducerRecord<>(topic, partition, timestamp, key, value));
    }

    void send(ProducerRecord<byte[], byte[]> record) {
        producer.send(record, (metadata, error) -> {
            if (error != null) {
                failure = error;
            }
        });
    }

    /** Ends the batch, and fails if any record since the last flush was refused. */
    void flush() {
        producer.flush();
        if (failure != null) {
            throw new IllegalStateException("produce", failure);
        }
    }

    /** Queues a record that carries -1, Kafka's "no timestamp", which its constructor refuses. */
    void sendWithoutTimestamp(String topic, int partition, byte[] key, byte[] value) {
        send(new ProducerRecord<byte[], byte[]>(topic, partition, null, key, value) {
            @Override
            public Long timestamp() {
                return -1L;
            }
        });
    }

    /** Writes one batch of records, their timestamps one millisecond apart. */
    void batch(String topic, int partition, long timestamp, int records, int valueBytes) {
        for (int i = 0; i < records; i++) {
            send(topic, partition, timestamp + i, key(i), value(valueBytes));
        }
        flush();
    }

    /**
     * Writes batches ten minutes of record time apart, so that a topic with segment.ms of an hour
     * gets a new segment with every seventh of them.
     */
    void batches(String topic, int partition, int first, int count, int records, int valueBytes) {
        for (int i = first; i < first + count; i++) {
            batch(topic, partition, EPOCH + i * 10 * MINUTE, records, valueBytes);
        }
    }

    static byte[] key(int number) {
        return bytes("key-" + number);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Half noise, half words: no codec makes it vanish, and every codec makes it smaller. */
    byte[] value(int size) {
        byte[] value = new byte[size];
        random.nextBytes(value);
        for (int at = size / 2; at < size; ) {
            byte[] word = bytes(WORDS[random.nextInt(WORDS.length)] + " ");
            int length = Math.min(word.length, size - at);
            System.arraycopy(word, 0, value, at, length);
            at += length;
        }
        return value;
    }

    @Override
    public void close() {
        producer.close();
    }
}
