import { type LookupAddress, type LookupAllOptions, lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { FairQueue } from '../../core/fair-queue.ts';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = [Address, number];

/** Tells whether an address may be connected to. */
export type AddressRule = (address: string) => boolean;

/** A public address that must not be reached: a cloud's control server, which trusts every program that connects. */
const denied = [ipaddr.parseCIDR('168.63.129.16/32')];
/** All IPv6 addresses that are routed on the Internet. Others may stand for an IPv4 address. */
const global6 = ipaddr.parseCIDR('2000::/3');

/**
 * Allows the addresses of the given networks of a setting, and no others.
 * @throws Error that names a text which is neither an address nor a range
 */
export function networkRule(networks: readonly string[], setting: string): AddressRule {
  const allowed = networks.map((text) => networkOf(text, setting));
  return (text) => {
    if (isIP(text) === 0) return false;
    // An IPv4 address that is written as an IPv6 address counts as IPv4.
    const address = ipaddr.process(text);
    return allowed.some((range) => isIn(address, range));
  };
}

/**
 * Allows public addresses, and those of the given networks of a setting.
 * @throws Error that names a text which is neither an address nor a range
 */
export function addressRule(networks: readonly string[], setting = 'allowNetworks (--allow-network)'): AddressRule {
  const isListed = networkRule(networks, setting);
  return (text) => {
    if (isIP(text) === 0) return false;
    if (isListed(text)) return true;
    const address = ipaddr.process(text);
    if (address.range() !== 'unicast' || denied.some((range) => isIn(address, range))) return false;
    return address.kind() === 'ipv4' || isIn(address, global6);
  };
}

const isIn = (address: Address, range: Range): boolean => address.kind() === range[0].kind() && address.match(range);

function networkOf(text: string, setting: string): Range {
  if (isIP(text) !== 0) {
    const address = ipaddr.process(text);
    return [address, address.kind() === 'ipv4' ? 32 : 128];
  }
  const [address = '', bits = ''] = text.split('/');
  if (isIP(address) !== 0 && /^\d+$/.test(bits) && ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  throw new Error(`expected an address or a range such as 10.0.0.0/8 in ${setting}; got "${text}"`);
}

export type Lookup = (
  name: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export interface LookupOptions {
  /** Those whose look-ups wait for each other, such as an owner. */
  readonly share?: string;
  /** For tests. */
  readonly resolve?: Lookup;
}

/**
 * Each look-up blocks one of libuv's four threads until its name server answers, and files need one. Name servers that do
 * not answer must not hold up the look-ups of others.
 */
const queue = new FairQueue({ atOnce: 3, perShare: 2 });

/**
 * Looks names up as `net.connect` does, and refuses a name if the rule does not allow one of its addresses. The
 * connection uses the addresses that were checked, so a second look-up cannot return others. The look-up of an aborted
 * request is skipped.
 */
export const guardedLookup =
  (isAllowed: AddressRule, signal: AbortSignal, { resolve = lookup, share = '' }: LookupOptions = {}): LookupFunction =>
  (hostname, options, callback) => {
    const look = (): Promise<void> =>
      new Promise((done) => {
        if (signal.aborted) return done();
        resolve(hostname, { ...options, all: true }, (error, addresses) => {
          done();
          if (error !== null) return callback(error, '');
          const [first] = addresses;
          if (first === undefined || !addresses.every(({ address }) => isAllowed(address))) {
            return callback(new Error('an address of this name is not allowed'), '');
          }
          if (options.all === true) callback(null, addresses);
          else callback(null, first.address, first.family);
        });
      });
    void queue.run(share, look);
  };
