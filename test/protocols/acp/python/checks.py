"""Uses two servers as ACP's Python client does: `python checks.py URL OTHER_URL`.

Prints a line for each check. Exits with 1 if one of them fails.
"""

import asyncio
import base64
import sys
import traceback
import uuid

from acp_sdk.client import Client
from acp_sdk.models import (
    ACPError,
    ArtifactEvent,
    ErrorCode,
    Message,
    MessageAwaitResume,
    MessageCompletedEvent,
    MessagePart,
    MessagePartEvent,
    RunAwaitingEvent,
    RunCancelledEvent,
    RunCompletedEvent,
    RunCreatedEvent,
    RunFailedEvent,
    RunInProgressEvent,
    RunStatus,
    Session,
)

URL, OTHER_URL = sys.argv[1:3]
UMLAUTS = "Grüße, 世界 🌊"
CHECKS = []


def check(does):
    CHECKS.append(does)
    return does


def reply(text):
    return MessageAwaitResume(message=Message(parts=[MessagePart(content=text)]))


def text_of(run):
    return "".join(str(message) for message in run.output)


async def ended(client, run):
    while not run.status.is_terminal:
        run = await client.run_status(run_id=run.run_id)
    return run


async def expect_error(code, call):
    try:
        await call
    except ACPError as error:
        assert error.error.code == code, error.error
        assert error.error.message
    else:
        raise AssertionError(f"expected the error {code}")


@check
async def pings(client):
    await client.ping()


@check
async def lists_agents(client):
    names = [agent.name async for agent in client.agents()]
    assert {"echo", "described", "silent"} <= set(names), names


@check
async def reads_a_manifest(client):
    agent = await client.agent(name="described")
    assert agent.metadata.author.name == "Ada"
    assert str(agent.metadata.author.url) == "https://example.com/ada"
    assert agent.metadata.created_at.isoformat() == "2026-01-02T01:04:05+00:00"
    assert agent.metadata.capabilities[0].name == "Summaries"
    await expect_error(ErrorCode.NOT_FOUND, client.agent(name="unknown"))


@check
async def runs_in_sync_mode(client):
    run = await client.run_sync(UMLAUTS, agent="echo")
    assert run.status == RunStatus.COMPLETED
    assert text_of(run) == UMLAUTS
    assert run.output[0].role == "agent/echo"
    assert run.created_at <= run.finished_at
    assert run.raise_for_status() is run


@check
async def runs_in_async_mode(client):
    run = await client.run_async(UMLAUTS, agent="echo")
    assert run.status == RunStatus.CREATED
    run = await ended(client, run)
    assert (run.status, text_of(run)) == (RunStatus.COMPLETED, UMLAUTS)


@check
async def takes_input_in_each_form(client):
    part = MessagePart(content="a")
    for given in ("a", part, Message(parts=[part]), [part], [Message(parts=[part])], ["a"]):
        assert text_of(await client.run_sync(given, agent="echo")) == "a"
    image = MessagePart(content_type="image/png", content_encoding="base64", content="iVBORw0KGgo=")
    [answer] = (await client.run_sync(image, agent="echo")).output[0].parts
    assert (answer.content_type, answer.content_encoding, answer.content) == ("image/png", "base64", image.content)


@check
async def streams_a_run(client):
    events = [event async for event in client.run_stream("x", agent="tokens")]
    assert isinstance(events[0], RunCreatedEvent)
    assert isinstance(events[1], RunInProgressEvent)
    assert isinstance(events[-1], RunCompletedEvent)
    parts = [event.part.content for event in events if isinstance(event, MessagePartEvent)]
    assert parts == [f"token {n} \u2028\u0085\r\n" for n in range(200)]
    [message] = [event.message for event in events if isinstance(event, MessageCompletedEvent)]
    assert str(message) == "".join(parts) == text_of(events[-1].run)
    assert events == [event async for event in client.run_events(run_id=events[0].run.run_id)]


@check
async def streams_a_run_that_pauses(client):
    events = [event async for event in client.run_stream("x", agent="slow")]
    assert isinstance(events[-1], RunCompletedEvent)
    assert text_of(events[-1].run) == "one two"


@check
async def reads_errors_of_runs(client):
    run = await client.run_sync("x", agent="refusing")
    assert (run.status, run.error.code) == (RunStatus.FAILED, ErrorCode.INVALID_INPUT)
    assert run.error.message == "too short"
    assert run.error.data.value == ["a", "list"]
    run = await client.run_sync("x", agent="throwing")
    assert (run.status, run.error.code) == (RunStatus.FAILED, ErrorCode.SERVER_ERROR)
    events = [event async for event in client.run_stream("x", agent="throwing")]
    assert isinstance(events[-1], RunFailedEvent)
    try:
        run.raise_for_status()
    except ACPError as error:
        assert error.error == run.error
    else:
        raise AssertionError("expected an ACPError")


@check
async def reads_errors_of_requests(client):
    await expect_error(ErrorCode.NOT_FOUND, client.run_sync("x", agent="unknown"))
    await expect_error(ErrorCode.NOT_FOUND, client.run_status(run_id=uuid.uuid4()))
    await expect_error(ErrorCode.NOT_FOUND, anext(client.run_stream("x", agent="unknown")))
    await expect_error(ErrorCode.NOT_FOUND, anext(client.run_events(run_id=uuid.uuid4())))
    run = await client.run_sync("x", agent="echo")
    for refused in (client.run_resume_sync(reply("x"), run_id=run.run_id), client.run_cancel(run_id=run.run_id)):
        await expect_error(ErrorCode.INVALID_INPUT, refused)


@check
async def cancels_runs(client):
    for agent in ("silent", "ask"):
        run = await client.run_async("x", agent=agent)
        assert (await client.run_cancel(run_id=run.run_id)).status == RunStatus.CANCELLING
        assert (await ended(client, run)).status == RunStatus.CANCELLED


@check
async def cancels_a_run_that_is_streamed(client):
    last = None
    async for event in client.run_stream("x", agent="silent"):
        last = event
        if isinstance(event, MessagePartEvent):
            assert (await client.run_cancel(run_id=run_id)).status == RunStatus.CANCELLING
        elif isinstance(event, RunCreatedEvent):
            run_id = event.run.run_id
    assert isinstance(last, RunCancelledEvent)


async def asked(client):
    run = await client.run_sync("x", agent="ask")
    assert run.status == RunStatus.AWAITING
    assert str(run.await_request.message) == "Well?"
    return run


@check
async def replies_in_sync_mode(client):
    run = await client.run_resume_sync(reply("Yes"), run_id=(await asked(client)).run_id)
    assert (run.status, text_of(run)) == (RunStatus.COMPLETED, "before. You said Yes.")


@check
async def replies_in_async_mode(client):
    run = await client.run_resume_async(reply("Yes"), run_id=(await asked(client)).run_id)
    assert run.status == RunStatus.IN_PROGRESS
    assert (await ended(client, run)).status == RunStatus.COMPLETED


@check
async def replies_in_stream_mode(client):
    events = [event async for event in client.run_stream("x", agent="ask")]
    assert isinstance(events[-1], RunAwaitingEvent)
    run_id = events[-1].run.run_id
    rest = [event async for event in client.run_resume_stream(reply("Yes"), run_id=run_id)]
    assert isinstance(rest[0], RunInProgressEvent)
    assert isinstance(rest[-1], RunCompletedEvent)
    assert events + rest == [event async for event in client.run_events(run_id=run_id)]


@check
async def reads_files(client):
    [message] = (await client.run_sync("x", agent="files")).output
    said, note, data, image, link = message.parts
    assert (said.name, note.name, data.name) == (None, "notes.txt", "data.json")
    assert (data.content_type, data.content) == ("application/json", '{"results":[1,2]}')
    assert base64.b64decode(image.content).startswith(b"\x89PNG")
    assert str(link.content_url) == "https://example.com/pixel.png"
    events = [event async for event in client.run_stream("x", agent="files")]
    assert len([event for event in events if isinstance(event, ArtifactEvent)]) == 3
    assert len([event for event in events if isinstance(event, MessagePartEvent)]) == 2


@check
async def reads_citations_and_trajectories(client):
    [message] = (await client.run_sync("x", agent="sources")).output
    citation, step = message.parts
    assert (citation.metadata.kind, citation.metadata.title) == ("citation", "A source")
    assert (step.metadata.kind, step.metadata.tool_name) == ("trajectory", "search")
    assert step.metadata.tool_input.q == "x"


@check
async def keeps_a_session(client):
    async with client.session() as session:
        assert text_of(await session.run_sync("one", agent="remember")) == "1: "
        assert text_of(await session.run_sync("two", agent="remember")) == "2: one, 1: "
        kept = await session.refresh_session()
        assert [str(message) async for message in kept.load_history()] == ["one", "1: ", "two", "2: one, 1: "]
        assert await kept.load_state() == b"2"


@check
async def takes_a_session_to_another_server(client):
    async with client.session() as session:
        await session.run_sync("one", agent="remember")
        run = await session.run_sync("two", agent="remember", base_url=OTHER_URL)
        assert text_of(run) == "2: one, 1: "
        run = await session.run_sync("three", agent="remember", base_url=OTHER_URL)
        assert text_of(run) == "3: one, 1: , two, 2: one, 1: "


@check
async def goes_on_with_a_session_that_it_was_given(client):
    first = await client.run_sync("one", agent="echo")
    async with client.session(Session(id=first.session_id)) as session:
        run = await session.run_sync("two", agent="remember")
    assert run.session_id == first.session_id
    assert text_of(run) == "1: one, one"


async def main():
    failed = 0
    for does in CHECKS:
        name = does.__name__.replace("_", " ")
        try:
            async with Client(base_url=URL) as client:
                await asyncio.wait_for(does(client), 60)
            print(f"ok      {name}")
        except Exception:
            failed += 1
            print(f"FAILED  {name}\n{traceback.format_exc()}")
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(asyncio.run(main()))
