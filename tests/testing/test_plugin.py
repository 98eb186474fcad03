"""The pytest plugin, used as a user would."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

SOURCES = Path(__file__).parents[2] / "src"


@pytest.fixture(autouse=True)
def sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of their own find this tree."""
    monkeypatch.setenv("PYTHONPATH", str(SOURCES))


PASSES = '''
import caesura as cz

def test_a_correction_is_followed(draw_stream, assert_says):
    orders = draw_stream("""
     LE  RE    | shop amount |
      3  4     | A    30     | +
     12  13    | A    5      | +
      9  10    | A    12     | +
     12  13    | A    5      | -
    -- 20 --
    """)
    assert_says(orders.group_by("shop").tumbling(10).agg(revenue=cz.sum("amount")), """
     LE  RE | shop revenue |
      0  10 | A    42      | +
    """)
'''
LATE = '''
def test_a_row_behind_a_promise_is_late(draw_stream, assert_says):
    clicks = draw_stream("""
     LE  RE | id |
      3  4  | 7  | +
    -- 10 --
      5  6  | 8  | +
    """)
    assert_says(clicks, """
     LE  RE | id |
      3  4  | 7  | +
    """, late=1)
'''
FAILS = """
def test_it_fails(draw_stream, assert_says):
    assert_says(draw_stream(" LE RE | id |\\n 1 2 | 7 | +"), " LE RE | id |\\n 1 2 | 8 | +")
"""
SPARK = '''
import pytest

class Session:
    """Stands for a session: what is asked of it is written down."""

@pytest.fixture
def spark():
    return Session()

def test_both_hosts(draw_stream, assert_says, spark, monkeypatch):
    import caesura as cz
    asked = []
    monkeypatch.setattr(cz.Stream, "run_batch", lambda self, s: asked.append(s) or self.run())
    assert_says(draw_stream(" LE RE | id |\\n 1 2 | 7 | +"), " LE RE | id |\\n 1 2 | 7 | +")
    assert asked == [spark]
'''


def run(pytester: pytest.Pytester, **files: str) -> pytest.RunResult:
    """In a process of its own, as users do: compiled libraries load once per process."""
    pytester.makepyfile(**files)
    return pytester.runpytest_subprocess("-p", "caesura_pytest", "-q", "-p", "no:cacheprovider")


def test_drawn_streams_are_run_and_compared_and_a_difference_is_shown(pytester: pytest.Pytester) -> None:
    result = run(pytester, test_corrections=PASSES, test_late=LATE, test_hosts=SPARK, test_fails=FAILS)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*1  2  | 7  | only got", "*1  2  | 8  | only wanted"])
