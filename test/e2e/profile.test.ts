import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Machine, newMachine } from './command.ts';
import { providerReply, record, type Served, serveHere } from './served.ts';

let served: Served;
beforeAll(async () => {
  served = await serveHere('--auto-approve', 'lead');
});

let own: Machine;
beforeEach(() => {
  own = newMachine();
});

/** Runs a command that must succeed. @returns what it prints with `--json` */
async function printed(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { exitCode, stdout, stderr } = await own.run(['--json', ...args], { env });
  if (exitCode !== 0) throw new Error(`${args.join(' ')} ended with ${exitCode}: ${stderr}`);
  return JSON.parse(stdout);
}

const addressesOf = (base: string, portal = `${base}/portal`, auth = `${base}/auth`) => [
  `baseUrl=${base}`,
  `portalUrl=${portal}`,
  `authUrl=${auth}`,
];
const config = () => readFileSync(join(own.config, 'config.json'), 'utf8');

describe('a deployment of one’s own', () => {
  test('is named, used, logged in to, and removed', async () => {
    const { base_url, portal_url, auth_url } = served.addresses;
    await printed(['profile', 'set', 'lab', ...addressesOf(`${base_url}/`, portal_url, auth_url)]);
    await printed(['profile', 'use', 'lab']);
    await printed(['login']);
    await printed(['project', 'use', 'demo']);
    await printed(['experiment', 'use', 'demo']);
    expect(await printed(['list'])).toEqual({ items: [] });
    const { profile, sources } = await printed(['profile', 'show']);
    expect(profile).toMatchObject({
      name: 'lab',
      baseUrl: base_url,
      project: expect.stringMatching(/^proj_/),
    });
    expect(sources).toMatchObject({ baseUrl: 'file', project: 'file', experiment: 'file', scope: 'default' });
    await printed(['logout']);
    await printed(['profile', 'remove', 'lab']);
    expect((await printed(['profile', 'show'])).profile.name).toBe('local');
    expect(config()).not.toContain(base_url);
  });
});

describe('row 5: plain http beyond loopback', () => {
  test('of an address: nothing arrives, and with insecure everything does, a login with its scope included', async () => {
    const provider = await record(
      ({ path }, url) =>
        providerReply(path, url.replace('127.0.0.1', '0.0.0.0')) ?? {
          json: { access_token: 'opaque', token_type: 'Bearer', expires_in: 600 },
        },
    );
    // This machine, by an address outside loopback.
    const plain = provider.url.replace('127.0.0.1', '0.0.0.0');
    const set = ['profile', 'set', 'lab', 'clientId=lab-client', 'scope=openid lab', ...addressesOf(plain)];
    expect((await own.run(set)).exitCode).toBe(2);
    const env = {
      SLICES_CONN_BASE_URL: plain,
      SLICES_CONN_PORTAL_URL: plain,
      SLICES_CONN_AUTH_URL: `${plain}/auth`,
    };
    expect((await own.run(['login'], { env })).exitCode).toBe(2);
    expect(provider.requests).toEqual([]);
    await printed([...set, 'insecure=true']);
    await printed(['--profile', 'lab', 'login']);
    const asked = provider.requests.find(({ path }) => path === '/auth/device');
    expect(Object.fromEntries(new URLSearchParams(asked?.body))).toEqual({
      client_id: 'lab-client',
      scope: 'openid lab',
    });
  });
});
