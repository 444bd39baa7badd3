"""Prints template.yaml as CloudFormation gets it, after the SAM transform, as
JSON. Usage: translate.py template.yaml
"""

import json
import os
import sys

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")  # the translator wants one; nothing is called

from samtranslator.parser.parser import Parser  # noqa: E402
from samtranslator.translator.translator import Translator  # noqa: E402
from samtranslator.yaml_helper import yaml_parse  # noqa: E402


def translate(path):
    with open(path, encoding="utf-8") as file:
        template = yaml_parse(file)
    # What `sam package` does: code is in a bucket by the time of the transform.
    template["Globals"]["Function"]["CodeUri"] = "s3://bucket/code"
    defaults = {name: p["Default"] for name, p in template["Parameters"].items() if "Default" in p}
    # Every function has a role of its own, so that no managed policy is looked up.
    return Translator({}, Parser()).translate(template, parameter_values=defaults)


if __name__ == "__main__":
    json.dump(translate(sys.argv[1]), sys.stdout, indent=1, sort_keys=True)
    print()
