"""The measures of section 5.2.1, from a trace."""

from __future__ import annotations

from benchmarks.ffp_trace import Mark, figures


def test_lag_is_the_distance_between_real_and_explicit_progress_over_time() -> None:
    """From 2 on, events at 12 (system time 4) and 20 (system time 6) are still to come."""
    trace = [
        Mark(1, "event", 5),
        Mark(2, "definite", 10),
        Mark(4, "event", 12),
        Mark(5, "definite", 15),
        Mark(6, "event", 20),
    ]
    assert figures(trace).lag == (2 + 2 + 10 + 5) / 4


def test_a_promise_past_what_comes_has_no_lag() -> None:
    assert figures([Mark(1, "definite", 9), Mark(3, "event", 9)]).lag == 0


def test_silence_is_the_longest_time_without_a_promise() -> None:
    trace = [Mark(0, "event", 1), Mark(3, "definite", 1), Mark(10, "definite", 5), Mark(12, "event", 6)]
    assert figures(trace).silence == 7


def test_guesses_are_counted_and_state_is_averaged() -> None:
    trace = [Mark(1, "guesses", 2), Mark(1, "state", 10), Mark(2, "guesses", 5), Mark(2, "state", 20)]
    got = figures(trace)
    assert (got.guesses, got.state, got.definite) == (5, 15.0, 0)
