from __future__ import annotations

from dataclasses import replace

import pytest

from load_tests.front_door.clients.messages import Answer
from load_tests.front_door.figures import BUSY, CHARACTER, NONE, OURS, STOCK, STREAM, WHOLE, Cell, targets
from load_tests.front_door.processor_time import ENGINE_CORE, OTHER, WORKER, between, in_front, part_of


def answer(latency_s: float = 1.0, *, status: int = 200, finish: str = "stop") -> Answer:
    return Answer(0, status, "{}", finish, 4, latency_s / 4, latency_s)


def cell(side: str, latency_s: float = 1.0, *, turn: int = 0, workload: str = CHARACTER, clients: int = 32, front_s: float = 0.1) -> Cell:
    used = {"ingress": front_s, WORKER: 9.0, ENGINE_CORE: 1.0}
    return Cell(turn, side, workload, clients, STREAM, 2.0, [answer(latency_s)] * round(20 / latency_s), used, 0.1, 0.5, 0)


def test_a_row_counts_what_was_answered_by_request() -> None:
    answers = [answer(1.0), answer(3.0, finish="length"), answer(status=503, finish=""), answer(finish="error")]
    row = Cell(0, OURS, CHARACTER, 2, STREAM, 4.0, answers, {"proxy": 0.2, "ingress": 0.4, WORKER: 5.0}, 0.1, 0.5, 1).row()
    assert (row["requests"], row["failed"], row["cut"], row["wrong"]) == (2, 2, 1, 1)
    assert (row["requests_per_s"], row["latency_p50_ms"], row["first_text_p50_ms"]) == (0.5, 2000, 500)
    assert (row["front_ms"], row["client_ms"], row["processor_ms"][WORKER]) == (300, 50, 2500)


def test_what_reaches_over_the_ends_of_the_window_counts_in_proportion() -> None:
    # Two clients in step: the second round ends just behind the window.
    whole, most = [answer(2.0)] * 2, [replace(answer(2.0), share=0.75, ended=False)] * 2
    row = Cell(0, OURS, CHARACTER, 2, STREAM, 3.5, [*whole, *most], {"ingress": 0.7}, 0.1, 0.35, 0).row()
    assert (row["requests"], row["requests_per_s"], row["front_ms"], row["foreign_share"]) == (2, 1.0, 200, 0.1)


def test_a_cell_in_which_nothing_was_answered_has_no_times() -> None:
    row = Cell(0, OURS, CHARACTER, 2, STREAM, 4.0, [answer(status=0)], {"ingress": 0.4}, 0.1, 0.5, 0).row()
    assert (row["requests"], row["failed"], row["latency_p50_ms"], row["front_ms"]) == (0, 1, None, None)


def test_ratios_are_taken_within_a_turn() -> None:
    # The machine is slow in the second turn: both sides are.
    cells = [cell(STOCK, 1.0), cell(OURS, 0.5), cell(STOCK, 4.0, turn=1), cell(OURS, 2.0, turn=1)]
    found = {target.name: target for target in targets([one.row() for one in cells])}
    throughput = found[f"{CHARACTER}, 32 streaming clients: requests a second, ours / stock"]
    assert throughput.value == pytest.approx(2.0)
    assert throughput.holds
    assert found["worst workload, 32 streaming clients: p99 time to first token, ours / stock"].value == pytest.approx(0.5)


def test_the_worst_workload_counts() -> None:
    cells = [cell(side, workload=workload, clients=clients) for side in (STOCK, OURS) for workload in (NONE, CHARACTER) for clients in BUSY]
    cells[-1] = cell(OURS, clients=64, front_s=0.5)
    found = {target.name: target for target in targets([one.row() for one in cells])}
    front = found["worst workload, 32 and 64 streaming clients: processor time in front of the engine a request, ours / stock"]
    assert front.value == pytest.approx(5.0)
    assert not front.holds


def test_a_target_speaks_of_the_cells_that_were_run() -> None:
    names = [target.name for target in targets([cell(side, clients=1).row() for side in (STOCK, OURS)])]
    assert names[0] == f"{CHARACTER}, 1 client: median latency, ours / stock"
    assert not any("32" in name or "64" in name for name in names)
    whole = [Cell(0, side, CHARACTER, 32, WHOLE, 2.0, [answer()], {}, 0.1, 0.5, 0) for side in (STOCK, OURS)]
    assert len(targets([one.row() for one in whole])) == 2


def test_what_is_not_answered_and_what_is_wrong_is_missed() -> None:
    row = Cell(0, OURS, CHARACTER, 2, WHOLE, 4.0, [answer(status=503)], {}, 0.1, 0.5, 3).row()
    assert [(target.value, target.holds) for target in targets([row])] == [(1, False), (3, False)]


def test_processes_are_told_by_their_titles() -> None:
    titles = {
        "ray::ServeReplica:maskcast:Ingress.handle_request_streaming": "ingress",
        "ray::ServeReplica:maskcast:ModelReplica": "replica",
        "ray::ServeReplica:maskcast:GrammarCompiler": "compiler",
        "ray::ProxyActor": "proxy",
        "ray::ServeController": "controller",
        "VLLM::EngineCore": ENGINE_CORE,
        "VLLM::Worker": WORKER,
    }
    assert {title: part_of("ray", [title]) for title in titles} == titles
    assert part_of("python", ["python", "-m", "vllm.entrypoints.openai.api_server", "--model", "x"]) == "api server"
    assert part_of("haproxy", ["/usr/lib/haproxy", "-f", "x"]) == "proxy"
    assert part_of("python", ["python", "-c", "from multiprocessing.resource_tracker import main"]) is None


def test_all_but_the_engine_stands_in_front_of_it() -> None:
    used = between({"ingress": 1.0, "gone": 5.0, WORKER: 1.0}, {"ingress": 2.5, WORKER: 4.0, OTHER: 0.25})
    assert used == {"ingress": 1.5, WORKER: 3.0, OTHER: 0.25}
    assert in_front(used) == 1.75


def test_a_part_that_has_lost_a_process_has_used_nothing() -> None:
    assert between({"replica": 5.0}, {"replica": 1.0}) == {"replica": 0.0}
