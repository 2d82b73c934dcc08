"""What pydantic writes for each type of its documentation, by the version that is installed."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import ipaddress
import json
import pathlib
import re
import uuid
import zoneinfo
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import pydantic
import pytest
from annotated_types import Ge, Gt, Len, MultipleOf
from typing_extensions import TypeAliasType, TypedDict

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.integration.grammar_service.corpora.serving import SERVED, verdict

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(NamedTuple):
    x: int
    y: float = 0.0


class Movie(TypedDict, total=False):
    name: str
    year: int


@dataclass
class Size:
    width: int
    height: int = 1


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    name: str | None = None


class Node(pydantic.BaseModel):
    value: int
    children: list[Node] = []


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    name: Annotated[str, pydantic.Field(min_length=1, max_length=20, description="a name", examples=["x"])]
    at: dt.date | None = None


class Loose(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    name: str = pydantic.Field(alias="fullName")


class Box(pydantic.BaseModel, Generic[T]):
    content: T


class Tags(pydantic.RootModel[list[str]]):
    pass


class Mood(enum.StrEnum):
    GLAD = "glad"
    SAD = "sad"


Tree = TypeAliasType("Tree", "list[Tree]")
Drink = Annotated[
    Annotated[str, pydantic.Tag("name")] | Annotated[int, pydantic.Tag("number")],
    pydantic.Discriminator(lambda value: "number" if isinstance(value, int) else "name"),
]
OTHERS = (
    *("UUID1", "UUID3", "UUID5", "UUID6", "UUID7", "UUID8"),
    *("AnyHttpUrl", "AnyWebsocketUrl", "WebsocketUrl", "FileUrl", "FtpUrl", "AmqpDsn", "ClickHouseDsn", "CockroachDsn", "KafkaDsn"),
    *("MariaDBDsn", "MongoDsn", "MySQLDsn", "NatsDsn", "RedisDsn", "SnowflakeDsn"),
)
Pet = Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]
NOON = dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)
TYPES: dict[str, tuple[Any, Any]] = {
    "bool": (bool, True),
    "int": (int, 3),
    "float": (float, 1.5),
    "str": (str, "a"),
    "bytes": (bytes, b"a"),
    "None": (None, None),
    "Any": (Any, [1]),
    "object": (object, 1),
    "date": (dt.date, NOON.date()),
    "datetime": (dt.datetime, NOON),
    "time": (dt.time, NOON.timetz()),
    "timedelta": (dt.timedelta, dt.timedelta(hours=3)),
    "Decimal": (decimal.Decimal, decimal.Decimal("1.5")),
    "Fraction": (Fraction, None),
    "complex": (complex, None),
    "UUID": (uuid.UUID, uuid.UUID(int=7)),
    "Path": (pathlib.Path, pathlib.Path("a")),
    "Pattern": (re.Pattern, None),
    "Enum": (Colour, Colour.RED),
    "IntEnum": (Level, Level.HIGH),
    "Literal": (Literal["a", 1, None], 1),
    "Optional": (int | None, None),
    "Union": (int | str | list[bool], [True]),
    "list": (list[int], [1, 2]),
    "bare list": (list, [1, "a"]),
    "tuple": (tuple[int, str], (1, "a")),
    "tuple of any length": (tuple[int, ...], (1, 2)),
    "set": (set[str], {"a"}),
    "frozenset": (frozenset[int], frozenset({1})),
    "set of an enum": (set[Colour], {Colour.RED}),
    "deque": (deque[int], deque([1])),
    "Sequence": (Sequence[int], [1]),
    "Iterable": (Iterable[int], None),
    "dict": (dict[str, int], {"a": 1}),
    "dict of int": (dict[int, str], {1: "a"}),
    "dict of an enum": (dict[Colour, int], {Colour.RED: 1}),
    "dict of dates": (dict[dt.date, int], {NOON.date(): 1}),
    "Mapping": (Mapping[str, list[int]], {"a": [1]}),
    "OrderedDict": (OrderedDict[str, int], OrderedDict(a=1)),
    "defaultdict": (defaultdict[str, int], defaultdict(int, a=1)),
    "Counter": (Counter[str], Counter("a")),
    "Hashable": (Hashable, None),
    "type": (type[int], None),
    "Callable": (Callable[[int], str], None),
    "bare dict": (dict, {"a": 1}),
    "bare set": (set, {1}),
    "bare tuple": (tuple, (1, "a")),
    "namedtuple": (namedtuple("Pair", "a b"), None),
    "NamedTuple": (Point, Point(1, 2.5)),
    "TypedDict": (Movie, {"name": "a"}),
    "dataclass": (Size, Size(1)),
    "IPv4Address": (ipaddress.IPv4Address, ipaddress.IPv4Address("10.0.0.1")),
    "IPv6Address": (ipaddress.IPv6Address, ipaddress.IPv6Address("::1")),
    "IPvAnyAddress": (pydantic.IPvAnyAddress, None),
    "IPvAnyInterface": (pydantic.IPvAnyInterface, None),
    "IPvAnyNetwork": (pydantic.IPvAnyNetwork, None),
    "IPv4Interface": (ipaddress.IPv4Interface, None),
    "IPv6Network": (ipaddress.IPv6Network, ipaddress.IPv6Network("fd00::/8")),
    "IPv4Network": (ipaddress.IPv4Network, ipaddress.IPv4Network("10.0.0.0/8")),
    "IPv6Interface": (ipaddress.IPv6Interface, None),
    "AnyUrl": (pydantic.AnyUrl, pydantic.AnyUrl("https://example.org/a")),
    "HttpUrl": (pydantic.HttpUrl, pydantic.HttpUrl("https://example.org/a")),
    **{name: (getattr(pydantic, name), None) for name in OTHERS},
    "PostgresDsn": (pydantic.PostgresDsn, None),
    "EmailStr": (pydantic.EmailStr, "a@example.org"),
    "NameEmail": (pydantic.NameEmail, None),
    "SecretBytes": (pydantic.SecretBytes, None),
    "Secret": (pydantic.Secret[dt.date], None),
    "SecretStr": (pydantic.SecretStr, None),
    "Json": (pydantic.Json[list[int]], None),
    "PositiveInt": (pydantic.PositiveInt, 1),
    "NegativeInt": (pydantic.NegativeInt, -1),
    "NonNegativeFloat": (pydantic.NonNegativeFloat, 0.5),
    "FiniteFloat": (pydantic.FiniteFloat, 0.5),
    "NonNegativeInt": (pydantic.NonNegativeInt, 0),
    "NonPositiveInt": (pydantic.NonPositiveInt, 0),
    "NonPositiveFloat": (pydantic.NonPositiveFloat, -0.5),
    "PositiveFloat": (pydantic.PositiveFloat, 0.5),
    "NegativeFloat": (pydantic.NegativeFloat, -0.5),
    "StrictInt": (pydantic.StrictInt, 1),
    "StrictFloat": (pydantic.StrictFloat, 1.5),
    "StrictBool": (pydantic.StrictBool, True),
    "StrictStr": (pydantic.StrictStr, "a"),
    "StrictBytes": (pydantic.StrictBytes, b"a"),
    "conint": (Annotated[int, pydantic.Field(ge=1, lt=10)], 9),
    "MultipleOf": (Annotated[int, Ge(0), MultipleOf(5)], 10),
    "MultipleOf of a float": (Annotated[float, MultipleOf(0.5)], 1.5),
    "constr": (Annotated[str, pydantic.Field(pattern="^[a-z]+$", min_length=2)], "ab"),
    "conlist": (Annotated[list[int], Len(1, 3)], [1]),
    "confrozenset": (Annotated[frozenset[str], Len(0, 2)], frozenset({"a"})),
    "set of bounded strings": (set[Annotated[str, pydantic.Field(max_length=8)]], {"a", "b"}),
    "set of addresses": (set[ipaddress.IPv4Address], {ipaddress.IPv4Address("10.0.0.1")}),
    "set of dates": (set[dt.date], {NOON.date()}),
    "set of tuples": (set[tuple[int, str]], {(1, "a")}),
    "conbytes": (Annotated[bytes, Len(1, 3)], b"a"),
    "condate": (Annotated[dt.date, Gt(NOON.date())], None),
    "condecimal": (Annotated[decimal.Decimal, pydantic.Field(max_digits=4, decimal_places=2)], decimal.Decimal("1.5")),
    "conset": (Annotated[set[int], Len(1, 3)], {1}),
    "Base64Str": (pydantic.Base64Str, None),
    "Base64UrlBytes": (pydantic.Base64UrlBytes, None),
    "Base64UrlStr": (pydantic.Base64UrlStr, None),
    "Base64Bytes": (pydantic.Base64Bytes, None),
    "ByteSize": (pydantic.ByteSize, pydantic.ByteSize(7)),
    "PastDate": (pydantic.PastDate, NOON.date()),
    "PastDatetime": (pydantic.PastDatetime, NOON),
    "FutureDate": (pydantic.FutureDate, None),
    "FutureDatetime": (pydantic.FutureDatetime, None),
    "NaiveDatetime": (pydantic.NaiveDatetime, None),
    "AwareDatetime": (pydantic.AwareDatetime, NOON),
    "UUID4": (pydantic.UUID4, uuid.UUID("4bf0c2f2-2f5d-4b0e-8c1f-1d2b3c4d5e6f")),
    "FilePath": (pydantic.FilePath, None),
    "DirectoryPath": (pydantic.DirectoryPath, None),
    "NewPath": (pydantic.NewPath, None),
    "SocketPath": (pydantic.SocketPath, None),
    "ImportString": (pydantic.ImportString, None),
    "JsonValue": (pydantic.JsonValue, {"a": [1]}),
    "SkipValidation": (pydantic.SkipValidation[int], 1),
    "InstanceOf": (pydantic.InstanceOf[Cat], None),
    "OnErrorOmit": (list[pydantic.OnErrorOmit[int]], [1]),
    "FailFast": (Annotated[list[int], pydantic.FailFast()], [1]),
    "AllowInfNan": (Annotated[float, pydantic.AllowInfNan(False)], 0.5),
    "StringConstraints": (Annotated[str, pydantic.StringConstraints(to_lower=True, max_length=5)], "ab"),
    "ZoneInfo": (zoneinfo.ZoneInfo, None),
    "StrEnum": (Mood, Mood.GLAD),
    "recursive alias": (Tree, [[], [[]]]),
    "union by a callable": (Drink, "tea"),
    "discriminated union": (Pet, Dog(kind="dog", name="a")),
    "list of a discriminated union": (list[Pet], [Cat(kind="cat")]),
    "recursive model": (Node, Node(value=1, children=[Node(value=2)])),
    "model that forbids": (Strict, Strict(name="a")),
    "model that allows": (Loose, Loose(fullName="a")),
    "generic model": (Box[list[int]], Box[list[int]](content=[1])),
    "root model": (Tags, Tags(["a"])),
}
MUST_BE_SERVED = {
    *("dict", "date", "set", "set of bounded strings", "set of an enum", "Union", "Optional", "Decimal", "UUID"),
    *("discriminated union", "list of a discriminated union", "recursive model", "recursive alias", "model that forbids"),
}


@pytest.mark.parametrize("name", TYPES)
def test_every_type_is_served_or_refused_with_a_reason(name: str, tokenizer: GrammarTokenizer) -> None:
    found = judged(name, tokenizer)
    assert found
    assert found == SERVED or name not in MUST_BE_SERVED


def judged(name: str, tokenizer: GrammarTokenizer) -> str | None:
    kind, value = TYPES[name]
    adapter = pydantic.TypeAdapter(kind)
    try:
        schema = adapter.json_schema()
    except pydantic.errors.PydanticInvalidForJsonSchema as error:
        return str(error)
    values = [] if value is None else [json.loads(adapter.dump_json(value, by_alias=True))]
    return verdict(schema, values, tokenizer)
