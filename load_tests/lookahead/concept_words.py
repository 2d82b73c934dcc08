"""The words of the synthetic sentences, and their forms."""

from __future__ import annotations

from typing import Final

LIVING: Final = tuple(
    "dog cat boy girl man woman child horse bird farmer singer player driver worker teacher doctor chef dancer soldier painter".split()
)
THINGS: Final = tuple(
    "ball book bike guitar cake letter basket hat ladder rope bottle camera drum kite lamp box chair bag flag stick".split()
)
PLACES: Final = tuple("park street beach kitchen field river garden market school stage bridge forest house yard lake".split())
LOOKS: Final = tuple("old young red small tall happy tired wet".split())
NEAR: Final = ("in", "at", "near", "by")
_PLURALS: Final = {"man": "men", "woman": "women", "child": "children"}

WITH_THING: Final = {
    verb: (third, running)
    for verb, third, running in (
        ("carry", "carries", "carrying"),
        ("hold", "holds", "holding"),
        ("throw", "throws", "throwing"),
        ("watch", "watches", "watching"),
        ("paint", "paints", "painting"),
        ("drop", "drops", "dropping"),
        ("push", "pushes", "pushing"),
        ("clean", "cleans", "cleaning"),
        ("catch", "catches", "catching"),
        ("lift", "lifts", "lifting"),
        ("pull", "pulls", "pulling"),
        ("break", "breaks", "breaking"),
        ("open", "opens", "opening"),
        ("kick", "kicks", "kicking"),
        ("bring", "brings", "bringing"),
    )
}
ALONE: Final = {
    verb: (third, running)
    for verb, third, running in (
        ("run", "runs", "running"),
        ("walk", "walks", "walking"),
        ("swim", "swims", "swimming"),
        ("dance", "dances", "dancing"),
        ("climb", "climbs", "climbing"),
        ("stand", "stands", "standing"),
        ("jump", "jumps", "jumping"),
        ("smile", "smiles", "smiling"),
        ("wait", "waits", "waiting"),
        ("sleep", "sleeps", "sleeping"),
        ("shout", "shouts", "shouting"),
        ("laugh", "laughs", "laughing"),
    )
}


def plural(noun: str) -> str:
    """Of the words above."""
    if noun in _PLURALS:
        return _PLURALS[noun]
    return f"{noun}es" if noun.endswith(("s", "x", "sh", "ch")) else f"{noun}s"
