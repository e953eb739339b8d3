import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer as createSecureServer } from 'node:https';
import { join } from 'node:path';
import { connect as connectSecurely } from 'node:tls';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { EXPERIMENT_TOKEN_HEADER } from '../../src/contract/routes.ts';
import {
  RENEWED_CERTIFICATE,
  RENEWED_KEY,
  SERVER_CERTIFICATE,
  SERVER_KEY,
} from '../fixtures/certificates.ts';
import { listenOnLoopback } from '../fixtures/loopback.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { freePort } from '../fixtures/postgres.ts';
import { LINKS } from '../fixtures/service.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { claimsOf, IDS, keySetOf, makeKey, makeToken } from '../fixtures/tokens.ts';
import { type OverWire, sendOverWire } from '../fixtures/wire.ts';
import { newClient, pointingAt, record, serveHere, serveInProcess, serveWith } from './served.ts';

const loginKey = makeKey('ES256', { kid: 'login' }, 'login');
const folder = temporaryFolder();
const [cert, key, ca] = [join(folder, 'cert.pem'), join(folder, 'key.pem'), join(folder, 'ca.pem')];
const TLS = ['--tls-cert', cert, '--tls-key', key];

beforeEach(() => {
  writeFileSync(cert, SERVER_CERTIFICATE);
  writeFileSync(key, SERVER_KEY);
  writeFileSync(ca, SERVER_CERTIFICATE + RENEWED_CERTIFICATE);
});

/** Sends a request to a port of loopback, under any name. */
const send = (base: string, port: number, method: string, path: string, content: OverWire = {}) =>
  sendOverWire({ base, port }, method, path, {
    ...content,
    ...(base.startsWith('https:') && { ca: [SERVER_CERTIFICATE, RENEWED_CERTIFICATE] }),
  });

/** An issuer elsewhere, and tokens of it. */
async function issuerElsewhere() {
  const { url, requests } = await record(() => ({ json: keySetOf(loginKey) }));
  return { url, requests, ...tokensOf(url) };
}

function tokensOf(iss: string, aud = 'https://conn.example.org') {
  const now = Math.floor(Date.now() / 1000);
  const times = { iss, iat: now - 5, exp: now + 900 };
  const user = makeToken(loginKey, claimsOf('user', { ...times, aud, auth_time: now - 10 }));
  const experiment = makeToken(
    loginKey,
    claimsOf('experiment', { ...times, exp_exp: new Date((now + 864_000) * 1000).toISOString() }),
  );
  return {
    user,
    experiment,
    headers: { authorization: `Bearer ${user}`, [EXPERIMENT_TOKEN_HEADER]: experiment },
  };
}

describe('row 42: fit to be reached by others', () => {
  test('every address, over TLS, for users elsewhere: books, and the command line believes it', async () => {
    const issuer = await issuerElsewhere();
    const port = await freePort();
    const base = `https://localhost:${port}`;
    const { process, addresses: ready } = await serveWith(
      ...['--host', '0.0.0.0', '--port', String(port), '--base-url', base, ...TLS],
      ...['--trust', issuer.url, '--audience', 'https://conn.example.org', '--data', join(folder, 'data')],
    );
    expect(ready).toEqual({
      base_url: base,
      portal_url: issuer.url,
      auth_url: issuer.url,
      projects_api_group: 'projects',
      experiments_api_group: 'experiments',
      client_id: 'slices-conn',
      listen: `0.0.0.0:${port}`,
      pid: expect.any(Number),
    });
    const client = newClient({
      SLICES_CONN_BASE_URL: base,
      SLICES_CONN_USER_TOKEN: issuer.user,
      SLICES_CONN_EXPERIMENT_TOKEN: issuer.experiment,
    });
    const args = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];
    const booked = await client.result('reserve', ...args, '--ca-file', ca);
    expect(booked).toMatchObject({
      verified: true,
      reservation: { created_by: IDS.user },
      claims: { iss: base },
    });

    // Row 50: a token for another service is refused.
    const other = tokensOf(issuer.url, 'https://other.example.org');
    expect(await send(base, port, 'GET', LINKS, { headers: other.headers })).toMatchObject({ status: 403 });

    const elsewhere = await send(base, port, 'POST', '/auth/device/auth', { body: 'client_id=slices-conn' });
    expect(elsewhere).toMatchObject({ status: 404, text: expect.stringContaining(issuer.url) });
    expect(issuer.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /.well-known/jwks.json',
    ]);
    expect(issuer.requests[0]?.headers['authorization']).toBeUndefined();
    process.signal('SIGTERM');
    expect(await process.ended).toMatchObject({ exitCode: 0 });
    for (const secret of [issuer.user, issuer.experiment]) {
      expect(process.output.stdout + process.output.stderr).not.toContain(secret);
    }
  });

  test('an issuer whose certificate only --ca-file knows', async () => {
    const server = createSecureServer({ cert: SERVER_CERTIFICATE, key: SERVER_KEY }, (_, response) => {
      response.end(JSON.stringify(keySetOf(loginKey)));
    });
    const issuer = `https://127.0.0.1:${await listenOnLoopback(server)}`;
    try {
      const statuses: number[] = [];
      for (const more of [[], ['--ca-file', ca]]) {
        const { base, port } = await serveHere('--trust', issuer, ...more);
        const { status } = await send(base, port, 'GET', LINKS, { headers: tokensOf(issuer).headers });
        statuses.push(status);
      }
      expect(statuses).toEqual([503, 200]);
    } finally {
      server.close().closeAllConnections();
    }
  });
});

describe('serve over TLS', () => {
  /** The name in the certificate that a new connection sees. */
  async function nameAt(port: number): Promise<unknown> {
    const socket = connectSecurely({
      port,
      host: '127.0.0.1',
      ca: [SERVER_CERTIFICATE, RENEWED_CERTIFICATE],
    });
    await once(socket, 'secureConnect');
    const { CN } = socket.getPeerCertificate().subject;
    socket.destroy();
    return CN;
  }

  test('SIGHUP takes a renewed certificate, and keeps the old one where the new is unfit', async () => {
    const { process, addresses: ready } = await serveInProcess(...TLS);
    const base: string = ready.base_url;
    expect(base).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    const port = Number(new URL(base).port);
    expect(await nameAt(port)).toBe('slices-conn test one');
    writeFileSync(cert, RENEWED_CERTIFICATE);
    process.signal('SIGHUP');
    await process.saw(/"certificate_kept"[^\n]*does not belong/);
    expect(await nameAt(port)).toBe('slices-conn test one');
    writeFileSync(key, RENEWED_KEY);
    process.signal('SIGHUP');
    await process.saw(/"certificate_renewed"/);
    expect(await nameAt(port)).toBe('slices-conn test renewed');
    expect(await send(base, port, 'GET', '/.well-known/jwks.json')).toMatchObject({ status: 200 });
    process.signal('SIGTERM');
    expect(await process.ended).toMatchObject({ exitCode: 0 });
  });

  test('a device login, and row 41: SIGTERM in mid-request finishes it', async () => {
    const { process, addresses: ready } = await serveInProcess('--auto-approve', 'lead', ...TLS);
    const client = newClient(pointingAt(ready));
    const login = await client.command('login', '--ca-file', ca);
    expect(login).toMatchObject({ exitCode: 0 });
    const port = Number(new URL(ready.base_url).port);
    const socket = connectSecurely({ port, host: '127.0.0.1', ca: SERVER_CERTIFICATE });
    await once(socket, 'secureConnect');
    let received = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      received += text;
    });
    const form = 'client_id=slices-conn&scope=openid';
    const type = 'Content-Type: application/x-www-form-urlencoded';
    const lines = ['POST /auth/device/auth HTTP/1.1', `Host: 127.0.0.1:${port}`, type];
    socket.write(`${lines.join('\r\n')}\r\nContent-Length: ${form.length}\r\n\r\n${form.slice(0, 5)}`);
    // A request after it shows that what was sent before has arrived.
    expect(await send(ready.base_url, port, 'GET', '/.well-known/jwks.json')).toMatchObject({ status: 200 });
    process.signal('SIGTERM');
    await vi.waitFor(() => expect(send(ready.base_url, port, 'GET', '/')).rejects.toThrow(), {
      timeout: PATIENCE,
    });
    const closed = once(socket, 'close');
    socket.write(form.slice(5));
    await closed;
    expect(received).toMatch(/^HTTP\/1\.1 200 [\s\S]*"device_code"/);
    expect(await process.ended).toMatchObject({ exitCode: 0 });
  });
});

test('row 29: who guesses codes behind a proxy is the last hop of X-Forwarded-For', async () => {
  const port = await freePort();
  await serveHere(
    ...['--port', String(port), '--behind-proxy', '--base-url', 'https://slices.example.org'],
    ...['--insecure-built-in-users', '--data', temporaryFolder()],
  );
  /** How often a wrong code may be entered, of 30 times, before it is 429. */
  const guesses = async (forwarded: (turn: number) => string) => {
    for (let turn = 0; turn < 30; turn += 1) {
      const headers = { 'x-forwarded-for': forwarded(turn) };
      const address = '/auth/device?user_code=BCDF-GHJK';
      const { status } = await send('http://slices.example.org', port, 'GET', address, { headers });
      if (status === 429) return turn;
      expect(status).toBe(400);
    }
    return 'as often as one likes';
  };
  expect(await guesses((turn) => `192.0.2.${turn}, 198.51.100.1`)).toBe(20);
  expect(await guesses((turn) => `203.0.113.${turn}`)).toBe('as often as one likes');
});
