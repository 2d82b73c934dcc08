"""Python imports this first, in each process that has this folder on its path: vLLM finds Triton (3.9) at work on a processor, by its
interpreter. Triton itself looks at `TRITON_INTERPRET`."""

from types import SimpleNamespace
from typing import Any

from triton import backends
from triton.runtime.interpreter import InterpreterBuilder

# vLLM has Triton where a driver is active.
backends.backends["cpu"] = SimpleNamespace(driver=SimpleNamespace(is_active=lambda: True))
_load, _store = InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store


def _load_by_truth(builder: Any, pointers: Any, mask: Any, *others: Any) -> Any:
    return _load(builder, pointers, _truth(mask), *others)


def _store_by_truth(builder: Any, pointers: Any, value: Any, mask: Any, policy: Any) -> Any:
    return _store(builder, pointers, value, _truth(mask), policy)


def _truth(mask: Any) -> Any:
    """A mask that was computed from numbers is one of numbers, which the interpreter does not take."""
    mask.data = mask.data.astype(bool)
    return mask


InterpreterBuilder.create_masked_load = _load_by_truth
InterpreterBuilder.create_masked_store = _store_by_truth
