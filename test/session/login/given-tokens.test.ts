import { describe, expect, test } from 'vitest';
import { Failure, type FailureCode, type FailureFacts } from '../../../src/contract/failure.ts';
import { Secret } from '../../../src/contract/secret.ts';
import { type TakenToken, tokenExplained } from '../../../src/session/login/given-tokens.ts';
import { commandToken, givenToken, type TokenVariable } from '../../../src/session/login/token-source.ts';
import { IDS, ISSUER, NOW, SECONDS } from '../../fixtures/tokens.ts';

/** A token of which only the claims are read. */
function jwt(sub: string, claims: object = {}): string {
  const all = { iss: ISSUER, sub, exp: SECONDS - 10_800, ...claims };
  return `e30.${Buffer.from(JSON.stringify(all)).toString('base64url')}.c2ln`;
}

const [USER, EXPERIMENT] = [jwt(IDS.user), jwt(IDS.experiment, { exp: SECONDS + 60 })];

function taken(kind: TakenToken['kind'], text: string, name?: `${TokenVariable}${'' | '_FILE'}`): TakenToken {
  const variable = name?.replace(/_FILE$/, '') as TokenVariable | undefined;
  const source =
    name && variable && givenToken({ [name]: name === variable ? text : '/run/token' }, variable);
  return { kind, source: source || commandToken(['give', 'it'], {}, {}), token: new Secret(text) };
}

function explained(
  tokens: readonly TakenToken[],
  facts: FailureFacts = {},
  code: FailureCode = 'token_invalid',
) {
  const failure = tokenExplained(new Failure(code, 'No.', facts), tokens, NOW) as Failure;
  return [String(failure.facts.why), failure.facts.fix];
}

describe('a refused token that was given', () => {
  test.each<[string, TakenToken, string, string]>([
    [
      'and has expired: since when',
      taken('user', USER, 'SLICES_CONN_USER_TOKEN'),
      `SLICES_CONN_USER_TOKEN holds a user token (a JWT) of ${ISSUER}. It expired 3 h ago (2026-11-01T09:00:00.000Z). Put a new one there, or unset it.`,
      'unset SLICES_CONN_USER_TOKEN && slices-conn login',
    ],
    [
      'in a file, and is of another kind',
      taken('user', EXPERIMENT, 'SLICES_CONN_USER_TOKEN_FILE'),
      `The file /run/token that SLICES_CONN_USER_TOKEN_FILE names holds an experiment token (a JWT) of ${ISSUER}. It must be a user token. Put a new one there, or unset it.`,
      'unset SLICES_CONN_USER_TOKEN_FILE && slices-conn login',
    ],
    [
      'and is none',
      taken('experiment', 'canary', 'SLICES_CONN_EXPERIMENT_TOKEN'),
      'SLICES_CONN_EXPERIMENT_TOKEN holds a text that is not a JWT. It must be an experiment token. Put a new one there, or unset it.',
      'unset SLICES_CONN_EXPERIMENT_TOKEN',
    ],
    [
      'for a refresh token',
      taken('user', jwt('x', { iss: 'no address' }), 'SLICES_CONN_REFRESH_TOKEN'),
      'The refresh token in SLICES_CONN_REFRESH_TOKEN was exchanged for a JWT of no user, project or experiment. It expired 3 h ago (2026-11-01T09:00:00.000Z).',
      'slices-conn login --ci',
    ],
    [
      'by a program',
      taken('experiment', EXPERIMENT),
      `The program give it gave an experiment token (a JWT) of ${ISSUER}.`,
      'give it',
    ],
  ])('%s', (_, one, why, fix) => {
    expect(explained([one])).toEqual([why, fix]);
    expect(why).not.toContain('e30');
  });

  test('of two, is the one that the service names', () => {
    const both = [
      taken('user', USER, 'SLICES_CONN_USER_TOKEN'),
      taken('experiment', EXPERIMENT, 'SLICES_CONN_EXPERIMENT_TOKEN'),
    ];
    const details = [{ loc: [], msg: '', type: '', facts: { token: 'experiment' } }];
    expect(explained(both, { details })[1]).toBe('unset SLICES_CONN_EXPERIMENT_TOKEN');
    expect(explained(both, { why: 'As it says.' })[0]).toMatch(
      /^As it says\. SLICES_CONN_USER_TOKEN .*EXPERIMENT/,
    );
  });

  test.each<[string, FailureFacts]>([
    ['nothing', {}],
    ['the kind of both', { details: [{ loc: [], msg: '', type: '', facts: { token: 'user' } }] }],
  ])('of two, is the one in the place of another kind where the service names %s', (_, facts) => {
    const both = [
      taken('user', USER, 'SLICES_CONN_USER_TOKEN'),
      taken('experiment', USER, 'SLICES_CONN_EXPERIMENT_TOKEN'),
    ];
    const [why, fix] = explained(both, facts, 'token_missing');
    expect(fix).toBe('unset SLICES_CONN_EXPERIMENT_TOKEN');
    expect(why).toMatch(
      /^SLICES_CONN_EXPERIMENT_TOKEN holds a user token .*It must be an experiment token\./,
    );
  });

  test('of a CI login is refused for its scope: no other CI login has it', () => {
    const one = taken('user', USER, 'SLICES_CONN_REFRESH_TOKEN');
    expect(explained([one], { fix: 'slices-conn login' }, 'scope_missing')[1]).toBeUndefined();
  });

  test('is explained where no token was had at all', () => {
    const { token: _, ...one } = taken('user', USER, 'SLICES_CONN_USER_TOKEN');
    expect(explained([one], { why: 'It has other characters.' })).toEqual([
      'It has other characters.',
      'unset SLICES_CONN_USER_TOKEN && slices-conn login',
    ]);
  });

  test.each<[string, readonly TakenToken[], FailureCode]>([
    ['another failure', [taken('user', USER, 'SLICES_CONN_USER_TOKEN')], 'network'],
    [
      'a login',
      [{ ...taken('user', USER), source: { origin: 'login', where: '', get: async () => new Secret('') } }],
      'token_expired',
    ],
  ])('says nothing of %s', (_, tokens, code) => {
    expect(explained(tokens, { fix: 'slices-conn login' }, code)).toEqual(['undefined', 'slices-conn login']);
  });
});
