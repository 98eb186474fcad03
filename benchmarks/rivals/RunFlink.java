package rivals;

import static rivals.Events.*;

import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.streaming.api.functions.sink.RichSinkFunction;
import org.apache.flink.streaming.api.functions.source.SourceFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessAllWindowFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import rivals.Events.Answers;
import rivals.Events.E;

/** The queries as Flink jobs on a cluster in this process: one task a step, state on the heap, objects reused. */
public final class RunFlink {
    private static E[] events;
    private static Answers answers;
    private static long begin, taken;

    /** All events with their times; a watermark behind each hundred. The clock runs from the first on. */
    private static final class Given implements SourceFunction<E> {
        @Override
        public void run(SourceContext<E> to) {
            begin = cpu();
            for (int i = 0; i < events.length; i++) {
                if (events[i].kind == OVER) break;
                to.collectWithTimestamp(events[i], events[i].time);
                if (i % 100 == 99) to.emitWatermark(new Watermark(events[i].time - 1));
            }
        }

        @Override
        public void cancel() {}
    }

    private static final class Kept extends RichSinkFunction<double[]> {
        @Override
        public void invoke(double[] row, Context context) {
            answers.add(row);
        }

        @Override
        public void close() {
            taken = cpu() - begin;
        }
    }

    private static final class Closing extends KeyedProcessFunction<Long, E, double[]> {
        private transient ValueState<Double> price;

        @Override
        public void open(OpenContext context) {
            price = getRuntimeContext().getState(new ValueStateDescriptor<>("price", Double.class));
        }

        @Override
        public void processElement(E e, Context context, Collector<double[]> out) throws Exception {
            switch (e.kind) {
                case ITEM -> price.update(e.price);
                case BID -> price.update(price.value() + e.price);
                default -> {
                    out.collect(new double[] {e.time, e.category, price.value()});
                    price.clear();
                }
            }
        }
    }

    private static final class Average extends ProcessFunction<double[], double[]> {
        private double count, total;

        @Override
        public void processElement(double[] a, Context context, Collector<double[]> out) {
            count++;
            total += a[2];
            out.collect(new double[] {a[0], total / count});
        }
    }

    private static final class AveragePer extends KeyedProcessFunction<Integer, double[], double[]> {
        private transient ValueState<double[]> known;

        @Override
        public void open(OpenContext context) {
            known = getRuntimeContext().getState(new ValueStateDescriptor<>("known", double[].class));
        }

        @Override
        public void processElement(double[] a, Context context, Collector<double[]> out) throws Exception {
            double[] now = known.value();
            if (now == null) now = new double[2];
            now[0]++;
            now[1] += a[2];
            known.update(now);
            out.collect(new double[] {a[0], a[1], now[1] / now[0]});
        }
    }

    private static final class Open extends ProcessFunction<E, double[]> {
        private long open;

        @Override
        public void processElement(E e, Context context, Collector<double[]> out) {
            open += e.kind == ITEM ? 1 : -1;
            out.collect(new double[] {e.time, open});
        }
    }

    private static final class Winning extends KeyedProcessFunction<Long, E, E> {
        private transient ValueState<Integer> stage;

        @Override
        public void open(OpenContext context) {
            stage = getRuntimeContext().getState(new ValueStateDescriptor<>("stage", Integer.class));
        }

        @Override
        public void processElement(E e, Context context, Collector<E> out) throws Exception {
            Integer now = stage.value();
            if (e.kind == VIEW && now == null) stage.update(1);
            if (e.kind == PURCHASE && now != null && now == 1) {
                stage.update(2);
                out.collect(e);
            }
        }
    }

    private static final class Scoring extends KeyedProcessFunction<Long, E, double[]> {
        private transient ValueState<Long> score;

        @Override
        public void open(OpenContext context) {
            score = getRuntimeContext().getState(new ValueStateDescriptor<>("score", Long.class));
        }

        @Override
        public void processElement(E e, Context context, Collector<double[]> out) throws Exception {
            Long before = score.value();
            long now = before == null ? 1 : before + 1;
            score.update(now);
            out.collect(new double[] {e.time, e.category, e.item, now});
        }
    }

    private static final class Best extends KeyedProcessFunction<Integer, double[], double[]> {
        private transient ValueState<double[]> best;

        @Override
        public void open(OpenContext context) {
            best = getRuntimeContext().getState(new ValueStateDescriptor<>("best", double[].class));
        }

        @Override
        public void processElement(double[] a, Context context, Collector<double[]> out) throws Exception {
            double[] top = best.value();
            if (top == null || a[3] > top[3]) best.update(top = a.clone());
            out.collect(new double[] {a[0], a[1], top[2], top[3]});
        }
    }

    private static final class Count implements AggregateFunction<E, Long, Long> {
        private final int kind;

        Count(int kind) {
            this.kind = kind;
        }

        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(E e, Long n) {
            return e.kind == kind ? n + 1 : n;
        }

        @Override
        public Long getResult(Long n) {
            return n;
        }

        @Override
        public Long merge(Long a, Long b) {
            return a + b;
        }
    }

    private static final class Ended<K extends Number> extends ProcessWindowFunction<Long, double[], K, TimeWindow> {
        @Override
        public void process(K key, Context context, Iterable<Long> counts, Collector<double[]> out) {
            out.collect(new double[] {context.window().getEnd(), key.doubleValue(), counts.iterator().next()});
        }
    }

    private static final class Price extends KeyedProcessFunction<Long, E, Double> {
        private transient ValueState<Double> price;

        @Override
        public void open(OpenContext context) {
            price = getRuntimeContext().getState(new ValueStateDescriptor<>("price", Double.class));
        }

        @Override
        public void processElement(E e, Context context, Collector<Double> out) throws Exception {
            Double before = price.value();
            double now = (before == null ? 0.0 : before) + (e.kind == CLOSE ? 0.0 : e.price);
            price.update(now);
            out.collect(now);
        }
    }

    private static final class Greatest implements AggregateFunction<Double, Double, Double> {
        @Override
        public Double createAccumulator() {
            return Double.NEGATIVE_INFINITY;
        }

        @Override
        public Double add(Double one, Double most) {
            return Math.max(one, most);
        }

        @Override
        public Double getResult(Double most) {
            return most;
        }

        @Override
        public Double merge(Double a, Double b) {
            return Math.max(a, b);
        }
    }

    private static final class AtEnd extends ProcessAllWindowFunction<Double, double[], TimeWindow> {
        @Override
        public void process(Context context, Iterable<Double> of, Collector<double[]> out) {
            out.collect(new double[] {context.window().getEnd(), of.iterator().next()});
        }
    }

    private static final class MostBids extends ProcessAllWindowFunction<double[], double[], TimeWindow> {
        private final ArrayDeque<Map<Double, Double>> periods = new ArrayDeque<>();
        private final Map<Double, Double> total = new HashMap<>();

        @Override
        public void process(Context context, Iterable<double[]> counts, Collector<double[]> out) {
            Map<Double, Double> period = new HashMap<>();
            for (double[] one : counts) {
                period.put(one[1], one[2]);
                total.merge(one[1], one[2], Double::sum);
            }
            periods.addLast(period);
            if (periods.size() > UNITS) periods.removeFirst().forEach((item, n) -> total.merge(item, -n, Double::sum));
            double[] best = {context.window().getEnd(), 0, -1};
            for (var one : total.entrySet()) {
                double item = one.getKey(), n = one.getValue();
                if (n > best[2] || (n == best[2] && item < best[1])) {
                    best[1] = item;
                    best[2] = n;
                }
            }
            out.collect(best);
        }
    }

    private static DataStream<double[]> query(String name, DataStream<E> in) {
        var period = TumblingEventTimeWindows.of(java.time.Duration.ofMillis(TEN_MINUTES));
        switch (name) {
            case "Y1":
                return in.keyBy(e -> e.category)
                        .window(TumblingEventTimeWindows.of(java.time.Duration.ofMillis(SECOND)))
                        .aggregate(new Count(VIEW), new Ended<Integer>());
            case "Y2":
                return in.keyBy(e -> e.item * USERS + e.user).process(new Winning())
                        .keyBy(e -> e.item).process(new Scoring())
                        .keyBy(a -> (int) a[1]).process(new Best());
            case "N1":
                return in.filter(e -> e.kind == ITEM || e.kind == CLOSE).process(new Open());
            case "N2":
                return in.filter(e -> e.kind != PERSON).keyBy(e -> e.item).process(new Closing()).process(new Average());
            case "N3":
                return in.filter(e -> e.kind != PERSON).keyBy(e -> e.item).process(new Closing())
                        .keyBy(a -> (int) a[1]).process(new AveragePer());
            case "N4":
                return in.filter(e -> e.kind != PERSON).keyBy(e -> e.item).process(new Price())
                        .windowAll(period).aggregate(new Greatest(), new AtEnd());
            case "N5":
                return in.filter(e -> e.kind == BID).keyBy(e -> e.item).window(period)
                        .aggregate(new Count(BID), new Ended<Long>()).windowAll(period).process(new MostBids());
        }
        throw new IllegalArgumentException(name);
    }

    public static void main(String[] args) throws Exception {
        each((query, given, found) -> {
            events = given;
            answers = found;
            StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1, new Configuration());
            env.getConfig().enableObjectReuse();
            query(query, env.addSource(new Given())).addSink(new Kept());
            env.execute(query);
            return taken;
        }, args);
    }
}
