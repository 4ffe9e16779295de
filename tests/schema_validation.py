"""Validating documents by the published JSON Schemas, with a validator for each that is built once; jsonschema is
imported by the tests that validate, not by all workers that collect them.
"""

from functools import cache

from json_schema import json_schema


def validate(document, name):
    """Have ``document`` fit the schema of this name, else raise jsonschema's ValidationError."""
    _validator(name).validate(document)


def check_schema(schema):
    """Have ``schema`` be a JSON Schema, else raise jsonschema's SchemaError."""
    _draft().check_schema(schema)


@cache
def _validator(name):
    return _draft()(json_schema(name))


@cache
def _draft():
    from jsonschema import Draft202012Validator

    return Draft202012Validator
