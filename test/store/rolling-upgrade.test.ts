import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Client, type PoolClient } from 'pg';
import { describe, expect, test } from 'vitest';
import type { CiRule } from '../../src/server/identity/ci-rules.ts';
import { statementsOf } from '../../src/store/postgres/statements.ts';
import type { Stores } from '../../src/store/stores.ts';
import { openStores } from '../../src/store/stores.ts';
import { usePostgres } from '../fixtures/postgres.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { changeLink, oneHop } from './one-link.ts';

const postgres = usePostgres();
const folder = temporaryFolder();

/** Adds a column to every table, as the migration of a newer server may, past the servers that run. */
const ENGINES = [
  {
    name: 'SQLite',
    database: async () => join(folder, 'server.sqlite'),
    async upgrade(path: string): Promise<number> {
      const database = new DatabaseSync(path);
      const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
      for (const { name } of tables) database.exec(`ALTER TABLE ${name} ADD COLUMN added_later TEXT`);
      database.close();
      return tables.length;
    },
  },
  {
    name: 'PostgreSQL',
    database: () => postgres.database(),
    async upgrade(url: string): Promise<number> {
      const tables = await postgres.ask(
        url,
        "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'",
      );
      for (const { name } of tables)
        await postgres.ask(url, `ALTER TABLE ${name} ADD COLUMN added_later TEXT`);
      return tables.length;
    },
  },
];

test.each(ENGINES)(
  'on $name a server goes on though another one adds a column to every table',
  async (engine) => {
    const database = await engine.database();
    const stores = await openStores(database);
    try {
      await useAll(stores, 'before');
      expect(await engine.upgrade(database)).toBeGreaterThan(10);
      await useAll(stores, 'after');
    } finally {
      await stores.close();
    }
  },
);

/** Uses every function of the stores, once or more. */
async function useAll(stores: Stores, run: string): Promise<void> {
  const {
    reservations,
    directory,
    identityRecords: identity,
    keys,
    owners,
    pageSessions: sessions,
    ciRules: rules,
  } = stores;
  const used: Record<string, Record<string, () => Promise<unknown>>> = {
    reservations: {
      changeLinks: () => useLinks(reservations, run),
      readLinks: () => reservations.readLinks(({ look }) => look('a~b')),
      loadLink: () => reservations.loadLink('a~b', 0, () => undefined),
      readVersions: () => reservations.readVersions('a~b', [0, 9], () => undefined),
      links: () => reservations.links(),
      onCommit: async () => reservations.onCommit(() => undefined)(),
      find: () => reservations.find(run),
      findKey: () => reservations.findKey({ createdBy: 'user', experiment: 'exp', key: run }, 0),
      list: () => reservations.list({ experiment: 'exp', state: 'active', now: 150, limit: 10 }),
      countBeside: () => reservations.countBeside(['a~b', 'c~d'], 0),
      prepareCounts: () => reservations.prepareCounts(),
      forget: () => reservations.forget(1),
    },
    owners: { register: () => owners.register(run, 'issuer') },
    pageSessions: {
      add: () => sessions.add({ key: run, sealed: '', expiresAt: 5 }),
      find: () => sessions.find(run),
      claim: () => sessions.claim({ key: run, version: 1, turn: 0 }),
      giveBack: () => sessions.giveBack({ key: run, version: 1 }),
      replace: () => sessions.replace({ key: run, version: 1, sealed: '', expiresAt: 5 }),
      remove: () => sessions.remove(run),
      sweep: () => sessions.sweep(1),
    },
    directory: {
      settle: () => directory.settle(settlement(run)),
      people: () => directory.people(),
      person: () => directory.person('person'),
      projectsOf: () => directory.projectsOf('person'),
      project: () => directory.project('project'),
      experimentsOf: () => directory.experimentsOf('person'),
      experiment: () => directory.experiment('experiment'),
      role: () => directory.role('person', 'project'),
      leads: () => directory.leads('project', 'person', 2),
      addExperiment: () =>
        directory.addExperiment(
          { id: run, project: 'project', name: run, description: '', createdAt: 0, expiresAt: 1 },
          'person',
          { most: 1000, since: 0 },
        ),
    },
    identityRecords: {
      save: () =>
        identity.save({
          model: 'DeviceCode',
          key: run,
          payload: {},
          account: 'person',
          grant: 'g',
          userCode: run,
          decided: false,
          expiresAt: 9,
        }),
      find: () => identity.find('DeviceCode', run),
      findByUserCode: () => identity.findByUserCode(run),
      pace: () => identity.pace(run, 1, 1),
      loginsOf: () => identity.loginsOf('person', 1),
      use: () => identity.use(run, 1),
      redeem: () => identity.redeem('DeviceCode', run, 1),
      rotate: () => identity.rotate(run, 1, 1),
      remove: () => identity.remove('DeviceCode', run),
      prolong: () => identity.prolong('Grant', 'g', 1),
      removeGrant: () => identity.removeGrant('DeviceCode', 'g'),
      purge: () => identity.purge(1, 1),
      secret: () => identity.secret('name', new Uint8Array(1)),
      count: () => identity.count('key', 1, 1),
      attempts: () => identity.attempts('key', 1, 1),
      uncount: () => identity.uncount('key'),
    },
    ciRules: {
      add: () => rules.add(ciRule(run), 1000),
      ofExperiment: () => rules.ofExperiment('experiment', 1),
      ofRepository: () => rules.ofRepository('issuer', { id: '74', name: 'octo/measure' }),
      hold: () => rules.hold(run, '74'),
      isLive: () => rules.isLive(run, 1),
      audit: () => rules.audit({ at: 100, accepted: true, by: 'user', experiment: 'exp', why: run }),
      remove: () => rules.remove('experiment', run),
    },
    keys: {
      add: () => keys.add('portal', signingKey(1)),
      note: () => keys.note('portal', 1, 5),
      keys: () => keys.keys('portal'),
      replace: () => keys.replace('portal', signingKey(2), () => undefined),
      forget: () => keys.forget('portal', signingKey(2)),
      past: () => keys.past('portal'),
    },
  };
  const all = Object.entries(stores).filter(([, store]) => typeof store === 'object');
  expect(Object.keys(used).toSorted()).toEqual(all.map(([name]) => name).toSorted());
  for (const [name, store] of all) {
    expect(Object.keys(used[name] ?? {}).toSorted()).toEqual(Object.keys(store).toSorted());
    for (const use of Object.values(used[name] ?? {})) await use();
  }
  await stores.ping();
}

async function useLinks(reservations: Stores['reservations'], id: string): Promise<void> {
  const link = 'a~b';
  const tags = { site1_s_tag: 1, site1_c_tag: 1, site2_s_tag: 1, site2_c_tag: 1 };
  const record = oneHop({
    id,
    link,
    start: 100,
    end: 200,
    bandwidth: 1,
    tags,
    experiment: 'exp',
    tenant: 'proj',
    createdBy: 'user',
    createdAt: 0,
  });
  const key = { createdBy: 'user', experiment: 'exp', key: id };
  const entry = {
    link,
    tags,
    at: 0,
    by: 'user',
    experiment: 'exp',
    reservation: id,
    demand: record,
    why: null,
  };
  const kept = { ...key, fingerprint: 'f', reservations: [id], expires: 5 };
  await reservations.changeLinks(
    [link, 'a~c'],
    async (transaction) => {
      await transaction.lockKeys([key], 0);
      await transaction.findNames([{ experiment: 'exp', name: id }], 0);
      await transaction.write(
        { changes: [{ action: 'create', record, key: kept }], audit: [{ ...entry, action: 'create' }] },
        0,
      );
    },
    0,
  );
  await changeLink(reservations, link, async (transaction) => {
    await transaction.endingBetween(0, 300);
    await transaction.changesSince(0);
    await transaction.read([id]);
    await transaction.countLive(['exp'], 0);
    await transaction.write(
      { changes: [{ action: 'delete', record }], audit: [{ ...entry, action: 'delete' }] },
      0,
    );
  });
}

function ciRule(id: string): CiRule {
  const jobs = {
    ci: 'github',
    issuer: 'issuer',
    repository: 'octo/measure',
    ref: 'refs/heads/main',
  } as const;
  const unsaid = { refType: null, environment: null, repositoryId: null };
  return { id, experiment: 'experiment', person: 'person', ...jobs, ...unsaid, createdAt: 0, expiresAt: 9 };
}

function settlement(run: string) {
  const experiment = {
    id: 'experiment',
    project: 'project',
    name: 'demo',
    description: '',
    createdAt: 0,
    expiresAt: run.length,
    members: [],
  };
  return {
    exact: true,
    people: [{ id: 'person', name: 'lead' }],
    projects: [
      {
        id: 'project',
        name: 'demo',
        description: '',
        createdAt: 0,
        expiresAt: run.length,
        experiments: [experiment],
        members: [{ name: 'lead', role: 'lead' as const }],
      },
    ],
  };
}

function signingKey(number: number) {
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    x: 'x',
    y: 'y',
    d: 'd',
    kid: `key${number}`,
    alg: 'ES256',
    use: 'sig',
  } as const;
  return { number, signsFrom: 0, lastExpiry: 9, jwk };
}

describe('a driver that does not show its stream', () => {
  test('has its statements sent one by one', async () => {
    const client = new Client({ connectionString: await postgres.database() });
    await client.connect();
    try {
      const hidden = new Proxy(client, {
        has: (target, name) => name !== 'connection' && Reflect.has(target, name),
        get: (target, name) => {
          const value: unknown = name === 'connection' ? undefined : Reflect.get(target, name);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
      const sql = statementsOf(hidden as PoolClient);
      const rows = await Promise.all([1, 2].map((number) => sql.first('SELECT $1::int AS n', number)));
      expect(rows).toEqual([{ n: 1 }, { n: 2 }]);
    } finally {
      await client.end();
    }
  });
});
