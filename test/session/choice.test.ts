import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { type Choosable, chooseOne, nearest, type Picker } from '../../src/session/choice.ts';
import { failureOf } from '../fixtures/failures.ts';
import { NOW } from '../fixtures/tokens.ts';

const iso = (offset: number) => new Date(NOW + offset).toISOString();
const item = (name: string, changes: Partial<Choosable> = {}): Choosable => ({
  id: `exp_portal.example.org_${name}`,
  name,
  expires_at: iso(1),
  ...changes,
});

const demo = item('demo');
const other = item('other');
const ended = item('ended', { expires_at: iso(0) });
const unknown = item('unknown', { expires_at: '' });
const zoneless = item('zoneless', { expires_at: iso(1).replace('Z', '') });
const twin = item('demo', { id: 'exp_portal.example.org_twin' });
const endedTwin = item('demo', { id: 'exp_portal.example.org_ended-twin', expires_at: iso(-1) });
/** An experiment whose name is another one's id. */
const impostor = item('impostor', { name: demo.id });

const choose = (wanted: string | undefined, items: readonly Choosable[]) =>
  chooseOne('experiment', wanted, items, NOW);

describe('without a choice', () => {
  test.each<[string, Choosable[], Choosable]>([
    ['the only one', [demo], demo],
    ['the only one that is active', [ended, demo, endedTwin], demo],
    ['one whose end is not known', [unknown, ended], unknown],
    ['one whose end has no zone, which means UTC', [zoneless, ended], zoneless],
  ])('%s is used', async (_, items, expected) => {
    expect(await choose(undefined, items)).toBe(expected);
  });

  test.each<[string, Choosable[]]>([
    ['there is none', []],
    ['all have ended, the last at this very moment', [ended, endedTwin]],
  ])('%s: the failure says how to get one', async (_, items) => {
    const failure = await failureOf(() => choose(undefined, items));
    expect(failure).toMatchObject({ code: 'usage', message: 'You have no active experiment.' });
    expect(failure.facts.fix).toMatch(/^slices-conn experiment create /);
  });

  test('several active ones are listed without a guess, and the advised command names one of them', async () => {
    const failure = await failureOf(() => choose(undefined, [demo, other, ended]));
    expect(failure).toMatchObject({
      code: 'usage',
      message: 'You have several active experiments; name one with --experiment.',
      facts: {
        why: `They are ${demo.name} (${demo.id}), ${other.name} (${other.id}).`,
        fix: 'slices-conn experiment use demo',
      },
    });
  });
});

describe('where a person can be asked', () => {
  const pick: Picker = async (_noun, items) => items.at(-1) ?? failed();
  const failed = (): never => {
    throw new RangeError('nothing to choose from');
  };

  test('several active ones are offered, and no other', async () => {
    expect(await chooseOne('experiment', undefined, [demo, other, ended], NOW, { pick })).toBe(other);
  });

  test.each<[string, string | undefined, Choosable[]]>([
    ['one is named', 'demo', [demo, other]],
    ['there is only one', undefined, [demo]],
  ])('nobody is asked where %s', async (_, wanted, items) => {
    expect(await chooseOne('experiment', wanted, items, NOW, { pick: failed })).toBe(demo);
  });
});

describe('what a profile keeps', () => {
  const chosenNames = { exp_gone: 'demo', [demo.id]: 'other' };

  test.each([
    ['found by its name where its id is not known any more', 'exp_gone', demo],
    ['the one with its id, whatever its name was', demo.id, demo],
  ])('is %s', async (_, wanted, found) => {
    expect(await chooseOne('experiment', wanted, [demo, other], NOW, { chosenNames })).toBe(found);
  });

  test('is not guessed where its name is not known either', async () => {
    const failure = await failureOf(() => chooseOne('experiment', 'exp_gone', [other], NOW, { chosenNames }));
    expect(failure.message).toBe('You have no experiment exp_gone.');
  });
});

describe('with a choice', () => {
  test.each<[string, string, Choosable[], Choosable]>([
    ['an id', demo.id, [other, demo], demo],
    ['a name', 'demo', [other, demo], demo],
    ['the id before a name that is the same', demo.id, [impostor, demo], demo],
    ['one that has ended, when it is named', 'ended', [demo, ended], ended],
    ['the active one of two with the name', 'demo', [endedTwin, demo], demo],
  ])('%s', async (_, wanted, items, expected) => {
    expect(await choose(wanted, items)).toBe(expected);
  });

  test.each([
    ['nope', ''],
    ['DEMO', ' Did you mean demo?'],
    ['dem', ' Did you mean demo?'],
    ['', ''],
  ])('%j is not found, and the existing ones are listed', async (wanted, hint) => {
    const failure = await failureOf(() => choose(wanted, [demo]));
    expect(failure).toMatchObject({
      code: 'not_found',
      message: `You have no experiment ${wanted}.${hint}`,
      facts: { why: `Yours: ${demo.name} (${demo.id}).`, fix: 'slices-conn experiment list' },
    });
  });

  test('two active ones with one name are listed by id', async () => {
    const { code, facts } = await failureOf(() => choose('demo', [demo, twin]));
    expect(code).toBe('usage');
    expect(facts.why).toContain(demo.id);
    expect(facts.why).toContain(twin.id);
  });

  test('two ended ones with one name are not guessed', async () => {
    const alsoEnded = { ...demo, expires_at: iso(-5) };
    expect((await failureOf(() => choose('demo', [endedTwin, alsoEnded]))).code).toBe('usage');
  });

  test.each(['--help', 'de\u200bmo', ''])(
    'row 45: the advised command has the id in place of the name %j',
    async (name) => {
      const { facts } = await failureOf(() => choose(undefined, [item('x', { name }), other]));
      expect(facts.fix).toBe(`slices-conn experiment use ${item('x').id}`);
    },
  );

  test('the advised command has the id where two have the name', async () => {
    const twin = item('twin', { name: 'demo' });
    const { facts } = await failureOf(() => choose(undefined, [twin, demo]));
    expect(facts.fix).toBe(`slices-conn experiment use ${twin.id}`);
  });

  test('row 7: a name from the portal is one quoted word of the advised command', async () => {
    for (const name of ['$(touch pwned)', 'a; touch pwned', "it's", 'two words']) {
      const failure = await failureOf(() => choose(undefined, [item(name), other]));
      const script = `set -- ${failure.facts.fix}; printf '%s\\n' "$#" "$4"`;
      const { stdout } = spawnSync('sh', ['-c', script], { encoding: 'utf8' });
      const [count, word = ''] = stdout.split('\n');
      expect(count).toBe('4');
      expect([name, item(name).id]).toContain(word);
    }
  });
});

const KNOWN = ['local', 'offline', 'slices', 'baseUrl', 'authUrl'];

describe('the nearest known word', () => {
  test.each<[string, string]>([
    ['slcies', 'slices'],
    ['slice', 'slices'],
    ['ofline', 'offline'],
    ['LOCAL', 'local'],
    ['lcal', 'local'],
    ['baseurl', 'baseUrl'],
    ['base', 'baseUrl'],
  ])('to %s is %s', (word, near) => {
    expect(nearest(word, KNOWN)).toBe(near);
  });

  test.each(['', 'l', 'lo', 'lab', 'url', 'production', 'local', 'x'.repeat(1_000_000)])(
    'to case %# does not exist: the word is known, ambiguous, or too different',
    (word) => {
      expect(nearest(word, KNOWN)).toBeUndefined();
    },
  );
});
