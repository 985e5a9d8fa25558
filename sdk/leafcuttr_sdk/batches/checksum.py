"""CRC-32C of bytes, which every batch carries: the function of the C extension in the package `crc32c`.

That package imports its own command line and reads its version by `importlib.metadata`: with `email`, `zipfile`,
`argparse` and a search of all that is installed, the largest single item of a start. So the extension is loaded here
without the package around it. Where a release keeps it under another name, the package is imported as it is.
"""

from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crc32c import crc32c
else:

    def _load() -> Any:
        package = PathFinder.find_spec("crc32c")
        places = package.submodule_search_locations if package else None
        spec = PathFinder.find_spec("crc32c._crc32c", places) if places else None
        if spec is None or spec.loader is None:
            from crc32c import crc32c

            return crc32c
        extension = module_from_spec(spec)
        spec.loader.exec_module(extension)
        return extension.crc32c

    crc32c = _load()

__all__ = ["crc32c"]
