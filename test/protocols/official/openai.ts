import OpenAI from 'openai';
import { expect } from 'vitest';
import { runsOf, type ServeChats, turns } from './agent.ts';
import { listed, type Seen } from './seen.ts';

type Item = OpenAI.Responses.ResponseOutputItem;
type Response = OpenAI.Responses.Response;

const itemOf = (item: Item): string[] => {
  if (item.type === 'mcp_call') return [`\`${item.name}\` ${item.error ? 'error' : item.status}`];
  return item.type === 'function_call' ? [`\`${item.name}\` ${item.status}`] : [];
};

const shown = (responses: readonly Response[]): string =>
  listed(
    responses.flatMap(({ output, incomplete_details: cut }) => [
      ...output.flatMap(itemOf),
      ...(cut ? [`cut off: ${cut.reason}`] : []),
    ]),
  );

/** The package `openai`, by Responses. */
export async function openAi(serve: ServeChats): Promise<Seen> {
  const chats = await serve();
  const clientOf = (url: string): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
  const client = clientOf(chats.url);
  const items = new Map<string | undefined, Item>();
  const say = async (input: OpenAI.Responses.ResponseInput | string, previous?: Response): Promise<Response> => {
    const stream = client.responses.stream({ model: 'chat', input, previous_response_id: previous?.id ?? null });
    for await (const event of stream)
      if (event.type === 'response.output_item.added' || event.type === 'response.output_item.done')
        items.set(event.item.id, event.item);
    return stream.finalResponse();
  };
  const first = say(turns[0]);
  await chats.working();
  await expect.poll(() => items.size).toBeGreaterThan(0);
  const working = listed([...items.values()].flatMap(itemOf));
  chats.release();
  const one = await first;
  const asked = await say(turns[1], one);
  const question = asked.output.find((item) => item.type === 'function_call');
  const reply = { type: 'function_call_output' as const, call_id: question?.call_id ?? '', output: 'true' };
  const two = await say([reply], asked);
  const three = await say(turns[2], two);
  const loaded: Response[] = [];
  for (const { id } of [one, asked, two, three]) loaded.push(await client.responses.retrieve(id));

  const others = await serve();
  const other = clientOf(others.url);
  const stopped = await other.responses.create({ model: 'chat', input: turns[0], stream: true });
  let id = '';
  for await (const event of stopped) {
    if (event.type === 'response.created') id = event.response.id;
    if (event.type !== 'response.output_item.added') continue;
    await other.responses.cancel(id);
    break;
  }
  others.release();
  const again = await other.responses.create({ model: 'chat', input: turns[0] });
  return {
    working,
    end: shown([one, asked, two, three]),
    reload: shown(loaded),
    again: [shown([again]), await runsOf(others)].join('; '),
  };
}
