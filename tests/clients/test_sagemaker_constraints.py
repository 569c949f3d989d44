"""Every constraint of the service model that boto3 brings, broken one at a time: the server names each in its words."""

import json
import re

import botocore.session
import httpx2
import pytest

RESOURCES = ("Model", "EndpointConfig", "Endpoint", "InferenceComponent")
OPERATIONS = [
    *(f"{verb}{resource}" for resource in RESOURCES for verb in ("Create", "Describe", "Delete")),
    *(f"List{resource}s" for resource in RESOURCES),
    *("UpdateEndpoint", "UpdateEndpointWeightsAndCapacities"),
    *("UpdateInferenceComponent", "UpdateInferenceComponentRuntimeConfig"),
    *("AddTags", "ListTags", "DeleteTags"),
]
# Told by its form, since new types appear every month; and the values that the model's text allows.
OUR_OWN = {"ProductionVariantInstanceType", "MetricPublishFrequencyInSeconds"}


class Broken:
    """A value that breaks one constraint, where it stands, and what is to be said."""

    def __init__(self, path, value, said):
        self.path, self.value, self.said = path, value, said

    def input(self):
        """The value within as little as leads to it."""
        value = self.value
        for step in reversed(self.path):
            value = [value] if step is None else {step: value}
        return value

    def message(self):
        names = ["1.member" if step is None else step[0].lower() + step[1:] for step in self.path]
        shown = "null" if self.value is None else f"'{printed(self.value)}'"
        return f"Value {shown} at '{'.'.join(names)}' failed to satisfy constraint: {self.said}"


def printed(value):
    """As Java prints it; of long lists, the server repeats the first hundred."""
    if isinstance(value, list):
        return f"[{', '.join(map(printed, value[:100]))}]"
    return str(value)


def broken(shape, path=(), within=()):
    """Everything that can be wrong with a value of this shape, and with what stands in it."""
    if shape.name in OUR_OWN or shape.name in within:
        return
    bounds = shape.metadata
    least, most = bounds.get("min"), bounds.get("max")
    if shape.type_name == "structure":
        for name in shape.required_members:
            yield Broken((*path, name), None, "Member must not be null")
        for name, member in shape.members.items():
            yield from broken(member, (*path, name), (*within, shape.name))
    elif shape.type_name == "list":
        of = shape.member
        one = {} if of.type_name == "structure" else "x"
        if most is not None:
            yield Broken(path, [one] * (most + 1), f"Member must have length less than or equal to {most}")
        if least:
            yield Broken(path, [], f"Member must have length greater than or equal to {least}")
        yield from broken(of, (*path, None), within)
    elif shape.type_name == "string":
        if most is not None:
            yield Broken(path, "a" * (most + 1), f"Member must have length less than or equal to {most}")
        if least:
            yield Broken(path, "", f"Member must have length greater than or equal to {least}")
        if shape.enum:
            yield Broken(path, "no such word", "Member must satisfy enum value set: [")
        pattern = bounds.get("pattern")
        unfit = pattern and next((text for text in ("a b", "!", "a\n", "\u0007") if not fits(pattern, text)), None)
        if unfit:
            yield Broken(path, unfit, f"Member must satisfy regular expression pattern: {pattern}")
    elif shape.type_name in ("integer", "long"):
        if most is not None:
            yield Broken(path, most + 1, f"Member must have value less than or equal to {most}")
        if least is not None:
            yield Broken(path, least - 1, f"Member must have value greater than or equal to {least}")


def fits(pattern, text):
    """Whether a text is of the pattern as a whole; of patterns that are Java's own, nothing is known."""
    try:
        return re.fullmatch(pattern, text) is not None
    except re.error:
        return True


@pytest.fixture(scope="module")
def model():
    return botocore.session.Session().get_service_model("sagemaker")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_constraint_is_checked_and_named(aws, model, operation):
    constraints = list(broken(model.operation_model(operation).input_shape))
    assert constraints
    with httpx2.Client(base_url=aws.url) as client:
        for one in constraints:
            headers = {"x-amz-target": f"SageMaker.{operation}", "content-type": "application/x-amz-json-1.1"}
            answer = client.post("/", content=json.dumps(one.input()), headers=headers)
            body = answer.json()
            assert (answer.status_code, body["__type"]) == (400, "ValidationException"), (one.input(), body)
            assert one.message() in body["message"], f"{one.message()}\nnot in\n{body['message']}"
            assert re.match(r"\d+ validation errors? detected: Value ", body["message"])
