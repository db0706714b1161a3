/**
 * What every connection has, unless the URL says otherwise. Transactions see what others have committed meanwhile,
 * whatever the server's default is: the stricter levels end a tenth of the commits of several nodes with an error.
 */
export function connection(address: string) {
  const url = new URL(address);
  // The URL's own flags would replace ours.
  const flags = url.searchParams.get('options') ?? '';
  url.searchParams.delete('options');
  return {
    connectionString: url.href,
    options: `${flags} -c default_transaction_isolation=read\\ committed`.trim(),
    application_name: 'rivulet',
    keepAlive: true,
  };
}
