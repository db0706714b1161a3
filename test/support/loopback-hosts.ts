/** Hosts of URLs that lead to a server at 127.0.0.1, in the forms by which a filter of texts is passed. */
export const loopbackHosts = [
  '127.0.0.1',
  '2130706433',
  '0x7f000001',
  '0177.0.0.1',
  '127.1',
  '0',
  '①②⑦.⓪.⓪.①',
  '127.0.0.1.',
  'localhost',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
];
