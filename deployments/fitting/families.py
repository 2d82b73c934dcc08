"""How a model's chat template shows which family's format its tool calls and its reasoning have, by vLLM's names of the parsers (0.32).

Of tools only formats that are known here are looked for (`constraints/tool_calls/formats.py`): for another one, strict tools are enforced
by nothing, which is for the operator to choose.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """A template that has all texts of `marks`, and none of `without`, is of this parser's family."""

    parser: str
    marks: tuple[str, ...]
    without: tuple[str, ...] = ()

    def wrote(self, template: str) -> bool:
        return all(mark in template for mark in self.marks) and not any(mark in template for mark in self.without)


TOOL_FAMILIES = (
    Family("longcat", ("<longcat_tool_call>",)),
    Family("kimi_k2", ("<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>")),
    Family("deepseek_v3", ("<｜tool▁calls▁begin｜>", "```json")),
    Family("deepseek_v31", ("<｜tool▁calls▁begin｜>",), without=("```json",)),
    Family("mistral", ("[TOOL_CALLS]", "[ARGS]")),
    Family("granite", ("<|start_of_role|>", "<|tool_call|>")),
    # The models before 3.1 have no such mark.
    Family("gigachat3", ("<|message_sep|>", "<|function_call|>")),
    Family("gemma4", ("<|tool_call>call:", "<tool_call|>")),
    Family("olmo3", ("<functions>", "<function_calls>", "</function_calls>"), without=("<invoke",)),
    Family("seed_oss", ("<seed:tool_call>", "<function=")),
    Family("minimax_m2", ("<minimax:tool_call>", "<invoke name=")),
    Family("minicpm5", ("<function name=", "<param name=", "<![CDATA[")),
    Family("qwen3_coder", ("<tool_call>", "<function=", "<parameter=", "<|im_start|>")),
    Family("glm45", ("[gMASK]", "</arg_key>\\n<arg_value>")),
    Family("glm45", ("[gMASK]", "</arg_key>\n<arg_value>")),
    Family("glm47", ("[gMASK]", "<arg_key>")),
    Family("poolside_v1", ("<available_tools>", "<assistant>", "<arg_key>")),
    # Their templates add a suffix to each mark.
    Family("hy_v3", ("<arg_key{}>", "<tool_sep{}>")),
    Family("hy_v4", ("<arg_key{}>", "<arg_value{}>"), without=("<tool_sep{}>",)),
    Family("k2_horizon", ("<ifm|tool_calls>", "<ifm|arg_key>")),
    Family("deepseek_v32", ("｜DSML｜", "function_calls")),
    Family("deepseek_v4", ("｜DSML｜", "tool_calls")),
    # Others put XML or YAML between the same marks.
    Family("hermes", ("<tool_call>", '"name"', '"arguments"'), without=("<function=", "<arg_key>", "<parameter=")),
    Family("llama3_json", ('"name"', '"parameters"', "ipython"), without=("<tool_call>",)),
)
REASONING_FAMILIES = (
    Family("deepseek_v3", ("</think>", "<｜Assistant｜>", "thinking")),
    Family("deepseek_r1", ("</think>", "<｜Assistant｜>")),
    Family("qwen3", ("</think>", "<|im_start|>", "enable_thinking")),
    # These begin the reasoning in the prompt. Others of this shape only leave out that of earlier turns.
    Family("qwen3", ("</think>", "<|im_start|>assistant\\n<think>")),
    Family("kimi_k2", ("</think>", "<|tool_calls_section_begin|>")),
    Family("glm45", ("</think>", "[gMASK]", "<arg_key>")),
    Family("minimax_m2", ("</think>", "<minimax:tool_call>")),
    Family("seed_oss", ("</seed:think>", "<seed:tool_call>")),
    Family("gemma4", ("<|channel>", "<channel|>", "enable_thinking")),
)
GPT_OSS, GPT_OSS_PARSERS = "GptOssForCausalLM", ("openai", "openai_gptoss")
"""An architecture, and the only parsers of tools and of reasoning that vLLM takes for it."""


def tool_parser(template: str) -> str | None:
    return _first(TOOL_FAMILIES, template)


def reasoning_parser(template: str) -> str | None:
    return _first(REASONING_FAMILIES, template)


def _first(families: tuple[Family, ...], template: str) -> str | None:
    return next((family.parser for family in families if family.wrote(template)), None)
