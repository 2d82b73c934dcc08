"""The page of request fields is the one that the table writes."""

from __future__ import annotations

from deployments.api.request_fields.page import PAGE, page


def test_the_page_is_of_this_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m deployments.api.request_fields.page`"
