"""What is not allowed, and why: each refusal is one error code of the API. Codes and messages are those of Confluent's
registry."""

from typing import Final

STORE_FAILED: Final = 50001
BUSY: Final = 503


class Refusal(Exception):
    """`code` is that of the API, five digits."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Incompatible(Refusal):
    """A schema that cannot be registered because of others; `messages` say why, a line each."""

    def __init__(self, subject: str, messages: list[str]) -> None:
        self.subject = subject
        self.messages = messages
        super().__init__(
            40901,
            f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
            f"details: [{', '.join(messages)}]",
        )


def no_subject(subject: str) -> Refusal:
    return Refusal(40401, f"Subject '{subject}' not found.")


def no_version(version: int | str) -> Refusal:
    return Refusal(40402, f"Version {version} not found.")


def no_schema(which: int | str | None = None) -> Refusal:
    return Refusal(40403, "Schema not found" if which is None else f"Schema {which} not found")


def subject_deleted(subject: str) -> Refusal:
    return Refusal(40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently")


def subject_not_deleted(subject: str) -> Refusal:
    return Refusal(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_deleted(subject: str, version: int) -> Refusal:
    return Refusal(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently",
    )


def version_not_deleted(subject: str, version: int) -> Refusal:
    return Refusal(
        40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def no_config(subject: str) -> Refusal:
    return Refusal(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_mode(subject: str) -> Refusal:
    return Refusal(40409, f"Subject '{subject}' does not have subject-level mode configured")


def invalid_schema(why: str) -> Refusal:
    return Refusal(42201, why)


def invalid_version(version: str) -> Refusal:
    return Refusal(
        42202,
        f"The specified version '{version}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"',
    )


def invalid_level() -> Refusal:
    return Refusal(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, "
        "forward_transitive, and full_transitive",
    )


def invalid_mode() -> Refusal:
    return Refusal(
        42204, "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT and FORWARD."
    )


def not_permitted(why: str) -> Refusal:
    return Refusal(42205, why)


def read_only(subject: str | None, context: str) -> Refusal:
    return not_permitted(f"Subject {subject} in context {context} is in read-only mode")


def referenced(subject: str, version: int) -> Refusal:
    return Refusal(
        42206,
        "One or more references exist to the schema "
        f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}.",
    )


def invalid_subject(subject: str) -> Refusal:
    return Refusal(42208, f"The specified subject '{subject}' is not a valid.")


def too_large() -> Refusal:
    return Refusal(42209, "Register operation failed because schema is too large")


def invalid_rules(why: str) -> Refusal:
    return Refusal(42210, why)


def context_not_empty(context: str) -> Refusal:
    return Refusal(42211, f"The specified context '{context}' is not empty.")


def store_failed(why: str) -> Refusal:
    return Refusal(STORE_FAILED, why)


def busy() -> Refusal:
    return Refusal(
        BUSY, "The registry is busy: the time of the request was up while it waited for others. Try again."
    )
