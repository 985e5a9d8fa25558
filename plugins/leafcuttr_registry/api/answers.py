"""What is answered, as JSON; and where LeafCuttr's manual and Confluent's registry differ, which of both
(`lc.schema.registry.answers`). `docs/reference/registry.md` lists each such place."""

import json
import re
from typing import Any, Final

from leafcuttr_registry.settings import Answers
from leafcuttr_registry.subjects.config import Config
from leafcuttr_registry.subjects.content import AVRO, Content
from leafcuttr_registry.subjects.refusals import BUSY, Incompatible, Refusal
from leafcuttr_registry.subjects.state import Version
from leafcuttr_sdk.web.errors import ApiError

PROTOBUF: Final = "PROTOBUF"
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+=*")
_MANUAL_CODES: Final = {40408: 40401}
"""A subject without a config of its own."""


class Rendering:
    """Answers of one kind."""

    def __init__(self, answers: Answers) -> None:
        self.confluent: Final = answers is Answers.CONFLUENT
        self.manual: Final = answers is Answers.MANUAL

    def refusal(self, refusal: Refusal) -> ApiError:
        code = refusal.code
        if not self.confluent:
            code = 409 if isinstance(refusal, Incompatible) else _MANUAL_CODES.get(code, code)
        return ApiError(code, str(refusal), (("retry-after", "1"),) if code == BUSY else ())

    def version(self, version: Version, text: str | None = None) -> dict[str, Any]:
        """A version of a subject. `text` is its schema in another form."""
        found = {
            "subject": version.subject,
            "version": version.version,
            "id": version.id,
            **self.content(version.content, text),
        }
        if not self.manual:
            found["ts"] = version.timestamp
            if version.deleted:
                found["deleted"] = True
        return found

    def looked_up(self, version: Version, text: str | None = None) -> dict[str, Any]:
        """The version that has a schema which was asked for. The manual shows a type of null for Avro, which clients
        would take for a type."""
        found = self.version(version, text)
        return {**found, "schemaType": found.get("schemaType")} if self.manual else found

    def place(self, version: Version) -> dict[str, Any]:
        """What is before a schema by its id where a subject was named. Confluent's registry leaves the id out; its
        client for Python looks for it there, with `use.schema.id`."""
        found = {"subject": version.subject, "version": version.version}
        return found if self.confluent else {**found, "id": version.id}

    def registered(
        self, version: Version, text: str | None = None, *, given: str | None = None
    ) -> dict[str, Any]:
        """The manual shows the id alone; clients that put guids into headers read them here. `given` is the text of the
        request: where it is a descriptor in base64, that is what is answered. Confluent's client for Python remembers
        what it registers by the answer, and reads descriptors only."""
        if self.manual:
            return {"id": version.id}
        if (
            text is None
            and given is not None
            and not self.confluent
            and is_descriptor(version.content, given)
        ):
            text = given
        return {
            "id": version.id,
            "version": version.version,
            **self.content(version.content, text),
            "ts": version.timestamp,
        }

    def encoded(self, content: Content) -> bytes:
        """A schema by its id, as bytes."""
        return json.dumps(self.content(content), ensure_ascii=False, separators=(",", ":")).encode()

    def content(self, content: Content, text: str | None = None) -> dict[str, Any]:
        found: dict[str, Any] = {} if self.manual else {"guid": content.guid}
        if content.type != AVRO or self.confluent:
            found["schemaType"] = content.type
        if content.references:
            found["references"] = [each._asdict() for each in content.references]
        if content.metadata is not None:
            found["metadata"] = content.metadata
        if content.rules is not None:
            found["ruleSet"] = content.rules
        return {**found, "schema": content.text if text is None else text}


def is_descriptor(content: Content, text: str) -> bool:
    """Whether a text of this schema is a descriptor of Protobuf in base64: the language has no message without
    braces."""
    return content.type == PROTOBUF and _BASE64.fullmatch(text) is not None


def config(found: Config) -> dict[str, Any]:
    return dict(found.members)


def updated_config(found: Config) -> dict[str, Any]:
    """The answer to an update calls the level as the request does."""
    return {
        "compatibility" if name == "compatibilityLevel" else name: value
        for name, value in found.members.items()
    }
