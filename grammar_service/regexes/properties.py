r"""Unicode properties as ECMA-262 names them in `\p{…}`: general categories, scripts, and the binary ones (table 69)."""

from __future__ import annotations

from functools import lru_cache

import regex

from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.classes import LAST, CodePoints

_CATEGORY = ("General_Category", "gc")
_SCRIPT = ("Script", "sc", "Script_Extensions", "scx")
_CATEGORIES = {
    "L": "Letter",
    "LC": "Cased_Letter",
    "Lu": "Uppercase_Letter",
    "Ll": "Lowercase_Letter",
    "Lt": "Titlecase_Letter",
    "Lm": "Modifier_Letter",
    "Lo": "Other_Letter",
    "M": "Mark Combining_Mark",
    "Mn": "Nonspacing_Mark",
    "Mc": "Spacing_Mark",
    "Me": "Enclosing_Mark",
    "N": "Number",
    "Nd": "Decimal_Number digit",
    "Nl": "Letter_Number",
    "No": "Other_Number",
    "P": "Punctuation punct",
    "Pc": "Connector_Punctuation",
    "Pd": "Dash_Punctuation",
    "Ps": "Open_Punctuation",
    "Pe": "Close_Punctuation",
    "Pi": "Initial_Punctuation",
    "Pf": "Final_Punctuation",
    "Po": "Other_Punctuation",
    "S": "Symbol",
    "Sm": "Math_Symbol",
    "Sc": "Currency_Symbol",
    "Sk": "Modifier_Symbol",
    "So": "Other_Symbol",
    "Z": "Separator",
    "Zs": "Space_Separator",
    "Zl": "Line_Separator",
    "Zp": "Paragraph_Separator",
    "C": "Other",
    "Cc": "Control cntrl",
    "Cf": "Format",
    "Co": "Private_Use",
    "Cn": "Unassigned",
}
"""By the short name the others; `Cs` is left out, since no text holds surrogates."""
_SHORT = {name: short for short, names in _CATEGORIES.items() for name in (short, *names.split())}
_BINARY = frozenset(
    "Alphabetic Alpha Bidi_Control Bidi_C Bidi_Mirrored Bidi_M Case_Ignorable CI Cased Changes_When_Casefolded CWCF "
    "Changes_When_Casemapped CWCM Changes_When_Lowercased CWL Changes_When_Titlecased CWT Changes_When_Uppercased CWU Dash "
    "Default_Ignorable_Code_Point DI Deprecated Dep Diacritic Dia Emoji Emoji_Component EComp Emoji_Modifier EMod Emoji_Modifier_Base "
    "EBase Emoji_Presentation EPres Extended_Pictographic ExtPict Extender Ext Grapheme_Base Gr_Base Grapheme_Extend Gr_Ext Hex_Digit "
    "Hex IDS_Binary_Operator IDSB IDS_Trinary_Operator IDST ID_Continue IDC ID_Start IDS Ideographic Ideo Join_Control Join_C "
    "Logical_Order_Exception LOE Lowercase Lower Math Noncharacter_Code_Point NChar Pattern_Syntax Pat_Syn Pattern_White_Space "
    "Pat_WS Quotation_Mark QMark Radical Regional_Indicator RI Sentence_Terminal STerm Soft_Dotted SD Terminal_Punctuation Term "
    "Unified_Ideograph UIdeo Uppercase Upper Variation_Selector VS White_Space space XID_Continue XIDC XID_Start XIDS".split()
)


@lru_cache(maxsize=256)
def code_points_with(name: str, value: str | None) -> CodePoints:
    r"""What `\p{name}` or `\p{name=value}` matches, without surrogates. Raises UnsupportedGrammar: not a property of ECMA-262."""
    shown = name if value is None else f"{name}={value}"
    if value is None and name in ("Any", "Assigned", "ASCII"):
        return _SPECIAL[name]() if name != "Assigned" else code_points_with("Cn", None).complement().minus_surrogates()
    category = _SHORT.get(name if value is None else value if name in _CATEGORY else "")
    if category:
        return _found(f"General_Category={category}", shown)
    if value is None and name in _BINARY:
        return _found(name, shown)
    if value is not None and name in _SCRIPT:
        return _found(f"{'Script_Extensions' if name.startswith(('scx', 'Script_')) else 'Script'}={value}", shown)
    raise UnsupportedGrammar(f"regex: ECMA-262 has no Unicode property of this name: {shown[:40]!r}")


_SPECIAL = {
    "Any": lambda: CodePoints.of([(0, LAST)]).minus_surrogates(),
    "ASCII": lambda: CodePoints.of([(0, 0x7F)]),
}


def _found(query: str, shown: str) -> CodePoints:
    try:
        pattern = regex.compile(rf"\p{{{query}}}+")
    except regex.error:
        raise UnsupportedGrammar(f"regex: this Unicode property is not known: {shown[:40]!r}") from None
    return CodePoints.of((match.start(), match.end() - 1) for match in pattern.finditer(_every_character())).minus_surrogates()


@lru_cache(maxsize=1)
def _every_character() -> str:
    return "".join(map(chr, range(LAST + 1)))
