import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { linkId } from '../../src/contract/links.ts';
import { openStores } from '../../src/store/stores.ts';
import { type Rows, sweep } from '../allocator/sweep.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { horizonOf, makeDatabase, WIDE_LINKS } from './live-rows.ts';
import { allocatorOn, booked, requestFor } from './requests.ts';
import { seeded } from './seeded.ts';

const folder = temporaryFolder();
const FROM = Date.UTC(2100, 0);
const LIVE = 4500;

it('makes a database that breaks no rule, and can be booked on', async () => {
  const path = join(folder, 'live.sqlite');
  const links = WIDE_LINKS.slice(0, 2).map((link) => ({ link, live: LIVE, from: FROM }));
  await makeDatabase(path, links);
  const stores = await openStores(path);
  const database = new DatabaseSync(path);
  const rows: Rows = async (sql, ...values) => database.prepare(sql.replace(/\$(\d)/g, '?$1')).all(...values);
  for (const held of links) {
    const { link } = held;
    const id = linkId(link.site1, link.site2);
    const when = { from: FROM, horizon: horizonOf(held) };
    const within = { start: FROM, end: FROM + when.horizon };
    expect(await stores.reservations.overlapping(id, within)).toHaveLength(LIVE);
    expect(
      await stores.reservations.overlapping(id, { start: within.end, end: Number.POSITIVE_INFINITY }),
    ).toEqual([]);
    await booked(allocatorOn(stores.reservations), requestFor(link, when, seeded(1)));
    expect(await sweep({ rows }, id, link)).toEqual([]);
  }
  database.close();
  await stores.close();
});
