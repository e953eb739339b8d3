import { describe, expect, test } from 'vitest';
import { addressOf, booking, openService, outcome, problemIn, reservationIn } from '../fixtures/service.ts';

/** The built-in network: fr-lille and pl-poznan1 both lie between be-gent1 and fr-slices, and no link connects the two. */
const service = await openService();
const lead = await service.as('lead');
const SQUARE = { site1: 'be-gent1', site2: 'fr-slices' };
const rehearsed = (asked: object) => lead.book(booking({ ...SQUARE, ...asked }), 'dry_run=true');

describe('what is asked of a route', () => {
  test.each<[string, object, string[] | undefined]>([
    ['nothing', {}, ['pl-poznan1']],
    ['a site to be passed', { via: ['fr-lille'] }, ['fr-lille']],
    ['a site to be avoided', { avoid: ['pl-poznan1', 'es-uc3m'] }, ['fr-lille']],
    ['no site, and not to be direct', { via: [], avoid: [], direct: false }, ['pl-poznan1']],
    ['a direct link', { site2: 'pl-poznan1', direct: true }, undefined],
    [
      'sites in their order',
      { site2: 'es-uc3m', via: ['fr-lille', 'fr-sophia'] },
      ['fr-lille', 'fr-slices', 'fr-sophia'],
    ],
  ])('%s', async (_, asked, via) => {
    expect(reservationIn(await rehearsed(asked)).via).toEqual(via);
  });

  test('is the same for an item of a batch', async () => {
    const { tokens: _tokens, ...item } = booking({ ...SQUARE, avoid: ['pl-poznan1'] });
    const body = { items: [{ action: 'create', ...item }], tokens: [] };
    const reply = await lead.send('POST', `${addressOf('batchReservations')}?dry_run=true`, { body });
    expect(reply.body).toMatchObject({ items: [{ connectivity: { via: ['fr-lille'] } }] });
  });

  test('another route under the same idempotency key is another request', async () => {
    const keyed = (asked: object) =>
      lead.book(booking({ ...SQUARE, ...asked }), '', { 'idempotency-key': 'k' });
    expect(outcome(await keyed({ via: ['fr-lille'] }))).toBe('201');
    expect(outcome(await keyed({ via: ['fr-lille'], avoid: [] }))).toBe('201');
    expect(outcome(await keyed({}))).toBe('409 idempotency_key_reused');
  });

  test.each<[string, object, string]>([
    ['a text', { via: 'pl-poznan1' }, 'via must be an array of names of sites.'],
    ['a number in the list', { avoid: [5] }, 'avoid must hold names of sites.'],
    ['more sites than a route can pass', { via: Array(8).fill('se-kth') }, 'via holds more than 7 sites.'],
    ['a word', { direct: 'yes' }, 'direct must be true or false.'],
    ['an end', { avoid: ['be-gent1'] }, 'avoid names be-gent1, which is one of the two ends.'],
  ])('%s is site_invalid', async (_, asked, msg) => {
    const { code, detail } = problemIn(await rehearsed(asked));
    expect([code, detail[0]?.msg]).toEqual(['site_invalid', msg]);
  });

  test('a site that does not exist is site_unknown', async () => {
    const { detail } = problemIn(await rehearsed({ via: ['x'], avoid: ['y'] }));
    expect(detail.map(({ code, facts }) => [code, facts?.site])).toEqual([
      ['site_unknown', 'x'],
      ['site_unknown', 'y'],
    ]);
  });

  test.each<[string, object, object]>([
    ['direct', { direct: true }, { hops: 1, via: [], avoid: [] }],
    [
      'both ways avoided',
      { avoid: ['fr-lille', 'pl-poznan1'] },
      { hops: 2, via: [], avoid: ['fr-lille', 'pl-poznan1'] },
    ],
    [
      'one of the avoided sites is in no way',
      { site2: 'gr-uth', avoid: ['fr-lille', 'hu-sztaki'] },
      { hops: 3, via: [], avoid: ['hu-sztaki'] },
    ],
    [
      'a detour',
      { via: ['pl-poznan1', 'fr-lille'] },
      { hops: 2, via: ['pl-poznan1', 'fr-lille'], avoid: [] },
    ],
  ])('where it leaves no route, what stands in the way is told: %s', async (_, asked, facts) => {
    const { code, detail } = problemIn(await rehearsed(asked));
    expect(code).toBe('no_route');
    expect(detail[0]?.facts).toMatchObject(facts);
    expect(detail[0]?.facts?.route?.length).toBeGreaterThan(2);
  });
});
