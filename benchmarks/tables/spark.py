"""Ours on Spark beside Spark's own streaming, over the same files in the same session."""

from __future__ import annotations

from benchmarks.figures import NOT_MEASURED, Results, in_units, millions, ratio, short, table, with_unit
from benchmarks.tables.nexmark import spark_in_short

TWO, WIDE = "2-cores", "16-cores"
HEAD = ["case", "ours", "beside it, in the same run"]


def costs(results: Results) -> str:
    """Every case, for the page on Spark."""
    return table(HEAD, [*_y1(results, (1, 2, 4, 8)), *_frame(results), *_rest(results)])


def in_short(results: Results) -> str:
    """The main cases, for the first page."""
    nexmark = ["NEXMark, the queries that Spark has too", "", spark_in_short(results)]
    return table(HEAD, [*_y1(results, (1, 8)), nexmark, *_rest(results)[:2]])


def _y1(results: Results, sizes: tuple[int, ...]) -> list[list[str]]:
    return [
        [
            f"Yahoo's Y1, epochs of {size} M events",
            with_unit(millions(results.figure(TWO, "spark", f"y1_{size}M", "events_per_s")), " events/s"),
            with_unit(
                ratio(results.figure(TWO, "spark", f"y1_{size}M", "ratio_to.spark_own")),
                f" times Spark's own{_rounds(results, size)}",
            ),
        ]
        for size in sizes
    ]


def _rounds(results: Results, size: int) -> str:
    """Ratios of the rounds, where there was more than one."""
    ratios = []
    for number in range(9):
        ours, own = (
            results.figure(TWO, "spark", f"{case}_{size}M", f"epoch_s_by_round.{number}")
            for case in ("y1", "spark_own_y1")
        )
        if ours and own:
            ratios.append(f"{own.median / ours.median:.2f}")
    return f"; by rounds {', '.join(ratios)}" if len(ratios) > 1 else ""


def _frame(results: Results) -> list[list[str]]:
    rates, ratios = [], []
    for size in (1, 2, 4, 8):
        rates.append(short(results.figure(TWO, "spark", f"y1_from_spark_{size}M", "events_per_s"), 1e6, 1))
        ratios.append(short(results.figure(TWO, "spark", f"y1_from_spark_{size}M", "ratio_to.spark_own")))
    said = "Y1 through `cz.from_spark`, 1, 2, 4 and 8 M"
    return [[said, f"{_listed(rates)} M events/s", f"{_listed(ratios)} times"]]


def _listed(texts: list[str]) -> str:
    return ", ".join(text or NOT_MEASURED for text in texts)


def _rest(results: Results) -> list[list[str]]:
    def seconds(case: str, name: str, digits: int = 2) -> str:
        return in_units(results.figure(TWO, "spark", case, name), 1, digits, " s")

    state = "state_200MB_per_bucket"
    return [
        [
            "an epoch with next to no data",
            seconds("epoch_with_no_data", "seconds"),
            seconds("epoch_with_no_data", "spark_own_seconds"),
        ],
        [
            "the first epoch of a session",
            seconds("y1_1M", "first_epoch_s.0", 1),
            f"{seconds('spark_own_y1_1M', 'first_epoch_s.0', 1)}, which runs first",
        ],
        [
            "the first epoch of a second query",
            seconds("y1_1M", "first_epoch_s.1", 1),
            seconds("spark_own_y1_1M", "first_epoch_s.1", 1),
        ],
        [
            "temporal join with corrections",
            with_unit(
                in_units(results.figure(TWO, "spark", "temporal_join", "events_per_s"), 1e3), " K events/s"
            ),
            with_unit(
                ratio(results.figure(TWO, "spark", "temporal_join", "ratio_to.by_hand"), 0),
                " times the same by hand in `transformWithStateInPandas`",
            ),
        ],
        [
            "join with 200 MB of state in each bucket, 1 % touched",
            with_unit(
                seconds(state, "seconds"), f" an epoch, the slowest {seconds(state, 'slowest_seconds')}"
            ),
            with_unit(seconds(state, "without_state_seconds"), " without that state"),
        ],
    ]


def wide(results: Results) -> str:
    """Y1 on sixteen cores."""
    rows = [
        [
            f"Y1, epochs of {size} M events",
            with_unit(millions(results.figure(WIDE, "spark", f"y1_{size}M", "events_per_s")), " events/s"),
            with_unit(
                ratio(results.figure(WIDE, "spark", f"y1_{size}M", "ratio_to.spark_own")),
                " times Spark's own",
            ),
        ]
        for size in (4, 16)
    ]
    return table(["case, `local[16]`", "ours", "beside it, in the same run"], rows)


def epoch_model(results: Results) -> str:
    """What an epoch is made of, by a sum of terms that is fitted to measured epochs."""
    terms = (
        ("epoch", "ms.epoch", " ms"),
        ("stage", "ms.stage", " ms"),
        ("task (a file that is read; a bucket in a stage), shared by two slots", "ms.task", " ms"),
        ("row, on one slot", "us.row", " µs"),
        ("key that changes, on one slot", "us.key", " µs"),
        ("epoch, in files of checkpoint and output", "files.epoch", ""),
        ("task, in files", "files.task", ""),
    )
    rows = []
    for said, name, sign in terms:
        digits = 2 if name.startswith("us") else 1
        rows.append([said, in_units(results.figure(TWO, "epochs", "the model", name), 1, digits, sign)])
    return table(["for each", "it takes"], rows)


def epoch_simulated(results: Results) -> str:
    """Epochs of a large cluster, simulated with these terms."""
    rows = []
    for slots in (4, 16, 80, 400):
        cells, buckets, grows = [], "", ""
        for latency in (0, 20, 100):
            case = f"{slots} slots, 10 M events/s, {latency} ms a file"
            seconds = results.figure(TWO, "epochs", case, "epoch_s")
            holds = results.value(TWO, "epochs", case, "holds")
            cells.append("does not keep up" if holds == "False" else with_unit(in_units(seconds, 1, 1), " s"))
            buckets = short(results.figure(TWO, "epochs", case, "buckets"), 1, 0) or buckets
            found = results.value(TWO, "epochs", case, "first_to_grow")
            grows = found if isinstance(found, str) else grows
        rows.append([str(slots), buckets, *cells, grows])
    head = ["slots", "buckets", "files take 0 ms", "20 ms", "100 ms", "what takes most"]
    return table(head, rows)


def paging(results: Results) -> str:
    """A join whose state lies on the disk for the most part."""
    said = {"mapped": "files are mapped", "limited": "files are read, under a limit of addresses"}
    rows = []
    for how, words in said.items():
        case = f"join_400MB_{how}"
        filled, met, peak = (
            results.figure(TWO, "state", case, name)
            for name in ("fill_rows_per_s", "lookups_per_s", "peak_anonymous_mb")
        )
        cells = (millions(filled, thousands=True), millions(met, thousands=True), in_units(peak, 1, 0, " MB"))
        rows.append([words, *cells])
    return table(
        ["400 MB of state, 40 MB of it in memory", "rows filled a second", "rows met a second", "memory"],
        rows,
    )
