import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { Failure, shellWord } from '../contract/failure.ts';
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
export type Certificate = Record<keyof CertificateFiles, Buffer>;

/**
 * Reads a certificate and its key.
 *
 * @param now milliseconds since the Unix epoch
 * @throws Failure `file_unusable` for a file that can't be read, a key of another certificate, or a certificate that has expired
 */
export function readCertificate(files: CertificateFiles, now: number): Certificate {
  const cert = readNamedFile('certificate', files.cert);
  const key = readNamedFile('key', files.key);
  const own = usable('certificate', files.cert, () => {
    createSecureContext({ cert });
    return new X509Certificate(cert);
  });
  const privateKey = usable('key', files.key, () => createPrivateKey(key));
  // OpenSSL keeps a key of another kind beside the certificate, and then has none for it.
  if (!own.checkPrivateKey(privateKey)) {
    const message = `The key ${files.key} does not belong to the certificate ${files.cert}.`;
    throw new Failure('file_unusable', message, {
      why: `The certificate is for another key, of the kind ${own.publicKey.asymmetricKeyType}.`,
      fix: `openssl x509 -noout -subject -dates -in ${shellWord(files.cert)}`,
    });
  }
  const expiry = own.validToDate;
  if (expiry.getTime() > now) return { cert, key };
  throw new Failure('file_unusable', `The certificate ${files.cert} has expired.`, {
    why: `It was valid until ${formatInstant(expiry.getTime())}; clients reject it.`,
  });
}

function usable<Read>(what: string, path: string, read: () => Read): Read {
  try {
    return read();
  } catch (cause) {
    throw fileFailure(what, path, cause);
  }
}
