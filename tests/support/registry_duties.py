"""What every client of the registry must do: the list that the programs below tests/clients/programs, the tests of
tests/clients/registry and the matrix in docs/reference/clients.md share.

A program is called with the URL of the registry, the address of its broker and a name, and goes through the duties in
this order. It ends with 0 after it has said `did DUTY:` for each, a line of its own. The topics NAME-avro, NAME-json
and NAME-protobuf decode every value that is produced to them, and so do those with `-header` behind; into each goes one
record of the name Ada Lovelace and the age 36. Not of kafkajs's client in Protobuf: it leaves out the index of the
message, and gets INVALID_RECORD.
"""

from __future__ import annotations

from support.client_programs import Program, go, node, pinned

REGISTRY_DUTIES = {
    "register": "a schema of each format; the same one again has the same id",
    "evolve": "a later one that is compatible",
    "refuse": "one that is not, and what is no schema, each with its status and code",
    "look up": "by id, guid, version, as the latest, by the schema; what is not there has its code",
    "references": "a schema of each format that refers to another subject",
    "config": "levels of compatibility, metadata",
    "encode": "Avro, JSON Schema and Protobuf, produced to topics that decode every value, and consumed",
    "header": "the same with the schema's guid in a header",
    "without a schema": "a record without one gets INVALID_RECORD",
    "deletion": "versions and subjects, and both for good",
}
_NO_HEADER = {"header": "it writes ids before the data only"}

REGISTRY_PROGRAMS = [
    Program(
        "@confluentinc/schemaregistry",
        pinned("confluent_schemaregistry_js/package.json", r'schemaregistry": "(\S+)"'),
        lambda: node("confluent_schemaregistry_js"),
        ("node", "npm"),
    ),
    Program(
        "@kafkajs/confluent-schema-registry",
        pinned("kafkajs_schema_registry/package.json", r'schema-registry": "(\S+)"'),
        lambda: node("kafkajs_schema_registry"),
        ("node", "npm"),
        {**_NO_HEADER, "config": "it sets the level of a new subject only", "deletion": "it deletes nothing"},
    ),
    Program(
        "confluent-kafka-go, schemaregistry",
        pinned("confluent_schemaregistry_go/go.mod", r"/confluent-kafka-go/v2 v(\S+)"),
        lambda: go("confluent_schemaregistry_go"),
        ("go", "cc"),
    ),
    Program(
        "franz-go, sr",
        pinned("franz_sr/go.mod", r"/franz-go/pkg/sr v(\S+)"),
        lambda: go("franz_sr"),
        ("go",),
        _NO_HEADER,
    ),
]
