"""Where a table lies: a directory, or a URL of an object store. Paths below it are relative, with slashes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from postroad.pipelines.errors import PipelineError


class Location:
    """Can be pickled; opens the file system when it is first used."""

    def __init__(self, given: str) -> None:
        parts = urlsplit(given)
        self.directory: Path | None = None  # None: it is no directory of this machine
        if parts.scheme in ("", "file"):
            path = unquote(parts.path) if parts.scheme else given
            self.directory = Path(path).expanduser().absolute()
        self.url = self.directory.as_uri() if self.directory else given.rstrip("/")
        # For libraries that take a URL as it stands, and would look for a directory named my%20lake.
        self.literal_url = f"file://{self.directory}" if self.directory else self.url
        self._opened: tuple[Any, str] | None = None

    def __str__(self) -> str:
        return str(self.directory) if self.directory else self.url

    def __getstate__(self) -> str:
        return self.url

    def __setstate__(self, url: str) -> None:
        self.__init__(url)  # type: ignore[misc]

    def below(self, path: str) -> str:
        """As Spark and table libraries name it."""
        return f"{self}/{path}"

    def is_there(self, path: str = "") -> bool:
        system, root = self._system()
        return bool(system.get_file_info(_join(root, path)).type != fs.FileType.NotFound)

    def names(self, path: str = "") -> list[str]:
        """The names in a directory below it, sorted; none if it is not there."""
        system, root = self._system()
        selector = fs.FileSelector(_join(root, path), allow_not_found=True)
        return sorted(found.base_name for found in system.get_file_info(selector))

    def files(self, path: str = "") -> list[Any]:
        """pyarrow's FileInfo of each file below it; their `path` is the file system's own."""
        system, root = self._system()
        selector = fs.FileSelector(_join(root, path), recursive=True, allow_not_found=True)
        return [found for found in system.get_file_info(selector) if found.is_file]

    def relative(self, path: str) -> str:
        """The path below this location, of one that the file system or `below` gave."""
        for root in (self.url, self.literal_url, self._system()[1], str(self)):
            if path.startswith(f"{root}/"):
                return path[len(root) + 1 :]
        raise AssertionError(f"{path} is not below {self}")

    def make_directory(self, path: str = "") -> None:
        system, root = self._system()
        system.create_dir(_join(root, path), recursive=True)

    def create(self, path: str) -> Any:
        """A new file to write, in a directory that is made if need be."""
        system, root = self._system()
        whole = _join(root, path)
        system.create_dir(whole.rpartition("/")[0], recursive=True)
        return system.open_output_stream(whole)

    def read(self, path: str) -> Any:
        """A file with random access."""
        system, root = self._system()
        return system.open_input_file(_join(root, path))

    def delete(self, path: str) -> None:
        """It is gone; it may have been before."""
        system, root = self._system()
        whole = _join(root, path)
        if system.get_file_info(whole).type != fs.FileType.NotFound:
            with suppress(FileNotFoundError):  # somebody else was quicker
                system.delete_file(whole)

    def _system(self) -> tuple[Any, str]:
        if self._opened is None:
            try:
                self._opened = fs.FileSystem.from_uri(self.url)
            except (OSError, ValueError) as error:
                raise PipelineError(f"{self} can't be opened: {error}") from None
        return self._opened


def _join(root: str, path: str) -> str:
    return f"{root}/{path}" if path else root
