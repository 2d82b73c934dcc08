from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from deployments.config import parse_settings
from deployments.errors import SettingsError, StartError
from deployments.local.ports import free_port, local_url, port_fault
from deployments.local.preflight import Machine, inspect_machine, machine_faults, needed_gib, needed_shared_mib, preflight, weights_gib

HOST = "127.0.0.1"
DEFAULTS = parse_settings({})
LARGE = Machine(available_gib=64, shared_mib=8192, gpus=0, compiler="/usr/bin/g++", redis_server="/usr/bin/redis-server")


def only_fault(machine: Machine, *, own_redis: bool = True, **model: object) -> str:
    (fault,) = machine_faults(parse_settings({"model": model}), machine, own_redis=own_redis)
    assert "\n" not in fault
    return fault


def test_a_large_machine_has_no_faults() -> None:
    assert not list(machine_faults(DEFAULTS, LARGE, own_redis=True))


def test_the_defaults_need_what_a_laptop_has() -> None:
    assert 5 < needed_gib(DEFAULTS, weights_gib("embedded")) < 7


def test_memory_grows_with_replicas_workers_caches_and_weights() -> None:
    small = needed_gib(DEFAULTS, 0)
    two = needed_gib(parse_settings({"model": {"num_replicas": 2, "tensor_parallel_size": 2}}), 0)
    # One more replica process, and three more workers with half a GiB of cache each.
    assert two - small == pytest.approx(1.1 + 3 * 1.6)
    assert needed_gib(DEFAULTS, 4) - small == pytest.approx(4)
    assert needed_gib(parse_settings({"grammar": {"compile_replicas": 4}}), 0) > small


def test_weights_and_caches_on_a_gpu_take_no_main_memory() -> None:
    on_gpu = parse_settings({"model": {"gpus_per_worker": 1, "cpu_kv_cache_gib": 40}})
    assert needed_gib(on_gpu, 100) < needed_gib(DEFAULTS, 0)


def test_too_little_memory_names_both_figures() -> None:
    fault = only_fault(replace(LARGE, available_gib=2.0))
    assert "2.0 GiB are available" in fault
    assert f"{needed_gib(DEFAULTS, 0):.1f} GiB" in fault


def test_a_missing_compiler_says_what_to_install() -> None:
    assert "install g++" in only_fault(replace(LARGE, compiler=None))


def test_a_missing_redis_matters_only_when_we_start_it() -> None:
    assert "redis-server was not found" in only_fault(replace(LARGE, redis_server=None))
    assert not list(machine_faults(DEFAULTS, replace(LARGE, redis_server=None), own_redis=False))


def test_small_shared_memory_says_how_to_enlarge_it() -> None:
    fault = only_fault(replace(LARGE, shared_mib=64))
    assert "/dev/shm has 64 MiB free" in fault
    assert f"{needed_shared_mib(DEFAULTS)} MiB" in fault


def test_more_gpus_than_the_machine_has_is_a_fault() -> None:
    assert "ask for 2 GPUs and this machine shows 1" in only_fault(replace(LARGE, gpus=1), gpus_per_worker=1, num_replicas=2)


def test_a_model_folder_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    assert f"no folder {tmp_path}/nowhere" in only_fault(LARGE, path=f"{tmp_path}/nowhere")


def test_weights_of_a_folder_are_its_largest_format(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(bytes(2**20))
    (tmp_path / "pytorch_model.bin").write_bytes(bytes(2**19))
    assert weights_gib(str(tmp_path)) == 2**20 / 2**30


def test_a_taken_port_is_a_fault_and_a_free_one_is_not() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        fault = port_fault(HOST, taken.getsockname()[1])
    assert fault is not None
    assert "is taken by another program" in fault
    assert port_fault(HOST, free_port(HOST)) is None


def test_a_host_that_is_not_this_machine_is_a_fault() -> None:
    fault = port_fault("192.0.2.77", 8123)  # RFC 5737: nobody has this address
    assert fault is not None
    assert "cannot listen on 192.0.2.77" in fault
    with pytest.raises(StartError, match=r"192\.0\.2\.77"):
        free_port("192.0.2.77")


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:80"), ("0.0.0.0", "http://127.0.0.1:80"), ("::", "http://[::1]:80"), ("a.test", "http://a.test:80")],
)
def test_clients_on_this_machine_reach_every_listening_address(host: str, url: str) -> None:
    assert local_url(host, 80) == url


def test_preflight_raises_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        shared = {"redis": {"url": "redis://127.0.0.1:1/0"}, "artifact_secret": "s" * 32}
        settings = parse_settings({"http": {"port": taken.getsockname()[1]}, **shared})
        with pytest.raises(StartError) as caught:
            preflight(settings, own_redis=False)
    assert "\n" not in str(caught.value)


def test_a_grammar_in_the_settings_that_nobody_enforces_stops_the_start() -> None:
    with pytest.raises(SettingsError, match=r"grammars\.word\.regex"):
        preflight(parse_settings({"grammars": {"word": {"regex": "("}}}), own_redis=True)


def test_this_machine_can_be_inspected() -> None:
    machine = inspect_machine()
    assert machine.available_gib > 0
    assert machine.compiler
