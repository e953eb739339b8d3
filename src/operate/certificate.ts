import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { Failure, shellWord } from '../contract/failure.ts';
import { systemReason } from '../contract/foreign-errors.ts';
import { formatInstant } from '../contract/instants.ts';
import { fileFailure, readNamedFile } from './files.ts';

/** Where a certificate and its key are, in PEM. */
export interface CertificateFiles {
  /** The server's own certificate first, then the intermediate ones. */
  cert: string;
  /** Its private key, without a password. */
  key: string;
}

/** A server's certificate and its key, in PEM. */
export interface Certificate {
  cert: Buffer;
  key: Buffer;
}

/**
 * Reads a certificate and its key.
 *
 * @param now milliseconds since the Unix epoch
 * @throws Failure `file_unusable` for a file that can't be read, a key of another certificate, or a certificate that has expired
 */
export function readCertificate(files: CertificateFiles, now: number): Certificate {
  const cert = readNamedFile('certificate', files.cert);
  const key = readNamedFile('key', files.key);
  let own: X509Certificate;
  try {
    own = new X509Certificate(cert);
    createSecureContext({ cert });
  } catch (cause) {
    throw fileFailure('certificate', files.cert, cause);
  }
  try {
    createSecureContext({ key });
  } catch (cause) {
    throw fileFailure('key', files.key, cause);
  }
  try {
    createSecureContext({ cert, key });
    // OpenSSL keeps a key of another kind beside the certificate, and then has none for it.
    const { asymmetricKeyType: kind } = own.publicKey;
    if (!own.checkPrivateKey(createPrivateKey(key)))
      throw new Error(`The certificate is for a key of the kind ${kind}.`);
  } catch (cause) {
    throw new Failure(
      'file_unusable',
      `The key ${files.key} does not belong to the certificate ${files.cert}.`,
      {
        why: systemReason(cause),
        fix: `openssl x509 -noout -subject -dates -in ${shellWord(files.cert)}`,
        cause,
      },
    );
  }
  const expiry = own.validToDate;
  if (expiry.getTime() > now) return { cert, key };
  throw new Failure('file_unusable', `The certificate ${files.cert} has expired.`, {
    why: `It was valid until ${formatInstant(expiry.getTime())}; clients reject it.`,
  });
}
