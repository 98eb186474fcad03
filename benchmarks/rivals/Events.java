package rivals;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;

/** Events that the benchmark wrote, the answers that it checks, and how often each query is run. */
public final class Events {
    public static final long SECOND = 1_000_000L, TEN_MINUTES = 600 * SECOND;
    public static final int UNITS = 144, USERS = 100;
    public static final int PERSON = 0, ITEM = 1, BID = 2, CLOSE = 3;
    public static final int VIEW = 0, PURCHASE = 2;
    /** Behind the last event, at the end of its period, for engines that have no end of input. */
    public static final int OVER = -1;

    /** An event of NEXMark; of Yahoo's, the item is an ad and the category its campaign. */
    public static final class E {
        public int kind, category, user;
        public long item, time;
        public double price;

        public int getKind() { return kind; }
        public int getCategory() { return category; }
        public int getUser() { return user; }
        public long getItem() { return item; }
        public long getTime() { return time; }
        public double getPrice() { return price; }
    }

    /** Rows of numbers, one behind the other. */
    public static final class Answers {
        private double[] all = new double[1 << 16];
        private int used;

        public void add(double... row) {
            if (used + row.length > all.length) all = Arrays.copyOf(all, 2 * all.length);
            System.arraycopy(row, 0, all, used, row.length);
            used += row.length;
        }

        void write(Path file) throws IOException {
            ByteBuffer bytes = ByteBuffer.allocate(8 * used).order(ByteOrder.LITTLE_ENDIAN);
            bytes.asDoubleBuffer().put(all, 0, used);
            StandardOpenOption[] how = {StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING};
            try (FileChannel to = FileChannel.open(file, how)) {
                to.write(bytes);
            }
        }
    }

    /** One engine: runs a query over all events, and says how much CPU time that took, in nanoseconds. */
    public interface Engine {
        long run(String query, E[] events, Answers answers) throws Exception;
    }

    public static long cpu() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    static E[] read(Path file) throws IOException {
        ByteBuffer bytes;
        try (FileChannel from = FileChannel.open(file, StandardOpenOption.READ)) {
            bytes = ByteBuffer.allocate((int) from.size()).order(ByteOrder.LITTLE_ENDIAN);
            while (bytes.hasRemaining()) from.read(bytes);
        }
        var columns = bytes.flip().asDoubleBuffer();
        int count = columns.remaining() / 6;
        E[] events = new E[count];
        for (int i = 0; i < count; i++) {
            E e = events[i] = new E();
            e.kind = (int) columns.get(i);
            e.item = (long) columns.get(count + i);
            e.price = columns.get(2 * count + i);
            e.category = (int) columns.get(3 * count + i);
            e.user = (int) columns.get(4 * count + i);
            e.time = (long) columns.get(5 * count + i);
        }
        return events;
    }

    /** For every query in turn: reads its events, runs it several times, prints the least CPU time. */
    public static void each(Engine engine, String[] args) throws Exception {
        int repeat = Integer.parseInt(args[1]);
        for (int i = 2; i < args.length; i += 2) {
            String query = args[i];
            E[] events = read(Path.of(args[0], args[i + 1] + ".bin"));
            long best = Long.MAX_VALUE;
            for (int turn = 0; turn < repeat; turn++) {
                Answers answers = new Answers();
                best = Math.min(best, engine.run(query, events, answers));
                if (turn == 0) answers.write(Path.of(args[0], "answers-" + query + ".bin"));
            }
            System.out.println(query + " " + best);
        }
        System.exit(0);
    }
}
