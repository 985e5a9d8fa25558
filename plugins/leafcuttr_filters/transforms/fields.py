"""`extract`, `insert` and `replace`: Connect's ExtractField, InsertField and ReplaceField."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from leafcuttr_filters.documents.fields import MISSING, Path, get, project, put, remove, shown
from leafcuttr_filters.documents.json_values import CannotFilterError, encoded
from leafcuttr_filters.documents.parts import changer, may_hold, reader
from leafcuttr_filters.making import Judge
from leafcuttr_filters.transforms.texts import bytes_of
from leafcuttr_sdk.filters import TopicContext, Verdict
from leafcuttr_sdk.records import Record

Values = Mapping[str, Any]


def members_of(document: Any) -> dict[str, Any]:
    """Raises CannotFilterError for a document that is no object."""
    if type(document) is not dict:
        raise CannotFilterError("it is no JSON object")
    return cast("dict[str, Any]", document)


def make_extract(context: TopicContext, values: Values) -> Judge:
    is_key, path = values["part"] == "key", values["field"]
    read = reader(context, values, values["part"])
    write: Callable[[Any], bytes] = bytes_of if values["output"] == "text" else encoded

    def extract(record: Record) -> Verdict:
        data = record.key if is_key else record.value
        if data is None:
            return record
        found = get(members_of(read(record, data)), path)
        new = None if found is MISSING or found is None else write(found)
        return record._replace(key=new) if is_key else record._replace(value=new)

    return extract


def make_insert(context: TopicContext, values: Values) -> Judge:
    static: Path | None = values["static.field"]
    topic: Path | None = values["topic.field"]
    timestamp: Path | None = values["timestamp.field"]
    key: Path | None = values["key.field"]

    def insert(document: Any, record: Record) -> Any:
        members_of(document)
        try:
            if topic is not None:
                document = put(document, topic, context.topic)
            if timestamp is not None and record.timestamp is not None and record.timestamp >= 0:
                document = put(document, timestamp, record.timestamp)
            if key is not None:
                document = put(document, key, _key_of(record))
            if static is not None:
                document = put(document, static, values["static.value"])
        except ValueError as error:
            raise CannotFilterError(str(error)) from None
        return document

    return changer(context, values, insert)


def _key_of(record: Record) -> str | None:
    """Raises UnicodeDecodeError, a ValueError."""
    return None if record.key is None else record.key.decode()


def make_replace(context: TopicContext, values: Values) -> Judge:
    include: tuple[Path, ...] | None = values["include"]
    exclude: tuple[Path, ...] = values["exclude"] or ()
    renames: Mapping[str, str] = values["renames"] or {}
    paths = None if include is None else list(include)

    def replace(document: Any, _: Record) -> Any:
        members_of(document)
        if paths is not None:
            document = project(document, paths)
        for path in exclude:
            document = remove(document, path)
        if not renames.keys().isdisjoint(document):
            document = {renames.get(name, name): value for name, value in document.items()}
        return document

    hides = (lambda _: True) if include is not None else may_hold(exclude)
    return changer(context, values, replace, hides=hides)


def described(path: Path) -> str:
    return f"the field {shown(path)}" if path else "it"
