# SPDX-License-Identifier: Apache-2.0
"""Validates values with Python's jsonschema, for schema_files_test.cpp.

usage: misfits.py FILE    FILE is JSON: {"schema": SCHEMA, "values": [VALUE...], "places": [[INDEX, [TOKEN...]]...]}

Prints one line of JSON per value: the place in the value and the keyword of the schema that it breaks, for example
"$.latency type", or "" if the value fits. Then prints one line per place: whether values[INDEX] still fits with a
misspelt key in the map at this place.
"""

import json
import sys

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match


def misfit(check, value):
    error = best_match(check.iter_errors(value))
    if error is None:
        return ""
    place = "".join(f".{token}" for token in error.absolute_path)
    return f"${place} {error.validator}"


def fits_misspelt(check, value, tokens):
    place = value
    for token in tokens:
        place = place[int(token) if isinstance(place, list) else token]
    place["nmae"] = 1
    fits = check.is_valid(value)
    del place["nmae"]
    return fits


with open(sys.argv[1], encoding="utf-8") as file:
    question = json.load(file)
Draft202012Validator.check_schema(question["schema"])
validator = Draft202012Validator(question["schema"])
for value in question["values"]:
    print(json.dumps(misfit(validator, value)))
for index, tokens in question["places"]:
    print(json.dumps(fits_misspelt(validator, question["values"][index], tokens)))
