package rivals;

import static rivals.Events.*;

import io.reactivex.rxjava3.core.Observable;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import rivals.Events.Answers;
import rivals.Events.E;

/** The queries in RxJava: its own operators, and plain containers for event time and for very many keys. */
public final class RunRxJava {
    private static final List<double[]> NOTHING = List.of();

    private static final class Auction {
        double price, time;
        int category;
        boolean closed;

        Auction with(E e) {
            category = e.category;
            price += e.kind == CLOSE ? 0.0 : e.price;
            time = e.time;
            closed = e.kind == CLOSE;
            return this;
        }
    }

    /** A group for every auction costs RxJava several times as much as a map. */
    private static Observable<Auction> closed(Observable<E> in) {
        Map<Long, Auction> open = new HashMap<>();
        return in.filter(e -> e.kind > PERSON).mapOptional(e -> {
            Auction a = open.computeIfAbsent(e.item, i -> new Auction()).with(e);
            return a.closed ? Optional.of(open.remove(e.item)) : Optional.empty();
        });
    }

    private static final class Average {
        double count, total, time;
        int category;

        Average with(Auction a) {
            Average next = new Average();
            next.count = count + 1;
            next.total = total + a.price;
            next.time = a.time;
            next.category = a.category;
            return next;
        }
    }

    private static Observable<double[]> query(String name, Observable<E> in) {
        switch (name) {
            case "Y1":
                return in.flatMapIterable(new Views()::at);
            case "Y2":
                return in.filter(e -> e.kind >= 0)
                        .filter(new Winning()::wins)
                        .groupBy(e -> e.item)
                        .flatMap(g -> g.scan(new double[4], (a, e) -> new double[] {e.time, e.category, e.item, a[3] + 1}).skip(1))
                        .groupBy(a -> a[1])
                        .flatMap(g -> g.scan((best, a) -> a[3] > best[3] ? a : new double[] {a[0], a[1], best[2], best[3]}));
            case "N1":
                return in.filter(e -> e.kind == ITEM || e.kind == CLOSE)
                        .scan(new double[2], (a, e) -> new double[] {e.time, a[1] + (e.kind == ITEM ? 1 : -1)})
                        .skip(1);
            case "N2":
                return closed(in).scan(new Average(), Average::with).skip(1)
                        .map(a -> new double[] {a.time, a.total / a.count});
            case "N3":
                return closed(in)
                        .groupBy(a -> a.category)
                        .flatMap(g -> g.scan(new Average(), Average::with).skip(1))
                        .map(a -> new double[] {a.time, a.category, a.total / a.count});
            case "N4":
                return in.flatMapIterable(new Highest()::at);
            case "N5":
                return in.flatMapIterable(new MostBids()::at);
        }
        throw new IllegalArgumentException(name);
    }

    private static final class Winning {
        private final Map<Long, Integer> stages = new HashMap<>();

        boolean wins(E e) {
            long pair = e.item * USERS + e.user;
            if (e.kind == VIEW) stages.putIfAbsent(pair, 1);
            return e.kind == PURCHASE && stages.replace(pair, 1, 2);
        }
    }

    private static final class Views {
        private final Map<Integer, double[]> views = new HashMap<>();
        private long edge = SECOND;

        List<double[]> at(E e) {
            List<double[]> out = NOTHING;
            while (e.time >= edge) {
                out = new ArrayList<>(views.size());
                for (var one : views.entrySet()) out.add(new double[] {edge, one.getKey(), one.getValue()[0]});
                views.clear();
                edge += SECOND;
            }
            if (e.kind != OVER) views.computeIfAbsent(e.category, c -> new double[1])[0] += e.kind == VIEW ? 1 : 0;
            return out;
        }
    }

    private static final class Highest {
        private final Map<Long, double[]> prices = new HashMap<>();
        private long edge = TEN_MINUTES;
        private double best = Double.NEGATIVE_INFINITY;

        List<double[]> at(E e) {
            List<double[]> out = NOTHING;
            while (e.time >= edge) {
                out = List.of(new double[] {edge, best});
                best = Double.NEGATIVE_INFINITY;
                edge += TEN_MINUTES;
            }
            if (e.kind > PERSON) {
                double[] price = prices.computeIfAbsent(e.item, i -> new double[1]);
                price[0] += e.kind == CLOSE ? 0.0 : e.price;
                best = Math.max(best, price[0]);
            }
            return out;
        }
    }

    private static final class MostBids {
        private final ArrayDeque<Map<Long, int[]>> periods = new ArrayDeque<>(List.of(new HashMap<>()));
        private final Map<Long, int[]> total = new HashMap<>();
        private long edge = TEN_MINUTES;

        List<double[]> at(E e) {
            List<double[]> out = NOTHING;
            while (e.time >= edge) {
                long item = 0;
                int most = -1;
                for (var one : total.entrySet()) {
                    int n = one.getValue()[0];
                    if (n > most || (n == most && one.getKey() < item)) {
                        most = n;
                        item = one.getKey();
                    }
                }
                out = List.of(new double[] {edge, item, most});
                if (periods.size() == UNITS) {
                    for (var one : periods.removeFirst().entrySet()) total.get(one.getKey())[0] -= one.getValue()[0];
                }
                periods.addLast(new HashMap<>());
                edge += TEN_MINUTES;
            }
            if (e.kind == BID) {
                periods.peekLast().computeIfAbsent(e.item, i -> new int[1])[0]++;
                total.computeIfAbsent(e.item, i -> new int[1])[0]++;
            }
            return out;
        }
    }

    public static void main(String[] args) throws Exception {
        each((query, events, answers) -> {
            long begin = cpu();
            query(query, Observable.fromArray(events)).blockingSubscribe(answers::add);
            return cpu() - begin;
        }, args);
    }
}
