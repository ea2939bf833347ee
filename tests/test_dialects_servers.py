"""Gemini's interactions, and what servers of open models and smaller vendors have of their own; one kind a test."""

from __future__ import annotations

import pytest

from vendors import body, lines, sse


def parse(llmstream, data, dialect, told=True):
    result = llmstream.parse(data, dialect=dialect)
    assert llmstream.parse([data[at : at + 1] for at in range(len(data))], dialect=dialect) == result
    if told:
        assert llmstream.parse(data, dialect="auto").text == result.text
        assert llmstream.parse(data, dialect="auto").dialect == dialect
    return result


def counts(result):
    return result.usage and (result.usage.input_tokens, result.usage.output_tokens)


# Gemini's interactions


def step(kind, index, **more):
    return {"event_type": kind, "index": index, **more}


def interaction(kind, status, **more):
    return {"event_type": kind, "interaction": {"id": "v1_a", "status": status, "model": "g", **more}}


TOKENS = {"total_input_tokens": 7, "total_output_tokens": 5, "total_thought_tokens": 9}


@pytest.mark.parametrize("name", ["step", "content"])
def test_interactions(llmstream, name):
    thought = {"type": "thought_summary", "content": {"type": "text", "text": "Hm"}}
    payloads = [
        interaction("interaction.created", "in_progress"),
        step(f"{name}.start", 0, **{"step" if name == "step" else "content": {"type": "thought"}}),
        step(f"{name}.delta", 0, delta=thought),
        step(f"{name}.delta", 0, delta={"type": "thought_signature", "signature": "s"}),
        step(f"{name}.stop", 0),
        step(f"{name}.start", 1, step={"type": "model_output", "content": [{"type": "text", "text": "H"}]}),
        step(f"{name}.delta", 1, delta={"type": "text", "text": "el"}),
        step(f"{name}.delta", 1, delta={"type": "text", "text": "lo"}),
        step(f"{name}.stop", 1),
        interaction("interaction.completed", "completed", usage=TOKENS, created="2026-06-05T17:35:35Z"),
        "[DONE]",
    ]
    result = parse(llmstream, body(*payloads), "gemini-interactions")
    assert (result.text, result.reasoning, result.model, counts(result)) == ("Hello", "Hm", "g", (7, 5))
    assert (result.vendor_stop_reasons, result.complete) == ({0: "completed", 1: "completed"}, True)
    assert not llmstream.parse(body(*payloads[:-2]), dialect="gemini-interactions").complete


def test_calls_of_interactions(llmstream):
    payloads = [
        interaction("interaction.created", "in_progress"),
        step("step.start", 0, step={"type": "google_search_call", "id": "s"}),
        step("step.start", 1, step={"type": "function_call", "id": "a", "name": "f", "arguments": {}}),
        step("step.delta", 1, delta={"type": "arguments_delta", "arguments": '{"x"'}),
        step("step.delta", 1, delta={"type": "arguments_delta", "arguments": ":1}"}),
        step("step.stop", 1),
        step("step.start", 2, step={"type": "function_call", "id": "b", "name": "g", "arguments": {"y": 2}}),
        step("step.stop", 2, usage=TOKENS),
        step("content.delta", 3, delta={"type": "function_call", "id": "c", "name": "h", "arguments": {}}),
        interaction("interaction.completed", "requires_action"),
        "[DONE]",
    ]
    result = parse(llmstream, body(*payloads), "gemini-interactions")
    assert [(c.id, c.name, c.arguments, c.index) for c in result.tool_calls] == [
        ("a", "f", '{"x":1}', 1),
        ("b", "g", '{"y":2}', 2),
        ("c", "h", "{}", 3),
    ]
    assert (set(result.stop_reasons.values()), counts(result)) == ({"tool_use"}, (7, 5))


def test_an_error_of_interactions(llmstream):
    failed = {"event_type": "error", "error": {"code": "gateway_timeout", "message": "m"}}
    result = parse(llmstream, body(interaction("interaction.created", "in_progress"), failed), "gemini-interactions")
    assert (result.error.code, result.error.message, result.complete) == ("gateway_timeout", "m", False)


# Ollama


def ollama(done=False, **more):
    return {"model": "m", "created_at": "2023-11-14T22:13:20.123456789Z", **more, "done": done}


END = {"done_reason": "stop", "prompt_eval_count": 7, "eval_count": 5}


def test_ollama_chat(llmstream):
    call = {"function": {"name": "f", "arguments": {"a": 1}}}
    payloads = [
        ollama(message={"role": "assistant", "content": "", "thinking": "Hm"}),
        ollama(message={"role": "assistant", "content": "Hel"}),
        ollama(message={"role": "assistant", "content": "lo"}),
        ollama(message={"role": "assistant", "content": "", "tool_calls": [call, {"id": "x", **call}]}),
        ollama(True, message={"role": "assistant", "content": ""}, **END),
    ]
    result = parse(llmstream, lines(*payloads), "ollama")
    assert (result.text, result.reasoning, result.model, counts(result)) == ("Hello", "Hm", "m", (7, 5))
    assert [(c.id, c.name, c.arguments) for c in result.tool_calls] == [
        ("call-0", "f", '{"a":1}'),
        ("x", "f", '{"a":1}'),
    ]
    assert (result.stop_reasons, result.vendor_stop_reasons, result.complete) == ({0: "tool_use"}, {0: "stop"}, True)
    assert next(llmstream.iter_events(lines(*payloads), dialect="ollama")).created == 1700000000
    assert not llmstream.parse(lines(*payloads[:-1]), dialect="ollama").complete


def test_ollama_generate(llmstream):
    payloads = [ollama(response="Hm", thinking=""), ollama(response="m"), ollama(True, response="", eval_count=5)]
    result = parse(llmstream, lines(*payloads), "ollama")
    assert (result.text, counts(result), result.stop_reasons) == ("Hmm", (0, 5), {0: "end_turn"})
    assert "L-USAGE" in [v.requirement for v in result.violations]


def test_an_error_of_ollama(llmstream):
    result = parse(llmstream, lines(ollama(response="a"), {"error": "model is gone"}), "ollama")
    assert (result.text, result.error.message, result.complete) == ("a", "model is gone", False)


# text-generation-inference


def token(words, special=False, whole=None, **details):
    return {
        "index": 1,
        "token": {"id": 1, "text": words, "logprob": -1.5, "special": special},
        "generated_text": whole,
        "details": details or None,
    }


def test_tgi(llmstream):
    payloads = [
        token("Hel"),
        token("lo"),
        token("</s>", special=True, whole="Hello", finish_reason="eos_token", generated_tokens=3, input_length=7),
    ]
    result = parse(llmstream, body(*payloads), "tgi")
    assert (result.text, counts(result), result.complete) == ("Hello", (7, 3), True)
    assert (result.stop_reasons, result.vendor_stop_reasons) == ({0: "end_turn"}, {0: "eos_token"})
    assert not llmstream.parse(body(*payloads[:-1]), dialect="tgi").complete


def test_an_error_of_tgi(llmstream):
    result = parse(llmstream, body(token("a"), {"error": "m", "error_type": "overloaded"}), "tgi")
    assert (result.error.code, result.error.message) == ("overloaded", "m")


# Replicate


def test_replicate(llmstream):
    data = b": hi\n\n" + sse("", "output") + sse('{"a":', "output") + b"event: output\ndata: :\ndata: \ndata: 1}\n\n"
    result = parse(llmstream, data + sse("working", "logs") + sse({}, "done"), "replicate")
    assert (result.text, result.usage, result.complete, result.violations) == ('{"a"::\n\n1}', None, True, [])
    assert not llmstream.parse(data, dialect="replicate").complete


@pytest.mark.parametrize("data", ["it broke", {"detail": "it broke"}])
def test_an_error_of_replicate(llmstream, data):
    result = parse(llmstream, sse("a", "output") + sse(data, "error") + sse({"reason": "error"}, "done"), "replicate")
    assert (result.error.message, result.vendor_stop_reasons, result.complete) == ("it broke", {0: "error"}, True)


def test_an_end_after_an_error_of_replicate_has_no_stop_reason(llmstream):
    result = parse(llmstream, sse("a", "output") + sse("it broke", "error") + sse({}, "done"), "replicate")
    assert (result.error.message, result.stop_reasons, result.complete) == ("it broke", {}, True)


# watsonx


def watsonx(words, tokens, prompt=0, reason="not_finished"):
    counted = {"generated_token_count": tokens, "input_token_count": prompt}
    result = {"generated_text": words, "stop_reason": reason, **counted}
    return {"model_id": "m", "created_at": "2024-03-10T14:40:37.661Z", "results": [result]}


def test_watsonx(llmstream):
    payloads = [watsonx("", 0, 8), watsonx("Hel", 1), watsonx("lo", 2), watsonx("", 2, 0, "max_tokens")]
    result = parse(llmstream, body(*payloads), "watsonx")
    assert (result.text, result.model, counts(result)) == ("Hello", "m", (8, 2))
    assert (result.stop_reasons, result.complete) == ({0: "max_tokens"}, True)
    assert not llmstream.parse(body(*payloads[:-1]), dialect="watsonx").complete


def test_watsonx_chat(llmstream):
    chunk = {"model_id": "m", "created": 5, "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]}
    last = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    result = parse(llmstream, body(chunk, last), "watsonx")
    assert (result.text, result.model, result.complete) == ("a", "m", True)


def test_an_error_of_watsonx(llmstream):
    failed = {"errors": [{"code": "token_quota_reached", "message": "m"}], "trace": "t", "status_code": 403}
    result = parse(llmstream, body(failed), "watsonx")
    assert (result.error.code, result.error.message) == ("token_quota_reached", "m")


# Writer, llama.cpp, Snowflake


def test_writer_completions(llmstream):
    result = parse(llmstream, body({"value": "Hel"}, {"value": "lo"}), "writer-completions")
    # It says neither why it stopped nor that it did.
    assert (result.text, result.complete) == ("Hello", False)


def test_llamacpp(llmstream):
    def piece(words, tokens, stop=False, **more):
        return {"index": 0, "content": words, "stop": stop, "tokens_predicted": tokens, "tokens_evaluated": 7, **more}

    payloads = [piece("Hel", 1), piece("lo", 2), piece("", 2, True, model="m", stop_type="limit", stopping_word="")]
    result = parse(llmstream, body(*payloads), "llamacpp")
    assert (result.text, counts(result), result.complete) == ("Hello", (7, 2), True)
    assert (result.stop_reasons, result.vendor_stop_reasons) == ({0: "max_tokens"}, {0: "limit"})
    assert not llmstream.parse(body(*payloads[:-1]), dialect="llamacpp").complete
    old = llmstream.parse(body(piece("a", 1), piece("", 1, True, stopped_eos=True)), dialect="llamacpp")
    assert old.vendor_stop_reasons == {0: "eos"}


def test_calls_of_snowflake(llmstream):
    def chunk(**delta):
        return {"id": "a", "model": "m", "choices": [{"delta": delta}], "usage": {}}

    result = parse(
        llmstream,
        body(
            chunk(type="text", content="Hm", content_list=[{"type": "text", "text": "Hm"}], text="Hm"),
            chunk(type="tool_use", tool_use_id="t", name="f", content_list=[{"tool_use_id": "t"}], text=""),
            chunk(type="tool_use", input='{"a"', content_list=[{"input": '{"a"'}], text=""),
            chunk(type="tool_use", input=":1}", content_list=[{"input": ":1}"}], text=""),
            "[DONE]",
        ),
        "snowflake",
        told=False,
    )
    assert result.text == "Hm"
    assert [(c.id, c.name, c.arguments) for c in result.tool_calls] == [("t", "f", '{"a":1}')]


def test_what_is_too_large_after_the_end_is_after_the_end(llmstream):
    done = b'{"model":"m","message":{"role":"assistant","content":"hi"},"done":true,"done_reason":"stop"}\n'
    big = b'{"x":"' + b"y" * 400 + b'"}\n'
    for chunks in ((done + big,), (done, big)):
        parser = llmstream.Parser("ollama", max_event_size=300)
        for chunk in chunks:
            parser.feed(chunk)
        parser.close()
        assert [violation.requirement for violation in parser.violations] == ["R5.3.7-1"]
        assert parser.complete
