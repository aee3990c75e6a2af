"""Verdicts in the background: the same as in the foreground, and no failure of the verifier is silent."""

import threading
import time

from ulorl.recipe import VerifyRecipe
from ulorl.train.rewards import Rewards, is_error
from ulorl.verify import Item, Verdict, Verifier

ITEMS = [Item("5", f"so \\boxed{{{number % 7}}}") for number in range(600)]


def test_verdicts_are_those_of_the_verifier():
    verifier = Verifier(VerifyRecipe())
    rewards = Rewards(verifier, timeout_s=60)
    for round_ in range(2):
        for number, item in enumerate(ITEMS):
            rewards.submit((round_, number), item)
        found = rewards.collect()
        assert [found[round_, number] for number in range(600)] == verifier.verify(ITEMS)
    assert rewards.collect() == {}
    rewards.close()


class Failing:
    def verify(self, items):
        if any(item.reference == "bad" for item in items):
            raise RuntimeError("boom")
        return [Verdict(True, "", "exact") for _ in items]


def test_a_verifier_that_raises_is_counted_and_the_run_goes_on():
    rewards = Rewards(Failing(), timeout_s=60)
    rewards.submit(1, Item("bad", "x"))
    assert is_error(verdict := rewards.collect()[1])
    assert "boom" in verdict.reason
    rewards.submit(2, Item("good", "x"))
    assert rewards.collect()[2].equivalent is True


class Hanging:
    def __init__(self):
        self.release = threading.Event()

    def verify(self, items):
        if any(item.reference == "hang" for item in items):
            self.release.wait(30)
        return [Verdict(True, "", "exact") for _ in items]


def test_a_verifier_that_hangs_costs_its_time_out_and_no_later_verdict():
    verifier = Hanging()
    rewards = Rewards(verifier, timeout_s=0.2)
    start = time.monotonic()
    rewards.submit(1, Item("hang", "x"))
    assert is_error(rewards.collect()[1])
    assert time.monotonic() - start < 10
    rewards.submit(2, Item("good", "x"))
    assert rewards.collect()[2].equivalent is True
    verifier.release.set()


def test_a_reward_starts_before_it_is_collected():
    seen = threading.Event()

    class Watching:
        def verify(self, items):
            seen.set()
            return [Verdict(True, "", "exact") for _ in items]

    rewards = Rewards(Watching(), timeout_s=60)
    rewards.submit(1, Item("5", "x"))
    assert seen.wait(30)
    assert rewards.collect()[1].equivalent is True
