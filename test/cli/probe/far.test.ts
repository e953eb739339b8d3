import { expect, test } from 'vitest';
import { combined, readFarReport } from '../../../src/cli/probe/far.ts';
import type { Verdict, VerdictCode } from '../../../src/cli/probe/verdict.ts';
import { failureOf } from '../../fixtures/failures.ts';
import { BE } from './evidence.ts';

/** What this end and the other one have found, and both together. */
const ROWS: [VerdictCode, Verdict['end'], there: VerdictCode, VerdictCode, Verdict['end'], says: string][] = [
  ['ok', null, 'silent', 'ok', null, 'Here.'],
  ['own_device', 'own', 'own_tags_swapped', 'own_device', 'own', 'Here.'],
  ['path_mtu', 'path', 'own_mtu', 'path_mtu', 'far', 'an MTU at pl-poznan1 is too small'],
  ['path_mtu', 'path', 'path_mtu', 'path_mtu', 'path', 'Here.'],
  ['silent', null, 'own_tags_swapped', 'far_tags_swapped', 'far', 'probe has found own_tags_swapped there'],
  ['silent', null, 'own_ethertype', 'far_ethertype', 'far', 'own_ethertype'],
  ['silent', null, 'own_other_sites_tags', 'far_does_not_hear', 'far', 'own_other_sites_tags'],
  ['single_tagged', 'far', 'own_device', 'far_does_not_hear', 'far', 'own_device'],
  ['far_tags_swapped', 'far', 'silent', 'far_tags_swapped', 'path', 'the network between changes them'],
  ['silent', null, 'far_ethertype', 'silent', 'path', 'pl-poznan1 hears 8100:2002 8100:23'],
  ['silent', null, 'silent', 'silent', 'path', 'both ways'],
  ['silent', null, 'far_does_not_hear', 'silent', 'path', 'from pl-poznan1 to be-gent1'],
  ['far_does_not_hear', 'far', 'silent', 'far_does_not_hear', 'path', 'from be-gent1 to pl-poznan1'],
  ['far_does_not_hear', 'far', 'far_does_not_hear', 'far_does_not_hear', null, 'addresses'],
  ['silent', null, 'ok', 'silent', null, 'Here.'],
];

test.each(ROWS)('%s (%s) here, %s there: %s (%s)', (verdict, end, there, both, where, says) => {
  const far = { verdict: there, end: null, heard: ['8100:2002 8100:23'] };
  const found = combined({ verdict, end, says: 'Here.' }, far, BE);
  expect(found).toMatchObject({ verdict: both, end: where, says: expect.stringContaining(says) });
});

const read = (report: object | string) =>
  readFarReport(Buffer.from(typeof report === 'string' ? report : JSON.stringify(report)), 'far.json', BE);
const own = { verdict: 'silent', end: null, heard: [], checks: [] };
const whole = { ...own, site: 'pl-poznan1', reservation: BE.reservation.id };

test('the file of the other end is what probe printed there', () => {
  expect(read(whole)).toMatchObject({ verdict: 'silent', site: 'pl-poznan1' });
  expect(read(own)).toMatchObject({ verdict: 'silent' });
});

test.each([
  ['{', 'It is not JSON.'],
  ['[]', 'It is not what "slices-conn probe --json" prints.'],
  [{ ...whole, verdict: 'fine' }, 'It is not what'],
  [{ ...whole, site: 'be-gent1' }, 'It is from be-gent1. The other end of be-gent1 is pl-poznan1.'],
  [{ ...whole, reservation: 'con_x_y' }, 'It is about the reservation con_x_y.'],
])('%j is refused', async (report, why) => {
  const { code, facts } = await failureOf(() => read(report));
  expect([code, facts.why]).toEqual(['file_unusable', expect.stringContaining(why)]);
});
