"""A function that never answers is left after its time; one row that it fails for is one row."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

import caesura as cz
from caesura import col
from caesura.errors import CaesuraError
from caesura.expr.time_limit import TimeLimited


def forever(a):
    while a == 2:
        pass
    return a


def stubborn(a):
    while True:
        try:
            while True:
                pass
        except Exception:  # noqa: BLE001 - as a careless user has it
            continue


def swallowing(a):
    try:
        forever(a)
    except BaseException:  # noqa: BLE001 - as in a finalizer, where errors are not passed on
        forever(a)


def in_thread(work):
    found = []

    def run():
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    return found[0]


@pytest.mark.parametrize("function", [forever, stubborn, swallowing])
def test_a_function_that_never_returns_is_left(function):
    with pytest.raises(TimeoutError, match=r"no answer within 0\.02 s"):
        TimeLimited(function, 0.02)(2)
    assert isinstance(in_thread(lambda: TimeLimited(function, 0.02)(2)), TimeoutError)


def test_one_that_sleeps_is_woken():
    with pytest.raises(TimeoutError):
        TimeLimited(time.sleep, 0.02)(1000)


def test_one_that_answers_is_not_disturbed_nor_is_another_timer():
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        signal.setitimer(signal.ITIMER_REAL, 500)
        assert TimeLimited(forever, 10.0)(7) == 7
        assert 400 < signal.getitimer(signal.ITIMER_REAL)[0] <= 500
        assert in_thread(lambda: TimeLimited(forever, 10.0)(7)) == 7
        with pytest.raises(ZeroDivisionError):
            TimeLimited(lambda a: 1 // a, 10.0)(0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


PROFILED = """
import sys, threading, time
from caesura.expr.time_limit import TimeLimited

def limited():
    TimeLimited(abs, 5.0)(-1)
    try:
        TimeLimited(lambda: [None for _ in iter(int, 1)], 0.02)()
    except TimeoutError:
        print("left")

thread = threading.Thread(target=limited)
thread.start()
thread.join()
sys.setprofile(lambda *_: None)
(lambda: 1)()
sys.setprofile(None)
print("profiled")
"""


def test_a_process_can_be_profiled_after_a_limit_in_a_thread():
    done = subprocess.run([sys.executable, "-c", PROFILED], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["left", "profiled"], done.stderr


def test_one_row_that_takes_too_long_is_one_late_row():
    slow = cz.udf(forever, returns="bigint", name="slow", timeout="20ms")
    rows = cz.from_rows([{"t": t, "a": t} for t in range(4)], time="t")
    made = rows.select(b=slow(col("a"))).on_bad("late").run()
    assert made.table()["b"].to_pylist() == [0, 1, 3]
    [why] = made.late["select"]["reason"].to_pylist()
    assert why == "function 'slow' failed on (a = 2): TimeoutError: no answer within 0.02 s"
    with pytest.raises(CaesuraError, match="no answer within"):
        rows.select(b=slow(col("a"))).run()


def test_the_older_name_of_on_bad_warns():
    rows = cz.from_rows([{"t": 1, "a": 1}], time="t").select(b=col("a") + 1)
    with pytest.warns(DeprecationWarning, match="is now on_bad"):
        rows.on_error("late")
