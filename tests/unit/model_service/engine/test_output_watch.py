from __future__ import annotations

from vllm.v1.engine import EngineCoreOutput

from model_service.engine.output_watch import turns


def test_a_turn_has_one_output_of_each_request_in_the_order_they_came_in() -> None:
    outputs = [EngineCoreOutput(request_id, [token]) for token, request_id in enumerate("aabaccb")]
    told = [[(output.request_id, *output.new_token_ids) for output in turn] for turn in turns(outputs)]
    assert told == [[("a", 0), ("b", 2), ("c", 4)], [("a", 1), ("c", 5), ("b", 6)], [("a", 3)]]
