from __future__ import annotations

import json

from load_tests.front_door.clients.messages import Answer
from load_tests.front_door.figures import CHARACTER, FREE, NONE, OURS, STOCK
from load_tests.front_door.workloads import Workload, make_workload
from model_service.engine.arguments import stock_flags
from model_service.settings import EngineSettings


def answer(text: str, finish: str = "stop") -> Answer:
    return Answer(0, 200, text, finish, 1, 0.1, 0.2)


def made_well(workload: Workload, text: str, finish: str = "stop") -> bool:
    return workload.answers_well(answer(text, finish))


def test_both_servers_are_asked_the_same_in_their_own_words() -> None:
    workload = make_workload(CHARACTER, "model")
    stock, ours = (json.loads(workload.encoded(side, stream=True)[0]) for side in (STOCK, OURS))
    assert set(stock.pop("structured_outputs")) == {"grammar"}
    assert set(ours.pop("structured_outputs")) == {"json"}
    assert stock == ours
    assert (stock["model"], stock["stream"], stock["temperature"]) == ("model", True, 0)


def test_an_answer_is_judged_by_its_schema() -> None:
    workload = make_workload(CHARACTER, "model")
    assert not made_well(workload, '{"name": "x"}')
    assert not made_well(workload, '{"name": ')
    assert made_well(workload, '{"name": ', "length")
    assert not made_well(workload, "name", "length")


def test_of_a_pattern_an_answer_may_be_the_beginning() -> None:
    workload = make_workload(FREE, "model")
    assert made_well(workload, "a b", "length")
    assert not made_well(workload, "a b")
    assert not made_well(workload, "A", "length")


def test_without_a_constraint_answers_have_one_length() -> None:
    workload = make_workload(NONE, "model")
    body = json.loads(workload.encoded(OURS, stream=False)[0])
    assert body["min_tokens"] == body["max_tokens"]
    assert body["ignore_eos"]
    assert "structured_outputs" not in body
    assert made_well(workload, "x", "length")
    assert not made_well(workload, "x")


def test_the_other_server_has_our_arguments_and_not_our_plugs() -> None:
    flags = stock_flags(EngineSettings("folder", "model", max_num_seqs=7))
    assert flags[flags.index("--max-num-seqs") + 1] == "7"
    assert flags[flags.index("--model") + 1] == "folder"
    assert "--enforce-eager" in flags
    assert not {"--scheduler-cls", "--worker-cls", "--additional-config", "--no-async-scheduling"} & set(flags)
