"""A model's own files, as several years and several kinds of folders have them, and the families that their templates show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deployments.errors import SettingsError
from deployments.fitting import read_card
from deployments.fitting.families import reasoning_parser, tool_parser


def model(folder: Path, config: Any, **files: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return str(folder)


def test_the_embedded_model_has_one() -> None:
    card = read_card("embedded")
    assert (card.context_length, card.architectures, tool_parser(card.template)) == (2048, ("LlamaForCausalLM",), "hermes")


@pytest.mark.parametrize(
    ("config", "length"),
    [
        ({"max_position_embeddings": 8192}, 8192),
        ({"n_positions": 1024}, 1024),
        ({"text_config": {"max_position_embeddings": 4096}}, 4096),
        ({"max_position_embeddings": None, "model_type": "mamba"}, None),
    ],
)
def test_its_context_has_several_names(config: dict[str, Any], length: int | None, tmp_path: Path) -> None:
    assert read_card(model(tmp_path, config)).context_length == length


@pytest.mark.parametrize(
    "files",
    [
        {"chat_template__jinja": "a template"},
        {"tokenizer_config__json": json.dumps({"chat_template": "a template"})},
        {"tokenizer_config__json": json.dumps({"chat_template": [{"name": "default", "template": "a template"}]})},
        {"chat_template__json": json.dumps({"chat_template": "a template"})},
    ],
)
def test_its_template_has_several_places(files: dict[str, str], tmp_path: Path) -> None:
    assert read_card(model(tmp_path, {"a": 1}, **files)).template == "a template"


@pytest.mark.parametrize("text", [None, "no JSON", "[1]"])
def test_without_a_configuration_it_is_no_model(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(SettingsError, match=f"{tmp_path} has no config.json"):
        read_card(str(tmp_path))


def test_a_name_of_the_hub_is_found_in_its_cache_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached = tmp_path / "models--them--their-model"
    model(cached / "snapshots" / "0a1b", {"max_position_embeddings": 512}, chat_template__jinja="hello")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("0a1b")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert read_card("them/their-model").context_length == 512
    with pytest.raises(SettingsError, match=r"nobody/nothing is no folder, and cannot be had.*HF_TOKEN"):
        read_card("nobody/nothing")


@pytest.mark.parametrize(
    ("template", "tools", "reasoning"),
    [
        ('<tool_call>\n{"name": "\' }}{{- tool_call.name }}{{- \'", "arguments": ', "hermes", None),
        ('<tool_call>\n{"name": <n>, "arguments": <a>}\n</tool_call> <|im_start|> enable_thinking </think>', "hermes", "qwen3"),
        ('<tool_call>\n<function=name>\n<parameter=p>"name" "arguments"', None, None),
        ("<tool_call>{function-name}\n<arg_key>{arg-key-1}</arg_key> </think> enable_thinking", None, None),
        ('Environment: ipython {"name": function name, "parameters": dictionary}', "llama3_json", None),
        ("<｜Assistant｜><｜tool▁calls▁begin｜><｜tool▁sep｜>' + '\\n' + '```json' </think>", "deepseek_v3", "deepseek_r1"),
        ("set thinking <｜Assistant｜></think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>", "deepseek_v31", "deepseek_v3"),
        ("<|tool_calls_section_begin|><|tool_call_begin|> <|tool_call_argument_begin|>", "kimi_k2", None),
        ("[TOOL_CALLS] [/INST]", None, None),
        ("[TOOL_CALLS]' + name + '[ARGS]' + arguments", "mistral", None),
        ("<|start_of_role|>system<|end_of_role|>respond only with <|tool_call|> followed by a JSON list", "granite", None),
        ("<|start_of_role|>assistant<|end_of_role|>", None, None),
        ("<|message_sep|> <|role_sep|> <|function_call|>' + call | tojson", "gigachat3", None),
        ("'<|im_start|>assistant\\n<think>\\n' }} </think>", None, "qwen3"),
        ("<|im_start|> content.split('</think>')[-1] }}", None, None),
        ("[gMASK]<sop> <arg_key>{key}</arg_key> </think>", "glm47", "glm45"),
        ("[gMASK]<sop> <arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>", "glm45", None),
        ("<|im_start|> <tool_call>\n<function=name>\n<parameter=p>\nvalue\n</parameter>", "qwen3_coder", None),
        ('<function name=\\"f\\"><param name=\\"p\\"><![CDATA[value]]></param></function> <tool_response>', "minicpm5", None),
        ('<minimax:tool_call>\n<invoke name="f">', "minimax_m2", None),
        ("<seed:tool_call>\n<function=f>", "seed_oss", None),
        ('<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">', "deepseek_v32", None),
        ('<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">', "deepseek_v4", None),
        ("<|tool_calls_section_begin|><|tool_call_begin|> <|tool_call_argument_begin|> <think></think>", "kimi_k2", "kimi_k2"),
        ("<available_tools>\n</available_tools> <assistant> <arg_key>k</arg_key>", "poolside_v1", None),
        ("'<tool_sep{}>'.format(HYTK) '<arg_key{}>'.format(HYTK) '<arg_value{}>'.format(HYTK)", "hy_v3", None),
        ("'<arg_key{}>'.format(HYTK) '<arg_value{}>'.format(HYTK)", "hy_v4", None),
        ("<ifm|tool_calls>\n<ifm|tool_call>$NAME\n<ifm|arg_key>$KEY</ifm|arg_key>", "k2_horizon", None),
        ("<minimax:tool_call> <think> </think>", None, "minimax_m2"),
        ("<seed:tool_call> <seed:think> </seed:think>", None, "seed_oss"),
        ("<|channel>thought <channel|> enable_thinking", None, "gemma4"),
    ],
)
def test_templates_show_their_family(template: str, tools: str | None, reasoning: str | None) -> None:
    assert (tool_parser(template), reasoning_parser(template)) == (tools, reasoning)
