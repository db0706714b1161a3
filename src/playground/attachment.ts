import type { MessagePart } from '../client/client.ts';

/** A file as a part: its bytes in base64, under its name and type. */
export function readFile(file: File): Promise<MessagePart> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error);
    reader.onload = () =>
      resolve({
        name: file.name,
        content_type: file.type || 'application/octet-stream',
        content_encoding: 'base64',
        // A data URL: what comes after the comma is the base64.
        content: String(reader.result).split(',', 2)[1] ?? '',
      });
    reader.readAsDataURL(file);
  });
}
