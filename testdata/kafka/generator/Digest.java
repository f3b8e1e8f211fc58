import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;

/** The SHA-256 of a sequence of records in the form that README.md lays down, and of files. */
final class Digest {
    private final MessageDigest sha256 = sha256();
    private final DataOutputStream out = new DataOutputStream(
            new DigestOutputStream(OutputStream.nullOutputStream(), sha256));
    private long records;

    void add(ConsumerRecord<byte[], byte[]> record) throws IOException {
        out.writeLong(record.offset());
        out.writeLong(record.timestamp());
        write(record.key());
        write(record.value());
        Header[] headers = record.headers().toArray();
        out.writeInt(headers.length);
        for (Header header : headers) {
            write(header.key().getBytes(StandardCharsets.UTF_8));
            write(header.value());
        }
        records++;
    }

    private void write(byte[] bytes) throws IOException {
        if (bytes == null) {
            out.writeInt(-1);
            return;
        }
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    long records() {
        return records;
    }

    /** The digest so far; the sequence ends with this call. */
    String hex() {
        return HexFormat.of().formatHex(sha256.digest());
    }

    static String of(Path file) throws IOException {
        return HexFormat.of().formatHex(sha256().digest(Files.readAllBytes(file)));
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
