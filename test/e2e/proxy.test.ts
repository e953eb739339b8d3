import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DISTANT_CERTIFICATE, DISTANT_KEY } from '../fixtures/certificates.ts';
import { atEndOfFile } from '../fixtures/end-of-file.ts';
import { listenOnLoopback } from '../fixtures/loopback.ts';
import { claimsOf, keySetOf, makeKey, makeToken } from '../fixtures/tokens.ts';
import { newMachine } from './command.ts';

/** Whose name {@link DISTANT_CERTIFICATE} has; no other machine has it. */
const HOST = 'service.example.invalid';

test('https goes through a proxy, in the program as it is built', async () => {
  const key = makeKey('ES256');
  const keys = createSecureServer({ cert: DISTANT_CERTIFICATE, key: DISTANT_KEY }, (_, reply) => {
    reply.setHeader('content-type', 'application/json');
    reply.end(JSON.stringify(keySetOf(key)));
  });
  const port = await listenOnLoopback(keys);
  const asked: (string | undefined)[] = [];
  const proxy = createServer().on('connect', ({ url }, client) => {
    asked.push(url);
    const service = connect(port, '127.0.0.1', () => client.write('HTTP/1.1 200 Connected\r\n\r\n'));
    service.pipe(client).pipe(service);
  });
  const address = `http://127.0.0.1:${await listenOnLoopback(proxy)}`;
  atEndOfFile(() => [keys, proxy].forEach((server) => void server.close()));
  const machine = newMachine();
  const certificate = join(machine.home, 'ca.pem');
  writeFileSync(certificate, DISTANT_CERTIFICATE);
  const issuer = `https://${HOST}`;
  const iat = Math.floor(Date.now() / 1000) - 5;
  const token = makeToken(key, claimsOf('connectivity', { iss: issuer, iat, exp: iat + 900 }));
  const verify = ['verify', '--json', '--issuer', issuer, '--jwks', `${issuer}/.well-known/jwks.json`];
  const ended = await machine.run([...verify, '--ca-file', certificate], {
    ...{ stdin: token, ownProcess: true },
    env: { HTTPS_PROXY: address },
  });
  expect(ended).toMatchObject({ exitCode: 0, stderr: '' });
  expect(asked).toEqual([`${HOST}:443`]);
});
