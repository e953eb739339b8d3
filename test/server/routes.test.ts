import { describe, expect, test } from 'vitest';
import { addressOf, booking, openWithLead, outcome, problemIn, reservationIn } from '../fixtures/service.ts';

/** The built-in network: fr-lille and pl-poznan1 both lie between be-gent1 and fr-slices, and no link connects the two. */
const { lead } = await openWithLead();
const SQUARE = { site1: 'be-gent1', site2: 'fr-slices' };
const rehearsed = (asked: object) => lead.book(booking({ ...SQUARE, ...asked }), 'dry_run=true');

describe('questions about routes', () => {
  const ask = async (
    name: 'linkRoutes' | 'linkAvailability' | 'linkSlots',
    query: string,
    sites = 'be-gent1/fr-slices',
  ) => lead.send('GET', `${addressOf(name).replace('be-gent1/pl-poznan1', sites)}?${query}`);
  const [lille, poznan] = ['fr-lille', 'pl-poznan1'].map((site) => ['be-gent1', site, 'fr-slices']);

  test('the routes that a reservation may take, with what each can carry', async () => {
    const both = [
      { sites: lille, bandwidth: 40_000, by_default: true },
      { sites: poznan, bandwidth: 100_000, by_default: true },
    ];
    const longer = { sites: ['be-gent1', 'fr-lille', 'fr-slices', 'pl-poznan1'], by_default: false };
    expect((await ask('linkRoutes', '', 'be-gent1/pl-poznan1')).body).toMatchObject({
      items: [{ sites: ['be-gent1', 'pl-poznan1'], by_default: true }, longer],
    });
    expect((await ask('linkRoutes', '')).body).toEqual({ items: both, nextCursor: null });
    expect((await ask('linkRoutes', 'limit=1')).body).toMatchObject({ items: both.slice(0, 1) });
    expect((await ask('linkRoutes', 'avoid=fr-lille')).body).toMatchObject({ items: both.slice(1) });
    expect(outcome(await ask('linkRoutes', 'limit=101'))).toBe('400 request_invalid');
    expect(outcome(await ask('linkRoutes', 'direct=1'))).toBe('422 no_route Site');
  });

  test('availability and slots over the routes that are asked for', async () => {
    const via = await ask('linkAvailability', 'via=fr-lille');
    expect(via.body).toMatchObject({ bandwidth: 40_000, routes: [lille] });
    const avoid = await ask('linkAvailability', 'avoid=fr-lille');
    expect(avoid.body).toMatchObject({ bandwidth: 100_000, routes: [poznan] });
    expect(via.headers.get('etag')).not.toBe(avoid.headers.get('etag'));
    const direct = await ask('linkAvailability', 'direct=true', 'be-gent1/pl-poznan1');
    expect(direct.body).not.toHaveProperty('routes');
    const slots = async (query: string) =>
      (await ask('linkSlots', `bandwidth=50000&duration=PT1H&${query}`)).body;
    expect(await slots('avoid=pl-poznan1')).toMatchObject({ items: [] });
    expect(await slots('via=pl-poznan1')).toMatchObject({ items: [{}] });
  });

  test.each([
    ['via=x', '422 site_unknown Site'],
    ['avoid=fr-slices', '422 site_invalid Site'],
    ['direct=yes', '400 request_invalid'],
    ['avoid=fr-lille,pl-poznan1', '422 no_route Site'],
  ])('%s is refused', async (query, due) => {
    expect(outcome(await ask('linkRoutes', query))).toBe(due);
    expect(outcome(await ask('linkAvailability', query))).toBe(due);
    expect(outcome(await ask('linkSlots', `bandwidth=1&duration=PT1H&${query}`))).toBe(due);
  });
});

describe('what is asked of a route', () => {
  test.each<[string, object, string[] | undefined]>([
    ['nothing', {}, ['pl-poznan1']],
    ['a site to be avoided', { avoid: ['pl-poznan1', 'es-uc3m'] }, ['fr-lille']],
    ['a direct link', { site2: 'pl-poznan1', direct: true }, undefined],
    [
      'sites in their order',
      { site2: 'es-uc3m', via: ['fr-lille', 'fr-sophia'] },
      ['fr-lille', 'fr-slices', 'fr-sophia'],
    ],
  ])('%s', async (_, asked, via) => {
    expect(reservationIn(await rehearsed(asked)).via).toEqual(via);
  });

  test('an update keeps its route; over another one a batch books it anew, or changes nothing', async () => {
    const first = { ...SQUARE, via: ['pl-poznan1'], bandwidth: '1', name: 'moved' };
    const { id } = reservationIn(await lead.book(booking(first)));
    const updated = reservationIn(await lead.update(id, { bandwidth: '2', tokens: [] }));
    expect(updated.via).toEqual(['pl-poznan1']);
    const anew = (bandwidth: string) => {
      const { tokens: _tokens, ...create } = booking({ ...first, via: ['fr-lille'], bandwidth });
      const items = [
        { action: 'delete', id },
        { action: 'create', ...create },
      ];
      return lead.send('POST', addressOf('batchReservations'), { body: { items, tokens: [] } });
    };
    expect(outcome(await anew('40001'))).toBe('422 bandwidth_unavailable Bandwidth');
    expect(reservationIn(await lead.read(id))).toEqual(updated);
    const { body } = await anew('2');
    expect(body).toMatchObject({ items: [{}, { connectivity: { via: ['fr-lille'], name: 'moved' } }] });
    expect(outcome(await lead.read(id))).toBe('404 not_found');
  });

  test('a refusal over a route names the hop that is narrow', async () => {
    const { limits } = problemIn(await rehearsed({ site2: 'gr-uth', bandwidth: '2000' }));
    expect(limits).toMatchObject([{ limit: 'bandwidth', capacity: 1000, hop: ['hu-sztaki', 'gr-uth'] }]);
    const turned = await rehearsed({ site1: 'gr-uth', site2: 'be-gent1', bandwidth: '2000' });
    expect(problemIn(turned).limits).toMatchObject([{ hop: ['gr-uth', 'hu-sztaki'] }]);
    const direct = await rehearsed({ site2: 'se-kth', bandwidth: '20000' });
    expect(problemIn(direct).limits?.[0]).not.toHaveProperty('hop');
  });

  test('more than a route has, beside what else is wrong, names its narrow hop too', async () => {
    const wrong = { site2: 'gr-uth', bandwidth: '2000', name: '?' };
    const facts = { bandwidth: 2000, capacity: 1000, hop: ['hu-sztaki', 'gr-uth'] };
    expect(problemIn(await rehearsed(wrong)).detail.at(-1)?.facts).toEqual(facts);
    const direct = await rehearsed({ ...wrong, site2: 'se-kth', bandwidth: '20000' });
    expect(problemIn(direct).detail.at(-1)?.facts).toEqual({ bandwidth: 20_000, capacity: 10_000 });
    const { id } = reservationIn(await lead.book(booking({ ...wrong, bandwidth: '1', name: undefined })));
    const update = await lead.update(id, { bandwidth: '2000', name: '?', tokens: [] });
    expect(problemIn(update).detail.at(-1)?.facts).toEqual(facts);
    await lead.delete(id);
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

  test.each<[string, object, object]>([
    ['direct', { direct: true }, { hops: 1, via: [], avoid: [] }],
    [
      'both ways avoided',
      { avoid: ['fr-lille', 'pl-poznan1'] },
      { hops: 8, via: [], avoid: ['fr-lille', 'pl-poznan1'] },
    ],
    [
      'one of the avoided sites is in no way',
      { site2: 'gr-uth', avoid: ['fr-lille', 'hu-sztaki'] },
      { hops: 8, via: [], avoid: ['hu-sztaki'] },
    ],
    [
      'both ways in turn',
      { via: ['pl-poznan1', 'fr-lille'] },
      { hops: 8, via: ['pl-poznan1', 'fr-lille'], avoid: [] },
    ],
  ])('where it leaves no route, what stands in the way is told: %s', async (_, asked, facts) => {
    const { code, detail } = problemIn(await rehearsed(asked));
    expect(code).toBe('no_route');
    expect(detail[0]?.facts).toMatchObject(facts);
    expect(detail[0]?.facts?.route?.length).toBeGreaterThan(2);
  });
});
