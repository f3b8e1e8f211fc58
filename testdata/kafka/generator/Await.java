import java.time.Duration;
import java.util.concurrent.Callable;

/** Waiting for what another process does, always with a bound. */
final class Await {
    static final Duration LIMIT = Duration.ofSeconds(90);
    private static final long PAUSE_MILLIS = 100;

    private Await() {}

    /** Returns once the condition holds; throws when it does not within {@link #LIMIT}. */
    static void until(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (!condition.call()) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("not within " + LIMIT.toSeconds() + " s: " + what);
            }
            Thread.sleep(PAUSE_MILLIS);
        }
    }
}
