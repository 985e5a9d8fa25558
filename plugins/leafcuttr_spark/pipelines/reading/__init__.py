"""Pipelines of files: YAML with places, variables and secrets, and one table of keys for each part.

    `yaml_nodes`       YAML as nodes with lines, within bounds
    `variables`        `${name}`, `${env:NAME}`, `${file:PATH}`
    `kinds`            what values can be; a part is a mapping whose keys are known
    `..._parts`        the tables of keys
    `loading`          all of it

The JSON Schema and the page of the reference are made of the same tables.
"""
