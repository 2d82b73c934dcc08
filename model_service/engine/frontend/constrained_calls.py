"""Reads the tool calls of constrained answers where vLLM's own parsers lose or change some of them (vLLM 0.32: `tool_parsers/`).

Such an answer is as its grammar has it (`constraints/tool_calls/marked_formats.py`): text, then a mark, then nothing but calls. A call is
found by the text ahead of its arguments, and ends where these do. vLLM's parsers take any object with a `"name"` for a call (Llama; in a
stream Hunyuan and xLAM), write arguments again from half a number in a stream (`-0` and `-0.5`: Jamba, InternLM, Granite 20B, Apertus),
leave out empty ones, or tell nothing at all (Phi-4 mini, which whole ends an answer's calls at the first `]`). Calls in Python are parsed
from their beginning for each piece, 18 s of the event loop for 30 KB, and `1.` of `1.5` is told as `1.0`, which stays.
FunctionGemma's leaves out what stands between no marks, takes strings for JSON, and streams arguments that are none.

Where arguments are XML, strings have no entities, but CDATA sections. vLLM's parsers leave out values that have `<`, take spaces from the
ends of strings, and leave arrays and objects as text (Step 3); write spaces for `Ġ`, read a string as XML or as it stands, and so break
streams off in it (MiniCPM 5); and lose what a stream's last piece has behind the end of a text or a call (both).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, wraps
from typing import Any

import regex
from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from vllm.renderers.chat_utils import make_tool_call_id
from vllm.tool_parsers.abstract_tool_parser import ToolParser
from vllm.tool_parsers.apertus_tool_parser import ApertusToolParser
from vllm.tool_parsers.functiongemma_tool_parser import FunctionGemmaToolParser
from vllm.tool_parsers.granite_20b_fc_tool_parser import Granite20bFCToolParser
from vllm.tool_parsers.hunyuan_a13b_tool_parser import HunyuanA13BToolParser
from vllm.tool_parsers.internlm2_tool_parser import Internlm2ToolParser
from vllm.tool_parsers.jamba_tool_parser import JambaToolParser
from vllm.tool_parsers.lfm2_tool_parser import Lfm2ToolParser
from vllm.tool_parsers.llama4_pythonic_tool_parser import Llama4PythonicToolParser
from vllm.tool_parsers.llama_tool_parser import Llama3JsonToolParser
from vllm.tool_parsers.minicpm5xml_tool_parser import MiniCPM5XMLToolParser
from vllm.tool_parsers.olmo3_tool_parser import Olmo3PythonicToolParser
from vllm.tool_parsers.phi4mini_tool_parser import Phi4MiniJsonToolParser
from vllm.tool_parsers.pythonic_tool_parser import PythonicToolParser
from vllm.tool_parsers.step3_tool_parser import Step3ToolParser
from vllm.tool_parsers.xlam_tool_parser import xLAMToolParser

from model_service.engine.frontend.call_arguments import ArgumentsReader, EscapedArguments, JsonArguments, PythonArguments
from model_service.engine.frontend.element_arguments import ElementArguments
from model_service.messages import KEY_ARGUMENT

_READER = "_maskcast_reader"
_NAMED = regex.compile(r'\{"name": "([^"]+)", "arguments": ')
_OBJECT = r"(?=\{)"
"""What begins an answer may be an answer of a schema as well, unless it goes on like a call."""
_WITH_PARAMETERS = regex.compile(rf'\{{"name": "([^"]+)", "parameters": {_OBJECT}')
_KEYED = regex.compile(r'\{"([^"]+)": ')
_INVOKED = regex.compile(r'<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="([^"]+)">')
_STEP_ARGUMENT = regex.compile(r'<steptml:parameter name="([^"]+)">(.*?)</steptml:parameter>', regex.DOTALL)
_FUNCTION = regex.compile(r' name="([^"]+)">')
_MINICPM_ARGUMENT = regex.compile(r'<param name="([^"]+)">(?:<!\[CDATA\[(.*?)\]\]>|([^<]*))</param>', regex.DOTALL)
_GEMMA_CALLED = regex.compile(r"call:([\w.\-]+)\{", regex.ASCII)
_CALLED = regex.compile(r"([\w.\-]+)\(", regex.ASCII)


@dataclass(frozen=True)
class Syntax:
    """`mark`: what calls stand behind; `head`: what is ahead of a call's arguments, and its name; `leads`: calls are at the beginning of an
    answer, or there are none. `arguments` makes their reader, of the schemas that the arguments of a call have."""

    mark: str
    head: regex.Pattern[str] = _NAMED
    leads: bool = False
    arguments: Callable[[Mapping[str, Any]], ArgumentsReader] = lambda _: JsonArguments()

    @cached_property
    def opening(self) -> regex.Pattern[str]:
        """The mark and the head of the first call."""
        return regex.compile(rf"{regex.escape(self.mark)}[\s\[]*{self.head.pattern}", self.head.flags)


def _python(_: Mapping[str, Any]) -> ArgumentsReader:
    return PythonArguments()


def _escaped(_: Mapping[str, Any]) -> ArgumentsReader:
    return EscapedArguments()


_BRACKET = Syntax("[", _CALLED, leads=True, arguments=_python)
SYNTAXES: dict[type[ToolParser], Syntax] = {
    ApertusToolParser: Syntax("<|tools_prefix|>", _KEYED),
    FunctionGemmaToolParser: Syntax("<start_function_call>", _GEMMA_CALLED, arguments=_escaped),
    Granite20bFCToolParser: Syntax("<function_call>"),
    HunyuanA13BToolParser: Syntax("<tool_calls>"),
    Internlm2ToolParser: Syntax("<|action_start|><|plugin|>"),
    JambaToolParser: Syntax("<tool_calls>"),
    Llama3JsonToolParser: Syntax("", _WITH_PARAMETERS, leads=True),
    Lfm2ToolParser: Syntax("<|tool_call_start|>", _CALLED, arguments=_python),
    Llama4PythonicToolParser: _BRACKET,
    MiniCPM5XMLToolParser: Syntax("<function", _FUNCTION, arguments=partial(ElementArguments, _MINICPM_ARGUMENT, "</function>")),
    Olmo3PythonicToolParser: Syntax("<function_calls>", _CALLED, arguments=_python),
    Phi4MiniJsonToolParser: Syntax("functools["),
    PythonicToolParser: _BRACKET,
    Step3ToolParser: Syntax("<｜tool_calls_begin｜>", _INVOKED, arguments=partial(ElementArguments, _STEP_ARGUMENT, "<｜tool_call_end｜>")),
    xLAMToolParser: Syntax("[", regex.compile(_NAMED.pattern + _OBJECT), leads=True),
}


@dataclass
class CallReader:
    """Reads an answer in pieces, with calls of these tools, whose arguments have these schemas. `rest` is what waits for more text, of
    which there is no call up to `searched`; `is_text`: it has no calls; `arguments` are those that are being read, None: it reads none."""

    syntax: Syntax
    tools: Mapping[str, Mapping[str, Any]]
    rest: str = ""
    searched: int = 0
    in_calls: bool = False
    is_text: bool = False
    names: list[str] = field(default_factory=list)
    arguments: ArgumentsReader | None = None

    def read(self, piece: str) -> tuple[str, list[tuple[int, str | None, str]]]:
        """The text that is no call, and of calls their numbers, with a name where one begins, and arguments."""
        self.rest += piece
        text = "" if self.in_calls else self._text()
        return text, list(self._calls()) if self.in_calls else []

    def end(self) -> str:
        """The text that has waited for the rest of a mark, or of a call's head."""
        left, self.rest = "" if self.in_calls else self.rest, ""
        return left

    def _text(self) -> str:
        """What comes before the first call, or cannot be one."""
        opening, end = self.syntax.opening, len(self.rest)
        find = opening.match if self.syntax.leads else opening.search
        while not self.is_text and (found := find(self.rest, self.searched, partial=True)):
            self.in_calls = not found.partial and found[1] in self.tools
            if found.partial or self.in_calls:
                end = found.start()
                break
            self.searched, self.is_text = found.end(), self.syntax.leads
        else:
            self.is_text = self.syntax.leads
        text, self.rest, self.searched = self.rest[:end], self.rest[end:], 0
        return text

    def _calls(self) -> Iterator[tuple[int, str | None, str]]:
        while self.rest:
            if self.arguments is not None:
                arguments, behind = self.arguments.read(self.rest)
                self.rest, self.arguments = behind or "", None if behind is not None else self.arguments
                if arguments:
                    yield len(self.names) - 1, None, arguments
            elif (name := self._name()) is None:
                return
            else:
                self.names.append(name)
                self.arguments = self.syntax.arguments(self.tools[name])
                yield len(self.names) - 1, name, ""

    def _name(self) -> str | None:
        """That of the next call, whose arguments follow; None: it is not there yet."""
        while found := self.syntax.head.search(self.rest, self.searched, partial=True):
            if found.partial:
                self.searched = found.start()
                return None
            if found[1] in self.tools:
                self.rest, self.searched = self.rest[found.end() :], 0
                return str(found[1])
            self.searched = found.end()
        self.searched = len(self.rest)
        return None


def read_constrained_calls() -> None:
    """Replace how these parsers read constrained answers, whole and streamed."""
    for kind, syntax in SYNTAXES.items():
        _replace(kind, syntax)


def _replace(kind: type[ToolParser], syntax: Syntax) -> None:
    read_whole, read_delta, adjust = kind.extract_tool_calls, kind.extract_tool_calls_streaming, kind.adjust_request

    @wraps(adjust)
    def adjust_request(parser: ToolParser, request: Any) -> Any:
        request = adjust(parser, request)
        if is_constrained(request) and request.tools and request.tool_choice != "none":
            request.skip_special_tokens = False  # the mark may be one
        return request

    @wraps(read_whole)
    def extract_tool_calls(parser: ToolParser, model_output: str, request: Any) -> ExtractedToolCallInformation:
        if not is_constrained(request):
            return read_whole(parser, model_output, request)
        return whole_answer(CallReader(syntax, argument_schemas(request)), model_output)

    @wraps(read_delta)
    def extract_tool_calls_streaming(
        parser: ToolParser, previous_text: str, current_text: str, delta_text: str, *tokens: Sequence[int], **others: Any
    ) -> DeltaMessage | None:
        request = others["request"] if "request" in others else tokens[-1]
        if not is_constrained(request):
            return read_delta(parser, previous_text, current_text, delta_text, *tokens, **others)
        # So that vLLM calls `finish_streaming`. Not for all parsers of the class: it would read the JSON of forced calls in another way.
        parser.engine_based_streaming = True
        if (reader := vars(parser).get(_READER)) is None:
            reader = vars(parser)[_READER] = CallReader(syntax, argument_schemas(request))
        return delta_of(*reader.read(delta_text))

    def finish_streaming(parser: ToolParser) -> DeltaMessage | None:
        reader: CallReader | None = vars(parser).get(_READER)
        return None if reader is None else delta_of(reader.end(), [])

    kind.adjust_request = adjust_request
    kind.extract_tool_calls = extract_tool_calls
    kind.extract_tool_calls_streaming = extract_tool_calls_streaming
    kind.finish_streaming = finish_streaming


def is_constrained(request: Any) -> bool:
    return KEY_ARGUMENT in (request.vllm_xargs or {})


def argument_schemas(request: Any) -> dict[str, Mapping[str, Any]]:
    """By the names of the tools."""
    return {tool.function.name: (tool.function.parameters or {}).get("properties") or {} for tool in request.tools or ()}


def whole_answer(reader: CallReader, text: str) -> ExtractedToolCallInformation:
    content, pieces = reader.read(text)
    arguments = [""] * len(reader.names)
    for index, _, part in pieces:
        arguments[index] += part
    calls = [ToolCall(function=FunctionCall(name=name, arguments=text)) for name, text in zip(reader.names, arguments, strict=True)]
    return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content=(content + reader.end()) or None)


def delta_of(text: str, pieces: list[tuple[int, str | None, str]]) -> DeltaMessage | None:
    calls = [_call(*piece) for piece in pieces]
    return DeltaMessage(content=text or None, tool_calls=calls) if text or calls else None


def _call(index: int, name: str | None, arguments: str) -> DeltaToolCall:
    if name is None:
        return DeltaToolCall(index=index, function=DeltaFunctionCall(arguments=arguments))
    return DeltaToolCall(index=index, id=make_tool_call_id(), type="function", function=DeltaFunctionCall(name=name, arguments=arguments))
