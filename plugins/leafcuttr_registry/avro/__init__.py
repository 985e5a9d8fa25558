"""Avro schemas: their text, whether one reads what another wrote, and their data.

It knows nothing of subjects and versions. What it does goes by the specification of Avro 1.12, and by Apache Avro's
Java library, which Confluent's registry and clients use, where the specification leaves something open.

- `format`: what the registry calls. `schema`: one schema, as `format` hands it out.
- `json_text`: JSON in and out, as Java reads and writes it. `names`, `types`: what a schema consists of.
- `parser`, `defaults`, `logical`, `equality`: from JSON to types. `printer`, `normalizer`: from types to text.
- `compatibility`, `rules`, `words`: whether data can be read, and why not.
- `reading`, `decoding`, `checking`, `encoding`, `codec`: data.
"""
