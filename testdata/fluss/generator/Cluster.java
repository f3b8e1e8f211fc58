import java.io.File;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.fluss.client.Connection;
import org.apache.fluss.client.ConnectionFactory;
import org.apache.fluss.config.ConfigOptions;
import org.apache.fluss.config.Configuration;
import org.apache.fluss.config.MemorySize;
import org.apache.fluss.server.coordinator.CoordinatorServer;
import org.apache.fluss.server.tablet.TabletServer;
import org.apache.fluss.shaded.zookeeper3.org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.fluss.shaded.zookeeper3.org.apache.zookeeper.server.ZooKeeperServer;

/** A Fluss cluster on loopback: ZooKeeper, a coordinator, and one tablet server. */
final class Cluster implements AutoCloseable {
    /** Segments are small, so that a set has many of them and stays small itself. */
    static final Map<String, String> SMALL =
            Map.of(
                    "log.segment.file-size", "16kb",
                    "log.index.file-size", "1kb",
                    "log.index.interval-size", "1kb");

    final Path data;

    private final Path work;
    private final Map<String, String> settings;
    private final ZooKeeperServer zookeeper;
    private final NIOServerCnxnFactory door;
    private final CoordinatorServer coordinator;
    private TabletServer tablet;

    /** Starts a cluster that keeps its files below work, and its tablet server's in work/data. */
    Cluster(Path work, Map<String, String> settings) throws Exception {
        this.work = work;
        this.data = work.resolve("data");
        this.settings = settings;
        File state = Files.createDirectories(work.resolve("zookeeper")).toFile();
        zookeeper = new ZooKeeperServer(state, state, 500);
        door = new NIOServerCnxnFactory();
        door.configure(new InetSocketAddress("127.0.0.1", 0), 100);
        door.startup(zookeeper);
        coordinator = new CoordinatorServer(configuration());
        coordinator.start();
        startTablet();
    }

    private Configuration configuration() {
        Configuration c = new Configuration();
        settings.forEach(c::setString);
        c.setString(ConfigOptions.ZOOKEEPER_ADDRESS, "127.0.0.1:" + door.getLocalPort());
        c.setString(ConfigOptions.BIND_LISTENERS, "FLUSS://127.0.0.1:0");
        c.set(ConfigOptions.REMOTE_DATA_DIR, work.resolve("remote").toUri().toString());
        c.set(ConfigOptions.DEFAULT_REPLICATION_FACTOR, 1);
        return c;
    }

    /** Starts the tablet server on the directory, as it is now. */
    void startTablet() throws Exception {
        Configuration c = configuration();
        c.set(ConfigOptions.TABLET_SERVER_ID, 0);
        c.set(ConfigOptions.DATA_DIR, data.toString());
        tablet = new TabletServer(c);
        tablet.start();
    }

    /** Stops the tablet server; afterwards it has written down that it ended cleanly. */
    void stopTablet() throws Exception {
        TabletServer stopping = tablet;
        tablet = null;
        if (stopping != null) {
            stopping.closeAsync().get(1, TimeUnit.MINUTES);
        }
    }

    Connection connect() {
        Configuration c = new Configuration();
        var door = coordinator.getRpcServer().getBindEndpoints().get(0);
        c.set(ConfigOptions.BOOTSTRAP_SERVERS, List.of(door.getHost() + ":" + door.getPort()));
        c.set(ConfigOptions.CLIENT_WRITER_BATCH_SIZE, MemorySize.parse("4kb"));
        c.set(ConfigOptions.CLIENT_WRITER_BUFFER_PAGE_SIZE, MemorySize.parse("1kb"));
        c.set(ConfigOptions.CLIENT_WRITER_BUFFER_MEMORY_SIZE, MemorySize.parse("2mb"));
        c.set(ConfigOptions.CLIENT_WRITER_BATCH_TIMEOUT, Duration.ofMillis(20));
        return ConnectionFactory.createConnection(c);
    }

    @Override
    public void close() throws Exception {
        stopTablet();
        coordinator.closeAsync().get(1, TimeUnit.MINUTES);
        door.shutdown();
        zookeeper.shutdown();
    }
}
