import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** What the broker has on disk: looking at it while it works, and taking a copy of it. */
final class Disk {
    private static final Pattern KEPT = Pattern.compile(String.join("|",
            "\\d{20}\\.(log|index|timeindex|txnindex|snapshot)(\\.deleted)?",
            "leader-epoch-checkpoint",
            "partition\\.metadata",
            "meta\\.properties",
            "(recovery-point|log-start|replication|cleaner)-offset-checkpoint",
            "\\.kafka_cleanshutdown"));

    private Disk() {}

    /**
     * Kafka's own metadata log: left out, because its indexes stay at the 10 MiB of their
     * preallocation even after a clean shutdown.
     */
    private static final String LEFT_OUT = "__cluster_metadata-0";

    /** Copies a log directory as it is, without locks and temporary files. */
    static void copy(Path from, Path to) throws IOException {
        Files.walkFileTree(from, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes ignored) {
                return folder.getFileName().toString().equals(LEFT_OUT)
                        ? FileVisitResult.SKIP_SUBTREE : FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes ignored)
                    throws IOException {
                if (KEPT.matcher(file.getFileName().toString()).matches()) {
                    Path copy = to.resolve(from.relativize(file).toString());
                    Files.createDirectories(copy.getParent());
                    Files.copy(file, copy);
                }
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFileFailed(Path file, IOException failure)
                    throws IOException {
                // A running broker's temporary files come and go; those that count must be there.
                if (KEPT.matcher(file.getFileName().toString()).matches()) {
                    throw failure;
                }
                return FileVisitResult.CONTINUE;
            }
        });
    }

    /** The names in a folder, sorted. */
    static List<String> names(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).sorted().toList();
        }
    }

    /** The base offsets of the segments in a partition's folder, ascending. */
    static List<Long> bases(Path partition) throws IOException {
        return names(partition).stream().filter(name -> name.endsWith(".log"))
                .map(name -> Long.parseLong(name.substring(0, 20))).toList();
    }

    /** A checkpoint of lines "topic partition offset", as "topic-partition" to offset. */
    static Map<String, Long> checkpoint(Path file) throws IOException {
        Map<String, Long> offsets = new TreeMap<>();
        if (Files.exists(file)) {
            for (String line : Files.readAllLines(file)) {
                String[] words = line.split(" ");
                if (words.length == 3) {
                    offsets.put(words[0] + "-" + words[1], Long.parseLong(words[2]));
                }
            }
        }
        return offsets;
    }

    /** Returns once no file of a partition waits to be unlinked. */
    static void awaitNothingToUnlink(Path partition) throws Exception {
        Await.until("unlinked in " + partition, () ->
                names(partition).stream().noneMatch(name -> name.endsWith(".deleted")));
    }

    /** Returns once the cleaner has been through every closed segment of a partition. */
    static void awaitCleaned(Path logDir, String partition) throws Exception {
        Await.until("cleaned " + partition, () -> {
            List<Long> bases = bases(logDir.resolve(partition));
            long active = bases.get(bases.size() - 1);
            return checkpoint(logDir.resolve("cleaner-offset-checkpoint"))
                    .getOrDefault(partition, -1L) >= active;
        });
        awaitNothingToUnlink(logDir.resolve(partition));
    }
}
