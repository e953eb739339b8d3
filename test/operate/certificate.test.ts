import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Failure } from '../../src/contract/failure.ts';
import { readCertificate } from '../../src/operate/certificate.ts';
import {
  EXPIRED_CERTIFICATE,
  OTHER_CERTIFICATE,
  RENEWED_KEY,
  SERVER_CERTIFICATE,
  SERVER_KEY,
} from '../fixtures/certificates.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { NOW } from '../fixtures/tokens.ts';

const folder = temporaryFolder();

function files(cert: string | undefined, key: string | undefined) {
  const paths = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  for (const [name, content] of [
    ['cert', cert],
    ['key', key],
  ] as const) {
    rmSync(paths[name], { force: true });
    if (content !== undefined) writeFileSync(paths[name], content);
  }
  return paths;
}

test('a certificate and its key are read', () => {
  const read = readCertificate(files(SERVER_CERTIFICATE, SERVER_KEY), NOW);
  expect([String(read.cert), String(read.key)]).toEqual([SERVER_CERTIFICATE, SERVER_KEY]);
});

test('a chain is read', () => {
  const chain = SERVER_CERTIFICATE + OTHER_CERTIFICATE;
  expect(String(readCertificate(files(chain, SERVER_KEY), NOW).cert)).toBe(chain);
});

const locked = createPrivateKey(SERVER_KEY)
  .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' })
  .toString();

const OTHER_KIND = generateKeyPairSync('rsa', {
  modulusLength: 2048,
})
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString();

test.each<[string, string | undefined, string | undefined, RegExp]>([
  ['no certificate', undefined, SERVER_KEY, /certificate .*cert\.pem can't be used/],
  ['no key', SERVER_CERTIFICATE, undefined, /key .*key\.pem can't be used/],
  ['an empty certificate', '', SERVER_KEY, /certificate .*cert\.pem/],
  ['an empty key', SERVER_CERTIFICATE, '', /key .*key\.pem/],
  ['a key in place of a certificate', SERVER_KEY, SERVER_KEY, /certificate .*cert\.pem/],
  ['a certificate in place of a key', SERVER_CERTIFICATE, SERVER_CERTIFICATE, /key .*key\.pem/],
  ['the key of another', SERVER_CERTIFICATE, RENEWED_KEY, /key\.pem does not belong to .*cert\.pem/],
  ['a key of another kind', SERVER_CERTIFICATE, OTHER_KIND, /key\.pem does not belong to .*cert\.pem/],
  ['the certificate of another', OTHER_CERTIFICATE, SERVER_KEY, /does not belong/],
  ['the chain the wrong way round', OTHER_CERTIFICATE + SERVER_CERTIFICATE, SERVER_KEY, /does not belong/],
  [
    'a damaged certificate',
    SERVER_CERTIFICATE.replace('MIIB', 'MIIC'),
    SERVER_KEY,
    /certificate .*cert\.pem/,
  ],
  ['a locked key', SERVER_CERTIFICATE, locked, /key .*key\.pem/],
  ['one that has expired', EXPIRED_CERTIFICATE, SERVER_KEY, /has expired/],
])('%s is file_unusable, and the message names the file', (_, cert, key, says) => {
  let failure: unknown;
  try {
    readCertificate(files(cert, key), NOW);
  } catch (error) {
    failure = error;
  }
  if (!(failure instanceof Failure)) throw new Error(`it was taken: ${failure}`);
  expect(failure).toMatchObject({ code: 'file_unusable', message: expect.stringMatching(says) });
  expect(failure.facts.why).toMatch(/\S/);
  expect(JSON.stringify(failure.facts)).not.toContain(SERVER_KEY.slice(40, 80));
});
