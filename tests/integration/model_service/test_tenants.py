"""Whose a request is gets as far as the engine core, with all sequences of it, and beside what the request itself says."""

from __future__ import annotations

import pytest

from model_service.messages import CALL_ARGUMENT, TENANT_ARGUMENT, Call, Endpoint

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "n": 3, "vllm_xargs": {"theirs": "x"}}


@pytest.mark.parametrize("is_followed", [False, True])
@pytest.mark.parametrize(("tenant", "told"), [("one", {"theirs": "x", TENANT_ARGUMENT: "one"}), ("", {"theirs": "x"})])
def test_the_core_is_told_of_the_tenant(tenant: str, told: dict[str, str], is_followed: bool) -> None:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    from model_service.engine.engine import with_ours
    from model_service.engine.keyed import constrain, take_argument

    body = with_ours(Call(Endpoint.CHAT, "7", BODY, None, tenant=tenant), is_followed=is_followed)
    params = ChatCompletionRequest.model_validate(body).to_sampling_params(8, {})
    assert take_argument(params, CALL_ARGUMENT) == ("7" if is_followed else None)
    assert constrain(params) is None
    assert params.extra_args == told
    assert BODY["vllm_xargs"] == {"theirs": "x"}


def test_what_is_no_object_is_vllms_to_refuse() -> None:
    from model_service.engine.engine import with_ours

    body = with_ours(Call(Endpoint.CHAT, "7", {**BODY, "vllm_xargs": "theirs"}, None, tenant="one"), is_followed=False)
    assert body["vllm_xargs"] == "theirs"
