import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * What is true of a set, said by Kafka alone: by the running broker to its own admin client and
 * consumer, and of the files by Kafka's own classes ({@link Segments}). README.md has the schema.
 */
final class Facts {
    private final Broker broker;
    private final Admin admin;
    private final Map<TopicPartition, Map<String, Object>> partitions = new LinkedHashMap<>();

    private Facts(Broker broker, Admin admin) {
        this.broker = broker;
        this.admin = admin;
    }

    /** Asks the running broker about every partition of the set. Nobody may be writing. */
    static Facts ask(Broker broker, Admin admin, Topics topics) throws Exception {
        Facts facts = new Facts(broker, admin);
        Map<String, String> policies = topics.cleanupPolicies();
        Map<String, Uuid> ids = new TreeMap<>();
        admin.describeTopics(policies.keySet()).allTopicNames().get()
                .forEach((name, topic) -> ids.put(name, topic.topicId()));
        for (TopicPartition partition : topics.all()) {
            Map<String, Object> said = new LinkedHashMap<>();
            said.put("dir", partition.toString());
            said.put("topic", partition.topic());
            said.put("partition", partition.partition());
            said.put("topic_id", ids.get(partition.topic()).toString());
            said.put("cleanup_policy", policies.get(partition.topic()));
            facts.offsets(partition, said);
            facts.records(partition, said);
            facts.partitions.put(partition, said);
        }
        return facts;
    }

    private void offsets(TopicPartition partition, Map<String, Object> said) throws Exception {
        long highWatermark = list(partition, OffsetSpec.latest(),
                IsolationLevel.READ_UNCOMMITTED).offset();
        long lag = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).values()
                .iterator().next().replicaInfos().get(partition).offsetLag();
        said.put("log_start", list(partition, OffsetSpec.earliest(),
                IsolationLevel.READ_UNCOMMITTED).offset());
        said.put("last_stable", list(partition, OffsetSpec.latest(),
                IsolationLevel.READ_COMMITTED).offset());
        said.put("high_watermark", highWatermark);
        said.put("log_end", highWatermark + lag);
    }

    private ListOffsetsResultInfo list(TopicPartition partition, OffsetSpec which,
            IsolationLevel isolation) throws Exception {
        return admin.listOffsets(Map.of(partition, which), new ListOffsetsOptions(isolation))
                .partitionResult(partition).get();
    }

    private void records(TopicPartition partition, Map<String, Object> said) throws Exception {
        List<Long> timestamps = new ArrayList<>();
        Digest all = read(partition, "read_uncommitted", timestamps);
        Digest committed = read(partition, "read_committed", new ArrayList<>());
        said.put("read_uncommitted", digest(all));
        said.put("read_committed", digest(committed));

        List<Object> lookups = new ArrayList<>();
        for (long timestamp : worthAsking(timestamps)) {
            ListOffsetsResultInfo found = list(partition, OffsetSpec.forTimestamp(timestamp),
                    IsolationLevel.READ_UNCOMMITTED);
            Map<String, Object> lookup = new LinkedHashMap<>();
            lookup.put("at_or_after", timestamp);
            lookup.put("offset", found.offset());
            lookup.put("timestamp", found.timestamp());
            lookups.add(lookup);
        }
        said.put("timestamp_lookups", lookups);
    }

    private static Map<String, Object> digest(Digest digest) {
        Map<String, Object> said = new LinkedHashMap<>();
        said.put("records", digest.records());
        said.put("sha256", digest.hex());
        return said;
    }

    /** The smallest, the middle, the largest timestamp, and one later than all. */
    private static Iterable<Long> worthAsking(List<Long> timestamps) {
        List<Long> usable = timestamps.stream().filter(t -> t >= 0).sorted().toList();
        TreeSet<Long> chosen = new TreeSet<>();
        if (!usable.isEmpty()) {
            chosen.add(usable.get(0));
            chosen.add(usable.get(usable.size() / 2));
            chosen.add(usable.get(usable.size() - 1));
            chosen.add(usable.get(usable.size() - 1) + 1);
        }
        return chosen;
    }

    private Digest read(TopicPartition partition, String isolation, List<Long> timestamps)
            throws Exception {
        Properties settings = new Properties();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, broker.bootstrap());
        settings.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, isolation);
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        Digest digest = new Digest();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            Await.until("all of " + partition + " is read", () -> {
                for (ConsumerRecord<byte[], byte[]> record
                        : consumer.poll(Duration.ofMillis(200)).records(partition)) {
                    digest.add(record);
                    timestamps.add(record.timestamp());
                }
                return consumer.position(partition) >= end;
            });
        }
        return digest;
    }

    /** Adds what the copied files say, and writes all of it as expected.json beside them. */
    void write(Path set, String kafka, String captured) throws Exception {
        List<String> ignored = new ArrayList<>();
        List<String> logDirFiles = new ArrayList<>();
        for (String name : Disk.names(set)) {
            if (!Files.isDirectory(set.resolve(name))) {
                logDirFiles.add(name);
            } else if (partitions.keySet().stream().noneMatch(p -> p.toString().equals(name))) {
                ignored.add(name);
            }
        }
        List<Object> all = new ArrayList<>();
        for (Map.Entry<TopicPartition, Map<String, Object>> entry : partitions.entrySet()) {
            Map<String, Object> said = entry.getValue();
            said.putAll(Segments.facts(set.resolve(entry.getKey().toString())));
            all.add(said);
        }
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("format", 1);
        document.put("kafka", kafka);
        document.put("captured", captured);
        document.put("clean_shutdown", logDirFiles.contains(".kafka_cleanshutdown"));
        document.put("log_dir_files", logDirFiles);
        document.put("other_dirs", ignored);
        document.put("partitions", all);
        ObjectMapper json = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);
        Promises.check(json.valueToTree(document), set.getFileName().toString());
        Files.writeString(set.resolve("expected.json"), json.writeValueAsString(document) + "\n");
    }
}
