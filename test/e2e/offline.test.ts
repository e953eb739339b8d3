import { beforeEach, describe, expect, test } from 'vitest';
import { type Machine, newMachine, reportOf, reservationIn, tagsOf } from './command.ts';

const HOUR = 3_600_000;
const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G'];
const LATER = [...LINK, '--start', '+1h', '--for', '2h'];

describe('the life of a reservation', () => {
  test('reserve, list, show, update, delete: each process finds what another has left', async () => {
    const { json: here, run } = newMachine();
    const json = async (...args: string[]) =>
      JSON.parse((await run(['--offline', '--json', ...args], { ownProcess: true })).stdout);
    const booked = await json(...LATER);
    const reservation = reservationIn(booked);
    const { id } = reservation;
    expect(booked).toMatchObject({
      verified: true,
      token: expect.stringMatching(/^eyJ/),
      claims: { sub: id, iss: 'http://offline.localhost', connectivity: reservation },
      source: 'service',
    });
    expect(reservation).toMatchObject({ site1: 'be-gent1', site2: 'pl-poznan1', bandwidth: 1000 });

    expect(await json('list')).toEqual({
      items: [{ id, reservation, state: 'scheduled', source: 'service', requested: expect.any(Object) }],
    });
    // The others in the test's process.
    expect(reservationIn(await here('show', id))).toEqual(reservation);
    const end = Date.parse(reservation.end_date) + HOUR;
    const wider = reservationIn(await here('update', id, '--extend', '1h', '--bandwidth', '2.5G'));
    expect(wider).toEqual({ ...reservation, end_date: new Date(end).toISOString(), bandwidth: 2500 });
    const impossible = await run(['--offline', '--json', 'update', id, '--bandwidth', '101G']);
    expect(reportOf(impossible)).toMatchObject({ code: 'bandwidth_unavailable', exitCode: 6 });
    expect(reservationIn(await here('show', id))).toEqual(wider);
    expect(await here('delete', '--yes', id)).toMatchObject({ items: [{ id, deleted: true }] });
    expect(await here('list')).toEqual({ items: [] });
    expect(await here('list', '--all')).toMatchObject({ items: [{ id, state: 'deleted' }] });
    expect(tagsOf(reservationIn(await here(...LATER)))).toEqual(tagsOf(reservation));
  });

  test('four concurrent reserves get different tags, even while the database is created', async () => {
    const { json, run } = newMachine();
    const asked = Array.from({ length: 4 }, () =>
      run(['--offline', '--json', ...LATER], { ownProcess: true }),
    );
    const booked = (await Promise.all(asked)).map(({ stdout }) => reservationIn(JSON.parse(stdout)));
    const tags = booked.map(tagsOf);
    for (const place of [0, 1, 2, 3])
      expect(new Set(tags.map((own) => own[place]))).toHaveProperty('size', 4);
    expect((await json('list'))['items']).toHaveLength(4);
  });
});

describe('choosing a project and an experiment', () => {
  let own: Machine;
  beforeEach(async () => {
    own = newMachine();
    await own.json('experiment', 'create', 'second', '--end', '+1d', '--description', 'to try');
  });

  test('list, show, create, use', async () => {
    const { items } = await own.json('experiment', 'list');
    expect(items).toMatchObject([
      { name: 'demo', role: 'lead' },
      { name: 'second', role: 'lead', description: 'to try' },
    ]);
    expect(await own.json('project', 'list')).toMatchObject({ items: [{ name: 'demo', role: 'lead' }] });
    await own.json('experiment', 'use', 'second');
    expect(await own.json('experiment', 'show')).toMatchObject({ experiment: { name: 'second' } });
    const table = await own.run(['--offline', 'experiment', 'list']);
    expect(table.stdout).toMatch(/^second \(in use\)/m);
  });

  test('project and experiment tokens: the token alone, or with its claims under --json', async () => {
    for (const noun of ['project', 'experiment']) {
      const plain = await own.run(['--offline', noun, 'token', 'demo']);
      expect([plain.exitCode, plain.stderr]).toEqual([0, '']);
      expect(plain.stdout).toMatch(/^eyJ[\w-]+\.[\w-]+\.[\w-]+\n$/);
      const { claims } = await own.json(noun, 'token', 'demo');
      expect(claims).toMatchObject({ name: 'demo', iss: 'http://offline.localhost/portal' });
      const verified = await own.run(['--offline', '--json', 'verify'], { stdin: plain.stdout });
      expect(JSON.parse(verified.stdout)).toMatchObject({ verified: true, kind: noun, reservation: null });
    }
  });
});
