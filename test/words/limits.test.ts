import { expect, test } from 'vitest';
import type { Limit } from '../../src/contract/problems.ts';
import { UTC_TIMES } from '../../src/contract/said.ts';
import { limitNote, limitText } from '../../src/words/problems.ts';

const PERIOD = { start_date: '2026-12-01T11:00:00.000Z', end_date: '2026-12-01T14:00:00.000Z' };
const FROM_TO = 'from 2026-12-01T11:00:00.000Z to 2026-12-01T14:00:00.000Z';
const NOTED = '2026-12-01T11:00:00.000Z–2026-12-01T14:00:00.000Z';
const LINK: Limit = { limit: 'bandwidth', site: null, layer: null, capacity: 10_000, free: 6000, ...PERIOD };
const TAGS: Limit = { ...LINK, limit: 'tags', site: 'be-gent1', layer: 'S', capacity: 1000, free: 0 };
const HOP: [string, string] = ['hu-sztaki', 'gr-uth'];
const SHARE: Limit = { ...LINK, limit: 'share', capacity: 500, free: 100 };

test.each([
  [LINK, 9000, `6 of the 9 Gbps asked for are free ${FROM_TO}.`],
  [{ ...LINK, free: 1000 }, 9000, `1 of the 9 Gbps asked for is free ${FROM_TO}.`],
  [{ ...LINK, free: 500 }, 9000, `500 Mbps of the 9 Gbps asked for are free ${FROM_TO}.`],
  [{ ...LINK, free: 0 }, 9000, `None of the 9 Gbps asked for are free ${FROM_TO}.`],
  [LINK, undefined, `6 Gbps are free ${FROM_TO}.`],
  [LINK, 20_000, 'The link has 10 Gbps; 20 Gbps were asked for.'],
  [TAGS, 9000, `None of the 1000 S-tags at be-gent1 is free all the time ${FROM_TO}.`],
  [{ ...LINK, hop: HOP }, 9000, `gr-uth – hu-sztaki has 6 of the 9 Gbps ${FROM_TO}.`],
  [{ ...LINK, hop: HOP, free: 0 }, 9000, `gr-uth – hu-sztaki has none of the 9 Gbps ${FROM_TO}.`],
  [{ ...LINK, hop: HOP }, undefined, `gr-uth – hu-sztaki has 6 Gbps free ${FROM_TO}.`],
  [{ ...LINK, hop: HOP }, 20_000, 'gr-uth – hu-sztaki has 10 Gbps; 20 Gbps were asked for.'],
  [
    { ...TAGS, hop: HOP },
    9000,
    `None of the 1000 S-tags at be-gent1 is free on gr-uth – hu-sztaki all the time ${FROM_TO}.`,
  ],
  [
    { ...SHARE, hop: HOP },
    200,
    `One project may have 500 Mbps of gr-uth – hu-sztaki, and yours has 100 Mbps left ${FROM_TO}; 200 Mbps were asked for.`,
  ],
  [
    SHARE,
    200,
    `One project may have 500 Mbps of this link, and yours has 100 Mbps left ${FROM_TO}; 200 Mbps were asked for.`,
  ],
  [
    { ...SHARE, tenant: 'experiment', site: 'be-gent1', layer: 'C' } as Limit,
    200,
    `One experiment may have 500 of the C-tags at be-gent1, and yours has 100 left ${FROM_TO}.`,
  ],
  [
    { ...SHARE, capacity: 5, free: 0, start_date: null, end_date: null },
    200,
    'One project may have 5 reservations that have not ended, and yours has 5. Delete one, or wait until one has ended.',
  ],
] as const)('%j with %s Mbps asked for', (limit, asked, text) => {
  expect(limitText(limit, asked, UTC_TIMES)).toBe(text);
});

test.each([
  [LINK, `6 Gbps free ${NOTED}`],
  [{ ...LINK, hop: HOP }, `6 Gbps free on gr-uth – hu-sztaki ${NOTED}`],
  [TAGS, `no S-tag free at be-gent1 ${NOTED}`],
  [SHARE, `100 Mbps left of the project's share ${NOTED}`],
  [
    { ...SHARE, site: 'be-gent1', layer: 'S' } as Limit,
    `100 of 500 S-tags left of the project's share ${NOTED}`,
  ],
  [{ ...SHARE, start_date: null, end_date: null }, undefined],
] as const)('%j in a few words', (limit, text) => {
  expect(limitNote(limit, UTC_TIMES)).toBe(text);
});
