import * as v from 'valibot';
import { expect, test } from 'vitest';
import { Secret } from '../../src/contract/secret.ts';
import type { Connection } from '../../src/session/login/connection.ts';
import { seeded } from '../bench/seeded.ts';
import { reportOf } from '../e2e/command.ts';
import { type CommandRun, type CommandWorld, commandWorld } from '../fixtures/command-world.ts';
import { EXPERIMENT, FATES, openSlicesSite, type SlicesSite } from '../fixtures/slices-site.ts';
import { NOW } from '../fixtures/tokens.ts';

const CONVERSATIONS = Number(process.env['PROVE_CONVERSATIONS'] ?? 150);

/** Sends straight to the stand-in. A cut connection fails as Node's does. */
function connectionTo(site: SlicesSite): Connection {
  return {
    send: async ({ method, url, headers, body }) => {
      const asked = { method, path: url.slice(site.url.length), headers, body: String(body ?? '') };
      const answered = await site.answer(asked);
      if (!answered) throw Object.assign(new TypeError('fetch failed'), { code: 'ECONNRESET' });
      const reply = new Headers({ 'content-type': answered.type });
      return { status: answered.status, headers: reply, body: [new TextEncoder().encode(answered.body)] };
    },
    userToken: {
      ...{ origin: 'command', where: 'slices' },
      get: async () => new Secret(await site.userToken(site.url)),
    },
    experimentTokenFrom: ({ experiment = '' }) => ({
      ...{ origin: 'command', where: 'slices' },
      get: async () => new Secret(await site.experimentToken(experiment)),
    }),
    close: async () => undefined,
  };
}

const Told = v.object({ id: v.string(), bandwidth: v.number() });
const Printed = v.object({ reservation: Told });
const Listed = v.object({
  items: v.array(
    v.object({
      state: v.string(),
      source: v.string(),
      reservation: v.nullable(Told),
      id: v.nullable(v.string()),
    }),
  ),
});
const Applied = v.object({ items: v.array(v.object({ name: v.string(), reservation: v.nullable(Told) })) });

/** The plan's reservations have a bandwidth each that nothing else has: the service keeps no names. */
const PLAN = `version: 1
defaults: {start: 2026-12-01T10:00:00Z, for: 2h}
reservations:
  a: {sites: [be-gent1, pl-poznan1], bandwidth: 111, description: of the plan}
  b: {sites: [be-gent1, pl-poznan1], bandwidth: 222}
`;

const BOOKED = ['be-gent1', 'pl-poznan1', '--start', '2026-12-01T10:00:00Z', '--for', '2h', '--bandwidth'];

/** One conversation: a few commands at a service of one's own, each checked against what the service has. */
class Conversation {
  readonly #site: SlicesSite;
  readonly #world: CommandWorld;
  readonly #pick: <Item>(items: readonly Item[]) => Item;
  /** Ids that commands have printed. */
  readonly #ids: string[] = [];
  #rate = 1000;

  constructor(site: SlicesSite, pick: <Item>(items: readonly Item[]) => Item) {
    this.#site = site;
    this.#pick = pick;
    this.#world = commandWorld(connectionTo(site), {
      variables: {
        SLICES_CONN_BASE_URL: site.url,
        SLICES_EXPERIMENT: EXPERIMENT.name,
        SLICES_CONN_TOKEN_PLACEMENT: 'experiment',
      },
    });
    this.#world.files.set('plan.yaml', PLAN);
  }

  async step(): Promise<void> {
    this.#site.fates = Array.from({ length: 6 }, () =>
      this.#pick([0, 1, 2]) > 0 ? 'usual' : this.#pick(FATES),
    );
    const known = this.#ids.length > 0 ? (['show', 'update', 'delete'] as const) : [];
    const step = this.#pick([...(['reserve', 'reserve', 'list', 'apply', 'apply'] as const), ...known]);
    const before = structuredClone(this.#site.reservations);
    const ran = await this[step]();
    this.#site.fates = [];
    const { exitCode, maybeDone } = ran;
    const isQuestion = step === 'list' || step === 'show';
    // What is said not to have happened has not happened.
    if (isQuestion || (exitCode !== 0 && !maybeDone)) expect(this.#site.reservations).toEqual(before);
    for (const rate of [111, 222]) {
      const same = [...this.#site.reservations.values()].filter(({ bandwidth }) => bandwidth === rate);
      expect(same.length).toBeLessThanOrEqual(1);
    }
  }

  async reserve(): Promise<Outcome> {
    const before = new Set(this.#site.reservations.keys());
    this.#rate += 1;
    const more = this.#pick([[], ['--name', `link-${this.#rate}`], ['--allow-unsigned']]);
    const ran = await this.#run('reserve', ...BOOKED, `${this.#rate}`, ...more);
    const made = [...this.#site.reservations.values()].filter(({ id }) => !before.has(id));
    expect(made.length).toBeLessThanOrEqual(1);
    if (ran.exitCode !== 0) return ran;
    const { id, bandwidth } = v.parse(Printed, JSON.parse(ran.stdout)).reservation;
    expect(made).toMatchObject([{ id, bandwidth }]);
    this.#ids.push(id);
    return ran;
  }

  async list(): Promise<Outcome> {
    const ran = await this.#run('list', '--all');
    expect(ran.exitCode).toBe(0);
    for (const { id, state, source, reservation } of v.parse(Listed, JSON.parse(ran.stdout)).items) {
      const there = id === null ? undefined : this.#site.reservations.get(id);
      if (state === 'deleted') expect(there).toBeUndefined();
      else if (source === 'service') expect(there).toMatchObject(reservation ?? {});
    }
    return ran;
  }

  async show(): Promise<Outcome> {
    const id = this.#pick(this.#ids);
    const ran = await this.#run('show', id);
    const there = this.#site.reservations.get(id);
    if (ran.exitCode === 0) expect(there).toMatchObject(v.parse(Printed, JSON.parse(ran.stdout)).reservation);
    if (ran.exitCode === 3) expect(there).toBeUndefined();
    return ran;
  }

  async update(): Promise<Outcome> {
    const id = this.#pick(this.#ids);
    this.#rate += 1;
    const ran = await this.#run('update', id, '--bandwidth', `${this.#rate}`);
    if (ran.exitCode === 0) expect(this.#site.reservations.get(id)?.bandwidth).toBe(this.#rate);
    return ran;
  }

  async delete(): Promise<Outcome> {
    const id = this.#pick(this.#ids);
    const ran = await this.#run('delete', id, '--yes');
    if (ran.exitCode === 0) expect(this.#site.reservations.has(id)).toBe(false);
    return ran;
  }

  async apply(): Promise<Outcome> {
    // Somebody else deletes what was made before.
    const [first] = this.#site.reservations.keys();
    if (first !== undefined && this.#pick([0, 1, 2]) === 0) this.#site.reservations.delete(first);
    const before = structuredClone(this.#site.reservations);
    const ran = await this.#run('apply', 'plan.yaml');
    if (ran.exitCode !== 0 && !ran.maybeDone) expect(this.#site.reservations).toEqual(before);
    if (ran.exitCode !== 0) return { ...ran, maybeDone: true };
    for (const { reservation } of v.parse(Applied, JSON.parse(ran.stdout)).items) {
      expect(this.#site.reservations.get(reservation?.id ?? '')).toMatchObject(reservation ?? {});
    }
    return ran;
  }

  async #run(...args: string[]): Promise<Outcome> {
    const ran = await this.#world.run(...args, '--json');
    return { ...ran, maybeDone: ran.exitCode !== 0 && reportOf(ran).maybeDone };
  }
}

type Outcome = CommandRun & { maybeDone: boolean };

test(`${CONVERSATIONS} random conversations with a service that has the spec's interface alone`, async () => {
  const now = (): number => NOW;
  for (let seed = 1; seed <= CONVERSATIONS; seed += 1) {
    const random = seeded(seed);
    const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
    const switches = { now, hasTextualBandwidth: pick([true, false]), isStrict: pick([true, true, false]) };
    const site = await openSlicesSite({ ...switches, signs: pick([true, true, true, false]) });
    const conversation = new Conversation(site, pick);
    for (let steps = 3 + Math.floor(random() * 4); steps > 0; steps -= 1) {
      await conversation.step().catch((error: unknown) => {
        throw new Error(`seed ${seed}`, { cause: error });
      });
    }
  }
});
