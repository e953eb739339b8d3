import { describe, expect, test } from 'vitest';
import { Failure } from '../../../src/contract/failure.ts';
import { Secret } from '../../../src/contract/secret.ts';
import type { Connection } from '../../../src/session/login/connection.ts';
import { type ExperimentOptions, Experiments } from '../../../src/session/login/experiment-access.ts';
import type { PortalTokens } from '../../../src/session/login/login-tokens.ts';
import type { Placeholders } from '../../../src/session/login/token-source.ts';
import { claimsOf, IDS, makeKey, makeToken, NOW } from '../../fixtures/tokens.ts';

const key = makeKey('ES256');
const GIVEN = 'exp_portal.example.org_given';
const OTHER_PROJECT = 'proj_portal.example.org_other';
const [ONE, TWO] = [IDS.experiment, 'exp_portal.example.org_two'] as const;
const THREE = 'exp_portal.example.org_three';
const tokenOf = (sub: string, name: string) => makeToken(key, claimsOf('experiment', { sub, name }));

/** A portal with these experiments, and the requests that it got. */
function portalWith(names: Readonly<Record<string, string>>) {
  const asked: string[] = [];
  const portal: ExperimentOptions['portal'] = {
    async projects() {
      asked.push('projects');
      return [{ id: OTHER_PROJECT, name: 'other', role: 'lead', expires_at: '' } as never];
    },
    async experiments() {
      asked.push('experiments');
      const made = { role: 'lead', expires_at: '2027-01-30T12:00:00Z' } as const;
      return Object.entries(names).map(([id, name]) => {
        const project_id = id === THREE ? OTHER_PROJECT : IDS.project;
        return { id, name, project_id, ...made } as never;
      });
    },
    async experimentToken(id) {
      asked.push(`token ${id}`);
      return tokenOf(id, names[id] ?? '');
    },
  };
  return { portal, asked };
}

function keptTokens(tokens: Readonly<Record<string, string>>): PortalTokens & { readonly kept: string[] } {
  const all = new Map(Object.entries(tokens).map(([id, token]) => [id, new Secret(token)]));
  const kept: string[] = [];
  return { kept, all: () => all, read: (id) => all.get(id), keep: async (id) => void kept.push(id) };
}

const given = {
  origin: 'environment',
  where: 'VAR',
  get: async () => new Secret(tokenOf(GIVEN, 'ci')),
} as const;

/** What differs from a profile that names no experiment, and a connection that gives no token. */
type Changes = Omit<Partial<ExperimentOptions>, 'profile' | 'connection'> & {
  wanted?: string;
  preferred?: string;
  given?: Connection['experimentToken'];
  tokenFrom?: Connection['experimentTokenFrom'];
  kept?: PortalTokens;
  /** The words of the profile's command that have places. */
  places?: readonly string[];
};

async function access(
  { preferred, given, tokenFrom, kept, places, wanted, ...changes }: Changes,
  names: Readonly<Record<string, string>> = { [ONE]: 'one', [TWO]: 'two' },
) {
  const { portal, asked } = portalWith(names);
  const { token, ...found } = await new Experiments({
    portal,
    profile: {
      experiment: preferred,
      portalUrl: 'https://portal.example.org',
      experimentTokenCommand: places,
    },
    connection: { experimentToken: given, experimentTokenFrom: tokenFrom, portalTokens: kept },
    now: () => NOW,
    ...changes,
  }).access(wanted);
  return { ...found, token: token.reveal(), asked };
}

const LISTED = 'experiments';
const inTwo = { [ONE]: 'one', [TWO]: 'two', [THREE]: 'three' };
const of = (project: string, options: Changes): Changes => ({ project, ...options });

describe('the choice of the experiment, and the requests to the portal', () => {
  test.each<[string, Changes, string, string[]]>([
    ['the flag, by name', { wanted: 'two', preferred: 'one' }, TWO, [LISTED, `token ${TWO}`]],
    ['the flag, by id', { wanted: TWO, preferred: 'one' }, TWO, [LISTED, `token ${TWO}`]],
    ['the profile', { preferred: 'one' }, ONE, [LISTED, `token ${ONE}`]],
    ['a given token before the profile', { given, preferred: 'one' }, GIVEN, []],
    ['a given token that the flag means by id', { given, wanted: GIVEN }, GIVEN, []],
    ['a given token that the flag means by name', { given, wanted: 'ci' }, GIVEN, []],
    ['the flag before a given token', { given, wanted: 'one' }, ONE, [LISTED, `token ${ONE}`]],
    // Of a project that the command names.
    [
      'its only one, before the profile',
      of('other', { preferred: 'one' }),
      THREE,
      [LISTED, 'projects', `token ${THREE}`],
    ],
    [
      "the profile's, where it is one of it",
      of('other', { preferred: THREE }),
      THREE,
      [LISTED, 'projects', `token ${THREE}`],
    ],
    ['one of another by its id', of('other', { wanted: ONE }), ONE, [LISTED, `token ${ONE}`]],
  ])('%s', async (_, options, id, asked) => {
    const found = await access(options, options.project === undefined ? undefined : inTwo);
    expect(found).toMatchObject({ id, asked, origin: asked.length === 0 ? 'environment' : 'portal' });
  });

  test('a name of another project than the command names is not found', async () => {
    await expect(access({ project: 'other', wanted: 'one' }, inTwo)).rejects.toMatchObject({
      code: 'not_found',
      message: 'You have no experiment one in the project other.',
    });
  });

  test('a given token of another kind is refused before anything is sent: a service would take it', async () => {
    const user = { ...given, get: async () => new Secret(makeToken(key, claimsOf('user'))) };
    await expect(access({ given: user })).rejects.toMatchObject({ code: 'token_invalid' });
  });

  test('a given opaque token is used when no experiment is named', async () => {
    const opaque = { ...given, get: async () => new Secret('opaque') };
    expect(await access({ given: opaque })).toMatchObject({ id: undefined, name: undefined, asked: [] });
  });
});

describe('the profile’s command', () => {
  let placed: Placeholders | undefined;
  const tokenFrom: Connection['experimentTokenFrom'] = ({ experiment, project }) => ({
    origin: 'command',
    where: 'program',
    get: async () => {
      placed = { experiment, project };
      const isId = experiment?.startsWith('exp_') === true;
      const [sub, name] = isId ? [experiment, 'one'] : [`exp_portal.example.org_${experiment}`, experiment];
      return new Secret(tokenOf(sub, name ?? ''));
    },
  });

  test('gets the named experiment without a request to the portal', async () => {
    const found = await access({ tokenFrom, wanted: 'mine', preferred: 'one', project: 'p' });
    expect(found).toMatchObject({
      id: 'exp_portal.example.org_mine',
      name: 'mine',
      origin: 'command',
      where: 'program',
      asked: [],
    });
    expect(placed).toEqual({ experiment: 'mine', project: 'p' });
  });

  test('gets the id of the only active experiment when none is named', async () => {
    const found = await access({ tokenFrom }, { [ONE]: 'one' });
    expect(found).toMatchObject({ id: ONE, asked: [LISTED] });
  });

  test('needs a name at a portal without experiments', async () => {
    const { portal } = portalWith({});
    const without = { ...portal, experiments: () => Promise.reject(new Failure('not_supported', 'None.')) };
    expect(await access({ tokenFrom, portal: without, wanted: 'mine' })).toMatchObject({ origin: 'command' });
    await expect(access({ tokenFrom, portal: without })).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringContaining('--experiment'),
    });
  });

  test.each<[string, Changes, string, string[]]>([
    ['the chosen one', { wanted: 'one', project: 'p' }, 'p', []],
    ["the named experiment's", { wanted: 'one' }, IDS.project, [LISTED]],
    ["the only experiment's", {}, IDS.project, [LISTED, LISTED]],
  ])('gets the project, where it needs one: %s', async (_, options, project, asked) => {
    const found = await access({ tokenFrom, places: ['give', '{project}'], ...options }, { [ONE]: 'one' });
    expect([placed?.project, found.asked]).toEqual([project, asked]);
  });

  test.each<[string, string | undefined, string, string, boolean]>([
    ['the name asked for', 'one', TWO, 'one', true],
    ['another name', 'one', ONE, 'two', false],
    ['the id asked for, under another name', ONE, ONE, 'two', true],
    ['another id, under the same name', ONE, TWO, 'one', false],
    ['another id than the only active one', undefined, TWO, 'one', false],
  ])('gives a token with %s', async (_, wanted, sub, name, isTaken) => {
    const get = async () => new Secret(tokenOf(sub, name));
    const other = () => ({ origin: 'command', where: 'program', get }) as const;
    const given = access({ tokenFrom: other, wanted }, { [ONE]: 'one' });
    if (isTaken) await expect(given).resolves.toMatchObject({ id: sub, name });
    else
      await expect(given).rejects.toMatchObject({
        code: 'unverified',
        message: expect.stringContaining(wanted ?? ONE),
        facts: { why: expect.stringContaining(`${name} (${sub})`) },
      });
  });

  test('gives a token that claims nothing, which is passed on', async () => {
    const opaque = () =>
      ({ origin: 'command', where: 'program', get: async () => new Secret('opaque') }) as const;
    expect(await access({ tokenFrom: opaque, wanted: 'one' })).toMatchObject({ id: undefined });
  });

  test('is not run when a token is given', async () => {
    expect(await access({ tokenFrom, given })).toMatchObject({ id: GIVEN, origin: 'environment' });
  });
});

describe('an earlier token of the portal', () => {
  test('is used without a request when the experiment is named by id', async () => {
    const kept = keptTokens({ [ONE]: tokenOf(ONE, 'one') });
    const found = await access({ kept, preferred: ONE });
    expect(found).toMatchObject({
      id: ONE,
      name: 'one',
      origin: 'portal',
      token: tokenOfKept(kept),
      asked: [],
    });
  });

  test('is used when the list has resolved the name', async () => {
    const kept = keptTokens({ [ONE]: tokenOf(ONE, 'one') });
    expect(await access({ kept, wanted: 'one' })).toMatchObject({ id: ONE, asked: [LISTED] });
    expect(kept.kept).toEqual([]);
  });

  test('is requested and kept when this experiment has none yet', async () => {
    const kept = keptTokens({ [ONE]: tokenOf(ONE, 'one') });
    expect(await access({ kept, wanted: TWO })).toMatchObject({ id: TWO, asked: [LISTED, `token ${TWO}`] });
    expect(kept.kept).toEqual([TWO]);
  });

  function tokenOfKept(kept: PortalTokens): string | undefined {
    return kept.read(ONE)?.reveal();
  }
});
