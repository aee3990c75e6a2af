"""Several processes train as one does: what is dealt to whom, the same steps, the same updates, and lost processes."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from ports import free_port
from ranks_worker import FIGURES, PLAIN, RESUMED, SAME, cases
from test_train_experience import trainer_of
from test_train_learner import trajectories

from ulorl.errors import UserError
from ulorl.launch import needs_launch
from ulorl.recipe_train import ObjectiveRecipe, RolloutRecipe
from ulorl.train.batch import micro_batches
from ulorl.train.figures import combine, largest, mean, same, total
from ulorl.train.ranks import Ranks, open_ranks
from ulorl.train.record import exhaustion
from ulorl.train.share import EMPTY, Head, deal, share
from ulorl.train.stage import check_processes
from ulorl.train.step_metrics import step_metrics

WORKER, LOST = Path(__file__).with_name("ranks_worker.py"), Path(__file__).with_name("lost_rank_worker.py")


@dataclass
class Board:
    """What threads that play ranks write on."""

    barrier: threading.Barrier
    lines: list


class ThreadRanks(Ranks):
    """A rank that is a thread: the same promises as processes, quickly."""

    def __init__(self, rank, board):
        self.rank, self.world, self.board = rank, len(board.lines), board

    def gather(self, value):
        self.board.lines[self.rank] = value
        self.board.barrier.wait(30)
        found = list(self.board.lines)
        self.board.barrier.wait(30)
        return found

    def exchange(self, outgoing):
        return [row[self.rank] for row in self.gather(list(outgoing))]


def together(world, function):
    """``function(ranks)`` on every rank; the results by rank."""
    board, results = Board(threading.Barrier(world), [None] * world), [None] * world

    def play(rank):
        try:
            results[rank] = function(ThreadRanks(rank, board))
        except BaseException:
            board.barrier.abort()
            raise

    threads = [threading.Thread(target=play, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(result is not None for result in results), "a rank failed"
    return results


def heads(lengths):
    return [Head(0, place, place, length, length - 2) for place, length in enumerate(lengths)]


@pytest.mark.parametrize("world", [1, 2, 3, 8])
@pytest.mark.parametrize("lengths", [[9], [30, 20, 10], list(range(3, 60)), [500, *[5] * 40]])
def test_micro_batches_are_dealt_out_evenly_and_none_is_lost(world, lengths):
    items = heads(lengths)
    dealt = deal(items, world, 100)
    assert len({len(of_rank) for of_rank in dealt}) == 1
    assert sorted(index for of_rank in dealt for batch in of_rank for index in batch) == list(range(len(lengths)))
    cost = [[len(batch) * max((lengths[index] for index in batch), default=0) for batch in of] for of in dealt]
    assert all(one <= max(100, *lengths) for of_rank in cost for one in of_rank)
    totals = [sum(of_rank) for of_rank in cost]
    assert max(totals) - min(totals) <= max(one for of_rank in cost for one in of_rank)
    if world == 1:
        assert sorted(dealt[0]) == sorted(micro_batches(items, 100))


def test_ranks_share_samples_in_the_order_of_their_groups():
    items = [type(one)(**vars(one) | {"group": place // 4}) for place, one in enumerate(trajectories(24))]

    def weights(lengths):
        return [length / sum(lengths) for length in lengths]

    def shared(ranks):
        own = [item for item in items if ranks.owns(item.group)]
        return share(own, ranks, minibatches=3, micro_batch_tokens=100, token_weights=weights)

    (alone,) = together(1, shared)
    several = together(3, shared)
    for number, part in enumerate(alone):
        rows = [pair for one in part for pair in zip(one.trajectories, one.weights, strict=True)]
        dealt = [one for of_rank in several for one in of_rank[number]]
        found = [pair for one in dealt for pair in zip(one.trajectories, one.weights, strict=True) if pair[0] != EMPTY]
        assert len({len(of_rank[number]) for of_rank in several}) == 1
        assert {one.group for one, _ in rows} == {2 * number, 2 * number + 1}
        assert sorted(rows, key=repr) == sorted(found, key=repr)


def steps_of(world, count, **settings):
    """Per step, what all ranks together trained, its figures, the prompts drawn, and the message where it was short."""

    def play(ranks):
        trainer, told = trainer_of(**settings), []
        trainer.ranks = ranks
        for _ in range(count):
            result = trainer.run_step()
            values = step_metrics(result, trainer.pool, 0.2, ranks)
            ours = [
                (entry.group.number, entry.uniform, sample.index, tuple(sample.token_ids), sample.reward)
                for entry in result.experience.all()
                for sample in entry.samples
            ]
            everything = sorted(row for rows in ranks.gather(ours) for row in rows)
            message = exhaustion(result, trainer.rollout, ranks) if result.exhausted else ""
            plain = {name: value for name, value in values.items() if not name.startswith(("time/", "memory/"))}
            told.append((everything, plain, trainer.stream.drawn, message))
        return told

    results = together(world, play)
    assert all(result == results[0] for result in results)
    return results[0]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"group_policy": "sample"},
        {"dynamic_sampling": "refill", "max_rounds": 30},
        {"dynamic_sampling": "refill", "max_rounds": 2},
        {"dynamic_sampling": "off", "in_flight": 48},
        {"max_age": 2},
    ],
)
def test_several_ranks_take_the_steps_that_one_takes(settings):
    settings = {"prompts_per_step": 6, "max_tokens": 32} | settings
    alone, several = steps_of(1, 8, **settings), steps_of(3, 8, **settings)
    for one, other in zip(alone, several, strict=True):
        assert one[0] == other[0]
        assert one[1] == pytest.approx(other[1])
        assert one[2:] == other[2:]
    assert any(step[0] for step in alone)
    if settings.get("max_rounds") == 2:
        assert any("of 6 groups" in step[3] for step in alone)


def test_figures_of_ranks_are_combined_as_each_says():
    parts = [
        {
            "mean": mean([1, 2]),
            "sum": total(3),
            "max": largest([1]),
            "same": same(5),
            "none": mean([]),
            "zero": mean([], 0),
        },
        {
            "mean": mean([6]),
            "sum": total(4),
            "max": largest([9]),
            "same": same(5),
            "none": mean([]),
            "zero": mean([], 0),
        },
    ]
    assert combine(parts) == {"mean": 3.0, "sum": 7, "max": 9, "same": 5, "zero": 0}
    parts[0]["mean"], parts[0]["max"] = mean([]), largest([])
    assert combine(parts) == {"mean": 6.0, "sum": 7, "max": 9, "same": 5, "zero": 0}


def test_prompts_must_divide_over_the_processes():
    check_processes(RolloutRecipe(prompts_per_step=6), 3)
    with pytest.raises(UserError, match=r"prompts_per_step: 6 .* 4 processes"):
        check_processes(RolloutRecipe(prompts_per_step=6), 4)
    with pytest.raises(UserError, match=r"in_flight / group_size: 3 .* 2 processes"):
        check_processes(RolloutRecipe(prompts_per_step=6, in_flight=24, group_size=8), 2)


def test_processes_are_started_unless_a_launcher_has(monkeypatch):
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert needs_launch(2)
    assert not needs_launch(0) and not needs_launch(1)
    with pytest.raises(UserError, match="--nproc"):
        needs_launch(-1)
    assert type(open_ranks(1)) is Ranks
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert not needs_launch(0) and not needs_launch(2)
    with pytest.raises(UserError, match=r"--nproc 4: .* 2 processes here already"):
        needs_launch(4)


@pytest.mark.parametrize("command", [["run"], ["curate", "quickstart:3", "-o", "out"], ["eval", "quickstart"]])
def test_only_training_runs_under_a_launcher(command, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "ulorl", *command],
        env=os.environ | {"WORLD_SIZE": "2", "RANK": "0"},
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "started 2 processes" in done.stderr and "ulorl train" in done.stderr


def start(world, *arguments):
    """The processes of a launcher, by rank."""
    here = {"PYTHONPATH": os.pathsep.join([str(WORKER.parent), *filter(None, [os.environ.get("PYTHONPATH")])])}
    launcher = here | {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    return [
        subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            env=os.environ | {"OMP_NUM_THREADS": "1"} | launcher | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(world)
    ]  # fmt: skip


def updates_of(world, model, directory, *names):
    """What the worker found with so many processes, by case: all, or those named."""
    processes = start(world, WORKER, model, directory / f"{world}.pt", *names)
    output = [process.communicate(timeout=400)[0] for process in processes]
    assert all(process.returncode == 0 for process in processes), "\n".join(output)[-3000:]
    return torch.load(directory / f"{world}.pt")


@pytest.fixture(scope="module")
def updates(tiny_model, tmp_path_factory):
    """The worker's figures, gradients and weights with one process and with two."""
    directory = tmp_path_factory.mktemp("updates")
    return {world: updates_of(world, tiny_model, directory) for world in (1, 2)}


def precision(case):
    return 1e-4 if case.startswith("several") else 1e-5


def same_update(found, expected, rel=1e-5):
    """Loss, figures and gradient. Several updates may differ more: AdamW moves weights by their gradients' signs."""
    for one, other in zip(found["steps"], expected["steps"], strict=True):
        assert one == pytest.approx(other, rel=rel, abs=1e-5)
    for name, gradient in expected["gradient"].items():
        assert (found["gradient"][name] - gradient).abs().max() <= rel * gradient.abs().max(), name


@pytest.mark.engine
@pytest.mark.parametrize("case", [case.name for case in SAME])
@pytest.mark.parametrize("world", [1, 2])
def test_loss_and_gradient_do_not_depend_on_how_they_are_computed(updates, case, world):
    same_update(updates[world][case], updates[1][PLAIN])


@pytest.mark.engine
@pytest.mark.parametrize("case", [case.name for case in cases() if case.dtype == "float32"])
def test_two_processes_update_as_one_does(updates, case):
    alone, two = updates[1][case], updates[2][case]
    same_update(two, alone, precision(case))
    assert alone["steps"][0].keys() == set(FIGURES)
    for name, tensor in alone["weights"].items():
        # AdamW's first steps are lr * sign(gradient): near-zero gradients may flip between orders of summation.
        assert (two["weights"][name] - tensor).abs().mean() < 1e-6, name


@pytest.mark.engine
@pytest.mark.parametrize("case", [case.name for case in cases() if case.dtype == "bfloat16"])
def test_two_processes_update_as_one_does_in_half_precision(updates, case):
    for one, other in zip(updates[1][case]["steps"], updates[2][case]["steps"], strict=True):
        assert other == pytest.approx(one, rel=1e-3, abs=1e-3)


@pytest.mark.engine
def test_several_updates_do_not_depend_on_how_they_are_computed(updates):
    for world in (1, 2):
        for case in ("several updates", "several updates, shared"):
            same_update(updates[world][case], updates[1]["several updates, padded"], precision(case))


@pytest.mark.engine
def test_attention_with_divided_heads_is_that_of_the_whole_row(updates):
    assert set(updates[2]["attention"]) == {(4, 4), (4, 2), (8, 4), (4, 1), (12, 4)}
    assert max(updates[2]["attention"].values()) < 1e-12


@pytest.mark.engine
@pytest.mark.slow
def test_two_pairs_of_processes_that_share_rows_update_as_one_process(updates, tiny_model, tmp_path):
    names = ["shared, zero 0", "shared, zero 2", "shared, zero 3", "few, shared", "several updates, shared"]
    found = updates_of(4, tiny_model, tmp_path, *names)
    assert found.keys() >= set(names)
    assert max(found["attention"].values()) < 1e-12
    for name in names:
        same_update(found[name], updates[1][name], precision(name))


@pytest.mark.engine
@pytest.mark.parametrize("case", RESUMED)
def test_two_processes_continue_from_their_checkpoint(updates, case):
    went_on, resumed = updates[2][f"resumed, {case}"]
    assert resumed == went_on
    alone, _ = updates[1][f"resumed, {case.removeprefix('shared, ')}"]
    assert went_on["objective/loss"] == pytest.approx(alone["objective/loss"], abs=1e-5)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("signal_name", "lost", "stage", "words"),
    [
        ("SIGKILL", 1, 2, "step 7: rank 1 did not come to update the policy: gone"),
        ("SIGKILL", 0, 0, "step 7: rank 0"),
        ("SIGSTOP", 1, 3, "step 7: rank 1 did not come to update the policy: not there within 4 s"),
    ],
)
def test_a_lost_rank_ends_the_run_with_a_message(tiny_model, signal_name, lost, stage, words):
    processes = start(2, LOST, tiny_model, signal_name, lost, stage)
    try:
        output, _ = processes[1 - lost].communicate(timeout=200)
        assert processes[1 - lost].returncode == 2, output
        (line,) = [line for line in output.splitlines() if line.startswith("ulorl")]
        assert words in line
        assert "same command continues" in line
    finally:
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.communicate()


@pytest.mark.engine
def test_a_pool_of_ranks_is_refused_by_another_number(tiny_model, tmp_path):
    from test_train_learner import learner_of

    from ulorl.train.checkpoint import TrainerState, load_checkpoint, save_checkpoint

    learner = learner_of(tiny_model, ObjectiveRecipe())
    path = save_checkpoint(tmp_path, learner, TrainerState(1, 0, 7, 0), [], tiny_model, keep=1)
    state = path / "trainer.json"
    state.write_text(state.read_text().replace('"processes": 1', '"processes": 4'))
    with pytest.raises(UserError, match=r"run of 4 processes, this one has 1.*--nproc 4"):
        load_checkpoint(path, learner, [])
