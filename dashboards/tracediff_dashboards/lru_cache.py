"""What was made last, kept for the next request."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """The ``most`` values used last. Requests run in threads: two that want the same value make it once."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        """The value, None where it is not kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: T) -> None:
        """Keep a value; the one not used for longest goes."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self.most:
                self._values.popitem(last=False)

    def made(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value, made where it is not kept. What ``make`` raises is raised, and nothing kept."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            try:
                value = self.get(key)
                if value is None:
                    value = make()
                    self.put(key, value)
                return value
            finally:
                with self._lock:
                    self._making.pop(key, None)
