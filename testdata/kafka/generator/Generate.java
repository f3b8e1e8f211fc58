import java.nio.file.Path;

/** Generate SET HOME CLASS_PATH OUT: makes one set with a broker that runs from the class path. */
public final class Generate {
    /** The versions that generate.sh fetches. */
    static final String MODERN = System.getProperty("kafka.modern");
    static final String LEGACY = System.getProperty("kafka.legacy");

    private Generate() {}

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[1]);
        String classPath = arguments[2];
        Path out = Path.of(arguments[3]);
        switch (arguments[0]) {
            case "v4" -> V4.generate(home, classPath, out);
            case "v4-live" -> Live.generate(home, classPath, out);
            case "magic0" -> Legacy.magic0(home, classPath, out);
            case "magic1" -> Legacy.magic1(home, classPath, out);
            default -> throw new IllegalArgumentException("no such set: " + arguments[0]);
        }
    }
}
