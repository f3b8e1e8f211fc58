import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;

/**
 * A real, single-node Kafka on loopback, in processes of its own. It can be stopped as an operator
 * would stop it (SIGTERM) and started again on the same directories and ports. Whatever happens to
 * the generator, the processes end with it.
 */
final class Broker implements AutoCloseable {
    /** Fixed, so that meta.properties differs less from one generation to the next. */
    private static final String CLUSTER_ID = "tierdfixtures0000000AA";
    private static final long STOP_LIMIT_SECONDS = 90;

    private final Path home;
    private final String classPath;
    private final boolean zooKeeper;
    private final int clientPort = freePort();
    private final int otherPort = freePort();
    private Process kafka;
    private Process keeper;

    private Broker(Path home, String classPath, boolean zooKeeper) throws IOException {
        this.home = Files.createDirectories(home);
        this.classPath = classPath;
        this.zooKeeper = zooKeeper;
        Runtime.getRuntime().addShutdownHook(new Thread(this::close));
    }

    /** Broker and controller in one process, as Kafka 4 runs. */
    static Broker kraft(Path home, String classPath, Map<String, String> settings)
            throws Exception {
        Broker broker = new Broker(home, classPath, false);
        broker.writeSettings(Map.of(
                "process.roles", "broker,controller",
                "node.id", "1",
                "listeners", "PLAINTEXT://127.0.0.1:" + broker.clientPort
                        + ",CONTROLLER://127.0.0.1:" + broker.otherPort,
                "advertised.listeners", "PLAINTEXT://127.0.0.1:" + broker.clientPort
                        + ",CONTROLLER://127.0.0.1:" + broker.otherPort,
                "controller.listener.names", "CONTROLLER",
                "controller.quorum.bootstrap.servers", "127.0.0.1:" + broker.otherPort,
                "metadata.max.idle.interval.ms", "0"), settings);
        Process format = broker.java("format", "kafka.tools.StorageTool", "format", "--standalone",
                "--cluster-id", CLUSTER_ID, "--config", broker.settingsFile().toString());
        if (format.waitFor() != 0) {
            throw new IllegalStateException("format the log directory: see format.log");
        }
        return broker;
    }

    /** Broker beside a ZooKeeper, as Kafka ran when message formats 0 and 1 could be written. */
    static Broker zooKeeper(Path home, String classPath, Map<String, String> settings)
            throws Exception {
        Broker broker = new Broker(home, classPath, true);
        broker.writeSettings(Map.of(
                "broker.id", "1",
                "listeners", "PLAINTEXT://127.0.0.1:" + broker.clientPort,
                "zookeeper.connect", "127.0.0.1:" + broker.otherPort), settings);
        Files.writeString(broker.home.resolve("zoo.cfg"), String.join("\n",
                "dataDir=" + broker.home.resolve("zookeeper"),
                "clientPortAddress=127.0.0.1",
                "clientPort=" + broker.otherPort,
                "admin.enableServer=false", ""));
        return broker;
    }

    private void writeSettings(Map<String, String> own, Map<String, String> more)
            throws IOException {
        Map<String, String> all = new TreeMap<>(Map.of(
                "log.dirs", logDir().toString(),
                "num.partitions", "1",
                "auto.create.topics.enable", "false",
                "log.retention.ms", "-1",
                "offsets.topic.num.partitions", "1",
                "offsets.topic.replication.factor", "1",
                "transaction.state.log.num.partitions", "1",
                "transaction.state.log.replication.factor", "1",
                "transaction.state.log.min.isr", "1"));
        all.putAll(own);
        all.putAll(more);
        List<String> lines = new ArrayList<>();
        all.forEach((key, value) -> lines.add(key + "=" + value));
        Files.write(settingsFile(), lines);
    }

    void start() throws Exception {
        if (zooKeeper && keeper == null) {
            keeper = java("zookeeper", "org.apache.zookeeper.server.ZooKeeperServerMain",
                    home.resolve("zoo.cfg").toString());
        }
        kafka = java("kafka", "kafka.Kafka", settingsFile().toString());
        try (Admin admin = admin()) {
            Await.until("the broker answers", () -> {
                if (!kafka.isAlive()) {
                    throw new IllegalStateException("the broker ended: see kafka.log");
                }
                try {
                    return !admin.describeCluster().nodes().get().isEmpty();
                } catch (java.util.concurrent.ExecutionException notYet) {
                    return false;
                }
            });
        }
    }

    /** Asks the broker to end, and makes sure that it did so in its own orderly way. */
    void stop() throws Exception {
        kafka.destroy();
        if (!kafka.waitFor(STOP_LIMIT_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the broker did not stop");
        }
        if (!Files.exists(logDir().resolve(".kafka_cleanshutdown"))) {
            throw new IllegalStateException("the broker did not stop cleanly: see kafka.log");
        }
    }

    void restart() throws Exception {
        stop();
        start();
    }

    @Override
    public void close() {
        for (Process process : new Process[] {kafka, keeper}) {
            if (process != null) {
                process.destroyForcibly();
            }
        }
    }

    Path logDir() {
        return home.resolve("data");
    }

    String bootstrap() {
        return "127.0.0.1:" + clientPort;
    }

    Admin admin() {
        Properties settings = new Properties();
        settings.put(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap());
        return Admin.create(settings);
    }

    private Path settingsFile() {
        return home.resolve("server.properties");
    }

    private Process java(String name, String mainClass, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                "-Dzookeeper.jmx.log4j.disable=true",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
                "-cp", classPath, mainClass));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command)
                .directory(home.toFile())
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(
                        home.resolve(name + ".log").toFile()))
                .start();
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }
}
