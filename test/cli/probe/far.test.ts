import { describe, expect, test } from 'vitest';
import { combined, type FarReport, readFarReport } from '../../../src/cli/probe/far.ts';
import type { Verdict, VerdictCode, Where } from '../../../src/cli/probe/verdict.ts';
import { Failure } from '../../../src/contract/failure.ts';
import { BE } from './evidence.ts';

const report = (verdict: VerdictCode, heard: string[] = []): FarReport => ({ verdict, end: null, heard });
const here = (verdict: VerdictCode, end: Where | null = null): Verdict => ({ verdict, end, says: 'Here.' });

/** Each row of the table at `combined`. */
const ROWS: [Verdict, FarReport, verdict: VerdictCode, end: Where | null, says: string][] = [
  [here('ok'), report('silent'), 'ok', null, 'Here.'],
  [here('own_device', 'own'), report('own_tags_swapped'), 'own_device', 'own', 'Here.'],
  [here('path_mtu', 'path'), report('own_mtu'), 'path_mtu', 'far', 'an MTU at pl-poznan1 is too small'],
  [here('path_mtu', 'path'), report('path_mtu'), 'path_mtu', 'path', 'Here.'],
  [
    here('silent'),
    report('own_tags_swapped'),
    'far_tags_swapped',
    'far',
    'probe has found own_tags_swapped there',
  ],
  [here('silent'), report('own_ethertype'), 'far_ethertype', 'far', 'own_ethertype'],
  [here('silent'), report('own_other_sites_tags'), 'far_does_not_hear', 'far', 'own_other_sites_tags'],
  [here('single_tagged', 'far'), report('own_device'), 'far_does_not_hear', 'far', 'own_device'],
  [
    here('far_tags_swapped', 'far'),
    report('silent'),
    'far_tags_swapped',
    'path',
    'the network between changes them',
  ],
  [
    here('silent'),
    report('far_ethertype', ['8100:2002 8100:23']),
    'silent',
    'path',
    'pl-poznan1 hears 8100:2002 8100:23',
  ],
  [here('silent'), report('silent'), 'silent', 'path', 'both ways'],
  [here('silent'), report('far_does_not_hear'), 'silent', 'path', 'from pl-poznan1 to be-gent1'],
  [
    here('far_does_not_hear', 'far'),
    report('silent'),
    'far_does_not_hear',
    'path',
    'from be-gent1 to pl-poznan1',
  ],
  [here('far_does_not_hear', 'far'), report('far_does_not_hear'), 'far_does_not_hear', null, 'addresses'],
  [here('silent'), report('ok'), 'silent', null, 'Here.'],
];

test.each(ROWS)('$0.verdict here, $1.verdict there: $2, $3', (own, far, verdict, end, says) => {
  const both = combined(own, far, BE);
  expect([both.verdict, both.end]).toEqual([verdict, end]);
  expect(both.says).toContain(says);
});

describe('the file of the other end', () => {
  const read = (text: string) => readFarReport(Buffer.from(text), 'far.json', BE);
  const whole = {
    verdict: 'silent',
    end: null,
    heard: [],
    checks: [],
    site: 'pl-poznan1',
    reservation: BE.reservation.id,
  };

  test('is what probe printed there', () => {
    expect(read(JSON.stringify(whole))).toMatchObject({ verdict: 'silent', site: 'pl-poznan1' });
    expect(read('{"verdict":"ok","end":null,"heard":[]}')).toMatchObject({ verdict: 'ok' });
  });

  test.each([
    ['{', 'It is not JSON.'],
    ['[]', 'It is not what "slices-conn probe --json" prints.'],
    ['{"verdict":"fine","end":null,"heard":[]}', 'It is not what'],
    [
      JSON.stringify({ ...whole, site: 'be-gent1' }),
      'It is from be-gent1. The other end of be-gent1 is pl-poznan1.',
    ],
    [JSON.stringify({ ...whole, reservation: 'con_x_y' }), 'It is about the reservation con_x_y.'],
  ])('%s is refused', (text, why) => {
    try {
      read(text);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(Failure);
      expect(error).toMatchObject({ code: 'file_unusable', facts: { why: expect.stringContaining(why) } });
    }
  });
});
