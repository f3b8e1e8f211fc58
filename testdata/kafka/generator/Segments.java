import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.common.message.AbortedTxn;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.storage.internals.log.TransactionIndex;

/** What the files of one partition hold, read by Kafka's own classes. */
final class Segments {
    private final Path folder;
    private final List<Object> epochs = new ArrayList<>();
    private final List<Object> aborted = new ArrayList<>();
    private int lastEpoch = RecordBatch.NO_PARTITION_LEADER_EPOCH;

    private Segments(Path folder) {
        this.folder = folder;
    }

    static Map<String, Object> facts(Path folder) throws Exception {
        Segments segments = new Segments(folder);
        List<String> unclaimed = new ArrayList<>(Disk.names(folder));
        List<Object> all = new ArrayList<>();
        for (long base : Disk.bases(folder)) {
            Map<String, Object> said = new LinkedHashMap<>();
            said.put("base", base);
            String stem = stem(base) + ".";
            List<String> own = unclaimed.stream().filter(name -> name.startsWith(stem)
                    && !name.endsWith(".deleted")).toList();
            unclaimed.removeAll(own);
            segments.log(base, said);
            segments.abortedTransactions(base);
            said.put("files", segments.files(own));
            all.add(said);
        }
        Map<String, Object> said = new LinkedHashMap<>();
        said.put("leader_epochs", segments.epochs);
        said.put("leader_epoch_checkpoint", segments.epochCheckpoint());
        said.put("aborted", segments.aborted);
        said.put("segments", all);
        said.put("other_files", segments.files(unclaimed));
        return said;
    }

    private static String stem(long base) {
        return String.format("%020d", base);
    }

    private List<Object> files(List<String> names) throws Exception {
        List<Object> files = new ArrayList<>();
        for (String name : names) {
            Map<String, Object> said = new LinkedHashMap<>();
            said.put("name", name);
            said.put("size", Files.size(folder.resolve(name)));
            said.put("sha256", Digest.of(folder.resolve(name)));
            files.add(said);
        }
        return files;
    }

    private void log(long base, Map<String, Object> said) throws Exception {
        long batches = 0;
        long controlBatches = 0;
        long emptyBatches = 0;
        long records = 0;
        long missing = 0;
        long next = base;
        long maxTimestamp = RecordBatch.NO_TIMESTAMP;
        TreeSet<Integer> magics = new TreeSet<>();
        TreeSet<String> codecs = new TreeSet<>();
        TreeSet<String> timestampTypes = new TreeSet<>();
        boolean deleteHorizon = false;
        try (FileRecords log = FileRecords.open(folder.resolve(stem(base) + ".log").toFile(),
                false)) {
            for (RecordBatch batch : log.batches()) {
                batch.ensureValid();
                batches++;
                controlBatches += batch.isControlBatch() ? 1 : 0;
                long count = 0;
                long first = -1;
                for (Record record : batch) {
                    first = count == 0 ? record.offset() : first;
                    count++;
                }
                emptyBatches += count == 0 ? 1 : 0;
                records += batch.isControlBatch() ? 0 : count;
                // A legacy wrapper knows its last offset alone, so its first record stands in.
                long from = batch.magic() < RecordBatch.MAGIC_VALUE_V2 ? first : batch.baseOffset();
                missing += from - next + (batch.nextOffset() - from - count);
                next = batch.nextOffset();
                maxTimestamp = Math.max(maxTimestamp, batch.maxTimestamp());
                magics.add((int) batch.magic());
                codecs.add(batch.compressionType().name);
                timestampTypes.add(batch.timestampType().name);
                deleteHorizon |= batch.deleteHorizonMs().isPresent();
                epoch(batch);
            }
            said.put("next", next);
            said.put("batches", batches);
            said.put("control_batches", controlBatches);
            said.put("empty_batches", emptyBatches);
            said.put("records", records);
            said.put("missing_offsets", missing);
            said.put("max_timestamp", maxTimestamp);
            said.put("timestamp_types", timestampTypes);
            said.put("codecs", codecs);
            said.put("magics", magics);
            said.put("delete_horizon", deleteHorizon);
        }
    }

    private void epoch(RecordBatch batch) {
        if (batch.partitionLeaderEpoch() != lastEpoch) {
            lastEpoch = batch.partitionLeaderEpoch();
            epochs.add(epochStart(lastEpoch, batch.baseOffset()));
        }
    }

    private static Map<String, Object> epochStart(int epoch, long offset) {
        Map<String, Object> said = new LinkedHashMap<>();
        said.put("epoch", epoch);
        said.put("start_offset", offset);
        return said;
    }

    private List<Object> epochCheckpoint() throws Exception {
        List<Object> all = new ArrayList<>();
        Path file = folder.resolve("leader-epoch-checkpoint");
        if (Files.exists(file)) {
            for (String line : Files.readAllLines(file)) {
                String[] words = line.split(" ");
                if (words.length == 2) {
                    all.add(epochStart(Integer.parseInt(words[0]), Long.parseLong(words[1])));
                }
            }
        }
        return all;
    }

    private void abortedTransactions(long base) throws Exception {
        File file = folder.resolve(stem(base) + ".txnindex").toFile();
        if (!file.exists()) {
            return;
        }
        try (TransactionIndex index = new TransactionIndex(base, file)) {
            for (AbortedTxn transaction : index.allAbortedTxns()) {
                Map<String, Object> said = new LinkedHashMap<>();
                said.put("segment", base);
                said.put("producer_id", transaction.producerId());
                said.put("first_offset", transaction.firstOffset());
                said.put("last_offset", transaction.lastOffset());
                said.put("last_stable_offset", transaction.lastStableOffset());
                aborted.add(said);
            }
        }
    }
}
