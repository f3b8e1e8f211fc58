import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** The topics of one set, and what an administrator does to them. */
final class Topics {
    /** Rolls a segment with each hour of record time. */
    static final Map<String, String> HOURLY = Map.of("segment.ms", "" + Writer.HOUR);

    /**
     * Rolls a segment when its index is full, which is after about ten batches of a kilobyte or
     * more, whatever their timestamps.
     */
    static final Map<String, String> TINY_INDEX = Map.of(
            "segment.ms", "" + Long.MAX_VALUE,
            "segment.index.bytes", "128",
            "index.interval.bytes", "1024");

    private final Admin admin;
    private final Map<String, Integer> partitions = new TreeMap<>();

    Topics(Admin admin) {
        this.admin = admin;
    }

    void create(String name, int count, Map<String, String> settings) throws Exception {
        NewTopic topic = new NewTopic(name, count, (short) 1).configs(settings);
        admin.createTopics(List.of(topic)).all().get();
        partitions.put(name, count);
    }

    @SafeVarargs
    static Map<String, String> merge(Map<String, String>... parts) {
        Map<String, String> all = new HashMap<>();
        for (Map<String, String> part : parts) {
            all.putAll(part);
        }
        return all;
    }

    void set(String name, String key, String value) throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, name);
        admin.incrementalAlterConfigs(Map.of(topic, List.<AlterConfigOp>of(
                new AlterConfigOp(new ConfigEntry(key, value), OpType.SET)))).all().get();
    }

    void deleteRecordsBelow(String name, int partition, long offset) throws Exception {
        admin.deleteRecords(Map.of(new TopicPartition(name, partition),
                RecordsToDelete.beforeOffset(offset))).all().get();
    }

    void delete(String name) throws Exception {
        admin.deleteTopics(List.of(name)).all().get();
        partitions.remove(name);
    }

    Collection<TopicPartition> all() {
        return partitions.entrySet().stream().flatMap(topic ->
                java.util.stream.IntStream.range(0, topic.getValue())
                        .mapToObj(i -> new TopicPartition(topic.getKey(), i))).toList();
    }

    /** Every partition of the set with the cleanup policy that is in force for it now. */
    Map<String, String> cleanupPolicies() throws Exception {
        List<ConfigResource> names = partitions.keySet().stream()
                .map(name -> new ConfigResource(ConfigResource.Type.TOPIC, name)).toList();
        Map<String, String> policies = new TreeMap<>();
        admin.describeConfigs(names).all().get().forEach((topic, config) ->
                policies.put(topic.name(), config.get("cleanup.policy").value()));
        return policies;
    }
}
