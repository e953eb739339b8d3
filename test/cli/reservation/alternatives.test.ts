import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { readPeriod } from '../../../src/cli/period.ts';
import { advisor, reserveCommandLine } from '../../../src/cli/reservation/alternatives.ts';
import { parseBandwidth } from '../../../src/cli/values.ts';
import type { NewReservation } from '../../../src/client/reservation-request.ts';
import { Failure, type FailureCode, type FailureFacts } from '../../../src/contract/failure.ts';
import { failureOf } from '../../fixtures/failures.ts';
import { NOW } from '../../fixtures/tokens.ts';

const HOUR = 3_600_000;
const times = { now: NOW, zone: 'UTC' };
const iso = (offset: number) => new Date(NOW + offset).toISOString();

const request: NewReservation = {
  site1: 'be-gent1',
  site2: 'pl-poznan1',
  bandwidth: 200_000,
  start: 'now',
  end: NOW + 2 * HOUR,
};
const later = { bandwidth: 1500, start_date: iso(HOUR), end_date: iso(3 * HOUR) };

/** The advice after this refusal of {@link request}. */
async function advised(
  code: FailureCode,
  facts: FailureFacts = {},
  { flags = {}, wanted = request }: { flags?: Parameters<typeof advisor>[1]; wanted?: NewReservation } = {},
): Promise<Failure> {
  return failureOf(() => advisor(wanted, flags, () => NOW, 'UTC')(new Failure(code, 'refused', facts)));
}

describe('the command that is advised', () => {
  test.each<[string, typeof later, string]>([
    ['with its start', later, `--bandwidth 1500 --start ${iso(HOUR)} --end ${iso(3 * HOUR)}`],
    [
      'with --start-now for a start that has come',
      { ...later, start_date: iso(0) },
      `--bandwidth 1500 --start-now --end ${iso(3 * HOUR)}`,
    ],
    [
      'with --start-now for a start that has passed',
      { ...later, start_date: iso(-HOUR) },
      `--bandwidth 1500 --start-now --end ${iso(3 * HOUR)}`,
    ],
  ])('books the alternative, %s', (_, alternative, flags) => {
    expect(reserveCommandLine(request, alternative, {}, NOW)).toBe(
      `slices-conn reserve be-gent1 pl-poznan1 ${flags}`,
    );
  });

  test('names the alternative’s own bandwidth and period, in a form that the command reads', async () => {
    const words = reserveCommandLine(request, later, {}, NOW).split(' ');
    const value = (flag: string) => words[words.indexOf(flag) + 1] ?? '';
    expect(parseBandwidth(value('--bandwidth'))).toBe(later.bandwidth);
    expect(await readPeriod({ start: value('--start'), end: value('--end') }, times)).toEqual({
      start: NOW + HOUR,
      end: NOW + 3 * HOUR,
    });
  });

  test('row 45: keeps --dry-run and --idempotency-key', () => {
    const flags = { dryRun: true, save: 'link.jwt', idempotencyKey: 'ci-7', allowUnsigned: true };
    expect(reserveCommandLine(request, later, flags, NOW)).toMatch(
      / --dry-run --save link\.jwt --idempotency-key ci-7 --allow-unsigned$/,
    );
  });

  test('can be pasted into a shell, where a value with a space or a quote stays one word', () => {
    const save = "my link's $HOME.jwt";
    const line = reserveCommandLine(request, later, { save }, NOW);
    const { stdout } = spawnSync('sh', ['-c', `set -- ${line}; printf '%s\\n' "$@"`], { encoding: 'utf8' });
    expect(stdout.trimEnd().split('\n').at(-1)).toBe(save);
  });
});

describe('a refusal', () => {
  test('with alternatives advises the first', async () => {
    const other = { ...later, bandwidth: 7 };
    const failure = await advised('bandwidth_unavailable', { alternatives: [later, other], httpStatus: 422 });
    expect(failure).toMatchObject({ code: 'bandwidth_unavailable', message: 'refused' });
    expect(failure.facts).toMatchObject({
      fix: reserveCommandLine(request, later, {}, NOW),
      alternatives: [later, other],
      httpStatus: 422,
    });
  });

  test('of a past start advises to start now, if the end is in the future', async () => {
    const wanted = { ...request, start: NOW - HOUR };
    const { facts } = await advised('date_past', {}, { wanted, flags: { dryRun: true } });
    expect(facts.fix).toBe(
      `slices-conn reserve be-gent1 pl-poznan1 --bandwidth 200000 --start-now --end ${iso(2 * HOUR)} --dry-run`,
    );
    const over = { ...wanted, end: NOW - 1 };
    expect((await advised('date_past', {}, { wanted: over })).facts.fix).toBeUndefined();
  });

  test('without any stays as it is', async () => {
    const facts = { why: 'no link', httpStatus: 422 };
    expect((await advised('sites_not_connected', facts)).facts).toEqual(facts);
  });

  test.each<[string, string, string]>([
    ['be-gent1', 'pl-poznan', 'pl-poznan1'],
    ['be-gent', 'pl-poznan1', 'be-gent1'],
    ['gent', 'poznan', 'be-gent1'],
  ])('of an unknown site among %s and %s names the most similar site: %s', async (site1, site2, nearest) => {
    const { facts } = await advised('site_unknown', {}, { wanted: { ...request, site1, site2 } });
    expect(facts.why).toBe(`Did you mean ${nearest}?`);
  });

  test('of a site without a similar one suggests no site', async () => {
    const { facts } = await advised('site_unknown', {}, { wanted: { ...request, site2: 'uk-london' } });
    expect(facts.why ?? '').not.toContain('Did you mean');
  });

  test.each(['2026-12-01T10:00:00Z; touch pwned', '$(touch pwned)', '--save /etc/passwd', 'soon', ''])(
    'row 7: a service’s alternative that ends at %j is not advised',
    async (end_date) => {
      const { facts } = await advised('bandwidth_unavailable', { alternatives: [{ ...later, end_date }] });
      expect(facts.fix).toBeUndefined();
    },
  );

  test.each(['$(touch pwned)', 'soon'])('nor is one that starts at %j', async (start_date) => {
    const { facts } = await advised('bandwidth_unavailable', { alternatives: [{ ...later, start_date }] });
    expect(facts.fix).toBeUndefined();
  });
});

describe('the reason says when and how much', () => {
  test('of every offer, in the zone of the person', async () => {
    const less = { bandwidth: 400, start_date: iso(0), end_date: iso(2 * HOUR) };
    const { facts } = await advised('bandwidth_unavailable', {
      why: 'It is taken.',
      alternatives: [less, later],
    });
    expect(facts.why).toMatch(
      /^It is taken\. Free in UTC: 400 Mbps from .+ for 2 h; or 1\.5 Gbps from .+ for 2 h\.$/,
    );
  });

  test('and what to change where nothing is offered', async () => {
    const { facts } = await advised('bandwidth_unavailable');
    expect(facts.why).toBe('The service offers nothing else. Ask for a shorter time, or for less.');
  });
});

test('an error that is not a refusal stays unchanged', () => {
  const error = new TypeError('a defect');
  expect(() => advisor(request, {}, () => NOW, 'UTC')(error)).toThrow(error);
});
