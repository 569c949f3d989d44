"""openai-python, unchanged but for its base URL."""

import base64
import hashlib
import json

import httpx2
import openai
import pytest

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city", "days"],
            },
        },
    }
]
# One pixel.
PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154"
        "08d763f8cfc000000301010018dd8db00000000049454e44ae426082"
    )
).decode()


@pytest.fixture(scope="module")
def client(router):
    return openai.OpenAI(base_url=router.url + "/v1", api_key="unused", max_retries=0)


@pytest.fixture(scope="module")
def model(client):
    return client.models.list().data[0].id


def ask(text, **fields):
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 16, **fields}


def test_chat_answers_with_text_and_usage(client, model):
    completion = client.chat.completions.create(model=model, **ask("Say this is a test."))
    assert completion.choices[0].message.role == "assistant"
    assert completion.choices[0].message.content
    assert completion.usage.prompt_tokens > 0
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens


def test_equal_beginnings_are_answered_from_one_warm_cache(client, model):
    policy = "The traveller shall keep every receipt. " * 400
    answers = [
        client.chat.completions.with_raw_response.create(model=model, **ask(policy + question))
        for question in ("What of taxis?", "What of hotels?", "What of meals?")
    ]
    assert len({answer.headers["x-isotherm-instance"] for answer in answers}) == 1
    assert {answer.headers["x-isotherm-reason"] for answer in answers} == {"home"}
    cached = [answer.parse().usage.prompt_tokens_details.cached_tokens for answer in answers]
    assert cached[0] == 0 and min(cached[1:]) > 2_000, cached


def test_a_request_id_of_the_client_comes_back(client, model):
    answer = client.chat.completions.with_raw_response.create(
        model=model, extra_headers={"x-request-id": "my-own-id-1"}, **ask("Hello")
    )
    assert answer.headers["x-request-id"] == "my-own-id-1"
    made = client.chat.completions.with_raw_response.create(model=model, **ask("Hello"))
    assert made.headers["x-request-id"] not in ("", "my-own-id-1")


def test_chat_streams_deltas_and_usage_on_request(client, model):
    stream = client.chat.completions.create(
        model=model, stream=True, stream_options={"include_usage": True}, **ask("Count to ten.")
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text and len(chunks) > 3
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens > 0
    finished = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices and chunk.choices[0].finish_reason]
    assert finished in (["stop"], ["length"])


def test_a_stream_has_no_usage_chunk_when_none_was_asked_for(client, model):
    chunks = list(client.chat.completions.create(model=model, stream=True, **ask("Count to ten.")))
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)


def test_tools_are_called(client, model):
    completion = client.chat.completions.create(
        model=model, tools=TOOLS, tool_choice="required", **ask("The weather in Oslo?", max_tokens=200)
    )
    call = completion.choices[0].message.tool_calls[0]
    assert completion.choices[0].finish_reason == "tool_calls"
    assert call.function.name == "get_weather"
    assert set(json.loads(call.function.arguments)) == {"city", "days"}


def test_tools_are_called_in_a_stream(client, model):
    request = ask("The weather in Oslo?", max_tokens=200)
    with client.chat.completions.stream(model=model, tools=TOOLS, tool_choice="required", **request) as stream:
        completion = stream.get_final_completion()
    call = completion.choices[0].message.tool_calls[0]
    assert call.function.name == "get_weather"
    assert set(json.loads(call.function.arguments)) == {"city", "days"}


def test_the_answer_to_a_tool_call_is_taken(client, model):
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    messages = [
        {"role": "user", "content": "The weather in Oslo?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Rain."},
    ]
    completion = client.chat.completions.create(model=model, messages=messages, tools=TOOLS, max_tokens=16)
    assert completion.choices[0].message.content


def test_images_in_content_parts(client, model):
    parts = [
        {"type": "text", "text": "What is in this picture?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PNG}},
    ]
    messages = [{"role": "user", "content": parts}]
    completion = client.chat.completions.create(model=model, messages=messages, max_tokens=16)
    assert completion.choices[0].message.content


@pytest.mark.parametrize("text", ["请把这份合同翻译成英文。" * 400, "🙂👩‍👩‍👧‍👦🏳️‍🌈" * 500, "Ω≈ç√∫ – „ä“ \u0000\u2028" * 300])
def test_unicode_is_routed_by_its_characters(client, model, text):
    homes = set()
    for question in ("一", "🙂", "é"):
        answer = client.chat.completions.with_raw_response.create(model=model, **ask(text + question))
        homes.add(answer.headers["x-isotherm-home"])
        assert answer.parse().choices[0].message.content
    assert len(homes) == 1


def test_a_prompt_of_one_megabyte(client, model):
    # A table with wide columns: white space is cheap in tokens, so that it fits the context of 131,072.
    text = (" " * 60 + "cell") * 16_384
    completion = client.chat.completions.create(model=model, **ask(text + "What does it say?"))
    assert len(text) > 1_000_000 and completion.choices[0].message.content


def test_a_picture_of_one_megabyte(client, model):
    picture = "data:image/png;base64," + base64.b64encode(bytes(768 * 1024)).decode()
    parts = [{"type": "text", "text": "And this one?"}, {"type": "image_url", "image_url": {"url": picture}}]
    completion = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": parts}], max_tokens=4
    )
    assert len(picture) > 1_000_000 and completion.choices[0].message.content


def test_a_text_beyond_the_context_gets_the_engines_own_error(client, model):
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(model=model, **ask("All work and no play. " * 50_000))
    assert "context length" in error.value.message


def test_completions(client, model):
    completion = client.completions.create(model=model, prompt="Once upon a time", max_tokens=8)
    assert completion.choices[0].text and completion.usage.completion_tokens > 0


def test_embeddings(client, model):
    embeddings = client.embeddings.create(model=model, input=["one text", "another"])
    assert [item.index for item in embeddings.data] == [0, 1]
    assert all(isinstance(number, float) for item in embeddings.data for number in item.embedding)
    assert embeddings.data[0].embedding != embeddings.data[1].embedding


def test_models_are_listed_once(client, model):
    ids = [entry.id for entry in client.models.list()]
    assert ids.count(model) == 1
    assert client.models.retrieve(model).id == model
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such-model")


def test_responses_continue_where_they_are_stored(client, model):
    first = client.responses.create(model=model, input="Remember the number 7.", max_output_tokens=16)
    assert first.output_text and first.usage.input_tokens > 0
    for turn in range(4):
        following = client.responses.create(
            model=model, input=f"Which number, turn {turn}?", previous_response_id=first.id, max_output_tokens=16
        )
        assert following.previous_response_id == first.id
    assert client.responses.retrieve(first.id).id == first.id
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)


def test_responses_stream(client, model):
    with client.responses.stream(model=model, input="Tell me something.", max_output_tokens=4_096) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert "response.output_text.delta" in kinds and final.output_text


def test_an_unknown_model_is_a_typed_error(client):
    with pytest.raises(openai.NotFoundError) as error:
        client.chat.completions.create(model="no-such-model", **ask("Hello"))
    assert error.value.code == "model_not_found" and "no-such-model" in error.value.message


def test_broken_json_is_refused_in_words(router):
    answer = httpx2.post(
        router.url + "/v1/chat/completions", content=b'{"messages": [', headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error" and answer.json()["error"]["message"]


def test_a_body_beyond_the_limit_is_a_typed_error(client, model):
    with pytest.raises(openai.APIStatusError) as error:
        client.chat.completions.create(model=model, **ask("a" * (33 * 1024 * 1024)))
    assert error.value.status_code == 413 and "larger" in error.value.message


def test_a_stream_that_is_left_frees_its_engine(router, client, model):
    router.wait_until_idle(within=10)
    request = ask("Write a very long story.", max_tokens=20_000, extra_body={"ignore_eos": True})
    stream = client.chat.completions.create(model=model, stream=True, **request)
    next(iter(stream))
    assert router.metric("isotherm_in_flight") == 1
    stream.close()
    router.wait_until_idle(within=1)


def test_keys_are_asked_for(start, model, tmp_path):
    key = "sk-0123456789abcdef0123456789abcdef"
    keys = tmp_path / "keys"
    keys.write_text(f"tester sha256:{hashlib.sha256(key.encode()).hexdigest()}\n")
    engines = start("up", "--engines", "1", "--speed", "20")
    guarded = start("serve", "--instance", engines.url, "--keys-file", str(keys))
    wrong = openai.OpenAI(base_url=guarded.url + "/v1", api_key="sk-wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        wrong.chat.completions.create(model=model, **ask("Hello"))
    right = openai.OpenAI(base_url=guarded.url + "/v1", api_key=key, max_retries=0)
    assert right.chat.completions.create(model=model, **ask("Hello")).choices[0].message.content
