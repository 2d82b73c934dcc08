"""Internet addresses: hosts (RFC 1123), IPv4, IPv6 (RFC 4291) and mailboxes (RFC 5321)."""

from __future__ import annotations

_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4_TEXT = rf"{_BYTE}(?:\.{_BYTE}){{3}}"


def _ipv6(least_left_out: int) -> str:
    """Addresses whose `::` stands for so many groups of 16 bits or more."""
    group = "[0-9A-Fa-f]{1,4}"
    last = f"(?:{group}:{group}|{IPV4_TEXT})"
    forms = [f"(?:{group}:){{6}}{last}"]
    for behind in range(6 - least_left_out, -1, -1):
        forms.append(f"{_up_to(6 - least_left_out - behind, group)}::(?:{group}:){{{behind}}}{last}")
    forms += [f"{_up_to(7 - least_left_out, group)}::{group}", f"{_up_to(8 - least_left_out, group)}::"]
    return f"(?:{'|'.join(forms)})"


def _up_to(count: int, group: str) -> str:
    return f"(?:(?:{group}:){{0,{count - 1}}}{group})?" if count else ""


IPV6_TEXT = _ipv6(1)
MAYBE_IPV6 = "^[0-9A-Fa-f.]*:[0-9A-Fa-f.:]*$"
IPV4, IPV6 = f"^{IPV4_TEXT}$", f"^{IPV6_TEXT}$"

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*"
_LOOSE_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?"
_LOOSE_HOST = rf"{_LOOSE_LABEL}(?:\.{_LOOSE_LABEL})*"
HOSTNAME = rf"^(?=[^\n]{{1,253}}$)(?!(?:.*\.)?[^.]{{2}}--)(?!(?:.*\.)?[0-9]+$){_HOST}$"
"""Without labels that have "--" at their third place: whether one that begins with "xn--" is valid, no automaton can tell. Nor those
whose last label is a number, which could be taken for addresses."""
MAYBE_HOSTNAME = f"^{_LOOSE_HOST}$"

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-]"
LITERAL = rf"\[(?:{IPV4_TEXT}|IPv6:{_ipv6(2)})\]"
_QUOTED = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'
_SHORT_QUOTED = r'"(?:[^"\\]{0,62}|(?:[^"\\]|\\.){0,31})"'
"""Up to 64 octets, an escape being two of them."""
EMAIL = rf'^(?=.{{1,254}}$)(?=(?:[^"@]{{1,64}}|{_SHORT_QUOTED})@)(?:{_ATOM}+(?:\.{_ATOM}+)*|{_QUOTED})@(?:{_HOST}|{LITERAL})$'
MAYBE_EMAIL = rf"^(?:{_ATOM}+(?:\.{_ATOM}+)*|{_QUOTED})@(?:{_LOOSE_HOST}|\[[!-Z^-~]+\])$"
