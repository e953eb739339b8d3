import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  answer,
  approve,
  Browser,
  DEVICE_GRANT,
  type IdentityServer,
  post,
  refresh,
  refreshTokenIn,
  SCOPE,
  startIdentity,
  startLogin,
  tally,
  tokensIn,
  type WireReply,
} from '../../fixtures/identity.ts';

const CLIENT = 'slices-conn-ci';
const DAY = 24 * 3600 * 1000;

afterEach(() => void vi.useRealTimers());

/** Moves the clock of everything in this process, the provider's library included. Sockets keep their own time. */
function moveEverything(milliseconds: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + milliseconds });
}

function refreshed(server: IdentityServer, token: string, client = CLIENT): Promise<WireReply> {
  return post(server, '/token', { client_id: client, grant_type: 'refresh_token', refresh_token: token });
}

/** Lets a machine act as the lead. */
async function machineToken(server: IdentityServer): Promise<{ token: string; reply: WireReply }> {
  const { device_code, verification_uri_complete } = await startLogin(server, SCOPE, CLIENT);
  await approve({ verification_uri_complete }, 'lead', new Browser(server));
  const reply = await post(server, '/token', { client_id: CLIENT, grant_type: DEVICE_GRANT, device_code });
  return { token: refreshTokenIn(reply), reply };
}

describe('a machine’s refresh token', () => {
  test('lasts 90 days, and is the same after each use', async () => {
    const server = await startIdentity();
    const { token, reply } = await machineToken(server);
    expect(JSON.parse(reply.text)).toMatchObject({ refresh_token_expires_in: 90 * 86_400 });
    moveEverything(89 * DAY);
    const later = await refreshed(server, token);
    expect(refreshTokenIn(later)).toBe(token);
    const { refresh_token_expires_in: left } = JSON.parse(later.text);
    expect(left).toBeGreaterThan(86_400 - 60);
    expect(left).toBeLessThanOrEqual(86_400);
    moveEverything(DAY);
    expect(answer(await refreshed(server, token))).toBe('400 invalid_grant');
  });

  test('is good for jobs that run side by side', async () => {
    const server = await startIdentity();
    const { token } = await machineToken(server);
    const replies = await Promise.all(Array.from({ length: 12 }, () => refreshed(server, token)));
    expect(tally(replies.map(answer))).toEqual({ 200: 12 });
    const accessTokens = new Set(replies.map((reply) => tokensIn(reply).access_token));
    expect(accessTokens.size).toBe(12);
  });

  test('is good for its own client only, and a person’s token is not good for that client', async () => {
    const server = await startIdentity();
    const { token } = await machineToken(server);
    expect(answer(await refresh(server, token))).toBe('400 invalid_grant');
    const person = await startLogin(server);
    await approve(person, 'lead', new Browser(server));
    const { device_code } = person;
    const reply = await post(server, '/token', { grant_type: DEVICE_GRANT, device_code });
    expect(JSON.parse(reply.text)).not.toHaveProperty('refresh_token_expires_in');
    expect(answer(await refreshed(server, refreshTokenIn(reply)))).toBe('400 invalid_grant');
    expect(answer(await refreshed(server, token))).toBe('200');
  });
});

test('the page says that a machine will act without the person, and says it of machines only', async () => {
  const server = await startIdentity();
  const sentence = 'A machine will act as you, without you, for 90 days.';
  const browser = new Browser(server);
  const machine = await startLogin(server, SCOPE, CLIENT);
  const { text } = await browser.open(machine.verification_uri_complete);
  expect(text).toContain(sentence);
  expect(text).toContain('slices-conn user sessions');
  const person = await startLogin(server);
  expect((await browser.open(person.verification_uri_complete)).text).not.toContain(sentence);
});
