"""What a process is given before the distributed libraries start, and seeds that follow from names."""

import os
import socket

from ulorl.process import free_port, set_launcher_defaults
from ulorl.seeds import derive_seed

NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def test_a_process_without_a_launcher_is_rank_0_of_1(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    set_launcher_defaults()
    assert [os.environ[name] for name in NAMES[:4]] == ["0", "0", "1", "127.0.0.1"]
    assert 0 < int(os.environ["MASTER_PORT"]) < 65536


def test_a_launchers_environment_stays(monkeypatch):
    given = dict(zip(NAMES, ("3", "1", "4", "10.0.0.1", "29500"), strict=True))
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    set_launcher_defaults()
    assert {name: os.environ[name] for name in NAMES} == given


def test_the_free_port_can_be_bound():
    with socket.socket() as server:
        server.bind(("127.0.0.1", free_port()))


def test_seeds_depend_on_every_name_and_its_place():
    seeds = {
        derive_seed(0, "rollout", 1, 2),
        derive_seed(1, "rollout", 1, 2),
        derive_seed(0, "rollout", 2, 1),
        derive_seed(0, "rollout", 12),
        derive_seed(0, "rollout", "1\x1f2x"),
        derive_seed(0, "sample", 1, 2),
    }
    assert len(seeds) == 6
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert derive_seed(0, "rollout", 1, 2) == derive_seed(0, "rollout", 1, 2)
