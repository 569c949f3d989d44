"""anthropic-python against /v1/messages."""

import anthropic
import httpx2
import pytest


@pytest.fixture(scope="module")
def client(router):
    return anthropic.Anthropic(base_url=router.url, api_key="unused", max_retries=0)


@pytest.fixture(scope="module")
def model(router):
    return httpx2.get(router.url + "/v1/models").json()["data"][0]["id"]


def ask(text, **fields):
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 16, **fields}


def test_messages_answer_with_text_and_usage(client, model):
    message = client.messages.create(model=model, system="You are brief.", **ask("Say this is a test."))
    assert message.role == "assistant" and message.content[0].text
    assert message.usage.input_tokens > 0 and message.usage.output_tokens > 0


def test_an_equal_system_prompt_finds_the_warm_cache(client, model):
    policy = "The traveller shall keep every receipt. " * 400
    usages = [client.messages.create(model=model, system=policy, **ask(text)).usage for text in ("Taxis?", "Hotels?")]
    assert usages[1].cache_read_input_tokens > 2_000


def test_a_breakpoint_ends_the_prefix_by_which_requests_find_their_home(client, model):
    def key(question, **mark):
        system = [{"type": "text", "text": "The traveller shall keep every receipt. " * 20, **mark}]
        answer = client.messages.with_raw_response.create(model=model, system=system, **ask(question))
        assert answer.parse().content[0].text
        return answer.headers["x-isotherm-key"]

    mark = {"cache_control": {"type": "ephemeral"}}
    assert key("Taxis?", **mark) == key("Hotels?", **mark)
    assert key("Taxis?") != key("Hotels?"), "without it, so short a text is part of the key as a whole"


def test_messages_stream(client, model):
    with client.messages.stream(model=model, **ask("Count to ten.")) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert text and message.content[0].text == text
    assert message.stop_reason in ("end_turn", "max_tokens") and message.usage.output_tokens > 0


def test_tokens_are_counted(client, model):
    request = ask("How long is this?")
    del request["max_tokens"]
    assert client.messages.count_tokens(model=model, **request).input_tokens > 3


def test_an_unknown_model_is_a_typed_error(client):
    with pytest.raises(anthropic.NotFoundError) as error:
        client.messages.create(model="no-such-model", **ask("Hello"))
    assert error.value.body["type"] == "error" and error.value.body["error"]["type"] == "not_found_error"


def test_a_stream_that_is_left_frees_its_engine(router, client, model):
    router.wait_until_idle(within=10)
    request = ask("Write a very long story.", max_tokens=20_000, extra_body={"ignore_eos": True})
    with client.messages.stream(model=model, **request) as stream:
        next(iter(stream.text_stream))
    router.wait_until_idle(within=1)
