"""Every format that is an assertion here, by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from grammar_service.schema.formats import addresses, dates, international, references, regexes


@dataclass(frozen=True, slots=True)
class Format:
    """`pattern` matches valid strings only, all of them where `maybe` is None; else `maybe` matches at least the valid ones: where a
    schema asks for what is *not* of a format, nothing that might be of it is let through. `source` is the pattern, or what makes it when
    it is asked for. `never_exhausted`: endlessly many strings begin as one has begun; stated here where the automaton that tells is
    large."""

    source: str | Callable[[], str]
    maybe: str | None = None
    never_exhausted: bool = False

    @property
    def pattern(self) -> str:
        return self.source if isinstance(self.source, str) else self.source()


_ANYTHING = ""
_HEX = "[0-9A-Fa-f]"

FORMATS: Mapping[str, Format] = {
    "date": Format(dates.DATE),
    "time": Format(dates.TIME, dates.MAYBE_TIME),
    "date-time": Format(dates.DATE_TIME, dates.MAYBE_DATE_TIME),
    "duration": Format(dates.DURATION),
    "ipv4": Format(addresses.IPV4),
    "ipv6": Format(addresses.IPV6, addresses.MAYBE_IPV6),
    "hostname": Format(addresses.HOSTNAME, addresses.MAYBE_HOSTNAME),
    "email": Format(addresses.EMAIL, addresses.MAYBE_EMAIL),
    "uri": Format(references.URI, references.MAYBE_URI, never_exhausted=True),
    "uri-reference": Format(references.URI_REFERENCE, references.MAYBE_URI_REFERENCE, never_exhausted=True),
    "iri": Format(references.IRI, references.MAYBE_IRI, never_exhausted=True),
    "iri-reference": Format(references.IRI_REFERENCE, references.MAYBE_IRI_REFERENCE, never_exhausted=True),
    "uri-template": Format(references.URI_TEMPLATE, references.MAYBE_URI_TEMPLATE),
    "json-pointer": Format(references.JSON_POINTER),
    "relative-json-pointer": Format(references.RELATIVE_JSON_POINTER),
    "uuid": Format(f"^{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}$"),
    "idn-hostname": Format(international.idn_hostname, _ANYTHING),
    "idn-email": Format(international.idn_email, _ANYTHING),
    "regex": Format(regexes.REGEX, _ANYTHING),
}
