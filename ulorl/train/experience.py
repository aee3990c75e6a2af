"""Which finished samples leave the pool for this step's update, and whom each is compared with.

Invariants: a sample is compared with members of its own group alone; what is accepted is never lost: surplus stays in
the pool for the next step; groups without any difference in reward leave once all members are finished, trained on
or not as the recipe says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from ulorl.recipe_train import RolloutRecipe
from ulorl.train.advantage import is_uniform
from ulorl.train.pool import Group, Sample, UnfinishedPool, rewards
from ulorl.train.ranks import Ranks


@dataclass(frozen=True)
class Leaving:
    """``samples`` of ``group`` leave now; ``peers`` are the members whose rewards they are compared with."""

    group: Group
    samples: tuple[Sample, ...]
    peers: tuple[Sample, ...]

    @property
    def uniform(self) -> bool:
        return is_uniform(rewards(self.peers))


@dataclass(frozen=True)
class Experience:
    """What leaves in one step: ``trained`` makes the update, ``uniform`` has nothing to learn from."""

    trained: list[Leaving]
    uniform: list[Leaving]

    def all(self) -> list[Leaving]:
        """Everything that leaves, in order of entry."""
        return sorted([*self.trained, *self.uniform], key=lambda leaving: leaving.group.number)


def accepted(pool: UnfinishedPool, rollout: RolloutRecipe) -> int:
    """Entries in the pool that an update could be made of now."""
    return sum(_trains(leaving, rollout) for leaving in _ready(pool, rollout))


def take(pool: UnfinishedPool, rollout: RolloutRecipe, step: int, ranks: Ranks | None = None) -> Experience:
    """Take this step's experience out of the pool: all that is ready, or as much of it as refilling asks for.

    What is asked for is of all ranks together: the groups that entered first.
    """
    chosen = _first_accepted(pool, rollout, ranks or Ranks())
    experience = Experience([], [])
    for leaving in list(_ready(pool, rollout)):
        if not _trains(leaving, rollout):
            experience.uniform.append(leaving)
        elif chosen is None or leaving.group.number in chosen:
            experience.trained.append(leaving)
        else:
            continue
        pool.leave(leaving.group, leaving.samples, step)
    return experience


def histogram(entries: Iterable[Leaving], ranks: Ranks | None = None) -> str:
    """How many groups had how many right, of those that are whole, on all ranks: "0/8: 12, 3/8: 1"."""
    groups = [entry.group for entry in entries if entry.group.finished]
    own = [(sum(reward >= 1 for reward in group.rewards), len(group.samples)) for group in groups]
    counts = Counter(chain.from_iterable((ranks or Ranks()).gather(own)))
    return ", ".join(f"{right}/{size}: {count}" for (right, size), count in sorted(counts.items())) or "none"


def _first_accepted(pool: UnfinishedPool, rollout: RolloutRecipe, ranks: Ranks) -> set[int] | None:
    """Numbers of the groups that the update is made of, on whichever rank; None: of all."""
    if rollout.dynamic_sampling != "refill":
        return None
    own = [leaving.group.number for leaving in _ready(pool, rollout) if _trains(leaving, rollout)]
    return set(sorted(chain.from_iterable(ranks.gather(own)))[: rollout.prompts_per_step])


def _trains(leaving: Leaving, rollout: RolloutRecipe) -> bool:
    return rollout.dynamic_sampling == "off" or not leaving.uniform


def _ready(pool: UnfinishedPool, rollout: RolloutRecipe) -> Iterator[Leaving]:
    """What may leave, in order of entry."""
    for group in pool.groups.values():
        done = tuple(sample for sample in group.samples if sample.reward is not None)
        staying = tuple(sample for sample in done if sample.left_step is None)
        whole = len(done) == len(group.samples)
        differ = rollout.group_policy == "sample" and bool(staying) and not is_uniform(rewards(done))
        if whole or differ:
            yield Leaving(group, staying, done)
