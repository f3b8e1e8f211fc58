import java.util.List;
import java.util.Map;

/** What a set has to show, so that a test that relies on it does not pass on an empty one. */
final class Promises {
    private Promises() {}

    /** Refuses logs, as expected.json describes them, that do not show it. */
    static void keep(List<Map<String, Object>> logs, boolean main, boolean live) {
        for (String table : List.of("orders", "rows-1", "visits", "again", "customers")) {
            demand(rolled(logs, table), table + " has a log with more than one segment");
        }
        demand(logs.stream().anyMatch(l -> !"".equals(l.get("partition"))), "partitions");
        demand(
                logs.stream().anyMatch(l -> l.get("partition").toString().contains("$")),
                "a partition of two keys");
        demand(
                logs.stream().anyMatch(l -> l.get("table").equals("idle")),
                "a log that was never written");
        demand(sum(logs, "customers", "empty_batches") > 0, "a batch without records");
        demand(sum(logs, "customers", "append_only_batches") == 0, "a changelog says so");
        demand(
                sum(logs, "orders", "append_only_batches") == sum(logs, "orders", "batches"),
                "a log of appends says so");
        demand(
                logs.stream().filter(l -> l.get("table").equals("again")).count() == 1,
                "the table made anew is there once");
        long magic = main ? 1 : 0;
        demand(
                logs.stream()
                        .filter(l -> l.get("table").equals("orders"))
                        .flatMap(l -> segments(l).stream())
                        .allMatch(s -> s.get("magics").equals(List.of(magic))),
                "magic " + magic);
        // The main branch writes them down while it runs, up to the last segment that was rolled.
        demand(behind(logs) == live, "recovery points are behind in a running server alone");
    }

    private static boolean rolled(List<Map<String, Object>> logs, String table) {
        return logs.stream()
                .anyMatch(l -> l.get("table").equals(table) && segments(l).size() > 1);
    }

    private static boolean behind(List<Map<String, Object>> logs) {
        return logs.stream()
                .anyMatch(l -> (Long) l.get("recovery_point") < (Long) l.get("high_watermark"));
    }

    private static int sum(List<Map<String, Object>> logs, String table, String field) {
        return logs.stream()
                .filter(l -> l.get("table").equals(table))
                .flatMap(l -> segments(l).stream())
                .mapToInt(s -> (Integer) s.get(field))
                .sum();
    }

    @SuppressWarnings("unchecked")
    private static List<Map<String, Object>> segments(Map<String, Object> log) {
        return (List<Map<String, Object>>) log.get("segments");
    }

    private static void demand(boolean shown, String what) {
        if (!shown) {
            throw new IllegalStateException("the set does not show: " + what);
        }
    }
}
