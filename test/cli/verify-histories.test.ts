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

/** Each history, in the words of the page, and who looks at what is left of it. */
const HISTORIES: Record<string, (story: Story) => Promise<CommandWorld>> = {
  async 'it has begun'(story) {
    await story.begin('--start-now');
    return story.reader;
  },
  async 'it has not begun'(story) {
    await story.begin('--start', '+5h');
    return story.reader;
  },
  async 'it stands, and its service has no status lists'(story) {
    await story.begin('--start-now');
    story.lost = '/status/';
    return story.reader;
  },
  async "it stands, and its service can't be reached"(story) {
    await story.begin('--start-now');
    story.lost = BASE;
    return story.reader;
  },
  async deleted(story) {
    await story.begin('--start-now');
    await story.act('delete', 'kth', '--yes');
    return story.reader;
  },
  async 'deleted by this machine'(story) {
    await story.begin('--start-now');
    await story.act('delete', 'kth', '--yes');
    return story.owner;
  },
  async 'deleted, and its end has passed'(story) {
    await story.begin('--start-now');
    await story.act('delete', 'kth', '--yes');
    await story.pass(3 * HOUR);
    return story.reader;
  },
  async 'deleted by this machine, and its end has passed'(story) {
    await story.begin('--start-now');
    await story.act('delete', 'kth', '--yes');
    await story.pass(3 * HOUR);
    return story.owner;
  },
  async changed(story) {
    await story.begin('--start-now');
    await story.act('update', 'kth', '--bandwidth', '2G');
    return story.reader;
  },
  async 'changed by this machine'(story) {
    await story.begin('--start-now');
    await story.act('update', 'kth', '--bandwidth', '2G');
    return story.owner;
  },
  async 'lost by a restored database'(story) {
    const copy = join(temporaryFolder(), 'copy.db');
    await story.serve();
    await story.act(...LINK, '1h', '--start', '+9h');
    backUp(story.file, copy);
    await story.begin('--start-now');
    await story.serve(copy);
    return story.reader;
  },
  async 'lost by a restored database, and its place given to another'(story) {
    const copy = join(temporaryFolder(), 'copy.db');
    await story.serve();
    await story.act(...LINK, '1h', '--start', '+9h');
    backUp(story.file, copy);
    await story.begin('--start-now');
    await story.serve(copy);
    await story.act(...LINK, '2h', '--start-now');
    return story.reader;
  },
  async 'it has ended'(story) {
    await story.begin('--start-now');
    await story.pass(3 * HOUR);
    return story.reader;
  },
  async 'it ended two years ago'(story) {
    await story.begin('--start-now');
    await story.pass(730 * DAY);
    return story.reader;
  },
  async 'its key was followed by another'(story) {
    await story.begin('--start-now');
    await story.rotate();
    await story.pass(1.5 * HOUR);
    return story.reader;
  },
  async 'its key was followed by another, and it has ended'(story) {
    await story.begin('--start-now');
    await story.rotate();
    await story.pass(23 * HOUR);
    return story.reader;
  },
  async 'its key was followed by another, and it ended nearly two years ago'(story) {
    await story.begin('--start-now');
    await story.rotate();
    await story.pass(729 * DAY);
    return story.reader;
  },
  async 'its key was followed by another more than two years ago'(story) {
    await story.begin('--start-now');
    await story.rotate();
    await story.pass(732 * DAY);
    return story.reader;
  },
  async 'its key was retired as leaked, which this machine has not heard'(story) {
    await story.begin('--start-now');
    await story.rotate({ retireNow: true });
    return story.reader;
  },
  async 'its key was retired as leaked'(story) {
    await story.begin('--start-now');
    await story.rotate({ retireNow: true });
    await story.meet();
    return story.reader;
  },
  async 'its key was retired as leaked, and it has ended'(story) {
    await story.begin('--start-now');
    await story.rotate({ retireNow: true });
    await story.meet();
    await story.pass(3 * HOUR);
    return story.reader;
  },
  async 'signed with a key after that was retired as leaked, and it has ended'(story) {
    await story.begin('--start-now');
    const leaked = await story.rotate({ retireNow: true });
    await story.meet();
    const key = await importSigningKey(leaked);
    const thief = createIssuer({ issuer: BASE, key, now: () => story.now });
    const { connectivity, sub, exp } = claimedClaims(String(story.reader.files.get('link.jwt')));
    story.reader.files.set(
      'link.jwt',
      await thief.issue({ connectivity, sub: String(sub), exp: Number(exp) }),
    );
    await story.pass(3 * HOUR);
    return story.reader;
  },
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

  test.each(Object.entries(HISTORIES))('%s', async (name, happen) => {
    const story = new Story();
    const by = await happen(story);
    const cells = [];
    // Without the network first: what is asked over it is kept.
    for (const command of columns.toReversed()) {
      story.now += 1000;
      cells.unshift(await said(by, command));
    }
    expect([name, ...cells]).toEqual(rows.find(([history]) => history === name));
  });
});

test('a proof whose key was retired as leaked: verify says so, and when, in place of a guess', async () => {
  const story = new Story();
  await story.begin('--start-now');
  const at = Math.floor(story.now / 1000) * 1000;
  await story.rotate({ retireNow: true });
  await story.meet();
  const { exitCode, why } = reportOf(await story.reader.run('verify', 'link.jwt', '--json'));
  expect([exitCode, why]).toEqual([
    9,
    `Its issuer retired the key that signed it as leaked at ${new Date(at).toISOString()}. What is valid has been signed anew.`,
  ]);
});
