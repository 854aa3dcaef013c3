"""What an engine does: count, and stream rows to be drawn for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar

from funnel.data import Alphabet

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
R = TypeVar("R")
EngineName = Literal["duckdb", "spark"]
"""What a policy calls the engines."""
Kernel = Callable[[int, "Iterator[pa.RecordBatch]"], "Iterator[pa.RecordBatch]"]
"""What is done with the rows of each part of a table: the part's number and its batches in, batches out.

Parts have numbers of their own, and a part has the same rows in the same order whenever it is done again.
"""

Parts = Callable[[], int]
"""How many parts rows go to by their keys, for an engine to ask as late as it can."""


class Engine(Protocol):
    """The engine of one run, a context manager. Statements come from the plan; an engine adds no meaning to them."""

    def __enter__(self) -> Self:
        """The engine itself."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give back whatever the run held."""

    def schema(self, *, texts: bool = False) -> dict[str, str]:
        """Column names and types of the source; with `texts`, those of a CSV are texts. Raises SourceError."""

    def fetch(self, columns: Sequence[str]) -> None:
        """Bring in the rows of these columns, where the source is not read in place. Raises SourceError."""

    def prepare(self, statements: tuple[str, ...]) -> None:
        """Run statements that name or build temporary tables. Raises SourceError."""

    def row(self, statement: str) -> tuple[Any, ...]:
        """The single row of a query. Raises SourceError."""

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of a small result. Raises SourceError."""

    def distinct(self, listing: str) -> int:
        """How many different rows a query has. Raises SourceError."""

    def variables(self, **values: int) -> None:
        """Set variables that statements read with getvariable."""

    def provide(self, name: str, alphabet: Alphabet) -> None:
        """Offer an alphabet as a table of columns v0, v1, … and code."""

    def stream(self, statement: str, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a query as batches of at most `rows` rows. Raises SourceError."""

    def map(self, statement: str, rows: int, kernel: Kernel) -> Iterator[pa.RecordBatch]:
        """What a kernel makes of the rows of a query, wherever these are; batches have at most `rows` rows.

        Where the query has an order, what comes is in it, and holds the columns that it goes by. An engine may carry
        the kernel to other processes, and do a part again that was lost. Raises SourceError.
        """

    def gather(
        self, statement: str, rows: int, kernel: Kernel, sink: Kernel, keys: tuple[str, ...], parts: Parts | None
    ) -> Iterator[pa.RecordBatch]:
        """What a sink makes of the rows that a kernel makes of a query's, part by part, wherever they are.

        The sink has the number of a part and its rows in order of `keys`, in which the kernel does not have them; all
        rows are of one part where there is no number of `parts`. It may be done again, as the kernel. Raises
        SourceError.
        """

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """What is made of each of some items, in their order, wherever that is done. Raises SourceError."""
