import { Failure } from '../contract/failure.ts';
import type { UserFiles } from './invocation.ts';

/**
 * A token from a file, or from standard input for `-`. The file may end in one line end, LF or
 * CRLF, and holds nothing else.
 *
 * @throws Failure `unverified` for an empty file or bytes that are no text: what was given is no token
 */
export async function readTokenFile(files: UserFiles, path: string): Promise<string> {
  const bytes = await files.read(path);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Failure('unverified', 'This is not a token.', { why: 'It is not text.' });
  }
  const token = text.replace(/\r?\n$/, '');
  if (token === '') throw new Failure('unverified', 'There is no token.', { why: 'The input is empty.' });
  return token;
}
