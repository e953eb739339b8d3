import { expect, onTestFinished, test } from 'vitest';
import { Failure } from '../../src/contract/failure.ts';
import { createReferenceServer } from '../../src/reference-server.ts';
import type { Picker } from '../../src/session/choice.ts';
import type { Connection } from '../../src/session/login/connection.ts';
import type { TokenSource } from '../../src/session/login/token-source.ts';
import { Profiles } from '../../src/session/profiles/profiles.ts';
import { Session } from '../../src/session/session.ts';
import { tokenOf } from '../fixtures/command-world.ts';
import { claimsOf, makeKey, makeToken, NOW } from '../fixtures/tokens.ts';

const MINUTE = 60_000;

/** A session of a person with two experiments, who is asked which one is meant. */
async function scene(experimentToken?: TokenSource, experimentTokenFrom?: Connection['experimentTokenFrom']) {
  let now = NOW;
  const groups = { projectsApiGroup: 'own.projects', experimentsApiGroup: 'own.experiments' };
  const server = await createReferenceServer({ now: () => now, ...groups });
  onTestFinished(() => server.close());
  let isAway = false;
  let questions = 0;
  const pick: Picker = async (_noun, items) => {
    questions += 1;
    return items[0] ?? expect.fail();
  };
  const session = new Session({
    profile: {
      ...(await new Profiles('/dev/null/config', {}).resolve('offline')),
      apiGroups: 'own.projects,own.experiments',
      ...(experimentTokenFrom ? { experimentTokenCommand: ['give', '{project}'] } : {}),
    },
    connection: {
      async fetch(request) {
        if (isAway) throw new Failure('network', 'Nobody is there.', { retryable: true });
        return server.fetch(request);
      },
      userToken: tokenOf(() => server.signIn('lead')),
      ...(experimentToken ? { experimentToken } : {}),
      ...(experimentTokenFrom ? { experimentTokenFrom } : {}),
      close: async () => undefined,
    },
    openLedger: () => expect.fail(),
    pick,
    now: () => now,
    newKey: () => 'key',
    sleep: async () => undefined,
    notice: () => undefined,
  });
  await session.portal.createExperiment({
    name: 'other',
    project_id: (await session.project()).id,
    expires_at: new Date(NOW + 24 * 60 * MINUTE).toISOString(),
  });
  return {
    session,
    questions: () => questions,
    after: (minutes: number): void => {
      now = NOW + minutes * MINUTE;
    },
    away: (is: boolean): void => {
      isAway = is;
    },
  };
}

test('the token of an experiment is fetched again before it expires, and nobody is asked again which one it is', async () => {
  const { session, after, questions } = await scene();
  const first = await session.access();
  after(13);
  expect(await session.access()).toBe(first);
  after(14.5);
  const [second, together] = await Promise.all([session.access(), session.access()]);
  expect(second.token.reveal()).not.toBe(first.token.reveal());
  expect(together).toBe(second);
  expect([second.id, questions()]).toEqual([first.id, 1]);
});

test('a token that lasts for some seconds only is used as it was given, and asked for again by the next use', async () => {
  let asked = 0;
  const { session } = await scene(
    tokenOf(async () => {
      asked += 1;
      const iat = NOW / 1000 - 900 + asked;
      return makeToken(makeKey(), claimsOf('experiment', { iat, exp: iat + 910 }));
    }),
  );
  const first = await session.access();
  expect(asked).toBe(1);
  const second = await session.access();
  expect([asked, second.token.reveal() === first.token.reveal()]).toEqual([2, false]);
});
