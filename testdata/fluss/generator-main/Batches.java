import java.io.File;
import java.io.FileOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.apache.fluss.compression.ArrowCompressionInfo;
import org.apache.fluss.memory.UnmanagedPagedOutputView;
import org.apache.fluss.record.ChangeType;
import org.apache.fluss.record.DefaultLogRecordBatch;
import org.apache.fluss.record.FileLogRecords;
import org.apache.fluss.record.LogRecordBatch;
import org.apache.fluss.record.LogRecordBatchStatisticsCollector;
import org.apache.fluss.record.MemoryLogRecords;
import org.apache.fluss.record.MemoryLogRecordsArrowBuilder;
import org.apache.fluss.row.BinaryString;
import org.apache.fluss.row.GenericRow;
import org.apache.fluss.row.arrow.ArrowWriter;
import org.apache.fluss.row.arrow.ArrowWriterPool;
import org.apache.fluss.shaded.arrow.org.apache.arrow.memory.BufferAllocator;
import org.apache.fluss.shaded.arrow.org.apache.arrow.memory.RootAllocator;
import org.apache.fluss.types.DataType;
import org.apache.fluss.types.DataTypes;
import org.apache.fluss.types.RowType;

/** Writes a segment of batches of every magic: Batches LOG EXPECTED. */
public final class Batches {
    private static final RowType ROW =
            RowType.of(
                    new DataType[] {DataTypes.INT(), DataTypes.STRING()},
                    new String[] {"id", "text"});
    private static final short SCHEMA = 3;

    private static long offset = 1000;
    private static long time = 1_700_000_000_000L;

    public static void main(String[] args) throws Exception {
        try (BufferAllocator allocator = new RootAllocator(Long.MAX_VALUE);
                ArrowWriterPool pool = new ArrowWriterPool(allocator);
                FileOutputStream out = new FileOutputStream(args[0])) {
            for (byte magic = 0; magic <= 2; magic++) {
                for (boolean statistics : magic == 0 ? List.of(false) : List.of(false, true)) {
                    for (int records : new int[] {1, 20, 0}) {
                        out.write(batch(pool, magic, statistics, records));
                    }
                }
            }
            // What a client of main writes: V1 with statistics, of records that append.
            ArrowWriter writer = writer(pool);
            out.write(
                    finish(
                            MemoryLogRecordsArrowBuilder.builder(
                                    SCHEMA,
                                    writer,
                                    new UnmanagedPagedOutputView(4096),
                                    true,
                                    collector()),
                            5,
                            true));
        }
        Files.writeString(Path.of(args[1]), describe(args[0]));
        System.exit(0);
    }

    private static ArrowWriter writer(ArrowWriterPool pool) {
        return pool.getOrCreateWriter(
                1L, SCHEMA, Integer.MAX_VALUE, ROW, ArrowCompressionInfo.DEFAULT_COMPRESSION);
    }

    private static LogRecordBatchStatisticsCollector collector() {
        return new LogRecordBatchStatisticsCollector(ROW, new int[] {0, 1});
    }

    private static byte[] batch(ArrowWriterPool pool, byte magic, boolean statistics, int records)
            throws Exception {
        ArrowWriter writer = writer(pool);
        UnmanagedPagedOutputView view = new UnmanagedPagedOutputView(4096);
        MemoryLogRecordsArrowBuilder b =
                statistics
                        ? MemoryLogRecordsArrowBuilder.builder(
                                offset, magic, SCHEMA, writer, view, collector())
                        : MemoryLogRecordsArrowBuilder.builder(
                                offset, magic, SCHEMA, writer, view, records > 1);
        return finish(b, records, !statistics && records > 1);
    }

    /** Appends the records, and stamps the batch as a tablet server does. */
    private static byte[] finish(MemoryLogRecordsArrowBuilder b, int records, boolean appends)
            throws Exception {
        for (int i = 0; i < records; i++) {
            b.append(
                    appends ? ChangeType.APPEND_ONLY : ChangeType.INSERT,
                    GenericRow.of((int) offset + i, BinaryString.fromString("record " + i)));
        }
        b.setWriterState(records > 0 ? 7L : -1L, records > 0 ? records : -1);
        b.close();
        MemoryLogRecords all = MemoryLogRecords.pointToBytesView(b.build());
        for (LogRecordBatch x : all.batches()) {
            DefaultLogRecordBatch batch = (DefaultLogRecordBatch) x;
            batch.setBaseLogOffset(offset);
            batch.setCommitTimestamp(time++);
            if (batch.magic() == 2) {
                batch.setLeaderEpoch(40 + records);
            }
            batch.ensureValid();
            offset = batch.nextLogOffset();
        }
        byte[] bytes = new byte[all.sizeInBytes()];
        all.getMemorySegment().get(all.getPosition(), bytes);
        return bytes;
    }

    /** Reads the file as a tablet server does. */
    private static String describe(String name) throws Exception {
        StringBuilder out = new StringBuilder("[");
        byte[] bytes = Files.readAllBytes(Path.of(name));
        int position = 0;
        try (FileLogRecords log = FileLogRecords.open(new File(name), false)) {
            for (LogRecordBatch b : log.batches()) {
                b.ensureValid();
                int magic = b.magic();
                int appends = bytes[position + (magic == 2 ? 31 : 27)] & 1;
                out.append(position == 0 ? "\n" : ",\n")
                        .append(
                                String.format(
                                        Locale.ROOT,
                                        "  {\"position\": %d, \"size\": %d, \"magic\": %d,"
                                                + " \"base\": %d, \"last\": %d, \"epoch\": %d,"
                                                + " \"commit_timestamp\": %d, \"writer\": %d,"
                                                + " \"records\": %d, \"crc\": %d,"
                                                + " \"append_only\": %b}",
                                        position,
                                        b.sizeInBytes(),
                                        magic,
                                        b.baseLogOffset(),
                                        b.lastLogOffset(),
                                        b.leaderEpoch(),
                                        b.commitTimestamp(),
                                        b.writerId(),
                                        b.getRecordCount(),
                                        b.checksum(),
                                        appends == 1));
                position += b.sizeInBytes();
            }
        }
        return out.append("\n]\n").toString();
    }
}
