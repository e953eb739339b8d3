import { createHash } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { IDEMPOTENCY_KEY_HEADER, JWT_TYPE } from '../../../src/contract/routes.ts';
import { CLIENT_ID } from '../../../src/server/identity/user-token.ts';
import type { SqlRow } from '../../../src/store/sql.ts';
import { headersWith } from '../../e2e/wire-caller.ts';
import { freePort } from '../../fixtures/postgres-server.ts';
import { WITH_HOPS } from '../../store/one-link.ts';
import { BATCH_PATH, CONNECTIVITY_PATH } from '../addresses.ts';
import { type Answer, type HttpCaller, logIn } from '../caller.ts';
import type { Chance } from '../chance.ts';
import { LINKS, TOPOLOGY } from '../links.ts';
import { acknowledged } from '../load.ts';
import type { Report } from '../report.ts';
import { dawn, HOUR, type ProofOptions, runProof } from '../run.ts';
import { ServedProcess } from '../served-process.ts';
import { type Claim, cutPower, type Mutation, rowsIn } from './cuts.ts';
import { readRecording, runRecorded, type Step, underRecorder } from './recording.ts';

const JSON_BODY = { 'content-type': 'application/json' };
const SCOPE = 'openid offline_access userinfo projects';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
/** Clients that book, beside one that logs in. */
const CLIENTS = 6;
/** So many requests are acknowledged before the server is ended; in each fourth recording so many that its log is brought into the file. */
const [ENOUGH, MANY] = [40, 600];
/** The request's number, in a header of its own. */
const NUMBER = 'x-proof';
/** The name of the backup. */
const BACKUP = 'copy.sqlite';

/** What is left of a server's data. */
interface Left {
  /** Reservations by their name or idempotency key. */
  reservations: ReadonlyMap<string, SqlRow>;
  /** Until when each key of the connectivity service is needed, in milliseconds, by kid. */
  keys: ReadonlyMap<string, number>;
  /** Refresh tokens that can be used, as hashes. */
  refreshTokens: ReadonlySet<string>;
  /** Reservations in the backup; undefined where there is none. */
  backedUp: number | undefined;
}

type Holds = (left: Left) => boolean;

/** A reservation, a batch or a login, and what was asked about it, one request after the other. */
interface Subject {
  what: string;
  /** What is left of it where nothing was asked yet; without it, a request may be half done until it is answered, as a login may. */
  before?: Holds;
  acts: Act[];
}

/** A request, and how its outcome is known. */
interface Act {
  number: number;
  /** Whether it was answered with yes. */
  isDone: boolean;
  /** Whether it is done in what is left. */
  holds: Holds;
}

const Booked = v.object({ id: v.string() });
const BackedUp = v.object({ reservations: v.number() });
/** What `rotate-keys --json` prints. */
const Rotated = v.object({ items: v.array(v.object({ service: v.string(), kid: v.string() })) });
const Begun = v.object({ device_code: v.string() });
const Tokens = v.object({ refresh_token: v.string() });
const Signed = v.object({ exp: v.number(), connectivity: Booked });

/**
 * The power is cut while `serve` on SQLite is under load, starts, ends, is killed, and while its keys are rotated and its
 * data is copied. It runs under the recorder, in a data folder that it makes, and the cuts are made of the recording.
 * What was answered with yes is in the file: reservations, changes, deletions, keys that have signed, logins.
 */
export async function cutServers(options: ProofOptions, { also = [] }: Mutation = {}): Promise<Report> {
  return runProof('power cuts of the server', options, async ({ place, report, chance, ...run }) => {
    const { folder } = place;
    let looked = 0;
    while (run.round()) {
      const root = join(folder, `machine${report.rounds}`);
      mkdirSync(root, { mode: 0o700 });
      const flags = run.serveFlags(TOPOLOGY, ['--data', join(root, 'data', 'own')]);
      const machine = new RecordedServer({ root, folder, flags, chance, report });
      await machine.serve(report.rounds % 4 === 0 ? MANY : ENOUGH, 'stop');
      await machine.operate(['rotate-keys'], 'the new key is not there', ({ keys }, printed) => {
        const own = v.parse(Rotated, printed).items.filter(({ service }) => service === 'connectivity');
        return own.length === 2 && own.every(({ kid }) => keys.has(kid));
      });
      await machine.serve(ENOUGH, 'kill');
      const backup = ['backup', join(root, BACKUP)];
      await machine.operate(backup, 'the backup is not whole', ({ backedUp }, printed) => {
        return backedUp === v.parse(BackedUp, printed).reservations;
      });
      await machine.serve(ENOUGH, 'kill');
      const recorded = { root, steps: machine.steps, claims: machine.claims(), look };
      looked += cutPower(recorded, { chance, into: join(folder, 'left'), report, also });
    }
    report.notes.push(`${looked} claims were held against what ${report.kills} cuts left`);
  });
}

/** What a {@link RecordedServer} needs. */
interface Surroundings {
  /** The folder that is recorded; empty at first. */
  root: string;
  /** Where recordings are kept. */
  folder: string;
  /** The flags of `serve`. */
  flags: readonly string[];
  chance: Chance;
  report: Report;
}

/** A server whose processes are recorded, one after the other, and what was asked of it. */
class RecordedServer {
  readonly steps: Step[] = [];
  readonly #own: Surroundings;
  readonly #subjects: Subject[] = [];
  /** Claims that hang on no request to the server. */
  readonly #claims: Claim<Left>[] = [];
  /** What holds once the answer with this number is given. */
  readonly #answered: { number: number; what: string; holds: (left: Left) => boolean }[] = [];
  #asked = 0;
  #hours = 0;
  #traces = 0;

  constructor(own: Surroundings) {
    this.#own = own;
  }

  /** Starts the server, asks until so many requests more are acknowledged, and ends it while others are under way. */
  async serve(enough: number, end: 'stop' | 'kill'): Promise<void> {
    const { root, folder, flags: args, report } = this.#own;
    const port = await freePort();
    const trace = this.#trace();
    const server = new ServedProcess({
      port,
      base: `http://127.0.0.1:${port}`,
      home: folder,
      args,
      under: (command) => underRecorder(trace, command),
    });
    try {
      await server.start();
      const { pid, caller } = server;
      const headers = await headersWith(caller, await logIn(caller));
      const isAsked = (): boolean => server.isRunning;
      const clients = Array.from({ length: CLIENTS }, () => this.#book(caller, headers, isAsked));
      clients.push(this.#logIn(caller, isAsked));
      await acknowledged(report, enough);
      await server[end]();
      await Promise.all(clients);
      this.steps.push(...(await readRecording(trace, pid, root)));
    } finally {
      await server.close();
    }
  }

  /** Runs a command of an operator, and claims what holds once it has said so. @param holds told what it printed */
  async operate(
    args: readonly string[],
    what: string,
    holds: (left: Left, printed: unknown) => boolean,
  ): Promise<void> {
    const { root, folder, report } = this.#own;
    const command = ['serve', ...args, '--data', join(root, 'data', 'own')];
    const own = { home: folder, root, trace: this.#trace() };
    const { steps, said, printed } = await runRecorded(command, own);
    report.acknowledged += 1;
    const from = this.steps.length + said;
    this.#claims.push({ kind: 'lost', from, what, holds: (left) => holds(left, printed) });
    this.steps.push(...steps);
  }

  /** What must hold, and between which steps. */
  claims(): Claim<Left>[] {
    const heard = new Map<number, number>();
    const answered = new Map<number, number>();
    const under = new Map<string, number>();
    for (const [at, step] of this.steps.entries()) {
      if (step.act === 'hear') {
        const number = new RegExp(`^${NUMBER}: (\\d+)\r$`, 'im').exec(step.data.toString('latin1'))?.[1];
        if (number === undefined) continue;
        under.set(step.from, Number(number));
        heard.set(Number(number), at);
      } else if (step.act === 'tell' && step.data.toString('latin1', 0, 5) === 'HTTP/') {
        const number = under.get(step.to);
        if (number !== undefined) answered.set(number, at);
        under.delete(step.to);
      }
    }
    const claims = [...this.#claims];
    for (const { number, what, holds } of this.#answered) {
      claims.push({ kind: 'lost', from: answered.get(number) ?? Number.POSITIVE_INFINITY, what, holds });
    }
    for (const { what, before, acts } of this.#subjects) {
      let last: Holds = before ?? (() => true);
      for (const [index, { number, isDone, holds }] of acts.entries()) {
        const from = heard.get(number);
        // It never came to the server.
        if (from === undefined) continue;

        const done = isDone ? answered.get(number) : undefined;
        if (before) {
          const was = last;
          const either: Claim<Left> = {
            kind: 'wrong',
            from,
            what: `${what} is neither as before request ${number} nor as after it`,
            holds: (left) => was(left) || holds(left),
          };
          claims.push(done === undefined ? either : { ...either, until: done });
          last = holds;
        }
        // Nothing more is asked where no answer came.
        if (done === undefined) break;
        const next = acts.slice(index + 1).find((act) => heard.has(act.number));
        const until = next && heard.get(next.number);
        const undone: Claim<Left> = {
          kind: 'lost',
          from: done,
          what: `${what}: request ${number} is undone`,
          holds,
        };
        claims.push(until === undefined ? undone : { ...undone, until });
      }
    }
    return claims;
  }

  /** Books, changes and deletes, one request after the other, as long as the server runs. */
  async #book(
    caller: HttpCaller,
    headers: Readonly<Record<string, string>>,
    isAsked: () => boolean,
  ): Promise<void> {
    const { chance } = this.#own;
    while (isAsked()) {
      if (chance.is(20)) {
        if (!(await this.#batch(caller, headers))) return;
        continue;
      }
      const key = crypto.randomUUID();
      const terms = this.#terms();
      const before: Holds = ({ reservations }) => !reservations.has(key);
      const subject: Subject = { what: `the reservation ${key}`, before, acts: [] };
      this.#subjects.push(subject);
      const ask = (
        method: string,
        path: string,
        body: Terms | undefined,
        holds: Holds,
      ): Promise<Answer | undefined> =>
        this.#ask(caller, method, path, {
          headers: { ...headers, ...JSON_BODY, [IDEMPOTENCY_KEY_HEADER]: key, accept: this.#form() },
          ...(body ? { body: JSON.stringify({ ...body, tokens: [] }) } : {}),
          act: { subject, holds },
        });
      const made = await ask('POST', CONNECTIVITY_PATH, terms, isBooked(key, terms));
      if (!made) return;
      const path = `${CONNECTIVITY_PATH}/${idIn(made)}`;
      const other = { ...terms, bandwidth: String(1 + Number(terms.bandwidth)) };
      if (chance.is(50) && !(await ask('PUT', path, other, isBooked(key, other)))) return;
      if (chance.is(50) && !(await ask('DELETE', path, undefined, isDeleted(key)))) return;
    }
  }

  async #batch(caller: HttpCaller, headers: Readonly<Record<string, string>>): Promise<Answer | undefined> {
    const key = crypto.randomUUID();
    const items = [0, 1].map((index) => ({ name: `b${key.slice(0, 8)}-${index}`, ...this.#terms() }));
    const before: Holds = ({ reservations }) => items.every(({ name }) => !reservations.has(name));
    const holds: Holds = (left) => items.every((item) => isBooked(item.name, item)(left));
    const subject: Subject = { what: `the batch ${key}`, before, acts: [] };
    this.#subjects.push(subject);
    return this.#ask(caller, 'POST', BATCH_PATH, {
      headers: { ...headers, ...JSON_BODY, [IDEMPOTENCY_KEY_HEADER]: key },
      body: JSON.stringify({ items: items.map((item) => ({ action: 'create', ...item })), tokens: [] }),
      act: { subject, holds },
    });
  }

  /** Logs in, refreshes and revokes, one request after the other, as long as the server runs. */
  async #logIn(caller: HttpCaller, isAsked: () => boolean): Promise<void> {
    while (isAsked()) {
      const subject: Subject = { what: 'a login', acts: [] };
      this.#subjects.push(subject);
      const post = async (
        path: string,
        fields: Record<string, string>,
        holds: Holds,
      ): Promise<string | undefined> => {
        const body = new URLSearchParams({ client_id: CLIENT_ID, ...fields }).toString();
        const headers = { 'content-type': 'application/x-www-form-urlencoded' };
        const answer = await this.#ask(caller, 'POST', path, { headers, body, act: { subject, holds } });
        return answer?.text;
      };
      const tokens: string[] = [];
      // Where no answer came, the token is not known.
      const isUsable = (index: number): Holds => {
        return ({ refreshTokens }) => tokens[index] === undefined || refreshTokens.has(hashOf(tokens[index]));
      };
      const begun = await post('/auth/device/auth', { scope: SCOPE }, () => true);
      if (begun === undefined) return;
      const { device_code } = v.parse(Begun, JSON.parse(begun));
      const first = await post('/auth/token', { grant_type: DEVICE_GRANT, device_code }, isUsable(0));
      if (first === undefined) return;
      tokens.push(v.parse(Tokens, JSON.parse(first)).refresh_token);
      const refresh = { grant_type: 'refresh_token', refresh_token: tokens[0] ?? '' };
      const second = await post('/auth/token', refresh, isUsable(1));
      if (second === undefined) return;
      tokens.push(v.parse(Tokens, JSON.parse(second)).refresh_token);
      const isGone: Holds = ({ refreshTokens }) => tokens.every((token) => !refreshTokens.has(hashOf(token)));
      if (this.#own.chance.is(50)) await post('/auth/token/revocation', { token: tokens[1] ?? '' }, isGone);
    }
  }

  /** @returns undefined where no answer came, or none with yes */
  async #ask(
    caller: HttpCaller,
    method: string,
    path: string,
    { headers, body, act }: Asking,
  ): Promise<Answer | undefined> {
    const { report } = this.#own;
    const number = this.#asked++;
    report.requests += 1;
    const noted: Act = { number, isDone: false, holds: act.holds };
    act.subject.acts.push(noted);
    const content = {
      headers: { ...headers, [NUMBER]: String(number) },
      ...(body === undefined ? {} : { body }),
    };
    const answer = await caller.send(method, path, content).catch(() => undefined);
    if (!answer || answer.status === 503 || answer.status === 429) {
      report.unanswered += 1;
      return undefined;
    }
    if (answer.status >= 300) {
      report.findings.push({
        kind: 'wrong',
        what: `${method} ${path} was answered with ${answer.status} ${answer.text}`,
      });
      return undefined;
    }
    report.acknowledged += 1;
    noted.isDone = true;
    if (answer.headers.get('content-type') === JWT_TYPE) this.#signed(number, answer.text);
    return answer;
  }

  /** A key that has signed is kept until the last token that it has signed has expired. */
  #signed(number: number, token: string): void {
    const [header = '', payload = ''] = token.split('.');
    const { kid } = v.parse(v.object({ kid: v.string() }), decoded(header));
    const { exp } = v.parse(Signed, decoded(payload));
    const holds: Holds = ({ keys }) => (keys.get(kid) ?? 0) >= exp * 1000;
    this.#answered.push({ number, what: `${kid} is not known to be needed until ${exp}`, holds });
  }

  #form(): string {
    return this.#own.chance.is(50) ? JWT_TYPE : 'application/json';
  }

  /** An hour of its own, so that nothing is refused. */
  #terms(): Terms {
    const { site1, site2 } = this.#own.chance.of(LINKS) ?? LINKS[0];
    const start = dawn(2 + this.#hours++);
    const [start_date, end_date] = [start, start + HOUR].map((time) => new Date(time).toISOString());
    return { site1, site2, bandwidth: '1', start_date: start_date ?? '', end_date: end_date ?? '' };
  }

  #trace(): string {
    return join(this.#own.folder, `trace${this.#own.report.rounds}-${this.#traces++}`);
  }
}

/** What a request is, besides its method and path. */
interface Asking {
  headers: Readonly<Record<string, string>>;
  body?: string;
  act: { subject: Subject; holds: Holds };
}

/** Terms as they are sent. */
interface Terms {
  site1: string;
  site2: string;
  bandwidth: string;
  start_date: string;
  end_date: string;
}

function isBooked(key: string, { bandwidth, start_date, end_date }: Terms): Holds {
  return ({ reservations }) => {
    const row = reservations.get(key);
    const times = [row?.['start_ms'], row?.['end_ms']].join();
    const isSame = row?.['bandwidth'] === Number(bandwidth) && row['deleted_ms'] === null;
    return isSame && times === [Date.parse(start_date), Date.parse(end_date)].join();
  };
}

function isDeleted(key: string): Holds {
  return ({ reservations }) => typeof reservations.get(key)?.['deleted_ms'] === 'number';
}

/** A connectivity token has it in its content. */
function idIn({ text, headers }: Answer): string {
  if (headers.get('content-type') !== JWT_TYPE) return v.parse(Booked, JSON.parse(text)).id;
  return v.parse(Signed, decoded(text.split('.')[1] ?? '')).connectivity.id;
}

function decoded(part: string): unknown {
  return JSON.parse(Buffer.from(part, 'base64url').toString());
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}

const KEPT = `SELECT coalesce(r.name, k.key) AS key, r.* FROM (${WITH_HOPS}) AS r
  LEFT JOIN idempotency_key k ON k.reservation = r.id AND k.items IS NULL`;

function look(machine: string): Left {
  const file = join(machine, 'data', 'own', 'slices-conn.sqlite');
  const copy = join(machine, BACKUP);
  return {
    reservations: new Map(rowsIn(file, KEPT).map((row) => [String(row['key']), row])),
    keys: new Map(
      rowsIn(
        file,
        "SELECT jwk ->> '$.kid' AS kid, expiry_ms FROM signing_key WHERE issuer = 'connectivity'",
      ).map((row) => [String(row['kid']), Number(row['expiry_ms'])]),
    ),
    refreshTokens: new Set(
      rowsIn(
        file,
        "SELECT key FROM identity_record WHERE model = 'RefreshToken' AND consumed_ms IS NULL",
      ).map(({ key }) => String(key)),
    ),
    backedUp: existsSync(copy)
      ? rowsIn(copy, 'SELECT id FROM reservation WHERE deleted_ms IS NULL').length
      : undefined,
  };
}
