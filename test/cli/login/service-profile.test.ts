import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Failure } from '../../../src/contract/failure.ts';
import { Secret } from '../../../src/contract/secret.ts';
import type { Connection } from '../../../src/session/login/connection.ts';
import { commandWorld, NO_ENVIRONMENT } from '../../fixtures/command-world.ts';
import { temporaryFolder } from '../../fixtures/temporary-folder.ts';
import { NOW } from '../../fixtures/tokens.ts';

const NAMED = {
  resource: 'https://conn.example.org',
  authorization_servers: ['https://auth.example.org'],
  portal_url: 'https://portal.example.org',
};
const KEPT = {
  baseUrl: 'https://conn.example.org',
  portalUrl: 'https://portal.example.org',
  authUrl: 'https://auth.example.org',
  clientId: 'slices-conn',
  apiGroups: 'projects,experiments',
};

/** A machine without profiles, and a service that names what `metadata` says. */
function machine(metadata: { now: object | undefined }, variables: Record<string, string> = {}) {
  const config = temporaryFolder();
  const started: string[] = [];
  const asked: string[] = [];
  const accessToken = new Secret('access');
  const tokens = { accessToken, refreshToken: undefined, expiresAt: undefined };
  /** What goes wrong. */
  const faults: { login?: Failure | undefined } = {};
  const kept = (): object => {
    const file = join(config, 'config.json');
    return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  };
  const connection: Connection = {
    fetch: async ({ url }) => {
      const isAsked = url.endsWith('/.well-known/oauth-protected-resource') && metadata.now !== undefined;
      return isAsked ? Response.json(metadata.now) : new Response(null, { status: 404 });
    },
    userToken: { origin: 'login', where: 'a test', get: async () => accessToken },
    login: {
      path: '/nowhere',
      startLogin: async () => {
        started.push('login');
        return {
          ...{ userCode: 'BCDF-GHJK', verificationUri: 'https://auth.example.org/device', expiresAt: NOW },
          verificationUriComplete: undefined,
          wait: async () => {
            if (faults.login) throw faults.login;
            return tokens;
          },
        };
      },
      keep: async () => undefined,
      read: () => {
        const times = { issuedAt: NOW, loggedInAt: NOW, expiresAt: NOW + 600_000 };
        return { accessToken, ...times, portalTokens: {} };
      },
      end: async () => ({}),
    },
    close: async () => undefined,
  };
  const world = commandWorld(connection, { folders: { ...NO_ENVIRONMENT.folders, config }, variables });
  const run = (...args: string[]) => world.run('login', ...args);
  /** On a terminal, where a person answers so. */
  const answered = (answer: string | undefined, ...args: string[]) => {
    const ask = async (question: string): Promise<string | undefined> => {
      asked.push(question);
      return answer;
    };
    return world.runIn({ ask }, 'login', ...args);
  };
  return { started, asked, faults, run, answered, kept };
}
const NEW = { profile: 'conn.example.org', profiles: { 'conn.example.org': KEPT } };

describe('login ADDRESS', () => {
  test.each(['', 'y', 'yes'])('shows what the service names, and %j keeps it', async (answer) => {
    const { answered, asked, kept, started } = machine({ now: NAMED });
    const { exitCode, stderr } = await answered(answer, 'conn.example.org');
    expect(stderr).toContain(
      'conn.example.org names its portal and its identity provider:\n  portal             https://portal.example.org\n  identity provider  https://auth.example.org\n',
    );
    expect(asked[0]).toMatch(/^Save them as the profile conn\.example\.org, .*\[Y\/n\] $/);
    expect([exitCode, kept(), started]).toEqual([0, NEW, ['login']]);
  });

  test.each(['n', 'x', undefined])('keeps nothing, and logs nobody in, after %j', async (answer) => {
    const { answered, kept, started } = machine({ now: NAMED });
    const { exitCode } = await answered(answer, 'conn.example.org');
    expect([exitCode, kept(), started]).toEqual([0, {}, []]);
  });

  test('without a terminal needs --yes, and shows what it would keep', async () => {
    const { kept, run, started } = machine({ now: NAMED });
    const refused = await run('conn.example.org');
    expect(refused.stderr).toContain('https://auth.example.org');
    expect([refused.exitCode, kept(), started]).toEqual([2, {}, []]);
    expect((await run('conn.example.org', '--yes')).exitCode).toBe(0);
    expect([kept(), started]).toEqual([NEW, ['login']]);
  });

  test('switches to the profile when the login there has succeeded, and not before', async () => {
    const { answered, asked, faults, kept, run } = machine({ now: NAMED });
    faults.login = new Failure('login_denied', 'The login was denied.', { fix: 'slices-conn login' });
    const denied = await run('conn.example.org', '--yes');
    expect([denied.exitCode, kept()]).toEqual([5, { profiles: NEW.profiles }]);
    expect(denied.stderr).toContain('slices-conn login conn.example.org --yes\n');
    const unused = 'Profile conn.example.org is saved, and not in use: until you have logged in there,';
    expect(denied.stderr).toContain(`${unused} commands use profile local.`);
    faults.login = undefined;
    expect((await answered('n', 'conn.example.org')).stderr).toMatch(
      /as a user is kept here\.\n.*You stay logged in\./s,
    );
    expect([asked, kept()]).toEqual([['Log in again? [Y/n] '], { profiles: NEW.profiles }]);
    expect(await answered('n', 'conn.example.org', '--force')).toMatchObject({ exitCode: 0 });
    expect([asked.length, kept()]).toEqual([1, NEW]);
  });

  test('takes the profile that is there: what the service names later is told, and changes nothing (THREATS.md 148)', async () => {
    const metadata: { now: object | undefined } = { now: NAMED };
    const { kept, run, started } = machine(metadata);
    await run('conn.example.org', '--yes');
    expect((await run('conn.example.org')).stderr).not.toContain('warning');
    metadata.now = { ...NAMED, authorization_servers: ['https://evil.example.com'] };
    const { exitCode, stderr } = await run('conn.example.org', '--yes');
    expect(stderr).toContain('warning: conn.example.org now names other services');
    expect(stderr).toContain('profile set conn.example.org authUrl=https://evil.example.com');
    metadata.now = undefined;
    expect((await run('conn.example.org')).exitCode).toBe(0);
    expect([exitCode, kept(), started]).toEqual([0, NEW, ['login', 'login', 'login', 'login']]);
  });

  test.each<[string[], Record<string, string>]>([
    [['--profile', 'local'], {}],
    [['--offline'], {}],
    [[], { SLICES_CONN_AUTH_URL: 'https://x.org' }],
  ])('is refused where %j and %j choose other services: 2', async (flags, variables) => {
    const { kept, run, started } = machine({ now: NAMED }, variables);
    const { exitCode } = await run('conn.example.org', ...flags, '--yes');
    expect([exitCode, kept(), started]).toEqual([2, {}, []]);
  });

  test('is refused where a profile of that name is for another service: 2', async () => {
    const [resource, name] = ['http://localhost:1', 'localhost:1'];
    const named = { resource, portal_url: resource, authorization_servers: [resource] };
    const { kept, run, started } = machine({ now: named });
    expect((await run(name, '--yes')).exitCode).toBe(0);
    const { exitCode, stderr } = await run(`https://${name}`, '--yes');
    expect([exitCode, started]).toEqual([2, ['login']]);
    expect(stderr).toContain('slices-conn login --profile localhost:1');
    expect(kept()).toMatchObject({ profiles: { [name]: { baseUrl: resource } } });
  });

  test('of a service without metadata: 3, with the values to ask for', async () => {
    const { kept, run, started } = machine({ now: undefined });
    const { exitCode, stderr } = await run('conn.example.org', '--yes');
    expect(stderr).toMatch(/baseUrl +.*\n +portalUrl +.*\n +authUrl +.*\n +clientId /);
    expect([exitCode, kept(), started]).toEqual([3, {}, []]);
  });
});
