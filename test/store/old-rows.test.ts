import { expect, test } from 'vitest';
import { usePostgres } from '../fixtures/postgres.ts';
import { openProxy } from '../fixtures/proxy.ts';
import { openPostgres } from './opened-store.ts';

const postgres = usePostgres();

/** Puts deleted reservations of one link there, each with the key that it was made under. */
function deleted(count: number): string {
  return `
    INSERT INTO link (id, version) VALUES ('a~b', ${count});
    INSERT INTO reservation (id, site1, site2, start_ms, end_ms, bandwidth, experiment, tenant, created_by, created_ms,
      deleted_ms, answer)
    SELECT 'r' || n, 'a', 'b', 1, 2, 1, 'exp', 'proj', 'user', 0, 5, '{}' FROM generate_series(1, ${count}) AS n;
    INSERT INTO hop (reservation, position, link, version, span, start_ms, end_ms, bandwidth, site1_s_tag, site1_c_tag,
      site2_s_tag, site2_c_tag, tenant, deleted_ms)
    SELECT 'r' || n, 0, 'a~b', n, 0, 1, 2, 1, 1, 1, 1, 1, 'proj', 5 FROM generate_series(1, ${count}) AS n;
    INSERT INTO idempotency_key (created_by, experiment, key, fingerprint, reservation, expires_ms)
    SELECT 'user', 'exp', 'k' || n, '', 'r' || n, 1 FROM generate_series(1, ${count}) AS n`;
}

/** How often something is sent to the database while old rows are deleted. */
async function sentFor(rows: number): Promise<number> {
  const url = await postgres.withTables();
  await postgres.ask(url, deleted(rows));
  let sent = 0;
  const proxy = await openProxy(url, () => {
    sent += 1;
  });
  const opened = await openPostgres(proxy.url);
  try {
    await opened.rows('SELECT 1');
    sent = 0;
    expect(await opened.store.forget(6)).toEqual({ audit: 0, deleted: rows });
    const forgetting = sent;
    expect(await opened.rows('SELECT forgotten FROM link')).toEqual([{ forgotten: rows }]);
    for (const table of ['reservation', 'hop', 'idempotency_key']) {
      expect(await opened.rows(`SELECT 1 FROM ${table}`)).toEqual([]);
    }
    return forgetting;
  } finally {
    await opened.close();
    proxy.close();
  }
}

test('deleting old rows holds the link for one way to the database and back, however many there are (THREATS.md 77)', async () => {
  expect(await sentFor(240)).toBe(await sentFor(1));
});
