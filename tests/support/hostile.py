"""Arguments that a public function was not made for: valid ones spoilt, and anything else instead of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

HUGE = 10**400  # no float holds it
SCALARS = (
    *(0, -1, 2**31, 2**63, HUGE, -HUGE, 0.0, -0.5, 1.0, 1e-320, 1e308, -1e308),
    *(np.nan, np.inf, -np.inf, True, 1 + 1j, Fraction(1, 3), np.float32(0.1), np.int8(3)),
)
OTHERS = (None, "", "0.1", "ocular", b"x", [], [0.1, 0.2], (), {}, object(), np.array(0.1), np.array([]), int)
WORDS = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), max_size=8)
VALUES = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, -1.0)
SHAPES: tuple[Callable[[np.ndarray], object], ...] = (
    lambda a: a[None],
    lambda a: a[..., None],
    lambda a: a.reshape(-1),
    lambda a: a.T,
    lambda a: a[:0],
    lambda a: a[..., :0],
    lambda a: a[:-1],
    lambda a: np.concatenate([a, a]) if a.ndim else a,
    lambda a: np.array(a.flat[0]) if a.size else a,
    lambda a: a.tolist(),
)
LAYOUTS: tuple[Callable[[np.ndarray], object], ...] = (
    lambda a: np.asfortranarray(a),
    lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a,
    lambda a: a[::-1] if a.ndim else a,
    lambda a: a.astype(a.dtype.newbyteorder(">")),
    lambda a: np.lib.stride_tricks.as_strided(a, writeable=False),
    lambda a: np.ma.masked_array(a),
)
DTYPES = (
    "float16",
    "float32",
    "int64",
    "int8",
    "uint64",
    "bool",
    "complex128",
    "object",
    "str",
    "datetime64[s]",
)


@dataclass(frozen=True)
class Call:
    """A public function, arguments that it takes, and what of its answer may be NaN."""

    function: Callable[..., object]
    arguments: dict[str, object]
    nan: bool = False  # whether NaN is an answer
    most: float = np.inf  # of a hot path, whose callers have seen to it that numbers are no larger

    def tries(self, value: object) -> bool:
        """Whether this value is to be tried."""
        if self.most == np.inf or not isinstance(value, np.ndarray) or value.dtype.kind != "f":
            return True
        return bool((np.abs(value.astype(np.float64)) <= self.most).all())


def with_value(array: np.ndarray, value: object, at: int) -> np.ndarray:
    """One entry changed; as near as the array's dtype can hold it."""
    spoilt = np.array(array)
    if spoilt.size:
        if spoilt.dtype.kind in "iu":
            info = np.iinfo(spoilt.dtype)
            value = info.max if value > 0 else info.min  # NaN: the lowest
        with np.errstate(all="ignore"):
            spoilt.reshape(-1)[at % spoilt.size] = value
    return spoilt


def as_dtype(array: np.ndarray, dtype: str) -> np.ndarray:
    """The same in another type."""
    with np.errstate(all="ignore"):
        return array.astype(dtype if dtype != "datetime64[s]" else np.int64).astype(dtype)


def instead_of(value: object) -> Iterator[object]:
    """A list of what may stand in the place of a value: every kind of damage once."""
    yield from OTHERS
    if isinstance(value, np.ndarray):
        yield from (with_value(value, bad, 0) for bad in VALUES)
        if value.dtype.kind == "f":
            with np.errstate(all="ignore"):
                every = [np.full_like(value, bad) for bad in VALUES]
            yield from every
        yield from (change(value) for change in (*SHAPES, *LAYOUTS))
        yield from (as_dtype(value, dtype) for dtype in DTYPES if value.dtype.kind in "fiu")
    else:
        yield from SCALARS
        yield np.zeros((2, 2))


def spoilt(value: object) -> st.SearchStrategy[object]:
    """The same and more, drawn."""
    if not isinstance(value, np.ndarray):
        return (
            st.sampled_from([*SCALARS, *OTHERS])
            | st.floats()
            | st.integers()
            | WORDS.map(lambda word: word[:3])
            | st.none()
        )
    changed = st.builds(
        lambda bad, at: with_value(value, bad, at), st.sampled_from(VALUES), st.integers(0, 9999)
    )
    strange = hnp.arrays(
        st.sampled_from([value.dtype, np.dtype("float64"), np.dtype("uint8")]),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    )
    scaled = st.floats(allow_nan=False).map(lambda factor: _scaled(value, factor))
    return (
        st.sampled_from((*SHAPES, *LAYOUTS)).map(lambda change: change(value))
        | st.sampled_from(DTYPES).map(lambda dtype: as_dtype(value, dtype))
        | st.sampled_from(OTHERS)
        | changed
        | strange
        | scaled
    )


def _scaled(value: np.ndarray, factor: float) -> np.ndarray:
    if value.dtype.kind != "f":
        return value
    with np.errstate(all="ignore"):
        return value * factor


def numbers_of(answer: object, depth: int = 6) -> Iterator[np.ndarray]:
    """All floating-point numbers in an answer, however deep."""
    if isinstance(answer, float | np.floating | np.ndarray):
        array = np.asarray(answer)
        if array.dtype.kind == "f":
            yield array
    elif depth and is_dataclass(answer) and not isinstance(answer, type):
        for field in fields(answer):
            yield from numbers_of(getattr(answer, field.name), depth - 1)
    elif depth and isinstance(answer, tuple | list):
        for each in answer:
            yield from numbers_of(each, depth - 1)
