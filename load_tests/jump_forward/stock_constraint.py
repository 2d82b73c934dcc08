"""How a constraint is put to stock vLLM, so that both engines force the same text.

JSON schemas go in as the EBNF that xgrammar makes of them in the layout of `json.dumps`: of vLLM's own two layouts one leaves whitespace
free, where this small model would fill its answers with blanks, and the other has spaces after commas only. So both engines compile
the same grammar with the same library.
"""

from __future__ import annotations

import xgrammar

from grammar_service.backends.xgrammar.recipe import recipe_of
from grammar_service.spec import JSON_KINDS, GrammarSpec


def stock_constraint(spec: GrammarSpec) -> dict[str, str]:
    """The one argument of vLLM's `StructuredOutputsParams` that forces the spec's language."""
    recipe = recipe_of(spec)
    if spec.kind not in JSON_KINDS:
        return {"regex": recipe.text}
    grammar = xgrammar.Grammar.from_json_schema(recipe.text, any_whitespace=False, separators=(", ", ": "), strict_mode=False)
    return {"grammar": str(grammar)}
