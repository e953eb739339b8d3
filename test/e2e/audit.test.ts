import * as v from 'valibot';
import { expect, test } from 'vitest';
import { builtInTopology, createNetwork } from '../../src/allocator/network.ts';
import { freePort } from '../fixtures/postgres.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { newMachine, reservationIn, tagsOf } from './command.ts';
import { type Client, newClient, serveHere } from './served.ts';

const Audit = v.object({
  items: v.array(v.looseObject({ at: v.string(), action: v.string(), link: v.string() })),
  more: v.boolean(),
});
const Status = v.object({ tokens: v.array(v.object({ kind: v.string(), sub: v.nullable(v.string()) })) });
async function userOf(client: Client): Promise<string> {
  expect((await client.command('login')).exitCode).toBe(0);
  const { tokens } = v.parse(Status, await client.result('status'));
  return tokens.find(({ kind }) => kind === 'user')?.sub ?? '';
}

test('beside a server each decision says who, what and when, and why not or why', async () => {
  const place = ['--data', temporaryFolder()];
  const port = ['--port', String(await freePort())];
  const asViewer = await serveHere(...place, ...port, '--auto-approve', 'viewer');
  const [lead, administrator] = [newClient(asViewer.env), newClient(asViewer.env)];
  const named = await userOf(administrator);
  await asViewer.stop();

  const began = Date.now();
  const server = await serveHere(...place, ...port, '--auto-approve', 'lead', '--administrator', named);
  const user = await userOf(lead);
  const capacity = createNetwork(builtInTopology()).between('be-gent1', 'pl-poznan1')?.bandwidth ?? 0;
  const period = ['--start-now', '--for', '2h'];
  const link = ['pl-poznan1', 'be-gent1'];
  const first = reservationIn(
    await lead.result('reserve', ...link, '--bandwidth', `${capacity - 1}M`, ...period),
  );
  const tooMuch = await lead.command('reserve', ...link, '--bandwidth', '2M', ...period);
  expect(tooMuch.exitCode).toBe(6);
  await lead.result('update', first.id, '--bandwidth', '1G');
  await lead.result('delete', first.id, '--yes');
  const other = reservationIn(
    await lead.result('reserve', 'be-gent1', 'fr-lille', '--bandwidth', '1G', ...period),
  );
  const release = ['--as-administrator', '--reason', 'its job died', '--yes'];
  await administrator.result('delete', other.id, ...release);
  const ended = Date.now();

  const { run } = newMachine();
  const audit = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await run(['serve', 'audit', ...place, ...args, '--json']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    return v.parse(Audit, JSON.parse(stdout));
  };
  const { items, more } = await audit();
  expect(more).toBe(false);
  const [site1s, site1c, site2s, site2c] = tagsOf(first);
  // The request named the link's sites the other way round.
  const tags = { site1_s_tag: site2s, site1_c_tag: site2c, site2_s_tag: site1s, site2_c_tag: site1c };
  const common = { link: 'be-gent1~pl-poznan1', by: user, experiment: first.experiment_id };
  const held = { ...common, accepted: true, reservation: first.id, tags, why: null };
  const why = `bandwidth: 1 of ${capacity} Mbps free`;
  const refused = { accepted: false, reservation: null, tags: null, why };
  const ofOther = { accepted: true, reservation: other.id, experiment: other.experiment_id };
  const { start_date, end_date } = first;
  expect(items).toMatchObject([
    { ...held, action: 'create', version: 1, bandwidth: capacity - 1, start_date, end_date },
    { ...common, ...refused, action: 'create', version: 1, bandwidth: 2 },
    { ...held, action: 'update', version: 2, bandwidth: 1000, start_date, end_date },
    { ...held, action: 'delete', version: 3, bandwidth: 1000, start_date, end_date },
    { ...ofOther, action: 'create', by: user, link: 'be-gent1~fr-lille' },
    { ...ofOther, action: 'delete', by: named, name: 'viewer', why: 'its job died' },
  ]);
  const times = items.map(({ at }) => Date.parse(at));
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  expect(times[0]).toBeGreaterThanOrEqual(began);
  expect(times.at(-1)).toBeLessThanOrEqual(ended);

  expect((await audit('--user', named)).items).toEqual(items.slice(5));
  expect((await audit('--refused')).items).toEqual(items.slice(1, 2));
  expect((await audit('--link', ...link, '--reservation', first.id)).items).toEqual([
    items[0],
    ...items.slice(2, 4),
  ]);

  // Of a route each link has its row, with the ends of the whole; it is found by its name, also when it is gone.
  const far = reservationIn(
    await lead.result('reserve', 'gr-uth', 'be-gent1', '--bandwidth', '1G', ...period, '--name', 'far'),
  );
  await lead.result('delete', far.id, '--yes');
  const ofFar = await audit('--reservation', 'far');
  expect(ofFar).toEqual(await audit('--reservation', far.id));
  expect(new Set(ofFar.items.map((item) => item.link)).size).toBeGreaterThan(1);
  expect(new Set(ofFar.items.map(({ action }) => action))).toEqual(new Set(['create', 'delete']));
  const ends = { reservation: far.id, reservation_name: 'far', site1: 'gr-uth', site2: 'be-gent1' };
  for (const item of ofFar.items) expect(item).toMatchObject(ends);
  await server.stop();
});
