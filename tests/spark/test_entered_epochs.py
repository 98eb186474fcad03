"""What enters the epochs of a query on Spark is taken down once, and grows with what enters."""

from __future__ import annotations

import json
import random
import stat
from pathlib import Path

import pytest

from caesura.errors import StreamError
from caesura.feedback.messages import assumed
from caesura.io.places import Place
from caesura.punctuation import Pattern, gt
from caesura.spark.host import entered_epochs
from caesura.spark.host.entered_epochs import (
    EnteredEpochs,
    Message,
    ReplayStep,
    SparkOffsets,
    lost,
    replay_steps,
)

Told = tuple[dict[str, str], int | None, tuple[Message, ...]]


def drawn_epochs(seed: int, *, clocked: bool) -> list[Told]:
    """Epochs of files and of lanes: how far each was read by then, the clock, and what was said."""
    drawn = random.Random(seed)
    at, clock, told, lanes = {}, 1000, [], 1
    for number in range(drawn.randrange(1, 40)):
        lanes += drawn.random() < 0.1
        moved = {"0": f"{number}", "1": json.dumps({"lanes": {str(n): number for n in range(lanes)}})}
        at = {**at, **{place: entry for place, entry in moved.items() if drawn.random() < 0.4}}
        clock += drawn.choice([0, 7]) if number else 1
        said = assumed(Pattern(id=gt(number)), standing=True)
        told.append((dict(at), clock if clocked else None, (("out", said),) if drawn.random() < 0.2 else ()))
    return told


def lanes_of(at: dict[str, str]) -> int:
    return len(json.loads(at["1"])["lanes"]) if "1" in at else 0


def steps_by_hand(told: list[Told], *, clocked: bool) -> list[ReplayStep]:
    """The slow answer: all epochs as they were, without those that change nothing and can be left out."""
    steps: list[tuple[bool, ReplayStep]] = []
    before: Told = ({}, None, ())
    for at, clock, said in told:
        rows, read = at != before[0], clock != before[1]
        if clocked and (rows or read or said):
            if not rows and not said and steps and steps[-1][0]:
                steps.pop()
            steps.append((not rows and not said, ReplayStep(at, clock, said)))
        if not clocked and (said or 0 < lanes_of(before[0]) < lanes_of(at)):
            if before[0] != (steps[-1][1].at if steps else {}):
                steps.append((False, ReplayStep(before[0])))
            if said:
                steps.append((False, ReplayStep(at, None, said)))
        before = (at, clock, said)
    if not clocked and before[0] != (steps[-1][1].at if steps else {}):
        steps.append((False, ReplayStep(before[0])))
    return [step for _, step in steps]


@pytest.mark.parametrize("clocked", [True, False])
def test_a_replay_has_the_epochs_in_which_something_entered(
    clocked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entered_epochs, "SEGMENT", 3)
    for seed in range(60):
        told, place = drawn_epochs(seed, clocked=clocked), Place.of(tmp_path / str(seed))
        log, before = EnteredEpochs(place), SparkOffsets()
        for epoch, (at, clock, said) in enumerate(told):
            now = SparkOffsets(at, clock, before.heard + len(said))
            for _ in range(random.Random(epoch + seed).choice([1, 1, 2])):  # cut off, it runs again
                log.take_down(epoch, before, now, said)
                log.save()
            if epoch % 3 == seed % 3:
                log = EnteredEpochs(place)  # another start
            before = now
        assert not lost(log.read(), before)
        got = list(replay_steps(EnteredEpochs(place).read(), told[-1][0], clocked=clocked))
        assert got == steps_by_hand(told, clocked=clocked), seed
        if clocked:
            unclocked = [(at, None, said) for at, _, said in told]
            steps = list(replay_steps(EnteredEpochs(place).read(), told[-1][0], clocked=False))
            assert steps == steps_by_hand(unclocked, clocked=False), seed


def test_a_full_segment_is_neither_read_nor_written_again_and_all_are_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entered_epochs, "SEGMENT", 2)
    place = Place.of(tmp_path)
    log, files = EnteredEpochs(place), tmp_path / "entered"
    log.take_down(0, SparkOffsets(), SparkOffsets({"0": "1"}))
    log.save()
    assert not files.exists()  # rows alone, and no clock
    now = SparkOffsets()
    for epoch in range(5):
        before, now = now, SparkOffsets({"0": f"{epoch + 1}"}, epoch + 1)
        log.take_down(epoch, before, now)
        log.save()
    assert sorted(file.name for file in files.iterdir()) == ["000000.json", "000001.json", "000002.json"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files.iterdir()} == {0o600}
    (files / "000001.json").unlink()
    log = EnteredEpochs(place)
    for reading in range(9, 300):  # nothing is read and nothing is said
        before, now = now, SparkOffsets({"0": "5"}, reading)
        log.take_down(reading, before, now)
        log.save()
    assert [(e["epoch"], e["clock"]) for e in json.loads((files / "000002.json").read_text())["entries"]] == [
        (4, 5),
        (9, 299),
    ]
    with pytest.raises(StreamError, match=r"000001\.json' cannot be read"):
        log.read()


@pytest.mark.parametrize("clocked", [True, False])
def test_a_segment_that_is_taken_away_is_missed(
    clocked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entered_epochs, "SEGMENT", 2)
    said = assumed(Pattern(id=3), standing=True)
    for more in (0, 1):  # at once, and once something else has entered
        place = Place.of(tmp_path / str(more))
        log, now = EnteredEpochs(place), SparkOffsets()
        for epoch in range(3 + more):
            if epoch == 3:
                (tmp_path / str(more) / "entered" / "000001.json").unlink()
                log = EnteredEpochs(place)
            before = now
            now = SparkOffsets({"0": f"{epoch}"}, epoch + 1 if clocked else None, epoch)
            log.take_down(epoch, before, now, [("out", said)])
            log.save()
        if not more:
            assert not lost(EnteredEpochs(place).read(), now)
            (tmp_path / "0" / "entered" / "000001.json").unlink()
        assert lost(EnteredEpochs(place).read(), now)
