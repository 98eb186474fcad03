"""What the papers' parts cost: patterns, claims, feedback, loops."""

from __future__ import annotations

from benchmarks.figures import (
    NOT_MEASURED,
    Figure,
    Results,
    in_units,
    mark,
    millions,
    short,
    table,
    with_unit,
)

TWO = "2-cores"
PATTERNS = ("Y1", "Y2", "N1", "N2", "N3", "N4", "N5", "P6", "P7 w=10^4")


def patterns(results: Results) -> str:
    """The queries of StreamQRE's paper beside loops written by hand, DuckDB, reactivex and plain Python."""
    head = ["query", "M events/s", "of hand-written speed", "times DuckDB, one thread", "times reactivex"]
    head += ["times plain Python", "table kernel, M/s", "in the engine, M/s", "with 5 % late, M/s"]
    rows = []
    for query in PATTERNS:

        def of(name: str, unit: float = 1, digits: int = 0, query: str = query) -> str:
            return short(results.figure(TWO, "qre", query, name), unit, digits) or "-"

        ours = results.figure(TWO, "qre", query, "events_per_s")
        tabled = results.figure(TWO, "qre", query, "ratio_to.table kernel")
        rows.append(
            [
                query,
                short(ours, 1e6, 0) or NOT_MEASURED,
                of("ratio_to.hand", digits=2),
                of("ratio_to.duckdb", digits=1),
                of("ratio_to.reactivex"),
                of("ratio_to.twin"),
                f"{ours.median / tabled.median / 1e6:.1f}" if ours and tabled else "-",
                of("engine", 1e6),
                of("engine_5%_late", 1e6),
            ]
        )
    return table(head, rows)


def quantiles(results: Results) -> str:
    """Exact and approximate quantiles, with the bytes that they hold."""
    head = [
        "",
        "exact, M events/s",
        "exact, bytes held",
        "epsilon 0.01, M events/s",
        "epsilon 0.01, bytes held",
    ]
    rows = []
    for name in ("P6", *(f"P7 w={10**power}" for power in range(3, 8))):
        cells = [name]
        for kind in ("exact", "approximate 0.01"):
            case = f"{name} {kind}"
            cells.append(short(results.figure(TWO, "qre", case, "events_per_s"), 1e6, 0) or NOT_MEASURED)
            cells.append(short(results.figure(TWO, "qre", case, "state_bytes"), 1, 0) or NOT_MEASURED)
        rows.append(cells)
    return table(head, rows)


def pattern_state(results: Results) -> str:
    """Short-lived keys, Theorem 7, checking many atoms, Spark."""
    keys = "10000000 keys of 20 events"
    rate = millions(results.figure(TWO, "qre", keys, "events_per_s"))
    most = in_units(results.figure(TWO, "qre", keys, "state_bytes_most"))
    split = in_units(results.figure(TWO, "qre", "typing 300 atoms", "split_s"), 1, 2, " s")
    rows = [
        [
            "10 M keys that each live for 20 events, a thousand open at once",
            f"{rate} events/s, {most} bytes at most",
        ],
        *(_theorem(results, name) for name in ("daily maximum", "good and bad days", "P7, w=1000")),
        ["typing a pattern of 300 atoms", split],
        ["N2 from Parquet files on Spark, `local[2]`", _on_spark(results, "events_per_s")],
        ["the same plan in this process", _on_spark(results, "embedded_from_parquet")],
    ]
    return table(["what", "figure"], rows)


def _on_spark(results: Results, name: str) -> str:
    return with_unit(millions(results.figure(TWO, "qre", "N2 from Parquet on Spark", name)), " events/s")


def _theorem(results: Results, name: str) -> list[str]:
    case = f"Theorem 7: {name}"

    def three(of: str) -> str:
        seen = [short(results.figure(TWO, "qre", case, f"{of}.{number}"), 1, 0) for number in range(3)]
        return seen[0] if len(set(seen)) == 1 and seen[0] else ", ".join(filter(None, seen)) or NOT_MEASURED

    said = f"{name}: bytes held and instructions an item after 10^3, 10^5 and 10^7 items (Theorem 7)"
    return [said, f"{three('state_bytes')}; {three('operations_per_item_at_most')}"]


def small_calls(results: Results) -> str:
    """N2 fed with few events a call, by the clock."""
    rows = []
    for size in (1, 16, 256, 4096):
        case = f"N2, {size} events a call"
        rate = short(results.figure(TWO, "qre", case, "events_per_s"), 1, 0) or NOT_MEASURED
        times = [short(results.figure(TWO, "qre", case, name), 1, 0) for name in ("p50_us", "p99_us")]
        rows.append([str(size), rate, *(one or NOT_MEASURED for one in times)])
    return table(["events a call", "events/s", "median, µs", "99th percentile, µs"], rows)


def claims(results: Results) -> str:
    """More CPU time with claims than without, by joins."""
    rows = []
    for count in (1, 2, 3, 4):
        cells = [str(count)]
        for mode in ("tokens", "heeding", "naive"):
            cells.append(results.text(TWO, "consistency", f"{count} joins, {mode}, page 65536", "cost"))
        rows.append(cells)
    return table(["joins", "tokens at the tuned period", "heeding", "heeding, naive scan"], rows)


def feedback_aware(results: Results) -> str:
    """Suite 1: being able to receive feedback, when none is sent."""
    queries = {
        "a: bucket and max": "windowed maximum",
        "b: join": "join",
        "c: selects and union": "selects and a union",
    }
    rows = [[said, _more(results, f"suite 1 {case}")] for case, said in queries.items()]
    return table(["query", "more CPU time"], rows)


def feedback_sent(results: Results) -> str:
    """Suite 2: a message after every row."""
    rows = [
        [
            str(steps),
            *(_more(results, f"suite 2 {steps} selects, n = 1, {how}") for how in ("overtaken", "climbing")),
        ]
        for steps in (1, 5, 10, 15)
    ]
    rows.append(
        ["1 and 5, beside itself", *(_more(results, f"suite 2 {n} selects, beside itself") for n in (1, 5))]
    )
    return table(["selects", "punctuation right behind", "punctuation five minutes behind"], rows)


def _more(results: Results, case: str) -> str:
    """What the laps say, with its 95 % interval."""
    figure, low, high = (
        results.figure(TWO, "feedback", case, name)
        for name in ("by_lap_percent", "by_lap_interval.0", "by_lap_interval.1")
    )
    if figure is None or low is None or high is None:
        return NOT_MEASURED
    return f"{figure.median:+.1f} %{mark(figure)} [{low.median:.1f}, {high.median:.1f}]"


def feedback_saves(results: Results) -> str:
    """Suite 5 and the thrifty join: CPU time spared, by rows in a page."""
    queries = {
        "suite 5 2: windowed max over a join": "windowed maximum over a join",
        "suite 5 3: join of windowed averages": "join of windowed averages",
        "suite 5 1: two filters and a union": "two filters and a union, left with 1 % of their rows",
        "thrifty join": "a thrifty join, three of four hours empty",
    }
    rows = [
        [
            said,
            *(
                spared(results.figure(TWO, "feedback", f"{case}, {page} rows a page", "saved_percent"))
                for page in (21600, 450)
            ),
        ]
        for case, said in queries.items()
    ]
    return table(["query", "21,600 rows", "450 rows"], rows)


def spared(figure: Figure | None) -> str:
    """
    >>> spared(Figure(27, 27, 27)), spared(Figure(-18, -20, -3))
    ('27 % less', '18 % more (20 to 3)')
    """
    if figure is None:
        return NOT_MEASURED
    low, high = abs(figure.least), abs(figure.greatest)
    spread = "" if low == high else f" ({low:.0f} to {high:.0f})"
    return f"{abs(figure.median):.0f} % {'less' if figure.median >= 0 else 'more'}{mark(figure)}{spread}"


def loops(results: Results) -> str:
    """A loop that takes input while it works, beside one that is worked off first; counted, not timed."""
    said = {
        "hybrid": "a loop that runs freely (the default)",
        "staged": '`progress="staged"`: input waits until the loop is empty',
    }
    rows = []
    for progress, words in said.items():
        case = f"a walk, the 20th of 200 hops, an event every 30 steps, {progress}"
        waits = in_units(results.figure(TWO, "ffp", case, "events_wait"))
        pages = in_units(results.figure(TWO, "ffp", case, "pages_around"))
        rows.append([words, with_unit(waits, " steps"), pages])
    return table(["", "an event waits before it is read", "pages that go around"], rows)


def pace(results: Results) -> str:
    """Suite 3: the rows that `pace` keeps, counted."""
    rows = [
        [said, in_units(results.figure(TWO, "feedback", f"suite 3 {case}", "rows"))]
        for case, said in (
            ("pace", "`pace` without feedback"),
            ("pace with feedback", "`pace` with feedback"),
        )
    ]
    useful = in_units(results.figure(TWO, "feedback", "suite 3 union", "useful"))
    all_rows = in_units(results.figure(TWO, "feedback", "suite 3 union", "rows"))
    return table(
        ["", "rows kept"], [["a plain union", with_unit(all_rows, f", of which {useful} are useful")], *rows]
    )


def how_far(results: Results) -> str:
    """Suite 4: the rows that each step gives, by how far feedback is sent up; counted."""
    rows = []
    for case, said in (("a: none", "without feedback"), ("d: join", "with it, sent up to the join")):
        steps = ("Join", "Bucket", "Average")
        figures = [results.figure(TWO, "feedback", f"suite 4 {case}", f"rows_out.{step}") for step in steps]
        rows.append([said, *map(in_units, figures)])
    return table(["", "join", "bucket", "average"], rows)


def bank(results: Results) -> str:
    """Bank transfers: claimed states that are wrong, counted."""
    case = "bank, 200000 transactions, 6 views"
    states, wrong = (results.figure(TWO, "consistency", case, name) for name in ("states", "wrong_states"))
    seen, bad = (
        results.figure(TWO, "consistency", "bank without claims", name) for name in ("states", "wrong_states")
    )
    rows = [
        ["200,000 transactions with cancellations, with claims", in_units(states), in_units(wrong)],
        ["150 transactions, a reader without claims", in_units(seen), in_units(bad)],
    ]
    return table(["six views of bank transfers", "states seen", "of which wrong"], rows)
