import { X509Certificate } from 'node:crypto';
import { Failure } from '../contract/failure.ts';
import type { UserFiles } from './world.ts';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/**
 * The certificates of a file in PEM. Node takes a file without any, and trusts nobody for it, without a word: so they
 * are looked at here.
 *
 * @throws Failure `file_unusable` for a file that can't be read, that holds none, or one that is broken
 */
export async function readCertificates(files: UserFiles, path: string): Promise<string> {
  const found = new TextDecoder().decode(await files.read(path)).match(CERTIFICATE);
  if (!found) throw unusable(path, 'It holds no certificate in PEM (BEGIN CERTIFICATE).');
  for (const [index, certificate] of found.entries()) {
    try {
      new X509Certificate(certificate);
    } catch (cause) {
      throw unusable(path, `Its certificate number ${index + 1} is damaged.`, cause);
    }
  }
  return found.join('\n');
}

function unusable(path: string, why: string, cause?: unknown): Failure {
  return new Failure('file_unusable', `The file ${path} can't be used.`, { why, cause });
}
