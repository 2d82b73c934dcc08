"""URIs (RFC 3986), IRIs (RFC 3987), URI templates (RFC 6570) and JSON pointers (RFC 6901)."""

from __future__ import annotations

from grammar_service.schema.formats.addresses import IPV6_TEXT

_UCS = r"\u00A0-\uD7FF\uF900-\uFDCF\uFDF0-\uFFEF" + "".join(
    rf"\u{{{plane:X}{'1000' if plane == 0xE else '0000'}}}-\u{{{plane:X}FFFD}}" for plane in range(1, 0xF)
)
_PRIVATE = r"\uE000-\uF8FF\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*:"
_ESCAPE = "%[0-9A-Fa-f]{2}"


def _reference(more: str, private: str) -> tuple[str, str]:
    """RFC 3986's URI and relative reference, or RFC 3987's with `more` characters, and `private` ones in queries."""
    plain = r"A-Za-z0-9\-._~!$&'()*+,;=" + more
    path_char = rf"(?:[{plain}:@]|{_ESCAPE})"
    literal = rf"\[(?:{IPV6_TEXT}|[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+)\]"
    authority = rf"//(?:(?:[{plain}:]|{_ESCAPE})*@)?(?:(?:[{plain}]|{_ESCAPE})*|{literal})(?::[0-9]*)?"
    tail = rf"(?:\?(?:[{plain}:@/?{private}]|{_ESCAPE})*)?(?:#(?:[{plain}:@/?]|{_ESCAPE})*)?"
    rest = rf"(?:/{path_char}*)*"
    rooted = rf"(?:{authority}{rest}|/(?:{path_char}+{rest})?)?"
    rootless = rf"{path_char}+{rest}"
    without_colon = rf"(?:[{plain}@]|{_ESCAPE})+{rest}"
    uri = rf"^{_SCHEME}(?:{rooted}|{rootless}){tail}$"
    return uri, rf"^(?:(?:{_SCHEME})?{rooted}|{_SCHEME}{rootless}|{without_colon}){tail}$"


URI, URI_REFERENCE = _reference("", "")
IRI, IRI_REFERENCE = _reference(_UCS, _PRIVATE)
MAYBE_URI_REFERENCE, MAYBE_IRI_REFERENCE = r"^[!#-;=?-\[\]_a-z~]*$", r'^[^\0- "<>\\\^`{|}\x7F-\x9F]*$'
MAYBE_URI, MAYBE_IRI = MAYBE_URI_REFERENCE.replace("^", f"^{_SCHEME}", 1), MAYBE_IRI_REFERENCE.replace("^", f"^{_SCHEME}", 1)
"""Characters alone: automata of the whole are too large to be combined."""

_NAME = rf"(?:[A-Za-z0-9_]|{_ESCAPE})(?:\.?(?:[A-Za-z0-9_]|{_ESCAPE}))*"
_VARIABLE = rf"{_NAME}(?:\*|:[1-9][0-9]{{0,3}})?"
_LITERALS = rf"[!#$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~{_UCS}{_PRIVATE}]|{_ESCAPE}"


def _template(operators: str) -> str:
    return rf"^(?:{_LITERALS}|\{{[{operators}]?{_VARIABLE}(?:,{_VARIABLE})*\}})*$"


URI_TEMPLATE = _template("+#./;?&")
"""Without the operators that are reserved for the future."""
MAYBE_URI_TEMPLATE = _template("+#./;?&=,!@|")

_POINTER = "(?:/(?:[^/~]|~[01])*)*"
JSON_POINTER = f"^{_POINTER}$"
RELATIVE_JSON_POINTER = f"^(?:0|[1-9][0-9]*)(?:#|{_POINTER})$"
