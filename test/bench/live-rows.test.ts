import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { LinkCalendar } from '../../src/allocator/calendar.ts';
import type { HeldReservation } from '../../src/allocator/store.ts';
import { linkId } from '../../src/contract/links.ts';
import { openStores } from '../../src/store/stores.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { BareRows, RowReader } from './bare-rows.ts';
import { horizonOf, makeDatabase, WIDE_LINKS } from './live-rows.ts';
import { allocatorOn, booked, requestFor } from './requests.ts';
import { seeded } from './seeded.ts';

const folder = temporaryFolder();
const FROM = Date.UTC(2100, 0);
const LIVE = 4500;

it('makes a database that breaks no rule, keeps its guards, and can be booked on', async () => {
  const path = join(folder, 'live.sqlite');
  const links = WIDE_LINKS.slice(0, 2).map((link) => ({ link, live: LIVE, from: FROM }));
  await makeDatabase(path, links);
  const stores = await openStores(path);
  for (const held of links) {
    const { link } = held;
    const id = linkId(link.site1, link.site2);
    const live: HeldReservation[] = [];
    await stores.reservations.loadLink(id, FROM, (portion) => live.push(...portion));
    expect(live).toHaveLength(LIVE);
    const calendar = new LinkCalendar(link);
    // Throws where a tag is held twice.
    for (const record of live) calendar.put(record.id, record);
    const period = { start: FROM, end: FROM + horizonOf(held) };
    expect(Math.max(...live.map(({ end }) => end))).toBeLessThanOrEqual(period.end);
    const decision = calendar.plan({ ...period, bandwidth: link.bandwidth }, FROM);
    expect(decision).toMatchObject({ accepted: false, refusals: [{ limit: 'bandwidth' }, {}, {}, {}, {}] });
    expect(calendar.plan({ ...period, bandwidth: 1 }, FROM)).not.toMatchObject({
      refusals: [{ limit: 'bandwidth' }],
    });
    const when = { from: FROM, horizon: horizonOf(held) };
    await booked(allocatorOn(stores.reservations), requestFor(link, when, seeded(1)));
  }
  await stores.close();
  const database = new DatabaseSync(path);
  const twice = `INSERT INTO tag_hold SELECT link, place, tag, start_ms + 1, end_ms, reservation FROM tag_hold LIMIT 1`;
  expect(() => database.exec(twice)).toThrow('a tag would be held twice');
  expect(database.prepare('SELECT count(*) AS holds FROM tag_hold').get()).toEqual({
    holds: 4 * 2 * (LIVE + 1),
  });
  database.close();
});

it('writes the rows of a booking again into a copy', async () => {
  const [path, copy] = [join(folder, 'ours.sqlite'), join(folder, 'bare.sqlite')];
  const [link] = WIDE_LINKS;
  if (!link) throw new Error('there is no link');
  await makeDatabase(path, [{ link, live: 10, from: FROM }]);
  const bare = new BareRows(copy, path);
  const stores = await openStores(path);
  const request = requestFor(link, { from: FROM, horizon: 1000 }, seeded(2));
  const id = await booked(allocatorOn(stores.reservations), request);
  const rows = new RowReader(path).rowsOf(id);
  bare.write(rows);
  bare.close();
  await stores.close();
  expect(new RowReader(copy).rowsOf(id)).toEqual(rows);
  const [ours, theirs] = [path, copy].map((file) => {
    const database = new DatabaseSync(file);
    const found = ['link', 'reservation', 'tag_hold'].map((table) =>
      database.prepare(`SELECT * FROM ${table}`).all(),
    );
    database.close();
    return found;
  });
  expect(theirs).toEqual(ours);
});
