import { X509Certificate } from 'node:crypto';
import { Failure } from '../contract/failure.ts';
import type { Files } from './context.ts';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/**
 * Reads the certificates of a file in PEM. Node.js accepts a file without certificates and says nothing, so
 * they are checked here.
 *
 * @throws Failure `file_unusable` for a file that can't be read, that contains no certificate, or a damaged
 *   one
 */
export async function readCertificates(files: Files, path: string): Promise<string> {
  const found = new TextDecoder().decode(await files.read(path)).match(CERTIFICATE);
  if (!found) throw unusable(path, 'It does not contain a certificate in PEM (BEGIN CERTIFICATE).');
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
