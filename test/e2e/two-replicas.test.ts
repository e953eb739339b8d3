import * as v from 'valibot';
import { expect, test, vi } from 'vitest';
import { builtInTopology, linkId } from '../../src/allocator/network.ts';
import { sweep } from '../allocator/sweep.ts';
import { PATIENCE } from '../fixtures/patience.ts';
import { freePort, usePostgres } from '../fixtures/postgres.ts';
import { roundRobin } from '../fixtures/round-robin.ts';
import { openPostgres } from '../store/opened-store.ts';
import { reservationIn } from './command.ts';
import { newClient, serveWith } from './served.ts';

const postgres = usePostgres();

const LINK = ['be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--start-now', '--for', '2h'];
const List = v.object({ items: v.array(v.object({ reservation: v.object({ id: v.string() }) })) });

test('two servers behind one address are one service, which one of them can leave', async () => {
  const database = await postgres.withTables();
  const ports = [await freePort(), await freePort()];
  const balancer = await roundRobin(ports);
  const replica = (port: number | undefined) =>
    serveWith(
      '--database',
      database,
      '--port',
      String(port),
      '--base-url',
      balancer.url,
      '--auto-approve',
      'lead',
      '--drain',
      '2',
    );
  const [one, other] = await Promise.all(ports.map(replica));
  if (!one || !other) throw new Error('two were started');
  expect(other.addresses.base_url).toBe(balancer.url);
  const { command, result } = newClient(one.env);
  const listed = async (): Promise<string[]> =>
    v.parse(List, await result('list')).items.map(({ reservation }) => reservation.id);

  // A login is several requests, each of which reaches the next server: what one began, the other goes on with.
  expect((await command('login')).exitCode).toBe(0);
  expect([...balancer.answered.keys()].toSorted()).toEqual(ports.toSorted());
  const first = reservationIn(await result('reserve', ...LINK));
  const second = reservationIn(await result('reserve', ...LINK));
  expect(await listed()).toEqual([first.id, second.id]);
  expect(reservationIn(await result('update', first.id, '--bandwidth', '2G')).bandwidth).toBe(2000);
  for (const count of balancer.answered.values()) expect(count).toBeGreaterThan(3);

  // One dies without a word; what it had acknowledged is there, and the session goes on.
  one.process.signal('SIGKILL');
  await one.process.ended;
  expect(await listed()).toEqual([first.id, second.id]);
  const third = reservationIn(await result('reserve', ...LINK));
  expect((await command('delete', '--yes', second.id)).exitCode).toBe(0);

  // It comes back; then the other is told to stop, and no request is lost on the way.
  const back = await replica(ports[0]);
  other.process.signal('SIGTERM');
  const booked: string[] = [];
  while (other.process.output.exitCode === null) {
    booked.push(reservationIn(await result('reserve', ...LINK)).id);
  }
  expect((await other.process.ended).exitCode).toBe(0);
  expect(booked.length).toBeGreaterThan(0);
  expect((await listed()).toSorted()).toEqual([first.id, third.id, ...booked].toSorted());

  back.process.signal('SIGTERM');
  expect((await back.process.ended).exitCode).toBe(0);
  await vi.waitFor(async () => expect((await fetch(`${balancer.url}/readyz`)).status).toBe(503), PATIENCE);
  const link = builtInTopology().links.find(({ site1 }) => site1 === 'be-gent1');
  if (!link) throw new Error('the built-in topology lacks the link');
  const store = await openPostgres(database);
  expect(await sweep(store, linkId(link.site1, link.site2), link)).toEqual([]);
  await store.close();
});
