"""Pools and segments, with an engine that answers by rule."""

import random
from dataclasses import dataclass, field

import pytest

from ulorl.engine.base import Generation
from ulorl.problem import Problem
from ulorl.recipe import VerifyRecipe
from ulorl.recipe_train import RolloutRecipe
from ulorl.train.batch import trajectory
from ulorl.train.checkpoint import pool_groups, pool_table
from ulorl.train.experience import accepted, take
from ulorl.train.pool import Group, Sample, UnfinishedPool
from ulorl.train.rewards import Rewards
from ulorl.train.rollout import PromptStream, decode_segment, new_groups, new_prompts, score
from ulorl.verify import Item, Verifier

PROBLEMS = [Problem(id=f"p{number}", problem=f"{number}+1", answer=str(number + 1)) for number in range(10)]
EOS = 0


class TextPrompter:
    """One token a character; 0 ends."""

    def encode(self, text):
        return tuple(ord(character) for character in text)

    def decode(self, token_ids):
        return "".join(chr(token) for token in token_ids if token != EOS)


@dataclass
class LengthEngine:
    """Every sample wants a length drawn from its first request; answers right or wrong by its parity."""

    longest: int = 40
    policy_version: int = 0
    seen: list = field(default_factory=list)
    wanted: dict = field(default_factory=dict)

    def generate(self, requests, on_done=None):
        answers = []
        for request in requests:
            self.seen.append(request)
            group, index, segment = request.id.split(".")
            if segment == "0":
                self.wanted[group, index] = (
                    len(request.prompt_ids),
                    random.Random(request.seed).randint(1, self.longest),
                )
            prompt, length = self.wanted[group, index]
            done = len(request.prompt_ids) - prompt
            text = f"\\boxed{{{int(group) % 10 + 1 + length % 2}}}".rjust(length)[-length:]
            tokens = [*map(ord, text), EOS][done : done + request.max_tokens]
            reason = "stop" if tokens[-1] == EOS else "length"
            answers.append(Generation(request.id, tuple(tokens), (-0.5,) * len(tokens), reason, self.policy_version))
            if on_done:
                on_done(answers[-1])
        return answers


def run(rollout, steps, engine=None, restart_at=None):
    """Groups as they leave, and the engine; ``restart_at`` puts the pool through a checkpoint."""
    engine, prompter = engine or LengthEngine(), TextPrompter()
    stream, pool, left = PromptStream(PROBLEMS[:1], 7), UnfinishedPool(rollout.max_tokens), []
    rewards = Rewards(Verifier(VerifyRecipe()), timeout_s=60)
    for step in range(1, steps + 1):
        if step == restart_at:
            groups = pool_groups(pool_table(list(pool.groups.values())), PROBLEMS)
            assert groups == list(pool.groups.values())
            stream, pool = (
                PromptStream(PROBLEMS[:1], 7, stream.drawn),
                UnfinishedPool(rollout.max_tokens, groups),
            )
        count = new_prompts(pool, rollout, accepted=accepted(pool, rollout), step=step)
        pool.add(new_groups(stream, prompter, rollout, count=count, step=step, seed=7))
        decode_segment(pool, engine, prompter, rewards, rollout, step=step)
        score(pool, rewards)
        pool.check(rollout.group_size)
        left += [entry.group for entry in take(pool, rollout, step).all()]
        engine.policy_version += 1
    return left, pool, engine


ROLLOUT = RolloutRecipe(prompts_per_step=3, group_size=4, max_tokens=32, segments=4)


def test_every_group_leaves_once_and_whole():
    left, pool, _ = run(ROLLOUT, 12)
    numbers = [group.number for group in left] + list(pool.groups)
    assert sorted(numbers) == list(range(36))
    assert all([sample.index for sample in group.samples] == [0, 1, 2, 3] for group in left)
    assert max(12 - group.born_step for group in pool.groups.values()) < ROLLOUT.segments


def test_segments_carry_tokens_versions_and_the_remaining_budget():
    left, _, engine = run(ROLLOUT, 8)
    for request in engine.seen:
        segment = int(request.id.split(".")[2])
        carried = len(request.prompt_ids) - 3
        assert carried == 8 * segment
        assert request.max_tokens == min(8, 32 - carried)
    samples = [(group, sample) for group in left for sample in group.samples]
    assert {len(sample.segment_lengths) for _, sample in samples} == {1, 2, 3, 4}
    for group, sample in samples:
        first = group.born_step - 1
        assert sample.segment_versions == list(range(first, first + len(sample.segment_versions)))
        item = trajectory(group, sample, 0.0)
        assert len(item.versions) == len(item.logprobs) == len(item.token_ids)


def test_every_segment_of_every_sample_has_its_own_seed():
    _, _, engine = run(ROLLOUT, 8)
    seeds = [request.seed for request in engine.seen]
    assert len(set(seeds)) == len(seeds)


def test_segments_change_nothing_but_the_steps_a_sample_takes():
    whole, _, _ = run(RolloutRecipe(prompts_per_step=3, group_size=4, max_tokens=32, segments=1), 4)
    cut, _, _ = run(ROLLOUT, 8)
    by_number = {group.number: group for group in cut}
    for group in whole:
        other = by_number[group.number]
        assert [sample.token_ids for sample in group.samples] == [sample.token_ids for sample in other.samples]
        assert group.rewards == other.rewards


def test_truncated_samples_score_zero_and_stopped_ones_by_their_answer():
    left, _, _ = run(ROLLOUT, 12)
    samples = [(group, sample) for group in left for sample in group.samples]
    truncated = [sample for _, sample in samples if sample.finish_reason == "length"]
    assert truncated
    assert all(sample.reward == 0 and len(sample.token_ids) == 32 for sample in truncated)
    rewards = {sample.reward for _, sample in samples if sample.finish_reason == "stop"}
    assert rewards == {0.0, 1.0}


def test_a_right_answer_in_a_truncated_sample_scores_zero():
    pool = UnfinishedPool(12)
    text = "\\boxed{5}   "
    sample = Sample(0, 1, [ord(c) for c in text], [0.0] * 12, [12], [0], "length", 1)
    pool.add([Group(0, Problem("p", "4+1", "5"), (1,), [sample], 1)])
    rewards = Rewards(Verifier(VerifyRecipe()), timeout_s=60)
    rewards.submit((0, 0), Item("5", text))
    score(pool, rewards)
    assert sample.verdict.equivalent is True
    assert sample.reward == 0.0


@pytest.mark.parametrize("restart_at", [2, 5, 9])
def test_a_pool_that_went_through_a_checkpoint_goes_on_alike(restart_at):
    plain, _, _ = run(ROLLOUT, 10)
    restarted, _, _ = run(ROLLOUT, 10, restart_at=restart_at)
    assert plain == restarted


def test_the_prompt_stream_visits_every_problem_once_an_epoch_and_resumes():
    stream = PromptStream(PROBLEMS, 3)
    drawn = [problem.id for problem in stream.take(30)]
    for epoch in range(3):
        assert sorted(drawn[10 * epoch : 10 * epoch + 10]) == sorted(problem.id for problem in PROBLEMS)
    assert drawn[:10] != drawn[10:20]
    assert [problem.id for problem in PromptStream(PROBLEMS, 3, 17).take(13)] == drawn[17:]


def test_the_pool_refuses_what_breaks_its_invariants():
    pool = UnfinishedPool(4)
    sample = Sample(0, 1)
    group = Group(0, PROBLEMS[0], (1,), [sample], 1)
    pool.add([group])
    with pytest.raises(AssertionError, match="budget"):
        pool.extend(group, sample, Generation("x", (1,) * 5, (0.0,) * 5, "length", 0), 1)
    with pytest.raises(AssertionError, match="budget"):
        pool.extend(group, sample, Generation("x", (), (), "stop", 0), 1)
    with pytest.raises(AssertionError, match="twice"):
        pool.add([Group(0, PROBLEMS[0], (1,), [], 1)])
    pool.extend(group, sample, Generation("x", (1,), (0.0,), "stop", 0), 1)
    with pytest.raises(AssertionError, match="cannot grow"):
        pool.extend(group, sample, Generation("x", (1,), (0.0,), "stop", 0), 2)
