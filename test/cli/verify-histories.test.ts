import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createReferenceServer, type ReferenceServer } from '../../src/reference-server.ts';
import { rotateByHand } from '../../src/server/keys/key-ring.ts';
import { keySetFiles } from '../../src/session/login/trust.ts';
import { backUp } from '../../src/store/sqlite/backup.ts';
import { openStores } from '../../src/store/stores.ts';
import { claimedClaims } from '../../src/tokens/claimed.ts';
import { createIssuer } from '../../src/tokens/issuer.ts';
import { importSigningKey } from '../../src/tokens/signing-key.ts';
import { reportOf } from '../e2e/command.ts';
import { type CommandWorld, commandWorld, connectionTo, NO_ENVIRONMENT } from '../fixtures/command-world.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';
import { NOW } from '../fixtures/tokens.ts';

const BASE = 'http://127.0.0.1:4280';
/** In milliseconds. */
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];
const LINK = ['reserve', 'be-gent1', 'pl-poznan1', '--bandwidth', '1G', '--for'];

/** A reservation of two hours, and the machines of who booked it and of somebody who was given the proof. */
class Story {
  now = NOW;
  /** The service answers nothing whose address has this text. */
  lost: string | undefined;
  file = join(temporaryFolder(), 'server.db');
  readonly owner = this.#machine();
  readonly reader = this.#machine();
  /** Who looks at what is left of it. */
  looking = this.reader;
  #server: ReferenceServer | undefined;

  /** Starts the service on a database. */
  async serve(file = this.file): Promise<void> {
    this.file = file;
    const server = await createReferenceServer({ baseUrl: BASE, database: file, now: () => this.now });
    onTestFinished(() => server.close());
    this.#server = server;
  }

  #running(): ReferenceServer {
    if (!this.#server) throw new Error('no service runs');
    return this.#server;
  }

  #machine(): CommandWorld {
    const folders = { ...NO_ENVIRONMENT.folders, cache: temporaryFolder() };
    const server: Parameters<typeof connectionTo>[0] = {
      fetch: async (request) =>
        this.lost !== undefined && request.url.includes(this.lost)
          ? new Response(null, { status: 503 })
          : this.#running().fetch(request),
      signIn: async (user) => this.#running().signIn(user),
    };
    const connection = { ...connectionTo(server), keySets: keySetFiles(folders.cache) };
    return commandWorld(connection, { now: () => this.now, folders });
  }

  /** Books, and both machines keep the keys that they verified it with. */
  async begin(...start: readonly string[]): Promise<void> {
    await this.serve();
    await this.act(...LINK, '2h', ...start, '--name', 'kth', '--save', 'link.jwt');
    this.reader.files.set('link.jwt', String(this.owner.files.get('link.jwt')));
    await this.meet();
  }

  /** Both machines ask for what is published now. */
  async meet(): Promise<void> {
    this.now += HOUR / 4;
    for (const one of [this.owner, this.reader]) await one.run('verify', 'link.jwt');
  }

  /** What who booked it does next. */
  async act(...args: readonly string[]): Promise<void> {
    this.now += MINUTE;
    expect(await this.owner.run(...args)).toMatchObject({ exitCode: 0 });
  }

  /** Lets some time pass since it was booked; the service looks at its keys then. */
  async pass(time: number): Promise<void> {
    this.now = NOW + time;
    await this.#running().fetch(new Request(`${BASE}/.well-known/jwks.json`));
  }

  /** Gives the service another key. @returns the one before */
  async rotate({ retireNow = false } = {}) {
    const stores = await openStores(this.file);
    const [before] = await stores.keys.keys('connectivity');
    await rotateByHand('connectivity', stores.keys, { retireNow, now: this.now });
    await stores.close();
    this.now += MINUTE;
    if (!before) throw new Error('the service had no key');
    return before.jwk;
  }
}

type Step = (story: Story) => unknown;
const begun: Step = (story) => story.begin('--start-now');
const deleted: Step = (story) => story.act('delete', 'kth', '--yes');
const changed: Step = (story) => story.act('update', 'kth', '--bandwidth', '2G');
const rotated: Step = (story) => story.rotate();
const leaked: Step = (story) => story.rotate({ retireNow: true });
const heard: Step = (story) => story.meet();
const after =
  (time: number): Step =>
  (story) =>
    story.pass(time);
const without =
  (address: string): Step =>
  (story) => {
    story.lost = address;
  };
/** It is who booked it that looks, in place of the reader. */
const own: Step = (story) => {
  story.looking = story.owner;
};
/** The database is that of an hour before it was booked. */
const restored: Step = async (story) => {
  const copy = join(temporaryFolder(), 'copy.db');
  await story.serve();
  await story.act(...LINK, '1h', '--start', '+9h');
  backUp(story.file, copy);
  await story.begin('--start-now');
  await story.serve(copy);
};
const bookedAgain: Step = (story) => story.act(...LINK, '2h', '--start-now');
/** Whoever has the leaked key signs the same claims with it, after so many milliseconds. */
async function forge(
  story: Story,
  leaked: Awaited<ReturnType<Story['rotate']>>,
  after: number,
): Promise<void> {
  const key = await importSigningKey(leaked);
  const thief = createIssuer({ issuer: BASE, key, now: () => NOW + after });
  const { connectivity, sub, exp } = claimedClaims(String(story.reader.files.get('link.jwt')));
  const forged = await thief.issue({ connectivity, sub: String(sub), exp: Number(exp) });
  story.reader.files.set('link.jwt', forged);
}
const stolen: Step = async (story) => {
  const key = await story.rotate({ retireNow: true });
  await story.meet();
  await forge(story, key, story.now - NOW);
};

/** Each history, in the words of the page. */
const HISTORIES: Record<string, readonly Step[]> = {
  'it has begun': [begun],
  'it has not begun': [(story) => story.begin('--start', '+5h')],
  'it stands, and its service has no status lists': [begun, without('/status/')],
  "it stands, and its service can't be reached": [begun, without(BASE)],
  deleted: [begun, deleted],
  'deleted by this machine': [begun, deleted, own],
  'deleted, and its end has passed': [begun, deleted, after(3 * HOUR)],
  'deleted by this machine, and its end has passed': [begun, deleted, after(3 * HOUR), own],
  changed: [begun, changed],
  'changed by this machine': [begun, changed, own],
  'lost by a restored database': [restored],
  'lost by a restored database, and its place given to another': [restored, bookedAgain],
  'it has ended': [begun, after(3 * HOUR)],
  'it ended two years ago': [begun, after(730 * DAY)],
  'its key was followed by another': [begun, rotated, after(1.5 * HOUR)],
  'its key was followed by another, and it has ended': [begun, rotated, after(23 * HOUR)],
  'its key was followed by another, and it ended nearly two years ago': [begun, rotated, after(729 * DAY)],
  'its key was followed by another more than two years ago': [begun, rotated, after(732 * DAY)],
  'its key was retired as leaked, which this machine has not heard': [begun, leaked],
  'its key was retired as leaked': [begun, leaked, heard],
  'its key was retired as leaked, and it has ended': [begun, leaked, heard, after(3 * HOUR)],
  'signed with a key after that was retired as leaked, and it has ended': [begun, stolen, after(3 * HOUR)],
};

/** The table of the page, without its marks: the flags of each column, and what each row says of a history. */
const [[, ...columns] = [], , ...rows] = readFileSync('src/tokens/README.md', 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim().replaceAll('`', '')),
  );

const Verified = v.looseObject({ verified: v.literal(true), standing: v.string() });

/** What `verify` says, as a cell of the table has it: exit code, word, and whether a warning goes before it. */
async function said(by: CommandWorld, command: string): Promise<string> {
  const ended = await by.run(...command.split(' ').toSpliced(1, 0, 'link.jwt', '--json'));
  const { exitCode, stdout, stderr } = ended;
  const word = exitCode === 0 ? v.parse(Verified, JSON.parse(stdout)).standing : reportOf(ended).standing;
  const warning = stderr.includes('retired as leaked since') ? 'a warning' : undefined;
  return [exitCode, word, warning].filter((part) => part !== undefined).join(', ');
}

describe('what the page says that verify says of a signed reservation', () => {
  test('it says of each history', () => {
    expect(rows.map(([history]) => history)).toEqual(Object.keys(HISTORIES));
  });

  test.each(Object.entries(HISTORIES))('%s', async (name, steps) => {
    const story = new Story();
    for (const step of steps) await step(story);
    const cells = [];
    // Without the network first: what is asked over it is kept.
    for (const command of columns.toReversed()) {
      story.now += 1000;
      cells.unshift(await said(story.looking, command));
    }
    expect([name, ...cells]).toEqual(rows.find(([history]) => history === name));
  });
});

test('a proof whose key was retired as leaked: verify says so, and when, in place of a guess, and how to fetch a new one', async () => {
  const story = new Story();
  await begun(story);
  const at = new Date(Math.floor(story.now / 1000) * 1000).toISOString();
  for (const step of [leaked, heard]) await step(story);
  expect(reportOf(await story.reader.run('verify', 'link.jwt', '--json'))).toMatchObject({
    exitCode: 9,
    why: `Its issuer retired the key that signed it as leaked at ${at}. What is valid has been signed anew.`,
    fix: expect.stringMatching(/^slices-conn show con_/),
  });
});

test('row 123: nothing counts that a key signs once it was retired as leaked, and nothing from before its time', async () => {
  const story = new Story();
  await begun(story);
  const key = await story.rotate({ retireNow: true });
  await story.pass(3 * HOUR);
  expect((await story.reader.run('verify', 'link.jwt', '--ended')).exitCode).toBe(0);
  for (const hours of [1, 1.5, -1]) {
    await forge(story, key, hours * HOUR);
    const ended = await story.reader.run('verify', 'link.jwt', '--ended', '--json');
    expect(reportOf(ended)).toMatchObject({ code: 'unverified', exitCode: 9 });
  }
});
