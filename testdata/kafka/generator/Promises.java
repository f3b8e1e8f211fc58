import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.stream.StreamSupport;

/**
 * What the sets exist for. A generation that no longer shows it, because another Kafka behaves in
 * another way, fails here instead of leaving tests that prove nothing.
 */
final class Promises {
    private final List<JsonNode> partitions = new ArrayList<>();
    private final List<JsonNode> segments = new ArrayList<>();
    private final List<String> broken = new ArrayList<>();

    private Promises(JsonNode document) {
        document.get("partitions").forEach(partitions::add);
        partitions.forEach(partition -> partition.get("segments").forEach(segments::add));
    }

    /** Throws with all that is missing when a set does not show what it is there to show. */
    static void check(JsonNode document, String set) {
        Promises promises = new Promises(document);
        promises.agreement();
        switch (set) {
            case "v4" -> promises.v4();
            case "v4-live" -> promises.live();
            case "magic0" -> promises.magic0();
            case "magic1" -> promises.magic1();
            default -> throw new IllegalArgumentException("no such set: " + set);
        }
        if (!promises.broken.isEmpty()) {
            throw new IllegalStateException(set + " does not have: " + promises.broken);
        }
    }

    /** The broker's answers and the files must tell the same story. */
    private void agreement() {
        for (JsonNode partition : partitions) {
            String name = partition.get("dir").asText();
            JsonNode all = partition.get("segments");
            long inFiles = sum(all, "records");
            long read = partition.get("read_uncommitted").get("records").asLong();
            boolean whole = partition.get("log_start").equals(all.get(0).get("base"));
            expect(name + ": as many records in the files as were read",
                    whole ? inFiles == read : inFiles > read);
            expect(name + ": the files end where the broker says",
                    all.get(all.size() - 1).get("next").equals(partition.get("log_end")));
        }
    }

    private void v4() {
        expect("all codecs", values("codecs").equals(
                Set.of("none", "gzip", "snappy", "lz4", "zstd")));
        expect("both timestamp types", values("timestamp_types").equals(
                Set.of("CreateTime", "LogAppendTime")));
        expect("two partitions with three closed segments near 1 MiB", partitions.stream()
                .filter(p -> closed(p).stream().filter(s -> bytes(s, ".log") > 900_000)
                        .count() >= 3).count() >= 2);
        expect("aborted transactions in several segments of one partition", any(p ->
                p.get("aborted").size() > 0 && closed(p).stream()
                        .filter(s -> bytes(s, ".txnindex") > 0).count() >= 3));
        expect("records that only read_uncommitted sees", any(p ->
                p.get("read_uncommitted").get("records").asLong()
                        > p.get("read_committed").get("records").asLong()));
        expect("an idle partition", any(p -> p.get("log_end").asLong() == 0));
        expect("timestamps of the future", segments.stream().anyMatch(s ->
                s.get("max_timestamp").asLong() > 4_000_000_000_000L));
        expect("a segment without timestamps", segments.stream().anyMatch(s ->
                s.get("records").asLong() > 0 && s.get("max_timestamp").asLong() == -1));
        for (String policy : List.of("compact", "delete")) {
            expect("gaps within and between segments, policy " + policy, any(p ->
                    p.get("cleanup_policy").asText().equals(policy) && gaps(p)));
        }
        expect("an empty batch", sum(segments, "empty_batches") > 0);
        expect("a delete horizon", segments.stream().anyMatch(s ->
                s.get("delete_horizon").asBoolean()));
        expect("a log start within a segment", any(p -> p.get("log_start").asLong()
                > p.get("segments").get(0).get("base").asLong()));
        expect("an emptied log", any(p -> p.get("log_start").asLong() > 0
                && p.get("log_start").equals(p.get("log_end"))));
        expect("four leader epochs", any(p -> p.get("leader_epochs").size() >= 4));
    }

    private void live() {
        expect("an active segment with an untrimmed index", any(p ->
                bytes(last(p), ".index") == 4096 && bytes(last(p), ".timeindex") == 4092));
        expect("an open transaction", any(p -> p.get("last_stable").asLong()
                < p.get("high_watermark").asLong()));
        expect("files that wait to be unlinked", any(p -> StreamSupport.stream(
                p.get("other_files").spliterator(), false)
                .anyMatch(file -> file.get("name").asText().endsWith(".log.deleted"))));
        expect("three closed segments", any(p -> closed(p).size() >= 3));
    }

    private void magic0() {
        expect("magic 0 alone", values("magics").equals(Set.of("0")));
        legacyCodecs();
    }

    private void magic1() {
        expect("magic 0, 1 and 2", values("magics").equals(Set.of("0", "1", "2")));
        expect("a segment of more than one magic", segments.stream().anyMatch(s ->
                s.get("magics").size() > 1));
        expect("timestamps by the broker", values("timestamp_types").contains("LogAppendTime"));
        expect("gaps that compaction left", any(Promises::gaps));
        legacyCodecs();
    }

    private void legacyCodecs() {
        expect("the codecs of old", values("codecs").equals(
                Set.of("none", "gzip", "snappy", "lz4")));
        expect("four partitions with three closed segments", partitions.stream()
                .filter(p -> closed(p).size() >= 3).count() >= 4);
    }

    private void expect(String what, boolean holds) {
        if (!holds) {
            broken.add(what);
        }
    }

    private boolean any(Predicate<JsonNode> holds) {
        return partitions.stream().anyMatch(holds);
    }

    private TreeSet<String> values(String field) {
        TreeSet<String> all = new TreeSet<>();
        segments.forEach(s -> s.get(field).forEach(value -> all.add(value.asText())));
        return all;
    }

    private static long sum(Iterable<JsonNode> nodes, String field) {
        return StreamSupport.stream(nodes.spliterator(), false)
                .mapToLong(node -> node.get(field).asLong()).sum();
    }

    private static List<JsonNode> closed(JsonNode partition) {
        List<JsonNode> closed = new ArrayList<>();
        partition.get("segments").forEach(closed::add);
        closed.remove(closed.size() - 1);
        return closed;
    }

    private static JsonNode last(JsonNode partition) {
        return partition.get("segments").get(partition.get("segments").size() - 1);
    }

    /** Whether offsets are missing in a segment, and between one segment and the next. */
    private static boolean gaps(JsonNode partition) {
        boolean between = false;
        JsonNode all = partition.get("segments");
        for (int i = 1; i < all.size(); i++) {
            between |= all.get(i - 1).get("next").asLong() < all.get(i).get("base").asLong();
        }
        return between && sum(all, "missing_offsets") > 0;
    }

    private static long bytes(JsonNode segment, String suffix) {
        return StreamSupport.stream(segment.get("files").spliterator(), false)
                .filter(file -> file.get("name").asText().endsWith(suffix))
                .mapToLong(file -> file.get("size").asLong()).sum();
    }
}
