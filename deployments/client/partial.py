"""Objects of a model while their JSON is still on its way."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, RootModel
from pydantic_core import from_json

from deployments.errors import ApiError, OutputTruncated

Parsed = TypeVar("Parsed", bound=BaseModel)


class GrowingAnswer(Generic[Parsed]):
    """The events of one streamed chat completion as an object that grows."""

    def __init__(self, model: type[Parsed]) -> None:
        self._model = model
        self._text = ""
        self._finish_reason = ""

    def add(self, event: Mapping[str, Any]) -> Parsed | None:
        """All that has come so far: not validated, and with None for what has no default and has not come. None: the event tells nothing
        new. Raises ApiError."""
        text = text_of(event)
        for choice in event["choices"]:
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
        self._text += text
        if not text or not self._text.strip():
            return None
        instance: Parsed | None = _converted(self._model, from_json(self._text, allow_partial="trailing-strings"))
        return instance

    def whole(self) -> Parsed:
        """The object in the end, which is valid. Raises OutputTruncated: `max_tokens` or the context ended before the JSON did."""
        return validated(self._model, self._text, self._finish_reason)


def text_of(event: Mapping[str, Any]) -> str:
    """The text that an event of a chat completion adds to its answer. Raises ApiError: it tells an error."""
    if "error" in event:
        error = event["error"]
        raise ApiError(500, str(error.get("message")), code=str(error.get("code")), kind=str(error.get("type")))
    return "".join(choice["delta"].get("content") or "" for choice in event["choices"])


def validated(model: type[Parsed], text: str, finish_reason: str) -> Parsed:
    """Raises OutputTruncated."""
    if finish_reason == "length":
        raise OutputTruncated(f"the answer was cut after {len(text)} characters: {text!r}")
    return model.model_validate_json(text)


def _converted(annotation: Any, value: Any) -> Any:
    """The JSON `value` with objects of models where `annotation` has these. What may be of several models stays as it is."""
    while get_origin(annotation) is Annotated or hasattr(annotation, "__value__"):
        annotation = annotation.__value__ if hasattr(annotation, "__value__") else get_args(annotation)[0]
    kinds = get_args(annotation)
    match get_origin(annotation), value:
        case (origin, _) if origin in (Union, UnionType):
            fitting = [kind for kind in kinds if _may_be(kind, value)]
            return _converted(fitting[0], value) if len(fitting) == 1 else value
        case origin, list() if isinstance(origin, type) and kinds:
            return [_converted(kinds[0], item) for item in value]
        case origin, dict() if isinstance(origin, type) and len(kinds) == 2:
            return {name: _converted(kinds[1], item) for name, item in value.items()}
    return _instance(annotation, value) if isinstance(annotation, type) and issubclass(annotation, BaseModel) else value


def _may_be(annotation: Any, value: Any) -> bool:
    origin = get_origin(annotation) or annotation
    if isinstance(value, dict):
        return isinstance(origin, type) and issubclass(origin, BaseModel | Mapping)
    return isinstance(value, list) and isinstance(origin, type) and origin not in (str, bytes) and hasattr(origin, "__iter__")


def _instance(model: type[BaseModel], value: Any) -> Any:
    if issubclass(model, RootModel):
        return model.model_construct(_converted(model.model_fields["root"].annotation, value))
    if not isinstance(value, dict):
        return value
    fields = dict[str, Any]()
    for name, field in model.model_fields.items():
        alias = field.validation_alias if isinstance(field.validation_alias, str) else field.alias or name
        if alias in value:
            fields[name] = _converted(field.annotation, value[alias])
        elif field.is_required():
            fields[name] = None
    return model.model_construct(**fields)
