import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { formatInstant } from '../../../src/contract/instants.ts';
import { IDEMPOTENCY_KEY_HEADER } from '../../../src/contract/routes.ts';
import type { SqlRow } from '../../../src/store/sql.ts';
import { freePort } from '../../fixtures/postgres-server.ts';
import { BATCH_PATH, CONNECTIVITY_PATH } from '../addresses.ts';
import type { Chance } from '../chance.ts';
import { LINKS, TOPOLOGY } from '../links.ts';
import type { Place } from '../place.ts';
import type { Report } from '../report.ts';
import { dawn, HOUR, type ProofOptions, runProof } from '../run.ts';
import { ServedProcess } from '../served-process.ts';
import { type Claim, cutPower, type Mutation, rowsIn } from './cuts.ts';
import { runRecorded, type Step } from './recording.ts';

/** Commands about reservations in a recording, between a login and a logout. */
const COMMANDS = 7;

/** What is left of a person's files. */
interface Left {
  /** The ledger's rows by key; none where there is no ledger. */
  rows: ReadonlyMap<string, SqlRow>;
  /** The ids of reservations in the file of the built-in server. */
  offline: ReadonlySet<string>;
  /** The text of config.json. */
  config: string | undefined;
  /** The text of the file with the login. */
  login: string | undefined;
}

const Answered = v.object({ reservation: v.object({ id: v.string() }) });

/** A reservation that was asked for, with what was asked about it last. */
interface Asked {
  id: string;
  /** The step at which the next command about it starts, for what is known until then. */
  next: { until?: number };
}

/**
 * The power is cut while a person's commands run: log in, book, change, delete, apply, set a profile, log out. Each runs under
 * the recorder, and the cuts are made of the recording. What reached the service is in the ledger, what was printed
 * stays, config.json and the login are whole, and a login that was ended does not come back.
 */
export async function cutClients(options: ProofOptions, { also = [] }: Mutation = {}): Promise<Report> {
  return runProof('power cuts of the client', options, async ({ place, report, chance, ...run }) => {
    const port = await freePort();
    const base = `http://127.0.0.1:${port}`;
    const args = run.serveFlags(TOPOLOGY, ['--memory']);
    const server = new ServedProcess({ port, base, home: place.folder, args });
    run.atEnd(() => server.close());
    await server.start();
    let looked = 0;
    while (run.round()) {
      const person = new RecordedPerson(place, base, report);
      await session(person, chance);
      const { root, steps, claims } = person;
      const into = join(place.folder, 'left');
      looked += cutPower({ root, steps, claims, look }, { chance, into, report, also });
    }
    report.notes.push(`${looked} claims were held against what ${report.kills} cuts left`);
  });
}

async function session(person: RecordedPerson, chance: Chance): Promise<void> {
  await person.reserveOffline();
  await person.logIn();
  await person.setProfile('Europe/Warsaw', COMMANDS);
  const booked: Asked[] = [];
  for (let count = 0; count < COMMANDS; count += 1) {
    const known = chance.of(booked);
    const drawn = chance.below(10);
    if (drawn < 2) await person.setProfile(`Europe/${chance.is(50) ? 'Brussels' : 'Warsaw'}`, count);
    else if (drawn < 3) await person.apply(chance);
    else if (!known || drawn < 6) booked.push(await person.reserve(chance));
    else if (drawn < 8) await person.update(known, 1 + chance.below(200));
    else await person.delete(booked.splice(booked.indexOf(known), 1)[0] ?? known);
  }
  await person.logOut();
}

/** A person whose commands are recorded, in a home folder that is empty at first. */
class RecordedPerson {
  readonly root: string;
  readonly steps: Step[] = [];
  readonly claims: Claim<Left>[] = [];
  readonly #folder: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #report: Report;
  /** What is claimed of config.json and of the login until the next command that changes it. */
  #config: { until?: number } = {};
  #login: { until?: number } = {};
  #count = 0;

  constructor({ folder }: Place, base: string, report: Report) {
    this.#folder = folder;
    this.root = join(folder, `home${report.rounds}`);
    mkdirSync(this.root, { mode: 0o700 });
    this.#env = {
      // What is in it can be fetched and compiled anew.
      XDG_CACHE_HOME: join(folder, 'cache'),
      SLICES_CONN_BASE_URL: base,
      SLICES_CONN_PORTAL_URL: `${base}/portal`,
      SLICES_CONN_AUTH_URL: `${base}/auth`,
    };
    this.#report = report;
    this.#claim('wrong', 0, 'config.json is half there', ({ config }) => isWhole(config));
    this.#claim('wrong', 0, 'the login is half there', ({ login }) => isWhole(login));
  }

  async logIn(): Promise<void> {
    this.#login.until = this.steps.length;
    const { said } = await this.#run(['login']);
    this.#login = this.#claim('lost', said, 'the login is not there', ({ login }) => login !== undefined);
  }

  async logOut(): Promise<void> {
    this.#login.until = this.steps.length;
    const { said } = await this.#run(['logout']);
    this.#login = this.#claim('wrong', said, 'the login is back', ({ login }) => login === undefined);
  }

  async setProfile(tz: string, number: number): Promise<void> {
    const from = this.steps.length;
    this.#config.until = from;
    const before = configIn(this.root);
    const { said } = await this.#run(['profile', 'set', `own${number}`, `tz=${tz}`]);
    const after = configIn(this.root);
    const one = this.#claim('wrong', from, 'config.json is neither the old nor the new one', ({ config }) =>
      [before, after].includes(config),
    );
    one.until = said;
    this.#config = this.#claim(
      'lost',
      said,
      'config.json is not the new one',
      ({ config }) => config === after,
    );
  }

  async reserve(chance: Chance): Promise<Asked> {
    const { site1, site2 } = chance.of(LINKS) ?? LINKS[0];
    const own = chance.is(50) ? ['--idempotency-key', crypto.randomUUID()] : [];
    const { answer, said } = await this.#run([
      'reserve',
      site1,
      site2,
      '--bandwidth',
      '1',
      ...this.#times(),
      ...own,
    ]);
    const { id } = v.parse(Answered, answer).reservation;
    return { id, next: this.#known(id, 'booked', said) };
  }

  /** By the built-in server, which keeps its data among the person's files. */
  async reserveOffline(): Promise<void> {
    const args = ['--offline', 'reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1', ...this.#times()];
    const { answer, said } = await this.#run(args);
    const { id } = v.parse(Answered, answer).reservation;
    this.#known(id, 'booked', said);
    this.#claim('lost', said, `the built-in server does not know ${id}`, ({ offline }) => offline.has(id));
  }

  async update(asked: Asked, bandwidth: number): Promise<void> {
    asked.next.until = this.steps.length;
    const { said, requests } = await this.#run(['update', asked.id, '--bandwidth', String(bandwidth)]);
    const sent = this.#sent(requests, `PUT ${CONNECTIVITY_PATH}/${asked.id}`, asked.id, 'update');
    asked.next = this.#known(asked.id, 'booked', said, bandwidth);
    sent.until = said;
  }

  async delete({ id, next }: Asked): Promise<void> {
    next.until = this.steps.length;
    const { said, requests } = await this.#run(['delete', '--yes', id]);
    this.#sent(requests, `DELETE ${CONNECTIVITY_PATH}/${id}`, id, 'delete');
    this.#known(id, 'deleted', said);
  }

  async apply(chance: Chance): Promise<void> {
    const name = `plan${this.#count}.json`;
    const reservations = LINKS.slice(0, 2).map(({ site1, site2 }, index) => [
      `own${this.#count}-${index}`,
      { sites: [site1, site2], bandwidth: 1 + chance.below(9) },
    ]);
    const [, start, , end] = this.#times();
    const plan = { version: 1, defaults: { start, end }, reservations: Object.fromEntries(reservations) };
    writeFileSync(join(this.#folder, name), JSON.stringify(plan));
    await this.#run(['apply', join(this.#folder, name)]);
  }

  /** An hour of its own, so that no command is refused. */
  #times(): string[] {
    const start = dawn(2 + this.#report.acknowledged);
    return ['--start', formatInstant(start), '--end', formatInstant(start + HOUR)];
  }

  /** What was printed about a reservation is known from then on. */
  #known(id: string, outcome: string, said: number, bandwidth?: number): Claim<Left> {
    return this.#claim('lost', said, `the ledger does not say that ${id} is ${outcome}`, ({ rows }) => {
      const row = [...rows.values()].find((each) => each['reservation_id'] === id);
      const kept = String(row?.['reservation']);
      const isSame = bandwidth === undefined || kept.includes(`"bandwidth":${bandwidth},`);
      return row?.['outcome'] === outcome && isSame;
    });
  }

  /** A change that has reached the service is in the ledger. */
  #sent(requests: readonly Request[], first: string, id: string, asked: string): Claim<Left> {
    const at = requests.find(({ text }) => text.startsWith(first))?.at;
    if (at === undefined) throw new Error(`no request ${first} was recorded`);
    return this.#claim(
      'lost',
      at,
      `the ledger does not know that ${asked} of ${id} was asked for`,
      ({ rows }) => [...rows.values()].some((row) => row['reservation_id'] === id && row['asked'] === asked),
    );
  }

  #claim(kind: Claim<Left>['kind'], from: number, what: string, holds: Claim<Left>['holds']): Claim<Left> {
    const claim: Claim<Left> = { kind, from, what, holds };
    this.claims.push(claim);
    return claim;
  }

  /** Runs a command, and claims that what it asks to create is in the ledger when it is asked for. */
  async #run(
    args: readonly string[],
  ): Promise<{ answer: unknown; said: number; requests: readonly Request[] }> {
    const trace = join(this.#folder, `trace${this.#count++}`);
    const from = this.steps.length;
    const own = { home: this.root, root: this.root, env: this.#env, trace };
    const { steps: recorded, printed, said } = await runRecorded(args, own);
    this.#report.requests += 1;
    this.#report.acknowledged += 1;
    this.steps.push(...recorded);
    const requests = requestsIn(recorded).map(({ at, text }) => ({ at: from + at, text }));
    for (const { at, text } of requests) {
      for (const key of keysIn(text)) {
        this.#claim('lost', at, `${key} has reached the service, unknown to the ledger`, ({ rows }) =>
          rows.has(key),
        );
      }
    }
    return { answer: printed, said: from + said, requests };
  }
}

/** A request as it was told to a socket: at which step it began, and its text. */
interface Request {
  at: number;
  text: string;
}

function requestsIn(steps: readonly Step[]): Request[] {
  return steps.flatMap((step, at) => {
    if (step.act !== 'tell' || !step.to.startsWith('socket:')) return [];
    const text = step.data.toString('latin1');
    return /^[A-Z]+ \//.test(text) ? [{ at, text }] : [];
  });
}

/** The keys under which a request that creates reservations is in the ledger. */
function keysIn(text: string): string[] {
  const key = new RegExp(`^${IDEMPOTENCY_KEY_HEADER}: (.*)\r$`, 'im').exec(text)?.[1];
  if (key === undefined) return [];
  if (text.startsWith(`POST ${CONNECTIVITY_PATH} `)) return [key];
  const items = text.startsWith(`POST ${BATCH_PATH} `) ? text.split('"action":').length - 1 : 0;
  return Array.from({ length: items }, (_, index) => `${key}/${index + 1}`);
}

function look(home: string): Left {
  const state = join(home, 'state', 'slices-conn');
  const logins = join(state, 'credentials');
  const login = existsSync(logins) && readdirSync(logins).find((name) => name.endsWith('.json'));
  const rows = rowsIn(join(state, 'ledger.sqlite'), 'SELECT * FROM attempt');
  const offline = rowsIn(join(state, 'offline', 'reservations.sqlite'), 'SELECT id FROM reservation');
  return {
    rows: new Map(rows.map((row) => [String(row['key']), row])),
    offline: new Set(offline.map(({ id }) => String(id))),
    config: configIn(home),
    login: login ? readFileSync(join(logins, login), 'utf8') : undefined,
  };
}

function configIn(home: string): string | undefined {
  const file = join(home, 'config', 'slices-conn', 'config.json');
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

function isWhole(text: string | undefined): boolean {
  if (text === undefined) return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
