import { Option } from 'commander';
import { expect, test } from 'vitest';
import { Failure } from '../../src/contract/failure.ts';
import { SERVER_OPTIONS, type ServeOptions } from '../../src/operate/options.ts';
import { readSettings } from '../../src/operate/settings.ts';

test('every flag is declared under the name of its value', () => {
  for (const table of Object.values(SERVER_OPTIONS)) {
    for (const [name, { flags }] of Object.entries(table)) {
      expect(new Option(flags).attributeName()).toBe(name);
    }
  }
});

const PLAIN: ServeOptions = {
  host: '127.0.0.1',
  port: 0,
  drain: 0,
  maxConnectionsPerAddress: 100,
  keep: 90_000_000,
  maxChanges: 10_000,
  projectsApiGroup: 'projects',
  experimentsApiGroup: 'experiments',
};

test('a value without a parser is passed on unchanged', () => {
  expect(readSettings({ ...PLAIN, maxLive: 3, topology: 'a.json' })).toEqual({
    ...PLAIN,
    ui: {},
    maxLive: 3,
    topologyFile: 'a.json',
  });
});

test.each<[string, Partial<ServeOptions>, Partial<ReturnType<typeof readSettings>>]>([
  [
    'an issuer with kinds',
    { trust: ['https://a.example.org', 'https://b.example.org=project,experiment'] },
    {
      trust: {
        issuers: [
          { issuer: 'https://a.example.org' },
          { issuer: 'https://b.example.org', kinds: ['project', 'experiment'] },
        ],
      },
    },
  ],
  [
    'CIs, one with an address of its own',
    { ciIssuer: ['github', 'gitlab=https://gitlab.example.org/'] },
    {
      ciIssuers: {
        github: 'https://token.actions.githubusercontent.com',
        gitlab: 'https://gitlab.example.org',
      },
    },
  ],
  ['a port for metrics', { metrics: '9464' }, { metricsPlace: { host: '127.0.0.1', port: 9464 } }],
  ['an IPv6 address for metrics', { metrics: '[::1]:0' }, { metricsPlace: { host: '::1', port: 0 } }],
  ['a server without the page', { ui: false }, { ui: false }],
  [
    'a client of the page',
    { trust: ['https://a.example.org'], uiClientId: 'page' },
    { ui: { clientId: 'page' } },
  ],
  ['a certificate', { tlsCert: 'c', tlsKey: 'k' }, { tls: { cert: 'c', key: 'k' } }],
  ['a slash at the end', { baseUrl: 'https://a.example.org/' }, { baseUrl: 'https://a.example.org' }],
])('%s is read', (_, options, settings) => {
  expect(readSettings({ ...PLAIN, ...options })).toMatchObject(settings);
});

test.each<[string, Partial<ServeOptions>, RegExp]>([
  ['a user to approve who does not exist', { autoApprove: 'alice' }, /no user "alice"/],
  ['an audience without issuers', { audience: 'x' }, /^--audience needs --trust\.$/],
  ['a client of the page without issuers', { uiClientId: 'x' }, /^--ui-client-id needs --trust\.$/],
  ['any audience without issuers', { anyAudience: true }, /^--any-audience needs --trust\.$/],
  ['a name that is not one part of an address', { projectsApiGroup: 'a/b' }, /^--projects-api-group /],
  ['a certificate without its key', { tlsCert: 'c' }, /^--tls-key is missing\.$/],
  ...['?x', '?', '#x'].map((end): [string, Partial<ServeOptions>, RegExp] => [
    `an address that ends with ${end}`,
    { baseUrl: `https://a.example.org${end}` },
    /base address/,
  ]),
  ['an address with a password', { baseUrl: 'http://:pw@a.example.org' }, /base address/],
  ['an administrator who is not a user', { administrator: ['exp_h_1'] }, /administrator/],
  ['no issuer for user tokens', { trust: ['https://a.example.org=project,experiment'] }, /user tokens/],
  ['a kind that does not exist', { trust: ['https://a.example.org=service'] }, /does not exist/],
  ['row 162: a CI over plain http', { ciIssuer: ['gitlab=http://gitlab.example.org'] }, /can be trusted/],
  ['a CI that is not known', { ciIssuer: ['jenkins'] }, /^--ci-issuer jenkins /],
  ['a CI twice', { ciIssuer: ['github', 'github=https://ghe.example.org'] }, /^--ci-issuer github=/],
  ['metrics at an address that is not one', { metrics: '99999' }, /metrics/],
])('%s is refused', (_, options, message) => {
  const failed = (): unknown => {
    try {
      return readSettings({ ...PLAIN, ...options });
    } catch (error) {
      return error;
    }
  };
  const failure = failed();
  expect(failure).toBeInstanceOf(Failure);
  expect(failure).toMatchObject({ code: 'usage', message: expect.stringMatching(message) });
});
