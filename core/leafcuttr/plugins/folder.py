"""The folder of `lc.plugins.path`: every file `NAME.py` in it is a plugin of that name, without a package.

A name that begins with `_` or `.` is passed over, as is what is no file. So are the files that pytest looks for: an
author's tests lie beside the plugins.
"""

from pathlib import Path

from leafcuttr.errors import StartError
from leafcuttr.plugins.origin import Candidate, PluginOrigin


def candidates(folder: str, where: str) -> list[Candidate]:
    """Sorted by name. Raises StartError, with `where` the folder was named, if it cannot be listed."""
    try:
        files = sorted(Path(folder).absolute().iterdir())
    except OSError as error:
        raise StartError(f"lc.plugins.path={folder} ({where}): {error.strerror}") from None
    return [
        Candidate(name_of(file), None, PluginOrigin(str(file)))
        for file in files
        if file.suffix == ".py" and file.name[0] not in "_." and not _is_of_tests(file) and file.is_file()
    ]


def _is_of_tests(file: Path) -> bool:
    return file.stem.startswith("test_") or file.stem.endswith("_test") or file.stem == "conftest"


def name_of(file: Path) -> str:
    """The plugin's name by its file's: `count_words.py` is `count-words`."""
    return file.stem.replace("_", "-")
