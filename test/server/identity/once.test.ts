import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { Client } from 'pg';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { SESSION_CHECK_TTL } from '../../../src/server/identity/sessions.ts';
import { isPostgres } from '../../../src/store/stores.ts';
import {
  answer,
  approve,
  Browser,
  type IdentityServer,
  logIn,
  type Provider,
  partOf,
  poll,
  refresh,
  refreshTokenIn,
  revoke,
  send,
  startIdentity,
  startLogin,
  tally,
  tokensIn,
} from '../../fixtures/identity.ts';
import { usePostgres } from '../../fixtures/postgres.ts';
import { addressOf, CONNECTIVITY, EXPERIMENTS, LINKS, PROJECTS } from '../../fixtures/service.ts';

const postgres = usePostgres();

/** The grace of a rotated refresh token, in milliseconds. */
const GRACE = 30_000;
const AT_ONCE = 12;
/** How often a race is run; more often by `npm run prove`. */
const ROUNDS = Number(process.env['PROVE_ROUNDS'] ?? 3);

/**
 * Does something many times at once, at each of the targets in turn. Another connection holds the database until all
 * requests are there: each has taken its first look before any takes its second.
 */
async function together<Answer>(
  { file }: IdentityServer,
  targets: readonly Provider[],
  work: readonly ((target: Provider) => Promise<Answer>)[],
): Promise<Answer[]> {
  const release = await hold(file);
  const answers = Promise.all(work.map((each, index) => each(at(targets, index))));
  // These need no database, and come after the others.
  for (const target of [...targets, ...targets]) await send(target, 'GET', '/.well-known/jwks.json');
  await release();
  return answers;
}

/** Keeps everybody from the identity provider's records. @returns what lets them in again */
async function hold(database: string): Promise<() => Promise<void>> {
  if (isPostgres(database)) {
    const holder = new Client({ connectionString: database });
    await holder.connect();
    await holder.query('BEGIN; LOCK TABLE identity_record IN ACCESS EXCLUSIVE MODE');
    return () => holder.end();
  }
  const holder = new DatabaseSync(database);
  holder.exec('BEGIN IMMEDIATE');
  return async () => {
    holder.exec('ROLLBACK');
    holder.close();
  };
}

function times<Answer>(count: number, work: (target: Provider) => Answer): (typeof work)[] {
  return Array.from({ length: count }, () => work);
}

function at(targets: readonly Provider[], index: number): Provider {
  const target = targets[index % targets.length];
  if (!target) throw new Error('there is no target');
  return target;
}

/** Nothing went wrong behind the scenes. */
function expectNoBugs({ log }: IdentityServer): void {
  expect(log.filter(({ level }) => level === 'error')).toEqual([]);
}

describe.each(postgres.engines)('two servers on one %s database', (_, newDatabase) => {
  // Each test has logins of its own on them, and moves their clock on.
  let server: IdentityServer;
  let targets: Provider[];
  beforeAll(async () => {
    server = await startIdentity({ database: await newDatabase() });
    targets = [server, await server.replica()];
  });
  afterEach(() => expectNoBugs(server));

  test('one of many redemptions at once wins, and its session lives on', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const login = await startLogin(server);
      expect((await approve(login, 'lead', new Browser(server))).status).toBe(200);
      const replies = await together(
        server,
        targets,
        times(AT_ONCE, (target) => poll(target, login)),
      );
      expect(tally(replies.map(answer))).toEqual({ '200': 1, '400 invalid_grant': AT_ONCE - 1 });
      // Used again later, it still does the winner no harm.
      for (const target of targets) expect(answer(await poll(target, login))).toBe('400 invalid_grant');
      const winner = replies.filter(({ status }) => status === 200).map(refreshTokenIn);
      for (const token of winner) expect(answer(await refresh(at(targets, round + 1), token))).toBe('200');
    }
  });

  test('many refreshes at once give one successor, which works', async () => {
    let token = (await logIn(server)).refresh_token;
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = token;
      const replies = await together(
        server,
        targets,
        times(AT_ONCE, (target) => refresh(target, before)),
      );
      expect(tally(replies.map(answer))).toEqual({ '200': AT_ONCE });
      const successors = new Set(replies.map(refreshTokenIn));
      expect(successors.size).toBe(1);
      expect(successors.has(before)).toBe(false);
      [token = ''] = successors;
    }
    expect(answer(await refresh(server, token))).toBe('200');
  });

  test('a code that people approve and deny at once is for the one whose page says so', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const login = await startLogin(server);
      const people = ['lead', 'admin', 'member'];
      const browsers = [...people, 'nobody'].map((_name, index) => new Browser(at(targets, index)));
      await Promise.all(browsers.map((browser) => browser.open(login.verification_uri_complete)));
      const pages = await together(
        server,
        targets,
        browsers.map((browser, index) => () => {
          const user = browser.people.ids.get(people[index] ?? '');
          return browser.submit(user === undefined ? { action: 'deny' } : { user, action: 'approve' });
        }),
      );
      // First: a 500 has its reason in the log.
      expect(tally(pages.map(({ status }) => String(status)))).toEqual({ '200': 1, '400': 3 });
      const winner = people[pages.findIndex(({ status }) => status === 200)];
      const reply = await poll(at(targets, round), login);
      if (winner === undefined) expect(answer(reply)).toBe('400 access_denied');
      else expect(partOf(tokensIn(reply).access_token, 'payload')['preferred_username']).toBe(winner);
    }
  });

  test('a refresh token that is used after its grace ends the family everywhere, and no other', async () => {
    const [first, other] = [(await logIn(server)).refresh_token, (await logIn(server)).refresh_token];
    const second = refreshTokenIn(await refresh(at(targets, 0), first));
    server.advance(GRACE + 1);
    expect(answer(await refresh(at(targets, 1), first))).toBe('400 invalid_grant');
    expect(answer(await refresh(at(targets, 0), second))).toBe('400 invalid_grant');
    expect(answer(await refresh(at(targets, 1), other))).toBe('200');
  });

  test('a revoked session is over everywhere', async () => {
    const { refresh_token: first } = await logIn(server);
    const bystander = (await logIn(server)).refresh_token;
    const second = refreshTokenIn(await refresh(at(targets, 0), first));
    expect((await revoke(at(targets, 1), second)).status).toBe(200);
    for (const token of [first, second])
      for (const target of targets) expect(answer(await refresh(target, token))).toBe('400 invalid_grant');
    // Revoked again, or never known: nothing to tell apart (RFC 7009 §2.2).
    expect((await revoke(server, second)).status).toBe(200);
    expect((await revoke(server, 'unknown')).status).toBe(200);
    expect(answer(await refresh(at(targets, 1), bystander))).toBe('200');
  });

  describe('row 57: the access tokens of a revoked session', () => {
    const LATER = SESSION_CHECK_TTL;

    /** What each server says to each token, in the portal and in the connectivity service. */
    async function outcomes(targets: readonly Provider[], tokens: readonly string[]): Promise<number[]> {
      const found: number[] = [];
      for (const target of targets)
        for (const token of tokens)
          for (const address of [PROJECTS, LINKS]) {
            const headers = { authorization: `Bearer ${token}` };
            found.push((await send(target, 'GET', address, { headers })).status);
          }
      return [...new Set(found)];
    }

    test('are refused: at once by the server that revoked it, by others within 5 s', async () => {
      const { refresh_token, access_token } = await logIn(server);
      const bystander = (await logIn(server)).access_token;
      const second = tokensIn(await refresh(at(targets, 1), refresh_token));
      const tokens = [access_token, second.access_token];
      expect(await outcomes(targets, [...tokens, bystander])).toEqual([200]);
      expect((await revoke(at(targets, 1), second.refresh_token ?? '')).status).toBe(200);
      expect(await outcomes([at(targets, 1)], tokens)).toEqual([403]);
      server.advance(LATER);
      expect(await outcomes(targets, tokens)).toEqual([403]);
      expect(await outcomes(targets, [bystander])).toEqual([200]);
    });

    test('so are those of a session whose refresh token was used twice', async () => {
      const { refresh_token, access_token } = await logIn(server);
      await refresh(at(targets, 1), refresh_token);
      server.advance(GRACE + 1);
      expect(answer(await refresh(at(targets, 0), refresh_token))).toBe('400 invalid_grant');
      server.advance(LATER);
      expect(await outcomes(targets, [access_token])).toEqual([403]);
    });

    test('so are the experiment tokens that were had with it', async () => {
      const { refresh_token, access_token } = await logIn(server);
      const headers = { authorization: `Bearer ${access_token}` };
      const listed = await send(server, 'GET', EXPERIMENTS, { headers });
      const [, id = ''] = /"id":"(exp_[^"]+)"/.exec(listed.text) ?? [];
      const experiment = await send(server, 'GET', addressOf('experimentToken', id), {
        headers: { ...headers, accept: 'application/jwt' },
      });
      const alone = { authorization: `Bearer ${experiment.text}` };
      const list = async (target: Provider) =>
        (await send(target, 'GET', CONNECTIVITY, { headers: alone })).status;
      expect(await list(at(targets, 1))).toBe(200);
      await revoke(server, refresh_token);
      server.advance(LATER);
      for (const target of targets) expect(await list(target)).toBe(403);
    });

    test('a session that has nothing else is ended by its access token', async () => {
      const login = await startLogin(server, 'openid projects');
      await approve(login, 'lead', new Browser(server));
      const { access_token, refresh_token } = tokensIn(await poll(server, login));
      expect(refresh_token).toBeUndefined();
      expect(await outcomes(targets, [access_token])).toEqual([200]);
      const [head = '', payload = ''] = access_token.split('.');
      const forged = [head, payload, Buffer.alloc(64, 1).toString('base64url')].join('.');
      expect((await revoke(at(targets, 1), forged)).status).toBe(200);
      server.advance(LATER);
      expect(await outcomes(targets, [access_token])).toEqual([200]);
      expect((await revoke(at(targets, 1), access_token)).status).toBe(200);
      server.advance(LATER);
      expect(await outcomes(targets, [access_token])).toEqual([403]);
    });
  });

  test('a session that is refreshed and revoked at once is over', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { refresh_token: token } = await logIn(server);
      const [revoked, ...refreshed] = await together(server, targets, [
        (target: Provider) => revoke(target, token),
        ...times(6, (target: Provider) => refresh(target, token)),
      ]);
      expect(revoked?.status).toBe(200);
      for (const reply of refreshed) expect(reply.status).toBeLessThan(500);
      const successors = refreshed.filter(({ status }) => status === 200).map(refreshTokenIn);
      for (const each of [token, ...successors])
        expect(answer(await refresh(at(targets, round), each))).toBe('400 invalid_grant');
    }
  });
});

describe.each(postgres.engines)('row 31: the grace of a refresh token on %s', (_, newDatabase) => {
  let server: IdentityServer;
  beforeAll(async () => {
    server = await startIdentity({ database: await newDatabase() });
  });

  test('gives the same successor until its last millisecond, with a new access token', async () => {
    const login = await logIn(server, 'member');
    const reply = await refresh(server, login.refresh_token);
    server.advance(GRACE - 1000);
    const again = await refresh(server, login.refresh_token);
    expect(refreshTokenIn(again)).toBe(refreshTokenIn(reply));
    const claims = [login.access_token, tokensIn(reply).access_token, tokensIn(again).access_token].map(
      (token) => partOf(token, 'payload'),
    );
    // The login stays the one that it was.
    expect(new Set(claims.map(({ auth_time }) => auth_time)).size).toBe(1);
    expect(new Set(claims.map(({ sub }) => sub)).size).toBe(1);
    expect(new Set(claims.map(({ scope }) => scope))).toEqual(new Set(['openid userinfo projects sessions']));
    expect(answer(await refresh(server, refreshTokenIn(again)))).toBe('200');
  });

  test('is not prolonged by its use', async () => {
    const { refresh_token: first } = await logIn(server);
    const second = refreshTokenIn(await refresh(server, first));
    for (let step = 0; step < 2; step += 1) {
      server.advance(GRACE / 2 - 1000);
      expect(answer(await refresh(server, first))).toBe('200');
    }
    server.advance(GRACE / 2);
    expect(answer(await refresh(server, first))).toBe('400 invalid_grant');
    expect(answer(await refresh(server, second))).toBe('400 invalid_grant');
  });

  test('ends when the successor is used', async () => {
    const { refresh_token: first } = await logIn(server);
    const second = refreshTokenIn(await refresh(server, first));
    const third = refreshTokenIn(await refresh(server, second));
    expect(third).not.toBe(second);
    // That was a theft, or looked like one: nothing of the family is left.
    for (const token of [first, second, third])
      expect(answer(await refresh(server, token))).toBe('400 invalid_grant');
  });
});

describe.each(postgres.engines)('row 33: stored values on %s', (_, newDatabase) => {
  /** Every text and blob in a database, with where it stands. */
  async function textsIn(database: string): Promise<{ at: string; text: string }[]> {
    const named = isPostgres(database)
      ? 'SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()'
      : "SELECT name FROM sqlite_schema WHERE type = 'table'";
    const found: { at: string; text: string }[] = [];
    for (const { name } of await postgres.ask(database, named)) {
      for (const row of await postgres.ask(database, `SELECT * FROM "${String(name)}"`)) {
        for (const [column, value] of Object.entries(row)) {
          const text = value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value);
          found.push({ at: `${String(name)}.${column}`, text });
        }
      }
    }
    return found;
  }

  test('opens nothing: codes and tokens are kept as hashes only', async () => {
    const server = await startIdentity({ database: await newDatabase() });
    const pending = await startLogin(server);
    const login = await startLogin(server);
    const browser = new Browser(server);
    await approve(login, 'lead', browser);
    const first = tokensIn(await poll(server, login));
    const second = tokensIn(await refresh(server, String(first.refresh_token)));
    await browser.open(pending.verification_uri_complete);
    const secrets = Object.entries({
      'device code': login.device_code,
      'user code': login.user_code,
      'user code without its dash': login.user_code.replace('-', ''),
      'pending device code': pending.device_code,
      'pending user code': pending.user_code.replace('-', ''),
      'access token': first.access_token,
      'signature of the access token': String(first.access_token.split('.')[2]),
      'refresh token': String(first.refresh_token),
      successor: String(second.refresh_token),
      'form token': String(browser.hidden['csrf']),
      'browser session': String([...browser.cookies.values()][0]).split('.')[0] ?? '',
    });
    const texts = await textsIn(server.file);
    expect(texts.filter(({ at: where }) => where === 'identity_record.model').length).toBeGreaterThan(3);
    const found = secrets.flatMap(([name, secret]) =>
      texts.filter(({ text }) => text.includes(secret)).map(({ at: where }) => `${name} in ${where}`),
    );
    expect(found).toEqual([]);
    expect(secrets.every(([, secret]) => secret.length >= 8)).toBe(true);

    // Someone who reads the database can do nothing with what is there.
    const records = texts.filter(({ at: where }) => where.startsWith('identity_record.'));
    const values = new Set(records.map(({ text }) => text).filter((text) => /^[\w:-]{20,}$/.test(text)));
    for (const stored of values) {
      for (const value of [stored, `sha256:${stored}`]) {
        expect(answer(await refresh(server, value))).toBe('400 invalid_grant');
        expect(answer(await poll(server, { device_code: value }))).toBe('400 invalid_grant');
      }
    }
    const hash = createHash('sha256').update(String(second.refresh_token)).digest('base64url');
    expect(values.has(hash)).toBe(true);
    expect((await revoke(server, `sha256:${hash}`)).status).toBe(200);
    expect(answer(await refresh(server, String(second.refresh_token)))).toBe('200');
    expectNoBugs(server);
  });
});
