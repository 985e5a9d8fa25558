"""JSON: `schema` makes types of JSON Schemas, `reading` columns of texts, `writing` texts of columns."""
