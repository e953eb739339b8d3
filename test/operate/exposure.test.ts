import { describe, expect, test } from 'vitest';
import { retyped } from '../../src/cli/command-line.ts';
import { Failure } from '../../src/contract/failure.ts';
import { allowedDangers, checkExposure } from '../../src/operate/exposure.ts';
import type { ServeSettings } from '../../src/operate/settings.ts';
import { commandLines } from '../fixtures/command-world.ts';

const typedAs = await commandLines();

const PLAIN: ServeSettings = {
  host: '127.0.0.1',
  port: 4280,
  ui: {},
  drain: 0,
  maxConnectionsPerAddress: 100,
  keep: 86_400_000,
  maxChanges: 10_000,
  projectsApiGroup: 'projects',
  experimentsApiGroup: 'experiments',
};
const TLS = { tls: { cert: 'cert.pem', key: 'key.pem' } };
const issuers = [{ issuer: 'https://login.example.org' }];
const ISSUER = { trust: { issuers } };
const TRUST = { trust: { issuers, audience: 'https://slices.example.org' } };
const BASE = { baseUrl: 'https://slices.example.org' };

/** The reason why settings are refused; undefined when they are accepted. */
function refusal(changes: Partial<ServeSettings>): Failure | undefined {
  try {
    checkExposure({ ...PLAIN, ...changes });
    return undefined;
  } catch (error) {
    if (error instanceof Failure && error.code === 'usage') return error;
    throw error;
  }
}

const USERS = /built-in users/;
const KEY = /--memory/;
const HTTP = /plain http/;
const NAME = /--base-url URL/;
const AUDIENCE = /--audience AUDIENCE/;
const ALL = [USERS, KEY, HTTP, NAME, AUDIENCE];

describe('row 42: on this machine alone all settings are accepted', () => {
  test.each<Partial<ServeSettings>>([
    {},
    { memory: true, autoApprove: 'lead' },
    { host: 'localhost' },
    { host: '::1' },
    { host: '127.8.9.10' },
    { host: '::ffff:127.0.0.1' },
    { host: 'conn.localhost' },
    { baseUrl: 'http://conn.localhost:4281/net' },
    TRUST,
    ISSUER,
    { ...TLS, memory: true },
  ])('%j', (changes) => {
    expect(refusal(changes)).toBeUndefined();
    expect(allowedDangers({ ...PLAIN, ...changes, insecureBuiltInUsers: true, insecureHttp: true })).toEqual(
      [],
    );
  });
});

describe('row 42: a server that others can reach needs users, a stored key, TLS and a name', () => {
  test.each<[string, Partial<ServeSettings>, RegExp[]]>([
    ['nothing of it', { host: '0.0.0.0', memory: true }, [USERS, KEY, HTTP, NAME]],
    ['row 50: no audience', { host: '0.0.0.0', ...ISSUER, ...TLS, ...BASE }, [AUDIENCE]],
    ['row 50: no audience, behind a proxy', { ...ISSUER, behindProxy: true, ...BASE }, [AUDIENCE]],
    ['all of it', { host: '0.0.0.0', ...TRUST, ...TLS, ...BASE }, []],
    ['a proxy in place of TLS', { host: '0.0.0.0', ...TRUST, behindProxy: true, ...BASE }, []],
    ['a proxy on this machine', { ...TRUST, behindProxy: true, ...BASE }, []],
    ['PostgreSQL', { host: '::', ...TRUST, ...TLS, ...BASE, database: 'postgres://x@y/z' }, []],
    ['an address of its own', { host: '192.0.2.1', ...TRUST, ...TLS }, []],
    ['built-in users', { host: '192.0.2.1', ...TLS }, [USERS]],
    ['built-in users behind a proxy', { behindProxy: true, ...BASE }, [USERS]],
    ['built-in users by its name alone', { baseUrl: 'http://slices.example.org' }, [USERS, HTTP]],
    ['a key that is thrown away', { host: '192.0.2.1', ...TRUST, ...TLS, memory: true }, [KEY]],
    ['plain http', { host: '192.0.2.1', ...TRUST }, [HTTP]],
    ['no name: 0.0.0.0', { host: '0.0.0.0', ...TRUST, ...TLS }, [NAME]],
    ['no name: 0', { host: '0', ...TRUST, ...TLS }, [NAME]],
    ['no name: ::', { host: '::', ...TRUST, ...TLS }, [NAME]],
    ['no name: 0::0', { host: '0::0', ...TRUST, ...TLS }, [NAME]],
    ['what only begins like loopback', { host: '127.0.0.1.example.org' }, [USERS, HTTP]],
    ['another address in another family’s words', { host: '::ffff:192.0.2.1' }, [USERS, HTTP]],
  ])('%s', (_, changes, due) => {
    const failure = refusal(changes);
    expect(failure !== undefined).toBe(due.length > 0);
    const why = String(failure?.facts.why);
    for (const danger of ALL) {
      const named = due.includes(danger);
      expect([danger, danger.test(why)]).toEqual([danger, named]);
    }
  });

  test.each<[string, Partial<ServeSettings>, RegExp]>([
    ['--insecure-built-in-users', { insecureBuiltInUsers: true }, USERS],
    ['--insecure-http', { insecureHttp: true }, HTTP],
  ])('%s allows only that risk', (flag, allowed, danger) => {
    const host = { host: '192.0.2.1', memory: true };
    expect(refusal(host)?.facts.why).toContain(flag);
    const why = String(refusal({ ...host, ...allowed })?.facts.why);
    expect(why).not.toContain(flag);
    for (const other of [USERS, KEY, HTTP]) expect(other.test(why)).toBe(other !== danger);
  });

  test('row 50: --any-audience accepts tokens for any audience, and a warning says so', () => {
    const settings = { host: '192.0.2.1', ...ISSUER, ...TLS, ...BASE };
    expect(refusal(settings)?.facts.why).toContain('--any-audience');
    expect(refusal({ ...settings, anyAudience: true })).toBeUndefined();
    expect(allowedDangers({ ...PLAIN, ...settings, anyAudience: true })).toEqual([
      'Tokens are taken whatever service they were issued for.',
    ]);
  });

  test('with all --insecure flags it starts, and warns about each risk', () => {
    const changes = {
      host: '192.0.2.1',
      baseUrl: 'http://slices.example.org',
      insecureBuiltInUsers: true,
      insecureHttp: true,
    };
    expect(refusal(changes)).toBeUndefined();
    expect(refusal({ ...changes, memory: true })?.facts.why).toMatch(KEY);
    const notices = allowedDangers({ ...PLAIN, ...changes });
    expect(notices).toHaveLength(2);
    for (const [index, danger] of [USERS, HTTP].entries()) expect(notices[index]).toMatch(danger);
    expect(allowedDangers({ ...PLAIN, ...changes, ...TLS })).toHaveLength(1);
  });

  test('--auto-approve is refused with all --insecure flags too', () => {
    const changes = {
      host: '192.0.2.1',
      ...TLS,
      autoApprove: 'lead',
      insecureBuiltInUsers: true,
    } as const;
    expect(refusal(changes)?.facts.why).toMatch(/--auto-approve/);
  });
});

describe('the next step is the typed command, with other flags', () => {
  const TYPED = "serve --name 'my lab'";
  test.each<[string, Partial<ServeSettings>, string]>([
    ['--host 0.0.0.0 --memory', { host: '0.0.0.0', memory: true }, '--host 127.0.0.1 --memory'],
    [
      '--base-url http://a.example.org --auto-approve lead',
      { baseUrl: 'http://a.example.org', autoApprove: 'lead' },
      '--auto-approve lead --host 127.0.0.1',
    ],
    [
      '--trust https://login.example.org=user --host 192.0.2.1 --max-live 3',
      { host: '192.0.2.1', ...TRUST },
      '--trust https://login.example.org=user --host 192.0.2.1 --max-live 3 --base-url https://slices.example.org --tls-cert cert.pem --tls-key key.pem',
    ],
    [
      "--behind-proxy --base-url https://a.example.org --data 'my data' --directory a.json",
      { behindProxy: true, baseUrl: 'https://a.example.org', data: 'my data' },
      "--behind-proxy --base-url https://a.example.org --data 'my data' --trust https://login.example.org --audience https://a.example.org",
    ],
    [
      '--memory --host :: --tls-cert c --tls-key k --any-audience --trust https://login.example.org',
      { host: '::', ...ISSUER, anyAudience: true, memory: true, ...TLS },
      '--host :: --tls-cert c --tls-key k --any-audience --trust https://login.example.org --base-url https://slices.example.org',
    ],
  ])('%s', (typed, changes, advised) => {
    const { fix } = refusal(changes)?.facts ?? {};
    const words = [...`${TYPED} ${typed}`.matchAll(/'([^']*)'|(\S+)/g)].map(
      ([, quoted, plain]) => quoted ?? plain ?? '',
    );
    expect(typeof fix === 'object' && retyped(typedAs(words), fix)).toBe(`slices-conn ${TYPED} ${advised}`);
  });
});

describe('impossible addresses', () => {
  test.each<[string, Partial<ServeSettings>, RegExp]>([
    ['an empty host', { host: '', ...TRUST, ...TLS, ...BASE }, /empty/],
    ['http over TLS', { ...TLS, baseUrl: 'http://127.0.0.1:4280' }, /not https/],
    [
      'http behind a proxy',
      { behindProxy: true, ...TRUST, baseUrl: 'http://slices.example.org' },
      /not https/,
    ],
    ['a proxy without a name', { behindProxy: true, ...TRUST }, /needs --base-url/],
  ])('%s', (_, changes, says) => {
    expect(refusal(changes)?.message).toMatch(says);
  });
});
