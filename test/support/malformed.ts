import { Dice } from './dice.ts';

export interface Malformed {
  /** Its defect. */
  readonly name: string;
  readonly bytes: Buffer;
  /** The client's action after sending: it reads the response, ends its side, or breaks the connection. */
  readonly after: 'answer' | 'end' | 'reset';
}

export interface Known {
  readonly agent: string;
  /** A final run, and its session. */
  readonly run_id: string;
  readonly session_id: string;
}

const noId = '00000000-0000-4000-8000-000000000000';
const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;

/** A value of any type, for any field of a body. */
export const valueOfAnyKind = (dice: Dice): unknown =>
  dice.of<() => unknown>(
    () => null,
    () => dice.of(true, false),
    () => dice.of(0, -1, 1e308, 2 ** 53, 0.1, -0),
    () => dice.word('\u0000 \ud800 __proto__ ../../etc/passwd %00', '', ' ', '\u2028\r\n\r\n', 'a'.repeat(70_000)),
    () => [],
    () => ({}),
    () => [[[]]],
    () => ({ constructor: { prototype: { polluted: 1 } } }),
  )();

/** Malformed requests; the dice choose the kind and the form of each. */
export class MalformedRequests {
  readonly #dice: Dice;
  readonly #known: Known;

  constructor(seed: number, known: Known) {
    this.#dice = new Dice(seed);
    this.#known = known;
  }

  next(): Malformed {
    const kinds = [
      this.#body,
      this.#mutatedBody,
      this.#strangeJson,
      this.#encoding,
      this.#halfBody,
      this.#chunks,
      this.#target,
      this.#id,
      this.#cursor,
      this.#page,
      this.#method,
      this.#headers,
      this.#garbage,
      this.#mutatedRequest,
      this.#pipeline,
    ] as const;
    return this.#dice.of(...kinds).call(this);
  }

  #good(): Record<string, unknown> {
    return {
      agent_name: this.#known.agent,
      mode: this.#dice.of('sync', 'async', 'stream'),
      input: [{ role: 'user', parts: [{ content_type: 'text/plain', content: 'hi' }] }],
    };
  }

  #body(): Malformed {
    const dice = this.#dice;
    const text = dice.word(
      'null true 5 "text" [] {} { {"agent_name": {"a":1,} NaN {"agent_name":"echo"} {"agent_name":"echo","input":[]} {"agent_name":"","input":[{}]}',
      '',
      ' ',
      "{'a':1}",
      '\ufeff{}',
      '// no\n{}',
    );
    return this.#answered('a body that is no request', this.#post(this.#path(), text));
  }

  #mutatedBody(): Malformed {
    const body = this.#good();
    const spots: ((value: unknown) => unknown)[] = [
      (value) => ({ ...body, [this.#dice.word('agent_name input mode session_id session x')]: value }),
      (value) => ({ ...body, input: [value] }),
      (value) => ({ ...body, input: [{ role: value, parts: [{ content: 'a' }] }] }),
      (value) => ({ ...body, input: [{ parts: value }] }),
      (value) => ({ ...body, input: [{ parts: [value] }] }),
      (value) => ({
        ...body,
        input: [
          {
            parts: [
              {
                content: 'a',
                [this.#dice.word('content_type content content_encoding content_url name metadata')]: value,
              },
            ],
          },
        ],
      }),
      (value) => ({ ...body, session: { id: noId, [this.#dice.of('id', 'history', 'state')]: value } }),
      (value) => ({ run_id: value, await_resume: value, mode: 'sync' }),
      (value) => ({ run_id: this.#known.run_id, await_resume: { type: value, message: value }, mode: 'async' }),
    ];
    const mutate = this.#dice.of(...(spots as [(typeof spots)[0], ...typeof spots]));
    return this.#answered(
      'a value of the wrong kind',
      this.#post(this.#path(), JSON.stringify(mutate(valueOfAnyKind(this.#dice)))),
    );
  }

  #strangeJson(): Malformed {
    const dice = this.#dice;
    const inner = dice.of<() => string>(
      () => `"__proto__":{"polluted":1}`,
      () => `"constructor":{"prototype":{"polluted":1}}`,
      () => `"x":${deep(dice.of(50, 99, 101, 1_000, 50_000))}`,
      () => `"x":1${'0'.repeat(dice.of(20, 400, 5_000))}`,
      () => `"x":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
      () => `"x":-1e-99999`,
      () => `"agent_name":"echo","agent_name":"no-agent"`,
      () => `"\\u005f_proto__":{"toString":1}`,
      () => `"input":[{"parts":[{"content":"a","metadata":{"kind":"citation","__proto__":{"a":1}}}]}]`,
    )();
    const text = JSON.stringify(this.#good()).replace(/\}$/, `,${inner}}`);
    return this.#answered('JSON that parsers trip over', this.#post(dice.of('/runs', this.#path()), text));
  }

  #encoding(): Malformed {
    const dice = this.#dice;
    const good = JSON.stringify(this.#good());
    const [headers, body] = dice.of<[string, Buffer]>(
      ['Content-Encoding: gzip\r\n', Buffer.from(good)],
      ['Content-Encoding: br, zstd\r\n', dice.bytes(50)],
      ['', Buffer.concat([Buffer.from(good.slice(0, -1)), Buffer.from([0xc3, 0x28, 0xff, 0xfe]), Buffer.from('}')])],
      ['', Buffer.from(good.replace('hi', '\u00ff\u00fe'), 'latin1')],
      ['', Buffer.from(good, 'utf16le')],
      ['', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(good)])],
      ['', dice.bytes(dice.below(300))],
    );
    const type = dice.word(
      'application/json text/plain application/xml multipart/form-data application/x-www-form-urlencoded ; \u00ff/\u00fe',
      'application/json; charset=utf-16',
      'application/json; charset="',
      'application/json, text/html',
      '',
      'a'.repeat(5_000),
    );
    return this.#answered('an encoding that is not the body’s', this.#post('/runs', body, headers, type));
  }

  #halfBody(): Malformed {
    const text = JSON.stringify(this.#good());
    const whole = this.#post(
      '/runs',
      text,
      '',
      'application/json',
      Buffer.byteLength(text) + this.#dice.of(1, 1_000, 1e9),
    );
    const bytes = whole.subarray(0, whole.length - this.#dice.below(text.length));
    return { name: 'a body that is not all there', bytes, after: this.#dice.of('end', 'reset') };
  }

  #chunks(): Malformed {
    const body = this.#dice.of(
      'zz\r\n{}\r\n0\r\n\r\n',
      '-1\r\n',
      'ffffffffffffffffff\r\n{}',
      '5\r\n{}\r\n0\r\n\r\n',
      '2\r\n{}0\r\n\r\n',
      '2;ext="\r\n{}\r\n0\r\n\r\n',
      '2\r\n{}\r\n0\r\nTrailer: a\r\n\r\n',
      '2\n{}\n0\n\n',
      '',
      '0\r\n\r\n',
      `2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`,
    );
    const encoding = this.#dice.of(
      'chunked',
      'chunked, chunked',
      'gzip, chunked',
      'chunked\r\nContent-Length: 2',
      'identity',
      'xchunked',
    );
    const head = `POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: ${encoding}\r\n\r\n`;
    return {
      name: 'chunks that are none',
      bytes: Buffer.from(head + body),
      after: this.#dice.of('end', 'end', 'reset'),
    };
  }

  #target(): Malformed {
    const dice = this.#dice;
    const target = dice.of<() => string>(
      () => `/${'a'.repeat(dice.of(1_500, 15_000, 40_000))}`,
      () =>
        `/agents/${dice.of('%', '%zz', '%00', '%ff', '%2e%2e%2f', '..', '.', '%F0%9F%92%A9', 'a'.repeat(2_000), '*', ':name')}`,
      () => `/runs/${dice.of('', '/', '//', '%2f', '..%2f..', '%c0%ae')}`,
      () =>
        dice.word(
          '* // /? /?__proto__[a]=1 http://other.example/ping /ping#a /\u00e9 /runs?mode=stream&mode=sync',
          '/\\',
        ),
      () => `/agents?${'a=1&'.repeat(dice.of(10, 3_000))}`,
      () => dice.word('/PING /ping/ /ping// /ping;a=b /agents/echo/x /session /resources/x /.git/config'),
    )();
    return this.#answered('a target that is no path of ours', this.#get(target));
  }

  #id(): Malformed {
    const dice = this.#dice;
    const id = dice.word(
      'x 1 -1 %20 null undefined __proto__ constructor',
      noId,
      this.#known.run_id.slice(0, -1),
      `${this.#known.run_id}0`,
      this.#known.run_id.toUpperCase(),
      `${this.#known.run_id}%00`,
      "' OR 1=1 --".replaceAll(' ', '%20'),
      'f'.repeat(900),
    );
    const path = dice
      .word('/runs/ID /runs/ID/events /sessions/ID /session/ID /resources/ID /agents/ID')
      .replace('ID', id);
    if (dice.below(4) > 0) return this.#answered('an id of nothing', this.#get(path));
    return this.#answered(
      'an id of nothing',
      this.#post(`/runs/${id}${dice.of('', '/cancel')}`, JSON.stringify(this.#good())),
    );
  }

  #cursor(): Malformed {
    const dice = this.#dice;
    const value = dice.word('-1 1.5 1e3 NaN Infinity 99999999999999999999 0x1 a 1,2 \u0661 007 1%00', ' 1 ', '');
    const header = dice.of(
      '',
      `Last-Event-ID: ${value}\r\n`,
      `Last-Event-ID: ${value}\r\nLast-Event-ID: 2\r\n`,
      `Last-Event-ID: ${'9'.repeat(6_000)}\r\n`,
    );
    const query = dice.of('', `?after=${value}`, `?after=${value}&after=1`, '?after[]=1', `?after=${'9'.repeat(400)}`);
    const accept = dice.of('Accept: text/event-stream\r\n', 'Accept: */*;q=x\r\n', 'Accept: ,,,\r\n', '');
    return this.#answered(
      'a cursor that is none',
      this.#get(`/runs/${this.#known.run_id}/events${query.replaceAll(' ', '%20')}`, header + accept),
    );
  }

  #page(): Malformed {
    const value = (): string =>
      this.#dice.of('-1', '0', '1.5', 'a', '', '1e9', '9007199254740993', 'NaN', '1001', '%00', '[]', 'true');
    return this.#answered('a page that is none', this.#get(`/agents?limit=${value()}&offset=${value()}`));
  }

  #method(): Malformed {
    const method = this.#dice.word('PUT DELETE PATCH OPTIONS TRACE PROPFIND get BREW QUERY G\u00c9T POST', '');
    return this.#answered('a method that the path does not take', this.#request(method, this.#path(), ''));
  }

  #headers(): Malformed {
    const dice = this.#dice;
    const header = dice.of<() => string>(
      () => 'Content-Type: application/json\r\nContent-Type: text/plain\r\n',
      () => 'Content-Length: 2\r\nContent-Length: 3\r\n',
      () => 'Host: localhost\r\nHost: b\r\n',
      () => `X: ${'a'.repeat(dice.of(8_000, 20_000, 70_000))}\r\n`,
      () => 'X: 1\r\n'.repeat(dice.of(100, 3_000)),
      () =>
        dice.of(
          'No colon\r\n',
          ': no name\r\n',
          'A : b\r\n',
          ' folded: a\r\n',
          'A: b\rc\r\n',
          'A: \u0000\r\n',
          '__proto__: a\r\n',
        ),
      () => `Expect: ${dice.of('100-continue', '200-ok')}\r\n`,
      () => 'Upgrade: websocket\r\nConnection: Upgrade\r\n',
      () => `Accept: ${dice.of('text/event-stream;q=0', 'x/y', 'a'.repeat(4_000))}\r\n`,
    )();
    const text = JSON.stringify(this.#good());
    const bytes = dice.below(2) === 0 ? this.#get(this.#path(), header) : this.#post('/runs', text, header);
    return { name: 'headers that contradict or break', bytes, after: 'end' };
  }

  #garbage(): Malformed {
    const dice = this.#dice;
    const bytes = dice.of<() => Buffer>(
      () => dice.bytes(1 + dice.below(2_000)),
      () =>
        Buffer.from(
          dice.of(
            '\r\n\r\n',
            'GET\r\n\r\n',
            'GET / HTTP/9.9\r\n\r\n',
            'GET /ping HTTP/1.1\r\n\r\n',
            'GET /ping\r\n',
            'HELO a\r\n',
          ),
        ),
      // The beginning of TLS, and of HTTP/2.
      () => Buffer.concat([Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]), dice.bytes(200)]),
      () => Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    )();
    return { name: 'bytes that are not HTTP', bytes, after: dice.of('end', 'end', 'reset') };
  }

  #mutatedRequest(): Malformed {
    const bytes = Buffer.from(this.#post('/runs', JSON.stringify(this.#good())));
    for (let count = 1 + this.#dice.below(8); count > 0; count -= 1)
      bytes[this.#dice.below(bytes.length)] = this.#dice.below(256);
    return { name: 'a request with bytes changed', bytes, after: 'end' };
  }

  #pipeline(): Malformed {
    const dice = this.#dice;
    const stream = this.#request('GET', `/runs/${this.#known.run_id}/events`, 'Accept: text/event-stream\r\n', true);
    const parts = Array.from({ length: 2 + dice.below(20) }, () =>
      dice.of<() => Buffer>(
        () => stream,
        () => this.#request('GET', '/ping', '', true),
        () => this.#request('POST', '/runs', `Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`, true),
        () => dice.bytes(dice.below(40)),
      )(),
    );
    return {
      name: 'many requests at once, and what is none',
      bytes: Buffer.concat(parts),
      after: dice.of('end', 'reset'),
    };
  }

  #path(): string {
    return this.#dice.word(
      '/runs /runs /ping /agents /agents/echo',
      `/runs/${this.#known.run_id}`,
      `/runs/${this.#known.run_id}/cancel`,
    );
  }

  #answered(name: string, bytes: Buffer): Malformed {
    return { name, bytes, after: 'answer' };
  }

  #get(target: string, headers = ''): Buffer {
    return this.#request('GET', target, headers);
  }

  #post(path: string, body: string | Buffer, headers = '', type = 'application/json', length?: number): Buffer {
    const bytes = Buffer.from(body);
    const head = this.#request(
      'POST',
      path,
      `${headers}Content-Type: ${type}\r\nContent-Length: ${length ?? bytes.length}\r\n`,
    );
    return Buffer.concat([head, bytes]);
  }

  #request(method: string, target: string, headers: string, keep = false): Buffer {
    return Buffer.from(
      `${method} ${target} HTTP/1.1\r\nHost: localhost\r\n${keep ? '' : 'Connection: close\r\n'}${headers}\r\n`,
      'latin1',
    );
  }
}
