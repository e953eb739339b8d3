import { chmodSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { Client } from 'pg';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { readConnection } from '../../src/store/postgres/connection.ts';
import { PostgresDatabase } from '../../src/store/postgres/database.ts';
import { OTHER_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY } from '../fixtures/certificates.ts';
import { atEndOfFile } from '../fixtures/end-of-file.ts';
import { failureOf } from '../fixtures/failures.ts';
import { listenOnLoopback } from '../fixtures/loopback.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const folder = temporaryFolder();
const inFolder = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const ca = inFolder('ca.pem', SERVER_CERTIFICATE);
const otherCa = inFolder('other.pem', OTHER_CERTIFICATE);

/** How a server is spoken to, in a word. */
function spoken(address: string, env: Record<string, string> = {}): string {
  const { ssl } = readConnection(address, env).config;
  if (ssl === false) return 'plain';
  if (ssl.rejectUnauthorized !== true) return 'anyone';
  return ssl.checkServerIdentity ? 'signed' : 'verified';
}

describe('row 52: TLS with a verified certificate', () => {
  test.each<[address: string, env: Record<string, string>, how: string]>([
    ['postgres://me@db.example.org/x', {}, 'verified'],
    ['postgres://me@192.0.2.7/x', {}, 'verified'],
    ['postgres://me@0.0.0.0/x', {}, 'verified'],
    ['postgres://me@[2001:db8::1]/x', {}, 'verified'],
    ['postgres://me@localhost.example.org/x', {}, 'verified'],
    ['postgres://me@db.localhost/x', {}, 'verified'],
    ['postgres:///x?host=db.example.org', {}, 'verified'],
    ['postgres://me@127.0.0.1/x?host=db.example.org', {}, 'verified'],
    ['postgres:///x', { PGHOST: 'db.example.org' }, 'verified'],
    ['postgres://localhost/x', {}, 'plain'],
    ['postgres://127.0.0.1:5433/x', { PGHOST: 'db.example.org' }, 'plain'],
    ['postgres://[::1]/x', {}, 'plain'],
    ['postgres:///x', {}, 'plain'],
    ['postgres:///x?host=/run/postgresql', {}, 'plain'],
    ['postgres://%2Frun%2Fpostgresql/x', {}, 'plain'],
    ['postgres:///x', { PGHOST: '/run/postgresql' }, 'plain'],
    ['postgres://db.example.org/x?sslmode=disable', {}, 'plain'],
    ['postgres://db.example.org/x', { PGSSLMODE: 'disable' }, 'plain'],
    ['postgres://db.example.org/x?sslmode=verify-full', { PGSSLMODE: 'disable' }, 'verified'],
    ['postgres://db.example.org/x?sslmode=no-verify', {}, 'anyone'],
    ['postgres://db.example.org/x?sslmode=require', {}, 'verified'],
    ['postgres://db.example.org/x?sslmode=prefer', {}, 'verified'],
    ['postgres://db.example.org/x', { PGSSLMODE: 'allow' }, 'verified'],
    ['postgres://db.example.org/x?ssl=0', {}, 'verified'],
    ['postgres://localhost/x?sslmode=prefer', {}, 'plain'],
    ['postgres://localhost/x?sslmode=require', {}, 'verified'],
    [`postgres://db.example.org/x?sslmode=verify-ca&sslrootcert=${ca}`, {}, 'signed'],
    [`postgres://db.example.org/x?sslrootcert=${ca}`, {}, 'verified'],
  ])('%s with %j: %s', (address, env, how) => {
    expect(spoken(address, env)).toBe(how);
    expect(Object.keys(readConnection(address, env).config).filter((key) => /^ssl./.test(key))).toEqual([]);
  });

  test('of whom sslrootcert or PGSSLROOTCERT names, else of whom Node trusts', () => {
    const trusted = (address: string, env = {}): unknown => {
      const { ssl } = readConnection(address, env).config;
      return ssl !== false && ssl.ca;
    };
    const address = 'postgres://db.example.org/x';
    expect(trusted(address)).toBeUndefined();
    expect(trusted(address, { PGSSLROOTCERT: 'system' })).toBeUndefined();
    expect(trusted(address, { PGSSLROOTCERT: ca })).toBe(SERVER_CERTIFICATE);
    expect(trusted(`${address}?sslrootcert=${otherCa}`, { PGSSLROOTCERT: ca })).toBe(OTHER_CERTIFICATE);
  });

  test.each([
    ['an unknown word', 'postgres://h/x?sslmode=off', 'usage'],
    ['any name of a public authority', 'postgres://h/x?sslmode=verify-ca', 'usage'],
    [
      'certificates that are not there',
      `postgres://h/x?sslrootcert=${join('/', 'nowhere', 'ca.pem')}`,
      'file_unusable',
    ],
  ])('%s is refused', async (_, address, code) => {
    expect(await failureOf(() => readConnection(address, {}))).toMatchObject({ code });
  });
});

describe('row 52: over a line', () => {
  const postgres = usePostgres();
  let database: string;
  beforeAll(async () => {
    database = await postgres.database();
  });

  /** A server before the database, which offers TLS with {@link SERVER_CERTIFICATE} or says that it has none. */
  async function before(offersTls: boolean): Promise<{ url: URL; heard: () => string }> {
    const target = new URL(database);
    let heard = '';
    const sockets = new Set<Socket>();
    const server = createServer((near) => {
      sockets.add(near.on('error', () => near.destroy()));
      near.once('data', (request: Buffer) => {
        const asked = request.length === 8 && request.readInt32BE(4) === 80_877_103;
        if (!asked) heard += request.toString('latin1');
        near.write(asked && offersTls ? 'S' : 'N');
        if (!asked || !offersTls) {
          near.on('data', (more) => {
            heard += more.toString('latin1');
          });
          return;
        }
        const far = connect(Number(target.port), target.hostname);
        sockets.add(far.on('error', () => near.destroy()));
        const secure = new TLSSocket(near, { isServer: true, cert: SERVER_CERTIFICATE, key: SERVER_KEY });
        secure.on('error', () => far.destroy());
        secure.pipe(far).pipe(secure);
      });
    });
    const url = new URL(database);
    url.port = String(await listenOnLoopback(server));
    atEndOfFile(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    return { url, heard: () => heard };
  }

  const withParameters = (url: URL, parameters: Record<string, string>): string => {
    const address = new URL(url);
    for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value);
    return address.href;
  };

  test('a server is used whose certificate verifies', async () => {
    const { url } = await before(true);
    const opened = await PostgresDatabase.open(
      withParameters(url, { sslmode: 'verify-full', sslrootcert: ca }),
    );
    expect(await opened.first('SELECT 1 AS n')).toEqual({ n: 1 });
    await opened.close();
  });

  test.each([
    ['who is signed by nobody that is trusted', { sslmode: 'verify-full' }, /self.signed/],
    ['who is signed by somebody else', { sslmode: 'require', sslrootcert: otherCa }, /self.signed/],
    ['who has another name', { sslrootcert: ca, host: '0.0.0.0' }, /0\.0\.0\.0/],
  ])('a server is not used %s', async (_, parameters, why) => {
    const { url } = await before(true);
    const opening = PostgresDatabase.open(withParameters(url, parameters));
    await expect(opening).rejects.toMatchObject({
      name: 'StoreUnavailableError',
      cause: { message: expect.stringMatching(why) },
    });
  });

  test('a server without TLS is told nothing, and what to do is said', async () => {
    const { url, heard } = await before(false);
    const opening = PostgresDatabase.open(withParameters(url, { host: '0.0.0.0' }));
    await expect(opening).rejects.toThrow(/does not offer TLS.*sslmode=disable/);
    expect(heard()).toBe('');
  });
});

describe('a password file', () => {
  const lines = [
    '# a comment',
    'db.example.org:5432:x:other:not-this',
    'db.example.org:5433:x:me:by-port',
    'db.example.org:*:x:me:a\\:b\\\\c',
    'localhost:5432:*:me:here',
    '*:*:*:*:any',
  ];
  const file = (name: string, mode: number): string => {
    const path = inFolder(name, lines.join('\n'));
    chmodSync(path, mode);
    return path;
  };
  const passwordOf = async (address: string, env: Record<string, string>): Promise<unknown> => {
    for (const name of ['PGUSER', 'PGPASSWORD', 'PGDATABASE', 'PGPORT', 'PGPASSFILE', 'HOME']) {
      vi.stubEnv(name, env[name]);
    }
    const { host = '', port, database, user, password } = new Client(readConnection(address).config);
    if (typeof password !== 'function') return password;
    // As the driver calls it.
    return Reflect.apply(password, undefined, [{ host, port, database, user }]);
  };
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test.each<[address: string, env: Record<string, string>, password: string | undefined]>([
    ['postgres://me@db.example.org/x', {}, 'a:b\\c'],
    ['postgres://me@db.example.org:5433/x', {}, 'by-port'],
    ['postgres://me@db.example.org', { PGDATABASE: 'x', PGPORT: '5433' }, 'by-port'],
    ['postgres:///x?host=/run/postgresql', { PGUSER: 'me' }, 'here'],
    ['postgres://you@db.example.org/x', {}, 'any'],
    ['postgres://me@db.example.org/x', { PGPASSWORD: 'p' }, 'p'],
    ['postgres://me:q@db.example.org/x', {}, 'q'],
  ])('%s, %o', async (address, env, password) => {
    expect(await passwordOf(address, { ...env, PGPASSFILE: file('pgpass', 0o600) })).toBe(password);
  });

  test('is in the home folder by default, and may be missing', async () => {
    file('.pgpass', 0o600);
    expect(await passwordOf('postgres://me@db.example.org/x', { HOME: folder })).toBe('a:b\\c');
    expect(await passwordOf('postgres://me@db.example.org/x', { HOME: '/nowhere' })).toBe(undefined);
  });

  test.skipIf(process.platform === 'win32')(
    'that others can read is refused, with what to type',
    async () => {
      const PGPASSFILE = file('open', 0o640);
      expect(
        await failureOf(() => passwordOf('postgres://me@db.example.org/x', { PGPASSFILE })),
      ).toMatchObject({ code: 'file_unusable', facts: { fix: `chmod 600 ${PGPASSFILE}` } });
    },
  );
});

test('an address with a service is refused', async () => {
  const failure = await failureOf(() => readConnection('postgres:///?service=slices', {}));
  expect(failure).toMatchObject({ code: 'usage', message: 'The address of the database names a service.' });
});

describe('an address that a failover should not outdate', () => {
  test.each<[address: string, env: Record<string, string>]>([
    ['postgres://me@one.example.org,two.example.org/x', {}],
    ['postgres://me@one.example.org:5432,two.example.org:5433/x', {}],
    ['postgres://me:se,cret@one,two/x', {}],
    ['postgres:///x?host=one,two', {}],
    ['postgres:///x', { PGHOST: 'one,two' }],
  ])('%s %j names several hosts, and is refused in these words (THREATS.md 75)', async (address, env) => {
    const failure = await failureOf(() => readConnection(address, env));
    expect(failure).toMatchObject({
      code: 'usage',
      message: 'The address of the database names several hosts.',
    });
    expect(JSON.stringify(failure)).not.toContain('cret');
  });

  test('a comma elsewhere is no list of hosts', () => {
    const address = 'postgres://me:se,cret@one.example.org/a,b?application_name=c,d';
    expect(readConnection(address, {}).needsPrimary).toBe(false);
  });

  test.each<[attributes: string, needsPrimary: boolean]>([
    ['any', false],
    ['read-write', true],
    ['primary', true],
  ])(
    'target_session_attrs=%s, or by PGTARGETSESSIONATTRS: the primary is asked for: %s',
    (named, expected) => {
      const { needsPrimary, config } = readConnection(`postgres://one/x?target_session_attrs=${named}`);
      expect(needsPrimary).toBe(expected);
      expect(config).not.toHaveProperty('target_session_attrs');
      expect(readConnection('postgres://one/x', { PGTARGETSESSIONATTRS: named }).needsPrimary).toBe(expected);
    },
  );

  test.each(['standby', 'prefer-standby', 'read-only', 'nonsense'])(
    'target_session_attrs=%s is refused',
    async (named) => {
      const failure = await failureOf(() => readConnection(`postgres://one/x?target_session_attrs=${named}`));
      expect(failure).toMatchObject({
        code: 'usage',
        message: `target_session_attrs=${named} can't be used.`,
      });
    },
  );
});
