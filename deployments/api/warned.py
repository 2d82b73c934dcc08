"""Warnings on their way to the client: `maskcast.warnings` in the answer, or in the first event of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable
from http import HTTPStatus

from grammar_service.warning import ConstraintWarning, first
from model_service.replies import Head


class WarnedAnswer:
    """One answer, item by item. What is no answer, an error, is passed on as it is. `unchecked`: the answer's first event says so too."""

    def __init__(self, warnings: Iterable[ConstraintWarning], unchecked: bool = False) -> None:
        bodies = [warning.body() for warning in first(warnings)]
        told = {"warnings": bodies, **({"unchecked": True} if unchecked else {})}
        self._member = f'"maskcast":{json.dumps(told, ensure_ascii=False)},' if bodies else ""

    def item(self, item: Head | str) -> Head | str:
        if not self._member:
            return item
        if isinstance(item, Head):
            self._member = self._member if item.status == HTTPStatus.OK else ""
            return item
        opening = item.find("{") + 1
        member, self._member = self._member, ""
        return f"{item[:opening]}{member}{item[opening:]}" if opening else item
