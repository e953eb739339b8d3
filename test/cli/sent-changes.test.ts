import { describe, expect, test } from 'vitest';
import { SentChanges } from '../../src/cli/sent-changes.ts';
import { Failure } from '../../src/contract/failure.ts';
import { routePath } from '../../src/contract/routes.ts';
import type { Outgoing } from '../../src/contract/sending.ts';

const GROUPS = { projects_api_group: 'projects', experiments_api_group: 'experiments' };
const BASE = 'https://conn.example.org/apis/v1alpha1/connectivity';
const sending = (method: string, url = BASE): Outgoing => ({ method, url, headers: {} });

/** The report after a request with this answer, or without one. */
async function after(method: string, answer: () => Promise<Response>, url = BASE): Promise<Failure['facts']> {
  const sent = new SentChanges();
  await sent
    .watched(answer)(sending(method, url))
    .catch(() => undefined);
  return sent.failure('interrupted').facts;
}

describe('row 44: whether a request may have taken effect', () => {
  const met = (status: number) => async () => new Response(null, { status });
  const lost = (facts: object) => () => Promise.reject(new Failure('network', 'Lost.', facts));
  test.each<[string, string, () => Promise<Response>, boolean]>([
    ['a POST that was met', 'POST', met(201), true],
    ['a POST that was refused', 'POST', met(422), false],
    ['a POST that took too long', 'POST', met(408), true],
    ['a POST that failed there', 'POST', met(500), true],
    ['a GET', 'GET', met(500), false],
    ['a DELETE that was not sent', 'DELETE', lost({}), false],
    ['a DELETE without an answer', 'DELETE', lost({ maybeDone: true }), true],
  ])('%s', async (_, method, answer, maybeDone) => {
    expect((await after(method, answer)).maybeDone ?? false).toBe(maybeDone);
  });

  const RESERVATION = 'con_conn.example.org_1';
  const PORTAL = 'https://portal.example.org/lab';
  const RULES = routePath('addCiRule', { ...GROUPS, id: 'exp_1' });
  test.each<[string, string, string | undefined, string?]>([
    ['POST', BASE, 'slices-conn list'],
    ['POST', `${BASE}:batch`, 'slices-conn list --all'],
    ['PUT', `${BASE}/${RESERVATION}`, `slices-conn show ${RESERVATION}`, RESERVATION],
    ['DELETE', `${BASE}/${RESERVATION}`, `slices-conn show ${RESERVATION}`, RESERVATION],
    ['POST', `${PORTAL}${routePath('createExperiment', GROUPS)}`, 'slices-conn experiment list'],
    ['POST', `${PORTAL}${RULES}`, 'slices-conn experiment ci list'],
    ['DELETE', `${PORTAL}${RULES}/rule_1`, 'slices-conn experiment ci list'],
    ['DELETE', `${PORTAL}${routePath('endSession', { id: 's1' })}`, 'slices-conn user sessions'],
    ['POST', 'https://auth.example.org/token', undefined],
  ])('after a %s to %s: %s', async (method, url, fix, reservation) => {
    const facts = await after(method, async () => new Response(), url);
    expect([facts.fix, facts.reservation]).toEqual([fix, reservation]);
  });

  test('after several requests: list shows them all', async () => {
    const sent = new SentChanges();
    const send = sent.watched(async () => new Response(null, { status: 200 }));
    for (const id of ['a', 'b']) await send(sending('DELETE', `${BASE}/${id}`));
    expect(sent.failure('terminated').facts.fix).toBe('slices-conn list --all');
  });
});
