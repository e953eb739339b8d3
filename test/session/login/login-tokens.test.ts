import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { Secret } from '../../../src/contract/secret.ts';
import { Credentials } from '../../../src/session/login/credentials.ts';
import {
  isAlmostOver,
  loginToken,
  type PortalTokens,
  portalTokens,
  storedFrom,
} from '../../../src/session/login/login-tokens.ts';
import { Profiles } from '../../../src/session/profiles/profiles.ts';
import { claimsOf, IDS, makeKey, makeToken, NOW, SECONDS } from '../../fixtures/tokens.ts';

const folder = mkdtempSync(join(tmpdir(), 'slices-conn-kept-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const key = makeKey('ES256');
const experimentToken = (changes = {}) => new Secret(makeToken(key, claimsOf('experiment', changes)));
const projectToken = () => new Secret(makeToken(key, claimsOf('project')));

let now: number;
let credentials: Credentials;
let kept: PortalTokens;

/** A login, which forgets everything that was before it. */
async function logIn(at: number): Promise<void> {
  const tokens = { accessToken: new Secret('access'), refreshToken: undefined, expiresAt: undefined };
  await credentials.change(() => storedFrom(tokens, at));
}

beforeEach(async () => {
  now = NOW;
  const profile = await new Profiles(join(folder, 'config'), {}).resolve('local');
  const alone = <Answer>(_file: string, work: () => Promise<Answer>) => work();
  credentials = new Credentials(mkdtempSync(join(folder, 'state-')), profile, alone);
  await logIn(NOW - 1000);
  kept = portalTokens(credentials, () => now);
});

describe('what the portal gave', () => {
  test('is there for the next process of the same login', async () => {
    const [experiment, project] = [experimentToken(), projectToken()];
    await kept.keep(IDS.experiment, experiment);
    await kept.keep(IDS.project, project);
    const next = portalTokens(credentials, () => now);
    expect(next.read(IDS.experiment)?.reveal()).toBe(experiment.reveal());
    expect(next.read(IDS.project)?.reveal()).toBe(project.reveal());
    expect([...next.all().keys()]).toEqual([IDS.experiment, IDS.project]);
    expect(next.read('exp_portal.example.org_other')).toBeUndefined();
  });

  test('is used until it is almost over, and then dropped from the file too', async () => {
    await kept.keep(IDS.experiment, experimentToken());
    // Of 900 s a minute is less than a tenth.
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
  ])('is not used again where it %s', async (_, make) => {
    await kept.keep(IDS.experiment, make());
    expect(kept.read(IDS.experiment)).toBeUndefined();
  });

  test('is forgotten with the login', async () => {
    await kept.keep(IDS.experiment, experimentToken());
    await credentials.change(() => undefined);
    expect(kept.all().size).toBe(0);
  });
});

test('a command reads the file once: its tokens last though the file goes', async () => {
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

describe('somebody else logs in while a command is under way', () => {
  test('what was asked for before is not kept with the new login', async () => {
    expect(kept.all().size).toBe(0);
    await logIn(NOW);
    await kept.keep(IDS.experiment, experimentToken());
    expect(credentials.read()?.portalTokens).toEqual({});
  });

  test('what the new login got is not used by it', async () => {
    expect(kept.all().size).toBe(0);
    await logIn(NOW);
    await portalTokens(credentials, () => now).keep(IDS.experiment, experimentToken());
    expect(kept.read(IDS.experiment)).toBeUndefined();
  });

  test('nothing is kept, nor is a login made, after a logout', async () => {
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

  test('where nobody knows until when it is good, it is never over', () => {
    expect(isAlmostOver({ issuedAt: ISSUED }, ISSUED + 1000 * HOUR)).toBe(false);
    expect(isAlmostOver({ issuedAt: ISSUED, expiresAt: undefined }, ISSUED + HOUR)).toBe(false);
  });
});
