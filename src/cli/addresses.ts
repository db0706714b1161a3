/** Where a server listens by default, as the commands that call it name it. */
export const defaultUrl = 'http://127.0.0.1:8000';

/** Whether only this computer reaches the address. */
export const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || /^127\./.test(host);
