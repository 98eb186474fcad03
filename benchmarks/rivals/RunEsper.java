package rivals;

import static rivals.Events.*;

import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.EventSender;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;

import java.util.Map;
import rivals.Events.E;

/** The queries in Esper's language; time is the events' own. */
public final class RunEsper {
    private static final String CLOSED = "create context Auction initiated by E(kind = 1) as s "
            + "terminated by E(kind = 3, item = s.item);\n"
            + "create schema Closed(category int, price double);\n"
            + "context Auction insert into Closed select context.s.category as category, "
            + "context.s.price + coalesce(sum(price), 0.0) as price "
            + "from E(kind = 2, item = context.s.item) output snapshot when terminated;\n";
    private static final Map<String, String> QUERIES = Map.of(
            "Y1", "@name('out') select category, sum(case when kind = 0 then 1 else 0 end) as n "
                    + "from E#ext_timed_batch(time, 1000000 milliseconds, 0L) group by category having count(*) > 0",
            "Y2", "create context Pair partition by item, user from E;\n"
                    + "create schema Won(time long, category int, ad long);\n"
                    + "create schema Score(time long, category int, ad long, score long);\n"
                    + "context Pair insert into Won select p.time as time, p.category as category, p.item as ad "
                    + "from pattern [E(kind = 0) -> p=E(kind = 2)];\n"
                    + "insert into Score select time, category, ad, count(*) as score from Won group by ad;\n"
                    + "@name('out') select time, category, maxbyever(score).ad as ad, maxever(score) as score "
                    + "from Score group by category",
            "N1", "@name('out') select time, sum(case when kind = 1 then 1 else -1 end) as n from E(kind in (1, 3))",
            "N2", CLOSED + "@name('out') select avg(price) as price from Closed",
            "N3", CLOSED + "@name('out') select category, avg(price) as price from Closed group by category",
            "N4", "create schema Price(time long, price double);\n"
                    + "insert into Price select time, sum(case when kind in (1, 2) then price else 0.0 end) as price "
                    + "from E(kind != 0) group by item;\n"
                    + "@name('out') select max(price) as price from Price#ext_timed_batch(time, 600000000 milliseconds, 0L)",
            "N5", "create schema Tick(time long);\n"
                    + "create table Bids(item long primary key, n count(*));\n"
                    + "into table Bids select count(*) as n from E(kind = 2)#ext_timed(time, 86400000000 milliseconds) group by item;\n"
                    + "@name('out') on Tick as t select t.time as time, b.item as item, b.n as n from Bids as b "
                    + "order by b.n desc, b.item asc limit 1");

    private static double number(EventBean row, String name) {
        return ((Number) row.get(name)).doubleValue();
    }

    private static long edge(long time, long period) {
        return time / period * period;
    }

    public static void main(String[] args) throws Exception {
        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType("E", E.class);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        each((query, events, answers) -> {
            EPRuntime runtime = EPRuntimeProvider.getRuntime(query + System.nanoTime(), configuration);
            var compiled = EPCompilerProvider.getCompiler().compile(
                    QUERIES.get(query).replace("create schema Tick", "@public @buseventtype create schema Tick"),
                    new CompilerArguments(configuration));
            EPStatement[] statements = runtime.getDeploymentService().deploy(compiled).getStatements();
            long[] now = {0};
            for (EPStatement one : statements) {
                if (!one.getName().equals("out")) continue;
                one.addListener((rows, old, statement, of) -> {
                    for (EventBean row : rows) {
                        switch (query) {
                            case "Y1" -> answers.add(edge(now[0], SECOND), number(row, "category"), number(row, "n"));
                            case "Y2" -> answers.add(number(row, "time"), number(row, "category"), number(row, "ad"), number(row, "score"));
                            case "N1" -> answers.add(number(row, "time"), number(row, "n"));
                            case "N2" -> answers.add(now[0], number(row, "price"));
                            case "N3" -> answers.add(now[0], number(row, "category"), number(row, "price"));
                            case "N4" -> answers.add(edge(now[0], TEN_MINUTES), number(row, "price"));
                            default -> answers.add(number(row, "time"), number(row, "item"), number(row, "n"));
                        }
                    }
                });
            }
            EventSender sender = runtime.getEventService().getEventSender("E");
            boolean ticks = query.equals("N5");
            long begin = cpu(), next = TEN_MINUTES;
            for (E e : events) {
                while (ticks && e.time >= next) {
                    runtime.getEventService().sendEventMap(Map.of("time", next), "Tick");
                    next += TEN_MINUTES;
                }
                now[0] = e.time;
                sender.sendEvent(e);
            }
            long taken = cpu() - begin;
            runtime.destroy();
            return taken;
        }, args);
    }
}
