import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { failureOrThrow } from '../../../src/contract/failure.ts';
import { Secret } from '../../../src/contract/secret.ts';
import { filesOn } from '../../../src/main/files.ts';
import { Credentials, isAlmostOver } from '../../../src/session/login/credentials.ts';
import {
  loginToken,
  type PortalTokens,
  portalTokens,
  remembered,
  storedFrom,
} from '../../../src/session/login/login-tokens.ts';
import { Profiles } from '../../../src/session/profiles/profiles.ts';
import { claimedExpiry, claimedIssue } from '../../../src/tokens/claimed.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';
import { claimsOf, IDS, makeKey, makeToken, NOW, SECONDS } from '../../fixtures/tokens.ts';
import { smallDisk } from '../../proof/disk-room.ts';

const folder = temporaryFolder();

const key = makeKey('ES256');
const experimentToken = (changes = {}) => new Secret(makeToken(key, claimsOf('experiment', changes)));
const projectToken = () => new Secret(makeToken(key, claimsOf('project')));

let now: number;
let credentials: Credentials;
let kept: PortalTokens;

/** A login, which removes everything from before. */
async function logIn(at: number): Promise<void> {
  const tokens = { accessToken: new Secret('access'), refreshToken: undefined, expiresAt: undefined };
  await credentials.change(() => storedFrom(tokens, at));
}

beforeEach(async () => {
  now = NOW;
  const profile = await new Profiles(join(folder, 'config'), {}).resolve('local');
  const alone = <Answer>(_file: string, work: () => Promise<Answer>) => work();
  credentials = new Credentials(temporaryFolder(), profile, alone);
  await logIn(NOW - 1000);
  kept = portalTokens(credentials, () => now);
});

describe('a source of tokens that last for 15 min, in a command that runs for hours', () => {
  /** A source that counts how often it was asked. */
  function counted(isFixed = false) {
    const asked: number[] = [];
    const get = async (): Promise<Secret> => {
      asked.push(now);
      const iat = Math.floor(now / 1000);
      return experimentToken({ iat, exp: iat + 900 });
    };
    return { asked, source: remembered({ origin: 'command', where: 'a test', isFixed, get }, () => now) };
  }

  test('is asked once, and again when its token is almost over: once for all that ask together', async () => {
    const { asked, source } = counted();
    const [first, together] = await Promise.all([source.get(), source.get()]);
    now += 840_000;
    expect([together, await source.get()]).toEqual([first, first]);
    now += 1000;
    const [again, beside] = await Promise.all([source.get(), source.get()]);
    expect(again.reveal()).not.toBe(first.reveal());
    expect([beside, await source.get()]).toEqual([again, again]);
    expect(asked).toEqual([NOW, NOW + 841_000]);
  });

  test('is asked once where it is fixed, and again after a failure', async () => {
    const { asked, source } = counted(true);
    await source.get();
    now += 3_600_000;
    await source.get();
    expect(asked).toHaveLength(1);
    let fails = true;
    const token = experimentToken();
    const get = async (): Promise<Secret> => (fails ? Promise.reject(new Error('not now')) : token);
    const failing = remembered({ origin: 'command', where: 'a test', get }, () => now);
    await expect(failing.get()).rejects.toThrow('not now');
    fails = false;
    expect(await failing.get()).toBe(token);
  });

  test('whose tokens are short from the start is asked once a minute', async () => {
    const asked: number[] = [];
    const get = async (): Promise<Secret> => {
      asked.push(now);
      return experimentToken({ iat: SECONDS - 3600, exp: SECONDS + 1 });
    };
    const source = remembered({ origin: 'command', where: 'a test', get }, () => now);
    for (let second = 0; second < 90; second += 1, now += 1000) await source.get();
    expect(asked).toEqual([NOW, NOW + 60_000]);
  });
});

describe('a token of the portal', () => {
  test('is read by the next process of the same login', async () => {
    const [experiment, project] = [experimentToken(), projectToken()];
    await kept.keep(IDS.experiment, experiment);
    await kept.keep(IDS.project, project);
    const next = portalTokens(credentials, () => now);
    expect(next.read(IDS.experiment)?.reveal()).toBe(experiment.reveal());
    expect(next.read(IDS.project)?.reveal()).toBe(project.reveal());
    expect([...next.all().keys()]).toEqual([IDS.experiment, IDS.project]);
    expect(next.read('exp_portal.example.org_other')).toBeUndefined();
  });

  test('is used until shortly before its expiry, and then removed from the file too', async () => {
    await kept.keep(IDS.experiment, experimentToken());
    // A minute is less than a tenth of 900 s.
    now = NOW + 840_000;
    expect(kept.read(IDS.experiment)).toBeDefined();
    now += 1;
    expect(kept.read(IDS.experiment)).toBeUndefined();
    await kept.keep(IDS.project, new Secret(makeToken(key, claimsOf('project', { exp: SECONDS + 9000 }))));
    expect(Object.keys(credentials.read()?.portalTokens ?? {})).toEqual([IDS.project]);
  });

  test.each<[string, () => Secret]>([
    ['is opaque', () => new Secret('opaque')],
    ['has no exp', () => experimentToken({ exp: undefined })],
    ['has no iat', () => experimentToken({ iat: undefined })],
    ['has expired', () => experimentToken({ exp: SECONDS - 1 })],
  ])('is not used again when it %s', async (_, make) => {
    await kept.keep(IDS.experiment, make());
    expect(kept.read(IDS.experiment)).toBeUndefined();
  });
});

test('is read once by a command, which keeps it when the file is removed', async () => {
  const profile = await new Profiles(join(folder, 'config'), {}).resolve('local');
  await kept.keep(IDS.experiment, experimentToken());
  const identity = () => Promise.reject(new RangeError('nothing is to be refreshed'));
  const command = new Credentials(join(credentials.path, '../..'), profile, (_file, work) => work());
  const options = { profile, credentials: command, identity, now: () => now };
  expect((await loginToken(options)).reveal()).toBe('access');
  rmSync(command.path);
  expect((await loginToken(options)).reveal()).toBe('access');
  expect(portalTokens(command, () => now).read(IDS.experiment)).toBeDefined();
});

describe('a disk without room for the next tokens', () => {
  const disk = smallDisk();
  afterAll(() => disk?.close());
  const refreshed = { accessToken: new Secret('new'), refreshToken: new Secret('x'.repeat(20_000)) };

  test.runIf(disk).each([0, 1, 2, 15])(
    '%i pages: no refresh token is sent, and the login stays',
    async (pages) => {
      if (!disk) return;
      const profile = await new Profiles(join(folder, 'config'), {}).resolve('local');
      const { underLock } = filesOn(disk.folder);
      const stored = new Credentials(disk.folder, profile, underLock);
      const old = { accessToken: new Secret('old'), refreshToken: new Secret('once') };
      await stored.change(() => storedFrom({ ...old, expiresAt: now + 1000 }, now - HOUR));
      const refresh = vi.fn(async () => ({ ...refreshed, expiresAt: now + HOUR }));
      const identity = async () => ({ refresh });
      const token = () =>
        loginToken({
          profile,
          credentials: new Credentials(disk.folder, profile, underLock),
          identity,
          now: () => now,
        });
      disk.leave(pages);
      expect((await token()).reveal()).toBe('old');
      now += 1000;
      const failure = await token().catch(failureOrThrow);
      expect(failure).toMatchObject({ code: 'state_unusable', facts: { why: 'The disk is full.' } });
      expect(failure).not.toHaveProperty('facts.fix');
      expect([refresh.mock.calls, stored.read()?.refreshToken?.reveal()]).toEqual([[], 'once']);
      disk.clear();
      expect((await token()).reveal()).toBe('new');
      expect(stored.read()?.refreshToken?.reveal()).toBe(refreshed.refreshToken.reveal());
      expect(readdirSync(dirname(stored.path)).toSorted()).toEqual(
        [basename(stored.path), basename(stored.path).replace(/json$/, 'lock')].toSorted(),
      );
    },
  );
});

describe('another login while a command runs', () => {
  test('does not keep a token that was requested before it', async () => {
    expect(kept.all().size).toBe(0);
    await logIn(NOW);
    await kept.keep(IDS.experiment, experimentToken());
    expect(credentials.read()?.portalTokens).toEqual({});
  });

  test('does not give its tokens to the older command', async () => {
    expect(kept.all().size).toBe(0);
    await logIn(NOW);
    await portalTokens(credentials, () => now).keep(IDS.experiment, experimentToken());
    expect(kept.read(IDS.experiment)).toBeUndefined();
  });

  test('after a logout neither a token nor a login is stored', async () => {
    expect(kept.all().size).toBe(0);
    await credentials.change(() => undefined);
    await kept.keep(IDS.experiment, experimentToken());
    expect(credentials.read()).toBeUndefined();
  });
});

const [SECOND, MINUTE, HOUR] = [1000, 60_000, 3_600_000];
const ISSUED = Date.UTC(2026, 10, 1, 12);

describe('a token is replaced when less than a minute or a tenth of its lifetime is left', () => {
  test.each<[string, number, number]>([
    ['an hour', HOUR, MINUTE],
    ['ten minutes, where both are the same', 10 * MINUTE, MINUTE],
    ['five minutes', 5 * MINUTE, 30 * SECOND],
    ['ten seconds', 10 * SECOND, SECOND],
  ])('a lifetime of %s', (_, lifetime, margin) => {
    const token = { issuedAt: ISSUED, expiresAt: ISSUED + lifetime };
    const left = (milliseconds: number) => isAlmostOver(token, token.expiresAt - milliseconds);
    expect([left(lifetime), left(margin), left(margin - 1), left(0), left(-HOUR)]).toEqual([
      false,
      false,
      true,
      true,
      true,
    ]);
  });

  test('a token with an unknown expiry is not replaced', () => {
    expect(isAlmostOver({ issuedAt: ISSUED }, ISSUED + 1000 * HOUR)).toBe(false);
    expect(isAlmostOver({ issuedAt: ISSUED, expiresAt: undefined }, ISSUED + HOUR)).toBe(false);
  });
});

test.each(['null', '1e306', '1e17', '-5', '"soon"'])(
  'row 55: a login whose expiry is not a date: %s is read as unknown',
  async (expiry) => {
    await credentials.change((current) => current && { ...current, expiresAt: 1 });
    const text = readFileSync(credentials.path, 'utf8');
    writeFileSync(credentials.path, text.replace('"expiresAt":1', `"expiresAt":${expiry}`));
    expect(credentials.read()).toMatchObject({ issuedAt: NOW - 1000, expiresAt: undefined });
  },
);

test.each([1e306, 8_640_000_000_001, -1, '5', null])(
  'row 55: an exp or iat of %j counts as unknown',
  (value) => {
    const token = experimentToken({ exp: value, iat: value }).reveal();
    expect([claimedExpiry(token), claimedIssue(token)]).toEqual([undefined, undefined]);
  },
);
