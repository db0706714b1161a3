import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { addressRule, guardedLookup, type Lookup } from '../../src/http/outbound/address-guard.ts';
import { guardedRequest } from '../../src/http/outbound/guarded-request.ts';
import { createFetch, type ForeignOptions } from '../../src/http/outbound/remote-fetch.ts';
import { createServer } from '../../src/index.ts';
import { echo } from '../support/agents.ts';
import { answering } from '../support/answering.ts';
import { endless, trickle } from '../support/hostile-servers.ts';
import { loopbackHosts } from '../support/loopback-hosts.ts';
import { turns } from '../support/turn.ts';

const never = new AbortController().signal;

/** The reason why a URL is not read. */
async function refusal(url: string, options: ForeignOptions = {}): Promise<string> {
  const read = createFetch(options)(url, never);
  const error: unknown = await read.then(
    () => undefined,
    (thrown) => thrown,
  );
  return error instanceof Error ? error.message : 'it was read';
}

describe('an address', () => {
  const refused = [
    '127.0.0.1 0.0.0.0 10.1.2.3 172.16.0.1 192.168.0.1 169.254.169.254 168.63.129.16 100.64.0.1 198.18.0.1',
    '224.0.0.1 240.0.0.1 255.255.255.255 name.example',
    ':: ::1 ::7f00:1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:a00:1 64:ff9b::7f00:1 64:ff9b:1::1 2002:7f00:1::',
    '2001::1 2001:db8::1 fc00::1 fe80::1 fec0::1 ff02::1 5f00::1',
  ].flatMap((line) => line.split(' '));
  it.each(refused)('that is not public is refused: %s', (address) => {
    expect(addressRule([])(address)).toBe(false);
  });

  it.each(['1.1.1.1', '93.184.216.34', '168.63.129.17', '2606:4700:4700::1111', '::ffff:1.1.1.1'])(
    'that is public is allowed: %s',
    (address) => {
      expect(addressRule([])(address)).toBe(true);
    },
  );

  it('is allowed by networks of its own family, and unaffected by those of the other', () => {
    const warn = vi.spyOn(console, 'warn');
    onTestFinished(() => warn.mockRestore());
    const isAllowed = addressRule(['10.0.0.0/8', 'fd00::/8', '192.168.1.7', '::1']);
    for (const one of ['10.9.8.7', '::ffff:10.9.8.7', 'fd12::1', '192.168.1.7', '::1', '0:0:0:0:0:0:0:1']) {
      expect([one, isAllowed(one)]).toEqual([one, true]);
    }
    for (const one of ['11.0.0.1'.replace('11', '127'), '192.168.1.8', 'fc00::1', '::2']) {
      expect([one, isAllowed(one)]).toEqual([one, false]);
    }
    expect(warn).not.toHaveBeenCalled();
  });

  it.each(['10.0.0.0/33', '10.0.0/8', 'localhost', '10.0.0.1-10.0.0.9', '10.0.0.0/', 'fd00::/129', '', '0x7f000001'])(
    'or network that is invalid prevents the start: "%s"',
    async (network) => {
      const starting = createServer({ agents: [echo], docs: false, foreign: { allowNetworks: [network] } });
      await expect(starting).rejects.toThrow(/^expected an address or a range .* \(--allow-network\); got/);
    },
  );
});

describe('a server at this computer', () => {
  /** A port, and the number of connections to it. */
  async function counted(): Promise<{ readonly port: string; connections: number }> {
    const found = { port: '', connections: 0 };
    const base = await answering((_, response) => {
      found.connections += 1;
      response.end('read');
    });
    found.port = new URL(base).port;
    return found;
  }

  it.each(loopbackHosts)('gets no request by the host %s', async (host) => {
    const server = await counted();
    expect(await refusal(`http://${host}:${server.port}/`)).toContain('its address is private');
    expect(server.connections).toBe(0);
  });

  it('gets no request by a name that resolves to it after the check', async () => {
    const server = await counted();
    const url = new URL(`http://rebinds.example:${server.port}/`);
    const addresses: string[] = [];
    const resolve: Lookup = (_name, _options, answer) =>
      answer(null, [{ address: addresses.shift() ?? '', family: 4 }]);
    const request = (allowed: string) =>
      guardedRequest(url, addressRule([allowed]), { method: 'GET', headers: {}, signal: never, resolve });
    addresses.push('127.0.0.1');
    await expect(request('127.0.0.2')).rejects.toThrow('an address of this name is not allowed');
    // Nothing listens at the address that is allowed.
    addresses.push('127.0.0.2', '127.0.0.1');
    await expect(request('127.0.0.2')).rejects.toThrow('ECONNREFUSED 127.0.0.2');
    expect([addresses, server.connections]).toEqual([['127.0.0.1'], 0]);
    (await request('127.0.0.1')).destroy();
    expect(server.connections).toBe(1);
  });
});

describe('a name', () => {
  const found = (...addresses: string[]) =>
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));

  it('is refused where one of its addresses is not allowed', async () => {
    const lookedUp = (addresses: ReturnType<typeof found>): Promise<unknown> =>
      new Promise((resolve) => {
        const answered: Lookup = (_name, _options, answer) => answer(null, addresses);
        const ask = guardedLookup(addressRule([]), never, { resolve: answered });
        ask('name.example', { all: true }, (error, result) => resolve(error ?? result));
      });
    expect(await lookedUp(found('1.1.1.1', '2606:4700::1'))).toEqual(found('1.1.1.1', '2606:4700::1'));
    expect(await lookedUp(found('1.1.1.1', '127.0.0.1'))).toBeInstanceOf(Error);
    expect(await lookedUp([])).toBeInstanceOf(Error);
  });

  it('waits while two others are looked up, so that other threads stay free', async () => {
    const asked: (() => void)[] = [];
    let asking = 0;
    let most = 0;
    const leaving = new AbortController();
    const one = (name: string, signal = never): Promise<string> =>
      new Promise((resolve) => {
        const answered: Lookup = (_name, _options, answer) => {
          asking += 1;
          most = Math.max(most, asking);
          asked.push(() => {
            asking -= 1;
            answer(null, found('1.1.1.1'));
          });
        };
        guardedLookup(addressRule([]), signal, { resolve: answered })(name, { all: true }, () => resolve(name));
      });
    const names = ['a', 'b', 'c', 'd', 'e'].map((name) => one(name));
    void one('left', leaving.signal);
    names.push(one('f'));
    leaving.abort();
    await turns(1);
    expect(asked).toHaveLength(2);
    for (let next = asked.shift(); next !== undefined; next = asked.shift()) {
      next();
      await turns(1);
    }
    expect(await Promise.all(names)).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    expect(most).toBe(2);
  });
});

describe('the error for a resource that cannot be read', () => {
  const loopback = { allowNetworks: ['127.0.0.1'] };

  it('is the same for a name that does not exist, a private address, and a closed port', async () => {
    const why = async (url: string, options?: ForeignOptions): Promise<string> =>
      (await refusal(url, options)).replace(url, 'URL');
    const all = await Promise.all([
      why('http://nothing.invalid/x'),
      why('http://127.0.0.1:1/x'),
      why('http://localhost:1/x'),
      why('http://[::7f00:1]:1/x'),
      why('https://10.0.0.1/x'),
      why('http://127.0.0.1:1/x', loopback),
    ]);
    expect(new Set(all).size).toBe(1);
    expect(all[0]).toContain('it cannot be reached, or its address is private and not one of --allow-network');
  });

  it('has neither the password nor the query of its URL', async () => {
    const base = await answering((_, response) => response.writeHead(404).end());
    const url = `${base.replace('://', '://alice:hunter2@')}/m/1?token=secret#part`;
    expect(await refusal(url, loopback)).toBe(`The session’s resource ${base}/m/1 could not be read: it answered 404.`);
  });

  it('comes at once where the server switches protocols', async () => {
    const base = await answering(() => {});
    const switching = await answering((request) => {
      request.socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    });
    expect(await refusal(switching, loopback)).toContain('it answered 101');
    expect(await refusal(base, { ...loopback, timeout: 20 })).toContain('it took longer than 20 ms');
  });

  it('comes at once where the server sends interim answers without end', async () => {
    const endless = await answering(({ socket }) => {
      const interim = (): void => {
        socket.write('HTTP/1.1 103 Interim\r\nLink: </a>\r\n\r\n', (error) => error ?? setImmediate(interim));
      };
      interim();
    });
    expect(await refusal(endless, loopback)).toContain('it cannot be reached');
  });

  it.each([
    ['without an end', endless, 'it is larger than 100000 characters'],
    ['byte by byte', trickle, 'it took longer than 200 ms'],
  ])('comes in time for an answer %s, which is left', async (_, answer, why) => {
    let left: Promise<unknown> | undefined;
    const base = await answering((_request, response) => {
      left = answer(response, 'application/json', ' ');
    });
    expect(await refusal(base, { ...loopback, maxSize: 100_000, timeout: 200 })).toContain(why);
    await left;
  });

  it('is the same for other protocols', async () => {
    for (const url of ['file:///etc/passwd', 'ftp://a.example/', 'nonsense']) {
      expect(await refusal(url)).toContain('only http and https URLs are read');
    }
  });
});
