import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * What counts as one client: an IPv4 address, or the first 64 bits of an IPv6 address, because its user can choose among
 * the 2^64 others.
 */
export function networkOf(text: string): string {
  if (isIP(text) === 0) return text;
  const address = ipaddr.process(text);
  if (!(address instanceof ipaddr.IPv6)) return address.toString();
  return address.parts.slice(0, 4).join(':');
}
